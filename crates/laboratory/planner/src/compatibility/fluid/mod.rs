//! Iteration times of jobs that share links, without packets: a fluid model.
//!
//! Each job computes and communicates in turn ([`FluidJob`]). A communicating job has a *speed*: its share of its full rate, which is also
//! the speed of its phase. Speeds change only when an activity begins or ends, so the model proceeds from event to event. Between events,
//! speeds follow weighted max-min fairness, computed by progressive filling: the rates of all communicating jobs rise together, in
//! proportion to their weights. A job's rate stops rising when the job is at full speed or one of its links is full. [`Sharing`] gives the
//! weights, or selects priorities or slots instead.
//!
//! The model compares the mechanisms of HotNets'22, §4 within milliseconds, and separates the effects of sharing in a packet simulation
//! from the effects of congestion control. It has no queues, headers or reaction times: a job with more weight has a higher rate
//! immediately.
//!
//! Decisions:
//!
//! * *Time* is in whole picoseconds. The end of a phase is rounded to the nearest picosecond. Sent amounts are integers in steps of 2^-48
//!   ps at full speed, so the only accumulated error is half a picosecond per phase.
//! * *Events at one instant* all happen, in the order of the jobs, before new speeds are computed; their order has no effect.
//! * *Adaptive weights* would change continuously. The model divides a phase into 200 steps and uses the weight in the middle of the
//!   present step. If jobs share, new speeds are computed when a communicating job reaches its next step. For a phase of 100 ms, that is
//!   every half millisecond at full speed. Jobs in step have the same weights and stay in step for ever, because the model lacks the
//!   randomness of packets.
//! * *Work* is bounded: a run has at most 203 events per phase and one per iteration, and each event examines the communicating jobs and
//!   their links.

mod fill;
mod simulation;
#[cfg(test)]
mod tests;

pub use simulation::run;

use super::{Load, PhaseKind, Problem, Resource};
use clearway_units::statistics::nearest_rank;
use clearway_units::{Span, Time};
use std::fmt;

/// Largest rate and weight, and inverse of the smallest; even their quotients are far below the limits of floats.
const LARGEST: f64 = 1e9;

/// A computation and the communication after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Time that the job computes after the previous stretch, or after the beginning of the iteration.
    pub gap: Span,
    /// Time that the job then communicates if no other job slows it down. Above zero.
    pub length: Span,
    /// Link shares that the job takes while it communicates, each link once.
    pub loads: Vec<Load>,
    /// Full rate of the job, in the same unit for all jobs, from 1e-9 to 1e9. Fair sharing gives equal rates, not equal speeds: of two jobs
    /// with rates of 1 and 2 on one link, the second job reaches half the speed of the first.
    pub rate: f64,
}

/// A job of the fluid model.
#[derive(Debug, Clone, PartialEq)]
pub struct FluidJob {
    /// Beginning of the first iteration.
    pub start: Span,
    /// Successive stretches of each iteration.
    pub stretches: Vec<Stretch>,
    /// Time that the job computes after the last stretch.
    pub rest: Span,
    /// Number of iterations. Above zero.
    pub iterations: u32,
}

impl FluidJob {
    /// The job `index` of `problem` on the placement `choice`, starting at the begin of the run. Its rate is in Gb/s on the link that
    /// carries most of its traffic; traffic that spreads over several links competes only with its part on each link. Shared GPUs are not
    /// modelled.
    ///
    /// # Panics
    /// If the job or the placement does not exist.
    pub fn new(problem: &Problem, index: usize, choice: usize, iterations: u32) -> Self {
        let job = &problem.jobs()[index];
        let links = job.placements[choice].links.iter().map(|load| load.link);
        let shares = links.map(|link| (link, problem.shares(index, choice, Resource::Link(link))));
        let shares: Vec<_> = shares.collect();
        let phases = job.profile.phases(PhaseKind::Communication);
        let mut order: Vec<usize> = (0..phases.len()).collect();
        order.sort_by_key(|&phase| phases[phase].start);
        let mut now = Span::ZERO;
        let mut stretches = Vec::with_capacity(phases.len());
        for phase in order {
            let loads = shares.iter().map(|(link, shares)| Load {
                link: *link,
                part: shares[phase],
            });
            let loads: Vec<Load> = loads.collect();
            let rates = loads.iter().map(|load| {
                load.part.as_f64() * problem.links()[load.link as usize].as_bps() as f64 / 1e9
            });
            let rate = rates.fold(0.0, f64::max);
            stretches.push(Stretch {
                gap: phases[phase].start - now,
                length: phases[phase].length,
                rate: if loads.is_empty() { 1.0 } else { rate },
                loads,
            });
            now = phases[phase].end();
        }
        Self {
            start: Span::ZERO,
            stretches,
            rest: job.profile.period() - now,
            iterations,
        }
    }
}

