use super::records::FLOW_WORDS;
use super::*;
use clearway_units::{Bytes, FlowId, HostId, Purpose, RandomStream, Time};
use clearway_workload::{FlowSpec, Start, TriggerIndex, TriggerKind, Workload};
use insta::assert_snapshot;
use proptest::prelude::*;

/// The example of the format: two flows meet at a barrier that starts two more.
const BARRIER: &str = "\
Nodes 16
Connections 4
Triggers 1
0->13 id 1 start 0 size 2000000 send_done_trigger 1
1->12 id 2 start 5 size 4086 send_done_trigger 1
13->0 id 3 trigger 1 size 2000000
12->1 id 4 trigger 1 size 2000000
trigger id 1 barrier count 2
";

fn parse(text: &str) -> Result<CmFile, FileError> {
    parse_cm("t.cm", text, StartUnit::Microseconds)
}

/// The error of a file for 4 hosts with the body `lines`, with correct counts in the header. The body begins on line 5.
fn error(lines: &str) -> String {
    body(lines).unwrap_err().to_string()
}

fn body(lines: &str) -> Result<CmFile, FileError> {
    let count = |word: &str| lines.lines().filter(|line| line.starts_with(word)).count();
    let (triggers, failures) = (count("trigger"), count("failure"));
    let flows = lines.lines().count() - triggers - failures;
    parse(&format!(
        "Nodes 4\nConnections {flows}\nTriggers {triggers}\nFailures {failures}\n{lines}"
    ))
}

