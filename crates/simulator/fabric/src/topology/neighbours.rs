//! Neighbours of switches, as searches for routes go along them.

use super::path_class::PathClass;
use super::{LinkId, Topology};
use rustc_hash::FxHashMap;

/// Cost of a link between groups of switches, in links within a group: minimal routes take as few of the former as possible.
const GLOBAL_COST: u32 = 1 << 12;

/// A neighbour of a switch: its port there, the neighbour, and the kind of the link that leads to it. Small, because every search
/// looks at all of them.
pub(super) struct Hop {
    pub(super) port: u16,
    /// Leads to another group of switches.
    pub(super) is_global: bool,
    /// See [`Cable::order`](super::Cable::order).
    pub(super) order: u8,
    pub(super) kind: u32,
    pub(super) neighbour: u32,
}

impl Hop {
    pub(super) fn cost(&self) -> u32 {
        if self.is_global { GLOBAL_COST } else { 1 }
    }
}

/// The neighbours of each switch over the links that `is_used` says yes to, and the lengths of these links, each once.
pub(super) fn switch_neighbours(
    topology: &Topology,
    ports: &[Vec<LinkId>],
    is_used: impl Fn(LinkId) -> bool,
) -> (Vec<Vec<Hop>>, Vec<PathClass>) {
    let mut kinds = Vec::new();
    let mut known: FxHashMap<PathClass, u32> = FxHashMap::default();
    let mut kind_of = |link| {
        let class = PathClass::of_link(topology, link);
        *known.entry(class).or_insert_with(|| {
            kinds.push(class);
            kinds.len() as u32 - 1
        })
    };
    let mut of_switch = |index: usize| {
        let links = ports[topology.switch_node(index).0 as usize]
            .iter()
            .enumerate();
        links
            .filter(|(_, link)| is_used(**link))
            .filter_map(|(port, &link)| {
                let neighbour = topology.switch_index(topology.link_ends(link).1)?;
                Some(Hop {
                    port: port as u16,
                    is_global: topology.groups.as_ref().is_some_and(|groups| {
                        groups.of_switch[index] != groups.of_switch[neighbour]
                    }),
                    order: topology.cables[link.cable()].order,
                    kind: kind_of(link),
                    neighbour: neighbour as u32,
                })
            })
            .collect()
    };
    let hops = (0..topology.switches.len()).map(&mut of_switch).collect();
    (hops, kinds)
}
