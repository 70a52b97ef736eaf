//! The jobs of one connected part on their unified circle, as numbers.

use super::grid::Grid;
use super::{Kind, Phase, Problem, Resource, Share};
use std::collections::BTreeMap;

/// The whole of a resource, in millionths.
const WHOLE: u64 = Share::WHOLE.millionths() as u64;

/// Consecutive sectors, not across the beginning of the circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) length: u32,
}

/// What a job puts on the circle of a resource: for each share that it takes, the sectors in which it does. No sector is in two of them.
pub(super) type Track = Vec<(u32, Vec<Run>)>;

/// A job on a circle.
#[derive(Debug, Clone)]
pub(super) struct Wheel {
    /// Rotations that differ: the sectors of one iteration, rounded up.
    pub(super) rotations: u32,
    /// What it uses: a resource of the circle and a track.
    pub(super) uses: Vec<(u32, u32)>,
    /// True if an iteration is a whole number of sectors: other rotations then only repeat these.
    pub(super) exact: bool,
    /// The first job that is the same in everything, possibly itself.
    pub(super) twin: u32,
}

/// An instance of the search: minimise the sum over all resources and sectors of what is asked for above the whole, by choosing a
/// rotation for each wheel.
#[derive(Debug, Clone)]
pub(super) struct Circle {
    /// How many sectors it has (K).
    pub(super) sectors: u32,
    pub(super) wheels: Vec<Wheel>,
    pub(super) tracks: Vec<Track>,
    /// For each resource, how many there are that the same jobs use in the same way.
    pub(super) weights: Vec<u64>,
    /// Which of the above stands for each link and GPU of the part, in the order of those.
    pub(super) merged: Vec<u32>,
}

impl Circle {
    /// The circle of `members`, which use `resources` where jobs stand as `users` says.
    pub(super) fn new(
        (problem, choices): (&Problem, &[usize]),
        members: &[u32],
        resources: &[Resource],
        users: &BTreeMap<Resource, Vec<u32>>,
        grid: &Grid,
    ) -> Self {
        let mut circle = Self {
            sectors: grid.sectors,
            wheels: grid
                .repeats
                .iter()
                .map(|&repeats| Wheel {
                    rotations: grid.sectors.div_ceil(repeats),
                    uses: Vec::new(),
                    exact: grid.sectors.is_multiple_of(repeats),
                    twin: 0,
                })
                .collect(),
            tracks: Vec::new(),
            weights: Vec::new(),
            merged: Vec::new(),
        };
        let mut tracks: BTreeMap<Track, u32> = BTreeMap::new();
        let mut drawn: BTreeMap<(u32, Kind, Vec<u32>), u32> = BTreeMap::new();
        let mut alike: BTreeMap<Vec<(u32, u32)>, usize> = BTreeMap::new();
        for &resource in resources {
            let mut load = Vec::new();
            for &job in &users[&resource] {
                let at = members.binary_search(&job).expect("a member of the part");
                let shares = problem.shares(job as usize, choices[job as usize], resource);
                let shares = shares.into_iter().map(Share::millionths).collect();
                let key = (job, resource.kind(), shares);
                let track = *drawn.entry(key).or_insert_with_key(|(_, kind, shares)| {
                    let phases = problem.jobs()[job as usize].profile.phases(*kind);
                    let track = draw(phases, shares, grid, grid.repeats[at]);
                    let next = tracks.len() as u32;
                    *tracks.entry(track).or_insert(next)
                });
                load.push((at as u32, track));
            }
            let next = circle.weights.len();
            let index = *alike.entry(load.clone()).or_insert(next);
            circle.merged.push(index as u32);
            if index < next {
                circle.weights[index] += 1;
                continue;
            }
            circle.weights.push(1);
            for (at, track) in load {
                circle.wheels[at as usize].uses.push((index as u32, track));
            }
        }
        let mut numbered: Vec<(Track, u32)> = tracks.into_iter().collect();
        numbered.sort_by_key(|&(_, number)| number);
        circle.tracks = numbered.into_iter().map(|(track, _)| track).collect();
        circle.find_twins();
        circle
    }

