//! Workloads of SimAI, as its generator AICB writes them: what each layer of a model computes and which collectives follow.
//!
//! ```text
//! HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0
//! 1
//! mlp  -1  500 ALLREDUCE 4096  600 ALLREDUCE 4096  600 REDUCESCATTER 8192  100
//! ```
//!
//! The first line holds the policy and keys with their values, the second the number of layers. A layer has twelve words: its name, a
//! dependency that SimAI ignores, then time (ns), collective and size (bytes) of the forward pass, of the gradients of its inputs and of
//! those of its weights, and the time of the update. With `HYBRID_CUSTOMIZED` a policy of its own follows.
//!
//! A collective alone means the tensor-parallel group in the first two phases and the data-parallel group in the third; `_EP` means the
//! expert-parallel group, `_DP_EP` the ranks that have the same experts. Sizes are those of the whole array.
//!
//! Keys may be missing, as older generators do not write all; numbers may be decimals. `BROADCAST` is read as no collective, which is
//! what SimAI makes of it. Otherwise the reader is strict: no ranks in a group, no ranks, no batches and no layers are refused. (SimAI
//! takes any word that it does not know for `NONE`, and reads no more layers than the second line says.)
//!
//! [`SimaiWorkload::program`] says what of that is simulated.

mod program;
mod reader;
#[cfg(test)]
mod tests;
mod write;

use program::SettingFault;
pub(crate) use reader::begins_with_a_policy;
pub use reader::parse_simai;
pub use write::{SimaiWriteError, write_simai};

use crate::text::{Source, shown};
use clearway_units::{Bytes, Span, choices};
use clearway_workload::program::{CollectiveKind, Expand, OperationId};
use clearway_workload::{FileError, FileWarning, Graph};

choices! {
    /// Policy of a workload: the collectives of each phase, and the order of the phases.
    pub enum SimaiPolicy {
        /// The weight gradients of the first layer alone.
        Micro = "MICRO",
        /// Data parallel.
        Data = "DATA",
        /// Model parallel.
        Model = "MODEL",
        /// Model parallel between the dimensions of data parallelism.
        HybridDataModel = "HYBRID_DATA_MODEL",
        /// Data parallel between the dimensions of model parallelism.
        HybridModelData = "HYBRID_MODEL_DATA",
        /// A transformer: tensor, data and expert parallel.
        HybridTransformer = "HYBRID_TRANSFORMER",
        /// A transformer that may compute forward passes again.
        HybridTransformerFwdInBckwd = "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
        /// A recommendation model.
        HybridDlrm = "HYBRID_DLRM",
        /// A recommendation model that waits less.
        HybridDlrmEnhanced = "HYBRID_DLRM_ENHANCED",
        /// Each layer has its own policy.
        HybridCustomized = "HYBRID_CUSTOMIZED",
        /// Forward passes only.
        DistributedInference = "DISTRIBUTED_INFERENCE",
    }
}

/// Group of ranks that take part in a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimaiGroup {
    /// The ranks that share each layer.
    Tp,
    /// The ranks that have the same part of each layer.
    Dp,
    /// The ranks that share the experts.
    Ep,
    /// The ranks that have the same experts.
    DpEp,
}

/// A collective of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimaiCall {
    /// Kind of collective.
    pub kind: CollectiveKind,
    /// Group of ranks that take part.
    pub group: SimaiGroup,
    /// Size of the whole array.
    pub bytes: Bytes,
}

/// Work of a layer in one of its phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimaiPhase {
    /// Time of the computation.
    pub compute: Span,
    /// Collective after the computation, if there is one.
    pub call: Option<SimaiCall>,
}

/// A layer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimaiLayer {
    /// Name of the layer, one word.
    pub name: String,
    /// The forward pass.
    pub forward: SimaiPhase,
    /// The gradients of its inputs.
    pub input_gradient: SimaiPhase,
    /// The gradients of its weights.
    pub weight_gradient: SimaiPhase,
    /// Time of the update of the weights, after the collective of the weight gradients.
    pub update: Span,
    /// Policy of this layer, with [`SimaiPolicy::HybridCustomized`].
    pub policy: Option<SimaiPolicy>,
}

/// A workload of SimAI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimaiWorkload {
    /// Collectives of each phase, and order of the phases.
    pub policy: SimaiPolicy,
    /// `model_parallel_NPU_group`: ranks that share each layer; without it one with `DATA` and `MICRO`, otherwise all.
    pub tp: Option<u32>,
    /// `ep`: ranks that share the experts.
    pub ep: u32,
    /// `pp`: stages of the pipeline.
    pub pp: u32,
    /// `vpp`: virtual stages.
    pub vpp: u32,
    /// `ga`: batches whose gradients are added up; the generator writes the layers as often.
    pub ga: u32,
    /// `all_gpus`: ranks.
    pub all_gpus: Option<u32>,
    /// `checkpoints`: layers whose inputs are kept.
    pub checkpoints: Vec<u32>,
    /// `checkpoint_initiates`: layers before which forward passes are computed again.
    pub checkpoint_initiates: Vec<u32>,
    /// `pp_comm`: bytes from stage to stage.
    pub pp_comm: Option<Bytes>,
    /// `DLRM_LAST_BOTTOM_LAYER`, of recommendation models.
    pub dlrm_last_bottom_layer: Option<u32>,
    /// The layers, in the order of the forward pass.
    pub layers: Vec<SimaiLayer>,
}

impl SimaiWorkload {
    /// A workload of `policy` without layers, in which no key is given.
    pub fn new(policy: SimaiPolicy) -> Self {
        Self {
            policy,
            tp: None,
            ep: 1,
            pp: 1,
            vpp: 1,
            ga: 1,
            all_gpus: None,
            checkpoints: Vec::new(),
            checkpoint_initiates: Vec::new(),
            pp_comm: None,
            dlrm_last_bottom_layer: None,
            layers: Vec::new(),
        }
    }
}

/// A workload that was read.
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
    /// As [`SimaiWorkload::program`], with the line of the header, or if no messages can be made of a collective, with the line of its
    /// layer.
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
