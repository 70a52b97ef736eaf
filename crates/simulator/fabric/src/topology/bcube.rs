//! BCube: servers with several ports that pass on packets of others.
//!
//! BCube(n, levels) has n^levels servers, numbered by `levels` digits to the base n, and n^(levels - 1) switches of n ports on each
//! level (TMDML §IV, Figure 4: n = 3, two levels). Port `i` of a server is on the switch of level `i` that connects the servers which
//! differ from it in digit `i` alone. Servers that differ in more digits reach each other over servers in between.
//!
//! Nodes that send and receive have one cable here and forward nothing, so each port of a server is a NIC with a *relay*: a separate switch
//! between the server's endpoint, the cable, and the relays of the server's other ports. It stores and forwards like any other switch, with
//! the same buffer and marks. All its links have the rate of the cable, so forwarded traffic shares only the cable with the server's own
//! traffic. A shortest path corrects one digit after the other, as BCubeRouting does; a flow takes its first step from the NIC that it
//! starts at, so between servers that differ in d digits there are d disjoint first and last steps.

use super::{Cable, NodeId, SwitchSpec, Topology, TopologyError};
use clearway_units::{Rate, Span};

/// The most levels: as many digits of base 2 as hosts of a fabric need.
const MOST_LEVELS: u32 = 22;

/// Builds BCube with switches of `ports` ports on `levels` levels. `cable` is the rate of all links and the delay of those to the
/// switches of levels; `crossing` is the delay between a server and its relays, and between these.
///
/// # Errors
/// If there are fewer than two ports, no levels, or more than 2^22 servers.
pub fn bcube(
    ports: u32,
    levels: u32,
    cable: (Rate, Span),
    crossing: Span,
) -> Result<Topology, TopologyError> {
    let impossible = |what: String, fix: &str| TopologyError::Impossible {
        what,
        fix: fix.into(),
    };
    if ports < 2 || levels == 0 || levels > MOST_LEVELS {
        return Err(impossible(
            format!("BCube with {levels} levels of switches with {ports} ports"),
            "use at least 2 ports and 1 to 22 levels",
        ));
    }
    let servers = ports
        .checked_pow(levels)
        .filter(|&servers| servers <= 1 << 22);
    let Some(servers) = servers else {
        return Err(impossible(
            format!("BCube with {ports}^{levels} servers"),
            "use at most 4194304",
        ));
    };
    let shape = Shape {
        ports,
        levels,
        servers,
    };
    let (rate, delay) = cable;
    let link = |a, b, delay| Cable::new([a, b], (rate, delay));
    let mut cables = Vec::new();
    for server in 0..servers {
        for level in 0..levels {
            cables.push(link(NodeId(server), shape.relay(server, level), crossing));
        }
    }
    for server in 0..servers {
        for level in 0..levels {
            let relay = shape.relay(server, level);
            cables.push(link(relay, shape.switch(server, level), delay));
            for other in level + 1..levels {
                cables.push(link(relay, shape.relay(server, other), crossing));
            }
        }
    }
    let topology = Topology {
        summary: format!(
            "BCube: {servers} servers with {levels} ports each, {} switches of {ports} ports",
            levels * shape.switches_of_level()
        ),
        hosts: servers,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: shape.switches(),
        cables,
    };
    Ok(topology.split_hosts())
}

/// The numbers of a BCube, before hosts are split into NICs.
struct Shape {
    ports: u32,
    levels: u32,
    servers: u32,
}

impl Shape {
    fn switches_of_level(&self) -> u32 {
        self.servers / self.ports
    }

    /// The relay of a server's port.
    fn relay(&self, server: u32, level: u32) -> NodeId {
        NodeId(self.servers + server * self.levels + level)
    }

    /// The switch that a server's port is on. Switches of a level are numbered by the digits of their servers without the digit of the
    /// level.
    fn switch(&self, server: u32, level: u32) -> NodeId {
        let low = self.ports.pow(level);
        let number = server / (low * self.ports) * low + server % low;
        let relays = self.servers * self.levels;
        NodeId(self.servers + relays + level * self.switches_of_level() + number)
    }

