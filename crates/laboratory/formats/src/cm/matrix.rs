//! Content of a connection matrix.

use clearway_units::{Bytes, HostId, Time, choices};
use clearway_workload::{FileWarning, Workload};

choices! {
    /// The unit of the numbers after `start`, which a `.cm` file does not tell.
    ///
    /// htsim's parser says picoseconds, and scripts that write these files follow it, but `htsim_uec` takes the number as
    /// microseconds, and so do the files that come with it.
    pub enum StartUnit {
        /// Microseconds, as `htsim_uec`, its RoCE and EQDS, and Swift read the number.
        Microseconds = "us",
        /// Nanoseconds.
        Nanoseconds = "ns",
        /// Picoseconds, as csg-htsim's NDP and EQDS read the number.
        Picoseconds = "ps",
        /// Seconds.
        Seconds = "s",
    }
}

impl StartUnit {
    /// Power of ten by which the unit exceeds a picosecond.
    pub(super) const fn exponent(self) -> i32 {
        match self {
            Self::Seconds => 12,
            Self::Microseconds => 6,
            Self::Nanoseconds => 3,
            Self::Picoseconds => 0,
        }
    }
}

/// The layer of a switch, counted from the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwitchLayer {
    /// `TOR`: a leaf.
    Leaf,
    /// `AGG`: an aggregation switch.
    Aggregation,
    /// `CORE`: a core switch.
    Core,
}

/// A link that is down from the start, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkFailure {
    /// The layer of the switch below the link.
    pub layer: SwitchLayer,
    /// The number of the switch in its layer.
    pub switch: u32,
    /// Index of the link among the uplinks of the switch.
    pub uplink: u32,
}

/// A connection with messages, each of which starts at a given time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CmConnection {
    /// Id of the connection in the file.
    pub id: u64,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Start and size of each message, by start.
    pub messages: Vec<(Time, Bytes)>,
}

/// Content of a `.cm` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CmFile {
    /// Number of hosts in the file.
    pub nodes: u32,
    /// Flows and triggers of the file, checked for `nodes` hosts.
    pub workload: Workload,
    /// Connections that carry several messages (`msg`), by id.
    pub connections: Vec<CmConnection>,
    /// Failed links of the file; the topology applies them.
    pub failures: Vec<LinkFailure>,
    /// Warnings about entries that can run but are probably mistakes.
    pub warnings: Vec<FileWarning>,
}
