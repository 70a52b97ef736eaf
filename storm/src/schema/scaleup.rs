//! Keys and kinds of scenarios of scale-up fabrics, from the groups `scale-up` and `injection` of the catalogue.

use crate::draft::{Draft, Section};
use crate::named_parameters::{NamedParameters, covered};
use clearway_lab::scenario::scaleup_groups;
use clearway_lab::{Explanation, Laboratory};
use clearway_units::{ParameterInfo, Value};
use std::collections::BTreeSet;

/// Owner of the keys of all sections in coverage: separate from the keys of packet fabrics.
pub(crate) const OWNER: &str = "scale-up";

/// The choices and keys of all sections.
#[derive(Debug, Clone)]
pub(crate) struct ScaleupSchema {
    /// Keys at the top.
    pub(crate) general: NamedParameters,
    /// Keys of `[observe]`.
    pub(crate) observe: NamedParameters,
    pub(crate) topologies: Vec<NamedParameters>,
    /// The keys of `[switch]`.
    pub(crate) switches: Vec<NamedParameters>,
    /// Keys of `[injection]` for every kind.
    pub(crate) gpus: Vec<NamedParameters>,
    pub(crate) controls: Vec<NamedParameters>,
    pub(crate) workloads: Vec<NamedParameters>,
}

impl ScaleupSchema {
    /// The choices and keys of `laboratory`. `general` and `observe` are the keys that scenarios of packets have in these sections.
    pub(crate) fn from_laboratory(
        laboratory: &Laboratory,
        general: &[ParameterInfo],
        observe: &[ParameterInfo],
    ) -> Self {
        let [fabrics, injection] = scaleup_groups(laboratory.injection());
        let kind = |explained: &Explanation| NamedParameters {
            name: explained.name.clone(),
            keys: explained.parameters.clone(),
        };
        let of_section = |section: &str| {
            let own = fabrics.sections.iter();
            own.filter(|explained| explained.section == section)
                .map(kind)
                .collect()
        };
        let is_control = |kind: &NamedParameters| {
            let mut kinds = injection.builtin.iter();
            kinds.any(|(name, _)| *name == kind.name)
        };
        let (controls, gpus) = injection.sections.iter().map(kind).partition(is_control);
        let topologies: Vec<NamedParameters> = of_section("topology");
        let meant = |section: Section, keys: &[ParameterInfo]| NamedParameters {
            name: OWNER.into(),
            keys: keys
                .iter()
                .filter(|info| is_meant(laboratory, &topologies[0].name, section, info))
                .cloned()
                .collect(),
        };
        Self {
            general: meant(Section::Top, general),
            observe: meant(Section::Observe, observe),
            switches: of_section("switch"),
            gpus,
            controls,
            workloads: of_section("workload"),
            topologies,
        }
    }

    /// Keys and kinds that scenarios can touch, as named by coverage.
    pub(crate) fn universe(&self) -> BTreeSet<String> {
        let general = std::slice::from_ref(&self.general);
        let observe = std::slice::from_ref(&self.observe);
        let sections = [
            ("", general),
            ("observe", observe),
            ("topology", &self.topologies),
            ("switch", &self.switches),
            ("injection", &self.gpus),
            ("injection", &self.controls),
            ("workload", &self.workloads),
        ];
        let keys = sections.into_iter().flat_map(|(section, kinds)| {
            kinds.iter().flat_map(move |kind| {
                let keys = kind.keys.iter();
                keys.map(move |info| covered(&kind.name, section, info.key))
            })
        });
        let kinds = [
            ("topology", &self.topologies),
            ("injection", &self.controls),
            ("workload", &self.workloads),
        ];
        let kinds = kinds.into_iter().flat_map(|(section, kinds)| {
            let kind = move |kind: &NamedParameters| format!("{section}.kind {}", kind.name);
            kinds.iter().map(kind)
        });
        keys.chain(kinds).collect()
    }
}

/// True if a scenario with this kind of topology may have the key.
fn is_meant(laboratory: &Laboratory, kind: &str, section: Section, info: &ParameterInfo) -> bool {
    let mut draft = Draft::default();
    let mut set = |section, key: &str, value| draft.set(section, key, value, String::new());
    set(Section::Topology, "kind", Value::Text(kind.into()));
    set(section, info.key, info.default.clone());
    let read = laboratory.read_any("storm", &draft.text(), None, &[]);
    read.is_ok()
}

#[cfg(test)]
mod tests {
    use crate::schema::Schema;
    use clearway_lab::Laboratory;

    #[test]
    fn keys_without_meaning_are_left_out() {
        let universe = Schema::from_laboratory(&Laboratory::new())
            .scaleup
            .universe();
        for key in [
            "seed (scale-up)",
            "observe.trace.perfetto (scale-up)",
            "topology.gpus (nvlink)",
            "topology.cycle (nvlink)",
            "switch.reduction-table (nvlink)",
            "injection.channels (injection)",
            "injection.wm-max (3cpo)",
            "injection.kind none",
            "workload.random-members (collective)",
            "workload.kind random-sets",
        ] {
            assert!(universe.contains(key), "{key}");
        }
        for key in ["trigger-delay", "trace.pcap", "series.flows"] {
            let mut known = universe.iter();
            assert!(!known.any(|known| known.contains(key)), "{key}");
        }
    }
}
