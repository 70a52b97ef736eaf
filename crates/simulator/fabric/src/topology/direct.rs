//! Direct networks: hosts that are joined with each other and forward packets of others, in one or several dimensions.
//!
//! A host has a coordinate in each dimension; the first one changes fastest with the number of the host. Hosts that differ in one
//! coordinate alone are joined by the links of that dimension. With a [router](Topology::with_routers) in each host that has several links,
//! a k-ary n-cube (Dally, IEEE Transactions on Computers 1990) is `n` dimensions of [`DimensionLinks::Ring`], a mesh `n` of
//! [`DimensionLinks::Line`]. Dimensions of different kinds are the networks of ASTRA-sim 2.0 (Won et al., ISPASS 2023, §IV-B).
//!
//! With dimension-order routing a packet corrects its coordinates one after the other, in the order of dimensions. On a mesh, links with
//! flow control then cannot wait for each other in a cycle (Dally and Seitz 1987). On a ring of four hosts or more they can, because it is
//! a cycle by itself: that takes two [virtual channels](super::virtual_channels) on each link. The dateline of a ring is the cable from its
//! last host to its first.

use super::{Cable, NodeId, SwitchSpec, Topology, TopologyError};
use clearway_units::{Parameter, Rate, Span, Value, ValueDomain};

clearway_units::choices! {
    /// Links between the hosts that differ in one coordinate alone.
    pub enum DimensionLinks {
        /// Each to the next, and the last to the first.
        Ring = "ring",
        /// Each to the next.
        Line = "line",
        /// Each to each.
        FullyConnected = "fully-connected",
        /// Each to a switch.
        Switch = "switch",
    }
}

clearway_units::choices! {
    /// Choice among shortest paths.
    pub enum DirectRouting {
        /// All of them, as ECMP or the transport spreads packets.
        Shortest = "shortest",
        /// The one that goes through the dimensions in order.
        DimensionOrder = "dimension-order",
    }
}

/// Virtual channels of each lossless class on each link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VirtualChannels {
    /// One: links of a ring can wait for each other.
    #[default]
    One,
    /// Two, with a dateline on each ring.
    Two,
}

impl Parameter for VirtualChannels {
    fn expected() -> String {
        "1 or 2".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Whole { least: 1, most: 2 }
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(1) => Some(Self::One),
            Value::Integer(2) => Some(Self::Two),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        Value::Integer(match self {
            Self::One => 1,
            Self::Two => 2,
        })
    }
}

/// One dimension of a direct network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// Number of hosts.
    pub size: u32,
    /// Links between them.
    pub links: DimensionLinks,
    /// Rate of each link, in each direction.
    pub rate: Rate,
    /// Delay from host to host; with a switch, from host to switch.
    pub delay: Span,
}

/// The most hosts.
const MOST_HOSTS: u32 = 1 << 22;
/// The most dimensions: as many of two hosts as there can be hosts.
const MOST_DIMENSIONS: usize = 22;

/// Builds a direct network.
///
/// # Errors
/// If there is no dimension or more than 22, a dimension has no host, there are more than 2^22 hosts, or a delay is less than 3 ns. If
/// there are two virtual channels, and packets take several dimensions in any order.
pub fn direct_network(
    dimensions: &[Dimension],
    routing: DirectRouting,
    channels: VirtualChannels,
) -> Result<Topology, TopologyError> {
    let sizes: Vec<u32> = dimensions.iter().map(|one| one.size).collect();
    let impossible = |what: String, fix: &str| TopologyError::Impossible {
        what,
        fix: fix.into(),
    };
    if sizes.is_empty() || sizes.len() > MOST_DIMENSIONS || sizes.contains(&0) {
        return Err(impossible(
            format!("{sizes:?} are no sizes of dimensions"),
            "use 1 to 22 dimensions of at least one host each",
        ));
    }
    let hosts = sizes
        .iter()
        .try_fold(1u32, |all, size| all.checked_mul(*size))
        .filter(|&hosts| hosts <= MOST_HOSTS);
    let Some(hosts) = hosts else {
        return Err(impossible(
            format!("dimensions of {sizes:?} hosts"),
            "use at most 4194304 hosts",
        ));
    };
    check_channels(&sizes, routing, channels)?;
    let mut topology = Topology {
        summary: summary(dimensions, hosts),
        hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: Vec::new(),
        cables: Vec::new(),
    };
    let mut stride = 1;
    for (number, dimension) in dimensions.iter().enumerate() {
        let order = match routing {
            DirectRouting::Shortest => 0,
            DirectRouting::DimensionOrder => number as u8,
        };
        for first in (0..hosts).filter(|host| host / stride % dimension.size == 0) {
            let row = Row {
                first,
                stride,
                number,
                order,
                has_dateline: channels == VirtualChannels::Two,
            };
            row.join(&mut topology, dimension);
        }
        stride *= dimension.size;
    }
    let mut cables = vec![0u32; hosts as usize];
    for end in topology.cables.iter().flat_map(|cable| cable.ends) {
        if let Some(own) = cables.get_mut(end.0 as usize) {
            *own += 1;
        }
    }
    let has_host_links = dimensions
        .iter()
        .any(|one| one.size > 1 && one.links != DimensionLinks::Switch);
    topology.with_routers(|host| has_host_links || cables[host as usize] > 1)
}

