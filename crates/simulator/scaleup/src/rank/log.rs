//! Times of the iterations of a rank.

use crate::Cycle;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Times of an iteration at one rank, or at all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationCycles {
    /// Cycle in which it began.
    pub begun: Cycle,
    /// Cycle in which the first operation was posted; `None` if none was.
    pub sending: Option<Cycle>,
    /// Cycle in which it was over; `None` if it was not.
    pub over: Option<Cycle>,
}

/// Log of the iterations of one rank. Its program writes it, and the owner of a copy reads it after the run.
#[derive(Debug, Clone, Default)]
pub struct IterationLog(Arc<Mutex<Vec<IterationCycles>>>);

impl IterationLog {
    fn times(&self) -> MutexGuard<'_, Vec<IterationCycles>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self, change: impl FnOnce(&mut IterationCycles)) {
        if let Some(last) = self.times().last_mut() {
            change(last);
        }
    }

    pub(super) fn begin(&self, now: Cycle) {
        self.times().push(IterationCycles {
            begun: now,
            sending: None,
            over: None,
        });
    }

    pub(super) fn send(&self, now: Cycle) {
        self.last(|times| {
            times.sending.get_or_insert(now);
        });
    }

    pub(super) fn end(&self, now: Cycle) {
        self.last(|times| times.over = Some(now));
    }

    /// Times of the iterations that have begun at any of the ranks with these logs: from the first beginning to the last end.
    pub fn merged(logs: &[Self]) -> Vec<IterationCycles> {
        let mut merged: Vec<IterationCycles> = Vec::new();
        for (rank, log) in logs.iter().enumerate() {
            let own = log.times();
            let common = merged.len().min(own.len());
            for (all, own) in merged.iter_mut().zip(own.iter()) {
                all.begun = all.begun.min(own.begun);
                all.sending = [all.sending, own.sending].into_iter().flatten().min();
                all.over = all.over.zip(own.over).map(|(a, b)| a.max(b));
            }
            // Some rank has not been in one of these.
            merged[common..].iter_mut().for_each(|all| all.over = None);
            merged.extend(own[common..].iter().map(|own| IterationCycles {
                over: own.over.filter(|_| rank == 0),
                ..*own
            }));
        }
        merged
    }
}
