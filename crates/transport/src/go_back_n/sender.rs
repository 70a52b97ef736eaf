//! The sending half of a queue pair: what to send next, and from where to send again.

use super::Rules;
use crate::cc::{AckSample, CongestionControl, Controller, LossCause, LossSample};
use crate::endpoint::{Event, FlowProgress, FlowStatistics};
use crate::flow::{Ends, Messages, Pacer, path_selector};
use crate::packet::{Header, Packet};
use crate::profile::Profile;
use crate::spray::{PathSelector, Selector};
use clearway_units::{Bytes, FlowId, MessageId, Purpose, RandomStream, Span, Time};

type Context<'a> = crate::flow::Context<'a, Rules>;

/// Numbers on the wire have 32 bits, which say which of two packets is first while they are so close.
const MOST_OUTSTANDING: u64 = 1 << 30;

/// The sender of one queue pair.
pub(crate) struct Sender {
    ends: Ends,
    /// XORed with the path to give the source port.
    salt: u16,
    /// Everything below is acknowledged (`snd_una`).
    acknowledged: u64,
    /// The next packet to send (`snd_nxt`).
    next: u64,
    /// The next packet that was never sent.
    sent_end: u64,
    /// Payload of the packets from `acknowledged` to `next`.
    in_flight: u64,
    /// Payload of the packets below `acknowledged`.
    delivered: u64,
    /// The controller's window in bytes, and in packets.
    window: f64,
    window_packets: f64,
    messages: Messages,
    /// The present timeout, and when it runs out if anything is in flight.
    timeout: Span,
    timeout_at: Time,
    pacer: Pacer,
    controller: Controller,
    selector: Selector,
    statistics: FlowStatistics,
}

