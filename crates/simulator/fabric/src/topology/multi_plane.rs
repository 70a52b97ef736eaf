//! Multi-plane fabrics: NICs with several ports, each in a separate leaf-spine fabric.
//!
//! A NIC of rate C has P ports of C / P. Only NICs join the planes, so that a packet comes in by the port of the receiver that has the
//! number of its port at the sender. Hosts have one cable here, so the ports of a NIC are the ports of a [relay](SwitchRole::Nic) between
//! it and the leaves: the cable to the host has rate C, the cables to the leaves C / P. The delay of a port's cable is shared out over the
//! two, so that a path is as long as with one plane, except for the serialisation of a packet at C / P.

use super::{Cable, NodeId, PortChoice, SwitchRole, SwitchSpec, Topology, TopologyError};
use clearway_units::{Rate, Span};

/// A multi-plane fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiPlane {
    /// Number of planes, P: so many ports has each NIC.
    pub planes: u32,
    /// Number of hosts.
    pub hosts: u32,
    /// Hosts on each leaf of a plane.
    pub hosts_per_leaf: u32,
    /// Spines of each plane.
    pub spines: u32,
    /// Links from each leaf to each spine.
    pub bundle: u32,
    /// Rate of a NIC, and delay from its port to the leaf.
    pub nic: (Rate, Span),
    /// Part of this delay between host and port.
    pub inside: Span,
    /// Rate and delay of the links between leaves and spines.
    pub fabric: (Rate, Span),
    /// Rule by which NICs select a port for a packet.
    pub port_choice: PortChoice,
}

/// Builds a multi-plane fabric.
///
/// # Errors
/// If the numbers do not come out even, or are too large.
pub fn multi_plane(spec: &MultiPlane) -> Result<Topology, TopologyError> {
    let shape = Shape::from_spec(spec)?;
    let MultiPlane { planes, hosts, .. } = *spec;
    let port = (
        Rate::from_bps(spec.nic.0.as_bps() / u64::from(planes)),
        spec.nic.1 - spec.inside,
    );
    let mut cables = Vec::new();
    for host in 0..hosts {
        let ends = [NodeId(host), shape.relay(host)];
        cables.push(Cable::new(ends, (spec.nic.0, spec.inside)));
    }
    for host in 0..hosts {
        for plane in 0..planes {
            let leaf = shape.leaf(plane, host / spec.hosts_per_leaf);
            cables.push(Cable::new([shape.relay(host), leaf], port));
        }
    }
    for plane in 0..planes {
        for leaf in 0..shape.leaves {
            for spine in 0..spec.spines {
                let ends = [shape.leaf(plane, leaf), shape.spine(plane, spine)];
                cables.extend((0..spec.bundle).map(|_| Cable::new(ends, spec.fabric)));
            }
        }
    }
    Ok(Topology {
        summary: format!(
            "multi-plane: {hosts} hosts with {planes} ports of {}, {planes} planes of {} leaves and {} spines",
            port.0, shape.leaves, spec.spines
        ),
        hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: shape.switches(spec.port_choice),
        cables,
    })
}

/// The numbers of a fabric.
struct Shape {
    hosts: u32,
    planes: u32,
    /// Leaves of each plane, and spines.
    leaves: u32,
    spines: u32,
}

impl Shape {
    fn from_spec(spec: &MultiPlane) -> Result<Self, TopologyError> {
        let impossible = |what: String, fix: &str| {
            let fix = fix.into();
            Err(TopologyError::Impossible { what, fix })
        };
        let (hosts, planes) = (spec.hosts, spec.planes);
        if !(2..=1 << 20).contains(&hosts) || !(1..=256).contains(&planes) {
            let what = format!("{hosts} hosts with {planes} ports each");
            return impossible(what, "use 2 to 1048576 hosts, and 1 to 256 planes");
        }
        if spec.hosts_per_leaf == 0 || !hosts.is_multiple_of(spec.hosts_per_leaf) {
            let what = format!("{hosts} hosts, {} on each leaf", spec.hosts_per_leaf);
            return impossible(what, "use a number of hosts that fills whole leaves");
        }
        let uplinks = spec.spines.checked_mul(spec.bundle);
        if !uplinks.is_some_and(|uplinks| (1..=1 << 16).contains(&uplinks)) {
            let what = format!("{} spines with {} links each", spec.spines, spec.bundle);
            return impossible(what, "use 1 to 65536 uplinks per leaf");
        }
        let rate = spec.nic.0.as_bps();
        if !rate.is_multiple_of(planes.into()) {
            let what = format!("{planes} ports of a NIC of {}", spec.nic.0);
            return impossible(what, "use a rate that is a multiple of the planes");
        }
        if spec.inside >= spec.nic.1 || spec.inside.is_zero() {
            let what = format!(
                "{} of a delay of {} inside the NIC",
                spec.inside, spec.nic.1
            );
            return impossible(what, "let both parts of the delay be above zero");
        }
        Ok(Self {
            hosts,
            planes,
            leaves: hosts / spec.hosts_per_leaf,
            spines: spec.spines,
        })
    }

