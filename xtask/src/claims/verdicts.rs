//! `crates/laboratory/reproduce/results/verdicts.txt`: verdicts of each figure at each scale, which `clearway reproduce` lists.

use super::record::{Figure, Verdict};
use super::records::{FigureId, Records, results};
use std::path::{Path, PathBuf};

/// Place of the list.
pub(super) fn path(root: &Path) -> PathBuf {
    results(root).join("verdicts.txt")
}

/// The list: `PAPER/FIGURE SCALE PASSED MISSED UNSURE current|stale`, a line for each record.
pub(super) fn text(records: &Records) -> String {
    let small = records.small.iter().map(|record| ("small", record));
    let full = records.full.iter().map(|record| ("full", record));
    let mut lines: Vec<(&FigureId, String)> = small
        .chain(full)
        .map(|(scale, (id, figure))| (id, line(scale, figure, records.is_stale(id, figure))))
        .collect();
    lines.sort_by_key(|(id, _)| *id);
    lines.into_iter().map(|(_, line)| line).collect()
}

fn line(scale: &str, figure: &Figure, is_stale: bool) -> String {
    let [passed, missed, unsure] = [Verdict::Pass, Verdict::Miss, Verdict::Unsure].map(|verdict| {
        let claims = figure.claims.iter();
        claims.filter(|claim| claim.verdict == verdict).count()
    });
    let state = if is_stale { "stale" } else { "current" };
    format!("{} {scale} {passed} {missed} {unsure} {state}\n", figure.id)
}
