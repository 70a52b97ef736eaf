//! Runs that remember calls, beside runs of the same scenarios that simulate every packet.

use clearway_lab::{Assembly, FastForwardReport, Finished, Laboratory, Scenario, Threads};
use clearway_lab::{RunDecision, RunOptions, Watch};

/// 16 hosts of 400 Gb/s on four leaves with two spines.
fn scenario(settings: &[&str]) -> Scenario {
    let common = [
        "topology.kind=leaf-spine",
        "topology.hosts=16",
        "topology.hosts-per-leaf=4",
        "topology.spines=2",
        "topology.link-rate=400Gbps",
        "topology.link-delay=500ns",
        "workload.ranks=16",
        "workload.iterations=12",
    ];
    let settings = common.iter().chain(settings);
    let settings: Vec<String> = settings.map(|text| (*text).into()).collect();
    Laboratory::new().read("test", "", None, &settings).unwrap()
}

fn run_on(threads: usize, settings: &[&str]) -> Finished {
    run(threads, &scenario(settings))
}

/// The same fabric with the events and workloads of `text`.
fn of_text(text: &str, settings: &[&str]) -> Scenario {
    let fabric = "[topology]\nkind = \"leaf-spine\"\nhosts = 16\nhosts-per-leaf = 4\nspines = 2\n";
    let settings: Vec<String> = settings.iter().map(|text| (*text).into()).collect();
    let text = format!("{fabric}\n{text}");
    let scenario = Laboratory::new().read("test", &text, None, &settings);
    scenario.unwrap()
}

fn run_text(text: &str, settings: &[&str]) -> Finished {
    run(1, &of_text(text, settings))
}

fn run(threads: usize, scenario: &Scenario) -> Finished {
    let assembly = Assembly::new(scenario).unwrap();
    let options = RunOptions {
        threads: Threads::from(threads),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| {},
    };
    let finished = assembly.run(options, Watch::Off);
    assert_eq!(finished.stopped, None);
    finished
}

/// The run that simulates every packet, and the run that remembers.
fn both(settings: &[&str]) -> (Finished, Finished, FastForwardReport) {
    let exact = run_on(1, settings);
    assert_eq!(exact.fast_forward, None);
    let forward = run_on(1, &[settings, &["fast-forward.error=1%"]].concat());
    let report = forward.fast_forward.clone().unwrap();
    (exact, forward, report)
}

/// Times of all iterations of all jobs in microseconds.
fn iterations(finished: &Finished) -> Vec<f64> {
    let times = finished.jobs.iter().flat_map(|job| &job.times);
    times.map(|own| own.span().unwrap().as_us()).collect()
}

/// Difference of the mean time of an iteration from the exact one, as a part of it.
fn difference(forward: &Finished, exact: &Finished) -> f64 {
    let mean = |finished| {
        let times = iterations(finished);
        times.iter().sum::<f64>() / times.len() as f64
    };
    (mean(forward) / mean(exact) - 1.0).abs()
}

#[test]
fn a_ring_that_is_alone_takes_exactly_as_long() {
    let settings = [
        "workload.kind=ring-all-reduce",
        "workload.size=16MB",
        "transport.controller=constant",
        "switch.ecn.enabled=false",
        "topology.hosts-per-leaf=16",
        "switch.queue=100MB",
    ];
    let (exact, forward, report) = both(&settings);
    assert_eq!(iterations(&forward), iterations(&exact));
    assert_eq!(forward.simulated, exact.simulated);
    let [calls] = &report.calls[..] else {
        panic!("one sort of calls")
    };
    // The first call is no sample, and ranks begin the fourth before the last one is through with the third.
    assert_eq!((calls.simulated, calls.remembered), (4, 8), "{report:?}");
    // Half of the wanted error is for what no call shows.
    assert!((report.estimated - 0.005).abs() < 1e-9, "{report:?}");
    assert_eq!(exact.endpoints.data_sent, forward.endpoints.data_sent * 3);
    // Every connection is done at the time at which its last message was acknowledged.
    for (own, other) in forward.flows.iter().zip(&exact.flows) {
        assert_eq!(
            (own.received, own.finished),
            (other.received, other.finished)
        );
    }
}

