//! Records of beds that are up, so that another process can remove them, even after a crash.

use crate::fault::Fault;
use crate::name::BedName;
use crate::plan::Switches;
use crate::process::Process;
use clearway_input::InputKind;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folder of the records of root.
const OF_ROOT: &str = "/run/clearway";

/// A bed that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BedState {
    /// Scenario of the bed, as the user names it.
    pub scenario: String,
    /// Digest of the plan of the bed.
    pub plan: u64,
    /// Switches that forward.
    pub switches: Switches,
    /// All steps of the plan are done.
    #[serde(default)]
    pub complete: bool,
    /// Process of the switches in user space, if it outlives the command.
    #[serde(default)]
    pub switch: Option<Process>,
    /// Processes of the current run or of the last run.
    #[serde(default)]
    pub children: Vec<Process>,
    /// Namespaces.
    pub namespaces: Vec<String>,
}

impl BedState {
    /// All processes that were started for the bed.
    pub(crate) fn processes(&self) -> Vec<Process> {
        self.children.iter().copied().chain(self.switch).collect()
    }

    /// True while switches in user space outlive the command.
    pub(crate) fn has_switch(&self) -> bool {
        self.switch.is_some_and(Process::is_running)
    }
}

/// Folder of the records: for root independent of the environment, so that `sudo` finds the records of a root login.
fn folder() -> PathBuf {
    folder_of(geteuid().is_root(), env::var_os("XDG_RUNTIME_DIR"))
}

fn folder_of(is_root: bool, runtime: Option<OsString>) -> PathBuf {
    let runtime = runtime.map(PathBuf::from).filter(|_| !is_root);
    match runtime {
        Some(folder) if folder.is_dir() => folder.join("clearway"),
        _ => PathBuf::from(OF_ROOT),
    }
}

/// File of a bed's record; other files of the bed differ in their ending.
pub(crate) fn file(name: &BedName, ending: &str) -> PathBuf {
    folder().join(format!("testbed-{name}.{ending}"))
}

/// The record of a bed; `None` if there is none.
pub(crate) fn read(name: &BedName) -> Result<Option<BedState>, Fault> {
    let path = file(name, "json");
    let text = match clearway_input::read_text(&path, InputKind::SCENARIO) {
        Ok(text) => text,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(fault(&path, "read", &error.to_string())),
    };
    // An unreadable record must not prevent the removal of a bed: names identify its parts.
    Ok(serde_json::from_str(&text).ok())
}

/// Writes the record of a bed atomically.
pub(crate) fn write(name: &BedName, state: &BedState) -> Result<(), Fault> {
    let text = serde_json::to_string_pretty(state).unwrap_or_default();
    write_text(&file(name, "json"), &text)
}

/// Writes a file of a bed atomically.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Fault> {
    let failed = |error: io::Error| fault(path, "write", &error.to_string());
    fs::create_dir_all(folder()).map_err(failed)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, text).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

/// Changes the record of a bed.
///
/// # Errors
/// If the record no longer exists, or cannot be written.
pub(crate) fn update(name: &BedName, change: impl FnOnce(&mut BedState)) -> Result<(), Fault> {
    let Some(mut state) = read(name)? else {
        return Err(Fault::new(
            format!("the test bed `{name}` has been taken away meanwhile"),
            "run the command again",
        ));
    };
    change(&mut state);
    write(name, &state)
}

/// Records a process of a run right after its start, so that `down` can end it whatever happens to this process.
pub(crate) fn record_child(name: &BedName, pid: u32) -> Result<(), Fault> {
    update(name, |state| state.children.extend(Process::from_pid(pid)))
}

/// Removes the record of a bed, with all files that differ only in their ending.
pub(crate) fn forget(name: &BedName) {
    forget_in(&folder(), name);
}

fn forget_in(folder: &Path, name: &BedName) {
    let beginning = format!("testbed-{name}.");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name();
        if file.to_string_lossy().starts_with(&beginning) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn fault(path: &Path, what: &str, error: &str) -> Fault {
    Fault::new(
        format!("cannot {what} {}: {error}", path.display()),
        "run as root; in a user namespace of your own, mount a tmpfs on /run first",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_root_does_not_matter() {
        let runtime = env::temp_dir();
        let of_user = runtime.join("clearway");
        let folder = |is_root| folder_of(is_root, Some(runtime.clone().into()));
        assert_eq!(folder(true), Path::new("/run/clearway"));
        assert_eq!(folder(false), of_user);
        assert_eq!(folder_of(false, None), Path::new("/run/clearway"));
    }

    #[test]
    fn all_files_of_a_bed_go_and_no_others() {
        let folder = clearway_testing::Folder::new("state");
        let files = ["b.json", "b.toml", "b.log", "b.77.tmp", "b2.json", "bb.log"];
        for file in files {
            fs::write(folder.join(format!("testbed-{file}")), "").unwrap();
        }
        forget_in(&folder, &BedName::new("b").unwrap());
        let left = |file: &&str| folder.join(format!("testbed-{file}")).exists();
        let left: Vec<&str> = files.into_iter().filter(left).collect();
        assert_eq!(left, ["b2.json", "bb.log"]);
    }

    #[test]
    fn records_of_earlier_versions_count_as_half_made() {
        let text = r#"{"scenario": "x", "plan": 1, "switches": "kernel", "switch_pid": null, "namespaces": []}"#;
        let state: BedState = serde_json::from_str(text).unwrap();
        assert!(!state.complete && state.processes().is_empty());
    }
}
