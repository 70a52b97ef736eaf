//! The oracle's own view of a fabric: wires, routes, hashes and the order of simultaneous arrivals, each computed in the most
//! obvious way whenever it is needed.

use clearway_fabric::topology::{LinkId, NodeId, Topology};
use clearway_transport::Packet;
use clearway_units::{HostId, Purpose, RandomStream, Span, Time, mix64};

/// A fabric as the oracle sees it.
pub(crate) struct Network<'a> {
    topology: &'a Topology,
    seed: u64,
    /// `distance[h][s]`: switches from switch `s` to the switch of host `h`.
    distance: Vec<Vec<Option<u32>>>,
}

impl<'a> Network<'a> {
    pub(crate) fn new(topology: &'a Topology, seed: u64) -> Self {
        let mut network = Self {
            topology,
            seed,
            distance: Vec::new(),
        };
        network.distance = (0..topology.hosts)
            .map(|host| network.distances_to(HostId(host)))
            .collect();
        network
    }

    /// Links that leave `node` and are up, in the order of cables.
    pub(crate) fn links_of(&self, node: NodeId) -> impl Iterator<Item = LinkId> + '_ {
        let cables = self.topology.cables.iter().enumerate();
        cables
            .filter(|(_, cable)| cable.up)
            .flat_map(move |(index, cable)| {
                let leaves = |end: &usize| cable.ends[*end] == node;
                let link = move |end| LinkId(2 * index as u32 + end as u32);
                [0, 1]
                    .into_iter()
                    .filter(leaves)
                    .map(link)
                    .collect::<Vec<_>>()
            })
    }

    pub(crate) fn end_of(&self, link: LinkId) -> NodeId {
        self.topology.cables[link.0 as usize / 2].ends[1 - link.0 as usize % 2]
    }

    pub(crate) fn start_of(&self, link: LinkId) -> NodeId {
        self.topology.cables[link.0 as usize / 2].ends[link.0 as usize % 2]
    }

    pub(crate) fn is_host(&self, node: NodeId) -> bool {
        node.0 < self.topology.hosts
    }

    /// The one link that leaves a host.
    pub(crate) fn uplink(&self, host: HostId) -> LinkId {
        let mut links = self.links_of(NodeId(host.0));
        links.next().expect("a host has a link")
    }

    fn switch_of(&self, host: HostId) -> NodeId {
        self.end_of(self.uplink(host))
    }

    /// Relaxes until nothing changes.
    fn distances_to(&self, host: HostId) -> Vec<Option<u32>> {
        let hosts = self.topology.hosts;
        let mut distance = vec![None; self.topology.switches.len()];
        distance[(self.switch_of(host).0 - hosts) as usize] = Some(0);
        let links: Vec<LinkId> = (hosts..hosts + distance.len() as u32)
            .flat_map(|node| self.links_of(NodeId(node)).collect::<Vec<_>>())
            .filter(|&link| !self.is_host(self.end_of(link)))
            .collect();
        loop {
            let before = distance.clone();
            for &link in &links {
                let from = (self.start_of(link).0 - hosts) as usize;
                let to = (self.end_of(link).0 - hosts) as usize;
                if let Some(rest) = distance[to]
                    && distance[from].is_none_or(|known| known > rest + 1)
                {
                    distance[from] = Some(rest + 1);
                }
            }
            if distance == before {
                return distance;
            }
        }
    }

    /// The link that `packet` takes from `switch`.
    pub(crate) fn next_link(&self, switch: NodeId, packet: &Packet) -> LinkId {
        let hosts = self.topology.hosts;
        if self.switch_of(packet.dst) == switch {
            return LinkId(self.uplink(packet.dst).0 ^ 1);
        }
        let distance = &self.distance[packet.dst.index()];
        let here = distance[(switch.0 - hosts) as usize].expect("connected");
        let nearer = |link: &LinkId| {
            let end = self.end_of(*link);
            !self.is_host(end) && distance[(end.0 - hosts) as usize] == Some(here - 1)
        };
        let choices: Vec<LinkId> = self.links_of(switch).filter(nearer).collect();
        let salt = RandomStream::new(self.seed, Purpose::Hashing, u64::from(switch.0 - hosts));
        let hash = mix64(salt.clone().next_u64() ^ u64::from(packet.header_hash)) >> 32;
        choices[(hash * choices.len() as u64 / (1 << 32)) as usize]
    }

    /// The hash of source, destination and source port that a NIC writes into a packet.
    pub(crate) fn header_hash(packet: &Packet) -> u32 {
        let addresses = (u64::from(packet.src.0) << 32) + u64::from(packet.dst.0);
        (mix64(mix64(addresses) ^ u64::from(packet.source_port)) % (1 << 32)) as u32
    }

    /// Orders arrivals of one instant: `(link ⊕ a)·b` modulo 2^32, with `a` and odd `b` from seed and instant.
    pub(crate) fn tie_break(&self, time: Time, link: LinkId) -> u64 {
        let seed = mix64(self.seed ^ Purpose::Ties as u64);
        let drawn = mix64(seed ^ time.as_ps());
        let (a, b) = (drawn % (1 << 32), (drawn / (1 << 32)) | 1);
        ((u64::from(link.0) ^ a) * b) % (1 << 32)
    }

    /// The time that `bytes` need on `link`, rounded up to a picosecond.
    pub(crate) fn transmission(&self, link: LinkId, bytes: u64) -> Span {
        let rate = u128::from(self.topology.cables[link.0 as usize / 2].rate.as_bps());
        let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
        Span::from_ps((bits / rate + u128::from(bits % rate != 0)) as u64)
    }

    /// From the end of transmission to the arrival: the wire, and the latency of the switch at its end.
    pub(crate) fn delay(&self, link: LinkId) -> Span {
        let wire = self.topology.cables[link.0 as usize / 2].delay;
        let end = self.end_of(link);
        if self.is_host(end) {
            return wire;
        }
        wire + self.topology.switches[(end.0 - self.topology.hosts) as usize].latency
    }

    /// The probability that a packet of `bytes` on `link` arrives, and without a wrong bit.
    pub(crate) fn survival(&self, link: LinkId, end: Time, bytes: u16) -> f64 {
        let cable = &self.topology.cables[link.0 as usize / 2];
        if end >= cable.dead_from {
            return 0.0;
        }
        let (wrong, arrives) = (cable.bit_error_rate, 1.0 - cable.packet_loss);
        if wrong == 0.0 {
            return arrives;
        }
        (0..u32::from(bytes) * 8).fold(arrives, |right, _| right * (1.0 - wrong))
    }
}
