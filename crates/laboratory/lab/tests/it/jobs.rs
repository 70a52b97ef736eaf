//! Jobs on simulated fabrics: closed forms, limits, iterations.

use clearway_lab::{
    Assembly, Finished, Interests, Laboratory, NodeId, Observer, RunDecision, RunOptions, Scenario,
    Stopped, Watch,
};
use clearway_transport::{Event, Packet};
use clearway_units::{FlowId, HostId, Span, Time, Value};
use clearway_workload::CollectiveSettings;
use std::collections::{BTreeMap, BTreeSet};

/// 16 hosts of 400 Gb/s on a single switch by way of leaves, with no congestion control in the way unless `settings` say so.
fn scenario(settings: &[&str]) -> Scenario {
    let common = [
        "topology.kind=leaf-spine",
        "topology.hosts=16",
        "topology.hosts-per-leaf=16",
        "topology.spines=1",
        "topology.link-rate=400Gbps",
        "topology.link-delay=500ns",
        "switch.queue=100MB",
        "switch.ecn.enabled=false",
        "transport.controller=constant",
    ];
    let settings: Vec<String> = common
        .iter()
        .chain(settings)
        .map(|text| (*text).into())
        .collect();
    Laboratory::new().read("test", "", None, &settings).unwrap()
}

fn run(settings: &[&str]) -> Finished {
    let finished = Laboratory::new().run(&scenario(settings)).unwrap();
    assert_eq!(finished.stopped, None, "{settings:?}");
    finished
}

/// The time of the only iteration of the only job.
fn time(settings: &[&str]) -> Span {
    let finished = run(settings);
    let [job] = &finished.jobs[..] else {
        panic!("one job")
    };
    let [iteration] = &job.times[..] else {
        panic!("one iteration")
    };
    iteration.span().unwrap()
}

/// Time of a collective, as a multiple of what its bytes on the wire take. 64 MB on 16 ranks; packets of 4150 bytes carry 4086.
fn ratio(kind: &str, factor: f64, settings: &[&str]) -> f64 {
    let kind = format!("workload.kind={kind}");
    let settings = [settings, &[&kind, "workload.size=64MB"]].concat();
    let ideal_us = 64.0 * 8.0 / 0.4 * factor * (4150.0 / 4086.0);
    time(&settings).as_us() / ideal_us
}

#[test]
fn collectives_take_as_long_as_their_bytes() {
    let once = 15.0 / 16.0;
    for (kind, factor) in [
        ("ring-all-reduce", 2.0 * once),
        ("direct-all-reduce", 2.0 * once),
        ("ring-all-gather", once),
        ("ring-reduce-scatter", once),
        ("direct-all-gather", once),
        ("all-to-all", once),
        ("halving-doubling", 2.0 * once),
        // The server has S from each of the others to take and to give.
        ("parameter-server", 2.0 * 15.0),
        // Inner ranks send all they get twice.
        ("tree-broadcast", 2.0),
        // The first chunk is passed on 14 times.
        ("chain-broadcast", 1.0 + 14.0 * 131_072.0 / 64e6),
    ] {
        let ratio = ratio(kind, factor, &[]);
        assert!((1.0..1.03).contains(&ratio), "{kind}: {ratio}");
    }
}

