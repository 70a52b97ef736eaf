//! Outcome of a reproduction: verdicts, and the numbers behind them.
//!
//! All types can be written with serde. Missing numbers (a queue that never settles) are `None`.

use super::definition::Scale;
use serde::Serialize;
use std::collections::BTreeMap;

/// Verdict on a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The rule holds.
    Pass,
    /// The rule does not hold.
    Miss,
    /// The bound lies within the spread over seeds, so other seeds might give another verdict.
    Unsure,
    /// The claim needs a missing feature, for instance a transport.
    NotYet(String),
    /// The claim is about a size that exists only at the other scale.
    OtherScale,
    /// The reproduction was interrupted before the claim's runs were done.
    NotRun,
}

/// One comparison of a claim, at one label if the claim has several.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judgement {
    /// The label, for instance the message size.
    pub at: Option<String>,
    /// Compared quantity, as in the claim file.
    pub quantity: String,
    /// Relation and bounds, as in the claim file.
    pub rule: String,
    /// The quantity for each seed.
    pub per_seed: Vec<Option<f64>>,
    /// Number combined from all seeds, by default the median.
    pub measured: Option<f64>,
    /// The bounds, evaluated in the same way.
    pub bounds: Vec<Option<f64>>,
    /// The rule holds.
    pub holds: bool,
    /// The bound lies beyond the spread over seeds, or no spread is known.
    pub sure: bool,
    /// Reason why there is no number.
    pub reason: Option<String>,
}

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClaimOutcome {
    /// Name of the claim in the claim file.
    pub id: String,
    /// Statement of the paper.
    pub paper: String,
    /// Place of the statement in the paper.
    pub source: String,
    /// The acceptance rule.
    pub expect: String,
    /// Remarks, including deviations.
    pub note: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Judgements on which the verdict rests.
    pub judgements: Vec<Judgement>,
    /// Axes along which a passed claim compares runs, but without whose effect it would also pass: with all runs along the axis replaced by
    /// one run. `settings` if the claim measures no run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passes_without: Vec<String>,
}

/// A curve over time, with buckets of equal width from zero; or over the iterations of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BucketCurve {
    /// Name of the curve, with its unit.
    pub name: String,
    /// The width of a bucket; zero if there is a value for each iteration.
    pub bucket_us: f64,
    /// The values.
    pub values: Vec<f64>,
}

/// A run with its measures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FigureRun {
    /// Label of the run on each axis.
    pub labels: BTreeMap<String, String>,
    /// Seed of the run.
    pub seed: u64,
    /// Settings of the run, as `clearway run --set` takes them; of a plan, the lines of its file of jobs.
    pub settings: Vec<String>,
    /// Digest of the outcome.
    pub digest: String,
    /// Scalar measures by name: times in us, counts in packets.
    pub measures: BTreeMap<String, f64>,
    /// Recorded curves, only of the first seed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<BucketCurve>,
}

/// A reproduced figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FigureOutcome {
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
    /// Name of the null subject in place of the figure's transports.
    pub null: Option<String>,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// False if interrupted.
    pub complete: bool,
    /// The runs.
    pub runs: Vec<FigureRun>,
    /// The claims.
    pub claims: Vec<ClaimOutcome>,
}

/// Number of claims by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Passed.
    pub passed: usize,
    /// Missed.
    pub missed: usize,
    /// Within the spread over seeds.
    pub unsure: usize,
    /// Not yet possible.
    pub not_yet: usize,
    /// About sizes of the other scale.
    pub other_scale: usize,
    /// Interrupted.
    pub not_run: usize,
}

impl Tally {
    /// Counts the verdicts of claims.
    pub fn count<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        let mut tally = Self::default();
        for verdict in verdicts {
            *match verdict {
                Verdict::Pass => &mut tally.passed,
                Verdict::Miss => &mut tally.missed,
                Verdict::Unsure => &mut tally.unsure,
                Verdict::NotYet(_) => &mut tally.not_yet,
                Verdict::OtherScale => &mut tally.other_scale,
                Verdict::NotRun => &mut tally.not_run,
            } += 1;
        }
        tally
    }

    /// Adds the counts of another figure.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.missed += other.missed;
        self.unsure += other.unsure;
        self.not_yet += other.not_yet;
        self.other_scale += other.other_scale;
        self.not_run += other.not_run;
    }
}

impl FigureOutcome {
    /// Counts of the verdicts.
    pub fn tally(&self) -> Tally {
        Tally::count(self.claims.iter().map(|claim| &claim.verdict))
    }
}
