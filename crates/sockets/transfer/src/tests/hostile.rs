//! Peers that break the protocol: they are found out, and what they can take is bounded.

use super::pair::{Pair, content, failed, write};
use super::sources;
use crate::blocks::{BlockLayout, ContentHash};
use crate::transfer_side::{Disk as _, TransferSide as _};
use crate::wire::{ControlMessage, Offer, Tag, VERSION};
use crate::{Reason, ReasonKind, ReceiveLimits, ReceiveStore, Receiving, Sending, Sources};
use bytes::Bytes;
use clearway_testing::Folder;
use clearway_units::{Purpose, RandomStream};
use std::fs;
use std::path::Path;

const BLOCK: u32 = 1 << 16;

fn greeting() -> (u64, Bytes) {
    let greeting = ControlMessage::Greeting {
        version: VERSION,
        files: 1,
        bytes: 10,
    };
    greeting.encode()
}

/// Greeting of a receiver.
fn hello() -> ControlMessage {
    ControlMessage::Greeting {
        version: VERSION,
        files: 0,
        bytes: 0,
    }
}

fn withdraw(file: u32) -> (u64, Bytes) {
    let reason = Reason::new(ReasonKind::Read, "");
    ControlMessage::Withdraw { file, reason }.encode()
}

fn offer(file: u32, name: &str, size: u64) -> (u64, Bytes) {
    let offer = Offer {
        file,
        geometry: BlockLayout::new(size, BLOCK).unwrap(),
        modified: (0, 0),
        executable: false,
        name: name.into(),
    };
    ControlMessage::Offer(offer).encode()
}

fn block(file: u32, block: u32, content: &[u8]) -> (u64, Bytes) {
    let whole = [&ContentHash::of_block(content).0[..], content].concat();
    (Tag::of_block(file, block), whole.into())
}

/// A receiver that carries out each job at once.
struct Receiver {
    party: Receiving,
    store: ReceiveStore,
    answers: Vec<ControlMessage>,
}

impl Receiver {
    fn new(folder: &Path) -> Self {
        Self {
            party: Receiving::new(ReceiveLimits::default()),
            store: ReceiveStore::open(folder, false).unwrap(),
            answers: Vec::new(),
        }
    }

    /// Takes messages; returns what is wrong with one of them.
    fn take(&mut self, messages: impl IntoIterator<Item = (u64, Bytes)>) -> Option<&'static str> {
        for (tag, content) in messages {
            if let Err(violation) = self.party.on_message(tag, content.to_vec()) {
                return Some(violation.0);
            }
            self.run();
        }
        None
    }

    /// Carries out what is to be done.
    fn run(&mut self) {
        while let Some(job) = self.party.poll_job() {
            let outcome = self.store.run(job);
            self.party.on_outcome(outcome);
        }
        while let Some((tag, content)) = self.party.poll_send() {
            self.answers
                .push(ControlMessage::decode(tag, &content).unwrap());
        }
        while self.party.poll_event().is_some() {}
    }
}

/// Fault of messages that follow a greeting.
fn wrong(messages: impl IntoIterator<Item = (u64, Bytes)>) -> Option<&'static str> {
    let folder = Folder::new("transfer-hostile-one");
    Receiver::new(&folder).take([greeting()].into_iter().chain(messages))
}

fn finish(file: u32, sent: u32, blocks: &[&[u8]], size: u64) -> (u64, Bytes) {
    let digests: Vec<_> = blocks
        .iter()
        .map(|block| ContentHash::of_block(block))
        .collect();
    let digest = ContentHash::of_file(BlockLayout::new(size, BLOCK).unwrap(), &digests);
    ControlMessage::Finish { file, sent, digest }.encode()
}