/// Instants at which a job may begin to communicate (HotNets'22 §4, "Precise flow scheduling").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommunicationSlots {
    /// Time from one slot to the next. Above zero.
    pub period: Span,
    /// Time of the first slot; whole periods do not matter.
    pub shift: Span,
    /// Time after each slot in which the job may still begin. Less than a period.
    pub grace: Span,
}

impl CommunicationSlots {
    /// Earliest time from `now` on at which the job may begin to communicate.
    fn next(&self, now: Time) -> Time {
        let period = u128::from(self.period.as_ps());
        let late = u128::from(self.shift.as_ps()) % period;
        let gone = (u128::from(now.as_ps()) + period - late) % period;
        match gone <= u128::from(self.grace.as_ps()) {
            true => now,
            false => now.saturating_add(Span::from_ps((period - gone) as u64)),
        }
    }
}

/// Rule by which jobs share a contended link.
#[derive(Debug, Clone, PartialEq)]
pub enum Sharing {
    /// Equal rates.
    Fair,
    /// Rates in proportion to these weights, one for each job, from 1e-9 to 1e9.
    Weights(Vec<f64>),
    /// Rates in proportion to `1 + gain * sent / phase`, where `phase` is the amount that the job sends in an iteration. HotNets'22 §4 sets
    /// the step of additive increase in this way, with a gain of 1. The model assumes that rates are proportional to this step.
    Adaptive {
        /// Relative increase of a job's weight from the beginning to the end of its communication, from 0 to 1e9.
        gain: f64,
    },
    /// Strict priorities: the job with the smallest number takes all the capacity that it can use, then the job with the next number. Jobs
    /// with equal numbers share fairly.
    Priorities(Vec<u32>),
    /// Equal rates, but the first communication of each iteration waits for the job's next slot. Later communications of the iteration do
    /// not wait. A job without slots never waits.
    Slots(Vec<Option<CommunicationSlots>>),
}

/// Error that prevents a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FluidError {
    /// A job has no iterations.
    NoIterations {
        /// Index of the job.
        job: usize,
    },
    /// A phase takes no time.
    ZeroPhase {
        /// The job's index.
        job: usize,
        /// Index of the stretch.
        stretch: usize,
    },
    /// A rate or a weight is not within 1e-9 and 1e9.
    Weight {
        /// The job's index.
        job: usize,
        /// Rate or weight that was given.
        weight: f64,
    },
    /// The gain of adaptive weights is below zero or above 1e9.
    Gain(f64),
    /// A job loads a link that does not exist.
    UnknownLink {
        /// The job's index.
        job: usize,
        /// Index of the link.
        link: u32,
        /// Number of links.
        links: u32,
    },
    /// A job loads a link twice.
    RepeatedLink {
        /// The job's index.
        job: usize,
        /// Index of the link.
        link: u32,
    },
    /// The number of weights, priorities or slot entries differs from the number of jobs.
    Count {
        /// Number of jobs.
        jobs: usize,
        /// Number of entries that were given.
        given: usize,
    },
    /// Slots have a zero period, or a grace that is not shorter than the period.
    Slots {
        /// The job's index.
        job: usize,
    },
    /// The run would last more than 213 days.
    TooLong,
}

impl fmt::Display for FluidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoIterations { job } => {
                write!(f, "job {job} has no iterations: give at least one")
            }
            Self::ZeroPhase { job, stretch } => write!(
                f,
                "communication phase {} of job {job} takes no time: leave it out",
                stretch + 1
            ),
            Self::Weight { job, weight } => write!(
                f,
                "job {job} has a rate or a weight of {weight}: give at least {:e} and at most {LARGEST:e}",
                1.0 / LARGEST
            ),
            Self::Gain(gain) => write!(
                f,
                "a gain of {gain}: give at least 0 and at most {LARGEST:e}"
            ),
            Self::UnknownLink { job, link, links } => write!(
                f,
                "job {job} uses link {link}, but there are only {links}, numbered from zero"
            ),
            Self::RepeatedLink { job, link } => {
                write!(f, "job {job} uses link {link} more than once")
            }
            Self::Count { jobs, given } => {
                write!(f, "there are {jobs} jobs, but {given} entries for them")
            }
            Self::Slots { job } => write!(
                f,
                "the slots of job {job} need a period above zero and a grace below that"
            ),
            Self::TooLong => f.write_str("the run would last more than 213 days"),
        }
    }
}

