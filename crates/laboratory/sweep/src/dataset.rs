//! Conversion of a sweep's folder to its record and its published files.

use crate::points::{PlannedRun, ProgramIdentity, Sweep};
use crate::store::{Store, StoreError};
use clearway_report::sweep::{SummarizedRun, SweepFailure, SweepRecord, SweepStatus};
use std::collections::BTreeSet;

/// Collects the results of a sweep in the order of the plan, independent of the processes and times of the runs.
///
/// # Errors
/// If results cannot be read.
pub fn record(
    sweep: &Sweep,
    store: &Store,
    program: &ProgramIdentity,
    command: &str,
) -> Result<SweepRecord, StoreError> {
    let finished = store.finished()?;
    let failed = store.failures()?;
    let mut runs = Vec::new();
    let mut failures = Vec::new();
    for run in &sweep.runs {
        let summary = match finished.contains(&run.key) {
            true => Some(store.summary(run.key)?),
            false => None,
        };
        let failure = failed.get(&run.key).filter(|_| summary.is_none());
        if summary.is_none() && failure.is_none() {
            continue;
        }
        if let Some(failure) = failure {
            failures.push(failure_of(run, &failure.reason));
        }
        runs.push(SummarizedRun {
            key: run.key.to_string(),
            place: run.place.clone(),
            seed: run.seed,
            summary,
        });
    }
    let mut record = SweepRecord {
        name: sweep.plan.general.name.clone(),
        version: program.version.clone(),
        revision: program.revision.clone(),
        command: command.into(),
        axes: sweep
            .axes
            .iter()
            .map(|axis| axis.column(&sweep.plan.tune.each))
            .collect(),
        measures: Vec::new(),
        runs: Vec::new(),
        missing: (sweep.runs.len() - runs.len()) as u64,
        failures,
        assertions: Vec::new(),
        tuning: None,
    };
    record.measure(&runs);
    record.judge(&sweep.assertions);
    Ok(record)
}

/// Number of incomplete runs with results at the places `chosen`: a limit ended these runs early.
pub fn not_complete(sweep: &Sweep, record: &SweepRecord, chosen: &[usize]) -> usize {
    let keys = chosen.iter().map(|&at| sweep.runs[at].key.to_string());
    let keys: BTreeSet<String> = keys.collect();
    let ended = record.runs.iter().filter(|run| {
        !matches!(run.status, SweepStatus::Complete | SweepStatus::Failed)
            && keys.contains(&run.key)
    });
    ended.count()
}

fn failure_of(run: &PlannedRun, reason: &str) -> SweepFailure {
    // The first line of the recorded reason names the run for readers of the file.
    let reason = reason.split_once('\n').map_or(reason, |(_, rest)| rest);
    SweepFailure {
        key: run.key.to_string(),
        place: run.place.clone(),
        seed: run.seed,
        reason: reason.into(),
    }
}

/// Texts of the files of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// `sweep.json`.
    pub json: String,
    /// `report.html`.
    pub page: String,
}

/// Writes the files of a sweep beside its runs, and gives back their texts.
///
/// # Errors
/// If a file cannot be written.
pub fn publish(store: &Store, record: &SweepRecord) -> Result<Published, StoreError> {
    let mut table = Vec::new();
    clearway_report::sweep::write_sweep(&mut table, record).map_err(|error| StoreError::Table {
        reason: error.to_string(),
    })?;
    store.write(clearway_report::sweep::TABLE_NAME, &table)?;
    let json = record.to_json();
    store.write(clearway_report::sweep::FILE_NAME, json.as_bytes())?;
    let page = clearway_report_html::render_sweep(record);
    store.write(clearway_report_html::SWEEP_FILE_NAME, page.as_bytes())?;
    Ok(Published { json, page })
}
