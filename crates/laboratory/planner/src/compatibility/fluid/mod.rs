//! Iteration times of jobs that share links, without packets: a fluid model.
//!
//! Each job computes and communicates in turn ([`FluidJob`]). While it communicates it has a *speed*: the part of its full rate that it
//! gets, which is also how fast its phase goes by. Speeds change only when something begins or ends, so that the model goes from event to
//! event. Between events speeds are those of weighted max-min fairness, found by progressive filling: the rates of all jobs that
//! communicate rise together, in proportion to their weights, and a job's rate stops rising when it is at full speed or a link of its
//! is full. [`Sharing`] says what the weights are, or that there are priorities or slots instead.
//!
//! With it the mechanisms of HotNets'22, §4 can be compared in milliseconds, and what a packet simulation says can be told apart from
//! what its congestion control adds. It knows no queues, no headers and no reaction time: a job with more weight has more rate at once.
//!
//! Decisions:
//!
//! * *Time* is in whole picoseconds. The end of a phase is rounded to the nearest; what is sent until then is counted in steps of 2^-48
//!   ps at full speed, in integers, so that nothing accumulates but half a picosecond for each phase.
//! * *Events at one instant* all happen, in the order of the jobs, before speeds are found anew: their order changes nothing.
//! * *Adaptive weights* would change all the time. They are those of the middle of the two hundredth of the phase that a job is in, and
//!   speeds are found anew when a job that communicates gets to the next one, if any job has to share. Of a phase of 100 ms that is every
//!   half millisecond at full speed. Jobs that do the same at the same time have the same weights and stay together for ever: without
//!   packets there is no chance that could part them.
//! * *Work* is bounded: a run has at most 203 events for each phase and one for each iteration, each of which looks at the jobs that
//!   communicate and their links.

mod fill;
mod simulation;
#[cfg(test)]
mod tests;

pub use simulation::run;

use super::{Load, PhaseKind, Problem, Resource};
use clearway_units::statistics::nearest_rank;
use clearway_units::{Span, Time};
use std::fmt;

/// The largest rate and weight, and one over the least: far from what floats can hold, even when divided by each other.
const LARGEST: f64 = 1e9;

/// A computation and the communication after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Time that the job computes after the former stretch, or after the beginning of the iteration.
    pub gap: Span,
    /// Time that the job then communicates if no other job slows it down. Above zero.
    pub length: Span,
    /// Shares that the job takes of links meanwhile, each link once.
    pub loads: Vec<Load>,
    /// Rate at which the job then sends, in any unit that is the same for all jobs, from 1e-9 to 1e9. Fair sharing gives equal rates and
    /// not equal speeds: of two jobs with rates of 1 and 2 on one link the second one comes to half the speed of the first.
    pub rate: f64,
}

/// A job as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct FluidJob {
    /// Beginning of the first iteration.
    pub start: Span,
    /// Stretches of each iteration, one after the other.
    pub stretches: Vec<Stretch>,
    /// Time that the job computes after the last stretch.
    pub rest: Span,
    /// Number of iterations. Above zero.
    pub iterations: u32,
}

impl FluidJob {
    /// The job `index` of `problem` on the placement `choice`, which begins when the run does. Its rate is in Gb/s, on the link on which it
    /// sends most: where its traffic spreads over several links, it meets others with a part of it. GPUs that it shares are not modelled.
    ///
    /// # Panics
    /// If there is no such job, or it has no such placement.
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
    /// The first time from `now` on at which the job may begin to communicate.
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

/// Rule by which jobs share a link that several of them would fill.
#[derive(Debug, Clone, PartialEq)]
pub enum Sharing {
    /// Equal rates.
    Fair,
    /// Rates in proportion to these weights, one for each job, from 1e-9 to 1e9.
    Weights(Vec<f64>),
    /// Rates in proportion to `1 + gain * sent / phase`, where the phase is what the job sends in an iteration: HotNets'22 §4 makes the
    /// step of additive increase so, with a gain of 1. That rates are proportional to that step is the model's assumption.
    Adaptive {
        /// By how many times a job's weight at the end of its communication exceeds that at the beginning, from 0 to 1e9.
        gain: f64,
    },
    /// The job with the smallest of these numbers takes what it can, then the next one. Jobs with equal numbers share fairly.
    Priorities(Vec<u32>),
    /// Equal rates, but the first communication of each iteration waits for the job's next slot. What follows in the same iteration
    /// waits no more. A job without slots never waits.
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
    /// There is not one weight, one priority or one entry of slots for each job.
    Count {
        /// Number of jobs.
        jobs: usize,
        /// Number of entries that were given.
        given: usize,
    },
    /// Slots have no period, or a grace as long as that.
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
    /// Beginning of its first communication; `None` if it has none.
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
    /// The median over the iterations of `job` but for the first `after`: of an even number the lower of the two in the middle. `None` if
    /// there are none.
    pub fn median(&self, job: usize, after: usize) -> Option<Span> {
        let mut spans: Vec<Span> = self.spans(job, after).collect();
        spans.sort_unstable();
        nearest_rank(&spans, 500)
    }

    /// The mean over the same, rounded down to a picosecond.
    pub fn mean(&self, job: usize, after: usize) -> Option<Span> {
        let count = self.spans(job, after).count() as u64;
        (count > 0).then(|| self.spans(job, after).sum::<Span>() / count)
    }

    fn spans(&self, job: usize, after: usize) -> impl Iterator<Item = Span> {
        let kept = self.jobs[job].iter().skip(after);
        kept.map(Iteration::span)
    }
}

/// Checks what types cannot express.
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
