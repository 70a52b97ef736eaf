//! Arguments of `clearway perf`.

use crate::hosts::ConnectionArguments;
use crate::print_arguments::PrintArguments;
use clap::{Args, ValueHint};
use clearway_units::{Bytes, Span};

#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  clearway perf --loopback
  clearway perf --listen --key both.key            # on one host; makes the key, to be copied
  clearway perf 192.0.2.1 --key both.key           # on the other",
    group(clap::ArgGroup::new("end").required(true).args(["host", "loopback", "listen"]))
)]
pub(crate) struct PerfArguments {
    /// Host where `clearway perf --listen` runs, with a port if it is not 4794
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: Option<String>,
    /// Run both ends on this host, with a new key
    #[arg(long)]
    pub(crate) loopback: bool,
    /// Answer measurements of other hosts, at this address or at all addresses
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1)]
    pub(crate) listen: Option<Option<String>>,
    /// Time for which messages are sent
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = read_time)]
    pub(crate) time: Span,
    /// Size of a message, at most 32 MB
    #[arg(long, value_name = "SIZE", default_value = "1MB", value_parser = read_message)]
    pub(crate) message: usize,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

fn read_time(text: &str) -> Result<Span, String> {
    let time: Option<Span> = text.parse().ok();
    let fits = time.filter(|time| (Span::from_ms(10)..=Span::from_ms(3_600_000)).contains(time));
    fits.ok_or_else(|| "expected a time from `10ms` to `3600s`".to_owned())
}

fn read_message(text: &str) -> Result<usize, String> {
    let size: Option<Bytes> = text.parse().ok();
    let fits = size.filter(|size| (1..=32_000_000).contains(&size.as_u64()));
    let fits = fits.map(|size| size.as_u64() as usize);
    fits.ok_or_else(|| "expected a size from `1B` to `32MB`".to_owned())
}
