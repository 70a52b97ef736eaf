//! Trace files of a job: `<prefix>.<rank>.et`, with ranks written only as `0`, `1`, `2`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Trace files with this prefix, by rank.
///
/// # Errors
/// If the folder cannot be read.
pub fn rank_files(prefix: &Path) -> io::Result<BTreeMap<u32, PathBuf>> {
    let Some(stem) = prefix.file_name() else {
        return Ok(BTreeMap::new());
    };
    let folder = match prefix.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let rest = name.as_encoded_bytes();
        let rest = rest.strip_prefix(stem.as_encoded_bytes());
        let rest = rest.and_then(|rest| std::str::from_utf8(rest).ok());
        if let Some(rank) = rest.and_then(|rest| rank_of(rest.strip_prefix('.')?)) {
            let path = prefix.with_file_name(&name);
            if path.is_file() {
                files.insert(rank, path);
            }
        }
    }
    Ok(files)
}

/// Prefix of a rank's trace: the path without `.<rank>.et`, if it has that form.
pub fn prefix_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (stem, rank) = name.strip_suffix(".et")?.rsplit_once('.')?;
    rank_of(&format!("{rank}.et"))?;
    Some(path.with_file_name(stem))
}

/// Rank at the end of a file's name, `7.et`. Each rank has only one spelling, so no two files have the same rank.
fn rank_of(end: &str) -> Option<u32> {
    let text = end.strip_suffix(".et")?;
    let rank = text.parse::<u32>().ok()?;
    (rank.to_string() == text).then_some(rank)
}
