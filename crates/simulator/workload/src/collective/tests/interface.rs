//! Names, settings, errors and factors.

use super::*;
use insta::assert_snapshot;
use std::collections::BTreeSet;

#[test]
fn every_collective_is_registered_and_described() {
    let kinds = CollectiveSettings::KINDS;
    let names = kinds.iter().map(|kind| (kind.operation, kind.algorithm));
    assert_eq!(names.collect::<BTreeSet<_>>().len(), kinds.len());
    for kind in kinds {
        let mut settings = CollectiveSettings::named(kind.operation, kind.algorithm).unwrap();
        assert_eq!(settings.kind(), *kind);
        assert!(!kind.summary.is_empty());
        let described = settings.describe();
        let defaults: Vec<_> = described
            .iter()
            .map(|info| (info.key, info.default.clone()))
            .collect();
        assert_eq!(settings.entries(), defaults);
        for (key, value) in defaults {
            settings.set(key, &value).unwrap();
        }
        assert_eq!(
            settings.set("speed", &Value::Integer(1)),
            Err(clearway_units::SetError::UnknownKey)
        );
        let default = CollectiveSettings::default_of(kind.operation).unwrap();
        assert_eq!(default.kind().operation, kind.operation);
    }
    let all_reduce = CollectiveSettings::default_of("all-reduce").unwrap();
    assert_eq!(all_reduce.kind().algorithm, "ring");
    assert_eq!(CollectiveSettings::default_of("all-for-one"), None);
    assert_eq!(CollectiveSettings::named("all-to-all", "ring"), None);
}

fn error(names: (&str, &str), values: &[(&str, Value)], ranks: u32) -> String {
    let mut settings = CollectiveSettings::named(names.0, names.1).unwrap();
    for (key, value) in values {
        settings.set(key, value).unwrap();
    }
    let error = settings.build(ranks).unwrap_err();
    format!("{error} ({})", error.fix)
}

#[test]
fn what_no_collective_can_do_is_refused_by_all() {
    for kind in CollectiveSettings::KINDS {
        let names = (kind.operation, kind.algorithm);
        for ranks in [0, 1] {
            assert!(error(names, &[], ranks).contains("ranks or more"));
        }
        let zero = Value::Integer(0);
        let zero = |key| error(names, &[(key, zero.clone())], 4);
        assert!(zero("size").starts_with("`size` of "));
        assert!(zero("chunk").starts_with("`chunk` of "));
        assert!(zero("window").starts_with("`window` of "));
        // Found at once, not when the memory is full.
        assert!(error(names, &[], u32::MAX).contains("ranks)"));
        let huge = [("size", Value::Text("18446744073709551615B".into()))];
        assert!(error(names, &huge, 1000).starts_with("`size` of "));
    }
}

#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    let ring = ("all-reduce", "ring");
    let integer = Value::Integer;
    assert_snapshot!(error(ring, &[], 1), @"the ring all-reduce: one rank has nobody to exchange data with (take 2 ranks or more)");
    assert_snapshot!(error(ring, &[("size", integer(0))], 4), @r#"`size` of the ring all-reduce: a buffer without bytes (write a size of at least one byte, as in "128MB")"#);
    assert_snapshot!(error(ring, &[("chunk", integer(0))], 4), @r#"`chunk` of the ring all-reduce: a chunk carries no bytes (write a size of at least one byte, as in "128KiB")"#);
    assert_snapshot!(error(ring, &[("window", integer(0))], 4), @r#"`window` of the ring all-reduce: a window of no messages (write how many messages may be in flight, or "auto" for no limit)"#);
    assert_snapshot!(error(ring, &[("chunk", Value::Text("1B".into()))], 32), @"`chunk` of the ring all-reduce: up to 7936001984 messages, but 33554432 are the most that a collective may have (write a chunk of 1KiB or more, or a size of 541168B at most)");
    assert_snapshot!(error(("all-to-all", "direct"), &[("parallelism", integer(0))], 4), @r#"`parallelism` of the direct all-to-all: a parallelism of zero lets no message pass (write how many messages may be in flight, or "auto" for no limit)"#);
    assert_snapshot!(error(("all-to-all", "direct"), &[], 100_000), @"the direct all-to-all: up to 9999900000 messages, but 33554432 are the most that a collective may have (take fewer ranks)");
    assert_snapshot!(error(("broadcast", "chain"), &[("root", integer(4))], 4), @"`root` of the chain broadcast: rank 4, but there are 4 ranks (write a rank from 0 to 3)");
    assert_snapshot!(error(("all-reduce", "parameter-server"), &[("server", integer(9))], 4), @"`server` of the parameter-server all-reduce: rank 9, but there are 4 ranks (write a rank from 0 to 3)");
}

#[test]
fn the_limit_on_messages_says_what_is_within_it() {
    for reduction in ["auto", "100Gbps"] {
        let of = |size: &str, chunk: &str| {
            let mut settings = CollectiveSettings::named("all-reduce", "ring").unwrap();
            for (key, value) in [
                ("size", size),
                ("chunk", chunk),
                ("reduction-rate", reduction),
            ] {
                settings.set(key, &Value::Text(value.into())).unwrap();
            }
            settings.build(16).map_err(|error| error.fix)
        };
        let fix = of("1TB", "128KiB").unwrap_err();
        let words: Vec<&str> = fix.split(' ').collect();
        let (chunk, size) = (words[4], words[11]);
        // The fix names the smallest chunk and the largest size that fit. A graph of so many messages takes too long to build here.
        let kib: u64 = chunk.strip_suffix("KiB").unwrap().parse().unwrap();
        assert!(of("1TB", &format!("{}KiB", kib - 1)).is_err(), "{fix}");
        let (steps, bytes) = (30, 1_000_000_000_000);
        let tasks = if reduction == "auto" { 1 } else { 2 };
        let most = crate::graph::MOST_TASKS / tasks - 16 * steps;
        assert!(steps * bytes / (kib * 1024) <= most, "{fix}");
        let size: Bytes = size.parse().unwrap();
        assert!(steps * size.as_u64() / 131_072 <= most, "{fix}");
        assert!(size.as_u64() > most / steps * 131_000, "{fix}");
    }
}

#[test]
fn bus_factors_are_those_of_nccl_tests() {
    for settings in every_kind(1000, 100) {
        let factor = settings.build(8).unwrap().bus_factor();
        let expected = match (settings.kind().operation, settings.kind().algorithm) {
            // The bus factor of the seven workers.
            ("all-reduce", "parameter-server") => 2.0 * 6.0 / 7.0,
            ("all-reduce", _) => 2.0 * 7.0 / 8.0,
            ("broadcast", _) => 1.0,
            _ => 7.0 / 8.0,
        };
        assert_eq!(factor, expected, "{}", name(&settings, 8));
    }
}
