//! The scenario of a scale-up fabric: reading, writing, hash.

use super::NVLINK;
use super::fabric::{FabricSettings, Part, SwitchSection, TopologySection};
use super::workload::{ScaleupWorkload, ScaleupWorkloadKind};
use crate::entries::{by_section, hash_bytes, in_section, kind_of, without_kind, write_entries};
use crate::file_hashes::FileHashes;
use crate::generate::trace_files;
use crate::limits::{check_general, check_observe};
use crate::locations::SourceLocations;
use crate::section::{Section, fill, unknown_name};
use crate::section_name::section_names;
use crate::settings::{SectionKinds, Setting, section_settings};
use crate::source::Entry;
use crate::topology::file::find_file;
use crate::{General, ObserveSettings, ScenarioError};
use clearway_scaleup::Configuration;
use clearway_scaleup::injection::{InjectionRegistry, InjectionSettings};
use clearway_units::{ParameterInfo, ParameterSet, SetError, Value};
use std::fmt::Write as _;
use std::path::PathBuf;

/// A scenario of a scale-up fabric with every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleupScenario {
    /// Name, seed, limits.
    pub general: General,
    /// `[topology]`, `[switch]`, and the keys of `[injection]` that describe GPUs.
    pub fabric: FabricSettings,
    /// The injection control.
    pub injection: InjectionSettings,
    /// `[[workload]]`, one or more.
    pub workloads: Vec<ScaleupWorkload>,
    /// `[observe]`.
    pub observe: ObserveSettings,
    /// Folder of the scenario file, searched first for traces.
    pub base_dir: Option<PathBuf>,
    places: SourceLocations,
}

/// Name of the default control.
const DEFAULT_CONTROL: &str = "3cpo";
/// Keys of other scenarios that have no meaning here.
const WITHOUT_MEANING: [(&str, &[&str]); 3] = [
    ("", &["trigger-delay"]),
    ("fast-forward", &["error", "verify"]),
    (
        "observe",
        &[
            "series.flows",
            "trace.pcap",
            "trace.pcap-snap",
            "trace.pcap-frames",
        ],
    ),
];

/// `[injection]`: the control, and settings of GPUs.
struct InjectionSection<'a> {
    control: &'a mut InjectionSettings,
    configuration: &'a mut Configuration,
}

impl Section for InjectionSection<'_> {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        match Part::Gpus.set(self.configuration, key, value) {
            Err(SetError::UnknownKey) => self.control.set(key, value),
            result => result,
        }
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        [self.control.describe(), Part::Gpus.describe()].concat()
    }
}

impl ScaleupScenario {
    /// True if `entries` describe a scale-up fabric.
    pub(crate) fn is_meant(entries: &[Entry]) -> bool {
        let own = in_section(entries, "topology", 0);
        let mut kinds = own.iter().filter(|entry| entry.key == "kind");
        kinds.any(|entry| entry.value == Value::Text(NVLINK.into()))
    }

    /// The scenario of `entries`, whose places are `places`.
    pub(crate) fn from_entries(
        registry: &InjectionRegistry,
        entries: &[Entry],
        places: SourceLocations,
    ) -> Result<Self, ScenarioError> {
        refuse_what_has_no_meaning(entries)?;
        let mut general = General::default();
        fill("the scenario", &mut general, &in_section(entries, "", 0))?;
        check_general(&general).map_err(|error| error.or_in(&places, "", 0))?;

        let mut fabric = FabricSettings::default();
        let own = without_kind(&in_section(entries, "topology", 0));
        let name = "a topology of kind \"nvlink\"";
        fill(name, &mut TopologySection(&mut fabric), &own)?;
        let own = in_section(entries, "switch", 0);
        let name = "the switch of a scale-up fabric";
        fill(name, &mut SwitchSection(&mut fabric.configuration), &own)?;

        let own = in_section(entries, "injection", 0);
        let mut injection = chosen(registry, &own)?;
        let name = format!("injection control \"{}\"", injection.name());
        let mut section = InjectionSection {
            control: &mut injection,
            configuration: &mut fabric.configuration,
        };
        fill(&name, &mut section, &without_kind(&own))?;
        check_fabric(&fabric, &places)?;
        injection.check().map_err(|invalid| {
            let message = invalid.to_string();
            let error =
                ScenarioError::about(&[invalid.key], message, "see `clearway explain injection`");
            error.or_in(&places, "injection", 0)
        })?;

        let mut observe = ObserveSettings::default();
        fill(
            "[observe]",
            &mut observe,
            &in_section(entries, "observe", 0),
        )?;
        check_observe(&observe).map_err(|error| error.or_in(&places, "observe", 0))?;
        let workloads = workloads(entries)?;
        Ok(Self {
            general,
            fabric,
            injection,
            workloads,
            observe,
            base_dir: None,
            places,
        })
    }

    /// Places of the keys.
    pub fn places(&self) -> &SourceLocations {
        &self.places
    }

    /// Name of each workload section in results: the given name, or the name of its operation, with a number if several sections have the
    /// same operation.
    pub fn section_names(&self) -> Vec<String> {
        let sections = self.workloads.iter();
        section_names(sections.map(|section| (&section.keys, section.name())))
    }

