//! Generators of traffic, and their registry.
//!
//! A new generator is one file with a settings struct that implements [`WorkloadDefinition`], and one line in the `workloads!` list of this
//! module. This line yields the variant of [`WorkloadSettings`], the scenario's keys, the row of [`WorkloadSettings::KINDS`] and the entry
//! in the tests that hold for all generators.
//!
//! A generator draws its random numbers from the stream of (seed, [`Purpose::Workload`], section), or from the streams of that section's
//! hosts. So a further section does not change earlier sections.

mod bursts;
mod checkpoint;
mod collective_calls;
mod file;
mod incast;
mod job;
mod job_kinds;
mod job_set;
mod kv_transfer;
mod list;
mod moe;
mod one_to_one;
mod per_job;
mod permutation;
mod poisson;
mod pxn;
mod rank_placement;
mod scheduling;
mod trace;
mod training;

pub use bursts::Bursts;
pub use checkpoint::{CheckpointSettings, Striping};
pub use clearway_formats::trace_files;
pub use file::FileSettings;
pub use incast::{IncastSettings, Receiver, SenderPlacement};
pub use job::JobSettings;
pub use job_kinds::*;
pub use job_set::JobSet;
pub use kv_transfer::KvTransferSettings;
pub use list::{ListOrder, ListSettings};
pub use moe::{MoeSettings, RouterKind, TokenCopies};
pub use one_to_one::OneToOneSettings;
pub use per_job::PerJob;
pub use permutation::{PermutationSettings, derangement};
pub use poisson::PoissonSettings;
pub use pxn::Pxn;
pub use rank_placement::{JobPlacement, RankPlacement, TakenHosts};
pub use scheduling::Scheduling;
pub(crate) use trace::TraceFile;
pub use trace::{GpuSpeed, ProfilerSteps, TraceSettings};
pub use training::{
    ParallelismDegrees, TrainingBatch, TrainingOptions, TrainingSettings, TransformerModel,
};

use clearway_formats::LinkFailure;
use clearway_units::{
    Bytes, HostId, ParameterInfo, ParameterSet, Purpose, RandomStream, Rate, SetError, Value,
};
use clearway_workload::collective::{Layout, sub_lattice};
use clearway_workload::{Arrivals, FileWarning, JobSpec, Workload, WorkloadError};
use std::path::{Path, PathBuf};

/// Properties of a run that its generators need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildContext<'a> {
    /// Hosts of the topology.
    pub hosts: u32,
    /// Rate of each host's NIC, or of all its NICs together if a host has several.
    pub nic_rates: &'a [Rate],
    /// Number of consecutive hosts that are GPUs of one node; 1 if hosts are nodes.
    pub gpus_per_node: u32,
    /// Hosts in each dimension of the topology, the first of which changes fastest with the number of the host; empty if it has none.
    pub dimensions: &'a [u32],
    /// Numbers of the hosts in files of flows for this topology; `None` if they are 0, 1, 2 and so on.
    pub host_numbers: Option<&'a [u32]>,
    /// The run's seed.
    pub seed: u64,
    /// Index of the `[[workload]]` section, from 0.
    pub section: u32,
    /// Hosts with jobs of earlier sections; placements skip these hosts.
    pub taken: &'a TakenHosts,
    /// The folder of the scenario file, if there is one. Files are searched there, then in the current folder.
    pub base_dir: Option<&'a Path>,
}

impl BuildContext<'_> {
    /// Value of `taken` if no host is taken.
    pub const ALL_FREE: &'static TakenHosts = &TakenHosts::new();

    /// Nodes of the ranks on `hosts`.
    pub(crate) fn layout(&self, hosts: &[HostId]) -> Layout {
        let nodes: Vec<u32> = hosts
            .iter()
            .map(|host| host.0 / self.gpus_per_node)
            .collect();
        let layout = match self.gpus_per_node {
            1 => Layout::flat(hosts.len() as u32),
            _ => Layout::of_nodes(&nodes),
        };
        let members: Vec<u32> = hosts.iter().map(|host| host.0).collect();
        match self.dimensions {
            [] => layout,
            sizes => match sub_lattice(sizes, &members) {
                Some(own) => layout.in_dimensions(own),
                None => layout,
            },
        }
    }

    /// The random numbers of this section.
    pub fn random(&self) -> RandomStream {
        RandomStream::new(self.seed, Purpose::Workload, self.section.into())
    }

    /// The random numbers of `host` in this section.
    pub fn random_of(&self, host: HostId) -> RandomStream {
        // Entities below 2^32 are whole sections.
        let entity = ((u64::from(self.section) + 1) << 32) | u64::from(host.0);
        RandomStream::new(self.seed, Purpose::Workload, entity)
    }
}

