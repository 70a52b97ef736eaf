//! Timers of a connection, besides those of the transport and of the paths.

use clearway_units::{Span, Time};

/// When what is due.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Silence after which the connection is given up.
    pub(crate) idle: Span,
    /// When something authentic came last, and when something was sent last.
    pub(crate) heard: Time,
    pub(crate) spoken: Time,
    /// Until when the first packet of the other end has to come.
    pub(crate) confirm_by: Option<Time>,
    /// When the other end is to be asked for credit.
    pub(crate) blocked_at: Option<Time>,
    /// When the end is to be told, or to be over.
    pub(crate) close_at: Option<Time>,
}

impl Timers {
    pub(crate) fn new(now: Time, idle: Span) -> Self {
        Self {
            idle,
            heard: now,
            spoken: now,
            confirm_by: None,
            blocked_at: None,
            close_at: None,
        }
    }
}
