//! Sizes that may not grow unnoticed: the program, the build, and the copies of loops for each packet.
//!
//! `benchmarks/size.txt` has a line for each size. `cargo xtask tidy` compares the sizes that need no build, `cargo xtask bench --check`
//! the others. `cargo xtask bench` rewrites all sizes: raising one needs a good reason in review.

use crate::output;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "benchmarks/size.txt";
const HEADER: &str = "\
# Size of the program in bytes, packages in Cargo.lock, programs that cargo test runs, and copies of the loops for each packet or flit in
# all libraries of the program, by symbols. Written by `cargo xtask bench`; `tidy` and `bench --check` fail if one has grown.
";
/// Allowed growth of the program in percent: its paths and the linker differ from machine to machine.
const PROGRAM_TOLERANCE: u64 = 2;
/// Long functions that run for each round, packet or flit, with their names in symbols.
const LOOPS: [&str; 5] = [
    "fabric::simulation::Simulation::run_sampled",
    "engine::run::Shared<D>::work",
    "LossySwitch<T,_>::run_slow_path",
    "fabric::host::Host<T>::run_events",
    "scaleup::domain::SwitchDomain as clearway_engine::run::Domain>::run",
];

/// Sizes by name.
type Sizes = BTreeMap<String, u64>;

/// Program and libraries that cargo has built.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) program: PathBuf,
    pub(crate) libraries: Vec<PathBuf>,
}

impl Built {
    /// Finds the program and the libraries in the messages of `cargo build --message-format=json`.
    ///
    /// # Errors
    /// If there is no program in the messages.
    pub(crate) fn read(messages: &str) -> Result<Self, String> {
        let mut built = Self::default();
        for line in messages.lines() {
            let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else {
                continue;
            };
            if let Some(program) = message["executable"].as_str() {
                built.program = program.into();
            }
            let files = message["filenames"].as_array().into_iter().flatten();
            let files = files.filter_map(|file| file.as_str());
            let own = files.filter(|file| file.contains("libclearway") && file.ends_with(".rlib"));
            built.libraries.extend(own.map(PathBuf::from));
        }
        match built.program.as_os_str().is_empty() {
            true => Err("cargo does not say where it put the program".into()),
            false => Ok(built),
        }
    }
}

/// Sizes that have grown, among the sizes that need no build.
///
/// # Errors
/// If something cannot be read.
pub(crate) fn check_sources(root: &Path) -> Result<Vec<String>, String> {
    grown(root, &of_sources(root)?)
}

/// Sizes that have grown, among the sizes of the build.
///
/// # Errors
/// If something cannot be read.
pub(crate) fn check_built(root: &Path, built: &Built) -> Result<Vec<String>, String> {
    grown(root, &of_built(built)?)
}

/// Writes all current sizes.
///
/// # Errors
/// If something cannot be read or written.
pub(crate) fn record(root: &Path, built: &Built) -> Result<(), String> {
    let mut sizes = of_sources(root)?;
    sizes.extend(of_built(built)?);
    let lines = sizes
        .iter()
        .map(|(name, size)| format!("{size:>9} {name}\n"));
    let text = HEADER.to_string() + &lines.collect::<String>();
    fs::write(root.join(FILE), text).map_err(|error| format!("{FILE}: {error}"))
}

fn of_sources(root: &Path) -> Result<Sizes, String> {
    let lock = fs::read_to_string(root.join("Cargo.lock"));
    let lock = lock.map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata = output(metadata.current_dir(root))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages_of_workspace = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages_of_workspace.flat_map(|package| package["targets"].as_array());
    let programs = targets.flatten().filter(|target| target["test"] == true);
    Ok(Sizes::from([
        ("packages".into(), packages as u64),
        ("test programs".into(), programs.count() as u64),
    ]))
}

