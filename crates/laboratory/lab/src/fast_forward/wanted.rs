//! Kinds of calls for which samples are wanted: kinds that overlap them are simulated for a while.

use super::kinds::KindId;
use clearway_units::{Span, Time};
use std::collections::BTreeMap;

/// Calls of a wanted kind for which the kinds that overlap it are simulated.
const CALLS: u32 = 4;
/// A kind is wanted no longer if none of its calls is over for so many times as long as the last one took.
const SPANS: u64 = 8;

/// Wanted kinds, with the number of calls, and the time, for which kinds that overlap them are simulated.
#[derive(Debug, Default)]
pub(super) struct Wanted(BTreeMap<KindId, (u32, Time)>);

impl Wanted {
    pub(super) fn kinds(&self) -> impl Iterator<Item = KindId> {
        self.0.keys().copied()
    }

    /// Keeps kinds whose time is not over at `now`.
    pub(super) fn expire(&mut self, now: Time) {
        self.0.retain(|_, (_, until)| *until > now);
    }

    /// Forgets the kinds that are `known` now.
    pub(super) fn forget(&mut self, known: impl Fn(KindId) -> bool) {
        self.0.retain(|kind, _| !known(*kind));
    }

    /// A simulated call of this kind is over at `now`; it took `span`, and lacks samples or not.
    pub(super) fn note(
        &mut self,
        (kind, is_last): (KindId, bool),
        lacks_samples: bool,
        (now, span): (Time, Span),
    ) {
        let until = now + span * SPANS;
        match self.0.get(&kind) {
            Some(&(left @ 2.., _)) if !is_last => {
                self.0.insert(kind, (left - 1, until));
            }
            None if lacks_samples && !is_last => {
                self.0.insert(kind, (CALLS, until));
            }
            _ => {
                self.0.remove(&kind);
            }
        }
    }
}
