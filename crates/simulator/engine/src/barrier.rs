//! Start and end of rounds that several threads run together.
//!
//! Workers may enter a round while it is open, and the leader waits for those who have. One that comes late, because the system let
//! something else run, misses the round and costs nothing: the others, or the leader alone, have done its part. A waiting thread spins for
//! some microseconds and then parks, so that long waits take no processor time.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Polls before a thread parks. They take 10 to 50 us on most processors, about as long as waking a thread up.
const SPINS: u32 = 1_000;

/// Bits of the state that count the workers inside a round.
const INSIDE: u64 = (1 << 16) - 1;
/// Bit of the state that is set while a round may be entered.
const OPEN: u64 = 1 << 16;
/// Unit of the number of the round, in the bits above.
const ROUND: u64 = 1 << 17;

/// Barrier of one leader and its workers.
#[derive(Debug)]
pub(crate) struct Barrier {
    /// Number of the round, whether it may be entered, and how many workers are inside.
    state: AtomicU64,
    over: AtomicBool,
    broken: AtomicBool,
    workers: Waiters,
    leader: Waiters,
    spins: u32,
}

impl Barrier {
    /// Largest number of workers that the state can count.
    pub(crate) const MOST_WORKERS: usize = INSIDE as usize;

    /// Barrier for `threads` in all. Threads do not spin if the machine has fewer processors: spinning would hold up the threads that work.
    pub(crate) fn new(threads: usize) -> Self {
        // The system reads several files for this number, and a single thread does not need it.
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let has_processors = threads == 1 || threads <= processors();
        Self {
            state: AtomicU64::new(0),
            over: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            workers: Waiters::default(),
            leader: Waiters::default(),
            spins: if has_processors { SPINS } else { 0 },
        }
    }

    /// Leader: opens the next round.
    pub(crate) fn open(&self) {
        let last = self.state.load(Ordering::Relaxed);
        debug_assert_eq!(last & (OPEN | INSIDE), 0, "the last round is closed");
        // Every worker that enters sees the leader's earlier writes.
        self.state.store((last + ROUND) | OPEN, Ordering::SeqCst);
        self.workers.wake();
    }

    /// Leader: lets nobody else in and waits until all who entered have left. False if one of them panicked.
    pub(crate) fn close(&self) -> bool {
        self.state.fetch_and(!OPEN, Ordering::SeqCst);
        self.leader.wait_until(self.spins, || {
            self.state.load(Ordering::SeqCst) & INSIDE == 0 || self.is_broken()
        });
        !self.is_broken()
    }

    /// Leader: ends all workers' loops.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.workers.wake();
    }

    /// Worker: waits for a round other than `last`, which it was in before, and enters it. False when the rounds are over.
    pub(crate) fn enter(&self, last: &mut u64) -> bool {
        let is_new = |state: u64| state & OPEN != 0 && state / ROUND != *last;
        loop {
            self.workers.wait_until(self.spins, || {
                is_new(self.state.load(Ordering::SeqCst)) || self.is_over()
            });
            if self.is_over() {
                return false;
            }
            let state = self.state.load(Ordering::SeqCst);
            let entered = is_new(state)
                && self
                    .state
                    .compare_exchange(state, state + 1, Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok();
            if entered {
                *last = state / ROUND;
                return true;
            }
        }
    }

    /// Worker: leaves the round that it entered; its part is done.
    pub(crate) fn leave(&self) {
        let state = self.state.fetch_sub(1, Ordering::SeqCst) - 1;
        // Only the last worker that leaves a closed round wakes the leader: before `close` the leader does its own part.
        if state & (OPEN | INSIDE) == 0 {
            self.leader.wake();
        }
    }

    /// Says that a thread panicked, so that nobody waits for it.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.workers.wake();
        self.leader.wake();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst) || self.is_broken()
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }
}

/// Threads that wait for a condition, first spinning, then parked.
///
/// The thread that fulfils the condition writes that and then reads `parked`. A thread that parks raises `parked` and then reads the
/// condition. All four accesses are sequentially consistent, so one of the two threads sees the other.
#[derive(Debug, Default)]
struct Waiters {
    parked: AtomicUsize,
    lock: Mutex<()>,
    signal: Condvar,
}

impl Waiters {
    fn wait_until(&self, spins: u32, fulfilled: impl Fn() -> bool) {
        for _ in 0..spins {
            if fulfilled() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.parked.fetch_add(1, Ordering::SeqCst);
        while !fulfilled() {
            guard = self
                .signal
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.parked.load(Ordering::SeqCst) > 0 {
            // A thread that has raised `parked` holds the lock until it waits for the signal.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.signal.notify_all();
        }
    }
}

/// Breakdown of the barrier if dropped while the thread panics.
pub(crate) struct Guard<'a>(pub(crate) &'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_down();
        }
    }
}

#[cfg(test)]
mod tests;
