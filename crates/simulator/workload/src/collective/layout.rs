//! Nodes on which the ranks of a collective are, and the order in which each channel goes through them.
//!
//! NCCL runs a collective over several channels, one for each NIC of a node at least, and gives each a part of the bytes. Here a channel is
//! a ring or a pair of trees over all ranks, node by node. Channel c enters the first node at its c-th rank, so that in a rail-optimised
//! network each channel has a separate rail:
//!
//! * A ring leaves a node by the rank before the one at which it came in, and comes into the next node on the same rail. So it goes through
//!   every second node the other way round, as NCCL exchanges the NICs of odd nodes to stay on rails. An odd number of nodes leaves one
//!   hop of each ring between rails.
//! * Trees enter every node at the same rank.

/// Ranks of a collective by node. Nodes and ranks are in the order of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    ranks: u32,
    /// The ranks of each node, if there are two nodes or more and all have as many ranks, two at least; else empty.
    nodes: Vec<Vec<u32>>,
    /// Sizes of the dimensions in which the ranks lie, of which the first changes fastest; empty if there are none.
    dimensions: Vec<u32>,
}

impl Layout {
    /// Each rank on a separate node.
    pub const fn flat(ranks: u32) -> Self {
        Self {
            ranks,
            nodes: Vec::new(),
            dimensions: Vec::new(),
        }
    }

    /// The same, with ranks that lie in dimensions of these sizes; their product is the number of ranks.
    #[must_use]
    pub fn in_dimensions(self, sizes: Vec<u32>) -> Self {
        debug_assert_eq!(sizes.iter().product::<u32>(), self.ranks);
        Self {
            dimensions: sizes,
            ..self
        }
    }

    /// Ranks on the nodes with these numbers.
    pub fn of_nodes(nodes: &[u32]) -> Self {
        let mut places: std::collections::BTreeMap<u32, usize> = std::collections::BTreeMap::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        for (rank, node) in (0u32..).zip(nodes) {
            let place = *places.entry(*node).or_insert(members.len());
            if place == members.len() {
                members.push(Vec::new());
            }
            members[place].push(rank);
        }
        let first = members.first().map_or(0, Vec::len);
        let is_even = members.iter().all(|ranks| ranks.len() == first);
        let has_channels = is_even && first > 1 && members.len() > 1;
        Self {
            ranks: nodes.len() as u32,
            nodes: if has_channels { members } else { Vec::new() },
            dimensions: Vec::new(),
        }
    }

    /// Number of ranks.
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Sizes of the dimensions in which the ranks lie; empty if there are none.
    pub fn dimensions(&self) -> &[u32] {
        &self.dimensions
    }

    /// Number of ranks on each node, by which a collective has channels: one where nodes have not all as many, or there is one node alone.
    pub fn ranks_per_node(&self) -> u32 {
        self.nodes.first().map_or(1, |ranks| ranks.len() as u32)
    }

    /// Ranks in the order of ring number `channel`.
    pub(super) fn ring(&self, channel: u32) -> Vec<u32> {
        let turned = |(number, ranks): (usize, &Vec<u32>)| {
            let from = channel as usize % ranks.len();
            let mut ranks = ranks.clone();
            ranks.rotate_left(from);
            if number % 2 == 1 {
                ranks.reverse();
            }
            ranks
        };
        self.or_natural(self.nodes.iter().enumerate().flat_map(turned))
    }

    /// Ranks in the order in which trees number `channel` count them.
    pub(super) fn tree(&self, channel: u32) -> Vec<u32> {
        let turned = |ranks: &Vec<u32>| {
            let mut ranks = ranks.clone();
            let from = channel as usize % ranks.len();
            ranks.rotate_left(from);
            ranks
        };
        self.or_natural(self.nodes.iter().flat_map(turned))
    }

    /// Ranks by node, or one after the other where nodes do not count.
    fn or_natural(&self, by_node: impl Iterator<Item = u32>) -> Vec<u32> {
        match self.nodes.is_empty() {
            true => (0..self.ranks).collect(),
            false => by_node.collect(),
        }
    }
}