    /// The scenario with every default written out, as TOML. Reading the text gives the same scenario.
    pub fn resolved(&self) -> String {
        let mut text = self.written(|name| {
            let path = find_file(name, self.base_dir.as_deref());
            // Absolute paths do not depend on the folder of the resolved scenario.
            std::path::absolute(path)
                .map_or_else(|_| name.into(), |full| full.to_string_lossy().into_owned())
        });
        self.write_observe(&mut text);
        text
    }

    fn write_observe(&self, text: &mut String) {
        *text += "\n[observe]\n";
        let entries = self.observe.entries().into_iter();
        write_entries(
            text,
            entries
                .filter(|(key, _)| has_meaning("observe", key))
                .collect(),
        );
    }

    /// Hash of the resolved scenario and of the contents of its files. Equal scenarios have equal hashes, independent of the paths of the
    /// files.
    pub fn hash(&self) -> String {
        let content = self.content(&FileHashes::default());
        format!("{:08x}", hash_bytes(0, content.as_bytes()) >> 32)
    }

    /// As [`hash`](Self::hash), but in 64 bits and including `[observe]`, which determines the files of the results.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint_with(&FileHashes::default())
    }

    /// As [`fingerprint`](Self::fingerprint), without reading the files known to `files` again.
    pub fn fingerprint_with(&self, files: &FileHashes) -> u64 {
        let mut text = self.content(files);
        self.write_observe(&mut text);
        hash_bytes(0, text.as_bytes())
    }

    /// Simulated part of the scenario with the hashes of its files in place of their names.
    fn content(&self, known: &FileHashes) -> String {
        self.written(|name| {
            let files = trace_files(&find_file(name, self.base_dir.as_deref()));
            format!(
                "{:016x}",
                files
                    .iter()
                    .fold(0, |hash, file| known.hash_file(hash, file))
            )
        })
    }

    /// The files that the scenario reads besides its own file, with the keys that name them.
    pub fn files(&self) -> Vec<(String, PathBuf)> {
        let mut files = Vec::new();
        for (index, workload) in self.workloads.iter().enumerate() {
            let named = workload.files();
            for (key, value) in workload.entries() {
                if let (true, Value::Text(name)) = (named.contains(&key), value) {
                    let paths = trace_files(&find_file(&name, self.base_dir.as_deref()));
                    let key = format!("workload[{index}].{key}");
                    files.extend(paths.into_iter().map(|path| (key.clone(), path)));
                }
            }
        }
        files
    }

    /// Simulated part of the scenario as TOML, without `[observe]`. `file` maps the names of files.
    fn written(&self, file: impl Fn(&str) -> String) -> String {
        let mut text =
            String::from("# Every parameter of the run. `clearway explain` says what they mean.\n");
        for mut section in self.sections() {
            for (key, value) in &mut section.entries {
                if let (true, Value::Text(name)) = (section.files.contains(key), value) {
                    *name = file(name);
                }
            }
            match (section.name, section.kind) {
                ("", _) => {}
                ("workload", Some((_, kind))) => {
                    let _ = write!(text, "\n[[workload]]\nkind = \"{kind}\"\n");
                }
                (name, Some((_, kind))) => {
                    let _ = write!(text, "\n[{name}]\nkind = \"{kind}\"\n");
                }
                (name, None) => {
                    let _ = write!(text, "\n[{name}]\n");
                }
            }
            write_entries(&mut text, section.entries);
        }
        text
    }

    /// Every key of the resolved scenario with its value, in the order of [`resolved`](Self::resolved).
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = self.every_setting();
        settings.retain(|setting| setting.resolved);
        settings
    }

    /// Every key that the scenario could have, with its value, section by section.
    pub fn every_setting(&self) -> Vec<Setting> {
        let observe = SectionText {
            name: "observe",
            index: 0,
            kind: None,
            entries: self.observe.entries(),
            described: ObserveSettings::describe(),
            files: Vec::new(),
        };
        let sections = self.sections().into_iter().chain([observe]);
        let settings = sections.flat_map(|section| {
            let SectionText {
                name,
                index,
                kind,
                entries,
                described,
                files: _,
            } = section;
            section_settings(
                (&self.places, self.workloads.len()),
                (name, index),
                kind,
                entries,
                described,
            )
        });
        let settings =
            settings.filter(|setting: &Setting| has_meaning(&setting.section, setting.key));
        settings.collect()
    }

    /// Sections of the simulated part.
    fn sections(&self) -> Vec<SectionText> {
        let configuration = &self.fabric.configuration;
        let general = self.general.entries().into_iter();
        let general = general.filter(|(key, _)| has_meaning("", key)).collect();
        let part = |part: Part| (part.entries(configuration), part.describe());
        let nvlink = (
            self.fabric.nvlink.entries(),
            super::NvlinkSettings::describe(),
        );
        let control = (self.injection.entries(), self.injection.describe());
        let section = |name, kind, entries, described| SectionText {
            name,
            index: 0,
            kind,
            entries,
            described,
            files: Vec::new(),
        };
        let join = |a: (Entries, Vec<ParameterInfo>), b: (Entries, Vec<ParameterInfo>)| {
            ([a.0, b.0].concat(), [a.1, b.1].concat())
        };
        let (links, links_described) = join(nvlink, part(Part::Links));
        let (switches, switches_described) = part(Part::Switches);
        let (gpus, gpus_described) = join(control, part(Part::Gpus));
        let mut sections = vec![
            section("", None, general, General::describe()),
            section("topology", Some((KINDS, NVLINK)), links, links_described),
            section("switch", None, switches, switches_described),
            section(
                "injection",
                Some((&[], self.injection.name())),
                gpus,
                gpus_described,
            ),
        ];
        for (index, workload) in self.workloads.iter().enumerate() {
            sections.push(SectionText {
                name: "workload",
                index,
                kind: Some((ScaleupWorkloadKind::KINDS, workload.kind.name())),
                entries: workload.entries(),
                described: workload.describe(),
                files: workload.files(),
            });
        }
        sections
    }
}