/// Chunks of several steps, or of both trees, compete for a NIC. Some of them are late, and a NIC is idle for a while. That is as it must
/// be: it takes as long where connections share NICs max-min fairly and nothing else is in the way. For trees that comes to the factor of
/// NCCL (`src/graph/tuning.cc`): 0.92 of the bandwidth, 1.087 of the time.
#[test]
fn chunks_that_compete_take_as_long_as_with_fair_shares() {
    const TREES: (&str, f64) = ("double-binary-tree", 2.0);
    const HALVING: (&str, f64) = ("halving-doubling", 2.0 * 15.0 / 16.0);
    for ((kind, factor), ranks, expected) in [
        (TREES, 8, 1.084),
        (TREES, 16, 1.085),
        (TREES, 32, 1.085),
        (HALVING, 16, 1.086),
    ] {
        let mut settings = CollectiveSettings::named("all-reduce", kind).unwrap();
        for (key, value) in [("size", "64MB"), ("chunk", "128KiB")] {
            settings.set(key, &Value::Text(value.into())).unwrap();
        }
        let graph = settings.build(ranks).unwrap().graph;
        let fair = crate::fluid::bytes_of_time(&graph) / (64e6 * factor);
        assert!((fair - expected).abs() < 0.001, "{kind} {ranks}: {fair}");
        let ranks = format!("workload.ranks={ranks}");
        let settings = ["topology.hosts=32", &ranks, "workload.chunk=128KiB"];
        let ratio = ratio(kind, factor, &settings) / fair;
        assert!((1.0..1.03).contains(&ratio), "{kind} {ranks}: {ratio}");
    }
}

#[test]
fn iterations_compute_and_communicate() {
    let settings = [
        "workload.kind=ring-all-reduce",
        "workload.size=4MB",
        "workload.iterations=5",
        "workload.compute=300us",
    ];
    let of = |further: &[&str]| {
        let finished = run(&[&settings, further].concat());
        let job = &finished.jobs[0];
        assert_eq!((job.times.len(), job.iterations, job.ranks), (5, 5, 16));
        let spans = job.times.iter().map(|times| times.span().unwrap().as_us());
        spans.collect::<Vec<f64>>()
    };
    let steady = of(&[]);
    // 300 us and 2 15/16 4 MB at 400 Gb/s, 152 us.
    assert!(
        steady.iter().all(|us| (450.0..500.0).contains(us)),
        "{steady:?}"
    );
    // Half of the buckets are on their way while the second half of the computation goes on.
    let overlapped = of(&["workload.buckets=4", "workload.overlap=1.0"]);
    assert!(
        overlapped.iter().all(|us| (300.0..400.0).contains(us)),
        "{overlapped:?}"
    );
    let slow = of(&["workload.stragglers=1", "workload.straggler-factor=2.0"]);
    assert!(
        slow.iter().all(|us| (750.0..810.0).contains(us)),
        "{slow:?}"
    );
    let jittery = of(&["workload.jitter=0.5"]);
    assert!(
        jittery.iter().all(|us| (451.0..700.0).contains(us)),
        "{jittery:?}"
    );
    assert!(jittery[1..].iter().any(|us| *us != jittery[0]));
}

/// Two jobs of two ranks on either side of a link, which send 4 MB each way in an iteration: 81 us at 400 Gb/s.
const TWO_JOBS: [&str; 7] = [
    "topology.hosts=4",
    "topology.hosts-per-leaf=2",
    "workload.kind=ring-all-reduce",
    "workload.ranks=2",
    "workload.jobs=2",
    "workload.hosts=[0, 2, 1, 3]",
    "workload.size=4MB",
];

/// The times of the first iterations, us.
fn first_iterations(settings: &[&str]) -> Vec<f64> {
    let finished = run(&[&TWO_JOBS, settings].concat());
    let jobs = finished.jobs.iter();
    jobs.map(|job| job.times[0].span().unwrap().as_us())
        .collect()
}

#[test]
fn with_strict_priority_one_job_does_not_notice_the_other() {
    let strict = ["switch.strict-priority=true", "workload.priority=[2, 5]"];
    let alone = first_iterations(&["workload.hosts=[0, 2]", "workload.jobs=1"])[0];
    let shared = ["switch.kind=shared-buffer", "switch.buffer=100MB"];
    for kind in [&shared[..], &[]] {
        let fair = first_iterations(kind);
        assert!(fair.iter().all(|us| *us > 1.7 * alone), "{fair:?} {alone}");
        let kind = [&strict, kind].concat();
        let times = first_iterations(&kind);
        assert!(times[1] < 1.05 * alone, "{times:?} {alone}");
        assert!(times[0] > 1.7 * alone, "{times:?} {alone}");
    }
}

