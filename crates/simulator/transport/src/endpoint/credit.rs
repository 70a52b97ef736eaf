//! Receiver credits in the course of an endpoint: packets pay, answers and pulls grant, timers ask.

use super::Endpoint;
use super::credit_control::{CreditTimer, PACER, WAITING};
use super::key::Key;
use super::reliability_scheme::Sender;
use crate::congestion::credit::Demand;
use crate::congestion::telemetry::Telemetry;
use crate::endpoint::flow::answer;
use crate::packet::{DataFlags, Header, Packet};
use clearway_units::Time;

impl<T: Telemetry> Endpoint<T> {
    /// True if the sender in a slot has credit, or needs none.
    #[inline]
    pub(super) fn has_credit(&self, index: u32) -> bool {
        match &self.credit {
            None => true,
            Some(credit) => credit.senders[index as usize].may_send(),
        }
    }

    /// True if a sender has credit, or needs none.
    pub(super) fn credit_of(&self, sender: &Sender) -> bool {
        let slot = self.directory.peek(sender.key());
        slot.is_none_or(|index| self.has_credit(index))
    }

    /// A flow has opened in a slot.
    pub(super) fn open_credit(&mut self, index: u32) {
        if let Some(credit) = &mut self.credit {
            credit.open(index as usize);
        }
    }

    /// The flow in a slot is given a message; `idle` says that nothing of it was outstanding or waited.
    pub(super) fn restart_credit(&mut self, index: u32, idle: bool) {
        if let Some(credit) = &mut self.credit
            && idle
        {
            credit.senders[index as usize].restart(&credit.rules);
        }
    }

    /// Pays for a data packet of `size` bytes that leaves. Returns its pull target, and its additional flags.
    #[cold]
    #[inline(never)]
    pub(super) fn spend_credit(&mut self, now: Time, index: u32, size: u16) -> (u16, DataFlags) {
        let Some(credit) = &mut self.credit else {
            return (0, DataFlags::NONE);
        };
        credit.senders[index as usize].on_sent(now, size);
        let exhausted = !credit.senders[index as usize].may_send();
        let target = self.pull_target(index);
        self.await_credit(now, index);
        // No packet follows the last one soon, so this one asks for the acknowledgement.
        (
            target,
            DataFlags::NONE.with(DataFlags::ACK_REQUEST, exhausted),
        )
    }

    /// Pull target of the sender in a slot: the credit up to which it could send.
    fn pull_target(&self, index: u32) -> u16 {
        let (Some(credit), Some(sender)) = (&self.credit, &self.slots[index as usize].sender)
        else {
            return 0;
        };
        let most = credit.rules.window as u64;
        let payload = sender.waiting(most, &self.rules);
        let full = (credit.rules.packet - credit.rules.header).max(1) as u64;
        let demand = Demand {
            payload,
            packets: payload.div_ceil(full),
            window: sender.window(),
            flows: self.outbox.sendable(),
        };
        credit.senders[index as usize].target(&demand, &credit.rules)
    }

    /// Arranges for a sender without credit to ask again, should it hear nothing.
    fn await_credit(&mut self, now: Time, index: u32) {
        let waits = self.waits_for_credit(index);
        let Some(credit) = &mut self.credit else {
            return;
        };
        let own = &mut credit.senders[index as usize];
        if waits && own.armed.is_never() {
            own.armed = now.saturating_add(credit.timeout);
            self.timers.push(own.armed, index | WAITING);
        }
    }

    /// True if the sender in a slot has packets to send and no credit.
    fn waits_for_credit(&self, index: u32) -> bool {
        let sender = &self.slots[index as usize].sender;
        sender.as_ref().is_some_and(|own| own.has_packets()) && !self.has_credit(index)
    }

    /// The receiver of the flow in a slot has answered.
    #[cold]
    #[inline(never)]
    pub(super) fn note_answer(&mut self, now: Time, index: u32) {
        if let Some(credit) = &mut self.credit {
            credit.senders[index as usize].on_answer(now);
        }
        self.await_credit(now, index);
    }

