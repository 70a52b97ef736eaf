//! Checks that an output overwrites no input and no other output, under any name, link or hard link.

use crate::failure::Failure;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// A file that a command reads.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// Name for the file in messages, such as "the scenario" or "`topology.file`".
    pub(crate) what: String,
    pub(crate) path: PathBuf,
}

/// Fails if the file `path`, the output of `option`, is one of `inputs`.
pub(crate) fn refuse_input(option: &str, path: &Path, inputs: &[Input]) -> Result<(), Failure> {
    let overwritten = inputs.iter().find(|input| is_same(&input.path, path));
    overwritten.map_or(Ok(()), |input| {
        Err(Failure::new(format!(
            "{option} {}: this is {} ({}), which would be overwritten\n  fix: choose another name",
            path.display(),
            input.what,
            input.path.display()
        )))
    })
}

/// Fails if one of `inputs` is in the folder `results`, whose files are deleted when new results replace them.
pub(crate) fn refuse_input_in(
    option: &str,
    results: &Path,
    inputs: &[Input],
) -> Result<(), Failure> {
    let inside = |input: &&Input| {
        let full = full(&input.path);
        // Links in the folder also count: their targets may be elsewhere, but the links would be deleted.
        let named = input.path.parent().is_some_and(|folder| {
            let here = folder.as_os_str().is_empty();
            is_same(if here { Path::new(".") } else { folder }, results)
        });
        named || full.parent().is_some_and(|folder| is_same(folder, results))
    };
    inputs.iter().find(inside).map_or(Ok(()), |input| {
        Err(Failure::new(format!(
            "{option} {}: {} ({}) is in this folder, and would be deleted with the former results\n  fix: choose another folder with `--out`",
            results.display(),
            input.what,
            input.path.display()
        )))
    })
}

/// True if both paths name the same file or folder, existing or not.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    full(one) == full(other) || are_hard_links(one, other)
}

#[cfg(unix)]
fn are_hard_links(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    identity(one).is_some_and(|known| identity(other) == Some(known))
}

#[cfg(not(unix))]
fn are_hard_links(_: &Path, _: &Path) -> bool {
    false
}

/// Full name of a file or folder that may not exist yet; links are resolved in the existing part of the path.
fn full(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut rest: Vec<OsString> = Vec::new();
    for ancestor in absolute.ancestors() {
        if let Ok(mut full) = fs::canonicalize(ancestor) {
            for part in rest.into_iter().rev() {
                match part == ".." {
                    true => full.pop(),
                    false => {
                        full.push(part);
                        true
                    }
                };
            }
            return full;
        }
        let part = ancestor.components().next_back();
        rest.extend(part.map(|part| part.as_os_str().to_owned()));
    }
    absolute
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_itself_by_any_name() {
        let folder = clearway_testing::Folder::new("same");
        fs::create_dir_all(folder.join("inner")).unwrap();
        let path = |name: &str| folder.join(name);
        fs::write(path("x"), "").unwrap();
        fs::write(path("y"), "").unwrap();
        for (one, other, same) in [
            ("x", "./x", true),
            ("x", "inner/../x", true),
            ("x", "y", false),
            ("new", "./new", true),
            ("new", "inner/../new", true),
            ("new", "x/../new", true),
            ("none/new", "none/./new", true),
            ("none/new", "none/other/../new", true),
            ("none/new", "new", false),
        ] {
            assert_eq!(is_same(&path(one), &path(other)), same, "{one} {other}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("x"), path("link")).unwrap();
            std::os::unix::fs::symlink(folder.path(), path("loop")).unwrap();
            fs::hard_link(path("x"), path("hard")).unwrap();
            for (one, other) in [("x", "link"), ("hard", "link"), ("loop/new", "new")] {
                assert!(is_same(&path(one), &path(other)), "{one} {other}");
            }
        }
    }
}
