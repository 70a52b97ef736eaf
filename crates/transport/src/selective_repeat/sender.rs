//! The sending half of a flow: what to send next, what is in flight, what is lost.
//!
//! In flight (§3.3.2, Equations 1 and 2) is `sent - received - claimed`: every transmission counts as sent, the receiver's
//! count of distinct bytes as received, and a packet declared lost as claimed. One signed number holds the sum. It may fall
//! below zero for a while, when packets are claimed that the receiver has but whose segment the sender has not seen; once all
//! is acknowledged it is exactly zero.

mod loss;

use super::Rules;
use super::parameters::ProbeClass;
use super::scoreboard::{Scoreboard, numbers, parts};
use crate::cc::{AckSample, CongestionControl, Controller};
use crate::endpoint::{Event, FlowProgress, FlowStatistics};
use crate::flow::{Due, Ends, Messages, Pacer, Part, path_selector};
use crate::packet::{Class, Header, Packet};
use crate::profile::Profile;
use crate::spray::{PathSelector, Selector};
use clearway_units::{Bytes, FlowId, MessageId, Purpose, RandomStream, Span, Time};

pub(crate) type Context<'a> = crate::flow::Context<'a, Rules>;

/// The sender of one flow.
pub(crate) struct Sender {
    ends: Ends,
    /// XORed with the path to give the source port.
    salt: u16,
    recovering: bool,

    /// Everything below is acknowledged.
    acknowledged: u64,
    /// The next new packet.
    next: u64,
    /// Bytes in flight.
    in_flight: i64,
    /// The controller's window in bytes, and in packets.
    window: f64,
    window_packets: f64,
    /// Bytes that the receiver has reported.
    received: u64,
    messages: Messages,

    /// Packets that wait to be sent again, and a number at most a window below the next packet below which there are none.
    lost: u32,
    lost_from: u64,
    scoreboard: Scoreboard,
    /// At or above this number the scoreboard has no bit set.
    marked_end: u64,
    /// Recovery ends when everything below is acknowledged.
    recovery_end: u64,
    /// One more than the highest packet that is known to have arrived.
    seen_end: u64,

