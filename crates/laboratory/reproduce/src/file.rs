//! Result files of reproductions: JSON lines with a header, then claims, then runs.
//!
//! A record at full scale may be weeks old. Its header has a [fingerprint](Figure::fingerprint) of the measured figure. While the figure
//! has the same fingerprint, the record is valid for the present program.

use super::definition::Scale;
use super::figure::Figure;
use super::outcome::{ClaimOutcome, FigureOutcome, FigureRun};
use clearway_units::Digest;
use serde::Serialize;

/// A line of a result file.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Line {
    /// The header: the first line.
    Reproduction(RecordHeader),
    /// A claim.
    Claim(ClaimOutcome),
    /// A run.
    Run(FigureRun),
}

/// The first line of a result file.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RecordHeader {
    /// Version of the format: 1.
    pub schema: u32,
    /// The command that wrote the file.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// Revision of the source.
    pub revision: String,
    /// [Fingerprint](Figure::fingerprint) of the measured figure; `None` in older files, and if settings were changed.
    pub fingerprint: Option<String>,
    /// `PAPER/FIGURE`.
    pub figure: String,
    /// Title of the figure.
    pub title: String,
    /// Place of the figure in the paper.
    pub source: String,
    /// Description of the runs.
    pub setup: String,
    /// Scale of the reproduction.
    pub scale: Scale,
    /// Settings that replaced settings of the figure.
    pub changes: Vec<String>,
    /// Name of the [null subject](super::NullSubject) in place of the figure's transports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null: Option<String>,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// False if interrupted.
    pub complete: bool,
    /// Claims that passed.
    pub passed: usize,
    /// Claims that missed.
    pub missed: usize,
    /// Claims whose bound lies within the spread over seeds.
    pub unsure: usize,
    /// Claims that need a missing feature.
    pub not_yet: usize,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// Wall time in seconds.
    pub wall_seconds: f64,
}

impl Figure {
    /// Fingerprint of the figure's measurements at both scales, from its outcome at small scale: a digest of the settings of all runs of
    /// both scales, and of the outcomes of the small runs with seed 1. A change of the figure, or of the simulator's results in it, changes
    /// the fingerprint; a change of only the claims does not.
    ///
    /// `None` if the outcome lacks these runs, because it is at full scale, was interrupted, or has changed settings.
    pub fn fingerprint(&self, small: &FigureOutcome) -> Option<String> {
        let is_whole = small.complete && small.changes.is_empty() && small.null.is_none();
        if small.scale != Scale::Small || !is_whole || !small.seeds.contains(&1) {
            return None;
        }
        let mut digest = Digest::default();
        for scale in Scale::ALL {
            for run in self.runs(scale) {
                let settings = self.settings_of(scale, &run, 1);
                add_text(&mut digest, scale.name(), &run.labels, &settings);
            }
        }
        for run in small.runs.iter().filter(|run| run.seed == 1) {
            let labels: Vec<String> = run.labels.values().cloned().collect();
            add_text(
                &mut digest,
                "digest",
                &labels,
                std::slice::from_ref(&run.digest),
            );
        }
        Some(digest.to_string())
    }
}

/// Adds texts as one record.
fn add_text(digest: &mut Digest, kind: &str, labels: &[String], texts: &[String]) {
    let words = [kind].into_iter();
    let words = words.chain(labels.iter().map(String::as_str));
    let words = words.chain(texts.iter().map(String::as_str));
    // The separator 256 is not a byte, so it does not occur in texts.
    let letters = words.flat_map(|word| word.bytes().map(u64::from).chain([256]));
    digest.add(&letters.collect::<Vec<u64>>());
}
