//! Depth-first branch and bound over rotations.
//!
//! One job stays fixed, because only relative rotations matter. At each node, the search tries all rotations of the job with the fewest
//! choices, cheapest first. The bound is the cost that the other jobs must add to the present circle, counted per job or per pair. Equal
//! jobs keep a fixed order.

use super::bound::{Pairs, matching};
use super::circle::{Circle, Loads};

/// Rotations, their cost, and a lower bound of the cost of all rotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchResult {
    /// Rotation of each job, in sectors.
    pub(super) rotations: Vec<u32>,
    /// Cost of the rotations, in millionths times sectors.
    pub(super) cost: u64,
    /// A proven lower bound of the cost of all rotations.
    pub(super) bound: u64,
    /// Examined sectors.
    pub(super) work: u64,
}

struct Search<'a> {
    circle: &'a Circle,
    pairs: Pairs,
    loads: Loads<'a>,
    placed: Vec<Option<u32>>,
    /// Total demand of unplaced jobs on each resource.
    to_come: Vec<u64>,
    best: Vec<u32>,
    best_cost: u64,
    /// Lower bound of the cost of the rotations that were not examined.
    open: u64,
    /// Proven lower bound of the cost; the search ends when it is reached.
    floor: u64,
    most_work: u64,
}

/// Next job to turn at a node, and lower bounds over all unplaced jobs.
struct Outlook {
    /// The job to turn.
    next: usize,
    /// Cost that each rotation of that job adds.
    costs: Vec<u64>,
    /// Lower bound of the cost that the other unplaced jobs add.
    others: u64,
    /// Lower bound of the total cost.
    bound: u64,
}

/// The fixed job: the job with the most rotations.
pub(super) fn anchor(circle: &Circle) -> usize {
    let rotations = |job: &usize| circle.rotated_jobs[*job].rotations;
    let jobs = (0..circle.rotated_jobs.len()).rev();
    jobs.max_by_key(rotations).expect("a circle of some jobs")
}

/// Searches rotations that cost less than `known`, until the optimum is proven or `most_work` sectors are examined. `floor` is a bound that
/// the caller has proven.
pub(super) fn search(circle: &Circle, known: &[u32], floor: u64, most_work: u64) -> SearchResult {
    let mut loads = Loads::new(circle);
    for (rotated, &rotation) in known.iter().enumerate() {
        loads.place(rotated, rotation);
    }
    let best_cost = loads.cost();
    let mut to_come = vec![0; circle.weights.len()];
    for rotated in &circle.rotated_jobs {
        for &(resource, pattern) in &rotated.uses {
            to_come[resource as usize] += circle.volume(pattern);
        }
    }
    let (pairs, work) = Pairs::new(circle);
    let mut search = Search {
        circle,
        pairs,
        loads: Loads::new(circle),
        placed: vec![None; circle.rotated_jobs.len()],
        to_come,
        best: known.to_vec(),
        best_cost,
        open: u64::MAX,
        floor,
        most_work,
    };
    search.loads.add_work(work);
    search.place(anchor(circle), 0);
    search.descend();
    SearchResult {
        cost: search.best_cost,
        bound: search.open.min(search.best_cost).max(floor),
        work: search.loads.work(),
        rotations: search.best,
    }
}

impl Search<'_> {
    fn place(&mut self, rotated: usize, rotation: u32) {
        self.loads.place(rotated, rotation);
        self.placed[rotated] = Some(rotation);
        for &(resource, pattern) in &self.circle.rotated_jobs[rotated].uses {
            self.to_come[resource as usize] -= self.circle.volume(pattern);
        }
    }

    fn lift(&mut self, rotated: usize, rotation: u32) {
        self.loads.lift(rotated, rotation);
        self.placed[rotated] = None;
        for &(resource, pattern) in &self.circle.rotated_jobs[rotated].uses {
            self.to_come[resource as usize] += self.circle.volume(pattern);
        }
    }

    fn is_done(&self) -> bool {
        self.best_cost <= self.floor || self.loads.work() > self.most_work
    }

    fn descend(&mut self) {
        let Some(outlook) = self.look() else {
            let cost = self.loads.cost();
            if cost < self.best_cost {
                self.best_cost = cost;
                let rotations = self.placed.iter().map(|placed| placed.unwrap_or(0));
                self.best = rotations.collect();
            }
            return;
        };
        let so_far = self.loads.cost();
        let choices = self.choices(outlook.next, &outlook.costs);
        for (added, rotation) in choices {
            let bound = outlook.bound.max(so_far + added + outlook.others);
            if bound >= self.best_cost {
                break;
            }
            if self.is_done() {
                self.open = self.open.min(bound);
                break;
            }
            self.place(outlook.next, rotation);
            self.descend();
            self.lift(outlook.next, rotation);
        }
    }

    /// The rotations of `rotated`, cheapest first, without rotations that only exchange it with a twin.
    fn choices(&self, rotated: usize, costs: &[u64]) -> Vec<(u64, u32)> {
        let (mut first, mut last) = (0, u32::MAX);
        let twin = self.circle.rotated_jobs[rotated].twin;
        let anchor = anchor(self.circle);
        for (other, placed) in self.placed.iter().enumerate() {
            let Some(rotation) = placed else { continue };
            if other == anchor || self.circle.rotated_jobs[other].twin != twin {
                continue;
            }
            match other < rotated {
                true => first = first.max(*rotation),
                false => last = last.min(*rotation),
            }
        }
        let choices = costs
            .iter()
            .zip(0..)
            .map(|(&cost, rotation)| (cost, rotation));
        let mut choices: Vec<(u64, u32)> = choices
            .filter(|&(_, rotation)| (first..=last).contains(&rotation))
            .collect();
        choices.sort_unstable();
        choices
    }

    /// Prices all unplaced jobs; `None` if all jobs are placed.
    fn look(&mut self) -> Option<Outlook> {
        let left: Vec<usize> = (0..self.placed.len())
            .filter(|&rotated| self.placed[rotated].is_none())
            .collect();
        let mut least = vec![0; self.placed.len()];
        let mut costs = Vec::new();
        let mut next: Option<(usize, Vec<u64>, (u64, usize))> = None;
        for &rotated in &left {
            self.loads.price(rotated, &mut costs);
            let cheapest = costs.iter().copied().min().unwrap_or(0);
            let choice = costs.iter().filter(|&&cost| cost == cheapest).count();
            least[rotated] = cheapest;
            let rank = (cheapest, usize::MAX - choice);
            if next.as_ref().is_none_or(|(_, _, best)| rank > *best) {
                next = Some((rotated, std::mem::take(&mut costs), rank));
            }
        }
        let (next, costs, _) = next?;
        let alone: u64 = left.iter().map(|&rotated| least[rotated]).sum();
        let gain = |items: &[usize]| {
            matching(items, |first, second| {
                let each = least[first] + least[second];
                self.pairs.pair_cost(first, second).saturating_sub(each)
            })
        };
        let others: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&rotated| rotated != next)
            .collect();
        let cost = self.loads.cost();
        let volume = self.loads.volume_bound(&self.to_come);
        Some(Outlook {
            bound: (cost + alone + gain(&left)).max(volume),
            others: alone - least[next] + gain(&others),
            next,
            costs,
        })
    }
}
