//! Jobs that run a collective: one kind of workload for each algorithm.

use super::job::{JobSettings, jobs, jobs_by_layout};
use super::pxn::{Gpus, Pxn};
use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use clearway_units::{HostId, OmitDefaults, parameters};
use clearway_workload::WorkloadError;
use clearway_workload::collective::{
    AllToAllSettings, ChainBroadcastSettings, CollectiveDefinition, DirectAllGatherSettings,
    DirectAllReduceSettings, DirectReduceScatterSettings, DoubleBinaryTreeSettings,
    HalvingDoublingSettings, HierarchicalAllGatherSettings, HierarchicalAllReduceSettings,
    HierarchicalAllToAllSettings, HierarchicalReduceScatterSettings, ParameterServerSettings,
    RingAllGatherSettings, RingAllReduceSettings, RingReduceScatterSettings, TreeBroadcastSettings,
};

macro_rules! job_kinds {
    ($($job:ident, $collective:ident, $name:literal;)+) => {$(
        parameters! {
            #[doc = concat!("A job that runs the collective \"", $name, "\".")]
            pub struct $job {
                with {
                    /// Placement, iterations and computations.
                    pub job: JobSettings,
                    /// Collective that the job runs.
                    pub collective: $collective,
                }
            }
        }

        impl WorkloadDefinition for $job {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = <$collective as CollectiveDefinition>::SUMMARY;

            fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
                jobs::<Self, $collective>(&self.job, &self.collective, context)
            }
        }
    )+};
}

parameters! {
    /// A job that runs the collective "all-to-all".
    pub struct AllToAllJob {
        with {
            /// Placement, iterations and computations.
            pub job: JobSettings,
            /// Collective that the job runs.
            pub collective: AllToAllSettings,
            /// Ways of the messages.
            pub ways: OmitDefaults<Pxn>,
        }
    }
}

impl WorkloadDefinition for AllToAllJob {
    const NAME: &'static str = "all-to-all";
    const SUMMARY: &'static str = <AllToAllSettings as CollectiveDefinition>::SUMMARY;

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        let Some(of_node) = self.ways.gpus_per_node::<Self>(context)? else {
            return jobs::<Self, AllToAllSettings>(&self.job, &self.collective, context);
        };
        let by_proxies = |settings: &AllToAllSettings, gpus: &Gpus| {
            settings.build_by_proxies(gpus.ranks(), |src, dst| gpus.proxy(src, dst))
        };
        let layout = |hosts: &[HostId]| Gpus::from_hosts(hosts, of_node);
        jobs_by_layout::<Self, _, _>(&self.job, &self.collective, context, layout, by_proxies)
    }
}

job_kinds! {
    RingAllReduceJob, RingAllReduceSettings, "ring-all-reduce";
    HalvingDoublingJob, HalvingDoublingSettings, "halving-doubling";
    DoubleBinaryTreeJob, DoubleBinaryTreeSettings, "double-binary-tree";
    DirectAllReduceJob, DirectAllReduceSettings, "direct-all-reduce";
    ParameterServerJob, ParameterServerSettings, "parameter-server";
    RingAllGatherJob, RingAllGatherSettings, "ring-all-gather";
    DirectAllGatherJob, DirectAllGatherSettings, "direct-all-gather";
    RingReduceScatterJob, RingReduceScatterSettings, "ring-reduce-scatter";
    DirectReduceScatterJob, DirectReduceScatterSettings, "direct-reduce-scatter";
    HierarchicalAllReduceJob, HierarchicalAllReduceSettings, "hierarchical-all-reduce";
    HierarchicalReduceScatterJob, HierarchicalReduceScatterSettings, "hierarchical-reduce-scatter";
    HierarchicalAllGatherJob, HierarchicalAllGatherSettings, "hierarchical-all-gather";
    HierarchicalAllToAllJob, HierarchicalAllToAllSettings, "hierarchical-all-to-all";
    ChainBroadcastJob, ChainBroadcastSettings, "chain-broadcast";
    TreeBroadcastJob, TreeBroadcastSettings, "tree-broadcast";
}
