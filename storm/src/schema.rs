//! Keys and kinds of a scenario, from the catalogue that `clearway explain` reads. This file names only `kind` and the transport's parts.

mod scaleup;

pub(crate) use scaleup::{OWNER as SCALE_UP_OWNER, ScaleupSchema};

use crate::named_parameters::{NamedParameters, covered, covered_by_section};
use clearway_lab::{Catalogue, Laboratory};
use clearway_units::ParameterInfo;
use std::collections::BTreeSet;

/// The choices and keys of all sections.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    /// Keys at the top.
    pub(crate) general: Vec<ParameterInfo>,
    /// Keys of `[observe]`.
    pub(crate) observe: Vec<ParameterInfo>,
    /// Keys of `[topology]` for every kind.
    pub(crate) links: Vec<ParameterInfo>,
    pub(crate) topologies: Vec<NamedParameters>,
    pub(crate) switches: Vec<NamedParameters>,
    /// Transports, and the keys that all of them have.
    pub(crate) transports: Vec<NamedParameters>,
    /// The exchangeable parts of a transport: the key that chooses one, and the choices.
    pub(crate) parts: Vec<(&'static str, Vec<NamedParameters>)>,
    pub(crate) workloads: Vec<NamedParameters>,
    /// Keys of `[[event]]`.
    pub(crate) events: Vec<ParameterInfo>,
    /// Keys of `[[workload]]` for every kind.
    pub(crate) flows: Vec<ParameterInfo>,
    /// Keys of scenarios of scale-up fabrics.
    pub(crate) scaleup: ScaleupSchema,
}

/// The parts of a transport: key and group of the catalogue.
const PARTS: [(&str, &str); 4] = [
    ("reliability", "reliability"),
    ("controller", "controllers"),
    ("spray", "spray"),
    ("feedback", "feedback"),
];

impl Schema {
    /// The choices and keys of `laboratory`.
    pub(crate) fn from_laboratory(laboratory: &Laboratory) -> Self {
        let catalogue = Catalogue::new(laboratory.registry());
        let common = |name: &str| -> Vec<ParameterInfo> {
            let explained = catalogue.explain(name).into_iter();
            let own = explained.filter(|known| !known.role.contains(" = \""));
            own.flat_map(|known| known.parameters).collect()
        };
        let kinds = |group: &str, chosen_by: &str| -> Vec<NamedParameters> {
            let names = catalogue.group(group).unwrap_or_default();
            let kind = |(name, _): (String, String)| {
                let role = format!("{chosen_by} = \"{name}\"");
                let explained = catalogue.explain(&name).into_iter();
                let own = explained.filter(|known| known.role == role);
                let keys = own.flat_map(|known| known.parameters).collect();
                NamedParameters { name, keys }
            };
            names.into_iter().map(kind).collect()
        };
        let mut transports = kinds("transports", "transport.kind");
        keep_common(&mut transports);
        let (general, observe) = (common("scenario"), common("observe"));
        Self {
            scaleup: ScaleupSchema::from_laboratory(laboratory, &general, &observe),
            general,
            observe,
            links: common("links"),
            topologies: kinds("topologies", "topology.kind"),
            switches: kinds("switches", "switch.kind"),
            transports,
            parts: PARTS
                .map(|(key, group)| (key, kinds(group, &format!("transport.{key}"))))
                .into(),
            workloads: kinds("workloads", "workload.kind"),
            flows: common("workload"),
            events: common("event"),
        }
    }

    /// True if a key of `[transport]` chooses the transport or one of its parts.
    pub(crate) fn is_choice(&self, key: &str) -> bool {
        key == "kind" || self.parts.iter().any(|(part, _)| *part == key)
    }

    /// Keys and kinds that scenarios can touch, as named by coverage.
    pub(crate) fn universe(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let mut add = |owner: &str, section: &str, keys: &[ParameterInfo]| {
            all.extend(keys.iter().map(|info| covered(owner, section, info.key)));
        };
        add("scenario", "", &self.general);
        add("observe", "observe", &self.observe);
        add("links", "topology", &self.links);
        add("event", "event", &self.events);
        add("workload", "workload", &self.flows);
        for kind in &self.topologies {
            add(&kind.name, "topology", &kind.keys);
        }
        for kind in &self.switches {
            add(&kind.name, "switch", &kind.keys);
        }
        for kind in &self.workloads {
            add(&kind.name, "workload", &kind.keys);
        }
        let of_transports = self.transports.iter().take(1);
        for info in of_transports.flat_map(|kind| &kind.keys) {
            if !self.is_choice(info.key) {
                add("transport", "transport", std::slice::from_ref(info));
            }
        }
        for (_, kinds) in &self.parts {
            for kind in kinds {
                add(&kind.name, "transport", &kind.keys);
            }
        }
        // A section's transport counts one key for each controller: the keys themselves belong to `[transport]`.
        let controllers = self.parts.iter().filter(|(part, _)| *part == "controller");
        let with_keys = controllers.flat_map(|(_, kinds)| kinds);
        let with_keys = with_keys.filter(|kind| !kind.keys.is_empty());
        all.extend(with_keys.map(|kind| covered_by_section(&kind.name)));
        let kinds = [
            ("topology.kind", &self.topologies),
            ("switch.kind", &self.switches),
            ("transport.kind", &self.transports),
            ("workload.kind", &self.workloads),
        ];
        for (key, kinds) in kinds {
            all.extend(kinds.iter().map(|kind| format!("{key} {}", kind.name)));
        }
        for (part, kinds) in &self.parts {
            let name = |kind: &NamedParameters| format!("transport.{part} {}", kind.name);
            all.extend(kinds.iter().map(name));
        }
        all.extend(self.scaleup.universe());
        all
    }
}

/// Keeps only the keys that all `kinds` have.
fn keep_common(kinds: &mut [NamedParameters]) {
    let all: Vec<BTreeSet<&'static str>> = kinds
        .iter()
        .map(|kind| kind.keys.iter().map(|info| info.key).collect())
        .collect();
    for kind in kinds {
        kind.keys
            .retain(|info| all.iter().all(|keys| keys.contains(info.key)));
    }
}
