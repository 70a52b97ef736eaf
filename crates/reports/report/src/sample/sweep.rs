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
