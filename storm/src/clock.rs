//! Wall time, only for limits and progress: the generated scenarios do not depend on it.

use std::time::Instant;

/// Current instant.
#[expect(
    clippy::disallowed_methods,
    reason = "limits of wall time are about wall time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
