//! Support for the tests of all crates: numbers of cases, and skips of checks whose programs or files are missing.
//!
//! # How many cases
//!
//! Tests that become stronger with more cases run as many as the gate has time for, unless `CLEARWAY_THOROUGH` is 1: see [`cases`].
//!
//! # Skips
//!
//! A check that cannot run prints SKIPPED and passes on a developer's machine. In CI (`CI` is set) the check fails, unless
//! `CLEARWAY_ALLOW_SKIP` contains its name:
//!
//! | name | what is missing |
//! |---|---|
//! | `chromium` | Chromium and chromedriver, which open the pages |
//! | `tshark` | Wireshark's `tshark`, which reads the captures |
//! | `perfetto` | the Python package `perfetto`, which decodes the timelines |
//! | `trace-processor` | `trace_processor_shell`, which loads the timelines as the viewer does |
//! | `inputs` | `../shared/inputs`, files of other simulators that lie beside the repository |
//! | `valgrind` | `valgrind`, which counts instructions |
//! | `namespaces` | root, `ip` and TUN devices, by which the test bed's fabric is tried with real packets |
//! | `advisories` | the advisory database of `cargo deny` |
//! | `compilers` | `cc` and `c++`, which compile the programs that use the C interface |
//! | `web` | the target `wasm32-unknown-unknown` of Rust, for which the playground is built |
//! | `python` | Python 3.10 or later with `venv`, and packages from PyPI, by which the Python package is built and tested |
//!
//! Each skip appends its name to the file in `CLEARWAY_SKIP_LOG`, if the variable is set.

mod cases;
pub mod chapter;
mod folder;

pub use cases::{cases, number};
pub use folder::Folder;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Names of the checks that may be skipped.
pub const NAMES: [&str; 10] = [
    "chromium",
    "tshark",
    "perfetto",
    "trace-processor",
    "inputs",
    "valgrind",
    "namespaces",
    "advisories",
    "compilers",
    "python",
];

/// Skips a part of a test that needs `name`; `why` names the missing item and the skipped check.
///
/// # Panics
/// In CI, unless the skip is allowed by name.
pub fn skip(name: &str, why: &str) {
    if let Err(fault) = try_skip(name, why) {
        panic!("{fault}");
    }
}

/// Folder of input files of other simulators, if it lies beside the repository; otherwise `None`, and a [`skip`].
///
/// # Panics
/// As [`skip`].
pub fn inputs() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../..");
    let inputs = beside.join("shared").join("inputs");
    if !inputs.is_dir() {
        let why = format!("{} is not there, no file was read", inputs.display());
        skip("inputs", &why);
        return None;
    }
    Some(inputs)
}

/// As [`skip`], outside of tests.
///
/// # Errors
/// In CI, unless the skip is allowed by name: the error tells the missing item, and how to allow the skip.
pub fn try_skip(name: &str, why: &str) -> Result<(), String> {
    debug_assert!(NAMES.contains(&name), "{name} is not a known skip");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if !is_allowed(name, &variable("CI"), &variable("CLEARWAY_ALLOW_SKIP")) {
        return Err(format!(
            "{why}; in CI this fails: install it, or add `{name}` to CLEARWAY_ALLOW_SKIP, whose names are parted by commas"
        ));
    }
    let line = format!("SKIPPED ({name}): {why}\n");
    // Not a print macro: a passing test hides its output. One write, so that other tests do not interleave.
    let _ = std::io::stderr().write_all(line.as_bytes());
    note(&variable("CLEARWAY_SKIP_LOG"), &line)
}

fn is_allowed(name: &str, ci: &str, allowed: &str) -> bool {
    let in_ci = !matches!(ci, "" | "0" | "false");
    !in_ci || allowed.split(',').any(|allowed| allowed.trim() == name)
}

fn note(log: &str, line: &str) -> Result<(), String> {
    if log.is_empty() {
        return Ok(());
    }
    let file = OpenOptions::new().append(true).create(true).open(log);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| format!("CLEARWAY_SKIP_LOG: {log}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_fail_in_ci_unless_allowed_by_name() {
        assert!(is_allowed("tshark", "", ""), "on a developer's machine");
        assert!(is_allowed("tshark", "false", "") && is_allowed("tshark", "0", ""));
        for ci in ["1", "true", "yes"] {
            assert!(!is_allowed("tshark", ci, ""));
            assert!(!is_allowed("tshark", ci, "chromium,inputs"));
            assert!(!is_allowed("shark", ci, "tshark"), "no part of a name");
            assert!(is_allowed("tshark", ci, "tshark"));
            assert!(is_allowed("tshark", ci, "chromium, tshark,inputs"));
        }
    }

    #[test]
    fn skips_are_logged() {
        let log = std::env::temp_dir().join(format!("clearway-skips-{}", std::process::id()));
        let path = log.to_str().unwrap();
        for line in ["one\n", "two\n"] {
            note(path, line).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\ntwo\n");
        std::fs::remove_file(&log).unwrap();
        assert_eq!(note("", "nowhere"), Ok(()));
        let fault = note("/no/such/folder/log", "x").unwrap_err();
        assert!(
            fault.contains("CLEARWAY_SKIP_LOG: /no/such/folder/log"),
            "{fault}"
        );
    }
}
