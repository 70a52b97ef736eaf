//! Timers of a connection, besides those of the transport and of the paths.

use clearway_units::{Span, Time};

/// Times at which something is due.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Silence after which the connection is given up.
    pub(crate) idle: Span,
    /// Time of the last authentic packet, and of the last one that was sent.
    pub(crate) heard: Time,
    pub(crate) spoken: Time,
    /// Until when the first packet of the other end has to come.
    pub(crate) confirm_by: Option<Time>,
    /// Until when a datagram of full length has to have gone to the server and back.
    pub(crate) proven_by: Option<Time>,
    /// Time at which the other end is to be asked for credit.
    pub(crate) blocked_at: Option<Time>,
    /// Time at which the end is to be told, or is over.
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
            blocked_at: None,
            close_at: None,
        }
    }
}
