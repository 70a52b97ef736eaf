//! Timers of a connection, besides the timers of the transport and the paths.

use clearway_units::{Span, Time};

/// Deadlines.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Silence after which the connection ends.
    pub(crate) idle: Span,
    /// Time of the last authentic packet received, and of the last packet sent.
    pub(crate) heard: Time,
    pub(crate) spoken: Time,
    /// Deadline for the first packet of the other end.
    pub(crate) confirm_by: Option<Time>,
    /// Deadline for a round trip of a full-length datagram.
    pub(crate) proven_by: Option<Time>,
    /// Deadline for the proof that a path carries the longest datagrams, while it is open.
    pub(crate) search_by: Option<Time>,
    /// Time of the next request for credit.
    pub(crate) blocked_at: Option<Time>,
    /// Time of the next close frame, or of the end.
    pub(crate) close_at: Option<Time>,
}

impl Timers {
    pub(crate) fn new(now: Time, idle: Span) -> Self {
        Self {
            idle,
            heard: now,
            spoken: now,
            confirm_by: None,
            proven_by: None,
            search_by: None,
            blocked_at: None,
            close_at: None,
        }
    }
}
