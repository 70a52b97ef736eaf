//! The loop over rounds.

use crate::barrier::{Barrier, Guard};
use crate::round_load::{Load, RoundLoad};
use crate::threads::{Growth, free_threads};
use crate::{ReadyInlets, Round, Threads};
use clearway_units::{Span, Time};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Next event and earliest message of a domain when its part of a round is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainHorizon {
    /// Time of the domain's own next event, messages already collected included; [`Time::NEVER`] if it only waits.
    pub next: Time,
    /// The earliest arrival among the messages it sent in this round; [`Time::NEVER`] if it sent none.
    pub sent: Time,
}

/// Part of the model that runs independently within a round.
pub trait Domain: Send {
    /// Report of the domain to the conductor. Reports are sorted, so that their order does not depend on threads.
    type Report: Send + Ord;
    /// Command of the conductor to the domain.
    type Command: Send;
    /// Buffers that a thread lends to each domain it runs. Their contents must not affect results.
    type Workbench: Default;

    /// Runs all events before `round.end()`. `incoming` names the inlets with new messages, which must all be collected now.
    /// Every message sent must arrive at or after `round.end()`.
    fn run(
        &mut self,
        round: &Round,
        incoming: &[u32],
        reports: &mut Vec<Self::Report>,
        bench: &mut Self::Workbench,
    ) -> DomainHorizon;

    /// Takes a command between two rounds; returns its next event. The command must not concern the past.
    fn accept(&mut self, command: Self::Command) -> Time;
}

/// Decision to go on or to stop after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunDecision {
    /// Go on.
    Continue,
    /// Stop here.
    Stop,
}

/// Reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// No event was left.
    Idle,
    /// The conductor said so.
    Stopped,
}

/// Rounds of a run and the work in them, counted as messages read and domains run.
///
/// The leading thread ran a round alone if it was the only thread, or if the rounds before carried too little work to share. Counts of
/// shared rounds are the same for any given number of threads above one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Number of rounds; stretches in which nothing happens have none.
    pub total: u64,
    /// Rounds that were open to all threads.
    pub shared: u64,
    /// Work in all rounds.
    pub work: u64,
    /// Work in rounds that were open to all threads.
    pub shared_work: u64,
}

impl Rounds {
    fn add(&mut self, is_shared: bool, work: u64) {
        self.total += 1;
        self.work += work;
        if is_shared {
            self.shared += 1;
            self.shared_work += work;
        }
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Concluded<D> {
    /// Reason why the run ended.
    pub ending: StopReason,
    /// The domains, in order.
    pub domains: Vec<D>,
    /// The rounds that it took.
    pub rounds: Rounds,
    /// Number of threads in the end.
    pub threads: usize,
}

/// Observer of the domains' reports, which may give commands, between rounds and on one thread.
pub trait Conductor<D: Domain> {
    /// Called before the next round is chosen; `next` is the first event that is left, [`Time::NEVER`] without events. Commands must take
    /// effect at or after the end of the last round. Returns the horizon: events at or after it are not run before the next call. The
    /// horizon is after the next event, commands included.
    fn plan_round(&mut self, next: Time, commands: &mut Vec<(usize, D::Command)>) -> Time {
        let _ = (next, commands);
        Time::NEVER
    }

    /// Called before each round; `start` is its first event, after stretches in which nothing happens. The domains may be
    /// looked at, as they are after the round before.
    fn before_round(&mut self, start: Time, domains: &Domains<'_, D>) -> RunDecision {
        let _ = (start, domains);
        RunDecision::Continue
    }

    /// Called after each round with the sorted reports of that round. Commands `(domain, command)` must take effect at or after
    /// `round.end()`.
    fn between_rounds(
        &mut self,
        round: &Round,
        reports: &mut Vec<D::Report>,
        commands: &mut Vec<(usize, D::Command)>,
    ) -> RunDecision;
}

/// All domains, while none of them runs.
#[derive(Debug)]
pub struct Domains<'a, D>(&'a [Slot<D>]);

impl<D> Domains<'_, D> {
    /// Shows each domain to `look`, in order. Its changes must not affect the later events of a domain.
    pub fn for_each(&self, mut look: impl FnMut(&mut D)) {
        for slot in self.0 {
            look(&mut lock(&slot.domain));
        }
    }
}

