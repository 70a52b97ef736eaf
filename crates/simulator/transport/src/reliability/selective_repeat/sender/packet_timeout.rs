//! Timeouts of single packets: the time at which each was last sent, and its path.

use super::Sender;
use crate::reliability::selective_repeat::Rules;
use crate::reliability::selective_repeat::departures::Departure;
use crate::reliability::selective_repeat::scoreboard::{numbers, parts};
use clearway_units::{Span, Time};

impl Sender {
    /// Takes note of a data packet that leaves.
    #[inline(never)]
    pub(super) fn note_departure(&mut self, now: Time, psn: u32, source_port: u16) {
        if let Some(departures) = &mut self.departures {
            departures.make_room(self.acknowledged..self.next);
            *departures.slot(psn.into()) = Departure {
                at: now,
                path: self.paths.path_of(source_port),
            };
        }
    }

    /// Tells the path selector of a packet whose timeout has passed.
    pub(super) fn blame_path(&mut self, psn: u64) {
        if let Some(departures) = &mut self.departures {
            self.paths.on_path_timeout(departures.slot(psn).path);
        }
    }

    /// The packets that have waited for an answer for a whole timeout, as bits of the block of each, and the time at which the next one
    /// will have. Packets that wait to be sent again do not count.
    pub(super) fn expired(&mut self, now: Time, rules: &Rules) -> (Vec<(u64, u64)>, Time) {
        let (mut expired, mut next) = (Vec::new(), Time::NEVER);
        let Some(departures) = &mut self.departures else {
            return (expired, next);
        };
        for part in parts(self.acknowledged, self.next) {
            let block = self.scoreboard.block(part.base);
            let waiting = part.mask & !block.acknowledged & !block.lost;
            let mut bits = 0;
            for psn in numbers(part.base, waiting) {
                let end = departures.slot(psn).at.saturating_add(rules.timeout);
                if end <= now {
                    bits |= 1 << (psn & 63);
                } else {
                    next = next.min(end);
                }
            }
            if bits != 0 {
                expired.push((part.base, bits));
            }
        }
        // Packets that expire now are sent again at once, and then wait anew.
        let soonest = now.saturating_add(rules.timeout.max(Span::from_ps(1)));
        (expired, next.min(soonest))
    }
}
