//! Every collective achieves its operation, in every order that its dependencies leave open.

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

/// Nodes of `of_node` ranks each, in pairs that share a run of ranks: one has its even, the other its odd ranks.
fn nodes(nodes: u32, of_node: u32) -> Layout {
    let ranks = nodes * of_node;
    let node = |rank: u32| match rank / (2 * of_node) * 2 * of_node + 2 * of_node <= ranks {
        true => rank / (2 * of_node) * 2 + rank % 2,
        false => rank / of_node,
    };
    Layout::of_nodes(&(0..ranks).map(node).collect::<Vec<_>>())
}

#[test]
fn every_collective_is_correct_over_channels() {
    for (count, of_node) in [(2, 2), (3, 2), (2, 3), (5, 3), (4, 8)] {
        let layout = nodes(count, of_node);
        assert_eq!(layout.ranks_per_node(), of_node);
        let ranks = layout.ranks();
        let n = u64::from(ranks);
        for (size, chunk) in [(n * 24, 2), (n * 7 + n / 2 + 1, 3), (n / 2, 1), (1, 1)] {
            let all = [every_kind(size, chunk), every_variant(size, chunk)].concat();
            for settings in all {
                let collective = settings.build_on(&layout).unwrap();
                if let Err(fault) = collective.verify() {
                    panic!("{} on {layout:?}: {fault}", name(&settings, ranks));
                }
                assert_eq!(collective.size, Bytes::new(size));
            }
        }
    }
}

/// NICs of a node carry the same each, together as much as one ring over all ranks sends over one.
#[test]
fn channels_share_what_leaves_a_node() {
    let layout = nodes(4, 8);
    let node = |rank: Rank| rank.0 / 16 * 2 + rank.0 % 2;
    for kind in ["ring", "double-binary-tree"] {
        let mut settings = CollectiveSettings::named("all-reduce", kind).unwrap();
        let size = Bytes::new(32 * 8 * 1000);
        settings.set("size", &size.to_value()).unwrap();
        settings.set("chunk", &Bytes::new(500).to_value()).unwrap();
        let leaving = |collective: &Collective| {
            let mut leaving = vec![0u64; 32];
            for (_, task) in collective.graph.numbered() {
                if let Task::Message { src, dst, bytes } = task
                    && node(src) != node(dst)
                {
                    leaving[src.index()] += bytes.as_u64();
                }
            }
            leaving
        };
        let shared = leaving(&settings.build_on(&layout).unwrap());
        settings.set("channels", &Value::Integer(1)).unwrap();
        let alone = leaving(&settings.build_on(&layout).unwrap());
        let (most, most_alone) = (shared.iter().max(), alone.iter().max());
        let (most, most_alone) = (*most.unwrap(), *most_alone.unwrap());
        assert!(shared.iter().all(|bytes| *bytes > 0), "{kind}: {shared:?}");
        assert!(8 * most <= 3 * most_alone, "{kind}: {shared:?} {alone:?}");
        if kind == "ring" {
            assert_eq!(shared.iter().min(), Some(&most), "{shared:?}");
            assert_eq!(8 * most, most_alone, "{shared:?} {alone:?}");
        }
    }
}
