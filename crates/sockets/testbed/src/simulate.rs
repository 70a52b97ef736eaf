//! The simulation of a scenario that a bed has carried: completion times, windows and traffic of links, sampled over time.

use clearway_fabric::topology::{LinkId, Topology};
use clearway_fabric::{Sampler, Snapshot, Watch};
use clearway_lab::{Assembly, Finished, RunDecision, RunOptions};
use clearway_units::{FlowId, Span, Time};
use std::collections::BTreeMap;

/// Most samples; beyond, every other sample is dropped.
const MOST_SAMPLES: usize = 1000;

/// Links between switches; all links if there are none.
pub(crate) fn watched_links(topology: &Topology) -> Vec<LinkId> {
    let inner = |link: &LinkId| {
        let (from, to) = topology.link_ends(*link);
        topology.switch_index(from).is_some() && topology.switch_index(to).is_some()
    };
    let inner: Vec<LinkId> = topology.links_up().filter(inner).collect();
    match inner.is_empty() {
        true => topology.links_up().collect(),
        false => inner,
    }
}

/// An instant of a simulation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Instant {
    pub(crate) at_us: f64,
    /// Windows of active flows, in bytes.
    pub(crate) windows: BTreeMap<u32, u64>,
    /// Bytes that each watched link has carried so far.
    pub(crate) links: Vec<u64>,
}

/// A finished simulation.
pub(crate) struct Simulated {
    pub(crate) finished: Finished,
    pub(crate) instants: Vec<Instant>,
}

/// Runs the simulation.
pub(crate) fn simulate(
    assembly: &Assembly,
    every: Span,
    interrupted: &dyn Fn() -> bool,
) -> Simulated {
    let mut course = Course {
        links: watched_links(&assembly.topology),
        due: Time::ZERO + every,
        every,
        instants: Vec::new(),
    };
    let options = RunOptions {
        threads: 1.into(),
        on_progress: &mut |_| match interrupted() {
            true => RunDecision::Stop,
            false => RunDecision::Continue,
        },
        on_flow: &mut |_, _, _| (),
    };
    let finished = assembly.run_sampled(options, Watch::Links, Some(&mut course));
    Simulated {
        finished,
        instants: course.instants,
    }
}

struct Course {
    links: Vec<LinkId>,
    due: Time,
    every: Span,
    instants: Vec<Instant>,
}

impl Sampler for Course {
    fn due(&self) -> Time {
        self.due
    }

    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>) {
        let mut instant = Instant {
            at_us: now.since(Time::ZERO).as_us(),
            links: vec![0; self.links.len()],
            ..Instant::default()
        };
        snapshot.for_each_open_flow(|flow| {
            let FlowId(number) = flow.flow();
            let window = flow.progress().window.as_u64();
            *instant.windows.entry(number).or_default() += window;
        });
        snapshot.for_each_link(|link| {
            if let Ok(index) = self.links.binary_search(&link.link) {
                instant.links[index] = link.totals().bytes;
            }
        });
        self.instants.push(instant);
        self.due = now + self.every;
        if self.instants.len() >= MOST_SAMPLES {
            let mut index = 0;
            self.instants.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.every = self.every * 2;
        }
    }
}
