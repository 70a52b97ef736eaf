//! Arbitrary bytes as messages of transfers: whatever is read can be written, and nothing panics.
//!
//! `CLEARWAY_FUZZ_ITERATIONS` sets how many messages are tried (20 000 unless given). They are drawn from fixed seeds, so a failure can
//! be repeated.

use clearway_testing::{cases, number};
use clearway_transfer::wire::{ControlMessage, Offer};
use clearway_transfer::{BlockLayout, ContentHash, Name, Reason, ReasonKind};
use clearway_units::{Purpose, RandomStream};
use std::panic::catch_unwind;

fn iterations() -> u64 {
    number("CLEARWAY_FUZZ_ITERATIONS", cases(20_000, 100_000).into())
}

/// One message of each kind.
fn corpus() -> Vec<(u64, Vec<u8>)> {
    let digest = ContentHash::of_block(b"block");
    let reason = Reason::new(ReasonKind::Write, "No space left on device (os error 28)");
    let messages = [
        ControlMessage::Greeting {
            version: 1,
            files: 3,
            bytes: 1 << 40,
        },
        ControlMessage::Offer(Offer {
            file: 7,
            geometry: BlockLayout::for_size(5_000_000).expect("it is short"),
            modified: (1_700_000_000, 5),
            executable: true,
            name: "folder/file name".into(),
        }),
        ControlMessage::Accept {
            file: 7,
            kept: 2,
            changed: true,
        },
        ControlMessage::Have {
            file: 7,
            blocks: vec![(0, digest), (3, digest)],
        },
        ControlMessage::Refuse {
            file: 7,
            reason: reason.clone(),
        },
        ControlMessage::Again { file: 7, block: 4 },
        ControlMessage::Finish {
            file: 7,
            sent: 5,
            digest,
        },
        ControlMessage::Withdraw { file: 7, reason },
        ControlMessage::Done { file: 7 },
        ControlMessage::Written { bytes: 7 << 40 },
    ];
    messages
        .iter()
        .map(ControlMessage::encode)
        .map(|(tag, content)| (tag, content.to_vec()))
        .collect()
}

#[test]
fn messages_are_read_as_they_are_written() {
    for (tag, content) in corpus() {
        let message = ControlMessage::decode(tag, &content).expect("it is sound");
        assert_eq!(message.encode(), (tag, content.clone().into()));
        // Cut short it is another message or none.
        for end in 0..content.len() {
            assert_ne!(
                ControlMessage::decode(tag, &content[..end]),
                Some(message.clone()),
                "{end} of {message:?}"
            );
        }
    }
}

fn mutated(content: &mut Vec<u8>, tag: &mut u64, random: &mut RandomStream) {
    let place = random.below(content.len().max(1) as u32) as usize;
    match random.below(7) {
        0 => content.truncate(place),
        1 => content.extend((0..random.below(80)).map(|number| number as u8)),
        2 => *tag ^= 1 << random.below(4),
        3 => *tag ^= 1 << random.below(64),
        4 if !content.is_empty() => content[place] = 0xff,
        5 if !content.is_empty() => content[place] = 0,
        _ if !content.is_empty() => content[place] ^= 1 << random.below(8),
        _ => {}
    }
}

#[test]
fn arbitrary_bytes_do_not_panic() {
    let corpus = corpus();
    let mut sound = 0;
    for iteration in 0..iterations() {
        let mut random = RandomStream::new(iteration, Purpose::Test, 1);
        let (mut tag, mut content) = corpus[random.below(corpus.len() as u32) as usize].clone();
        for _ in 0..random.below(4) {
            mutated(&mut content, &mut tag, &mut random);
        }
        let read = catch_unwind(|| ControlMessage::decode(tag, &content));
        match read.unwrap_or_else(|_| {
            panic!("iteration {iteration} panicked on tag {tag:x}, {content:x?}")
        }) {
            None => {}
            Some(ControlMessage::Offer(offer)) => {
                sound += 1;
                // A name that is taken stays below the folder.
                if let Ok(name) = Name::new(&offer.name) {
                    assert!(
                        !name.as_str().starts_with('/')
                            && name.folders().all(|folder| folder != "..")
                    );
                }
                assert!(offer.geometry.blocks() <= 1 << 20);
            }
            Some(message) => {
                sound += 1;
                let (again, written) = message.encode();
                assert_eq!(
                    ControlMessage::decode(again, &written),
                    Some(message),
                    "iteration {iteration}"
                );
            }
        }
    }
    let tried = iterations();
    assert!(
        tried < 1000 || (sound > 0 && sound < tried),
        "{sound} of {tried} were sound"
    );
}
