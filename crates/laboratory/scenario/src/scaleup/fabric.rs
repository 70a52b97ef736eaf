//! Settings of the fabric: the tree, and the parts of the configuration that each section has.

use crate::section::Section;
use clearway_scaleup::{Configuration, Tree};
use clearway_units::{ParameterInfo, ParameterSet, SetError, Value};

clearway_units::parameters! {
    /// GPUs below a single switch, or below leaves and spines.
    pub struct NvlinkSettings {
        /// Number of GPUs, 1 to 65536. Each has one link.
        pub gpus: u32 = 64, "gpus", "Dissertation §6.1.4";
        /// GPUs below each leaf switch (ToR); a divisor of `gpus`. If it equals `gpus`, there is a single switch without spines.
        pub gpus_per_leaf: u32 = 8, "gpus-per-leaf", "Dissertation §6.1.4";
        /// Number of spine (core) switches; unused with one leaf.
        pub spines: u32 = 4, "spines", "Dissertation §6.3.1: 4 for 64 GPUs, 16 for 128";
        /// Parallel links from each leaf to each spine.
        pub links_per_spine: u32 = 2, "links-per-spine", "decision: as many uplinks as GPUs below a leaf, for no oversubscription";
    }
}

impl NvlinkSettings {
    /// The tree that these settings describe.
    pub fn tree(&self) -> Tree {
        let is_single = self.gpus == self.gpus_per_leaf;
        Tree {
            gpus: self.gpus,
            gpus_per_leaf: self.gpus_per_leaf,
            spines: if is_single { 0 } else { self.spines },
            links_per_spine: if is_single { 0 } else { self.links_per_spine },
        }
    }
}

/// Keys of the configuration in `[topology]`: they describe links.
const OF_LINKS: &[&str] = &["cycle", "header-flits", "payload-flits"];
/// Keys of the configuration in `[switch]`.
const OF_SWITCHES: &[&str] = &[
    "latency",
    "input-buffer",
    "output-queue",
    "replication",
    "reduction-table",
];
/// Keys of the configuration in `[injection]`: they describe GPUs.
const OF_GPUS: &[&str] = &[
    "response-queue",
    "read-latency",
    "write-latency",
    "channels",
    "arbiter",
];

/// The tree, and settings of links, switches and GPUs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FabricSettings {
    /// The tree.
    pub nvlink: NvlinkSettings,
    /// Settings of links, switches and GPUs.
    pub configuration: Configuration,
}

/// Section of the configuration's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Links,
    Switches,
    Gpus,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Links, Self::Switches, Self::Gpus];

    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Links => OF_LINKS,
            Self::Switches => OF_SWITCHES,
            Self::Gpus => OF_GPUS,
        }
    }

    /// Name of the section.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Links => "topology",
            Self::Switches => "switch",
            Self::Gpus => "injection",
        }
    }

    /// The section that has `key`.
    pub(super) fn from_key(key: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|part| part.keys().contains(&key))
    }

    pub(super) fn describe(self) -> Vec<ParameterInfo> {
        let mut all = Configuration::describe();
        all.retain(|parameter| self.keys().contains(&parameter.key));
        all
    }

    pub(super) fn entries(self, configuration: &Configuration) -> Vec<(&'static str, Value)> {
        let mut all = configuration.entries();
        all.retain(|(key, _)| self.keys().contains(key));
        all
    }

    pub(super) fn set(
        self,
        configuration: &mut Configuration,
        key: &str,
        value: &Value,
    ) -> Result<(), SetError> {
        match self.keys().contains(&key) {
            true => configuration.set(key, value),
            false => Err(SetError::UnknownKey),
        }
    }
}

/// `[topology]`.
pub(super) struct TopologySection<'a>(pub(super) &'a mut FabricSettings);

impl Section for TopologySection<'_> {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        match self.0.nvlink.set(key, value) {
            Err(SetError::UnknownKey) => Part::Links.set(&mut self.0.configuration, key, value),
            result => result,
        }
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        [NvlinkSettings::describe(), Part::Links.describe()].concat()
    }
}

/// `[switch]`.
pub(super) struct SwitchSection<'a>(pub(super) &'a mut Configuration);

impl Section for SwitchSection<'_> {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        Part::Switches.set(self.0, key, value)
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        Part::Switches.describe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_of_the_configuration_stands_in_one_section() {
        for parameter in Configuration::describe() {
            let parts = Part::ALL
                .into_iter()
                .filter(|part| part.keys().contains(&parameter.key));
            assert_eq!(parts.count(), 1, "{}", parameter.key);
        }
    }
}
