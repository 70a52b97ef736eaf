//! Runs that skip time while long flows are steady, beside runs of the same scenarios that simulate every packet.

use clearway_fabric::LinkTotals;
use clearway_lab::observe::RunSampler;
use clearway_lab::{Assembly, Finished, Laboratory, Stopped, Threads};
use clearway_lab::{RunDecision, RunOptions, Scenario, Watch};
use clearway_results::{Metric, Subject};
use clearway_units::{Span, Time};

/// 16 hosts of 400 Gb/s on four leaves with two spines.
fn scenario(text: &str, settings: &[&str]) -> Scenario {
    let common = [
        "topology.kind=leaf-spine",
        "topology.hosts=16",
        "topology.hosts-per-leaf=4",
        "topology.spines=2",
    ];
    let settings = common.iter().chain(settings);
    let settings: Vec<String> = settings.map(|text| (*text).into()).collect();
    Laboratory::new()
        .read("test", text, None, &settings)
        .unwrap()
}

fn run_on(threads: usize, scenario: &Scenario) -> Finished {
    let assembly = Assembly::new(scenario).unwrap();
    let options = RunOptions {
        threads: Threads::from(threads),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| {},
    };
    assembly.run(options, Watch::Off)
}

fn flows(list: &str) -> String {
    format!("[[workload]]\nkind = \"flows\"\nflows = [{list}]\n")
}

/// The run that simulates every packet, and the run that skips.
fn both(text: &str, settings: &[&str]) -> (Finished, Finished) {
    let exact = run_on(1, &scenario(text, settings));
    let settings = [settings, &["fast-forward.error=1%"]].concat();
    let forward = run_on(1, &scenario(text, &settings));
    assert!(forward.links.hops <= exact.links.hops);
    (exact, forward)
}

fn stretches(forward: &Finished) -> u64 {
    forward.fast_forward.as_ref().unwrap().skipped.stretches
}

/// Largest difference of the completion time of a flow, as a part of it. A short flow may find one packet more or less before it.
fn difference(exact: &Finished, forward: &Finished) -> f64 {
    let pairs = exact.flows.iter().zip(&forward.flows);
    let differences = pairs.map(|(exact, forward)| {
        let [exact, forward] = [exact, forward].map(|own| own.completion().unwrap().as_us());
        ((forward - exact).abs() - 0.1).max(0.0) / exact
    });
    differences.fold(0.0, f64::max)
}

#[test]
fn one_long_flow_is_exact_to_the_picosecond() {
    let text = flows("\"0->13 200MB\"");
    for kind in ["strack", "rocev2", "dctcp", "swift", "timely", "irn", "uet"] {
        let kind = format!("transport.kind={kind}");
        let (exact, forward) = both(&text, &[&kind]);
        assert!(stretches(&forward) > 0, "{kind}");
        assert!(forward.links.hops < exact.links.hops / 2, "{kind}");
        let times = |run: &Finished| {
            run.flows
                .iter()
                .map(|own| (own.received, own.finished))
                .collect::<Vec<_>>()
        };
        assert_eq!(times(&forward), times(&exact), "{kind}");
    }
}

#[test]
fn two_flows_that_take_turns_are_exact() {
    let constant = ["transport.controller=constant", "switch.ecn.enabled=false"];
    for list in [
        "\"0->3 50MB\", \"1->3 50MB\"",
        "\"0->3 50MB\", \"1->3 30MB\"",
    ] {
        let (exact, forward) = both(&flows(list), &constant);
        assert!(stretches(&forward) > 0);
        let times = |run: &Finished| run.flows.iter().map(|own| own.finished).collect::<Vec<_>>();
        assert_eq!(times(&forward), times(&exact), "{list}");
    }
}

/// A piece of a longer pattern looks like a period: packets of one flow wait behind those of another, three packets to a link's delay.
#[test]
fn a_period_has_the_rates_that_were_measured() {
    let text = "[[workload]]\nkind = \"flows\"\nflows = [\"0->3 100MB\"]\ntransport.kind = \"strack\"\n\
        transport.controller = \"constant\"\ntransport.window = \"60KB\"\n\n\
        [[workload]]\nkind = \"flows\"\nflows = [\"1->3 100MB\"]\ntransport.kind = \"strack\"\n\
        transport.controller = \"constant\"\ntransport.window = \"20KB\"\n";
    for delay in ["998400ps", "999ns", "1664ns"] {
        let delay = format!("topology.link-delay={delay}");
        let (exact, forward) = both(
            text,
            &[
                &delay,
                "topology.link-rate=100Gbps",
                "switch.ecn.enabled=false",
            ],
        );
        assert!(stretches(&forward) > 0);
        let off = difference(&exact, &forward);
        assert!(off < 0.002, "{delay}: {off}");
    }
}

