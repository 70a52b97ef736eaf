//! The receiving side: accepts offers, reports the blocks that exist, and writes blocks at their places on arrival.
//!
//! Limits bound the state that the other end can cause: active files and blocks, blocks that wait to be written, answers that wait to be
//! sent, and total bytes and files.

mod file;
mod job;

pub use file::Unfinished;
pub use job::ReceiveLimits;
pub(crate) use job::{Job, Outcome};

use crate::blocks::{BlockSet, ContentHash, DIGEST, MOST_BLOCKS};
use crate::name::Name;
use crate::reason::{Reason, ReasonKind};
use crate::sending::{MOST_ACTIVE, MOST_REPAIRS};
use crate::transfer_side::{
    FileOutcome, TransferEvent, TransferProgress, TransferSide, Violation, event,
};
use crate::wire::{ControlMessage, Offer, Tag, VERSION};
use bytes::Bytes;
use file::{Closing, File, Stage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of blocks waiting to be written at which the receiver stops taking messages.
const WAITING_BYTES: usize = 32 << 20;
/// Answers waiting to be sent at which the receiver stops taking messages.
const WAITING_ANSWERS: usize = 256;
/// Digests of the receiver's blocks in one message.
const CHECKED: usize = 16;
/// Most checks in progress.
const CHECKS: usize = 2;
/// Ticks between two attempts to begin a file that another transfer holds, and the most attempts. Together they last longer than the
/// connection of a killed sender.
const ATTEMPT_TICKS: u32 = 5;
const ATTEMPTS: u32 = 30;

/// The receiving side.
#[derive(Debug)]
pub struct Receiving {
    bounds: ReceiveLimits,
    greeted: bool,
    /// Files that were offered.
    seen: BTreeSet<u32>,
    names: BTreeSet<[u8; 16]>,
    taken: u64,
    active: BTreeMap<u32, File>,
    /// Files that have ended but are still open or being opened: the answer goes out when they are closed.
    closing: BTreeMap<u32, Closing>,
    blocks: u64,
    ticks: u32,
    /// Files that another transfer holds.
    busy: Vec<u32>,
    checks: usize,
    waiting_bytes: usize,
    outbox: VecDeque<(u64, Bytes)>,
    jobs: VecDeque<Job>,
    events: VecDeque<TransferEvent>,
    progress: TransferProgress,
    /// Written bytes reported to the sender.
    told: u64,
}

impl Receiving {
    /// A receiver with limits.
    pub fn new(bounds: ReceiveLimits) -> Self {
        Self {
            bounds,
            greeted: false,
            seen: BTreeSet::new(),
            names: BTreeSet::new(),
            taken: 0,
            active: BTreeMap::new(),
            closing: BTreeMap::new(),
            blocks: 0,
            ticks: 0,
            busy: Vec::new(),
            checks: 0,
            waiting_bytes: 0,
            outbox: VecDeque::new(),
            jobs: VecDeque::new(),
            events: VecDeque::new(),
            progress: TransferProgress::default(),
            told: 0,
        }
    }

    /// Files of which only a part has arrived.
    pub fn unfinished(&self) -> impl Iterator<Item = Unfinished> {
        self.active.values().filter_map(File::unfinished)
    }

    fn push(&mut self, message: &ControlMessage) {
        self.outbox.push_back(message.encode());
    }

    fn on_greeting(&mut self, version: u32, files: u64, bytes: u64) -> Result<(), Violation> {
        if self.greeted {
            return Err(Violation("it greets twice"));
        }
        // A sender with another version learns this receiver's version.
        self.push(&ControlMessage::Greeting {
            version: VERSION,
            files: 0,
            bytes: 0,
        });
        self.greeted = version == VERSION;
        (self.progress.files, self.progress.bytes) = (files, bytes);
        Ok(())
    }

    fn on_offer(&mut self, offer: Offer) -> Result<(), Violation> {
        let (file, geometry) = (offer.file, offer.geometry);
        if self.seen.contains(&file) {
            return Err(Violation("it offers a file twice"));
        }
        let blocks = self.blocks + u64::from(geometry.blocks());
        if self.active.len() + self.closing.len() >= MOST_ACTIVE
            || !self.active.is_empty() && blocks > u64::from(MOST_BLOCKS)
        {
            return Err(Violation(
                "it offers more files or blocks at a time than it may",
            ));
        }
        let name = match self.judge(&offer) {
            Ok(name) => name,
            Err(reason) => {
                self.refuse_offer(&offer, reason);
                return Ok(());
            }
        };
        self.blocks = blocks;
        self.taken = self.taken.saturating_add(geometry.size());
        let active = File::new(name.clone(), offer.clone());
        self.active.insert(file, active);
        self.jobs.push_back(Job::Begin { name, offer });
        Ok(())
    }

    /// Name of a file that the receiver may accept.
    fn judge(&mut self, offer: &Offer) -> Result<Name, Reason> {
        // Beyond the limit the receiver keeps nothing of a file, not even its number.
        if self.seen.len() as u64 >= self.bounds.files {
            let most = format!("{} files are allowed", self.bounds.files);
            return Err(Reason::new(ReasonKind::Limit, &most));
        }
        self.seen.insert(offer.file);
        let name = Name::new(&offer.name)
            .map_err(|error| Reason::new(ReasonKind::Name, &error.to_string()))?;
        if self.taken.saturating_add(offer.geometry.size()) > self.bounds.bytes {
            let most = format!("{} bytes are allowed", self.bounds.bytes);
            return Err(Reason::new(ReasonKind::Limit, &most));
        }
        let mut key = [0; 16];
        key.copy_from_slice(&ContentHash::of_block(name.as_str().as_bytes()).0[..16]);
        match self.names.insert(key) {
            true => Ok(name),
            false => Err(Reason::new(
                ReasonKind::Exists,
                "it was sent before in this transfer",
            )),
        }
    }

    /// Refuses a file that was never active.
    fn refuse_offer(&mut self, offer: &Offer, reason: Reason) {
        self.progress.add_failed(offer.geometry.size());
        self.events.push_back(TransferEvent {
            // Control characters are removed, as in details.
            name: Reason::new(reason.kind, &offer.name).detail,
            what: FileOutcome::Failed(reason.clone()),
        });
        self.push(&ControlMessage::Refuse {
            file: offer.file,
            reason,
        });
    }

    /// Refuses an active file and tells the sender.
    fn refuse(&mut self, file: u32, reason: Reason) {
        let answer = ControlMessage::Refuse {
            file,
            reason: reason.clone(),
        };
        self.end(file, answer, |_| FileOutcome::Failed(reason));
    }

    /// Ends an active file. The answer goes out when the file is closed, so that the sender does not offer other files earlier.
    fn end(&mut self, file: u32, answer: ControlMessage, what: impl FnOnce(&File) -> FileOutcome) {
        let Some(ended) = self.active.remove(&file) else {
            return;
        };
        self.blocks -= u64::from(ended.geometry.blocks());
        self.busy.retain(|busy| *busy != file);
        if ended.jobs == 0 {
            self.jobs.push_back(Job::Forget(file));
        }
        let closing = Closing::new(ended.jobs, answer);
        self.closing.insert(file, closing);
        let what = what(&ended);
        match &what {
            FileOutcome::Failed(_) => {
                self.progress.add_failed(ended.geometry.size());
            }
            _ => self.progress.done += 1,
        }
        self.events.push_back(event(&ended.name, what));
    }

    /// Records the end of a job of a file. Closes an ended file after its last job.
    fn after_job(&mut self, file: u32) {
        if let Some(active) = self.active.get_mut(&file) {
            active.jobs -= 1;
        } else if let Some(closing) = self.closing.get_mut(&file) {
            closing.jobs -= 1;
            if closing.jobs == 0 {
                self.jobs.push_back(Job::Forget(file));
            }
        }
    }

    fn on_forgotten(&mut self, file: u32) {
        if let Some(closing) = self.closing.remove(&file) {
            closing.answers().for_each(|answer| self.push(&answer));
        }
    }

    fn on_begun(&mut self, file: u32, result: Result<(Vec<u32>, bool), Reason>) {
        self.after_job(file);
        let Some(active) = self.active.get_mut(&file) else {
            return;
        };
        let (kept, changed) = match result {
            Ok(found) => found,
            // The connection of a killed sender stays for a while.
            Err(reason) if reason.kind == ReasonKind::Busy && active.attempts < ATTEMPTS => {
                active.attempts += 1;
                return self.busy.push(file);
            }
            Err(reason) => {
                // The receiver will not write anything of the file.
                self.taken = self.taken.saturating_sub(active.geometry.size());
                return self.refuse(file, reason);
            }
        };
        let blocks = active.geometry.blocks();
        active.stage = Stage::Taking;
        active.digests = vec![ContentHash::default(); blocks as usize];
        (active.kept, active.arrived) = (BlockSet::new(blocks), BlockSet::new(blocks));
        for block in kept {
            if active.kept.insert(block) {
                active.unchecked.push_back(block);
            }
        }
        let count = active.kept.len();
        if count > 0 || changed {
            let bytes = active
                .unchecked
                .iter()
                .map(|block| active.geometry.length(*block))
                .sum();
            self.events
                .push_back(event(&active.name, FileOutcome::Kept { bytes, changed }));
        }
        self.push(&ControlMessage::Accept {
            file,
            kept: count,
            changed,
        });
    }

    fn on_checked(&mut self, file: u32, blocks: Vec<(u32, ContentHash)>) {
        self.checks -= 1;
        self.after_job(file);
        let Some(active) = self.active.get_mut(&file) else {
            return;
        };
        for (block, digest) in &blocks {
            active.digests[*block as usize] = *digest;
        }
        self.push(&ControlMessage::Have { file, blocks });
        self.publish_if_complete(file);
    }

    fn on_block(&mut self, file: u32, block: u32, content: Vec<u8>) -> Result<(), Violation> {
        let Some(active) = self.active.get_mut(&file) else {
            // A block of a file that was refused in the meantime.
            return match self.seen.contains(&file) {
                true => Ok(()),
                false => Err(Violation(
                    "it sends a block of a file that it has not offered",
                )),
            };
        };
        if active.stage != Stage::Taking || !active.unchecked.is_empty() {
            return Err(Violation("it sends a block before or after its time"));
        }
        let (_, length) = active
            .geometry
            .place(block)
            .ok_or(Violation("it sends a block that the file does not have"))?;
        if content.len() != length + DIGEST {
            return Err(Violation("a block has the wrong length"));
        }
        if !active.arrived.insert(block) {
            return Err(Violation("it sends a block twice"));
        }
        active.jobs += 1;
        self.waiting_bytes += content.len();
        self.jobs.push_back(Job::Write {
            file,
            block,
            content,
        });
        Ok(())
    }

    fn on_written(
        &mut self,
        file: u32,
        block: u32,
        length: usize,
        result: Result<Option<ContentHash>, Reason>,
    ) {
        self.waiting_bytes -= length;
        self.after_job(file);
        let Some(active) = self.active.get_mut(&file) else {
            return;
        };
        match result {
            Ok(Some(digest)) => {
                let bytes = (length - DIGEST) as u64;
                active.digests[block as usize] = digest;
                active.written += 1;
                active.moved += bytes;
                self.progress.moved += bytes;
                self.progress.written += bytes;
                self.publish_if_complete(file);
            }
            Ok(None) => {
                active.arrived.remove(block);
                active.repairs += 1;
                self.progress.repaired += 1;
                match active.repairs <= MOST_REPAIRS {
                    true => self.push(&ControlMessage::Again { file, block }),
                    false => self.refuse(
                        file,
                        Reason::new(ReasonKind::Content, "too many blocks are damaged"),
                    ),
                }
            }
            Err(reason) => self.refuse(file, reason),
        }
    }

    fn on_finish(&mut self, file: u32, sent: u32, digest: ContentHash) -> Result<(), Violation> {
        let Some(active) = self.active.get_mut(&file) else {
            return match self.seen.contains(&file) {
                true => Ok(()),
                false => Err(Violation("it finishes a file that it has not offered")),
            };
        };
        if active.stage != Stage::Taking
            || active.finish.is_some()
            || sent > active.geometry.blocks()
        {
            return Err(Violation("it finishes a file before or after its time"));
        }
        active.finish = Some((sent, digest));
        self.publish_if_complete(file);
        Ok(())
    }

    fn publish_if_complete(&mut self, file: u32) {
        let Some(active) = self.active.get_mut(&file) else {
            return;
        };
        let Some((sent, digest)) = active.finish else {
            return;
        };
        // Wait for the blocks on their way to the disk, whatever the sender says.
        if active.written < sent || active.jobs > 0 {
            return;
        }
        let blocks = 0..active.geometry.blocks();
        let missing = blocks
            .filter(|block| !active.arrived.contains(*block) && !active.kept.contains(*block))
            .count();
        if missing > 0 || active.written > sent || !active.unchecked.is_empty() {
            let detail = format!("{missing} blocks were never sent");
            return self.refuse(file, Reason::new(ReasonKind::Content, &detail));
        }
        active.stage = Stage::Publishing;
        active.jobs += 1;
        let kept: u64 = (0..active.geometry.blocks())
            .filter(|block| !active.arrived.contains(*block))
            .map(|block| active.geometry.length(block))
            .sum();
        self.progress.kept += kept;
        let digests = std::mem::take(&mut active.digests);
        self.jobs.push_back(Job::Publish {
            file,
            digests,
            digest,
        });
    }

    fn on_published(&mut self, file: u32, result: Result<(), Reason>) {
        self.after_job(file);
        match result {
            Ok(()) => self.end(file, ControlMessage::Done { file }, |ended| {
                FileOutcome::Done {
                    size: ended.geometry.size(),
                    moved: ended.moved,
                }
            }),
            Err(reason) => self.refuse(file, reason),
        }
    }

    fn on_withdraw(&mut self, file: u32, reason: Reason) -> Result<(), Violation> {
        if !self.seen.contains(&file) {
            return Err(Violation("it withdraws a file that it has not offered"));
        }
        let heard = ControlMessage::Refuse {
            file,
            reason: Reason::new(ReasonKind::Withdrawn, ""),
        };
        if let Some(closing) = self.closing.get_mut(&file) {
            closing.withdrawn = Some(heard);
            return Ok(());
        }
        match self.active.get(&file).map(|active| active.stage) {
            Some(Stage::Publishing) => {
                return Err(Violation("it withdraws a file that it has finished"));
            }
            Some(_) => self.end(file, heard, |_| FileOutcome::Failed(reason)),
            None => self.push(&heard),
        }
        Ok(())
    }

    fn poll_check(&mut self) -> Option<Job> {
        if self.checks >= CHECKS {
            return None;
        }
        let mut active = self.active.iter_mut();
        let (file, active) = active.find(|(_, active)| !active.unchecked.is_empty())?;
        let count = active.unchecked.len().min(CHECKED);
        self.checks += 1;
        active.jobs += 1;
        Some(Job::Check {
            file: *file,
            blocks: active.unchecked.drain(..count).collect(),
        })
    }
}

impl TransferSide for Receiving {
    type Job = Job;
    type Outcome = Outcome;

    fn on_message(&mut self, tag: u64, content: Vec<u8>) -> Result<(), Violation> {
        if let Some(Tag::Block { file, block }) = Tag::from_tag(tag) {
            return self.on_block(file, block, content);
        }
        let message =
            ControlMessage::decode(tag, &content).ok_or(Violation("a message is malformed"))?;
        if let ControlMessage::Greeting {
            version,
            files,
            bytes,
        } = message
        {
            return self.on_greeting(version, files, bytes);
        }
        if !self.greeted {
            return Err(Violation("it does not greet"));
        }
        match message {
            ControlMessage::Offer(offer) => self.on_offer(offer),
            ControlMessage::Finish { file, sent, digest } => self.on_finish(file, sent, digest),
            ControlMessage::Withdraw { file, reason } => self.on_withdraw(file, reason),
            _ => Err(Violation(
                "a sender sends a message that only receivers may send",
            )),
        }
    }

    fn on_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Begun { file, result } => self.on_begun(file, result),
            Outcome::Checked { file, blocks } => self.on_checked(file, blocks),
            Outcome::Written {
                file,
                block,
                length,
                result,
            } => self.on_written(file, block, length, result),
            Outcome::Published { file, result } => self.on_published(file, result),
            Outcome::Forgotten(file) => self.on_forgotten(file),
        }
    }

    fn on_tick(&mut self) {
        let bytes = self.progress.written;
        if bytes > self.told {
            self.told = bytes;
            self.push(&ControlMessage::Written { bytes });
        }
        self.ticks = self.ticks.wrapping_add(1);
        if !self.ticks.is_multiple_of(ATTEMPT_TICKS) {
            return;
        }
        for file in std::mem::take(&mut self.busy) {
            if let Some(active) = self.active.get_mut(&file) {
                active.jobs += 1;
                let (name, offer) = (active.name.clone(), active.offer.clone());
                self.jobs.push_back(Job::Begin { name, offer });
            }
        }
    }

    fn takes_messages(&self) -> bool {
        self.waiting_bytes < WAITING_BYTES && self.outbox.len() < WAITING_ANSWERS
    }

    fn poll_send(&mut self) -> Option<(u64, Bytes)> {
        self.outbox.pop_front()
    }

    fn poll_job(&mut self) -> Option<Job> {
        let job = self.jobs.pop_front();
        job.or_else(|| self.poll_check())
    }

    fn poll_event(&mut self) -> Option<TransferEvent> {
        self.events.pop_front()
    }

    fn progress(&self) -> &TransferProgress {
        &self.progress
    }

    /// The sender ends a transfer.
    fn is_over(&self) -> bool {
        false
    }

    fn is_greeted(&self) -> bool {
        self.greeted
    }
}
