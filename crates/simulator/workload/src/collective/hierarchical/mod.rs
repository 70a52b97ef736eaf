//! Hierarchical algorithms: a collective dimension by dimension of a network (ASTRA-sim, Rashidi et al., ISPASS 2020, §III; Won et al.,
//! ISPASS 2023, §IV-A).
//!
//! Ranks have a coordinate in each dimension, of which the first changes fastest. The ranks that differ in one coordinate alone are a *row*
//! of that dimension. An operation consists of phases; in each, the rows of one dimension run an algorithm, all at once:
//!
//! * **reduce-scatter**: a reduce-scatter in each dimension, from the first on. The data shrinks by the size of the dimension.
//! * **all-gather**: an all-gather in each dimension, from the last on.
//! * **all-reduce**: a reduce-scatter in each dimension but the last, an all-reduce in the last one, and an all-gather in each of the
//!   others, in descending order. So the first dimension, where links are fastest, carries the most.
//! * **all-to-all**: an all-to-all in each dimension, from the first on, each with the whole buffer: a rank sends a member of its row all
//!   that it holds for the ranks with the coordinate of that member.
//!
//! The buffer is cut into splits, which go through the phases one behind the other, so that all dimensions have work. A rank begins a phase
//! of a split as soon as its data is there: unlike ASTRA-sim, it does not wait for the end of the phase before, where it needs no more of
//! it, and a limit of active splits holds for each phase and not for the phases of a dimension together.
//!
//! Blocks of a reduce-scatter and an all-gather lie in the order of the first coordinate, then of the second, and so on, split by split:
//! see [`BlockOwners`](super::BlockOwners). Then what a row exchanges is contiguous.

mod exchange;
mod lattice;
mod phases;
mod rows;

use super::builder::{Builder, Extent, sound};
use super::options::{Options, Reduction, StepPipelining};
use super::{Collective, CollectiveDefinition, CollectiveError, Layout, Operation};
use crate::counted;
use crate::graph::MOST_TASKS;
use clearway_units::{Bytes, Span, choices, parameters};
use lattice::Lattice;
use phases::Phases;
use std::num::NonZero;

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

parameters! {
    /// Dimensions of a hierarchical collective.
    pub struct Dimensions {
        /// Sizes of the dimensions, of which the first changes fastest with the number of the rank. An empty list: those of a network with
        /// dimensions; else the ranks of a node and the nodes.
        pub dimensions: Vec<u32> = Vec::new(), "dimensions", "the network";
        /// Algorithm in each dimension, or one for all. An empty list: rings; for an all-to-all, direct.
        pub algorithms: Vec<DimensionAlgorithm> = Vec::new(), "algorithms", "Rashidi et al. 2020: rings";
        /// Maximum number of messages in flight from a rank in a dimension with the algorithm "direct", like the number in ASTRA-sim's
        /// `direct4`. "auto": no limit.
        pub direct_window: Option<NonZero<u32>> = None, "direct-window", "ASTRA-sim: no limit";
        /// Number of parts of the buffer that go through the dimensions one behind the other, like ASTRA-sim's `preferred-dataset-splits`.
        pub splits: NonZero<u32> = NonZero::<u32>::MIN, "splits", "decision: the whole buffer";
        /// Maximum number of splits that are in the same phase at a time, like ASTRA-sim's `active-chunks-per-dimension`. "auto": no limit.
        pub active_splits: Option<NonZero<u32>> = None, "active-splits", "decision: no limit";
        /// Time that a rank takes before it sends what it has, at the beginning of a phase and after each message, like ASTRA-sim's
        /// `endpoint-delay`.
        pub endpoint_delay: Span = Span::ZERO, "endpoint-delay", "decision: none";
    }
}

/// The settings of one operation.
macro_rules! operations {
    ($($settings:ident, $operation:ident, $name:literal, $what:literal $(, $reduction:ident)?;)+) => {$(
        parameters! {
            #[doc = concat!("Hierarchical ", $name, ".")]
            pub struct $settings {
                #[doc = $what]
                pub size: Bytes = Bytes::new(128_000_000), "size", "as for an all-reduce";
                with {
                    /// Dimensions of the ranks.
                    pub hierarchy: Dimensions,
                    /// Chunk size and window of the messages.
                    pub cut: StepPipelining,
                    $(
                        /// Rate of the reduction.
                        pub $reduction: Reduction,
                    )?
                }
            }
        }

        impl CollectiveDefinition for $settings {
            const OPERATION: &'static str = $name;
            const ALGORITHM: &'static str = "hierarchical";
            const SUMMARY: &'static str = concat!($name, " dimension by dimension of the network");

            fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
                self.build_on(&Layout::flat(ranks))
            }

            fn build_on(&self, layout: &Layout) -> Result<Collective, CollectiveError> {
                sound::<Self>(layout.ranks(), self.size)?;
                let options = Options::from(&self.cut);
                $(let options = options.reducing(&self.$reduction);)?
                self.hierarchy.build::<Self>(Operation::$operation, (layout, self.size), options)
            }

            fn steps(&self, ranks: u32) -> u32 {
                self.hierarchy.steps::<Self>(Operation::$operation, ranks)
            }
        }
    )+};
}

