//! Whose turn it is to send.

use super::{Endpoint, context};
use crate::flow::Context;
use crate::packet::{Header, header_hash};
use crate::telemetry::{IntPacket, Telemetry};
use clearway_units::Time;

use super::flows::Key;

impl<T: Telemetry> Endpoint<T> {
    /// Something can be sent right now, with pacing as of the last call of [`on_deadline`](Self::on_deadline).
    #[inline]
    pub fn ready(&self) -> bool {
        self.outbox.is_ready(self.paused)
    }

    /// The next packet for the wire, stamped with `now`, with the telemetry that it echoes.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<IntPacket<T>> {
        let mut packet = self.next_packet(now)?;
        packet.header_hash = header_hash(packet.src, packet.dst, packet.source_port);
        Some(packet)
    }

    /// Control packets first, or in turn with data where control has no priority.
    #[inline]
    fn next_packet(&mut self, now: Time) -> Option<IntPacket<T>> {
        let paused = self.paused;
        let data_turn = self.data_turn && self.outbox.has_flow(paused);
        if data_turn || !self.outbox.has_notice(paused) {
            self.data_turn = false;
            return self.transmit_data(now);
        }
        self.data_turn = !self.control_first;
        self.transmit_notice(now)
    }

    /// Brings what is known of a flow's readiness up to date.
    #[inline(always)]
    pub(super) fn refresh(&mut self, now: Time, index: u32) {
        let slot = &self.slots[index as usize];
        let Some(sender) = &slot.sender else {
            return;
        };
        let may_send = sender.may_send(&self.rules);
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
            self.outbox.count_sendable(slot.lane, sendable);
        }
        if sendable && !slot.queued {
            slot.queued = true;
            self.outbox.lane(slot.lane).turns.push_back(index);
        }
    }

    #[inline]
    fn transmit_data(&mut self, now: Time) -> Option<IntPacket<T>> {
        while let Some(lane) = self.outbox.next_lane(self.paused) {
            let index = *self.outbox.lane(lane).turns.front()?;
            let slot = &mut self.slots[index as usize];
            // The entry may be from before the window shrank, or from before the slot's last flow ended.
            if let Some(sender) = &mut slot.sender
                && slot.sendable
            {
                let packet = sender.transmit(&mut context!(self, now));
                // Only a flow that starts or restarts can have a deadline that is earlier than it was.
                if sender.has_restarted() && sender.deadline() < slot.armed {
                    slot.armed = sender.deadline();
                    self.timers.push(slot.armed, index);
                }
                self.end_turn(now, index, lane);
                return Some(packet.into());
            }
            slot.queued = false;
            self.outbox.lane(lane).turns.pop_front();
        }
        None
    }

    /// The flow whose turn it was has sent a packet.
    #[inline]
    fn end_turn(&mut self, now: Time, index: u32, lane: u8) {
        self.refresh(now, index);
        self.outbox.end_turn(lane);
        let slot = &mut self.slots[index as usize];
        let turns = &mut self.outbox.lane(lane).turns;
        if !slot.sendable {
            slot.queued = false;
            turns.pop_front();
        } else if turns.len() > 1 {
            turns.rotate_left(1);
        }
    }

    #[inline]
    fn transmit_notice(&mut self, now: Time) -> Option<IntPacket<T>> {
        let mut packet = self.outbox.pop(self.paused)?;
        match packet.header {
            Header::Probe { .. } => {
                packet.stamp = now;
                self.counters.probes_sent += 1;
                if let Some(index) = self.directory.find(Key::of(&packet))
                    && let Some(sender) = &mut self.slots[index as usize].sender
                {
                    sender.on_probe_sent(now);
                }
            }
            Header::Notification => self.counters.notifications_sent += 1,
            _ => self.counters.sacks_sent += 1,
        }
        Some(packet)
    }
}
