//! Critical paths of iterations, against cases whose answer can be worked out by hand.

use clearway_lab::record::merge_all;
use clearway_lab::why::{
    CriticalPath, FollowPlan, FollowRecorder, MessageDelays, Part, PathStep, StepKind,
};
use clearway_lab::{Assembly, Laboratory, RunDecision, RunOptions, Watch};
use clearway_testing::Folder;
use clearway_units::{FlowId, HostId, Span, Time};
use std::sync::Arc;

/// Every iteration of every job of a run, with its messages in parts.
struct Paths(Vec<(CriticalPath, Vec<MessageDelays>)>);

fn options() -> RunOptions<'static> {
    RunOptions {
        threads: 1.into(),
        on_progress: Box::leak(Box::new(|_| RunDecision::Continue)),
        on_flow: Box::leak(Box::new(|_, _, _| ())),
    }
}

impl Paths {
    /// Runs a scenario, and checks what holds of every path.
    fn new(text: &str, overrides: &[&str]) -> Self {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let scenario = Laboratory::new().read("s.toml", text, None, &overrides);
        let assembly = Assembly::new(&scenario.unwrap()).unwrap();
        let plan = FollowPlan::new(&assembly, &[]);
        let mut recorders = assembly.per_domain(|| FollowRecorder::new(&plan));
        let first = assembly.run(options(), Watch::by(&mut recorders));
        let longest_age = merge_all(recorders).unwrap().longest_age();
        let mut paths = Vec::new();
        for (job, result) in first.jobs.iter().enumerate() {
            for iteration in 0..result.iterations {
                let path = assembly.critical_path(&first, job, iteration).unwrap();
                let delays_by = |plan: Arc<FollowPlan>| {
                    let mut recorders = assembly.per_domain(|| FollowRecorder::new(&plan));
                    let again = assembly.run(options(), Watch::by(&mut recorders));
                    assert_eq!(again.digest, first.digest, "watching changes nothing");
                    let recorder = merge_all(recorders).unwrap();
                    assembly.message_delays(&path, recorder).unwrap()
                };
                let delays = delays_by(FollowPlan::for_messages(
                    &assembly,
                    path.messages(),
                    longest_age,
                ));
                // Packets that the plan leaves out change nothing.
                assert_eq!(delays, delays_by(FollowPlan::new(&assembly, &flows(&path))));
                let times = &result.times[iteration as usize];
                assert_eq!((path.from, Some(path.to)), (times.begun, times.over));
                check(&path, &delays);
                check_ranks(
                    &path,
                    &first.jobs[job].hosts,
                    &assembly.rank_steps(&first, job, iteration),
                );
                paths.push((path, delays));
            }
        }
        Self(paths)
    }

    fn steps(&self, place: usize) -> &[PathStep] {
        &self.0[place].0.steps
    }
}

/// The connection of each message.
fn flows(path: &CriticalPath) -> Vec<FlowId> {
    path.messages().map(|(flow, _)| flow).collect()
}

/// Steps follow one another from the beginning to the end, and the parts of each message add up.
fn check(path: &CriticalPath, delays: &[MessageDelays]) {
    let mut now = path.from;
    for step in &path.steps {
        assert_eq!(step.from, now, "{path:?}");
        now = step.to;
    }
    assert_eq!(now, path.to);
    let mut messages = 0;
    for (place, step) in path.steps.iter().enumerate() {
        let StepKind::Message { ideal, .. } = step.kind else {
            continue;
        };
        let own = &delays[messages];
        messages += 1;
        assert_eq!(own.step, place);
        let sum = own.parts.iter().map(|delay| delay.span.as_ps()).sum();
        assert_eq!(Span::from_ps(sum), step.span(), "{step:?} {own:?}");
        let unexplained = own
            .parts
            .iter()
            .find(|delay| delay.part == Part::Unexplained);
        assert_eq!(unexplained, None, "{step:?} {own:?}");
        // One that began before the iteration is cut.
        assert!(place == 0 || step.span() >= ideal, "{step:?}");
    }
    assert_eq!(messages, delays.len());
}

