//! Queue pairs of one enforcement scope: they have one controller, or divide what theirs allow.
//!
//! A group keeps the sums over its queue pairs. After each call of one of them the endpoint settles: it takes the new sums, and passes them
//! on to the others with the controller's new allowance, so that each of them is as ready to send as it should be. That takes time in
//! proportion to the queue pairs of the group, and none where each queue pair is alone.

use super::controllers::ControllerId;
use super::{Endpoint, Slot};
use crate::cc::{Allowance, CongestionControl, Controller, NetworkFacts};
use crate::flow::{Ends, Pacer};
use crate::profile::Opening;
use crate::scope::{Account, GroupKey, Others, Scope, ScopeParameters};
use crate::telemetry::Telemetry;
use clearway_units::{Bytes, Purpose, RandomStream, Time};
use rustc_hash::FxHashMap;

/// Number of a group in its endpoint.
pub(super) type GroupId = u32;

/// The groups of an endpoint.
pub(super) struct Groups {
    parameters: ScopeParameters,
    by_key: FxHashMap<GroupKey, GroupId>,
    groups: Vec<Group>,
}

/// A shared controller, and what it takes to make it anew.
struct Governor {
    id: ControllerId,
    variant: u16,
    network: NetworkFacts,
    /// Number of its random stream.
    entity: u64,
}

/// The queue pairs of one scope.
struct Group {
    /// The controller of all; none if each has its own.
    governor: Option<Governor>,
    /// Slots of the queue pairs, in the order of their opening.
    members: Vec<u32>,
    /// Sums over all queue pairs, closed ones included.
    total: Account,
    /// Pacing of all, where they share it.
    pacer: Pacer,
    /// What the queue pairs were last told.
    told: Option<(Account, Pacer, Allowance, Time)>,
    /// Number of queue pairs that have something to send or to be acknowledged.
    busy: usize,
    /// The last time at which one of them did something.
    last: Time,
}

impl Group {
    fn new(governor: Option<Governor>) -> Self {
        Self {
            governor,
            members: Vec::new(),
            total: Account::default(),
            pacer: Pacer::default(),
            told: None,
            busy: 0,
            last: Time::ZERO,
        }
    }

    /// The part of a queue pair in what its own controller allows.
    fn share(&self) -> f64 {
        1.0 / self.busy.max(1) as f64
    }

    /// What a sender with the account `own` knows of the others.
    fn others(&self, own: Account, scope: Scope) -> Others {
        if !scope.shares_controller() {
            return Others {
                share: self.share(),
                ..Others::NONE
            };
        }
        let account = self.total.without(own);
        let shares = scope.shares_allowance();
        Others {
            account,
            in_window: if shares { account.in_flight } else { 0 },
            share: 1.0,
        }
    }

    /// Takes the sums as the queue pair in `slot` has left them. Returns true if the number of busy queue pairs has changed.
    fn take(&mut self, now: Time, slot: &mut Slot, scope: Scope) -> bool {
        let Some(sender) = &mut slot.sender else {
            return false;
        };
        let (own, busy) = (sender.account(), sender.is_busy());
        let shared = sender.shared();
        if scope.shares_controller() {
            self.total = shared.others.account.with(own);
        }
        self.pacer = *shared.pacer;
        self.last = now;
        let changed = busy != slot.busy;
        if changed {
            slot.busy = busy;
            self.busy = self.busy + usize::from(busy) - usize::from(!busy);
        }
        changed
    }
}

impl Groups {
    /// Creates the groups of an endpoint; `None` if each queue pair is alone.
    pub(super) fn new(parameters: &ScopeParameters) -> Option<Box<Self>> {
        (parameters.scope != Scope::QueuePair).then(|| {
            Box::new(Self {
                parameters: parameters.clone(),
                by_key: FxHashMap::default(),
                groups: Vec::new(),
            })
        })
    }

    fn scope(&self) -> Scope {
        self.parameters.scope
    }

    /// The group with a key; creates it with `governor` if there is none.
    fn find(&mut self, key: GroupKey, governor: impl FnOnce() -> Option<Governor>) -> GroupId {
        *self.by_key.entry(key).or_insert_with(|| {
            self.groups.push(Group::new(governor()));
            self.groups.len() as GroupId - 1
        })
    }
}

impl<T: Telemetry> Endpoint<T> {
    /// Creates the controller of a queue pair, or of a group of which it is the first.
    fn build_controller(&self, variant: u16, network: &NetworkFacts, entity: u64) -> Controller {
        let mut controller = self.profile.controller_of(variant).build(network);
        controller.take_random(RandomStream::new(self.seed, Purpose::Controller, entity));
        controller
    }

