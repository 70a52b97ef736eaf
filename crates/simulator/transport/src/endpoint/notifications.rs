//! Congestion notifications: those that come, and those that receivers have put off.

use super::key::Key;
use super::{Endpoint, context};
use crate::congestion::feedback::{EndpointFeedback, Notify};
use crate::congestion::telemetry::Telemetry;
use crate::endpoint::flow::Context;
use crate::packet::Packet;
use clearway_units::{Span, Time};

impl<T: Telemetry> Endpoint<T> {
    /// Processes a congestion notification.
    pub(super) fn on_notification(&mut self, now: Time, packet: &Packet) {
        self.counters.notifications_received += 1;
        let Some(index) = self.directory.find(Key::from_packet(packet)) else {
            self.counters.stray += 1;
            return;
        };
        self.catch_up(index);
        let slot = &mut self.slots[index as usize];
        let Some(sender) = &mut slot.sender else {
            return;
        };
        let cx = &mut context!(self, now, slot.controller);
        sender.on_notification(cx, &self.rules);
        let deadline = sender.deadline(cx.controller, &self.rules);
        if deadline < slot.armed {
            slot.armed = deadline;
            self.timers.push(deadline, index);
        }
        self.refresh(now, index);
    }

    /// Asks the rule of a receiver again, at the time that it has named.
    pub(super) fn on_notification_due(&mut self, now: Time, time: Time, slot: u32) {
        let Some(notification) = self.notifications.take(time, slot) else {
            return;
        };
        let slot = slot as usize;
        match self.receivers.feedback_mut().on_deadline(slot, now) {
            Notify::No => {}
            Notify::Now => self.outbox.push_control(notification.into()),
            // A deadline that does not move must not keep the caller in a loop.
            Notify::At(next) => self.notifications.ask_at(
                next.max(now + Span::from_ps(1)),
                slot,
                notification,
                &mut self.timers,
            ),
        }
    }
}
