//! Computation of rotations, scores and priorities for a problem.

use super::circle::{Circle, Loads};
use super::exact::{self, SearchResult};
use super::grid::{Grid, GridError, common_circle};
use super::priority::priorities;
use super::problem::components;
use super::{
    PhaseKind, PlanParameters, Problem, Resource, SettingError, Share, Solver, bound, local,
};
use clearway_units::{Purpose, RandomStream, Span};
use std::collections::BTreeMap;
use std::fmt;

/// Number of jobs in a part up to which branch and bound runs by default; for larger parts, the bounds prove as much.
const FEW: usize = 8;
/// Largest number of rounds of the local search over all jobs before branch and bound takes over.
const ROUNDS_BEFORE_PROOF: u64 = 300;
/// Largest number of sector loads kept in memory; wider circles get longer sectors.
const MOST_LOADS: u64 = 100_000_000;

/// Error that prevents a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlanError {
    /// A setting is invalid.
    Setting(SettingError),
    /// Jobs have no unified circle.
    Grid(GridError),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(error) => error.fmt(f),
            Self::Grid(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<SettingError> for PlanError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}
impl From<GridError> for PlanError {
    fn from(error: GridError) -> Self {
        Self::Grid(error)
    }
}

/// Verdict on jobs that share resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompatibilityVerdict {
    /// The rotations keep all demands within capacities.
    Compatible,
    /// No rotations keep all demands within capacities.
    Incompatible,
    /// The budget ended before such rotations were found or ruled out.
    Unknown,
}

/// Jobs that are planned together because they share links or GPUs, directly or through other jobs (HotNets'22 §5).
#[derive(Debug, Clone, PartialEq)]
pub struct UnifiedCircle {
    /// The jobs, in ascending order.
    pub jobs: Vec<u32>,
    /// The length of a sector.
    pub tick: Span,
    /// Number of sectors (K), which together are the perimeter.
    pub sectors: u32,
    /// True if sectors are longer than the requested grid, because there would otherwise be too many.
    pub widened: bool,
    /// Time in a turn by which demands exceed capacities, summed over all links and GPUs, in units of each capacity.
    pub overlap: Span,
    /// Proven lower bound of the overlap of all rotations.
    pub least_overlap: Span,
    /// Verdict that follows from the overlap and its lower bound.
    pub verdict: CompatibilityVerdict,
    /// Sectors examined by the search.
    pub work: u64,
}

impl UnifiedCircle {
    /// The perimeter of the circle, as a time.
    pub fn perimeter(&self) -> Span {
        self.tick * u64::from(self.sectors)
    }
    /// True if no rotations have less overlap.
    pub fn is_optimal(&self) -> bool {
        self.overlap == self.least_overlap
    }
}

/// Plan of one job.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedJob {
    /// Index of the job's placement.
    pub placement: usize,
    /// The circle of the job; `None` if the job shares no contended resource.
    pub circle: Option<usize>,
    /// The time between starts of successive iterations: the job's own period, or up to the tolerance longer.
    pub period: Span,
    /// Number of times that the job repeats on the circle.
    pub repeats: u32,
    /// Time by which the job's iterations are shifted, less than the period.
    pub shift: Span,
    /// Shift as an angle of the unified circle, in degrees.
    pub angle: f64,
    /// Priority among the jobs that it meets on links: 0 is the highest, and jobs that meet have different priorities.
    pub priority: u32,
}

/// Effect of the plan on a link or a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedResource {
    /// The link or GPU.
    pub resource: Resource,
    /// The jobs that use it, in ascending order.
    pub jobs: Vec<u32>,
    /// The circle of those jobs; `None` if their demand can never exceed the capacity.
    pub circle: Option<usize>,
    /// Demand as a share of the capacity, averaged over time.
    pub load: f64,
    /// One less the share of time in which demand exceeds capacity, weighted by the excess (1 = compatible).
    pub score: f64,
    /// Score without shifts.
    pub score_before: f64,
    /// Time in a turn by which demand exceeds capacity.
    pub overlap: Span,
}

impl PlannedResource {
    /// True if the demand never exceeds the capacity.
    pub fn is_compatible(&self) -> bool {
        self.overlap.is_zero()
    }
}

