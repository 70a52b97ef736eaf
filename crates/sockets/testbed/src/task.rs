//! Commands to the process of a host, and its replies: lines of JSON.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Task of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostTask {
    /// Number of the host.
    pub host: u32,
    /// Address at which the host listens.
    pub listen: SocketAddr,
    /// Key of all connections, as hexadecimal digits.
    pub key: String,
    /// Go-back-N on one path with DCQCN instead of STrack.
    pub go_back_n: bool,
    /// Switches mark congestion.
    pub ecn: bool,
    /// Paths of a connection.
    pub paths: u8,
    /// Rate of the host's link.
    pub line_rate_bps: u64,
    /// Longest datagram.
    pub datagram_bytes: u16,
    /// Memory for messages of a connection.
    pub memory_bytes: u64,
    /// Messages that the host sends or awaits beside flows.
    pub soak: Option<Soak>,
    /// Flows that the host sends.
    pub flows: Vec<FlowTask>,
    /// Initial time between two samples.
    pub sample_us: u64,
    /// Time after the start at which the host gives up.
    pub deadline_us: u64,
}

/// Many messages of mixed sizes from one host to another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Soak {
    /// Number of messages, which are tagged from 0 on.
    pub messages: u64,
    /// Seed of sizes and contents.
    pub seed: u64,
    /// Receiver; none at the receiver itself.
    pub to: Option<SocketAddr>,
}

/// A flow that a host sends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FlowTask {
    /// Number of the flow.
    pub flow: u32,
    /// Address of the receiver.
    pub to: SocketAddr,
    /// Bytes of the message.
    pub bytes: u64,
    /// Time after the start at which the flow is ready.
    pub start_us: f64,
}

/// Command to a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostCommand {
    /// The task; the host listens.
    Task(Box<HostTask>),
    /// All hosts listen: connect.
    Connect,
    /// All hosts are connected: start at the given time.
    Start {
        /// Time zero in nanoseconds since 1970, by the clock that all hosts of one machine share.
        unix_ns: u64,
    },
    /// All flows are over: report the received messages.
    Report,
    /// Drop all connections, like a restarted process, and listen again.
    Restart,
    /// Everything is over.
    End,
}

/// Reply of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostReply {
    /// The host listens.
    Listening,
    /// The host is connected; base round trips of its connections.
    Connected {
        /// Least of each handshake's samples.
        round_trips_us: Vec<f64>,
    },
    /// The flows of the host are over.
    Sent {
        /// Outcome of each flow.
        flows: Vec<SentFlow>,
    },
    /// Received messages, and their cost.
    Report(HostReport),
    /// Progress of a soak: messages known to have arrived.
    Arrived {
        /// Messages that have arrived.
        messages: u64,
        /// Number of reconnections.
        reconnected: u32,
    },
    /// Report of a soak.
    Soaked(SoakReport),
    /// The host has failed.
    Failed {
        /// Reason.
        what: String,
    },
}

/// A flow as its sender saw it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SentFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Time at which the connection got the message.
    pub started_us: f64,
    /// Time at which everything was acknowledged.
    pub finished_us: Option<f64>,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Of these, retransmissions.
    pub retransmitted: u64,
    /// Acknowledgements that echoed a mark.
    pub marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets, marks and deaths of each path.
    pub paths: Vec<PathCount>,
    /// Samples.
    pub samples: Vec<FlowSample>,
    /// Reason why the flow did not finish.
    pub error: Option<String>,
}

/// Counters of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCount {
    /// Data packets and probes sent.
    pub sent: u64,
    /// Acknowledgements with a mark.
    pub marked: u64,
    /// Number of times that the path went down.
    pub downs: u64,
}

/// A flow at an instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSample {
    /// Time after the start.
    pub at_us: f64,
    /// The congestion window.
    pub window_bytes: u64,
    /// Payload that the receiver has acknowledged.
    pub acknowledged_bytes: u64,
    /// Data packets sent on each path so far.
    pub path_packets: Vec<u64>,
}

/// Messages that a host has received, and their cost.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HostReport {
    /// Received messages.
    pub received: Vec<ReceivedFlow>,
    /// Processor time of the process since the start.
    pub cpu_seconds: f64,
    /// Time from the start to this report.
    pub wall_seconds: f64,
}

/// A received message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReceivedFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Time at which the message was complete.
    pub at_us: f64,
    /// Bytes of the message.
    pub bytes: u64,
    /// The content equals the sent content.
    pub intact: bool,
}

/// Report of a soak.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakReport {
    /// Distinct received messages.
    pub received: u64,
    /// Bytes of all received messages.
    pub received_bytes: u64,
    /// Duplicates within one life of the receiver.
    pub twice: u64,
    /// Messages received in both lives: the sender did not know that they had arrived.
    pub in_both_lives: u64,
    /// Messages whose bytes differ from the sent bytes.
    pub corrupt: u64,
    /// Peak memory of the process.
    pub peak_memory_bytes: u64,
}
