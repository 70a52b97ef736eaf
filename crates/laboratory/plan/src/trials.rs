//! Trials of a plan: its jobs in the packet simulator, alone and together, with each mechanism that keeps them apart (HotNets'22 §4).

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

/// Number of first iterations that are left out of medians and means, because jobs that begin together have not yet found their steady
/// pattern.
const WARM_UP: usize = 2;
/// Number of iterations of a job that runs alone for a measurement.
const ALONE: u32 = 3;
/// Largest number of runs for finding the size of a job.
const SIZINGS: usize = 4;
/// Relative tolerance of the communication time at which a size is accepted.
const CLOSE: f64 = 0.001;
/// Ratio of a job's timer to the timer of the next less urgent job (HotNets'22 §2: 100 instead of 125 us).
const TIMER_STEP: f64 = 0.8;
/// Share by which slots are longer than planned, in addition to the need of congestion control. Otherwise an iteration that is one packet
/// late would wait for the next slot.
const SLOT_MARGIN: f64 = 0.002;
/// Share of a slot's period by which communication may begin late.
const GRACE: f64 = 0.01;
/// Limit of a run's simulated time, as a multiple of the sum of its iterations.
const PATIENCE: u64 = 20;
/// Divisor of the iteration: under adaptive increase, each job in the fluid model begins this part of an iteration later than the job
/// before.
const HEAD_START: u64 = 1000;
/// Number of data priorities; the lowest is 1, see [`clearway_scenario::Priority`].
const PRIORITIES: u32 = 7;

/// Mechanism that keeps jobs apart that share links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// No mechanism: all jobs begin together.
    Fair,
    /// Communication begins in slots, shifted as planned.
    Shifted,
    /// More urgent jobs increase their rates more often (DCQCN).
    Timers,
    /// Rates increase faster, the more of its communication a job has completed.
    Adaptive,
    /// Switches and NICs send packets of more urgent jobs first.
    Priorities,
}

impl Mechanism {
    /// All mechanisms, in display order.
    pub const ALL: [Self; 5] = [
        Self::Fair,
        Self::Shifted,
        Self::Timers,
        Self::Adaptive,
        Self::Priorities,
    ];

    /// Name in one word.
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
    /// Called after each round with the name of the run; may stop the whole simulation.
    pub on_progress: &'a mut dyn FnMut(&str, RunProgress) -> RunDecision,
}

/// Iterations of jobs under one mechanism.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Mechanism under which the jobs ran.
    pub mechanism: Mechanism,
    /// Median iteration of each job in the fluid model.
    pub predicted: Vec<Option<Span>>,
    /// Median iteration of each job in the simulator; `None` if the job did not finish all iterations.
    pub simulated: Vec<Option<Span>>,
    /// Mean iteration of each job in the simulator.
    pub means: Vec<Option<Span>>,
}

/// Results of simulating a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    /// The median iteration of each job alone.
    pub alone: Vec<Option<Span>>,
    /// Trials of all jobs together.
    pub trials: Vec<Trial>,
    /// Mechanisms that were left out, with reasons.
    pub left_out: Vec<(Mechanism, String)>,
    /// Factor by which slots are longer than planned, to make room for congestion control and headers.
    pub stretch: f64,
    /// True if the user stopped the simulation; results then cover only the finished runs.
    pub interrupted: bool,
}

/// A finished or stopped run of jobs.
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

/// Iteration times of a job that finished all iterations, without the warm-up if the job has more iterations.
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
    /// The network of the jobs.
    ///
    /// # Errors
    /// If the jobs do not have a network.
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

    /// Simulated time after which a run is stopped.
    fn patience(&self, iterations: u32) -> Span {
        let periods = self.problem.jobs().iter().map(|job| job.profile.period());
        let all = periods.fold(Span::ZERO, |sum, period| {
            sum.checked_add(period).unwrap_or(Span::MAX)
        });
        let patience = u128::from(all.as_ps()) * u128::from(PATIENCE * u64::from(iterations));
        Span::from_ps(u64::try_from(patience).unwrap_or(u64::MAX)).min(LONGEST)
    }

    /// The assembled scenario of the network.
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

    /// Runs each job alone, then all jobs together under each mechanism.
    ///
    /// # Errors
    /// If there is no network, or it cannot be assembled.
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

    /// Runs a job alone. If its size follows from a communication time, the size is adjusted until the job communicates for that time,
    /// because headers, acknowledgements and congestion control also take time. Returns the median iteration, if any finished; the outer
    /// `None` if the user stopped the run.
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
            // The returned time belongs to the size that is kept.
            if (factor - 1.0).abs() < CLOSE || round == SIZINGS {
                break;
            }
            *size = Bytes::new(((size.as_u64() as f64 * factor) as u64).max(1));
        }
        Ok(Some(alone))
    }

    /// Rejects jobs whose iterations cannot be expressed as a workload.
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

    /// Starts of the jobs with which their communication matches their arcs, without shifts.
    fn starts(&self) -> Changes {
        let of_jobs = self.problem.jobs().iter().map(|job| {
            let end = last_end(&job.profile);
            match end < job.profile.period() {
                // The job computes after its communication, so the simulated iteration begins there.
                true => vec![("start", Value::Text(end.to_string()))],
                false => Vec::new(),
            }
        });
        Changes {
            general: Vec::new(),
            of_jobs: of_jobs.collect(),
        }
    }

    /// Factor by which each job's circle must be stretched so that all jobs on the circle can finish an iteration.
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

    /// The slots of each job; `None` for jobs that do not share links.
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

    /// Changes for a mechanism, or the reason why it is not available.
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
            // Offsets stand for the randomness of packets; otherwise equal jobs in step would stay in step.
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

/// Factor by which this number of steps changes a timer.
fn weakened(steps: u32) -> f64 {
    (0..steps).fold(1.0, |timer, _| timer * TIMER_STEP)
}

/// End of the last communication of an iteration.
fn last_end(profile: &JobProfile) -> Span {
    let phases = profile.phases(PhaseKind::Communication).iter();
    let last = phases.map(Phase::end).max();
    last.unwrap_or(profile.period())
}
