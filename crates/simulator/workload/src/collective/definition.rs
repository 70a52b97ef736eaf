//! Interface of an algorithm: its names, its settings, and how it is built.

use super::{Collective, Layout};
use clearway_units::ParameterSet;
use std::fmt;

/// Error of a collective that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectiveError {
    /// The operation, as in "all-reduce".
    pub operation: &'static str,
    /// The algorithm, as in "ring".
    pub algorithm: &'static str,
    /// The key of the setting at fault; none if it is the number of ranks.
    pub key: Option<&'static str>,
    /// Description of the fault.
    pub message: String,
    /// Suggested fix.
    pub fix: String,
}

impl fmt::Display for CollectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = self.key {
            write!(f, "`{key}` of ")?;
        }
        let (algorithm, operation, message) = (self.algorithm, self.operation, &self.message);
        write!(f, "the {algorithm} {operation}: {message}")
    }
}

impl std::error::Error for CollectiveError {}

/// Definition of a collective: its names, and how it is built. The implementing type holds its settings.
pub trait CollectiveDefinition: ParameterSet {
    /// The name of the operation, as in "all-reduce".
    const OPERATION: &'static str;
    /// The name of the algorithm, unique among the algorithms of its operation.
    const ALGORITHM: &'static str;
    /// One line about the algorithm.
    const SUMMARY: &'static str;

    /// Makes the messages.
    ///
    /// # Errors
    /// If the settings do not fit each other or the number of ranks.
    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError>;

    /// Makes the messages for ranks that lie so, over a channel for each NIC of a node where the algorithm has channels.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    fn build_on(&self, layout: &Layout) -> Result<Collective, CollectiveError> {
        self.build(layout.ranks())
    }

    /// Messages on the longest chain of messages of which each waits for the one before, among `ranks` ranks (two or more) when there are
    /// bytes for all of them and no [window](super::Pipelining::window).
    fn steps(&self, ranks: u32) -> u32;

    /// An error about the setting `key`.
    fn fault(
        key: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> CollectiveError {
        CollectiveError {
            key: Some(key),
            ..Self::rank_fault(message, fix)
        }
    }

    /// An error about the number of ranks.
    fn rank_fault(message: impl Into<String>, fix: impl Into<String>) -> CollectiveError {
        CollectiveError {
            operation: Self::OPERATION,
            algorithm: Self::ALGORITHM,
            key: None,
            message: message.into(),
            fix: fix.into(),
        }
    }
}