/// The steps of all ranks contain those of the path.
fn check_ranks(path: &CriticalPath, hosts: &[HostId], all: &[PathStep]) {
    assert!(all.is_sorted_by_key(|step| step.from));
    for step in all {
        assert!(path.from <= step.from && step.from < step.to && step.to <= path.to);
        assert!(hosts.contains(&step.host));
    }
    let message = |kind| match kind {
        StepKind::Message {
            flow,
            bytes,
            acknowledged,
            ..
        } => Some((flow, bytes, acknowledged)),
        _ => None,
    };
    for step in path.steps.iter().filter(|step| step.from < step.to) {
        let is_same = |other: &&PathStep| match (message(step.kind), message(other.kind)) {
            (Some((flow, bytes, true)), Some(arrived)) => {
                // The message arrives before its acknowledgement.
                arrived == (flow, bytes, false) && other.to <= step.to
            }
            (Some(sent), Some(arrived)) => sent == arrived && other.to == step.to,
            _ => (step.kind, step.to) == (other.kind, other.to),
        };
        let mut here = all
            .iter()
            .filter(|other| (other.host, other.from) == (step.host, step.from));
        // A message of the iteration before has arrived, and the acknowledgement is missing.
        let is_before = step.from == path.from
            && message(step.kind).is_some_and(|(.., acknowledged)| acknowledged);
        assert!(is_before || here.any(|other| is_same(&other)), "{step:?}");
    }
}

/// 4086 B and 64 B of headers take 83 ns at 400 Gb/s.
const LEAVES: &str = r#"
[topology]
kind = "leaf-spine"
hosts = 8
hosts-per-leaf = 8
spines = 1

[transport]
controller = "constant"
window = "100bdp"
spray = "single"
payload = "4086B"

[switch]
queue = "1000bdp"
"#;

fn goal(name: &str, ranks: &[&str], more: &[&str]) -> Paths {
    goal_on(LEAVES, name, ranks, more)
}

fn goal_on(text: &str, name: &str, ranks: &[&str], more: &[&str]) -> Paths {
    let folder = Folder::new(&format!("path-{name}"));
    let file = folder.join("job.goal");
    let mut schedule = format!("num_ranks {}\n", ranks.len());
    for (rank, operations) in ranks.iter().enumerate() {
        schedule += &format!("rank {rank} {{\n{operations}\n}}\n");
    }
    std::fs::write(&file, schedule).unwrap();
    let named = format!("workload.file={}", file.display());
    Paths::new(text, &[&["workload.kind=trace", &named], more].concat())
}

/// Time until the last of so many packets arrives at another host of the leaf.
fn arrival(packets: u64) -> Span {
    Span::from_ns(83 * (packets + 1)) + Span::from_us(2)
}

fn acknowledgement(packets: u64) -> Span {
    arrival(packets) + Span::from_ps(2 * 1280) + Span::from_us(2)
}

/// Host and length of each step, and whether it is a message.
fn shape(steps: &[PathStep]) -> Vec<(u32, Span, bool)> {
    let is_message = |step: &PathStep| matches!(step.kind, StepKind::Message { .. });
    let row = |step: &PathStep| (step.host.0, step.span(), is_message(step));
    steps.iter().map(row).collect()
}

#[test]
fn the_longer_of_two_branches_is_the_path() {
    // Rank 2 waits for rank 0, which computes for 3 us and sends one packet, and for rank 1, which sends twenty at once.
    let join = "l1: recv 4086b from 0 tag 1\nl2: recv 81720b from 1 tag 2\nl3: calc 5000\nl3 requires l1\nl3 requires l2";
    let ranks = [
        "l1: calc 3000\nl2: send 4086b to 2 tag 1\nl2 requires l1",
        "l1: send 81720b to 2 tag 2",
        join,
    ];
    let paths = goal("join", &ranks, &[]);
    let us = Span::from_us;
    let long = [(0, us(3), false), (0, arrival(1), true), (2, us(5), false)];
    assert_eq!(shape(paths.steps(0)), long);
    // With half a microsecond of computation the other one is longer, by the packet that comes between.
    let quick = ranks[0].replace("3000", "500");
    let paths = goal("join-2", &[&quick, ranks[1], join], &[]);
    assert_eq!(
        shape(paths.steps(0)),
        [(1, arrival(21), true), (2, us(5), false)]
    );
}

