//! Holders: hidden folders beside a result folder, in which its files are written.
//!
//! ```text
//! .clearway-OWNER-NUMBER/new/              the files of the result
//! .clearway-OWNER-NUMBER/former-N/NAME/    the former result NAME, while the new one is put in its place
//! .clearway-OWNER-NUMBER/kept-N/NAME/      the same after both moves failed: the new result in place, and the former one back
//! ```
//! A killed process leaves its holder behind. The next process that creates a holder in the same folder [clears](clear) it away.

use super::FolderError;
use super::replaceable::check_replaceable;
use crate::owner::Owner;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const PREFIX: &str = ".clearway-";
/// The folder of the new result in a holder.
const STAGING: &str = "new";
/// Prefix of folders with a former result.
const FORMER: &str = "former-";
/// Prefix of folders of former results after the user was told that the former result is kept there.
const KEPT: &str = "kept-";

/// The folder in `holder` in which a result is made.
pub(super) fn staging(holder: &Path) -> PathBuf {
    holder.join(STAGING)
}

/// The folder in `holder` that receives the result at the target during an attempt to replace it.
pub(super) fn former(holder: &Path, attempt: u32) -> PathBuf {
    holder.join(format!("{FORMER}{attempt}"))
}

/// Protects the former result at `former` from later runs; returns its new path.
pub(super) fn keep(former: &Path) -> PathBuf {
    let renamed = former.parent().and_then(|folder| {
        let number = folder.file_name()?.to_str()?.strip_prefix(FORMER)?;
        let kept = folder.with_file_name(format!("{KEPT}{number}"));
        fs::rename(folder, &kept).ok()?;
        Some(kept.join(former.file_name()?))
    });
    renamed.unwrap_or_else(|| former.to_owned())
}

/// Creates a holder in `parent` that certainly belongs to this process, and a staging folder in it.
pub(super) fn create(parent: &Path) -> Result<PathBuf, FolderError> {
    let owner = Owner::this();
    for number in 0u32.. {
        let holder = parent.join(format!("{PREFIX}{owner}-{number}"));
        match fs::create_dir(&holder) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(FolderError::io("create the folder", &holder)(error)),
        }
        clear(parent, &holder);
        let staging = staging(&holder);
        if let Err(error) = fs::create_dir(&staging) {
            // A failure cannot be reported any more.
            let _ = fs::remove_dir(&holder);
            return Err(FolderError::io("create the folder", &staging)(error));
        }
        return Ok(holder);
    }
    unreachable!("no folder holds 2^32 others")
}

