//! Negative acknowledgements of trimmed packets.

use super::Sender;
use crate::congestion::{CongestionControl, LossCause, LossSample};
use crate::endpoint::flow::Context;
use crate::packet::{Header, Packet};
use crate::paths::{PathFeedback, PathVerdict};
use crate::reliability::selective_repeat::Rules;
use crate::report::Event;
use clearway_units::Bytes;

impl Sender {
    /// Processes a negative acknowledgement: its packet alone is lost, and is sent again before anything new. The path selector hears of it
    /// before the window moves. One of a packet that has arrived meanwhile, or waits to be sent again already, changes nothing.
    pub(crate) fn on_nack(&mut self, packet: &Packet, cx: &mut Context<'_>, rules: &Rules) {
        let Header::Nack { psn, last_hop } = packet.header else {
            return;
        };
        let ahead = i64::from(psn.wrapping_sub(self.acknowledged as u32) as i32);
        if ahead >= (self.next - self.acknowledged) as i64 {
            cx.counters.invalid += 1;
            return;
        }
        cx.counters.nacks_received += 1;
        self.statistics.nacks += 1;
        self.probe_at = cx.now + rules.probe_after;
        if ahead < 0 {
            return;
        }
        let psn = self.acknowledged + ahead as u64;
        let (block, bit) = (self.scoreboard.block(psn), 1 << (psn & 63));
        if (block.acknowledged | block.lost) & bit != 0 {
            return;
        }
        block.lost |= bit;
        let bytes = self.messages.length(psn, rules.payload);
        self.lost_from = match self.lost {
            0 => psn,
            _ => self.lost_from.min(psn),
        };
        self.lost += 1;
        self.marked_end = self.marked_end.max(psn + 1);
        self.in_flight -= bytes as i64;
        let rtt = cx.now.since(packet.stamp);
        self.on_trimmed(packet, LossCause::Trimmed { last_hop, rtt }, bytes, cx);
        self.take_allowance(cx.controller, rules);
    }

    /// Tells selector and controller of a trimmed packet with `bytes` of payload.
    fn on_trimmed(&mut self, nack: &Packet, cause: LossCause, bytes: u64, cx: &mut Context<'_>) {
        let last_hop = matches!(cause, LossCause::Trimmed { last_hop: true, .. });
        let (delivered, in_flight) = (self.acknowledged(), self.in_flight_bytes());
        self.paths.on_feedback(&PathFeedback {
            now: cx.now,
            rtt: cx.now.since(nack.stamp),
            path: self.paths.path_of(nack.source_port),
            verdict: PathVerdict::Trimmed {
                last_hop,
                marked: nack.ecn,
            },
            delivered,
            sent: delivered + in_flight,
        });
        cx.counters.note_loss(cause, 1);
        cx.controller.on_loss(&LossSample {
            now: cx.now,
            cause,
            lost: Bytes::new(bytes),
            in_flight: self.others.in_flight_with(self.in_flight),
        });
        if cx.tracing {
            cx.events.push_back(Event::Loss {
                flow: self.ends.flow,
                now: cx.now,
                cause,
                packets: 1,
            });
        }
    }
}