/// Plan of all jobs that avoids collisions of their communication.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Every job of the problem.
    pub jobs: Vec<PlannedJob>,
    /// Every link and GPU that a job uses: links first, in ascending order.
    pub resources: Vec<PlannedResource>,
    /// The circles, in the order of their first jobs.
    pub circles: Vec<UnifiedCircle>,
}

impl Plan {
    /// Verdict on all circles: incompatible if one is, compatible if all are.
    pub fn verdict(&self) -> CompatibilityVerdict {
        let any = |verdict| self.circles.iter().any(|circle| circle.verdict == verdict);
        if any(CompatibilityVerdict::Incompatible) {
            CompatibilityVerdict::Incompatible
        } else if any(CompatibilityVerdict::Unknown) {
            CompatibilityVerdict::Unknown
        } else {
            CompatibilityVerdict::Compatible
        }
    }

    /// Shortfall from full scores over all links and GPUs; zero if all are compatible.
    pub fn missing(&self) -> f64 {
        let scores = self.resources.iter().map(|resource| resource.score);
        scores.map(|score| 1.0 - score).sum()
    }
}

/// Plans `problem` with each job on its first placement, which is the present one.
///
/// # Errors
/// If a setting is invalid, or jobs have no unified circle.
pub fn plan(problem: &Problem, settings: &PlanParameters) -> Result<Plan, PlanError> {
    plan_at(problem, &vec![0; problem.jobs().len()], settings)
}

/// Plans `problem` with each job on its placement in `choices`.
///
/// # Errors
/// As for [`plan`].
///
/// # Panics
/// If `choices` does not have one valid placement for each job.
pub fn plan_at(
    problem: &Problem,
    choices: &[usize],
    settings: &PlanParameters,
) -> Result<Plan, PlanError> {
    settings.check()?;
    let users = problem.users(choices);
    let mut contended = users.clone();
    contended.retain(|&resource, jobs| problem.contended(choices, resource, jobs));
    let mut plan = uncontended(problem, choices, &users);
    let parts = components(problem.jobs().len(), &contended);
    let mut budget = settings.budget;
    let mut jobs_left: u64 = parts.iter().map(|(members, _)| members.len() as u64).sum();
    for (index, (members, resources)) in parts.into_iter().enumerate() {
        let grid = grid_of(problem, &members, resources.len(), settings)?;
        let circle = Circle::new((problem, choices), &members, &resources, &contended, &grid);
        // Budget that easy parts do not use goes to later parts.
        let share = budget / jobs_left.max(1) * members.len() as u64;
        let stream = u64::from(members[0]);
        let mut random = RandomStream::new(settings.seed, Purpose::Planning, stream);
        let found = solve(&circle, settings.solver, share, &mut random);
        budget = budget.saturating_sub(found.work);
        jobs_left -= members.len() as u64;
        plan.add(index, settings, &members, &grid, &found);
        plan.score(&resources, &circle, &grid, &found);
    }
    let periods: Vec<Span> = plan.jobs.iter().map(|job| job.period).collect();
    for (job, level) in plan.jobs.iter_mut().zip(priorities(&periods, &users)) {
        job.priority = level;
    }
    plan.load(problem);
    Ok(plan)
}

/// The plan of jobs without contention.
fn uncontended(problem: &Problem, choices: &[usize], users: &BTreeMap<Resource, Vec<u32>>) -> Plan {
    let jobs = problem.jobs().iter().zip(choices);
    let resources = users.iter().map(|(&resource, jobs)| PlannedResource {
        resource,
        jobs: jobs.clone(),
        circle: None,
        load: 0.0,
        score: 1.0,
        score_before: 1.0,
        overlap: Span::ZERO,
    });
    Plan {
        jobs: jobs
            .map(|(job, &placement)| PlannedJob {
                placement,
                circle: None,
                period: job.profile.period(),
                repeats: 1,
                shift: Span::ZERO,
                angle: 0.0,
                priority: 0,
            })
            .collect(),
        resources: resources.collect(),
        circles: Vec::new(),
    }
}

fn grid_of(
    problem: &Problem,
    members: &[u32],
    resources: usize,
    settings: &PlanParameters,
) -> Result<Grid, GridError> {
    let periods: Vec<Span> = members
        .iter()
        .map(|&job| problem.jobs()[job as usize].profile.period())
        .collect();
    let most = MOST_LOADS / resources.max(1) as u64;
    let limit = u64::from(settings.sectors).min(most) as u32;
    common_circle(members, &periods, settings.grid, settings.tolerance, limit)
}

