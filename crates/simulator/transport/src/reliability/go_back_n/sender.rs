//! The sending half of a queue pair: the next packet to send, and the packet from which to send again.

use super::Rules;
use crate::congestion::scope::{Account, Others, Shared};
use crate::congestion::{AckSample, CongestionControl, Controller, LossCause, LossSample};
use crate::endpoint::flow::{Context, Messages, Pacer, Paths, SenderIdentity};
use crate::packet::{Class, DataFlags, Header, Packet};
use crate::paths::{PathFeedback, PathVerdict, SendState};
use crate::report::{Event, FlowProgress, FlowStatistics};
use clearway_units::{Bytes, FlowId, MessageId, Span, Time};

/// Most packets outstanding. Numbers on the wire have 32 bits, which give the order of two packets only while they are this close.
const MOST_OUTSTANDING: u64 = 1 << 30;

/// The sender of one queue pair.
pub(crate) struct Sender {
    ends: SenderIdentity,
    /// Lowest packet that is not acknowledged (`snd_una`).
    acknowledged: u64,
    /// The next packet to send (`snd_nxt`).
    next: u64,
    /// The next packet that was never sent.
    sent_end: u64,
    /// Payload of the packets from `acknowledged` to `next`.
    in_flight: u64,
    /// Payload of the packets below `acknowledged`.
    delivered: u64,
    others: Others,
    /// The controller's window in bytes, and in packets.
    window: f64,
    window_packets: f64,
    messages: Messages,
    /// The present timeout, and when it runs out if anything is in flight.
    timeout: Span,
    timeout_at: Time,
    pacer: Pacer,
    paths: Paths,
    statistics: FlowStatistics,
}

impl Sender {
    pub(crate) fn new(
        ends: SenderIdentity,
        paths: Paths,
        controller: &Controller,
        rules: &Rules,
    ) -> Self {
        let mut sender = Self {
            ends,
            acknowledged: 0,
            next: 0,
            sent_end: 0,
            in_flight: 0,
            delivered: 0,
            others: Others::NONE,
            window: 0.0,
            window_packets: 0.0,
            messages: Messages::default(),
            timeout: rules.timeout,
            timeout_at: Time::NEVER,
            pacer: Pacer::default(),
            paths,
            statistics: FlowStatistics::default(),
        };
        if controller.allocation().is_some() {
            sender.pacer.set_catching_up();
        }
        sender.take_allowance(controller, rules);
        sender
    }

    /// Difference between source ports and paths.
    pub(crate) fn path_salt(&self) -> u16 {
        self.paths.path_of(0)
    }

    pub(crate) fn statistics(&self) -> &FlowStatistics {
        &self.statistics
    }

    pub(crate) fn flow(&self) -> FlowId {
        self.ends.flow
    }

    /// Payload that the receiver has reported.
    pub(crate) fn acknowledged(&self) -> Bytes {
        Bytes::new(self.delivered)
    }

    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    pub(crate) fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    pub(crate) fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    pub(crate) fn progress(&self) -> FlowProgress {
        FlowProgress {
            window: Bytes::new(self.window as u64),
            rate: self.pacer.rate(),
            in_flight: Bytes::new(self.in_flight),
            acknowledged: self.acknowledged() + self.messages.skipped(),
            unacknowledged_packets: self.sent_end - self.acknowledged,
            lost_packets: (self.sent_end - self.next) as u32,
            recovering: self.next < self.sent_end,
            statistics: self.statistics,
        }
    }

    #[cfg(test)]
    pub(crate) fn in_flight_exact(&self) -> i64 {
        self.in_flight as i64
    }

    /// Takes this queue pair's part of a message for sending.
    pub(crate) fn post(&mut self, message: MessageId, bytes: Bytes, rules: &Rules) {
        if let Some(part) = rules.part(message, bytes, self.ends.queue_pair) {
            self.messages.post(part, self.sent_end, rules.payload);
        }
    }

    /// True if nothing waits to be sent, though it may have to be sent again.
    pub(crate) fn has_sent_all(&self) -> bool {
        !self.messages.has_unsent() && self.next == self.sent_end
    }

    /// Bytes of messages that are not acknowledged as a whole; counting stops above `limit`.
    pub(crate) fn backlog(&self, limit: u64) -> u64 {
        self.messages.backlog(limit)
    }

    pub(crate) fn queue_pair(&self) -> u8 {
        self.ends.queue_pair
    }

    /// The next packet that was never sent.
    pub(crate) fn sent_end(&self) -> u64 {
        self.sent_end
    }

    /// Sends again from packet `from` on, of which it is known that links have dropped it, and all after it.
    pub(crate) fn rewind(&mut self, from: u64, rules: &Rules) {
        let from = from.max(self.acknowledged);
        for psn in from..self.next {
            self.in_flight -= self.messages.length(psn, rules.payload);
        }
        self.next = self.next.min(from);
    }

