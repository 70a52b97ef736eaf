//! How a sender finds losses on three time scales, and what it does then (STrack §3.3.2).

use super::{Context, Sender};
use crate::cc::{CongestionControl, LossCause, LossSample};
use crate::endpoint::Event;
use crate::selective_repeat::Rules;
use crate::selective_repeat::scoreboard::{numbers, parts};
use clearway_units::{Bytes, Time};

/// A claim's reason: who may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Everything that is not acknowledged.
    All,
    /// Of these, what was last sent before the last probe.
    SentBeforeProbe,
}

impl Sender {
    /// Loss by the out-of-order counter (§3.3.2).
    pub(super) fn judge_out_of_order(&mut self, out_of_order: u16, cx: &mut Context<'_>) {
        if f64::from(out_of_order) * cx.rules.out_of_order_bytes > self.window {
            self.recover(LossCause::OutOfOrder, Claim::All, self.seen_end, cx);
        }
    }

    /// Loss by a probe (Algorithm 1 lines 10 to 12): it came back quickly and nothing else did.
    #[cold]
    pub(super) fn judge_probe(&mut self, stamp: Time, cx: &mut Context<'_>) {
        let quick = cx.now.since(stamp) < cx.rules.probe_rtt_limit;
        if quick && stamp == self.probe_sent && self.sacks_since_probe == 0 {
            let end = self.probe_end;
            self.recover(LossCause::Probe, Claim::SentBeforeProbe, end, cx);
        }
    }

    /// Declares packets below `end` lost and enters recovery.
    #[cold]
    fn recover(&mut self, cause: LossCause, claim: Claim, end: u64, cx: &mut Context<'_>) {
        let (packets, bytes) = self.claim(claim, end, cx.rules);
        if packets == 0 {
            return;
        }
        self.recovery_end = if self.recovering {
            self.recovery_end.max(end)
        } else {
            end
        };
        self.recovering = true;
        cx.counters.note_loss(cause, packets);
        self.controller.on_loss(&LossSample {
            now: cx.now,
            cause,
            lost: Bytes::new(bytes),
        });
        self.take_allowance(cx.rules);
        if cx.tracing {
            cx.events.push_back(Event::Loss {
                flow: self.ends.flow,
                now: cx.now,
                cause,
                packets,
            });
        }
    }

    /// Moves packets below `end` to those that wait to be sent again. Returns how many, and their payload.
    fn claim(&mut self, claim: Claim, end: u64, rules: &Rules) -> (u32, u64) {
        let (mut packets, mut bytes) = (0, 0);
        let end = end.min(self.next);
        self.marked_end = self.marked_end.max(end);
        for part in parts(self.acknowledged, end) {
            let block = self.scoreboard.block(part.base);
            let mut claimed = part.mask & !block.acknowledged & !block.lost;
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
        self.lost_from = self.acknowledged;
        self.in_flight -= bytes as i64;
        (packets, bytes)
    }

    /// No progress for the retransmission timeout: everything outstanding is lost (§3.3.2).
    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_>) {
        cx.counters.timeouts += 1;
        self.statistics.timeouts += 1;
        self.timeout_at = cx.now.saturating_add(cx.rules.timeout);
        self.probe_at = cx.now.saturating_add(cx.rules.probe_after);
        self.recover(LossCause::Timeout, Claim::All, self.next, cx);
    }

    /// Packets declared lost turned out to have arrived before they were sent again.
    #[cold]
    pub(super) fn unclaim(&mut self, base: u64, bits: u64, rules: &Rules) {
        for psn in numbers(base, bits) {
            self.lost -= 1;
            self.in_flight += self.messages.length(psn, rules.payload) as i64;
        }
    }
}
