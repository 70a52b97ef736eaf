//! htsim's fabrics (`.topo`): leaf-spine and three-tier fat trees.
//!
//! ```text
//! Nodes 1024
//! Tiers 2
//! Podsize 1024
//!
//! Tier 0                      # leaves
//! Downlink_speed_Gbps 100     # of the links below
//! Radix_Down 32
//! Radix_Up 32
//! Downlink_Latency_ns 1000
//!
//! Tier 1                      # spines
//! Downlink_speed_Gbps 100
//! Radix_Down 32
//! Downlink_Latency_ns 1000
//! ```
//!
//! Host `h` is attached to leaf `h / Radix_Down` and belongs to pod `h / Podsize`. Every leaf of a pod has `Bundle` links to every
//! aggregation switch of that pod (with two tiers: every leaf to every spine). The aggregation switch at position `p` of its pod has
//! `Bundle` links to each of the cores `p`, `p + A`, `p + 2A`, …. `A` is the number of aggregation switches in a pod.
//!
//! The reader accepts runs of blanks and tabs, comments at the end of lines and four kinds of fabric that htsim rejects:
//! * links of different speeds above and below a switch. htsim compares `Oversubscribed` with the ratio of *port counts*, and then again
//!   with the ratio of *bandwidths*, so it rejects some fabrics: a leaf with 16 × 200G down and 8 × 400G up is not oversubscribed, but
//!   passes neither as 1 nor as 2. Here the ports and the speeds decide. `Oversubscribed` must equal either ratio (rounded down), and the
//!   reader warns unless it equals both exactly;
//! * switches of any radix (htsim: below 128 ports, above an aggregation switch below 64);
//! * speeds with decimals, `12.5`, if they are whole numbers of bit/s (htsim: whole Gb/s);
//! * two tiers without `Podsize`, and tiers without `Oversubscribed` that are oversubscribed, each with a warning.
//!
//! The reader enforces all other conditions of htsim, and its errors name a correct value. It reads `Queue_Up` and `Queue_Down`, although
//! `htsim_uec` overwrites them.

mod consistency;
mod fabric;
mod reader;

#[cfg(test)]
mod tests;

pub use reader::parse_topo;

use clearway_units::{Bytes, Rate, Span};
use clearway_workload::FileWarning;

/// One tier of switches, with the links below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierSpec {
    /// Speed of each link below, in both directions.
    pub downlink_speed: Rate,
    /// Ports below.
    pub radix_down: u32,
    /// Ports above; `None` for the top tier.
    pub radix_up: Option<u32>,
    /// Propagation delay of the links below, above zero.
    pub downlink_latency: Span,
    /// Time that a packet takes through the switch; zero if not given.
    pub switch_latency: Span,
    /// Ratio of the bandwidth below to the bandwidth above, as in the file, else rounded down from the ports. Only for information: ports
    /// and speeds decide.
    pub oversubscribed: u32,
    /// Parallel links to each switch below; 1 for leaves.
    pub bundle: u32,
    /// Buffer of each port above, if given.
    pub queue_up: Option<Bytes>,
    /// Buffer of each port below, if given.
    pub queue_down: Option<Bytes>,
}

/// Content of a `.topo` file. Its numbers are consistent: every derived count is a whole number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopoFile {
    /// Hosts.
    pub nodes: u32,
    /// Hosts of a pod; all hosts with two tiers.
    pub podsize: u32,
    /// Two or three tiers, leaves first.
    pub tiers: Vec<TierSpec>,
    /// Warnings about entries that can run but are probably mistakes.
    pub warnings: Vec<FileWarning>,
}

impl TopoFile {
    /// Pods; 1 with two tiers.
    pub fn pods(&self) -> u32 {
        self.nodes / self.podsize
    }
    /// Leaves in all.
    pub fn leaves(&self) -> u32 {
        self.nodes / self.tiers[0].radix_down
    }
    /// Leaves of a pod.
    pub fn leaves_per_pod(&self) -> u32 {
        self.podsize / self.tiers[0].radix_down
    }
    /// Switches of tier 1 in a pod; with two tiers all the spines.
    pub fn aggregations_per_pod(&self) -> u32 {
        self.tiers[0].radix_up.unwrap_or(0) / self.tiers[1].bundle
    }
    /// Switches of tier 1 in all.
    pub fn aggregations(&self) -> u32 {
        self.pods() * self.aggregations_per_pod()
    }
    /// Core switches; none with two tiers.
    pub fn cores(&self) -> u32 {
        match self.tiers.as_slice() {
            [_, aggregation, core] => {
                self.aggregations_per_pod() * (aggregation.radix_up.unwrap_or(0) / core.bundle)
            }
            _ => 0,
        }
    }
}
