//! `clearway man`.

use crate::arguments::Arguments;
use crate::atomic_file::AtomicFile;
use crate::failure::Failure;
use crate::output::print;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use std::path::Path;
use std::process::ExitCode;

/// Prints the manual page of the program, or writes manual pages of all commands into `folder`.
pub(crate) fn man(folder: Option<&Path>) -> Result<ExitCode, Failure> {
    let Some(folder) = folder else {
        print(&page(&Man::new(command())))?;
        return Ok(ExitCode::SUCCESS);
    };
    let own = command();
    let shown = |command: &&Command| !command.is_hide_set();
    for command in own.get_subcommands().filter(shown).chain([&own]) {
        let man = Man::new(command.clone());
        let path = folder.join(man.get_filename());
        let file = AtomicFile::create(&path, "name a folder in which you may write")?;
        file.publish(&page(&man))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn command() -> Command {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    command
}

/// A page in the format of `man`.
fn page(man: &Man) -> String {
    let mut text = Vec::new();
    man.render(&mut text).expect("memory takes what is written");
    String::from_utf8_lossy(&text).into_owned()
}
