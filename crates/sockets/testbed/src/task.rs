//! Orders to the process of a host, and its replies: lines of JSON.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Task of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostTask {
    /// Number of the host.
    pub host: u32,
    /// Address at which it listens.
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
    /// Messages that it sends or awaits beside flows.
    pub soak: Option<Soak>,
    /// Flows that it sends.
    pub flows: Vec<FlowTask>,
    /// Time between two samples at first.
    pub sample_us: u64,
    /// Time after the start when everything is given up.
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
    /// Time at which it is ready, after the start.
    pub start_us: f64,
}

/// Word to a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostCommand {
    /// The task; the host listens.
    Task(Box<HostTask>),
    /// All hosts listen: connect.
    Connect,
    /// All hosts are connected: time zero is so many nanoseconds after 1970.
    Start {
        /// By the clock that all hosts of one machine share.
        unix_ns: u64,
    },
    /// All flows are over: tell what has come.
    Report,
    /// Forget all connections, as a process does that is started anew, and listen again.
    Restart,
    /// Everything is over.
    End,
}

/// Word of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostReply {
    /// It listens.
    Listening,
    /// It is connected; base round trips of its connections.
    Connected {
        /// Least of each handshake's samples.
        round_trips_us: Vec<f64>,
    },
    /// Its flows are over.
    Sent {
        /// One for each.
        flows: Vec<SentFlow>,
    },
    /// Messages that have come, and their cost.
    Report(HostReport),
    /// So many messages of a soak are known to have arrived.
    Arrived {
        /// Of all.
        messages: u64,
        /// Times that the connection was made anew.
        reconnected: u32,
    },
    /// Report of a soak.
    Soaked(SoakReport),
    /// It has failed.
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
    /// Time at which the message was handed to the connection.
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
    /// Reason why it did not finish.
    pub error: Option<String>,
}

/// Counters of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCount {
    /// Data packets and probes sent.
    pub sent: u64,
    /// Acknowledgements with a mark.
    pub marked: u64,
    /// Times that it was taken for dead.
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
    /// Messages that came.
    pub received: Vec<ReceivedFlow>,
    /// Processor time of the process from the start on.
    pub cpu_seconds: f64,
    /// Time from the start to this report.
    pub wall_seconds: f64,
}

/// A message that came.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReceivedFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Time at which it was complete.
    pub at_us: f64,
    /// Bytes of the message.
    pub bytes: u64,
    /// Its content is what was sent.
    pub intact: bool,
}

/// Report of a soak.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakReport {
    /// Different messages that came.
    pub received: u64,
    /// Bytes of all that came.
    pub received_bytes: u64,
    /// Messages that came again in one life of the receiver.
    pub twice: u64,
    /// Messages that came in both lives: those that the sender did not know to have arrived.
    pub in_both_lives: u64,
    /// Messages with other bytes than were sent.
    pub corrupt: u64,
    /// The most memory that the process held.
    pub peak_memory_bytes: u64,
}
