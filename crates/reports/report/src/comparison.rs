//! Several variants side by side: results of each, ratios to the first, and differences that the seeds alone can explain.
//!
//! A *variant* is a scenario with its settings, run with one or more seeds. A *measure* is one number of a run. Over the seeds of
//! a variant a measure has a median (of an even number of values, the mean of the two in the middle), a minimum and a maximum.
//! The *ratio* is the median divided by the median of the first variant. If both are zero, the ratio is 1. If only the median of the
//! first variant is zero, there is no ratio.
//!
//! **The spread of seeds**: the ranges from the minimum to the maximum of a variant and of the first variant are compared. If they
//! overlap, even in one point, the difference is *within the spread of seeds*: some seed of one variant is not better than some seed of
//! the other. If they do not overlap, every seed of one is beyond every seed of the other. With fewer than two seeds on either side
//! there is no verdict. The comparison of ranges is not a test of significance: of `m` and `n` independent seeds of the same variant,
//! chance alone separates the ranges in 2 of `(m+n)!/(m!n!)` cases: 1 of 3 for two seeds each, 1 of 10 for three, 1 of 35 for four,
//! 1 of 126 for five.
//!
//! **Intervals**: the mean over seeds has a 95 % interval by Student's t. The ratio of the means also has an interval, over the seeds
//! that a variant shares with the first variant. Two runs of one seed are a pair, so an effect of the seed on both does not count
//! ([`ratio_estimate`]). An interval without 1 is a difference that seeds explain in fewer than 5 % of such comparisons; with many
//! measures, some are. The median, whose ratio the table shows, may differ from the mean. No ratio is below zero: an interval that
//! reaches below zero means that there are too few seeds for their differences, and the table says so instead of the interval.
//!
//! # `compare.json`
//! Within schema 1 fields and measures are only ever added. A reader must skip unknown fields.
//!
//! | field | type, unit | meaning |
//! |---|---|---|
//! | `kind` | `comparison` | kind of the document |
//! | `schema` | 1 | version of this table |
//! | `version`, `revision`, `command` | text | the program, and the command that made the comparison |
//! | `answer` | text or null | by how much each variant is slower or faster than the first, by the mean iteration of the slowest job, or without jobs by the p99 slowdown of flows; null if a variant has neither |
//! | `complete` | true or false | false if the user interrupted the comparison: then some runs are missing |
//! | `warnings` | list of text | reasons why ratios may be misleading, and warnings about the runs |
//! | `variants[].id` | text | `A`, `B`, …; ratios refer to the first |
//! | `variants[].label` | text | label of the variant: its scenario and settings |
//! | `variants[].runs[]` | list | `scenario` (`name`, `hash`, `seed`), `status`, `warnings` (absent if there are none), `flows` (`total`, `completed`, `started`), `jobs` (`total`, `completed`), after a scale-up run `operations` (`total`, `completed`), `bytes` (payload of all flows), `digest`, `version`, `revision` as in `summary.json`; `folder` (text or null) of the results |
//! | `measures[].name` | text | `fct_us.max`, `packets.dropped`, …: as in `summary.json`; and `iteration_us.max`: the longest iteration of all jobs; `busbw_gb_per_s`: bus bandwidth, the mean over all jobs that have one; `goodput_bps`: payload of the completed flows, over the time from the first start to the last finish among them; and `slowdown_up_to_10KB.p999`, `slowdown_over_100MB.p50`, …: of a [size class](crate::by_size): flows above the previous class and up to this size; `sections.NAME.slowdown.p99`, `sections.NAME.goodput_bps`, `sections.NAME.iteration_us.p50`, …: of a [section](crate::by_section) of the workload, and `sections.NAME.up_to_10KB.slowdown.p50`, … of a size class of the section, if some run has several sections; if a run is a scale-up run, `operations.…`, named as its [figures](clearway_results::OperationFigures) |
//! | `measures[].title`, `.unit` | text | for people; the unit is `us`, `index` (from −1 to 1, without a ratio), `ratio`, `bps`, `gb_per_s` (10⁹ bytes/s), `flows`, `packets` or `frames`, or for operations a [unit of figures](clearway_results::FigureUnit) |
//! | `measures[].values[]` | list, one for each variant | |
//! | `….per_seed` | list of numbers or null | one for each run; null if no flow, or no iteration of a job, completed |
//! | `….median`, `.min`, `.max` | number or null | over the values that are not null |
//! | `….ratio` | number or null | of the medians, to the first variant |
//! | `….mean`, `.mean_interval` | number, two numbers; or null | mean and its 95 % interval by Student's t; no interval for fewer than two values |
//! | `….mean_ratio`, `.mean_ratio_interval` | number, two numbers; or null | of the means, to the first variant, over the seeds that both variants have, and its 95 % interval (Fieller, over pairs of one seed); no interval for fewer than two such seeds |
//! | `….common_seeds` | integer | number of seeds for which this and the first variant have values |
//! | `….within_spread` | true, false or null | true if the ranges overlap; null if either variant has fewer than two values |

