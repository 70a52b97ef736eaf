//! Fabrics whose file lists every link.

use clearway_fabric::topology::{Cable, NodeId, SwitchSpec, Topology, TopologyError};
use clearway_formats::HpccTopology;
use clearway_workload::counted;

/// The fabric of a file in HPCC's format. Nodes and cables keep their order, and switches keep their numbers. Hosts with a link to another
/// host forward: see [`Topology::with_routers`]. Others may have several cables: see [`Topology::split_hosts`].
///
/// # Errors
/// If the delay of a link of a host that forwards is less than 3 ns.
pub(super) fn from_hpcc(file: &HpccTopology) -> Result<Topology, TopologyError> {
    let ends = file.links.iter().map(|link| link.ends);
    let tiers = tiers(file.hosts, file.switches.len(), ends);
    let switches = file.switches.iter().zip(&tiers);
    let switches = switches.map(|(number, &tier)| SwitchSpec::new(format!("switch{number}"), tier));
    let tier_of = |node: u32| {
        let switch = node.checked_sub(file.hosts);
        switch.map(|index| tiers[index as usize])
    };
    let cables = file.links.iter().map(|link| {
        // From the lower to the upper tier, as in all fabrics: a cable is an uplink of its first end.
        let [a, b] = link.ends;
        let ends = if tier_of(a) <= tier_of(b) {
            [a, b]
        } else {
            [b, a]
        };
        Cable {
            packet_loss: link.loss,
            ..Cable::new(ends.map(NodeId), (link.rate, link.delay))
        }
    });
    let topology = Topology {
        summary: format!(
            "graph: {}",
            counts(file.hosts, tiers.len(), file.links.len())
        ),
        hosts: file.hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: switches.collect(),
        cables: cables.collect(),
    };
    let mut forwards = vec![false; file.hosts as usize];
    for link in &file.links {
        if link.ends.iter().all(|&node| node < file.hosts) {
            link.ends
                .iter()
                .for_each(|&host| forwards[host as usize] = true);
        }
    }
    topology.with_routers(|host| forwards[host as usize])
}

/// "4 hosts, 1 switch, 4 links".
pub(super) fn counts(hosts: u32, switches: usize, links: usize) -> String {
    let switches = match switches {
        1 => "1 switch".to_owned(),
        count => format!("{count} switches"),
    };
    let (hosts, links) = (counted(hosts as usize, "host"), counted(links, "link"));
    format!("{hosts}, {switches}, {links}")
}

/// Distance of each switch from the nearest switch with hosts. Hosts are the nodes from 0, switches follow.
pub(super) fn tiers(hosts: u32, switches: usize, links: impl Iterator<Item = [u32; 2]>) -> Vec<u8> {
    let mut neighbours = vec![Vec::new(); switches];
    let mut tiers = vec![u8::MAX; switches];
    let mut queue = Vec::new();
    for ends in links {
        let [a, b] = ends.map(|node| node.checked_sub(hosts));
        match (a, b) {
            (Some(a), Some(b)) => {
                neighbours[a as usize].push(b as usize);
                neighbours[b as usize].push(a as usize);
            }
            (Some(leaf), None) | (None, Some(leaf)) => {
                if tiers[leaf as usize] != 0 {
                    tiers[leaf as usize] = 0;
                    queue.push(leaf as usize);
                }
            }
            (None, None) => {}
        }
    }
    let mut head = 0;
    while let Some(&at) = queue.get(head) {
        head += 1;
        for &next in &neighbours[at] {
            if tiers[next] == u8::MAX {
                tiers[next] = tiers[at].saturating_add(1);
                queue.push(next);
            }
        }
    }
    tiers
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_fabric::topology::Routes;
    use clearway_formats::parse_hpcc_topology;
    use clearway_units::{HostId, Span};

    /// Two hosts on each of two leaves, two spines above them, and links written in either direction.
    const TEXT: &str = "8 4 8\n4 5 6 7\n0 6 100Gbps 1us 0\n6 1 100Gbps 1us 0\n2 7 100Gbps 1us 0\n3 7 100Gbps 1us 0\n\
        4 6 400Gbps 1us 0\n6 5 400Gbps 1us 0.25\n7 4 400Gbps 1us 0\n7 5 400Gbps 1us 0\n";

    #[test]
    fn switches_next_to_hosts_are_below_the_others() {
        let file = parse_hpcc_topology("t.txt", TEXT).unwrap();
        let topology = from_hpcc(&file).unwrap();
        assert_eq!(topology.summary, "graph: 4 hosts, 4 switches, 8 links");
        let tiers: Vec<u8> = topology.switches.iter().map(|s| s.tier).collect();
        assert_eq!(tiers, [1, 1, 0, 0]);
        let ends: Vec<[u32; 2]> = topology
            .cables
            .iter()
            .map(|cable| cable.ends.map(|node| node.0))
            .collect();
        assert_eq!(ends[1], [1, 6]);
        assert_eq!(topology.cables[5].packet_loss, 0.25);
        assert_eq!(ends[4], [6, 4]);
        assert_eq!(ends[5], [6, 5]);
        assert_eq!(topology.node_name(NodeId(6)), "switch6");
        let routes = Routes::compute(&topology).unwrap();
        assert_eq!(routes.paths.between(HostId(0), HostId(1)).hops, 2);
        assert_eq!(routes.paths.between(HostId(0), HostId(3)).hops, 4);
    }

    /// Hosts 0 to 2 in a row, and the last of them on a switch with host 3.
    #[test]
    fn hosts_that_are_joined_forward() {
        let text = "5 1 4\n4\n0 1 100Gbps 1us 0\n1 2 100Gbps 2us 0\n2 4 200Gbps 1us 0\n3 4 100Gbps 1us 0\n";
        let topology = from_hpcc(&parse_hpcc_topology("t.txt", text).unwrap()).unwrap();
        let names: Vec<&str> = topology.switches.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["switch4", "router0", "router1", "router2"]);
        let routes = Routes::compute(&topology).unwrap();
        let path = |a, b| routes.paths.between(HostId(a), HostId(b));
        // The delays of the file, and one more link at each end that has a router.
        assert_eq!(
            (path(0, 1).hops, path(0, 1).propagation),
            (3, Span::from_us(1))
        );
        assert_eq!(
            (path(1, 2).hops, path(1, 2).propagation),
            (3, Span::from_us(2))
        );
        assert_eq!(
            (path(2, 3).hops, path(2, 3).propagation),
            (3, Span::from_us(2))
        );
        assert_eq!(path(0, 3).hops, 5);
    }
}
