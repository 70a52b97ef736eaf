//! Good rotations for many jobs.
//!
//! The search first creates several starts. It places jobs successively, each at its cheapest rotation, from neighbour to neighbour, so
//! that the placed jobs stay connected. Then it improves the starts, most promising first. Each overloaded job moves to its cheapest
//! rotation. If the job is already there, its overloaded links are priced higher until another job makes room (the breakout of P. Morris,
//! "The Breakout Method for Escaping from Local Minima", AAAI'93, with penalties that fade).

use super::circle::{Circle, Loads};
use super::exact::{SearchResult, anchor};
use clearway_units::RandomStream;

/// Divisor of the work that gives the part for starts.
const PART_FOR_STARTS: u64 = 4;
/// Largest number of kept starts.
const MOST_STARTS: usize = 100;
/// Number of rounds over all jobs after which a start can be compared.
const ROUNDS_OF_START: u32 = 3;
/// Number of rounds without a gain after which the search turns to the next start; it grows by this number with each further pass over the
/// starts.
const PATIENCE: usize = 50;
/// Multiple of a link's weight by which its price rises when a job cannot avoid the link.
const PENALTY: u64 = 16;
/// Largest random share by which the rank of a job rises in the placing order.
const NOISE: f64 = 0.5;

/// Searches rotations that cost at most `floor`, a lower bound, until `most_work` sectors are examined.
pub(super) fn search(
    circle: &Circle,
    floor: u64,
    most_work: u64,
    random: &mut RandomStream,
) -> SearchResult {
    let mut walk = Walk::new(circle, floor, most_work);
    let mut starts = walk.starts(random);
    let mut turn = 0;
    while !walk.is_over() {
        let at = turn % starts.len();
        let patience = PATIENCE * (1 + turn / starts.len());
        starts[at] = walk.mend(starts[at].clone(), patience, random);
        turn += 1;
    }
    let best = std::mem::take(&mut walk.best.rotations);
    walk.go_to(&best);
    walk.settle();
    SearchResult {
        cost: walk.loads.cost(),
        bound: floor.min(walk.loads.cost()),
        work: walk.loads.work(),
        rotations: walk.rotations,
    }
}

/// Visited rotations.
#[derive(Debug, Clone)]
struct VisitedRotations {
    cost: u64,
    rotations: Vec<u32>,
}

struct Walk<'a> {
    circle: &'a Circle,
    loads: Loads<'a>,
    rotations: Vec<u32>,
    costs: Vec<u64>,
    /// Jobs that can be rotated: all except the fixed job, largest use first.
    movable: Vec<usize>,
    best: VisitedRotations,
    floor: u64,
    most_work: u64,
}

impl<'a> Walk<'a> {
    /// Places the jobs with the largest use first, each at its cheapest rotation.
    fn new(circle: &'a Circle, floor: u64, most_work: u64) -> Self {
        let stays = anchor(circle);
        let mut movable: Vec<usize> = (0..circle.rotated_jobs.len())
            .filter(|&rotated| rotated != stays)
            .collect();
        let used = |rotated: usize| -> u64 {
            let uses = circle.rotated_jobs[rotated].uses.iter();
            uses.map(|&(resource, pattern)| {
                circle.weights[resource as usize] * circle.volume(pattern)
            })
            .sum()
        };
        movable.sort_by_key(|&rotated| (std::cmp::Reverse(used(rotated)), rotated));
        let mut walk = Self {
            circle,
            loads: Loads::new(circle),
            rotations: vec![0; circle.rotated_jobs.len()],
            costs: Vec::new(),
            movable,
            best: VisitedRotations {
                cost: u64::MAX,
                rotations: Vec::new(),
            },
            floor,
            most_work,
        };
        walk.loads.place(stays, 0);
        for at in 0..walk.movable.len() {
            walk.put_where_cheapest(walk.movable[at]);
        }
        walk.note();
        walk
    }

    /// True if the floor is reached or the work is used up.
    fn is_over(&self) -> bool {
        self.best.cost <= self.floor || self.loads.work() >= self.most_work
    }

    /// Present rotations, which are also kept if they are the best so far.
    fn note(&mut self) -> VisitedRotations {
        let known = VisitedRotations {
            cost: self.loads.cost(),
            rotations: self.rotations.clone(),
        };
        if known.cost < self.best.cost {
            self.best = known.clone();
        }
        known
    }

    /// Starts of the search, the most promising first.
    fn starts(&mut self, random: &mut RandomStream) -> Vec<VisitedRotations> {
        self.descend(random);
        let by_use = self.note();
        let mut starts = Vec::new();
        let enough = self.most_work / PART_FOR_STARTS;
        let (mut noise, mut effort) = (0.0, 0);
        while !self.is_over() && self.loads.work() + effort < enough && starts.len() < MOST_STARTS {
            let before = self.loads.work();
            self.grow(noise, random);
            self.descend(random);
            starts.push(self.note());
            effort = self.loads.work() - before;
            noise = NOISE;
        }
        starts.sort_by_key(|start| start.cost);
        // This start is far from the others, and is tried early even if it costs more.
        starts.insert(starts.len().min(2), by_use);
        starts
    }