/// Deletes holders in `parent` that killed processes left behind; this process has just made `own` there.
///
/// A holder that cannot be deleted stays: the run that found it is not concerned.
fn clear(parent: &Path, own: &Path) {
    let (Ok(entries), Ok(fresh)) = (fs::read_dir(parent), fs::metadata(own)) else {
        return;
    };
    for entry in entries.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        let owner = name.to_str().and_then(owner_of).filter(|_| is_folder);
        if owner.is_some_and(|owner| owner.has_abandoned(&entry, &fresh))
            && finish(&entry.path(), parent)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The owner of the holder `name`, if it is one.
fn owner_of(name: &str) -> Option<Owner> {
    let (owner, number) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    number.parse::<u32>().ok()?;
    Owner::read(owner)
}

/// Completes the work that a killed owner of `holder` left: it had moved a former result aside and not yet moved the new result, which is
/// complete by then, in its place. True if nothing in the holder is needed any more.
fn finish(holder: &Path, parent: &Path) -> bool {
    let Ok(entries) = fs::read_dir(holder) else {
        return false;
    };
    for entry in entries
        .flatten()
        .filter(|entry| entry.file_name() != STAGING)
    {
        let name = entry.file_name();
        let is_former = name.to_str().is_some_and(|name| name.starts_with(FORMER));
        let formers = fs::read_dir(entry.path()).ok().filter(|_| is_former);
        let Some(formers) = formers else {
            return false;
        };
        for former in formers.flatten() {
            if !finish_replacing(holder, &former.path(), &parent.join(former.file_name())) {
                return false;
            }
        }
    }
    true
}

/// Puts the result of `holder`, or else the `former` one, at `target` if nothing is there; true if `former` is not needed any more.
fn finish_replacing(holder: &Path, former: &Path, target: &Path) -> bool {
    // A folder that the owner did not inspect may not be a result.
    if check_replaceable(former, former).is_err() {
        return fs::symlink_metadata(target).is_err() && fs::rename(former, target).is_ok();
    }
    if fs::symlink_metadata(target).is_err() {
        let _ = fs::rename(staging(holder), target).or_else(|_| fs::rename(former, target));
    }
    // Another process that found the holder may have done so.
    fs::symlink_metadata(target).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::run;
    use crate::summary::Summary;
    use clearway_testing::Folder;

    /// The name of a holder whose process has ended; `None` where that cannot be known.
    fn abandoned() -> Option<String> {
        let this = Owner::this().to_string();
        let (process, start) = this.rsplit_once('-').unwrap();
        let later = start.parse::<u64>().unwrap() + 1;
        let known = cfg!(target_os = "linux");
        known.then(|| format!("{PREFIX}{process}-{later}-0"))
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn holders_of_killed_processes_are_cleared_away() {
        let test = Folder::new("report-holder-killed");
        let Some(name) = abandoned() else {
            eprintln!("SKIPPED: without /proc nobody knows which processes have ended");
            return;
        };
        write(test.path().join(&name).join("new/series.parquet"), "x");
        let alive = create(test.path()).unwrap();
        assert!(!test.path().join(&name).exists());
        let second = create(test.path()).unwrap();
        assert!(alive.exists() && second.exists() && alive != second);
    }

    #[test]
    fn what_is_not_a_holder_is_left_alone() {
        let test = Folder::new("report-holder-other");
        let mut names = vec![
            ".clearway-12-0".to_owned(),
            ".clearway-notes".into(),
            "new".into(),
        ];
        if let Some(name) = abandoned() {
            names.push(format!("{name}.bak"));
            names.push(name.trim_start_matches('.').into());
            // A holder is a folder.
            fs::write(test.path().join(&name), "").unwrap();
        }
        for name in &names {
            write(test.path().join(name).join("x"), "");
        }
        create(test.path()).unwrap();
        for name in &names {
            assert!(test.path().join(name).join("x").exists(), "{name}");
        }
        if let Some(name) = abandoned() {
            assert!(test.path().join(name).is_file());
        }
    }

    #[test]
    fn a_result_that_was_being_put_in_place_is_there_afterwards() {
        let Some(name) = abandoned() else {
            eprintln!("SKIPPED: without /proc nobody knows which processes have ended");
            return;
        };
        for (new, there, expected) in [
            // Killed between the two moves.
            (true, false, "new"),
            // Killed after the second move: the new result is in place.
            (false, true, "there"),
            // Killed after the first move, and the new result was removed since.
            (false, false, "former"),
            // Another process has put a result there since.
            (true, true, "there"),
        ] {
            let test = Folder::new("report-holder-between");
            let holder = test.path().join(&name);
            write(holder.join("former-0/result/x"), "former");
            let summary = Summary::from_record(&run()).to_json();
            write(holder.join("former-0/result/summary.json"), &summary);
            if new {
                write(holder.join("new/x"), "new");
            }
            if there {
                write(test.path().join("result/x"), "there");
            }
            create(test.path()).unwrap();
            let text = fs::read_to_string(test.path().join("result/x")).unwrap();
            assert_eq!((text.as_str(), holder.exists()), (expected, false));
        }
    }

    #[test]
    fn what_was_moved_aside_and_is_no_result_goes_back_or_stays() {
        let Some(name) = abandoned() else {
            eprintln!("SKIPPED: without /proc nobody knows which processes have ended");
            return;
        };
        for there in [false, true] {
            let test = Folder::new("report-holder-foreign");
            let holder = test.path().join(&name);
            write(holder.join("former-0/result/notes"), "mine");
            write(holder.join("new/x"), "new");
            if there {
                write(test.path().join("result/x"), "there");
            }
            create(test.path()).unwrap();
            let place = match there {
                true => holder.join("former-0/result/notes"),
                false => test.path().join("result/notes"),
            };
            assert_eq!(fs::read_to_string(place).unwrap(), "mine");
            assert_eq!(holder.exists(), there);
        }
    }

    #[test]
    fn what_the_user_was_told_is_kept_is_kept() {
        let Some(name) = abandoned() else {
            eprintln!("SKIPPED: without /proc nobody knows which processes have ended");
            return;
        };
        let test = Folder::new("report-holder-kept");
        let holder = test.path().join(&name);
        let former = former(&holder, 3).join("result");
        write(former.join("x"), "former");
        let kept = keep(&former);
        create(test.path()).unwrap();
        assert_eq!(fs::read_to_string(kept.join("x")).unwrap(), "former");
    }
}
