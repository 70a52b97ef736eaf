//! Checkpoints: ranks of training jobs write their shards to storage hosts.

use super::bursts::within;
use super::job::share_of;
use super::job_set::{JobSet, Work};
use super::{BuildContext, LoadedWorkload, TakenHosts, WorkloadDefinition};
use clearway_units::{Bytes, HostId, RandomStream, Span, choices, parameters};
use clearway_workload::graph::{Graph, MOST_TASKS, Rank};
use clearway_workload::rank::PreparedGraph;
use clearway_workload::{Parallelism, Volume, Workload, WorkloadError, counted};
use std::num::NonZero;
use std::sync::Arc;

/// Maximum number of objects and copies of all jobs of a section: half of the maximum number of messages of one graph.
const MOST_OBJECTS: u64 = MOST_TASKS / 2;

choices! {
    /// Storage host of each object.
    pub enum Striping {
        /// A rank's objects go to one storage host after the other; rank r begins with the r-th.
        RoundRobin = "round-robin",
        /// Each object goes to a storage host that is drawn at random, as by the hash of its name.
        Random = "random",
    }
}

/// Constant that is not zero.
const fn count(number: u32) -> NonZero<u32> {
    NonZero::new(number).expect("above zero")
}

parameters! {
    /// Checkpoints of training jobs. In an iteration every rank trains for `interval`, stops, and writes its shard of the model and of the
    /// optimizer's state. The shard is cut into objects; they go to storage hosts that all jobs of the section share. A rank continues when
    /// all of its objects are acknowledged. All ranks write at once.
    pub struct CheckpointSettings {
        /// Number of parameters of the model, divided equally among the ranks.
        pub parameters: u64 = 8_000_000_000, "parameters", "Llama 3 8B (arXiv 2407.21783) table 3";
        /// Bytes of a checkpoint for each parameter.
        pub bytes_per_parameter: NonZero<u8> = NonZero::new(14).expect("above zero"), "bytes-per-parameter",
            "ZeRO (Rajbhandari et al., SC 2020) §3.1: 2 of weights, 12 of Adam's state in mixed precision";
        /// Size of an object; the last one of a shard may be smaller.
        pub object: Bytes = Bytes::new(4 << 20), "object", "Ceph: RBD and CephFS cut into objects of 4 MiB";
        /// Number of storage hosts: the last hosts of the topology.
        pub storage: NonZero<u32> = count(4), "storage", "decision";
        /// Storage hosts, instead of the last hosts of the topology; an empty list for none.
        pub storage_hosts: Vec<u32> = Vec::new(), "storage-hosts", "the last hosts";
        /// Storage host of each object: "round-robin" or "random".
        pub striping: Striping = Striping::RoundRobin, "striping", "the even case";
        /// Number of storage hosts that keep each object. Each one sends the complete object to the next; the rank does not wait for that.
        pub replicas: NonZero<u32> = NonZero::<u32>::MIN, "replicas", "decision; GFS (SOSP 2003) §2.3 has 3 in a chain";
        /// Maximum number of objects in flight from a rank; "auto": all of them.
        pub parallelism: Option<NonZero<u32>> = Some(count(8)), "parallelism", "decision";
        /// Time for which a job trains before each checkpoint.
        pub interval: Span = Span::ZERO, "interval", "checkpoints alone";
        /// Largest delay before a rank begins to write, drawn once per rank for all checkpoints.
        pub start_jitter: Span = Span::ZERO, "start-jitter", "all at once is the hardest case";
        with {
            /// Ranks, starts, iterations and pace of the jobs.
            pub set: JobSet,
        }
    }
}