#[test]
fn senders_that_break_the_protocol_are_found_out() {
    let full = vec![7; BLOCK as usize];
    let two = offer(0, "x", u64::from(BLOCK) + 1);
    let wrong_tag = (0x1234, Bytes::new());
    let accept = ControlMessage::Accept {
        file: 0,
        kept: 0,
        changed: false,
    };
    let small = finish(0, 2, &[&full, b"y"], u64::from(BLOCK) + 1);
    let large = finish(0, 3, &[], 0);
    let many = (0..=1 << 4).map(|file| offer(file, &format!("{file}"), u64::from(BLOCK) << 16));
    let told = [
        wrong([greeting()]),
        wrong([wrong_tag]),
        wrong([accept.encode()]),
        wrong([two.clone(), two.clone()]),
        wrong([block(0, 0, &full)]),
        wrong([two.clone(), block(0, 2, &full)]),
        wrong([two.clone(), block(0, u32::MAX, &full)]),
        wrong([two.clone(), block(0, 1, b"yy")]),
        wrong([two.clone(), block(0, 0, &full), block(0, 0, &full)]),
        wrong([two.clone(), large]),
        wrong([two.clone(), small.clone(), small]),
        wrong([finish(5, 0, &[], 0)]),
        wrong([withdraw(9)]),
        wrong([(Tag::of_block(0, 0), Bytes::new())]),
        wrong(many),
    ];
    let expected = [
        "it greets twice",
        "a message is malformed",
        "a sender sends a message that only receivers may send",
        "it offers a file twice",
        "it sends a block of a file that it has not offered",
        "it sends a block that the file does not have",
        "it sends a block that the file does not have",
        "a block has the wrong length",
        "it sends a block twice",
        "it finishes a file before or after its time",
        "it finishes a file before or after its time",
        "it finishes a file that it has not offered",
        "it withdraws a file that it has not offered",
        "it sends a block of a file that it has not offered",
        "it offers more files or blocks at a time than it may",
    ];
    assert_eq!(told, expected.map(Some));
    let folder = Folder::new("transfer-hostile-greeting");
    assert_eq!(
        Receiver::new(&folder).take([two]),
        Some("it does not greet")
    );
}

#[test]
fn names_that_lead_elsewhere_are_refused_and_leave_nothing() {
    let folder = Folder::new("transfer-hostile-names");
    let to = folder.join("to");
    fs::create_dir(&to).unwrap();
    let mut receiver = Receiver::new(&to);
    assert_eq!(receiver.take([greeting()]), None);
    let long = "x".repeat(256);
    let names = [
        "",
        "..",
        "../x",
        "a/../../x",
        "/tmp/x",
        "a\0b",
        "./x",
        "x/",
        ".clearway-partial/x",
        "\u{1b}[2J",
        &long,
    ];
    for (file, name) in (0..).zip(names) {
        assert_eq!(receiver.take([offer(file, name, 10)]), None);
        let last = receiver.answers.pop();
        assert!(
            matches!(&last, Some(ControlMessage::Refuse { reason, .. }) if reason.kind == ReasonKind::Name),
            "{name:?}: {last:?}"
        );
    }
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&*folder).unwrap().count(), 1);
}

#[test]
fn duplicates_within_a_transfer_are_refused() {
    let folder = Folder::new("transfer-hostile-twice");
    let mut receiver = Receiver::new(&folder);
    assert_eq!(
        receiver.take([
            greeting(),
            offer(0, "x", 0),
            finish(0, 0, &[], 0),
            offer(1, "x", 0)
        ]),
        None
    );
    assert!(
        matches!(&receiver.answers[2], ControlMessage::Done { file: 0 }),
        "{:?}",
        receiver.answers
    );
    let last = receiver.answers.pop();
    assert!(
        matches!(last, Some(ControlMessage::Refuse { reason, .. }) if reason.kind == ReasonKind::Exists)
    );
}

#[test]
fn a_file_that_is_not_what_its_digest_says_gets_no_name() {
    let folder = Folder::new("transfer-hostile-digest");
    let mut receiver = Receiver::new(&folder);
    let messages = [
        greeting(),
        offer(0, "x", 1),
        block(0, 0, b"a"),
        finish(0, 1, &[b"b"], 1),
    ];
    assert_eq!(receiver.take(messages), None);
    // Blocks that were announced, but never came.
    let messages = [offer(1, "y", 1), finish(1, 0, &[b"b"], 1)];
    assert_eq!(receiver.take(messages), None);
    let refused = |message: &&ControlMessage| match message {
        ControlMessage::Refuse { reason, .. } => reason.kind == ReasonKind::Content,
        _ => false,
    };
    assert_eq!(
        receiver.answers.iter().filter(refused).count(),
        2,
        "{:?}",
        receiver.answers
    );
    assert!(!folder.join("x").exists() && !folder.join("y").exists());
}

