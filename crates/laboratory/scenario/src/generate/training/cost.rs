//! Parameters, operations and message sizes of a transformer, and the checks that its parts can be divided.
//!
//! Operations are counted as in SC '21, appendix "Floating-point operations": two for each multiplication and addition of a matrix product,
//! causal masks not halved. For a dense GPT, forward and backward passes sum up to 72 B s l h² (1 + s / 6h + V / 12lh), and with
//! recomputation of the layers to its equation 3. Parameters are those of its equation 2 without biases, layer norms and position
//! embeddings, and without routers of experts: less than 0.1 % of a large model.

use super::layout::Layout;
use super::{Accelerator, TrainingSettings, TransformerModel};
use crate::LONGEST;
use crate::generate::WorkloadDefinition;
use clearway_units::{Bytes, Span};
use clearway_workload::WorkloadError;
use clearway_workload::graph::MOST_TASKS;
use std::num::NonZero;

/// Maximum size of the parameters of a model and of one array, in bytes: sums of such sizes fit in 64 bits.
const MOST_BYTES: u128 = 1 << 56;

/// Maximum TFLOP/s of a GPU: far above any real GPU, and below a value in operations per second.
const MOST_TFLOPS: f64 = 1e6;

/// Upper bound for the operations of a layer in a micro-batch, forward and backward, with recomputation.
const OPERATIONS_OF_A_LAYER: u64 = 24;

impl TransformerModel {
    fn ffn(&self) -> u128 {
        let ffn = self.ffn.map(NonZero::get).map(u128::from);
        ffn.unwrap_or(4 * u128::from(self.hidden.get()))
    }

    fn kv_heads(&self) -> u32 {
        self.kv_heads.unwrap_or(self.heads).get()
    }

    /// Parameters of the attention of a layer: queries and output h² each, keys and values in proportion to their heads.
    pub(super) fn attention_parameters(&self) -> u128 {
        let hidden = u128::from(self.hidden.get());
        let kv = hidden * u128::from(self.kv_heads()) / u128::from(self.heads.get());
        2 * hidden * hidden + 2 * hidden * kv
    }

    /// Parameters of a feed-forward part, or of one expert.
    pub(super) fn ffn_parameters(&self) -> u128 {
        let matrices = if self.gated_ffn { 3 } else { 2 };
        matrices * u128::from(self.hidden.get()) * self.ffn()
    }

    /// Parameters of the embedding, and of the output layer.
    pub(super) fn embedding_parameters(&self) -> u128 {
        u128::from(self.vocabulary.get()) * u128::from(self.hidden.get())
    }

    /// Parameters of the whole model.
    pub(super) fn parameters(&self) -> u128 {
        let experts = self.experts.map_or(1, NonZero::get);
        let layer = self.attention_parameters() + u128::from(experts) * self.ffn_parameters();
        let embeddings = if self.tied_embeddings { 1 } else { 2 };
        u128::from(self.layers.get()) * layer + embeddings * self.embedding_parameters()
    }
}

impl Accelerator {
    /// Operations per second that kernels reach.
    fn rate(&self) -> Result<u128, WorkloadError> {
        let (tflops, share) = (self.peak_tflops, self.utilisation);
        // `!(a > 0.0)` also rejects NaN.
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("a share of {share}");
            let fix = "write a share above 0 and up to 1, such as 0.5";
            return Err(TrainingSettings::fault("utilisation", message, fix));
        }
        let rate = (tflops * share * 1e12).round();
        if !(rate >= 1.0 && tflops <= MOST_TFLOPS) {
            let message = format!("a peak performance of {tflops} TFLOP/s");
            let fix =
                "write TFLOP/s, above zero and up to 1e6: 312 for 312e12 operations per second";
            return Err(TrainingSettings::fault("peak-tflops", message, fix));
        }
        Ok(rate as u128)
    }
}

