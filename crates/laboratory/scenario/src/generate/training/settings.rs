//! Settings of training.

use crate::generate::collective_calls::first_algorithm;
use crate::generate::job_set::JobSet;
use clearway_units::{Bytes, OmitDefaults, parameters};
use clearway_workload::collective::{Channels, Dimensions, Reduction};
use std::num::NonZero;

/// Constant that is not zero.
const fn count(number: u32) -> NonZero<u32> {
    NonZero::new(number).expect("above zero")
}

/// The name of the first algorithm for an operation.
macro_rules! first_algorithm {
    ($operation:literal) => {
        first_algorithm($operation).to_owned()
    };
}

parameters! {
    /// Sizes of a transformer.
    pub struct TransformerModel {
        /// Number of layers: `--num-layers`.
        pub layers: NonZero<u32> = count(12), "layers", "GPT-3 Small (arXiv 2005.14165, Table 2.1); 13B: 40, 175B: 96";
        /// Hidden dimension: `--hidden-size`.
        pub hidden: NonZero<u32> = count(768), "hidden", "GPT-3 Small; 13B: 5120 (the paper writes 5140), 175B: 12288";
        /// Number of attention heads: `--num-attention-heads`.
        pub heads: NonZero<u32> = count(12), "heads", "GPT-3 Small; 13B: 40, 175B: 96";
        /// Number of key-value heads (grouped-query attention): `--num-query-groups`. "auto": as many as `heads`.
        pub kv_heads: Option<NonZero<u32>> = None, "kv-heads", "GPT-3; Mixtral 8x7B and DBRX: 8";
        /// Inner dimension of the feed-forward part, or of one expert: `--ffn-hidden-size`. "auto": four times `hidden`.
        pub ffn: Option<NonZero<u32>> = None, "ffn", "GPT-3; Mixtral 8x7B: 14336, DBRX: 10752";
        /// Three matrices in the feed-forward part instead of two: `--swiglu`.
        pub gated_ffn: bool = false, "gated-ffn", "GPT-3; Mixtral and DBRX: true";
        /// Number of tokens in the vocabulary, padded: a multiple of `tensor-parallel`.
        pub vocabulary: NonZero<u32> = count(51_200), "vocabulary", "SC '21 §5.1: 51,200; Mixtral 8x7B: 32000, DBRX: 100352";
        /// Input embedding and output layer share their weights. False: `--untie-embeddings-and-output-weights`.
        pub tied_embeddings: bool = true, "tied-embeddings", "GPT-3; Mixtral and DBRX: false";
        /// Number of experts in each layer, in place of its feed-forward part: `--num-experts`. "auto": a dense model.
        pub experts: Option<NonZero<u32>> = None, "experts", "GPT-3; Mixtral 8x7B: 8, DBRX: 16";
        /// Number of experts of each token: `--moe-router-topk`. Experts get equal numbers of tokens.
        pub top_k: NonZero<u32> = count(2), "top-k", "Mixtral 8x7B: 2; DBRX: 4";
    }
}

parameters! {
    /// Sequences of an iteration.
    pub struct TrainingBatch {
        /// Length of a sequence in tokens: `--seq-length`.
        pub sequence: NonZero<u32> = count(2048), "sequence", "GPT-3 (arXiv 2005.14165) §2.1: 2048";
        /// Sequences in a micro-batch: `--micro-batch-size`.
        pub micro_batch: NonZero<u32> = count(1), "micro-batch", "decision: the smallest";
        /// Micro-batches of each pipeline in an iteration. The global batch is `micro-batch` x `micro-batches` x data-parallel ranks.
        pub micro_batches: NonZero<u32> = count(1), "micro-batches", "decision: short runs";
    }
}

parameters! {
    /// Degrees of parallelism. Data parallelism takes the other ranks.
    pub struct ParallelismDegrees {
        /// Ranks among which each layer is divided: `--tensor-model-parallel-size`.
        pub tensor: NonZero<u32> = count(1), "tensor-parallel", "Megatron-LM: 1; SC '21 §3: at most the GPUs of a node";
        /// Stages of the pipeline: `--pipeline-model-parallel-size`.
        pub pipeline: NonZero<u32> = count(1), "pipeline-parallel", "Megatron-LM: 1";
        /// Ranks among which the experts of a layer are divided: `--expert-model-parallel-size`. They are consecutive ranks of one stage.
        pub expert: NonZero<u32> = count(1), "expert-parallel", "Megatron-LM: 1";
        /// Activations outside the divided parts are divided by sequence: `--sequence-parallel`. Experts with `tensor-parallel` need it.
        pub sequence: bool = false, "sequence-parallel", "Megatron-LM: off";
    }
}

