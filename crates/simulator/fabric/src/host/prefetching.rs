//! Memory that a host will touch in a round, loaded into the caches before.

use super::Host;
use crate::prefetching::MOST_BYTES;
use clearway_prefetch::prefetch_first;
use clearway_transport::congestion::telemetry::Telemetry;

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

    /// Loads what its flows point to.
    #[inline]
    pub(crate) fn prefetch_flows(&self) {
        self.endpoints.prefetch_contents();
    }
}
