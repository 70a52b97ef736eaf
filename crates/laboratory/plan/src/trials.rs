//! Closing the loop: jobs of a plan in the packet simulator, alone and together, with each way to keep them apart (HotNets'22 §4).

use super::network::{Changes, Network};
use super::{JobsFile, Placed};
use clearway_fabric::Watch;
use clearway_lab::{
    Assembly, IterationTimes, JobResult, RunDecision, RunOptions, RunProgress, Threads,
};
use clearway_planner::compatibility::fluid::{self, CommunicationSlots, FluidJob, Sharing};
use clearway_planner::compatibility::{JobProfile, Phase, PhaseKind};
use clearway_scenario::LONGEST;
use clearway_scenario::ScenarioError;
use clearway_units::statistics::nearest_rank;
use clearway_units::{Bytes, Span, Value};

/// Iterations that are left out of medians and means: jobs that begin together are not in step with anything yet.
const WARM_UP: usize = 2;
/// A job that runs alone, to be measured, runs so often.
const ALONE: u32 = 3;
/// A job whose size is to be found runs at most so often.
const SIZINGS: usize = 4;
/// A size is right if communication takes as long as it should to this part.
const CLOSE: f64 = 0.001;
/// Each job's timer is so much shorter than that of the next less urgent one (HotNets'22 §2: 100 instead of 125 us).
const TIMER_STEP: f64 = 0.8;
/// Slots are longer than the plan says by this share beside what congestion control needs: an iteration that is late by a packet would
/// wait for the next slot.
const SLOT_MARGIN: f64 = 0.002;
/// The share of a slot's period by which communication may begin late.
const GRACE: f64 = 0.01;
/// No run simulates more than so many times what its iterations would take one after the other.
const PATIENCE: u64 = 20;
/// Under adaptive increase, the fluid model lets each job begin this part of an iteration later than the one before.
const HEAD_START: u64 = 1000;
/// The lowest priority of data is 1; see [`clearway_scenario::Priority`].
const PRIORITIES: u32 = 7;

/// Mechanism that keeps jobs that share links apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Not at all: all begin together.
    Fair,
    /// Communication begins in slots, shifted as planned.
    Shifted,
    /// More urgent jobs increase their rates more often (DCQCN).
    Timers,
    /// The more of its communication a job is through, the faster its rates increase.
    Adaptive,
    /// Switches and NICs send what is more urgent first.
    Priorities,
}

impl Mechanism {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::Fair,
        Self::Shifted,
        Self::Timers,
        Self::Adaptive,
        Self::Priorities,
    ];

    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Shifted => "shifted",
            Self::Timers => "timers",
            Self::Adaptive => "adaptive",
            Self::Priorities => "priorities",
        }
    }
}

/// Options of the simulations.
pub struct TrialOptions<'a> {
    /// Number of iterations of each job, above 2.
    pub iterations: u32,
    /// Worker threads of each run.
    pub threads: Threads,
    /// Called after each round of a run with what is run; may stop everything.
    pub on_progress: &'a mut dyn FnMut(&str, RunProgress) -> RunDecision,
}

/// Iterations of jobs under one mechanism.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Mechanism under which the jobs ran.
    pub mechanism: Mechanism,
    /// Of each job, the median that the fluid model expects.
    pub predicted: Vec<Option<Span>>,
    /// Of each job, the median in the simulator; `None` if the job never got through all iterations.
    pub simulated: Vec<Option<Span>>,
    /// Of each job, the mean in the simulator.
    pub means: Vec<Option<Span>>,
}

/// Results of simulating a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    /// The median iteration of each job alone.
    pub alone: Vec<Option<Span>>,
    /// Together.
    pub trials: Vec<Trial>,
    /// Mechanisms that were left out, and why.
    pub left_out: Vec<(Mechanism, String)>,
    /// By how much slots are longer than planned, so that what congestion control and headers add has room.
    pub stretch: f64,
    /// The user stopped it: what was over before is here.
    pub interrupted: bool,
}

/// A run of jobs, over or not.
pub(super) struct Ran {
    pub(super) jobs: Vec<JobResult>,
    pub(super) interrupted: bool,
}

pub(super) fn run(
    assembly: &Assembly,
    title: &str,
    options: &mut TrialOptions<'_>,
    watch: Watch<'_>,
) -> Ran {
    let mut interrupted = false;
    let on_progress = &mut |progress| {
        let verdict = (options.on_progress)(title, progress);
        interrupted |= verdict == RunDecision::Stop;
        verdict
    };
    let finished = assembly.run(
        RunOptions {
            threads: options.threads,
            on_progress,
            on_flow: &mut |_, _, _| (),
        },
        watch,
    );
    Ran {
        jobs: finished.jobs,
        interrupted,
    }
}

