//! Algorithms of a dimension.

use clearway_units::choices;

choices! {
    /// Algorithm within a row of a dimension.
    pub enum DimensionAlgorithm {
        /// Block by block around a ring. For an all-to-all, blocks go from neighbour to neighbour as far as they have to.
        Ring = "ring",
        /// Each member sends to each other, the next one first.
        Direct = "direct",
        /// Pairs exchange halves, then halves of halves: neighbours first. The size of the dimension must be a power of two, and there is
        /// none for an all-to-all.
        HalvingDoubling = "halving-doubling",
        /// Up and down two binary trees, half of the data on each: only for the all-reduce in the last dimension.
        DoubleBinaryTree = "double-binary-tree",
    }
}
