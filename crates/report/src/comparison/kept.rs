//! A comparison in a folder: its variants, and the folders of their runs.

use clearway_input::{InputError, InputKind};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The name of the document in the folder of a comparison.
pub const FILE_NAME: &str = "compare.json";

/// Variants of a comparison, as `compare.json` names them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KeptComparison {
    /// The variants, in their order.
    pub variants: Vec<KeptVariant>,
}

/// Variant of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KeptVariant {
    /// `A`, `B`, ….
    pub id: String,
    /// Label that tells the variant from the others.
    pub label: String,
    /// Runs of the variant.
    pub runs: Vec<KeptRun>,
}

/// Run of a variant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KeptRun {
    /// Scenario of the run.
    pub scenario: KeptScenario,
    /// Folder of the results as the comparison knew it, if they were kept.
    pub folder: Option<PathBuf>,
}

/// Scenario of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KeptScenario {
    /// Name of the scenario.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
}

impl KeptComparison {
    /// Reads `compare.json` in `folder`.
    ///
    /// # Errors
    /// If it cannot be read, or is no comparison.
    pub fn read(folder: &Path) -> Result<Self, ReadComparisonError> {
        let text = clearway_input::read_text(&folder.join(FILE_NAME), InputKind::SUMMARY)?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The first seed with which all variants ran.
    pub fn common_seed(&self) -> Option<u64> {
        let (first, others) = self.variants.split_first()?;
        let has = |variant: &KeptVariant, seed: u64| variant.run(seed).is_some();
        let mut seeds = first.runs.iter().map(|run| run.scenario.seed);
        seeds.find(|&seed| others.iter().all(|other| has(other, seed)))
    }

    /// Short names of the variants.
    pub fn short_names(&self) -> Vec<String> {
        let names = self.variants.iter().flat_map(|variant| &variant.runs);
        let mut names = names.map(|run| &run.scenario.name);
        let first = names.next();
        let is_of_one_scenario = names.all(|name| Some(name) == first);
        let labels = self.variants.iter();
        let labels = labels.map(|variant| (variant.id.as_str(), variant.label.as_str()));
        super::answer::short_names(&labels.collect::<Vec<_>>(), is_of_one_scenario)
    }
}

impl KeptVariant {
    /// The run with a seed.
    pub fn run(&self, seed: u64) -> Option<&KeptRun> {
        self.runs.iter().find(|run| run.scenario.seed == seed)
    }
}

/// A comparison that could not be read.
#[derive(Debug, Error)]
pub enum ReadComparisonError {
    /// The file could not be read.
    #[error(transparent)]
    Unreadable(#[from] InputError),
    /// The text is not JSON, or a field is missing or of the wrong type.
    #[error("not a comparison of Clearway")]
    Malformed(#[from] serde_json::Error),
}
