//! Time and random bytes of the host.

use clearway_units::Time;
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::time::{Duration, Instant};

/// The monotonic clock of the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
    /// Time at the start.
    age: Duration,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "real time is what sockets run on"
    )]
    pub(super) fn start() -> Self {
        Self {
            start: Instant::now(),
            age: Duration::from_millis(1),
        }
    }

    /// A clock that pretends to have run for longer.
    #[cfg(test)]
    pub(super) fn aged(age: Duration) -> Self {
        Self {
            age,
            ..Self::start()
        }
    }

    pub(super) fn now(self) -> Time {
        let passed = self.start.elapsed() + self.age;
        Time::from_ps((passed.as_nanos() as u64).saturating_mul(1000))
    }

    /// Instant of a time, at most a day ahead.
    pub(super) fn instant(self, time: Time) -> Instant {
        const DAY: u64 = 86_400_000_000_000;
        let now = self.now();
        let ahead = (time.since(now).as_ps() / 1000).min(DAY);
        // A timer that fires slightly too early would fire again and again.
        self.start + Duration::from_nanos(now.as_ps() / 1000 + ahead + 999) - self.age
    }
}

/// Random bytes of the operating system.
pub(super) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    let failed = |_| io::Error::other("the operating system has no random bytes");
    SystemRandom::new().fill(&mut seed).map_err(failed)?;
    Ok(seed)
}
