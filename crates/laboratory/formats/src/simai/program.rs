//! Operations of the ranks in a workload.

use super::{SimaiCall, SimaiGroup, SimaiLayer, SimaiPhase, SimaiPolicy, SimaiWorkload};
use clearway_units::Span;
use clearway_workload::graph::{MOST_TASKS, Rank};
use clearway_workload::program::{JobProgram, Operation, OperationDependency, RankProgram};
use clearway_workload::{WorkloadError, counted};

/// Unit that computes, and unit that updates weights.
const GPU: u8 = 0;
const UPDATER: u8 = 1;

impl SimaiWorkload {
    /// Program of `ranks` ranks for `passes` iterations.
    ///
    /// All ranks do the same, each in its groups. The layout is Megatron's: tensor-parallel ranks are neighbours, then come data-parallel
    /// ranks, and the stages of the pipeline are furthest apart. Each `ep` consecutive data-parallel ranks share the experts. (SimAI's
    /// groups span all stages.)
    ///
    /// A pass follows SimAI. Forward, layer by layer: it waits for the update of the layer's weights in the previous pass, computes, calls
    /// the collective and waits for it. Backward, from the last layer: it computes the input gradients, calls their collective and waits
    /// for it, then computes the weight gradients. The collective of the weight gradients overlaps with the next operations, and the update
    /// runs after it, on a separate unit. Exceptions: `DATA` has only the collective of the weight gradients, and computes these first.
    /// `MODEL` has no collective of the weight gradients, and waits for the collective of the input gradients after it has computed the
    /// weight gradients. `DISTRIBUTED_INFERENCE` only runs forward. `MICRO` is only the collective of the first layer's weight gradients.
    ///
    /// # Errors
    /// If the groups do not fit the ranks, and for policies that divide the ranks by dimensions of a topology, or that have a schedule of
    /// recommendation models.
    pub fn program(&self, ranks: u32, passes: u32) -> Result<JobProgram, WorkloadError> {
        let steps = self.steps(ranks, passes);
        let (program, _) = steps.map_err(|SettingFault { key, message, fix }| {
            let kind = "SimAI";
            WorkloadError::Setting {
                kind,
                key,
                message,
                fix,
            }
        })?;
        Ok(program)
    }

    /// Program of the ranks, and the layer of each operation of a rank (all ranks have the same operations).
    pub(super) fn steps(
        &self,
        ranks: u32,
        passes: u32,
    ) -> Result<(JobProgram, Vec<u32>), SettingFault> {
        let schedule = self.schedule()?;
        let layout = self.layout(ranks)?;
        self.check_length(schedule, layout, passes)?;
        let mut layers = Vec::new();
        let mut programs = Vec::with_capacity(ranks as usize);
        for rank in 0..ranks {
            let mut builder = Builder::new(layout, rank, self.layers.len());
            layers.clear();
            builder.layers = std::mem::take(&mut layers);
            for _ in 0..passes {
                builder.pass(&self.layers, schedule);
            }
            layers = builder.layers;
            programs.push(RankProgram::new(builder.operations, builder.waits));
        }
        let program = JobProgram {
            ranks: programs,
            groups: layout.groups(),
        };
        Ok((program, layers))
    }

    fn schedule(&self) -> Result<Schedule, SettingFault> {
        match self.policy {
            SimaiPolicy::HybridTransformer | SimaiPolicy::HybridTransformerFwdInBckwd => {
                Ok(Schedule::Transformer)
            }
            SimaiPolicy::Data => Ok(Schedule::Data),
            SimaiPolicy::Model => Ok(Schedule::Model),
            SimaiPolicy::DistributedInference => Ok(Schedule::Inference),
            SimaiPolicy::Micro => Ok(Schedule::Micro),
            SimaiPolicy::HybridDataModel
            | SimaiPolicy::HybridModelData
            | SimaiPolicy::HybridDlrm
            | SimaiPolicy::HybridDlrmEnhanced
            | SimaiPolicy::HybridCustomized => Err(setting(
                "policy",
                format!("{} can be read but not simulated", self.policy.name()),
                "use HYBRID_TRANSFORMER_FWD_IN_BCKWD, which AICB writes".into(),
            )),
        }
    }

