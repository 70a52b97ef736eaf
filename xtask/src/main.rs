//! Chores of the workspace.
//!
//! * `cargo xtask ci`: everything, as `.ci/run --all` does; continuous integration runs `.ci/run`.
//! * `cargo xtask tidy [--update]`: format, sizes of files and functions, arrows between crates, blanks. `--update` lowers the
//!   numbers in `xtask/ratchet.txt` to the current ones; it never raises one.
//! * `cargo xtask bench [--check]`: instructions per packet-hop, into `benchmarks/instructions.md`, and sizes, into
//!   `benchmarks/size.txt`. `--check` writes nothing and fails above the limit, or more than 2 % above the recorded figures.
//! * `cargo xtask claims`: records of the papers' claims, and checks that they still hold; without options it lists its options.
//! * `cargo xtask columns`: `docs/src/columns.md`, from the tables of columns and metrics.
//! * `cargo xtask transports`: `docs/src/transports.md`, all transports on one page of scenarios.
//! * `cargo xtask baselines`: `docs/src/baselines.md`, each preset at three rates, and with half and twice the value of settings.
//! * `cargo xtask fast-forward`: the table of training iterations in `docs/src/fast-forward.md`.
//! * `cargo xtask fast-forward random [N [FIRST]]`: the table of random scenarios there, N of each kind of traffic (250) from number FIRST
//!   on. `target/fast-forward/` has what they took, and the scenarios whose estimate does not hold.
//! * `cargo xtask interface [--check]`: `docs/interfaces`: all public items of the crates that others may use, from the pages of rustdoc.
//! * `cargo xtask web`: the playground and the book, as a folder for any server of static files: `target/site`.
//! * `cargo xtask storm [--minutes N] [--seed S]`: random scenarios against the program, with checks of every run; `--help` lists
//!   all options. Failing scenarios are shrunk into `target/storm/`.

#![allow(clippy::print_stdout, reason = "a program for developers")]

mod baselines;
mod bench;
mod claims;
mod columns;
mod fast_forward;
mod interface;
mod size;
mod storm;
mod tidy;
mod transports;
mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Faults, one per line.
type Faults = Vec<String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    let faults = match words[..] {
        ["ci"] => ci(&root),
        ["tidy"] => tidy::check(&root, tidy::Ratchet::Check),
        ["tidy", "--update"] => tidy::check(&root, tidy::Ratchet::Update),
        ["bench"] => bench::run(&root, bench::Mode::Record),
        ["bench", "--check"] => bench::run(&root, bench::Mode::Check),
        ["claims", ref options @ ..] => claims::run(&root, options),
        ["baselines"] => baselines::write(&root),
        ["fast-forward"] => fast_forward::reference(&root),
        ["fast-forward", "random", ref options @ ..] => fast_forward::random(&root, options),
        ["interface"] => interface::run(&root, interface::Mode::Write),
        ["interface", "--check"] => interface::run(&root, interface::Mode::Check),
        ["columns"] => columns::write(&root),
        ["transports"] => transports::write(&root),
        ["web"] => web::write(&root),
        ["storm", ref options @ ..] => storm::run(&root, options),
        _ => vec![
            "usage: cargo xtask ci | tidy [--update] | bench [--check] | claims OPTION | baselines | columns | fast-forward [random [N [FIRST]]] \
             | interface [--check] | transports | web | storm [--help]"
                .into(),
        ],
    };
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

fn ci(root: &Path) -> Faults {
    match Command::new(root.join(".ci/run")).arg("--all").status() {
        Ok(status) if status.success() => Faults::new(),
        Ok(status) => vec![format!(".ci/run --all: {status}")],
        Err(error) => vec![format!(".ci/run cannot be started: {error}")],
    }
}

/// Standard output of a command, which must succeed.
fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{shown}: {}\n{errors}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{shown}: {error}"))
}
