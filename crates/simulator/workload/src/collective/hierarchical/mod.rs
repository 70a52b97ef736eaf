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
//! The buffer is cut into splits, each of which goes through the phases for itself, so that several dimensions have work at a time. All
//! begin at once, unless a limit of active splits makes them follow each other. A rank begins a phase of a split as soon as its data is
//! there: unlike ASTRA-sim, it does not wait for the end of the phase before, where it needs no more of it, and the limit holds for each
//! phase and not for the phases of a dimension together.
//!
//! Blocks of a reduce-scatter and an all-gather lie in the order of the first coordinate, then of the second, and so on, split by split:
//! see [`BlockOwners`](super::BlockOwners). Then what a row exchanges is contiguous.

mod algorithm;
mod dimensions;
mod exchange;
mod lattice;
mod phases;
mod rows;

use super::builder::{Builder, sound};
use super::options::{Options, Reduction, StepPipelining};
use super::{Collective, CollectiveDefinition, CollectiveError, Layout, Operation};
use clearway_units::{Bytes, parameters};
use lattice::Lattice;
use phases::Phases;

pub use algorithm::DimensionAlgorithm;
pub use dimensions::Dimensions;
pub(super) use rows::Row;

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
}
