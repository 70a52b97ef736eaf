//! Catalogue of all names that a scenario can use, for `clearway list` and `clearway explain`.

use crate::WorkloadSettings;
use crate::topology::{LinkSettings, TopologyKind};
use crate::{
    EventSettings, FastForward, FlowKeys, General, ObserveSettings, SectionKeys, TenantKeys,
    TransportSettings,
};
use crate::{SwitchKind, SwitchSettings};
use clearway_transport::{Registry, Reliability};
use clearway_units::{ParameterInfo, ParameterSet, nearest};
use clearway_workload::PublishedSizes;

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
        "permutation-256k",
        "incast-32",
        "mix-64",
        "tenants-mixed",
        "training-256",
        "gpt-13b-128",
        "gpt-175b-1024",
        "moe-64",
        "moe-128",
        "moe-512",
        "serving-64",
        "checkpoint-64",
        "hadoop-320",
        "websearch-1k",
        "link-flap",
        "rail-64",
        "planes-64",
        "dragonfly-72",
        "nvlink-64",
        "testbed-permutation",
        "testbed-incast",
        "testbed-dead-path"
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
    /// Name of the entry.
    pub name: String,
    /// Kind of the entry, and how a scenario chooses it.
    pub role: String,
    /// Summary of the entry in one line.
    pub summary: String,
    /// The scenario section of the parameters.
    pub section: &'static str,
    /// Parameters of the entry.
    pub parameters: Vec<ParameterInfo>,
}

/// Group of names that a dependent crate adds to the catalogue: another kind of file.
#[derive(Debug, Clone)]
pub struct CatalogueGroup {
    /// Name of the group.
    pub name: &'static str,
    /// Names and summaries of the built-in files.
    pub builtin: Vec<(String, String)>,
    /// The sections of the file, each with its keys.
    pub sections: Vec<Explanation>,
}

/// Catalogue of all names that a scenario can use.
#[derive(Debug, Clone)]
pub struct Catalogue<'a> {
    registry: &'a Registry,
    further: Vec<CatalogueGroup>,
}

impl<'a> Catalogue<'a> {
    /// The catalogue of a laboratory.
    pub fn new(registry: &'a Registry) -> Self {
        let further = Vec::new();
        Self { registry, further }
    }

    /// Adds a group.
    #[must_use]
    pub fn with(mut self, group: CatalogueGroup) -> Self {
        self.further.push(group);
        self
    }

