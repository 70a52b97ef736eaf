//! `clearway why` for the folder of a comparison: the time of each variant, by cause.
//!
//! Of each variant, the run with the first common seed is explained, as `clearway why` explains a single run.

use super::request::{FIX, WhyRequest};
use crate::atomic_file::AtomicFile;
use crate::failure::{Failure, with_causes};
use crate::messages::say;
use crate::output::print;
use clearway_report::comparison::{FILE_NAME as DOCUMENT, StoredComparison, VariantOutcome};
use clearway_report::why::{ExplainedVariant, FILE_NAME, WhyComparison, WhyRecord};
use clearway_report_text::why_comparison_text;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// True for the folder of a comparison.
pub(super) fn is_comparison(folder: &Path) -> bool {
    folder.join(DOCUMENT).exists() && !folder.join("summary.json").exists()
}

/// Explains the run of each variant with `explain_run`, then the differences. `explain_run` returns `None` if the user interrupts it.
pub(super) fn explain(
    question: &WhyRequest<'_>,
    explain_run: impl Fn(&WhyRequest<'_>) -> Result<Option<WhyRecord>, Failure>,
) -> Result<ExitCode, Failure> {
    let folder = question.folder;
    let place = folder.display();
    let fault = |what: String, fix: &str| Failure::new(format!("{place}: {what}\n  fix: {fix}"));
    let comparison = StoredComparison::read(folder).map_err(|error| {
        fault(
            with_causes(&error),
            "compare again with `clearway compare … --out` and this folder",
        )
    })?;
    let Some(seed) = comparison.common_seed() else {
        return Err(fault(
            "the variants have no seed in common".into(),
            "name the results of one run",
        ));
    };
    let runs = comparison.variants.iter();
    let runs: Vec<PathBuf> = runs
        .map(|variant| run_folder(folder, variant, seed))
        .collect::<Result<_, _>>()?;
    let document = AtomicFile::create(&folder.join(FILE_NAME), FIX)?;
    let names = comparison.short_names();
    let mut explained = Vec::new();
    let all = comparison.variants.iter().zip(&runs).zip(&names);
    for ((variant, run), name) in all {
        if !question.quiet {
            say(&format!("{name}: {}", run.display()));
        }
        let own = WhyRequest {
            folder: run,
            ..*question
        };
        let Some(why) = explain_run(&own)? else {
            return Ok(ExitCode::from(130));
        };
        let shown = run.display().to_string();
        let one = ExplainedVariant::from_record(&variant.id, &variant.label, name, shown, &why);
        explained.push(one.ok_or_else(|| {
            fault(
                format!("{name} has neither a job nor a flow that is done"),
                "give the runs more time with `stop.at-most`",
            )
        })?);
    }
    let why = WhyComparison::new(seed, explained);
    let shown = match (question.json, question.quiet) {
        (true, _) => print(&why.to_json()),
        (false, true) => Ok(()),
        (false, false) => print(&why_comparison_text(&why)),
    };
    Failure::all([shown, document.publish(&why.to_json())])?;
    Ok(ExitCode::SUCCESS)
}

/// Folder of a variant's run: inside the comparison's folder, which may have been moved, or at the recorded path.
fn run_folder(folder: &Path, variant: &VariantOutcome, seed: u64) -> Result<PathBuf, Failure> {
    let named = variant.run(seed).and_then(|run| run.folder.as_deref());
    let named = named.map(Path::new);
    let name = named.and_then(Path::file_name);
    let within = name.map(|name| folder.join(name));
    let mut known = within.into_iter().chain(named.map(Path::to_owned));
    let found = known.find(|run| run.join("summary.json").exists());
    found.ok_or_else(|| {
        Failure::new(format!(
            "{}: the results of {} with seed {seed} are not there\n  fix: compare again with `--out` and a folder: a comparison in one \
             file keeps no results",
            folder.display(),
            variant.label
        ))
    })
}