/// The domains, their mailrooms and the lookahead.
#[derive(Debug)]
pub struct Engine<D> {
    lookahead: Span,
    threads: Threads,
    shares_all: bool,
    slots: Vec<Slot<D>>,
}

#[derive(Debug)]
struct Slot<D> {
    domain: Mutex<D>,
    ready_inlets: Arc<ReadyInlets>,
    /// The domain's next event in picoseconds.
    next: AtomicU64,
}

/// State that all threads share in a round.
struct Shared<'a, D: Domain> {
    slots: &'a [Slot<D>],
    round: Mutex<Round>,
    /// The next domain that nobody has looked at in this round.
    cursor: AtomicUsize,
    /// Domains taken at a time; changes between rounds.
    chunk: AtomicUsize,
    /// The earliest arrival among the messages of this round.
    sent: AtomicU64,
    yields: Mutex<Yield<D::Report>>,
    barrier: Barrier,
}

/// Reports and load of the domains that ran, for the leader.
#[derive(Debug)]
struct Yield<R> {
    reports: Vec<R>,
    load: Load,
}

impl<R> Default for Yield<R> {
    fn default() -> Self {
        Self {
            reports: Vec::new(),
            load: Load::default(),
        }
    }
}

impl<D: Domain> Engine<D> {
    /// An engine over `domains`, each with its first event.
    ///
    /// # Panics
    /// If the lookahead is zero, or there is not one ready_inlets for each domain.
    pub fn new(
        lookahead: Span,
        threads: Threads,
        domains: Vec<(D, Time)>,
        mailrooms: Vec<Arc<ReadyInlets>>,
    ) -> Self {
        assert!(!lookahead.is_zero(), "rounds need a lookahead above zero");
        assert_eq!(
            domains.len(),
            mailrooms.len(),
            "one ready_inlets for each domain"
        );
        let slots = domains.into_iter().zip(mailrooms);
        Self {
            lookahead,
            threads,
            shares_all: false,
            slots: slots
                .map(|((domain, next), ready_inlets)| Slot {
                    domain: Mutex::new(domain),
                    ready_inlets,
                    next: AtomicU64::new(next.as_ps()),
                })
                .collect(),
        }
    }

    /// Shares every round among the threads, even one that carries too little to be worth it. For tests: results are the same.
    #[must_use]
    pub fn sharing_all_rounds(mut self) -> Self {
        self.shares_all = true;
        self
    }

    /// Runs until nothing is left to happen or the conductor stops it.
    pub fn run(self, conductor: &mut dyn Conductor<D>) -> Concluded<D> {
        let most = self.slots.len().clamp(1, Barrier::MOST_WORKERS);
        let mut growth = Growth::new(self.threads, most);
        let shared = Shared {
            slots: &self.slots,
            round: Mutex::new(Round {
                ordinal: 0,
                start: Time::ZERO,
                end: Time::ZERO,
            }),
            cursor: AtomicUsize::new(0),
            chunk: AtomicUsize::new(1),
            sent: AtomicU64::new(u64::MAX),
            yields: Mutex::default(),
            // Threads that are added later have processors.
            barrier: Barrier::new(growth.threads()),
        };
        shared.divide_among(growth.threads());
        let mut rounds = Rounds::default();
        let ending = std::thread::scope(|scope| {
            let add = |threads| {
                for _ in 0..threads {
                    scope.spawn(|| shared.work_until_over());
                }
            };
            add(growth.threads() - 1);
            let _guard = Guard(&shared.barrier);
            let mut leader = Leader {
                shared: &shared,
                lookahead: self.lookahead,
                sharing: growth.can_share().then(|| RoundLoad::new(self.shares_all)),
                growth: &mut growth,
                add: &add,
            };
            let ending = leader.lead(conductor, &mut rounds);
            shared.barrier.end();
            ending
        });
        Concluded {
            ending,
            domains: self.into_domains(),
            rounds,
            threads: growth.threads(),
        }
    }

