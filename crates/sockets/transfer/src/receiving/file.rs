//! Files as their receiver knows them.

use crate::blocks::{BlockLayout, BlockSet, ContentHash};
use crate::name::Name;
use crate::wire::{ControlMessage, Offer};
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Beginning,
    Taking,
    Publishing,
}

/// A file that is under way.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: Name,
    pub(super) offer: Offer,
    /// Attempts to begin it while another transfer had it.
    pub(super) attempts: u32,
    pub(super) geometry: BlockLayout,
    pub(super) stage: Stage,
    pub(super) digests: Vec<ContentHash>,
    /// Blocks of an earlier transfer that are still to be checked.
    pub(super) unchecked: VecDeque<u32>,
    /// Jobs that are under way.
    pub(super) jobs: u32,
    pub(super) kept: BlockSet,
    pub(super) arrived: BlockSet,
    /// Blocks that have come and were written.
    pub(super) written: u32,
    pub(super) moved: u64,
    pub(super) repairs: u32,
    pub(super) finish: Option<(u32, ContentHash)>,
}

/// A file of which a part has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// Name of the file.
    pub name: String,
    /// Bytes that are there.
    pub bytes: u64,
    /// Bytes of the whole.
    pub size: u64,
}

impl File {
    /// A file with the job that begins it.
    pub(super) fn new(name: Name, offer: Offer) -> Self {
        Self {
            name,
            geometry: offer.geometry,
            offer,
            attempts: 0,
            stage: Stage::Beginning,
            digests: Vec::new(),
            unchecked: VecDeque::new(),
            jobs: 1,
            kept: BlockSet::default(),
            arrived: BlockSet::default(),
            written: 0,
            moved: 0,
            repairs: 0,
            finish: None,
        }
    }

    /// The part that has come, if the file has begun.
    pub(super) fn unfinished(&self) -> Option<Unfinished> {
        let blocks = 0..self.geometry.blocks();
        let there =
            blocks.filter(|block| self.arrived.contains(*block) || self.kept.contains(*block));
        (self.stage != Stage::Beginning).then(|| Unfinished {
            name: self.name.to_string(),
            bytes: there.map(|block| self.geometry.length(block)).sum(),
            size: self.geometry.size(),
        })
    }
}

/// A file that has ended, and that is closed after its last job.
#[derive(Debug)]
pub(super) struct Closing {
    /// Jobs that are under way, without that which closes it.
    pub(super) jobs: u32,
    answer: ControlMessage,
    /// The answer to a withdrawal that has come since.
    pub(super) withdrawn: Option<ControlMessage>,
}

impl Closing {
    pub(super) fn new(jobs: u32, answer: ControlMessage) -> Self {
        Self {
            jobs,
            answer,
            withdrawn: None,
        }
    }

    /// Answers to the sender.
    pub(super) fn answers(self) -> impl Iterator<Item = ControlMessage> {
        [Some(self.answer), self.withdrawn].into_iter().flatten()
    }
}
