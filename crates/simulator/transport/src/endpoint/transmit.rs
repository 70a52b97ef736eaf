//! Choice of the next packet to send.

use super::reliability_scheme::Sender;
use super::{Endpoint, context};
use crate::congestion::perc::Attachment;
use crate::congestion::telemetry::{IntPacket, Telemetry};
use crate::endpoint::flow::Context;
use crate::packet::{Class, Header};
use clearway_units::Time;

use super::key::Key;

impl<T: Telemetry> Endpoint<T> {
    /// True if a packet can be sent right now, with pacing as of the last call of [`on_deadline`](Self::on_deadline).
    #[inline]
    pub fn ready(&self) -> bool {
        self.outbox.is_ready(self.paused)
    }

    /// Urgency of the packet that [`poll_transmit`](Self::poll_transmit) returns next, for a NIC that several endpoints share; `None` if it
    /// returns no packet. Control that goes before data is the most urgent. Data and control that take turns are equally urgent, unless the
    /// highest class goes first: then data is as urgent as its class, and control that takes turns with data is as urgent as data of any
    /// class.
    pub fn urgency(&self) -> Option<u8> {
        const CONTROL: u8 = Class::COUNT as u8;
        const TAKES_TURNS: u8 = CONTROL - 1;
        let strict = self.profile.strict_priority;
        let has_flow = self.outbox.has_flow(self.paused);
        if self.outbox.has_control(self.paused) && !(self.data_turn && has_flow) {
            return Some(match (self.control_first, strict) {
                (true, _) => CONTROL,
                (false, true) => TAKES_TURNS,
                (false, false) => 0,
            });
        }
        let class = self.outbox.highest_class(self.paused)?;
        Some(if strict { class.index() as u8 } else { 0 })
    }