#[test]
fn a_sender_that_waits_for_acknowledgements_has_them_in_its_path() {
    let ranks = [
        "l1: send 40860b to 1 tag 1\nl2: calc 5000\nl3: send 81720b to 2 tag 2\nl2 requires l1\nl3 requires l2",
        "l1: recv 40860b from 0 tag 1",
        "l1: recv 81720b from 0 tag 2",
    ];
    let paths = goal("acknowledged", &ranks, &["workload.iterations=2"]);
    let iteration = [
        (0, acknowledgement(10), true),
        (0, Span::from_us(5), false),
        (0, acknowledgement(20), true),
    ];
    assert_eq!(shape(paths.steps(0)), iteration);
    // Rank 1 is through with the first iteration long before, when the second begins.
    assert_eq!(shape(&paths.steps(1)[3..]), iteration);
    assert_eq!(paths.0[1].0.from, paths.0[0].0.from + arrival(10));
    assert_eq!(flows(&paths.0[0].0), [FlowId(0), FlowId(1)]);
}

#[test]
fn what_a_message_shares_is_in_its_parts() {
    // Two senders of the same length to one host: the message that ends last has waited for the other one.
    let ranks = [
        "l1: send 408600b to 2 tag 1",
        "l1: send 408600b to 2 tag 2",
        "l1: recv 408600b from 0 tag 1\nl2: recv 408600b from 1 tag 2\nl3: calc 9000\nl3 requires l1\nl3 requires l2",
    ];
    let paths = goal("shared", &ranks, &[]);
    let (path, delays) = &paths.0[0];
    assert_eq!(path.steps.len(), 2);
    let queueing = delays[0]
        .parts
        .iter()
        .filter(|delay| delay.part == Part::Queueing);
    let queueing: u64 = queueing.map(|delay| delay.span.as_ps()).sum();
    let expected = Span::from_ns(83 * 100);
    let range = expected.as_ps() * 97 / 100..=expected.as_ps();
    assert!(range.contains(&queueing), "{queueing} {expected:?}");
}

#[test]
fn a_late_rank_has_its_lateness_in_the_path() {
    // Rank 1 of the first iteration is late by its computation; the second begins when rank 0 does, and has the rest of it.
    let ranks = [
        "l1: send 4086b to 1 tag 1",
        "l1: recv 4086b from 0 tag 1\nl2: calc 50000\nl2 requires l1",
    ];
    let paths = goal("late", &ranks, &["workload.iterations=2"]);
    let second = &paths.0[1].0;
    let first_end = paths.0[0].0.to;
    assert!(second.from < first_end);
    let head = second.steps[0];
    assert_eq!(
        (head.host, head.from, head.to),
        (HostId(1), second.from, first_end)
    );
    assert_eq!(head.kind, StepKind::Computation);
}

/// All packets of a message are lost, long before the next message of its connection is posted: [`Paths::new`] checks that its parts are
/// those of a run whose packets are all followed.
#[test]
fn packets_that_were_lost_long_before_count() {
    // With the controllers of the transports.
    let constant = "controller = \"constant\"\nwindow = \"100bdp\"\nspray = \"single\"\n";
    let leaves = LEAVES.replace(constant, "");
    let text = format!(
        "{leaves}\n[[event]]\nat = \"1us\"\nlink = \"host0-leaf0\"\nstate = \"down\"\n\n\
         [[event]]\nat = \"15us\"\nlink = \"host0-leaf0\"\nstate = \"up\"\n"
    );
    let ranks = [
        "l1: send 81720b to 1 tag 1\nl2: calc 20000\nl3: send 4086b to 1 tag 2\nl3 requires l2",
        "l1: recv 81720b from 0 tag 1\nl2: recv 4086b from 0 tag 2\nl3: calc 1000\nl3 requires l1\nl3 requires l2",
    ];
    for transport in ["strack", "rocev2", "irn", "dctcp"] {
        let kind = format!("transport.kind={transport}");
        let paths = goal_on(&text, &format!("outage-{transport}"), &ranks, &[&kind]);
        let (path, delays) = &paths.0[0];
        let recovery = delays.iter().flat_map(|message| &message.parts);
        let recovery = recovery.filter(|delay| delay.part == Part::Recovery);
        assert!(recovery.count() > 0, "{transport} {path:?} {delays:?}");
    }
}

