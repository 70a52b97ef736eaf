//! Errors of fabrics.

use clearway_units::Span;
use std::fmt;

/// Reason why a fabric cannot be built or used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyError {
    /// Sizes that do not fit together.
    Impossible {
        /// Sizes that do not fit, in words.
        what: String,
        /// Advice: sizes that would fit.
        fix: String,
    },
    /// A host with no cable, or more than one.
    HostCables {
        /// The host.
        host: u32,
        /// Number of cables of the host that are up.
        cables: usize,
    },
    /// Two switches with hosts have no path between them.
    NotConnected {
        /// Name of a switch.
        from: String,
        /// Name of another.
        to: String,
    },
    /// A cable without delay: rounds of the engine are as long as the shortest.
    NoDelay {
        /// Name of a node.
        from: String,
        /// Name of another.
        to: String,
        /// Delay of the cable.
        delay: Span,
    },
    /// A switch with more ports than a port number can count.
    TooManyPorts {
        /// Name of the switch.
        switch: String,
        /// Number of ports of the switch that are up.
        ports: usize,
    },
    /// A link to fail that is not there.
    NoSuchLink {
        /// As the user named it.
        name: String,
        /// Advice: how links are named, and how many of this name are up.
        fix: String,
    },
}

impl TopologyError {
    /// Description of the error, as a fragment of a sentence.
    pub fn message(&self) -> String {
        match self {
            Self::Impossible { what, .. } => what.clone(),
            Self::HostCables { host, cables } => format!(
                "host {host} has {cables} cables, but each host needs exactly one that is up"
            ),
            Self::NotConnected { from, to } => format!("no path leads from {from} to {to}"),
            Self::NoDelay { from, to, delay } => {
                format!("the cable between {from} and {to} has a delay of {delay}")
            }
            Self::TooManyPorts { switch, ports } => {
                format!("{switch} has {ports} ports that are up")
            }
            Self::NoSuchLink { name, .. } => format!("no link `{name}`"),
        }
    }

    /// Advice on how to fix it.
    pub fn fix(&self) -> &str {
        match self {
            Self::Impossible { fix, .. } | Self::NoSuchLink { fix, .. } => fix,
            Self::HostCables { .. } => "connect it to one switch",
            Self::NotConnected { .. } => {
                "too many links have failed, or the graph has parts that are not connected"
            }
            Self::NoDelay { .. } => "the engine needs at least 1ns",
            Self::TooManyPorts { .. } => "a switch can have at most 65535",
        }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message(), self.fix())
    }
}

impl std::error::Error for TopologyError {}
