//! Detours by way of a third group of switches: Valiant's algorithm, and UGAL.
//!
//! The switch of the sender decides once for each packet, when it comes in from its host, and writes the group onto it
//! ([`Packet::via`]). From there on it goes to the nearest switch of that group, which takes the mark away, and then to its receiver.
//! Numbers come from a stream for each link from a host, so that no order among links matters. A group that no way leads to any more is
//! forgotten where that shows.
//!
//! UGAL-L decides by the queues of this switch alone ("local"), with one drawn group to choose from and no bias (decision U28): a packet
//! goes directly if `q_min H_min <= q_val H_val` (Kim et al., ISCA 2008, §4.1), q being the bytes that wait at the egress port, H the links
//! of the way. The port is the one that ECMP picks; where switches choose ports by their queues, the one with the shortest queue.

use crate::topology::{
    AttachmentPoint, DetourHops, GroupRouting, NextHops, SwitchGroups, SwitchRoutes,
};
use clearway_transport::Packet;
use clearway_units::RandomStream;
use std::sync::Arc;

/// Decisions of a switch about detours.
#[derive(Debug)]
pub(crate) struct Detours {
    routing: GroupRouting,
    own: u16,
    groups: u16,
    group_of_host: Arc<[u16]>,
    /// By port: the numbers for packets that come from the host behind it.
    sources: Vec<Option<RandomStream>>,
    /// Lengths of the ways that UGAL weighs.
    hops: Option<Arc<DetourHops>>,
}

impl Detours {
    /// Detours of a switch of the group `own`; `sources` has a stream for each port that leads to a host, `hops` lengths for UGAL.
    pub(crate) fn new(
        groups: &SwitchGroups,
        own: u16,
        group_of_host: Arc<[u16]>,
        sources: Vec<Option<RandomStream>>,
        hops: Option<Arc<DetourHops>>,
    ) -> Self {
        Self {
            routing: groups.routing,
            own,
            groups: groups.count,
            group_of_host,
            sources,
            hops,
        }
    }

    /// True if decisions wait until queues are known: [`weigh`](Self::weigh) makes them.
    pub(super) fn is_weighed(&self) -> bool {
        self.routing == GroupRouting::Ugal
    }

    /// Decides about the detour of a packet that has come in at `port`, or ends it. `routes` are the present routes.
    pub(super) fn steer(&mut self, port: usize, packet: &mut Packet, routes: &SwitchRoutes) {
        let to = self.group_of_host[packet.dst.index()];
        if let Some(random) = &mut self.sources[port] {
            packet.via = match self.routing {
                GroupRouting::Valiant if to != self.own => {
                    third_group(random, self.groups, (self.own, to)).map_or(0, |via| via as u8 + 1)
                }
                GroupRouting::Minimal | GroupRouting::Valiant | GroupRouting::Ugal => 0,
            };
        }
        if let Some(via) = via(packet)
            && routes.towards_group(via).is_empty()
        {
            packet.via = 0;
        }
    }

    /// Decides about the detour of a packet that has come in at `port` for `to`. `bytes_towards` returns the bytes that wait on the way
    /// over some of this switch's ports. `routes` are the present routes.
    pub(super) fn weigh(
        &mut self,
        port: usize,
        packet: &mut Packet,
        (routes, to): (&SwitchRoutes, AttachmentPoint),
        mut bytes_towards: impl FnMut(&Packet, &[u16]) -> u64,
    ) {
        let to_group = self.group_of_host[packet.dst.index()];
        let (Some(random), Some(hops)) = (&mut self.sources[port], &self.hops) else {
            return;
        };
        if to_group == self.own {
            return;
        }
        let Some(via) = third_group(random, self.groups, (self.own, to_group)) else {
            return;
        };
        let (NextHops::Ports(direct), Some(from)) = (routes.next_hops(to), routes.own_group())
        else {
            return;
        };
        let detour = routes.towards_group(via);
        let is_better = match (direct, detour) {
            (_, []) => false,
            ([], _) => true,
            _ => {
                let queues = (bytes_towards(packet, direct), bytes_towards(packet, detour));
                hops.prefer_detour((from, to.group, via), queues)
            }
        };
        if is_better {
            packet.via = via as u8 + 1;
        }
    }
}

/// The group by way of which a packet takes a detour.
#[inline]
pub(super) fn via(packet: &Packet) -> Option<u16> {
    packet.via.checked_sub(1).map(u16::from)
}

/// Draws one of `groups` groups other than two.
fn third_group(random: &mut RandomStream, groups: u16, (a, b): (u16, u16)) -> Option<u16> {
    let others = groups.checked_sub(2).filter(|others| *others > 0)?;
    let mut drawn = random.below(others.into()) as u16;
    // In ascending order each step skips one of the two groups, so the draw is uniform over the others.
    for taken in [a.min(b), a.max(b)] {
        drawn += u16::from(drawn >= taken);
    }
    Some(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Purpose;

    #[test]
    fn third_groups_are_drawn_evenly() {
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        for pair in [(0, 1), (4, 2), (6, 0)] {
            let mut counts = [0u32; 7];
            for _ in 0..10_000 {
                counts[usize::from(third_group(&mut random, 7, pair).unwrap())] += 1;
            }
            for (group, count) in (0..).zip(counts) {
                let expected = if [pair.0, pair.1].contains(&group) {
                    0
                } else {
                    2000
                };
                // 5 sigma are 200.
                assert!(count.abs_diff(expected) < 200, "{pair:?} {counts:?}");
            }
        }
        assert_eq!(third_group(&mut random, 2, (0, 1)), None);
    }
}
