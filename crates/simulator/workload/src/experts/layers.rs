//! Graph of mixture-of-experts layers: computation, dispatch, experts, combine, layer by layer.

use super::Routing;
use crate::graph::{Graph, Rank, TaskId};
use clearway_units::{Bytes, Span};

/// Computations and sizes of mixture-of-experts layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertLayers {
    /// Bytes of a token in the dispatch.
    pub dispatch: Bytes,
    /// Bytes of a token in the combine.
    pub combine: Bytes,
    /// True if a separate copy of a token goes to each of its experts, false if one copy goes to each rank that has some of them.
    pub copy_for_each_expert: bool,
    /// Computation of a rank before the dispatch of each layer.
    pub compute: Span,
    /// Computation of an expert for one token.
    pub per_token: Span,
    /// True if the layers are also gone through backwards.
    pub backward: bool,
}

/// Computations take twice as long in the backward pass as in the forward pass: gradients of inputs and of weights (Kaplan et al. 2020,
/// §2.1).
const BACKWARD: u64 = 2;

impl ExpertLayers {
    /// Graph of layers with these routings, all of the same ranks.
    ///
    /// The backward pass of a combine sends the messages of a dispatch, and the backward pass of a dispatch the messages of a combine. So a
    /// layer looks the same in both directions.
    pub fn graph(&self, layers: &[Routing]) -> Graph {
        let ranks = layers.first().map_or(0, Routing::ranks);
        let mut graph = Graph::new(ranks);
        let mut before = vec![Vec::new(); ranks as usize];
        for routing in layers {
            before = self.layer(&mut graph, routing, before, 1);
        }
        for routing in layers.iter().rev().filter(|_| self.backward) {
            before = self.layer(&mut graph, routing, before, BACKWARD);
        }
        graph
    }

    /// Number of messages and computations that a layer of so many ranks has at most, in one direction.
    pub fn most_tasks(ranks: u32) -> u64 {
        let ranks = u64::from(ranks);
        2 * ranks * (ranks - 1) + 2 * ranks
    }

    /// Adds a layer. Each rank's part follows the tasks of that rank in `before`. Returns the tasks that the next layer follows.
    fn layer(
        &self,
        graph: &mut Graph,
        routing: &Routing,
        before: Vec<Vec<TaskId>>,
        factor: u64,
    ) -> Vec<Vec<TaskId>> {
        let ranks = routing.ranks();
        let compute = times(self.compute, factor);
        let ready: Vec<TaskId> = (0u32..)
            .zip(before)
            .map(|(rank, before)| graph.compute(Rank(rank), compute, before))
            .collect();
        let mut arrived: Vec<Vec<TaskId>> = ready.iter().map(|&own| vec![own]).collect();
        for (src, dst) in pairs(ranks) {
            let copies = self.copies(routing, src, dst);
            if copies > 0 {
                let bytes = Bytes::new(self.dispatch.as_u64() * copies);
                let after = [ready[src as usize]];
                let message = graph.message((Rank(src), Rank(dst)), bytes, after);
                arrived[dst as usize].push(message);
            }
        }
        let per_token = times(self.per_token, factor);
        let done: Vec<TaskId> = (0u32..)
            .zip(arrived)
            .map(|(rank, arrived)| {
                let span = times(per_token, routing.work(rank));
                graph.compute(Rank(rank), span, arrived)
            })
            .collect();
        let mut back: Vec<Vec<TaskId>> = done.iter().map(|&own| vec![own]).collect();
        // Each rank that has worked on a token sends it back to the token's source.
        for (src, dst) in pairs(ranks) {
            let copies = self.copies(routing, dst, src);
            if copies > 0 {
                let bytes = Bytes::new(self.combine.as_u64() * copies);
                let after = [done[src as usize]];
                let message = graph.message((Rank(src), Rank(dst)), bytes, after);
                back[dst as usize].push(message);
            }
        }
        back
    }

    /// Number of copies of tokens that go from one rank to another.
    fn copies(&self, routing: &Routing, src: u32, dst: u32) -> u64 {
        match self.copy_for_each_expert {
            true => routing.assignments(src, dst).into(),
            false => routing.tokens(src, dst).into(),
        }
    }
}

/// All pairs of different ranks: each sends to the one after it first, so that not all begin with the same.
fn pairs(ranks: u32) -> impl Iterator<Item = (u32, u32)> {
    let distances = 1..ranks;
    distances.flat_map(move |distance| (0..ranks).map(move |src| (src, (src + distance) % ranks)))
}

/// `count` times a span, at most the longest span.
fn times(span: Span, count: u64) -> Span {
    Span::from_ps(span.as_ps().saturating_mul(count))
}