#[test]
fn a_size_that_lies_takes_no_room() {
    let folder = Folder::new("transfer-hostile-size");
    let mut receiver = Receiver::new(&folder);
    let full = vec![7; BLOCK as usize];
    // 64 GiB, of which the last block comes.
    let messages = [
        greeting(),
        offer(0, "x", 1 << 36),
        block(0, (1 << 20) - 1, &full),
    ];
    assert_eq!(receiver.take(messages), None);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let entries = fs::read_dir(folder.join(".clearway-partial")).unwrap();
        let blocks: u64 = entries
            .map(|entry| entry.unwrap().metadata().unwrap().blocks())
            .sum();
        assert!(blocks * 512 < 1 << 20, "{blocks} blocks of the disk");
    }
    assert!(!folder.join("x").exists());
}

#[test]
fn receivers_that_break_the_protocol_are_found_out() {
    let folder = Folder::new("transfer-hostile-receiver");
    write(&folder.join("from"), &content(3 << 20, 1));
    let sources = Sources::find(&[folder.join("from")]).unwrap();
    let told = |messages: Vec<ControlMessage>| {
        let mut sending = sources.sending();
        for message in messages {
            let (tag, content) = message.encode();
            if let Err(violation) = sending.on_message(tag, content.to_vec()) {
                return Some(violation.0);
            }
            while let Some(job) = sending.poll_job() {
                let outcome = sources.run(job);
                sending.on_outcome(outcome);
            }
            while sending.poll_send().is_some() {}
        }
        None
    };
    let hello = hello();
    let other = ControlMessage::Greeting {
        version: VERSION + 1,
        files: 0,
        bytes: 0,
    };
    let accept = |kept| ControlMessage::Accept {
        file: 0,
        kept,
        changed: false,
    };
    let have = |block| ControlMessage::Have {
        file: 0,
        blocks: vec![(block, ContentHash::default())],
    };
    let again = ControlMessage::Again { file: 0, block: 2 };
    let cases = [
        told(vec![other]),
        told(vec![hello.clone(), hello.clone()]),
        told(vec![hello.clone(), accept(4)]),
        told(vec![hello.clone(), accept(0), accept(0)]),
        told(vec![hello.clone(), accept(1), have(3)]),
        told(vec![hello.clone(), accept(2), have(1), have(1)]),
        told(vec![hello.clone(), accept(0), have(1)]),
        told(vec![hello.clone(), have(1), accept(0)]),
        told(vec![hello.clone(), accept(3), again.clone()]),
        told([vec![hello.clone(), accept(0)], vec![again; 1001]].concat()),
        told(vec![hello.clone(), ControlMessage::Done { file: 0 }]),
        told(vec![hello.clone(), ControlMessage::Done { file: 9 }]),
        told(vec![hello.clone(), ControlMessage::Written { bytes: 1 }]),
        told(vec![
            hello,
            ControlMessage::Finish {
                file: 0,
                sent: 0,
                digest: ContentHash::default(),
            },
        ]),
    ];
    let expected = [
        "it speaks another version of transfers",
        "it greets twice",
        "it claims more blocks than the file has",
        "it accepts a file twice",
        "it claims a block that the file does not have, or claims a block twice",
        "it claims a block that the file does not have, or claims a block twice",
        "it has sent more digests than it has blocks",
        "it has sent more digests than it has blocks",
        "it wants a block again that was not sent, or too many",
        "it wants a block again that was not sent, or too many",
        "it is done with a file that was not finished",
        "it is done with a file that was not offered",
        "it has written more than was sent",
        "a receiver sends a message that only senders may send",
    ];
    assert_eq!(cases, expected.map(Some));
}

#[test]
fn messages_that_the_end_of_a_file_has_overtaken_are_no_fault() {
    let folder = Folder::new("transfer-hostile-overtaken");
    write(&folder.join("from"), &content(3 << 20, 1));
    let sources = Sources::find(&[folder.join("from")]).unwrap();
    let reason = Reason::new(ReasonKind::Write, "");
    let refuse = ControlMessage::Refuse { file: 0, reason };
    let accept = ControlMessage::Accept {
        file: 0,
        kept: 2,
        changed: false,
    };
    let have = ControlMessage::Have {
        file: 0,
        blocks: vec![(1, ContentHash::default())],
    };
    let again = ControlMessage::Again { file: 0, block: 2 };
    for late in [
        accept,
        have,
        again,
        refuse.clone(),
        ControlMessage::Done { file: 0 },
    ] {
        let mut sending = sources.sending();
        for message in [hello(), refuse.clone(), late.clone()] {
            let (tag, content) = message.encode();
            assert_eq!(
                sending.on_message(tag, content.to_vec()),
                Ok(()),
                "{late:?}"
            );
            while let Some(job) = sending.poll_job() {
                sending.on_outcome(sources.run(job));
            }
            while sending.poll_send().is_some() {}
        }
        assert!(sending.is_over(), "{late:?}");
    }
}