impl Sender {
    pub(crate) fn new(
        ends: Ends,
        profile: &Profile,
        controller: Controller,
        rules: &Rules,
        seed: u64,
    ) -> Self {
        let (salt, selector) = path_selector(&profile.selector, ends.entity(), seed);
        let mut sender = Self {
            ends,
            salt,
            acknowledged: 0,
            next: 0,
            sent_end: 0,
            in_flight: 0,
            delivered: 0,
            window: 0.0,
            window_packets: 0.0,
            messages: Messages::default(),
            timeout: rules.timeout,
            timeout_at: Time::NEVER,
            pacer: Pacer::default(),
            controller,
            selector,
            statistics: FlowStatistics::default(),
        };
        let random_feedback = RandomStream::new(seed, Purpose::Controller, ends.entity());
        sender.controller.take_random(random_feedback);
        sender.take_allowance(rules);
        sender
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

    pub(crate) fn progress(&self) -> FlowProgress {
        FlowProgress {
            window: Bytes::new(self.window as u64),
            rate: self.pacer.rate(),
            in_flight: Bytes::new(self.in_flight),
            acknowledged: self.acknowledged(),
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

    /// Takes on this queue pair's part of a message.
    pub(crate) fn post(&mut self, message: MessageId, bytes: Bytes, rules: &Rules) {
        if let Some(part) = rules.part(message, bytes, self.ends.queue_pair) {
            self.messages.post(part, self.sent_end, rules.payload);
        }
    }

    pub(crate) fn close(&mut self, rules: &Rules) {
        self.messages.close(self.sent_end, rules.payload);
    }

    /// Nothing is outstanding.
    #[inline]
    fn is_idle(&self) -> bool {
        self.acknowledged == self.sent_end
    }

    /// Closed, and everything acknowledged.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.messages.is_closed() && !self.messages.has_unsent() && self.is_idle()
    }

    /// Something waits to be sent and the window has room; pacing aside.
    #[inline]
    pub(crate) fn may_send(&self) -> bool {
        let waiting = self.next < self.sent_end
            || (self.messages.has_unsent() && self.next - self.acknowledged < MOST_OUTSTANDING);
        waiting && (self.in_flight as i64 as f64) < self.window
    }

    #[inline]
    pub(crate) fn departure(&self) -> Time {
        self.pacer.departure()
    }

    /// The next packet. Call only if [`may_send`](Self::may_send).
    #[inline(never)]
    pub(crate) fn transmit(&mut self, cx: &mut Context<'_>) -> Packet {
        if self.is_idle() {
            self.restart(cx.now, cx.rules);
        }
        if self.next == self.acknowledged {
            self.timeout_at = cx.now.saturating_add(self.timeout);
        }
        let mut header = if self.next < self.sent_end {
            cx.counters.retransmitted += 1;
            self.statistics.retransmitted += 1;
            self.messages.packet(self.next, cx.rules.payload)
        } else {
            self.sent_end += 1;
            self.messages.next_packet(cx.rules.payload)
        };
        self.next += 1;
        cx.counters.data_sent += 1;
        self.statistics.packets += 1;
        let mut size = cx.rules.header;
        if let Header::Data {
            offset,
            payload,
            ack_request,
            end_of_message,
            ..
        } = &mut header
        {
            self.in_flight += u64::from(*payload);
            size += *payload;
            *offset = cx.rules.place(*offset, self.ends.queue_pair);
            let fills = self.in_flight as i64 as f64 >= self.window;
            *ack_request = fills || *end_of_message || *payload == 0;
        }
        let path = self.selector.choose(self.window_packets);
        let mut packet = self.ends.packet(cx.now, path ^ self.salt, header);
        packet.size = size;
        self.pacer.on_sent(cx.now, size);
        self.controller.on_sent(cx.now, Bytes::new(u64::from(size)));
        self.take_allowance(cx.rules);
        packet
    }

    /// The first packet after a time with nothing outstanding, in which nobody called for the controller's deadlines.
    fn restart(&mut self, now: Time, rules: &Rules) {
        if self.statistics.packets == 0 {
            self.statistics.first_send = now;
        }
        if self.controller.deadline() <= now {
            self.controller.on_deadline(now);
        }
        self.controller.on_restart(now);
        self.take_allowance(rules);
    }

    /// The last packet was sent with nothing else in flight.
    #[inline]
    pub(crate) fn has_restarted(&self) -> bool {
        self.next - self.acknowledged == 1
    }

    /// An acknowledgement has come, negative or not.
    #[inline(never)]
    pub(crate) fn on_ack(&mut self, packet: &Packet, cx: &mut Context<'_>) {
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
        let path = packet.source_port ^ self.salt;
        self.selector.on_ack(path, marked);
        self.statistics.marked += u32::from(marked);
        let acked = match advance {
            1.. => self.advance(self.acknowledged + advance as u64, cx),
            _ => 0,
        };
        self.controller.on_ack(&AckSample {
            now: cx.now,
            rtt,
            ecn: marked,
            acked: Bytes::new(acked),
            in_flight: Bytes::new(self.in_flight),
            probe: false,
            delivered: self.acknowledged(),
            hops: cx.hops,
        });
        if nack {
            self.on_nack(advance >= 0, cx);
        }
        self.take_allowance(cx.rules);
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

    /// Everything below `epsn` has arrived. Returns the payload that is new.
    #[inline]
    fn advance(&mut self, epsn: u64, cx: &mut Context<'_>) -> u64 {
        let (flow, statistics) = (self.ends.flow, self.statistics);
        let from = self.acknowledged;
        let bytes =
            self.messages
                .acknowledge_through(from, epsn, cx.rules.payload, |message, bytes| {
                    cx.events.push_back(Event::Sent {
                        flow,
                        message,
                        bytes,
                        statistics,
                    });
                });
        self.acknowledged = epsn;
        self.delivered += bytes;
        // What was sent before the sender went back is not in flight, and may have arrived after all.
        self.next = self.next.max(epsn);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.timeout = cx.rules.timeout;
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
        self.controller.on_loss(&LossSample {
            now: cx.now,
            cause,
            lost,
        });
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
    pub(crate) fn on_notification(&mut self, cx: &mut Context<'_>) {
        self.statistics.notifications += 1;
        self.controller.on_notification(cx.now);
        self.take_allowance(cx.rules);
    }

    /// The earliest of the timers. A flow without work has none: what its controller misses it makes up for at the restart.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        if self.is_idle() && !self.messages.has_unsent() {
            return Time::NEVER;
        }
        let controller = self.controller.deadline();
        if self.next == self.acknowledged {
            return controller;
        }
        self.timeout_at.min(controller)
    }

    /// A timer may have run out.
    pub(crate) fn on_deadline(&mut self, cx: &mut Context<'_>) {
        if self.controller.deadline() <= cx.now {
            self.controller.on_deadline(cx.now);
            self.take_allowance(cx.rules);
        }
        if self.next > self.acknowledged && self.timeout_at <= cx.now {
            cx.counters.timeouts += 1;
            self.statistics.timeouts += 1;
            let doubled = self.timeout.checked_add(self.timeout);
            self.timeout = doubled.map_or(cx.rules.timeout_max, |d| d.min(cx.rules.timeout_max));
            self.go_back(LossCause::Timeout, cx);
            self.take_allowance(cx.rules);
        }
    }

    #[inline]
    fn take_allowance(&mut self, rules: &Rules) {
        let allowance = self.controller.allowance();
        self.window = allowance.window;
        self.window_packets = allowance.window * rules.packets_per_byte;
        self.pacer.set_rate(allowance.rate);
    }
}
