//! Runs and variants to compare.

use crate::sample::{flow, run, scale_up_run};
use clearway_report::comparison::{ComparedRun, Comparison, MeasureRow, Variant};
use clearway_units::Span;

/// A run with one seed, whose flows took the times `fcts` in microseconds.
pub(crate) fn seed(seed: u64, fcts: &[u64]) -> ComparedRun {
    let mut record = run();
    record.scenario.seed = seed;
    record.digest = format!("{seed}-{fcts:?}");
    record.flows = (0..)
        .zip(fcts)
        .map(|(number, &us)| flow(number, Some(Span::from_us(us))))
        .collect();
    ComparedRun::from_record(record)
}

/// A variant of these runs.
pub(crate) fn variant(label: &str, runs: impl IntoIterator<Item = ComparedRun>) -> Variant {
    Variant {
        label: label.into(),
        runs: runs.into_iter().collect(),
    }
}

/// Seeds from 1 on, each with one flow that takes the given time in microseconds.
pub(crate) fn seeds(label: &str, fcts: &[u64]) -> Variant {
    let runs = (1..).zip(fcts).map(|(number, &us)| seed(number, &[us]));
    variant(label, runs)
}

/// The row of one measure.
pub(crate) fn row(comparison: &Comparison, name: &str) -> MeasureRow {
    let mut rows = comparison.measures.iter();
    rows.find(|row| row.name == name).expect(name).clone()
}

/// A scale-up run whose operations take `more` additional cycles.
pub(crate) fn scale_up(seed: u64, more: u64) -> ComparedRun {
    let mut record = scale_up_run();
    record.scenario.seed = seed;
    record.digest = format!("{seed}-{more}");
    let operations = record.operations.as_mut().unwrap();
    operations.totals.effective_bandwidth /= (1 + more) as f64;
    for row in &mut operations.rows {
        row.completed_cycle += more;
    }
    ComparedRun::from_record(record)
}
