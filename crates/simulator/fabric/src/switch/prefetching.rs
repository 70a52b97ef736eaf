//! Order in which a switch loads its ports into the caches while it handles a round port by port.
//!
//! A port is touched once a round, and all ports of a large fabric together are in no cache. While a port is handled, the memory of a later
//! one is loaded, and the front of the queues of one between them, whose places are known by then.

use super::bit_set::NextMembers;
use clearway_prefetch::prefetch;

/// The queues of the port that comes so many places later are loaded.
const QUEUES_AHEAD: usize = 3;
/// The port itself is loaded so many places before.
const PORT_AHEAD: usize = 6;

/// Loads parts of the `next` ports; `prefetch_queues` loads what a port points to.
#[inline(always)]
pub(super) fn prefetch_next<P>(
    ports: &[P],
    mut next: NextMembers,
    prefetch_queues: impl FnOnce(&P),
) {
    if let Some(port) = next.nth(QUEUES_AHEAD - 1) {
        prefetch_queues(&ports[port]);
    }
    if let Some(port) = next.nth(PORT_AHEAD - QUEUES_AHEAD - 1) {
        prefetch(&ports[port]);
    }
}
