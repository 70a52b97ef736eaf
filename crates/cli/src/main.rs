//! The command line: arguments, progress, files, exit codes.
//!
//! Exit codes: 0 done; 1 a claim failed, flows are not done or jobs are not compatible; 2 the user's input is wrong; 3 our own invariant
//! broke; 130 interrupted.

mod arguments;
mod capture_file;
mod compare;
mod explain;
mod failure;
mod flow_rows;
mod happenings;
mod live;
mod measure;
mod output;
mod plan;
mod progress;
mod record;
mod report_page;
mod reproduce;
mod run;
mod series_file;
mod text_file;
mod threads;
mod timeline_file;
mod topology;
mod watch;
mod whole_file;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A defect of ours must not look like the user's mistake.
    let result = std::panic::catch_unwind(|| dispatch(arguments.command));
    match result {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.report(),
        Err(_) => {
            eprintln!(
                "clearway: this is a defect of clearway; please report the message above with the scenario"
            );
            ExitCode::from(3)
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::List { group } => explain::list(group.as_deref()),
        Command::Explain { name } => explain::explain(&name),
        Command::Topology(arguments) => topology::topology(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Plan(arguments) => plan::plan(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
    }
}