impl WorkloadDefinition for CheckpointSettings {
    const NAME: &'static str = "checkpoint";
    const SUMMARY: &'static str =
        "checkpoints: all ranks of a training job write their shards to storage hosts at once";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        self.set.check::<Self>()?;
        let storage = self.storage(context)?;
        let mut taken: TakenHosts = context.taken.clone();
        taken.extend(storage.iter().copied());
        let free = BuildContext {
            taken: &taken,
            ..*context
        };
        self.check_ranks(&free)?;
        let writers = self.set.ranks_of::<Self>(&free)?;
        let placed = self
            .set
            .placing
            .place::<Self>(self.set.jobs, writers, &free)?;
        if let Some(host) = placed.iter().find(|host| storage.contains(host)) {
            let message = format!("host {host} is to write and to store");
            let fix = "name other `storage-hosts`, or other `hosts` for the ranks";
            return Err(Self::fault("storage-hosts", message, fix));
        }
        let size = self.size(writers)?;
        let hosts = placed.chunks(writers as usize);
        let hosts = hosts.flat_map(|own| own.iter().chain(&storage).copied());
        let volume = Volume {
            bytes: Bytes::new(size),
            bus_factor: 1.0,
        };
        let plan = |job: u32| {
            let own = &placed[(job * writers) as usize..][..writers as usize];
            let graph = self.graph(size, own, storage.len() as u32, context);
            Ok((Arc::new(PreparedGraph::new(graph)), Some(volume)))
        };
        let work = Work {
            ranks: writers + storage.len() as u32,
            hosts: hosts.collect(),
            plan,
        };
        Ok(LoadedWorkload {
            jobs: self.set.specs::<Self>(work, context)?,
            setting_warnings: self.warnings(&free).collect(),
            ..LoadedWorkload::from(Workload::default())
        })
    }
}

impl CheckpointSettings {
    /// Storage hosts.
    fn storage(&self, context: &BuildContext<'_>) -> Result<Vec<HostId>, WorkloadError> {
        if self.storage_hosts.is_empty() {
            let storage = self.storage.get();
            if storage >= context.hosts {
                let message = format!(
                    "{storage} storage hosts, but the topology has {} hosts",
                    context.hosts
                );
                let fix = "choose fewer, and leave hosts that write";
                return Err(Self::fault("storage", message, fix));
            }
            self.check_replicas(storage)?;
            return Ok((context.hosts - storage..context.hosts)
                .map(HostId)
                .collect());
        }
        let mut storage: Vec<HostId> = Vec::new();
        for &host in &self.storage_hosts {
            if host >= context.hosts {
                let message = format!("host {host}, but the topology has {} hosts", context.hosts);
                return Err(Self::fault(
                    "storage-hosts",
                    message,
                    "hosts are numbered from 0",
                ));
            }
            if storage.contains(&HostId(host)) {
                let message = format!("host {host} is named twice");
                return Err(Self::fault("storage-hosts", message, "name each host once"));
            }
            storage.push(HostId(host));
        }
        self.check_replicas(storage.len() as u32)?;
        Ok(storage)
    }

    /// Checks that enough hosts are left for the ranks, unless `hosts` names their hosts.
    fn check_ranks(&self, free: &BuildContext<'_>) -> Result<(), WorkloadError> {
        let left = self.set.placing.places(free);
        let ranks = self.set.ranks.unwrap_or(1);
        let wanted = u64::from(ranks) * u64::from(self.set.jobs);
        if !self.set.placing.hosts.is_empty() || wanted <= left.into() {
            return Ok(());
        }
        let message = format!(
            "{} of {}, but storage and other jobs leave {}",
            counted(self.set.jobs as usize, "job"),
            counted(ranks as usize, "rank"),
            counted(left as usize, "host")
        );
        let fix = "choose fewer `ranks`, `jobs` or `storage` hosts, or a larger topology";
        Err(Self::fault("ranks", message, fix))
    }

    fn check_replicas(&self, storage: u32) -> Result<(), WorkloadError> {
        if self.replicas.get() <= storage {
            return Ok(());
        }
        let storage = counted(storage as usize, "storage host");
        let message = format!("{} copies of each object, but {storage}", self.replicas);
        let fix = "choose at most as many as there are storage hosts";
        Err(Self::fault("replicas", message, fix))
    }

