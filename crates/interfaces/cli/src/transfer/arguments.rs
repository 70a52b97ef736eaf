//! Arguments of `clearway send` and `clearway recv`.

use crate::hosts::ConnectionArguments;
use crate::print_arguments::PrintArguments;
use clap::{Args, ValueHint};
use clearway_units::{Bytes, Span};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway recv --key both.key --out incoming       # on the other host; makes the key, to be copied
  clearway send 192.0.2.1 --key both.key data.bin results/

The same command resumes an interrupted transfer.")]
pub(crate) struct SendArguments {
    /// Host where `clearway recv` runs, with a port if it is not 4794
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: String,
    /// Files, and folders with all their contents
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    /// Time for which to retry while the receiver does not answer, such as `600s`; it restarts whenever something has arrived
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = read_time)]
    pub(crate) retry: Duration,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway recv --key both.key --out incoming       # makes the key, to be copied to the other host
  clearway send 192.0.2.1 --key both.key data.bin   # on the other host")]
pub(crate) struct RecvArguments {
    /// Address to listen at, with a port if it is not 4794; all addresses of this host if left out
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::Hostname)]
    pub(crate) listen: Option<String>,
    /// Folder for received files; it is created if missing
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// End after the first sender
    #[arg(long)]
    pub(crate) once: bool,
    /// Replace existing files, each when the new file is complete
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Maximum bytes of files from one sender
    #[arg(long, value_name = "SIZE", default_value = "1TB", value_parser = read_size)]
    pub(crate) limit: u64,
    /// Maximum number of files from one sender
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) files: u64,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

fn read_time(text: &str) -> Result<Duration, String> {
    let span: Option<Span> = text.parse().ok();
    span.map(|span| Duration::from_nanos(span.as_ps() / 1000))
        .ok_or_else(|| "expected a time such as `600s`".to_owned())
}

fn read_size(text: &str) -> Result<u64, String> {
    let size: Option<Bytes> = text.parse().ok();
    size.map(Bytes::as_u64)
        .ok_or_else(|| "expected a size such as `50GB` or `2TB`".to_owned())
}
