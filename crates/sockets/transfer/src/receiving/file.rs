//! Files at the receiver.

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

/// An active file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: Name,
    pub(super) offer: Offer,
    /// Attempts to begin the file while another transfer held it.
    pub(super) attempts: u32,
    pub(super) geometry: BlockLayout,
    pub(super) stage: Stage,
    pub(super) digests: Vec<ContentHash>,
    /// Blocks of an earlier transfer that are not checked yet.
    pub(super) unchecked: VecDeque<u32>,
    /// Jobs in progress.
    pub(super) jobs: u32,
    pub(super) kept: BlockSet,
    pub(super) arrived: BlockSet,
    /// Blocks that have arrived and were written.
    pub(super) written: u32,
    pub(super) moved: u64,
    pub(super) repairs: u32,
    pub(super) finish: Option<(u32, ContentHash)>,
}

/// A file of which only a part has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// Name of the file.
    pub name: String,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Bytes of the whole file.
    pub size: u64,
}

impl File {
    /// A file whose begin job is in progress.
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

    /// The part that has arrived, if the file has begun.
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

/// A file that has ended, and will be closed after its last job.
#[derive(Debug)]
pub(super) struct Closing {
    /// Jobs in progress, without the job that closes the file.
    pub(super) jobs: u32,
    answer: ControlMessage,
    /// The answer to a withdrawal that has arrived since.
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
