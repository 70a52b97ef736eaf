//! Events of messages.

use clearway_units::{FlowId, Time};

/// Event of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageEvent {
    /// Time of the event.
    pub time: Time,
    /// The message, or a flow of the scenario.
    pub flow: FlowId,
    /// Kind of the event.
    pub kind: MessageEventKind,
}

/// Kind of a [`MessageEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageEventKind {
    /// The receiver has all bytes.
    Received,
    /// The sender has every acknowledgement.
    Acknowledged,
}
