//! Two virtual channels on each link of a ring or torus, which keep paused links from waiting for each other (Dally and Seitz, IEEE
//! Transactions on Computers 1987; Dally, ibid. 1990).
//!
//! A virtual channel is a class with a queue and pauses of its own: classes 1 to 3 are the first channel, class 4 + n is the second channel
//! of class n. Only lossless classes change channels, because a class that drops waits for nobody. One cable of each ring is its *dateline*
//! ([`Cable::dateline`](super::Cable::dateline)). A router that sends a packet on
//!
//! 1. puts it on the first channel, unless it came in over a cable of the same dimension;
//! 2. puts it on the second channel, if it leaves over a dateline.
//!
//! A host's own cable has no dimension. So packets leave hosts and reach them on the first channel, in the class of their flow.
//!
//! # Why nothing waits in a cycle
//! A packet that waits on one channel waits for the next channel of its path, and hosts take all packets. Deadlock needs a cycle of such
//! channels. With dimension order no path returns to an earlier dimension, so a cycle would lie in one direction of one ring, and pass its
//! dateline. There the path changes from the first channel to the second one. No link leads back: the second channel ends with the
//! dimension. And no packet comes to the dateline on the second channel, because a shortest path passes it once at most. This argument
//! needs shortest paths of the whole fabric: around links that are down, paths may return to an earlier dimension.

use super::{LinkId, Topology};
use clearway_transport::{Class, ClassSet};

/// Classes of the first channel.
const FIRST: usize = 4;

/// The cable at a port of a router, for the choice of virtual channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelPort {
    /// `None` for the cable of a host.
    dimension: Option<u8>,
    dateline: bool,
}

impl ChannelPort {
    /// The port at either end of a link.
    pub(crate) fn of_link(topology: &Topology, link: LinkId) -> Self {
        let cable = &topology.cables[link.cable()];
        let is_of_host = cable.ends.iter().any(|end| topology.is_host(*end));
        Self {
            dimension: (!is_of_host).then_some(cable.order),
            dateline: cable.dateline,
        }
    }

    /// Class in which a packet goes on by port `to`, that came in by this port in `class`.
    pub(crate) fn class_towards(self, to: Self, class: Class) -> Class {
        let stays = self.dimension.is_some() && self.dimension == to.dimension;
        match to.dateline {
            true => second_channel(class),
            false if stays => class,
            false => first_channel(class),
        }
    }
}

/// Class of a packet's flow, whichever channel the packet is on.
pub(crate) fn first_channel(class: Class) -> Class {
    Class::new((class.index() % FIRST) as u8).unwrap_or(class)
}

/// The second channel of a class.
fn second_channel(class: Class) -> Class {
    Class::new((class.index() % FIRST + FIRST) as u8).unwrap_or(class)
}

/// Both channels of those of `classes` that are data of the first channel.
pub(crate) fn both_channels(classes: ClassSet) -> ClassSet {
    let first = (1..FIRST as u8).filter_map(Class::new);
    let first = first.filter(|class| classes.contains(*class));
    first.fold(ClassSet::EMPTY, |all, class| {
        let own = ClassSet::only(class).union(ClassSet::only(second_channel(class)));
        all.union(own)
    })
}

/// Those of `classes` that are channels of the highest class of a flow.
pub(crate) fn channels_of_highest(classes: ClassSet) -> ClassSet {
    let first = (1..FIRST as u8).rev().filter_map(Class::new);
    let mut own = first.map(|class| {
        let both = ClassSet::only(class).union(ClassSet::only(second_channel(class)));
        classes.without(classes.without(both))
    });
    own.find(|own| !own.is_empty()).unwrap_or(ClassSet::EMPTY)
}

impl Topology {
    /// True if lossless classes have two virtual channels: if any cable is a [dateline](super::Cable::dateline).
    pub fn has_virtual_channels(&self) -> bool {
        self.cables.iter().any(|cable| cable.dateline)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Dimension, DimensionLinks, DirectRouting, NextHops, Routes, VirtualChannels, direct_network,
    };
    use super::*;
    use clearway_units::{Rate, Span};
    use std::collections::{BTreeMap, BTreeSet};

    /// A virtual channel of a link.
    type Channel = (LinkId, Class);
    /// The channels for which packets on a channel may wait.
    type Dependencies = BTreeMap<Channel, BTreeSet<Channel>>;

    fn torus(sizes: &[u32], channels: VirtualChannels) -> Topology {
        let dimension = |&size: &u32| Dimension {
            size,
            links: DimensionLinks::Ring,
            rate: Rate::from_gbps(100),
            delay: Span::from_us(1),
        };
        let dimensions: Vec<Dimension> = sizes.iter().map(dimension).collect();
        direct_network(&dimensions, DirectRouting::DimensionOrder, channels).unwrap()
    }

