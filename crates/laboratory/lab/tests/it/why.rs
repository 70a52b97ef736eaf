//! Completion times in parts, against cases whose answer can be worked out by hand.

use clearway_lab::record::merge_all;
use clearway_lab::why::{
    BoundCause, FlowDelays, FollowPlan, FollowRecorder, JobStep, LowerBound, Part,
};
use clearway_lab::{
    Assembly, Finished, Laboratory, LinkId, RankCause, RunDecision, RunOptions, Watch,
};
use clearway_testing::Folder;
use clearway_units::{FlowId, Span, Time};

/// A run, and the parts of all of its flows.
struct Explained {
    assembly: Assembly,
    finished: Finished,
    flows: Vec<FlowDelays>,
    bound: LowerBound,
}

impl Explained {
    fn new(text: &str, overrides: &[&str]) -> Self {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let scenario = Laboratory::new().read("s.toml", text, None, &overrides);
        let assembly = Assembly::new(&scenario.unwrap()).unwrap();
        let first = assembly.run(options(1), Watch::Off);
        let flows = assembly.slowest_flows(&first, usize::MAX);
        let plan = FollowPlan::new(&assembly, &flows);
        let mut recorders = assembly.per_domain(|| FollowRecorder::new(&plan));
        let finished = assembly.run(options(1), Watch::by(&mut recorders));
        assert_eq!(finished.digest, first.digest, "watching changes nothing");
        let recorder = merge_all(recorders).unwrap();
        let flows = assembly.flow_delays(&flows, recorder, &finished).unwrap();
        for flow in &flows {
            assert_eq!(flow.total(Part::Unexplained), Span::ZERO, "{flow:?}");
        }
        Self {
            bound: assembly.lower_bound(),
            assembly,
            finished,
            flows,
        }
    }

    fn flow(&self, id: u32) -> &FlowDelays {
        let found = self.flows.iter().find(|flow| flow.flow == FlowId(id));
        found.expect("the flow is done")
    }

    fn link(&self, name: &str) -> LinkId {
        let links = self.assembly.topology.links_up();
        let mut named = links.filter(|&link| self.assembly.topology.link_name(link) == name);
        named.next().unwrap()
    }

    /// Share of a part in the completion time of a flow.
    fn share(&self, id: u32, part: Part) -> f64 {
        let flow = self.flow(id);
        flow.total(part).as_ps() as f64 / flow.completion.as_ps() as f64
    }
}

fn options(threads: usize) -> RunOptions<'static> {
    RunOptions {
        threads: threads.into(),
        on_progress: Box::leak(Box::new(|_| RunDecision::Continue)),
        on_flow: Box::leak(Box::new(|_, _, _| ())),
    }
}

const fn ns(ns: u64) -> Span {
    Span::from_ns(ns)
}

/// 4086 B and 64 B of headers take 83 ns at 400 Gb/s, an acknowledgement of 64 B takes 1.28 ns.
const PACKET: Span = ns(83);

const LEAVES: &str = r#"
[topology]
kind = "leaf-spine"
hosts = 8
hosts-per-leaf = 4
spines = 1

[transport]
controller = "constant"
window = "100bdp"
spray = "single"
payload = "4086B"

[switch]
queue = "1000bdp"
"#;

const ONE_TO_ONE: [&str; 3] = [
    "workload.kind=one-to-one",
    "workload.from=0",
    "workload.to=4",
];

fn one_to_one<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ONE_TO_ONE[..], more].concat()
}

#[test]
fn a_lone_packet_flies_and_is_serialised() {
    let run = Explained::new(LEAVES, &one_to_one(&["workload.message=4086B"]));
    let flow = run.flow(0);
    assert_eq!(flow.completion, Span::from_ps(8_337_120));
    assert_eq!(flow.total(Part::Propagation), Span::from_us(8));
    // Four links there, four links back.
    assert_eq!(flow.total(Part::Serialisation), Span::from_ps(337_120));
    assert_eq!(flow.bottleneck, None);
    assert_eq!((flow.ways, flow.nodes.len()), (1, 5));
    assert_eq!(run.bound.span, flow.ideal);
    assert_eq!(run.bound.cause, BoundCause::Chain(vec![FlowId(0)]));
}

