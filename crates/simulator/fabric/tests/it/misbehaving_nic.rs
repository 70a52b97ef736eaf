//! NICs that break the rules of s-PERC and 1RC, and the cost to NICs that obey.

use crate::allocation::{RATE, controller, flow, goodputs, near, part, run_changed};
use clearway_fabric::topology::{Topology, leaf_spine, single_switch};
use clearway_fabric::{Flow, Outcome};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::{Misbehaviour, Profile};
use clearway_units::{Bytes, Span, Value};

/// Runs flows; the flows of host 0 break a rule, if any.
fn run(
    topology: &Topology,
    controller: &ControllerSettings,
    flows: &[Flow],
    misbehaviour: Option<Misbehaviour>,
    threads: usize,
) -> Outcome {
    let mut flows = flows.to_vec();
    for flow in flows.iter_mut().filter(|flow| flow.src.0 == 0) {
        flow.variant = u16::from(misbehaviour.is_some());
    }
    let disobey = |profile: &mut Profile| {
        if let Some(misbehaviour) = misbehaviour {
            let variant = profile.misbehaving(controller, misbehaviour).unwrap();
            profile.variants.push(variant);
        }
    };
    let run = ((1, threads), Vec::new());
    run_changed(topology, controller, &flows, run, disobey)
}

fn star() -> Topology {
    single_switch(5, RATE, Span::from_us(1)).unwrap()
}

#[test]
fn flows_that_never_leave_are_forgotten_after_two_periods() {
    let mut flows: Vec<Flow> = (0..3).map(|src| flow(src, 4, 20_000_000, 0)).collect();
    flows[0].bytes = Bytes::new(2_000_000);
    for name in ["s-perc", "1rc"] {
        let run = |misbehaviour| run(&star(), &controller(name, &[]), &flows, misbehaviour, 1);
        let (obeys, breaks) = (run(None), run(Some(Misbehaviour::Leaving)));
        let sent = |outcome: &Outcome, flow: usize| outcome.flows[flow].sent.unwrap();
        let round_trip = 4.3;
        let period = 24.0 * round_trip;
        for victim in [1, 2] {
            let late = sent(&breaks, victim).since(sent(&obeys, victim)).as_us();
            // The third of the link that nobody uses is given back after one period or two.
            assert!(
                late > period / 3.0 && late < 2.2 * period / 3.0,
                "{name}: {late} us"
            );
        }
        let gain = goodputs(&breaks, &flows)[0] / goodputs(&obeys, &flows)[0];
        assert!((gain - 1.0).abs() < 0.01, "{name}: {gain}");
        assert_eq!(breaks.links.dropped - breaks.links.agent_drops, 0, "{name}");
    }
}

#[test]
fn vanished_flows_harm_by_their_number() {
    // One after the other, each over when the next one begins: the sums keep the flows of two periods.
    let mut flows: Vec<Flow> = (0..16).map(|n| flow(0, 4, 200_000, 60 * n)).collect();
    flows.push(flow(1, 4, 20_000_000, 0));
    let victim = |misbehaviour| {
        let outcome = run(&star(), &controller("1rc", &[]), &flows, misbehaviour, 1);
        *goodputs(&outcome, &flows).last().unwrap()
    };
    let (obeys, breaks) = (victim(None), victim(Some(Misbehaviour::Leaving)));
    assert!(breaks / obeys < 0.85, "{breaks} of {obeys} Gb/s");
}

#[test]
fn one_connection_announced_of_two_takes_what_weights_took() {
    let topology = single_switch(3, RATE, Span::from_us(1)).unwrap();
    let flows = [
        flow(0, 2, 10_000_000, 0),
        flow(0, 2, 10_000_000, 0),
        flow(1, 2, 20_000_000, 0),
    ];
    for name in ["s-perc", "1rc"] {
        let weighted = controller(name, &[("weights", Value::Boolean(true))]);
        let outcome = run(&topology, &weighted, &flows, Some(Misbehaviour::Weight), 1);
        let third = part(1.0 / 3.0);
        near(&goodputs(&outcome, &flows)[..2], &[third, third], 0.03);
        let plain = run(&topology, &weighted, &flows, None, 1);
        near(&goodputs(&plain, &flows)[..2], &[part(0.25); 2], 0.03);
    }
}

#[test]
fn flows_at_line_rate_take_all_that_a_switch_gives_them() {
    let flows: Vec<Flow> = (0..4).map(|src| flow(src, 4, 20_000_000, 0)).collect();
    for name in ["s-perc", "1rc"] {
        let run = |misbehaviour| run(&star(), &controller(name, &[]), &flows, misbehaviour, 1);
        let (obeys, breaks) = (run(None), run(Some(Misbehaviour::Rate)));
        assert!(obeys.pauses.is_empty(), "{name}");
        assert!(!breaks.pauses.is_empty(), "{name}: the buffer fills");
        let [before, after] = [&obeys, &breaks].map(|outcome| goodputs(outcome, &flows));
        assert!(after[0] / before[0] > 1.3, "{name}: {after:?}, {before:?}");
        assert_eq!(breaks.links.dropped - breaks.links.agent_drops, 0, "{name}");
        assert_eq!(breaks.endpoints.timeouts, 0, "{name}");
    }
}

#[test]
fn digests_are_those_of_any_number_of_threads() {
    let link = (RATE, Span::from_us(1));
    let topology = leaf_spine(8, 4, 2, 1, link, link).unwrap();
    let flows: Vec<Flow> = (0..7)
        .map(|src| flow(src, 7, 500_000, u64::from(src)))
        .collect();
    let weighted = controller("1rc", &[("weights", Value::Boolean(true))]);
    for misbehaviour in [
        Misbehaviour::Leaving,
        Misbehaviour::Weight,
        Misbehaviour::Rate,
    ] {
        let digest =
            |threads| run(&topology, &weighted, &flows, Some(misbehaviour), threads).digest;
        assert_eq!(digest(1), digest(3), "{}", misbehaviour.name());
    }
    let window = controller("hpcc", &[]);
    let digest =
        |misbehaviour, threads| run(&topology, &window, &flows, misbehaviour, threads).digest;
    let marks = Some(Misbehaviour::Marks);
    assert_eq!(digest(marks, 1), digest(marks, 3));
    assert_ne!(digest(marks, 1), digest(None, 1));
}