#[test]
fn iterations_take_as_long_with_each_transport() {
    let transports: [&[&str]; 3] = [
        &["transport.kind=strack"],
        &["transport.kind=rocev2", "transport.controller=dcqcn"],
        &["transport.kind=rocev2", "transport.controller=hpcc"],
    ];
    let workloads: [&[&str]; 2] = [
        &["workload.kind=ring-all-reduce", "workload.size=8MB"],
        &["workload.kind=halving-doubling", "workload.size=4MB"],
    ];
    let mut remembered = 0;
    for transport in transports {
        for workload in workloads {
            let settings = [transport, workload].concat();
            let (exact, forward, report) = both(&settings);
            let error = difference(&forward, &exact);
            assert!(error < 0.01, "{settings:?}: {error}, {report:?}");
            let calls = report.calls.iter();
            remembered += calls.map(|calls| calls.remembered).sum::<u64>();
        }
    }
    assert!(remembered >= 20, "{remembered}");
}

#[test]
fn ranks_that_come_late_delay_remembered_calls() {
    let settings = [
        "workload.kind=ring-all-reduce",
        "workload.size=8MB",
        "workload.iterations=20",
        "workload.compute=300us",
        "workload.jitter=0.5",
    ];
    let (exact, forward, report) = both(&settings);
    assert!(report.remembered_share() > 0.5, "{report:?}");
    for (own, other) in iterations(&forward).iter().zip(iterations(&exact)) {
        assert!((own / other - 1.0).abs() < 0.002, "{own} {other}");
    }
}

#[test]
fn jobs_that_meet_in_ever_different_ways_are_simulated() {
    let settings = [
        "workload.kind=ring-all-reduce",
        "workload.jobs=2",
        "workload.ranks=8",
        "workload.placement=random",
        "workload.size=8MB",
        "workload.compute=100us",
        "workload.jitter=0.3",
        "workload.iterations=30",
        "topology.spines=1",
        "transport.kind=rocev2",
        "transport.controller=dcqcn",
    ];
    let (exact, forward, report) = both(&settings);
    let error = difference(&forward, &exact);
    assert!(error < 0.02, "{error} {report:?}");
    assert!(report.remembered_share() < 0.5, "{report:?}");
}

#[test]
fn digests_do_not_depend_on_threads() {
    let settings = [
        "workload.kind=direct-all-reduce",
        "workload.size=2MB",
        "workload.compute=20us",
        "workload.iterations=24",
        "fast-forward.error=5%",
        "fast-forward.verify=60%",
    ];
    let one = run_on(1, &settings);
    let report = one.fast_forward.clone().unwrap();
    assert!(report.remembered_share() > 0.2, "{report:?}");
    assert!(report.verified > 0 && report.found < 0.05, "{report:?}");
    for threads in [2, 3] {
        let other = run_on(threads, &settings);
        assert_eq!(other.digest, one.digest);
        assert_eq!(other.fast_forward, one.fast_forward);
        assert_eq!(iterations(&other), iterations(&one));
    }
    assert_ne!(run_on(1, &settings[..4]).digest, one.digest);
}

#[test]
fn jobs_that_do_not_repeat_and_limits_of_receivers_are_named() {
    for (settings, reason) in [
        (
            ["workload.kind=ring-all-reduce", "workload.iterations=1"],
            "none of its calls is repeated",
        ),
        (
            ["workload.kind=all-to-all", "workload.parallelism=2"],
            "its receivers accept a limited number of messages at a time",
        ),
    ] {
        let settings = [&settings[..], &["workload.size=1MB"]].concat();
        let (exact, forward, report) = both(&settings);
        assert_eq!(iterations(&forward), iterations(&exact));
        assert_eq!(report.declined_jobs.len(), 1, "{settings:?}");
        assert_eq!(report.declined_jobs[0].1, reason);
        assert_eq!(report.remembered_share(), 0.0);
    }
}

#[test]
fn adverse_cases_run_exactly_and_say_why() {
    let flapping = "[[event]]\nlink = \"leaf0-spine0\"\nstate = \"down\"\nat = \"50us\"\nevery = \"200us\"\ntimes = 20\n
        [[event]]\nlink = \"leaf0-spine0\"\nstate = \"up\"\nat = \"150us\"\nevery = \"200us\"\ntimes = 20\n
        [[workload]]\nkind = \"ring-all-reduce\"\nranks = 16\niterations = 12\nsize = \"1MB\"\n";
    let incast = "[[workload]]\nkind = \"incast\"\nsenders = 8\nmessage = \"20KB\"\ncount = 40\nperiod = \"50us\"\n
        [[workload]]\nkind = \"ring-all-reduce\"\nranks = 16\niterations = 12\nsize = \"1MB\"\n";
    for (text, reason) in [
        // Links change before any call is over.
        (flapping, None),
        (incast, Some("the scenario has other flows as well")),
    ] {
        let exact = run_text(text, &[]);
        let forward = run_text(text, &["fast-forward.error=1%"]);
        let report = forward.fast_forward.as_ref().unwrap();
        let declined = report.declined_jobs.first();
        assert_eq!(declined.map(|(_, reason)| *reason), reason);
        assert_eq!(report.remembered_share(), 0.0);
        assert_eq!(iterations(&forward), iterations(&exact));
        assert_eq!(forward.endpoints, exact.endpoints);
        assert_eq!(forward.simulated, exact.simulated);
    }
}

