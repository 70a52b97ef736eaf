//! Content of a workload: its policy, and its layers with their computations and collectives.

use clearway_units::{Bytes, Span, choices};
use clearway_workload::program::CollectiveKind;

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

impl SimaiPolicy {
    /// True if the policy belongs to a recommendation model.
    pub(super) fn is_recommendation(self) -> bool {
        matches!(self, Self::HybridDlrm | Self::HybridDlrmEnhanced)
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
    /// Time of the weight update, after the collective of the weight gradients.
    pub update: Span,
    /// Policy of this layer, with [`SimaiPolicy::HybridCustomized`].
    pub policy: Option<SimaiPolicy>,
}

/// A workload of SimAI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimaiWorkload {
    /// Collectives of each phase, and order of the phases.
    pub policy: SimaiPolicy,
    /// `model_parallel_NPU_group`: ranks that share each layer. If the key is missing: one with `DATA` and `MICRO`, otherwise all.
    pub tp: Option<u32>,
    /// `ep`: ranks that share the experts.
    pub ep: u32,
    /// `pp`: stages of the pipeline.
    pub pp: u32,
    /// `vpp`: virtual stages.
    pub vpp: u32,
    /// `ga`: batches whose gradients are added up; the generator repeats the layers for each batch.
    pub ga: u32,
    /// `all_gpus`: ranks.
    pub all_gpus: Option<u32>,
    /// `checkpoints`: layers that keep their inputs.
    pub checkpoints: Vec<u32>,
    /// `checkpoint_initiates`: layers before which SimAI computes forward passes again.
    pub checkpoint_initiates: Vec<u32>,
    /// `pp_comm`: bytes from stage to stage.
    pub pp_comm: Option<Bytes>,
    /// `DLRM_LAST_BOTTOM_LAYER`, of recommendation models.
    pub dlrm_last_bottom_layer: Option<u32>,
    /// The layers, in the order of the forward pass.
    pub layers: Vec<SimaiLayer>,
}

impl SimaiWorkload {
    /// A workload of `policy` without layers and without keys.
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
