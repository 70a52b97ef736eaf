//! Simulation of the fluid model, from event to event.

use super::fill::{Links, Sender};
use super::{
    CommunicationSlots, FluidError, FluidJob, FluidRun, Iteration, Sharing, Stretch, check,
};
use clearway_units::{Span, Time};
use std::collections::BTreeSet;

/// Number of grains in a picosecond at full speed. Sent amounts are counted in grains, and speeds are whole grains per picosecond.
const GRAINS: u128 = 1 << 48;
/// Number of steps of a phase; an adaptive weight is constant within a step.
const STEPS: u128 = 200;

/// Runs all jobs to their end.
///
/// # Errors
/// If a job has no iterations, has phases without length, or uses a missing link or the same link twice; if numbers are out of range or do
/// not match the number of jobs; or if the run would last longer than [`Time`] can express.
pub fn run(links: u32, jobs: &[FluidJob], sharing: &Sharing) -> Result<FluidRun, FluidError> {
    observed(links, jobs, sharing, |_, _, _| ())
}

/// Runs all jobs as [`run`] does, and calls `observe` for each interval between two events, with the state of all jobs in the interval.
pub(super) fn observed(
    links: u32,
    jobs: &[FluidJob],
    sharing: &Sharing,
    mut observe: impl FnMut(Time, Time, &[Runner<'_>]),
) -> Result<FluidRun, FluidError> {
    check(links, jobs, sharing)?;
    let mut simulation = Simulation {
        sharing,
        links: Links::new(links),
        runners: jobs.iter().map(Runner::new).collect(),
        refresh: Time::NEVER,
    };
    let mut now = Time::ZERO;
    loop {
        let dues = simulation.runners.iter().map(|runner| runner.due);
        let next = dues.fold(simulation.refresh, Time::min);
        if next.is_never() {
            break;
        }
        if next > now {
            observe(now, next, &simulation.runners);
        }
        simulation.advance(now, next);
        now = next;
    }
    let runners = simulation.runners.into_iter();
    let unfinished = |runner: &Runner<'_>| !matches!(runner.doing, JobActivity::Nothing);
    match runners.clone().any(|runner| unfinished(&runner)) {
        true => Err(FluidError::TooLong),
        false => Ok(FluidRun {
            jobs: runners.map(|runner| runner.done).collect(),
        }),
    }
}

struct Simulation<'a> {
    sharing: &'a Sharing,
    links: Links,
    runners: Vec<Runner<'a>>,
    /// Time at which weights change without the begin or end of an activity.
    refresh: Time,
}

/// Activity of a job.
#[derive(Debug, Clone, Copy)]
pub(super) enum JobActivity {
    /// Computation, or the time before the first iteration, until the due time; then the given activity follows.
    Waits(NextActivity),
    /// Communication.
    Sends {
        stretch: usize,
        /// Sent amount of this stretch, in grains.
        sent: u128,
    },
    /// All iterations are over.
    Nothing,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum NextActivity {
    /// The next iteration begins.
    Begin,
    /// The communication of this stretch begins, if slots allow it.
    Ask(usize),
    /// The communication of this stretch begins.
    Send(usize),
    /// The iteration is over.
    End,
}

/// State of a job during its iterations.
#[derive(Debug, Clone)]
pub(super) struct Runner<'a> {
    pub(super) job: &'a FluidJob,
    pub(super) doing: JobActivity,
    /// Known end of the present activity.
    due: Time,
    /// Speed in grains per picosecond; only valid while the job sends.
    speed: u128,
    begun: Time,
    sending: Option<Time>,
    done: Vec<Iteration>,
}

impl<'a> Runner<'a> {
    fn new(job: &'a FluidJob) -> Self {
        Self {
            job,
            doing: JobActivity::Waits(NextActivity::Begin),
            due: Time::ZERO + job.start,
            speed: 0,
            begun: Time::ZERO,
            sending: None,
            done: Vec::new(),
        }
    }

    /// Share of the full rate while the job communicates.
    #[cfg(test)]
    pub(super) fn speed(&self) -> f64 {
        self.speed as f64 / GRAINS as f64
    }

    /// Handles all activities that end by `now`, including following activities that take no time.
    fn on_due(&mut self, now: Time, slots: Option<&CommunicationSlots>) {
        while self.due <= now {
            match self.doing {
                JobActivity::Waits(NextActivity::Begin) => {
                    self.begun = now;
                    self.sending = None;
                    self.go_on(now, 0);
                }
                JobActivity::Waits(NextActivity::Ask(stretch)) => {
                    let waits = slots.filter(|_| stretch == 0);
                    self.due = waits.map_or(now, |slots| slots.next(now));
                    self.doing = JobActivity::Waits(NextActivity::Send(stretch));
                }
                JobActivity::Waits(NextActivity::Send(stretch)) => {
                    self.sending = self.sending.or(Some(now));
                    self.doing = JobActivity::Sends { stretch, sent: 0 };
                    // The end is unknown until the job has a speed.
                    self.due = Time::NEVER;
                }
                JobActivity::Sends { stretch, .. } => self.go_on(now, stretch + 1),
                JobActivity::Waits(NextActivity::End) => self.on_over(now),
                JobActivity::Nothing => return,
            }
        }
    }

    /// Lets the job compute until the communication of `stretch`, or until the end after the last stretch.
    fn go_on(&mut self, now: Time, stretch: usize) {
        let (then, gap) = match self.job.stretches.get(stretch) {
            Some(next) => (NextActivity::Ask(stretch), next.gap),
            None => (NextActivity::End, self.job.rest),
        };
        self.doing = JobActivity::Waits(then);
        self.due = now.saturating_add(gap);
    }

    fn on_over(&mut self, now: Time) {
        self.done.push(Iteration {
            begun: self.begun,
            sending: self.sending,
            over: now,
        });
        if self.done.len() < self.job.iterations as usize {
            self.doing = JobActivity::Waits(NextActivity::Begin);
        } else {
            self.doing = JobActivity::Nothing;
            self.due = Time::NEVER;
        }
    }

    /// Adds the amount that the job sends in `span`.
    fn advance(&mut self, span: Span) {
        if let JobActivity::Sends { stretch, sent } = &mut self.doing {
            let whole = grains(self.job.stretches[*stretch].length);
            *sent = whole.min(*sent + self.speed * u128::from(span.as_ps()));
        }
    }

    /// Sets the speed from `now` on.
    fn set_speed(&mut self, now: Time, speed: f64) {
        let JobActivity::Sends { stretch, sent } = self.doing else {
            return;
        };
        // Round down, so that no link is overloaded.
        self.speed = (speed * GRAINS as f64) as u128;
        let left = grains(self.job.stretches[stretch].length) - sent;
        self.due = match self.speed {
            0 => Time::NEVER,
            speed => after(now, (left + speed / 2) / speed),
        };
    }

    /// Number of finished steps of the phase, out of [`STEPS`].
    fn steps(&self, stretch: usize, sent: u128) -> u128 {
        sent * STEPS / grains(self.job.stretches[stretch].length)
    }

    /// Time at which the next step begins; never if the job is in the last step or does not send.
    fn next_step(&self, now: Time) -> Time {
        let JobActivity::Sends { stretch, sent } = self.doing else {
            return Time::NEVER;
        };
        let next = self.steps(stretch, sent) + 1;
        if next >= STEPS || self.speed == 0 {
            return Time::NEVER;
        }
        let whole = grains(self.job.stretches[stretch].length);
        let left = (whole * next).div_ceil(STEPS) - sent;
        after(now, left.div_ceil(self.speed))
    }

    /// Sent share of the job's amount in an iteration, at the middle of its present step.
    pub(super) fn progress(&self) -> f64 {
        let JobActivity::Sends { stretch, sent } = self.doing else {
            return 0.0;
        };
        let volume = |stretch: &Stretch| stretch.length.as_ps() as f64 * stretch.rate;
        let (before, rest) = self.job.stretches.split_at(stretch);
        let before: f64 = before.iter().map(volume).sum();
        let all = before + rest.iter().map(volume).sum::<f64>();
        let step = self.steps(stretch, sent).min(STEPS - 1);
        (before + volume(&rest[0]) * (step as f64 + 0.5) / STEPS as f64) / all
    }
}

fn grains(span: Span) -> u128 {
    u128::from(span.as_ps()) * GRAINS
}

/// Time `ps` picoseconds after `now`, or never.
fn after(now: Time, ps: u128) -> Time {
    now.saturating_add(Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)))
}

