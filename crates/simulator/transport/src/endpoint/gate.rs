//! Queue pairs that share rate and window, settled without a look at each of them.
//!
//! Where queue pairs share their controller's allowance ([`Scope::shares_allowance`]), one condition lets all of them send or none: room in
//! the window, and a departure by pacing that has come. A group keeps it as its *gate*. A queue pair that has something to send is a
//! candidate; it is sendable while the gate is open. A queue pair learns of the others' actions at its next call, so a call takes time that
//! does not depend on their number. A candidate waits for its first place in the round robin in the order of opening, and keeps it as long
//! as it is busy.
//!
//! Receiver credits and SLEEK let single queue pairs of a group send; groups with either are settled one by one.

use super::Endpoint;
use super::candidates::{GROUP, GROUP_TIMER};
use super::controllers::ControllerId;
use super::groups::{Group, GroupId};
use crate::congestion::scope::Scope;
use crate::congestion::telemetry::Telemetry;
use crate::congestion::{Allowance, CongestionControl};
use clearway_units::{Span, Time};

/// Order in which candidates take their first places in the round robin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// In the order of opening; the slot comes last, in a separate step.
    AllBut(u32),
    /// By slot, as departures come due.
    BySlot,
}

impl<T: Telemetry> Endpoint<T> {
    /// Tells the queue pair in the slot `index`, which is about to be called, of the actions of the others of its group.
    #[inline(always)]
    pub(super) fn catch_up(&mut self, index: u32) {
        if self.tells_late {
            self.tell(index);
        }
    }

    /// Tells the queue pair in a slot, which is about to send, of the others' actions. True if its group lets it send.
    #[inline(always)]
    pub(super) fn passes_gate(&mut self, index: u32) -> bool {
        !self.tells_late || self.passes_gate_of_group(index)
    }

    #[inline(never)]
    fn passes_gate_of_group(&mut self, index: u32) -> bool {
        self.tell(index);
        let group = self.slots[index as usize].group as usize;
        let groups = self.groups.as_ref();
        !self.gated || groups.is_none_or(|groups| groups.groups[group].gate.open)
    }

    /// Settles groups by a look at each queue pair, as groups without a gate are. To be called before a flow opens.
    #[cfg(test)]
    pub(super) fn settle_one_by_one(&mut self) {
        (self.gated, self.tells_late) = (false, false);
    }

    /// Allowance of all queue pairs of a group, true if there is room, and their next departure; `None` if each has its own or is told at
    /// once.
    pub(super) fn shared_allowance(&self, index: u32) -> Option<(Allowance, bool, Time)> {
        let groups = self.groups.as_ref().filter(|_| self.gated)?;
        let slot = &self.slots[index as usize];
        let group = &groups.groups[slot.group as usize];
        let (fits, departure) = self.gate_of(group, slot.controller);
        let allowance = self.controllers.get(slot.controller).allowance();
        Some((allowance, fits, departure))
    }

    /// True if there is room in the window of a group, and the next departure.
    fn gate_of(&self, group: &Group, controller: ControllerId) -> (bool, Time) {
        let allowance = self.controllers.get(controller).allowance();
        let mut pacer = group.pacer;
        pacer.set_rate(allowance.rate);
        let fits = self
            .rules
            .scheme
            .fits(group.total.in_flight, allowance.window);
        (fits, pacer.departure())
    }

    /// Takes the changes of a call of the queue pair in the slot `index`, and opens or closes the gate of its group.
    #[cold]
    #[inline(never)]
    pub(super) fn settle_gated(&mut self, now: Time, index: u32) {
        let Some(mut groups) = self.groups.take() else {
            return;
        };
        let scope = groups.scope();
        let slot = &mut self.slots[index as usize];
        let number = slot.group;
        let group = &mut groups.groups[number as usize];
        if let Some(sender) = &mut slot.sender {
            group.take(now, sender, &mut slot.busy, scope);
            if group.tells(self.controllers.lend(slot.controller), true) {
                self.settle_member(now, (index, index), group, scope);
            }
            self.update_group(now, (number, group), Entry::AllBut(index));
        }
        self.groups = Some(groups);
        self.update_candidate(now, index);
    }

