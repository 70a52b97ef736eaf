//! A deterministic parallel discrete-event engine that advances simulated time in lookahead rounds.
//!
//! # Example
//!
//! Two domains pass a ball to each other. Each throw takes a microsecond, which is also the lookahead.
//!
//! ```
//! use clearway_engine::{BufferPool, Conductor, Domain, Engine, Inlet, MailboxBuilder, Outlet, DomainHorizon, Round, RunDecision};
//! use clearway_units::{Span, Time};
//!
//! const THROW: Span = Span::from_us(1);
//!
//! struct Player { name: &'static str, serve: Option<Time>, inlet: Inlet<Time>, outlet: Outlet<Time> }
//!
//! impl Domain for Player {
//!     type Report = (Time, &'static str);
//!     type Command = ();
//!     type Workbench = BufferPool<Time>;
//!
//!     fn run(&mut self, round: &Round, ready: &[u32], reports: &mut Vec<Self::Report>, pool: &mut BufferPool<Time>) -> DomainHorizon {
//!         if !ready.is_empty() {
//!             self.inlet.collect(round, pool);
//!         }
//!         let mut sent = Time::NEVER;
//!         for caught in self.serve.take().into_iter().chain(self.inlet.unread().iter().copied()) {
//!             reports.push((caught, self.name));
//!             // The ball arrives in the next round.
//!             sent = caught + THROW;
//!             self.outlet.post(sent, pool);
//!         }
//!         self.inlet.advance(self.inlet.unread().len());
//!         self.outlet.send(round);
//!         DomainHorizon { next: Time::NEVER, sent }
//!     }
//!     fn accept(&mut self, (): ()) -> Time { Time::NEVER }
//! }
//!
//! struct Referee;
//!
//! impl Conductor<Player> for Referee {
//!     fn between_rounds(&mut self, round: &Round, reports: &mut Vec<(Time, &'static str)>, _: &mut Vec<(usize, ())>) -> RunDecision {
//!         reports.drain(..).for_each(|(time, name)| println!("{time}: {name} has the ball"));
//!         if round.end() >= Time::from_us(5) { RunDecision::Stop } else { RunDecision::Continue }
//!     }
//! }
//!
//! // One inlet for each player.
//! let mut mail = MailboxBuilder::new(&[1, 1]);
//! let ((to_ann, ann_gets), (to_bob, bob_gets)) = (mail.mailbox(0), mail.mailbox(1));
//! let ann = Player { name: "Ann", serve: Some(Time::ZERO), inlet: ann_gets, outlet: to_bob };
//! let bob = Player { name: "Bob", serve: None, inlet: bob_gets, outlet: to_ann };
//! let engine = Engine::new(THROW, 2.into(), vec![(ann, Time::ZERO), (bob, Time::NEVER)], mail.into_mailrooms());
//! assert_eq!(engine.run(&mut Referee).rounds.total, 5);
//! ```
//!
//! # Stability
//!
//! In versions 0.x a minor release (0.2.0) may change the interface, and `CHANGELOG.md` names each change; a patch release (0.1.1) only
//! adds items. [`Domain`], [`Conductor`], [`Engine`] and the mailboxes are meant to stay as they are. The counters of [`Rounds`] and the
//! rule of [`Threads::Automatic`] may change. `docs/interfaces/clearway-engine.txt` lists all public items.
//!
//! # Features
//!
//! There are no cargo features.
//!
//! # Rounds
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
mod round_load;
mod run;
mod threads;

pub use mail::{BufferPool, Inlet, MailboxBuilder, Outlet, ReadyInlets};
pub use run::{
    Concluded, Conductor, Domain, DomainHorizon, Domains, Engine, Rounds, RunDecision, StopReason,
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