/// A workload with its jobs, files and warnings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadedWorkload {
    /// The traffic, checked for the hosts of the context.
    pub workload: Workload,
    /// Jobs, checked. Their messages are not among the flows of `workload`.
    pub jobs: Vec<JobSpec>,
    /// Failed links of the workload's file; the topology applies them.
    pub failures: Vec<LinkFailure>,
    /// Warnings about a file.
    pub warnings: Vec<FileWarning>,
    /// Warnings about compatible settings that are probably mistakes.
    pub setting_warnings: Vec<String>,
}

impl From<Workload> for LoadedWorkload {
    fn from(workload: Workload) -> Self {
        Self {
            workload,
            jobs: Vec::new(),
            failures: Vec::new(),
            warnings: Vec::new(),
            setting_warnings: Vec::new(),
        }
    }
}

/// Definition of a generator: its name, and the traffic that it makes. The implementing type holds the settings.
pub trait WorkloadDefinition: ParameterSet {
    /// Name of the generator in a scenario: `workload.kind = "…"`.
    const NAME: &'static str;
    /// Summary in one line, for `clearway list workloads`.
    const SUMMARY: &'static str;

    /// Makes the traffic. [`WorkloadSettings::load`] checks it afterwards.
    ///
    /// # Errors
    /// If settings conflict with each other or with the hosts.
    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError>;

    /// The same traffic as an iterator, if no flow waits for another flow. A run then needs no list of all flows.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn arrivals(&self, _context: &BuildContext<'_>) -> Result<Option<Arrivals>, WorkloadError> {
        Ok(None)
    }

    /// The keys whose values name files that the traffic depends on.
    fn files(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// An error about the setting `key`.
    fn fault(
        key: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> WorkloadError {
        WorkloadError::Setting {
            kind: Self::NAME,
            key,
            message: message.into(),
            fix: fix.into(),
        }
    }
}

macro_rules! workloads {
    ($($variant:ident($settings:ty),)+) => {
        /// The settings of one generator.
        #[derive(Debug, Clone, PartialEq)]
        pub enum WorkloadSettings {
            $(#[doc = concat!("[`", stringify!($settings), "`].")] $variant($settings),)+
        }

        impl WorkloadSettings {
            /// Name and summary of every generator.
            pub const KINDS: &'static [(&'static str, &'static str)] = &[
                $((<$settings as WorkloadDefinition>::NAME, <$settings as WorkloadDefinition>::SUMMARY),)+
            ];

            /// The generator `kind` with its defaults; `None` if the name is unknown.
            pub fn named(kind: &str) -> Option<Self> {
                match kind {
                    $(<$settings as WorkloadDefinition>::NAME => Some(Self::$variant(<$settings>::default())),)+
                    _ => None,
                }
            }
            /// Name of the generator.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$settings as WorkloadDefinition>::NAME,)+
                }
            }
            /// Every setting with its default.
            pub fn describe(&self) -> Vec<ParameterInfo> {
                match self {
                    $(Self::$variant(_) => <$settings>::describe(),)+
                }
            }
            /// Sets `key`.
            ///
            /// # Errors
            /// If the key does not exist or the value does not fit it.
            pub fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
                match self {
                    $(Self::$variant(settings) => settings.set(key, value),)+
                }
            }
            /// Every setting with its present value.
            pub fn entries(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant(settings) => settings.entries(),)+
                }
            }
            /// The keys whose values name files that the traffic depends on.
            pub fn files(&self) -> Vec<&'static str> {
                match self {
                    $(Self::$variant(settings) => settings.files(),)+
                }
            }
            /// The traffic flow by flow, if no flow of this generator waits for another flow. [`load`](Self::load) makes the same flows,
            /// and these are equally valid.
            ///
            /// # Errors
            /// As `load`.
            pub fn arrivals(&self, context: &BuildContext<'_>) -> Result<Option<Arrivals>, WorkloadError> {
                match self {
                    $(Self::$variant(settings) => settings.arrivals(context),)+
                }
            }
            fn load_unchecked(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
                match self {
                    $(Self::$variant(settings) => settings.load(context),)+
                }
            }
        }
    };
}

