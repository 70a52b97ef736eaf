//! A lower bound of a run: no transport can be faster, independent of its sending and of its packets' paths.
//!
//! A run has two kinds of bounds. A *cut* is the set of links that leave a part of the fabric. Traffic across a cut takes its bytes over
//! the sum of the link rates, from the time when the bytes are ready. Parts of the fabric are each NIC, and each connected region up to a
//! tier of switches, such as a leaf with its hosts or a pod. A *chain* takes the sum of its parts: the ideal completion times of flows that
//! start each other, and also the computations of a job. Loads count data with headers, sent once.

use super::chain::JobStep;
use crate::assemble::Assembly;
use clearway_fabric::topology::{LinkId, NodeId};
use clearway_units::{Bytes, FlowId, Rate, Span, Time};
use clearway_workload::{FlowSpec, Start, TriggerIndex, Triggers};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The least time of a run, from the first start to the last completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerBound {
    /// Start of the bound: the time at which the first flow is ready.
    pub from: Time,
    /// The least time.
    pub span: Span,
    /// Cause of the bound.
    pub cause: BoundCause,
}

/// Cause of a lower bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundCause {
    /// No traffic.
    Nothing,
    /// The load of a cut.
    Cut {
        /// Links of the cut, all in one direction; one link for a NIC.
        links: Vec<LinkId>,
        /// Number of NICs in the part of the fabric within the cut.
        hosts: u32,
        /// The switch in that part, if it contains exactly one.
        switch: Option<NodeId>,
        /// True if the traffic leaves the part, false if it enters.
        outwards: bool,
        /// Bytes that must cross the cut, including headers.
        bytes: Bytes,
        /// Sum of the link rates of the cut.
        rate: Rate,
    },
    /// A chain of flows that start each other, in order; a chain may have a single flow.
    Chain(Vec<FlowId>),
    /// A chain of messages and computations of a job, which wait for each other.
    Job {
        /// Name of the job.
        label: String,
        /// Messages and computations, in order.
        steps: Vec<JobStep>,
    },
}

/// Earliest possible start of a flow, and the flow that starts it.
#[derive(Debug, Clone, Copy)]
struct Earliest {
    start: Time,
    cause: Option<FlowId>,
}

/// Loads across a cut: the time from which bytes are ready, and their number.
type Loads = Vec<(Time, u64)>;

/// Connected hosts and switches.
#[derive(Debug, Default)]
struct Region {
    /// Number of hosts.
    hosts: u32,
    switches: Vec<NodeId>,
    /// Links that leave the region.
    outwards: Vec<LinkId>,
}

/// Regions without common hosts.
struct Layer {
    regions: Vec<Region>,
    /// The region of each host.
    of_host: Vec<usize>,
}

impl Assembly {
    /// Lower bound of the time of the listed traffic, from its first start to its last completion and the end of its last job.
    pub fn lower_bound(&self) -> LowerBound {
        let earliest = self.earliest_starts();
        let starts = earliest.iter().flatten().map(|earliest| earliest.start);
        let Some(from) = starts.min() else {
            return LowerBound {
                from: Time::ZERO,
                span: Span::ZERO,
                cause: BoundCause::Nothing,
            };
        };
        let chain = self.longest_chain(&earliest);
        let layers = self.layers();
        let cuts = layers
            .iter()
            .flat_map(|layer| self.cut_bounds(layer, &earliest));
        let jobs = self.job_chains().map(|job| {
            let (label, steps) = (job.label, job.steps);
            (job.end, BoundCause::Job { label, steps })
        });
        let bounds = chain.into_iter().chain(cuts).chain(jobs);
        // Of equal bounds the first counts, so a flow that is alone reports its ideal time.
        let (until, cause) = bounds
            .reduce(|a, b| if b.0 > a.0 { b } else { a })
            .unwrap_or((from, BoundCause::Nothing));
        LowerBound {
            from,
            span: until.since(from),
            cause,
        }
    }

    /// Earliest start of each flow if each flow takes its ideal time; `None` if its trigger never fires.
    fn earliest_starts(&self) -> Vec<Option<Earliest>> {
        let workload = self.nic_traffic();
        let mut earliest: Vec<Option<Earliest>> = vec![None; workload.flows.len()];
        let mut triggers = Triggers::new(workload);
        let mut queue = BinaryHeap::new();
        let mut begin = |queue: &mut BinaryHeap<_>, id: FlowId, start, cause| {
            earliest[id.index()].get_or_insert(Earliest { start, cause });
            let ideal = self.ideal_completion(id);
            let flow = workload.flow(id);
            let answered = start + ideal;
            let back = self.answer_span(flow);
            let there = Time::from_ps(answered.as_ps().saturating_sub(back.as_ps())).max(start);
            let activations = [
                flow.on_sent.zip(Some(answered)),
                flow.on_received.zip(Some(there)),
            ];
            for (trigger, time) in activations.into_iter().flatten() {
                queue.push(Reverse((time, id, trigger.0)));
            }
        };
        let first = self.jobs.first_start();
        for (id, flow) in workload.numbered() {
            match flow.start {
                Start::At(start) => begin(&mut queue, id, start, None),
                Start::Posted(_) => begin(&mut queue, id, first, None),
                Start::On(_) => {}
            }
        }
        while let Some(Reverse((time, cause, trigger))) = queue.pop() {
            let trigger = TriggerIndex(trigger);
            let effects: Vec<FlowId> = triggers.activate(trigger).collect();
            for effect in effects {
                begin(&mut queue, effect, time, Some(cause));
            }
        }
        earliest
    }

