//! Kinds with keys, and the names under which coverage counts keys.

use clearway_units::ParameterInfo;

/// A kind of topology, switch, workload, transport or control, with its keys.
#[derive(Debug, Clone)]
pub(crate) struct NamedParameters {
    pub(crate) name: String,
    pub(crate) keys: Vec<ParameterInfo>,
}

/// A key as named by coverage: its owner and its full name.
pub(crate) fn covered(owner: &str, section: &str, key: &str) -> String {
    match section {
        "" => format!("{key} ({owner})"),
        section => format!("{section}.{key} ({owner})"),
    }
}

/// Coverage of a section's values for any keys of a controller.
pub(crate) fn covered_by_section(controller: &str) -> String {
    format!("workload.transport ({controller})")
}