    /// Finds the controller of a queue pair that opens in the slot `index`. `phase` is what the queue pair sends in one phase.
    pub(super) fn join(
        &mut self,
        index: u32,
        ends: &Ends,
        opening: &Opening,
        phase: Bytes,
    ) -> ControllerId {
        let (variant, entity) = (opening.variant, ends.entity());
        let own_path = self.profile.network.on_path(opening.path);
        let mut groups = self.groups.take();
        let mut governor = None;
        if let Some(groups) = &mut groups {
            let scope = groups.scope();
            let key = scope.group_of(ends.peer, ends.class, variant);
            let key = key.expect("queue pairs with groups are not alone");
            let network = match scope {
                Scope::ServiceLevel => self.profile.network,
                _ => own_path,
            };
            let group = groups.find(key, || {
                scope.shares_controller().then(|| Governor {
                    id: {
                        let shared = self.build_controller(variant, &network, entity);
                        self.controllers.add(shared)
                    },
                    variant,
                    network,
                    entity,
                })
            });
            let slot = &mut self.slots[index as usize];
            (slot.group, slot.busy) = (group, false);
            let group = &mut groups.groups[group as usize];
            group.members.push(index);
            governor = group.governor.as_ref().map(|governor| governor.id);
        }
        self.groups = groups;
        governor.unwrap_or_else(|| {
            let mut own = self.build_controller(variant, &own_path, entity);
            if phase > Bytes::ZERO {
                own.take_phase(phase);
            }
            self.controllers.add(own)
        })
    }

    /// Tells a queue pair that has just opened what the others of its group do.
    pub(super) fn welcome(&mut self, index: u32) {
        let Some(groups) = &self.groups else {
            return;
        };
        let slot = &mut self.slots[index as usize];
        let (group, scope) = (&groups.groups[slot.group as usize], groups.scope());
        if let Some(sender) = &mut slot.sender {
            let others = group.others(sender.account(), scope);
            let shared = sender.shared();
            *shared.others = others;
            if scope.shares_allowance() {
                *shared.pacer = group.pacer;
            }
            sender.take_allowance(self.controllers.lend(slot.controller), &self.rules);
        }
    }

    /// Takes a queue pair that is done out of its group. A shared controller stays.
    pub(super) fn leave(&mut self, index: u32) {
        let slot = &self.slots[index as usize];
        let Some(groups) = &mut self.groups else {
            return self.controllers.remove(slot.controller);
        };
        let group = &mut groups.groups[slot.group as usize];
        group.members.retain(|member| *member != index);
        if group.governor.is_none() {
            self.controllers.remove(slot.controller);
        }
    }

    /// Makes a shared controller anew whose group has been idle for too long. To be called before a queue pair gets something to send.
    pub(super) fn forget_idle(&mut self, now: Time, index: u32) {
        let Some(groups) = &self.groups else {
            return;
        };
        let group = &groups.groups[self.slots[index as usize].group as usize];
        let (Some(idle), Some(governor)) = (groups.parameters.idle, &group.governor) else {
            return;
        };
        if group.busy > 0 || now.since(group.last) <= idle {
            return;
        }
        let id = governor.id;
        let anew = self.build_controller(governor.variant, &governor.network, governor.entity);
        *self.controllers.lend(id) = anew;
    }

    /// Passes on to its group what a call of the queue pair in the slot `index` has changed.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self, now: Time, index: u32) {
        let Some(mut groups) = self.groups.take() else {
            return;
        };
        let scope = groups.scope();
        let slot = &mut self.slots[index as usize];
        let group = &mut groups.groups[slot.group as usize];
        let changed = group.take(now, slot, scope);
        match &group.governor {
            None if !changed => {}
            None => self.settle_members(now, index, group, scope),
            Some(governor) => {
                let controller = self.controllers.lend(governor.id);
                let told = (
                    group.total,
                    group.pacer,
                    controller.allowance(),
                    controller.deadline(),
                );
                if group.told.replace(told) != Some(told) {
                    self.settle_members(now, index, group, scope);
                }
            }
        }
        self.groups = Some(groups);
    }

    fn settle_members(&mut self, now: Time, index: u32, group: &Group, scope: Scope) {
        for &member in &group.members {
            let slot = &mut self.slots[member as usize];
            let Some(sender) = &mut slot.sender else {
                continue;
            };
            let others = group.others(sender.account(), scope);
            let shared = sender.shared();
            *shared.others = others;
            if scope.shares_allowance() {
                *shared.pacer = group.pacer;
            }
            let controller = self.controllers.lend(slot.controller);
            sender.take_allowance(controller, &self.rules);
            let deadline = sender.deadline(controller);
            if deadline < slot.armed {
                slot.armed = deadline;
                self.timers.push(deadline, member);
            }
            if member != index {
                self.update_readiness(now, member);
            }
        }
    }
}

#[cfg(test)]
mod tests;
