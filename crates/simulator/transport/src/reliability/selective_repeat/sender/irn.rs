//! IRN (Mittal et al., SIGCOMM 2018, §3): RDMA on one path without pause frames.
//!
//! A single packet out of order begins a recovery. Missing packets below the highest one that has arrived are sent again at once, each
//! packet once; new packets follow where the window has room. The recovery ends when all packets sent before its beginning have arrived. A
//! packet that is lost twice waits for the timeout, which resends the first missing packet, and lets the others be sent once more. With few
//! packets in flight, whose loss no later one may show, the timeout is shorter.
//!
//! The other parts are other settings: one path, and the controller `constant`, whose window of one bandwidth-delay product is IRN's cap
//! (BDP-FC, §3.2). With another controller, such as DCQCN, that controller's window is to be the cap.
//!
//! # Decisions
//! * Our acknowledgements serve as IRN's NACKs: they have the expected packet and a map of the packets that have arrived. All full packets
//!   are acknowledged, as in IRN.
//! * A packet that one recovery has sent again is not sent again when the next one begins, with the first packet out of order: its copy is
//!   on its way.
//! * Packets in flight are counted by their payload: short ones count as parts of one.

use super::Sender;
use super::loss::Claim;
use crate::congestion::{CongestionControl, Controller, LossCause};
use crate::endpoint::flow::Context;
use crate::reliability::selective_repeat::Rules;
use clearway_units::Time;

impl Sender {
    /// Declares lost the missing packets below `end` that were not sent again since the last timeout. Begins a recovery unless one is under
    /// way.
    pub(super) fn resend_gaps(
        &mut self,
        cause: LossCause,
        end: u64,
        cx: &mut Context<'_>,
        rules: &Rules,
    ) {
        if !self.recovering {
            self.recovering = true;
            self.recovery_end = self.next;
        }
        let (packets, bytes) = self.claim(Claim::SentBeforeProbe, end, rules);
        if packets > 0 {
            self.report_loss(cause, packets, bytes, cx);
            self.take_allowance(cx.controller, rules);
        }
    }

    /// Instant of the timeout.
    #[inline]
    pub(super) fn timeout(&self, rules: &Rules) -> Time {
        match self.in_flight > rules.few_in_flight {
            true => self.timeout_at,
            false => self.timeout_at - rules.timeout_early,
        }
    }

    /// The earliest timer that an acknowledgement may have brought forward.
    #[inline]
    pub(crate) fn brought_forward(&self, controller: &Controller, rules: &Rules) -> Time {
        match !rules.moves_timers {
            true => controller.deadline(),
            false => self.deadline(controller, rules),
        }
    }

    /// Sequence number at which the present or last recovery ends.
    #[cfg(test)]
    pub(crate) fn recovery_end(&self) -> u64 {
        self.recovery_end
    }
}
