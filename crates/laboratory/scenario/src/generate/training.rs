//! Training of transformers: iterations with tensor, pipeline, data and expert parallelism.
//!
//! Sources: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM" (SC '21, arXiv 2104.04473),
//! and Megatron-LM itself.

mod cost;
mod layout;
mod program;
mod settings;

use settings::{Accelerator, CallAlgorithms, CallDimensions};
pub use settings::{
    ParallelismDegrees, TrainingBatch, TrainingOptions, TrainingSettings, TransformerModel,
};

use super::collective_calls::{CallSettings, Calls};
use super::job_set::Work;
use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use clearway_units::{Bytes, HostId};
use clearway_workload::graph::Graph;
use clearway_workload::program::{CollectiveCall, JobProgram, ProgramError};
use clearway_workload::rank::PreparedGraph;
use clearway_workload::{Workload, WorkloadError};
use cost::Cost;
use layout::Layout;
use program::Iteration;
use std::sync::Arc;

impl WorkloadDefinition for TrainingSettings {
    const NAME: &'static str = "training";
    const SUMMARY: &'static str =
        "iterations of a transformer with tensor, pipeline, data and expert parallelism";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        self.set.check::<Self>()?;
        let ranks = self.set.ranks_of::<Self>(context)?;
        let program = self.program(ranks)?;
        let calls = self.calls()?;
        let jobs = self.set.jobs;
        let hosts = self.set.placing.place::<Self>(jobs, ranks, context)?;
        let of_jobs: Vec<&[HostId]> = hosts.chunks(ranks as usize).collect();
        // Consecutive jobs that lie alike on their nodes share a plan.
        let mut last: Option<(Vec<u32>, Arc<PreparedGraph>)> = None;
        let plan = |number: u32| {
            let own = of_jobs[number as usize];
            let nodes = nodes_in_order(own, context.gpus_per_node);
            let known = last.take().filter(|(other, _)| *other == nodes);
            // Dimensions of a torus depend on the hosts themselves.
            let known = known.filter(|_| context.dimensions.is_empty());
            let plan = match known {
                Some((_, plan)) => plan,
                None => {
                    let graph = Self::graph(&program, &calls, (context, own))?;
                    Arc::new(PreparedGraph::new(graph))
                }
            };
            last = Some((nodes, Arc::clone(&plan)));
            Ok((plan, None))
        };
        let work = Work {
            ranks,
            hosts: hosts.clone(),
            plan,
        };
        Ok(LoadedWorkload {
            jobs: self.set.specs::<Self>(work, context)?,
            setting_warnings: self.set.placing.warnings(context).collect(),
            ..LoadedWorkload::from(Workload::default())
        })
    }
}

impl TrainingSettings {
    /// Operations of `ranks` ranks in an iteration.
    fn program(&self, ranks: u32) -> Result<JobProgram, WorkloadError> {
        let layout = Layout::new(&self.degrees, ranks)?;
        self.check_divisibility(layout)?;
        let cost = Cost::new(self, layout)?;
        self.check_length(&cost, layout)?;
        Ok(Iteration::new(self, layout, cost).program())
    }

    /// Algorithms of the collectives.
    fn calls(&self) -> Result<Calls, WorkloadError> {
        let CallAlgorithms {
            all_reduce,
            all_gather,
            reduce_scatter,
            all_to_all,
            chunk,
            parallelism,
            channels,
            dimensions,
        } = &self.algorithms;
        if *parallelism == Some(0) {
            let fix = "write 1 or more, or \"auto\" for no limit";
            return Err(Self::fault("parallelism", "no messages at a time", fix));
        }
        let CallDimensions {
            hierarchy,
            reduction,
        } = &*dimensions.0;
        let settings = CallSettings {
            all_reduce,
            all_gather,
            reduce_scatter,
            all_to_all,
            // Training calls no broadcast.
            broadcast: super::collective_calls::first_algorithm("broadcast"),
            chunk: *chunk,
            parallelism: *parallelism,
            channels,
            hierarchy,
            reduction,
        };
        Calls::new::<Self>(&settings, &|_, _| Ok(None))
    }

    /// Messages and computations of a job on `hosts`.
    fn graph(
        program: &JobProgram,
        calls: &Calls,
        (context, hosts): (&BuildContext<'_>, &[HostId]),
    ) -> Result<Graph, WorkloadError> {
        let expand = &mut |call: &CollectiveCall<'_>, graph: &mut Graph| {
            calls.expand(call, (context, hosts), graph)
        };
        let graph = program.graph(expand).map_err(|error| match error {
            ProgramError::Expansion { fault, .. } => Self::fault("layers", fault.reason, fault.fix),
            error => Self::fault("layers", error.to_string(), error.fix()),
        })?;
        if graph.bytes_sent().iter().all(|&bytes| bytes == Bytes::ZERO) {
            let message = "one rank has the whole model: nothing is sent";
            return Err(Self::fault("ranks", message, "choose two ranks or more"));
        }
        Ok(graph)
    }
}

/// Node of each host, numbered in the order of their first hosts.
fn nodes_in_order(hosts: &[HostId], gpus_per_node: u32) -> Vec<u32> {
    let mut known = std::collections::BTreeMap::new();
    let mut number = |node: u32| {
        let next = known.len() as u32;
        *known.entry(node).or_insert(next)
    };
    let nodes = hosts.iter().map(|host| host.0 / gpus_per_node);
    nodes.map(&mut number).collect()
}

#[cfg(test)]
mod tests;
