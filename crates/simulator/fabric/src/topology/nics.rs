//! Hosts with several NICs.
//!
//! A node that sends and receives has exactly one cable: a NIC with its endpoint. A host of the user's that has several cables is therefore
//! several such nodes. The first NIC keeps the number of the host; the further ones come after all hosts, in the order of their hosts and
//! cables, and before the switches. Nothing is forwarded between the NICs of a host.
//!
//! Equal NICs can be joined into one with as many ports, as in a [multi-plane](super::multi_plane) fabric: one address and one endpoint
//! with the sum of their rates, behind a [switch](SwitchRole::Nic) that chooses a port for each packet.

use super::{Cable, NodeId, PortChoice, SwitchRole, SwitchSpec, Topology};
use clearway_units::{HostId, Rate, Span};
use std::collections::BTreeMap;

/// Least delay of a cable.
const LEAST_DELAY: Span = Span::from_ns(1);

impl Topology {
    /// The same fabric with each cable of a host at a separate NIC. Cables keep their numbers; the numbers of switches move up.
    #[must_use]
    pub fn split_hosts(mut self) -> Self {
        let mut cables_of = vec![Vec::new(); self.hosts as usize];
        for (index, cable) in self.cables.iter().enumerate() {
            for (end, node) in cable.ends.iter().enumerate() {
                if let Some(cables) = cables_of.get_mut(node.0 as usize) {
                    cables.push((index, end));
                }
            }
        }
        let further: usize = cables_of.iter().map(|own| own.len().max(1) - 1).sum();
        for node in self.cables.iter_mut().flat_map(|cable| &mut cable.ends) {
            if node.0 >= self.hosts {
                node.0 += further as u32;
            }
        }
        for (host, cables) in cables_of.iter().enumerate() {
            for &(cable, end) in cables.iter().skip(1) {
                self.cables[cable].ends[end] = NodeId(self.hosts);
                self.hosts += 1;
                self.further_nics.push(HostId(host as u32));
            }
        }
        self
    }

    /// The same fabric with the equal cables of a host (of one rate and delay) as ports of one NIC, which chooses one for each packet. Half
    /// of the delay is between host and ports. Cables keep their numbers, and stand between ports and switches. Cables between hosts and
    /// ports come last, as do the switches that stand for the ports. Cables of a scale-up fabric stay as they are.
    #[must_use]
    pub fn join_nics(mut self, choice: PortChoice) -> Self {
        let mut equal: BTreeMap<(u32, Rate, Span), Vec<(usize, usize)>> = BTreeMap::new();
        let of_nics = |(_, cable): &(usize, &Cable)| !self.is_scale_up(cable);
        for (index, cable) in self.cables.iter().enumerate().filter(of_nics) {
            for (end, node) in cable.ends.iter().enumerate() {
                if node.0 < self.hosts {
                    let kind = (node.0, cable.rate, cable.delay);
                    equal.entry(kind).or_default().push((index, end));
                }
            }
        }
        let mut names: BTreeMap<u32, u32> = BTreeMap::new();
        for ((host, rate, delay), ports) in equal {
            let inside = delay / 2;
            if ports.len() < 2 || inside < LEAST_DELAY {
                continue;
            }
            let name = match names
                .entry(host)
                .and_modify(|known| *known += 1)
                .or_insert(0)
            {
                0 => format!("nic{host}"),
                number => format!("nic{host}.{number}"),
            };
            let relay = self.switch_node(self.switches.len());
            self.switches.push(SwitchSpec {
                role: SwitchRole::Nic(choice),
                ..SwitchSpec::new(name, 0)
            });
            for &(cable, end) in &ports {
                self.cables[cable].ends[end] = relay;
                self.cables[cable].delay = delay - inside;
            }
            let all = Rate::from_bps(rate.as_bps().saturating_mul(ports.len() as u64));
            let ends = [NodeId(host), relay];
            self.cables.push(Cable::new(ends, (all, inside)));
        }
        self
    }

    /// True if some hosts may not reach each other, because nothing is forwarded over NICs: hosts have several of them, or no part of the
    /// network that the ports of NICs join has a port of each.
    pub fn may_be_apart(&self) -> bool {
        let is_port = self.port_switches();
        !self.further_nics.is_empty() || is_port.contains(&true) && !self.shares_a_part(&is_port)
    }

