//! Coordinates of ranks, and their places in the buffer.

use super::algorithm::DimensionAlgorithm;

/// The ranks by their coordinates in the dimensions that have more than one.
pub(super) struct Lattice {
    pub(super) sizes: Vec<u32>,
    /// Ranks in the order of coordinates, of which the first changes fastest.
    order: Vec<u32>,
}

impl Lattice {
    /// Dimensions of the given sizes, whose product is the number of ranks; `order` has the ranks in the order of coordinates.
    pub(super) fn new(sizes: &[u32], order: Vec<u32>) -> Self {
        let sizes = sizes.iter().copied().filter(|size| *size > 1).collect();
        Self { sizes, order }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.order.len() as u32
    }

    /// Product of the sizes of the dimensions before `dimension`.
    pub(super) fn stride(&self, dimension: usize) -> u32 {
        self.sizes[..dimension].iter().product()
    }

    /// Product of the sizes of the dimensions from `dimension` on: blocks that a rank still has before a scatter in it.
    pub(super) fn width(&self, dimension: usize) -> u32 {
        self.sizes[dimension..].iter().product()
    }

    fn coordinate(&self, index: u32, dimension: usize) -> u32 {
        index / self.stride(dimension) % self.sizes[dimension]
    }

    /// The rows of a dimension: for each, the indices of its members in the order of coordinates.
    pub(super) fn rows(&self, dimension: usize) -> Vec<Vec<u32>> {
        let (stride, size) = (self.stride(dimension), self.sizes[dimension]);
        let firsts = (0..self.ranks()).filter(|&index| self.coordinate(index, dimension) == 0);
        let row = |first: u32| (0..size).map(|place| first + place * stride).collect();
        firsts.map(row).collect()
    }

    /// The rank of an index in the order of coordinates.
    pub(super) fn rank(&self, index: u32) -> u32 {
        self.order[index as usize]
    }

    /// The first block that the rank of `index` has after scatters in the dimensions before `dimension`, and in no other.
    pub(super) fn first_block(
        &self,
        algorithms: &[DimensionAlgorithm],
        index: u32,
        dimension: usize,
    ) -> u32 {
        let before = (0..dimension).map(|other| {
            let place = place(
                algorithms[other],
                self.coordinate(index, other),
                self.sizes[other],
            );
            place * self.width(other + 1)
        });
        before.sum()
    }

    /// The rank at each place.
    pub(super) fn ranks_by_place(&self, algorithms: &[DimensionAlgorithm]) -> Vec<u32> {
        let mut ranks = vec![0; self.order.len()];
        for index in 0..self.ranks() {
            let place = self.first_block(algorithms, index, self.sizes.len());
            ranks[place as usize] = self.rank(index);
        }
        ranks
    }
}

/// The block, among those of a row of `size`, that a member has after a scatter.
pub(super) fn place(algorithm: DimensionAlgorithm, member: u32, size: u32) -> u32 {
    match algorithm {
        // Neighbours halve first: the lowest bit of the member decides about the largest half.
        DimensionAlgorithm::HalvingDoubling if size > 1 => {
            member.reverse_bits() >> (u32::BITS - size.ilog2())
        }
        _ => member,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_by_the_first_coordinate_first() {
        let lattice = Lattice::new(&[2, 1, 3], (0..6).collect());
        assert_eq!(lattice.sizes, [2, 3]);
        assert_eq!(lattice.rows(0), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(lattice.rows(1), [[0, 2, 4], [1, 3, 5]]);
        let rings = [DimensionAlgorithm::Ring; 2];
        assert_eq!(lattice.ranks_by_place(&rings), [0, 2, 4, 1, 3, 5]);
        assert_eq!(lattice.first_block(&rings, 3, 1), 3);
    }

    #[test]
    fn halvings_reverse_the_bits() {
        let places = |size: u32| -> Vec<u32> {
            let of = |member| place(DimensionAlgorithm::HalvingDoubling, member, size);
            (0..size).map(of).collect()
        };
        assert_eq!(places(1), [0]);
        assert_eq!(places(2), [0, 1]);
        assert_eq!(places(8), [0, 4, 2, 6, 1, 5, 3, 7]);
    }
}
