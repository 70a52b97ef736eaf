//! An experiment: a scenario of any kind of fabric.

use crate::file_hashes::FileHashes;
use crate::locations::SourceLocations;
use crate::scenario::apply_override;
use crate::{ScaleupScenario, Scenario, ScenarioError, Setting, source};
use clearway_scaleup::injection::InjectionRegistry;
use clearway_transport::Registry;
use std::path::{Path, PathBuf};

/// A scenario of a packet fabric or of a scale-up fabric, depending on `topology.kind`.
#[derive(Debug, Clone, PartialEq)]
pub enum Experiment {
    /// Hosts, transports, packets.
    Packets(Box<Scenario>),
    /// GPUs, injection controls, flits.
    Scaleup(Box<ScaleupScenario>),
}

impl Experiment {
    /// Reads the scenario `text`; errors call it `file`, and `overrides` are `KEY=VALUE`.
    ///
    /// # Errors
    /// At the first invalid entry.
    pub fn read(
        (registry, injection): (&Registry, &InjectionRegistry),
        file: &str,
        text: &str,
        base_dir: Option<&Path>,
        overrides: &[String],
    ) -> Result<Self, ScenarioError> {
        let mut entries = source::read(file, text)?;
        let lines = entries.len();
        for text in overrides {
            let new = source::read_override(text)?.into_iter();
            new.for_each(|entry| apply_override(&mut entries, entry));
        }
        let places = SourceLocations::of_file(file, lines, &entries);
        if ScaleupScenario::is_meant(&entries) {
            let mut scenario = ScaleupScenario::from_entries(injection, &entries, places)
                .map_err(|error| error.with_scaleup_owner((registry, injection)))?;
            scenario.base_dir = base_dir.map(Path::to_path_buf);
            return Ok(Self::Scaleup(Box::new(scenario)));
        }
        let mut scenario = Scenario::from_entries(registry, &entries, places)?;
        scenario.base_dir = base_dir.map(Path::to_path_buf);
        Ok(Self::Packets(Box::new(scenario)))
    }

    /// Name, seed, limits.
    pub fn general(&self) -> &crate::General {
        match self {
            Self::Packets(scenario) => &scenario.general,
            Self::Scaleup(scenario) => &scenario.general,
        }
    }

    /// Name, seed, limits, mutable.
    pub fn general_mut(&mut self) -> &mut crate::General {
        match self {
            Self::Packets(scenario) => &mut scenario.general,
            Self::Scaleup(scenario) => &mut scenario.general,
        }
    }

    /// The scenario with every default written out, as TOML.
    pub fn resolved(&self) -> String {
        match self {
            Self::Packets(scenario) => scenario.resolved(),
            Self::Scaleup(scenario) => scenario.resolved(),
        }
    }

    /// Hash of the scenario and of its files.
    pub fn hash(&self) -> String {
        match self {
            Self::Packets(scenario) => scenario.hash(),
            Self::Scaleup(scenario) => scenario.hash(),
        }
    }

    /// Hash of everything that determines the results: the scenario, its files, and `[observe]`.
    pub fn fingerprint(&self) -> u64 {
        match self {
            Self::Packets(scenario) => scenario.fingerprint(),
            Self::Scaleup(scenario) => scenario.fingerprint(),
        }
    }

    /// As [`fingerprint`](Self::fingerprint), without reading the files known to `files` again.
    pub fn fingerprint_with(&self, files: &FileHashes) -> u64 {
        match self {
            Self::Packets(scenario) => scenario.fingerprint_with(files),
            Self::Scaleup(scenario) => scenario.fingerprint_with(files),
        }
    }

    /// Places of the keys in files and overrides.
    pub fn places(&self) -> &SourceLocations {
        match self {
            Self::Packets(scenario) => scenario.places(),
            Self::Scaleup(scenario) => scenario.places(),
        }
    }

    /// Every key with its value.
    pub fn settings(&self) -> Vec<Setting> {
        match self {
            Self::Packets(scenario) => scenario.settings(),
            Self::Scaleup(scenario) => scenario.settings(),
        }
    }

    /// Every key that the scenario could have, with its value, section by section.
    pub fn every_setting(&self) -> Vec<Setting> {
        match self {
            Self::Packets(scenario) => scenario.every_setting(),
            Self::Scaleup(scenario) => scenario.every_setting(),
        }
    }

    /// Names of the workload sections that distinguish results; none if all sections have the same name.
    pub fn distinct_sections(&self) -> Vec<String> {
        let mut names = match self {
            Self::Packets(scenario) => scenario.section_names(),
            Self::Scaleup(scenario) => scenario.section_names(),
        };
        names.sort_unstable();
        names.dedup();
        match names.len() {
            1 => Vec::new(),
            _ => names,
        }
    }

    /// Names of the tenants of the workload.
    pub fn tenants(&self) -> Vec<String> {
        match self {
            Self::Packets(scenario) => {
                let names = scenario.tenants().names.into_iter();
                names.map(str::to_owned).collect()
            }
            Self::Scaleup(_) => Vec::new(),
        }
    }

    /// The files that the scenario reads besides its own file, with the keys that name them.
    pub fn files(&self) -> Vec<(String, PathBuf)> {
        match self {
            Self::Packets(scenario) => scenario.files(),
            Self::Scaleup(scenario) => scenario.files(),
        }
    }
}
