//! Limit of what hosts and switches load into the caches before they use it.

use clearway_prefetch::LINE;

/// Most bytes of packets that are loaded for an inlet, or for a queue: about what a port sends or receives in a round.
pub(crate) const MOST_BYTES: usize = 24 * LINE;
