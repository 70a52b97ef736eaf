//! A deterministic parallel discrete-event engine in lookahead rounds.
//!
//! Simulated time advances in rounds `[T, T + L)`, where the lookahead `L` is the shortest time in which one [`Domain`] can
//! affect another. Within a round every domain runs by itself: it takes the messages that arrived in its [`Inlet`]s, merges them
//! with its own timers, and posts messages into its [`Outlet`]s, all of which arrive at or after `T + L`. A barrier ends the
//! round, a [`Conductor`] has a look at what the domains report, and stretches in which nothing happens are skipped.
//!
//! ```text
//!  round n            barrier                    round n+1
//!  domain 0 ──┐                                ┌─ domain 0
//!  domain 1 ──┼─► mailboxes, reports ─► Conductor ─► …
//!  domain 2 ──┘    (no message for round n)     └─ domain 2
//! ```
//!
//! * Nothing is locked for long and nothing is shared between running domains: each mailbox has one writer and one reader and
//!   two halves, of which a round uses one for writing and the other for reading.
//! * Rounds that carry too little to share are run by one thread while the others are parked.
//! * Results do not depend on the number of threads: what a domain sees in a round was complete before the round began.
//!   Reports are sorted before the conductor sees them.
//!
//! **Architecture invariant:** the engine knows no packet, link or host. A message is any `M`, a domain any type.

mod barrier;
mod mail;
mod run;
mod sharing;
mod threads;

pub use mail::{BufferPool, Inlet, MailboxBuilder, Outlet, ReadyInlets};
pub use run::{
    Concluded, Conductor, Domain, Domains, Engine, Outlook, Rounds, RunDecision, StopReason,
};
pub use threads::Threads;

use clearway_units::Time;

/// One round of lookahead, `[start, end)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    ordinal: u64,
    start: Time,
    end: Time,
}

impl Round {
    /// The round `[start, end)`, as the engine would make it; for tests of domains.
    pub fn new(ordinal: u64, start: Time, end: Time) -> Self {
        Self {
            ordinal,
            start,
            end,
        }
    }
    /// Number of rounds that were run before this one; skipped stretches do not count.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }
    /// The first instant of the round.
    pub fn start(&self) -> Time {
        self.start
    }
    /// The first instant after the round.
    pub fn end(&self) -> Time {
        self.end
    }
    /// Index of the half of each mailbox that is read in this round.
    fn reading_half(&self) -> usize {
        (self.ordinal & 1) as usize
    }
    /// Index of the half of each mailbox that is written in this round.
    fn writing_half(&self) -> usize {
        (self.ordinal & 1) as usize ^ 1
    }
}
