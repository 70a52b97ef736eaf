//! Plans of sweeps.
//!
//! ```toml
//! name = "window-study"
//! scenario = "quickstart"
//! seeds = 3
//!
//! [set]                               # overrides of all runs
//! "workload.message" = "2MB"
//!
//! [axes]                              # a grid: all combinations
//! "transport.spray" = ["single", "adaptive"]
//!
//! [[point]]                           # instead of a grid or beside it: single points
//! "transport.kind" = "rocev2"
//!
//! [sample]                            # instead of a grid: drawn points
//! method = "latin-hypercube"
//! points = 40
//! [sample.ranges]
//! "transport.target-qdelay" = { from = "5us", to = "50us", scale = "log" }
//!
//! [[assert]]                          # what has to come out
//! measure = "fct_us.p99"
//! of = { "transport.spray" = "adaptive" }
//! below = { "transport.spray" = "single" }
//!
//! [tune]                              # for `clearway tune`
//! measure = "fct_us.p99"
//! budget = 120
//! ```

mod asserts;
mod builtin;
mod measure;
mod quantity;
mod ranges;
mod read;
mod reader;
mod sample;
mod settings;

pub(crate) use asserts::text_of;
pub(crate) use sample::draw;

pub use asserts::{AssertSection, StatisticKey};
pub use builtin::{builtin_sweeps, catalogue_sections};
pub use quantity::{QuantityKind, quantities, quantity};
pub use sample::Range;
pub use settings::{MOST_PLANNED, SampleMethod, SampleSection, Seeds, SweepGeneral, TuneSection};

use clearway_report::sweep::{Assertion, is_of_part};
use clearway_scenario::SourceLocation;
use clearway_units::Value;
use std::path::PathBuf;

/// A plan, as written by a user.
#[derive(Debug, Clone)]
pub struct SweepPlan {
    /// Name, scenario, seeds.
    pub general: SweepGeneral,
    /// Overrides of all runs.
    pub set: Vec<PlannedValue>,
    /// Axes of the grid, in the order of the plan.
    pub axes: Vec<PlannedAxis>,
    /// Single points.
    pub points: Vec<PlannedPoint>,
    /// Drawn points.
    pub sample: Option<Sample>,
    /// Goal and budget of a tuning.
    pub tune: TuneSection,
    /// Assertions on the results.
    pub assertions: Vec<PlannedAssertion>,
    /// Text of the plan.
    pub text: String,
    /// Name of the plan in errors.
    pub file: String,
    /// The folder of the plan, in which the scenario is searched.
    pub base_dir: Option<PathBuf>,
    /// Place of the line that names the scenario.
    pub(crate) scenario_place: SourceLocation,
    /// Places of `tune.measure` and `tune.then`.
    pub(crate) tune_places: [SourceLocation; 2],
}

/// An assertion with its places in the plan.
#[derive(Debug, Clone)]
pub struct PlannedAssertion {
    /// The assertion, with the plan's spelling of values.
    pub assertion: Assertion,
    /// Values of the points concerned.
    pub(crate) of: Vec<PlannedValue>,
    /// Values of the points to compare with.
    pub(crate) other: Vec<PlannedValue>,
    /// Place of the assertion.
    pub(crate) place: SourceLocation,
    /// Place of the measure.
    pub(crate) measure_place: SourceLocation,
}

/// A key with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedValue {
    /// The key, as in `--set`.
    pub key: String,
    /// Value of the key.
    pub value: Value,
    /// Place in the plan.
    pub place: SourceLocation,
}

/// An axis of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedAxis {
    /// The key, as in `--set`.
    pub key: String,
    /// Distinct values of the key.
    pub values: Vec<Value>,
    /// Place in the plan.
    pub place: SourceLocation,
}

/// A single point.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedPoint {
    /// Values that the point sets.
    pub values: Vec<PlannedValue>,
}

/// Drawn points.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Method, number of points, seed.
    pub settings: SampleSection,
    /// Ranges of keys, in the order of the plan.
    pub ranges: Vec<SampleRange>,
}

/// Range of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRange {
    /// The key, as in `--set`.
    pub key: String,
    /// Values that the key can have.
    pub range: Range,
    /// Place in the plan.
    pub place: SourceLocation,
}

impl SweepPlan {
    /// Number of runs; `None` if it does not fit into 64 bits.
    pub fn run_count(&self) -> Option<u64> {
        let grid = match self.has_grid() {
            true => self.axes.iter().try_fold(1u64, |product, axis| {
                product.checked_mul(axis.values.len() as u64)
            })?,
            false => 0,
        };
        let drawn = self
            .sample
            .as_ref()
            .map_or(0, |sample| sample.settings.points);
        let points = grid
            .checked_add(self.points.len() as u64)?
            .checked_add(drawn.into())?;
        points.checked_mul(self.general.seeds.count() as u64)
    }

    /// The count as a product: `3 x 4 points, 3 seeds`.
    pub fn shape(&self) -> String {
        let mut parts = Vec::new();
        if self.has_grid() && !self.axes.is_empty() {
            let lengths: Vec<String> = self
                .axes
                .iter()
                .map(|axis| axis.values.len().to_string())
                .collect();
            parts.push(format!("a grid of {}", lengths.join(" x ")));
        }
        if !self.points.is_empty() {
            parts.push(counted(self.points.len() as u64, "single point"));
        }
        if let Some(sample) = &self.sample {
            parts.push(counted(sample.settings.points.into(), "drawn point"));
        }
        if parts.is_empty() {
            parts.push("1 point".into());
        }
        let seeds = self.general.seeds.count() as u64;
        format!("{}, {}", parts.join(" and "), counted(seeds, "seed"))
    }

    /// Number of groups of points that are tuned separately: combinations of values on the axes of `tune.each`.
    pub(crate) fn group_count(&self) -> u64 {
        let axes = self.axes.iter();
        let axes = axes.filter(|axis| self.tune.each.contains(&axis.key));
        axes.fold(1, |groups, axis| {
            groups.saturating_mul(axis.values.len() as u64)
        })
    }

    /// Measures of workload sections and tenants that assertions and the tuning name, with their places.
    pub(crate) fn measures_of_parts(&self) -> impl Iterator<Item = (&str, &SourceLocation)> {
        let assertions = self.assertions.iter();
        let asserted =
            assertions.map(|planned| (&planned.assertion.measure, &planned.measure_place));
        let tuned = [&self.tune.measure, &self.tune.then];
        let tuned = tuned.into_iter().zip(&self.tune_places);
        let all = asserted.chain(tuned);
        all.map(|(name, place)| (name.as_str(), place))
            .filter(|(name, _)| is_of_part(name))
    }

    /// True if there is a grid. Without axes, points and sample, the grid is the scenario itself.
    pub(crate) fn has_grid(&self) -> bool {
        !self.axes.is_empty() || (self.points.is_empty() && self.sample.is_none())
    }
}

/// `1 run`, `2 runs`.
pub fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}
