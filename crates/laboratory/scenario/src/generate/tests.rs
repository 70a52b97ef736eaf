use super::sample::{context, settings, text};
use super::*;
use clearway_units::{FlowId, HostId, Span, Time};
use clearway_workload::{Start, TriggerKind};
use insta::assert_snapshot;
use std::collections::BTreeSet;

fn build(kind: &str, values: &[(&str, Value)], hosts: u32) -> Workload {
    settings(kind, values).build(&context(hosts)).unwrap()
}

fn error(kind: &str, values: &[(&str, Value)], hosts: u32) -> String {
    settings(kind, values)
        .build(&context(hosts))
        .unwrap_err()
        .to_string()
}

fn flows(items: &[&str]) -> Value {
    Value::List(items.iter().map(|item| text(item)).collect())
}

fn hosts_of(workload: &Workload, end: impl Fn(&clearway_workload::FlowSpec) -> HostId) -> Vec<u32> {
    workload.flows.iter().map(|flow| end(flow).0).collect()
}

#[test]
fn every_generator_is_registered_and_described() {
    let names: BTreeSet<&str> = WorkloadSettings::KINDS
        .iter()
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(names.len(), WorkloadSettings::KINDS.len());
    for (name, summary) in WorkloadSettings::KINDS {
        let mut settings = WorkloadSettings::named(name).unwrap();
        assert_eq!(settings.kind(), *name);
        assert!(!summary.is_empty());
        let described: Vec<_> = settings.describe();
        let entries = settings.entries();
        let has_entry = |key: &str| entries.iter().any(|(known, _)| *known == key);
        let (given, rare): (Vec<_>, Vec<_>) =
            described.iter().partition(|info| has_entry(info.key));
        assert_eq!(given.len(), entries.len());
        for info in rare {
            let others = [
                "count",
                "period",
                "period-jitter",
                "redraw",
                "posted",
                "priorities",
                "pxn",
                "peak-tflops",
                "memory-bandwidth",
                "profiler-steps",
                "system",
                "dimensions",
                "algorithms",
                "direct-window",
                "splits",
                "active-splits",
                "endpoint-delay",
                "reduction-rate",
            ];
            assert!(others.contains(&info.key), "{name}: {}", info.key);
            settings.set(info.key, &info.default).unwrap();
        }
        for (info, (key, value)) in given.iter().zip(&entries) {
            assert_eq!((info.key, &info.default), (*key, value));
            assert!(!info.meaning.is_empty() && !info.source.is_empty());
            settings.set(key, value).unwrap();
        }
        assert_eq!(
            settings.set("colour", &text("red")),
            Err(SetError::UnknownKey)
        );
    }
    assert_eq!(WorkloadSettings::named("colour"), None);
}

#[test]
fn a_permutation_has_every_host_once_at_each_end() {
    let workload = build(
        "permutation",
        &[("message", text("1MB")), ("start", text("3us"))],
        100,
    );
    let all: Vec<u32> = (0..100).collect();
    let mut receivers = hosts_of(&workload, |flow| flow.dst);
    receivers.sort_unstable();
    assert_eq!(hosts_of(&workload, |flow| flow.src), all);
    assert_eq!(receivers, all);
    for (id, flow) in workload.numbered() {
        assert_eq!(flow.label, u64::from(id.0) + 1);
        assert_eq!(flow.bytes, Bytes::new(1_000_000));
        assert_eq!(flow.start, Start::At(Time::from_us(3)));
    }
    assert_eq!(
        build("permutation", &[("hosts", Value::Integer(10))], 100)
            .flows
            .len(),
        10
    );
}

#[test]
fn draws_depend_on_seed_and_section_alone() {
    let permutation = settings("permutation", &[]);
    let built = |seed, section| {
        let context = BuildContext {
            seed,
            section,
            taken: BuildContext::ALL_FREE,
            ..context(50)
        };
        permutation.build(&context).unwrap()
    };
    assert_eq!(built(1, 0), built(1, 0));
    assert_ne!(built(1, 0), built(2, 0));
    assert_ne!(built(1, 0), built(1, 1));
}

#[test]
fn an_incast_has_distinct_senders() {
    for placement in ["random", "first"] {
        let values = [
            ("senders", Value::Integer(20)),
            ("receiver", Value::Integer(5)),
            ("placement", text(placement)),
        ];
        let workload = build("incast", &values, 64);
        let senders = hosts_of(&workload, |flow| flow.src);
        let distinct: BTreeSet<u32> = senders.iter().copied().collect();
        assert_eq!(distinct.len(), 20);
        assert!(!distinct.contains(&5) && hosts_of(&workload, |flow| flow.dst) == [5; 20]);
        let lowest: Vec<u32> = (0..21).filter(|&host| host != 5).collect();
        assert_eq!(senders == lowest, placement == "first");
    }
    let everybody = build("incast", &[("senders", Value::Integer(63))], 64);
    let senders: BTreeSet<u32> = hosts_of(&everybody, |flow| flow.src).into_iter().collect();
    assert_eq!(senders, (1..64).collect());
}

