//! Fairness between flows: the rates at which flows may send at an instant, and the time until fairness settles.

use crate::assemble::Assembly;
use clearway_fabric::topology::{PacketSizes, Paths};
use clearway_fabric::{Flow, FlowEvent, FlowMilestone};
use clearway_results::{FAIR, Fairness, JainCourse};
use clearway_transport::OpenFlow;
use clearway_units::statistics::jain_index;
use clearway_units::{FlowId, Span, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Window size from which on a window counts as unlimited.
const UNLIMITED: u64 = 1 << 63;

/// The rates at which open flows may send, summed over their queue pairs.
#[derive(Debug)]
pub(crate) struct AllowedRates {
    paths: Arc<Paths>,
    /// Packet sizes, by transport.
    sizes: Vec<PacketSizes>,
    under_way: FxHashMap<FlowId, AllowedRate>,
    seen: Vec<FlowId>,
}

/// Rate of one flow.
#[derive(Debug, Clone, Copy)]
struct AllowedRate {
    round_trip: Span,
    /// Rate in bytes per picosecond; zero if the sample has not seen the flow.
    rate: f64,
}

impl AllowedRates {
    pub(crate) fn new(assembly: &Assembly) -> Self {
        Self {
            paths: Arc::clone(&assembly.routes.paths),
            sizes: assembly.transports.iter().map(|own| own.sizes).collect(),
            under_way: FxHashMap::default(),
            seen: Vec::new(),
        }
    }

    /// Handles a milestone of a flow.
    pub(crate) fn on_flow(&mut self, event: FlowEvent, flow: &Flow) {
        match event.milestone {
            FlowMilestone::Started => {
                let sizes = self.sizes[usize::from(flow.transport)];
                let rate = AllowedRate {
                    round_trip: self.paths.round_trip(flow.src, flow.dst, sizes),
                    rate: 0.0,
                };
                self.under_way.insert(event.flow, rate);
            }
            FlowMilestone::Received
            | FlowMilestone::CreditRequested
            | FlowMilestone::CreditReturned => {}
            FlowMilestone::Sent => {
                self.under_way.remove(&event.flow);
            }
        }
    }

    /// Adds a queue pair of a flow. Unlimited queue pairs are left out.
    pub(crate) fn add(&mut self, queue_pair: &OpenFlow<'_>) {
        let (flow, progress) = (queue_pair.flow(), queue_pair.progress());
        let Some(own) = self.under_way.get_mut(&flow) else {
            return;
        };
        let window = progress.window.as_u64();
        let round_trip = own.round_trip.as_ps() as f64;
        let by_window = (window < UNLIMITED).then(|| window as f64 / round_trip);
        let pace = progress.rate.map(|rate| rate.as_bps());
        let by_pace = pace.filter(|&pace| pace < UNLIMITED);
        let by_pace = by_pace.map(|pace| pace as f64 / 8e12);
        let Some(rate) = [by_window, by_pace].into_iter().flatten().reduce(f64::min) else {
            return;
        };
        if own.rate == 0.0 {
            self.seen.push(flow);
        }
        own.rate += rate;
    }

    /// Jain's index of all flows that were added since the last call; `None` for fewer than two flows.
    pub(crate) fn take_jain(&mut self) -> Option<f64> {
        let under_way = &mut self.under_way;
        let rates = self.seen.drain(..).filter_map(|flow| {
            let own = under_way.get_mut(&flow)?;
            Some(std::mem::take(&mut own.rate))
        });
        jain_index(rates)
    }
}

/// Fairness of the last set of flows, while it is observed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settling {
    /// Time at which a flow last started beside other flows.
    from: Time,
    pub(super) fairness: Fairness,
}

impl Settling {
    /// Begins to observe after a flow start at `now`, with `flows` active flows.
    pub(super) fn of_start(now: Time, flows: u64) -> Self {
        Self {
            from: now,
            fairness: Fairness {
                from_us: now.as_us(),
                until_us: None,
                flows,
                goodput: None,
                allowed_rate: None,
            },
        }
    }

    /// Handles the end of a flow.
    pub(super) fn on_finish(&mut self, now: Time) {
        self.fairness.until_us.get_or_insert(now.as_us());
    }

    /// Adds the index of a goodput window that began at `start`.
    pub(super) fn on_goodput(&mut self, start: Time, now: Time, index: f64) {
        if self.fairness.until_us.is_none() && start >= self.from {
            let (course, after) = (self.fairness.goodput, now.since(self.from));
            self.fairness.goodput = Some(JainCourse::and(course, after, index, FAIR));
        }
    }

    /// Adds the index of the rates at which flows may send now.
    pub(super) fn on_rates(&mut self, now: Time, index: f64) {
        if self.fairness.until_us.is_none() {
            let (course, after) = (self.fairness.allowed_rate, now.since(self.from));
            self.fairness.allowed_rate = Some(JainCourse::and(course, after, index, FAIR));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_is_when_it_stays_fair() {
        let mut settling = Settling::of_start(Time::from_us(10), 2);
        for (us, index) in [(11, 0.99), (12, 0.6), (13, 0.95), (14, 0.97)] {
            settling.on_rates(Time::from_us(us), index);
        }
        let expected = |min, last, settled: Option<f64>| {
            Some(JainCourse {
                min,
                last,
                settled_us: settled,
            })
        };
        assert_eq!(
            settling.fairness.allowed_rate,
            expected(0.6, 0.97, Some(3.0))
        );
        settling.on_rates(Time::from_us(15), 0.949);
        assert_eq!(settling.fairness.allowed_rate, expected(0.6, 0.949, None));
        // Goodput windows that began before all flows had started do not count.
        settling.on_goodput(Time::from_us(9), Time::from_us(17), 0.5);
        assert_eq!(settling.fairness.goodput, None);
        settling.on_goodput(Time::from_us(17), Time::from_us(25), 1.0);
        assert_eq!(settling.fairness.goodput, expected(1.0, 1.0, Some(15.0)));
        // Windows after the end of a flow do not count either.
        settling.on_finish(Time::from_us(26));
        settling.on_finish(Time::from_us(30));
        settling.on_rates(Time::from_us(27), 1.0);
        settling.on_goodput(Time::from_us(25), Time::from_us(33), 0.1);
        assert_eq!(settling.fairness.until_us, Some(26.0));
        assert_eq!(settling.fairness.allowed_rate, expected(0.6, 0.949, None));
        assert_eq!(settling.fairness.goodput, expected(1.0, 1.0, Some(15.0)));
    }
}
