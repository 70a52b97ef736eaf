//! Weighted max-min fair speeds of jobs on links.

use crate::compatibility::Load;

/// Relative difference below which two levels count as equal: rounding alone makes them differ. Jobs that stop rising at equal levels stop
/// together.
const SAME: f64 = 1e-12;

/// A job that communicates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    /// Link shares that the job takes at full speed.
    pub(super) loads: &'a [Load],
    /// Rise of the job's speed for each unit of the level.
    pub(super) slope: f64,
}

/// Free part of each link.
#[derive(Debug, Clone)]
pub(super) struct Links {
    free: Vec<f64>,
    /// Decrease of the free part for each unit of the level.
    slopes: Vec<f64>,
}

impl Links {
    /// Creates `count` empty links.
    pub(super) fn new(count: u32) -> Self {
        Self {
            free: vec![1.0; count as usize],
            slopes: vec![0.0; count as usize],
        }
    }

    /// Makes all links empty again.
    pub(super) fn clear(&mut self) {
        self.free.fill(1.0);
    }

    /// Speeds of `senders` on the free parts of links, by progressive filling; the free parts are then used up. The level rises until a job
    /// is at full speed or a link is full. The jobs concerned then keep their speed, and the other jobs rise further.
    pub(super) fn fill(&mut self, senders: &[Sender<'_>]) -> Vec<f64> {
        let mut speeds = vec![0.0; senders.len()];
        let mut rising: Vec<usize> = (0..senders.len()).collect();
        while !rising.is_empty() {
            for &at in &rising {
                for load in senders[at].loads {
                    self.slopes[load.link as usize] = 0.0;
                }
            }
            for &at in &rising {
                for load in senders[at].loads {
                    self.slopes[load.link as usize] += load.part.as_f64() * senders[at].slope;
                }
            }
            let ends = rising.iter().map(|&at| self.end(&senders[at]));
            let level = ends.fold(f64::INFINITY, f64::min);
            let brim = level * (1.0 + SAME);
            // Find all jobs that stop before links change.
            let (stopping, on): (Vec<usize>, Vec<usize>) = rising
                .iter()
                .partition(|&&at| self.end(&senders[at]) <= brim);
            for &at in &stopping {
                let sender = &senders[at];
                let full = sender.full();
                speeds[at] = if full <= brim {
                    1.0
                } else {
                    level * sender.slope
                };
                for load in sender.loads {
                    let free = &mut self.free[load.link as usize];
                    *free = (*free - load.part.as_f64() * speeds[at]).max(0.0);
                }
            }
            rising = on;
        }
        speeds
    }

    /// The level at which `sender` stops rising if all other jobs rise further.
    fn end(&self, sender: &Sender<'_>) -> f64 {
        let full_link = |load: &Load| {
            let link = load.link as usize;
            self.free[link] / self.slopes[link]
        };
        let ends = sender.loads.iter().map(full_link);
        ends.fold(sender.full(), f64::min)
    }
}

impl Sender<'_> {
    /// The level at which the job is at full speed.
    fn full(&self) -> f64 {
        1.0 / self.slope
    }
}