    fn layout(&self, ranks: u32) -> Result<Layout, SettingFault> {
        if let Some(gpus) = self.all_gpus.filter(|&gpus| gpus != ranks) {
            return Err(setting(
                "all_gpus",
                format!("the workload is for {gpus} ranks, but {ranks} are to run it"),
                format!("give it {gpus} ranks, or generate it anew"),
            ));
        }
        let alone = matches!(self.policy, SimaiPolicy::Data | SimaiPolicy::Micro);
        let tp = self.tp.unwrap_or(if alone { 1 } else { ranks });
        let stage = u64::from(tp) * u64::from(self.pp);
        if ranks == 0 || stage == 0 || !u64::from(ranks).is_multiple_of(stage) {
            return Err(setting(
                "model_parallel_NPU_group",
                format!(
                    "{ranks} ranks cannot be divided into {} stages of groups of {tp}",
                    self.pp
                ),
                "choose numbers whose product divides the number of ranks".into(),
            ));
        }
        let dp = (u64::from(ranks) / stage) as u32;
        if self.ep == 0 || !dp.is_multiple_of(self.ep) {
            return Err(setting(
                "ep",
                format!(
                    "{dp} data-parallel ranks cannot be divided into groups of {}",
                    self.ep
                ),
                "choose a number that divides the number of data-parallel ranks".into(),
            ));
        }
        Ok(Layout {
            tp,
            dp,
            ep: self.ep,
            pp: self.pp,
        })
    }

    /// Checks that the operations of all ranks fit in memory as a graph, estimated from the operations of the first pass.
    fn check_length(
        &self,
        schedule: Schedule,
        layout: Layout,
        passes: u32,
    ) -> Result<(), SettingFault> {
        let ranks = layout.ranks();
        let of_rank = |layers: usize| {
            let mut builder = Builder::new(layout, 0, layers);
            builder.pass(&self.layers[..layers], schedule);
            builder.operations.len().max(1) as u64
        };
        let of_all = |layers| of_rank(layers).saturating_mul(ranks.into());
        let of_pass = of_all(self.layers.len());
        let operations = u128::from(of_pass) * u128::from(passes);
        if operations <= u128::from(MOST_TASKS) {
            return Ok(());
        }
        // Later passes can have a few more operations than the first.
        let (least, in_passes) = match passes {
            1 => ("", "in 1 pass".into()),
            _ => ("at least ", format!("in {passes} passes")),
        };
        let message = format!(
            "{least}{operations} operations of {} {in_passes}, besides the messages of collectives, but a job may have {MOST_TASKS} of both",
            counted(ranks as usize, "rank")
        );
        let fix = match MOST_TASKS / of_pass {
            0 => {
                let number = self.layers.len();
                let fits = |layers: &usize| of_all(*layers) <= MOST_TASKS;
                let all: Vec<usize> = (1..number).collect();
                let layers = all.partition_point(fits);
                let fewer_ranks = self.fewer_ranks(layout, MOST_TASKS / of_rank(number));
                let fewer_layers = (layers > 0)
                    .then(|| format!("keep at most the first {layers} of its {number} layers"));
                let ways: Vec<String> = fewer_ranks.into_iter().chain(fewer_layers).collect();
                let once = if passes > 1 { "run one pass, and " } else { "" };
                match ways.is_empty() {
                    true => "generate it with fewer layers and for fewer ranks".into(),
                    false => format!("{once}{}", ways.join(", or ")),
                }
            }
            most => format!("run at most {most} of these passes"),
        };
        Err(setting("layers", message, fix))
    }

