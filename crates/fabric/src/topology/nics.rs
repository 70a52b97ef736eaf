//! Hosts with several NICs.
//!
//! A node that sends and receives has exactly one cable: a NIC with an endpoint of its own. A host of the user's that has several
//! cables is therefore several such nodes. The first NIC keeps the number of the host; the further ones come after all hosts, in
//! the order of their hosts and cables, and before the switches. Nothing is forwarded between the NICs of a host.

use super::{NodeId, Topology};
use clearway_units::HostId;

impl Topology {
    /// The same fabric with each cable of a host at a NIC of its own. Cables keep their numbers; the numbers of switches move up.
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
    use super::super::{Cable, Routes, SwitchSpec};
    use super::*;
    use clearway_units::{Rate, Span};

    /// Three hosts and two switches: host 0 is on both, host 1 on the second, and host 2 twice on the first and once on the second.
    fn graph() -> Topology {
        let cable = |a, b| Cable {
            ends: [NodeId(a), NodeId(b)],
            rate: Rate::from_gbps(100),
            delay: Span::from_us(1),
            bit_error_rate: 0.0,
            packet_loss: 0.0,
            dead_from: clearway_units::Time::NEVER,
            up: true,
        };
        let switch = |name: &str| SwitchSpec::new(name, 0);
        Topology {
            summary: "graph".into(),
            hosts: 3,
            further_nics: Vec::new(),
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

    /// The switches are joined by nothing but hosts, which do not forward.
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
}