#[test]
fn files_that_are_withdrawn_count_until_they_are_closed() {
    let folder = Folder::new("transfer-hostile-withdrawn");
    let mut party = Receiving::new(ReceiveLimits::default());
    let store = ReceiveStore::open(&folder, false).unwrap();
    let take = |party: &mut Receiving, (tag, content): (u64, Bytes)| {
        party
            .on_message(tag, content.to_vec())
            .map_err(|fault| fault.0)
    };
    take(&mut party, greeting()).unwrap();
    while party.poll_send().is_some() {}
    for file in 0..32 {
        take(&mut party, offer(file, &format!("{file}"), 1)).unwrap();
    }
    let begins: Vec<_> = std::iter::from_fn(|| party.poll_job()).collect();
    assert_eq!(begins.len(), 32);
    // One of them has a block that waits for the disk.
    let mut begins = begins.into_iter();
    party.on_outcome(store.run(begins.next().unwrap()));
    take(&mut party, block(0, 0, b"x")).unwrap();
    while party.poll_send().is_some() {}
    for file in 0..32 {
        take(&mut party, withdraw(file)).unwrap();
    }
    assert_eq!(party.poll_send(), None);
    let fault = "it offers more files or blocks at a time than it may";
    let next = offer(32, "32", 1);
    // The disk has begun some, closed none, and lastly closed all.
    let mut jobs: Vec<_> = begins.collect();
    jobs.extend(std::iter::from_fn(|| party.poll_job()));
    assert_eq!(jobs.len(), 32);
    for job in jobs {
        assert_eq!(party.poll_send(), None);
        party.on_outcome(store.run(job));
    }
    let mut early = Receiving::new(ReceiveLimits::default());
    take(&mut early, greeting()).unwrap();
    for file in 0..32 {
        take(&mut early, offer(file, &format!("{file}"), 1)).unwrap();
        take(&mut early, withdraw(file)).unwrap();
    }
    assert_eq!(take(&mut early, next.clone()), Err(fault));
    let closes: Vec<_> = std::iter::from_fn(|| party.poll_job()).collect();
    assert_eq!(closes.len(), 32);
    for job in closes {
        party.on_outcome(store.run(job));
    }
    assert_eq!(std::iter::from_fn(|| party.poll_send()).count(), 32);
    assert_eq!(take(&mut party, next), Ok(()));
}

/// A message of any kind, with small numbers, so that many of them fit together.
fn any_message(random: &mut RandomStream) -> (u64, Bytes) {
    let file = random.below(3);
    let number = random.below(4);
    let digest = ContentHash::of_block(&[number as u8; 5]);
    let reason = Reason::new(ReasonKind::Read, "");
    match random.below(14) {
        0 => greeting(),
        1 | 2 => offer(
            file,
            ["x", "y/z", "..", "x/y"][number as usize],
            u64::from(random.below(3)) * 5 + u64::from(number) * u64::from(BLOCK),
        ),
        3..6 => block(
            file,
            number,
            &vec![number as u8; [5, 10, BLOCK as usize][random.below(3) as usize]],
        ),
        6 => ControlMessage::Finish {
            file,
            sent: number,
            digest,
        }
        .encode(),
        7 => ControlMessage::Withdraw { file, reason }.encode(),
        8 => ControlMessage::Accept {
            file,
            kept: number,
            changed: true,
        }
        .encode(),
        9 => ControlMessage::Have {
            file,
            blocks: vec![(number, digest)],
        }
        .encode(),
        10 => ControlMessage::Again {
            file,
            block: number,
        }
        .encode(),
        11 => ControlMessage::Written {
            bytes: u64::from(number) << 20,
        }
        .encode(),
        _ if number == 0 => ControlMessage::Refuse { file, reason }.encode(),
        _ => ControlMessage::Done { file }.encode(),
    }
}