    /// Advice to run the workload on at most `most` ranks, if it can have so few.
    fn fewer_ranks(&self, layout: Layout, most: u64) -> Option<String> {
        let unit = match self.tp {
            // All ranks are one group.
            None if layout.tp == layout.ranks() => 1,
            _ => u64::from(layout.tp * layout.ep * layout.pp),
        };
        let ranks = most / unit * unit;
        let multiple = match unit {
            1 => String::new(),
            _ => format!(", a multiple of TP x EP x PP = {unit}"),
        };
        (ranks > 0).then(|| match self.all_gpus {
            Some(_) => format!("write `all_gpus: {ranks}` or less{multiple}"),
            None => format!("run it on {ranks} ranks or less{multiple}"),
        })
    }
}

/// Header key whose value does not fit.
pub(super) struct SettingFault {
    pub(super) key: &'static str,
    pub(super) message: String,
    pub(super) fix: String,
}

fn setting(key: &'static str, message: String, fix: String) -> SettingFault {
    SettingFault { key, message, fix }
}

/// The order of the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schedule {
    Transformer,
    Data,
    Model,
    Inference,
    Micro,
}

/// Sizes of the dimensions of parallelism: rank = tensor + TP × (data + DP × stage).
#[derive(Debug, Clone, Copy)]
struct Layout {
    tp: u32,
    dp: u32,
    ep: u32,
    pp: u32,
}

impl Layout {
    fn ranks(self) -> u32 {
        self.tp * self.dp * self.pp
    }

    /// Number of groups of a kind, and number of ranks in each group.
    fn count_and_size(self, group: SimaiGroup) -> (u32, u32) {
        let ranks = self.ranks();
        let size = match group {
            SimaiGroup::Tp => self.tp,
            SimaiGroup::Dp => self.dp,
            SimaiGroup::Ep => self.ep,
            SimaiGroup::DpEp => self.dp / self.ep,
        };
        (ranks / size, size)
    }

    /// Number of a rank's group among the groups of its kind, and position of the rank in the group.
    fn place(self, group: SimaiGroup, rank: u32) -> (u32, u32) {
        let (tensor, data) = (rank % self.tp, rank / self.tp % self.dp);
        let stage = rank / self.tp / self.dp;
        let (block, expert) = (data / self.ep, data % self.ep);
        match group {
            SimaiGroup::Tp => (rank / self.tp, tensor),
            SimaiGroup::Dp => (tensor + self.tp * stage, data),
            SimaiGroup::Ep => {
                let blocks = self.dp / self.ep;
                (tensor + self.tp * (block + blocks * stage), expert)
            }
            SimaiGroup::DpEp => (tensor + self.tp * (expert + self.ep * stage), block),
        }
    }

    /// Index of the first group of a kind among all groups.
    fn first(self, group: SimaiGroup) -> u32 {
        let before = KINDS.iter().take_while(|&&kind| kind != group);
        before.map(|&kind| self.count_and_size(kind).0).sum()
    }

    /// All groups, kind by kind.
    fn groups(self) -> Vec<Vec<Rank>> {
        let mut groups = Vec::new();
        for kind in KINDS {
            let (count, size) = self.count_and_size(kind);
            let mut of_kind = vec![vec![Rank(0); size as usize]; count as usize];
            for rank in 0..count * size {
                let (group, place) = self.place(kind, rank);
                of_kind[group as usize][place as usize] = Rank(rank);
            }
            groups.extend(of_kind);
        }
        groups
    }
}

const KINDS: [SimaiGroup; 4] = [
    SimaiGroup::Tp,
    SimaiGroup::Dp,
    SimaiGroup::Ep,
    SimaiGroup::DpEp,
];

/// Operations of one rank that are built so far.
struct Builder {
    layout: Layout,
    rank: u32,
    operations: Vec<Operation>,
    waits: Vec<(u32, OperationDependency)>,
    /// Operations that the next step waits for.
    front: Vec<u32>,
    /// The last update of each layer.
    updates: Vec<Option<u32>>,
    /// Current layer.
    layer: usize,
    /// The layer of each operation.
    layers: Vec<u32>,
}