    /// Processes a pull.
    #[cold]
    pub(super) fn on_pull(&mut self, now: Time, packet: &Packet, pull: u16) {
        self.counters.pulls_received += 1;
        let Some(index) = self.directory.find(Key::from_packet(packet)) else {
            self.counters.stray += 1;
            return;
        };
        let Some(credit) = &mut self.credit else {
            self.counters.invalid += 1;
            return;
        };
        credit.senders[index as usize].on_pull(now, pull, &credit.rules);
        self.await_credit(now, index);
        self.catch_up(index);
        self.refresh(now, index);
    }

    /// Takes note of the credit that the sender of a data packet or probe wants, trimmed or not. A probe may be the first packet of its
    /// flow that arrives.
    #[cold]
    #[inline(never)]
    pub(super) fn note_target(&mut self, now: Time, packet: &Packet, target: u16, insists: bool) {
        let key = Key::from_packet(packet);
        if self.receivers.final_ack(key).is_some() || self.receivers.is_finished(key) {
            return;
        }
        let ack = self.rules.ack;
        let Some(credit) = &mut self.credit else {
            return;
        };
        let template = || answer(packet, ack, Header::Pull { pull: 0 });
        let turn = credit.pacer.on_target(now, key, target, insists, &template);
        if let Some(time) = turn {
            self.timers.push(time, PACER);
        }
    }

    /// A flow has arrived as a whole.
    #[cold]
    #[inline(never)]
    pub(super) fn end_grants(&mut self, key: Key) {
        if let Some(credit) = &mut self.credit {
            credit.pacer.remove(key);
        }
    }

    /// A timer of receiver credits has come.
    pub(super) fn on_credit_timer(&mut self, now: Time, time: Time, timer: CreditTimer) {
        match timer {
            CreditTimer::Pacer => self.grant(now),
            CreditTimer::Sender(index) => self.ask_for_credit(now, time, index),
        }
    }

    /// The pacer's turn.
    fn grant(&mut self, now: Time) {
        let Some(credit) = &mut self.credit else {
            return;
        };
        if credit.pacer.next().is_none_or(|next| next > now) {
            return;
        }
        if let Some(pull) = credit.pacer.take_turn(now, &credit.rules) {
            self.outbox.push_control(pull.into());
        }
        if let Some(next) = credit.pacer.next() {
            self.timers.push(next, PACER);
        }
    }

    /// A sender that may wait for credit: it sends a probe if it has heard nothing for a whole timeout.
    fn ask_for_credit(&mut self, now: Time, time: Time, index: u32) {
        let waits = self.waits_for_credit(index);
        let Some(credit) = &mut self.credit else {
            return;
        };
        let own = &mut credit.senders[index as usize];
        if own.armed != time {
            return;
        }
        own.armed = Time::NEVER;
        if !waits {
            return;
        }
        let due = own.active.saturating_add(credit.timeout);
        if due <= now {
            own.active = now;
            self.probe_for_credit(now, index);
        }
        let Some(credit) = &mut self.credit else {
            return;
        };
        let own = &mut credit.senders[index as usize];
        own.armed = own.active.saturating_add(credit.timeout);
        self.timers.push(own.armed, index | WAITING);
    }

    /// Asks for credit by a probe when the timers of a sender were due, if packets wait without credit or without window.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_after_timeout(&mut self, now: Time, index: u32) {
        let sender = &self.slots[index as usize].sender;
        let is_blocked = sender
            .as_ref()
            .is_some_and(|own| own.has_packets() && !own.may_send(&self.rules));
        if !is_blocked && !self.waits_for_credit(index) {
            return;
        }
        if let Some(credit) = &mut self.credit {
            let own = &mut credit.senders[index as usize];
            if own.active.saturating_add(credit.timeout) > now {
                return;
            }
            own.active = now;
            self.probe_for_credit(now, index);
        }
    }

    /// Sends a probe with the pull target of a flow.
    pub(super) fn probe_for_credit(&mut self, now: Time, index: u32) {
        let target = self.pull_target(index);
        let Some(sender) = &mut self.slots[index as usize].sender else {
            return;
        };
        if let Some(mut probe) = sender.probe(now, &self.rules) {
            if let Header::Probe { pull_target, .. } = &mut probe.header {
                *pull_target = Some(target);
            }
            self.outbox.push(probe.into());
        }
    }
}