#[test]
fn a_lone_train_of_packets_takes_its_ideal() {
    let run = Explained::new(LEAVES, &one_to_one(&["workload.message=4086000B"]));
    let flow = run.flow(0);
    assert_eq!(flow.completion, flow.ideal);
    let alone = Span::from_ps(337_120);
    assert_eq!(flow.total(Part::Serialisation), ns(83 * 999) + alone);
    assert_eq!(flow.completion, ns(83 * 999) + alone + Span::from_us(8));
}

#[test]
fn a_window_of_one_packet_costs_a_round_trip_for_each() {
    let more = ["workload.message=40860B", "transport.window=1B"];
    let run = Explained::new(LEAVES, &one_to_one(&more));
    let flow = run.flow(0);
    let round_trip = Span::from_ps(8_337_120);
    assert_eq!(flow.completion.as_ps(), 10 * round_trip.as_ps());
    assert_eq!(flow.total(Part::Window).as_ps(), 9 * round_trip.as_ps());
}

#[test]
fn a_rate_of_a_quarter_costs_three_quarters() {
    let more = ["workload.message=40860B", "transport.rate=100Gbps"];
    let run = Explained::new(LEAVES, &one_to_one(&more));
    let flow = run.flow(0);
    assert_eq!(flow.total(Part::Pacing), ns(9 * 3 * 83));
    assert_eq!(flow.completion, ns(9 * 4 * 83) + Span::from_ps(8_337_120));
}

#[test]
fn a_thin_link_is_where_the_packets_of_a_flow_are_serialised() {
    let thin = "topology.links=[\"leaf0-spine0 rate=100Gbps\"]";
    let run = Explained::new(LEAVES, &one_to_one(&["workload.message=4086000B", thin]));
    let (flow, link) = (run.flow(0), run.link("leaf0-spine0"));
    assert_eq!(flow.at(Part::Serialisation, link), ns(1000 * 4 * 83));
    assert_eq!(flow.total(Part::Queueing), Span::ZERO);
    assert_eq!(flow.bottleneck, Some(link));
    assert_eq!(flow.completion, flow.ideal);
}

/// Two flows into one link: the one that ends last has waited for all packets of the other.
#[test]
fn two_flows_that_collide_wait_for_each_other() {
    let incast = [
        "workload.kind=incast",
        "workload.senders=2",
        "workload.receiver=7",
        "workload.message=408600B",
    ];
    let run = Explained::new(LEAVES, &incast);
    let (flow, link) = (&run.flows[0], run.link("leaf0-spine0"));
    assert_eq!(flow.at(Part::Queueing, link), ns(100 * 83));
    assert_eq!(flow.at(Part::Serialisation, link), ns(100 * 83));
    assert_eq!(flow.bottleneck, Some(link));
    let wait = flow.links.iter().find(|wait| wait.link == link).unwrap();
    assert_eq!((wait.sharers, wait.packets), (1, 100));
}

#[test]
fn an_incast_queues_at_the_downlink_of_its_receiver() {
    let incast = [
        "topology.hosts=16",
        "topology.hosts-per-leaf=16",
        "workload.kind=incast",
        "workload.senders=8",
        "workload.receiver=15",
        "workload.message=408600B",
    ];
    let run = Explained::new(LEAVES, &incast);
    let (flow, link) = (&run.flows[0], run.link("leaf0-host15"));
    assert_eq!(flow.at(Part::Queueing, link), ns(7 * 100 * 83));
    assert_eq!(flow.links[0].sharers, 7);
    let BoundCause::Cut {
        links,
        bytes,
        outwards,
        ..
    } = &run.bound.cause
    else {
        panic!("{:?}", run.bound);
    };
    assert_eq!((links.as_slice(), *outwards), (&[link][..], false));
    assert_eq!(bytes.as_u64(), 8 * 100 * 4150);
    assert_eq!(run.bound.span, ns(8 * 100 * 83));
    let beyond = run.flows[0].completion - run.bound.span;
    // Two links of 1 us there and back, the first packet, the last acknowledgement.
    assert_eq!(beyond, Span::from_us(4) + PACKET + Span::from_ps(2 * 1280));
}