/// Rotations for one part.
fn solve(circle: &Circle, solver: Solver, budget: u64, random: &mut RandomStream) -> SearchResult {
    let (floor, work) = bound::resource_bound(circle, budget / 4);
    let few = circle.rotated_jobs.len() <= FEW;
    let exact = solver == Solver::Exact || solver == Solver::Auto && few;
    let left = budget.saturating_sub(work);
    let walk = match exact {
        true => (left / 8).min(ROUNDS_BEFORE_PROOF * circle.effort_of_all()),
        false => left,
    };
    let mut found = local::search(circle, floor, walk, random);
    found.work += work;
    if exact && found.cost > found.bound {
        let left = budget.saturating_sub(found.work);
        let sure = exact::search(circle, &found.rotations, floor, left);
        found = SearchResult {
            work: found.work + sure.work,
            ..sure
        };
    }
    found
}

/// Millionths times sectors as time.
fn as_span(cost: u64, tick: Span) -> Span {
    let whole = u128::from(Share::WHOLE.millionths());
    // Round up, so that no overlap becomes zero.
    let ps = (u128::from(cost) * u128::from(tick.as_ps())).div_ceil(whole);
    Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

impl Plan {
    fn add(
        &mut self,
        index: usize,
        settings: &PlanParameters,
        members: &[u32],
        grid: &Grid,
        found: &SearchResult,
    ) {
        let perimeter = grid.tick * u64::from(grid.sectors);
        for ((&job, &repeats), &rotation) in members.iter().zip(&grid.repeats).zip(&found.rotations)
        {
            let job = &mut self.jobs[job as usize];
            job.circle = Some(index);
            job.period = perimeter / u64::from(repeats);
            job.repeats = repeats;
            job.shift = grid.tick * u64::from(rotation);
            job.angle = 360.0 * f64::from(rotation) / f64::from(grid.sectors);
        }
        self.circles.push(UnifiedCircle {
            jobs: members.to_vec(),
            tick: grid.tick,
            sectors: grid.sectors,
            widened: grid.tick != settings.grid,
            overlap: as_span(found.cost, grid.tick),
            least_overlap: as_span(found.bound, grid.tick),
            verdict: match (found.cost, found.bound) {
                (0, _) => CompatibilityVerdict::Compatible,
                (_, 0) => CompatibilityVerdict::Unknown,
                _ => CompatibilityVerdict::Incompatible,
            },
            work: found.work,
        });
    }

    fn score(
        &mut self,
        resources: &[Resource],
        circle: &Circle,
        grid: &Grid,
        found: &SearchResult,
    ) {
        let [before, after] = [&vec![0; found.rotations.len()], &found.rotations].map(|turned| {
            let mut loads = Loads::new(circle);
            for (rotated, &rotation) in turned.iter().enumerate() {
                loads.place(rotated, rotation);
            }
            loads
        });
        let score = |excess: u64| 1.0 - excess as f64 / circle.capacity() as f64;
        for (resource, &merged) in resources.iter().zip(&circle.merged) {
            let at = self
                .resources
                .binary_search_by_key(resource, |planned| planned.resource)
                .expect("parts are of resources in use");
            let planned = &mut self.resources[at];
            planned.circle = Some(self.circles.len() - 1);
            planned.score = score(after.excess(merged));
            planned.score_before = score(before.excess(merged));
            planned.overlap = as_span(after.excess(merged), grid.tick);
        }
    }

    /// The mean loads, with the periods of the plan.
    fn load(&mut self, problem: &Problem) {
        for planned in &mut self.resources {
            let kind: PhaseKind = planned.resource.kind();
            for &job in &planned.jobs {
                let choice = self.jobs[job as usize].placement;
                let shares = problem.shares(job as usize, choice, planned.resource);
                let phases = problem.jobs()[job as usize].profile.phases(kind);
                for (phase, share) in phases.iter().zip(shares) {
                    let part =
                        phase.length.as_ps() as f64 / self.jobs[job as usize].period.as_ps() as f64;
                    planned.load += part * share.as_f64();
                }
            }
        }
    }
}
