//! Operations of the ranks in an iteration.
//!
//! Stage p of P runs P - 1 - p micro-batches forward, then one forward and one backward in turn, then backward those that are left: the
//! schedule 1F1B (PipeDream-Flush; SC '21 §2.2.1). A rank computes without a pause as long as its operands are there. It sends activations
//! and gradients to neighbouring stages without waiting for their arrival.
//!
//! Calls of one group follow each other, as on a stream of NCCL. Gradients of a bucket are summed as soon as its last layer is through with
//! the last micro-batch, and computation goes on meanwhile. Parameters are gathered when all gradients of the rank are summed, since the
//! norm of all gradients comes before the update. The update itself takes no time.

use super::TrainingSettings;
use super::cost::Cost;
use super::layout::{Group, Layout};
use clearway_units::{Bytes, Span};
use clearway_workload::graph::Rank;
use clearway_workload::program::{
    CollectiveKind, JobProgram, Operation, OperationDependency, RankProgram,
};

/// Unit that computes.
const GPU: u8 = 0;

/// Direction in which a micro-batch goes through the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Forward,
    Backward,
}

impl Pass {
    /// Time of a part whose forward pass takes `span`: gradients of inputs and of weights take as long each (SC '21, appendix).
    fn time(self, span: Span) -> Span {
        match self {
            Self::Forward => span,
            Self::Backward => span * 2,
        }
    }
}

/// Iteration of a training job.
pub(super) struct Iteration<'a> {
    settings: &'a TrainingSettings,
    layout: Layout,
    cost: Cost,
}

impl<'a> Iteration<'a> {
    pub(super) const fn new(settings: &'a TrainingSettings, layout: Layout, cost: Cost) -> Self {
        Self {
            settings,
            layout,
            cost,
        }
    }

    /// Operations of all ranks.
    pub(super) fn program(&self) -> JobProgram {
        let rank = |rank| Builder::new(self, rank).iteration();
        JobProgram {
            ranks: (0..self.layout.ranks()).map(rank).collect(),
            groups: self.layout.groups(),
        }
    }
}

/// Parameters whose gradients are summed together.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    layers: u32,
    dense: u64,
    experts: u64,
}

/// Operations of one rank that are built so far.
struct Builder<'a> {
    iteration: &'a Iteration<'a>,
    rank: u32,
    stage: u32,
    operations: Vec<Operation>,
    waits: Vec<(u32, OperationDependency)>,
    /// Operations that the next step waits for.
    front: Vec<u32>,
    /// The last call of the gradients of dense parameters, and of experts.
    summed: [Option<u32>; 2],
    /// Buckets that are complete.
    buckets: Vec<Bucket>,
    bucket: Bucket,
}

impl<'a> Builder<'a> {
    fn new(iteration: &'a Iteration<'a>, rank: u32) -> Self {
        Self {
            iteration,
            rank,
            stage: iteration.layout.stage(rank),
            operations: Vec::new(),
            waits: Vec::new(),
            front: Vec::new(),
            summed: [None; 2],
            buckets: Vec::new(),
            bucket: Bucket::default(),
        }
    }

    fn is_first(&self) -> bool {
        self.stage == 0
    }

    fn is_last(&self) -> bool {
        self.stage + 1 == self.iteration.layout.pipeline
    }

    /// Number of layers of the stage.
    fn layers(&self) -> u32 {
        self.iteration.settings.model.layers.get() / self.iteration.layout.pipeline
    }

    fn iteration(mut self) -> RankProgram {
        let micro_batches = self.iteration.settings.batch.micro_batches.get();
        let ahead = self.iteration.layout.pipeline - 1 - self.stage;
        let ahead = ahead.min(micro_batches);
        for number in 0..ahead {
            self.forward(number);
        }
        for number in 0..micro_batches {
            if number + ahead < micro_batches {
                self.forward(number + ahead);
            }
            self.backward(number, number + 1 == micro_batches);
        }
        self.finish();
        RankProgram::new(self.operations, self.waits)
    }

    fn forward(&mut self, number: u32) {
        match self.is_first() {
            true => self.embedding(Pass::Forward),
            false => self.receive(self.rank - self.iteration.layout.of_stage(), 2 * number),
        }
        for _ in 0..self.layers() {
            self.layer(Pass::Forward);
        }
        match self.is_last() {
            true => self.output(Pass::Forward),
            false => self.send(self.rank + self.iteration.layout.of_stage(), 2 * number),
        }
    }

