//! A sweep: runs of one scenario at many points, each with several seeds.
//!
//! An *axis* is a key of the scenario that the plan varies; a *point* is a value on each axis; a run is a point with a seed. The measures
//! of a run are the same as in a [comparison](crate::comparison), and follow from its summary alone.
//!
//! # `sweep.json`
//! Within schema 1 fields and measures are only ever added. A reader must skip unknown fields. Except for the command, the document does
//! not depend on time, place or order of the runs. `sweep.parquet` has the same data by run, with the time and memory of each run;
//! [`columns`](crate::columns) gives the meaning of each column.
//!
//! | field | type, unit | meaning |
//! |---|---|---|
//! | `kind` | `sweep` | kind of the document |
//! | `schema` | 1 | version of this table |
//! | `name` | text | name of the plan |
//! | `version`, `revision`, `command` | text | the program, and the command that made the document |
//! | `missing` | runs | runs of the plan that were not done yet |
//! | `axes[].key` | text | key of the scenario |
//! | `axes[].values` | list of text | values as the plan gives them, in its order |
//! | `axes[].unit`, `.numbers` | text and list of numbers, or null | the same values in the base unit of the key; null if not all are quantities |
//! | `measures[].name`, `.title`, `.unit` | text | measures that some run has, as in [`compare.json`](crate::comparison) |
//! | `axes[].given` | boolean | true for conditions that nobody chooses, such as message sizes and failures, and for keys that `tune.each` names |
//! | `points[].values` | object | value of each axis, by its key |
//! | `points[].runs[]` | list, in the order of the plan | `seed`; `key`, name of the run's folder; `status`: `complete`, `incomplete`, `interrupted` as in `summary.json`, or `failed` if it left no results |
//! | `points[].measures.NAME.per_seed` | list of numbers or null | one value for each run; null if the run has none |
//! | `….mean`, `.median`, `.min`, `.max` | number or null | over the values that are not null |
//! | `….mean_interval` | two numbers, or null | 95 % interval of the mean, by Student's t; null for fewer than two seeds |
//! | `best.NAME` | object | the best point by each measure; less is better, except for rates, counts of completed work and indices: `point`, its place in `points`; `share_of_samples` of the bootstrap in which it is the best (null for one seed); `alike`, places of points that cannot be told apart from it (the 95 % interval of the paired difference of the means is not wholly on the worse side); `left_out`, number of points with a run that is not complete or has no value; `fewer_seeds`, number of other points that lack seeds that some point has |
//! | `groups[]` | list, absent without groups | the best point for each combination of values of the axes that are `given`: `values` by axis, `points`, their places, and `best.NAME` as above |
//! | `failures[]` | list | `key`, `seed`, `values` by axis, `reason` of each run that failed |
//! | `tuning` | object or null | choice of `clearway tune`: `measure`, `then` (or null), `within`, `rungs[]` with `points`, `seeds` and `left_out`, and `best[]`, the chosen points by axis: one, or one for each combination of values of `tune.each` |
//! | `assertions[]` | list | [outcomes](AssertionOutcome) of the plan's assertions, in its order |
//! | `….text` | text | the assertion |
//! | `….measure`, `.statistic`, `.confidence` | text, `mean` or `median`, 0 to 1 | measure, its statistic, and the confidence of the verdict |
//! | `….verdict`, `.reason` | `pass`, `fail` or `undecided`, and text | all cases together: `undecided` counts as failed |
//! | `….cases[]` | list | `values` and `other` (by axis, or null) of the points concerned, `seeds`, `estimate` with `interval` (of the number, or of the difference of both points), `ratio` with `ratio_interval`, `verdict` and `reason` |

mod assertion;
mod dataset;
mod document;
mod groups;
mod judge;
mod paired;
mod points;
mod sentences;
mod tuning;

pub use crate::measures::Unit;
pub use assertion::{
    Assertion, AssertionCase, AssertionOutcome, AssertionVerdict, Bound, Limit, Statistic,
};
pub use dataset::{FILE_NAME as TABLE_NAME, write_sweep};
pub(crate) use dataset::{columns, kinds_of_columns, rows};
pub use groups::{PointGroup, RankedGroup};
pub use points::{BestPoint, CONFIDENCE, Samples, share_text};
pub use sentences::no_value;
pub use tuning::{ChosenRow, TuningRecord, TuningRung};