/// Time of the steps of a kind, in all paths.
fn total(paths: &Paths, is_meant: impl Fn(&StepKind) -> bool) -> Span {
    let steps = paths.0.iter().flat_map(|(path, _)| &path.steps);
    let meant = steps.filter(|step| is_meant(&step.kind));
    meant.fold(Span::ZERO, |sum, step| sum + step.span())
}

#[test]
fn a_slot_is_a_step() {
    let ring = [
        "workload.kind=ring-all-reduce",
        "workload.ranks=4",
        "workload.size=64KB",
        "workload.iterations=2",
    ];
    let slots = [
        &ring[..],
        &["workload.compute=20us", "workload.schedule.period=300us"],
    ]
    .concat();
    let is_slot = |kind: &StepKind| *kind == StepKind::Slot;
    let waited = total(&Paths::new(LEAVES, &slots), is_slot);
    assert!(waited > Span::from_us(250), "{waited:?}");
    assert!(total(&Paths::new(LEAVES, &ring), is_slot).is_zero());
}

#[test]
fn a_turn_is_a_step() {
    let all = [
        "workload.kind=all-to-all",
        "workload.ranks=8",
        "workload.size=8MB",
        "workload.parallelism=2",
    ];
    let is_turn = |kind: &StepKind| matches!(kind, StepKind::Turn { .. });
    let limited = [&all[..], &["workload.receiver-limit=true"]].concat();
    assert!(!total(&Paths::new(LEAVES, &limited), is_turn).is_zero());
    let free = [&all[..], &["workload.receiver-limit=false"]].concat();
    assert!(total(&Paths::new(LEAVES, &free), is_turn).is_zero());
}

/// Jobs of all kinds under all reliability schemes: [`Paths::new`] checks that nothing is left unexplained.
#[test]
fn every_path_adds_up() {
    for transport in ["strack", "rocev2", "hpcc", "dctcp", "irn", "s-perc"] {
        for kind in [
            "ring-all-reduce",
            "double-binary-tree",
            "all-to-all",
            "parameter-server",
        ] {
            let overrides = [
                "topology.hosts=16",
                "topology.hosts-per-leaf=4",
                "topology.oversubscription=4",
                "workload.ranks=8",
                "workload.jobs=2",
                "workload.size=400KB",
                "workload.iterations=2",
                "workload.compute=5us",
                "workload.jitter=0.1",
                &format!("workload.kind={kind}"),
                &format!("transport.kind={transport}"),
            ];
            let paths = Paths::new("", &overrides);
            assert_eq!(paths.0.len(), 4, "{transport} {kind}");
            let begin = paths.0.iter().map(|(path, _)| path.from).min();
            assert_eq!(begin, Some(Time::ZERO));
        }
    }
}

/// Packets are lost at all times: before, during and after the messages of the paths.
#[test]
fn losses_are_in_the_parts() {
    for transport in ["dctcp", "rocev2", "strack"] {
        let overrides = [
            "topology.hosts=32",
            "topology.hosts-per-leaf=8",
            "topology.oversubscription=4",
            "topology.bit-error-rate=1e-7",
            "workload.kind=ring-all-reduce",
            "workload.ranks=32",
            "workload.size=2MB",
            "workload.iterations=3",
            "workload.compute=5us",
            &format!("transport.kind={transport}"),
        ];
        let paths = Paths::new("", &overrides);
        assert_eq!(paths.0.len(), 3, "{transport}");
        let parts = paths.0.iter().flat_map(|(_, delays)| delays);
        let mut parts = parts.flat_map(|message| &message.parts);
        assert!(
            parts.any(|delay| delay.part == Part::Recovery),
            "{transport}"
        );
    }
}
