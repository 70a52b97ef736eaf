//! Reference implementation of the model, with small time steps and speeds by bisection.

use super::{level_of, loads, weight_of};
use crate::compatibility::fluid::{FluidJob, Sharing};
use clearway_units::Span;
use std::collections::BTreeSet;

/// Number of steps between updates of adaptive weights.
const REFRESH: u64 = 10;

/// A job that walks through the parts of an iteration: a gap and a communication for each stretch, and the rest.
struct Walker<'a> {
    job: &'a FluidJob,
    part: usize,
    left: f64,
    times: Vec<[f64; 3]>,
    begun: f64,
    sending: Option<f64>,
}

impl Walker<'_> {
    /// The stretch in communication.
    fn stretch(&self) -> Option<usize> {
        let is_sending = self.part % 2 == 1 && self.part < 2 * self.job.stretches.len();
        (is_sending && !self.is_done()).then_some(self.part / 2)
    }
    fn is_done(&self) -> bool {
        self.times.len() == self.job.iterations as usize
    }
    /// Sent share of the iteration's volume.
    fn progress(&self) -> f64 {
        let Some(stretch) = self.stretch() else {
            return 0.0;
        };
        let (mut sent, mut all) = (0.0, 0.0);
        for (index, of) in self.job.stretches.iter().enumerate() {
            let length = of.length.as_ps() as f64;
            all += length * of.rate;
            if index < stretch {
                sent += length * of.rate;
            } else if index == stretch {
                sent += (length - self.left) * of.rate;
            }
        }
        sent / all
    }

    /// Walks to `now + step`, with this speed for the communication at `now`.
    fn walk(&mut self, now: f64, step: f64, speed: f64) {
        let mut room = step;
        let mut sends_at_once = self.stretch().is_some();
        while !self.is_done() {
            let speed = match self.stretch() {
                None => 1.0,
                Some(_) if sends_at_once => speed,
                // A job that begins to communicate within a step waits for the next step.
                Some(_) => return,
            };
            if self.left > room * speed {
                self.left -= room * speed;
                return;
            }
            if speed > 0.0 {
                room -= self.left / speed;
            }
            sends_at_once = false;
            self.next_part(now + step - room);
        }
    }

    fn next_part(&mut self, now: f64) {
        let stretches = &self.job.stretches;
        self.part += 1;
        if self.part == 2 * stretches.len() + 1 {
            let sending = self.sending.take().expect("it has communicated");
            self.times.push([self.begun, sending, now]);
            (self.begun, self.part) = (now, 0);
        }
        self.left = match (self.part / 2, self.part % 2) {
            (stretch, _) if stretch == stretches.len() => self.job.rest,
            (stretch, 0) => stretches[stretch].gap,
            (stretch, _) => {
                self.sending = self.sending.or(Some(now));
                stretches[stretch].length
            }
        }
        .as_ps() as f64;
    }
}

/// Begin of each iteration, begin of its communication and end, in ps.
pub(super) fn run(
    links: u32,
    jobs: &[FluidJob],
    sharing: &Sharing,
    step: Span,
) -> Vec<Vec<[f64; 3]>> {
    let mut walkers: Vec<Walker<'_>> = jobs
        .iter()
        .map(|job| Walker {
            job,
            part: 0,
            left: (job.start + job.stretches[0].gap).as_ps() as f64,
            times: Vec::new(),
            begun: job.start.as_ps() as f64,
            sending: None,
        })
        .collect();
    let mut known = Vec::new();
    let mut speeds = Vec::new();
    for number in 0.. {
        if walkers.iter().all(Walker::is_done) {
            break;
        }
        let sending: Vec<Option<usize>> = walkers.iter().map(Walker::stretch).collect();
        let moves = matches!(sharing, Sharing::Adaptive { .. }) && number % REFRESH == 0;
        if moves || sending != known {
            let weights =
                (0..jobs.len()).map(|job| weight_of(sharing, job, walkers[job].progress()));
            let weights: Vec<f64> = weights.collect();
            speeds = fair(links, jobs, sharing, &sending, &weights);
            known = sending;
        }
        let now = (number * step.as_ps()) as f64;
        for (walker, speed) in walkers.iter_mut().zip(&speeds) {
            let speed = speed.map_or(0.0, |(_, speed)| speed);
            walker.walk(now, step.as_ps() as f64, speed);
        }
    }
    walkers.into_iter().map(|walker| walker.times).collect()
}

/// Fair speeds, most urgent jobs first: all jobs rise together as far as links allow, by bisection. A job that cannot rise alone stops.
fn fair(
    links: u32,
    jobs: &[FluidJob],
    sharing: &Sharing,
    sending: &[Option<usize>],
    weights: &[f64],
) -> Vec<Option<(usize, f64)>> {
    let mut speeds: Vec<Option<(usize, f64)>> = sending
        .iter()
        .map(|stretch| stretch.map(|stretch| (stretch, 0.0)))
        .collect();
    let fits = |speeds: &[Option<(usize, f64)>]| {
        let loads = loads(links, jobs, speeds);
        loads.iter().all(|&load| load <= 1.0 + 1e-12)
    };
    let levels: BTreeSet<u32> = (0..jobs.len()).map(|job| level_of(sharing, job)).collect();
    for level in levels {
        let of_level = |&job: &usize| sending[job].is_some() && level_of(sharing, job) == level;
        let mut rising: Vec<usize> = (0..jobs.len()).filter(of_level).collect();
        while !rising.is_empty() {
            let raised = |height: f64| {
                let mut raised = speeds.clone();
                for &job in &rising {
                    let stretch = sending[job].expect("it sends");
                    let full = jobs[job].stretches[stretch].rate;
                    raised[job] = Some((stretch, f64::min(1.0, height * weights[job] / full)));
                }
                raised
            };
            let (mut low, mut high) = (0.0, 100.0);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                if fits(&raised(middle)) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            speeds = raised(low);
            rising.retain(|&job| {
                let mut more = speeds.clone();
                let (_, speed) = more[job].as_mut().expect("it sends");
                *speed += 1e-9;
                *speed <= 1.0 && fits(&more)
            });
        }
    }
    speeds
}
