//! Arguments of all commands that print a result.

use clap::Args;

/// Form of the output on the terminal.
#[derive(Debug, Args)]
pub(crate) struct PrintArguments {
    /// Print the result as JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
