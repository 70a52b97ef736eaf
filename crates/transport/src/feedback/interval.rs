//! The notification point of DCQCN (DCQCN §3.1): a marked packet is answered with a CNP, at most one per flow and interval.

use super::{CongestionFeedback, DataArrival, FeedbackDefinition};
use crate::cc::NetworkFacts;
use clearway_units::{Span, Time};

clearway_units::parameters! {
    /// Settings of [`Interval`].
    pub struct IntervalParameters {
        /// The least time between two notifications of a flow, or of a queue pair if it has several.
        pub interval: Span = Span::from_us(50), "cnp-interval", "DCQCN §3.1: N = 50 us";
    }
}

/// Notifies of a marked packet, unless it did so a short while ago.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    interval: Span,
    /// Instant of the last notification.
    last: Option<Time>,
}

impl FeedbackDefinition for Interval {
    const NAME: &'static str = "interval";
    const SUMMARY: &'static str =
        "DCQCN: a notification for a marked packet, at most one per flow and interval";
    type Parameters = IntervalParameters;

    fn new(parameters: &IntervalParameters, _: &NetworkFacts) -> Self {
        Self {
            interval: parameters.interval,
            last: None,
        }
    }
}

impl CongestionFeedback for Interval {
    type Shared = ();

    #[inline]
    fn on_data(&mut self, (): &mut (), arrival: &DataArrival) -> bool {
        let due = arrival.marked
            && self
                .last
                .is_none_or(|last| arrival.now.since(last) >= self.interval);
        if due {
            self.last = Some(arrival.now);
        }
        due
    }
}