    /// True if one of the parts into which the switches fall without NICs has a link to each host.
    fn shares_a_part(&self, is_port: &[bool]) -> bool {
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); self.switches.len()];
        for cable in self.cables.iter().filter(|cable| cable.up) {
            if let [Some(a), Some(b)] = cable.ends.map(|end| self.switch_index(end)) {
                neighbours[a].push(b);
                neighbours[b].push(a);
            }
        }
        let mut seen = vec![false; self.switches.len()];
        (0..self.switches.len()).any(|start| {
            if seen[start] || is_port[start] {
                return false;
            }
            // A part, and the NICs with a port in it.
            let (mut part, mut has_link) = (vec![start], vec![false; self.switches.len()]);
            seen[start] = true;
            while let Some(at) = part.pop() {
                has_link[at] = true;
                for &next in &neighbours[at] {
                    has_link[next] = true;
                    if !is_port[next] && !std::mem::replace(&mut seen[next], true) {
                        part.push(next);
                    }
                }
            }
            let of_hosts = self.cables.iter().filter_map(|cable| {
                match cable.ends.map(|end| self.switch_index(end)) {
                    [None, Some(switch)] | [Some(switch), None] => Some(switch),
                    _ => None,
                }
            });
            of_hosts.clone().all(|switch| has_link[switch])
        })
    }

    /// For each switch, true if it stands for the ports of one NIC, which forwards nothing; empty without such switches.
    pub(super) fn port_switches(&self) -> Vec<bool> {
        let is_nic = |switch: &SwitchSpec| matches!(switch.role, SwitchRole::Nic(_));
        if !self.switches.iter().any(is_nic) {
            return Vec::new();
        }
        let mut hosts = vec![0u32; self.switches.len()];
        for cable in &self.cables {
            let switches = cable.ends.map(|end| self.switch_index(end));
            if let [None, Some(switch)] | [Some(switch), None] = switches {
                hosts[switch] += 1;
            }
        }
        let all = self.switches.iter().zip(hosts);
        all.map(|(switch, hosts)| is_nic(switch) && hosts == 1)
            .collect()
    }

    /// Number of hosts as the user counts them, each with one NIC or more.
    pub fn machines(&self) -> u32 {
        self.hosts - self.further_nics.len() as u32
    }

    /// The host that a NIC belongs to.
    pub fn machine_of(&self, nic: HostId) -> HostId {
        match nic.0.checked_sub(self.machines()) {
            None => nic,
            Some(further) => self.further_nics[further as usize],
        }
    }

    /// The NICs of a host, in the order of its cables.
    pub fn nics_of(&self, machine: HostId) -> impl Iterator<Item = HostId> + use<> {
        let first = self.further_nics.partition_point(|host| *host < machine);
        let end = self.further_nics.partition_point(|host| *host <= machine);
        let machines = self.machines();
        let further = (first as u32..end as u32).map(move |index| HostId(machines + index));
        [machine].into_iter().chain(further)
    }

    /// The name of a NIC: `host5` for the first of a host, then `host5.1`, `host5.2`, …
    pub(super) fn nic_name(&self, nic: HostId) -> String {
        let machine = self.machine_of(nic);
        let place = self.nics_of(machine).position(|own| own == nic);
        match place {
            None | Some(0) => format!("host{machine}"),
            Some(place) => format!("host{machine}.{place}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NextHops, Routes};
    use super::*;

    /// Three hosts and two switches: host 0 is on both, host 1 on the second, and host 2 twice on the first and once on the second.
    fn graph() -> Topology {
        let class = (Rate::from_gbps(100), Span::from_us(1));
        let cable = |a, b| Cable::new([NodeId(a), NodeId(b)], class);
        let switch = |name: &str| SwitchSpec::new(name, 0);
        Topology {
            summary: "graph".into(),
            hosts: 3,
            further_nics: Vec::new(),
            queues: Vec::new(),
            groups: None,
            switches: vec![switch("a"), switch("b")],
            cables: [(2, 3), (0, 3), (4, 0), (1, 4), (2, 4), (2, 3)]
                .map(|(a, b)| cable(a, b))
                .into(),
        }
    }

    #[test]
    fn each_cable_of_a_host_gets_a_nic() {
        let split = graph().split_hosts();
        assert_eq!((split.hosts, split.machines()), (6, 3));
        let ends: Vec<[u32; 2]> = split.cables.iter().map(|c| c.ends.map(|n| n.0)).collect();
        assert_eq!(ends, [[2, 6], [0, 6], [7, 3], [1, 7], [4, 7], [5, 6]]);
        let names: Vec<String> = (0..8).map(|node| split.node_name(NodeId(node))).collect();
        let expected = [
            "host0", "host1", "host2", "host0.1", "host2.1", "host2.2", "a", "b",
        ];
        assert_eq!(names, expected);
        let machines: Vec<u32> = (0..6).map(|nic| split.machine_of(HostId(nic)).0).collect();
        assert_eq!(machines, [0, 1, 2, 0, 2, 2]);
        let nics =
            |machine| -> Vec<u32> { split.nics_of(HostId(machine)).map(|nic| nic.0).collect() };
        assert_eq!(
            [nics(0), nics(1), nics(2)],
            [vec![0, 3], vec![1], vec![2, 4, 5]]
        );
    }

    #[test]
    fn a_fabric_of_hosts_with_one_cable_stays_as_it_is() {
        let mut topology = graph();
        topology.cables.truncate(4);
        topology.cables.remove(1);
        assert_eq!(topology.clone().split_hosts(), topology);
    }

    /// Only hosts join the switches, and hosts do not forward.
    #[test]
    fn nics_that_do_not_reach_each_other_are_no_error() {
        let split = graph().split_hosts();
        let paths = Routes::compute(&split).unwrap().paths;
        let reaches = |a, b| paths.reaches(HostId(a), HostId(b));
        assert!(reaches(0, 2) && reaches(3, 1) && reaches(4, 1) && reaches(5, 0));
        assert!(!reaches(0, 1) && !reaches(3, 0) && !reaches(2, 4));
        assert_eq!(paths.between(HostId(3), HostId(4)).hops, 2);
        let mut unsplit = graph();
        unsplit.cables.drain(4..);
        unsplit.cables.remove(1);
        assert!(
            Routes::compute(&unsplit).is_err(),
            "hosts 0 and 2 have no path"
        );
    }

    /// Hosts 0 and 1 on both of two leaves, host 2 on the first and host 3 on the second; a spine joins the leaves.
    fn dual_homed() -> Topology {
        let cable = |(a, b)| {
            Cable::new(
                [NodeId(a), NodeId(b)],
                (Rate::from_gbps(100), Span::from_us(1)),
            )
        };
        let cables = [
            (0, 4),
            (0, 5),
            (1, 4),
            (1, 5),
            (2, 4),
            (3, 5),
            (4, 6),
            (5, 6),
        ];
        Topology {
            summary: "dual-homed".into(),
            hosts: 4,
            further_nics: Vec::new(),
            queues: Vec::new(),
            groups: None,
            switches: ["leaf0", "leaf1", "spine"]
                .map(|name| SwitchSpec::new(name, 0))
                .into(),
            cables: cables.map(cable).into(),
        }
    }

    #[test]
    fn equal_nics_become_ports_of_one() {
        let topology = dual_homed().join_nics(PortChoice::LeastQueue).split_hosts();
        assert_eq!(
            (
                topology.hosts,
                topology.switches.len(),
                topology.cables.len()
            ),
            (4, 5, 10)
        );
        assert_eq!(topology.node_name(NodeId(7)), "nic0");
        let inside = &topology.cables[8];
        assert_eq!(
            (inside.rate, inside.delay),
            (Rate::from_gbps(200), Span::from_ns(500))
        );
        let routes = Routes::compute(&topology).unwrap();
        let path = |a, b| routes.paths.between(HostId(a), HostId(b));
        assert_eq!(path(0, 1).bottleneck, Some(Rate::from_gbps(100)));
        // From its NIC both ports lead to the other NIC, and one to a host on one leaf.
        let ways = |from: usize, to: u32| match routes.switches[from]
            .next_hops(routes.attachments[to as usize])
        {
            NextHops::Ports(ports) => ports.len(),
            NextHops::Host(_) => 0,
        };
        assert_eq!([ways(3, 1), ways(3, 2)], [2, 1]);
        // By way of the spine: no NIC forwards packets for others.
        assert_eq!((path(2, 3).hops, ways(0, 3)), (4, 1));
    }
}