workloads! {
    Permutation(PermutationSettings),
    Incast(IncastSettings),
    Poisson(PoissonSettings),
    OneToOne(OneToOneSettings),
    RingAllReduce(RingAllReduceJob),
    HalvingDoubling(HalvingDoublingJob),
    DoubleBinaryTree(DoubleBinaryTreeJob),
    DirectAllReduce(DirectAllReduceJob),
    ParameterServer(ParameterServerJob),
    AllToAll(AllToAllJob),
    RingAllGather(RingAllGatherJob),
    DirectAllGather(DirectAllGatherJob),
    RingReduceScatter(RingReduceScatterJob),
    DirectReduceScatter(DirectReduceScatterJob),
    HierarchicalAllReduce(HierarchicalAllReduceJob),
    HierarchicalReduceScatter(HierarchicalReduceScatterJob),
    HierarchicalAllGather(HierarchicalAllGatherJob),
    HierarchicalAllToAll(HierarchicalAllToAllJob),
    ChainBroadcast(ChainBroadcastJob),
    TreeBroadcast(TreeBroadcastJob),
    Moe(MoeSettings),
    KvTransfer(KvTransferSettings),
    Checkpoint(CheckpointSettings),
    Training(TrainingSettings),
    Trace(TraceSettings),
    List(ListSettings),
    File(FileSettings),
}

impl WorkloadSettings {
    /// Makes the traffic with its failed links and warnings, and checks it.
    ///
    /// # Errors
    /// If settings conflict with each other or with the hosts, if a file is invalid, or if the traffic cannot run.
    pub fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        let loaded = self.load_unchecked(context)?;
        loaded.workload.check(context.hosts)?;
        Ok(loaded)
    }

    /// As [`load`](Self::load), for callers that cannot fail links.
    ///
    /// # Errors
    /// As `load`; also if a file has failed links, which must not be dropped silently.
    pub fn build(&self, context: &BuildContext<'_>) -> Result<Workload, WorkloadError> {
        let loaded = self.load(context)?;
        match loaded.failures.len() {
            0 => Ok(loaded.workload),
            failures => Err(WorkloadError::Setting {
                kind: self.kind(),
                key: "file",
                message: format!("the file fails {failures} links, which cannot be applied here"),
                fix: "remove its `failure` lines and the `Failures` line".into(),
            }),
        }
    }
}

/// Size of a message, if it is not zero.
fn some_bytes<D: WorkloadDefinition>(message: Bytes) -> Result<Bytes, WorkloadError> {
    if message == Bytes::ZERO {
        let fix = "write a size of at least one byte, as in \"2MB\"";
        return Err(D::fault("message", "a message carries no bytes", fix));
    }
    Ok(message)
}

/// Number of hosts that take part: the `chosen` number, or all hosts.
fn chosen_hosts<D: WorkloadDefinition>(
    key: &'static str,
    chosen: Option<u32>,
    context: &BuildContext<'_>,
) -> Result<u32, WorkloadError> {
    let hosts = chosen.unwrap_or(context.hosts);
    if hosts > context.hosts {
        let message = format!("{hosts} hosts, but the topology has {}", context.hosts);
        let fix = format!("write a number up to {}, or \"auto\"", context.hosts);
        return Err(D::fault(key, message, fix));
    }
    Ok(hosts)
}

/// The `chosen` host, or the default `otherwise`.
fn chosen_host<D: WorkloadDefinition>(
    key: &'static str,
    chosen: Option<u32>,
    otherwise: u32,
    context: &BuildContext<'_>,
) -> Result<u32, WorkloadError> {
    let host = chosen.unwrap_or(otherwise);
    if host >= context.hosts {
        let message = format!("host {host}, but the topology has {} hosts", context.hosts);
        let fix = match context.hosts {
            0 => "give the topology hosts".to_owned(),
            hosts => format!("write a host from 0 to {}", hosts - 1),
        };
        return Err(D::fault(key, message, fix));
    }
    Ok(host)
}

/// Path of `file`: beside the scenario, or in the current folder if the file exists only there.
pub(crate) fn located(file: &Path, base_dir: Option<&Path>) -> PathBuf {
    let beside = base_dir.map(|folder| folder.join(file));
    match beside {
        Some(beside) if beside.exists() || !file.exists() => beside,
        Some(_) | None => file.to_owned(),
    }
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
