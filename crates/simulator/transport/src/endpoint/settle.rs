//! Queue pairs that join, leave and settle with the group of their enforcement scope.

use super::Endpoint;
use super::controllers::ControllerId;
use super::groups::{Group, SharedController};
use crate::congestion::scope::Scope;
use crate::congestion::telemetry::Telemetry;
use crate::congestion::{CongestionControl, Controller, NetworkFacts};
use crate::endpoint::flow::SenderIdentity;
use crate::profile::Opening;
use clearway_units::{Bytes, Purpose, RandomStream, Span, Time};

impl<T: Telemetry> Endpoint<T> {
    /// Creates the controller of a queue pair, or of a group of which it is the first.
    fn build_controller(&self, variant: u16, network: &NetworkFacts, entity: u64) -> Controller {
        let mut controller = self.profile.controller_of(variant).build(network);
        controller.take_random(RandomStream::new(self.seed, Purpose::Controller, entity));
        controller
    }

    /// Finds the controller of a queue pair that opens in the slot `index`. `phase` is the payload that the queue pair sends in one phase.
    pub(super) fn join(
        &mut self,
        index: u32,
        ends: &SenderIdentity,
        opening: &Opening,
        phase: Bytes,
    ) -> ControllerId {
        let (variant, entity) = (opening.variant, ends.entity());
        let own_path = self.profile.network.on_path(opening.path);
        let mut groups = self.groups.take();
        let mut controller = None;
        if let Some(groups) = &mut groups {
            let scope = groups.scope();
            let key = scope.group_of(ends.peer, ends.class, variant);
            let key = key.expect("queue pairs with groups are not alone");
            let network = match scope {
                Scope::ServiceLevel => self.profile.network,
                _ => own_path,
            };
            let group = groups.find(key, || {
                scope.shares_controller().then(|| SharedController {
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
            match self.gated {
                true => slot.order = group.gate.open(),
                false => group.members.push(index),
            }
            controller = group.controller.as_ref().map(|controller| controller.id);
        }
        self.groups = groups;
        controller.unwrap_or_else(|| {
            let mut own = self.build_controller(variant, &own_path, entity);
            if phase > Bytes::ZERO {
                own.take_phase(phase);
            }
            self.controllers.add(own)
        })
    }

    /// Tells a queue pair of the others of its group: one that has just opened, or one that is called next.
    pub(super) fn tell(&mut self, index: u32) {
        let Some(groups) = &self.groups else {
            return;
        };
        let slot = &mut self.slots[index as usize];
        let (group, scope) = (&groups.groups[slot.group as usize], groups.scope());
        if let Some(sender) = &mut slot.sender {
            let controller = self.controllers.lend(slot.controller);
            group.tell(sender, scope, controller, &self.rules);
        }
    }

    /// Takes a queue pair that is done out of its group. A shared controller stays.
    pub(super) fn leave(&mut self, index: u32) {
        let slot = &self.slots[index as usize];
        let Some(groups) = &mut self.groups else {
            return self.controllers.remove(slot.controller);
        };
        let group = &mut groups.groups[slot.group as usize];
        match self.gated {
            true => group.gate.close(),
            false => group.members.retain(|member| *member != index),
        }
        if group.controller.is_none() {
            self.controllers.remove(slot.controller);
        }
    }

    /// Makes a shared controller anew whose group has been idle for too long. To be called before a queue pair gets something to send.
    pub(super) fn forget_idle(&mut self, now: Time, index: u32) {
        let Some(groups) = &self.groups else {
            return;
        };
        let group = &groups.groups[self.slots[index as usize].group as usize];
        let (Some(idle), Some(controller)) = (groups.parameters.idle, &group.controller) else {
            return;
        };
        if group.busy > 0 || now.since(group.last) <= idle {
            return;
        }
        let id = controller.id;
        let anew =
            self.build_controller(controller.variant, &controller.network, controller.entity);
        *self.controllers.lend(id) = anew;
    }

    /// Passes the changes of a call of the queue pair in the slot `index` on to its group.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self, now: Time, index: u32) {
        let Some(mut groups) = self.groups.take() else {
            return;
        };
        let scope = groups.scope();
        let slot = &mut self.slots[index as usize];
        let group = &mut groups.groups[slot.group as usize];
        let sender = slot.sender.as_mut();
        let changed = sender.is_some_and(|sender| group.take(now, sender, &mut slot.busy, scope));
        match group.controller.as_ref().map(|controller| controller.id) {
            None if !changed => {}
            None if group.tells_busy() => self.settle_members(now, index, group, scope),
            None => self.settle_member(now, (index, index), group, scope),
            Some(id) => {
                let controller = self.controllers.lend(id);
                if group.tells(controller, !self.tells_late) {
                    self.settle_members(now, index, group, scope);
                } else if self.tells_late {
                    // It may be the first that waits for the controller's timer.
                    self.settle_member(now, (index, index), group, scope);
                }
            }
        }
        self.groups = Some(groups);
    }

    fn settle_members(&mut self, now: Time, index: u32, group: &Group, scope: Scope) {
        for &member in &group.members {
            self.settle_member(now, (member, index), group, scope);
        }
    }

    /// Tells a member of the changes of a call of the queue pair in the slot `index`.
    pub(super) fn settle_member(
        &mut self,
        now: Time,
        (member, index): (u32, u32),
        group: &Group,
        scope: Scope,
    ) {
        let slot = &mut self.slots[member as usize];
        let Some(sender) = &mut slot.sender else {
            return;
        };
        let controller = self.controllers.lend(slot.controller);
        group.tell(sender, scope, controller, &self.rules);
        // A deadline that does not move must not keep the caller in a loop.
        let deadline = sender
            .deadline(controller, &self.rules)
            .max(now + Span::from_ps(1));
        if deadline < slot.armed {
            slot.armed = deadline;
            self.timers.push(deadline, member);
        }
        if member != index {
            self.update_readiness(now, member);
        }
    }
}
