//! Jobs: ranks on hosts that run a graph, once or again and again.

use crate::graph::{Graph, Rank, Task, TaskId};
use crate::rank::{Pace, PreparedGraph, Slots};
use clearway_units::{Bytes, HostId, Purpose, RandomStream, Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Volume of a collective, by which its speed is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Volume {
    /// The size of the operation, as nccl-tests count it: time and this make the algorithm bandwidth.
    pub bytes: Bytes,
    /// Factor by which the bus bandwidth exceeds the algorithm bandwidth.
    pub bus_factor: f64,
}

/// Schedule of the communication of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Slots by a perfect clock.
    pub slots: Slots,
    /// Maximum lateness of the clock of a rank. Each is late by a random time up to this.
    pub skew: Span,
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// Name of the job in results.
    pub label: String,
    /// Tasks of the ranks in an iteration.
    pub plan: Arc<PreparedGraph>,
    /// The host of each rank; no two ranks share one.
    pub hosts: Vec<HostId>,
    /// Start of the job.
    pub start: Time,
    /// Number of iterations of the graph, above zero.
    pub iterations: u32,
    /// Maximum share of its time by which a computation takes longer.
    pub jitter: f64,
    /// Slow ranks, with the factor by which their computations take longer.
    pub stragglers: BTreeMap<Rank, f64>,
    /// Schedule of the communication; without one, ranks communicate whenever they are ready.
    pub schedule: Option<Schedule>,
    /// Volume of an iteration, if it is a collective.
    pub volume: Option<Volume>,
    /// The priority of its packets, 1 to 7, if the job sets one.
    pub priority: Option<u8>,
    /// Index of the variant of the run's settings that the senders have; 0 is the one that most have.
    pub variant: u16,
    /// Number of the section of the scenario that it belongs to, from 0.
    pub section: u32,
}

/// All messages of a job from one rank to another, or the messages on one of several lanes between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankConnection {
    /// Sending rank.
    pub src: Rank,
    /// Receiving rank.
    pub dst: Rank,
    /// Number of the lane, from 0.
    pub lane: u32,
    /// Number of messages, in all iterations.
    pub messages: u32,
    /// Number of bytes, in all iterations.
    pub bytes: Bytes,
}

impl JobSpec {
    /// A job of `graph` that begins at the start of the run and runs once, its rank n on host n.
    pub fn new(label: impl Into<String>, graph: Graph) -> Self {
        Self {
            label: label.into(),
            hosts: (0..graph.ranks()).map(HostId).collect(),
            plan: Arc::new(PreparedGraph::new(graph)),
            start: Time::ZERO,
            iterations: 1,
            jitter: 0.0,
            stragglers: BTreeMap::new(),
            schedule: None,
            volume: None,
            priority: None,
            variant: 0,
            section: 0,
        }
    }

    /// Connections of the job, by sender, then by receiver, then by lane. `lane` gives the lane of each message between two ranks; a
    /// lane without a message has no connection.
    ///
    /// # Panics
    /// If one carries more than 2^64 bytes or 2^32 messages in all iterations; [`check`](Self::check) refuses that.
    pub fn connections(&self, lane: impl Fn((Rank, Rank), TaskId) -> u32) -> Vec<RankConnection> {
        let sums = self.sums(lane).into_iter();
        let connection =
            |((src, dst, lane), (messages, bytes)): ((Rank, Rank, u32), (u64, u64))| {
                let iterations = u64::from(self.iterations);
                let messages = messages.checked_mul(iterations).map(u32::try_from);
                let bytes = bytes.checked_mul(iterations);
                RankConnection {
                    src,
                    dst,
                    lane,
                    messages: messages.and_then(Result::ok).expect("checked before"),
                    bytes: Bytes::new(bytes.expect("checked before")),
                }
            };
        sums.map(connection).collect()
    }

    /// Messages and bytes of an iteration from rank to rank, by lane.
    fn sums(
        &self,
        lane: impl Fn((Rank, Rank), TaskId) -> u32,
    ) -> BTreeMap<(Rank, Rank, u32), (u64, u64)> {
        let mut sums: BTreeMap<(Rank, Rank, u32), (u64, u64)> = BTreeMap::new();
        for (id, task) in self.plan.graph().numbered() {
            if let Task::Message { src, dst, bytes } = task {
                let sum = sums.entry((src, dst, lane((src, dst), id))).or_default();
                sum.0 += 1;
                sum.1 += bytes.as_u64();
            }
        }
        sums
    }

