//! Every collective achieves what it is for, in every order that its dependencies leave open.

use super::*;

fn prove(settings: &CollectiveSettings, ranks: u32) {
    let collective = settings.build(ranks).unwrap();
    if let Err(fault) = collective.verify() {
        panic!("{}: {fault}", name(settings, ranks));
    }
    for (_, task) in collective.graph.numbered() {
        if let Task::Message { bytes, .. } = task {
            assert!(bytes > Bytes::ZERO && bytes <= collective.size);
        }
    }
}

#[test]
fn every_collective_of_2_to_64_ranks_is_correct() {
    for ranks in 2..=64 {
        let n = u64::from(ranks);
        // Blocks of whole chunks; odd ones of one to three chunks; less than one byte for each rank.
        for (size, chunk) in [(n * 24, 12), (n * 7 + n / 2 + 1, 3), (n / 2, 1)] {
            for settings in every_kind(size, chunk) {
                prove(&settings, ranks);
            }
        }
    }
}

#[test]
fn every_variant_of_2_to_64_ranks_is_correct() {
    for ranks in 2..=64 {
        let n = u64::from(ranks);
        for settings in every_variant(n + n / 2 + 1, 2) {
            prove(&settings, ranks);
        }
    }
}

#[test]
fn one_byte_and_one_chunk_are_enough() {
    for ranks in [2, 3, 7, 8, 33] {
        for (size, chunk) in [(1, 1), (1, 131_072), (1_000_003, 131_072)] {
            for settings in [every_kind(size, chunk), every_variant(size, chunk)].concat() {
                prove(&settings, ranks);
            }
        }
    }
}

#[test]
fn a_hundred_ranks_need_more_than_one_word() {
    for settings in every_kind(1000, 64) {
        prove(&settings, 100);
    }
}

#[test]
fn the_defaults_of_32_ranks_are_correct() {
    for kind in CollectiveSettings::KINDS {
        prove(
            &CollectiveSettings::named(kind.operation, kind.algorithm).unwrap(),
            32,
        );
    }
}
