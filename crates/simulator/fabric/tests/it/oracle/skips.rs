//! Runs that skip time at a random instant, steady or not: both simulators must tell the same story after it.

use super::log::Log;
use super::network::Network;
use super::simulator::{Oracle, Skip};
use super::{same_log, without_sharing};
use crate::common::Scenario;
use clearway_fabric::{Outcome, Sampler, Snapshot};
use clearway_testing::cases;
use clearway_units::{Span, Time};

/// Scenarios of a default run.
const SCENARIOS: u32 = 400;

/// Skips as much time as is possible, once.
struct SkipOnce {
    due: Time,
    packets: u64,
    skip: Option<Skip>,
    skipped_packets: u64,
}

impl Sampler for SkipOnce {
    fn due(&self) -> Time {
        self.due
    }

    fn on_sample(&mut self, _: Time, snapshot: &mut Snapshot<'_>) {
        if snapshot.is_last() {
            assert_eq!(snapshot.longest_skip(), Span::ZERO);
            return;
        }
        self.due = Time::NEVER;
        // Where no start is known, the limit is far away.
        let time = snapshot.longest_skip().min(Span::from_us(300));
        let (most, mut packets) = (self.packets, 0);
        snapshot.skip(time, |open| {
            let own = open.skippable().map_or(0, |(_, left)| left.min(most));
            packets += own;
            own
        });
        self.skipped_packets = packets;
        self.skip = Some(Skip {
            at: snapshot.packet_time(),
            time,
            packets: most,
        });
    }
}

fn run(scenario: &Scenario, threads: usize) -> (Log, Outcome, SkipOnce) {
    let mut sampler = SkipOnce {
        due: Time::from_us([1, 2, 3, 5, 10, 20, 40, 80][scenario.seed as usize % 8]),
        packets: 1 + scenario.seed % 7 * 10,
        skip: None,
        skipped_packets: 0,
    };
    let (outcome, logs) = scenario.run_sampled(threads, Log::default, &mut sampler);
    let network = Network::new(&scenario.topology, &scenario.link_events, scenario.seed);
    let log = Log::join(logs).comparable(scenario, &network);
    (log, without_sharing(outcome), sampler)
}

#[test]
fn both_simulators_tell_the_same_story_after_skipped_time() {
    let (mut skips, mut packets, mut later_starts, mut ended) = (0, 0, 0, 0);
    for seed in 0..cases(SCENARIOS, 5 * SCENARIOS).into() {
        let scenario = Scenario::random(seed);
        let (log, outcome, sampler) = run(&scenario, 1);
        if let Err(text) = outcome.check_conservation() {
            panic!("seed {seed}: {text}");
        }
        let skipped = sampler.skip.map_or(Span::ZERO, |skip| skip.time);
        let end = outcome.cut_off.unwrap_or(Time::NEVER).earlier_by(skipped);
        let oracle = Oracle::new(&scenario).skipping(sampler.skip).run(end);
        same_log(seed, ["fast", "oracle"], [&log, &oracle.log], &scenario);
        assert_eq!(outcome.flows, oracle.flows, "seed {seed}");
        assert_eq!(outcome.links, oracle.links, "seed {seed}");
        assert_eq!(outcome.endpoints, oracle.endpoints, "seed {seed}");
        assert_eq!(outcome.in_network, oracle.in_network, "seed {seed}");
        assert_eq!(outcome.digest, oracle.digest, "seed {seed}");
        let (other_log, other, _) = run(&scenario, 3);
        same_log(
            seed,
            ["1 thread", "3 threads"],
            [&log, &other_log],
            &scenario,
        );
        assert_eq!(format!("{other:?}"), format!("{outcome:?}"), "seed {seed}");
        let at = sampler.skip.map_or(Time::NEVER, |skip| skip.at);
        let timed = scenario.flows.iter().filter_map(|flow| flow.start);
        // Flows of the clock start when they are to start.
        for (flow, start) in scenario.flows.iter().zip(&outcome.flows) {
            if let (Some(planned), Some(started)) = (flow.start, start.started) {
                assert_eq!(planned, started, "seed {seed}");
            }
        }
        skips += u32::from(!skipped.is_zero());
        packets += sampler.skipped_packets;
        later_starts += timed.filter(|start| *start > at).count();
        ended += u32::from(outcome.stopped.is_none());
    }
    let often = [
        skips as usize,
        packets as usize / 10,
        later_starts,
        ended as usize,
    ];
    assert!(often.iter().all(|&n| n > 100), "{often:?}");
}