/// Times and sizes of the parts of an iteration, of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Forward pass of the attention of a layer, for a micro-batch.
    pub(super) attention: Span,
    /// Forward pass of the feed-forward part or the experts of a layer.
    pub(super) ffn: Span,
    /// Forward pass of the output layer.
    pub(super) output: Span,
    /// Activations of a micro-batch between layers, whole.
    pub(super) activations: Bytes,
    /// Activations that a rank sends to the next stage.
    pub(super) boundary: Bytes,
    /// Tokens that a rank sends to the experts of a layer, its own included.
    pub(super) dispatch: Bytes,
    /// Number of dense parameters of a layer on a rank.
    pub(super) dense: u64,
    /// Number of parameters of the experts of a layer on a rank.
    pub(super) experts: u64,
    /// Number of parameters of the embedding or the output layer on a rank.
    pub(super) embedding: u64,
}

impl Cost {
    /// Costs of a rank, if the settings are divisible.
    pub(super) fn new(settings: &TrainingSettings, layout: Layout) -> Result<Self, WorkloadError> {
        let model = &settings.model;
        let per_parameter = settings
            .options
            .gradient_bytes
            .max(settings.options.element_bytes)
            .get();
        if model.parameters().saturating_mul(per_parameter.into()) > MOST_BYTES {
            let message = format!("a model of {:.1e} parameters", model.parameters() as f64);
            let fix = "choose fewer `layers`, or a smaller `hidden`, `ffn` or `vocabulary`";
            return Err(TrainingSettings::fault("hidden", message, fix));
        }
        let hidden = u128::from(model.hidden.get());
        let tokens = u128::from(settings.batch.micro_batch.get())
            * u128::from(settings.batch.sequence.get());
        let activations = tokens
            .saturating_mul(hidden)
            .saturating_mul(settings.options.element_bytes.get().into());
        let dispatched = activations.saturating_mul(model.top_k.get().into());
        if dispatched > MOST_BYTES {
            let message = format!("a micro-batch of {tokens} tokens of {hidden} elements");
            let fix = "choose a smaller `sequence`, `micro-batch` or `hidden`";
            return Err(TrainingSettings::fault("sequence", message, fix));
        }
        let tensor = u128::from(layout.tensor);
        let rate = settings.accelerator.rate()? * tensor;
        let span = |operations: u128| span(operations, rate);
        let sequence = u128::from(settings.batch.sequence.get());
        let scores = (4 * tokens * hidden).saturating_mul(sequence);
        let routed = model.experts.map_or(1, |_| model.top_k.get());
        let own_experts = model.experts.map(|experts| experts.get() / layout.expert);
        let divided = if settings.degrees.sequence { tensor } else { 1 };
        let dense = match own_experts {
            None => model.attention_parameters() + model.ffn_parameters(),
            Some(_) => model.attention_parameters(),
        };
        let experts = own_experts.map_or(0, u128::from) * model.ffn_parameters();
        Ok(Self {
            attention: span((2 * tokens * model.attention_parameters()).saturating_add(scores))?,
            ffn: span((2 * tokens * model.ffn_parameters()).saturating_mul(u128::from(routed)))?,
            output: span(2 * tokens * model.embedding_parameters())?,
            activations: Bytes::new(activations as u64),
            boundary: Bytes::new((activations / divided) as u64),
            dispatch: Bytes::new((dispatched / tensor) as u64),
            dense: (dense / tensor) as u64,
            experts: experts as u64,
            embedding: (model.embedding_parameters() / tensor) as u64,
        })
    }
}

/// Time of `operations` at `rate` operations per second, rounded down to picoseconds.
fn span(operations: u128, rate: u128) -> Result<Span, WorkloadError> {
    let ps = operations.saturating_mul(1_000_000_000_000) / rate;
    match u64::try_from(ps) {
        Ok(ps) if ps <= LONGEST.as_ps() => Ok(Span::from_ps(ps)),
        _ => {
            let message = "the computation of one layer takes longer than the longest run";
            let fix = "choose a larger `peak-tflops`, or a smaller model or `sequence`";
            Err(TrainingSettings::fault("peak-tflops", message, fix))
        }
    }
}