    /// Jobs with the same tracks on the same resources can be exchanged.
    pub(super) fn find_twins(&mut self) {
        let mut first: BTreeMap<(u32, Vec<(u32, u32)>), u32> = BTreeMap::new();
        for (index, wheel) in self.wheels.iter_mut().enumerate() {
            let key = (wheel.rotations, wheel.uses.clone());
            wheel.twin = *first.entry(key).or_insert(index as u32);
        }
    }

    /// What `track` takes in all, in millionths times sectors.
    pub(super) fn volume(&self, track: u32) -> u64 {
        let shares = self.tracks[track as usize].iter();
        shares
            .map(|(share, runs)| {
                let sectors: u64 = runs.iter().map(|run| u64::from(run.length)).sum();
                u64::from(*share) * sectors
            })
            .sum()
    }

    /// What a resource can carry in a turn.
    pub(super) fn capacity(&self) -> u64 {
        u64::from(self.sectors) * WHOLE
    }

    /// The work of one look at all rotations of `wheel`, in sectors.
    pub(super) fn effort(&self, wheel: usize) -> u64 {
        let wheel = &self.wheels[wheel];
        let of_track = |track: u32| {
            let shares = self.tracks[track as usize].iter();
            shares
                .map(|(_, runs)| {
                    2 * u64::from(self.sectors) + u64::from(wheel.rotations) * runs.len() as u64
                })
                .sum::<u64>()
        };
        let uses = wheel.uses.iter().map(|&(_, track)| of_track(track));
        uses.sum::<u64>() + u64::from(wheel.rotations)
    }
}

/// Phases as sectors, all around the circle. A sector that a phase touches is taken for all of it, so that a plan that fits the sectors
/// also fits without them; where two phases of a job meet in one, the larger share holds.
fn draw(phases: &[Phase], shares: &[u32], grid: &Grid, repeats: u32) -> Track {
    let mut sectors = vec![0u32; grid.sectors as usize];
    // Times `repeats`, so that the beginning of each iteration is a whole number.
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

/// The shares of all sectors as runs for each share but zero.
pub(super) fn runs(sectors: &[u32]) -> Track {
    let mut track: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
    let mut start = 0;
    for chunk in sectors.chunk_by(|a, b| a == b) {
        if chunk[0] > 0 {
            track.entry(chunk[0]).or_default().push(Run {
                start,
                length: chunk.len() as u32,
            });
        }
        start += chunk.len() as u32;
    }
    track.into_iter().collect()
}

/// How a circle is loaded while rotations are tried.
#[derive(Debug, Clone)]
pub(super) struct Loads<'a> {
    circle: &'a Circle,
    /// Of each sector of each resource, in millionths.
    sectors: Vec<Vec<u32>>,
    /// Of each resource, without its weight: what is asked for above the whole.
    excess: Vec<u64>,
    /// Of each resource: what is asked for in all.
    asked: Vec<u64>,
    /// Room for sums.
    prefix: Vec<u64>,
    /// Sectors looked at so far.
    work: u64,
}

impl<'a> Loads<'a> {
    /// A circle without any job.
    pub(super) fn new(circle: &'a Circle) -> Self {
        let resources = circle.weights.len();
        Self {
            circle,
            sectors: vec![vec![0; circle.sectors as usize]; resources],
            excess: vec![0; resources],
            asked: vec![0; resources],
            prefix: Vec::new(),
            work: 0,
        }
    }

    /// Sectors looked at since it was made: what the search costs, the same on any machine.
    pub(super) fn work(&self) -> u64 {
        self.work
    }
    /// Counts work done elsewhere.
    pub(super) fn add_work(&mut self, sectors: u64) {
        self.work += sectors;
    }

    /// What is asked for above the whole, over all resources.
    pub(super) fn cost(&self) -> u64 {
        let of_each = self.excess.iter().zip(&self.circle.weights);
        of_each.map(|(excess, weight)| excess * weight).sum()
    }

    /// True if a resource that `wheel` uses is asked for more than it has.
    pub(super) fn suffers(&self, wheel: usize) -> bool {
        let mut uses = self.circle.wheels[wheel].uses.iter();
        uses.any(|&(resource, _)| self.excess[resource as usize] > 0)
    }