#[test]
fn a_job_has_controller_settings_to_itself() {
    // Two packets under way are less than a third of what the round trip carries.
    let times = first_iterations(&["workload.transport.window=[\"8KiB\", \"10bdp\"]"]);
    assert!(times[0] > 3.0 * times[1], "{times:?}");
}

#[test]
fn jobs_in_slots_communicate_in_turn() {
    let settings = [
        "workload.iterations=5",
        "workload.compute=100us",
        "workload.schedule.period=250us",
        "workload.schedule.shift=[\"150us\", \"20us\"]",
    ];
    let sending = |further: &[&str]| {
        let finished = run(&[&TWO_JOBS[..], &settings, further].concat());
        let sending = |job: &clearway_lab::JobResult| -> Vec<f64> {
            let times = job.times.iter();
            times.map(|times| times.sending.unwrap().as_us()).collect()
        };
        finished.jobs.iter().map(sending).collect::<Vec<_>>()
    };
    let expected = [
        [150.0, 400.0, 650.0, 900.0, 1150.0],
        [270.0, 520.0, 770.0, 1020.0, 1270.0],
    ];
    assert_eq!(sending(&[]), expected);
    let skewed = sending(&["workload.schedule.skew=10us"]);
    for (at, by) in skewed.concat().into_iter().zip(expected.concat()) {
        assert!(at > by && at < by + 10.0, "{at} {by}");
    }
}

/// Two jobs of 10 ms of communication and 11 ms of computation, the second of which begins a millisecond later, over TCP and a link of
/// 10 Gb/s that marks from a queue of 200 KB on: mean lengths of the last four of 16 iterations, in ms.
fn last_iterations(transport: &str) -> Vec<f64> {
    let transport = format!("transport.kind={transport}");
    let settings = [
        "topology.link-rate=10Gbps",
        &transport,
        "transport.controller=reno",
        "transport.max-window=100bdp",
        "switch.ecn.enabled=true",
        "switch.ecn.kmin=200KB",
        "switch.ecn.kmax=200KB",
        "workload.size=12MB",
        "workload.compute=11ms",
        "workload.iterations=16",
        "workload.stagger=1ms",
    ];
    let finished = run(&[&TWO_JOBS[..], &settings].concat());
    let last = |job: &clearway_lab::JobResult| {
        let spans = job.times[12..].iter().map(|times| times.span().unwrap());
        spans.map(|span| span.as_us()).sum::<f64>() / 4000.0
    };
    finished.jobs.iter().map(last).collect()
}

/// MLTCP: a lead grows until phases no longer meet, where with plain Reno they still share the link (29.2 and 28.0 ms).
#[test]
fn mltcp_parts_the_phases_of_two_jobs() {
    let (plain, parted) = (last_iterations("tcp"), last_iterations("mltcp"));
    // 12 MB and their headers take 9.75 ms, of which computation leaves 21 ms in an iteration.
    assert!(parted.iter().all(|ms| *ms < 22.0), "{plain:?} {parted:?}");
    assert!(plain.iter().all(|ms| *ms > 25.0), "{plain:?} {parted:?}");
}