    /// The chain that ends last: its end and its flows.
    fn longest_chain(&self, earliest: &[Option<Earliest>]) -> Option<(Time, BoundCause)> {
        let ends = (0..)
            .map(FlowId)
            .zip(earliest)
            .filter_map(|(id, earliest)| {
                let end = earliest.as_ref()?.start + self.ideal_completion(id);
                Some((end, Reverse(id)))
            });
        let (end, Reverse(last)) = ends.max()?;
        let mut chain = vec![last];
        let cause = |id: FlowId| earliest[id.index()].and_then(|earliest| earliest.cause);
        while let Some(before) = cause(chain[chain.len() - 1]) {
            chain.push(before);
        }
        chain.reverse();
        Some((end, BoundCause::Chain(chain)))
    }

    /// Earliest end of the traffic across each cut of a layer.
    fn cut_bounds(
        &self,
        layer: &Layer,
        earliest: &[Option<Earliest>],
    ) -> impl Iterator<Item = (Time, BoundCause)> {
        let mut loads: Vec<[Loads; 2]> = vec![Default::default(); layer.regions.len()];
        for (flow, earliest) in self.nic_traffic().flows.iter().zip(earliest) {
            let [from, to] = [flow.src, flow.dst].map(|host| layer.of_host[host.index()]);
            if let Some(earliest) = earliest
                && from != to
            {
                let load = (earliest.start, self.wire_bytes(flow));
                loads[from][0].push(load);
                loads[to][1].push(load);
            }
        }
        let of_region = |(region, loads): (&Region, [Loads; 2])| {
            let directions = loads.into_iter().zip([true, false]);
            let bounds =
                directions.filter_map(|(loads, outwards)| self.cut_bound(region, outwards, loads));
            bounds.collect::<Vec<_>>()
        };
        let bounds = layer.regions.iter().zip(loads).flat_map(of_region);
        bounds.collect::<Vec<_>>().into_iter()
    }

    /// Earliest time at which these loads have crossed a cut.
    fn cut_bound(
        &self,
        region: &Region,
        outwards: bool,
        mut loads: Loads,
    ) -> Option<(Time, BoundCause)> {
        let opposite = |link: &LinkId| LinkId::from_end(link.cable(), 1 - link.end());
        let links: Vec<LinkId> = match outwards {
            true => region.outwards.clone(),
            false => region.outwards.iter().map(opposite).collect(),
        };
        let rate = |link: &LinkId| self.topology.cables[link.cable()].rate.as_bps();
        let bps: u64 = links.iter().map(rate).sum();
        if loads.is_empty() || bps == 0 {
            return None;
        }
        let rate = Rate::from_bps(bps);
        // Latest loads first: all loads that are ready at or after an instant must cross after that instant.
        loads.sort_unstable_by_key(|&(start, _)| Reverse(start));
        let (mut bytes, mut until) = (0u64, (Time::ZERO, 0));
        for (start, load) in loads {
            bytes = bytes.saturating_add(load);
            let end = start.saturating_add(rate.span_of(Bytes::new(bytes)));
            until = until.max((end, bytes));
        }
        let cause = BoundCause::Cut {
            links,
            hosts: region.hosts,
            switch: match region.switches[..] {
                [switch] => Some(switch),
                _ => None,
            },
            outwards,
            bytes: Bytes::new(until.1),
            rate,
        };
        Some((until.0, cause))
    }

    /// Bytes on the wire of a message.
    fn wire_bytes(&self, flow: &FlowSpec) -> u64 {
        let sizes = self.sizes_of(flow);
        let packets = flow.bytes.packets_of(sizes.payload).0;
        flow.bytes.as_u64() + packets * u64::from(sizes.header)
    }

    /// A layer of single NICs, and for each tier except the highest a layer of the regions that are connected up to the tier.
    fn layers(&self) -> Vec<Layer> {
        let topology = &self.topology;
        let ports = topology.ports();
        let mut tiers: BTreeSet<u8> = topology.switches.iter().map(|switch| switch.tier).collect();
        tiers.pop_last();
        let mut layers = vec![self.layer(&ports, None)];
        layers.extend(tiers.into_iter().map(|tier| self.layer(&ports, Some(tier))));
        layers
    }

    /// The regions that are connected by switches up to a tier; single NICs if `tier` is `None`.
    fn layer(&self, ports: &[Vec<LinkId>], tier: Option<u8>) -> Layer {
        let topology = &self.topology;
        let joins = |node: u32| match topology.switch_index(NodeId(node)) {
            Some(switch) => tier.is_some_and(|tier| topology.switches[switch].tier <= tier),
            None => tier.is_some(),
        };
        let mut region_of = vec![usize::MAX; ports.len()];
        let mut regions: Vec<Region> = Vec::new();
        let hosts = 0..topology.hosts;
        for root in hosts.filter(|&host| !ports[host as usize].is_empty()) {
            if region_of[root as usize] != usize::MAX {
                continue;
            }
            let number = regions.len();
            let mut region = Region::default();
            let mut open = vec![root];
            region_of[root as usize] = number;
            while let Some(node) = open.pop() {
                match node < topology.hosts {
                    true => region.hosts += 1,
                    false => region.switches.push(NodeId(node)),
                }
                for &link in &ports[node as usize] {
                    let to = topology.link_ends(link).1.0;
                    if !joins(to) {
                        region.outwards.push(link);
                    } else if region_of[to as usize] == usize::MAX {
                        region_of[to as usize] = number;
                        open.push(to);
                    }
                }
            }
            regions.push(region);
        }
        region_of.truncate(topology.hosts as usize);
        Layer {
            regions,
            of_host: region_of,
        }
    }
}
