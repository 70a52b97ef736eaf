//! The jobs of one connected part on their unified circle, as numbers.

use super::grid::Grid;
use super::{Phase, PhaseKind, Problem, Resource, Share};
use std::collections::BTreeMap;

/// The whole of a resource, in millionths.
const WHOLE: u64 = Share::WHOLE.millionths() as u64;

/// Largest penalty: multiplied by a hundred thousand full sectors and as many links, it is far below the range of prices.
const MOST_PENALTY: u64 = 1_000;

/// Consecutive sectors that do not cross the beginning of the circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) length: u32,
}

/// Load of a job on the circle of a resource: the sectors of each share. A sector has only one share.
pub(super) type Pattern = Vec<(u32, Vec<Run>)>;

/// A job on a circle.
#[derive(Debug, Clone)]
pub(super) struct RotatedJob {
    /// Number of distinct rotations: the sectors of one iteration, rounded up.
    pub(super) rotations: u32,
    /// Resources that the job uses, each with the pattern of its load, as indices into the resources and patterns of the circle.
    pub(super) uses: Vec<(u32, u32)>,
    /// True if an iteration is a whole number of sectors; further rotations then only repeat these rotations.
    pub(super) exact: bool,
    /// First job with equal rotations and uses, possibly this job.
    pub(super) twin: u32,
}

/// An instance of the search: choose a rotation for each job that minimises the demand above the whole, summed over all resources and
/// sectors.
#[derive(Debug, Clone)]
pub(super) struct Circle {
    /// Number of sectors (K).
    pub(super) sectors: u32,
    pub(super) rotated_jobs: Vec<RotatedJob>,
    pub(super) patterns: Vec<Pattern>,
    /// Number of equal resources that each resource stands for: the same jobs use them in the same way.
    pub(super) weights: Vec<u64>,
    /// Index in `weights` of each link and GPU of the part, in their order.
    pub(super) merged: Vec<u32>,
}

impl Circle {
    /// The circle of `members`, which use `resources` as listed in `users`.
    pub(super) fn new(
        (problem, choices): (&Problem, &[usize]),
        members: &[u32],
        resources: &[Resource],
        users: &BTreeMap<Resource, Vec<u32>>,
        grid: &Grid,
    ) -> Self {
        let mut circle = Self {
            sectors: grid.sectors,
            rotated_jobs: grid
                .repeats
                .iter()
                .map(|&repeats| RotatedJob {
                    rotations: grid.sectors.div_ceil(repeats),
                    uses: Vec::new(),
                    exact: grid.sectors.is_multiple_of(repeats),
                    twin: 0,
                })
                .collect(),
            patterns: Vec::new(),
            weights: Vec::new(),
            merged: Vec::new(),
        };
        let mut patterns: BTreeMap<Pattern, u32> = BTreeMap::new();
        let mut drawn: BTreeMap<(u32, PhaseKind, Vec<u32>), u32> = BTreeMap::new();
        let mut alike: BTreeMap<Vec<(u32, u32)>, usize> = BTreeMap::new();
        for &resource in resources {
            let mut load = Vec::new();
            for &job in &users[&resource] {
                let at = members.binary_search(&job).expect("a member of the part");
                let shares = problem.shares(job as usize, choices[job as usize], resource);
                let shares = shares.into_iter().map(Share::millionths).collect();
                let key = (job, resource.kind(), shares);
                let pattern = *drawn.entry(key).or_insert_with_key(|(_, kind, shares)| {
                    let phases = problem.jobs()[job as usize].profile.phases(*kind);
                    let pattern = draw(phases, shares, grid, grid.repeats[at]);
                    let next = patterns.len() as u32;
                    *patterns.entry(pattern).or_insert(next)
                });
                load.push((at as u32, pattern));
            }
            let next = circle.weights.len();
            let index = *alike.entry(load.clone()).or_insert(next);
            circle.merged.push(index as u32);
            if index < next {
                circle.weights[index] += 1;
                continue;
            }
            circle.weights.push(1);
            for (at, pattern) in load {
                circle.rotated_jobs[at as usize]
                    .uses
                    .push((index as u32, pattern));
            }
        }
        let mut numbered: Vec<(Pattern, u32)> = patterns.into_iter().collect();
        numbered.sort_by_key(|&(_, number)| number);
        circle.patterns = numbered.into_iter().map(|(pattern, _)| pattern).collect();
        circle.find_twins();
        circle
    }