impl TrainingSettings {
    /// Checks that parts of the model can be divided among ranks.
    pub(super) fn check_divisibility(&self, layout: Layout) -> Result<(), WorkloadError> {
        let model = &self.model;
        let tensor = ("tensor-parallel", layout.tensor);
        let experts = model.experts.map(NonZero::get);
        let ffn = model.ffn.map(NonZero::get).filter(|_| experts.is_none());
        let divided = [
            (
                "layers",
                Some(model.layers.get()),
                ("pipeline-parallel", layout.pipeline),
            ),
            ("heads", Some(model.heads.get()), tensor),
            ("kv-heads", Some(model.kv_heads()), tensor),
            ("ffn", ffn, tensor),
            ("vocabulary", Some(model.vocabulary.get()), tensor),
            ("experts", experts, ("expert-parallel", layout.expert)),
            (
                "hidden",
                Some(model.hidden.get()),
                ("heads", model.heads.get()),
            ),
            (
                "heads",
                Some(model.heads.get()),
                ("kv-heads", model.kv_heads()),
            ),
        ];
        for (key, whole, (by, parts)) in divided {
            if let Some(whole) = whole.filter(|whole| !whole.is_multiple_of(parts)) {
                let message = format!("{whole} cannot be divided by `{by}` = {parts}");
                let fix = format!("choose a multiple of {parts}, or another `{by}`");
                return Err(Self::fault(key, message, fix));
            }
        }
        if self.degrees.sequence && !self.batch.sequence.get().is_multiple_of(layout.tensor) {
            let message = format!(
                "{} tokens cannot be divided by `tensor-parallel` = {}",
                self.batch.sequence, layout.tensor
            );
            let fix = "choose a multiple, or `sequence-parallel = false`";
            return Err(Self::fault("sequence", message, fix));
        }
        self.check_experts(layout)
    }

    fn check_experts(&self, layout: Layout) -> Result<(), WorkloadError> {
        let Some(experts) = self.model.experts else {
            if layout.expert > 1 {
                let message = "a dense model has no experts";
                let fix = "write `experts` too, or leave this out";
                return Err(Self::fault("expert-parallel", message, fix));
            }
            return Ok(());
        };
        if self.model.top_k > experts {
            let message = format!("{} different experts of {experts}", self.model.top_k);
            let fix = "choose at most as many as there are `experts`";
            return Err(Self::fault("top-k", message, fix));
        }
        if layout.tensor > 1 && !self.degrees.sequence {
            let message = "experts with `tensor-parallel` take tokens that are divided by sequence";
            let fix = "write `sequence-parallel = true`, or `tensor-parallel = 1`";
            return Err(Self::fault("sequence-parallel", message, fix));
        }
        Ok(())
    }

    /// Rejects programs that would fill the memory, before they are built, and iterations that are longer than the longest run.
    pub(super) fn check_length(&self, cost: &Cost, layout: Layout) -> Result<(), WorkloadError> {
        let layers = u64::from(self.model.layers.get() / layout.pipeline);
        let micro_batches = u64::from(self.batch.micro_batches.get());
        let of_layers = layers.saturating_mul(OPERATIONS_OF_A_LAYER);
        let operations = (of_layers + OPERATIONS_OF_A_LAYER)
            .saturating_mul(micro_batches)
            .saturating_mul(layout.ranks().into());
        if operations > MOST_TASKS {
            let message = format!(
                "{micro_batches} micro-batches of {layers} layers on each of {} ranks make up to {operations} operations, besides messages of collectives",
                layout.ranks()
            );
            let fix = format!(
                "choose fewer `micro-batches`, `layers` or `ranks`: {MOST_TASKS} are the most"
            );
            return Err(Self::fault("micro-batches", message, fix));
        }
        let of_layer = u128::from(cost.attention.as_ps()) + u128::from(cost.ffn.as_ps());
        let of_rank = u128::from(layers) * of_layer + u128::from(cost.output.as_ps());
        // Forward, backward twice that, and recomputation.
        let longest = of_rank * 4 * u128::from(micro_batches);
        if longest > u128::from(LONGEST.as_ps()) {
            let message = "an iteration computes longer than the longest run";
            let fix = "choose a larger `peak-tflops`, or fewer `micro-batches`";
            return Err(Self::fault("peak-tflops", message, fix));
        }
        Ok(())
    }
}