use crate::measures::{ESTIMATED_ERROR, measures_of};
use crate::summary::{StatusName, Summary};
use serde::Serialize;

/// The name of the document in the folder of a sweep.
pub const FILE_NAME: &str = "sweep.json";

/// The version of the schema of `sweep.json`.
pub const SCHEMA: u32 = 1;

/// A sweep as it is written and shown.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRecord {
    /// Name of the plan.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Revision of the source that the program was built from.
    pub revision: String,
    /// Command that made the record.
    pub command: String,
    /// Keys that the plan varies.
    pub axes: Vec<SweepAxis>,
    /// Measures that some run has.
    pub measures: Vec<SweepMeasure>,
    /// Runs that were done or failed, in the order of the plan.
    pub runs: Vec<SweepRun>,
    /// Runs of the plan that are not done yet.
    pub missing: u64,
    /// Runs that failed.
    pub failures: Vec<SweepFailure>,
    /// Outcomes of the plan's assertions.
    pub assertions: Vec<AssertionOutcome>,
    /// Choice of a tuning, if the record belongs to one.
    pub tuning: Option<TuningRecord>,
}

/// Key of the scenario that a plan varies.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepAxis {
    /// The key.
    pub key: String,
    /// Distinct values as the plan gives them, in its order.
    pub values: Vec<String>,
    /// The values as numbers, if all are quantities.
    pub numbers: Option<AxisNumbers>,
    /// True for conditions that nobody who builds or runs a network chooses, such as message sizes and failures: points compete only with
    /// points that have the same value.
    pub given: bool,
}

/// Values of an axis as numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisNumbers {
    /// Base unit of the key: `ps`, `bytes`, `bit/s`; empty for plain numbers.
    pub unit: String,
    /// A number for each value.
    pub values: Vec<f64>,
}

/// Measure of the runs of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SweepMeasure {
    /// Path of the measure in `summary.json`, or another name.
    pub name: String,
    /// Name of the measure for people.
    pub title: String,
    /// Unit of the values.
    pub unit: Unit,
}

/// Outcome of a run of a sweep, as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SweepStatus {
    /// All work was done.
    Complete,
    /// The run ended before all work was done.
    Incomplete,
    /// The user interrupted the run.
    Interrupted,
    /// The run left no results.
    Failed,
}

impl SweepStatus {
    /// The status as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

impl From<StatusName> for SweepStatus {
    fn from(status: StatusName) -> Self {
        match status {
            StatusName::Complete => Self::Complete,
            StatusName::Incomplete => Self::Incomplete,
            StatusName::Interrupted => Self::Interrupted,
        }
    }
}

/// Run of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRun {
    /// Hash of the resolved scenario and the program: name of the run's folder.
    pub key: String,
    /// Place of the run's value on each axis.
    pub place: Vec<u32>,
    /// Seed of the run.
    pub seed: u64,
    /// Outcome of the run.
    pub status: SweepStatus,
    /// Value of each of [`SweepRecord::measures`], if the run has one.
    pub values: Vec<Option<f64>>,
    /// Wall time in seconds; `None` for a run that failed.
    pub wall_seconds: Option<f64>,
    /// CPU time in seconds; `None` for a run that failed.
    pub cpu_seconds: Option<f64>,
    /// Maximum memory in bytes; `None` for a run that failed.
    pub peak_rss_bytes: Option<u64>,
}

/// Run that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepFailure {
    /// Name of the run's folder.
    pub key: String,
    /// Place of the run's value on each axis.
    pub place: Vec<u32>,
    /// Seed of the run.
    pub seed: u64,
    /// Reason of the failure, for people.
    pub reason: String,
}

/// Run with its place in the plan and the summary that it left.
#[derive(Debug, Clone, PartialEq)]
pub struct SummarizedRun {
    /// Hash of the resolved scenario and the program: name of the run's folder.
    pub key: String,
    /// Place of the run's value on each axis.
    pub place: Vec<u32>,
    /// Seed of the run.
    pub seed: u64,
    /// Summary of the run; `None` if it failed.
    pub summary: Option<Summary>,
}

