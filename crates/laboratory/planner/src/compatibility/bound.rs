//! Lower bounds of the cost of all rotations.
//!
//! Both bounds use the same property: the cost that a job adds to a circle never falls as the load of the circle grows.

use super::circle::{Circle, Loads, RotatedJob};
use std::collections::BTreeMap;

/// Lowest cost of each pair of jobs without other jobs; zero if the jobs do not share a resource.
#[derive(Debug, Clone)]
pub(super) struct Pairs {
    jobs: usize,
    least: Vec<u64>,
}

impl Pairs {
    /// Computes the costs of all pairs of jobs of `circle`, and counts the examined sectors.
    pub(super) fn new(circle: &Circle) -> (Self, u64) {
        let jobs = circle.rotated_jobs.len();
        let mut least = vec![0; jobs * jobs];
        let mut known: BTreeMap<[Vec<(u32, u32)>; 2], u64> = BTreeMap::new();
        let mut work = 0;
        for first in 0..jobs {
            for second in first + 1..jobs {
                let shared = shared(circle, first, second);
                if shared[0].is_empty() {
                    continue;
                }
                let exact = circle.rotated_jobs[second].exact;
                let rotations = circle.rotated_jobs[second].rotations;
                // The shared uses alone determine the lowest cost, because `turned` rotations cover all relative rotations.
                let cost = *known.entry(shared).or_insert_with_key(|[first, second]| {
                    // Only relative rotations matter. An exact job repeats after `rotations`; other jobs can be apart by any sector.
                    let turned = if exact { rotations } else { circle.sectors };
                    let (cost, effort) = alone(circle, first, second, turned);
                    work += effort;
                    cost
                });
                least[first * jobs + second] = cost;
                least[second * jobs + first] = cost;
            }
        }
        (Self { jobs, least }, work)
    }

    /// Lowest cost of this pair.
    pub(super) fn pair_cost(&self, first: usize, second: usize) -> u64 {
        self.least[first * self.jobs + second]
    }
}

/// Uses of two jobs on their common resources.
fn shared(circle: &Circle, first: usize, second: usize) -> [Vec<(u32, u32)>; 2] {
    let of = |rotated: usize, other: usize| {
        let uses = circle.rotated_jobs[rotated].uses.iter().copied();
        let other = &circle.rotated_jobs[other].uses;
        uses.filter(|(resource, _)| other.iter().any(|(used, _)| used == resource))
            .collect()
    };
    [of(first, second), of(second, first)]
}

/// Lowest cost of two jobs with these uses over `rotations` rotations of the second job, and the number of examined sectors.
fn alone(
    circle: &Circle,
    first: &[(u32, u32)],
    second: &[(u32, u32)],
    rotations: u32,
) -> (u64, u64) {
    // Both lists have their resources in the same order, so the position in the list numbers the resources of the small circle.
    let mut patterns = Vec::new();
    let mut rotated = |uses: &[(u32, u32)], rotations| RotatedJob {
        rotations,
        uses: uses
            .iter()
            .zip(0..)
            .map(|(&(_, pattern), resource)| {
                patterns.push(circle.patterns[pattern as usize].clone());
                (resource, patterns.len() as u32 - 1)
            })
            .collect(),
        exact: true,
        twin: 0,
    };
    let rotated_jobs = vec![rotated(first, 1), rotated(second, rotations)];
    let two = Circle {
        sectors: circle.sectors,
        rotated_jobs,
        patterns,
        weights: first
            .iter()
            .map(|&(resource, _)| circle.weights[resource as usize])
            .collect(),
        merged: Vec::new(),
    };
    let mut loads = Loads::new(&two);
    let mut costs = Vec::new();
    loads.place(0, 0);
    loads.price(1, &mut costs);
    (costs.into_iter().min().unwrap_or(0), loads.work())
}

/// Sum of the gains of disjoint pairs of `items`, chosen greedily with the largest gain first.
pub(super) fn matching(items: &[usize], gain: impl Fn(usize, usize) -> u64) -> u64 {
    let mut pairs = Vec::new();
    for (at, &first) in items.iter().enumerate() {
        for &second in &items[at + 1..] {
            let gained = gain(first, second);
            if gained > 0 {
                pairs.push((std::cmp::Reverse(gained), first, second));
            }
        }
    }
    // Costs of disjoint pairs add up to a bound in any matching; greedy choice avoids the search for the best matching.
    pairs.sort_unstable();
    let mut taken = std::collections::BTreeSet::new();
    let mut sum = 0;
    for (gained, first, second) in pairs {
        if !taken.contains(&first) && !taken.contains(&second) {
            taken.extend([first, second]);
            sum += gained.0;
        }
    }
    sum
}

/// Lower bound for all rotations of `circle`, summed over resources: for each resource the demand above its capacity, or the cost of
/// disjoint pairs of its jobs. Stops examining pairs after `most_work` sectors, and returns the number of examined sectors.
pub(super) fn resource_bound(circle: &Circle, most_work: u64) -> (u64, u64) {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); circle.weights.len()];
    let mut patterns: BTreeMap<(u32, usize), u32> = BTreeMap::new();
    for (rotated, of) in circle.rotated_jobs.iter().enumerate() {
        for &(resource, pattern) in &of.uses {
            users[resource as usize].push(rotated);
            patterns.insert((resource, rotated), pattern);
        }
    }
    let mut known: BTreeMap<(u32, u32, u32), u64> = BTreeMap::new();
    let mut work = 0;
    let mut bound = 0;
    for (resource, jobs) in users.iter().enumerate() {
        let pattern = |rotated: usize| patterns[&(resource as u32, rotated)];
        let demand: u64 = jobs.iter().map(|&job| circle.volume(pattern(job))).sum();
        let mut costs: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (at, &first) in jobs.iter().enumerate() {
            for &second in &jobs[at + 1..] {
                let rotated = &circle.rotated_jobs[second];
                let turned = if rotated.exact {
                    rotated.rotations
                } else {
                    circle.sectors
                };
                let key = (pattern(first), pattern(second), turned);
                let cost = match known.get(&key) {
                    Some(&cost) => cost,
                    // Zero is always a valid bound.
                    None if work > most_work => 0,
                    None => {
                        let (cost, effort) =
                            alone(circle, &[(resource as u32, key.0)], &[(0, key.1)], turned);
                        // The key does not name the resource, so the cost is kept without its weight.
                        let cost = cost / circle.weights[resource];
                        work += effort;
                        known.insert(key, cost);
                        cost
                    }
                };
                costs.insert((first, second), cost);
            }
        }
        let paired = matching(jobs, |first, second| costs[&(first, second)]);
        // Both bounds of a resource count the same excess, so only the larger one counts; excess of different resources adds up.
        bound += circle.weights[resource] * paired.max(demand.saturating_sub(circle.capacity()));
    }
    (bound, work)
}
