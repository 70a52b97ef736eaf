//! A comparison in a folder: its variants, and the folders of their runs.

use super::VariantOutcome;
use super::answer::short_names;
use clearway_input::{InputError, InputKind};
use serde::Deserialize;
use std::path::Path;
use thiserror::Error;

/// The name of the document in the folder of a comparison.
pub const FILE_NAME: &str = "compare.json";

/// Variants of a comparison, read from its document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StoredComparison {
    /// The variants, in order.
    pub variants: Vec<VariantOutcome>,
}

impl StoredComparison {
    /// Reads `compare.json` in `folder`.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a comparison.
    pub fn read(folder: &Path) -> Result<Self, ReadComparisonError> {
        let text = clearway_input::read_text(&folder.join(FILE_NAME), InputKind::SUMMARY)?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The first seed with which all variants ran.
    pub fn common_seed(&self) -> Option<u64> {
        let (first, others) = self.variants.split_first()?;
        let mut seeds = first.runs.iter().map(|run| run.scenario.seed);
        seeds.find(|&seed| others.iter().all(|other| other.run(seed).is_some()))
    }

    /// Short names of the variants.
    pub fn short_names(&self) -> Vec<String> {
        short_names(&self.variants)
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