#[test]
fn results_do_not_depend_on_threads_and_jobs_are_told_apart() {
    let settings = [
        "topology.hosts=64",
        "topology.spines=4",
        "workload.kind=double-binary-tree",
        "workload.jobs=4",
        "workload.ranks=16",
        "workload.placement=random",
        "workload.size=1MB",
        "workload.iterations=2",
        "workload.stagger=10us",
        "transport.controller=strack",
        "switch.ecn.enabled=true",
        "switch.queue=5bdp",
    ];
    let assembly = Assembly::new(&scenario(&settings)).unwrap();
    let with = |threads: usize| {
        let options = RunOptions {
            threads: threads.into(),
            on_progress: &mut |_| RunDecision::Continue,
            on_flow: &mut |_, _, _| (),
        };
        assembly.run(options, Watch::Off)
    };
    let (one, three) = (with(1), with(3));
    assert_eq!(one.digest, three.digest);
    assert_eq!(one.jobs, three.jobs);
    let labels: Vec<&str> = one.jobs.iter().map(|job| job.label.as_str()).collect();
    assert_eq!(labels[3], "double-binary-tree 3");
    for (number, job) in (0..).zip(&one.jobs) {
        assert_eq!(job.times[0].begun, Time::ZERO + Span::from_us(10) * number);
        assert!(job.times.iter().all(|times| times.over.is_some()));
        assert!(job.times[1].begun <= job.times[0].over.unwrap());
        // Its connections are between its hosts, and nobody else's.
        let flow = |id: u32| assembly.workload.flow(FlowId(id));
        assert!(
            job.flows
                .clone()
                .map(flow)
                .all(|flow| { job.hosts.contains(&flow.src) && job.hosts.contains(&flow.dst) })
        );
    }
    let of_jobs: Vec<u32> = one.jobs.iter().flat_map(|job| job.flows.clone()).collect();
    assert!(of_jobs.into_iter().eq(0..assembly.flow_count() as u32));
    // A connection carries many messages and has no completion time.
    assert!(one.flows.iter().all(|flow| flow.finished.is_some()));
    assert_eq!(assembly.fct_records(&one), []);
}

#[test]
fn a_run_that_is_cut_off_says_how_far_jobs_came() {
    let settings = [
        "workload.kind=ring-all-reduce",
        "workload.size=4MB",
        "workload.iterations=50",
        "stop.at-most=400us",
    ];
    let finished = Laboratory::new().run(&scenario(&settings)).unwrap();
    assert_eq!(finished.stopped, Some(Stopped::AtMost));
    let job = &finished.jobs[0];
    assert!((2..4).contains(&job.times.len()), "{}", job.times.len());
    assert!(job.times[0].over.is_some() && job.times.last().unwrap().over.is_none());
}

#[test]
fn a_job_is_done_when_its_last_computation_is() {
    // The sum of the last part takes 400 us, and the messages before it 5 us.
    let settings = |more: &[&str]| {
        let job = [
            "workload.kind=ring-reduce-scatter",
            "workload.ranks=2",
            "workload.size=100KB",
            "workload.reduction-rate=1Gbps",
        ];
        scenario(&[&job[..], more].concat())
    };
    let run = |scenario: &Scenario, threads: usize| {
        let options = RunOptions {
            threads: threads.into(),
            on_progress: &mut |_| RunDecision::Continue,
            on_flow: &mut |_, _, _| (),
        };
        Assembly::new(scenario).unwrap().run(options, Watch::Off)
    };
    for threads in [1, 2] {
        let whole = run(&settings(&[]), threads);
        assert_eq!(whole.stopped, None);
        assert!(whole.jobs[0].is_done());
        assert_eq!(whole.jobs[0].times[0].over, Some(whole.simulated));
        let last_flow = whole.flows.iter().filter_map(|flow| flow.finished).max();
        assert!(last_flow.unwrap() < Time::from_us(20) && whole.simulated > Time::from_us(400));

        let cut = run(&settings(&["stop.at-most=100us"]), threads);
        assert_eq!(cut.stopped, Some(Stopped::AtMost));
        assert!(cut.flows.iter().all(|flow| flow.finished.is_some()));
        assert!(!cut.jobs[0].is_done());
        assert_eq!(
            (cut.digest, cut.jobs[0].times[0].over),
            (whole.digest, None)
        );
    }
}