    fn switches(&self) -> Vec<SwitchSpec> {
        let of_server = |server| {
            let levels = 0..self.levels;
            levels.map(move |level| SwitchSpec::new(format!("relay{server}.{level}"), 0))
        };
        let of_level = |level| {
            let numbers = 0..self.switches_of_level();
            numbers.map(move |number| SwitchSpec::new(format!("level{level}.{number}"), 1))
        };
        let relays = (0..self.servers).flat_map(of_server);
        relays.chain((0..self.levels).flat_map(of_level)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LinkId, Routes};
    use super::*;
    use clearway_units::HostId;

    fn of_the_paper() -> Topology {
        let gbps = Rate::from_gbps(10);
        bcube(3, 2, (gbps, Span::from_us(2)), Span::from_us(1)).unwrap()
    }

    /// Names of the neighbours of a node.
    fn neighbours(topology: &Topology, name: &str) -> Vec<String> {
        let ends = topology
            .links_up()
            .map(|link: LinkId| topology.link_ends(link));
        let from_here = ends.filter(|(from, _)| topology.node_name(*from) == name);
        from_here.map(|(_, to)| topology.node_name(to)).collect()
    }

    #[test]
    fn servers_are_on_the_switches_of_their_digits() {
        let topology = of_the_paper();
        assert_eq!(topology.machines(), 9);
        assert_eq!(topology.hosts, 18);
        assert_eq!(topology.switches.len(), 18 + 6);
        // Server 5 has the digits 1 and 2: it shares a switch with 3 and 4, and one with 2 and 8.
        assert_eq!(
            neighbours(&topology, "level0.1"),
            ["relay3.0", "relay4.0", "relay5.0"]
        );
        assert_eq!(
            neighbours(&topology, "level1.2"),
            ["relay2.1", "relay5.1", "relay8.1"]
        );
        let of_relay = neighbours(&topology, "relay5.1");
        assert_eq!(of_relay, ["host5.1", "relay5.0", "level1.2"]);
    }

    #[test]
    fn digits_are_corrected_one_after_the_other() {
        let topology = of_the_paper();
        let paths = Routes::compute(&topology).unwrap().paths;
        let nic = |server: u32, level: usize| topology.nics_of(HostId(server)).nth(level).unwrap();
        let hops = |from, to| paths.between(from, to).hops;
        // One digit: NIC, relay, switch, relay, NIC.
        assert_eq!(hops(nic(0, 0), nic(1, 0)), 4);
        assert_eq!(hops(nic(0, 1), nic(3, 1)), 4);
        // Two digits: over the two relays of the server in between, in either order.
        assert_eq!(hops(nic(0, 0), nic(4, 1)), 7);
        assert_eq!(hops(nic(0, 1), nic(4, 0)), 7);
        // From the other NIC, or to it, it is farther.
        assert_eq!(hops(nic(0, 0), nic(4, 0)), 8);
    }

    #[test]
    fn three_levels_have_three_first_steps() {
        let gbps = Rate::from_gbps(10);
        let topology = bcube(2, 3, (gbps, Span::from_us(1)), Span::from_us(1)).unwrap();
        assert_eq!((topology.machines(), topology.hosts), (8, 24));
        let paths = Routes::compute(&topology).unwrap().paths;
        let nics = |server| topology.nics_of(HostId(server)).collect::<Vec<_>>();
        let mut shortest = 0;
        for from in nics(0) {
            for to in nics(7) {
                shortest += u32::from(paths.between(from, to).hops == 10);
            }
        }
        assert_eq!(shortest, 6, "first and last step differ");
    }

    #[test]
    fn impossible_cubes_are_refused() {
        let link = (Rate::from_gbps(10), Span::from_us(1));
        for (ports, levels) in [(1, 2), (3, 0), (3, 23), (3000, 3)] {
            let error = bcube(ports, levels, link, Span::from_us(1)).unwrap_err();
            assert!(error.to_string().contains("BCube"), "{error}");
        }
    }
}