#[test]
fn an_incast_spreads_its_starts_and_keeps_its_senders() {
    let workload = |spread: &str| {
        let values = [
            ("senders", Value::Integer(500)),
            ("start", text("10us")),
            ("spread", text(spread)),
        ];
        build("incast", &values, 1000)
    };
    let starts = |workload: &Workload| -> Vec<Span> {
        let at = |flow: &clearway_workload::FlowSpec| match flow.start {
            Start::At(time) => time - Time::from_us(10),
            Start::On(_) | Start::Posted(_) => unreachable!("an incast has no triggers"),
        };
        workload.flows.iter().map(at).collect()
    };
    let (together, apart) = (workload("0s"), workload("16us"));
    assert!(starts(&together).iter().all(|start| start.is_zero()));
    let starts = starts(&apart);
    assert!(starts.iter().all(|&start| start <= Span::from_us(16)));
    let mean = starts.iter().copied().sum::<Span>() / 500;
    // The standard error of the mean is 16us / sqrt(12 * 500) = 0.21us.
    assert!(mean > Span::from_us(7) && mean < Span::from_us(9), "{mean}");
    let senders = |workload| hosts_of(workload, |flow| flow.src);
    assert_eq!(senders(&together), senders(&apart));
}

#[test]
fn an_incast_starts_in_groups() {
    let starts = |senders: i64, values: &[(&str, Value)]| -> Vec<(u32, u64)> {
        let mut all = vec![
            ("senders", Value::Integer(senders)),
            ("placement", text("first")),
            ("message", text("1MB")),
            ("stagger", text("20us")),
        ];
        all.extend_from_slice(values);
        let workload = build("incast", &all, senders as u32 + 1);
        let start = |flow: &clearway_workload::FlowSpec| match flow.start {
            Start::At(time) => (flow.src.0, time.as_ps() / 1_000_000),
            Start::On(_) | Start::Posted(_) => unreachable!("an incast has no triggers"),
        };
        workload.flows.iter().map(start).collect()
    };
    let two = ("group", Value::Integer(2));
    let expected: Vec<(u32, u64)> = (0..16).map(|k| (k + 1, u64::from(k / 2) * 20)).collect();
    assert_eq!(starts(16, std::slice::from_ref(&two)), expected);
    assert_eq!(starts(96, std::slice::from_ref(&two))[95], (96, 940));
    assert_eq!(starts(7, &[("group", Value::Integer(5))])[5], (6, 20));
    assert_eq!(starts(3, &[("group", Value::Integer(1000))])[2], (3, 0));
    let later = starts(
        4,
        &[two, ("start", text("7us")), ("receiver", Value::Integer(1))],
    );
    assert_eq!(later, [(0, 7), (2, 7), (3, 27), (4, 27)]);
}

#[test]
fn one_to_one_messages_follow_each_other_at_the_sender() {
    let workload = build("one-to-one", &[("count", Value::Integer(3))], 16);
    assert_eq!(hosts_of(&workload, |flow| flow.src), [0; 3]);
    assert_eq!(hosts_of(&workload, |flow| flow.dst), [15; 3]);
    assert_eq!(workload.trigger_homes(), [Some(HostId(0)); 2]);
    let mut triggers = clearway_workload::Triggers::new(&workload);
    let second = workload.flow(FlowId(0)).on_sent.unwrap();
    assert!(triggers.activate(second).eq([FlowId(1)]));
    assert_eq!(workload.flow(FlowId(2)).on_sent, None);
    assert_eq!(build("one-to-one", &[], 2).triggers, []);
}

#[test]
fn flows_are_written_out() {
    let items = [
        "0->13 2MB at 5us",
        " 1 -> 12  64KiB ",
        "2->3 100B at 0.5 ms",
    ];
    let workload = build("flows", &[("flows", flows(&items))], 16);
    let flow = |label, src, dst, bytes, us: u64| {
        let start = Time::from_us(us);
        clearway_workload::FlowSpec::timed(
            label,
            HostId(src),
            HostId(dst),
            Bytes::new(bytes),
            start,
        )
    };
    assert_eq!(
        workload.flows,
        [
            flow(1, 0, 13, 2_000_000, 5),
            flow(2, 1, 12, 65_536, 0),
            flow(3, 2, 3, 100, 500)
        ]
    );
}

