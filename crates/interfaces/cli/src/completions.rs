//! `clearway completions`.

use crate::arguments::Arguments;
use crate::explain::names;
use crate::failure::Failure;
use crate::output::print;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clearway_lab::Laboratory;
use clearway_reproduce::figure_ids;
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the completion script for `shell`: commands, options and names.
pub(crate) fn completions(laboratory: &Laboratory, shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(laboratory), program(), &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Name under which the program was called: a program with added parts has a name other than `clearway`.
fn program() -> String {
    let called = env::args_os().next().map(PathBuf::from);
    let stem = called.as_deref().and_then(|path| path.file_stem());
    stem.map_or_else(
        || "clearway".into(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

/// Command line with the possible names of arguments. It is only for completion: commands report wrong names themselves.
fn command(laboratory: &Laboratory) -> Command {
    let (groups, names) = names(laboratory);
    let figures = figure_ids().map(str::to_owned).collect();
    [
        ("list", "group", groups),
        ("explain", "name", names),
        ("reproduce", "figures", figures),
    ]
    .into_iter()
    .fold(Arguments::command(), |command, (name, argument, values)| {
        command.mut_subcommand(name, |command| {
            command.mut_arg(argument, |argument| argument.value_parser(one_of(values)))
        })
    })
}

fn one_of(mut values: Vec<String>) -> PossibleValuesParser {
    values.sort();
    values.dedup();
    // Leaked, because the parser needs names with a static lifetime and the process ends soon.
    let values = values.into_iter().map(|value| &*value.leak());
    PossibleValuesParser::new(values)
}