    /// Size of a checkpoint that `writers` ranks write.
    fn size(&self, writers: u32) -> Result<u64, WorkloadError> {
        let bytes = self
            .parameters
            .checked_mul(self.bytes_per_parameter.get().into());
        let Some(bytes) = bytes.filter(|&bytes| bytes >= u64::from(writers)) else {
            let message = format!(
                "{} parameters of {} B each on {}",
                self.parameters,
                self.bytes_per_parameter,
                counted(writers as usize, "rank")
            );
            let fix = "give each rank at least one byte, and all together less than 2^64";
            return Err(Self::fault("parameters", message, fix));
        };
        if self.object == Bytes::ZERO {
            let fix = "write a size of at least one byte, as in \"4MiB\"";
            return Err(Self::fault("object", "objects carry no bytes", fix));
        }
        let shard = bytes.div_ceil(writers.into());
        let objects = shard.div_ceil(self.object.as_u64());
        let all = objects
            .saturating_mul(writers.into())
            .saturating_mul(self.replicas.get().into())
            .saturating_mul(self.set.jobs.into());
        if all > MOST_OBJECTS {
            let message = format!(
                "shards of {shard} B in objects of {} are up to {all} copies of objects in all",
                self.object
            );
            let fix = format!(
                "choose larger objects, or fewer parameters, replicas or jobs: {MOST_OBJECTS} are the most"
            );
            return Err(Self::fault("object", message, fix));
        }
        Ok(bytes)
    }

    /// Graph of a checkpoint of `size` bytes. The first ranks write, on the hosts `writers`; the next `storage` ranks store.
    fn graph(
        &self,
        size: u64,
        writers: &[HostId],
        storage: u32,
        context: &BuildContext<'_>,
    ) -> Graph {
        let ranks = writers.len() as u32;
        let mut graph = Graph::new(ranks + storage);
        let store = |index: u32| Rank(ranks + index % storage);
        for (rank, &host) in (0u32..).zip(writers) {
            let mut random: RandomStream = context.random_of(host);
            let late = within(self.start_jitter, &mut random);
            let span = Span::from_ps(self.interval.as_ps().saturating_add(late.as_ps()));
            let begun = graph.compute(Rank(rank), span, []);
            let mut left = share_of(size, rank.into(), ranks.into());
            let mut object = 0;
            while left > 0 {
                let bytes = left.min(self.object.as_u64());
                left -= bytes;
                let first = match self.striping {
                    Striping::RoundRobin => (rank % storage + object % storage) % storage,
                    Striping::Random => random.below(storage),
                };
                object += 1;
                let bytes = Bytes::new(bytes);
                let mut copy = graph.message((Rank(rank), store(first)), bytes, [begun]);
                for replica in 1..self.replicas.get() {
                    let pair = (store(first + replica - 1), store(first + replica));
                    copy = graph.message(pair, bytes, [copy]);
                }
            }
        }
        graph.parallelism = self.parallelism.map(|limit| Parallelism {
            from_sender: limit.get(),
            to_receiver: None,
        });
        graph
    }

    /// Warnings about settings without effect.
    fn warnings(&self, context: &BuildContext<'_>) -> impl Iterator<Item = String> {
        let lengthened = [
            ("jitter", self.set.jitter > 0.0),
            ("stragglers", self.set.stragglers > 0),
        ];
        let computes = !self.interval.is_zero() || !self.start_jitter.is_zero();
        let lengthened = lengthened
            .into_iter()
            .filter(move |(_, given)| *given && !computes);
        let lengthened = lengthened
            .map(|(key, _)| format!("`{key}` lengthens computations, and `interval` is zero"));
        let named = !self.storage_hosts.is_empty() && self.storage != Self::default().storage;
        let named = named.then(|| "`storage-hosts` takes the place of `storage`".to_owned());
        lengthened
            .chain(named)
            .chain(self.set.placing.warnings(context))
    }
}

#[cfg(test)]
mod tests;