    /// Finds jobs with the same patterns on the same resources, which can be exchanged.
    pub(super) fn find_twins(&mut self) {
        let mut first: BTreeMap<(u32, Vec<(u32, u32)>), u32> = BTreeMap::new();
        for (index, rotated) in self.rotated_jobs.iter_mut().enumerate() {
            let key = (rotated.rotations, rotated.uses.clone());
            rotated.twin = *first.entry(key).or_insert(index as u32);
        }
    }

    /// Total demand of `pattern`, in millionths times sectors.
    pub(super) fn volume(&self, pattern: u32) -> u64 {
        let shares = self.patterns[pattern as usize].iter();
        shares
            .map(|(share, runs)| {
                let sectors: u64 = runs.iter().map(|run| u64::from(run.length)).sum();
                u64::from(*share) * sectors
            })
            .sum()
    }

    /// Total capacity of a resource in a turn, in millionths times sectors.
    pub(super) fn capacity(&self) -> u64 {
        u64::from(self.sectors) * WHOLE
    }

    /// Number of sectors after which `rotated` repeats: its number of rotations, or the whole circle.
    fn turn(&self, rotated: usize) -> usize {
        let RotatedJob {
            rotations, exact, ..
        } = self.rotated_jobs[rotated];
        (if exact { rotations } else { self.sectors }) as usize
    }

    /// Work of pricing all rotations of every job, in sectors.
    pub(super) fn effort_of_all(&self) -> u64 {
        (0..self.rotated_jobs.len())
            .map(|rotated| self.effort(rotated))
            .sum()
    }

    /// Work of pricing all rotations of `rotated`, in sectors.
    fn effort(&self, rotated: usize) -> u64 {
        let turn = self.turn(rotated);
        let rotations = u64::from(self.rotated_jobs[rotated].rotations);
        // If several turns are superposed, the sectors of one turn are summed once more.
        let sums = match turn as u32 == self.sectors {
            true => turn as u64,
            false => u64::from(self.sectors) + turn as u64,
        };
        let of_track = |pattern: u32| {
            let shares = self.patterns[pattern as usize].iter();
            let of_share = |runs: &[Run]| sums + rotations * first_turn(runs, turn).count() as u64;
            shares.map(|(_, runs)| of_share(runs)).sum::<u64>()
        };
        let uses = self.rotated_jobs[rotated].uses.iter();
        uses.map(|&(_, pattern)| of_track(pattern)).sum::<u64>() + rotations
    }
}

/// Start and end of the parts of `runs` in the first `turn` sectors.
fn first_turn(runs: &[Run], turn: usize) -> impl Iterator<Item = (usize, usize)> {
    let bounds = runs.iter().map(|run| (run.start, run.start + run.length));
    let bounds = bounds.map(|(start, end)| (start as usize, end as usize));
    let inside = bounds.take_while(move |&(start, _)| start < turn);
    inside.map(move |(start, end)| (start, end.min(turn)))
}

/// Phases as sectors on the whole circle. A phase fills every sector that it touches, so a plan that fits in sectors also fits without
/// them. If two phases of a job meet in a sector, the larger share counts.
fn draw(phases: &[Phase], shares: &[u32], grid: &Grid, repeats: u32) -> Pattern {
    let mut sectors = vec![0u32; grid.sectors as usize];
    // Scale by `repeats`, so that the beginning of each iteration is a whole number.
    let tick = u128::from(grid.tick.as_ps()) * u128::from(repeats);
    let perimeter = u128::from(grid.tick.as_ps()) * u128::from(grid.sectors);
    for turn in 0..u128::from(repeats) {
        for (phase, &share) in phases.iter().zip(shares) {
            let at = |span: clearway_units::Span| {
                turn * perimeter + u128::from(span.as_ps()) * u128::from(repeats)
            };
            let first = (at(phase.start) / tick) as usize;
            let end = at(phase.end()).div_ceil(tick) as usize;
            for sector in &mut sectors[first..end.min(grid.sectors as usize)] {
                *sector = (*sector).max(share);
            }
        }
    }
    runs(&sectors)
}

