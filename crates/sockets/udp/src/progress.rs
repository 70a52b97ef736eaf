//! Progress of a connection, which stops where paths carry short datagrams only.
//!
//! The route of a path may change to one with a shorter MTU. Then full packets are lost, however often they are sent again, while
//! acknowledgements and probes arrive, so the other end is not silent. If the oldest packet that waits for an acknowledgement stays the
//! same for long, the connection ends with an error (detection of a black hole, RFC 8899 §4.3).

use clearway_transport::Endpoint;
use clearway_units::{FlowId, Span, Time};

/// Shortest time without progress after which a connection ends: several retransmissions.
const LEAST_PATIENCE: Span = Span::from_ms(20_000);
/// The time is this many idle times, if that is longer.
const IDLE_TIMES: u64 = 2;
/// Checks for each idle time.
const CHECKS: u64 = 4;

/// The oldest packet without an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Oldest {
    flow: FlowId,
    psn: u64,
}

impl Oldest {
    fn of(endpoint: &Endpoint) -> Option<Self> {
        let mut oldest: Option<Self> = None;
        endpoint.for_each_open(|open| {
            let waiting = open.progress().unacknowledged_packets;
            let psn = open.departures().0.saturating_sub(waiting);
            let flow = open.flow();
            if waiting > 0 && oldest.is_none_or(|oldest| flow < oldest.flow) {
                oldest = Some(Self { flow, psn });
            }
        });
        oldest
    }
}

/// The oldest packet as of the last check, and since when it is that.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    oldest: Option<Oldest>,
    since: Time,
    check_at: Time,
}

impl Progress {
    /// True if the oldest packet has waited for too long. To be called often, which costs little: few calls check. While packets wait, the
    /// endpoint has deadlines at which the caller wakes up.
    pub(crate) fn has_stopped(&mut self, now: Time, idle: Span, endpoint: &Endpoint) -> bool {
        if now < self.check_at {
            return false;
        }
        self.check_at = now + idle / CHECKS;
        let oldest = Oldest::of(endpoint);
        if oldest.is_none() || oldest != self.oldest {
            (self.oldest, self.since) = (oldest, now);
            return false;
        }
        now >= self.since + (idle * IDLE_TIMES).max(LEAST_PATIENCE)
    }
}
