//! Dimensions of a hierarchical collective, and what they allow.

use super::algorithm::DimensionAlgorithm;
use super::rows;
use crate::collective::builder::Extent;
use crate::collective::{CollectiveDefinition, CollectiveError, Layout, Operation};
use crate::counted;
use crate::graph::MOST_TASKS;
use clearway_units::{Bytes, Span, parameters};
use std::num::NonZero;

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
        /// Number of parts of the buffer, each of which goes through the dimensions for itself. ASTRA-sim: `preferred-dataset-splits`.
        pub splits: NonZero<u32> = NonZero::<u32>::MIN, "splits", "decision: the whole buffer";
        /// Maximum number of splits that are in the same phase at a time, like ASTRA-sim's `active-chunks-per-dimension`. "auto": no limit.
        pub active_splits: Option<NonZero<u32>> = None, "active-splits", "decision: no limit";
        /// Time that a rank takes before it sends what it has, at the beginning of a phase and after each message, like ASTRA-sim's
        /// `endpoint-delay`.
        pub endpoint_delay: Span = Span::ZERO, "endpoint-delay", "decision: none";
    }
}

impl Dimensions {
    /// Sizes of the dimensions.
    pub(super) fn sizes<D: CollectiveDefinition>(
        &self,
        layout: &Layout,
    ) -> Result<Vec<u32>, CollectiveError> {
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
    pub(super) fn algorithms_of<D: CollectiveDefinition>(
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
                    let message =
                        "a double binary tree is only for the last dimension of an all-reduce";
                    return fault(
                        message.into(),
                        "write \"ring\", \"direct\" or \"halving-doubling\" elsewhere",
                    );
                }
                _ => {}
            }
        }
        Ok(own.into_iter().map(|(algorithm, _)| algorithm).collect())
    }

    pub(super) fn check_splits<D: CollectiveDefinition>(
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
    pub(super) fn extent(
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

    pub(super) fn steps<D: CollectiveDefinition>(&self, operation: Operation, ranks: u32) -> u32 {
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