/// Runs of sectors for each share except zero.
pub(super) fn runs(sectors: &[u32]) -> Pattern {
    let mut pattern: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
    let mut start = 0;
    for chunk in sectors.chunk_by(|a, b| a == b) {
        if chunk[0] > 0 {
            pattern.entry(chunk[0]).or_default().push(Run {
                start,
                length: chunk.len() as u32,
            });
        }
        start += chunk.len() as u32;
    }
    pattern.into_iter().collect()
}

/// Loads of a circle while rotations are tried.
#[derive(Debug, Clone)]
pub(super) struct Loads<'a> {
    circle: &'a Circle,
    /// Load of each sector of each resource, in millionths.
    sectors: Vec<Vec<u32>>,
    /// Demand above the whole on each resource, without the resource's weight.
    excess: Vec<u64>,
    /// Total demand on each resource.
    demand: Vec<u64>,
    /// Factor on the weight of each resource in the price of its excess.
    penalties: Vec<u64>,
    /// Buffer for sums.
    prefix: Vec<u64>,
    /// Sectors examined so far.
    work: u64,
}

impl<'a> Loads<'a> {
    /// Loads of a circle without jobs.
    pub(super) fn new(circle: &'a Circle) -> Self {
        let resources = circle.weights.len();
        Self {
            circle,
            sectors: vec![vec![0; circle.sectors as usize]; resources],
            excess: vec![0; resources],
            demand: vec![0; resources],
            penalties: vec![1; resources],
            prefix: Vec::new(),
            work: 0,
        }
    }

    /// Sectors examined so far, which measure the cost of the search independently of the machine.
    pub(super) fn work(&self) -> u64 {
        self.work
    }
    /// Counts work done elsewhere.
    pub(super) fn add_work(&mut self, sectors: u64) {
        self.work += sectors;
    }

    /// Demand above the whole, over all resources.
    pub(super) fn cost(&self) -> u64 {
        let of_each = self.excess.iter().zip(&self.circle.weights);
        of_each.map(|(excess, weight)| excess * weight).sum()
    }

    /// True if a resource of `rotated` has more demand than capacity.
    pub(super) fn exceeds_capacity(&self, rotated: usize) -> bool {
        let mut uses = self.circle.rotated_jobs[rotated].uses.iter();
        uses.any(|&(resource, _)| self.excess[resource as usize] > 0)
    }

    /// Raises the price of excess by `more` times the weight on each overloaded resource of `rotated`.
    pub(super) fn penalize(&mut self, rotated: usize, more: u64) {
        for &(resource, _) in &self.circle.rotated_jobs[rotated].uses {
            if self.excess[resource as usize] > 0 {
                let penalty = &mut self.penalties[resource as usize];
                *penalty = (*penalty + more).min(MOST_PENALTY);
            }
        }
    }
    /// Removes a quarter of all penalties.
    pub(super) fn fade_penalties(&mut self) {
        for penalty in &mut self.penalties {
            *penalty -= (*penalty - 1).div_ceil(4);
        }
    }
    /// Resets prices to costs.
    pub(super) fn forget_penalties(&mut self) {
        self.penalties.fill(1);
    }

    /// Demand on `resource` above the whole, in millionths times sectors.
    pub(super) fn excess(&self, resource: u32) -> u64 {
        self.excess[resource as usize]
    }

    /// Unused part of `resource`, in millionths times sectors.
    pub(super) fn free(&self, resource: usize) -> u64 {
        self.circle.capacity() + self.excess[resource] - self.demand[resource]
    }

    /// Lower bound of the total cost after `to_come` more demand on each resource.
    pub(super) fn volume_bound(&self, to_come: &[u64]) -> u64 {
        let mut bound = 0;
        for (resource, &more) in to_come.iter().enumerate() {
            let over = self.excess[resource] + more.saturating_sub(self.free(resource));
            bound += over * self.circle.weights[resource];
        }
        bound
    }