/// Sizes of the dimensions in which `members` lie, if each coordinate of one dimension occurs with each of the others, and the members are
/// in the order of coordinates. `sizes` are those of all dimensions, whose members count from 0 on; of each, `members` may have a part.
pub fn sub_lattice(sizes: &[u32], members: &[u32]) -> Option<Vec<u32>> {
    let mut stride = 1u32;
    let mut coordinates = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let own = members.iter().map(|member| member / stride % size.max(1));
        coordinates.push(own.collect::<std::collections::BTreeSet<u32>>());
        stride = stride.checked_mul(size)?;
    }
    let of = |own: &std::collections::BTreeSet<u32>| own.len() as u64;
    if coordinates.iter().map(of).product::<u64>() != members.len() as u64 {
        return None;
    }
    let mut expected = vec![0u32];
    let mut stride = 1;
    for (own, size) in coordinates.iter().zip(sizes) {
        let with = |coordinate: &u32| {
            let more = coordinate * stride;
            expected.iter().map(move |member| member + more)
        };
        expected = own.iter().flat_map(with).collect();
        stride *= size;
    }
    let part = coordinates.iter().map(|own| own.len() as u32);
    (expected == members).then(|| part.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_planes_are_lattices() {
        let of = |members: &[u32]| sub_lattice(&[2, 3, 2], members);
        assert_eq!(of(&(0..12).collect::<Vec<_>>()), Some(vec![2, 3, 2]));
        assert_eq!(of(&[7, 9, 11]), Some(vec![1, 3, 1]));
        assert_eq!(of(&[2, 3, 8, 9]), Some(vec![2, 1, 2]));
        // A part of a dimension; one rank.
        assert_eq!(of(&[0, 4]), Some(vec![1, 2, 1]));
        assert_eq!(of(&[5]), Some(vec![1, 1, 1]));
        // A corner is missing; the order is another; a rank is beyond.
        assert_eq!(of(&[0, 1, 2]), None);
        assert_eq!(of(&[9, 7, 11]), None);
        assert_eq!(of(&[12]), None);
    }

    #[test]
    fn rings_stay_on_rails_and_trees_enter_alike() {
        let nodes: Vec<u32> = (0..12).map(|rank| rank / 3).collect();
        let layout = Layout::of_nodes(&nodes);
        assert_eq!(layout.ranks_per_node(), 3);
        assert_eq!(layout.ring(0), [0, 1, 2, 5, 4, 3, 6, 7, 8, 11, 10, 9]);
        assert_eq!(layout.ring(1), [1, 2, 0, 3, 5, 4, 7, 8, 6, 9, 11, 10]);
        assert_eq!(layout.tree(1), [1, 2, 0, 4, 5, 3, 7, 8, 6, 10, 11, 9]);
        // From node to node each ring keeps its rail, and no two rings send from one NIC.
        let mut senders = std::collections::BTreeSet::new();
        for channel in 0..3 {
            let ring = layout.ring(channel);
            for (place, &rank) in ring.iter().enumerate() {
                let next = ring[(place + 1) % ring.len()];
                if rank / 3 != next / 3 {
                    assert_eq!(rank % 3, next % 3, "channel {channel}");
                    assert!(senders.insert(rank), "rank {rank} sends for two");
                }
            }
        }
        assert_eq!(senders.len(), 12);
    }

    #[test]
    fn uneven_nodes_have_one_channel_in_the_order_of_ranks() {
        for nodes in [&[0, 0, 1][..], &[0, 0, 0], &[0, 1, 2], &[]] {
            let layout = Layout::of_nodes(nodes);
            assert_eq!(layout.ranks_per_node(), 1, "{nodes:?}");
            let natural: Vec<u32> = (0..nodes.len() as u32).collect();
            assert_eq!(layout.ring(1), natural);
        }
        // Ranks of a node need not be neighbours.
        assert_eq!(Layout::of_nodes(&[7, 3, 7, 3]).ring(0), [0, 2, 3, 1]);
    }
}