operations! {
    HierarchicalAllReduceSettings, AllReduce, "all-reduce", "Size of the buffer that each rank contributes to the sum.", reduction;
    HierarchicalReduceScatterSettings, ReduceScatter, "reduce-scatter", "Size of the buffer that each rank contributes to the sum.", reduction;
    HierarchicalAllGatherSettings, AllGather, "all-gather", "Final size of the buffer of each rank: the blocks of all ranks together.";
    HierarchicalAllToAllSettings, AllToAll, "all-to-all", "Size of the buffer of a rank, with one block for each rank. A rank does not send its own block.";
}

impl Dimensions {
    fn build<D: CollectiveDefinition>(
        &self,
        operation: Operation,
        (layout, size): (&Layout, Bytes),
        options: Options,
    ) -> Result<Collective, CollectiveError> {
        let sizes = self.sizes::<D>(layout)?;
        let algorithms = self.algorithms_of::<D>(operation, &sizes)?;
        let extent = self.extent(operation, (&sizes, &algorithms), size);
        let options = options.delayed(self.endpoint_delay);
        self.check_splits::<D>(size, &extent)?;
        // Checked first: more ranks than there is memory for are refused.
        let builder = Builder::new::<D>(operation, layout.ranks(), size, extent, options)?;
        let is_natural = !self.dimensions.is_empty() || !layout.dimensions().is_empty();
        let order = match is_natural {
            true => (0..layout.ranks()).collect(),
            false => layout.tree(0),
        };
        let phases = Phases {
            dimensions: self,
            lattice: Lattice::new(&sizes, order),
            algorithms,
        };
        Ok(phases.build(builder, (operation, size.as_u64())))
    }

    /// Sizes of the dimensions.
    fn sizes<D: CollectiveDefinition>(&self, layout: &Layout) -> Result<Vec<u32>, CollectiveError> {
        let ranks = layout.ranks();
        if self.dimensions.is_empty() {
            let of_node = layout.ranks_per_node();
            return Ok(match layout.dimensions() {
                [] if of_node == 1 => vec![ranks],
                [] => vec![of_node, ranks / of_node],
                sizes => sizes.to_vec(),
            });
        }
        let sizes = self.dimensions.iter();
        let product = sizes.map(|&size| u128::from(size));
        let product = product.fold(1, u128::saturating_mul);
        if product != u128::from(ranks) {
            let sizes: Vec<String> = self.dimensions.iter().map(u32::to_string).collect();
            let message = format!(
                "dimensions of {} ranks, but there are {ranks}",
                sizes.join(" x ")
            );
            let fix = "write sizes whose product is the number of ranks";
            return Err(D::fault("dimensions", message, fix));
        }
        Ok(self.dimensions.clone())
    }