    /// Writes the cost that each rotation of `rotated` would add into `costs`.
    ///
    /// A job that repeats on the circle has all its turns superposed. Prefix sums along the superposed turn then give the cost of each
    /// rotation with one subtraction per arc, for any shares.
    pub(super) fn price(&mut self, rotated: usize, costs: &mut Vec<u64>) {
        let circle = self.circle;
        let rotations = circle.rotated_jobs[rotated].rotations as usize;
        let turn = circle.turn(rotated);
        costs.clear();
        costs.resize(rotations, 0);
        self.work += circle.effort(rotated);
        for &(resource, pattern) in &circle.rotated_jobs[rotated].uses {
            let weight = circle.weights[resource as usize] * self.penalties[resource as usize];
            for (share, runs) in &circle.patterns[pattern as usize] {
                self.sum_up(resource as usize, *share, turn);
                for (start, end) in first_turn(runs, turn) {
                    add_sums(costs, &self.prefix, start, end - start, weight);
                }
            }
        }
    }

    /// Computes prefix sums of the excess that `share` would add on `resource`, over one `turn` with all turns superposed.
    fn sum_up(&mut self, resource: usize, share: u32, turn: usize) {
        let loads = &self.sectors[resource];
        self.prefix.clear();
        self.prefix.resize(turn + 1, 0);
        let sums = &mut self.prefix[1..];
        for loads in loads.chunks_exact(turn) {
            for (sum, &load) in sums.iter_mut().zip(loads) {
                *sum += added(load, share);
            }
        }
        let mut all = 0;
        for sum in sums {
            all += *sum;
            *sum = all;
        }
    }

    /// Places `rotated` on the circle, rotated by `rotation` sectors.
    pub(super) fn place(&mut self, rotated: usize, rotation: u32) {
        self.turn(rotated, rotation, |load, share| {
            let more = added(*load, share);
            *load += share;
            more as i64
        });
        self.count(rotated, |demand, volume| demand + volume);
    }

    /// Removes `rotated` from its placed rotation.
    pub(super) fn lift(&mut self, rotated: usize, rotation: u32) {
        self.turn(rotated, rotation, |load, share| {
            *load -= share;
            -(added(*load, share) as i64)
        });
        self.count(rotated, |demand, volume| demand - volume);
    }

    fn turn(&mut self, rotated: usize, rotation: u32, change: impl Fn(&mut u32, u32) -> i64) {
        let circle = self.circle;
        for &(resource, pattern) in &circle.rotated_jobs[rotated].uses {
            let loads = &mut self.sectors[resource as usize];
            let mut excess = 0;
            for (share, runs) in &circle.patterns[pattern as usize] {
                for run in runs {
                    let start = ((run.start + rotation) % circle.sectors) as usize;
                    let length = run.length as usize;
                    let straight = length.min(loads.len() - start);
                    for load in &mut loads[start..start + straight] {
                        excess += change(load, *share);
                    }
                    for load in &mut loads[..length - straight] {
                        excess += change(load, *share);
                    }
                    self.work += u64::from(run.length);
                }
            }
            let total = &mut self.excess[resource as usize];
            *total = total
                .checked_add_signed(excess)
                .expect("what is lifted was placed");
        }
    }

    fn count(&mut self, rotated: usize, change: impl Fn(u64, u64) -> u64) {
        let circle = self.circle;
        for &(resource, pattern) in &circle.rotated_jobs[rotated].uses {
            let demand = &mut self.demand[resource as usize];
            *demand = change(*demand, circle.volume(pattern));
        }
    }
}

/// Excess that another `share` adds to a sector with `load`. The excess never falls as the load grows, on which all bounds depend.
fn added(load: u32, share: u32) -> u64 {
    let over = u64::from(load) + u64::from(share);
    over.saturating_sub(WHOLE.max(u64::from(load)))
}

