//! Random scenarios against the program: checks of properties that every run must have.
//!
//! Scenarios are [generated](generate) from the [schema] that `clearway explain` shows, so that a new key is covered as soon as it is
//! declared. [Typical settings](typical_settings) keep runs short and conditions hostile. One scenario in five has a scale-up fabric.
//! Each scenario [runs](run) on one and on two threads, in separate processes, under limits of memory and time. Its results are
//! [checked](check). A scenario that fails is [shrunk](shrink) to a file that `clearway run` replays.
//!
//! Scenarios that failed once are kept in `corpus/` and [run again](corpus) by each gate, in addition to generated ones of a fixed seed.
//!
//! `cargo xtask storm` builds the program and starts this one. The seed alone decides which scenarios are generated.

#![allow(clippy::print_stdout, reason = "a program for developers")]

mod arguments;
mod check;
mod clock;
mod corpus;
mod draft;
mod files;
mod generate;
mod generated;
mod judge;
mod named_parameters;
mod random_choices;
mod report;
mod run;
mod schema;
mod shrink;
mod storm;
mod typical_settings;
mod values;
mod violation;

use arguments::Arguments;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(fault) => {
            eprintln!("{fault}\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    let violations = match &arguments.corpus {
        Some(folder) => corpus::run(&arguments, folder),
        None => storm::run(&arguments),
    };
    match violations {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("storm: {error}");
            ExitCode::from(2)
        }
    }
}