/// The times of the iterations of a job that got through all of them, but for those of the warm-up where there are more.
fn spans(job: &JobResult) -> Vec<Span> {
    let over: Vec<Span> = job.times.iter().filter_map(IterationTimes::span).collect();
    if over.len() < job.iterations as usize {
        return Vec::new();
    }
    let skipped = WARM_UP.min(over.len().saturating_sub(1));
    over[skipped..].to_vec()
}

fn median(job: &JobResult) -> Option<Span> {
    let mut spans = spans(job);
    spans.sort_unstable();
    nearest_rank(&spans, 500)
}

fn mean(job: &JobResult) -> Option<Span> {
    let spans = spans(job);
    let count = spans.len() as u64;
    (count > 0).then(|| spans.into_iter().sum::<Span>() / count)
}

fn scaled(span: Span, factor: f64) -> Span {
    Span::from_ps((span.as_ps() as f64 * factor) as u64)
}

impl JobsFile {
    /// The network, if the jobs have one to run on.
    ///
    /// # Errors
    /// If they have none.
    pub(super) fn network(&self) -> Result<&Network, ScenarioError> {
        self.network.as_ref().ok_or_else(|| {
            ScenarioError::at(
                &self.places.of_keys("topology", 0, &[]),
                "no network to simulate the jobs on",
                "describe it under `[topology]`, and give each job `hosts` instead of `links`",
            )
        })
    }

    fn choices(&self, placed: &Placed) -> Vec<usize> {
        placed.plan.jobs.iter().map(|job| job.placement).collect()
    }

    /// Simulated time after which a run is given up.
    fn patience(&self, iterations: u32) -> Span {
        let periods = self.problem.jobs().iter().map(|job| job.profile.period());
        let all = periods.fold(Span::ZERO, |sum, period| {
            sum.checked_add(period).unwrap_or(Span::MAX)
        });
        let patience = u128::from(all.as_ps()) * u128::from(PATIENCE * u64::from(iterations));
        Span::from_ps(u64::try_from(patience).unwrap_or(u64::MAX)).min(LONGEST)
    }

    /// The network's scenario put together.
    pub(super) fn assembly(
        &self,
        choices: &[usize],
        iterations: u32,
        changes: &Changes,
    ) -> Result<Assembly, ScenarioError> {
        let patience = self.patience(iterations);
        let scenario = self
            .network()?
            .scenario(choices, iterations, patience, changes)?;
        Assembly::new(&scenario)
    }

    /// Runs each job alone, then all of them together under each mechanism.
    ///
    /// # Errors
    /// If there is no network, or it cannot be put together.
    pub fn simulate(
        &self,
        placed: &Placed,
        options: &mut TrialOptions<'_>,
    ) -> Result<Trials, ScenarioError> {
        self.refuse_arcs()?;
        let choices = self.choices(placed);
        let mut trials = Trials {
            alone: Vec::new(),
            trials: Vec::new(),
            left_out: Vec::new(),
            stretch: 0.0,
            interrupted: false,
        };
        let mut sized = self.clone();
        for job in 0..self.jobs.len() {
            let Some(alone) = sized.settle_alone(job, placed, options)? else {
                trials.interrupted = true;
                return Ok(trials);
            };
            trials.alone.push(alone);
        }
        let factors = self.stretches(placed, &trials.alone);
        trials.stretch = factors.iter().copied().fold(1.0, f64::max) - 1.0;
        for mechanism in Mechanism::ALL {
            let changes = match self.changes(placed, mechanism, &factors) {
                Ok(changes) => changes,
                Err(reason) => {
                    trials.left_out.push((mechanism, reason));
                    continue;
                }
            };
            let assembly = sized.assembly(&choices, options.iterations, &changes)?;
            let ran = run(&assembly, mechanism.name(), options, Watch::Off);
            if ran.interrupted {
                trials.interrupted = true;
                return Ok(trials);
            }
            trials.trials.push(Trial {
                mechanism,
                predicted: self.predict(placed, mechanism, &factors, options.iterations),
                simulated: ran.jobs.iter().map(median).collect(),
                means: ran.jobs.iter().map(mean).collect(),
            });
        }
        Ok(trials)
    }

