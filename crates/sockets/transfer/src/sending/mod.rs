//! The sending side: offers files, compares the blocks that the receiver has, and sends the other blocks.
//!
//! The sender reads each block once, in the order of the file, because the file's digest needs the digest of each block. It does not send a
//! block that the receiver has with the same digest.

mod job;

pub(crate) use job::{Job, Outcome};

use crate::blocks::{BlockLayout, BlockSet, ContentHash, DIGEST, MOST_BLOCKS};
use crate::name::Name;
use crate::reason::{Reason, ReasonKind};
use crate::transfer_side::{
    FileOutcome, TransferEvent, TransferProgress, TransferSide, Violation, event,
};
use crate::wire::{ControlMessage, FileMetadata, Offer, Tag, VERSION};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Most files on offer at a time.
pub(crate) const MOST_ACTIVE: usize = 32;
/// Most blocks that are being read or wait to be sent.
const READ_AHEAD: usize = 8;
/// Bytes of these blocks at which the sender stops reading.
const READ_AHEAD_BYTES: u64 = 16 << 20;
/// Most blocks of a file that the receiver may request again.
pub(crate) const MOST_REPAIRS: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Offered,
    /// Waits for the digests of this many more blocks.
    Hearing(u32),
    Reading,
    Comparing,
    Finished,
    /// Waits for the receiver's confirmation of the withdrawal.
    Withdrawn,
}

#[derive(Debug)]
struct File {
    geometry: BlockLayout,
    stage: Stage,
    /// The next block to read, and blocks that are being read for the first time.
    next: u32,
    reading: u32,
    /// Digests of blocks read so far.
    digests: Vec<ContentHash>,
    /// Digests of blocks that the receiver has.
    theirs: BTreeMap<u32, ContentHash>,
    sent: BlockSet,
    moved: u64,
    kept: u64,
    repairs: u32,
}

/// The sending side.
#[derive(Debug)]
pub struct Sending {
    names: Vec<Name>,
    sizes: Vec<u64>,
    welcomed: bool,
    /// The next file to open.
    next: u32,
    opening: usize,
    active: BTreeMap<u32, File>,
    /// Blocks of active files.
    blocks: u64,
    outbox: VecDeque<(u64, Bytes)>,
    jobs: VecDeque<Job>,
    events: VecDeque<TransferEvent>,
    /// Blocks that the receiver requested again.
    again: VecDeque<(u32, u32)>,
    /// Blocks that are being read or wait in the outbox, and their bytes.
    ahead: usize,
    ahead_bytes: u64,
    progress: TransferProgress,
    /// Bytes sent of files that are in their place.
    in_place: u64,
}

impl Sending {
    /// A sender of files with these names and sizes.
    pub fn new(files: impl IntoIterator<Item = (Name, u64)>) -> Self {
        let (names, sizes): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        let progress = TransferProgress {
            files: names.len() as u64,
            bytes: sizes.iter().copied().fold(0, u64::saturating_add),
            ..TransferProgress::default()
        };
        let greeting = ControlMessage::Greeting {
            version: VERSION,
            files: progress.files,
            bytes: progress.bytes,
        };
        Self {
            names,
            sizes,
            welcomed: false,
            next: 0,
            opening: 0,
            active: BTreeMap::new(),
            blocks: 0,
            outbox: VecDeque::from([greeting.encode()]),
            jobs: VecDeque::new(),
            events: VecDeque::new(),
            again: VecDeque::new(),
            ahead: 0,
            ahead_bytes: 0,
            progress,
            in_place: 0,
        }
    }

    fn push(&mut self, message: &ControlMessage) {
        self.outbox.push_back(message.encode());
    }

    /// Ends a file.
    fn end(&mut self, file: u32, what: FileOutcome) {
        let Some(ended) = self.active.remove(&file) else {
            return;
        };
        self.blocks -= u64::from(ended.geometry.blocks());
        self.again.retain(|(of, _)| *of != file);
        self.jobs.push_back(Job::Close(file));
        // A withdrawn file was reported already.
        if ended.stage != Stage::Withdrawn {
            self.say(file, what);
        }
    }