mod answer;
mod cells;
mod outcome;
mod run;
mod run_curves;
mod stored;
mod warnings;

pub use crate::measures::{MEAN_ITERATION, Unit};
pub use outcome::{OperationCounts, RunOutcome, VariantOutcome};
pub use run::ComparedRun;
pub use run_curves::{METRICS as CURVE_METRICS, RunCurve};
pub use stored::{FILE_NAME, ReadComparisonError, StoredComparison};

use crate::jobs::JobCounts;
use crate::measures::{ShowIf, measures_of};
use crate::summary::StatusName;
use clearway_statistics::{mean_estimate, median, ratio_estimate};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// The version of the schema of `compare.json`.
pub const SCHEMA: u32 = 1;

/// A scenario with its settings, with one run for each seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Label that tells the variant from the others.
    pub label: String,
    /// Runs of the variant; at least one.
    pub runs: Vec<ComparedRun>,
}

/// Variants side by side; the [table of the module](self) describes the fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Reasons why ratios may be misleading, and warnings about the runs.
    pub warnings: Vec<String>,
    /// Variants that are compared; ratios refer to the first.
    pub variants: Vec<VariantOutcome>,
    /// Measures of the variants.
    pub measures: Vec<MeasureRow>,
}

/// A measure of all variants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasureRow {
    /// Path of the measure in `summary.json`, or another name.
    pub name: Cow<'static, str>,
    /// Name of the measure for people.
    pub title: Cow<'static, str>,
    /// Unit of the values.
    pub unit: Unit,
    /// Condition under which tables show it.
    #[serde(skip)]
    shown: ShowIf,
    /// One for each variant.
    pub values: Vec<Spread>,
}

/// A measure of one variant over its seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// One value for each run; `None` if the run has no value.
    pub per_seed: Vec<Option<f64>>,
    /// The median of the values.
    pub median: Option<f64>,
    /// The least value.
    pub min: Option<f64>,
    /// The greatest value.
    pub max: Option<f64>,
    /// The median as a multiple of the first variant's median.
    pub ratio: Option<f64>,
    /// True if the ranges of this and the first variant overlap; `None` if either variant has fewer than two values.
    pub within_spread: Option<bool>,
    /// The mean of the values.
    pub mean: Option<f64>,
    /// Interval of the mean; `None` if there are fewer than two values.
    pub mean_interval: Option<[f64; 2]>,
    /// The mean as a multiple of the first variant's mean, over the seeds that both variants have.
    pub mean_ratio: Option<f64>,
    /// Interval of `mean_ratio`; `None` if the variants share fewer than two seeds, or the first mean may be zero.
    pub mean_ratio_interval: Option<[f64; 2]>,
    /// Seeds for which this and the first variant have values.
    pub common_seeds: usize,
    /// Seed of each run.
    #[serde(skip)]
    seeds: Vec<u64>,
}

impl Spread {
    /// The values of one variant, not yet compared.
    fn from_seeds(per_seed: Vec<Option<f64>>, seeds: Vec<u64>) -> Self {
        let mut sorted: Vec<f64> = per_seed.iter().flatten().copied().collect();
        let mean = mean_estimate(&sorted, CONFIDENCE);
        sorted.sort_unstable_by(f64::total_cmp);
        Self {
            median: median(&sorted),
            min: sorted.first().copied(),
            max: sorted.last().copied(),
            per_seed,
            ratio: None,
            within_spread: None,
            mean: mean.map(|mean| mean.value),
            mean_interval: mean.and_then(|mean| Some(mean.interval?.ends())),
            mean_ratio: None,
            mean_ratio_interval: None,
            common_seeds: 0,
            seeds,
        }
    }

    /// Values of this and of the first variant, for each seed that both variants have.
    fn pairs(&self, first: &Self) -> Vec<(f64, f64)> {
        let of = |spread: &Self| -> BTreeMap<u64, f64> {
            let both = spread.seeds.iter().zip(&spread.per_seed);
            both.filter_map(|(&seed, &value)| Some((seed, value?)))
                .collect()
        };
        let others = of(first);
        let pairs = of(self).into_iter();
        pairs
            .filter_map(|(seed, value)| Some((value, *others.get(&seed)?)))
            .collect()
    }

    fn count(&self) -> usize {
        self.per_seed.iter().flatten().count()
    }