    /// Runs a job alone. If its size follows from the time for which it communicates, the size is changed until it communicates for that
    /// long: headers, acknowledgements and congestion control take their part. Returns the median iteration, if any was over; nothing at
    /// all if the user stopped it.
    fn settle_alone(
        &mut self,
        job: usize,
        placed: &Placed,
        options: &mut TrialOptions<'_>,
    ) -> Result<Option<Option<Span>>, ScenarioError> {
        let choices = self.choices(placed);
        let title = format!("{} alone", self.jobs[job]);
        let mut alone = None;
        for round in 1..=SIZINGS {
            let together = self.assembly(&choices, ALONE, &self.starts())?;
            let ran = run(&together.alone(job), &title, options, Watch::Off);
            if ran.interrupted {
                return Ok(None);
            }
            alone = median(&ran.jobs[job]);
            let period = self.problem.jobs()[job].profile.period();
            let placed = self.network.as_mut().map(|it| &mut it.jobs[job]);
            let sized = placed.and_then(|placed| Some((placed.compute, placed.size.as_mut()?)));
            let (Some(alone), Some((compute, size)), false) = (alone, sized, self.profiled) else {
                break;
            };
            let [wanted, had] =
                [period, alone].map(|span| span.saturating_sub(compute).as_ps() as f64);
            let factor = wanted / had.max(1.0);
            // What is returned is the time of the size that stays.
            if (factor - 1.0).abs() < CLOSE || round == SIZINGS {
                break;
            }
            *size = Bytes::new(((size.as_u64() as f64 * factor) as u64).max(1));
        }
        Ok(Some(alone))
    }

    /// Refuses jobs whose iterations no workload has.
    fn refuse_arcs(&self) -> Result<(), ScenarioError> {
        let placed = &self.network()?.jobs;
        let Some(job) = placed.iter().position(|job| job.arcs > 1) else {
            return Ok(());
        };
        Err(ScenarioError::at(
            &self.places.of_keys("job", job, &["arcs"]),
            format!(
                "job `{}` communicates {} times in an iteration",
                self.jobs[job], placed[job].arcs
            ),
            "describe what it does under `workload`, such as `workload = { size = \"1GB\", buckets = 4, overlap = 0.5 }`, and use --profile",
        ))
    }

    /// Starts of the jobs with which, without shifts, they communicate when their arcs say.
    fn starts(&self) -> Changes {
        let of_jobs = self.problem.jobs().iter().map(|job| {
            let end = last_end(&job.profile);
            match end < job.profile.period() {
                // It computes after its communication: the simulated iteration begins there.
                true => vec![("start", Value::Text(end.to_string()))],
                false => Vec::new(),
            }
        });
        Changes {
            general: Vec::new(),
            of_jobs: of_jobs.collect(),
        }
    }

    /// By how much the circle of each job has to be stretched so that each of its jobs gets through an iteration.
    fn stretches(&self, placed: &Placed, alone: &[Option<Span>]) -> Vec<f64> {
        let needed = |job: u32| {
            let planned = placed.plan.jobs[job as usize].period.as_ps() as f64;
            let alone = alone[job as usize].map_or(planned, |span| span.as_ps() as f64);
            alone / planned * (1.0 + SLOT_MARGIN)
        };
        let of_circle = |circle: usize| {
            let jobs = placed.plan.circles[circle].jobs.iter();
            jobs.map(|&job| needed(job)).fold(1.0, f64::max)
        };
        let jobs = placed.plan.jobs.iter();
        jobs.map(|job| job.circle.map_or(1.0, of_circle)).collect()
    }

    /// The slots of each job; none of jobs that share nothing.
    fn slots(&self, placed: &Placed, factors: &[f64]) -> Vec<Option<CommunicationSlots>> {
        let jobs = self.problem.jobs().iter().zip(&placed.plan.jobs);
        let slots = jobs.zip(factors).map(|((job, planned), &factor)| {
            planned.circle?;
            let phases = job.profile.phases(PhaseKind::Communication).iter();
            let first = phases.map(|phase| phase.start).min()?;
            let period = scaled(planned.period, factor);
            Some(CommunicationSlots {
                period,
                shift: scaled(planned.shift + first, factor),
                grace: scaled(period, GRACE),
            })
        });
        slots.collect()
    }