    fn say(&mut self, file: u32, what: FileOutcome) {
        match &what {
            FileOutcome::Done { .. } => self.progress.done += 1,
            FileOutcome::Failed(_) => {
                let size = self.sizes.get(file as usize).copied().unwrap_or(0);
                self.progress.add_failed(size);
            }
            FileOutcome::Kept { .. } => {}
        }
        if let Some(name) = self.names.get(file as usize) {
            self.events.push_back(event(name, what));
        }
    }

    /// Withdraws a file; the receiver has to confirm the withdrawal.
    fn withdraw(&mut self, file: u32, reason: Reason) {
        let Some(active) = self.active.get_mut(&file) else {
            return;
        };
        if active.stage == Stage::Withdrawn {
            return;
        }
        active.stage = Stage::Withdrawn;
        self.say(file, FileOutcome::Failed(reason.clone()));
        self.push(&ControlMessage::Withdraw { file, reason });
    }

    fn on_opened(&mut self, file: u32, result: Result<FileMetadata, Reason>) {
        self.opening -= 1;
        let blocks = result.and_then(|facts| {
            let geometry = BlockLayout::for_size(facts.size);
            let geometry = geometry
                .ok_or_else(|| Reason::new(ReasonKind::Limit, "it is longer than 16 TiB"))?;
            let all = self.blocks + u64::from(geometry.blocks());
            // The file has grown since it was found, and other files are active.
            match self.active.is_empty() || all <= u64::from(MOST_BLOCKS) {
                true => Ok((facts, geometry)),
                false => Err(Reason::new(ReasonKind::Changed, "it has grown")),
            }
        });
        let (facts, geometry) = match blocks {
            Ok(found) => found,
            Err(reason) => {
                self.jobs.push_back(Job::Close(file));
                return self.say(file, FileOutcome::Failed(reason));
            }
        };
        self.blocks += u64::from(geometry.blocks());
        let active = File {
            geometry,
            stage: Stage::Offered,
            next: 0,
            reading: 0,
            digests: vec![ContentHash::default(); geometry.blocks() as usize],
            theirs: BTreeMap::new(),
            sent: BlockSet::new(geometry.blocks()),
            moved: 0,
            kept: 0,
            repairs: 0,
        };
        self.active.insert(file, active);
        let name = self.names[file as usize].to_string();
        self.push(&ControlMessage::Offer(Offer {
            file,
            geometry,
            modified: facts.modified,
            executable: facts.executable,
            name,
        }));
    }

    fn on_read(&mut self, file: u32, block: u32, length: usize, result: Result<Bytes, Reason>) {
        let Some(active) = self.active.get_mut(&file) else {
            return self.forget_ahead(length);
        };
        let first_time = !active.sent.contains(block);
        if first_time {
            active.reading -= 1;
        }
        let content = match result {
            Ok(content) => content,
            Err(reason) => {
                self.forget_ahead(length);
                return self.withdraw(file, reason);
            }
        };
        if active.stage == Stage::Withdrawn {
            return self.forget_ahead(length);
        }
        let mut digest = ContentHash::default();
        digest.0.copy_from_slice(&content[..DIGEST]);
        if !first_time && active.digests[block as usize] != digest {
            self.forget_ahead(length);
            return self.withdraw(file, Reason::new(ReasonKind::Changed, ""));
        }
        active.digests[block as usize] = digest;
        if first_time && active.theirs.remove(&block) == Some(digest) {
            active.kept += length as u64;
            self.progress.kept += length as u64;
            self.forget_ahead(length);
        } else {
            active.sent.insert(block);
            active.moved += length as u64;
            self.outbox.push_back((Tag::of_block(file, block), content));
        }
        self.compare_if_read(file);
    }

    /// Checks that the file has not changed, after all of it was read.
    fn compare_if_read(&mut self, file: u32) {
        if let Some(active) = self.active.get_mut(&file)
            && active.stage == Stage::Reading
            && active.next == active.geometry.blocks()
            && active.reading == 0
        {
            active.stage = Stage::Comparing;
            self.jobs.push_back(Job::Compare(file));
        }
    }

    fn on_compared(&mut self, file: u32, result: Result<(), Reason>) {
        if let Err(reason) = result {
            return self.withdraw(file, reason);
        }
        let Some(active) = self.active.get_mut(&file) else {
            return;
        };
        if active.stage != Stage::Comparing {
            return;
        }
        active.stage = Stage::Finished;
        let finish = ControlMessage::Finish {
            file,
            sent: active.sent.len(),
            digest: ContentHash::of_file(active.geometry, &active.digests),
        };
        self.push(&finish);
    }

