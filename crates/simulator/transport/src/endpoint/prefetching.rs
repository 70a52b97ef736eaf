//! Memory that the next packets will touch, loaded into the caches before.
//!
//! An endpoint points to its flows, and they point to more. What a flow points to is known only when the flow is in a cache. Hence two
//! steps, with time between them.

use super::Endpoint;
use super::flows::are_few;
use super::reliability_scheme::Sender;
use crate::congestion::telemetry::Telemetry;
use clearway_prefetch::prefetch_first;

impl<T: Telemetry> Endpoint<T> {
    /// Loads the state of flows that the next packets will touch into the caches of the processor, if there never were many flows. For a
    /// driver of many endpoints that knows which one is next. Nothing else changes.
    pub fn prefetch(&self) {
        if are_few(&self.slots) {
            prefetch_first(&self.slots, usize::MAX);
            self.controllers.prefetch();
        }
        self.receivers.prefetch();
        self.timers.prefetch();
        self.outbox.prefetch();
    }

    /// Loads what this state points to. To be called some hundred nanoseconds after [`prefetch`](Self::prefetch), so that it does not wait.
    pub fn prefetch_contents(&self) {
        if are_few(&self.slots) {
            let senders = self.slots.iter().filter_map(|slot| slot.sender.as_ref());
            senders.for_each(Sender::prefetch);
        }
        self.receivers.prefetch_contents();
        self.outbox.prefetch_contents();
    }
}
