//! Sweeps of a few points, and points by name.

use crate::sample::sweep;
use crate::sample::sweep::{VALUES, measured};
use clearway_report::sweep::{SweepRecord, SweepRun};

/// Points with this value of an axis.
pub(crate) fn spray(name: &str) -> Vec<(String, String)> {
    vec![("transport.spray".into(), name.into())]
}

/// A sweep of two points over nine seeds.
pub(crate) fn two_points(values: [[f64; 9]; 2]) -> SweepRecord {
    let mut sweep = measured(VALUES);
    let template = sweep.runs[0].clone();
    let runs = (0..18).map(|number: usize| SweepRun {
        place: vec![0, number as u32 / 9],
        seed: number as u64 % 9,
        values: vec![
            Some(values[number / 9][number % 9]),
            Some(-values[number / 9][number % 9]),
        ],
        ..template.clone()
    });
    sweep.runs = runs.collect();
    sweep
}

/// With most seeds the point with the greater median is a little better, and with one much worse.
pub(crate) const CROSSED: [[f64; 9]; 2] = [
    [1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 11.0, 12.0, 13.0],
    [0.9, 1.9, 2.9, 3.9, 9.0, 9.9, 10.9, 11.9, 12.9],
];

/// The sample with message sizes as a given axis.
pub(crate) fn of_given_messages() -> SweepRecord {
    let mut sweep = sweep();
    sweep.axes[1].given = true;
    sweep
}