impl<'a> Simulation<'a> {
    fn advance(&mut self, now: Time, next: Time) {
        for (job, runner) in self.runners.iter_mut().enumerate() {
            runner.advance(next - now);
            let slots = match self.sharing {
                Sharing::Slots(slots) => slots[job].as_ref(),
                _ => None,
            };
            runner.on_due(next, slots);
        }
        self.share(next);
    }

    /// Computes new speeds for all sending jobs.
    fn share(&mut self, now: Time) {
        self.links.clear();
        let sending: Vec<usize> = (0..self.runners.len())
            .filter(|&job| matches!(self.runners[job].doing, JobActivity::Sends { .. }))
            .collect();
        let levels: BTreeSet<u32> = sending.iter().map(|&job| self.level(job)).collect();
        let mut everybody_is_at_full_speed = true;
        for level in levels {
            let jobs: Vec<usize> = sending
                .iter()
                .copied()
                .filter(|&job| self.level(job) == level)
                .collect();
            let senders: Vec<Sender<'_>> = jobs.iter().map(|&job| self.sender(job)).collect();
            let speeds = self.links.fill(&senders);
            for (job, speed) in jobs.into_iter().zip(speeds) {
                everybody_is_at_full_speed &= speed == 1.0;
                self.runners[job].set_speed(now, speed);
            }
        }
        self.refresh = Time::NEVER;
        if matches!(self.sharing, Sharing::Adaptive { .. }) && !everybody_is_at_full_speed {
            let steps = sending.iter().map(|&job| self.runners[job].next_step(now));
            self.refresh = steps.fold(Time::NEVER, Time::min);
        }
    }

    fn level(&self, job: usize) -> u32 {
        match self.sharing {
            Sharing::Priorities(levels) => levels[job],
            _ => 0,
        }
    }

    fn sender(&self, job: usize) -> Sender<'a> {
        let runner = &self.runners[job];
        let JobActivity::Sends { stretch, .. } = runner.doing else {
            unreachable!("only those that send have speeds");
        };
        let weight = match self.sharing {
            Sharing::Weights(weights) => weights[job],
            Sharing::Adaptive { gain } => 1.0 + gain * runner.progress(),
            _ => 1.0,
        };
        let stretch = &runner.job.stretches[stretch];
        Sender {
            loads: &stretch.loads,
            slope: weight / stretch.rate,
        }
    }
}
