//! Settings that all jobs of ranks share, independent of the work in an iteration.

use super::rank_placement::RankPlacement;
use super::scheduling::Scheduling;
use super::{BuildContext, WorkloadDefinition};
use clearway_units::{HostId, RandomStream, Span, Time, parameters};
use clearway_workload::graph::Rank;
use clearway_workload::rank::PreparedGraph;
use clearway_workload::{JobSpec, Volume, WorkloadError, counted};
use std::collections::BTreeMap;
use std::sync::Arc;

parameters! {
    /// Ranks, starts, iterations and pace of the jobs of a section.
    pub struct JobSet {
        /// Number of ranks of each job; "auto": as many as its hosts allow.
        pub ranks: Option<u32> = None, "ranks", "all hosts";
        /// Number of such jobs that run in parallel, on separate hosts.
        pub jobs: u32 = 1, "jobs", "one job alone";
        /// Start of the first job.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Time between the starts of two jobs.
        pub stagger: Span = Span::ZERO, "stagger", "all at once is the hardest case";
        /// Number of iterations of each job.
        pub iterations: u32 = 1, "iterations", "one iteration";
        /// Largest share by which a computation takes longer, drawn at random for each computation.
        pub jitter: f64 = 0.0, "jitter", "none";
        /// Number of ranks of each job that compute more slowly, drawn at random.
        pub stragglers: u32 = 0, "stragglers", "none";
        /// Factor by which the computations of stragglers take longer: with 2 they take twice as long.
        pub straggler_factor: f64 = 1.5, "straggler-factor", "decision";
        with {
            /// Placement of the ranks.
            pub placing: RankPlacement,
            /// Schedule of the communication.
            pub scheduling: Scheduling,
        }
    }
}

/// Plans of the jobs of a section, and their hosts.
#[derive(Debug)]
pub(super) struct Work<P> {
    /// Number of ranks of each job.
    pub(super) ranks: u32,
    /// The hosts of all ranks, job after job.
    pub(super) hosts: Vec<HostId>,
    /// Plan of a job, given its number. A job whose speed is measured also has a volume.
    pub(super) plan: P,
}

impl JobSet {
    /// Checks the settings without their context.
    pub(super) fn check<D: WorkloadDefinition>(&self) -> Result<(), WorkloadError> {
        for (key, count) in [("jobs", self.jobs), ("iterations", self.iterations)] {
            if count == 0 {
                return Err(D::fault(key, format!("no {key}"), "write 1 or more"));
            }
        }
        if let Some(ranks) = self.ranks.filter(|&ranks| ranks < self.stragglers) {
            let message = format!("{} stragglers of {ranks} ranks", self.stragglers);
            let fix = "choose at most as many as a job has ranks";
            return Err(D::fault("stragglers", message, fix));
        }
        // `!(a >= 1.0)` also rejects NaN.
        if !(self.straggler_factor >= 1.0 && self.straggler_factor <= 1e6) {
            let message = format!("a factor of {}", self.straggler_factor);
            let fix = "write a factor from 1 to 1e6";
            return Err(D::fault("straggler-factor", message, fix));
        }
        if !(self.jitter >= 0.0 && self.jitter <= 1e6) {
            let message = format!("a share of {}", self.jitter);
            return Err(D::fault("jitter", message, "write a share from 0 to 1e6"));
        }
        let last = self.stagger.as_ps().checked_mul(u64::from(self.jobs));
        let last = last.map(|ps| self.start.saturating_add(Span::from_ps(ps)));
        if last.is_none_or(Time::is_never) {
            let message = format!(
                "{} jobs, {} apart, are beyond the longest run",
                self.jobs, self.stagger
            );
            return Err(D::fault(
                "stagger",
                message,
                "let jobs start closer together",
            ));
        }
        Ok(())
    }

    /// Number of ranks of each job.
    pub(super) fn ranks_of<D: WorkloadDefinition>(
        &self,
        context: &BuildContext<'_>,
    ) -> Result<u32, WorkloadError> {
        if self.ranks == Some(0) {
            let fix = "write 1 or more, or \"auto\"";
            return Err(D::fault("ranks", "jobs without ranks", fix));
        }
        let places = self.placing.places(context);
        let ranks = self.ranks.unwrap_or(places / self.jobs);
        let needed = u64::from(ranks) * u64::from(self.jobs);
        if ranks == 0 || needed > u64::from(places) {
            let jobs = counted(self.jobs as usize, "job");
            let ranks = counted(ranks.max(1) as usize, "rank");
            let source = self.placing.source(context);
            let places = counted(places as usize, "host");
            let message = format!("{jobs} of {ranks}, but {source} {places}");
            let fix = match context.taken.is_empty() || !self.placing.hosts.is_empty() {
                true => {
                    "every rank needs its own host: choose fewer `ranks` or `jobs`, or more hosts"
                }
                false => {
                    "choose fewer `ranks`, or a larger topology, or name `hosts` that sections are to share"
                }
            };
            return Err(D::fault("ranks", message, fix));
        }
        if !self.placing.hosts.is_empty() && needed != u64::from(places) {
            let message = format!("{places} hosts for {} jobs of {ranks} ranks", self.jobs);
            return Err(D::fault("hosts", message, "name one host for each rank"));
        }
        Ok(ranks)
    }

    /// The jobs. Plans are built last, because a build may take seconds.
    pub(super) fn specs<D: WorkloadDefinition>(
        &self,
        mut work: Work<
            impl FnMut(u32) -> Result<(Arc<PreparedGraph>, Option<Volume>), WorkloadError>,
        >,
        context: &BuildContext<'_>,
    ) -> Result<Vec<JobSpec>, WorkloadError> {
        let schedule = |job| self.scheduling.schedule::<D>(self.jobs, job);
        let schedules: Vec<_> = (0..self.jobs).map(schedule).collect::<Result<_, _>>()?;
        let mut random = context.random_of(HostId(0));
        let spec = |number: u32| {
            let (plan, volume) = (work.plan)(number)?;
            let first = (number * work.ranks) as usize;
            let label = match self.jobs {
                1 => D::NAME.to_owned(),
                _ => format!("{} {number}", D::NAME),
            };
            let spec = JobSpec {
                label,
                plan,
                hosts: work.hosts[first..first + work.ranks as usize].to_vec(),
                start: self.start.saturating_add(self.stagger * u64::from(number)),
                iterations: self.iterations,
                jitter: self.jitter,
                stragglers: self.draw_stragglers(work.ranks, &mut random),
                schedule: schedules[number as usize],
                volume,
                priority: None,
                variant: 0,
                section: context.section,
            };
            spec.check(context.hosts)
                .map_err(|(message, fix)| D::fault("iterations", message, fix))?;
            Ok(spec)
        };
        (0..self.jobs).map(spec).collect()
    }

    /// The stragglers of a job, with their factor.
    fn draw_stragglers(&self, ranks: u32, random: &mut RandomStream) -> BTreeMap<Rank, f64> {
        let mut all: Vec<u32> = (0..ranks).collect();
        if self.stragglers > 0 {
            random.shuffle(&mut all);
        }
        let slow = all.into_iter().take(self.stragglers as usize);
        slow.map(|rank| (Rank(rank), self.straggler_factor))
            .collect()
    }
}