/// A search for free hosts from the first one on, or over all jobs of a host with each message, would take minutes.
#[test]
fn thousands_of_sections_have_jobs() {
    const COUNT: u32 = 4000;
    let job = "[[workload]]\nkind = \"ring-all-reduce\"\nranks = 2\nsize = \"1KB\"\n";
    let read = |fabric: &str, section: &str| {
        let text = format!(
            "[topology]\nkind = \"single-switch\"\n{fabric}\n[observe]\nseries.every = \"off\"\n{}",
            section.repeat(COUNT as usize)
        );
        Laboratory::new().read("s.toml", &text, None, &[]).unwrap()
    };
    let apart = Assembly::new(&read("hosts = 8000", job)).unwrap();
    let flows = apart.workload.flows.iter();
    let hosts: BTreeSet<u32> = flows.map(|flow| flow.src.0).collect();
    assert!(hosts.into_iter().eq(0..2 * COUNT));

    let shared = format!("{job}compute = \"1us\"\nhosts = [0, 1]\n");
    let finished = Laboratory::new().run(&read("hosts = 2", &shared)).unwrap();
    assert_eq!(finished.jobs.len(), COUNT as usize);
    assert!(finished.jobs.iter().all(clearway_lab::JobResult::is_done));
}

/// The connections on which each host sends, from the first acknowledgement to the last one, and those on which it receives, from the
/// first packet to the last one.
#[derive(Debug, Default)]
struct AtOnce {
    sending: BTreeMap<u32, Open>,
    receiving: BTreeMap<u32, Open>,
}

/// Connections that are open or were.
#[derive(Debug, Default)]
struct Open {
    open: BTreeSet<FlowId>,
    closed: BTreeSet<FlowId>,
    most: usize,
}

impl Open {
    fn add(&mut self, flow: FlowId) {
        if !self.closed.contains(&flow) {
            self.open.insert(flow);
            self.most = self.most.max(self.open.len());
        }
    }

    fn close(&mut self, flow: FlowId) {
        self.open.remove(&flow);
        self.closed.insert(flow);
    }
}

impl Observer for AtOnce {
    fn interests(&self) -> Interests {
        Interests {
            transport: true,
            ..Interests::PACKETS
        }
    }

    fn on_arrival(&mut self, _now: Time, node: NodeId, packet: &Packet) {
        if packet.class.is_data() && node.0 == packet.dst.0 {
            self.receiving.entry(node.0).or_default().add(packet.flow);
        }
    }

    fn on_transport(&mut self, _now: Time, host: HostId, event: &Event) {
        match event {
            Event::Ack { flow, .. } => self.sending.entry(host.0).or_default().add(*flow),
            Event::Sent { flow, .. } => {
                self.sending.entry(host.0).or_default().close(*flow);
            }
            Event::Received { flow, .. } => {
                self.receiving.entry(host.0).or_default().close(*flow);
            }
            Event::Loss { .. } => {}
        }
    }
}

#[test]
fn an_all_to_all_keeps_to_its_parallelism() {
    for parallelism in [1, 4, 15] {
        let settings = [
            "workload.kind=all-to-all".to_owned(),
            "workload.size=16MB".to_owned(),
            format!("workload.parallelism={parallelism}"),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let scenario = scenario(&settings);
        let (_, observers) = Laboratory::new()
            .run_observed(&scenario, AtOnce::default)
            .unwrap();
        let mut hosts = 0;
        for observer in &observers {
            for open in observer.sending.values().chain(observer.receiving.values()) {
                assert_eq!(open.closed.len(), 15);
                assert!(open.most <= parallelism, "{parallelism}: {open:?}");
                assert!(open.most + 1 >= parallelism, "{parallelism}: {open:?}");
                hosts += 1;
            }
        }
        assert_eq!(hosts, 2 * 16);
    }
}

#[test]
fn one_collective_is_exchanged_for_another_in_a_word() {
    let lines_of = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|text| (*text).into()).collect();
        let scenario = Laboratory::new().load("training-256", &settings).unwrap();
        let resolved = scenario.resolved();
        let lines = resolved.lines().filter(|line| !line.starts_with("kind = "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let ring = lines_of(&["workload.kind=ring-all-reduce"]);
    assert_eq!(ring, lines_of(&[]));
    assert!(ring.contains(&"iterations = 5".to_owned()));
    // Another kind of workload has nothing in common with them.
    let flows = lines_of(&["workload.kind=permutation"]);
    assert!(flows.contains(&"message = \"2MB\"".to_owned()), "{flows:?}");
}
