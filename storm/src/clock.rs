//! Wall time, for limits and progress alone: what is drawn does not depend on it.

use std::time::Instant;

/// The present.
#[expect(
    clippy::disallowed_methods,
    reason = "limits of wall time are about wall time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