    fn backward(&mut self, number: u32, sums_gradients: bool) {
        match self.is_last() {
            true => self.output(Pass::Backward),
            false => self.receive(self.rank + self.iteration.layout.of_stage(), 2 * number + 1),
        }
        let cost = &self.iteration.cost;
        let (dense, experts, embedding) = (cost.dense, cost.experts, cost.embedding);
        let settings = self.iteration.settings;
        // The gradient of shared weights is complete only when the input embedding is through.
        let is_shared = settings.model.tied_embeddings && self.is_first();
        if sums_gradients && self.is_last() && !is_shared {
            self.bucket.dense += embedding;
        }
        for left in (0..self.layers()).rev() {
            if settings.options.recompute {
                self.layer(Pass::Forward);
            }
            self.layer(Pass::Backward);
            if !sums_gradients {
                continue;
            }
            self.bucket.layers += 1;
            self.bucket.dense += dense;
            self.bucket.experts += experts;
            if left == 0 && self.is_first() {
                self.embedding(Pass::Backward);
                self.bucket.dense += embedding;
            }
            if left == 0 || self.bucket.layers == settings.options.layers_per_bucket.get() {
                self.complete_bucket();
            }
        }
        if !sums_gradients && self.is_first() {
            self.embedding(Pass::Backward);
        }
        if !self.is_first() {
            self.send(self.rank - self.iteration.layout.of_stage(), 2 * number + 1);
        }
    }

    /// Both parts of a layer, in the order of the pass.
    fn layer(&mut self, pass: Pass) {
        let parts = match pass {
            Pass::Forward => [Self::attention, Self::feed_forward],
            Pass::Backward => [Self::feed_forward, Self::attention],
        };
        for part in parts {
            part(self, pass);
        }
    }

    fn attention(&mut self, pass: Pass) {
        self.divided(pass.time(self.iteration.cost.attention));
    }

    fn feed_forward(&mut self, pass: Pass) {
        let span = pass.time(self.iteration.cost.ffn);
        if self.iteration.settings.model.experts.is_none() {
            return self.divided(span);
        }
        let dispatch = self.iteration.cost.dispatch;
        self.call(CollectiveKind::AllToAll, Group::Expert, dispatch);
        self.compute(span);
        self.call(CollectiveKind::AllToAll, Group::Expert, dispatch);
    }

    /// A part of a layer that tensor-parallel ranks divide. It sums its result: an all-reduce in each pass (SC '21 §2.3). With activations
    /// divided by sequence, an all-gather before it and a reduce-scatter after it (Korthikanti et al. 2022, arXiv 2205.05198, §4.2.2).
    fn divided(&mut self, span: Span) {
        if self.iteration.settings.degrees.sequence {
            self.call_tensor(CollectiveKind::AllGather);
        }
        self.compute(span);
        self.sum();
    }

    fn sum(&mut self) {
        self.call_tensor(match self.iteration.settings.degrees.sequence {
            true => CollectiveKind::ReduceScatter,
            false => CollectiveKind::AllReduce,
        });
    }

    /// Input embedding, of which each tensor-parallel rank has a part of the vocabulary. Looking up tokens takes no time.
    fn embedding(&mut self, pass: Pass) {
        match (pass, self.iteration.settings.degrees.sequence) {
            (Pass::Forward, _) => self.sum(),
            (Pass::Backward, true) => self.call_tensor(CollectiveKind::AllGather),
            (Pass::Backward, false) => {}
        }
    }

    /// Output layer, of which each tensor-parallel rank has a part of the vocabulary.
    fn output(&mut self, pass: Pass) {
        if pass == Pass::Forward && self.iteration.settings.degrees.sequence {
            self.call_tensor(CollectiveKind::AllGather);
        }
        self.compute(pass.time(self.iteration.cost.output));
        if pass == Pass::Backward {
            self.sum();
        }
    }

    fn call_tensor(&mut self, kind: CollectiveKind) {
        self.call(kind, Group::Tensor, self.iteration.cost.activations);
    }

