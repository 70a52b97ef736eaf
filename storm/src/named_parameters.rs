//! Things with keys, and the names under which coverage counts keys.

use clearway_units::ParameterInfo;

/// A kind of topology, switch, workload, transport or control, with the keys of its own.
#[derive(Debug, Clone)]
pub(crate) struct NamedParameters {
    pub(crate) name: String,
    pub(crate) keys: Vec<ParameterInfo>,
}

/// A key as coverage names it: whose it is, and its full name.
pub(crate) fn covered(owner: &str, section: &str, key: &str) -> String {
    match section {
        "" => format!("{key} ({owner})"),
        section => format!("{section}.{key} ({owner})"),
    }
}

/// Coverage of a section's own values of a controller's keys, whichever they are.
pub(crate) fn covered_by_section(controller: &str) -> String {
    format!("workload.transport ({controller})")
}
