//! How the leader and its workers keep step.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Spins before the thread lets others run: rounds are short, so the others are usually nearly there.
const SPINS: u32 = 2_000;

/// A start signal from one leader and a finish line for all workers.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    /// Raised by one for every round.
    started: AtomicU64,
    finished: AtomicUsize,
    closed: AtomicBool,
    broken: AtomicBool,
}

impl Barrier {
    /// Leader: starts the next round.
    pub(crate) fn start(&self) {
        self.finished.store(0, Ordering::Relaxed);
        self.started.fetch_add(1, Ordering::Release);
    }

    /// Leader: ends all workers' loops.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.started.fetch_add(1, Ordering::Release);
    }

    /// Leader: waits until `workers` have finished. False if one of them panicked.
    pub(crate) fn wait_for_finish(&self, workers: usize) -> bool {
        wait_until(|| self.finished.load(Ordering::Acquire) == workers || self.is_broken());
        !self.is_broken()
    }

    /// Worker: waits for the start after round `seen`. False when there is none.
    pub(crate) fn wait_for_start(&self, seen: &mut u64) -> bool {
        wait_until(|| self.started.load(Ordering::Acquire) != *seen || self.is_broken());
        *seen += 1;
        !self.closed.load(Ordering::Relaxed) && !self.is_broken()
    }

    /// Worker: reports that its part of the round is done.
    pub(crate) fn finish(&self) {
        self.finished.fetch_add(1, Ordering::Release);
    }

    /// Says that a thread panicked, so that nobody waits for it.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::Release);
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

fn wait_until(done: impl Fn() -> bool) {
    let mut spins = 0;
    while !done() {
        spins += 1;
        if spins < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Breaks the barrier if dropped while the thread panics.
pub(crate) struct Guard<'a>(pub(crate) &'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_down();
        }
    }
}
