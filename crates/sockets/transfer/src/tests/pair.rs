//! A sender and a receiver, and all that lies between them.

use crate::transfer_side::{Disk, TransferSide};
use crate::{
    FileOutcome, ReceiveLimits, ReceiveStore, Receiving, Sending, Sources, TransferEvent,
    TransferProgress, Violation,
};
use clearway_units::{Purpose, RandomStream};
use std::fs;
use std::path::{Path, PathBuf};

/// One side, with the jobs that were not carried out yet.
struct Side<P: TransferSide> {
    party: P,
    jobs: Vec<P::Job>,
    /// Messages that are on their way to it.
    coming: Vec<(u64, Vec<u8>)>,
}

impl<P: TransferSide> Side<P> {
    fn new(party: P) -> Self {
        Self {
            party,
            jobs: Vec::new(),
            coming: Vec::new(),
        }
    }

    /// Takes what it has to say; false if that is nothing.
    fn poll(&mut self, to: &mut Vec<(u64, Vec<u8>)>, events: &mut Vec<TransferEvent>) -> bool {
        let mut any = false;
        while let Some(job) = self.party.poll_job() {
            self.jobs.push(job);
        }
        while let Some((tag, content)) = self.party.poll_send() {
            to.push((tag, content.to_vec()));
            any = true;
        }
        while let Some(event) = self.party.poll_event() {
            events.push(event);
        }
        any
    }

    /// Carries out a job or a message by chance; false if there is none.
    fn step(&mut self, disk: &impl Disk<P>, random: &mut RandomStream) -> Result<bool, Violation> {
        let jobs = self.jobs.len() as u32;
        let coming = if self.party.takes_messages() {
            self.coming.len() as u32
        } else {
            0
        };
        if jobs + coming == 0 {
            return Ok(false);
        }
        let chosen = random.below(jobs + coming);
        if chosen < jobs {
            let outcome = disk.run(self.jobs.swap_remove(chosen as usize));
            self.party.on_outcome(outcome);
        } else {
            let (tag, content) = self.coming.swap_remove((chosen - jobs) as usize);
            self.party.on_message(tag, content)?;
        }
        Ok(true)
    }
}

/// Changes a message on its way to the receiver.
pub(super) type Damage = Box<dyn FnMut(&mut u64, &mut Vec<u8>)>;

pub(super) struct Pair {
    sources: Sources,
    pub(super) store: ReceiveStore,
    sender: Side<Sending>,
    receiver: Side<Receiving>,
    random: RandomStream,
    pub(super) damage: Damage,
    /// Events of the sender and of the receiver.
    pub(super) events: [Vec<TransferEvent>; 2],
}

impl Pair {
    pub(super) fn new(paths: &[PathBuf], to: &Path, seed: u64) -> Self {
        fs::create_dir_all(to).unwrap();
        Self::with(
            paths,
            ReceiveStore::open(to, false).unwrap(),
            ReceiveLimits::default(),
            seed,
        )
    }

    pub(super) fn with(
        paths: &[PathBuf],
        store: ReceiveStore,
        bounds: ReceiveLimits,
        seed: u64,
    ) -> Self {
        let sources = Sources::find(paths).unwrap();
        Self {
            sender: Side::new(sources.sending()),
            receiver: Side::new(Receiving::new(bounds)),
            sources,
            store,
            random: RandomStream::new(seed, Purpose::Test, 2),
            damage: Box::new(|_, _| {}),
            events: [Vec::new(), Vec::new()],
        }
    }

    pub(super) fn progress(&self) -> [TransferProgress; 2] {
        [
            *self.sender.party.progress(),
            *self.receiver.party.progress(),
        ]
    }

    pub(super) fn receiving(&self) -> &Receiving {
        &self.receiver.party
    }

    /// Runs until the sender is over.
    pub(super) fn run(&mut self) -> Result<(), Violation> {
        self.run_for(u32::MAX)
            .map(|is_over| assert!(is_over, "it stands still"))
    }

    /// Runs until the receiver has got so many bytes.
    pub(super) fn run_to(&mut self, bytes: u64) {
        while self.progress()[1].moved < bytes {
            assert!(!self.run_for(1).unwrap());
        }
    }

    /// Time passes at the receiver.
    pub(super) fn tick(&mut self) {
        self.receiver.party.on_tick();
    }

    /// Runs for so many steps; true if the sender is over.
    pub(super) fn run_for(&mut self, steps: u32) -> Result<bool, Violation> {
        let mut idle = 0;
        for _ in 0..steps {
            let before = self.receiver.coming.len();
            let [sent, received] = &mut self.events;
            let mut any = self.sender.poll(&mut self.receiver.coming, sent);
            for (tag, content) in &mut self.receiver.coming[before..] {
                (self.damage)(tag, content);
            }
            any |= self.receiver.poll(&mut self.sender.coming, received);
            if self.sender.party.is_over() {
                return Ok(true);
            }
            let first = self.random.below(2);
            for side in [first, 1 - first] {
                any |= match side {
                    0 => self.sender.step(&self.sources, &mut self.random)?,
                    _ => self.receiver.step(&self.store, &mut self.random)?,
                };
            }
            idle = if any { 0 } else { idle + 1 };
            if !any {
                self.receiver.party.on_tick();
            }
            if idle > 200 {
                return Ok(false);
            }
        }
        Ok(false)
    }
}

/// Bytes that look like no others.
pub(super) fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut random = RandomStream::new(seed, Purpose::Test, 3);
    let words = std::iter::repeat_with(|| random.below(u32::MAX).to_be_bytes());
    words.flatten().take(length).collect()
}

pub(super) fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub(super) fn done(events: &[TransferEvent]) -> usize {
    let is_done = |event: &&TransferEvent| matches!(event.what, FileOutcome::Done { .. });
    events.iter().filter(is_done).count()
}

/// Reasons of files that failed.
pub(super) fn failed(events: &[TransferEvent]) -> Vec<String> {
    let reason = |event: &TransferEvent| match &event.what {
        FileOutcome::Failed(reason) => Some(format!("{}: {reason}", event.name)),
        _ => None,
    };
    events.iter().filter_map(reason).collect()
}

/// Blocks that were kept, in bytes, and whether the file has changed.
pub(super) fn kept(events: &[TransferEvent]) -> Option<(u64, bool)> {
    events.iter().find_map(|event| match event.what {
        FileOutcome::Kept { bytes, changed } => Some((bytes, changed)),
        _ => None,
    })
}