/// Flows that begin by the clock and after others, of all lengths.
const MIXED: &str = "\"0->13 400MB\", \"4->13 300MB\", \"5->9 300MB at 700us\", \"9->5 4kB at 15ms\", \"9->2 100MB after 2\"";

#[test]
fn flows_start_when_they_are_to_start() {
    for kind in ["dctcp", "hpcc", "swift", "uet-rccc", "s-perc"] {
        let kind = format!("transport.kind={kind}");
        let (exact, forward) = both(&flows(MIXED), &[&kind]);
        assert!(stretches(&forward) > 0, "{kind}");
        for place in [0, 1, 2, 3] {
            let started = |run: &Finished| run.flows[place].started;
            assert_eq!(started(&forward), started(&exact));
        }
        let off = difference(&exact, &forward);
        assert!(off < 0.005, "{kind}: {off}");
        let estimated = forward.fast_forward.unwrap().estimated;
        assert!(off < estimated, "{kind}: {off} of {estimated}");
    }
}

#[test]
fn programs_go_on_by_the_clock_of_the_run() {
    // A job that computes 400 us and exchanges 20 MB, beside a long flow to another host.
    let job = "[[workload]]\nkind = \"ring-all-reduce\"\nhosts = [8, 9, 10, 11]\nranks = 4\nsize = \"20MB\"\niterations = 4\ncompute = \"900us\"\n";
    let text = format!("{}\n{job}", flows("\"0->13 300MB\""));
    let (exact, forward) = both(&text, &[]);
    assert!(stretches(&forward) > 1);
    let iterations = |run: &Finished| {
        let times = run.jobs[0].times.iter();
        times
            .map(|own| own.span().unwrap().as_us())
            .collect::<Vec<_>>()
    };
    for (exact, forward) in iterations(&exact).into_iter().zip(iterations(&forward)) {
        assert!((forward / exact - 1.0).abs() < 0.002, "{exact} {forward}");
    }
    assert!(difference(&exact, &forward) < 0.002);
}

#[test]
fn the_time_limit_is_kept() {
    let text = flows("\"0->13 1GB\"");
    let (exact, forward) = both(&text, &["stop.at-most=3ms"]);
    assert!(stretches(&forward) > 0);
    assert_eq!(forward.stopped, exact.stopped);
    assert!(forward.stopped.is_some());
    // A round that has begun is finished.
    let after = forward.simulated.since(exact.simulated);
    assert!(forward.simulated >= exact.simulated && after < Span::from_us(1));
}

#[test]
fn threads_do_not_change_what_is_skipped() {
    for kind in ["dctcp", "hpcc"] {
        let kind = format!("transport.kind={kind}");
        let settings = [&*kind, "fast-forward.error=1%", "fast-forward.verify=30%"];
        let scenario = scenario(&flows(MIXED), &settings);
        let [one, two] = [1, 2].map(|threads| run_on(threads, &scenario));
        assert!(stretches(&one) > 0);
        assert_eq!(one.digest, two.digest);
        assert_eq!(one.fast_forward, two.fast_forward);
    }
}

#[test]
fn stretches_that_are_verified_are_simulated() {
    let all = ["fast-forward.error=1%", "fast-forward.verify=100%"];
    let exact = run_on(1, &scenario(&flows(MIXED), &[]));
    let verified = run_on(1, &scenario(&flows(MIXED), &all));
    assert_eq!(verified.flows, exact.flows);
    assert_eq!(verified.links.hops, exact.links.hops);
    let skipped = verified.fast_forward.unwrap().skipped;
    assert!(skipped.verified > 0 && skipped.stretches == 0);
    assert!(skipped.found < 0.005, "{}", skipped.found);
}

#[test]
fn what_cannot_be_skipped_is_simulated_and_says_why() {
    let flow = flows("\"0->13 60MB\"");
    let event = "[[event]]\nat = \"30ms\"\nlink = \"leaf0-spine1\"\nstate = \"down\"\n";
    let (exact, forward) = both(&format!("{flow}\n{event}"), &[]);
    assert_eq!(forward.flows, exact.flows);
    let report = forward.fast_forward.unwrap();
    assert_eq!(report.no_skips, Some("links change during the run"));
    assert_eq!((report.skipped.stretches, report.estimated), (0, 0.0));
    let reason = |link: &str| {
        let link = format!("topology.links=[\"host0-leaf0 {link}\"]");
        let (exact, forward) = both(&flow, &[&link, "stop.at-most=20ms"]);
        assert_eq!(
            (exact.flows, exact.stopped),
            (forward.flows, forward.stopped)
        );
        forward.fast_forward.unwrap().no_skips.unwrap()
    };
    assert_eq!(reason("dead-from=1ms"), "links change during the run");
    assert_eq!(reason("packet-loss=0.001"), "links lose packets by chance");
    // A window that grows with the part of the message that is sent.
    let (exact, forward) = both(&flow, &["transport.phase-increase=1"]);
    assert_eq!(forward.flows, exact.flows);
    assert_eq!(stretches(&forward), 0);
}

