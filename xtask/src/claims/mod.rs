//! `cargo xtask claims`: records of the claims of papers, and checks that they still hold.
//!
//! | file in `crates/laboratory/reproduce/results/` | contents |
//! |---|---|
//! | `small.jsonl` | verdicts at small scale with ten seeds and more, a line for each figure |
//! | `*.full.jsonl` | outcomes at full scale, as `clearway reproduce` writes them |
//! | `misses.txt` | cause of each miss: `PAPER/FIGURE CLAIM: sentence` |
//! | `null.txt` | reason for each claim that passes though an axis has no effect: `PAPER/FIGURE CLAIM AXIS: sentence` |
//! | `verdicts.txt` | how many claims of each figure pass at each scale; generated |
//! | `checked.txt` | hash of the sources with which each figure was last checked at small scale |
//! | `null-subjects.txt` | reason for each claim that passes with a null subject: `PAPER/FIGURE CLAIM SUBJECT: sentence` |
//! | `headlines.txt` | the best-known claims of each paper, in order of importance: `PAPER/FIGURE CLAIM` |
//!
//! `docs/src/figures.md` presents the records for people, and `docs/src/what-reproduces.md` the headlines; both are generated.

mod due;
mod headlines;
mod notes;
mod page;
mod record;
mod records;
#[cfg(test)]
mod tests;
mod verdicts;

use crate::Faults;
use record::{Claim, Figure, Verdict};
use records::{FigureId, Records, null_outcomes, outcomes, results};
use std::fs;
use std::path::{Path, PathBuf};

/// Usage.
const USAGE: &str = "usage: cargo xtask claims OPTION, with DIR the folder of `clearway reproduce --all`
  --record DIR  take the verdicts of DIR, of ten seeds and more, into crates/laboratory/reproduce/results/small.jsonl;
                figures that are not there stay
  --check DIR   compare the verdicts of DIR, of any number of seeds, with the records; causes, reasons and the page must be complete
  --checked DIR as --check; if no figure is missing in DIR, writes which sources were checked: .ci/run --all
  --due         list the figures whose sources have changed since, and a third of the others: .ci/run
  --null        list the claims that pass though an axis that they compare runs along has no effect
  --null DIR    list the claims that pass with null subjects, of `clearway reproduce --null`, small scale; each must have a reason
  --page        write docs/src/figures.md, docs/src/what-reproduces.md and crates/laboratory/reproduce/results/verdicts.txt";

/// Minimum number of seeds of a record.
const FEWEST_SEEDS: usize = 10;

/// Runs the command with `options`.
pub(crate) fn run(root: &Path, options: &[&str]) -> Faults {
    let done = match options {
        ["--record", dir] => take(root, Path::new(dir)),
        ["--check", dir] => check(root, Path::new(dir)),
        ["--checked", dir] => checked(root, Path::new(dir)),
        ["--due"] => list_due(root),
        ["--null"] => null(root),
        ["--null", dir] => null_subjects(root, Path::new(dir)),
        ["--page"] => write_page(root),
        _ => return vec![USAGE.into()],
    };
    done.unwrap_or_else(|fault| vec![fault])
}

/// Adds the outcomes of a folder to the record at small scale.
fn take(root: &Path, dir: &Path) -> Result<Faults, String> {
    let mut records = Records::read(root)?;
    for (id, figure) in outcomes(dir, ".small.jsonl")? {
        if figure.seeds < FEWEST_SEEDS {
            let (id, seeds) = (&figure.id, figure.seeds);
            return Err(format!(
                "{id} has {seeds} seeds; a record has {FEWEST_SEEDS}: --seeds {FEWEST_SEEDS}"
            ));
        }
        records.small.insert(id, figure);
    }
    let lines = records
        .small
        .values()
        .map(|figure| figure.to_record() + "\n");
    let path = results(root).join("small.jsonl");
    fs::write(&path, lines.collect::<String>()).map_err(|error| error.to_string())?;
    println!("{} figures in {}", records.small.len(), path.display());
    Ok(Faults::new())
}

/// Compares the outcomes of a folder with the records, and the records with the notes and the page.
fn check(root: &Path, dir: &Path) -> Result<Faults, String> {
    let records = Records::read(root)?;
    let mut faults = Faults::new();
    let mut stale = Vec::new();
    for (id, outcome) in outcomes(dir, ".small.jsonl")? {
        let Some(record) = records.small.get(&id) else {
            faults.push(format!("{}: not recorded at small scale", outcome.id));
            continue;
        };
        if outcome.fingerprint != record.fingerprint {
            stale.push(outcome.id.clone());
        }
        faults.extend(contradictions(record, &outcome));
    }
    if !stale.is_empty() {
        println!(
            "the program does other things in these figures than when they were recorded: {}",
            stale.join(", ")
        );
    }
    faults.extend(missing_notes(&records));
    let headlines = headlines::list(root)?;
    faults.extend(headlines::unknown(&records, &headlines));
    let readme = notes::read(&root.join("README.md"))?;
    for summary in [
        headlines::summary(&records, &headlines),
        page::summary(&records),
    ] {
        if !readme.contains(&summary) {
            faults.push(format!("README.md: not as recorded: write \"{summary}\""));
        }
    }
    for (path, text) in generated(root, &records)? {
        if notes::read(&path)? != text {
            faults.push(format!(
                "{} is not what the records say: cargo xtask claims --page",
                path.display()
            ));
        }
    }
    Ok(faults)
}

