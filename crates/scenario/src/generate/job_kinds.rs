//! Jobs that run a collective: one kind of workload for each algorithm.

use super::job::{JobSettings, jobs};
use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use clearway_units::parameters;
use clearway_workload::WorkloadError;
use clearway_workload::collective::{
    AllToAllSettings, ChainBroadcastSettings, CollectiveDefinition, DirectAllGatherSettings,
    DirectAllReduceSettings, DirectReduceScatterSettings, DoubleBinaryTreeSettings,
    HalvingDoublingSettings, ParameterServerSettings, RingAllGatherSettings, RingAllReduceSettings,
    RingReduceScatterSettings, TreeBroadcastSettings,
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

job_kinds! {
    RingAllReduceJob, RingAllReduceSettings, "ring-all-reduce";
    HalvingDoublingJob, HalvingDoublingSettings, "halving-doubling";
    DoubleBinaryTreeJob, DoubleBinaryTreeSettings, "double-binary-tree";
    DirectAllReduceJob, DirectAllReduceSettings, "direct-all-reduce";
    ParameterServerJob, ParameterServerSettings, "parameter-server";
    AllToAllJob, AllToAllSettings, "all-to-all";
    RingAllGatherJob, RingAllGatherSettings, "ring-all-gather";
    DirectAllGatherJob, DirectAllGatherSettings, "direct-all-gather";
    RingReduceScatterJob, RingReduceScatterSettings, "ring-reduce-scatter";
    DirectReduceScatterJob, DirectReduceScatterSettings, "direct-reduce-scatter";
    ChainBroadcastJob, ChainBroadcastSettings, "chain-broadcast";
    TreeBroadcastJob, TreeBroadcastSettings, "tree-broadcast";
}
