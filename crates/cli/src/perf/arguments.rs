//! Arguments of `clearway perf`.

use clap::{Args, ValueEnum, ValueHint};
use clearway_udp::Transport;
use clearway_udp::settings::MOST_PATHS;
use clearway_units::{Bytes, Rate, Span};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  clearway perf --loopback
  clearway perf --listen --key both.key            # on one host; makes the key, which is to be copied
  clearway perf 192.0.2.1 --key both.key           # on the other",
    group(clap::ArgGroup::new("end").required(true).args(["host", "loopback", "listen"]))
)]
pub(crate) struct PerfArguments {
    /// The host where `clearway perf --listen` runs, with a port if it is not 4794
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: Option<String>,
    /// Run both ends on this host, with a key of their own
    #[arg(long)]
    pub(crate) loopback: bool,
    /// Answer measurements of others, at this address or at all
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "0.0.0.0")]
    pub(crate) listen: Option<String>,
    /// File with the key of both ends: 64 hexadecimal digits
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Neither encrypt nor authenticate: for measurements in networks of your own
    #[arg(long, conflicts_with = "key")]
    pub(crate) insecure: bool,
    /// Time for which messages are sent
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = read_time)]
    pub(crate) time: Span,
    /// Length of a message, at most 32 MB
    #[arg(long, value_name = "SIZE", default_value = "1MB", value_parser = read_message)]
    pub(crate) message: usize,
    /// Paths, each with a source port of its own
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_PATHS)))]
    pub(crate) paths: u8,
    /// Rate of the slowest link of this host
    #[arg(long, value_name = "RATE", default_value = "10Gbps", value_parser = read_rate)]
    pub(crate) line_rate: Rate,
    /// Longest datagram, as payload of UDP; 8952 suits jumbo frames
    #[arg(long, value_name = "BYTES", default_value_t = 1452, value_parser = clap::value_parser!(u16).range(512..=65_000))]
    pub(crate) datagram: u16,
    /// Transport
    #[arg(long, value_enum, default_value = "strack")]
    pub(crate) transport: TransportArgument,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// A transport between hosts.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TransportArgument {
    /// Selective repeat, adaptive spraying over all paths, the controller of STrack
    Strack,
    /// Go-back-N on one path with DCQCN
    Rocev2,
}

impl From<TransportArgument> for Transport {
    fn from(argument: TransportArgument) -> Self {
        match argument {
            TransportArgument::Strack => Self::Strack,
            TransportArgument::Rocev2 => Self::GoBackN,
        }
    }
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

fn read_rate(text: &str) -> Result<Rate, String> {
    let rate: Option<Rate> = text.parse().ok();
    let fits = rate.filter(|rate| (1_000_000..=1_600_000_000_000).contains(&rate.as_bps()));
    fits.ok_or_else(|| "expected a rate from `1Mbps` to `1600Gbps`".to_owned())
}