    /// Dependencies of all packets of the class of data, over each path that routes allow. The links into hosts are among them.
    fn dependencies(topology: &Topology) -> Dependencies {
        let routes = Routes::compute(topology).unwrap();
        let ports = topology.ports();
        let mut all = Dependencies::new();
        for dst in 0..topology.hosts as usize {
            let sources = ports[..topology.hosts as usize].iter();
            let mut left: Vec<Channel> = sources.map(|own| (own[0], Class::DATA)).collect();
            let mut seen: BTreeSet<Channel> = left.iter().copied().collect();
            while let Some((link, class)) = left.pop() {
                let node = topology.link_ends(link).1;
                let Some(switch) = topology.switch_index(node) else {
                    continue;
                };
                let hops = match routes.switches[switch].next_hops(routes.attachments[dst]) {
                    NextHops::Host(port) => vec![port],
                    NextHops::Ports(ports) => ports.to_vec(),
                };
                let from = ChannelPort::of_link(topology, link);
                for port in hops {
                    let next = ports[node.0 as usize][usize::from(port)];
                    let to = ChannelPort::of_link(topology, next);
                    let beyond = match topology.has_virtual_channels() {
                        true => from.class_towards(to, class),
                        false => class,
                    };
                    let next = (next, beyond);
                    all.entry((link, class)).or_default().insert(next);
                    if seen.insert(next) {
                        left.push(next);
                    }
                }
            }
        }
        all
    }

    /// True if some channels wait for each other: if channels are left after those that wait for none of the rest have been taken away,
    /// again and again.
    fn has_cycle(mut waiting: Dependencies) -> bool {
        loop {
            let channels: BTreeSet<Channel> = waiting.keys().copied().collect();
            waiting.retain(|_, next| !next.is_disjoint(&channels));
            if waiting.len() == channels.len() {
                return !waiting.is_empty();
            }
        }
    }

    #[test]
    fn channels_of_rings_and_tori_wait_in_no_cycle() {
        for sizes in [
            &[2][..],
            &[3],
            &[4],
            &[5],
            &[8],
            &[9],
            &[4, 4],
            &[5, 3],
            &[2, 7],
            &[3, 3, 3],
            &[4, 2, 5],
            &[4, 4, 4],
        ] {
            let one = dependencies(&torus(sizes, VirtualChannels::One));
            let is_long = sizes.iter().any(|size| *size > 3);
            assert_eq!(has_cycle(one), is_long, "{sizes:?}");
            let two = dependencies(&torus(sizes, VirtualChannels::Two));
            assert!(!has_cycle(two), "{sizes:?}");
        }
    }

    #[test]
    fn hosts_receive_the_class_of_the_flow() {
        let topology = torus(&[5, 4], VirtualChannels::Two);
        let into_host = |(link, _): &&Channel| topology.is_host(topology.link_ends(*link).1);
        let all = dependencies(&topology);
        let channels: BTreeSet<Channel> = all.into_values().flatten().collect();
        let mut received = channels.iter().filter(into_host);
        assert!(received.all(|(_, class)| *class == Class::DATA));
        let second = |(_, class): &&Channel| second_channel(Class::DATA) == *class;
        assert!(channels.iter().filter(second).count() > 20);
    }

    #[test]
    fn packets_change_channels_at_datelines_and_between_dimensions() {
        let port = |dimension, dateline| ChannelPort {
            dimension,
            dateline,
        };
        let host = port(None, false);
        let (x, x_dateline) = (port(Some(0), false), port(Some(0), true));
        let (y, y_dateline) = (port(Some(1), false), port(Some(1), true));
        for (from, to, class, beyond) in [
            (host, x, 2, 2),
            (host, x_dateline, 2, 6),
            (x, x, 2, 2),
            (x, x_dateline, 2, 6),
            (x_dateline, x, 6, 6),
            (x, x, 6, 6),
            (x, y, 6, 2),
            (x, y_dateline, 2, 6),
            (x_dateline, y, 6, 2),
            (x, host, 6, 2),
            (y_dateline, host, 7, 3),
            (host, host, 1, 1),
        ] {
            let [class, beyond] = [class, beyond].map(|number| Class::new(number).unwrap());
            assert_eq!(
                from.class_towards(to, class),
                beyond,
                "{from:?} {to:?} {class:?}"
            );
        }
    }

    #[test]
    fn sets_of_classes_have_both_channels() {
        let set = |numbers: &[u8]| {
            let classes = numbers.iter().filter_map(|number| Class::new(*number));
            classes.fold(ClassSet::EMPTY, |set, class| {
                set.union(ClassSet::only(class))
            })
        };
        assert_eq!(both_channels(set(&[1, 3, 4])), set(&[1, 5, 3, 7]));
        assert_eq!(channels_of_highest(set(&[1, 2, 5, 6])), set(&[2, 6]));
        assert_eq!(channels_of_highest(set(&[1, 7])), set(&[7]));
        assert_eq!(channels_of_highest(ClassSet::EMPTY), ClassSet::EMPTY);
    }
}
