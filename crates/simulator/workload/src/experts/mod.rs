//! Expert parallelism: the traffic of the mixture-of-experts layers of a model.
//!
//! In such a layer a router sends each token to the `top_k` of its experts that suit it best, and experts are spread over the ranks of a
//! group. Tokens go there in an all-to-all, the *dispatch*, and the experts' results come back in a second one, the *combine* (GShard,
//! Lepikhin et al. 2021; DeepSeek-V3, arXiv 2412.19437, §3.2.2). The bytes between each pair of ranks depend on the router alone:
//!
//! * [`ExpertGroup`] says which experts are on which rank, and which ranks on which node;
//! * a [`Router`] draws the experts of each token, and counts the tokens of each pair of ranks: a [`Routing`];
//! * [`ExpertLayers`] makes a [`Graph`](crate::Graph) of the routings of several layers.

mod layers;
mod popularity;
mod router;
#[cfg(test)]
mod tests;

pub use layers::ExpertLayers;
pub use popularity::{MOST_SKEW, Popularity};
pub use router::{Router, Routing};

use std::ops::Range;

/// Ranks that share the experts of a layer. Experts lie on ranks in the order of their numbers, as evenly as possible, and ranks fill
/// nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertGroup {
    /// Number of ranks, above zero.
    pub ranks: u32,
    /// Number of ranks on a node, above zero. The last node may have fewer.
    pub ranks_per_node: u32,
    /// Number of experts, above zero.
    pub experts: u32,
}

impl ExpertGroup {
    /// Rank of an expert.
    pub fn rank_of(&self, expert: u32) -> u32 {
        (u64::from(expert) * u64::from(self.ranks) / u64::from(self.experts)) as u32
    }

    /// Number of nodes.
    pub const fn nodes(&self) -> u32 {
        self.ranks.div_ceil(self.ranks_per_node)
    }

    /// Experts of a rank.
    pub fn experts_of(&self, rank: u32) -> Range<u32> {
        self.first_expert(rank)..self.first_expert(rank + 1)
    }

    /// Experts of all ranks of a node.
    pub fn experts_of_node(&self, node: u32) -> Range<u32> {
        let first = u64::from(node) * u64::from(self.ranks_per_node);
        let end = first + u64::from(self.ranks_per_node);
        let rank = |rank: u64| rank.min(self.ranks.into()) as u32;
        self.first_expert(rank(first))..self.first_expert(rank(end))
    }

    /// The lowest expert of this rank and those after it.
    fn first_expert(&self, rank: u32) -> u32 {
        let product = u64::from(rank) * u64::from(self.experts);
        product.div_ceil(self.ranks.into()) as u32
    }
}