fn of_built(built: &Built) -> Result<Sizes, String> {
    let program = fs::metadata(&built.program);
    let program = program.map_err(|error| format!("{}: {error}", built.program.display()))?;
    let mut sizes = Sizes::from([("program".into(), program.len())]);
    let mut nm = Command::new("nm");
    nm.args(["--demangle", "--defined-only", "--format=posix", "--quiet"]);
    match nm.args(&built.libraries).output() {
        Ok(listed) if listed.status.success() => {
            let symbols = String::from_utf8_lossy(&listed.stdout);
            sizes.extend(copies(&symbols));
        }
        _ => clearway_testing::try_skip("nm", "copies of loops are NOT counted: there is no nm")?,
    }
    Ok(sizes)
}

/// Number of copies of each loop among symbols.
fn copies(symbols: &str) -> Sizes {
    let of = |name: &&str| {
        let copies = symbols.lines().filter(|line| {
            let symbol = line.rsplit_once(|c| "tT".contains(c));
            let function = symbol.map_or("", |(function, _)| function.trim_end());
            function.ends_with(*name)
        });
        (format!("copies of {name}"), copies.count() as u64)
    };
    LOOPS.iter().map(of).collect()
}

/// Sizes above the recorded ones.
fn grown(root: &Path, sizes: &Sizes) -> Result<Vec<String>, String> {
    let recorded = fs::read_to_string(root.join(FILE));
    let recorded =
        recorded.map_err(|error| format!("{FILE}: {error}; run `cargo xtask bench` first"))?;
    Ok(above(&parse(&recorded), sizes))
}

fn above(recorded: &Sizes, sizes: &Sizes) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, &size) in sizes {
        let tolerance = if name == "program" {
            PROGRAM_TOLERANCE
        } else {
            0
        };
        match recorded.get(name) {
            None => faults.push(format!("{FILE} has no line for {name}: run `cargo xtask bench`")),
            Some(&recorded) if size * 100 > recorded * (100 + tolerance) => faults.push(format!(
                "{name}: {size}, recorded {recorded} in {FILE}; say in the commit what it is worth, and run `cargo xtask bench`"
            )),
            Some(_) => {}
        }
    }
    faults
}

fn parse(text: &str) -> Sizes {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter_map(|line| line.trim().split_once(' '));
    lines
        .filter_map(|(size, name)| Some((name.to_string(), size.parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_and_libraries_are_found() {
        let messages = "{\"filenames\":[\"/t/libclearway_fabric-1.rlib\",\"/t/libserde-2.rlib\"],\"executable\":null}\n\
                        noise\n\
                        {\"filenames\":[\"/t/clearway\"],\"executable\":\"/t/clearway\"}\n";
        let built = Built::read(messages).unwrap();
        assert_eq!(built.program, Path::new("/t/clearway"));
        assert_eq!(built.libraries, [Path::new("/t/libclearway_fabric-1.rlib")]);
        assert!(Built::read("").is_err());
    }

    #[test]
    fn copies_are_counted_by_their_names() {
        let symbols = "lib.rlib[a.o]:\n\
                       clearway_fabric::host::Host<T>::run_events t 0 12\n\
                       clearway_fabric::host::Host<T>::run_events T 90 12\n\
                       clearway_fabric::host::Host<T>::run_events::{{closure}} t 0 12\n";
        assert_eq!(
            copies(symbols)["copies of fabric::host::Host<T>::run_events"],
            2
        );
    }

    #[test]
    fn what_has_grown_or_is_new_is_a_fault() {
        let recorded = parse("# x\n      100 program\n        7 packages\n");
        let of = |pairs: &[(&str, u64)]| {
            let sizes = pairs.iter().map(|&(name, size)| (name.to_string(), size));
            above(&recorded, &sizes.collect())
        };
        assert!(of(&[("program", 102), ("packages", 7)]).is_empty());
        assert!(of(&[("program", 5), ("packages", 6)]).is_empty());
        assert_eq!(of(&[("program", 103)]).len(), 1);
        assert_eq!(of(&[("packages", 8)]).len(), 1);
        assert_eq!(of(&[("other", 1)]).len(), 1);
    }
}