#[test]
fn transports_that_react_are_slow_at_the_same_link() {
    for transport in ["strack", "hpcc", "dctcp", "swift", "rocev2"] {
        let mut overrides = vec![
            "workload.kind=incast".into(),
            "workload.senders=16".into(),
            "workload.receiver=100".into(),
            "workload.message=500KB".into(),
            format!("transport.kind={transport}"),
        ];
        if transport == "rocev2" {
            overrides.push("switch.kind=shared-buffer".into());
        }
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let run = Explained::new("", &overrides);
        let link = run.link("leaf6-host100");
        for flow in &run.flows[..8] {
            assert_eq!(flow.bottleneck, Some(link), "{transport}: {flow:?}");
        }
    }
}

/// Four hosts send over one uplink.
#[test]
fn oversubscription_queues_at_the_uplink() {
    let flows: Vec<String> = (0..4).map(|host| format!(
        "[[workload]]\nkind = \"one-to-one\"\nfrom = {host}\nto = {}\nmessage = \"408600B\"\n",
        host + 4
    )).collect();
    let run = Explained::new(&(LEAVES.to_string() + &flows.concat()), &[]);
    let (flow, link) = (&run.flows[0], run.link("leaf0-spine0"));
    assert_eq!(flow.at(Part::Queueing, link), ns(3 * 100 * 83));
    assert_eq!(flow.total(Part::Queueing), flow.at(Part::Queueing, link));
    let BoundCause::Cut { links, hosts, .. } = &run.bound.cause else {
        panic!("{:?}", run.bound);
    };
    assert_eq!((links.as_slice(), *hosts), (&[link][..], 4));
    assert_eq!(run.bound.span, ns(4 * 100 * 83));
}

/// A flow to an idle host shares the way of an incast, whose pauses hold it back.
#[test]
fn a_victim_is_paused_by_an_incast_on_other_hosts() {
    let text = r#"
[topology]
kind = "dumbbell"
left = 4
right = 4
bottleneck-rate = "1600Gbps"

[switch]
kind = "shared-buffer"
buffer = "4MB"

[transport]
kind = "rocev2"
controller = "constant"
window = "100bdp"

[[workload]]
kind = "incast"
placement = "first"
senders = 3
receiver = 4
message = "8MB"

[[workload]]
kind = "one-to-one"
from = 3
to = 5
message = "2MB"
"#;
    let run = Explained::new(text, &[]);
    assert_eq!(run.finished.links.dropped, 0);
    let (victim, link) = (run.flow(3), run.link("left-right"));
    let share = run.share(3, Part::Pause);
    assert!(share > 0.5, "{share} {victim:?}");
    assert_eq!(victim.at(Part::Pause, link), victim.total(Part::Pause));
    assert_eq!(victim.bottleneck, Some(link));
    // It has the link to its receiver to itself.
    let free = run.link("right-host5");
    assert_eq!(victim.at(Part::Queueing, free), Span::ZERO);
}

/// The second virtual channel of a ring is paused as a class of its own.
#[test]
fn a_packet_beyond_the_dateline_waits_for_pauses_of_its_second_channel() {
    let text = r#"
topology = { kind = "ring", hosts = 6, virtual-channels = 2 }

[switch]
kind = "shared-buffer"
buffer = "600kB"

[transport]
kind = "rocev2"
controller = "constant"
window = "100bdp"

[[workload]]
kind = "flows"
flows = ["5->0 2MB", "4->1 8MB", "0->1 8MB"]
"#;
    let run = Explained::new(text, &[]);
    assert_eq!(run.finished.links.dropped, 0);
    let dateline = run.link("router5-router0");
    let victim = run.flow(0);
    let paused = victim.at(Part::Pause, dateline);
    assert!(paused > Span::from_us(2), "{paused} {victim:?}");
}

