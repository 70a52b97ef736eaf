//! Memory that the next packets will touch, loaded into the caches before.

use super::Endpoint;
use super::flows::prefetch_if_few;
use crate::congestion::telemetry::Telemetry;

impl<T: Telemetry> Endpoint<T> {
    /// Loads the state of flows that the next packets will touch into the caches of the processor, if there never were many flows. For a
    /// driver of many endpoints that knows which one is next. Nothing else changes.
    pub fn prefetch(&self) {
        prefetch_if_few(&self.slots);
        self.receivers.prefetch();
    }
}