    /// Releases the memory of a block that is read but not sent.
    fn forget_ahead(&mut self, length: usize) {
        self.ahead -= 1;
        self.ahead_bytes -= length as u64;
    }

    /// Judges a message about a file that is not active: the end of a file can overtake messages about it.
    fn expect_ended(&self, file: u32, otherwise: &'static str) -> Result<(), Violation> {
        match file < self.next {
            true => Ok(()),
            false => Err(Violation(otherwise)),
        }
    }

    fn on_accept(&mut self, file: u32, kept: u32, changed: bool) -> Result<(), Violation> {
        let Some(active) = self.active.get_mut(&file) else {
            return self.expect_ended(file, "it accepts a file that was not offered");
        };
        match active.stage {
            Stage::Withdrawn => return Ok(()),
            Stage::Offered if kept <= active.geometry.blocks() => {}
            Stage::Offered => return Err(Violation("it claims more blocks than the file has")),
            _ => return Err(Violation("it accepts a file twice")),
        }
        // Digests can overtake this message.
        let left = kept.checked_sub(active.theirs.len() as u32);
        let left = left.ok_or(Violation("it has sent more digests than it has blocks"))?;
        active.stage = if left > 0 {
            Stage::Hearing(left)
        } else {
            Stage::Reading
        };
        if kept > 0 || changed {
            let bytes =
                (u64::from(kept) * u64::from(active.geometry.block())).min(active.geometry.size());
            self.say(file, FileOutcome::Kept { bytes, changed });
        }
        self.compare_if_read(file);
        Ok(())
    }

    fn on_have(&mut self, file: u32, blocks: Vec<(u32, ContentHash)>) -> Result<(), Violation> {
        let Some(active) = self.active.get_mut(&file) else {
            return self.expect_ended(file, "it has blocks of a file that was not offered");
        };
        for (block, digest) in blocks {
            match &mut active.stage {
                Stage::Withdrawn => return Ok(()),
                Stage::Offered => {}
                Stage::Hearing(left) => *left -= 1,
                _ => return Err(Violation("it has sent more digests than it has blocks")),
            }
            if block >= active.geometry.blocks() || active.theirs.insert(block, digest).is_some() {
                return Err(Violation(
                    "it claims a block that the file does not have, or claims a block twice",
                ));
            }
            if active.stage == Stage::Hearing(0) {
                active.stage = Stage::Reading;
            }
        }
        Ok(())
    }

    fn on_refuse(&mut self, file: u32, reason: Reason) -> Result<(), Violation> {
        if !self.active.contains_key(&file) {
            return self.expect_ended(file, "it refuses a file that was not offered");
        }
        self.end(file, FileOutcome::Failed(reason));
        Ok(())
    }

    fn on_again(&mut self, file: u32, block: u32) -> Result<(), Violation> {
        let Some(active) = self.active.get_mut(&file) else {
            return self.expect_ended(file, "it wants a block of a file that was not offered");
        };
        if active.stage == Stage::Withdrawn {
            return Ok(());
        }
        active.repairs += 1;
        if !active.sent.contains(block) || active.repairs > MOST_REPAIRS {
            return Err(Violation(
                "it wants a block again that was not sent, or too many",
            ));
        }
        self.progress.repaired += 1;
        self.again.push_back((file, block));
        Ok(())
    }

    /// Records the bytes that the receiver has written. Messages arrive in any order: the largest value counts.
    fn on_written(&mut self, bytes: u64) -> Result<(), Violation> {
        if bytes > self.progress.moved {
            return Err(Violation("it has written more than was sent"));
        }
        self.progress.written = self.progress.written.max(bytes);
        Ok(())
    }

    fn on_file_done(&mut self, file: u32) -> Result<(), Violation> {
        let active = self.active.get(&file);
        match active {
            Some(active) if active.stage == Stage::Finished => {
                let (size, moved) = (active.geometry.size(), active.moved);
                self.in_place += moved;
                self.progress.written = self.progress.written.max(self.in_place);
                self.end(file, FileOutcome::Done { size, moved });
                Ok(())
            }
            // The file was in its place before the receiver got the withdrawal.
            Some(active) if active.stage == Stage::Withdrawn => Ok(()),
            Some(_) => Err(Violation("it is done with a file that was not finished")),
            None => self.expect_ended(file, "it is done with a file that was not offered"),
        }
    }

