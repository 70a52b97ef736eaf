//! Sweeps with several seeds.

use super::sweep;
use clearway_report::sweep::{SweepMeasure, SweepRecord, SweepRun, SweepStatus, Unit};

/// A sweep of two schemes and two sizes over five seeds, with the given slowdowns.
pub(crate) fn measured(values: [[f64; 5]; 4]) -> SweepRecord {
    let mut sweep = sweep();
    let measure = |name: &str, unit| SweepMeasure {
        name: name.into(),
        title: name.replace('.', " "),
        unit,
    };
    sweep.measures = vec![
        measure("slowdown.p99", Unit::Ratio),
        measure("goodput_bps", Unit::Bps),
    ];
    sweep.failures.clear();
    let runs = (0..20).map(|number: usize| SweepRun {
        key: format!("{number:016x}"),
        place: vec![number as u32 / 10, number as u32 / 5 % 2],
        seed: number as u64 % 5 + 1,
        status: SweepStatus::Complete,
        values: vec![
            Some(values[number / 5][number % 5]),
            Some(1e9 * values[number / 5][number % 5]),
        ],
        wall_seconds: Some(1.0),
        cpu_seconds: Some(1.0),
        peak_rss_bytes: Some(1 << 20),
    });
    sweep.runs = runs.collect();
    sweep
}

/// Slowdowns of each point.
pub(crate) const VALUES: [[f64; 5]; 4] = [
    [1.52, 1.61, 1.44, 1.66, 1.71],
    [2.52, 2.61, 2.44, 2.66, 2.71],
    [1.21, 1.34, 1.18, 1.29, 1.41],
    [1.22, 1.33, 1.19, 1.30, 1.38],
];

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
