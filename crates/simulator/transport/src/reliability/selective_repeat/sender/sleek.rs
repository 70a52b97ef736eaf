//! SLEEK, the loss recovery of Ultra Ethernet where packets are not trimmed.
//!
//! It differs from STrack's in numbers (UEC reference simulator): the out-of-order counter has to reach one and a half windows, but no more
//! than the largest window; a recovery resends the missing packets within a window of the first missing one, each once, as the first moves
//! on, and does not wait for room in the window; probes come earlier once everything is sent, later after another probe, and regardless of
//! acknowledgements in between.
//!
//! # Decisions
//! * The verdict on a probe is `probe-rtt-limit`: with a target of one round trip, as the preset has it, a delay below the target.
//! * A timeout during recovery declares its packet lost as at any other time.

use super::Sender;
use super::loss::Claim;
use crate::congestion::LossCause;
use crate::endpoint::flow::Context;
use crate::reliability::selective_repeat::Rules;
use crate::reliability::selective_repeat::parameters::Sleek;

/// Windows that may arrive out of order before a packet is taken for lost.
const THRESHOLD: f64 = 1.5;

impl Sender {
    /// Begins a recovery if so many packets out of order say that one is lost.
    pub(super) fn begin_sleek_if_late(
        &mut self,
        out_of_order: u16,
        sleek: &Sleek,
        cx: &mut Context<'_>,
        rules: &Rules,
    ) {
        let late = f64::from(out_of_order) * rules.payload as f64;
        if late >= (THRESHOLD * self.window).min(sleek.largest_window) {
            self.begin_sleek(LossCause::OutOfOrder, self.seen_end, cx, rules);
        }
    }

    /// Begins a recovery of the packets below `end`, or extends the present one.
    pub(super) fn begin_sleek(
        &mut self,
        cause: LossCause,
        end: u64,
        cx: &mut Context<'_>,
        rules: &Rules,
    ) {
        if end <= self.acknowledged {
            return;
        }
        if self.recovering {
            self.recovery_end = self.recovery_end.max(end);
            return;
        }
        self.scoreboard.clear_resent();
        self.recovering = true;
        self.recovery_end = end;
        self.resend_window(cause, cx, rules);
    }

    /// After an acknowledgement: the next packets of the recovery, and the time of the next probe.
    pub(super) fn go_on_with_sleek(&mut self, sleek: &Sleek, cx: &mut Context<'_>, rules: &Rules) {
        if !self.messages.has_unsent() {
            self.probe_at = cx.now + sleek.probe_after_all_sent;
        }
        if self.recovering {
            self.resend_window(LossCause::OutOfOrder, cx, rules);
        }
    }

    /// Declares lost the missing packets within a window of the first missing one that were not sent again in this recovery.
    fn resend_window(&mut self, cause: LossCause, cx: &mut Context<'_>, rules: &Rules) {
        let window = (self.window / rules.payload as f64).max(1.0) as u64;
        let end = self
            .recovery_end
            .min(self.acknowledged.saturating_add(window));
        let (packets, bytes) = self.claim(Claim::SentBeforeProbe, end, rules);
        if packets > 0 {
            self.report_loss(cause, packets, bytes, cx);
            self.take_allowance(cx.controller, rules);
        }
    }
}