/// Checks that packets take several dimensions in order where there are two virtual channels.
fn check_channels(
    sizes: &[u32],
    routing: DirectRouting,
    channels: VirtualChannels,
) -> Result<(), TopologyError> {
    let wide = sizes.iter().filter(|size| **size > 1).count();
    let in_any_order = routing == DirectRouting::Shortest && wide > 1;
    if !in_any_order || channels == VirtualChannels::One {
        return Ok(());
    }
    Err(TopologyError::Impossible {
        what: format!("two virtual channels on {wide} dimensions that packets take in any order"),
        fix: "use dimension-order routing, with which virtual channels prevent deadlock".into(),
    })
}

/// Hosts that differ in one coordinate alone.
struct Row {
    first: u32,
    /// Difference of the numbers of neighbours.
    stride: u32,
    /// Number of the dimension.
    number: usize,
    order: u8,
    /// A ring has a dateline.
    has_dateline: bool,
}

impl Row {
    fn host(&self, place: u32) -> NodeId {
        NodeId(self.first + place * self.stride)
    }

    fn join(&self, topology: &mut Topology, dimension: &Dimension) {
        let size = dimension.size;
        if size < 2 {
            return;
        }
        let switch = topology.switch_node(topology.switches.len());
        let mut link = |a: NodeId, b: NodeId| {
            topology.cables.push(Cable {
                order: self.order,
                ..Cable::new([a, b], (dimension.rate, dimension.delay))
            });
        };
        match dimension.links {
            DimensionLinks::Line => {
                (1..size).for_each(|place| link(self.host(place - 1), self.host(place)));
            }
            DimensionLinks::Ring => {
                (1..size).for_each(|place| link(self.host(place - 1), self.host(place)));
                // A ring of two hosts is one link.
                if size > 2 {
                    link(self.host(size - 1), self.host(0));
                    if let Some(last) = topology.cables.last_mut() {
                        last.dateline = self.has_dateline;
                    }
                }
            }
            DimensionLinks::FullyConnected => {
                for place in 1..size {
                    (0..place).for_each(|other| link(self.host(other), self.host(place)));
                }
            }
            DimensionLinks::Switch => {
                (0..size).for_each(|place| link(self.host(place), switch));
                let name = format!("switch{}.{}", self.number, self.first);
                topology.switches.push(SwitchSpec::new(name, 1));
            }
        }
    }
}

fn summary(dimensions: &[Dimension], hosts: u32) -> String {
    let name = |one: &Dimension| format!("{} of {}", one.links.name(), one.size);
    let names: Vec<String> = dimensions.iter().map(name).collect();
    format!("direct network: {hosts} hosts, {}", names.join(" x "))
}

#[cfg(test)]
mod tests {
    use super::super::{NextHops, Routes};
    use super::*;
    use clearway_units::HostId;

    fn dimension(links: DimensionLinks, size: u32) -> Dimension {
        Dimension {
            size,
            links,
            rate: Rate::from_gbps(100),
            delay: Span::from_us(1),
        }
    }

    /// Links that a packet from one host to another passes, without those between hosts and their routers, and the delay.
    fn distance(routes: &Routes, from: u32, to: u32) -> (u32, Span) {
        let path = routes.paths.between(HostId(from), HostId(to));
        (path.hops - 2, path.propagation)
    }

    #[test]
    fn distances_are_those_of_the_papers() {
        use DimensionLinks::{FullyConnected, Line, Ring};
        for (dimensions, farthest) in [
            (vec![(Ring, 8)], 4),
            (vec![(Ring, 2)], 1),
            (vec![(Line, 8)], 7),
            (vec![(FullyConnected, 8)], 1),
            (vec![(Ring, 4), (Ring, 4), (Ring, 4)], 6),
            (vec![(Line, 3), (Line, 4)], 5),
            (vec![(Ring, 4), (FullyConnected, 3), (Line, 2)], 4),
        ] {
            let dimensions: Vec<Dimension> = dimensions
                .into_iter()
                .map(|(links, size)| dimension(links, size))
                .collect();
            for routing in [DirectRouting::Shortest, DirectRouting::DimensionOrder] {
                let topology = direct_network(&dimensions, routing, VirtualChannels::One).unwrap();
                let routes = Routes::compute(&topology).unwrap();
                let all = (0..topology.hosts).flat_map(|a| (0..a).map(move |b| (a, b)));
                let most = all.map(|(a, b)| distance(&routes, a, b).0).max();
                assert_eq!(most, Some(farthest), "{}", topology.summary);
                assert_eq!(distance(&routes, 0, 1), (1, Span::from_us(1)));
            }
        }
    }

