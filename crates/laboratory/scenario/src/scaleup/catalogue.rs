//! Names of scale-up fabrics for `clearway list` and `clearway explain`.

use super::NVLINK;
use super::fabric::{NvlinkSettings, Part};
use super::scenario::KINDS;
use super::workload::{ScaleupWorkload, ScaleupWorkloadKind};
use crate::{CatalogueGroup, Explanation};
use clearway_scaleup::injection::InjectionRegistry;
use clearway_units::ParameterSet;

/// The groups `scale-up` and `injection`.
pub fn scaleup_groups(registry: &InjectionRegistry) -> [CatalogueGroup; 2] {
    [fabrics(), controls(registry)]
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs
        .iter()
        .map(|(name, summary)| (name.to_string(), summary.to_string()));
    pairs.collect()
}

fn fabrics() -> CatalogueGroup {
    let topology = Explanation {
        name: NVLINK.into(),
        role: format!("topology.kind = \"{NVLINK}\""),
        summary: KINDS[0].1.into(),
        section: "topology",
        parameters: [NvlinkSettings::describe(), Part::Links.describe()].concat(),
    };
    let switch = Explanation {
        name: NVLINK.into(),
        role: format!("[switch] of a topology of kind \"{NVLINK}\""),
        summary: "output-queued switches with credits and a reduction table".into(),
        section: "switch",
        parameters: Part::Switches.describe(),
    };
    let workloads = ScaleupWorkloadKind::KINDS
        .iter()
        .filter_map(|(name, summary)| {
            let workload = ScaleupWorkload::new(ScaleupWorkloadKind::named(name)?);
            Some(Explanation {
                name: name.to_string(),
                role: format!("workload.kind = \"{name}\", of a scale-up fabric"),
                summary: summary.to_string(),
                section: "workload",
                parameters: workload.describe(),
            })
        });
    CatalogueGroup {
        name: "scale-up",
        builtin: [named(KINDS), named(ScaleupWorkloadKind::KINDS)].concat(),
        sections: [topology, switch].into_iter().chain(workloads).collect(),
    }
}

fn controls(registry: &InjectionRegistry) -> CatalogueGroup {
    let pairs: Vec<(&str, &str)> = registry.controls().collect();
    let common = Explanation {
        name: "injection".into(),
        role: "keys of [injection] for every kind".into(),
        summary: "the injection of packets by GPUs, and their memory".into(),
        section: "injection",
        parameters: Part::Gpus.describe(),
    };
    let controls = pairs.iter().filter_map(|(name, summary)| {
        Some(Explanation {
            name: name.to_string(),
            role: format!("injection.kind = \"{name}\""),
            summary: summary.to_string(),
            section: "injection",
            parameters: registry.control(name)?.describe(),
        })
    });
    CatalogueGroup {
        name: "injection",
        builtin: named(&pairs),
        sections: [common].into_iter().chain(controls).collect(),
    }
}