parameters! {
    /// Gradients, parameters and recomputation.
    pub struct TrainingOptions {
        /// Bytes of an element of activations and parameters.
        pub element_bytes: NonZero<u32> = count(2), "element-bytes", "BF16";
        /// Bytes of an element of the gradients that data-parallel ranks sum.
        pub gradient_bytes: NonZero<u32> = count(4), "gradient-bytes", "Megatron-LM: FP32 with `--bf16`";
        /// Each data-parallel rank updates its part of the parameters (ZeRO-1, `--use-distributed-optimizer`): a reduce-scatter of
        /// gradients, then an all-gather of parameters. False: an all-reduce of gradients.
        pub distributed_optimizer: bool = true, "distributed-optimizer", "decision: usual for large models";
        /// Gradients are summed while the backward pass goes on (`--overlap-grad-reduce`). False: after it.
        pub overlap_grad_reduce: bool = true, "overlap-grad-reduce", "decision: usual for large models";
        /// Layers whose gradients one collective sums.
        pub layers_per_bucket: NonZero<u32> = count(1), "layers-per-bucket", "decision: a collective for each layer";
        /// Layers run forward again before their backward pass (`--recompute-granularity full`), so that activations need not be kept.
        pub recompute: bool = false, "recompute", "Megatron-LM: off";
    }
}

parameters! {
    /// Speed of a GPU.
    pub struct Accelerator {
        /// Peak performance of a GPU, in TFLOP/s.
        pub peak_tflops: f64 = 989.4, "peak-tflops", "NVIDIA H100 SXM data sheet: 989.4 in BF16 without sparsity; A100: 312";
        /// Share of the peak performance that kernels reach, above 0 and up to 1.
        pub utilisation: f64 = 0.5, "utilisation", "SC '21 Table 1: 44 % to 52 % of the peak of A100s";
    }
}

parameters! {
    /// Dimensions of the ranks, for collectives with the algorithm "hierarchical".
    pub struct CallDimensions {
        with {
            /// Dimensions, algorithms and splits.
            pub hierarchy: Dimensions,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

parameters! {
    /// Algorithms of the collectives.
    pub struct CallAlgorithms {
        /// Algorithm of each all-reduce.
        pub all_reduce: String = first_algorithm!("all-reduce"), "all-reduce", "NCCL's for large arrays";
        /// Algorithm of each all-gather.
        pub all_gather: String = first_algorithm!("all-gather"), "all-gather", "NCCL's";
        /// Algorithm of each reduce-scatter.
        pub reduce_scatter: String = first_algorithm!("reduce-scatter"), "reduce-scatter", "NCCL's";
        /// Algorithm of each all-to-all.
        pub all_to_all: String = first_algorithm!("all-to-all"), "all-to-all", "NCCL's";
        /// Maximum payload of a message of a collective; "auto": the default of the algorithm.
        pub chunk: Option<Bytes> = Some(Bytes::new(4 << 20)), "chunk", "decision: fewer messages; a ring forwards each when it has arrived";
        /// Maximum number of messages of one all-to-all in flight from a rank. "auto": no limit.
        pub parallelism: Option<u32> = Some(16), "parallelism", "STrack §4.3: 8, 16, 32 or 64";
        with {
            /// Channels of the collectives that have them.
            pub channels: Channels,
            /// Dimensions of the ranks.
            pub dimensions: OmitDefaults<Box<CallDimensions>>,
        }
    }
}

parameters! {
    /// Jobs that train a transformer, as Megatron-LM does: 1F1B pipelines, tensor parallelism within layers, data parallelism whose
    /// gradients are summed bucket by bucket, and expert parallelism. Ranks are in the order tp-dp-pp, in which tensor-parallel ranks are
    /// neighbours and the stages of the pipeline are furthest apart.
    pub struct TrainingSettings {
        with {
            /// Sizes of the model.
            pub model: TransformerModel,
            /// Sequences of an iteration.
            pub batch: TrainingBatch,
            /// Degrees of parallelism.
            pub degrees: ParallelismDegrees,
            /// Gradients, parameters and recomputation.
            pub options: TrainingOptions,
            /// Speed of a GPU.
            pub accelerator: Accelerator,
            /// Algorithms of the collectives.
            pub algorithms: CallAlgorithms,
            /// Ranks, starts, iterations and pace of the jobs.
            pub set: JobSet,
        }
    }
}