    /// The groups of `clearway list`.
    pub fn groups(&self) -> Vec<&'static str> {
        let further = self.further.iter().map(|group| group.name);
        Self::GROUPS.into_iter().chain(further).collect()
    }

    const GROUPS: [&'static str; 10] = [
        "transports",
        "reliability",
        "controllers",
        "spray",
        "feedback",
        "topologies",
        "switches",
        "workloads",
        "sizes",
        "scenarios",
    ];

    /// Names and summaries of one group; `None` if the group does not exist.
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
            "reliability" => pairs(Reliability::ALL),
            "feedback" => pairs(&self.registry.feedback_rules().collect::<Vec<_>>()),
            "spray" => pairs(&self.registry.selectors().collect::<Vec<_>>()),
            "topologies" => pairs(TopologyKind::KINDS),
            "switches" => pairs(&SwitchKind::KINDS),
            "workloads" => pairs(WorkloadSettings::KINDS),
            "sizes" => {
                let pair = |sizes: &PublishedSizes| (sizes.name.into(), sizes.summary.into());
                PublishedSizes::ALL.iter().map(pair).collect()
            }
            "scenarios" => builtin_scenarios()
                .iter()
                .map(|(name, text)| (name.to_string(), first_comment(text)))
                .collect(),
            _ => {
                let further = self.further.iter().find(|further| further.name == group)?;
                further.builtin.clone()
            }
        })
    }

    /// Explains `name`. A name of several entries (STrack is a transport and a controller) gives several explanations. Any other name can
    /// be a key (`workload.jitter`, `jitter`), the first word of keys (`stop`) or a value of a key (`d-mod-k`).
    pub fn explain(&self, name: &str) -> Vec<Explanation> {
        let things = self.things(name);
        if things.is_empty() {
            return self.keys(name);
        }
        things
    }

    /// The keys that `name` means, each with its entries of the catalogue.
    fn keys(&self, name: &str) -> Vec<Explanation> {
        let mut found: Vec<Explanation> = Vec::new();
        for thing in self.names() {
            for known in self.things(&thing) {
                let named = known.parameters.into_iter().filter(|parameter| {
                    is_meant(name, known.section, parameter.key)
                        || parameter.expected.contains(&format!("\"{name}\""))
                });
                for parameter in named {
                    let same = |other: &&mut Explanation| {
                        other.section == known.section && other.parameters[0] == parameter
                    };
                    match found.iter_mut().find(same) {
                        // A transport and its controller can have the same name.
                        Some(other) if other.summary.ends_with(&format!(" {thing}")) => {}
                        Some(other) => other.summary += &format!(", {thing}"),
                        None => found.push(Explanation {
                            name: full_key(known.section, parameter.key),
                            role: "a key".into(),
                            summary: format!("Of {thing}"),
                            section: known.section,
                            parameters: vec![parameter],
                        }),
                    }
                }
            }
        }
        found
    }

    fn things(&self, name: &str) -> Vec<Explanation> {
        let mut found: Vec<Explanation> = keys_of_all_kinds(name).into_iter().collect();
        found.extend(switches(name));
        found.extend(self.parts_of_transport(name));
        found.extend(topology_kind(name));
        found.extend(workload_kind(name));
        found.extend(sizes(name));
        let sections = self.further.iter().flat_map(|group| &group.sections);
        found.extend(sections.filter(|section| section.name == name).cloned());
        found
    }

    /// Transport presets and parts of transports called `name`.
    fn parts_of_transport(&self, name: &str) -> Vec<Explanation> {
        let explanation = |key: &str, summary: &str, parameters| Explanation {
            name: name.into(),
            role: format!("transport.{key} = \"{name}\""),
            summary: summary.into(),
            section: "transport",
            parameters,
        };
        let presets = TransportSettings::presets();
        let preset = presets.iter().find(|(known, _)| *known == name);
        let preset = preset.and_then(|(_, summary)| {
            let settings = TransportSettings::preset(self.registry, name)?;
            Some(explanation("kind", summary, settings.describe()))
        });
        let switch = preset.is_some().then(|| designed_switch(name)).flatten();
        let scheme = Reliability::ALL.iter().find(|(known, _)| *known == name);
        let scheme = scheme.and_then(|(_, summary)| {
            let scheme = Reliability::named(name)?;
            Some(explanation("reliability", summary, scheme.describe()))
        });
        let controller = self.registry.controller(name);
        let controller = controller.map(|c| explanation("controller", c.summary(), c.describe()));
        let selector = self.registry.selector(name);
        let selector = selector.map(|s| explanation("spray", s.summary(), s.describe()));
        let feedback = self.registry.feedback_rule(name);
        let feedback = feedback.map(|f| explanation("feedback", f.summary(), f.describe()));
        let all = [preset, switch, scheme, controller, selector, feedback];
        all.into_iter().flatten().collect()
    }

    /// The known name nearest to `name`.
    pub fn nearest(&self, name: &str) -> Option<String> {
        nearest(name, self.names().iter().map(String::as_str)).map(Into::into)
    }

    /// Names that [`explain`](Self::explain) knows.
    pub fn names(&self) -> Vec<String> {
        let described = |group: &&&str| **group != "scenarios";
        let groups = Self::GROUPS.iter().filter(described);
        let mut names: Vec<String> = groups
            .flat_map(|group| self.group(group).unwrap_or_default())
            .map(|(name, _)| name)
            .collect();
        names.extend(KEYS_OF_FILES.map(String::from));
        let sections = self.further.iter().flat_map(|group| &group.sections);
        names.extend(sections.map(|section| section.name.clone()));
        names.sort();
        names.dedup();
        names
    }
}

/// Key as an override names it.
pub(crate) fn full_key(section: &str, key: &str) -> String {
    match section {
        "" => key.into(),
        section => format!("{section}.{key}"),
    }
}

