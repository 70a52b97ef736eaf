//! Errors of topologies that cannot be built.

use crate::error::ScenarioError;
use clearway_fabric::topology::TopologyError;

pub(crate) fn topology_error(keys: &[&'static str], error: &TopologyError) -> ScenarioError {
    impossible(keys, error.message(), error.fix())
}

pub(crate) fn impossible(keys: &[&'static str], message: String, fix: &str) -> ScenarioError {
    ScenarioError::about(keys, format!("impossible topology: {message}"), fix)
}
