//! Settings that all jobs with collectives share: placement of ranks, iterations and computations.

use super::job_set::{JobSet, Work};
use super::rank_placement::RankPlacement;
use super::scheduling::Scheduling;
use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use clearway_units::{Bytes, HostId, Span, Time, Value, parameters};
use clearway_workload::collective::{Collective, CollectiveDefinition, CollectiveError, Layout};
use clearway_workload::graph::{Graph, MOST_TASKS, Rank, TaskId};
use clearway_workload::rank::PreparedGraph;
use clearway_workload::{Volume, Workload, WorkloadError};
use std::sync::Arc;

parameters! {
    /// Placement, iterations and computations of jobs.
    pub struct JobSettings {
        /// Number of ranks of each job; "auto": as many as its hosts allow.
        pub ranks: Option<u32> = None, "ranks", "all hosts";
        /// Number of such jobs that run in parallel, on separate hosts.
        pub jobs: u32 = 1, "jobs", "one job alone";
        /// Start of the first job.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Time between the starts of two jobs.
        pub stagger: Span = Span::ZERO, "stagger", "all at once is the hardest case";
        /// Number of iterations of each job. In each one the job computes and communicates.
        pub iterations: u32 = 1, "iterations", "one collective";
        /// Time for which each rank computes in an iteration, before its part of the collective begins.
        pub compute: Span = Span::ZERO, "compute", "communication alone";
        /// Number of operations of equal size into which the collective is cut. They become ready one after the other, as gradients do.
        pub buckets: u32 = 1, "buckets", "one operation";
        /// Share of `compute`, up to its end, over which buckets become ready evenly; with 0, all of them are ready at its end.
        pub overlap: f64 = 0.0, "overlap", "no overlap";
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

/// The jobs of a section of kind `D`, which run the collective `C`.
pub(super) fn jobs<D: WorkloadDefinition, C: CollectiveDefinition + Clone>(
    settings: &JobSettings,
    collective: &C,
    context: &BuildContext<'_>,
) -> Result<LoadedWorkload, WorkloadError> {
    let layout = |hosts: &[HostId]| context.layout(hosts);
    jobs_by_layout::<D, C, Layout>(settings, collective, context, layout, C::build_on)
}

/// As [`jobs`], if the messages depend on the hosts of the ranks. `layout` gives the relevant facts about these hosts, and `build` makes
/// the messages of one collective.
pub(super) fn jobs_by_layout<
    D: WorkloadDefinition,
    C: CollectiveDefinition + Clone,
    L: PartialEq,
>(
    settings: &JobSettings,
    collective: &C,
    context: &BuildContext<'_>,
    layout: impl Fn(&[HostId]) -> L,
    build: impl Fn(&C, &L) -> Result<Collective, CollectiveError>,
) -> Result<LoadedWorkload, WorkloadError> {
    settings.check::<D>()?;
    let set = settings.set();
    set.check::<D>()?;
    let ranks = set.ranks_of::<D>(context)?;
    let hosts = set.placing.place::<D>(set.jobs, ranks, context)?;
    let layouts: Vec<L> = hosts.chunks(ranks as usize).map(layout).collect();
    // Consecutive jobs with equal layouts share a plan.
    let mut last: Option<(usize, Arc<PreparedGraph>, Volume)> = None;
    let plan = |number: u32| {
        let own = &layouts[number as usize];
        let known = last.take().filter(|(of, ..)| layouts[*of] == *own);
        let (_, plan, volume) = match known {
            Some(known) => known,
            None => {
                let made = |collective: &C| build(collective, own);
                let (graph, volume) = settings.iteration::<D, C>(collective, ranks, made)?;
                (number as usize, Arc::new(PreparedGraph::new(graph)), volume)
            }
        };
        last = Some((number as usize, Arc::clone(&plan), volume));
        Ok((plan, Some(volume)))
    };
    let jobs = set.specs::<D>(Work { ranks, hosts, plan }, context)?;
    Ok(LoadedWorkload {
        jobs,
        setting_warnings: settings.warnings(context).collect(),
        ..LoadedWorkload::from(Workload::default())
    })
}

impl JobSettings {
    /// Settings that all kinds of jobs have.
    fn set(&self) -> JobSet {
        JobSet {
            ranks: self.ranks,
            jobs: self.jobs,
            start: self.start,
            stagger: self.stagger,
            iterations: self.iterations,
            jitter: self.jitter,
            stragglers: self.stragglers,
            straggler_factor: self.straggler_factor,
            placing: self.placing.clone(),
            scheduling: self.scheduling.clone(),
        }
    }

    /// Checks the settings that other kinds of jobs do not have.
    fn check<D: WorkloadDefinition>(&self) -> Result<(), WorkloadError> {
        if self.buckets == 0 {
            return Err(D::fault("buckets", "no buckets", "write 1 or more"));
        }
        if !(self.overlap >= 0.0 && self.overlap <= 1.0) {
            let message = format!("a share of {}", self.overlap);
            return Err(D::fault("overlap", message, "write a share from 0 to 1"));
        }
        Ok(())
    }

    /// Warnings about settings without effect.
    fn warnings(&self, context: &BuildContext<'_>) -> impl Iterator<Item = String> {
        let lengthened = [
            ("jitter", self.jitter > 0.0),
            ("stragglers", self.stragglers > 0),
        ];
        let lengthened = lengthened
            .into_iter()
            .filter(|(_, given)| *given && self.compute.is_zero());
        let lengthened = lengthened
            .map(|(key, _)| format!("`{key}` lengthens computations, and `compute` is zero"));
        let spread = self.overlap > 0.0 && self.buckets == 1;
        let spread = spread.then(|| {
            format!(
                "`overlap` = {} has no effect with one bucket: it is ready only when the computation ends",
                self.overlap
            )
        });
        lengthened
            .chain(spread)
            .chain(self.placing.warnings(context))
    }

    /// Graph of one iteration, with the computations and the collective in buckets. The second part is the volume of the collective.
    fn iteration<D: WorkloadDefinition, C: CollectiveDefinition + Clone>(
        &self,
        collective: &C,
        ranks: u32,
        build: impl Fn(&C) -> Result<Collective, CollectiveError>,
    ) -> Result<(Graph, Volume), WorkloadError> {
        let fault = |error: CollectiveError| {
            D::fault(error.key.unwrap_or("ranks"), error.message, error.fix)
        };
        let whole = build(collective).map_err(fault)?;
        let volume = Volume {
            bytes: whole.size,
            bus_factor: whole.bus_factor(),
        };
        if self.compute.is_zero() && self.buckets == 1 {
            return Ok((whole.graph, volume));
        }
        let size = whole.size.as_u64();
        let buckets = u64::from(self.buckets);
        if size < buckets {
            let message = format!("{buckets} buckets of {size} bytes in all");
            return Err(D::fault(
                "buckets",
                message,
                "choose at most one bucket for each byte",
            ));
        }
        // A single bucket uses the graph that is already built: with thousands of ranks, a build takes seconds.
        let mut whole = (buckets == 1).then_some(whole.graph);
        let compute = self.compute.as_ps();
        // Rounding can make the product larger than `compute`.
        let overlapped = ((compute as f64 * self.overlap) as u64).min(compute);
        let mut graph = Graph::new(ranks);
        let mut gates: Vec<TaskId> = Vec::new();
        for bucket in 0..buckets {
            // Only the first bucket also waits for the part of the computation without overlap.
            let before = if bucket == 0 { compute - overlapped } else { 0 };
            let span = Span::from_ps(before + share_of(overlapped, bucket, buckets));
            let last = std::mem::take(&mut gates);
            for rank in (0..ranks).map(Rank) {
                let after = last.get(rank.index()).copied();
                gates.push(graph.compute(rank, span, after));
            }
            let bytes = Bytes::new(share_of(size, bucket, buckets));
            let part = match whole.take() {
                Some(whole) => whole,
                None => build(&with_size(collective, bytes)).map_err(fault)?.graph,
            };
            if bucket == 0 {
                self.check_tasks::<D>(part.len() as u64 + u64::from(ranks))?;
            }
            graph.append(&part, &gates);
        }
        Ok((graph, volume))
    }

    /// Checks that all buckets together do not exceed the maximum number of tasks of a graph.
    fn check_tasks<D: WorkloadDefinition>(&self, of_bucket: u64) -> Result<(), WorkloadError> {
        let buckets = u64::from(self.buckets);
        if of_bucket.saturating_mul(buckets) <= MOST_TASKS {
            return Ok(());
        }
        let message = format!(
            "{buckets} buckets of {of_bucket} messages and computations, but {MOST_TASKS} are the most that an iteration may have"
        );
        let fix = match MOST_TASKS / of_bucket {
            0 => "choose fewer ranks, or a larger `chunk`".into(),
            1 => "leave it out".into(),
            most => format!("choose {most} buckets at most, or a larger `chunk`"),
        };
        Err(D::fault("buckets", message, fix))
    }
}

/// Size of part number `part`, if `whole` is cut into `parts` parts that differ by at most one.
pub(super) fn share_of(whole: u64, part: u64, parts: u64) -> u64 {
    // Differences of rounded multiples: all parts add up to `whole`.
    let up_to = |part: u64| u128::from(whole) * u128::from(part) / u128::from(parts);
    (up_to(part + 1) - up_to(part)) as u64
}

/// The same collective with `bytes` as its size.
fn with_size<C: CollectiveDefinition + Clone>(collective: &C, bytes: Bytes) -> C {
    let mut part = collective.clone();
    let size = Value::Text(format!("{}B", bytes.as_u64()));
    part.set("size", &size)
        .expect("every collective has a size");
    part
}

#[cfg(test)]
mod tests;
