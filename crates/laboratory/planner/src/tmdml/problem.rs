//! Links, flows and their remaining bytes: problem (2) of TMDML.

use clearway_units::{Bytes, Rate};
use std::collections::BTreeMap;
use std::fmt;

/// Relative difference below which two sums count as equal, because seven sevenths of a link must not exceed the link.
const ROUNDING: f64 = 1e-9;

clearway_units::choices! {
    /// Demand of a flow on the links of its path. The links with more demand than capacity are its bottlenecks.
    pub enum BottleneckRule {
        /// Rate that the links at both ends would grant: the lesser of the equal shares of its first and its last link. An incast then has
        /// no bottleneck but its receiver, as in TMDML §II. Where all servers send to all, the bottlenecks inside the fabric are the links
        /// that the hash has overloaded.
        NicShare = "nic-share",
        /// Rate of the narrowest link of its path. Among equal links, each link that two flows share is then a bottleneck, and the number
        /// of bottlenecks is not far from that of hops.
        LineRate = "line-rate",
        /// No demand: each flow counts one, and `f` is the time to completion but for the number of flows of its destination.
        Uniform = "uniform",
    }
}

/// A flow of a [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFlow {
    /// The links of the flow, as indices into the links of the problem, in order and each once (`a_il`).
    pub path: Vec<u32>,
    /// The destination server (`Omega(i)`); flows with the same number share a server.
    pub destination: u32,
    /// Bytes of the flow (`M_i(0)`), above zero.
    pub bytes: Bytes,
}

/// Flows on links (TMDML §III.A). Links have one direction.
#[derive(Debug, Clone)]
pub struct Problem {
    capacities: Vec<f64>,
    /// The paths of all flows, one after the other.
    hops: Vec<u32>,
    /// End of the path of each flow in `hops`.
    ends: Vec<usize>,
    /// Destinations, numbered without gaps.
    destinations: Vec<u32>,
    destination_count: usize,
    bytes: Vec<f64>,
}

/// Error in the links or flows of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemError {
    /// The problem has no flows.
    NoFlows,
    /// A flow takes no link.
    EmptyPath {
        /// Index of the flow.
        flow: usize,
    },
    /// A flow takes a link that does not exist.
    UnknownLink {
        /// The flow's index.
        flow: usize,
        /// The link that it names.
        link: u32,
        /// Number of links.
        links: usize,
    },
    /// A flow takes a link twice.
    RepeatedLink {
        /// The flow's index.
        flow: usize,
        /// The link.
        link: u32,
    },
    /// A flow has no bytes.
    NoBytes {
        /// Index of the flow.
        flow: usize,
    },
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoFlows => f.write_str("there are no flows"),
            Self::EmptyPath { flow } => write!(f, "flow {flow} takes no link"),
            Self::UnknownLink { flow, link, links } => write!(
                f,
                "flow {flow} takes link {link}, but there are only {links} links, numbered from zero"
            ),
            Self::RepeatedLink { flow, link } => {
                write!(f, "flow {flow} takes link {link} more than once")
            }
            Self::NoBytes { flow } => write!(f, "flow {flow} has no bytes to carry"),
        }
    }
}

impl std::error::Error for ProblemError {}

impl Problem {
    /// The problem of `flows` on `links`, whose capacities (`C_l`) cannot be zero because a [`Rate`] cannot.
    ///
    /// # Errors
    /// If there are no flows, or a flow has no links, an unknown link, the same link twice, or no bytes.
    pub fn new(links: &[Rate], flows: &[PlannedFlow]) -> Result<Self, ProblemError> {
        if flows.is_empty() {
            return Err(ProblemError::NoFlows);
        }
        let mut hops = Vec::new();
        let mut ends = Vec::with_capacity(flows.len());
        let mut numbers = BTreeMap::new();
        let mut destinations = Vec::with_capacity(flows.len());
        for (index, flow) in flows.iter().enumerate() {
            check_flow(index, flow, links.len())?;
            hops.extend_from_slice(&flow.path);
            ends.push(hops.len());
            let next = numbers.len() as u32;
            destinations.push(*numbers.entry(flow.destination).or_insert(next));
        }
        Ok(Self {
            capacities: links.iter().map(|rate| rate.as_bps() as f64).collect(),
            hops,
            ends,
            destinations,
            destination_count: numbers.len(),
            bytes: flows.iter().map(|flow| flow.bytes.as_f64()).collect(),
        })
    }

    /// Number of flows.
    pub fn flow_count(&self) -> usize {
        self.ends.len()
    }

    /// The capacities of the links in bit/s (`C_l`).
    pub fn capacities(&self) -> &[f64] {
        &self.capacities
    }