#[test]
fn faults_of_settings() {
    let number = Value::Integer;
    assert_snapshot!(error("permutation", &[("hosts", number(9))], 8), @r#"
    `hosts` of the permutation workload: 9 hosts, but the topology has 8
      fix: write a number up to 8, or "auto"
    "#);
    assert_snapshot!(error("permutation", &[("hosts", number(1))], 8), @"
    `hosts` of the permutation workload: a permutation without fixed points needs at least 2 hosts
      fix: take 2 hosts or more
    ");
    assert_snapshot!(error("permutation", &[("message", number(0))], 8), @r#"
    `message` of the permutation workload: a message carries no bytes
      fix: write a size of at least one byte, as in "2MB"
    "#);
    assert_snapshot!(error("incast", &[], 8), @"
    `senders` of the incast workload: 32 senders, but 7 hosts are there to send
      fix: write a number from 1 to 7
    ");
    assert_snapshot!(error("incast", &[("senders", number(0))], 8), @"
    `senders` of the incast workload: 0 senders, but 7 hosts are there to send
      fix: write a number from 1 to 7
    ");
    assert_snapshot!(error("incast", &[], 1), @"
    `senders` of the incast workload: 32 senders, but 0 hosts are there to send
      fix: give the topology more hosts
    ");
    assert_snapshot!(error("incast", &[("receiver", number(8))], 8), @"
    `receiver` of the incast workload: host 8, but the topology has 8 hosts
      fix: write a host from 0 to 7
    ");
    assert_snapshot!(error("incast", &[("senders", number(4)), ("start", text("200000s")), ("spread", text("18446744s"))], 8), @"
    `spread` of the incast workload: 18446744s after 200000s is beyond the longest run
      fix: choose a shorter spread
    ");
    assert_snapshot!(error("incast", &[("senders", number(4)), ("group", number(0))], 8), @r#"
    `group` of the incast workload: a group of no senders
      fix: write how many senders start together, or "auto" for all
    "#);
    assert_snapshot!(error("incast", &[("senders", number(4)), ("stagger", text("1us"))], 8), @"
    `group` of the incast workload: all senders are one group, so none is 1us later
      fix: write how many senders start together, as in 2
    ");
    assert_snapshot!(error("incast", &[("senders", number(4)), ("group", number(1)), ("stagger", text("9223372s"))], 8), @"
    `stagger` of the incast workload: 4 groups, each 9223372s after the one before, go beyond the longest run
      fix: choose a shorter stagger
    ");
    assert_snapshot!(error("one-to-one", &[("from", number(8))], 8), @"
    `from` of the one-to-one workload: host 8, but the topology has 8 hosts
      fix: write a host from 0 to 7
    ");
    assert_snapshot!(error("one-to-one", &[("to", number(0))], 8), @"
    `to` of the one-to-one workload: host 0 is the sender too
      fix: choose another receiver
    ");
    assert_snapshot!(error("one-to-one", &[("count", number(0))], 8), @"
    `count` of the one-to-one workload: 0 messages
      fix: write a number from 1 to 1000000
    ");
    assert_snapshot!(error("one-to-one", &[], 0), @"
    `from` of the one-to-one workload: host 0, but the topology has 0 hosts
      fix: give the topology hosts
    ");
    assert_snapshot!(error("one-to-one", &[], 1), @"
    `to` of the one-to-one workload: host 0 is the sender too
      fix: choose another receiver
    ");
    assert_snapshot!(error("file", &[], 8), @r#"
    `file` of the file workload: no file is named
      fix: name it, as in `file = "permutation.cm"`
    "#);
    assert_snapshot!(error("flows", &[], 8), @r#"
    `flows` of the flows workload: the list is empty
      fix: write them as in `flows = ["0->13 2MB at 5us"]`
    "#);
}

#[test]
fn faults_of_listed_flows_name_the_item() {
    let error = |item| error("flows", &[("flows", flows(&["0->1 1B", item]))], 8);
    assert_snapshot!(error("0 to 13"), @r#"
    `flows` of the flows workload: item 2, "0 to 13": there is no arrow `->`
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("x->1 2MB"), @r#"
    `flows` of the flows workload: item 2, "x->1 2MB": `x` is not a host number
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("+1->2 2MB"), @r#"
    `flows` of the flows workload: item 2, "+1->2 2MB": `+1` is not a host number
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("0-> 2MB"), @r#"
    `flows` of the flows workload: item 2, "0-> 2MB": there is no size
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("0->1"), @r#"
    `flows` of the flows workload: item 2, "0->1": there is no size
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("0->1 2Mb"), @r#"
    `flows` of the flows workload: item 2, "0->1 2Mb": `2Mb` is not a size: expected a size such as `2MB`, `64KiB` or `4096B`
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("0->1 2MB at soon"), @r#"
    `flows` of the flows workload: item 2, "0->1 2MB at soon": `soon` is not a start: expected a duration such as `1us`, `250ns` or `2.5ms`
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("0->1 2MB at"), @r#"
    `flows` of the flows workload: item 2, "0->1 2MB at": `2MB at` is not a size: expected a size such as `2MB`, `64KiB` or `4096B`
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("0->9 2MB"), @"
    flow 2 (0->9) names host 9, but there are 8 hosts, 0 to 7
      fix: name a host from 0 to 7, or give the topology more
    ");
    assert_snapshot!(error("0->1 0B"), @"
    flow 2 (0->1) carries no bytes
      fix: give it a size of at least one byte
    ");
}

#[test]
fn listed_flows_wait_for_each_other() {
    let items = [
        "0->1 2MB tag 10",
        "1->2 1MB tag 20 after 1",
        "1->3 1MB tag 30 after 1",
        "0->2 1MB tag 40 after 1",
        "3->0 1MB tag 50 after 2,3",
    ];
    let workload = build("flows", &[("flows", flows(&items))], 4);
    let labels: Vec<u64> = workload.flows.iter().map(|flow| flow.label).collect();
    assert_eq!(labels, [10, 20, 30, 40, 50]);
    let first = &workload.flows[0];
    // A flow from the receiver waits for the arrival, a flow from the sender for the acknowledgement.
    assert_eq!(
        workload.flows[1].start,
        Start::On(first.on_received.unwrap())
    );
    assert_eq!(workload.flows[2].start, workload.flows[1].start);
    assert_eq!(workload.flows[3].start, Start::On(first.on_sent.unwrap()));
    let Start::On(barrier) = workload.flows[4].start else {
        panic!("it waits");
    };
    assert_eq!(workload.flows[1].on_received, Some(barrier));
    assert_eq!(workload.flows[2].on_received, Some(barrier));
    let kinds: Vec<_> = workload
        .triggers
        .iter()
        .map(|trigger| trigger.kind)
        .collect();
    let oneshot = TriggerKind::Oneshot;
    assert_eq!(kinds, [oneshot, oneshot, TriggerKind::Barrier { count: 2 }]);
}

#[test]
fn listed_flows_have_priorities() {
    let items = [
        "0->1 2MB tag 10 priority 3 at 4us",
        "1->2 1MB priority 7 after 1",
        "1->0 1B",
    ];
    let workload = build("flows", &[("flows", flows(&items))], 4);
    let priorities: Vec<_> = workload.flows.iter().map(|flow| flow.priority).collect();
    assert_eq!(priorities, [Some(3), Some(7), None]);
    assert_eq!(workload.flows[0].label, 10);
    let error = |item: &str| error("flows", &[("flows", flows(&[item]))], 8);
    assert_snapshot!(error("0->1 2MB priority 8"), @r#"
    `flows` of the flows workload: item 1, "0->1 2MB priority 8": `8` is not a priority from 1 to 7
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error("0->1 2MB priority high at 1us"), @r#"
    `flows` of the flows workload: item 1, "0->1 2MB priority high at 1us": `high` is not a priority from 1 to 7
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
}

#[test]
fn faults_of_waiting_flows_name_the_item() {
    let error = |items: &[&str]| error("flows", &[("flows", flows(items))], 8);
    assert_snapshot!(error(&["0->1 1B", "1->0 1B after 3"]), @r#"
    `flows` of the flows workload: item 2, "1->0 1B after 3": there is no item 3 to wait for
      fix: name one from 1 to 2
    "#);
    assert_snapshot!(error(&["0->1 1B", "1->0 1B at 1us after 1"]), @r#"
    `flows` of the flows workload: item 2, "1->0 1B at 1us after 1": both `at` and `after`
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
    assert_snapshot!(error(&["0->1 1B tag 7", "1->0 1B tag 7"]), @r#"
    `flows` of the flows workload: item 2, "1->0 1B tag 7": item 1 has the tag 7 already
      fix: give each flow its own tag, or leave out all tags
    "#);
    assert_snapshot!(error(&["0->1 1B", "2->1 1B", "1->0 1B after 1", "1->2 1B after 1,2"]), @r#"
    `flows` of the flows workload: item 4, "1->2 1B after 1,2": another flow that waits for the arrival of item 1 does not wait for the same items
      fix: let all that wait for it wait for the same items, or split item 1 in two
    "#);
    assert_snapshot!(error(&["0->1 1B after 2", "1->0 1B after 1"]), @"
    flows that start one another in a circle never start: flow 1 (0->1), flow 2 (1->0), each waiting for the next and the last for the first
      fix: start one of them by the clock
    ");
}
