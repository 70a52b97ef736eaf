//! The keys of the resolved scenario, each with its meaning and its origin, user or default.

use super::{Scenario, SourceLocations, SwitchKind, topology};
use crate::{WorkloadSection, WorkloadSettings};
use clearway_units::{ParameterInfo, ParameterSet, Value, ValueDomain};

/// One key of a resolved scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Section of the key, as an override names it: `topology`, `workload[1]`; empty at the top.
    pub section: String,
    /// Name of the key within the section.
    pub key: &'static str,
    /// Value of the key.
    pub value: Value,
    /// True if a scenario file or an override sets the key, false if the value is a default.
    pub given: bool,
    /// Meaning of the key.
    pub meaning: String,
    /// Source of the default.
    pub source: &'static str,
    /// Description of the accepted values.
    pub expected: String,
    /// Domain of the accepted values; `None` if the key chooses a kind.
    pub domain: Option<ValueDomain>,
    /// True if the resolved scenario has the key: some rarely used keys are omitted if they have their defaults.
    pub resolved: bool,
}

impl Setting {
    /// Key with its section, as an override names it: `topology.hosts`, `seed`.
    pub fn path(&self) -> String {
        match self.section.as_str() {
            "" => self.key.to_owned(),
            section => format!("{section}.{}", self.key),
        }
    }
}

impl Scenario {
    /// Every key of the resolved scenario with its value, in the order of [`resolved`](Self::resolved).
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = self.every_setting();
        settings.retain(|setting| setting.resolved);
        settings
    }

    /// Every key that the scenario could have, with its value, section by section.
    pub fn every_setting(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut add = |name: &str, index, kind: Option<SectionKinds>, entries, described| {
            let count = match name {
                "event" => self.events.len(),
                _ => self.workloads.len(),
            };
            let own = section_settings(
                (self.places(), count),
                (name, index),
                kind,
                entries,
                described,
            );
            settings.extend(own);
        };
        let general = super::General::describe();
        add("", 0, None, self.general.entries(), general);
        add(
            "topology",
            0,
            Some((topology::TopologyKind::KINDS, self.topology.kind.name())),
            self.topology.entries(),
            self.topology.describe(),
        );
        add(
            "switch",
            0,
            Some((&SwitchKind::KINDS, self.switch.kind().name())),
            self.switch.entries(),
            self.switch.describe(),
        );
        let transport = &self.transport;
        add(
            "transport",
            0,
            None,
            transport.entries(),
            transport.describe(),
        );
        for (index, workload) in self.workloads.iter().enumerate() {
            add(
                "workload",
                index,
                Some((WorkloadSettings::KINDS, workload.kind())),
                workload.entries(),
                workload.describe(),
            );
            add(
                "workload.transport",
                index,
                None,
                workload.transport_entries(),
                // Without a separate transport, only the keys that differ from `[transport]`; otherwise all.
                described_of(workload),
            );
        }
        for (index, event) in self.events.iter().enumerate() {
            let described = super::EventSettings::describe();
            add("event", index, None, event.written(), described);
        }
        let fast_forward = super::FastForward::describe();
        let entries = self.fast_forward.written();
        add("fast-forward", 0, None, entries, fast_forward);
        let observe = super::ObserveSettings::describe();
        add("observe", 0, None, self.observe.entries(), observe);
        settings
    }
}

/// The keys of a section's separate transport.
fn described_of(workload: &WorkloadSection) -> Vec<ParameterInfo> {
    let mut described = workload.describe_transport();
    if workload.transport().is_some() {
        return described;
    }
    let own = workload.transport_entries();
    described.retain(|parameter| own.iter().any(|(key, _)| *key == parameter.key));
    described
}

/// Settings of the `index`-th section called `name`, of `count` such sections.
pub(crate) fn section_settings(
    (places, count): (&SourceLocations, usize),
    (name, index): (&str, usize),
    kind: Option<SectionKinds>,
    entries: Vec<(&'static str, Value)>,
    described: Vec<ParameterInfo>,
) -> Vec<Setting> {
    // Nested keys have the outer key as part of their section.
    let (section, below) = name.split_once('.').unwrap_or((name, ""));
    let written = |key: &str| match below {
        "" => key.to_owned(),
        below => format!("{below}.{key}"),
    };
    let given = |key: &str| places.is_given(section, index, &written(key));
    let section = if ["workload", "event"].contains(&section) && count > 1 {
        name.replacen(section, &format!("{section}[{index}]"), 1)
    } else {
        name.to_string()
    };
    let setting = |key, value, resolved| {
        let known = described.iter().find(|parameter| parameter.key == key);
        Setting {
            section: section.clone(),
            key,
            value,
            given: given(key),
            meaning: known.map_or_else(String::new, |parameter| parameter.meaning.clone()),
            source: known.map_or("", |parameter| parameter.source),
            expected: known.map_or_else(String::new, |parameter| parameter.expected.clone()),
            domain: known.map(|parameter| parameter.domain.clone()),
            resolved,
        }
    };
    let mut settings = Vec::new();
    if let Some((kinds, kind)) = kind {
        let summary = kinds.iter().find(|(known, _)| *known == kind);
        let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
        settings.push(Setting {
            meaning: summary.map_or("", |(_, summary)| summary).into(),
            source: "decision",
            expected: format!("one of \"{}\"", names.join("\", \"")),
            ..setting("kind", Value::Text(kind.into()), true)
        });
    }
    let is_rare = |key| !entries.iter().any(|(known, _)| *known == key);
    let rare = described.iter().filter(|parameter| is_rare(parameter.key));
    let rare: Vec<Setting> = rare
        .map(|parameter| setting(parameter.key, parameter.default.clone(), false))
        .collect();
    settings.extend(
        entries
            .into_iter()
            .map(|(key, value)| setting(key, value, true)),
    );
    settings.extend(rare);
    settings
}

/// The possible kinds of a section, with a line on each, and the actual kind.
pub(crate) type SectionKinds = (&'static [(&'static str, &'static str)], &'static str);
