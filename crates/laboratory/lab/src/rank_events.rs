//! Log of the actions of jobs' ranks and of the events that triggered them, kept only if flows are followed.

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
    /// Acknowledgement of a message that the rank sent on this connection.
    Acknowledgement(FlowId),
    /// End of a computation, or the slot of a schedule.
    Clock,
    /// Turn of a message whose receiver accepts a limited number at a time.
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
    /// Request for the turn of a message.
    Ask {
        /// Connection of the message.
        connection: FlowId,
        /// Number of the message on its connection.
        message: MessageId,
    },
    /// Start of a computation, or of the wait for a slot.
    Wait {
        /// End of the computation or wait.
        until: Time,
        /// Kind of the wait.
        wait: ClockWait,
    },
    /// Arrival of the message of the event, whether or not the rank waits for it.
    Receive,
    /// End of an iteration at this rank.
    Over {
        /// Number of the iteration, from 0.
        iteration: u32,
    },
}

/// Action of a rank, and the event that triggered it: the last event that the rank waited for.
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
    /// The connection on which the action posts a message; `None` for other actions.
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

    /// Events of all hosts by time. Events of one host and instant keep their order.
    pub(crate) fn merged(logs: &[Self]) -> Vec<RankEvent> {
        let own = |log: &Self| log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut events: Vec<RankEvent> = logs.iter().flat_map(own).collect();
        events.sort_by_key(|event| event.time);
        events
    }
}
