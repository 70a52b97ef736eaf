//! All records and notes of the workspace.

use super::notes::{Notes, read};
use super::record::{Claim, Figure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Records and notes of the workspace.
pub(super) struct Records {
    pub(super) small: BTreeMap<FigureId, Figure>,
    pub(super) full: BTreeMap<FigureId, Figure>,
    pub(super) causes: Notes,
    pub(super) reasons: Notes,
    pub(super) subjects: Notes,
}

/// Name of a figure, in the order of its paper: `fig9` before `fig10`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FigureId {
    pub(super) paper: String,
    kind: String,
    number: Vec<u32>,
    pub(super) text: String,
}

impl From<&str> for FigureId {
    fn from(text: &str) -> Self {
        let (paper, figure) = text.split_once('/').unwrap_or(("", text));
        let digits = figure.find(|c: char| c.is_ascii_digit());
        let (kind, number) = figure.split_at(digits.unwrap_or(figure.len()));
        Self {
            paper: paper.into(),
            kind: kind.into(),
            number: number
                .split('.')
                .filter_map(|part| part.parse().ok())
                .collect(),
            text: text.into(),
        }
    }
}

pub(super) fn results(root: &Path) -> PathBuf {
    root.join("crates/laboratory/reproduce/results")
}

impl Records {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let results = results(root);
        let small = read(&results.join("small.jsonl"))?;
        let small = small.lines().map(Figure::from_record);
        let small: Vec<Figure> = small.collect::<Result<_, _>>()?;
        let small = by_id(small);
        let mut full = outcomes(&results, ".full.jsonl")?;
        for (id, figure) in &mut full {
            // Drop claims that an older record has but the figure no longer has.
            if let Some(small) = small.get(id) {
                let known = |claim: &Claim| small.claims.iter().any(|known| known.id == claim.id);
                figure.claims.retain(known);
            }
        }
        Ok(Self {
            small,
            full,
            causes: Notes::read(&results.join("misses.txt"), 2)?,
            reasons: Notes::read(&results.join("null.txt"), 3)?,
            subjects: Notes::read(&results.join("null-subjects.txt"), 3)?,
        })
    }

    /// True if the program's behaviour in figure `id` has changed since `record` was made.
    pub(super) fn is_stale(&self, id: &FigureId, record: &Figure) -> bool {
        let current = self
            .small
            .get(id)
            .and_then(|small| small.fingerprint.as_ref());
        current.is_none() || current != record.fingerprint.as_ref()
    }

    /// All records, small ones first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Figure> {
        self.small.values().chain(self.full.values())
    }
}

pub(super) fn by_id(figures: Vec<Figure>) -> BTreeMap<FigureId, Figure> {
    let of = |figure: Figure| (FigureId::from(figure.id.as_str()), figure);
    figures.into_iter().map(of).collect()
}

/// Outcomes in a folder: files of `clearway reproduce` whose names end with `ending`, without null subjects.
pub(super) fn outcomes(dir: &Path, ending: &str) -> Result<BTreeMap<FigureId, Figure>, String> {
    let figures = read_outcomes(dir, ending)?.into_iter();
    Ok(by_id(
        figures.filter(|figure| figure.null.is_none()).collect(),
    ))
}

/// Outcomes with null subjects in a folder, with the names of the subjects, in order.
pub(super) fn null_outcomes(dir: &Path) -> Result<Vec<(String, Figure)>, String> {
    let figures = read_outcomes(dir, ".jsonl")?.into_iter();
    let mut figures: Vec<(String, Figure)> = figures
        .filter_map(|figure| Some((figure.null.clone()?, figure)))
        .collect();
    let key = |(subject, figure): &(String, Figure)| {
        (subject.clone(), FigureId::from(figure.id.as_str()))
    };
    figures.sort_by_key(key);
    match figures.is_empty() {
        true => Err(format!("{}: no outcome with a null subject", dir.display())),
        false => Ok(figures),
    }
}

fn read_outcomes(dir: &Path, ending: &str) -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.to_string_lossy().ends_with(ending) {
            let figure = Figure::from_outcome(&read(&path)?);
            figures.push(figure.map_err(|fault| format!("{}: {fault}", path.display()))?);
        }
    }
    Ok(figures)
}