    /// Sets timer, departure and gate of a group by its controller's present allowance.
    fn update_group(&mut self, now: Time, (number, group): (GroupId, &mut Group), entry: Entry) {
        let Some(id) = group.controller.as_ref().map(|controller| controller.id) else {
            return;
        };
        let waits_for_controller = match self.rules.scheme.idle_senders_keep_time() {
            true => group.gate.alive > 0,
            false => group.busy > 0,
        };
        let deadline = self.controllers.get(id).deadline();
        // A deadline that does not move must not keep the caller in a loop.
        let deadline = deadline.max(now + Span::from_ps(1));
        if waits_for_controller && deadline < group.gate.armed {
            group.gate.armed = deadline;
            self.timers.push(deadline, number | GROUP_TIMER);
        }
        let (fits, departure) = self.gate_of(group, id);
        self.set_gate(group, fits && departure <= now, entry);
        if fits && departure > now && group.gate.has_candidates() && departure < group.gate.departs
        {
            group.gate.departs = departure;
            self.departures.push(departure, number | GROUP);
        }
    }

    fn set_gate(&mut self, group: &mut Group, open: bool, entry: Entry) {
        let gate = &mut group.gate;
        if gate.open == open {
            return;
        }
        gate.open = open;
        for (queue, &count) in (0u8..).zip(&gate.candidates) {
            self.outbox.count_all_sendable(queue, count as usize, open);
        }
        if !open || gate.unqueued.is_empty() {
            return;
        }
        let mut waiting: Vec<(u32, u32)> = std::mem::take(&mut gate.unqueued).into_iter().collect();
        if entry == Entry::BySlot {
            waiting.sort_unstable_by_key(|&(_, slot)| slot);
        }
        for (order, index) in waiting {
            if entry == Entry::AllBut(index) {
                gate.unqueued.insert((order, index));
                continue;
            }
            let slot = &mut self.slots[index as usize];
            slot.queued = true;
            self.outbox.queue(slot.queue).round_robin.push_back(index);
        }
    }

    /// Makes the queue pair in the slot `index` a candidate, or no longer one.
    fn update_candidate(&mut self, now: Time, index: u32) {
        let Some(mut groups) = self.groups.take() else {
            return;
        };
        let slot = &mut self.slots[index as usize];
        let number = slot.group;
        let group = &mut groups.groups[number as usize];
        if let Some(sender) = &slot.sender {
            let waits = sender.waits(&self.rules);
            let gate = &mut group.gate;
            let is_new = waits && !slot.sendable;
            if waits != slot.sendable {
                slot.sendable = waits;
                gate.count(slot.queue, waits);
                if gate.open {
                    self.outbox.count_sendable(slot.queue, waits);
                }
            }
            match (waits, slot.queued) {
                (true, false) if gate.open => {
                    gate.unqueued.remove(&(slot.order, index));
                    slot.queued = true;
                    self.outbox.queue(slot.queue).round_robin.push_back(index);
                }
                (true, false) => drop(gate.unqueued.insert((slot.order, index))),
                (false, false) => drop(gate.unqueued.remove(&(slot.order, index))),
                (_, true) => {}
            }
            if is_new && !gate.open {
                self.update_group(now, (number, group), Entry::AllBut(index));
            }
        }
        self.groups = Some(groups);
    }

    /// Opens the gate of a group whose departure has come.
    pub(super) fn on_group_departure(&mut self, now: Time, time: Time, number: GroupId) {
        self.on_group(number, |endpoint, group| {
            if group.gate.departs == time {
                group.gate.departs = Time::NEVER;
                endpoint.update_group(now, (number, group), Entry::BySlot);
            }
        });
    }

    /// Runs the timer of a group's controller.
    pub(super) fn on_group_timer(&mut self, now: Time, time: Time, number: GroupId) {
        self.on_group(number, |endpoint, group| {
            if group.gate.armed != time {
                return;
            }
            group.gate.armed = Time::NEVER;
            let Some(id) = group.controller.as_ref().map(|controller| controller.id) else {
                return;
            };
            let controller = endpoint.controllers.lend(id);
            if group.gate.alive > 0 && controller.deadline() <= now {
                controller.on_deadline(now);
            }
            group.tells(controller, true);
            endpoint.update_group(now, (number, group), Entry::BySlot);
        });
    }

    fn on_group(&mut self, number: GroupId, act: impl FnOnce(&mut Self, &mut Group)) {
        if let Some(mut groups) = self.groups.take() {
            act(self, &mut groups.groups[number as usize]);
            self.groups = Some(groups);
        }
    }
}

impl Scope {
    /// True if the queue pairs of a group have one gate, under these rules for single ones.
    pub(super) const fn is_gated(self, has_credit: bool, has_sleek: bool) -> bool {
        self.shares_allowance() && !has_credit && !has_sleek
    }
}
