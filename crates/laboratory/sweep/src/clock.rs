//! The clock of this machine, for the progress of sweeps.

use std::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "runs are measured from outside; nothing of a simulation depends on it"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
