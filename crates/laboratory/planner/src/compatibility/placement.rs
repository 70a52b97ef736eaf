//! Placement of jobs that are not all compatible at their present places (HotNets'22 §4: "the scheduler should look for alternative
//! placements").

use super::plan::{Plan, PlanError, plan_at};
use super::{CompatibilityVerdict, PlanParameters, Problem};
use std::collections::{BTreeMap, BTreeSet};

/// Number of combinations of placements up to which all are tried.
const FEW_COMBINATIONS: usize = 256;
/// Divisor of the budget for each attempt; the chosen placement is planned again with the whole budget.
const PART_OF_BUDGET: u64 = 32;
/// Smallest gain in scores that is not a rounding error.
const GAIN: f64 = 1e-9;

/// A job that should move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobMove {
    /// The job.
    pub job: usize,
    /// Index of the present placement.
    pub from: usize,
    /// Index of the better placement.
    pub to: usize,
    /// Shortfall from full scores if only this job does not move.
    pub missing_without: f64,
}

/// A plan with placements, and the gain of its moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The plan at the chosen placements.
    pub plan: Plan,
    /// Shortfall from full scores at the present placements.
    pub missing_before: f64,
    /// Jobs that move, in ascending order; empty if all jobs are already compatible, or no move improves the plan.
    pub moves: Vec<JobMove>,
    /// Number of tried combinations of placements, including the first.
    pub tried: usize,
    /// True if these were all combinations.
    pub all_tried: bool,
}

struct Search<'a> {
    problem: &'a Problem,
    settings: PlanParameters,
    known: BTreeMap<Vec<usize>, f64>,
}

/// Plans `problem` on the placements with the least overlap, with as few moves as possible.
///
/// Up to 256 combinations are all tried. With more combinations, single overloaded jobs move, or pairs of jobs if no single move helps, as
/// long as scores improve.
///
/// # Errors
/// As for [`plan`](super::plan).
pub fn place(problem: &Problem, settings: &PlanParameters) -> Result<Placed, PlanError> {
    let stay = vec![0; problem.jobs().len()];
    let first = plan_at(problem, &stay, settings)?;
    let missing_before = first.missing();
    let combinations = problem
        .jobs()
        .iter()
        .try_fold(1usize, |all, job| all.checked_mul(job.placements.len()))
        .unwrap_or(usize::MAX);
    if combinations == 1 || first.verdict() == CompatibilityVerdict::Compatible {
        return Ok(Placed {
            plan: first,
            missing_before,
            moves: Vec::new(),
            tried: 1,
            all_tried: combinations == 1,
        });
    }
    let mut quick = settings.clone();
    quick.budget = settings.budget / PART_OF_BUDGET;
    let mut search = Search {
        problem,
        settings: quick,
        known: BTreeMap::from([(stay.clone(), missing_before)]),
    };
    let all_tried = combinations <= FEW_COMBINATIONS;
    let choices = match all_tried {
        true => search.all(combinations)?,
        false => search.climb(stay.clone())?,
    };
    let tried = search.known.len();
    let plan = match choices == stay {
        true => first,
        false => plan_at(problem, &choices, settings)?,
    };
    let mut moves = Vec::new();
    for (job, &to) in choices.iter().enumerate().filter(|&(_, &to)| to > 0) {
        let mut without = choices.clone();
        without[job] = 0;
        moves.push(JobMove {
            job,
            from: 0,
            to,
            missing_without: search.missing(&without)?,
        });
    }
    Ok(Placed {
        plan,
        missing_before,
        moves,
        tried,
        all_tried,
    })
}

fn moved(choices: &[usize]) -> usize {
    choices.iter().filter(|&&choice| choice > 0).count()
}

impl Search<'_> {
    /// Shortfall from full scores with these placements.
    fn missing(&mut self, choices: &[usize]) -> Result<f64, PlanError> {
        if let Some(&missing) = self.known.get(choices) {
            return Ok(missing);
        }
        let missing = plan_at(self.problem, choices, &self.settings)?.missing();
        self.known.insert(choices.to_vec(), missing);
        Ok(missing)
    }

    /// The best of all combinations: smallest shortfall, then fewest moves, then the first.
    fn all(&mut self, combinations: usize) -> Result<Vec<usize>, PlanError> {
        let mut best = vec![0; self.problem.jobs().len()];
        let mut least = (self.missing(&best)?, 0);
        for mut number in 1..combinations {
            let mut choices = Vec::with_capacity(best.len());
            for job in self.problem.jobs() {
                choices.push(number % job.placements.len());
                number /= job.placements.len();
            }
            let found = (self.missing(&choices)?, moved(&choices));
            if found.0 < least.0 - GAIN || found.0 <= least.0 + GAIN && found.1 < least.1 {
                (best, least) = (choices, found);
            }
        }
        Ok(best)
    }

    /// Moves jobs as long as moves help.
    fn climb(&mut self, mut choices: Vec<usize>) -> Result<Vec<usize>, PlanError> {
        loop {
            let least = self.missing(&choices)?;
            let steps = self.steps(&choices)?;
            let better = match self.best_of(&choices, steps.iter().map(|&step| vec![step]))? {
                Some(found) if found.0 < least - GAIN => Some(found),
                _ => {
                    let pairs = steps.iter().enumerate().flat_map(|(at, &one)| {
                        let others = steps[at + 1..].iter().filter(move |two| two.0 != one.0);
                        others.map(move |&two| vec![one, two])
                    });
                    self.best_of(&choices, pairs.take(FEW_COMBINATIONS))?
                }
            };
            match better {
                Some((missing, found)) if missing < least - GAIN => choices = found,
                _ => return Ok(choices),
            }
        }
    }

    /// Other placements of overloaded jobs, which are all jobs on incompatible links.
    fn steps(&self, choices: &[usize]) -> Result<Vec<(usize, usize)>, PlanError> {
        let plan = plan_at(self.problem, choices, &self.settings)?;
        let suffering = plan
            .resources
            .iter()
            .filter(|planned| !planned.is_compatible());
        let jobs: BTreeSet<u32> = suffering
            .flat_map(|planned| planned.jobs.iter().copied())
            .collect();
        let others = |job: usize| {
            let all = 0..self.problem.jobs()[job].placements.len();
            all.filter(move |&placement| placement != choices[job])
                .map(move |placement| (job, placement))
        };
        Ok(jobs
            .into_iter()
            .flat_map(|job| others(job as usize))
            .collect())
    }

    fn best_of(
        &mut self,
        choices: &[usize],
        steps: impl Iterator<Item = Vec<(usize, usize)>>,
    ) -> Result<Option<(f64, Vec<usize>)>, PlanError> {
        let mut best: Option<(f64, Vec<usize>)> = None;
        for step in steps {
            let mut changed = choices.to_vec();
            for (job, placement) in step {
                changed[job] = placement;
            }
            let missing = self.missing(&changed)?;
            let better = best.as_ref().is_none_or(|(least, known)| {
                missing < least - GAIN || missing <= least + GAIN && moved(&changed) < moved(known)
            });
            if better {
                best = Some((missing, changed));
            }
            if missing == 0.0 {
                break;
            }
        }
        Ok(best)
    }
}