    /// Checks that the job can run on `hosts` hosts. Its graph has been [checked](Graph::check) before.
    ///
    /// # Errors
    /// A description of the fault, and the suggested fix.
    pub fn check(&self, hosts: u32) -> Result<(), (String, String)> {
        let fault = |message: String, fix: &str| Err((message, fix.to_owned()));
        let ranks = self.plan.graph().ranks() as usize;
        if self.hosts.len() != ranks {
            let message = format!("{} hosts for {ranks} ranks", self.hosts.len());
            return fault(message, "give each rank a host");
        }
        let mut taken = BTreeMap::new();
        for (rank, host) in (0u32..).zip(&self.hosts) {
            if host.0 >= hosts {
                let message = format!("rank {rank} is on host {host}, but there are {hosts} hosts");
                return fault(message, "choose hosts of the topology, counted from 0");
            }
            if let Some(other) = taken.insert(host, rank) {
                let message = format!("ranks {other} and {rank} are both on host {host}");
                return fault(message, "give each rank its own host");
            }
        }
        if self.iterations == 0 {
            return fault("no iterations".into(), "let it run at least once");
        }
        let tasks = self.plan.graph().len() as u64;
        if tasks.saturating_mul(self.iterations.into()) >= u64::from(u32::MAX) {
            let message = format!(
                "{} iterations of {tasks} messages and computations",
                self.iterations
            );
            return fault(message, "less than 2^32 in all iterations have numbers");
        }
        let iterations = u64::from(self.iterations);
        let sums = self.sums(|_, _| 0).into_values();
        if sums
            .into_iter()
            .any(|(_, bytes)| bytes.checked_mul(iterations).is_none())
        {
            let message = format!("more than 2^64 bytes in {iterations} iterations");
            return fault(message, "send smaller messages, or run fewer iterations");
        }
        Ok(())
    }

    /// Slots in which a rank may begin to communicate, by its own clock. `job` is the job's number in the run.
    pub fn slots(&self, rank: Rank, job: u32, seed: u64) -> Option<Slots> {
        let Schedule { slots, skew } = self.schedule?;
        let mut random = RandomStream::new(seed, Purpose::Clock, entity(job, rank));
        let late = (skew.as_ps() as f64 * random.unit()) as u64;
        Some(Slots {
            skew: slots.skew + Span::from_ps(late),
            ..slots
        })
    }

    /// Pace of the computations of a rank. `job` is the job's number in the run.
    pub fn pace(&self, rank: Rank, job: u32, seed: u64) -> Pace {
        Pace {
            factor: self.stragglers.get(&rank).copied().unwrap_or(1.0),
            jitter: self.jitter,
            random: RandomStream::new(seed, Purpose::Compute, entity(job, rank)),
        }
    }
}

/// Number of a rank of a job as an entity with random streams.
fn entity(job: u32, rank: Rank) -> u64 {
    u64::from(job) << 32 | u64::from(rank.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: Bytes = Bytes::new(1000);

    fn job() -> JobSpec {
        let mut graph = Graph::new(3);
        let pair = |src, dst| (Rank(src), Rank(dst));
        let first = graph.message(pair(0, 1), KB, []);
        graph.message(pair(1, 2), KB, [first]);
        graph.message(pair(0, 1), KB, []);
        JobSpec {
            iterations: 4,
            ..JobSpec::new("pairs", graph)
        }
    }

    #[test]
    fn messages_from_rank_to_rank_share_a_connection() {
        let connection = |src, dst, messages| RankConnection {
            src: Rank(src),
            dst: Rank(dst),
            lane: 0,
            messages,
            bytes: Bytes::new(1000 * u64::from(messages)),
        };
        assert_eq!(
            job().connections(|_, _| 0),
            [connection(0, 1, 8), connection(1, 2, 4)]
        );
        // The second message of the pair on another lane.
        let places = job().plan.places_in_pairs();
        let on_lane = |lane| RankConnection {
            lane,
            ..connection(0, 1, 4)
        };
        assert_eq!(
            job().connections(|_, task| places[task.index()]),
            [on_lane(0), on_lane(1), connection(1, 2, 4)]
        );
    }

    #[test]
    fn what_cannot_run_is_refused() {
        let error = |change: fn(&mut JobSpec)| {
            let mut job = job();
            change(&mut job);
            job.check(8).map_err(|(message, _)| message)
        };
        assert_eq!(error(|_| ()), Ok(()));
        let refused = |message: &str| Err(message.to_owned());
        assert_eq!(
            error(|job| job.hosts.truncate(2)),
            refused("2 hosts for 3 ranks")
        );
        assert_eq!(
            error(|job| job.hosts[1] = HostId(8)),
            refused("rank 1 is on host 8, but there are 8 hosts")
        );
        assert_eq!(
            error(|job| job.hosts[2] = HostId(0)),
            refused("ranks 0 and 2 are both on host 0")
        );
        assert_eq!(error(|job| job.iterations = 0), refused("no iterations"));
        assert_eq!(
            error(|job| job.iterations = u32::MAX / 2),
            refused("2147483647 iterations of 3 messages and computations")
        );
        let large = |job: &mut JobSpec| {
            let mut graph = Graph::new(3);
            graph.message((Rank(0), Rank(1)), Bytes::new(1 << 63), []);
            job.plan = Arc::new(PreparedGraph::new(graph));
        };
        assert_eq!(
            error(large),
            refused("more than 2^64 bytes in 4 iterations")
        );
    }

    #[test]
    fn ranks_have_random_streams_of_their_own() {
        let mut job = job();
        job.stragglers.insert(Rank(1), 1.5);
        let draw = |rank, number| job.pace(Rank(rank), number, 7).random.next_u64();
        assert_eq!(draw(0, 0), draw(0, 0));
        assert_ne!(draw(0, 0), draw(1, 0));
        assert_ne!(draw(0, 0), draw(0, 1));
        let factors: Vec<f64> = (0..3)
            .map(|rank| job.pace(Rank(rank), 0, 7).factor)
            .collect();
        assert_eq!(factors, [1.0, 1.5, 1.0]);
    }
}