    fn into_domains(self) -> Vec<D> {
        let domains = self.slots.into_iter().map(|slot| slot.domain.into_inner());
        domains
            .map(|domain| domain.unwrap_or_else(PoisonError::into_inner))
            .collect()
    }
}

/// The thread that chooses rounds and talks to the conductor.
struct Leader<'a, 'b, D: Domain> {
    shared: &'a Shared<'b, D>,
    lookahead: Span,
    /// Choice of the rounds that are worth sharing; `None` if there will never be anybody to share with.
    sharing: Option<RoundLoad>,
    growth: &'a mut Growth,
    /// Adds so many threads.
    add: &'a dyn Fn(usize),
}

impl<D: Domain> Leader<'_, '_, D> {
    fn lead(&mut self, conductor: &mut dyn Conductor<D>, rounds: &mut Rounds) -> StopReason {
        let shared = self.shared;
        let mut scratch = Scratch::<D>::default();
        let (mut reports, mut commands) = (Vec::new(), Vec::new());
        // The end of the last round, which may have been cut short.
        let mut past = Time::ZERO;
        for ordinal in 0.. {
            let horizon =
                conductor.plan_round(Time::from_ps(shared.earliest_event()), &mut commands);
            shared.give(&mut commands, past);
            let next = shared.earliest_event();
            if next == u64::MAX {
                return StopReason::Idle;
            }
            assert!(horizon.as_ps() > next, "a round has its first event");
            let domains = Domains(shared.slots);
            if conductor.before_round(Time::from_ps(next), &domains) == RunDecision::Stop {
                return StopReason::Stopped;
            }
            // Rounds lie on a grid of the lookahead. A round that the horizon cut short is continued from `past`.
            let start = next - next % self.lookahead.as_ps();
            let round = Round {
                ordinal,
                start: Time::from_ps(start).max(past),
                end: Time::from_ps(start.saturating_add(self.lookahead.as_ps())).min(horizon),
            };
            past = round.end;
            let is_shared = self.is_shared();
            if !shared.run(round, is_shared, &mut scratch) {
                return StopReason::Stopped; // A worker panicked; the scope passes its panic on.
            }
            let load = shared.collect(&mut reports);
            rounds.add(is_shared, load.total());
            self.on_round(load, rounds.work);
            // Threads append their reports in any order; sorted, they are the same for every number of threads.
            reports.sort_unstable();
            let verdict = conductor.between_rounds(&round, &mut reports, &mut commands);
            reports.clear();
            shared.give(&mut commands, past);
            if verdict == RunDecision::Stop {
                return StopReason::Stopped;
            }
        }
        unreachable!("fewer than 2^64 rounds")
    }

    /// True if the next round is to be shared among the threads.
    fn is_shared(&self) -> bool {
        self.growth.threads() > 1 && self.sharing.as_ref().is_some_and(RoundLoad::is_worthwhile)
    }

    /// Takes the load of a round into account, after which all rounds carried so much `work`.
    fn on_round(&mut self, load: Load, work: u64) {
        let Some(sharing) = &mut self.sharing else {
            return;
        };
        sharing.on_round(load);
        if sharing.is_worthwhile() {
            let more = self.growth.on_work(work, free_threads);
            if more > 0 {
                (self.add)(more);
                self.shared.divide_among(self.growth.threads());
            }
        }
    }
}

/// A thread's own buffers.
struct Scratch<D: Domain> {
    incoming: Vec<u32>,
    reports: Vec<D::Report>,
    load: Load,
    bench: D::Workbench,
}

impl<D: Domain> Default for Scratch<D> {
    fn default() -> Self {
        Self {
            incoming: Vec::new(),
            reports: Vec::new(),
            load: Load::default(),
            bench: D::Workbench::default(),
        }
    }
}

