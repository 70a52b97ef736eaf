//! Record of beds that are up, so that they can be taken away by another process, also after a crash.

use crate::fault::Fault;
use crate::name::BedName;
use crate::plan::Switches;
use clearway_input::InputKind;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// A bed that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Scenario of the bed, as the user calls it.
    pub scenario: String,
    /// Digest of everything that the bed is made by.
    pub plan: u64,
    /// Switches that forward.
    pub switches: Switches,
    /// Process of the switches in user space, if it outlives the command.
    pub switch_pid: Option<u32>,
    /// Namespaces.
    pub namespaces: Vec<String>,
}

/// Folder of the records.
fn folder() -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if Path::new(&folder).is_dir() => Path::new(&folder).join("clearway"),
        _ => PathBuf::from("/run/clearway"),
    }
}

/// File of a bed's record; other files of the bed differ in their ending.
pub(crate) fn file(name: &BedName, ending: &str) -> PathBuf {
    folder().join(format!("testbed-{name}.{ending}"))
}

/// The record of a bed; `None` if there is none.
pub(crate) fn read(name: &BedName) -> Result<Option<State>, Fault> {
    let path = file(name, "json");
    let text = match clearway_input::read_text(&path, InputKind::SCENARIO) {
        Ok(text) => text,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(fault(&path, "read", &error.to_string())),
    };
    // One that cannot be read is no reason to leave a bed standing: names tell what belongs to it.
    Ok(serde_json::from_str(&text).ok())
}

/// Writes the record of a bed, whole or not at all.
pub(crate) fn write(name: &BedName, state: &State) -> Result<(), Fault> {
    let text = serde_json::to_string_pretty(state).unwrap_or_default();
    write_text(&file(name, "json"), &text)
}

/// Writes a file of a bed, whole or not at all.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Fault> {
    let failed = |error: io::Error| fault(path, "write", &error.to_string());
    fs::create_dir_all(folder()).map_err(failed)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, text).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

/// Forgets a bed.
pub(crate) fn forget(name: &BedName) {
    for ending in ["json", "toml"] {
        let _ = fs::remove_file(file(name, ending));
    }
}

fn fault(path: &Path, what: &str, error: &str) -> Fault {
    Fault::new(
        format!("cannot {what} {}: {error}", path.display()),
        "run as root, or set XDG_RUNTIME_DIR to a folder that you may write",
    )
}