#[test]
fn lost_packets_cost_recovery() {
    for kind in ["strack", "rocev2"] {
        let kind = format!("transport.kind={kind}");
        let overrides = [
            "topology.hosts=8",
            "topology.hosts-per-leaf=4",
            "topology.spines=1",
            "topology.links=[\"leaf0-spine0 packet-loss=0.3\"]",
            "workload.message=50KB",
            &kind,
        ];
        let run = Explained::new("", &one_to_one(&overrides));
        assert!(run.finished.endpoints.retransmitted > 0);
        let slowest = &run.flows[0];
        let share = run.share(slowest.flow.0, Part::Recovery);
        assert!(share > 0.8, "{share} {slowest:?}");
    }
}

#[test]
fn other_flows_of_a_host_queue_at_its_nic() {
    let text = LEAVES.to_string()
        + "[[workload]]\nkind = \"one-to-one\"\nfrom = 0\nto = 1\nmessage = \"408600B\"\n\
           [[workload]]\nkind = \"one-to-one\"\nfrom = 0\nto = 2\nmessage = \"408600B\"\n";
    let run = Explained::new(&text, &[]);
    let (flow, link) = (&run.flows[0], run.link("host0-leaf0"));
    assert_eq!(flow.at(Part::Queueing, link), ns(100 * 83));
    assert_eq!(
        flow.links
            .iter()
            .find(|wait| wait.link == link)
            .unwrap()
            .sharers,
        1
    );
}

#[test]
fn flows_that_start_each_other_are_a_chain() {
    let folder = Folder::new("why");
    let file = folder.join("chain.cm");
    let flows = "Nodes 8\nConnections 3\nTriggers 2\n\
        0->4 id 1 start 0 size 40860 send_done_trigger 1\n\
        0->5 id 2 trigger 1 size 81720 send_done_trigger 2\n\
        0->6 id 3 trigger 2 size 40860\n\
        trigger id 1 oneshot\ntrigger id 2 oneshot\n";
    std::fs::write(&file, flows).unwrap();
    let named = format!("workload.file={}", file.display());
    let run = Explained::new(LEAVES, &[&named]);
    let ids = [FlowId(0), FlowId(1), FlowId(2)];
    assert_eq!(run.bound.cause, BoundCause::Chain(ids.to_vec()));
    let ideals = ids.map(|id| run.assembly.ideal_completion(id));
    let sum = ideals
        .into_iter()
        .fold(Span::ZERO, |sum, ideal| sum + ideal);
    assert_eq!(run.bound.span, sum);
    // Nothing is in their way: the run is as fast as it can be.
    assert_eq!(run.finished.simulated.since(run.bound.from), sum);
}

/// A run of a GOAL schedule, rank n on host n, alone on the network.
fn scheduled(name: &str, ranks: &[&str], iterations: u32) -> Explained {
    let folder = Folder::new(&format!("why-{name}"));
    let file = folder.join("chain.goal");
    let mut schedule = format!("num_ranks {}\n", ranks.len());
    for (rank, operations) in ranks.iter().enumerate() {
        schedule += &format!("rank {rank} {{\n{operations}\n}}\n");
    }
    std::fs::write(&file, schedule).unwrap();
    let named = format!("workload.file={}", file.display());
    let iterations = format!("workload.iterations={iterations}");
    Explained::new(LEAVES, &["workload.kind=trace", &named, &iterations])
}

/// Time that so many packets take from one host of a leaf to another, until the last one arrives, and until it is acknowledged.
fn packets(count: u64) -> (Span, Span) {
    let arrival = ns(83 * (count + 1)) + Span::from_us(2);
    (
        arrival,
        arrival + Span::from_ps(2 * 1280) + Span::from_us(2),
    )
}

fn steps(run: &Explained) -> Vec<Span> {
    let BoundCause::Job { label, steps } = &run.bound.cause else {
        panic!("{:?}", run.bound);
    };
    assert_eq!(label, "chain");
    let span = |step: &JobStep| match *step {
        JobStep::Message { span, .. } | JobStep::Computation { span, .. } => span,
    };
    steps.iter().map(span).collect()
}