impl std::error::Error for FluidError {}

/// Times of a job in one iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iteration {
    /// Beginning of the iteration.
    pub begun: Time,
    /// Beginning of the first communication; `None` if the iteration has none.
    pub sending: Option<Time>,
    /// End of the iteration, at which the next one begins.
    pub over: Time,
}

impl Iteration {
    /// Length of the iteration.
    pub fn span(&self) -> Span {
        self.over - self.begun
    }
}

/// All iterations of all jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FluidRun {
    /// Iterations of each job, in order.
    pub jobs: Vec<Vec<Iteration>>,
}

impl FluidRun {
    /// The median over the iterations of `job` without the first `after`; for an even number, the lower of the two middle values. `None`
    /// without iterations.
    pub fn median(&self, job: usize, after: usize) -> Option<Span> {
        let mut spans: Vec<Span> = self.spans(job, after).collect();
        spans.sort_unstable();
        nearest_rank(&spans, 500)
    }

    /// The mean over the same iterations, rounded down to a picosecond.
    pub fn mean(&self, job: usize, after: usize) -> Option<Span> {
        let count = self.spans(job, after).count() as u64;
        (count > 0).then(|| self.spans(job, after).sum::<Span>() / count)
    }

    fn spans(&self, job: usize, after: usize) -> impl Iterator<Item = Span> {
        let kept = self.jobs[job].iter().skip(after);
        kept.map(Iteration::span)
    }
}

/// Checks conditions that types cannot express.
fn check(links: u32, jobs: &[FluidJob], sharing: &Sharing) -> Result<(), FluidError> {
    for (index, job) in jobs.iter().enumerate() {
        check_job(links, index, job)?;
    }
    let given = match sharing {
        Sharing::Fair | Sharing::Adaptive { .. } => jobs.len(),
        Sharing::Weights(weights) => weights.len(),
        Sharing::Priorities(levels) => levels.len(),
        Sharing::Slots(slots) => slots.len(),
    };
    if given != jobs.len() {
        let jobs = jobs.len();
        return Err(FluidError::Count { jobs, given });
    }
    match sharing {
        Sharing::Weights(weights) => (0..)
            .zip(weights)
            .try_for_each(|(job, &weight)| check_weight(job, weight)),
        Sharing::Adaptive { gain } if !(0.0..=LARGEST).contains(gain) => {
            Err(FluidError::Gain(*gain))
        }
        Sharing::Slots(slots) => {
            let useless = |slots: &Option<CommunicationSlots>| {
                slots.is_some_and(|slots| slots.grace >= slots.period)
            };
            let job = slots.iter().position(useless);
            job.map_or(Ok(()), |job| Err(FluidError::Slots { job }))
        }
        _ => Ok(()),
    }
}

fn check_job(links: u32, job: usize, of: &FluidJob) -> Result<(), FluidError> {
    if of.iterations == 0 {
        return Err(FluidError::NoIterations { job });
    }
    for (index, stretch) in of.stretches.iter().enumerate() {
        if stretch.length.is_zero() {
            let stretch = index;
            return Err(FluidError::ZeroPhase { job, stretch });
        }
        check_weight(job, stretch.rate)?;
        for (at, &Load { link, .. }) in stretch.loads.iter().enumerate() {
            if link >= links {
                return Err(FluidError::UnknownLink { job, link, links });
            }
            let before = &stretch.loads[..at];
            if before.iter().any(|other| other.link == link) {
                return Err(FluidError::RepeatedLink { job, link });
            }
        }
    }
    Ok(())
}

fn check_weight(job: usize, weight: f64) -> Result<(), FluidError> {
    match (1.0 / LARGEST..=LARGEST).contains(&weight) {
        true => Ok(()),
        false => Err(FluidError::Weight { job, weight }),
    }
}
