//! Files of PyTorch's traces: one for each rank.
//!
//! The user names a file or a folder:
//!
//! * A file whose name has the rank: after the word `rank`, as in `rank0.json`, `trace_rank_0.json.gz` or `rank-0.17.pt.trace.json`,
//!   else at its end, as in `<prefix>.0.json` or `kineto_0.json`. The files of the other ranks are beside it. Their names differ in the
//!   rank, and where the rank follows the word `rank` also in numbers after it, such as times.
//! * Any other file, which is the only one.
//! * A folder, all of whose profiles and execution traces are read. Their contents or names say their ranks.

use crate::{TraceFormat, head};
use std::io;
use std::path::{Path, PathBuf};

/// File of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PytorchFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Rank in the name of the file, if it is there.
    pub rank: Option<u32>,
}

/// Endings of the names of traces, with the longest first.
const ENDINGS: [&str; 4] = [".pt.trace.json.gz", ".pt.trace.json", ".json.gz", ".json"];

/// The files of a job of which `path` is a file or the folder, in the order of their ranks and names.
///
/// # Errors
/// If the folder cannot be read, or has no traces.
pub fn pytorch_files(path: &Path) -> io::Result<Vec<PytorchFile>> {
    if path.is_dir() {
        let files = in_folder(path, |_| true)?;
        return match files.is_empty() {
            true => Err(io::Error::other(
                "the folder has no traces of PyTorch, whose names end with `.json` or `.json.gz`",
            )),
            false => Ok(files),
        };
    }
    let own = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(Name::new);
    let Some(own) = own else {
        let path = path.to_owned();
        return Ok(vec![PytorchFile { path, rank: None }]);
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let is_alike = |name: &str| Name::new(name).is_some_and(|name| name.is_of_job(&own));
    let mut files = in_folder(folder, is_alike)?;
    for file in &mut files {
        // As the user wrote it, without a leading `./`.
        if let Some(name) = file.path.file_name() {
            file.path = path.with_file_name(name);
        }
    }
    Ok(files)
}

/// Traces of a folder whose names `is_wanted`.
fn in_folder(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<Vec<PytorchFile>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let has_ending = ENDINGS.iter().any(|ending| name.ends_with(ending));
        if !has_ending || !is_wanted(name) || !is_trace(&path) {
            continue;
        }
        let rank = Name::new(name).map(|name| name.rank);
        files.push(PytorchFile { path, rank });
    }
    files.sort_by(|a, b| (a.rank, &a.path).cmp(&(b.rank, &b.path)));
    Ok(files)
}

fn is_trace(path: &Path) -> bool {
    let head = path.is_file().then(|| head(path).ok()).flatten();
    head.and_then(|head| TraceFormat::detect(&head)) == Some(TraceFormat::Pytorch)
}

/// Label of a job: the part of the names of its files before the rank, else the name of their folder.
pub fn job_name(path: &Path) -> String {
    let name = |path: &Path| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| "trace".into())
    };
    if path.is_dir() {
        return name(path);
    }
    let full = name(path);
    let before = match Name::new(&full) {
        Some(parts) => parts.before,
        None => ENDINGS
            .iter()
            .find_map(|ending| full.strip_suffix(ending))
            .unwrap_or(&full),
    };
    let is_filler = |c: char| matches!(c, '.' | '_' | '-' | '=');
    let before = before.trim_end_matches(is_filler);
    let is_word = before.len() >= RANK.len() && before.is_char_boundary(before.len() - RANK.len());
    let before = match is_word && before[before.len() - RANK.len()..].eq_ignore_ascii_case(RANK) {
        true => before[..before.len() - RANK.len()].trim_end_matches(is_filler),
        false => before,
    };
    match (before.is_empty(), path.parent()) {
        (true, Some(folder)) => name(folder),
        _ => before.to_owned(),
    }
}

const RANK: &str = "rank";

/// Name of a file with a rank.
struct Name<'a> {
    before: &'a str,
    rank: u32,
    after: &'a str,
    /// True if the rank follows the word `rank`.
    has_word: bool,
}

impl<'a> Name<'a> {
    /// The parts of `name`; `None` if it has no rank.
    fn new(name: &'a str) -> Option<Self> {
        let ending = ENDINGS.iter().find(|ending| name.ends_with(*ending))?;
        let stem = &name[..name.len() - ending.len()];
        let lower = stem.to_ascii_lowercase();
        for (at, _) in lower.rmatch_indices(RANK) {
            let from = at + RANK.len();
            let skipped = stem[from..].starts_with(['.', '_', '-', '=']);
            if let Some(name) = Self::at(name, from + usize::from(skipped), true) {
                return Some(name);
            }
        }
        let digits = stem.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_apart = digits.is_empty() || digits.ends_with(['.', '_', '-']);
        Self::at(name, digits.len(), false).filter(|_| is_apart)
    }

    /// The parts of `name` with the rank at `from`.
    fn at(name: &'a str, from: usize, has_word: bool) -> Option<Self> {
        let rest = &name[from..];
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        Some(Self {
            before: &name[..from],
            rank: rest[..count].parse().ok()?,
            after: &rest[count..],
            has_word,
        })
    }

    /// True if the name belongs to the same job as `other`.
    fn is_of_job(&self, other: &Name<'_>) -> bool {
        let is_same_end = match self.has_word && other.has_word {
            true => without_digits(self.after).eq(without_digits(other.after)),
            false => self.after == other.after,
        };
        self.before == other.before && is_same_end
    }
}

/// The characters of `text` but digits.
fn without_digits(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|c| !c.is_ascii_digit())
}