#[test]
fn no_sequence_of_messages_makes_a_side_panic() {
    let folder = Folder::new("transfer-hostile-any");
    fs::create_dir_all(folder.join("to")).unwrap();
    write(&folder.join("from/a"), &content(100, 1));
    write(&folder.join("from/b"), &content(3 << 20, 1));
    let sources = Sources::find(&sources(&folder)).unwrap();
    let mut violations = 0;
    for seed in 0..1000 {
        let mut random = RandomStream::new(seed, Purpose::Test, 4);
        let mut receiving = Receiving::new(ReceiveLimits::default());
        let mut sending: Sending = sources.sending();
        let store = ReceiveStore::open(&folder.join("to"), random.below(2) == 0).unwrap();
        receiving
            .on_message(greeting().0, greeting().1.to_vec())
            .unwrap();
        sending
            .on_message(greeting().0, greeting().1.to_vec())
            .unwrap();
        let (mut jobs, mut others) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            let (tag, content) = any_message(&mut random);
            let ends = match seed % 2 {
                0 => receiving.on_message(tag, content.to_vec()),
                _ => sending.on_message(tag, content.to_vec()),
            };
            if ends.is_err() {
                violations += 1;
                break;
            }
            jobs.extend(std::iter::from_fn(|| receiving.poll_job()));
            others.extend(std::iter::from_fn(|| sending.poll_job()));
            while random.below(3) > 0 && !jobs.is_empty() {
                let job = jobs.swap_remove(random.below(jobs.len() as u32) as usize);
                receiving.on_outcome(store.run(job));
            }
            while random.below(3) > 0 && !others.is_empty() {
                let job = others.swap_remove(random.below(others.len() as u32) as usize);
                sending.on_outcome(sources.run(job));
            }
            let answers = std::iter::from_fn(|| receiving.poll_send()).count();
            assert!(answers < 300);
            while sending.poll_send().is_some() && random.below(4) > 0 {}
        }
        assert!(receiving.unfinished().count() <= 3);
    }
    assert!(violations > 50, "{violations}");
    let below: Vec<_> = fs::read_dir(&*folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(below.len(), 2, "{below:?}");
}

#[test]
fn a_message_that_was_forged_on_its_way_ends_a_transfer_or_changes_nothing() {
    let folder = Folder::new("transfer-hostile-forged");
    write(&folder.join("from"), &content(3 << 20, 1));
    let mut completed = 0;
    for seed in 0..30 {
        let to = folder.join(format!("to-{seed}"));
        let mut pair = Pair::new(&sources(&folder), &to, seed);
        let mut random = RandomStream::new(seed, Purpose::Test, 5);
        pair.damage = Box::new(move |tag, content| {
            let at = random.below(40) as usize;
            if random.below(4) == 0 && content.len() > at {
                content[at] ^= 1 << random.below(8);
            } else if random.below(8) == 0 {
                *tag ^= 1 << random.below(4);
            }
        });
        let run = pair.run_for(2000);
        // Sizes, times and names have no digest: without encryption whoever changes them has his way.
        for entry in fs::read_dir(&to).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                assert!(
                    fs::read(&path).unwrap() == content(3 << 20, 1),
                    "seed {seed}: {run:?} {path:?}"
                );
                completed += 1;
            }
        }
        assert!(failed(&pair.events[1]).len() <= 2);
    }
    assert!(completed > 0);
}

#[test]
fn a_finish_that_comes_before_its_time_waits_for_the_disk() {
    let folder = Folder::new("transfer-hostile-early");
    // A block is still on its way to the disk when the sender says that it has sent none.
    let mut receiver = Receiver::new(&folder);
    assert_eq!(receiver.take([greeting(), offer(0, "x", 1)]), None);
    let messages = [block(0, 0, b"y"), finish(0, 0, &[b"y"], 1)];
    for (tag, content) in messages {
        assert!(receiver.party.on_message(tag, content.to_vec()).is_ok());
    }
    assert_eq!(receiver.take([]), None);
    receiver.run();
    assert!(!folder.path().join("x").exists());
    // What is there already is still being read when the sender finishes.
    fs::write(folder.path().join("z"), b"z").unwrap();
    let (tag, content) = offer(1, "z", 1);
    assert!(receiver.party.on_message(tag, content.to_vec()).is_ok());
    let begin = receiver.party.poll_job().expect("it is begun");
    let outcome = receiver.store.run(begin);
    receiver.party.on_outcome(outcome);
    let check = receiver.party.poll_job().expect("it is checked");
    let (tag, content) = finish(1, 0, &[b"z"], 1);
    assert!(receiver.party.on_message(tag, content.to_vec()).is_ok());
    let outcome = receiver.store.run(check);
    receiver.party.on_outcome(outcome);
    receiver.run();
    assert_eq!(fs::read(folder.path().join("z")).unwrap(), b"z");
}
