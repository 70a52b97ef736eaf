//! Completed flows as the HPCC simulator for ns-3 records them.

use crate::assemble::Assembly;
use crate::run::Finished;
use crate::transports::RunTransport;
use clearway_fabric::topology::{LinkId, PacketSizes, Topology};
use clearway_units::{Bytes, FlowId, HostId, Rate, Span, Time};
use clearway_workload::Start;
use std::collections::BTreeMap;

/// A completed flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FctRecord {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// The source port: 10000 for the first flow of a pair of hosts to start, then 10001, …, in 16 bits.
    pub sport: u16,
    /// The destination port: the destination port in the flow's source, else 100.
    pub dport: u16,
    /// Payload.
    pub bytes: Bytes,
    /// Time at which the flow was ready to be sent.
    pub start: Time,
    /// Flow completion time: from `start` until the last byte was acknowledged at the sender.
    pub fct: Span,
    /// The completion time on an idle network, by the formula of the HPCC simulator: see [`Assembly::fct_records`].
    pub standalone: Span,
}

const FIRST_SPORT: u16 = 10_000;
const USUAL_DPORT: u16 = 100;

impl Assembly {
    /// The completed flows in order of completion. Connections of jobs, which carry many messages, are left out.
    ///
    /// Their standalone time is `2 × delay + Σ payload / rate + (bytes + packets × header) / bottleneck`, where delay, sum and bottleneck
    /// are over the links of a shortest path, with the payload and header sizes of the flow's transport, in whole nanoseconds. Each
    /// quotient is rounded down, as in that simulator. The formula leaves out the headers in the sum and the size of the acknowledgement,
    /// and counts every first packet as full. It therefore differs a little from the [ideal completion time](Self::ideal_completion).
    pub fn fct_records(&self, finished: &Finished) -> Vec<FctRecord> {
        let mut completed: Vec<(Time, FlowId)> = Vec::new();
        for (id, flow) in finished.flows.iter().enumerate() {
            completed.extend(flow.finished.map(|time| (time, FlowId(id as u32))));
        }
        completed.sort_unstable();
        let sports = self.source_ports(finished);
        let transports = self.transports.iter();
        let formula = |own: &RunTransport| Standalone::new(&self.topology, own.sizes);
        let mut standalone: Vec<Standalone<'_>> = transports.map(formula).collect();
        // Scripts expect the host numbers of the fabric file.
        let in_file = |host: HostId| match &self.host_numbers {
            Some(numbers) => HostId(numbers[host.index()]),
            None => host,
        };
        let record = |(end, id): (Time, FlowId)| {
            let spec = self.workload.flow(id);
            if matches!(spec.start, Start::Posted(_)) {
                return None;
            }
            let start = finished.flows[id.index()].started?;
            let (from, to) = self.nics(id);
            let standalone = &mut standalone[usize::from(self.transports.number_of(spec))];
            Some(FctRecord {
                src: in_file(spec.src),
                dst: in_file(spec.dst),
                sport: sports[id.index()],
                dport: spec.dport.unwrap_or(USUAL_DPORT),
                bytes: spec.bytes,
                start,
                fct: end.since(start),
                standalone: standalone.span(from, to, spec.bytes),
            })
        };
        completed.into_iter().filter_map(record).collect()
    }

    /// The source port of each flow that has started.
    fn source_ports(&self, finished: &Finished) -> Vec<u16> {
        let mut started: Vec<(Time, usize)> = Vec::new();
        for (id, flow) in finished.flows.iter().enumerate() {
            started.extend(flow.started.map(|time| (time, id)));
        }
        started.sort_unstable();
        let mut ports = vec![FIRST_SPORT; finished.flows.len()];
        let mut next: BTreeMap<(HostId, HostId), u16> = BTreeMap::new();
        for (_, id) in started {
            let spec = self.workload.flow(FlowId(id as u32));
            let port = next.entry((spec.src, spec.dst)).or_insert(FIRST_SPORT);
            ports[id] = *port;
            *port = port.wrapping_add(1);
        }
        ports
    }
}

/// Sums and bottleneck of the links of a shortest path.
#[derive(Debug, Clone, Copy)]
struct Path {
    delay: Span,
    /// Serialisation of a full payload on each link.
    serialisation_ns: u64,
    bottleneck: Rate,
}

/// The formula, with a cache of the shortest-path searches.
struct Standalone<'a> {
    topology: &'a Topology,
    ports: Vec<Vec<LinkId>>,
    sizes: PacketSizes,
    /// Paths to every node, by the node that they start at.
    trees: BTreeMap<u32, Vec<Option<Path>>>,
}

impl<'a> Standalone<'a> {
    fn new(topology: &'a Topology, sizes: PacketSizes) -> Self {
        Self {
            topology,
            ports: topology.ports(),
            sizes,
            trees: BTreeMap::new(),
        }
    }

    fn span(&mut self, src: HostId, dst: HostId, bytes: Bytes) -> Span {
        // The search begins at the sender's switch, so that all hosts of the switch share it.
        let up = self.ports[src.index()][0];
        let first = self.link(up);
        let root = self.topology.link_ends(up).1.0;
        if !self.trees.contains_key(&root) {
            let tree = self.grow(root);
            self.trees.insert(root, tree);
        }
        let rest = self.trees[&root][dst.index()]
            .expect("routing has checked that hosts reach each other");
        let path = first.then(rest);
        let wire = u128::from(bytes.as_u64())
            + u128::from(bytes.packets_of(self.sizes.payload).0) * u128::from(self.sizes.header);
        let transmission = wire * 8_000_000_000 / u128::from(path.bottleneck.as_bps());
        let transmission = u64::try_from(transmission).unwrap_or(u64::MAX / 2000);
        let round_trip = 2 * path.delay.as_ps() / 1000 + path.serialisation_ns;
        Span::from_ns(round_trip + transmission)
    }

    fn link(&self, link: LinkId) -> Path {
        let rate = self.topology.cables[link.cable()].rate;
        let bits = u128::from(self.sizes.payload) * 8_000_000_000;
        Path {
            delay: self.topology.link_delay(link),
            serialisation_ns: (bits / u128::from(rate.as_bps())) as u64,
            bottleneck: rate,
        }
    }

    /// Searches breadth first; hosts do not forward.
    fn grow(&self, root: u32) -> Vec<Option<Path>> {
        let mut paths: Vec<Option<Path>> = vec![None; self.ports.len()];
        let mut queue = vec![root];
        let mut seen = vec![false; self.ports.len()];
        seen[root as usize] = true;
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            if at < self.topology.hosts {
                continue;
            }
            for &link in &self.ports[at as usize] {
                let next = self.topology.link_ends(link).1.0;
                if seen[next as usize] {
                    continue;
                }
                seen[next as usize] = true;
                let hop = self.link(link);
                paths[next as usize] = Some(paths[at as usize].map_or(hop, |path| path.then(hop)));
                queue.push(next);
            }
        }
        paths
    }
}

impl Path {
    fn then(self, other: Self) -> Self {
        Self {
            delay: self.delay + other.delay,
            serialisation_ns: self.serialisation_ns + other.serialisation_ns,
            bottleneck: self.bottleneck.min(other.bottleneck),
        }
    }
}