    fn complete_bucket(&mut self) {
        let bucket = std::mem::take(&mut self.bucket);
        self.buckets.push(bucket);
        if self.iteration.settings.options.overlap_grad_reduce {
            self.sum_gradients(bucket);
        }
    }

    /// Sums the gradients of a bucket beside the computation.
    fn sum_gradients(&mut self, bucket: Bucket) {
        let settings = self.iteration.settings;
        let kind = match settings.options.distributed_optimizer {
            true => CollectiveKind::ReduceScatter,
            false => CollectiveKind::AllReduce,
        };
        let bytes = u64::from(settings.options.gradient_bytes.get());
        self.call_for(bucket, (kind, bytes), &self.front.clone());
    }

    /// Calls of the ranks with the same dense parameters and the same experts, each after the last one of its group.
    fn call_for(&mut self, bucket: Bucket, (kind, bytes): (CollectiveKind, u64), after: &[u32]) {
        let parts = [
            (Group::Data, bucket.dense),
            (Group::ExpertData, bucket.experts),
        ];
        for (number, (group, parameters)) in parts.into_iter().enumerate() {
            if self.iteration.layout.size(group) > 1 && parameters > 0 {
                let call = self.collective(kind, group, Bytes::new(parameters * bytes));
                let before: Vec<u32> = after.iter().copied().chain(self.summed[number]).collect();
                self.summed[number] = Some(self.push(call, &before));
            }
        }
    }

    /// The end of the iteration, after all backward passes.
    fn finish(&mut self) {
        let settings = self.iteration.settings;
        let buckets = std::mem::take(&mut self.buckets);
        if !settings.options.overlap_grad_reduce {
            for &bucket in &buckets {
                self.sum_gradients(bucket);
            }
        }
        // The last calls of both groups: each group's calls follow each other.
        self.front.extend(self.summed.into_iter().flatten());
        let has_embedding = self.is_first() != self.is_last() && settings.model.tied_embeddings;
        if has_embedding {
            let bytes =
                self.iteration.cost.embedding * u64::from(settings.options.gradient_bytes.get());
            let (kind, group) = (CollectiveKind::AllReduce, Group::Embedding);
            self.call(kind, group, Bytes::new(bytes));
        }
        if settings.options.distributed_optimizer {
            let after = self.front.clone();
            let bytes = u64::from(settings.options.element_bytes.get());
            for bucket in buckets {
                self.call_for(bucket, (CollectiveKind::AllGather, bytes), &after);
            }
        }
    }

    fn compute(&mut self, span: Span) {
        let unit = GPU;
        self.step(Operation::Compute { unit, span });
    }

    fn send(&mut self, to: u32, tag: u32) {
        let send = Operation::Send {
            to: Rank(to),
            bytes: self.iteration.cost.boundary,
            tag,
        };
        self.push(send, &self.front.clone());
    }

    /// Receives what the next step needs. The receive itself waits for nothing: the message finds a buffer.
    fn receive(&mut self, from: u32, tag: u32) {
        let receive = Operation::Receive {
            from: Some(Rank(from)),
            bytes: self.iteration.cost.boundary,
            tag: Some(tag),
        };
        let number = self.push(receive, &[]);
        self.front.push(number);
    }

    /// Adds a collective that the next operation waits for, unless the group is one rank.
    fn call(&mut self, kind: CollectiveKind, group: Group, bytes: Bytes) {
        if self.iteration.layout.size(group) > 1 {
            let call = self.collective(kind, group, bytes);
            self.step(call);
        }
    }

    fn collective(&self, kind: CollectiveKind, group: Group, bytes: Bytes) -> Operation {
        let group = self.iteration.layout.index(group, self.rank);
        Operation::Collective { kind, bytes, group }
    }

    /// Adds an operation that the next one waits for.
    fn step(&mut self, operation: Operation) {
        let before = std::mem::take(&mut self.front);
        let number = self.push(operation, &before);
        self.front.push(number);
    }

    /// Adds an operation that waits for `before`, and returns its number.
    fn push(&mut self, operation: Operation, before: &[u32]) -> u32 {
        let number = self.operations.len() as u32;
        self.operations.push(operation);
        let waits = before.iter();
        let waits = waits.map(|&before| (number, OperationDependency::over(before)));
        self.waits.extend(waits);
        number
    }
}
