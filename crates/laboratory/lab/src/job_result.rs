//! Outcomes of jobs.

use crate::lanes::JobConnections;
use clearway_units::{HostId, Span, Time};
use clearway_workload::{JobSpec, Volume};
use std::ops::Range;

/// An iteration of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationTimes {
    /// Time at which the first rank began.
    pub begun: Time,
    /// Time at which the first message was posted; `None` if none was.
    pub sending: Option<Time>,
    /// Time at which the last rank finished; `None` if the run ended earlier.
    pub over: Option<Time>,
}

impl IterationTimes {
    /// Time from the first rank's beginning to the last rank's end.
    pub fn span(&self) -> Option<Span> {
        Some(self.over?.since(self.begun))
    }
}

/// Outcome of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobResult {
    /// The user's name for the job.
    pub label: String,
    /// Number of ranks.
    pub ranks: u32,
    /// The host of each rank.
    pub hosts: Vec<HostId>,
    /// Number of the job's workload section, from zero.
    pub section: u32,
    /// Flow numbers of the job's connections.
    pub flows: Range<u32>,
    /// Configured number of iterations.
    pub iterations: u32,
    /// Volume of an iteration, if the job is a collective.
    pub volume: Option<Volume>,
    /// The iterations that began, in order.
    pub times: Vec<IterationTimes>,
}

impl JobResult {
    /// Result of a job that has not begun.
    pub(crate) fn before((job, connections): (&JobSpec, &JobConnections)) -> Self {
        // Connections of a job have consecutive numbers.
        let first = connections.all().next().map_or(0, |(_, first)| first.0);
        Self {
            label: job.label.clone(),
            ranks: job.hosts.len() as u32,
            hosts: job.hosts.clone(),
            section: job.section,
            flows: first..first + connections.all().count() as u32,
            iterations: job.iterations,
            volume: job.volume,
            times: Vec::new(),
        }
    }

    /// True if all iterations are over.
    pub fn is_done(&self) -> bool {
        let over = self.times.iter().filter(|times| times.over.is_some());
        over.count() as u64 == u64::from(self.iterations)
    }
}

/// The speed of a collective, as nccl-tests prints it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    /// Algorithm bandwidth: the size of the operation over its time, in bytes per second.
    pub algorithm: f64,
    /// Bus bandwidth: the rate that links must carry for that speed, in bytes per second.
    pub bus: f64,
}

impl Bandwidth {
    /// Speed of an operation that took `time`.
    pub fn from_volume(volume: Volume, time: Span) -> Self {
        let algorithm = volume.bytes.as_u64() as f64 / (time.as_ps() as f64 * 1e-12);
        Self {
            algorithm,
            bus: algorithm * volume.bus_factor,
        }
    }
}
