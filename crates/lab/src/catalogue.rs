//! What exists, by name: for `clearway list` and `clearway explain`.

use crate::scenario::topology::{Kind, LinkSettings, TopologySettings};
use crate::scenario::{General, TransportSettings};
use crate::scenario::{SwitchKind, SwitchSettings};
use clearway_transport::Registry;
use clearway_transport::selective_repeat::SelectiveRepeatParameters;
use clearway_units::{ParameterInfo, ParameterSet, nearest};
use clearway_workload::WorkloadSettings;

macro_rules! scenarios {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),+]
    };
}

/// The built-in scenarios: name and text.
pub fn builtin_scenarios() -> &'static [(&'static str, &'static str)] {
    scenarios!(
        "quickstart",
        "permutation-1k",
        "permutation-8k",
        "permutation-64k",
        "incast-32"
    )
}

/// The text of a built-in scenario.
pub fn builtin_scenario(name: &str) -> Option<&'static str> {
    builtin_scenarios()
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// One entry of the catalogue, explained.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// What it is called.
    pub name: String,
    /// What kind of thing it is, and how a scenario chooses it.
    pub role: String,
    /// One line on it.
    pub summary: String,
    /// The section of the scenario that its parameters belong to.
    pub section: &'static str,
    /// Its parameters.
    pub parameters: Vec<ParameterInfo>,
}

/// Everything that a scenario can name.
#[derive(Debug, Clone)]
pub struct Catalogue<'a> {
    registry: &'a Registry,
}

impl<'a> Catalogue<'a> {
    /// The catalogue of a laboratory.
    pub fn new(registry: &'a Registry) -> Self {
        Self { registry }
    }

    /// The groups of `clearway list`.
    pub const GROUPS: [&'static str; 7] = [
        "transports",
        "controllers",
        "spray",
        "topologies",
        "switches",
        "workloads",
        "scenarios",
    ];

    /// Names and summaries of one group; `None` if there is no such group.
    pub fn group(&self, group: &str) -> Option<Vec<(String, String)>> {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, summary)| (name.to_string(), summary.to_string()))
                .collect()
        };
        Some(match group {
            "transports" => pairs(&TransportSettings::presets()),
            "controllers" => pairs(&self.registry.controllers().collect::<Vec<_>>()),
            "spray" => pairs(&self.registry.selectors().collect::<Vec<_>>()),
            "topologies" => pairs(Kind::KINDS),
            "switches" => pairs(&SwitchKind::KINDS),
            "workloads" => pairs(WorkloadSettings::KINDS),
            "scenarios" => builtin_scenarios()
                .iter()
                .map(|(name, text)| (name.to_string(), first_comment(text)))
                .collect(),
            _ => return None,
        })
    }

    /// Explains `name`. A name that belongs to several things (STrack is a transport and a controller) gives several.
    pub fn explain(&self, name: &str) -> Vec<Explanation> {
        let mut found = Vec::new();
        let mut add = |role: &str, summary: &str, section, parameters| {
            found.push(Explanation {
                name: name.into(),
                role: role.into(),
                summary: summary.into(),
                section,
                parameters,
            });
        };
        match name {
            "scenario" => add(
                "the top of a scenario",
                "name, seed, limits",
                "",
                General::describe(),
            ),
            "links" => add(
                "keys of [topology] for every kind",
                "faults and exceptions of links",
                "topology",
                LinkSettings::describe(),
            ),
            "selective-repeat" => add(
                "the reliability of `strack`",
                "SACK segments, out-of-order counter, probes, timeout",
                "transport",
                SelectiveRepeatParameters::describe(),
            ),
            _ => {}
        }
        for (kind, summary) in SwitchKind::KINDS {
            if kind == name || name == "switch" {
                let settings = SwitchKind::named(kind).map(SwitchSettings::of_kind);
                add(
                    &format!("switch.kind = \"{kind}\""),
                    summary,
                    "switch",
                    settings.map_or_else(Vec::new, |settings| settings.describe()),
                );
            }
        }
        if let Some((_, summary)) = TransportSettings::presets()
            .iter()
            .find(|(known, _)| *known == name)
        {
            let mut parameters = TransportSettings::common();
            parameters.extend(SelectiveRepeatParameters::describe());
            add(
                &format!("transport.kind = \"{name}\""),
                summary,
                "transport",
                parameters,
            );
        }
        if let Some(controller) = self.registry.controller(name) {
            add(
                &format!("transport.controller = \"{name}\""),
                controller.summary(),
                "transport",
                controller.describe(),
            );
        }
        if let Some(selector) = self.registry.selector(name) {
            add(
                &format!("transport.spray = \"{name}\""),
                selector.summary(),
                "transport",
                selector.describe(),
            );
        }
        if let Some(kind) = Kind::named(name) {
            let summary = Kind::KINDS
                .iter()
                .find(|(known, _)| *known == name)
                .map_or("", |(_, summary)| summary);
            let settings = TopologySettings {
                kind,
                links: LinkSettings::default(),
            };
            add(
                &format!("topology.kind = \"{name}\""),
                summary,
                "topology",
                settings.kind.describe(),
            );
        }
        if let Some(workload) = WorkloadSettings::named(name) {
            let summary = WorkloadSettings::KINDS
                .iter()
                .find(|(known, _)| *known == name)
                .map_or("", |(_, summary)| summary);
            add(
                &format!("workload.kind = \"{name}\""),
                summary,
                "workload",
                workload.describe(),
            );
        }
        found
    }

    /// The known name that is nearest to `name`.
    pub fn nearest(&self, name: &str) -> Option<String> {
        nearest(name, self.names().iter().map(String::as_str)).map(Into::into)
    }

    /// Everything that [`explain`](Self::explain) knows.
    pub fn names(&self) -> Vec<String> {
        let groups = Self::GROUPS.iter().filter(|group| **group != "scenarios");
        let mut names: Vec<String> = groups
            .flat_map(|group| self.group(group).unwrap_or_default())
            .map(|(name, _)| name)
            .collect();
        names.extend(["scenario", "links", "switch", "selective-repeat"].map(String::from));
        names.sort();
        names.dedup();
        names
    }
}

/// The comment at the start of a scenario, as one line.
fn first_comment(text: &str) -> String {
    let lines = text
        .lines()
        .map_while(|line| line.strip_prefix('#'))
        .map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}
