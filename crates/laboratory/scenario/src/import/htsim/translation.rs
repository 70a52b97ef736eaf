//! A command line under translation.

pub(super) use super::figures::DEFAULT;
use super::figures::Network;
use super::inputs::Inputs;
use crate::error::ScenarioError;
use crate::import::draft::Draft;
use clearway_formats::{HtsimCommand, HtsimOption};

/// An error about an option.
pub(super) fn fault(message: impl Into<String>, fix: impl Into<String>) -> ScenarioError {
    ScenarioError::about(&[], message, fix)
}

/// An import under way.
pub(super) struct Import<'a> {
    pub(super) command: &'a HtsimCommand,
    pub(super) inputs: Inputs,
    pub(super) network: Network,
    pub(super) draft: Draft,
}

impl<'a> Import<'a> {
    pub(super) fn last(&self, name: &str) -> Option<&'a HtsimOption> {
        self.command.last(name)
    }

    /// The last value of an option with a whole number, and its source; `default` if the option is not given.
    pub(super) fn whole(&self, name: &str, default: u64) -> (u64, String) {
        let given = self.last(name).and_then(|option| {
            let value = option.whole(0)?;
            Some((value, option.to_string()))
        });
        given.unwrap_or_else(|| (default, DEFAULT.into()))
    }
}