    fn poll_open(&mut self) -> Option<Job> {
        let size = *self.sizes.get(self.next as usize)?;
        let blocks = BlockLayout::for_size(size).map_or(0, |geometry| u64::from(geometry.blocks()));
        let is_first = self.active.is_empty() && self.opening == 0;
        let fits = self.active.len() + self.opening < MOST_ACTIVE
            && self.blocks + blocks <= u64::from(MOST_BLOCKS);
        // One at a time: the file may have grown since it was found.
        (self.welcomed && self.opening == 0 && (fits || is_first)).then(|| {
            let file = self.next;
            self.next += 1;
            self.opening += 1;
            Job::Open(file)
        })
    }

    fn poll_read(&mut self) -> Option<Job> {
        if self.ahead >= READ_AHEAD || self.ahead_bytes >= READ_AHEAD_BYTES {
            return None;
        }
        let (file, block) = match self.again.pop_front() {
            Some(again) => again,
            None => {
                let mut active = self.active.iter_mut();
                let ready = |active: &File| {
                    active.stage == Stage::Reading && active.next < active.geometry.blocks()
                };
                let (file, active) = active.find(|(_, active)| ready(active))?;
                active.next += 1;
                active.reading += 1;
                (*file, active.next - 1)
            }
        };
        let (offset, length) = self.active.get(&file)?.geometry.place(block)?;
        self.ahead += 1;
        self.ahead_bytes += length as u64;
        Some(Job::Read {
            file,
            block,
            offset,
            length,
        })
    }
}

impl TransferSide for Sending {
    type Job = Job;
    type Outcome = Outcome;

    fn on_message(&mut self, tag: u64, content: Vec<u8>) -> Result<(), Violation> {
        let message =
            ControlMessage::decode(tag, &content).ok_or(Violation("a message is malformed"))?;
        if let ControlMessage::Greeting { version, .. } = message {
            if version != VERSION {
                return Err(Violation("it speaks another version of transfers"));
            }
            if self.welcomed {
                return Err(Violation("it greets twice"));
            }
            self.welcomed = true;
            return Ok(());
        }
        match message {
            ControlMessage::Accept {
                file,
                kept,
                changed,
            } => self.on_accept(file, kept, changed),
            ControlMessage::Have { file, blocks } => self.on_have(file, blocks),
            ControlMessage::Refuse { file, reason } => self.on_refuse(file, reason),
            ControlMessage::Again { file, block } => self.on_again(file, block),
            ControlMessage::Done { file } => self.on_file_done(file),
            ControlMessage::Written { bytes } => self.on_written(bytes),
            _ => Err(Violation(
                "a receiver sends a message that only senders may send",
            )),
        }
    }

    fn on_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Opened { file, result } => self.on_opened(file, result),
            Outcome::Read {
                file,
                block,
                length,
                result,
            } => self.on_read(file, block, length, result),
            Outcome::Compared { file, result } => self.on_compared(file, result),
            Outcome::Closed => {}
        }
    }

    fn on_tick(&mut self) {}

    fn takes_messages(&self) -> bool {
        true
    }

    fn poll_send(&mut self) -> Option<(u64, Bytes)> {
        let (tag, content) = self.outbox.pop_front()?;
        if let Some(Tag::Block { .. }) = Tag::from_tag(tag) {
            let length = content.len() - DIGEST;
            self.forget_ahead(length);
            self.progress.moved += length as u64;
        }
        Some((tag, content))
    }

    fn poll_job(&mut self) -> Option<Job> {
        let job = self.jobs.pop_front();
        job.or_else(|| self.poll_open())
            .or_else(|| self.poll_read())
    }

    fn poll_event(&mut self) -> Option<TransferEvent> {
        self.events.pop_front()
    }

    fn progress(&self) -> &TransferProgress {
        &self.progress
    }

    fn is_over(&self) -> bool {
        let all = self.next as usize == self.names.len() && self.opening == 0;
        self.welcomed && all && self.active.is_empty() && self.outbox.is_empty()
    }

    fn is_greeted(&self) -> bool {
        self.welcomed
    }
}
