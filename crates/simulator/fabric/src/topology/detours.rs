//! Bounds of the paths that lead by way of a third group of switches.
//!
//! A detour has two legs: to the nearest switch of the third group, and from there to the receiver. There are too many to look at each, so
//! the bounds are taken leg by leg: for the first leg from a switch to any other group, for the second from any switch of another group to
//! the receiver's switch.

use super::equal_cost::{Bundle, faster_than_both};
use super::path_class::PathClass;
use super::{GroupRouting, Topology};

/// Bounds of a set of paths: one that is never slower than any, and one that is never faster for a packet of 1000 bytes.
type Bounds = Option<(PathClass, PathClass)>;

/// Bounds of all detours between switches with hosts.
pub(super) struct DetourBounds {
    /// Group of each switch; empty if there are no detours.
    group_of: Vec<u16>,
    /// The switches with hosts.
    attached: Vec<usize>,
    /// By switch with hosts.
    first_legs: Vec<Bounds>,
    /// Number of other groups that each switch with hosts reaches.
    reached: Vec<u16>,
    /// Number of groups.
    groups: u16,
    /// True if switches decide packet by packet.
    is_weighed: bool,
    /// By switch with hosts: in this order their trees are told.
    second_legs: Vec<Bounds>,
    /// Capacity of all links from each switch with hosts to other switches, in bit/s.
    capacities: Vec<u64>,
}

/// Bounds of the detours from one switch to another.
pub(super) struct Detour {
    pub(super) fastest: PathClass,
    pub(super) longest: PathClass,
    /// In bit/s.
    pub(super) capacity: u64,
    /// Some packets go directly: those whose third group cannot be reached, and with UGAL those for which less waits there.
    pub(super) is_optional: bool,
}

fn widened(bounds: Bounds, bundle: &Bundle) -> Bounds {
    let (Some(fastest), Some(longest)) = (bundle.bound(), bundle.longest()) else {
        return bounds;
    };
    Some(match bounds {
        None => (fastest, longest),
        Some((fast, long)) => (faster_than_both(fast, fastest), long.longer(longest)),
    })
}

impl DetourBounds {
    /// Bounds for the switches with hosts, before any path is known.
    pub(super) fn new(topology: &Topology, attached: &[usize]) -> Self {
        let groups = topology.detours();
        let mut capacities = vec![0u64; topology.switches.len()];
        let joined = topology.cables.iter().filter(|cable| cable.up);
        for cable in joined.filter(|_| groups.is_some()) {
            if let [Some(a), Some(b)] = cable.ends.map(|end| topology.switch_index(end)) {
                capacities[a] += cable.rate.as_bps();
                capacities[b] += cable.rate.as_bps();
            }
        }
        let attached = groups.map_or(Vec::new(), |_| attached.to_vec());
        Self {
            group_of: groups.map_or(Vec::new(), |groups| groups.of_switch.clone()),
            first_legs: vec![None; attached.len()],
            reached: vec![0; attached.len()],
            groups: groups.map_or(0, |groups| groups.count),
            is_weighed: groups.is_some_and(|groups| groups.routing == GroupRouting::Ugal),
            second_legs: Vec::new(),
            capacities: attached.iter().map(|&switch| capacities[switch]).collect(),
            attached,
        }
    }

    /// Takes note of the paths from each switch to the nearest one of a group.
    pub(super) fn add_first_legs(&mut self, group: u16, bundles: &[Bundle]) {
        for (place, &switch) in self.attached.iter().enumerate() {
            if self.group_of[switch] != group {
                let bounds = &mut self.first_legs[place];
                *bounds = widened(*bounds, &bundles[switch]);
                self.reached[place] += u16::from(!bundles[switch].is_empty());
            }
        }
    }

    /// Takes note of the paths from each switch to the next one with hosts, `root`.
    pub(super) fn add_second_legs(&mut self, root: usize, bundles: &[Bundle]) {
        if self.attached.is_empty() {
            return;
        }
        let own = self.group_of[root];
        let switches = bundles.iter().zip(&self.group_of);
        let others = switches.filter(|(_, group)| **group != own);
        let bounds = others.fold(None, |bounds, (bundle, _)| widened(bounds, bundle));
        self.second_legs.push(bounds);
    }

    /// The detours from one switch with hosts to another, by their places among these; `None` if packets go there directly.
    pub(super) fn between(&self, from: usize, to: usize) -> Option<Detour> {
        let group = |place: usize| self.group_of[self.attached[place]];
        if self.attached.is_empty() || group(from) == group(to) {
            return None;
        }
        let (fast, long) = self.first_legs[from]?;
        let (fastest, longest) = self.second_legs[to]?;
        Some(Detour {
            // Which leg has the slowest link is open: nothing is sure to come before it.
            fastest: PathClass {
                before_bottleneck: 0,
                ..fast.then(fastest)
            },
            longest: long.then(longest),
            capacity: self.capacities[from],
            is_optional: self.is_weighed || self.reached[from] + 1 < self.groups,
        })
    }
}
