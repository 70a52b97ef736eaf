//! Good rotations for many jobs.
//!
//! First come several starts: jobs are placed one after the other, each where it costs least, in an order that goes from neighbour to
//! neighbour, so that what is placed is of one piece. Then the starts are mended, the most promising first: each job that suffers goes to
//! where it costs least; if it is there already, what it suffers from is priced higher, until another job makes room (the breakout of
//! P. Morris, "The Breakout Method for Escaping from Local Minima", AAAI'93, with penalties that fade).

use super::circle::{Circle, Loads};
use super::exact::{Found, anchor};
use clearway_units::RandomStream;

/// One part in so many of the work is for starts.
const PART_FOR_STARTS: u64 = 4;
/// More starts than that are not kept.
const MOST_STARTS: usize = 100;
/// After so many rounds over all jobs a start is known well enough to be compared.
const ROUNDS_OF_START: u32 = 3;
/// After so many rounds in which nothing was gained the next start is mended, and twice as many when it comes to this one again.
const PATIENCE: usize = 50;
/// By how many times its own weight a link is priced higher when a job cannot avoid it.
const PENALTY: u64 = 16;
/// Largest share by which chance raises the rank of a job in the order of placing, which goes from neighbour to neighbour.
const NOISE: f64 = 0.5;

/// Looks for rotations that cost no more than `floor`, which nothing undercuts, until it has looked at `most_work` sectors.
pub(super) fn search(
    circle: &Circle,
    floor: u64,
    most_work: u64,
    random: &mut RandomStream,
) -> Found {
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
    Found {
        cost: walk.loads.cost(),
        bound: floor.min(walk.loads.cost()),
        work: walk.loads.work(),
        rotations: walk.rotations,
    }
}

/// Rotations that were met.
#[derive(Debug, Clone)]
struct Known {
    cost: u64,
    rotations: Vec<u32>,
}

struct Walk<'a> {
    circle: &'a Circle,
    loads: Loads<'a>,
    rotations: Vec<u32>,
    costs: Vec<u64>,
    /// Jobs that can be turned: all but the one that stays, those that use most first.
    movable: Vec<usize>,
    best: Known,
    floor: u64,
    most_work: u64,
}

impl<'a> Walk<'a> {
    /// Places those that use most first, each where it costs least.
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
            best: Known {
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

    /// True if nothing better is left to be found, or no work to find it with.
    fn is_over(&self) -> bool {
        self.best.cost <= self.floor || self.loads.work() >= self.most_work
    }

    /// Returns the present rotations, and keeps them if they are the best so far.
    fn note(&mut self) -> Known {
        let known = Known {
            cost: self.loads.cost(),
            rotations: self.rotations.clone(),
        };
        if known.cost < self.best.cost {
            self.best = known.clone();
        }
        known
    }

    /// Starts of the search, the most promising first.
    fn starts(&mut self, random: &mut RandomStream) -> Vec<Known> {
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
        // It lies elsewhere than the others, and has its turn even if it costs more.
        starts.insert(starts.len().min(2), by_use);
        starts
    }

    /// A few rounds, as long as they help.
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

    /// Places all anew, next always the one that meets most of what is placed.
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

    /// Leads `from` to something better, and returns the best that it led to.
    fn mend(&mut self, from: Known, patience: usize, random: &mut RandomStream) -> Known {
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

    /// Gives each job that suffers its turn, in random order.
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

    /// Turns a job to one of its cheapest rotations, chosen at random: staying would be the end of the walk. True if that is cheaper than
    /// before.
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

    /// Places a job that is nowhere. Of equally good rotations it gets the smallest.
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

    /// Of equally good rotations, the smallest: a plan should not turn jobs without a reason.
    fn settle(&mut self) {
        for rotated in self.movable.clone() {
            self.loads.lift(rotated, self.rotations[rotated]);
            self.put_where_cheapest(rotated);
        }
    }
}

/// Load that `rotated` meets of what is `placed` on each resource. Links that are fuller count more: there is less choice on them.
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
