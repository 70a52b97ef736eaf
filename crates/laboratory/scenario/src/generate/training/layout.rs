//! Groups of the ranks of a training job.

use super::{ParallelismDegrees, TrainingSettings};
use crate::generate::WorkloadDefinition;
use clearway_workload::WorkloadError;
use clearway_workload::graph::Rank;

/// Kind of a group of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// Ranks that divide each layer.
    Tensor,
    /// Ranks with the same dense parameters.
    Data,
    /// Ranks that divide the experts of a layer.
    Expert,
    /// Ranks with the same experts.
    ExpertData,
    /// Ranks of the first and the last stage with the same part of the embedding.
    Embedding,
}

/// Sizes of the dimensions of parallelism: rank = tensor + TP x (data + DP x stage), Megatron-LM's order tp-dp-pp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) tensor: u32,
    pub(super) data: u32,
    pub(super) pipeline: u32,
    pub(super) expert: u32,
}

impl Layout {
    const KINDS: [Group; 5] = [
        Group::Tensor,
        Group::Data,
        Group::Expert,
        Group::ExpertData,
        Group::Embedding,
    ];

    /// Divides `ranks` ranks by `degrees`.
    pub(super) fn new(degrees: &ParallelismDegrees, ranks: u32) -> Result<Self, WorkloadError> {
        let (tensor, pipeline) = (degrees.tensor.get(), degrees.pipeline.get());
        let replica = u64::from(tensor) * u64::from(pipeline);
        if !u64::from(ranks).is_multiple_of(replica) {
            let message = format!(
                "{ranks} ranks cannot be divided into replicas of {tensor} x {pipeline} ranks"
            );
            let fix = "choose a multiple of `tensor-parallel` times `pipeline-parallel`, or other degrees";
            return Err(TrainingSettings::fault("ranks", message, fix));
        }
        let data = ranks / replica as u32;
        let expert = degrees.expert.get();
        if !(tensor * data).is_multiple_of(expert) {
            let message = format!(
                "{} ranks of a stage cannot be divided into groups of {expert}",
                tensor * data
            );
            let fix = "choose a divisor of the ranks of a stage, `ranks` / `pipeline-parallel`";
            return Err(TrainingSettings::fault("expert-parallel", message, fix));
        }
        Ok(Self {
            tensor,
            data,
            pipeline,
            expert,
        })
    }

    /// Number of ranks of a stage.
    pub(super) fn of_stage(self) -> u32 {
        self.tensor * self.data
    }

    pub(super) fn ranks(self) -> u32 {
        self.of_stage() * self.pipeline
    }

    pub(super) fn stage(self, rank: u32) -> u32 {
        rank / self.of_stage()
    }

    /// Number of ranks in a group.
    pub(super) fn size(self, group: Group) -> u32 {
        match group {
            Group::Tensor => self.tensor,
            Group::Data => self.data,
            Group::Expert => self.expert,
            Group::ExpertData => self.of_stage() / self.expert,
            Group::Embedding => self.pipeline.min(2),
        }
    }

    /// Number of groups of a kind.
    fn count(self, group: Group) -> u32 {
        match group {
            Group::Embedding => self.of_stage(),
            _ => self.ranks() / self.size(group),
        }
    }

    /// Number of a rank's group among those of its kind; `None` if it has none.
    fn number(self, group: Group, rank: u32) -> Option<u32> {
        let (stage, inner) = (self.stage(rank), rank % self.of_stage());
        Some(match group {
            Group::Tensor => rank / self.tensor,
            Group::Data => inner % self.tensor + self.tensor * stage,
            Group::Expert => rank / self.expert,
            Group::ExpertData => inner % self.expert + self.expert * stage,
            Group::Embedding if stage == 0 || stage + 1 == self.pipeline => inner,
            Group::Embedding => return None,
        })
    }

    /// Index of a rank's group among all groups.
    pub(super) fn index(self, group: Group, rank: u32) -> u32 {
        let before = Self::KINDS.into_iter().take_while(|&kind| kind != group);
        let first: u32 = before.map(|kind| self.count(kind)).sum();
        first + self.number(group, rank).expect("the rank has such a group")
    }

    /// All groups, kind by kind, each in the order of ranks.
    pub(super) fn groups(self) -> Vec<Vec<Rank>> {
        let mut groups = Vec::new();
        for kind in Self::KINDS {
            let mut of_kind = vec![Vec::new(); self.count(kind) as usize];
            for rank in 0..self.ranks() {
                if let Some(number) = self.number(kind, rank) {
                    of_kind[number as usize].push(Rank(rank));
                }
            }
            groups.extend(of_kind);
        }
        groups
    }
}
