//! Matching of a GPU's collective operations with operations of the other members of their groups (§6.2.2).
//!
//! For each other member there are, of each class of flits: *unmatched*, own flits without a match less the member's flits without a match,
//! and *outstanding*, minus the member's flits that arrived within the latest round trip. *Local Ops* counts own flits under way. Flits
//! that have left the network cannot match (figures 6.6 and 6.7):
//! ```text
//! outstanding <= unmatched <= Local Ops
//! ```

use super::super::{InjectionFacts, Remote};
use crate::{Cycle, FlitSizes, GroupId, OperationKind, PacketClass};
use std::collections::VecDeque;

/// Flits of both classes.
type Flits = [i64; 2];

/// Arrays of all groups of a GPU, and the *Remote Op Queue*.
#[derive(Debug, Clone)]
pub(super) struct Matching {
    sizes: FlitSizes,
    /// By ascending group.
    groups: Vec<GroupArrays>,
    /// By ascending arrival.
    arrivals: VecDeque<Arrival>,
}

#[derive(Debug, Clone)]
pub(super) struct GroupArrays {
    group: GroupId,
    own: u32,
    local_ops: Flits,
    /// By rank; the own entry stays zero.
    members: Vec<Member>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Member {
    unmatched: Flits,
    outstanding: Flits,
}

/// Remote operation that counts as outstanding.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: Cycle,
    group: u32,
    initiator: u32,
    kind: OperationKind,
}

impl Matching {
    pub(super) fn new(facts: &InjectionFacts<'_>) -> Self {
        let arrays = facts.memberships.iter().map(|membership| GroupArrays {
            group: membership.group,
            own: membership.rank,
            local_ops: [0; 2],
            members: vec![Member::default(); membership.members as usize],
        });
        Self {
            sizes: facts.sizes,
            groups: arrays.collect(),
            arrivals: VecDeque::new(),
        }
    }

    /// Matches an own operation with operations that others have sent; returns the sum of matched flits. An operation to a group without
    /// this GPU matches nothing.
    pub(super) fn on_sent(&mut self, group: GroupId, kind: OperationKind) -> [u64; 2] {
        let flits = flits(self.sizes, kind);
        let Some(index) = self.find(group) else {
            return [0; 2];
        };
        let arrays = &mut self.groups[index];
        let mut matched = [0; 2];
        for (rank, member) in arrays.members.iter_mut().enumerate() {
            if rank == arrays.own as usize {
                continue;
            }
            for (class, &flits) in flits.iter().enumerate() {
                let unmatched = &mut member.unmatched[class];
                // A negative count is flits of the member that wait for a match.
                matched[class] += (-*unmatched).clamp(0, flits) as u64;
                *unmatched += flits;
            }
        }
        for (local_ops, flits) in arrays.local_ops.iter_mut().zip(flits) {
            *local_ops += flits;
        }
        matched
    }

    /// Matches another member's operation with own ones; the matched flits.
    pub(super) fn on_remote(&mut self, remote: &Remote) -> [u64; 2] {
        let flits = flits(self.sizes, remote.kind);
        let Some(index) = self.find(remote.group) else {
            return [0; 2];
        };
        let arrays = &mut self.groups[index];
        debug_assert_ne!(remote.initiator, arrays.own, "not a remote operation");
        let member = &mut arrays.members[remote.initiator as usize];
        let mut matched = [0; 2];
        for (class, &flits) in flits.iter().enumerate() {
            matched[class] = member.unmatched[class].clamp(0, flits) as u64;
            member.unmatched[class] -= flits;
            member.outstanding[class] -= flits;
        }
        self.arrivals.push_back(Arrival {
            at: remote.now,
            group: index as u32,
            initiator: remote.initiator,
            kind: remote.kind,
        });
        matched
    }

    /// Takes an own operation off *Local Ops*, which bounds *unmatched* from above (figure 6.6).
    pub(super) fn on_completed(&mut self, group: GroupId, kind: OperationKind) {
        let flits = flits(self.sizes, kind);
        let Some(index) = self.find(group) else {
            return;
        };
        let arrays = &mut self.groups[index];
        for (class, &flits) in flits.iter().enumerate() {
            let local_ops = &mut arrays.local_ops[class];
            *local_ops = (*local_ops - flits).max(0);
            for member in &mut arrays.members {
                member.unmatched[class] = member.unmatched[class].min(*local_ops);
            }
        }
    }

    /// Takes remote operations that arrived at least `stay` cycles ago off *outstanding*, which bounds *unmatched* from below (figure 6.7).
    pub(super) fn expire(&mut self, now: Cycle, stay: Cycle) {
        while let Some(arrival) = self.arrivals.front() {
            if now < arrival.at.saturating_add(stay) {
                return;
            }
            let flits = flits(self.sizes, arrival.kind);
            let arrays = &mut self.groups[arrival.group as usize];
            let member = &mut arrays.members[arrival.initiator as usize];
            for (class, &flits) in flits.iter().enumerate() {
                member.outstanding[class] += flits;
                member.unmatched[class] = member.unmatched[class].max(member.outstanding[class]);
            }
            self.arrivals.pop_front();
        }
    }

    fn find(&self, group: GroupId) -> Option<usize> {
        self.groups
            .binary_search_by_key(&group, |arrays| arrays.group)
            .ok()
    }
}

/// Flits of the request and of the response of an operation.
fn flits(sizes: FlitSizes, kind: OperationKind) -> Flits {
    [PacketClass::Request, PacketClass::Response].map(|class| sizes.flits(kind, class).into())
}

#[cfg(test)]
mod tests;