impl<D: Domain> Shared<'_, D> {
    /// Leader: divides the domains of a round among so many threads.
    fn divide_among(&self, threads: usize) {
        // Small enough to balance, large enough that threads seldom meet.
        let chunk = (self.slots.len() / (threads * 16)).max(1);
        self.chunk.store(chunk, Ordering::Relaxed);
    }

    fn earliest_event(&self) -> u64 {
        let nexts = self
            .slots
            .iter()
            .map(|slot| slot.next.load(Ordering::Relaxed));
        // A message of the last round is not yet in the `next` of its receiver: the earliest arrival counts too.
        nexts.fold(self.sent.load(Ordering::Relaxed), u64::min)
    }

    /// Leader: gives commands, which take effect at or after `past`.
    fn give(&self, commands: &mut Vec<(usize, D::Command)>, past: Time) {
        for (domain, command) in commands.drain(..) {
            let slot = &self.slots[domain];
            let next = lock(&slot.domain).accept(command);
            assert!(next >= past, "commands do not concern the past");
            slot.next.fetch_min(next.as_ps(), Ordering::Relaxed);
        }
    }

    /// Leader: runs a round, with the help of the workers if it `is_shared`. False if one of them panicked.
    fn run(&self, round: Round, is_shared: bool, scratch: &mut Scratch<D>) -> bool {
        *lock(&self.round) = round;
        self.cursor.store(0, Ordering::Relaxed);
        self.sent.store(u64::MAX, Ordering::Relaxed);
        if is_shared {
            self.barrier.open();
        }
        self.work(&round, scratch);
        !is_shared || self.barrier.close()
    }

    /// Leader: takes the reports and the load of the round that was run.
    fn collect(&self, reports: &mut Vec<D::Report>) -> Load {
        let mut yields = lock(&self.yields);
        std::mem::swap(reports, &mut yields.reports);
        std::mem::take(&mut yields.load)
    }

    fn work_until_over(&self) {
        let _guard = Guard(&self.barrier);
        let mut scratch = Scratch::<D>::default();
        let mut last = 0;
        while self.barrier.enter(&mut last) {
            let round = *lock(&self.round);
            self.work(&round, &mut scratch);
            self.barrier.leave();
        }
    }

    /// Runs domains of this round until all are taken.
    fn work(&self, round: &Round, scratch: &mut Scratch<D>) {
        let chunk = self.chunk.load(Ordering::Relaxed);
        loop {
            // Relaxed suffices: each chunk is handed out once in any case, and the barrier orders everything else.
            let first = self.cursor.fetch_add(chunk, Ordering::Relaxed);
            if first >= self.slots.len() {
                break;
            }
            let last = (first + chunk).min(self.slots.len());
            for slot in &self.slots[first..last] {
                self.run_if_due(slot, round, scratch);
            }
        }
        let load = std::mem::take(&mut scratch.load);
        if load != Load::default() {
            let mut yields = lock(&self.yields);
            yields.reports.append(&mut scratch.reports);
            yields.load.add(load);
        }
    }

    fn run_if_due(&self, slot: &Slot<D>, round: &Round, scratch: &mut Scratch<D>) {
        // Mail must be collected in this round even if no event is due: the next round writes this half of the mailbox.
        let due = slot.next.load(Ordering::Relaxed) < round.end.as_ps();
        if !due && !slot.ready_inlets.has_mail(round) {
            return;
        }
        let messages = slot.ready_inlets.take(round, &mut scratch.incoming);
        let Scratch {
            incoming,
            reports,
            load,
            bench,
        } = scratch;
        load.add_domain(messages);
        let outlook = lock(&slot.domain).run(round, incoming, reports, bench);
        assert!(
            outlook.next >= round.end && outlook.sent >= round.end,
            "a domain left something undone or sent a message too fast"
        );
        slot.next.store(outlook.next.as_ps(), Ordering::Relaxed);
        if !outlook.sent.is_never() {
            self.sent.fetch_min(outlook.sent.as_ps(), Ordering::Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
