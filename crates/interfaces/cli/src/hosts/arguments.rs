//! Arguments that connections between hosts have in common.

use super::line_rate::LineRate;
use clap::{Args, ValueEnum, ValueHint};
use clearway_udp::settings::{JUMBO_DATAGRAM, MOST_PATHS};
use clearway_udp::{Security, ServerName, Settings, Transport};
use clearway_units::Rate;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ConnectionArguments {
    /// File with the key of both ends: 64 hexadecimal digits
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Name of the server, to tell servers with the same key apart. Both ends, the connecting and the listening one, get the same name or
    /// no name; 1 to 255 bytes
    #[arg(long, value_name = "NAME", conflicts_with = "insecure", value_parser = read_server_name)]
    pub(crate) server_name: Option<ServerName>,
    /// Neither encrypt nor authenticate: for measurements in your own networks
    #[arg(long, conflicts_with = "key")]
    pub(crate) insecure: bool,
    /// Number of paths, each with a separate source port
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_PATHS)))]
    pub(crate) paths: u8,
    /// Rate of the slowest link of this host. The largest window is 1.25 round trips at this rate, which does not limit the throughput
    /// where the round trip grows. If left out, the rate of the interface that leads to the other end, or 10 Gb/s if it is unknown
    #[arg(long, value_name = "RATE", value_parser = read_rate)]
    pub(crate) line_rate: Option<Rate>,
    /// Longest datagram, as payload of UDP. Where the interface or the paths carry less, datagrams are shorter
    #[arg(long, value_name = "BYTES", default_value_t = JUMBO_DATAGRAM, value_parser = clap::value_parser!(u16).range(512..=65_000))]
    pub(crate) datagram: u16,
    /// Without ECN, for networks that do not mark congestion: a queueing delay counts as a mark
    #[arg(long)]
    pub(crate) no_ecn: bool,
    /// Transport
    #[arg(long, value_enum, default_value = "strack")]
    pub(crate) transport: TransportArgument,
}

impl ConnectionArguments {
    /// Rate of the link to a peer, if the peer is known.
    pub(crate) fn line_rate(&self, peer: Option<SocketAddr>) -> LineRate {
        LineRate::choose(self.line_rate, peer)
    }

    /// Settings of a connection with this security, over a link of this rate.
    pub(crate) fn settings(&self, security: Security, line_rate: &LineRate) -> Settings {
        Settings {
            server_name: self.server_name.clone(),
            transport: self.transport.into(),
            paths: self.paths,
            line_rate: line_rate.rate,
            datagram: self.datagram,
            ecn: !self.no_ecn,
            ..Settings::new(security)
        }
    }
}

/// A transport between hosts.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TransportArgument {
    /// Selective repeat, adaptive spraying over all paths, STrack's controller
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

fn read_server_name(text: &str) -> Result<ServerName, String> {
    ServerName::new(text).ok_or_else(|| {
        let most = ServerName::LONGEST;
        format!("expected 1 to {most} bytes of text without control characters")
    })
}

fn read_rate(text: &str) -> Result<Rate, String> {
    let rate: Option<Rate> = text.parse().ok();
    let fits = rate.filter(|rate| (1_000_000..=1_600_000_000_000).contains(&rate.as_bps()));
    fits.ok_or_else(|| "expected a rate from `1Mbps` to `1600Gbps`".to_owned())
}