    /// Creates a control packet of `size` bytes for the path of this queue pair.
    pub(crate) fn control_packet(&mut self, now: Time, size: u16, header: Header) -> Packet {
        let port = self.paths.next_port(&SendState {
            now,
            window: self.window_packets,
            in_flight: Bytes::new(self.in_flight),
        });
        let mut packet = self.ends.packet(now, port, header);
        (packet.size, packet.class) = (size, Class::CONTROL);
        packet
    }

    /// True if something waits to be sent or acknowledged.
    pub(crate) fn is_busy(&self) -> bool {
        self.messages.has_unsent() || !self.is_idle()
    }

    /// Payload in flight and delivered.
    pub(crate) fn account(&self) -> Account {
        Account {
            in_flight: self.in_flight as i64,
            delivered: self.delivered,
        }
    }

    /// Access to the part of the state that a scope shares.
    pub(crate) fn shared(&mut self) -> Shared<'_> {
        Shared {
            others: &mut self.others,
            pacer: &mut self.pacer,
        }
    }

    pub(crate) fn close(&mut self, rules: &Rules) {
        self.messages.close(self.sent_end, rules.payload);
    }

    /// True if nothing is outstanding.
    #[inline]
    fn is_idle(&self) -> bool {
        self.acknowledged == self.sent_end
    }

    /// True if the queue pair is closed and everything is acknowledged.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.messages.is_closed() && !self.messages.has_unsent() && self.is_idle()
    }

    /// True if a packet waits to be sent and the window has room; pacing aside.
    #[inline]
    pub(crate) fn may_send(&self) -> bool {
        self.waits() && (self.in_window() as f64) < self.window
    }

    /// True if there is a packet to be sent that needs only room in the window and a departure.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.next < self.sent_end
            || (self.messages.has_unsent() && self.next - self.acknowledged < MOST_OUTSTANDING)
    }

    /// True if a packet waits to be sent, for the first time or again.
    pub(crate) fn has_packets(&self) -> bool {
        self.next < self.sent_end || self.messages.has_unsent()
    }

    /// Bytes in flight in the window.
    #[inline]
    fn in_window(&self) -> i64 {
        self.in_flight as i64 + self.others.in_window
    }

    #[inline]
    pub(crate) fn departure(&self) -> Time {
        self.pacer.departure()
    }

    /// The next packet. Call only if [`may_send`](Self::may_send).
    #[inline(never)]
    pub(crate) fn transmit(&mut self, cx: &mut Context<'_>, rules: &Rules) -> Packet {
        if self.is_idle() {
            self.restart(cx, rules);
        }
        if self.next == self.acknowledged {
            self.timeout_at = cx.now.saturating_add(self.timeout);
        }
        let port = self.paths.next_port(&SendState {
            now: cx.now,
            window: self.window_packets,
            in_flight: Bytes::new(self.in_flight),
        });
        let mut header = if self.next < self.sent_end {
            cx.counters.retransmitted += 1;
            self.statistics.retransmitted += 1;
            self.messages.packet(self.next, rules.payload)
        } else {
            self.sent_end += 1;
            self.messages.next_packet(rules.payload)
        };
        self.next += 1;
        cx.counters.data_sent += 1;
        self.statistics.packets += 1;
        let mut size = rules.header;
        if let Header::Data {
            offset,
            payload,
            flags,
            ..
        } = &mut header
        {
            self.in_flight += u64::from(*payload);
            size += *payload;
            *offset = rules.place(*offset, self.ends.queue_pair);
            let fills = self.in_window() as f64 >= self.window;
            let requests = fills || flags.contains(DataFlags::END_OF_MESSAGE) || *payload == 0;
            *flags = flags.with(DataFlags::ACK_REQUEST, requests);
        }
        let mut packet = self.ends.packet(cx.now, port, header);
        packet.size = size;
        self.pacer.on_sent(cx.now, size);
        cx.controller.on_sent(cx.now, Bytes::new(u64::from(size)));
        self.take_allowance(cx.controller, rules);
        packet
    }

    /// Prepares the first packet after a time with nothing outstanding, in which the controller was not called at its deadlines.
    fn restart(&mut self, cx: &mut Context<'_>, rules: &Rules) {
        let now = cx.now;
        if self.statistics.packets == 0 {
            self.statistics.first_send = now;
        }
        if cx.controller.deadline() <= now {
            cx.controller.on_deadline(now);
        }
        if self.others.account.in_flight <= 0 {
            cx.controller.on_restart(now);
        }
        self.take_allowance(cx.controller, rules);
    }

    /// True if at most one packet is in flight.
    #[inline]
    pub(crate) fn is_nearly_idle(&self) -> bool {
        self.next - self.acknowledged <= 1
    }

    /// An acknowledgement has come, negative or not.
    #[inline(never)]
    pub(crate) fn on_ack(&mut self, packet: &Packet, cx: &mut Context<'_>, rules: &Rules) {
        let Header::Ack { epsn, nack, marked } = packet.header else {
            return;
        };
        let advance = i64::from(epsn.wrapping_sub(self.acknowledged as u32) as i32);
        let outstanding = (self.sent_end - self.acknowledged) as i64;
        if advance > outstanding || (advance < 0 && -advance > self.acknowledged as i64) {
            cx.counters.invalid += 1;
            return;
        }
        let rtt = cx.now.since(packet.stamp);
        let path = self.paths.path_of(packet.source_port);
        self.statistics.marked += u32::from(marked);
        let acked = match advance {
            1.. => self.advance(self.acknowledged + advance as u64, cx, rules),
            _ => 0,
        };
        let delivered = self.acknowledged();
        self.paths.on_feedback(&PathFeedback {
            now: cx.now,
            path,
            verdict: PathVerdict::from_flags(marked, nack),
            delivered,
            sent: delivered + Bytes::new(self.in_flight),
            rtt,
        });
        cx.controller.on_ack(&AckSample {
            now: cx.now,
            rtt,
            ecn: marked,
            acked: Bytes::new(acked),
            in_flight: self.others.in_flight_with(self.in_flight as i64),
            probe: false,
            delivered: self.others.delivered_with(self.delivered),
            hops: cx.hops,
        });
        if nack {
            self.on_nack(advance >= 0, cx);
        }
        self.take_allowance(cx.controller, rules);
        if cx.tracing {
            cx.events.push_back(Event::Ack {
                flow: self.ends.flow,
                now: cx.now,
                rtt,
                ecn: marked,
                window: Bytes::new(self.window as u64),
                in_flight: Bytes::new(self.in_flight),
                path,
            });
        }
    }

    /// Takes every packet below `epsn` as arrived. Returns the newly acknowledged payload.
    #[inline]
    fn advance(&mut self, epsn: u64, cx: &mut Context<'_>, rules: &Rules) -> u64 {
        let (flow, statistics) = (self.ends.flow, self.statistics);
        let from = self.acknowledged;
        let bytes =
            self.messages
                .acknowledge_through(from, epsn, rules.payload, |message, bytes| {
                    cx.events.push_back(Event::Sent {
                        flow,
                        message,
                        bytes,
                        statistics,
                    });
                });
        self.acknowledged = epsn;
        self.delivered += bytes;
        // Packets sent before the sender went back do not count as in flight, and may have arrived after all.
        self.next = self.next.max(epsn);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.timeout = rules.timeout;
        self.timeout_at = cx.now.saturating_add(self.timeout);
        bytes
    }

    #[cold]
    fn on_nack(&mut self, current: bool, cx: &mut Context<'_>) {
        self.statistics.nacks += 1;
        cx.counters.nacks_received += 1;
        if current {
            self.go_back(LossCause::GoBack, cx);
        }
    }

    /// Sends everything that is not acknowledged again.
    #[cold]
    fn go_back(&mut self, cause: LossCause, cx: &mut Context<'_>) {
        let packets = (self.next - self.acknowledged) as u32;
        if packets == 0 {
            return;
        }
        let lost = Bytes::new(self.in_flight);
        self.next = self.acknowledged;
        self.in_flight = 0;
        cx.counters.note_loss(cause, packets);
        let loss = LossSample {
            now: cx.now,
            cause,
            lost,
            in_flight: Bytes::ZERO,
        };
        self.paths.on_loss(&loss);
        cx.controller.on_loss(&loss);
        if cx.tracing {
            cx.events.push_back(Event::Loss {
                flow: self.ends.flow,
                now: cx.now,
                cause,
                packets,
            });
        }
    }

    /// The receiver notifies of congestion.
    pub(crate) fn on_notification(&mut self, cx: &mut Context<'_>, rules: &Rules) {
        self.statistics.notifications += 1;
        cx.controller.on_notification(cx.now);
        self.take_allowance(cx.controller, rules);
    }

    /// The earliest of the timers. A flow without work has none: the controller catches up on missed deadlines at the restart.
    #[inline]
    pub(crate) fn deadline(&self, controller: &Controller) -> Time {
        if self.is_idle() && !self.messages.has_unsent() {
            return Time::NEVER;
        }
        let controller = controller.deadline();
        if self.next == self.acknowledged {
            return controller;
        }
        self.timeout_at.min(controller)
    }

    /// A timer may have run out.
    pub(crate) fn on_deadline(&mut self, cx: &mut Context<'_>, rules: &Rules) {
        if cx.controller.deadline() <= cx.now {
            cx.controller.on_deadline(cx.now);
            self.take_allowance(cx.controller, rules);
        }
        if self.next > self.acknowledged && self.timeout_at <= cx.now {
            cx.counters.timeouts += 1;
            self.statistics.timeouts += 1;
            let doubled = self.timeout.checked_add(self.timeout);
            self.timeout = doubled.map_or(rules.timeout_max, |d| d.min(rules.timeout_max));
            self.go_back(LossCause::Timeout, cx);
            self.take_allowance(cx.controller, rules);
        }
    }

    #[inline]
    pub(crate) fn take_allowance(&mut self, controller: &Controller, rules: &Rules) {
        let allowance = self.others.part_of(controller.allowance());
        self.window = allowance.window;
        self.window_packets = allowance.window * rules.packets_per_byte;
        self.pacer.set_rate(allowance.rate);
    }
}