/// Adds to each of `costs`, in order of rotation, the sum over `length` sectors from `start` on, turned by the rotation. `sums` are prefix
/// sums from the beginning of a turn, which wraps around.
fn add_sums(costs: &mut [u64], sums: &[u64], start: usize, length: usize, weight: u64) {
    let turn = sums.len() - 1;
    let whole = sums[turn];
    // Rotations from which the end, and later also the beginning, is in the next turn.
    let end_around = (turn - start - length + 1).min(costs.len());
    let all_around = (turn - start).min(costs.len());
    let (straight, rest) = costs.split_at_mut(end_around);
    let (across, around) = rest.split_at_mut(all_around - end_around);
    let ends = &sums[start + length..];
    for ((cost, from), to) in straight.iter_mut().zip(&sums[start..]).zip(ends) {
        *cost += (to - from) * weight;
    }
    let begins = &sums[start + end_around..];
    for ((cost, from), to) in across.iter_mut().zip(begins).zip(&sums[1..]) {
        *cost += (whole - from + to) * weight;
    }
    let ends = sums.iter().skip(length);
    for ((cost, from), to) in around.iter_mut().zip(sums).zip(ends) {
        *cost += (to - from) * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::{Purpose, RandomStream};

    /// Five jobs on three resources of a circle of 60 sectors; one does not repeat in whole sectors.
    fn any_circle(random: &mut RandomStream) -> Circle {
        let mut circle = Circle {
            sectors: 60,
            rotated_jobs: Vec::new(),
            patterns: Vec::new(),
            weights: vec![1, 2, 5],
            merged: Vec::new(),
        };
        for (rotations, exact) in [(60, true), (30, true), (20, true), (12, true), (9, false)] {
            let pattern: Vec<u32> = (0..if exact { rotations } else { 60 })
                .map(|_| [0, 0, 300_000, 1_000_000][random.below(4) as usize])
                .collect();
            let sectors: Vec<u32> = pattern.iter().copied().cycle().take(60).collect();
            let pattern = circle.patterns.len() as u32;
            circle.patterns.push(runs(&sectors));
            let uses = (0..3).filter(|_| random.chance(0.7));
            circle.rotated_jobs.push(RotatedJob {
                rotations,
                uses: uses.map(|resource| (resource, pattern)).collect(),
                exact,
                twin: 0,
            });
        }
        circle
    }

    #[test]
    fn prices_are_what_placing_adds_to_the_cost() {
        let mut random = RandomStream::new(7, Purpose::Test, 0);
        for _ in 0..100 {
            let circle = any_circle(&mut random);
            let mut loads = Loads::new(&circle);
            let mut rotations = Vec::new();
            for rotated in 0..circle.rotated_jobs.len() {
                rotations.push(random.below(circle.rotated_jobs[rotated].rotations));
                loads.place(rotated, rotations[rotated]);
            }
            let mut prices = Vec::new();
            for (rotated, of) in circle.rotated_jobs.iter().enumerate() {
                loads.lift(rotated, rotations[rotated]);
                loads.price(rotated, &mut prices);
                let without = loads.cost();
                let added = (0..of.rotations).map(|rotation| {
                    loads.place(rotated, rotation);
                    let with = loads.cost();
                    loads.lift(rotated, rotation);
                    with - without
                });
                assert_eq!(added.collect::<Vec<_>>(), prices);
                loads.place(rotated, rotations[rotated]);
            }
        }
    }

    #[test]
    fn penalties_raise_prices_and_fade() {
        let mut circle = any_circle(&mut RandomStream::new(7, Purpose::Test, 1));
        for rotated in &mut circle.rotated_jobs {
            // All jobs use the same resource, so that only resource 1 is overloaded.
            rotated.uses = vec![(1, 0)];
        }
        let mut loads = Loads::new(&circle);
        loads.place(0, 0);
        loads.place(0, 0);
        let prices = |loads: &mut Loads<'_>| {
            let mut prices = Vec::new();
            loads.price(0, &mut prices);
            prices
        };
        let plain = prices(&mut loads);
        loads.penalize(0, 8);
        let raised = |factor: u64| plain.iter().map(|price| price * factor).collect::<Vec<_>>();
        assert_eq!(prices(&mut loads), raised(9));
        loads.fade_penalties();
        assert_eq!(prices(&mut loads), raised(7));
        for _ in 0..20 {
            loads.fade_penalties();
        }
        assert_eq!(prices(&mut loads), plain);
        loads.penalize(0, u64::from(u32::MAX));
        assert_eq!(prices(&mut loads), raised(MOST_PENALTY));
        loads.forget_penalties();
        assert_eq!(prices(&mut loads), plain);
        // Penalties do not change the cost itself.
        let cost = loads.cost();
        loads.penalize(0, 8);
        assert_eq!(loads.cost(), cost);
    }
}
