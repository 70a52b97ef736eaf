//! Progress of a connection, which may stop where paths carry short datagrams only.
//!
//! The route of a path may change to one with a shorter MTU. Then full packets are lost, however often they are sent again, while
//! acknowledgements and probes arrive, so the other end is not silent. If the oldest packet that waits for an acknowledgement stays the
//! same for an idle time, the paths have to prove once more that they carry the longest datagrams (detection of a black hole, RFC 8899
//! §4.3). The connection ends if none does within another idle time.

use clearway_transport::Endpoint;
use clearway_units::{FlowId, Span, Time};

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
    /// Time of the next check, while a packet waits.
    pub(crate) fn deadline(&self) -> Time {
        self.oldest.map_or(Time::NEVER, |_| self.check_at)
    }

    /// True if the oldest packet has waited for an idle time, or for another one since this was last true. To be called whenever a timer
    /// expires: the timers of the endpoint run while packets wait. Few of the calls check.
    pub(crate) fn has_stopped(&mut self, now: Time, idle: Span, endpoint: &Endpoint) -> bool {
        if now < self.check_at {
            return false;
        }
        self.check_at = now.saturating_add(idle / CHECKS);
        let oldest = Oldest::of(endpoint);
        if oldest.is_none() || oldest != self.oldest {
            (self.oldest, self.since) = (oldest, now);
            return false;
        }
        let has_stopped = now >= self.since.saturating_add(idle);
        if has_stopped {
            self.since = now;
        }
        has_stopped
    }
}