fn warnings(lines: &str) -> String {
    let file = body(lines).unwrap();
    let lines: Vec<String> = file.warnings.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn reads_the_example() {
    let file = parse(BARRIER).unwrap();
    assert_eq!(file.nodes, 16);
    let first = FlowSpec {
        on_sent: Some(TriggerIndex(0)),
        ..FlowSpec::timed(1, HostId(0), HostId(13), Bytes::new(2_000_000), Time::ZERO)
    };
    assert_eq!(file.workload.flows[0], first);
    let starts: Vec<Start> = file.workload.flows.iter().map(|flow| flow.start).collect();
    let trigger = Start::On(TriggerIndex(0));
    let five = Start::At(Time::from_us(5));
    assert_eq!(starts, [Start::At(Time::ZERO), five, trigger, trigger]);
    assert_eq!(file.workload.triggers[0].label, 1);
    let barrier = TriggerKind::Barrier { count: 2 };
    assert_eq!(file.workload.triggers[0].kind, barrier);
    assert_eq!(
        (file.failures.as_slice(), file.warnings.as_slice()),
        (&[][..], &[][..])
    );
}

#[test]
fn blanks_comments_order_and_line_ends_are_free() {
    let loose = "\u{feff}# head\r\nTriggers 1 # one\r\n  Connections\t4\r\nNodes 16\r\n\r\n\
        trigger count 2 barrier id 1\r\n# a comment between flows\r\n\
        0->13  id 1 send_done_trigger 1 size 2000000 start 0.0   \r\n\
        1->12 start 5e0 size 4086 id 2 send_done_trigger 1\r\n\
        13->0 trigger 1 id 3 size 2000000 # after\r\n\t12->1 id 4 trigger 1 size 2000000";
    assert_eq!(parse(loose).unwrap(), parse(BARRIER).unwrap());
}

#[test]
fn numbers_are_exact_and_have_64_bits() {
    let file = body("0->1 start 16.777217 size 5000000000 id 18446744073709551615").unwrap();
    let flow = file.workload.flow(FlowId(0));
    assert_eq!(flow.start, Start::At(Time::from_ps(16_777_217)));
    assert_eq!(flow.bytes, Bytes::new(5_000_000_000));
    assert_eq!(flow.label, u64::MAX);
    for (unit, ps) in [
        (StartUnit::Picoseconds, 7),
        (StartUnit::Nanoseconds, 7_000),
        (StartUnit::Microseconds, 7_000_000),
        (StartUnit::Seconds, 7_000_000_000_000),
    ] {
        let file = parse_cm("t.cm", "Nodes 2\nConnections 1\n0->1 start 7 size 1", unit).unwrap();
        let start = file.workload.flow(FlowId(0)).start;
        assert_eq!(start, Start::At(Time::from_ps(ps)));
    }
}

#[test]
fn flows_without_an_id_are_numbered_as_htsim_does() {
    let file = body("0->1 start 0 size 1\n1->0 id 7 start 0 size 1\n2->0 start 0 size 1").unwrap();
    let labels: Vec<u64> = file.workload.flows.iter().map(|flow| flow.label).collect();
    assert_eq!(labels, [1_000_000_000, 7, 1_000_000_001]);
}

#[test]
fn failures_are_kept_for_the_topology() {
    let file = body(
        "failure switch_type AGG switch_id 3 link_id 1\nfailure link_id 0 switch_id 0 switch_type TOR\n\
         failure switch_type CORE switch_id 1 link_id 2",
    )
    .unwrap();
    let failure = |layer, switch, uplink| LinkFailure {
        layer,
        switch,
        uplink,
    };
    assert_eq!(
        file.failures,
        [
            failure(SwitchLayer::Leaf, 0, 0),
            failure(SwitchLayer::Aggregation, 3, 1),
            failure(SwitchLayer::Core, 1, 2)
        ]
    );
}

#[test]
fn faults_of_the_header() {
    let error = |text| parse(text).unwrap_err().to_string();
    assert_snapshot!(error(""), @"
    t.cm:1: the header has no `Nodes` line
      fix: begin the file with the number of hosts, as in `Nodes 128`
    ");
    assert_snapshot!(error("# nothing\n\n"), @"
    t.cm:1: the header has no `Nodes` line
      fix: begin the file with the number of hosts, as in `Nodes 128`
    ");
    assert_snapshot!(error("Connections 1\n0->1 start 0 size 1"), @"
    t.cm:2: the header has no `Nodes` line
      fix: begin the file with the number of hosts, as in `Nodes 128`
    ");
    assert_snapshot!(error("nodes 4"), @"
    t.cm:1:1: unknown word `nodes`
      fix: did you mean `Nodes`?
    ");
    assert_snapshot!(error("Nodse 4"), @"
    t.cm:1:1: unknown word `Nodse`
      fix: did you mean `Nodes`?
    ");
    assert_snapshot!(error("frobnicate 4"), @"
    t.cm:1:1: unknown word `frobnicate`
      fix: use `Nodes`, `Connections`, `Triggers`, `Failures`, `trigger` or `failure`
    ");
    assert_snapshot!(error("Nodes"), @"
    t.cm:1:1: `Nodes` lacks its value
      fix: write the value after `Nodes`
    ");
    assert_snapshot!(error("Nodes four"), @"
    t.cm:1:7: `four` is not a valid value for `Nodes`
      fix: write a whole number from 1 to 4294967295
    ");
    assert_snapshot!(error("Nodes 0"), @"
    t.cm:1:7: `0` is not a valid value for `Nodes`
      fix: write a whole number from 1 to 4294967295
    ");
    assert_snapshot!(error("Nodes 4294967296"), @"
    t.cm:1:7: `4294967296` is not a valid value for `Nodes`
      fix: write a whole number from 1 to 4294967295
    ");
    assert_snapshot!(error("Nodes 4 hosts"), @"
    t.cm:1:9: `hosts` after the end of the header line
      fix: remove it, or put a `#` before it
    ");
    assert_snapshot!(error("Nodes 4\nNodes 8"), @"
    t.cm:2:1: `Nodes` stands twice, first on line 1
      fix: keep one of them
    ");
    assert_snapshot!(error("Nodes 4\n0->1 start 0 size 1\nConnections 1"), @"
    t.cm:3:1: `Connections` stands below the header
      fix: move the line above the first flow, trigger and failure
    ");
}

#[test]
fn counts_must_match_the_header() {
    let error = |text| parse(text).unwrap_err().to_string();
    assert_snapshot!(error("Nodes 4\n0->1 start 0 size 1\n1->0 start 0 size 1"), @"
    t.cm:2: the file has 2 flows from here on, but no `Connections` line
      fix: add `Connections 2` to the header
    ");
    assert_snapshot!(error("Nodes 4\nConnections 128\n0->1 start 0 size 1"), @"
    t.cm:2: the header says `Connections 128`, but the file has 1 flow
      fix: write `Connections 1`, or restore the missing lines if the file was cut short
    ");
    assert_snapshot!(error("Nodes 4\nConnections 0\n0->1 start 0 size 1"), @"
    t.cm:2: the header says `Connections 0`, but the file has 1 flow
      fix: write `Connections 1`
    ");
    assert_snapshot!(error("Nodes 4\nTriggers 2\ntrigger id 1 oneshot"), @"
    t.cm:2: the header says `Triggers 2`, but the file has 1 trigger
      fix: write `Triggers 1`, or restore the missing lines if the file was cut short
    ");
    assert_snapshot!(error("Nodes 4\ntrigger id 1 oneshot"), @"
    t.cm:2: the file has 1 trigger from here on, but no `Triggers` line
      fix: add `Triggers 1` to the header
    ");
    assert_snapshot!(error("Nodes 4\nfailure switch_type AGG switch_id 0 link_id 0"), @"
    t.cm:2: the file has 1 failure from here on, but no `Failures` line
      fix: add `Failures 1` to the header
    ");
}

#[test]
fn faults_of_hosts() {
    assert_snapshot!(error("0->4 start 0 size 1"), @"
    t.cm:5:4: host 4 does not exist (the file says `Nodes 4`, so hosts are 0 to 3)
      fix: correct the host number, or `Nodes`
    ");
    assert_snapshot!(error("99999999999999999999->1 start 0 size 1"), @"
    t.cm:5:1: host 99999999999999999999 does not exist (the file says `Nodes 4`, so hosts are 0 to 3)
      fix: correct the host number, or `Nodes`
    ");
    assert_snapshot!(error("2->2 start 0 size 1"), @"
    t.cm:5:1: host 2 sends to itself
      fix: choose another destination
    ");
    assert_snapshot!(error("0-> 1 start 0 size 1"), @"
    t.cm:5:4: a host is missing next to the arrow
      fix: write the hosts as two numbers with an arrow and no blanks, as in `0->13`
    ");
    assert_snapshot!(error("0 ->1 start 0 size 1"), @"
    t.cm:5:3: a blank before the arrow
      fix: write source, arrow and destination as one word: `0->13`
    ");
    assert_snapshot!(error("a->1 start 0 size 1"), @"
    t.cm:5:1: `a` is not a host number
      fix: write the hosts as two numbers with an arrow and no blanks, as in `0->13`
    ");
    assert_snapshot!(error("0->1->2 start 0 size 1"), @"
    t.cm:5:4: `1->2` is not a host number
      fix: write the hosts as two numbers with an arrow and no blanks, as in `0->13`
    ");
    assert_snapshot!(error("-1->2 start 0 size 1"), @"
    t.cm:5:1: `-1` is not a host number
      fix: write the hosts as two numbers with an arrow and no blanks, as in `0->13`
    ");
}

#[test]
fn faults_of_flow_attributes() {
    assert_snapshot!(error("0->1 strat 0 size 1"), @"
    t.cm:5:6: unknown word `strat`
      fix: did you mean `start`?
    ");
    assert_snapshot!(error("0->1 start 0 size 1 \u{1b}[31m"), @r"
    t.cm:5:21: unknown word `\u{1b}[31m`
      fix: use `id`, `start`, `trigger`, `size`, `send_done_trigger`, `recv_done_trigger`, `prio`, `msg` or `msgid`
    ");
    assert_snapshot!(error("0->1 start 0 size 1 size 2"), @"
    t.cm:5:21: `size` stands twice on the line
      fix: keep one of them
    ");
    assert_snapshot!(error("0->1 start 0 size"), @"
    t.cm:5:14: `size` lacks its value
      fix: write the value after `size`
    ");
    assert_snapshot!(error("0->1 start 0 size 1 id 0"), @"
    t.cm:5:24: `0` is not a valid value for `id`
      fix: write a whole number from 1 to 18446744073709551615
    ");
    assert_snapshot!(error("0->1 start 0 size 1 id x"), @"
    t.cm:5:24: `x` is not a valid value for `id`
      fix: write a whole number from 1 to 18446744073709551615
    ");
    assert_snapshot!(error("0->1 size 1"), @"
    t.cm:5: 0->1 has neither `start` nor `trigger`
      fix: add `start 0`, or `trigger` and the id of the trigger that starts it
    ");
    assert_snapshot!(error("0->1 start 0 trigger 1 size 1"), @"
    t.cm:5: 0->1 has both `start` and `trigger`
      fix: keep the one that shall start it
    ");
    assert_snapshot!(error("0->1 start 0"), @"
    t.cm:5: 0->1 has no `size`
      fix: add the size in bytes, as in `size 2000000`
    ");
    assert_snapshot!(error("0->1 start 0 size 1 addon"), @"
    t.cm:5:21: `addon` is not supported because htsim itself reads the flag and makes nothing of it
      fix: remove the word
    ");
    assert_snapshot!(error("0->1 id 5 start 0 size 1\n1->2 id 5 start 0 size 1"), @"
    t.cm:6: id 5 is already used by the flow on line 5
      fix: give each flow its own id; those without are numbered from 1000000000
    ");
}

#[test]
fn faults_of_sizes_and_starts() {
    assert_snapshot!(error("0->1 start 0 size 2MB"), @"
    t.cm:5:19: `2MB` is not a plain number of bytes
      fix: write `size 2000000`
    ");
    assert_snapshot!(error("0->1 start 0 size -5"), @"
    t.cm:5:19: `-5` is not a size
      fix: write the size in bytes, as in `size 2000000`
    ");
    assert_snapshot!(error("0->1 start 0 size 18446744073709551616"), @"
    t.cm:5:19: `size 18446744073709551616` does not fit in 64 bits
      fix: write at most 18446744073709551615
    ");
    assert_snapshot!(error("0->1 start 0 size 18446744073709551615\n1->2 start 0 size 1"), @"
    t.cm:6: the sizes up to flow 1000000001 (1->2) add up to more than 2^64 bytes
      fix: give it a smaller size
    ");
    assert_snapshot!(error("0->1 start soon size 1"), @"
    t.cm:5:12: `soon` is not a time
      fix: write a number in us, as in `start 5` or `start 0.25`
    ");
    assert_snapshot!(error("0->1 start -1 size 1"), @"
    t.cm:5:12: `-1` is not a time
      fix: write a number in us, as in `start 5` or `start 0.25`
    ");
    assert_snapshot!(error("0->1 start 1e30 size 1"), @"
    t.cm:5:12: `start 1e30`, read in us, is beyond the longest run of 213 days
      fix: write an earlier start, or read the file with a smaller start unit
    ");
    assert_snapshot!(error("0->1 start 0.0000001 size 1"), @"
    t.cm:5:12: `start 0.0000001`, read in us, is finer than a picosecond
      fix: round it to 6 decimals
    ");
    let ps = parse_cm(
        "t.cm",
        "Nodes 2\nConnections 1\n0->1 start 0.5 size 1",
        StartUnit::Picoseconds,
    );
    assert_snapshot!(ps.unwrap_err(), @"
    t.cm:3:12: `start 0.5`, read in ps, is finer than a picosecond
      fix: write a whole number
    ");
}

#[test]
fn faults_of_triggers() {
    assert_snapshot!(error("trigger id 1"), @"
    t.cm:5:1: the trigger has no kind
      fix: add `oneshot`, `multishot` or `barrier`
    ");
    assert_snapshot!(error("trigger oneshot"), @"
    t.cm:5:1: the trigger has no `id`
      fix: add it, as in `trigger id 1 oneshot`
    ");
    assert_snapshot!(error("trigger id 0 oneshot"), @"
    t.cm:5:12: `0` is not a valid value for `id`
      fix: write a whole number from 1 to 18446744073709551615
    ");
    assert_snapshot!(error("trigger id 1 one-shot"), @"
    t.cm:5:14: unknown word `one-shot`
      fix: did you mean `oneshot`?
    ");
    assert_snapshot!(error("trigger id 1 oneshot barrier count 1"), @"
    t.cm:5:22: the trigger is a oneshot already
      fix: keep one kind
    ");
    assert_snapshot!(error("trigger id 1 barrier"), @"
    t.cm:5:1: the trigger has no `count`
      fix: add how many activations it waits for, as in `barrier count 2`
    ");
    assert_snapshot!(error("trigger id 1 barrier count 0"), @"
    t.cm:5:28: `0` is not a valid value for `count`
      fix: write a whole number from 1 to 4294967295
    ");
    assert_snapshot!(error("trigger id 1 oneshot\ntrigger id 1 oneshot"), @"
    t.cm:6: trigger 1 is declared twice, first on line 5
      fix: give one of them another id
    ");
    assert_snapshot!(error("0->1 trigger 9 size 1\ntrigger id 1 oneshot"), @"
    t.cm:5:14: trigger 9 is not declared
      fix: add a line such as `trigger id 9 oneshot`, and count it in `Triggers`
    ");
    assert_snapshot!(error("0->1 start 0 size 1 recv_done_trigger 9\ntrigger id 1 oneshot"), @"
    t.cm:5:39: trigger 9 is not declared
      fix: add a line such as `trigger id 9 oneshot`, and count it in `Triggers`
    ");
}

#[test]
fn faults_of_the_whole_name_a_line() {
    assert_snapshot!(error("0->1 start 0 size 1\n1->2 trigger 1 size 1\ntrigger id 1 oneshot"), @"
    t.cm:6: flow 1000000001 (1->2) waits for trigger 1, which no flow activates
      fix: let a flow activate trigger 1 when it is sent or received, or start the flow by the clock
    ");
    assert_snapshot!(error(
        "0->1 id 1 start 0 size 1 send_done_trigger 1 recv_done_trigger 1\n1->2 trigger 1 size 1\ntrigger id 1 oneshot"
    ), @"
    t.cm:7: trigger 1 is a oneshot but has 2 activations, the first two by both ends of flow 1 (0->1)
      fix: make it a barrier of count 2 to wait for all of them, or a multishot to start one flow for each
    ");
    assert_snapshot!(error(
        "0->1 start 0 size 1 send_done_trigger 1\n1->2 trigger 1 size 1\n2->0 trigger 1 size 1\ntrigger id 1 multishot"
    ), @"
    t.cm:8: trigger 1 is a multishot with 1 activation for 2 waiting flows
      fix: let more flows activate it: each activation starts one flow, the rest never start
    ");
    assert_snapshot!(error("0->1 start 0 size 1 send_done_trigger 1\ntrigger id 1 barrier count 3"), @"
    t.cm:6: trigger 1 is a barrier of count 3, but has 1 activation
      fix: set the count to 1, or change the flows that activate it
    ");
    assert_snapshot!(error(
        "0->1 id 1 trigger 1 size 1 send_done_trigger 2\n1->2 id 2 trigger 2 size 1 recv_done_trigger 1\n\
         trigger id 1 oneshot\ntrigger id 2 oneshot"
    ), @"
    t.cm:5: flows that start one another in a circle never start: flow 1 (0->1), flow 2 (1->2), each waiting for the next and the last for the first
      fix: start one of them by the clock
    ");
}

#[test]
fn faults_of_failures() {
    assert_snapshot!(error("failure switch_type AGG switch_id 0"), @"
    t.cm:5:1: a failure needs `switch_type`, `switch_id` and `link_id`
      fix: write it as `failure switch_type AGG switch_id 0 link_id 0`
    ");
    assert_snapshot!(error("failure switch_type agg switch_id 0 link_id 0"), @"
    t.cm:5:21: unknown word `agg`
      fix: did you mean `AGG`?
    ");
    assert_snapshot!(error("failure switch_type AGG switch 0 link_id 0"), @"
    t.cm:5:25: unknown word `switch`
      fix: use `switch_type`, `switch_id` or `link_id`
    ");
    assert_snapshot!(error("failure switch_type AGG switch_id x link_id 0"), @"
    t.cm:5:35: `x` is not a valid value for `switch_id`
      fix: write a whole number from 0 to 4294967295
    ");
}

#[test]
fn warnings_for_what_is_probably_not_meant() {
    assert_snapshot!(warnings("0->1 start 0 size 1 prio 5\n1->2 start 0 size 1 prio 5"), @"t.cm:5: `prio` is ignored (2 flows): flows of these files have no priorities here");
    assert_snapshot!(warnings("0->1 start 10000000 size 1"), @r#"t.cm:5: this start is read as 10s; if the file holds picoseconds, as scripts write them, choose start-unit "ps""#);
    assert_snapshot!(warnings("0->1 start 0 size 1 send_done_trigger 1\ntrigger id 1 oneshot count 1"), @"
    t.cm:6: no flow waits for trigger 1
    t.cm:6: `count` is ignored: trigger 1 is not a barrier
    ");
    let extra = "0->1 start 0 size 1 send_done_trigger 1 recv_done_trigger 1\n1->2 trigger 1 size 1\ntrigger id 1 multishot";
    assert_snapshot!(warnings(extra), @"t.cm:7: trigger 1 is a multishot with 2 activations for 1 waiting flow: the last 1 start nothing, as in htsim");
    let twice = "failure switch_type AGG switch_id 0 link_id 0\nfailure switch_type AGG switch_id 0 link_id 0";
    assert_snapshot!(warnings(twice), @"t.cm:6: this link has failed already");
}

#[test]
fn each_word_of_a_flow_is_used_or_warned_about() {
    let others = "1->2 trigger 7 size 1\n2->3 start 0 size 1 send_done_trigger 7\ntrigger id 7 barrier count 1\n";
    let file = |first: &str| body(&format!("{first}\n{others}"));
    let base = file("0->1 id 1 start 0 size 1");
    assert!(base.is_ok());
    for word in FLOW_WORDS {
        let changed = match word {
            "id" => "0->1 id 2 start 0 size 1".into(),
            "start" => "0->1 id 1 start 5 size 1".into(),
            "size" => "0->1 id 1 start 0 size 2".into(),
            "trigger" => "0->1 id 1 trigger 7 size 1".into(),
            word => format!("0->1 id 1 start 0 size 1 {word} 7"),
        };
        assert_ne!(file(&changed), base, "{word}");
    }
}

/// A workload that passes its check: flows in layers, where flows activate only triggers that start later flows.
fn random_workload(seed: u64, flows: u32, hosts: u32) -> Workload {
    let mut random = RandomStream::new(seed, Purpose::Test, 0);
    let mut workload = Workload::default();
    // Flows without triggers to activate so far.
    let mut free: Vec<usize> = Vec::new();
    while workload.flows.len() < flows as usize {
        let takes = (random.below(3) + 1) as usize;
        let trigger = TriggerIndex(workload.triggers.len() as u32);
        let mut wait = 1;
        let start = if free.len() < takes || random.chance(0.5) {
            Start::At(Time::from_ps(random.next_u64() >> random.below(64).max(1)))
        } else {
            for index in free.drain(..takes) {
                let flow = &mut workload.flows[index];
                if random.chance(0.5) {
                    flow.on_sent = Some(trigger);
                } else {
                    flow.on_received = Some(trigger);
                }
            }
            let kind = match (takes, random.below(3)) {
                (1, 0) => TriggerKind::Oneshot,
                (_, 1) => TriggerKind::Multishot,
                _ => TriggerKind::Barrier {
                    count: takes as u32,
                },
            };
            wait = if kind == TriggerKind::Multishot {
                takes
            } else {
                1
            };
            let label = u64::from(trigger.0) + 1;
            workload
                .triggers
                .push(clearway_workload::TriggerSpec { label, kind });
            Start::On(trigger)
        };
        for _ in 0..wait {
            let src = random.below(hosts);
            let dst = (src + 1 + random.below(hosts - 1)) % hosts;
            free.push(workload.flows.len());
            workload.flows.push(FlowSpec {
                start,
                ..FlowSpec::timed(
                    (u64::from(random.next_u32()) << 20) + workload.flows.len() as u64 + 1,
                    HostId(src),
                    HostId(dst),
                    Bytes::new((random.next_u64() >> (12 + random.below(50))) + 1),
                    Time::ZERO,
                )
            });
        }
    }
    workload
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(seed in any::<u64>(), flows in 0u32..40, hosts in 2u32..2000) {
        let workload = random_workload(seed, flows, hosts);
        prop_assert_eq!(workload.check(hosts), Ok(()));
        let text = write_cm(&workload, hosts);
        let file = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(file.nodes, hosts);
        prop_assert_eq!(file.workload, workload);
    }

    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Err(error) = parse(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(error.line >= 1 && !error.fix.is_empty());
        }
    }
}

#[test]
fn labels_that_cannot_be_ids_are_replaced() {
    let section = random_workload(1, 5, 8);
    let merged = Workload::merge([section.clone(), section]).unwrap();
    let read = parse(&write_cm(&merged, 8)).unwrap().workload;
    let labels: Vec<u64> = read.flows.iter().map(|flow| flow.label).collect();
    let expected: Vec<u64> = (1..=merged.flows.len() as u64).collect();
    assert_eq!(labels, expected);
    let ends = |workload: &Workload| -> Vec<_> {
        let flows = workload.flows.iter();
        flows
            .map(|flow| (flow.src, flow.dst, flow.start, flow.bytes))
            .collect()
    };
    assert_eq!(ends(&read), ends(&merged));
}

#[test]
fn lines_with_msg_are_messages_of_one_connection() {
    let file = body(
        "0->1 id 1 msg 2 start 5 size 4000\n0->1 id 1 start 0 size 100\n2->3 id 2 start 0 size 7\n0->1 id 1 msgid 3 start 5 size 9",
    )
    .unwrap();
    assert_eq!(file.workload.flows.len(), 1);
    let [connection] = &file.connections[..] else {
        panic!("{:?}", file.connections);
    };
    assert_eq!(
        (connection.id, connection.src.0, connection.dst.0),
        (1, 0, 1)
    );
    let at = Time::from_us;
    let sizes = [(at(0), 100), (at(5), 4000), (at(5), 9)];
    assert_eq!(
        connection.messages,
        sizes.map(|(at, size)| (at, Bytes::new(size)))
    );
    assert_snapshot!(error("0->1 id 1 msg start 0 size 1\n1->0 id 1 msg start 0 size 1"), @"
    t.cm:6: connection 1 goes from host 0 to host 1
      fix: give the messages of one connection the same ends
    ");
    assert_snapshot!(error("0->1 msg 1 start 0 size 1"), @"
    t.cm:5: a message without the `id` of its connection
      fix: write `id` and the number of the connection
    ");
    assert_snapshot!(error("0->1 id 1 msg start 0 size 1 send_done_trigger 1"), @"
    t.cm:5: a message of connection 1 with a trigger
      fix: write it as a flow of its own, with its own `id`
    ");
}

#[test]
fn flows_of_size_0_have_no_end() {
    assert_snapshot!(warnings("0->1 start 0 size 0\n1->2 start 0 size 0"), @"t.cm:5: `size 0` (2 flows): without end, as in the older programs of htsim (`htsim_uec` sends nothing); such a flow is not done when the run stops (`stop.at-most`)");
}