    /// Returns the next packet for the wire, stamped with `now`, with the telemetry that it echoes. Control packets go first, or in
    /// turn with data where control has no priority.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<IntPacket<T>> {
        self.transmit_with(now, IntPacket::take)
    }

    /// Gives the packet that [`poll_transmit`](Self::poll_transmit) would return to `send`, which may move it to its destination. A
    /// returned packet is moved once more.
    #[inline]
    pub fn transmit_with<R>(
        &mut self,
        now: Time,
        send: impl FnOnce(&mut IntPacket<T>) -> R,
    ) -> Option<R> {
        let paused = self.paused;
        let data_turn = self.data_turn && self.outbox.has_flow(paused);
        if data_turn || !self.outbox.has_control(paused) {
            self.data_turn = false;
            return self.transmit_data(now, send);
        }
        self.data_turn = !self.control_first;
        self.transmit_control(now, send)
    }

    /// Updates whether a flow may send, and whether pacing holds it back; with all other flows of its scope.
    #[inline(always)]
    pub(super) fn refresh(&mut self, now: Time, index: u32) {
        if self.groups.is_some() {
            if self.gated {
                return self.settle_gated(now, index);
            }
            self.settle(now, index);
        }
        self.update_readiness(now, index);
    }

    /// Updates whether a flow may send, and whether pacing holds it back.
    #[inline(always)]
    pub(super) fn update_readiness(&mut self, now: Time, index: u32) {
        let slot = &self.slots[index as usize];
        let Some(sender) = &slot.sender else {
            return;
        };
        let mut may_send = sender.may_send(&self.rules);
        if self.credit.is_some() {
            may_send &= self.has_credit(index);
        }
        let sendable = may_send && sender.departure() <= now;
        if sendable != slot.sendable || sendable != may_send {
            self.change_readiness(index, may_send, sendable);
        }
    }

    #[inline(never)]
    fn change_readiness(&mut self, index: u32, may_send: bool, sendable: bool) {
        let slot = &mut self.slots[index as usize];
        if let Some(sender) = &slot.sender
            && may_send
            && !sendable
            && sender.departure() < slot.departs
        {
            slot.departs = sender.departure();
            self.departures.push(slot.departs, index);
        }
        if sendable != slot.sendable {
            slot.sendable = sendable;
            self.outbox.count_sendable(slot.queue, sendable);
        }
        if sendable && !slot.queued {
            slot.queued = true;
            self.outbox.queue(slot.queue).round_robin.push_back(index);
        }
    }

    #[inline]
    fn transmit_data<R>(
        &mut self,
        now: Time,
        send: impl FnOnce(&mut IntPacket<T>) -> R,
    ) -> Option<R> {
        while let Some(queue) = self.outbox.next_queue(self.paused) {
            let index = *self.outbox.queue(queue).round_robin.front()?;
            let mut attachment = Attachment::None;
            if T::AGENTS && self.slots[index as usize].sendable {
                let Some(own) = self.attachment(now, index) else {
                    continue;
                };
                attachment = own;
            }
            let passes = self.passes_gate(index);
            let slot = &mut self.slots[index as usize];
            // The entry may be from before the window shrank, or from before the slot's last flow ended.
            if let Some(sender) = &mut slot.sender
                && slot.sendable
                && passes
            {
                let cx = &mut context!(self, now, slot.controller);
                let may_restart = sender.is_nearly_idle();
                let packet = sender.transmit(cx, &self.rules);
                // Only a flow that starts or restarts can have a deadline that is earlier than it was.
                if may_restart {
                    let deadline = sender.deadline(cx.controller, &self.rules);
                    if deadline < slot.armed {
                        slot.armed = deadline;
                        self.timers.push(deadline, index);
                    }
                }
                let mut packet: IntPacket<T> = packet.into();
                if self.credit.is_some() {
                    let (target, more) = self.spend_credit(now, index, packet.size);
                    if let Header::Data {
                        pull_target, flags, ..
                    } = &mut packet.header
                    {
                        (*pull_target, *flags) = (target, flags.union(more));
                    }
                }
                if T::AGENTS {
                    packet.telemetry.attach(attachment);
                    self.note_sent(now, index);
                }
                self.end_turn(now, index, queue);
                return Some(send(&mut packet));
            }
            let keeps_turn = self.keeps_turn(index);
            self.pass_turn(index, queue, keeps_turn);
        }
        None
    }

    /// True if a flow that may not send stays in the round robin: flows that share an allowance take turns, in any order of readiness.
    #[inline]
    fn keeps_turn(&self, index: u32) -> bool {
        let sender = &self.slots[index as usize].sender;
        self.scope.shares_allowance() && sender.as_ref().is_some_and(Sender::is_busy)
    }

    /// Moves the flow at the front of a round robin to its end, or takes it out.
    #[inline]
    fn pass_turn(&mut self, index: u32, queue: u8, stays: bool) {
        let round_robin = &mut self.outbox.queue(queue).round_robin;
        if !stays {
            self.slots[index as usize].queued = false;
            round_robin.pop_front();
        } else if round_robin.len() > 1 {
            round_robin.rotate_left(1);
        }
    }

    /// Ends the turn of a flow that has sent a packet.
    #[inline]
    fn end_turn(&mut self, now: Time, index: u32, queue: u8) {
        self.refresh(now, index);
        self.outbox.end_turn(queue);
        let stays = self.slots[index as usize].sendable || self.keeps_turn(index);
        self.pass_turn(index, queue, stays);
    }

    #[inline]
    fn transmit_control<R>(
        &mut self,
        now: Time,
        send: impl FnOnce(&mut IntPacket<T>) -> R,
    ) -> Option<R> {
        let mut packet = self.outbox.pop(self.paused)?;
        match packet.header {
            Header::Probe { .. } => {
                packet.stamp = now;
                self.counters.probes_sent += 1;
                if let Some(index) = self.directory.find(Key::from_packet(&packet))
                    && let Some(sender) = &mut self.slots[index as usize].sender
                {
                    sender.on_probe_sent(now, &self.rules);
                }
            }
            Header::Notification => self.counters.notifications_sent += 1,
            Header::Pull { .. } => self.counters.pulls_sent += 1,
            Header::RateControl { reflected, .. } => {
                self.counters.rate_controls_sent += u64::from(!reflected);
                self.counters.rate_controls_reflected += u64::from(reflected);
            }
            _ => self.counters.sacks_sent += 1,
        }
        Some(send(&mut packet))
    }
}
