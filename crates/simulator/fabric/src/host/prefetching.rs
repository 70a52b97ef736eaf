//! Memory that a host will touch in a round, loaded into the caches before.

use super::Host;
use clearway_prefetch::{LINE, prefetch_first};
use clearway_transport::congestion::telemetry::Telemetry;

/// Most bytes of arrivals that are loaded.
const MOST_BYTES: usize = 16 * LINE;

impl<T: Telemetry> Host<T> {
    /// Loads what [`collect`](Self::collect) will touch.
    #[inline]
    pub(crate) fn prefetch_mailbox(&self) {
        self.inlet.prefetch_mailbox();
    }

    /// Loads what the host points to.
    #[inline]
    pub(crate) fn prefetch_contents(&self) {
        prefetch_first(self.inlet.unread(), MOST_BYTES);
        self.endpoints.prefetch();
        self.link.prefetch_mailbox();
    }
}
