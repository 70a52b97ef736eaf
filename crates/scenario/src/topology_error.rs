//! Errors of topologies that cannot be built.

use crate::error::ScenarioError;
use clearway_fabric::topology::TopologyError;

pub(super) fn topology_error(keys: &[&'static str], error: &TopologyError) -> ScenarioError {
    let text = error.to_string();
    let (message, fix) = text
        .rsplit_once("; ")
        .unwrap_or((&text, "see `clearway topology`"));
    impossible(keys, message.into(), fix)
}

pub(super) fn impossible(keys: &[&'static str], message: String, fix: &str) -> ScenarioError {
    ScenarioError::about(keys, format!("impossible topology: {message}"), fix)
}