type Entries = Vec<(&'static str, Value)>;

/// Section to write.
struct SectionText {
    name: &'static str,
    index: usize,
    kind: Option<SectionKinds>,
    entries: Entries,
    described: Vec<ParameterInfo>,
    /// The keys whose values name files.
    files: Vec<&'static str>,
}

/// The kind of topology, with a summary.
pub(super) const KINDS: &[(&str, &str)] = &[(
    NVLINK,
    "GPUs whose switches replicate writes and reduce reads: a scale-up fabric",
)];

fn has_meaning(section: &str, key: &str) -> bool {
    let without = WITHOUT_MEANING.iter().find(|(known, _)| *known == section);
    !without.is_some_and(|(_, keys)| keys.contains(&key))
}

fn refuse_what_has_no_meaning(entries: &[Entry]) -> Result<(), ScenarioError> {
    for entry in entries {
        if entry.section == "transport" {
            return Err(ScenarioError::at(
                &entry.place,
                format!(
                    "`transport.{}` is a key of packet fabrics: a scale-up fabric has no `[transport]`",
                    entry.key
                ),
                "choose an injection control in `[injection]`; `clearway list injection` names them",
            ));
        }
        if entry.section == "event" {
            return Err(ScenarioError::at(
                &entry.place,
                "`[[event]]` is about links of packet fabrics, and a scale-up fabric has no events",
                "leave the section out",
            ));
        }
        if !has_meaning(&entry.section, &entry.key) {
            return Err(ScenarioError::at(
                &entry.place,
                format!("`{}` has no meaning in a scale-up fabric", entry.key),
                "leave it out",
            ));
        }
    }
    Ok(())
}

/// The control that `[injection]` chooses.
fn chosen(
    registry: &InjectionRegistry,
    own: &[&Entry],
) -> Result<InjectionSettings, ScenarioError> {
    let names: Vec<&str> = registry.controls().map(|(name, _)| name).collect();
    let entry = own.iter().find(|entry| entry.key == "kind");
    let name = match entry.map(|entry| &entry.value) {
        None => DEFAULT_CONTROL,
        Some(Value::Text(name)) => name,
        Some(_) => "",
    };
    match (registry.control(name), entry) {
        (Some(settings), _) => Ok(settings),
        (None, Some(entry)) => Err(unknown_name(entry, "injection", "kind", name, &names)),
        (None, None) => Err(ScenarioError::about(
            &["kind"],
            "no injection control",
            "name one",
        )),
    }
}

fn check_fabric(fabric: &FabricSettings, places: &SourceLocations) -> Result<(), ScenarioError> {
    let tree = fabric.nvlink.tree().check().err();
    if let Some((key, reason)) = tree {
        let error = ScenarioError::about(
            &[key],
            format!("`{key}`: {reason}"),
            "see `clearway explain nvlink`",
        );
        return Err(error.or_in(places, "topology", 0));
    }
    if let Err((key, reason)) = fabric.configuration.check() {
        let section = Part::from_key(key).map_or("topology", Part::section);
        let fix = format!("see `clearway explain {section}.{key}`");
        let error = ScenarioError::about(&[key], format!("`{key}`: {reason}"), fix);
        return Err(error.or_in(places, section, 0));
    }
    Ok(())
}

/// The `[[workload]]` sections; one collective if the scenario has none.
fn workloads(entries: &[Entry]) -> Result<Vec<ScaleupWorkload>, ScenarioError> {
    let kinds: Vec<&str> = ScaleupWorkloadKind::KINDS
        .iter()
        .map(|(name, _)| *name)
        .collect();
    let sections = by_section(entries)?.into_iter().map(|own| {
        let kind = kind_of(&own, &kinds, ScaleupWorkloadKind::named, "workload")?;
        let kind = kind.or_else(|| ScaleupWorkloadKind::named("collective"));
        let mut section = ScaleupWorkload::new(kind.expect("the default kind exists"));
        let name = format!("a workload of kind \"{}\"", section.kind.name());
        fill(&name, &mut section, &without_kind(&own))?;
        Ok(section)
    });
    sections.collect()
}
