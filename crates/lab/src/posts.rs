//! Log of the messages that jobs post, and of what each had waited for, kept only if somebody follows flows.

use clearway_units::{FlowId, Time};
use std::sync::{Arc, Mutex, PoisonError};

/// Event at a rank with which it could post a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PostCause {
    /// The job has started.
    Start,
    /// A message has arrived on this connection.
    Message(FlowId),
    /// A message of its own on this connection is acknowledged.
    Acknowledgement(FlowId),
    /// A computation is over, or the slot of a schedule has come.
    Clock,
    /// Its receiver takes a limited number of messages at a time, and this one's turn has come.
    Turn,
}

/// Message of a job that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobPost {
    /// Connection of the message.
    pub connection: FlowId,
    /// Time at which its rank posted it.
    pub time: Time,
    /// Event that it had waited for.
    pub cause: PostCause,
}

/// Posts of the ranks of one host.
#[derive(Debug, Clone, Default)]
pub(crate) struct PostLog(Arc<Mutex<Vec<JobPost>>>);

impl PostLog {
    pub(crate) fn push(&self, (connection, time, cause): (FlowId, Time, PostCause)) {
        let mut posts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        posts.push(JobPost {
            connection,
            time,
            cause,
        });
    }

    /// Posts of all hosts, by connection and time; those of one instant in the order in which they were made.
    pub(crate) fn merged(logs: &[Self]) -> Vec<JobPost> {
        let own = |log: &Self| log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut posts: Vec<JobPost> = logs.iter().flat_map(own).collect();
        posts.sort_by_key(|post| (post.connection, post.time));
        posts
    }
}