impl SweepRecord {
    /// Sets measures and runs from `runs`, which are in the order of the plan. A measure without a value in any run is left out.
    pub fn measure(&mut self, runs: &[SummarizedRun]) {
        let summaries = runs.iter().filter_map(|run| run.summary.as_ref());
        let mut measures = measures_of(summaries.clone());
        measures.retain(|measure| {
            let mut summaries = summaries.clone();
            summaries.any(|summary| measure.value(summary).is_some())
        });
        let run = |run: &SummarizedRun| {
            let summary = run.summary.as_ref();
            let values = measures.iter().map(|measure| measure.value(summary?));
            SweepRun {
                key: run.key.clone(),
                place: run.place.clone(),
                seed: run.seed,
                status: summary.map_or(SweepStatus::Failed, |summary| summary.status.into()),
                values: values.collect(),
                wall_seconds: summary.map(|summary| summary.wall_seconds),
                cpu_seconds: summary.map(|summary| summary.cpu_seconds),
                peak_rss_bytes: summary.map(|summary| summary.peak_rss_bytes),
            }
        };
        self.runs = runs.iter().map(run).collect();
        let measures = measures.into_iter().map(|measure| SweepMeasure {
            name: measure.name.into_owned(),
            title: measure.title.into_owned(),
            unit: measure.unit,
        });
        self.measures = measures.collect();
    }

    /// Largest [estimated error](crate::fast_forward) of the simulated time of a run, as a fraction; `None` if all runs are exact.
    pub fn estimated_error(&self) -> Option<f64> {
        let mut names = self.measures.iter();
        let place = names.position(|measure| measure.name == ESTIMATED_ERROR)?;
        let errors = self.runs.iter().filter_map(|run| run.values[place]);
        errors.max_by(f64::total_cmp).filter(|error| *error > 0.0)
    }

    /// Points of the sweep in the order of the plan, each with the places of its runs in [`runs`](Self::runs).
    pub fn points(&self) -> Vec<SweepPoint> {
        let mut points: Vec<SweepPoint> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        for (number, run) in self.runs.iter().enumerate() {
            let point = *places.entry(&run.place).or_insert_with(|| {
                points.push(SweepPoint {
                    place: run.place.clone(),
                    runs: Vec::new(),
                });
                points.len() - 1
            });
            points[point].runs.push(number);
        }
        points
    }

    /// Axes and values of a point: `transport.spray=single workload.message=1MB`.
    pub fn name_of(&self, place: &[u32]) -> String {
        let values = self.values_of(place);
        let words: Vec<String> = values
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        words.join(" ")
    }

    /// Key and value of each axis at a point.
    pub fn values_of<'a>(
        &'a self,
        place: &'a [u32],
    ) -> impl Iterator<Item = (&'a str, &'a str)> + Clone {
        let axes = self.axes.iter().zip(place);
        axes.map(|(axis, &value)| (axis.key.as_str(), axis.values[value as usize].as_str()))
    }
}

/// Point of a sweep with its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepPoint {
    /// Place of the point's value on each axis.
    pub place: Vec<u32>,
    /// Places of the runs in [`SweepRecord::runs`].
    pub runs: Vec<usize>,
}

/// True if runs may have a measure of this name: a measure of all runs, or of a section of the workload or a tenant.
pub fn is_measure(name: &str) -> bool {
    is_of_part(name) || crate::measures::fixed_measures().any(|measure| measure.name == name)
}

/// Names of the measures that runs may have for these sections of a workload.
pub fn section_measures<'a>(sections: impl Iterator<Item = &'a str>) -> Vec<String> {
    let measures = sections.flat_map(crate::measures::measures_of_section);
    measures.map(|measure| measure.name.into_owned()).collect()
}

/// Names of the measures that runs may have for these tenants.
pub fn tenant_measures<'a>(tenants: impl Iterator<Item = &'a str>) -> Vec<String> {
    let measures = tenants.flat_map(crate::measures::measures_of_tenant);
    measures.map(|measure| measure.name.into_owned()).collect()
}

/// True if `name` is a measure of a section of the workload or of a tenant.
pub fn is_of_part(name: &str) -> bool {
    [crate::measures::SECTIONS, crate::measures::TENANTS]
        .iter()
        .any(|part| name.starts_with(part))
}

/// Names of the measures that do not depend on the sections of a workload.
pub fn measure_names() -> Vec<String> {
    let names = crate::measures::fixed_measures().map(|measure| measure.name.into_owned());
    names.collect()
}

#[cfg(test)]
mod tests;
