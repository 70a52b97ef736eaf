//! Loss detection of a sender on three time scales, and recovery (STrack §3.3.2).

use super::Sender;
use crate::congestion::{CongestionControl, LossCause, LossSample};
use crate::endpoint::flow::Context;
use crate::reliability::selective_repeat::Rules;
use crate::reliability::selective_repeat::scoreboard::{numbers, parts};
use crate::report::Event;
use clearway_units::{Bytes, Time};

/// Set of packets that may be claimed as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// All packets that are not acknowledged.
    All,
    /// Packets that are not acknowledged and were last sent before the last probe; with SLEEK, before the recovery began; with IRN,
    /// before the last timeout.
    SentBeforeProbe,
}

impl Sender {
    /// Detects loss by the out-of-order counter (§3.3.2).
    #[inline(always)]
    pub(super) fn judge_out_of_order(
        &mut self,
        out_of_order: u16,
        cx: &mut Context<'_>,
        rules: &Rules,
    ) {
        let plain = rules.sleek.is_none() && !rules.irn;
        if !plain || f64::from(out_of_order) * rules.out_of_order_bytes > self.window {
            self.react_to_out_of_order(out_of_order, cx, rules);
        }
    }

    #[cold]
    #[inline(never)]
    fn react_to_out_of_order(&mut self, out_of_order: u16, cx: &mut Context<'_>, rules: &Rules) {
        if let Some(sleek) = &rules.sleek {
            self.begin_sleek_if_late(out_of_order, sleek, cx, rules);
        } else if rules.irn {
            self.resend_gaps(LossCause::OutOfOrder, self.seen_end, cx, rules);
        } else {
            self.recover(LossCause::OutOfOrder, Claim::All, self.seen_end, cx, rules);
        }
    }

    /// Detects loss by a probe (Algorithm 1 lines 10 to 12): it came back quickly and nothing else did.
    #[cold]
    pub(super) fn judge_probe(&mut self, stamp: Time, cx: &mut Context<'_>, rules: &Rules) {
        if !rules.probes {
            // It asked for credit.
            return;
        }
        let quick = cx.now.since(stamp) < rules.probe_rtt_limit;
        if rules.sleek.is_some() {
            if quick && stamp == self.probe_sent {
                self.begin_sleek(LossCause::Probe, self.probe_end, cx, rules);
            }
        } else if quick && stamp == self.probe_sent && self.sacks_since_probe == 0 {
            let end = self.probe_end;
            self.recover(LossCause::Probe, Claim::SentBeforeProbe, end, cx, rules);
        }
    }

    /// Declares packets below `end` lost and enters recovery.
    #[cold]
    pub(super) fn recover(
        &mut self,
        cause: LossCause,
        claim: Claim,
        end: u64,
        cx: &mut Context<'_>,
        rules: &Rules,
    ) {
        let (packets, bytes) = self.claim(claim, end, rules);
        if packets == 0 {
            return;
        }
        self.recovery_end = if self.recovering {
            self.recovery_end.max(end)
        } else {
            end
        };
        self.recovering = true;
        self.report_loss(cause, packets, bytes, cx);
        self.take_allowance(cx.controller, rules);
    }

    /// Tells selector, controller, counters and events of packets declared lost.
    pub(super) fn report_loss(
        &mut self,
        cause: LossCause,
        packets: u32,
        bytes: u64,
        cx: &mut Context<'_>,
    ) {
        cx.counters.note_loss(cause, packets);
        let loss = LossSample {
            now: cx.now,
            cause,
            lost: Bytes::new(bytes),
            in_flight: self.others.in_flight_with(self.in_flight),
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

    /// Moves packets below `end` to those that wait for retransmission. Returns their number and their payload.
    pub(super) fn claim(&mut self, claim: Claim, end: u64, rules: &Rules) -> (u32, u64) {
        let (mut packets, mut bytes) = (0, 0);
        let end = end.min(self.next);
        self.marked_end = self.marked_end.max(end);
        for part in parts(self.acknowledged, end) {
            let block = self.scoreboard.block(part.base);
            let mut claimed = part.mask & !block.acknowledged & !block.lost;
            // A packet that was sent again says nothing yet: its copy may be on its way.
            if claim == Claim::SentBeforeProbe {
                claimed &= !block.resent;
            }
            block.lost |= claimed;
            packets += claimed.count_ones();
            for psn in numbers(part.base, claimed) {
                bytes += self.messages.length(psn, rules.payload);
            }
        }
        self.lost += packets;
        // The claimed packets may lie anywhere from the first unacknowledged one on.
        self.lost_from = self.acknowledged;
        self.in_flight -= bytes as i64;
        (packets, bytes)
    }

    /// Handles a retransmission timeout, a time without progress: declares everything outstanding lost (§3.3.2), with IRN the first packet
    /// and the missing packets below the highest one that has arrived.
    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_>, rules: &Rules) {
        if self.departures.is_some() {
            return self.on_packet_timeout(cx, rules);
        }
        cx.counters.timeouts += 1;
        self.statistics.timeouts += 1;
        self.timeout_at = cx.now.saturating_add(rules.timeout);
        self.probe_at = cx.now.saturating_add(rules.probe_after);
        if rules.irn {
            self.recovering = false;
            // IRN resends each packet once between two timeouts (§3).
            self.scoreboard.clear_resent();
            let end = self.seen_end.max(self.acknowledged + 1);
            return self.resend_gaps(LossCause::Timeout, end, cx, rules);
        }
        self.recover(LossCause::Timeout, Claim::All, self.next, cx, rules);
    }

    /// Declares the packets lost that have waited for a whole timeout since they were last sent. This does not begin a recovery: the other
    /// packets are taken to be on their way.
    fn on_packet_timeout(&mut self, cx: &mut Context<'_>, rules: &Rules) {
        let (expired, next) = self.expired(cx.now, rules);
        self.timeout_at = next;
        let (mut packets, mut bytes) = (0, 0);
        for (base, bits) in expired {
            self.scoreboard.block(base).lost |= bits;
            packets += bits.count_ones();
            for psn in numbers(base, bits) {
                bytes += self.messages.length(psn, rules.payload);
                self.marked_end = self.marked_end.max(psn + 1);
                self.blame_path(psn);
            }
        }
        if packets == 0 {
            return;
        }
        cx.counters.timeouts += 1;
        self.statistics.timeouts += 1;
        self.lost += packets;
        self.lost_from = self.acknowledged;
        self.in_flight -= bytes as i64;
        self.report_loss(LossCause::Timeout, packets, bytes, cx);
        self.take_allowance(cx.controller, rules);
    }

    /// Takes back the loss of packets that turn out to have arrived before they were sent again.
    #[cold]
    pub(super) fn unclaim(&mut self, base: u64, bits: u64, rules: &Rules) {
        for psn in numbers(base, bits) {
            self.lost -= 1;
            self.in_flight += self.messages.length(psn, rules.payload) as i64;
        }
    }
}
