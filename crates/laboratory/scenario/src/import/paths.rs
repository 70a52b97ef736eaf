//! Paths in a scenario that lies in another folder than the current one.

use std::path::{Component, Path, PathBuf};

/// The path by which a scenario in `folder` finds `file`, which is relative to the current folder. A scenario looks in its own folder
/// first, so that a path relative to the current folder could name another file.
pub(super) fn from_folder(file: &str, folder: Option<&Path>) -> String {
    let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) else {
        return file.to_owned();
    };
    let path = Path::new(file);
    if path.is_absolute() {
        return file.to_owned();
    }
    let (Some(folder), Some(path)) = (real_folder(folder), real(path)) else {
        let absolute = std::path::absolute(path).ok();
        let absolute = absolute.and_then(|path| path.to_str().map(str::to_owned));
        return absolute.unwrap_or_else(|| file.to_owned());
    };
    let relative = relative(&path, &folder);
    let relative = relative.to_str();
    relative.map_or_else(|| file.to_owned(), str::to_owned)
}

/// The absolute path of `path`, without symbolic links in its folder.
fn real(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(name))
}

/// The absolute path of a folder that may not exist yet, without symbolic links.
fn real_folder(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let rest = folder.strip_prefix(there).ok()?;
    let is_plain = rest
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    is_plain
        .then(|| there.canonicalize().ok())?
        .map(|there| there.join(rest))
}

/// `path` relative to `folder`, both absolute and without symbolic links.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let common = path.components().zip(folder.components());
    let common = common.take_while(|(a, b)| a == b).count();
    let up = folder
        .components()
        .skip(common)
        .map(|_| Component::ParentDir);
    up.chain(path.components().skip(common)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_the_scenario_to_the_file() {
        let relative = |path: &str, folder: &str| {
            let path = relative(Path::new(path), Path::new(folder));
            path.to_str().unwrap().to_owned()
        };
        assert_eq!(relative("/a/b/f.topo", "/a/b"), "f.topo");
        assert_eq!(relative("/a/b/c/f.topo", "/a/b"), "c/f.topo");
        assert_eq!(relative("/a/x/f.topo", "/a/b/c"), "../../x/f.topo");
        assert_eq!(from_folder("x/f.topo", None), "x/f.topo");
        assert_eq!(from_folder("x/f.topo", Some(Path::new(""))), "x/f.topo");
        assert_eq!(from_folder("/x/f.topo", Some(Path::new("y"))), "/x/f.topo");
        assert_eq!(
            from_folder("Cargo.toml", Some(Path::new("src"))),
            "../Cargo.toml"
        );
        assert_eq!(
            from_folder("src/lib.rs", Some(Path::new("new/deep"))),
            "../../src/lib.rs"
        );
        let lost = from_folder("nowhere/f.topo", Some(Path::new("src")));
        assert!(Path::new(&lost).is_absolute() && lost.ends_with("nowhere/f.topo"));
    }
}
