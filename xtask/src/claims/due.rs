//! Figures that a gate runs: figures whose sources have changed since the last check, and a third of the others.
//!
//! `results/checked.txt` has a line for each figure: its name, and a hash of the sources that its runs use. A check of all figures
//! (`.ci/run --all`) rewrites the file. The number of commits selects the third, so that each figure comes up again soon.

use super::notes::read;
use super::records::{FigureId, results};
use crate::output;
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of parts of the figures; one part is always run.
const PARTS: usize = 3;

/// Crates that all runs use, by their folders in `crates/`.
const EVERY_RUN: [&str; 7] = [
    "simulator/engine",
    "laboratory/lab",
    "laboratory/reproduce",
    "laboratory/scenario",
    "foundation/statistics",
    "foundation/units",
    "simulator/workload",
];
/// Additional crates of figures on packet fabrics.
const PACKETS: [&str; 2] = ["simulator/fabric", "simulator/transport"];
/// Additional crates of figures on scale-up fabrics.
const FLITS: [&str; 1] = ["simulator/scaleup"];
/// Additional crates of figures with plans.
const PLANS: [&str; 2] = ["laboratory/plan", "laboratory/planner"];

/// Names of the figures that are due.
///
/// # Errors
/// If sources or the list of checked figures cannot be read.
pub(super) fn due(root: &Path) -> Result<Vec<String>, String> {
    let checked = match results(root).join("checked.txt") {
        path if path.exists() => parse(&read(&path)?),
        _ => BTreeMap::new(),
    };
    let commits = output(
        Command::new("git")
            .args(["rev-list", "--count", "HEAD"])
            .current_dir(root),
    );
    let commits = commits.ok().and_then(|count| count.trim().parse().ok());
    Ok(chosen(&hashes(root)?, &checked, commits.unwrap_or(0)))
}

/// Records that all figures were checked with the current sources.
///
/// # Errors
/// If sources cannot be read or the list cannot be written.
pub(super) fn write(root: &Path) -> Result<(), String> {
    let lines = hashes(root)?;
    let lines = lines
        .iter()
        .map(|(id, hash)| format!("{} {hash}\n", id.text));
    let path = results(root).join("checked.txt");
    fs::write(&path, lines.collect::<String>())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Figures whose hash differs from the checked one, and the figures of the part that the number of commits selects.
fn chosen(
    hashes: &BTreeMap<FigureId, String>,
    checked: &BTreeMap<String, String>,
    commits: usize,
) -> Vec<String> {
    let figures = hashes.iter().enumerate();
    let due = figures.filter(|(place, (id, hash))| {
        checked.get(&id.text) != Some(hash) || place % PARTS == commits % PARTS
    });
    due.map(|(_, (id, _))| id.text.clone()).collect()
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(figure, hash)| (figure.into(), hash.into()))
        .collect()
}

/// Each figure, with the hash of its claims and of the sources that its runs use.
fn hashes(root: &Path) -> Result<BTreeMap<FigureId, String>, String> {
    let mut crates = BTreeMap::new();
    for name in EVERY_RUN
        .into_iter()
        .chain(PACKETS)
        .chain(FLITS)
        .chain(PLANS)
    {
        let mut files = Vec::new();
        sources(&root.join("crates").join(name), &mut files)?;
        files.sort();
        let texts: Result<Vec<String>, String> = files.iter().map(|file| read(file)).collect();
        crates.insert(name, hash(texts?.iter().map(String::as_str)));
    }
    let mut claims = Vec::new();
    files_below(
        &root.join("crates/laboratory/reproduce/claims"),
        &mut claims,
    )?;
    let mut hashes = BTreeMap::new();
    for path in claims {
        let part = |path: Option<&Path>| {
            let stem = path.and_then(Path::file_stem).unwrap_or_default();
            stem.to_string_lossy().into_owned()
        };
        let id = if path.extension().is_some_and(|kind| kind == "toml") {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let figure = name.strip_suffix(".toml").unwrap_or(&name);
            format!("{}/{figure}", part(path.parent()))
        } else {
            continue;
        };
        let text = read(&path)?;
        let own = crates_of(&text).map(|name| crates[name].as_str());
        let own: Vec<&str> = own.chain([text.as_str()]).collect();
        hashes.insert(FigureId::from(id.as_str()), hash(own));
    }
    Ok(hashes)
}

/// Crates that the runs of a figure use, according to the text of its claims.
fn crates_of(text: &str) -> impl Iterator<Item = &'static str> {
    let fabric: &[&str] = match text.contains("injection") {
        true => &FLITS,
        false => &PACKETS,
    };
    let plans: &[&str] = match text.contains("plan") {
        true => &PLANS,
        false => &[],
    };
    let all = EVERY_RUN.iter().chain(fabric).chain(plans);
    all.copied()
}

/// Sources of a crate without its tests: programs, and built-in scenarios.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for name in ["src", "scenarios", "plans"] {
        let below = folder.join(name);
        if below.is_dir() {
            files_below(&below, files)?;
        }
    }
    files.retain(|path| {
        let mut parts = path.components();
        !parts.any(|part| {
            let part = part.as_os_str().to_string_lossy();
            part == "tests" || part.ends_with("tests.rs")
        })
    });
    Ok(())
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        match path.is_dir() {
            true => files_below(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// Hash of texts, good enough to notice changes.
fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = FxHasher::default();
    for text in texts {
        hasher.write(text.as_bytes());
        hasher.write_usize(text.len());
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes_of(pairs: &[(&str, &str)]) -> BTreeMap<FigureId, String> {
        let of = |pair: &(&str, &str)| (FigureId::from(pair.0), pair.1.to_string());
        pairs.iter().map(of).collect()
    }

    #[test]
    fn what_has_changed_is_due_and_a_third_in_turn() {
        let hashes = hashes_of(&[
            ("p/fig1", "a"),
            ("p/fig2", "b"),
            ("p/fig3", "c"),
            ("p/fig10", "d"),
        ]);
        let checked = parse("p/fig1 a\np/fig2 x\np/fig3 c\n");
        assert_eq!(
            chosen(&hashes, &checked, 0),
            ["p/fig1", "p/fig2", "p/fig10"]
        );
        assert_eq!(chosen(&hashes, &checked, 1), ["p/fig2", "p/fig10"]);
        assert_eq!(
            chosen(&hashes, &checked, 5),
            ["p/fig2", "p/fig3", "p/fig10"]
        );
        assert_eq!(chosen(&hashes, &BTreeMap::new(), 1).len(), 4);
    }

    #[test]
    fn sources_are_those_that_runs_go_through() {
        let of = |text| crates_of(text).collect::<Vec<_>>();
        assert!(
            of("[injection]").contains(&"simulator/scaleup")
                && !of("[injection]").contains(&"simulator/fabric")
        );
        assert!(
            of("[transport]").contains(&"simulator/fabric")
                && !of("").contains(&"simulator/scaleup")
        );
        assert!(
            of("[plan]").contains(&"laboratory/planner") && !of("").contains(&"laboratory/planner")
        );
        let mut files = Vec::new();
        sources(
            &crate::root().join("crates/simulator/transport"),
            &mut files,
        )
        .unwrap();
        assert!(files.iter().any(|file| file.ends_with("src/lib.rs")));
        assert!(!files.iter().any(|file| file.ends_with("tests.rs")));
    }

    #[test]
    fn a_change_changes_the_hash() {
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
        assert_eq!(hash(["ab"]), hash(["ab"]));
    }
}
