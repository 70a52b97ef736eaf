//! Skipped time at a host.

use super::Host;
use crate::command::StartFlow;
use clearway_transport::OpenFlow;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::{Span, Time};
use std::cmp::Reverse;

impl<T: Telemetry> Host<T> {
    /// The next start of a flow, delivery or deadline of the program.
    pub(crate) fn next_by_the_clock(&self) -> Time {
        self.next_start()
    }

    /// The run skips time: flows start, and programs go on, so much earlier. Packets and timers of endpoints stay.
    pub(crate) fn skip(&mut self, time: Span) {
        let starts = std::mem::take(&mut self.starts).into_iter();
        let moved = starts.map(|Reverse(order)| {
            let at = order.at.earlier_by(time);
            Reverse(StartFlow { at, ..order })
        });
        self.starts = moved.collect();
        self.program.skip(time);
        self.rare_event_bound = Time::ZERO;
    }

    /// Lets the queue pairs from here skip as many packets as `packets` says.
    pub(crate) fn skip_packets(&mut self, packets: &mut dyn FnMut(&OpenFlow<'_>) -> u64) {
        self.endpoints.skip(packets);
    }
}
