//! Checks of what is remembered.
//!
//! Controllers may settle over many calls, so that what a call took no longer holds. The calls of a family are therefore simulated again
//! after some time: a few of each kind, one after another. The first of them finds connections that lack the packets of the call before it;
//! the others are compared with what is remembered.

use super::kinds::KindId;
use std::collections::BTreeMap;

/// Calls of each kind that a check compares.
const COMPARED: u32 = 2;
/// Most calls of each kind in a check.
const CALLS: u32 = 6;
/// The first check of a family is when its kinds have had so many times the calls that they had when the first one was remembered.
const FIRST_GROWTH: u64 = 4;
/// The same for later checks and the one before each.
const GROWTH: u64 = 16;

/// Part that a simulated call has in a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// None: it is simulated for another reason.
    Outside,
    /// It is verified with the next call of its kind.
    Verified,
    /// It is part of a check, and follows a remembered call.
    First,
    /// It is part of a check, and follows a simulated call: it is compared with what is remembered.
    Compared,
}

/// Calls of a kind that are still to be simulated.
#[derive(Debug, Clone, Copy)]
struct Due {
    compared: u32,
    calls: u32,
    is_first: bool,
}

/// Checks that are due.
#[derive(Debug, Default)]
pub(super) struct Checks {
    due: BTreeMap<KindId, Due>,
    /// By family: the number of calls of a kind at which the next check begins.
    next: BTreeMap<u32, u64>,
}

impl Checks {
    /// The part of the next call of a kind in a check; `None` if no check is due.
    pub(super) fn role(&self, kind: KindId) -> Option<Role> {
        Some(match self.due.get(&kind)?.is_first {
            true => Role::First,
            false => Role::Compared,
        })
    }

    /// A call of this kind has begun in a check.
    pub(super) fn begin(&mut self, kind: KindId) {
        if let Some(due) = self.due.get_mut(&kind) {
            due.calls -= 1;
            due.is_first = false;
            if due.calls == 0 {
                self.due.remove(&kind);
            }
        }
    }

    /// A call of this kind was compared.
    pub(super) fn note_compared(&mut self, kind: KindId) {
        if let Some(due) = self.due.get_mut(&kind) {
            due.compared = due.compared.saturating_sub(1);
            if due.compared == 0 {
                self.due.remove(&kind);
            }
        }
    }

    /// A call that is to be verified begins: the next one of its kind is compared.
    pub(super) fn verify(&mut self, kind: KindId) {
        self.due.entry(kind).or_insert(Due {
            compared: 1,
            calls: 1,
            is_first: false,
        });
    }

    /// A remembered call has begun, the call number `begun` of its kind. A check of the family with these kinds may become due.
    pub(super) fn note_remembered(
        &mut self,
        family: u32,
        begun: u64,
        kinds: impl Iterator<Item = KindId>,
    ) {
        let next = self.next.entry(family).or_insert(begun * FIRST_GROWTH);
        if begun >= *next {
            *next = begun * GROWTH;
            let due = Due {
                compared: COMPARED,
                calls: CALLS,
                is_first: true,
            };
            self.due.extend(kinds.map(|kind| (kind, due)));
        }
    }

    /// What was remembered of a family no longer held: it is looked at sooner.
    pub(super) fn restart(&mut self, family: u32) {
        self.next.remove(&family);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_become_rarer() {
        let mut checks = Checks::default();
        let mut simulated = Vec::new();
        for begun in 3..4000 {
            match checks.role(7) {
                Some(role) => {
                    checks.begin(7);
                    simulated.push((begun, role));
                    if role == Role::Compared {
                        checks.note_compared(7);
                    }
                }
                None => checks.note_remembered(0, begun, [7].into_iter()),
            }
        }
        let firsts = simulated.iter().filter(|(_, role)| *role == Role::First);
        let firsts: Vec<u64> = firsts.map(|(begun, _)| *begun).collect();
        assert_eq!(firsts, [13, 193, 3073]);
        assert_eq!(simulated.len(), 9);
        assert_eq!(simulated[1], (14, Role::Compared));
    }

    #[test]
    fn a_call_is_verified_after_one_with_packets() {
        let mut checks = Checks::default();
        assert_eq!(checks.role(3), None);
        checks.verify(3);
        assert_eq!(checks.role(3), Some(Role::Compared));
        checks.begin(3);
        assert_eq!(checks.role(3), None);
    }
}
