//! Lengths of direct ways and of detours, in links between switches, by which UGAL weighs queues.
//!
//! Where a detour enters the third group is not known when it is chosen: its second leg counts as long as the mean of those from all
//! switches of this group. Lengths are those with all links up, also while some are down.

use super::SwitchGroups;
use super::equal_cost::Bundle;

/// Lengths of the ways between switches with hosts, by their places among these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetourHops {
    /// The switches with hosts.
    attached: Vec<usize>,
    /// `direct[to * attached + from]`.
    direct: Vec<u8>,
    /// `first_legs[group * attached + from]`, to the nearest switch of the group.
    first_legs: Vec<u8>,
    /// `second_legs[to * groups + group]`: the sum over the switches of the group that a way leads from, and their number.
    second_legs: Vec<(u32, u32)>,
    /// Group of each switch.
    group_of: Vec<u16>,
    /// Number of groups.
    groups: usize,
}

fn hops(bundle: &Bundle) -> u32 {
    bundle.longest().map_or(0, |path| path.hops)
}

fn hops_of(switches: &[usize], bundles: &[Bundle]) -> impl Iterator<Item = u8> {
    let hops = |&switch: &usize| hops(&bundles[switch]).min(u8::MAX.into()) as u8;
    switches.iter().map(hops)
}

impl DetourHops {
    /// Lengths in a fabric of these groups, whose hosts hang on the switches `attached`, before any is known.
    pub(super) fn new(groups: &SwitchGroups, attached: &[usize]) -> Self {
        Self {
            attached: attached.to_vec(),
            direct: Vec::new(),
            first_legs: Vec::new(),
            second_legs: Vec::new(),
            group_of: groups.of_switch.clone(),
            groups: groups.count.into(),
        }
    }

    /// Takes note of the paths from each switch to the next one with hosts.
    pub(super) fn add_destination(&mut self, bundles: &[Bundle]) {
        self.direct.extend(hops_of(&self.attached, bundles));
        let first = self.second_legs.len();
        self.second_legs.resize(first + self.groups, (0, 0));
        for (bundle, group) in bundles.iter().zip(&self.group_of) {
            let (sum, count) = &mut self.second_legs[first + usize::from(*group)];
            *sum += hops(bundle);
            *count += u32::from(!bundle.is_empty());
        }
    }

    /// Takes note of the paths from each switch to the nearest one of the next group.
    pub(super) fn add_group(&mut self, bundles: &[Bundle]) {
        self.first_legs.extend(hops_of(&self.attached, bundles));
    }

    /// True if a packet `from` a switch with hosts `to` another goes by way of the group `via`: if its queue towards there, times the links
    /// of the detour, is less than its queue towards the receiver, times the links of the direct way.
    pub(crate) fn prefer_detour(
        &self,
        (from, to, via): (u16, u16, u16),
        (direct, detour): (u64, u64),
    ) -> bool {
        let [from, to, via] = [from, to, via].map(usize::from);
        let attached = self.attached.len();
        let first = u128::from(self.first_legs[via * attached + from]);
        let (sum, count) = self.second_legs[to * self.groups + via];
        let (sum, count) = (u128::from(sum), u128::from(count));
        let direct_hops = u128::from(self.direct[to * attached + from]);
        u128::from(direct) * direct_hops * count > u128::from(detour) * (first * count + sum)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DragonflyLinks, GroupRouting, Routes, dragonfly};
    use clearway_units::{Rate, Span};

    /// Groups of two routers that all have hosts, each with one link to each other router of the fabric's next groups.
    #[test]
    fn queues_are_weighed_by_the_links_of_their_ways() {
        let link = (Rate::from_gbps(400), Span::from_us(1));
        let links = DragonflyLinks {
            groups: 3,
            global_links: 1,
            host: link,
            local: link,
            global: link,
            routing: GroupRouting::Ugal,
        };
        let topology = dragonfly(2, 1, &links).unwrap();
        let routes = Routes::compute(&topology).unwrap();
        let hops = routes.detour_hops.expect("UGAL weighs");
        // Router 0 of group 0 has the link to router 1 of group 1; router 1 that to router 0 of group 2.
        let (from, to, via) = (0, 3, 2);
        // Directly 1 link; by way of group 2: 2 links to its router 0, then 3 from there or 2 from router 1: 2 + 2.5 in the mean.
        assert!(!hops.prefer_detour((from, to, via), (450, 100)));
        assert!(hops.prefer_detour((from, to, via), (451, 100)));
        assert!(
            !hops.prefer_detour((from, to, via), (0, 0)),
            "a tie is direct"
        );
        // To the other router of group 1 it is 2 links, and 2 + 1.5.
        assert!(!hops.prefer_detour((from, 2, via), (175, 100)));
        assert!(hops.prefer_detour((from, 2, via), (176, 100)));
        let minimal = DragonflyLinks {
            routing: GroupRouting::Valiant,
            ..links
        };
        let routes = Routes::compute(&dragonfly(2, 1, &minimal).unwrap()).unwrap();
        assert_eq!(routes.detour_hops, None, "nobody asks");
    }
}
