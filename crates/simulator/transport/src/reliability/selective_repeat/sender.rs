//! The sending half of a flow: choice of the next packet, bytes in flight, losses.
//!
//! In flight (§3.3.2, Equations 1 and 2) is `sent - received - claimed`: every transmission counts as sent, the receiver's count of
//! distinct bytes as received, and a packet declared lost as claimed. One signed number holds the sum. It may fall below zero for a
//! while, when packets are claimed that the receiver has but whose segment the sender has not seen; at the end it is exactly zero.

mod irn;
mod loss;
mod packet_timeout;
mod progress;
mod scope;
mod sleek;
mod trimming;

use super::Rules;
use super::departures::Departures;
use super::parameters::ProbeClass;
use super::scoreboard::{Scoreboard, numbers, parts};
use crate::congestion::scope::Others;
use crate::congestion::{AckSample, CongestionControl, Controller};
use crate::endpoint::flow::{Context, Due, Messages, Pacer, Part, Paths, SenderIdentity};
use crate::packet::{Class, DataFlags, Header, Packet};
use crate::paths::{PathFeedback, PathVerdict, SendState};
use crate::report::{Event, FlowStatistics};
use clearway_units::{Bytes, FlowId, MessageId, Span, Time};

/// The sender of one flow.
pub(crate) struct Sender {
    ends: SenderIdentity,
    recovering: bool,

    /// Sequence number below which all packets are acknowledged.
    acknowledged: u64,
    /// The next new packet.
    next: u64,
    /// Bytes in flight.
    in_flight: i64,
    others: Others,
    /// The controller's window in bytes, and in packets.
    window: f64,
    window_packets: f64,
    /// Bytes that the receiver has reported.
    received: u64,
    messages: Messages,

    /// Packets that wait for retransmission, and a sequence number below which no packet waits; it is at most a window below `next`.
    lost: u32,
    lost_from: u64,
    scoreboard: Scoreboard,
    /// Sequence number from which on the scoreboard has no bit set.
    marked_end: u64,
    /// Sequence number at which recovery ends: once all packets below it are acknowledged.
    recovery_end: u64,
    /// One more than the highest packet that is known to have arrived.
    seen_end: u64,

    probe_at: Time,
    timeout_at: Time,
    /// Departure time of the last probe, and the next new packet at that time.
    probe_sent: Time,
    probe_end: u64,
    sacks_since_probe: u32,
    /// True while a probe has been made and has not left yet.
    probe_waits: bool,
    /// Time of the last departure of each packet of the window, where each has its own timeout.
    departures: Option<Departures>,

    pacer: Pacer,
    paths: Paths,
    statistics: FlowStatistics,
}