/// True if `name` is the key, with or without its section, or the part of the key before a dot.
fn is_meant(name: &str, section: &str, key: &str) -> bool {
    let full = full_key(section, key);
    [key, full.as_str()].iter().any(|key| {
        let rest = key.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Names for groups of keys that every file can have, with any kinds.
const KEYS_OF_FILES: [&str; 7] = [
    "scenario",
    "links",
    "switch",
    "workload",
    "event",
    "fast-forward",
    "observe",
];

/// The keys of scenarios with any kinds.
fn keys_of_all_kinds(name: &str) -> Option<Explanation> {
    let (role, summary, section, parameters) = match name {
        "scenario" => (
            "the top of a scenario",
            "name, seed, limits",
            "",
            General::describe(),
        ),
        "links" => (
            "keys of [topology] for every kind",
            "faults and exceptions of links",
            "topology",
            LinkSettings::describe(),
        ),
        "workload" => (
            "keys of [[workload]] for every kind; keys of the controller go under `workload.transport`",
            "keys of the section's flows",
            "workload",
            [
                SectionKeys::describe(),
                TenantKeys::describe(),
                FlowKeys::describe(),
            ]
            .concat(),
        ),
        "event" => (
            "the section [[event]]",
            "an event of a link during the run",
            "event",
            EventSettings::describe(),
        ),
        "fast-forward" => (
            "the section [fast-forward]",
            "calls of collectives that repeat are remembered, and time is skipped while long flows are steady",
            "fast-forward",
            FastForward::describe(),
        ),
        "observe" => (
            "the section [observe]",
            "observations: time series, timelines, captures",
            "observe",
            ObserveSettings::describe(),
        ),
        _ => return None,
    };
    Some(Explanation {
        name: name.into(),
        role: role.into(),
        summary: summary.into(),
        section,
        parameters,
    })
}

/// Default switches of the transport preset `name`; `None` if the preset does not set any.
fn designed_switch(name: &str) -> Option<Explanation> {
    let keys = TransportSettings::designed(name)?;
    let switch = SwitchSettings::of_kind(SwitchSettings::designed_kind(&keys));
    let mut parameters = vec![SwitchSettings::kind_key()];
    parameters.extend(switch.describe());
    parameters.retain(|known| keys.iter().any(|own| own.key == known.key));
    keys.iter().for_each(|own| own.describe_in(&mut parameters));
    Some(Explanation {
        name: name.into(),
        role: format!("defaults of [switch] with transport.kind = \"{name}\""),
        summary: "Switch settings of the transport's authors; a key of [switch] wins".into(),
        section: "switch",
        parameters,
    })
}

/// The kind of switch called `name`; all kinds for `switch`.
fn switches(name: &str) -> impl Iterator<Item = Explanation> {
    let kinds = SwitchKind::KINDS.into_iter();
    let chosen = kinds.filter(move |(kind, _)| *kind == name || name == "switch");
    chosen.map(move |(kind, summary)| {
        let settings = SwitchKind::named(kind).map(SwitchSettings::of_kind);
        Explanation {
            name: name.into(),
            role: format!("switch.kind = \"{kind}\""),
            summary: summary.into(),
            section: "switch",
            parameters: settings.map_or_else(Vec::new, |settings| settings.describe()),
        }
    })
}

fn topology_kind(name: &str) -> Option<Explanation> {
    Some(Explanation {
        name: name.into(),
        role: format!("topology.kind = \"{name}\""),
        summary: summary_of(name, TopologyKind::KINDS),
        section: "topology",
        parameters: TopologyKind::named(name)?.describe(),
    })
}

fn workload_kind(name: &str) -> Option<Explanation> {
    Some(Explanation {
        name: name.into(),
        role: format!("workload.kind = \"{name}\""),
        summary: summary_of(name, WorkloadSettings::KINDS),
        section: "workload",
        parameters: WorkloadSettings::named(name)?.describe(),
    })
}

fn sizes(name: &str) -> Option<Explanation> {
    let sizes = PublishedSizes::named(name)?;
    Some(Explanation {
        name: name.into(),
        role: format!("workload.sizes = \"{name}\""),
        summary: format!(
            "sizes of flows: {}. Source: {}.",
            sizes.summary, sizes.source
        ),
        section: "workload",
        parameters: Vec::new(),
    })
}

fn summary_of(name: &str, kinds: &[(&str, &str)]) -> String {
    let kind = kinds.iter().find(|(known, _)| *known == name);
    kind.map_or("", |(_, summary)| summary).into()
}

/// The comment at the start of a scenario, as one line.
pub fn first_comment(text: &str) -> String {
    let lines = text
        .lines()
        .map_while(|line| line.strip_prefix('#'))
        .map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(name: &str) -> Vec<(String, String)> {
        let registry = Registry::builtin();
        let found = Catalogue::new(&registry).explain(name);
        let key = |found: Explanation| (found.name, found.summary);
        found.into_iter().map(key).collect()
    }

    #[test]
    fn keys_and_values_are_explained() {
        for name in ["jitter", "workload.jitter"] {
            let [(key, of)] = &keys(name)[..] else {
                panic!("one meaning")
            };
            assert_eq!(key, "workload.jitter");
            assert!(of.starts_with("Of all-to-all, "), "{of}");
            assert!(of.contains(", ring-all-reduce"), "{of}");
        }
        let stop: Vec<String> = keys("stop").into_iter().map(|(key, _)| key).collect();
        assert!(stop.contains(&"stop.at-most".into()), "{stop:?}");
        let routing = keys("d-mod-k");
        assert_eq!(routing[0].0, "switch.routing");
        // Entries take precedence: the transport, not the keys with this value.
        assert!(keys("strack").iter().all(|(name, _)| name == "strack"));
        assert!(keys("jit").is_empty(), "whole words alone");
    }
}
