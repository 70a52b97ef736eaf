//! Log of what the ranks of jobs do and of the event that let them, kept only if somebody follows flows.

use clearway_units::{Bytes, FlowId, MessageId, Time};
use clearway_workload::{ClockWait, Rank};
use std::sync::{Arc, Mutex, PoisonError};

/// Kind of event at a rank, with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RankCause {
    /// Start of the job.
    Start,
    /// Arrival of a message on this connection.
    Message(FlowId),
    /// Acknowledgement of a message of its own on this connection.
    Acknowledgement(FlowId),
    /// End of a computation, or the slot of a schedule.
    Clock,
    /// Turn of a message, whose receiver takes a limited number at a time.
    Turn,
}

/// Action of a rank at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankAction {
    /// Post of a message.
    Post {
        /// Connection of the message.
        connection: FlowId,
        /// Number of the message on its connection.
        message: MessageId,
        /// Length of the message.
        bytes: Bytes,
    },
    /// Question for the turn of a message.
    Ask {
        /// Connection of the message.
        connection: FlowId,
        /// Number of the message on its connection.
        message: MessageId,
    },
    /// Begin of a computation, or of the wait for a slot.
    Wait {
        /// Time at which that is over.
        until: Time,
        /// Kind of the wait.
        wait: ClockWait,
    },
    /// End of an iteration at this rank.
    Over {
        /// Number of the iteration, from 0.
        iteration: u32,
    },
}

/// Action of a rank, and the event that let it: the last of those that it had waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankEvent {
    /// Time of the event and of the action.
    pub time: Time,
    /// Number of the job.
    pub job: u32,
    /// The rank.
    pub rank: Rank,
    /// The event.
    pub cause: RankCause,
    /// The message that has arrived or is acknowledged; 0 for other events.
    pub message: MessageId,
    /// The action.
    pub action: RankAction,
}

impl RankEvent {
    /// The connection on which it posts a message; `None` if it does something else.
    pub fn posts_on(&self) -> Option<FlowId> {
        match self.action {
            RankAction::Post { connection, .. } => Some(connection),
            _ => None,
        }
    }
}

/// Log of the ranks of one host.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankLog(Arc<Mutex<Vec<RankEvent>>>);

impl RankLog {
    pub(crate) fn push(&self, event: RankEvent) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
    }

    /// Events of all hosts by time; those of one host and instant in the order in which they came.
    pub(crate) fn merged(logs: &[Self]) -> Vec<RankEvent> {
        let own = |log: &Self| log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut events: Vec<RankEvent> = logs.iter().flat_map(own).collect();
        events.sort_by_key(|event| event.time);
        events
    }
}