impl Builder {
    fn new(layout: Layout, rank: u32, layers: usize) -> Self {
        Self {
            layout,
            rank,
            operations: Vec::new(),
            waits: Vec::new(),
            front: Vec::new(),
            updates: vec![None; layers],
            layer: 0,
            layers: Vec::new(),
        }
    }

    fn pass(&mut self, layers: &[SimaiLayer], schedule: Schedule) {
        if schedule == Schedule::Micro {
            if let Some(call) = layers.first().and_then(|layer| layer.weight_gradient.call) {
                self.beside(self.collective(call));
            }
            return;
        }
        for (index, layer) in layers.iter().enumerate() {
            self.layer = index;
            self.front.extend(self.updates[index]);
            self.compute(layer.forward);
            if schedule != Schedule::Data {
                self.call(layer.forward);
            }
        }
        if schedule == Schedule::Inference {
            return;
        }
        for (index, layer) in layers.iter().enumerate().rev() {
            self.layer = index;
            match schedule {
                Schedule::Data => {
                    self.weights(index, layer.weight_gradient, layer.update);
                    if index > 0 {
                        self.compute(layer.input_gradient);
                    }
                }
                Schedule::Model => {
                    self.compute(layer.input_gradient);
                    let call = layer.input_gradient.call.filter(|_| index > 0);
                    let call = call.map(|call| self.call_beside(call));
                    self.compute(layer.weight_gradient);
                    self.front.extend(call);
                }
                _ => {
                    self.compute(layer.input_gradient);
                    self.call(layer.input_gradient);
                    self.weights(index, layer.weight_gradient, layer.update);
                }
            }
        }
    }

    fn weights(&mut self, index: usize, phase: SimaiPhase, update: Span) {
        self.compute(phase);
        let Some(call) = phase.call else { return };
        let call = self.call_beside(call);
        let update = Operation::Compute {
            unit: UPDATER,
            span: update,
        };
        let number = self.push(update);
        self.waits.push((number, OperationDependency::over(call)));
        self.updates[index] = Some(number);
    }

    fn compute(&mut self, phase: SimaiPhase) {
        if !phase.compute.is_zero() {
            let (unit, span) = (GPU, phase.compute);
            self.step(Operation::Compute { unit, span });
        }
    }

    fn call(&mut self, phase: SimaiPhase) {
        if let Some(call) = phase.call {
            self.step(self.collective(call));
        }
    }

    fn collective(&self, SimaiCall { kind, group, bytes }: SimaiCall) -> Operation {
        let (number, _) = self.layout.place(group, self.rank);
        let group = self.layout.first(group) + number;
        Operation::Collective { kind, bytes, group }
    }

    /// Adds a collective that the next operation does not wait for, and returns its number.
    fn call_beside(&mut self, call: SimaiCall) -> u32 {
        // One operation of zero time joins all dependencies. Otherwise each of many such collectives in a row would repeat the whole list.
        if self.front.len() > 1 {
            let (unit, span) = (GPU, Span::ZERO);
            self.step(Operation::Compute { unit, span });
        }
        self.beside(self.collective(call))
    }

    /// Adds an operation that the next one waits for.
    fn step(&mut self, operation: Operation) {
        let number = self.beside(operation);
        self.front = vec![number];
    }

    /// Adds an operation that the next one does not wait for, and returns its number.
    fn beside(&mut self, operation: Operation) -> u32 {
        let number = self.push(operation);
        let waits = self
            .front
            .iter()
            .map(|&before| (number, OperationDependency::over(before)));
        self.waits.extend(waits);
        number
    }

    fn push(&mut self, operation: Operation) -> u32 {
        let number = self.operations.len() as u32;
        self.operations.push(operation);
        self.layers.push(self.layer as u32);
        number
    }
}