    probe_at: Time,
    timeout_at: Time,
    /// When the last probe left, and the next new packet at that time.
    probe_sent: Time,
    probe_end: u64,
    sacks_since_probe: u32,
    /// A probe has been made and has not left yet.
    probe_waits: bool,

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
            recovering: false,
            acknowledged: 0,
            next: 0,
            in_flight: 0,
            window: 0.0,
            window_packets: 0.0,
            received: 0,
            messages: Messages::default(),
            lost: 0,
            lost_from: 0,
            scoreboard: Scoreboard::new(rules.window),
            marked_end: 0,
            recovery_end: 0,
            seen_end: 0,
            probe_at: Time::NEVER,
            timeout_at: Time::NEVER,
            probe_sent: Time::NEVER,
            probe_end: 0,
            sacks_since_probe: 0,
            probe_waits: false,
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
        Bytes::new(self.received)
    }

    pub(crate) fn progress(&self) -> FlowProgress {
        FlowProgress {
            window: Bytes::new(self.window as u64),
            rate: self.pacer.rate(),
            in_flight: self.in_flight_bytes(),
            acknowledged: self.acknowledged(),
            unacknowledged_packets: self.next - self.acknowledged,
            lost_packets: self.lost,
            recovering: self.recovering,
            statistics: self.statistics,
        }
    }

    /// In flight, with its sign.
    #[cfg(test)]
    pub(crate) fn in_flight_exact(&self) -> i64 {
        self.in_flight
    }

    /// As if everything below `psn` had been sent and acknowledged.
    #[cfg(test)]
    pub(crate) fn start_at(&mut self, psn: u64) {
        (self.acknowledged, self.next) = (psn, psn);
    }

    pub(crate) fn post(&mut self, message: MessageId, bytes: Bytes, rules: &Rules) {
        let whole = Part::whole(message, bytes);
        self.messages.post(whole, self.next, rules.payload);
    }

    pub(crate) fn close(&mut self, rules: &Rules) {
        self.messages.close(self.next, rules.payload);
    }

    /// Closed, and everything acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.messages.is_closed() && !self.messages.has_unsent() && self.acknowledged == self.next
    }

    /// Something waits to be sent and the window has room; pacing aside.
    #[inline]
    pub(crate) fn may_send(&self, rules: &Rules) -> bool {
        let waiting = self.lost > 0
            || (self.messages.has_unsent()
                && self.next - self.acknowledged < u64::from(rules.window));
        waiting && self.fits(rules)
    }

    /// Pacing: when the next packet may leave.
    #[inline]
    pub(crate) fn departure(&self) -> Time {
        self.pacer.departure()
    }

    #[inline]
    fn fits(&self, rules: &Rules) -> bool {
        if rules.strict_window {
            // With nothing in flight a window below one packet must not stall the flow.
            let after = self.in_flight + rules.payload as i64;
            return after as f64 <= self.window || self.in_flight <= 0;
        }
        (self.in_flight as f64) < self.window
    }

    /// The next packet. Call only if [`may_send`](Self::may_send).
    #[inline(always)]
    pub(crate) fn transmit(&mut self, cx: &mut Context<'_>) -> Packet {
        if self.acknowledged == self.next {
            self.restart(cx.now, cx.rules);
        }
        let header = if self.lost > 0 {
            cx.counters.retransmitted += 1;
            self.statistics.retransmitted += 1;
            self.retransmission(cx.rules)
        } else {
            self.next += 1;
            self.messages.next_packet(cx.rules.payload)
        };
        cx.counters.data_sent += 1;
        self.statistics.packets += 1;
        let mut packet = self.data_packet(cx, header);
        if let Header::Data {
            payload,
            ack_request,
            retransmission,
            end_of_message,
            ..
        } = &mut packet.header
        {
            self.in_flight += i64::from(*payload);
            let fills = self.in_flight as f64 >= self.window;
            *ack_request = fills || *retransmission || *end_of_message || *payload == 0;
            packet.size = *payload + cx.rules.header;
        }
        self.pacer.on_sent(cx.now, packet.size);
        self.controller
            .on_sent(cx.now, Bytes::new(u64::from(packet.size)));
        if self.pacer.rate().is_some() {
            self.take_allowance(cx.rules);
        }
        packet
    }

    #[inline]
    fn data_packet(&mut self, cx: &Context<'_>, header: Header) -> Packet {
        let path = self.selector.choose(self.window_packets);
        self.ends.packet(cx.now, path ^ self.salt, header)
    }

    /// The first packet after a time with nothing outstanding.
    fn restart(&mut self, now: Time, rules: &Rules) {
        if self.statistics.packets == 0 {
            self.statistics.first_send = now;
        }
        self.timeout_at = now.saturating_add(rules.timeout);
        self.probe_at = now.saturating_add(rules.probe_after);
        self.controller.on_restart(now);
        self.take_allowance(rules);
    }

    /// The last packet was sent with nothing else outstanding.
    #[inline]
    pub(crate) fn has_restarted(&self) -> bool {
        self.next - self.acknowledged == 1
    }

    /// The lowest packet that waits to be sent again.
    fn retransmission(&mut self, rules: &Rules) -> Header {
        let psn = self
            .scoreboard
            .first_lost(self.lost_from, self.next)
            .expect("packets are counted as lost, so one is marked");
        let bit = 1 << (psn & 63);
        let block = self.scoreboard.block(psn);
        block.lost &= !bit;
        block.resent |= bit;
        self.lost -= 1;
        self.lost_from = psn + 1;
        self.messages.packet(psn, rules.payload)
    }

    /// A probe (§3.3.2). Its stamp is set when it leaves.
    pub(crate) fn probe(&mut self, rules: &Rules) -> Packet {
        let path = self.selector.choose_for_probe(self.window_packets);
        let base = self.acknowledged as u32;
        let probe = Header::Probe { base };
        let mut packet = self.ends.packet(Time::ZERO, path ^ self.salt, probe);
        packet.size = rules.ack;
        if rules.probe_class == ProbeClass::Control {
            packet.class = Class::CONTROL;
        }
        packet
    }

    /// The probe is on the wire.
    pub(crate) fn on_probe_sent(&mut self, now: Time) {
        self.statistics.probes += 1;
        self.probe_waits = false;
        self.probe_sent = now;
        self.probe_end = self.next;
        self.sacks_since_probe = 0;
        self.scoreboard.clear_resent();
    }

    /// An acknowledgement has come (Algorithm 1).
    #[inline(always)]
    pub(crate) fn on_sack(&mut self, packet: &Packet, cx: &mut Context<'_>) {
        let Header::Sack {
            bitmap,
            bytes_received,
            epsn,
            base_offset,
            out_of_order,
            probe,
        } = packet.header
        else {
            return;
        };
        let advance = i64::from(epsn.wrapping_sub(self.acknowledged as u32) as i32);
        let outstanding = (self.next - self.acknowledged) as i64;
        if advance > outstanding || (advance < 0 && -advance > self.acknowledged as i64) {
            cx.counters.invalid += 1;
            return;
        }
        let epsn = self.acknowledged.wrapping_add(advance as u64);
        let rtt = cx.now.since(packet.stamp);
        let path = packet.source_port ^ self.salt;
        self.selector.on_ack(path, packet.ecn);
        self.statistics.marked += u32::from(packet.ecn);

        let newly = i64::from(bytes_received.wrapping_sub(self.received as u32) as i32).max(0);
        self.received += newly as u64;
        self.in_flight -= newly;
        if advance > 0 {
            self.advance(epsn, cx);
            self.timeout_at = cx.now + cx.rules.timeout;
        }
        if bitmap != 0 {
            self.acknowledge_segment(epsn + u64::from(base_offset), bitmap, cx);
        }
        self.probe_at = cx.now + cx.rules.probe_after;
        if probe {
            self.judge_probe(packet.stamp, cx);
        } else {
            self.sacks_since_probe = self.sacks_since_probe.saturating_add(1);
        }
        self.controller.on_ack(&AckSample {
            now: cx.now,
            rtt,
            ecn: packet.ecn,
            acked: Bytes::new(newly as u64),
            in_flight: self.in_flight_bytes(),
            probe,
            delivered: self.acknowledged(),
            hops: cx.hops,
        });
        self.take_allowance(cx.rules);
        // An acknowledgement that was overtaken counts packets from an older expected one.
        if advance >= 0 && !self.recovering && out_of_order > cx.rules.out_of_order_min {
            self.judge_out_of_order(out_of_order, cx);
        }
        if cx.tracing {
            self.trace_ack(rtt, packet.ecn, path, cx);
        }
    }

    /// The receiver notifies of congestion.
    pub(crate) fn on_notification(&mut self, cx: &mut Context<'_>) {
        self.statistics.notifications += 1;
        self.controller.on_notification(cx.now);
        self.take_allowance(cx.rules);
    }

    #[cold]
    fn trace_ack(&self, rtt: Span, ecn: bool, path: u16, cx: &mut Context<'_>) {
        cx.events.push_back(Event::Ack {
            flow: self.ends.flow,
            now: cx.now,
            rtt,
            ecn,
            window: Bytes::new(self.window as u64),
            in_flight: self.in_flight_bytes(),
            path,
        });
    }

    /// Everything below `epsn` has arrived.
    #[inline]
    fn advance(&mut self, mut epsn: u64, cx: &mut Context<'_>) {
        let packets = epsn - self.acknowledged;
        let in_order = self.acknowledged >= self.marked_end;
        if !in_order || !self.messages.acknowledge_oldest(packets, epsn) {
            self.advance_scoreboard(epsn, cx);
            epsn = self.step_over_known(epsn);
        }
        self.reach(epsn);
    }

    /// The first missing packet is `epsn`.
    #[inline]
    fn reach(&mut self, epsn: u64) {
        self.acknowledged = epsn;
        self.seen_end = self.seen_end.max(epsn);
        if self.recovering && epsn >= self.recovery_end {
            self.recovering = false;
        }
        if epsn == self.next {
            debug_assert_eq!(
                self.lost, 0,
                "an acknowledged packet waits to be sent again"
            );
        }
    }

    fn advance_scoreboard(&mut self, epsn: u64, cx: &mut Context<'_>) {
        for part in parts(self.acknowledged, epsn) {
            self.acknowledge_bits(part.base, part.mask, cx);
            let block = self.scoreboard.block(part.base);
            block.acknowledged &= !part.mask;
            block.resent &= !part.mask;
        }
    }

    /// The first packet from `epsn` on that is not known to have arrived. A receiver has stepped over the others itself; one
    /// that has lost its state, as a process that was restarted, never will.
    fn step_over_known(&mut self, mut epsn: u64) -> u64 {
        while epsn < self.marked_end {
            let (block, bit) = (self.scoreboard.block(epsn), 1 << (epsn & 63));
            if block.acknowledged & bit == 0 {
                break;
            }
            block.acknowledged &= !bit;
            block.resent &= !bit;
            epsn += 1;
        }
        epsn
    }

    /// Bit `k` of `bitmap` says that `base + k` has arrived.
    #[inline(always)]
    fn acknowledge_segment(&mut self, base: u64, bitmap: u64, cx: &mut Context<'_>) {
        let (mut base, mut bitmap) = (base, bitmap);
        if base < self.acknowledged {
            let behind = self.acknowledged - base;
            if behind >= 64 {
                return;
            }
            bitmap >>= behind;
            base = self.acknowledged;
        }
        if base >= self.next {
            return;
        }
        let known = self.next - base;
        if known < 64 {
            bitmap &= (1 << known) - 1;
        }
        if bitmap == 0 {
            return;
        }
        let end = base + 64 - u64::from(bitmap.leading_zeros());
        self.seen_end = self.seen_end.max(end);
        self.marked_end = self.marked_end.max(end);
        let (word, shift) = (base & !63, base & 63);
        self.acknowledge_bits(word, bitmap << shift, cx);
        if shift != 0 {
            self.acknowledge_bits(word + 64, bitmap >> (64 - shift), cx);
        }
        if base == self.acknowledged && bitmap & 1 == 1 {
            let epsn = self.step_over_known(base);
            self.reach(epsn);
        }
    }

    /// The packets `mask` of the block at `base` have arrived.
    #[inline]
    fn acknowledge_bits(&mut self, base: u64, mask: u64, cx: &mut Context<'_>) {
        let block = self.scoreboard.block(base);
        let fresh = mask & !block.acknowledged;
        if fresh == 0 {
            return;
        }
        block.acknowledged |= fresh;
        let unclaimed = block.lost & fresh;
        block.lost &= !fresh;
        if unclaimed != 0 {
            self.unclaim(base, unclaimed, cx.rules);
        }
        let end = base + 64 - u64::from(fresh.leading_zeros());
        let packets = u64::from(fresh.count_ones());
        if !self.messages.acknowledge_oldest(packets, end) {
            self.finish_messages(base, fresh, cx);
        }
    }

    #[cold]
    fn finish_messages(&mut self, base: u64, bits: u64, cx: &mut Context<'_>) {
        let (flow, statistics) = (self.ends.flow, self.statistics);
        self.messages
            .acknowledge(numbers(base, bits), |message, bytes| {
                cx.events.push_back(Event::Sent {
                    flow,
                    message,
                    bytes,
                    statistics,
                });
            });
    }

    /// The earliest of the flow's timers.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        let controller = self.controller.deadline();
        if self.acknowledged == self.next {
            return controller;
        }
        self.probe_at.min(self.timeout_at).min(controller)
    }

    /// When the controller wants to be called.
    #[inline]
    pub(crate) fn controller_deadline(&self) -> Time {
        self.controller.deadline()
    }

    /// A timer may have run out.
    pub(crate) fn on_deadline(&mut self, cx: &mut Context<'_>) -> Due {
        if self.controller.deadline() <= cx.now {
            self.controller.on_deadline(cx.now);
            self.take_allowance(cx.rules);
        }
        if self.acknowledged == self.next {
            return Due::Nothing;
        }
        if self.timeout_at <= cx.now {
            self.on_timeout(cx);
            return Due::Nothing;
        }
        if self.probe_at <= cx.now {
            self.probe_at = cx.now.saturating_add(cx.rules.probe_after);
            // One that still waits for the wire will do; more would only lengthen the queue.
            if !std::mem::replace(&mut self.probe_waits, true) {
                return Due::Probe;
            }
        }
        Due::Nothing
    }

    #[inline(always)]
    fn take_allowance(&mut self, rules: &Rules) {
        let allowance = self.controller.allowance();
        self.window = allowance.window;
        self.window_packets = allowance.window * rules.packets_per_byte;
        self.pacer.set_rate(allowance.rate);
    }

    #[inline]
    fn in_flight_bytes(&self) -> Bytes {
        Bytes::new(self.in_flight.max(0) as u64)
    }
}