    /// The hosts whose routers a packet may pass between two hosts, in the order of breadth.
    fn passed(topology: &Topology, routes: &Routes, from: u32, to: u32) -> Vec<u32> {
        let ports = topology.ports();
        let (first, target) = (topology.hosts, routes.attachments[to as usize]);
        let mut passed = vec![from];
        let mut next = 0;
        while let Some(&at) = passed.get(next) {
            next += 1;
            // Router of host n: without other switches, switch n.
            let own = &routes.switches[at as usize];
            if let NextHops::Ports(hops) = own.next_hops(target) {
                for &port in hops {
                    let link = ports[(first + at) as usize][usize::from(port)];
                    let beyond = topology.link_ends(link).1.0 - first;
                    if !passed.contains(&beyond) {
                        passed.push(beyond);
                    }
                }
            }
        }
        passed
    }

    #[test]
    fn dimension_order_corrects_one_coordinate_after_the_other() {
        let sides = [dimension(DimensionLinks::Line, 4); 2];
        let paths = |routing| {
            let topology = direct_network(&sides, routing, VirtualChannels::One).unwrap();
            let routes = Routes::compute(&topology).unwrap();
            passed(&topology, &routes, 0, 10)
        };
        assert_eq!(paths(DirectRouting::DimensionOrder), [0, 1, 2, 6, 10]);
        let mut all = paths(DirectRouting::Shortest);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 4, 5, 6, 8, 9, 10]);
    }

    #[test]
    fn routers_have_the_cables_of_their_hosts() {
        let dimensions = [
            dimension(DimensionLinks::Ring, 3),
            dimension(DimensionLinks::Switch, 2),
        ];
        let topology =
            direct_network(&dimensions, DirectRouting::Shortest, VirtualChannels::One).unwrap();
        // Two rings of three links, three switches of two, and six hosts with a router each.
        assert_eq!(topology.cables.len(), 6 + 6 + 6);
        assert_eq!(topology.switches.len(), 3 + 6);
        let own = &topology.cables[12];
        assert_eq!((own.ends[0], own.rate), (NodeId(0), Rate::from_gbps(300)));
        assert_eq!(own.delay, Span::from_ns(100));
        assert_eq!(topology.cables[0].delay, Span::from_ns(800));
        let single = [dimension(DimensionLinks::Switch, 4)];
        let single =
            direct_network(&single, DirectRouting::Shortest, VirtualChannels::One).unwrap();
        assert_eq!(
            single.switches.len(),
            1,
            "hosts on one switch do not forward"
        );
    }

    #[test]
    fn two_channels_need_dimension_order() {
        let build = |sizes: &[u32], routing| {
            let sizes = sizes.iter();
            let rings = sizes.map(|size| dimension(DimensionLinks::Ring, *size));
            let rings: Vec<Dimension> = rings.collect();
            direct_network(&rings, routing, VirtualChannels::Two)
        };
        let refused = build(&[4, 3], DirectRouting::Shortest).unwrap_err();
        assert!(refused.to_string().contains("dimension-order routing"));
        let datelines = |built: Result<Topology, TopologyError>| {
            let cables = built.unwrap().cables.into_iter();
            cables.filter(|cable| cable.dateline).count()
        };
        // One in each row of each ring that closes.
        assert_eq!(
            datelines(build(&[4, 3], DirectRouting::DimensionOrder)),
            3 + 4
        );
        assert_eq!(datelines(build(&[4, 2], DirectRouting::DimensionOrder)), 2);
        assert_eq!(datelines(build(&[4, 1], DirectRouting::Shortest)), 1);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let refused = |sizes: &[u32]| {
            let dimensions = sizes
                .iter()
                .map(|&size| dimension(DimensionLinks::Ring, size));
            let dimensions: Vec<Dimension> = dimensions.collect();
            direct_network(&dimensions, DirectRouting::Shortest, VirtualChannels::One)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused(&[]),
            "[] are no sizes of dimensions; use 1 to 22 dimensions of at least one host each"
        );
        assert!(refused(&[4, 0]).starts_with("[4, 0] are no sizes"));
        assert!(refused(&[65536, 65536]).contains("at most 4194304 hosts"));
        let near = |ns| {
            let delay = Span::from_ns(ns);
            let links = dimension(DimensionLinks::Ring, 3);
            direct_network(
                &[Dimension { delay, ..links }],
                DirectRouting::Shortest,
                VirtualChannels::One,
            )
        };
        assert_eq!(
            near(2).unwrap_err().to_string(),
            "a link of host 1, which forwards, with a delay of 2ns; use at least 3ns: a tenth, and at least 1ns, lies inside each host"
        );
        let nearest = near(3).unwrap();
        let routes = Routes::compute(&nearest).unwrap();
        assert_eq!(distance(&routes, 0, 1), (1, Span::from_ns(3)));
    }
}
