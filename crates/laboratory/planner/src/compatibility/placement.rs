//! Placement of jobs that are not all compatible where they are (HotNets'22 §4: "the scheduler should look for alternative placements").

use super::plan::{Plan, PlanError, plan_at};
use super::{CompatibilityVerdict, PlanParameters, Problem};
use std::collections::{BTreeMap, BTreeSet};

/// Up to so many combinations of placements are all tried.
const FEW_COMBINATIONS: usize = 256;
/// Each attempt gets this part of the budget; the chosen one is planned again with all of it.
const PART_OF_BUDGET: u64 = 32;
/// A gain in scores that is more than rounding.
const GAIN: f64 = 1e-9;

/// A job that is to run elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobMove {
    /// The job.
    pub job: usize,
    /// Index of the placement where the job is.
    pub from: usize,
    /// Index of the placement where the job should be.
    pub to: usize,
    /// Shortfall from full scores if this job alone stayed where it is.
    pub missing_without: f64,
}

/// A plan with placements, and the gain by which they were chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The plan, at the placements chosen.
    pub plan: Plan,
    /// Shortfall from full scores where jobs are.
    pub missing_before: f64,
    /// Jobs that move, in ascending order; none if all are compatible where they are, or nothing else is better.
    pub moves: Vec<JobMove>,
    /// Number of combinations of placements that were tried, the first included.
    pub tried: usize,
    /// True if these were all combinations.
    pub all_tried: bool,
}

struct Search<'a> {
    problem: &'a Problem,
    settings: PlanParameters,
    known: BTreeMap<Vec<usize>, f64>,
}

/// Plans `problem` on those of the jobs' placements that leave the least overlap, moving as few jobs as that takes.
///
/// Up to 256 combinations are all tried. Of more, single jobs that suffer move, and two at a time where no single one helps, as long as
/// scores improve.
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

    /// The best of all combinations: least shortfall, then fewest moves, then the first.
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

    /// Moves jobs as long as that helps.
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

    /// Other placements of the jobs that suffer: of all on links that are not compatible.
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
