//! One end of a transfer: a process of its own that prints what it has measured.

use clap::{Args, ValueEnum};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Bytes that are handed over with one call: a message, or a write to a stream.
pub(crate) const CHUNK: usize = 1 << 20;

/// A protocol that this program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// QUIC.
    Quinn,
    /// STrack over UDP.
    Strack,
    /// Go-back-N with DCQCN over UDP.
    Rocev2,
}

/// Arguments of both ends.
#[derive(Debug, Clone, Args)]
pub(crate) struct EndArguments {
    /// Protocol of the transfer.
    #[arg(long)]
    pub(crate) protocol: Protocol,
    /// Streams of quinn that are written at the same time.
    #[arg(long, default_value_t = 1)]
    pub(crate) streams: usize,
    /// Neither encrypt nor authenticate.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Paths of STrack.
    #[arg(long, default_value_t = 8)]
    pub(crate) paths: u8,
    /// Rate of the line in Gb/s: the most that go-back-N sends, which paces by a rate, and part of the largest window of STrack. The
    /// default is above what TCP carries on these networks.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=1600))]
    pub(crate) line_rate: u64,
    /// Address to listen at, or of the receiver.
    #[arg(long)]
    pub(crate) address: SocketAddr,
    /// Time for which data is handed over.
    #[arg(long, default_value_t = 2.0)]
    pub(crate) seconds: f64,
    /// Certificate of quinn's receiver, in hexadecimal digits.
    #[arg(long, default_value = "")]
    pub(crate) certificate: String,
}

impl EndArguments {
    /// Time for which data is handed over.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// Place where a receiver waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    /// Certificate of quinn's receiver, in hexadecimal digits.
    #[serde(default)]
    pub(crate) certificate: String,
}

/// Measurements of one end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct EndReport {
    /// Bytes of the application that the other end has confirmed, or that have come.
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    /// Packets that were sent again; of Clearway's senders.
    #[serde(default)]
    pub(crate) retransmitted: u64,
    /// Data packets that were sent; of Clearway's senders.
    #[serde(default)]
    pub(crate) data_packets: u64,
    /// Acknowledgements that have come; of Clearway's senders.
    #[serde(default)]
    pub(crate) acknowledgements: u64,
}

/// Wall time and processor time of this process.
pub(crate) struct Meter {
    began: Instant,
    cpu: f64,
}

impl Meter {
    #[expect(
        clippy::disallowed_methods,
        reason = "real time is what is measured here"
    )]
    pub(crate) fn start() -> Self {
        Self {
            began: Instant::now(),
            cpu: cpu_seconds(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn report(&self, bytes: u64) -> EndReport {
        EndReport {
            bytes,
            seconds: self.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - self.cpu,
            retransmitted: 0,
            data_packets: 0,
            acknowledgements: 0,
        }
    }
}

/// Processor time of this process so far, of user and kernel.
fn cpu_seconds() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return f64::NAN;
    };
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6)
        .sum()
}