#[test]
fn curves_and_loads_include_what_is_skipped() {
    let sampled = |scenario: &Scenario| {
        let assembly = Assembly::new(scenario).unwrap();
        let mut sampler = RunSampler::new(&assembly, None).unwrap();
        let options = RunOptions {
            threads: 1.into(),
            on_progress: &mut |_| RunDecision::Continue,
            on_flow: &mut |_, _, _| {},
        };
        let finished = assembly.run_sampled(options, Watch::Links, Some(&mut sampler));
        (finished, sampler.into_watched())
    };
    let text = flows(MIXED);
    let settings = [
        "transport.kind=dctcp",
        "observe.series.every=20us",
        "observe.series.flows=[\"0\"]",
    ];
    let (exact, _) = sampled(&scenario(&text, &settings));
    let settings = [&settings[..], &["fast-forward.error=1%"]].concat();
    let (forward, series) = sampled(&scenario(&text, &settings));
    assert!(stretches(&forward) > 0);
    assert_eq!(forward.meters.len(), exact.meters.len());
    let bytes = |totals: &LinkTotals| totals.bytes as f64;
    let all: f64 = exact.meters.iter().map(bytes).sum();
    for (exact, forward) in exact.meters.iter().zip(&forward.meters) {
        let off = (bytes(forward) - bytes(exact)).abs();
        assert!(
            off < 0.003 * bytes(exact) + 0.0005 * all,
            "{exact:?} {forward:?}"
        );
    }
    // The curve of a flow adds up to its bytes.
    let goodput = |subject| {
        let curve = series.curves.iter();
        let metric = Metric::FlowGoodput;
        curve
            .clone()
            .find(|own| own.metric == metric && own.subject == subject)
    };
    let curve = goodput(Subject::Flow(0)).unwrap();
    let starts = std::iter::once(Time::ZERO).chain(series.times.iter().copied());
    let spans = starts
        .zip(&series.times)
        .map(|(start, end)| (*end - start).as_us());
    let pairs = curve.values.iter().zip(spans);
    let sum: f64 = pairs
        .filter(|(rate, _)| !rate.is_nan())
        .map(|(rate, span)| rate * span / 8e6)
        .sum();
    assert!((sum / 400e6 - 1.0).abs() < 0.001, "{sum}");
}

#[test]
fn an_interrupted_run_says_what_it_skipped() {
    let run = |text: &str, settings: &[&str], until: Time| {
        let scenario = scenario(text, settings);
        let options = RunOptions {
            threads: 1.into(),
            on_progress: &mut |progress| match progress.now >= until {
                true => RunDecision::Stop,
                false => RunDecision::Continue,
            },
            on_flow: &mut |_, _, _| {},
        };
        Assembly::new(&scenario).unwrap().run(options, Watch::Off)
    };
    let error = "fast-forward.error=1%";
    let stopped = run(&flows("\"0->13 1GB\""), &[error], Time::from_us(10_000));
    assert_eq!(stopped.stopped, Some(Stopped::Interrupted));
    let skipped = stopped.fast_forward.unwrap().skipped;
    assert!(skipped.stretches > 0 && skipped.time > Span::from_ms(1));
    // The clock of the run jumps over a skip.
    assert!(
        stopped.simulated >= Time::from_us(10_000) && stopped.simulated < Time::from_us(20_000)
    );
    let progress = stopped.flows[0].statistics.packets * 4096 + skipped.bytes.as_u64();
    let expected = 50e9 * (4096.0 / 4160.0) * stopped.simulated.as_us() * 1e-6;
    assert!(
        (progress as f64 / expected - 1.0).abs() < 0.01,
        "{progress} {expected}"
    );
    // And a job that remembers calls.
    let job =
        "[[workload]]\nkind = \"ring-all-reduce\"\nranks = 16\nsize = \"4MB\"\niterations = 100\n";
    let stopped = run(job, &[error], Time::from_us(8_000));
    assert_eq!(stopped.stopped, Some(Stopped::Interrupted));
    assert!(stopped.fast_forward.unwrap().remembered_share() > 0.5);
    let done = stopped.jobs[0]
        .times
        .iter()
        .filter(|own| own.span().is_some());
    assert!(done.count() > 10);
}