    /// The algorithm of each dimension that has more than one rank.
    fn algorithms_of<D: CollectiveDefinition>(
        &self,
        operation: Operation,
        sizes: &[u32],
    ) -> Result<Vec<DimensionAlgorithm>, CollectiveError> {
        use DimensionAlgorithm as Algorithm;
        let usual = match operation {
            Operation::AllToAll => Algorithm::Direct,
            _ => Algorithm::Ring,
        };
        let fault = |message: String, fix: &str| Err(D::fault("algorithms", message, fix));
        let given = &self.algorithms;
        let all = match given[..] {
            [] => vec![usual; sizes.len()],
            [one] => vec![one; sizes.len()],
            _ if given.len() == sizes.len() => given.clone(),
            _ => {
                let dimensions = counted(sizes.len(), "dimension");
                let message = format!("{} algorithms for {dimensions}", given.len());
                let fix = match self.dimensions.is_empty() {
                    true => {
                        "write one for each dimension, or one for all, or the `dimensions` of the ranks, such as [8, 4]"
                    }
                    false => "write one for each dimension, or one for all",
                };
                return fault(message, fix);
            }
        };
        let wide = all.into_iter().zip(sizes).filter(|(_, size)| **size > 1);
        let own: Vec<(Algorithm, &u32)> = wide.collect();
        for (place, (algorithm, size)) in own.iter().enumerate() {
            let is_last = place + 1 == own.len();
            match algorithm {
                Algorithm::HalvingDoubling if operation == Operation::AllToAll => {
                    let message = "there is no all-to-all by halving and doubling".into();
                    return fault(message, "write \"direct\" or \"ring\"");
                }
                Algorithm::HalvingDoubling if !size.is_power_of_two() => {
                    let message = format!(
                        "halving and doubling in a dimension of {size} ranks, not a power of two"
                    );
                    return fault(message, "write \"ring\" or \"direct\" for it");
                }
                Algorithm::DoubleBinaryTree if operation != Operation::AllReduce || !is_last => {
                    let message = "a double binary tree where nothing is reduced to the end, but in the last dimension of an all-reduce";
                    return fault(
                        message.into(),
                        "write \"ring\", \"direct\" or \"halving-doubling\" for the others",
                    );
                }
                _ => {}
            }
        }
        Ok(own.into_iter().map(|(algorithm, _)| algorithm).collect())
    }

    fn check_splits<D: CollectiveDefinition>(
        &self,
        size: Bytes,
        extent: &Extent,
    ) -> Result<(), CollectiveError> {
        let splits = self.splits.get();
        if u64::from(splits) > size.as_u64() {
            let message = format!("{splits} splits of {}", Bytes::new(size.as_u64()));
            let fix = format!("write at most {}", size.as_u64());
            return Err(D::fault("splits", message, fix));
        }
        let of_split = extent.pieces / u128::from(splits);
        let most = u128::from(MOST_TASKS) / 2;
        if extent.pieces > most && of_split <= most {
            let message = format!(
                "up to {} messages, but {most} are the most that a collective may have",
                extent.pieces
            );
            let fix = format!("write at most {}", most / of_split.max(1));
            return Err(D::fault("splits", message, fix));
        }
        Ok(())
    }

    /// Upper bounds on what is sent.
    fn extent(
        &self,
        operation: Operation,
        (sizes, algorithms): (&[u32], &[DimensionAlgorithm]),
        size: Bytes,
    ) -> Extent {
        let ranks: u128 = sizes.iter().map(|&size| u128::from(size)).product();
        let (splits, size) = (u128::from(self.splits.get()), u128::from(size.as_u64()));
        let turns = match operation {
            Operation::AllReduce => 2,
            _ => 1,
        };
        let mut extent = Extent {
            pieces: 0,
            payload: 0,
        };
        let mut before = 1u128;
        let wide = sizes.iter().filter(|size| **size > 1);
        for (&own, algorithm) in wide.zip(algorithms) {
            let own = u128::from(own);
            // Of a rank: messages of each split, and bytes of all.
            let (messages, bytes) = match (operation, algorithm) {
                (Operation::AllToAll, DimensionAlgorithm::Ring) => (own * own * before, own * size),
                (Operation::AllToAll, _) => (own * before, size),
                _ => (turns * own, turns * (size / before + splits)),
            };
            extent.pieces = extent
                .pieces
                .saturating_add(ranks.saturating_mul(messages).saturating_mul(splits));
            extent.payload = extent.payload.saturating_add(ranks.saturating_mul(bytes));
            before *= own;
        }
        extent
    }

    fn steps<D: CollectiveDefinition>(&self, operation: Operation, ranks: u32) -> u32 {
        let Ok(sizes) = self.sizes::<D>(&Layout::flat(ranks)) else {
            return 0;
        };
        let Ok(algorithms) = self.algorithms_of::<D>(operation, &sizes) else {
            return 0;
        };
        let sizes = sizes.into_iter().filter(|size| *size > 1);
        let turns = match operation {
            Operation::AllReduce => 2,
            _ => 1,
        };
        let steps = algorithms.iter().zip(sizes).map(|(algorithm, size)| {
            let is_exchange = operation == Operation::AllToAll;
            let one_way = match algorithm {
                DimensionAlgorithm::Ring if is_exchange => size.saturating_mul(size - 1) / 2,
                DimensionAlgorithm::Ring => size - 1,
                DimensionAlgorithm::Direct => 1,
                DimensionAlgorithm::HalvingDoubling => size.ilog2(),
                DimensionAlgorithm::DoubleBinaryTree => rows::depth_of_trees(size),
            };
            one_way.saturating_mul(turns)
        });
        steps.fold(0, u32::saturating_add)
    }
}