/// Compares the outcomes of all figures with the records, and records this check.
fn checked(root: &Path, dir: &Path) -> Result<Faults, String> {
    let mut faults = check(root, dir)?;
    let outcomes = outcomes(dir, ".small.jsonl")?;
    let records = Records::read(root)?;
    let missing = records.small.keys().filter(|id| !outcomes.contains_key(id));
    faults.extend(missing.map(|id| format!("{}: not in {}", id.text, dir.display())));
    if faults.is_empty() {
        due::write(root)?;
    }
    Ok(faults)
}

/// Lists the figures that a gate runs.
fn list_due(root: &Path) -> Result<Faults, String> {
    due::due(root)?
        .iter()
        .for_each(|figure| println!("{figure}"));
    Ok(Faults::new())
}

/// Claims that now pass, or are missed, although the record says the opposite; both results exceed the spread over seeds.
fn contradictions(record: &Figure, outcome: &Figure) -> Faults {
    let compare = |claim: &Claim| {
        let (id, name) = (&outcome.id, &claim.id);
        let Some(recorded) = record.claims.iter().find(|recorded| recorded.id == *name) else {
            return Some(format!("{id} {name}: not recorded at small scale"));
        };
        match (recorded.verdict, claim.verdict) {
            (Verdict::Pass, Verdict::Miss) => Some(format!(
                "{id} {name}: missed, but it passed with {} seeds",
                record.seeds
            )),
            (Verdict::Miss, Verdict::Pass) => Some(format!(
                "{id} {name}: passed, but it was missed with {} seeds",
                record.seeds
            )),
            _ => None,
        }
    };
    outcome.claims.iter().filter_map(compare).collect()
}

/// Misses without a cause, passes without an effect and without a reason, and notes that belong to neither.
fn missing_notes(records: &Records) -> Faults {
    let (mut missed, mut unneeded) = (Vec::new(), Vec::new());
    for figure in records.all() {
        for claim in &figure.claims {
            if claim.verdict == Verdict::Miss {
                missed.push(format!("{} {}", figure.id, claim.id));
            }
            let axes = claim.passes_without.iter();
            unneeded.extend(axes.map(|axis| format!("{} {} {axis}", figure.id, claim.id)));
        }
    }
    let mut faults = records.causes.compare(
        &missed,
        |_| true,
        "a miss without a cause",
        "no miss any more",
    );
    faults.extend(records.reasons.compare(
        &unneeded,
        |_| true,
        "passes without that effect, and no reason is given",
        "fails without that effect now",
    ));
    faults
}

/// Lists the claims that pass though an axis has no effect, with the reasons.
fn null(root: &Path) -> Result<Faults, String> {
    let records = Records::read(root)?;
    let mut faults = Faults::new();
    for figure in records.small.values() {
        for claim in &figure.claims {
            for axis in &claim.passes_without {
                let name = format!("{} {} {axis}", figure.id, claim.id);
                match records.reasons.get(&name) {
                    Some(reason) => println!("{name}: {reason}"),
                    None => faults.push(format!(
                        "{name}: passes without that effect, and no reason is given ({})",
                        claim.expect
                    )),
                }
            }
        }
    }
    Ok(faults)
}

/// Lists the claims that pass with the null subjects of a folder, with the reasons.
fn null_subjects(root: &Path, dir: &Path) -> Result<Faults, String> {
    let records = Records::read(root)?;
    let figures = null_outcomes(dir)?;
    let passing = null_passes(&records, &figures);
    for name in &passing {
        let reason = records.subjects.get(name);
        println!("{name}: {}", reason.unwrap_or("NO REASON"));
    }
    let judged: usize = figures.iter().map(|(_, figure)| figure.claims.len()).sum();
    let count = passing.len();
    println!("{count} of {judged} claims pass with a null subject");
    Ok(null_faults(&records, &figures, &passing))
}

/// Claims that pass with null subjects, as `PAPER/FIGURE CLAIM SUBJECT`, if they measure something and are not missed.
fn null_passes(records: &Records, figures: &[(String, Figure)]) -> Vec<String> {
    let mut passing = Vec::new();
    for (subject, figure) in figures {
        let record = records.small.get(&FigureId::from(figure.id.as_str()));
        let counts = |id: &str| {
            let mut claims = record.into_iter().flat_map(|record| &record.claims);
            claims.any(|claim| {
                let measures = !claim.passes_without.iter().any(|axis| axis == "settings");
                claim.id == id && claim.verdict != Verdict::Miss && measures
            })
        };
        let claims = figure.claims.iter();
        let passed = claims.filter(|claim| claim.verdict == Verdict::Pass && counts(&claim.id));
        passing.extend(passed.map(|claim| format!("{} {} {subject}", figure.id, claim.id)));
    }
    passing
}

/// Passes without a reason, and reasons for claims that no longer pass in a figure that was run.
fn null_faults(records: &Records, figures: &[(String, Figure)], passing: &[String]) -> Faults {
    let was_run = |name: &str| {
        let mut run = figures.iter();
        run.any(|(subject, figure)| {
            name.starts_with(&format!("{} ", figure.id)) && name.ends_with(&format!(" {subject}"))
        })
    };
    records.subjects.compare(
        passing,
        was_run,
        "passes with that null subject, and no reason is given",
        "does not pass with that null subject now",
    )
}

fn write_page(root: &Path) -> Result<Faults, String> {
    for (path, text) in generated(root, &Records::read(root)?)? {
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(Faults::new())
}

/// Files generated from the records: paths and texts.
fn generated(root: &Path, records: &Records) -> Result<[(PathBuf, String); 3], String> {
    let headlines = headlines::list(root)?;
    Ok([
        (page::path(root), page::text(records)),
        (headlines::path(root), headlines::text(records, &headlines)),
        (verdicts::path(root), verdicts::text(records)),
    ])
}