    /// Compares the spread with the spread of the first variant.
    fn against(mut self, first: &Self, unit: Unit) -> Self {
        self.ratio = match (self.median, first.median) {
            _ if unit == Unit::Index => None,
            (Some(own), Some(first)) if own == first => Some(1.0),
            (Some(own), Some(first)) if first > 0.0 => Some(own / first),
            _ => None,
        };
        let pairs = self.pairs(first);
        self.common_seeds = pairs.len();
        let ratio = ratio_estimate(&pairs, CONFIDENCE).filter(|_| unit != Unit::Index);
        self.mean_ratio = ratio.map(|ratio| ratio.value);
        self.mean_ratio_interval = ratio.and_then(|ratio| Some(ratio.interval?.ends()));
        if self.count() >= 2 && first.count() >= 2 {
            self.within_spread = Some(self.min <= first.max && first.min <= self.max);
        }
        self
    }
}

impl Comparison {
    /// Compares `variants` with the first variant.
    ///
    /// # Panics
    /// If there are no variants, or a variant has no runs.
    pub fn from_variants(variants: &[Variant]) -> Self {
        assert!(
            !variants.is_empty() && variants.iter().all(|variant| !variant.runs.is_empty()),
            "each variant has runs"
        );
        let outcomes: Vec<VariantOutcome> = (0..)
            .zip(variants)
            .map(|(place, variant)| VariantOutcome {
                id: letters(place),
                label: variant.label.clone(),
                runs: variant.runs.iter().map(outcome).collect(),
            })
            .collect();
        let runs = variants.iter().flat_map(|variant| &variant.runs);
        let runs = runs.map(|run| &run.summary);
        let measures = measures_of(runs).into_iter().map(|measure| {
            let spreads = variants.iter().map(|variant| {
                let runs = variant.runs.iter().map(|run| &run.summary);
                let seeds = runs.clone().map(|run| run.scenario.seed).collect();
                Spread::from_seeds(runs.map(|run| measure.value(run)).collect(), seeds)
            });
            let spreads: Vec<Spread> = spreads.collect();
            let first = spreads[0].clone();
            MeasureRow {
                name: measure.name,
                title: measure.title,
                unit: measure.unit,
                shown: measure.shown,
                values: spreads
                    .into_iter()
                    .map(|spread| spread.against(&first, measure.unit))
                    .collect(),
            }
        });
        Self {
            warnings: warnings::collect(&outcomes),
            measures: measures.collect(),
            variants: outcomes,
        }
    }

    /// True if flows or jobs of some run did not complete.
    pub fn is_incomplete(&self) -> bool {
        let mut runs = self.variants.iter().flat_map(|variant| &variant.runs);
        runs.any(|run| run.status != StatusName::Complete)
    }

    /// `compare.json`: the comparison with its origin, indented, with a final line break.
    pub fn to_json(&self, origin: &Origin) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            kind: &'static str,
            schema: u32,
            #[serde(flatten)]
            origin: &'a Origin,
            answer: Option<String>,
            #[serde(flatten)]
            comparison: &'a Comparison,
        }
        let document = Document {
            kind: "comparison",
            schema: SCHEMA,
            origin,
            answer: self.answer(),
            comparison: self,
        };
        let mut json =
            serde_json::to_string_pretty(&document).expect("it holds text and finite numbers");
        json.push('\n');
        json
    }
}

/// Origin of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Version of the program.
    pub version: String,
    /// Revision of the source that the program was built from.
    pub revision: String,
    /// Command that made the comparison.
    pub command: String,
    /// False if the user interrupted the comparison.
    pub complete: bool,
}

fn outcome(run: &ComparedRun) -> RunOutcome {
    let summary = &run.summary;
    RunOutcome {
        scenario: summary.scenario.clone(),
        status: summary.status,
        warnings: summary.warnings.clone(),
        flows: summary.flows,
        jobs: JobCounts::from_jobs(&summary.jobs),
        operations: summary.operations.as_ref().map(|operations| {
            let totals = operations.figures.totals;
            OperationCounts {
                total: totals.posted,
                completed: totals.completed,
            }
        }),
        bytes: run.bytes(),
        digest: summary.digest.clone(),
        version: summary.version.clone(),
        revision: summary.revision.clone(),
        folder: run.folder.clone(),
    }
}

/// The name of the variant at `place`, from zero: `A` to `Z`, `AA`, `AB`, ….
pub fn letters(place: usize) -> String {
    let last = char::from(b'A' + (place % 26) as u8);
    match place / 26 {
        0 => last.to_string(),
        before => format!("{}{last}", letters(before - 1)),
    }
}

#[cfg(test)]
mod tests;