    fn relay(&self, host: u32) -> NodeId {
        NodeId(self.hosts + host)
    }

    fn leaf(&self, plane: u32, number: u32) -> NodeId {
        NodeId(2 * self.hosts + plane * self.leaves + number)
    }

    fn spine(&self, plane: u32, number: u32) -> NodeId {
        let leaves = self.planes * self.leaves;
        NodeId(2 * self.hosts + leaves + plane * self.spines + number)
    }

    fn switches(&self, port_choice: PortChoice) -> Vec<SwitchSpec> {
        let relays = (0..self.hosts).map(|host| SwitchSpec {
            role: SwitchRole::Nic(port_choice),
            ..SwitchSpec::new(format!("nic{host}"), 0)
        });
        let of_planes = |name: &'static str, tier, count: u32| {
            let planes = 0..self.planes;
            planes.flat_map(move |plane| {
                (0..count)
                    .map(move |number| SwitchSpec::new(format!("{name}{plane}.{number}"), tier))
            })
        };
        let leaves = of_planes("leaf", 1, self.leaves);
        relays
            .chain(leaves)
            .chain(of_planes("spine", 2, self.spines))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Routes;
    use super::*;
    use clearway_units::HostId;
    use std::collections::BTreeMap;

    const SPEC: MultiPlane = MultiPlane {
        planes: 4,
        hosts: 8,
        hosts_per_leaf: 2,
        spines: 2,
        bundle: 1,
        nic: (Rate::from_gbps(400), Span::from_us(1)),
        inside: Span::from_ns(400),
        fabric: (Rate::from_gbps(100), Span::from_us(1)),
        port_choice: PortChoice::LeastQueue,
    };

    #[test]
    fn every_port_is_on_a_plane_of_its_own() {
        let topology = multi_plane(&SPEC).unwrap();
        assert_eq!(
            (topology.hosts, topology.switches.len()),
            (8, 8 + 4 * (4 + 2))
        );
        assert_eq!(topology.cables.len(), 8 + 8 * 4 + 4 * 4 * 2);
        let ends = topology.links_up().map(|link| topology.link_ends(link));
        let from_nic = ends.filter(|(from, _)| topology.node_name(*from) == "nic5");
        let there: Vec<String> = from_nic.map(|(_, to)| topology.node_name(to)).collect();
        assert_eq!(there, ["host5", "leaf0.2", "leaf1.2", "leaf2.2", "leaf3.2"]);
        let between_planes = topology.cables.iter().filter(|cable| {
            let names = cable.ends.map(|end| topology.node_name(end));
            let plane = |name: &String| name.trim_start_matches(char::is_alphabetic).chars().next();
            names[0].starts_with("leaf") && plane(&names[0]) != plane(&names[1])
        });
        assert_eq!(between_planes.count(), 0);
    }

    #[test]
    fn a_path_is_as_long_as_in_one_plane() {
        let paths = Routes::compute(&multi_plane(&SPEC).unwrap()).unwrap().paths;
        assert_eq!(paths.histogram(), BTreeMap::from([(4, 8), (6, 8 * 6)]));
        let path = paths.between(HostId(0), HostId(7));
        assert_eq!(path.propagation, Span::from_us(4));
        assert_eq!(path.bottleneck, Some(Rate::from_gbps(100)));
    }

    #[test]
    fn uplinks_that_fail_are_those_of_leaves() {
        let mut topology = multi_plane(&SPEC).unwrap();
        topology.fail_uplinks(1, 1).unwrap();
        let down = topology.cables.iter().find(|cable| !cable.up).unwrap();
        let names = down.ends.map(|end| topology.node_name(end));
        assert_eq!(names, ["leaf0.0", "spine0.0"]);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        let refused = |change: fn(&mut MultiPlane)| {
            let mut spec = SPEC;
            change(&mut spec);
            multi_plane(&spec).unwrap_err().to_string()
        };
        let errors = [
            refused(|s| s.planes = 0),
            refused(|s| s.hosts = 1 << 30),
            refused(|s| s.hosts_per_leaf = 3),
            refused(|s| s.spines = 0),
            refused(|s| s.planes = 3),
            refused(|s| s.inside = Span::from_us(1)),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r"
        8 hosts with 0 ports each; use 2 to 1048576 hosts, and 1 to 256 planes
        1073741824 hosts with 4 ports each; use 2 to 1048576 hosts, and 1 to 256 planes
        8 hosts, 3 on each leaf; use a number of hosts that fills whole leaves
        0 spines with 1 links each; use 1 to 65536 uplinks per leaf
        3 ports of a NIC of 400Gbps; use a rate that is a multiple of the planes
        1us of a delay of 1us inside the NIC; let both parts of the delay be above zero
        ");
    }
}