/// A ring while links change.
fn outage_on(threads: usize, outage: &str, settings: &[&str]) -> Finished {
    let ring = "[[workload]]\nkind = \"ring-all-reduce\"\nranks = 16\niterations = 40\nsize = \"4MB\"\ncompute = \"200us\"\n";
    let common = [
        "topology.link-rate=400Gbps",
        "topology.link-delay=500ns",
        "topology.reroute-delay=1ms",
    ];
    let settings = [&common, settings].concat();
    run(threads, &of_text(&format!("{outage}\n{ring}"), &settings))
}

#[test]
fn calls_are_remembered_by_the_state_of_the_links() {
    let down = "[[event]]\nlink = \"leaf0-spine0\"\nstate = \"down\"\nat = \"4ms\"\n";
    let up = "[[event]]\nlink = \"leaf0-spine0\"\nstate = \"up\"\nat = \"9ms\"\n";
    let slow = "[[event]]\nlink = \"leaf0-spine0\"\nrate = \"100Gbps\"\nat = \"4ms\"\n";
    let outages = [format!("{down}{up}"), slow.into()];
    for transport in ["strack", "rocev2", "hpcc"] {
        for outage in &outages {
            let transport = format!("transport.kind={transport}");
            let exact = outage_on(1, outage, &[&transport]);
            let settings = [&transport, "fast-forward.error=1%"];
            let forward = outage_on(1, outage, &settings);
            let report = forward.fast_forward.clone().unwrap();
            let end = forward.simulated.as_us() / exact.simulated.as_us() - 1.0;
            let context = format!("{transport} {outage} {end} {report:?}");
            assert!(end.abs() < report.estimated, "{context}");
            assert!(report.remembered_share() > 0.05, "{context}");
            let [own, other] = [iterations(&forward), iterations(&exact)];
            let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
            for (of, most) in [(4..7, 0.005), (35..40, 0.03)] {
                let error = mean(&own[of.clone()]) / mean(&other[of]) - 1.0;
                assert!(error.abs() < most, "{error} {own:?} {other:?} {context}");
            }
        }
    }
    let settings = ["transport.kind=strack", "fast-forward.error=1%"];
    let digest = |threads| outage_on(threads, &outages[0], &settings).digest;
    assert_eq!(digest(3), digest(1));
}

#[test]
fn a_link_that_dies_unnoticed_is_a_change() {
    // Packets between two leaves are lost from then on, and go again: calls take ever other times.
    let dead = [
        "topology.links=[\"leaf0-spine0 dead-from=4ms\"]",
        "transport.kind=strack",
    ];
    let exact = outage_on(1, "", &dead);
    let forward = outage_on(1, "", &[&dead[..], &["fast-forward.error=1%"]].concat());
    let report = forward.fast_forward.clone().unwrap();
    let [own, other] = [iterations(&forward), iterations(&exact)];
    let before = own[..7].iter().zip(&other[..7]);
    let errors = before.map(|(own, other)| (own / other - 1.0).abs());
    assert!(errors.fold(0.0, f64::max) < 0.001, "{own:?} {other:?}");
    let end = forward.simulated.as_us() / exact.simulated.as_us() - 1.0;
    assert!(end.abs() < report.estimated, "{end} {report:?}");
    let remembered = report.calls[0].remembered;
    assert!((2..8).contains(&remembered), "{report:?}");
}

#[test]
fn a_controller_that_oscillates_stays_within_the_error() {
    // HPCC with an additive increase of a quarter of the rate in every other round trip.
    let settings = [
        "workload.kind=all-to-all",
        "workload.parallelism=auto",
        "workload.placement=random",
        "workload.size=4MB",
        "workload.iterations=16",
        "workload.compute=5us",
        "topology.spines=1",
        "transport.kind=hpcc",
        "transport.rate-ai=100Gbps",
        "transport.max-stage=1",
    ];
    let (exact, forward, report) = both(&settings);
    assert!(report.remembered_share() > 0.5, "{report:?}");
    let error = difference(&forward, &exact);
    assert!(error < 0.01, "{error} {report:?}");
}