    /// Bytes of each flow (`M_i(0)`), as floats because a fluid has fractions of bytes.
    pub fn bytes(&self) -> &[f64] {
        &self.bytes
    }

    /// The links of flow `flow`.
    ///
    /// # Panics
    /// If the flow does not exist.
    pub fn path(&self, flow: usize) -> &[u32] {
        let start = flow.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.hops[start..self.ends[flow]]
    }

    /// The capacity of the narrowest link of `flow` in bit/s, which is its rate without other flows.
    pub(super) fn line_rate(&self, flow: usize) -> f64 {
        let capacities = self.path(flow).iter();
        capacities.fold(f64::INFINITY, |least, &link| {
            least.min(self.capacities[link as usize])
        })
    }

    /// Sums of a quantity of flows, such as their rates, over the flows of each link.
    pub fn sums(&self, of_flows: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.capacities.len()];
        for (flow, &value) in of_flows.iter().enumerate() {
            for &link in self.path(flow) {
                sums[link as usize] += value;
            }
        }
        sums
    }

    /// The number of bottlenecks of each flow (`n_i`) while it has `remaining` bytes: the links of its path with more demand than capacity,
    /// at least one. Zero for a finished flow, which has no demand.
    ///
    /// The minimum is one, because a flow without bottlenecks would have `f = 0` at any rate, even at a rate of zero. The share of a
    /// destination whose flows have no bottlenecks would be zero divided by zero. The minimum is also realistic, because every flow is
    /// limited by something.
    pub fn bottlenecks(&self, remaining: &[f64], rule: BottleneckRule) -> Vec<u32> {
        let active: Vec<f64> = remaining
            .iter()
            .map(|&bytes| if bytes > 0.0 { 1.0 } else { 0.0 })
            .collect();
        let demands = match rule {
            BottleneckRule::Uniform => return active.iter().map(|&one| one as u32).collect(),
            BottleneckRule::LineRate => self.per_flow(&active, |flow| self.line_rate(flow)),
            BottleneckRule::NicShare => {
                let flows = self.sums(&active);
                let share = |link: u32| self.capacities[link as usize] / flows[link as usize];
                self.per_flow(&active, |flow| {
                    let path = self.path(flow);
                    share(path[0]).min(share(path[path.len() - 1]))
                })
            }
        };
        let asked = self.sums(&demands);
        let exceeds = |link: &&u32| {
            asked[**link as usize] > self.capacities[**link as usize] * (1.0 + ROUNDING)
        };
        (0..self.flow_count())
            .map(|flow| match demands[flow] > 0.0 {
                true => (self.path(flow).iter().filter(exceeds).count() as u32).max(1),
                false => 0,
            })
            .collect()
    }

    /// The weight of each flow in the objective, in bits: `n_i M_i / (sum of n_j over its destination)`. Its `f` is this weight divided by
    /// its rate (Eq 1). Zero for finished flows.
    pub fn weights(&self, remaining: &[f64], rule: BottleneckRule) -> Vec<f64> {
        let bottlenecks = self.bottlenecks(remaining, rule);
        let mut of_destination = vec![0.0; self.destination_count];
        for (&count, &to) in bottlenecks.iter().zip(&self.destinations) {
            of_destination[to as usize] += f64::from(count);
        }
        let flows = bottlenecks.iter().zip(&self.destinations).zip(remaining);
        flows
            .map(|((&count, &to), &bytes)| match count {
                0 => 0.0,
                _ => f64::from(count) / of_destination[to as usize] * bytes * 8.0,
            })
            .collect()
    }

    /// `value` of each flow that is `active`, zero for others.
    fn per_flow(&self, active: &[f64], value: impl Fn(usize) -> f64) -> Vec<f64> {
        let flows = active.iter().enumerate();
        flows
            .map(|(flow, &one)| if one > 0.0 { value(flow) } else { 0.0 })
            .collect()
    }
}

fn check_flow(index: usize, flow: &PlannedFlow, links: usize) -> Result<(), ProblemError> {
    if flow.path.is_empty() {
        return Err(ProblemError::EmptyPath { flow: index });
    }
    if flow.bytes == Bytes::ZERO {
        return Err(ProblemError::NoBytes { flow: index });
    }
    for (hop, &link) in flow.path.iter().enumerate() {
        if link as usize >= links {
            return Err(ProblemError::UnknownLink {
                flow: index,
                link,
                links,
            });
        }
        if flow.path[..hop].contains(&link) {
            return Err(ProblemError::RepeatedLink { flow: index, link });
        }
    }
    Ok(())
}