    /// What is asked of `resource` above the whole, in millionths times sectors.
    pub(super) fn excess(&self, resource: u32) -> u64 {
        self.excess[resource as usize]
    }

    /// What of `resource` is unused.
    pub(super) fn free(&self, resource: usize) -> u64 {
        self.circle.capacity() + self.excess[resource] - self.asked[resource]
    }

    /// What the whole must cost at least when `to_come` more is asked of each resource.
    pub(super) fn volume_bound(&self, to_come: &[u64]) -> u64 {
        let mut bound = 0;
        for (resource, &more) in to_come.iter().enumerate() {
            let over = self.excess[resource] + more.saturating_sub(self.free(resource));
            bound += over * self.circle.weights[resource];
        }
        bound
    }

    /// What each rotation of `wheel` would add to the cost, into `costs`.
    ///
    /// Sums along the circle give each rotation in one subtraction for each arc, for any shares.
    pub(super) fn price(&mut self, wheel: usize, costs: &mut Vec<u64>) {
        let circle = self.circle;
        let rotations = circle.wheels[wheel].rotations as usize;
        let sectors = circle.sectors as usize;
        costs.clear();
        costs.resize(rotations, 0);
        self.work += circle.effort(wheel);
        for &(resource, track) in &circle.wheels[wheel].uses {
            let weight = circle.weights[resource as usize];
            for (share, runs) in &circle.tracks[track as usize] {
                self.sum_up(resource as usize, *share);
                for run in runs {
                    let (start, length) = (run.start as usize, run.length as usize);
                    let first = rotations.min(sectors - start);
                    let (straight, around) = costs.split_at_mut(first);
                    add_sums(straight, &self.prefix[start..], length, weight);
                    add_sums(around, &self.prefix, length, weight);
                }
            }
        }
    }

    /// Sums of what `share` more would add to the excess of `resource`, over two turns.
    fn sum_up(&mut self, resource: usize, share: u32) {
        let loads = &self.sectors[resource];
        self.prefix.clear();
        self.prefix.reserve(2 * loads.len() + 1);
        self.prefix.push(0);
        let mut sum = 0;
        for &load in loads.iter().chain(loads) {
            sum += added(load, share);
            self.prefix.push(sum);
        }
    }

    /// Puts `wheel` on the circle, rotated by so many sectors.
    pub(super) fn place(&mut self, wheel: usize, rotation: u32) {
        self.turn(wheel, rotation, |load, share| {
            let more = added(*load, share);
            *load += share;
            more as i64
        });
        self.count(wheel, |asked, volume| asked + volume);
    }

    /// Takes `wheel` away again from where it was placed.
    pub(super) fn lift(&mut self, wheel: usize, rotation: u32) {
        self.turn(wheel, rotation, |load, share| {
            *load -= share;
            -(added(*load, share) as i64)
        });
        self.count(wheel, |asked, volume| asked - volume);
    }

    fn turn(&mut self, wheel: usize, rotation: u32, change: impl Fn(&mut u32, u32) -> i64) {
        let circle = self.circle;
        for &(resource, track) in &circle.wheels[wheel].uses {
            let loads = &mut self.sectors[resource as usize];
            let mut excess = 0;
            for (share, runs) in &circle.tracks[track as usize] {
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

    fn count(&mut self, wheel: usize, change: impl Fn(u64, u64) -> u64) {
        let circle = self.circle;
        for &(resource, track) in &circle.wheels[wheel].uses {
            let asked = &mut self.asked[resource as usize];
            *asked = change(*asked, circle.volume(track));
        }
    }
}

/// What `share` more adds to the excess of a sector with `load`. It never falls as the load grows, which all bounds rest on.
fn added(load: u32, share: u32) -> u64 {
    let over = u64::from(load) + u64::from(share);
    over.saturating_sub(WHOLE.max(u64::from(load)))
}

/// Adds to each of `costs`, in order of rotation, the sum over `length` sectors from the one where it stands.
fn add_sums(costs: &mut [u64], prefix: &[u64], length: usize, weight: u64) {
    let ends = prefix.iter().skip(length);
    for ((cost, from), to) in costs.iter_mut().zip(prefix).zip(ends) {
        *cost += (to - from) * weight;
    }
}
