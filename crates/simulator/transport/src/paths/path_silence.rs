//! Packets on a path that no acknowledgement has answered, and the test by which such a path is dead.
//!
//! A path is dead when several packets in a row have no acknowledgement, but a packet on another path that left later by a set time has
//! one. The test compares times of departure. So a delay of all paths alike, such as a queue in front of the receiver or a host that is not
//! scheduled, makes no path dead, and if all paths lead nowhere no path is ever dead. The spraying of STrack and the connections over UDP
//! use this test.

use clearway_units::{Span, Time};

/// Conditions on which a path is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadPathThreshold {
    /// Packets in a row without an acknowledgement, at least 1.
    pub packets: u32,
    /// Time by which a packet that was answered on another path left later than the last of these.
    pub lag: Span,
}

/// Packets of one path since its last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathSilence {
    packets: u32,
    /// Departure of the packet that makes them enough for a dead path.
    since: Time,
}

impl PathSilence {
    /// Takes note of a packet that leaves on the path; `enough` is [`DeadPathThreshold::packets`].
    #[inline]
    pub fn on_sent(&mut self, now: Time, enough: u32) {
        self.packets = self.packets.saturating_add(1);
        if self.packets == enough {
            self.since = now;
        }
    }

    /// Takes note of an acknowledgement of a packet of the path.
    #[inline]
    pub fn on_answer(&mut self) {
        *self = Self::default();
    }

    /// Departure of the packet that made them enough, if they are.
    #[inline]
    pub fn since(&self, enough: u32) -> Option<Time> {
        (self.packets >= enough).then_some(self.since)
    }

    /// True if the path is dead, when a packet that left at `answered` on another path has been acknowledged.
    #[inline]
    pub fn is_dead(&self, answered: Time, after: DeadPathThreshold) -> bool {
        let since = self.since(after.packets);
        since.is_some_and(|since| answered.since(since) > after.lag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_dead_once_a_packet_that_left_much_later_is_answered() {
        let after = DeadPathThreshold {
            packets: 2,
            lag: Span::from_us(24),
        };
        let mut path = PathSilence::default();
        path.on_sent(Time::from_us(10), after.packets);
        assert!(
            !path.is_dead(Time::NEVER, after),
            "one packet is not enough"
        );
        path.on_sent(Time::from_us(20), after.packets);
        path.on_sent(Time::from_us(30), after.packets);
        assert_eq!(path.since(after.packets), Some(Time::from_us(20)));
        assert!(!path.is_dead(Time::from_us(44), after));
        assert!(path.is_dead(Time::from_us(45), after));
        path.on_answer();
        assert!(!path.is_dead(Time::from_us(45), after));
    }

    #[test]
    fn a_path_without_packets_is_not_dead() {
        let after = DeadPathThreshold {
            packets: 1,
            lag: Span::ZERO,
        };
        assert!(!PathSilence::default().is_dead(Time::NEVER, after));
    }
}