impl Sender {
    /// Loads what the next packets will touch into the caches: paths, and the scoreboard and messages of the oldest packets.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.scoreboard.prefetch(self.acknowledged);
        self.messages.prefetch();
        self.paths.prefetch();
    }

    pub(crate) fn new(
        ends: SenderIdentity,
        paths: Paths,
        controller: &Controller,
        rules: &Rules,
    ) -> Self {
        let mut sender = Self {
            ends,
            recovering: false,
            acknowledged: 0,
            next: 0,
            in_flight: 0,
            others: Others::NONE,
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
            departures: rules.timeout_per_packet.then(Departures::default),
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
        Bytes::new(self.received)
    }

    /// Bytes in flight, with their sign.
    #[cfg(test)]
    pub(crate) fn in_flight_exact(&self) -> i64 {
        self.in_flight
    }

    /// Starts as if all packets below `psn` had been sent and acknowledged.
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

    /// True if the flow is closed and all of its packets are acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.messages.is_closed() && !self.messages.has_unsent() && self.acknowledged == self.next
    }

    /// True if a packet waits to be sent and the window has room, pacing aside.
    #[inline]
    pub(crate) fn may_send(&self, rules: &Rules) -> bool {
        self.waits(rules)
            && (rules.fits(self.in_window(), self.window)
                || (self.lost > 0 && self.recovers_by_sleek(rules)))
    }

    /// True if there is a packet to be sent that needs only room in the window and a departure.
    #[inline]
    pub(crate) fn waits(&self, rules: &Rules) -> bool {
        self.lost > 0
            || (self.messages.has_unsent()
                && self.next - self.acknowledged < u64::from(rules.window))
    }

    /// True in a recovery whose retransmissions do not wait for room in the window.
    #[inline]
    fn recovers_by_sleek(&self, rules: &Rules) -> bool {
        self.recovering && rules.sleek.is_some()
    }

    /// True if a packet waits to be sent, for the first time or again.
    pub(crate) fn has_packets(&self) -> bool {
        self.lost > 0 || self.messages.has_unsent()
    }

    /// Earliest departure of the next packet, by pacing.
    #[inline]
    pub(crate) fn departure(&self) -> Time {
        self.pacer.departure()
    }

    /// True if the packets in flight fill the window; by the rules of UEC, if they would with one more packet.
    #[inline]
    fn fills_window(&self, rules: &Rules) -> bool {
        (self.in_window() + rules.request_margin) as f64 >= self.window
    }

    /// Bytes in flight in the window.
    #[inline]
    fn in_window(&self) -> i64 {
        self.in_flight + self.others.in_window
    }

    /// Returns the next packet, which counts as sent. Call only if [`may_send`](Self::may_send).
    #[inline(always)]
    pub(crate) fn transmit(&mut self, cx: &mut Context<'_>, rules: &Rules) -> Packet {
        if self.acknowledged == self.next {
            self.restart(cx, rules);
        }
        let header = if self.lost > 0 {
            cx.counters.retransmitted += 1;
            self.statistics.retransmitted += 1;
            self.retransmission(rules)
        } else {
            self.next += 1;
            self.messages.next_packet(rules.payload)
        };
        cx.counters.data_sent += 1;
        self.statistics.packets += 1;
        let mut packet = self.data_packet(cx, header);
        if let Header::Data {
            psn,
            payload,
            flags,
            ..
        } = &mut packet.header
        {
            if self.departures.is_some() {
                self.note_departure(cx.now, *psn, packet.source_port);
            }
            self.in_flight += i64::from(*payload);
            let fills = self.fills_window(rules);
            // Ask for an acknowledgement where waiting for one would hold the flow up: at a full window, after a loss, at the end of a
            // message.
            let asks = DataFlags::RETRANSMISSION.union(DataFlags::END_OF_MESSAGE);
            let requests = fills || flags.intersects(asks) || *payload == 0;
            *flags = flags.with(DataFlags::ACK_REQUEST, requests);
            packet.size = *payload + rules.header;
        }
        self.pacer.on_sent(cx.now, packet.size);
        cx.controller
            .on_sent(cx.now, Bytes::new(u64::from(packet.size)));
        if self.pacer.rate().is_some() {
            self.take_allowance(cx.controller, rules);
        }
        packet
    }

    #[inline(always)]
    fn data_packet(&mut self, cx: &Context<'_>, header: Header) -> Packet {
        let port = self.paths.next_port(&self.send_state(cx.now));
        self.ends.packet(cx.now, port, header)
    }

    /// State of the flow as its path selector sees it before a packet leaves.
    #[inline(always)]
    fn send_state(&self, now: Time) -> SendState {
        SendState {
            now,
            window: self.window_packets,
            in_flight: self.in_flight_bytes(),
        }
    }

    /// Restarts timers and controller for the first packet after a time with nothing outstanding.
    fn restart(&mut self, cx: &mut Context<'_>, rules: &Rules) {
        let now = cx.now;
        if self.statistics.packets == 0 {
            self.statistics.first_send = now;
        }
        self.timeout_at = now.saturating_add(rules.timeout);
        self.probe_at = now.saturating_add(rules.probe_after);
        // A shared controller restarts only if the other queue pairs have nothing in flight either.
        if self.others.account.in_flight <= 0 {
            cx.controller.on_restart(now);
        }
        self.take_allowance(cx.controller, rules);
    }

    /// True if at most one packet is outstanding.
    #[inline]
    pub(crate) fn is_nearly_idle(&self) -> bool {
        self.next - self.acknowledged <= 1
    }

    /// Takes the lowest packet that waits for retransmission.
    fn retransmission(&mut self, rules: &Rules) -> Header {
        let psn = self
            .scoreboard
            .first_lost(self.lost_from, self.next)
            .expect("packets are counted as lost, so one is marked");
        self.scoreboard.resend(psn);
        self.lost -= 1;
        self.lost_from = psn + 1;
        self.messages.packet(psn, rules.payload)
    }

    /// Creates a probe (§3.3.2). Its time stamp is set when it leaves.
    pub(crate) fn probe(&mut self, now: Time, rules: &Rules) -> Packet {
        let port = self.paths.probe_port(&self.send_state(now));
        let base = self.acknowledged as u32;
        let probe = Header::Probe {
            base,
            pull_target: None,
        };
        let mut packet = self.ends.packet(Time::ZERO, port, probe);
        packet.size = rules.ack;
        if rules.probe_class == ProbeClass::Control {
            packet.class = Class::CONTROL;
        }
        packet
    }

    /// Takes note that the probe is on the wire.
    pub(crate) fn on_probe_sent(&mut self, now: Time, rules: &Rules) {
        self.statistics.probes += 1;
        self.probe_waits = false;
        self.probe_sent = now;
        self.probe_end = self.next;
        self.sacks_since_probe = 0;
        if !self.recovers_by_sleek(rules) {
            self.scoreboard.clear_resent();
        }
    }

    /// Processes an acknowledgement (Algorithm 1).
    #[inline(always)]
    pub(crate) fn on_sack(&mut self, packet: &Packet, cx: &mut Context<'_>, rules: &Rules) {
        #[rustfmt::skip]
        let Header::Sack { bitmap, bytes_received, epsn, base_offset, out_of_order, probe } = packet.header else {
            return;
        };
        // The difference modulo 2^32 restores the 64-bit number: windows are below 2^31 packets.
        let advance = i64::from(epsn.wrapping_sub(self.acknowledged as u32) as i32);
        let outstanding = (self.next - self.acknowledged) as i64;
        if advance > outstanding || (advance < 0 && -advance > self.acknowledged as i64) {
            cx.counters.invalid += 1;
            return;
        }
        let epsn = self.acknowledged.wrapping_add(advance as u64);
        let rtt = cx.now.since(packet.stamp);
        let path = self.paths.path_of(packet.source_port);
        self.statistics.marked += u32::from(packet.ecn);
        // An overtaken acknowledgement reports fewer bytes than are known already.
        let newly = i64::from(bytes_received.wrapping_sub(self.received as u32) as i32).max(0);
        self.received += newly as u64;
        self.in_flight -= newly;
        let (delivered, in_flight) = (self.acknowledged(), self.in_flight_bytes());
        self.paths.on_feedback(&PathFeedback {
            now: cx.now,
            path,
            verdict: PathVerdict::from_flags(packet.ecn, false),
            delivered,
            sent: delivered + in_flight,
            rtt,
        });
        if advance > 0 {
            self.advance(epsn, cx, rules);
            if self.departures.is_none() {
                self.timeout_at = cx.now + rules.timeout;
            }
        }
        if bitmap != 0 {
            self.acknowledge_segment(epsn + u64::from(base_offset), bitmap, cx, rules);
        }
        self.probe_at = cx.now + rules.probe_after;
        if probe {
            self.judge_probe(packet.stamp, cx, rules);
        } else {
            self.sacks_since_probe = self.sacks_since_probe.saturating_add(1);
        }
        cx.controller.on_ack(&AckSample {
            now: cx.now,
            rtt,
            ecn: packet.ecn,
            acked: Bytes::new(newly as u64),
            in_flight: self.others.in_flight_with(self.in_flight),
            probe,
            delivered: self.others.delivered_with(self.received),
            hops: cx.hops,
        });
        self.take_allowance(cx.controller, rules);
        // An acknowledgement that was overtaken counts packets from an older expected one.
        if out_of_order > rules.out_of_order_min && advance >= 0 && (!self.recovering || rules.irn)
        {
            self.judge_out_of_order(out_of_order, cx, rules);
        }
        if let Some(sleek) = &rules.sleek {
            self.go_on_with_sleek(sleek, cx, rules);
        }
        if cx.tracing {
            self.trace_ack(rtt, packet.ecn, path, cx);
        }
    }

    /// Processes a congestion notification of the receiver.
    pub(crate) fn on_notification(&mut self, cx: &mut Context<'_>, rules: &Rules) {
        self.statistics.notifications += 1;
        cx.controller.on_notification(cx.now);
        self.take_allowance(cx.controller, rules);
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

    /// Moves the first missing packet up to `epsn`: all packets below have arrived.
    #[inline]
    fn advance(&mut self, mut epsn: u64, cx: &mut Context<'_>, rules: &Rules) {
        let packets = epsn - self.acknowledged;
        let in_order = self.acknowledged >= self.marked_end;
        if !in_order || !self.messages.acknowledge_oldest(packets, epsn) {
            self.advance_scoreboard(epsn, cx, rules);
            epsn = self.step_over_known(epsn);
        }
        self.reach(epsn);
    }

    /// Sets the first missing packet to `epsn`. Recovery ends if that is far enough.
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

    fn advance_scoreboard(&mut self, epsn: u64, cx: &mut Context<'_>, rules: &Rules) {
        for part in parts(self.acknowledged, epsn) {
            self.acknowledge_bits(part.base, part.mask, cx, rules);
            let block = self.scoreboard.block(part.base);
            block.acknowledged &= !part.mask;
            block.resent &= !part.mask;
        }
    }

    /// Returns the first packet from `epsn` on that is not known to have arrived. A receiver normally steps over the others itself.
    /// One that has lost its state, such as a process that was restarted, never does.
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

    /// Acknowledges the packets of a bitmap segment: bit `k` of `bitmap` stands for packet `base + k`.
    #[inline(always)]
    fn acknowledge_segment(&mut self, base: u64, bitmap: u64, cx: &mut Context<'_>, rules: &Rules) {
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
        self.acknowledge_bits(word, bitmap << shift, cx, rules);
        if shift != 0 {
            self.acknowledge_bits(word + 64, bitmap >> (64 - shift), cx, rules);
        }
        if base == self.acknowledged && bitmap & 1 == 1 {
            let epsn = self.step_over_known(base);
            self.reach(epsn);
        }
    }

    /// Acknowledges the packets `mask` of the block at `base`.
    #[inline(always)]
    fn acknowledge_bits(&mut self, base: u64, mask: u64, cx: &mut Context<'_>, rules: &Rules) {
        let block = self.scoreboard.block(base);
        let fresh = mask & !block.acknowledged;
        if fresh == 0 {
            return;
        }
        block.acknowledged |= fresh;
        let unclaimed = block.lost & fresh;
        block.lost &= !fresh;
        if unclaimed != 0 {
            self.unclaim(base, unclaimed, rules);
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
    pub(crate) fn deadline(&self, controller: &Controller, rules: &Rules) -> Time {
        let controller = controller.deadline();
        if self.acknowledged == self.next {
            return controller;
        }
        self.probe_at.min(self.timeout(rules)).min(controller)
    }

    /// Runs the timers that are due.
    pub(crate) fn on_deadline(&mut self, cx: &mut Context<'_>, rules: &Rules) -> Due {
        if cx.controller.deadline() <= cx.now {
            cx.controller.on_deadline(cx.now);
            self.take_allowance(cx.controller, rules);
        }
        if self.acknowledged == self.next {
            return Due::Nothing;
        }
        if self.timeout(rules) <= cx.now {
            self.on_timeout(cx, rules);
            return Due::Nothing;
        }
        if self.probe_at <= cx.now {
            let period = match &rules.sleek {
                None => rules.probe_after,
                Some(sleek) => sleek.probe_again_after,
            };
            self.probe_at = cx.now.saturating_add(period);
            // One that still waits for the wire will do; more would only lengthen the queue.
            if !std::mem::replace(&mut self.probe_waits, true) {
                return Due::Probe;
            }
        }
        Due::Nothing
    }

    #[inline(always)]
    pub(crate) fn take_allowance(&mut self, controller: &Controller, rules: &Rules) {
        let allowance = self.others.part_of(controller.allowance());
        self.window = allowance.window;
        self.window_packets = allowance.window * rules.packets_per_byte;
        self.pacer.set_rate(allowance.rate);
    }

    #[inline]
    fn in_flight_bytes(&self) -> Bytes {
        Bytes::new(self.in_flight.max(0) as u64)
    }
}