#[test]
fn messages_and_computations_of_a_job_are_a_chain() {
    // Rank 1 computes with what has arrived and passes it on; rank 0 computes meanwhile, but not for so long.
    let ranks = [
        "l1: send 40860b to 1 tag 1\nl2: calc 4000",
        "l1: recv 40860b from 0 tag 1\nl2: calc 5000\nl3: send 81720b to 2 tag 2\nl2 requires l1\nl3 requires l2",
        "l1: recv 81720b from 1 tag 2",
    ];
    let run = scheduled("passed-on", &ranks, 1);
    let expected = [packets(10).0, Span::from_us(5), packets(20).1];
    assert_eq!(steps(&run), expected);
    let sum = expected[0] + expected[1] + expected[2];
    assert_eq!((run.bound.from, run.bound.span), (Time::ZERO, sum));
    assert_eq!(
        run.finished.simulated,
        Time::ZERO + sum,
        "nothing is in its way"
    );

    // Rank 0 waits for the acknowledgement of its first message.
    let ranks = [
        "l1: send 40860b to 1 tag 1\nl2: calc 5000\nl3: send 81720b to 2 tag 2\nl2 requires l1\nl3 requires l2",
        "l1: recv 40860b from 0 tag 1",
        "l1: recv 81720b from 0 tag 2",
    ];
    let run = scheduled("acknowledged", &ranks, 2);
    let iteration = [packets(10).1, Span::from_us(5), packets(20).1];
    assert_eq!(steps(&run), [iteration, iteration].concat());
    assert_eq!(run.finished.simulated, Time::ZERO + run.bound.span);
}

#[test]
fn connections_of_jobs_know_what_they_waited_for() {
    // Rank 0 computes and asks, rank 1 answers at once.
    let ranks = [
        "l1: calc 7000\nl2: send 4086b to 1 tag 1\nl3: recv 4086b from 1 tag 2\nl2 requires l1",
        "l1: recv 4086b from 0 tag 1\nl2: send 4086b to 0 tag 2\nl2 requires l1",
    ];
    let run = scheduled("answers", &ranks, 4);
    let waits = |id: u32| {
        let flow = run.flow(id);
        let sum = flow
            .waits
            .iter()
            .fold(Span::ZERO, |sum, wait| sum + wait.span);
        assert_eq!(sum, flow.total(Part::Waiting), "{flow:?}");
        assert!(sum > Span::from_us(21), "{flow:?}");
        flow.waits.iter().map(|wait| wait.cause).collect::<Vec<_>>()
    };
    assert_eq!(waits(0), [RankCause::Clock]);
    assert_eq!(waits(1), [RankCause::Message(FlowId(0))]);
}

/// Runs of all kinds: parts add up, which the walk itself asserts, and nothing is left unexplained.
#[test]
fn nothing_is_left_unexplained() {
    let transports = [
        "strack", "rocev2", "tmdml", "dctcp", "tcp", "hpcc", "swift", "s-perc", "1rc", "mltcp",
        "timely", "irn",
    ];
    let fabrics: [&[&str]; 4] = [
        &[
            "topology.hosts=16",
            "topology.hosts-per-leaf=4",
            "topology.oversubscription=2",
        ],
        &[
            "topology.hosts=16",
            "topology.hosts-per-leaf=4",
            "switch.queue=30KB",
        ],
        &[
            "topology.hosts=16",
            "topology.hosts-per-leaf=4",
            "topology.bit-error-rate=1e-7",
        ],
        &[
            "topology.hosts=16",
            "topology.hosts-per-leaf=4",
            "switch.kind=shared-buffer",
            "switch.control-priority=false",
        ],
    ];
    let loads: [&[&str]; 2] = [
        &[
            "workload.kind=incast",
            "workload.senders=12",
            "workload.message=150KB",
        ],
        &["workload.kind=permutation", "workload.message=300KB"],
    ];
    for transport in transports {
        let kind = format!("transport.kind={transport}");
        for fabric in fabrics {
            for load in loads {
                let overrides = [fabric, load, &[kind.as_str()]].concat();
                let run = Explained::new("", &overrides);
                assert!(!run.flows.is_empty());
                let last = run.finished.simulated.since(run.bound.from);
                assert!(run.bound.span <= last, "{overrides:?}: {:?}", run.bound);
            }
        }
    }
}
