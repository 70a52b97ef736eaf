//! Tests of all collectives together, then of each one.

mod hierarchical;
mod interface;
mod mutations;
mod oracle;
mod proofs;
mod shapes;

use super::*;
use clearway_units::{Bytes, Parameter as _, Value};

/// Settings that change the messages, tried with every collective that has them.
fn other_settings() -> Vec<(&'static str, Value)> {
    let text = |text: &str| Value::Text(text.into());
    vec![
        ("first-partner", text("near")),
        ("barrier", text("global")),
        ("server-role", text("worker")),
        ("shape", text("binomial")),
        ("root", Value::Integer(1)),
        ("server", Value::Integer(0)),
        ("reduction-rate", text("100Gbps")),
        ("window", Value::Integer(2)),
        ("channels", Value::Integer(3)),
    ]
}

/// Every collective with its defaults but for size and chunk.
fn every_kind(size: u64, chunk: u64) -> Vec<CollectiveSettings> {
    let kinds = CollectiveSettings::KINDS.iter();
    let named = |kind: &CollectiveKind| {
        let mut settings = CollectiveSettings::named(kind.operation, kind.algorithm).unwrap();
        let bytes = |bytes| Bytes::new(bytes).to_value();
        settings.set("size", &bytes(size)).unwrap();
        settings.set("chunk", &bytes(chunk)).unwrap();
        settings
    };
    kinds.map(named).collect()
}

/// Every collective with each of its other settings, one at a time.
fn every_variant(size: u64, chunk: u64) -> Vec<CollectiveSettings> {
    let mut variants = Vec::new();
    for settings in every_kind(size, chunk) {
        for (key, value) in other_settings() {
            let mut settings = settings.clone();
            if settings.set(key, &value).is_ok() {
                variants.push(settings);
            }
        }
    }
    variants
}

fn name(settings: &CollectiveSettings, ranks: u32) -> String {
    let kind = settings.kind();
    let entries: Vec<String> = settings
        .entries()
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    let entries = entries.join(", ");
    format!(
        "{} {} of {ranks} ranks, {entries}",
        kind.algorithm, kind.operation
    )
}

fn ring(ranks: u32, size: u64, chunk: u64) -> Collective {
    let mut settings = RingAllReduceSettings {
        size: Bytes::new(size),
        ..Default::default()
    };
    settings.pipelining.chunk = Bytes::new(chunk);
    settings.build(ranks).unwrap()
}
