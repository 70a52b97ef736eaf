//! Comparisons of runs.

use crate::errors::without_lock;
use crate::run::Run;
use clearway_report::{ComparedRun, Comparison, Origin, Variant};
use clearway_report_html::{ComparisonPage, render_comparison};
use clearway_report_text::comparison_table;
use clearway_runs::REVISION;
use pyo3::prelude::*;

/// Compares variants, each given as a label with its runs. Returns `compare.json`, the table of the command line and `compare.html`.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    variants: Vec<(String, Vec<Py<Run>>)>,
    command: String,
    complete: bool,
) -> PyResult<(String, String, String)> {
    without_lock(py, || {
        let variants: Vec<Variant> = variants
            .into_iter()
            .map(|(label, runs)| {
                let runs = runs.iter().map(|run| run.get().0.record.clone());
                Variant {
                    label,
                    runs: runs.map(ComparedRun::from_record).collect(),
                }
            })
            .collect();
        let comparison = Comparison::from_variants(&variants);
        let origin = Origin {
            version: env!("CARGO_PKG_VERSION").into(),
            revision: REVISION.into(),
            command,
            complete,
        };
        let page = render_comparison(&ComparisonPage {
            comparison: &comparison,
            variants: &variants,
            origin: &origin,
        });
        (
            comparison.to_json(&origin),
            comparison_table(&comparison),
            page,
        )
    })
}
