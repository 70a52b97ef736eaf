//! Switches that look alike from everywhere else.
//!
//! Twins have the same neighbours, over links of the same kinds there and back, in the same order of ports, and no link to each other. A
//! shortest path to one of them never leads by way of the other: it would have to come back to a neighbour that it had left. So each other
//! switch has the same next hops to both and paths of the same lengths, except for the neighbours, which have a port to each.

use super::neighbours::Hop;
use rustc_hash::FxHashMap;

/// Kinds of the links of a switch: out of it, in the order of its ports, and into it, in the order of the neighbours and their ports. Each
/// with the neighbour.
type Links = (Vec<(u32, u32)>, Vec<(u32, u32)>);

/// For each of the switches `roots` the place of the first one that is its twin, if there is one before it. `hops` are the links of each
/// switch to others.
pub(super) fn of_each(hops: &[Vec<Hop>], roots: &[usize]) -> Vec<Option<usize>> {
    let mut inward: Vec<Vec<(u32, u32)>> = vec![Vec::new(); hops.len()];
    for (from, hops) in (0..).zip(hops) {
        for hop in hops {
            inward[hop.neighbour as usize].push((from, hop.kind));
        }
    }
    let mut known: FxHashMap<Links, usize> = FxHashMap::default();
    let twin_of = |(place, &root): (usize, &usize)| {
        let is_loop = |hop: &Hop| hop.neighbour as usize == root;
        // Switches that nothing leads to cannot reach each other.
        if hops[root].is_empty() || hops[root].iter().any(is_loop) {
            return None;
        }
        let outward = hops[root].iter().map(|hop| (hop.neighbour, hop.kind));
        let links = (outward.collect(), std::mem::take(&mut inward[root]));
        let first = *known.entry(links).or_insert(place);
        (first != place).then_some(first)
    };
    roots.iter().enumerate().map(twin_of).collect()
}