    /// Runs a few rounds, as long as they help.
    fn descend(&mut self, random: &mut RandomStream) {
        for _ in 0..ROUNDS_OF_START {
            let before = self.loads.cost();
            if before <= self.floor {
                return;
            }
            self.round(random, |walk, rotated, random| {
                walk.turn(rotated, random);
            });
            if self.loads.cost() == before {
                return;
            }
        }
    }

    /// Places all jobs anew; the next job is always the one that meets most placed load.
    fn grow(&mut self, noise: f64, random: &mut RandomStream) {
        let circle = self.circle;
        let mut placed = vec![0; circle.weights.len()];
        let add = |placed: &mut [u64], rotated: usize| {
            for &(resource, pattern) in &circle.rotated_jobs[rotated].uses {
                placed[resource as usize] += circle.volume(pattern);
            }
        };
        add(&mut placed, anchor(circle));
        let chance: Vec<f64> = (0..circle.rotated_jobs.len())
            .map(|_| 1.0 + noise * random.unit())
            .collect();
        let mut left = self.movable.clone();
        for &rotated in &left {
            self.loads.lift(rotated, self.rotations[rotated]);
        }
        while !left.is_empty() {
            let rank = |rotated: usize| met(circle, &placed, rotated) * chance[rotated];
            let mut next = (0, rank(left[0]));
            for (at, &rotated) in left.iter().enumerate().skip(1) {
                let rank = rank(rotated);
                if rank > next.1 {
                    next = (at, rank);
                }
            }
            let rotated = left.remove(next.0);
            add(&mut placed, rotated);
            self.put_where_cheapest(rotated);
        }
    }

    /// Improves `from`, and returns the best rotations on the way.
    fn mend(
        &mut self,
        from: VisitedRotations,
        patience: usize,
        random: &mut RandomStream,
    ) -> VisitedRotations {
        self.go_to(&from.rotations);
        let mut own = from;
        let mut idle = 0;
        while idle < patience && own.cost > self.floor && !self.is_over() {
            idle += 1;
            self.round(random, |walk, rotated, random| {
                if !walk.turn(rotated, random) {
                    walk.loads.penalize(rotated, PENALTY);
                }
                if walk.loads.cost() < own.cost {
                    own = walk.note();
                    idle = 0;
                }
            });
            self.loads.fade_penalties();
        }
        self.loads.forget_penalties();
        own
    }

    /// Rotates each overloaded job once, in random order.
    fn round(
        &mut self,
        random: &mut RandomStream,
        mut turn: impl FnMut(&mut Self, usize, &mut RandomStream),
    ) {
        let mut order = self.movable.clone();
        random.shuffle(&mut order);
        for rotated in order {
            if self.loads.work() > self.most_work {
                return;
            }
            if self.loads.exceeds_capacity(rotated) {
                turn(self, rotated, random);
            }
        }
    }

    /// Rotates a job to one of its cheapest rotations, chosen at random, because staying would end the walk. True if the cost falls.
    fn turn(&mut self, rotated: usize, random: &mut RandomStream) -> bool {
        let before = self.rotations[rotated];
        self.loads.lift(rotated, before);
        self.loads.price(rotated, &mut self.costs);
        let cheapest = self.costs.iter().copied().min().unwrap_or(0);
        let is_cheapest = |&(cost, _): &(&u64, u32)| *cost == cheapest;
        let equals = || self.costs.iter().zip(0..).filter(is_cheapest);
        let chosen = random.below(equals().count() as u32) as usize;
        let rotation = equals().nth(chosen).map_or(0, |(_, rotation)| rotation);
        let gains = cheapest < self.costs[before as usize];
        self.put(rotated, rotation);
        gains
    }

    /// Places an unplaced job at its cheapest rotation, and of equal rotations at the smallest.
    fn put_where_cheapest(&mut self, rotated: usize) {
        self.loads.price(rotated, &mut self.costs);
        let cheapest = self.costs.iter().zip(0..).min();
        let rotation = cheapest.map_or(0, |(_, rotation)| rotation);
        self.put(rotated, rotation);
    }

    fn put(&mut self, rotated: usize, rotation: u32) {
        self.loads.place(rotated, rotation);
        self.rotations[rotated] = rotation;
    }

    fn go_to(&mut self, rotations: &[u32]) {
        for (rotated, &rotation) in rotations.iter().enumerate() {
            if self.rotations[rotated] != rotation {
                self.loads.lift(rotated, self.rotations[rotated]);
                self.put(rotated, rotation);
            }
        }
    }

    /// Moves jobs to the smallest of equally good rotations, because a plan should not rotate jobs without a reason.
    fn settle(&mut self) {
        for rotated in self.movable.clone() {
            self.loads.lift(rotated, self.rotations[rotated]);
            self.put_where_cheapest(rotated);
        }
    }
}

/// `placed` load that `rotated` meets on its resources. Fuller links count more, because they leave less choice.
fn met(circle: &Circle, placed: &[u64], rotated: usize) -> f64 {
    let uses = circle.rotated_jobs[rotated].uses.iter();
    let on_each = uses.map(|&(resource, pattern)| {
        let (weight, there) = (
            circle.weights[resource as usize],
            placed[resource as usize] as f64,
        );
        weight as f64 * there * (there + circle.volume(pattern) as f64)
    });
    on_each.sum()
}
