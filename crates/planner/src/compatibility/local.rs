//! Good rotations for many jobs: each in turn where it costs least, and again from a shaken start when nobody can improve.

use super::circle::{Circle, Loads};
use super::exact::{Found, anchor};
use clearway_units::RandomStream;

/// After so many rounds in which nothing was gained, some jobs are turned at random.
const PATIENCE: u32 = 4;

/// Looks for rotations that cost no more than `floor`, which nothing undercuts, until it has looked at `most_work` sectors.
pub(super) fn search(
    circle: &Circle,
    floor: u64,
    most_work: u64,
    random: &mut RandomStream,
) -> Found {
    let mut walk = Walk::new(circle);
    let mut best = walk.rotations.clone();
    let mut best_cost = walk.loads.cost();
    let mut patience = 0;
    while best_cost > floor && walk.loads.work() < most_work {
        walk.round(random, most_work);
        if walk.loads.cost() < best_cost {
            best_cost = walk.loads.cost();
            best.clone_from(&walk.rotations);
            patience = 0;
        } else {
            patience += 1;
        }
        if patience == PATIENCE {
            patience = 0;
            walk.return_to(&best);
            walk.shake(random);
        }
    }
    walk.return_to(&best);
    walk.settle();
    Found {
        cost: walk.loads.cost(),
        bound: floor.min(walk.loads.cost()),
        work: walk.loads.work(),
        rotations: walk.rotations,
    }
}

struct Walk<'a> {
    circle: &'a Circle,
    loads: Loads<'a>,
    rotations: Vec<u32>,
    costs: Vec<u64>,
    /// All but the one that stays.
    movable: Vec<usize>,
}

impl<'a> Walk<'a> {
    /// Places those that use most first, each where it costs least.
    fn new(circle: &'a Circle) -> Self {
        let stays = anchor(circle);
        let mut movable: Vec<usize> = (0..circle.wheels.len())
            .filter(|&wheel| wheel != stays)
            .collect();
        let used = |wheel: usize| -> u64 {
            let uses = circle.wheels[wheel].uses.iter();
            uses.map(|&(resource, track)| circle.weights[resource as usize] * circle.volume(track))
                .sum()
        };
        movable.sort_by_key(|&wheel| (std::cmp::Reverse(used(wheel)), wheel));
        let mut walk = Self {
            circle,
            loads: Loads::new(circle),
            rotations: vec![0; circle.wheels.len()],
            costs: Vec::new(),
            movable,
        };
        walk.loads.place(stays, 0);
        for at in 0..walk.movable.len() {
            let wheel = walk.movable[at];
            walk.loads.price(wheel, &mut walk.costs);
            walk.put_where_cheapest(wheel);
        }
        walk
    }

    fn put_where_cheapest(&mut self, wheel: usize) {
        let cheapest = self.costs.iter().zip(0..).min();
        let rotation = cheapest.map_or(0, |(_, rotation)| rotation);
        self.put(wheel, rotation);
    }

    fn put(&mut self, wheel: usize, rotation: u32) {
        self.loads.place(wheel, rotation);
        self.rotations[wheel] = rotation;
    }

    /// Each job that suffers goes to one of its cheapest rotations, whichever chance says: staying would be the end of the walk.
    fn round(&mut self, random: &mut RandomStream, most_work: u64) {
        let mut order = self.movable.clone();
        random.shuffle(&mut order);
        for wheel in order {
            if self.loads.work() > most_work {
                return;
            }
            if !self.loads.suffers(wheel) {
                continue;
            }
            self.loads.lift(wheel, self.rotations[wheel]);
            self.loads.price(wheel, &mut self.costs);
            let cheapest = self.costs.iter().copied().min().unwrap_or(0);
            let equal = self.costs.iter().filter(|&&cost| cost == cheapest).count();
            let chosen = random.below(equal as u32) as usize;
            let mut equals = self
                .costs
                .iter()
                .zip(0..)
                .filter(|(cost, _)| **cost == cheapest);
            let rotation = equals.nth(chosen).map_or(0, |(_, rotation)| rotation);
            self.put(wheel, rotation);
        }
    }

    /// Turns up to three of those that suffer at random.
    fn shake(&mut self, random: &mut RandomStream) {
        let mut suffering: Vec<usize> = self.movable.clone();
        suffering.retain(|&wheel| self.loads.suffers(wheel));
        random.shuffle(&mut suffering);
        for wheel in suffering.into_iter().take(3) {
            self.loads.lift(wheel, self.rotations[wheel]);
            let rotation = random.below(self.circle.wheels[wheel].rotations);
            self.put(wheel, rotation);
        }
    }

    fn return_to(&mut self, rotations: &[u32]) {
        for (wheel, &rotation) in rotations.iter().enumerate() {
            if self.rotations[wheel] != rotation {
                self.loads.lift(wheel, self.rotations[wheel]);
                self.put(wheel, rotation);
            }
        }
    }

    /// Of equally good rotations, the smallest: a plan should not turn jobs without a reason.
    fn settle(&mut self) {
        for wheel in self.movable.clone() {
            self.loads.lift(wheel, self.rotations[wheel]);
            self.loads.price(wheel, &mut self.costs);
            self.put_where_cheapest(wheel);
        }
    }
}