    /// Changes that a mechanism needs, or the reason why it cannot be had.
    fn changes(
        &self,
        placed: &Placed,
        mechanism: Mechanism,
        factors: &[f64],
    ) -> Result<Changes, String> {
        let mut changes = self.starts();
        let controller = self.controller();
        let levels: Vec<u32> = placed.plan.jobs.iter().map(|job| job.priority).collect();
        let lowest = levels.iter().copied().max().unwrap_or(0);
        match mechanism {
            Mechanism::Fair => {}
            Mechanism::Shifted => {
                let slots = self.slots(placed, factors);
                for (own, slots) in changes.of_jobs.iter_mut().zip(slots) {
                    let Some(slots) = slots else { continue };
                    let text = |span: Span| Value::Text(span.to_string());
                    own.push(("schedule.period", text(slots.period)));
                    own.push(("schedule.shift", text(slots.shift)));
                    own.push(("schedule.grace", text(slots.grace)));
                }
            }
            Mechanism::Timers => {
                let timer = controller.iter().find(|(key, _)| *key == "rate-timer");
                let timer = match timer {
                    Some((_, Value::Text(timer))) => timer.parse::<Span>().ok(),
                    _ => None,
                };
                let timer = timer.ok_or("the controller has no `rate-timer`")?;
                for (own, level) in changes.of_jobs.iter_mut().zip(levels) {
                    let own_timer = scaled(timer, weakened(lowest - level));
                    own.push(("transport.rate-timer", Value::Text(own_timer.to_string())));
                }
            }
            Mechanism::Adaptive => {
                let known = controller.iter().any(|(key, _)| *key == "phase-increase");
                if !known {
                    return Err("the controller has no `phase-increase`".into());
                }
                changes
                    .general
                    .push(("transport", "phase-increase", Value::Float(1.0)));
            }
            Mechanism::Priorities => {
                if lowest >= PRIORITIES {
                    let needed = lowest + 1;
                    return Err(format!(
                        "{needed} priorities are needed, but the number of priorities is {PRIORITIES}"
                    ));
                }
                changes
                    .general
                    .push(("switch", "strict-priority", Value::Boolean(true)));
                for (own, level) in changes.of_jobs.iter_mut().zip(levels) {
                    let class = i64::from(PRIORITIES - level);
                    own.push(("priority", Value::Integer(class)));
                }
            }
        }
        Ok(changes)
    }

    /// The settings of the controller.
    fn controller(&self) -> Vec<(&'static str, Value)> {
        let choices = vec![0; self.jobs.len()];
        let longest = Span::from_ms(1);
        let network = self.network.as_ref();
        let scenario =
            network.and_then(|it| it.scenario(&choices, 1, longest, &Changes::default()).ok());
        scenario.map_or(Vec::new(), |scenario| {
            scenario.transport.controller.entries()
        })
    }

    /// The medians that the fluid model expects.
    fn predict(
        &self,
        placed: &Placed,
        mechanism: Mechanism,
        factors: &[f64],
        iterations: u32,
    ) -> Vec<Option<Span>> {
        let planned = &placed.plan.jobs;
        let mut jobs: Vec<FluidJob> = (0..self.jobs.len())
            .map(|job| FluidJob::new(&self.problem, job, planned[job].placement, iterations))
            .collect();
        if mechanism == Mechanism::Adaptive {
            // What chance does to packets: equal jobs in step would stay so.
            for (index, job) in (0..).zip(&mut jobs) {
                let period = self.problem.jobs()[index as usize].profile.period();
                job.start = period / HEAD_START * index;
            }
        }
        let levels = || planned.iter().map(|job| job.priority);
        let sharing = match mechanism {
            Mechanism::Fair => Sharing::Fair,
            Mechanism::Shifted => Sharing::Slots(self.slots(placed, factors)),
            Mechanism::Timers => {
                let lowest = levels().max().unwrap_or(0);
                let weights = levels().map(|level| 1.0 / weakened(lowest - level));
                Sharing::Weights(weights.collect())
            }
            Mechanism::Adaptive => Sharing::Adaptive { gain: 1.0 },
            Mechanism::Priorities => Sharing::Priorities(levels().collect()),
        };
        let links = self.links.len() as u32;
        match fluid::run(links, &jobs, &sharing) {
            Ok(run) => {
                let jobs = 0..self.jobs.len();
                jobs.map(|job| run.median(job, WARM_UP)).collect()
            }
            Err(_) => vec![None; self.jobs.len()],
        }
    }
}

/// Factor by which so many steps change a timer.
fn weakened(steps: u32) -> f64 {
    (0..steps).fold(1.0, |timer, _| timer * TIMER_STEP)
}

/// End of the last communication of an iteration.
fn last_end(profile: &JobProfile) -> Span {
    let phases = profile.phases(PhaseKind::Communication).iter();
    let last = phases.map(Phase::end).max();
    last.unwrap_or(profile.period())
}
