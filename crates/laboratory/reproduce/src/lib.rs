//! Reproduction of papers' figures: runs, measures, claims, verdicts.
//!
//! ```text
//! claims/PAPER/FIGURE.toml ──► Figure ── runs × seeds ──► Reproducer ──► RunData
//!                                │ claims                                  │ measures
//!                                └───────────► conditions ◄────────────────┘
//!                                                  │
//!                                             FigureOutcome
//! ```
//! A claim is a statement of a paper with our acceptance rule. Rules are conditions over measures of runs, with one number over all seeds
//! (by default the median). A figure is a file in `claims/` and a line in the list below; a test checks it, and it needs no code.

mod definition;
mod expression;
mod figure;
mod figure_run_data;
mod file;
mod jobs;
mod judge;
mod measure;
mod null;
mod options;
mod outcome;
mod plans;
mod receivers;
mod recorders;
mod run_data;
mod runner;
mod scaleup;
#[cfg(test)]
mod scaleup_tests;
mod schema;
mod sharing;
mod spread;
mod summary;
mod tails;
#[cfg(test)]
mod tests;
mod users;

pub use definition::Scale;
pub use figure::Figure;
pub use file::{Line, RecordHeader};
pub use null::NullSubject;
pub use outcome::{
    BucketCurve, ClaimOutcome, FigureOutcome, FigureRun, Judgement, Tally, Verdict as ClaimVerdict,
};
pub use runner::{FigureRequest, ProgressWatcher, Reproducer};

use clearway_units::nearest;

macro_rules! claim_files {
    ($($id:literal),+ $(,)?) => {
        &[$(($id, include_str!(concat!("../claims/", $id, ".toml")))),+]
    };
}

/// All claim files: id and text.
const CLAIM_FILES: &[(&str, &str)] = claim_files!(
    "snyder/fig2.1",
    "snyder/fig2.2",
    "snyder/fig2.3",
    "snyder/fig3.3",
    "snyder/fig3.4",
    "snyder/fig3.5",
    "snyder/fig3.6",
    "snyder/fig3.9",
    "snyder/fig3.10",
    "snyder/fig3.11",
    "snyder/fig3.12",
    "snyder/table3.2",
    "snyder/fig4.1",
    "snyder/fig4.2",
    "snyder/section4.2",
    "snyder/fig4.3",
    "snyder/fig4.4",
    "snyder/fig4.5",
    "snyder/fig4.6",
    "snyder/fig4.7",
    "snyder/fig4.8",
    "snyder/fig4.9",
    "snyder/fig4.10",
    "snyder/fig5.1",
    "snyder/fig5.2",
    "snyder/fig5.3",
    "snyder/fig5.4",
    "snyder/fig5.5",
    "snyder/fig5.6",
    "snyder/fig5.7",
    "snyder/fig5.8",
    "snyder/fig5.9",
    "snyder/fig5.10",
    "snyder/fig5.11",
    "snyder/table6.1",
    "snyder/fig6.2",
    "snyder/fig6.3",
    "snyder/fig6.10",
    "snyder/fig6.11",
    "snyder/fig6.12",
    "snyder/fig6.13",
    "snyder/fig6.14",
    "snyder/fig6.15",
    "snyder/fig6.16",
    "snyder/fig6.17",
    "snyder/own-scaling",
    "snyder/own-table",
    "snyder/own-groups",
    "snyder/section5.3",
    "snyder/table3.1",
    "snyder/table4.1",
    "mlcc/fig1",
    "mlcc/fig2",
    "mlcc/fig3",
    "mlcc/fig4",
    "mlcc/fig5",
    "mlcc/table1",
    "mlcc/section4",
    "mlcc/section5",
    "strack/fig1",
    "strack/fig2",
    "strack/fig3",
    "strack/fig4",
    "strack/fig8",
    "strack/fig9",
    "strack/fig10",
    "strack/fig11",
    "strack/fig12",
    "strack/fig13",
    "strack/fig14",
    "strack/fig15",
    "strack/fig16",
    "strack/fig17",
    "strack/fig18",
    "strack/fig19",
    "strack/fig20",
    "strack/fig21",
    "strack/fig22",
    "strack/fig23",
    "strack/fig24",
    "strack/fig25",
    "strack/fig26",
    "strack/fig27",
    "strack/fig28",
    "tmdml/fig2",
    "tmdml/table1",
    "tmdml/table2",
    "tmdml/fig5",
    "tmdml/fig6",
    "tmdml/fig7",
    "tmdml/fig8",
    "tmdml/table4",
    "tmdml/table5",
    "tmdml/own-strack",
    "tmdml/own-gain",
    "tmdml/own-jobs",
    "uec/selectors",
    "uec/steady",
    "uec/failure",
);

/// The ids of all figures.
pub fn figure_ids() -> impl Iterator<Item = &'static str> {
    CLAIM_FILES.iter().map(|(id, _)| *id)
}

/// The figure called `id`.
///
/// # Panics
/// If its claim file is faulty, which a test finds.
pub fn figure(id: &str) -> Option<Figure> {
    let (id, text) = CLAIM_FILES.iter().find(|(known, _)| *known == id)?;
    Some(Figure::read(id, text).unwrap_or_else(|error| panic!("{error}")))
}

/// The ids for `name`: one figure, or all figures of a paper.
///
/// # Errors
/// The nearest name, if any.
pub fn named_figures(name: &str) -> Result<Vec<&'static str>, Option<&'static str>> {
    let of_paper = |id: &&str| id.split_once('/').is_some_and(|(paper, _)| paper == name);
    let found: Vec<&str> = figure_ids()
        .filter(|id| *id == name || of_paper(id))
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    // Short forms such as `fig9` and `strack/9` are too far from full names for `nearest`.
    let short = |id: &str| {
        let (paper, figure) = id.split_once('/')?;
        let number = figure.strip_prefix("fig").unwrap_or(figure);
        (name == figure || name == number || name == format!("{paper}/{number}")).then_some(())
    };
    let papers = figure_ids().filter_map(|id| id.split_once('/').map(|(paper, _)| paper));
    let meant = figure_ids().find(|id| short(id).is_some());
    Err(meant.or_else(|| nearest(name, figure_ids().chain(papers))))
}

/// Verdicts of all recorded figures, a line for each figure and scale: `PAPER/FIGURE SCALE PASSED MISSED UNSURE current|stale`.
/// `cargo xtask claims --page` writes them.
const VERDICTS: &str = include_str!("../results/verdicts.txt");

/// Recorded verdicts of a figure at one scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Number of claims that passed.
    pub passed: u32,
    /// Number of claims that were missed.
    pub missed: u32,
    /// Number of claims whose verdict differs between seeds.
    pub unsure: u32,
    /// True if the program's results for this figure have changed since the record.
    pub stale: bool,
}

impl Recorded {
    /// Number of claims with a verdict.
    pub const fn judged(&self) -> u32 {
        self.passed + self.missed + self.unsure
    }
}

/// The recorded verdicts of figure `id` at `scale`; `None` if there is no record.
pub fn recorded(id: &str, scale: Scale) -> Option<Recorded> {
    VERDICTS.lines().find_map(|line| {
        let mut words = line.split(' ');
        if (words.next(), words.next()) != (Some(id), Some(scale.name())) {
            return None;
        }
        Some(Recorded {
            passed: words.next()?.parse().ok()?,
            missed: words.next()?.parse().ok()?,
            unsure: words.next()?.parse().ok()?,
            stale: words.next()? == "stale",
        })
    })
}
