//! `clearway carry-out`: a process that carries out runs of a sweep in sequence.

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;
use crate::output::print;
use clap::Parser as _;
use clearway_lab::Laboratory;
use clearway_runs::{forget_peak_rss, set_arguments};
use clearway_sweep::RunAnswer;
use std::ffi::OsString;
use std::io::BufRead as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};

/// Carries out each run whose name arrives on standard input, in the protocol of [`clearway_sweep::WORKER_COMMAND`]. The process ends at
/// the end of the input, even in the middle of a run, because no process waits for the results any more. `dispatch` runs a command.
pub(crate) fn work(
    laboratory: &Laboratory,
    folder: &Path,
    dispatch: fn(&Laboratory, Command) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    for name in names() {
        // Earlier runs of this process must not count for the peak memory of this run.
        forget_peak_rss();
        let arguments = arguments(folder, &name);
        set_arguments(arguments.clone());
        let all = [OsString::from("clearway")].into_iter().chain(arguments);
        let parsed = Arguments::try_parse_from(all)
            .map_err(|error| Failure::new(format!("a run without arguments: {error}")))?;
        let answer = match dispatch(laboratory, parsed.command) {
            Ok(code) if code == ExitCode::SUCCESS => answer(0, String::new()),
            // A limit of the scenario ended the run.
            Ok(code) if code == ExitCode::from(1) => answer(1, String::new()),
            // The run was interrupted, so this process ends.
            Ok(code) => return Ok(code),
            Err(failure) => answer(2, failure.errors()),
        };
        print(&answer)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(code: u8, errors: String) -> String {
    let answer = serde_json::to_string(&RunAnswer { code, errors });
    // A plug-in may have printed a line without a line break.
    format!("\n{}\n", answer.expect("a number and a text"))
}

/// Arguments of the run with this name.
fn arguments(folder: &Path, name: &str) -> Vec<OsString> {
    let words = ["run", "--quiet", "--no-report", "--threads", "1", "--out"];
    let mut arguments: Vec<OsString> = words.into_iter().map(Into::into).collect();
    arguments.push(folder.join(name).into());
    arguments.push(folder.join(format!("{name}.toml")).into());
    arguments
}

/// The lines of standard input, as they arrive. Ends the process at the end of the input.
fn names() -> Receiver<String> {
    let (sender, names) = channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines();
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
        std::process::exit(130);
    });
    names
}
