//! Workloads of SimAI, as its generator AICB writes them: the computations of each layer of a model and the collectives after them.
//!
//! ```text
//! HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0
//! 1
//! mlp  -1  500 ALLREDUCE 4096  600 ALLREDUCE 4096  600 REDUCESCATTER 8192  100
//! ```
//!
//! The first line holds the policy and keys with their values, the second the number of layers. A layer has twelve words: its name, a
//! dependency that SimAI ignores, then time (ns), collective and size (bytes) for the forward pass, the input gradients and the weight
//! gradients, and the time of the update. With `HYBRID_CUSTOMIZED` the policy of the layer follows.
//!
//! A collective without suffix runs in the tensor-parallel group in the first two phases and in the data-parallel group in the third. `_EP`
//! means the expert-parallel group, `_DP_EP` the ranks that have the same experts. A size is the size of the whole array.
//!
//! The reader warns about unused keys and columns, except `ga` and the dependency of a layer; about `vpp` only with several stages. As in
//! SimAI, each policy skips some parts of layers: `DATA`, for instance, skips the collectives of the forward pass. An update is part of the
//! collective before it.
//!
//! The stages of a pipeline send no messages to each other. SimAI sends none either. It uses `pp_comm` only in a formula for times that it
//! adds to its results after the run. The file does not assign layers to stages.
//!
//! Keys may be missing, as older generators do not write all keys; numbers may be decimals. `BROADCAST` means no collective, as in SimAI.
//! Otherwise the reader is strict: it rejects groups without ranks, and workloads without ranks, batches or layers. (SimAI reads any
//! unknown word as `NONE`, and reads at most as many layers as the second line says.)
//!
//! [`SimaiWorkload::program`] documents the simulated parts.

mod program;
mod reader;
#[cfg(test)]
mod tests;
mod unused;
mod workload;
mod write;

use program::SettingFault;
pub(crate) use reader::begins_with_a_policy;
pub use reader::parse_simai;
pub use workload::{SimaiCall, SimaiGroup, SimaiLayer, SimaiPhase, SimaiPolicy, SimaiWorkload};
pub use write::{SimaiWriteError, write_simai};

use crate::text::{Source, shown};
use clearway_workload::program::{CollectiveKind, Expand, OperationId};
use clearway_workload::{FileError, FileWarning, Graph};

/// A workload read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimaiFile {
    /// Content of the file.
    pub workload: SimaiWorkload,
    /// Warnings about parts that are read but not simulated.
    pub warnings: Vec<FileWarning>,
    /// The file, as the user named it.
    name: String,
    /// The line of the policy and the keys.
    header_line: usize,
    /// The line of each layer.
    layer_lines: Vec<usize>,
}

impl SimaiFile {
    /// The tasks of `ranks` ranks in `passes` iterations, with the messages that `expand` makes of collectives.
    ///
    /// # Errors
    /// As [`SimaiWorkload::program`], with the line of the header; or, with the line of the layer, if `expand` fails for a collective.
    pub fn graph(
        &self,
        ranks: u32,
        passes: u32,
        expand: &mut Expand<'_>,
    ) -> Result<Graph, FileError> {
        let source = Source { file: &self.name };
        let program = self.workload.steps(ranks, passes);
        let (program, layers) = program.map_err(|SettingFault { key, message, fix }| {
            let message = format!("`{key}`: {message}");
            source.fault(self.header_line, None, message).fix(fix)
        })?;
        program.graph(expand).map_err(|error| {
            let layer = |id: OperationId| layers[id.index as usize] as usize;
            let name = |id: OperationId| {
                let name = &self.workload.layers[layer(id)].name;
                format!("layer `{}` at rank {}", shown(name), id.rank)
            };
            let line = self.layer_lines[layer(error.operation())];
            let fault = source.fault(line, None, error.message(&name));
            fault.fix(error.fix())
        })
    }
}

/// The words for collectives.
const CALLS: [(&str, CollectiveKind); 4] = [
    ("ALLREDUCE", CollectiveKind::AllReduce),
    ("ALLTOALL", CollectiveKind::AllToAll),
    ("ALLGATHER", CollectiveKind::AllGather),
    ("REDUCESCATTER", CollectiveKind::ReduceScatter),
];
/// No collective.
const NONE: &str = "NONE";
/// Suffixes of the words for collectives of other groups.
const EP: &str = "_EP";
const DP_EP: &str = "_DP_EP";
