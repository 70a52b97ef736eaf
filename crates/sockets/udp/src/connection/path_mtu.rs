//! Path MTU discovery: the datagrams of a connection are as long as the ends allow and its paths carry.
//!
//! The ends agree on a length in the handshake, the smaller of two. Any path is taken to carry [`BASE`]. A longer datagram needs a proof:
//! each end sends no message, and does not tell its application of the connection, until a challenge of that length was answered. If none
//! is in time, the end goes on with `BASE`. These are the states of RFC 8899 §5.2, with one probe size. As the transport numbers packets
//! of one length, the length stays the same afterwards. A path that ceases to carry it fails (see [`paths`](crate::paths)). If no packet
//! makes [`progress`](crate::progress), the connection needs another proof, or ends.

use super::{Connection, State};
use crate::settings::MAX_UNPROVEN_DATAGRAM as BASE;
use crate::wire::Frame;
use clearway_units::{Span, Time};

/// Shortest time for the proof: three challenges on each path of a client.
const LEAST_SEARCH: Span = Span::from_ms(100);
/// Round trips for the proof, if they take longer.
const ROUND_TRIPS: u64 = 4;
/// Part of the idle time that the proof may take.
const MOST_OF_IDLE: u64 = 4;
/// Round trip that is assumed after a handshake with copies, which happens on long paths.
const UNKNOWN: Span = Span::from_ms(500);

impl Connection {
    /// Begins to look for a proof that a path carries the agreed length, if it needs one.
    pub(super) fn begin_search(&mut self, now: Time) {
        if self.agreed.is_some_and(|agreed| agreed.datagram > BASE) {
            let round_trips = self.round_trip.unwrap_or(UNKNOWN) * ROUND_TRIPS;
            let most = self.timers.idle / MOST_OF_IDLE;
            self.timers.search_by = Some(now + round_trips.max(LEAST_SEARCH).min(most));
            self.paths.challenge_all(now);
            // Short, so that both ends hear each other, and search at the same time, where challenges are lost.
            self.pending.push(Frame::KeepAlive);
        }
    }

    /// True while the length of datagrams is undecided.
    pub(super) fn is_searching(&self) -> bool {
        self.timers.search_by.is_some()
    }

    /// A path carries the agreed length, or the other end closes before that is known.
    pub(super) fn end_search(&mut self) {
        if self.timers.search_by.take().is_some() {
            self.tell_connected();
        }
    }

    /// Goes on with the base length, as there was no proof in time.
    pub(super) fn give_up_search(&mut self, now: Time) {
        if self.timers.search_by.take().is_some() {
            if let Some(agreed) = &mut self.agreed {
                agreed.shorten(BASE);
            }
            if let Some(proven_by) = &mut self.timers.proven_by {
                *proven_by = now + self.timers.idle;
            }
            self.paths.challenge_all(now);
            self.tell_connected();
        }
    }

    /// Asks for another proof that a path carries the agreed length, within an idle time.
    pub(super) fn prove_again(&mut self, now: Time) {
        if self.timers.proven_by.is_none() {
            self.timers.proven_by = Some(now.saturating_add(self.timers.idle));
            self.paths.challenge_all(now);
        }
    }

    /// Tells the application of the connection, once the other end has been heard and the length of datagrams is decided.
    pub(super) fn tell_connected(&mut self) {
        if self.confirmed && !self.is_searching() && matches!(self.state, State::Open) {
            self.events.connected();
        }
    }

    /// Longest datagram that this end sends, as UDP payload, as far as it is known.
    pub fn datagram(&self) -> u16 {
        let agreed = self.agreed.map(|agreed| agreed.datagram);
        agreed.unwrap_or(self.settings.datagram)
    }
}
