//! Requests, sizes and parts of key-value caches, and faults.

use super::*;
use crate::generate::sample::{context, settings, text};
use clearway_units::Value;
use clearway_workload::Start;
use insta::assert_snapshot;

fn number(number: i64) -> Value {
    Value::Integer(number)
}

fn flows(values: &[(&str, Value)], hosts: u32) -> Vec<FlowSpec> {
    let loaded = settings("kv-transfer", values).load(&context(hosts));
    loaded.unwrap().workload.flows
}

fn error(values: &[(&str, Value)], hosts: u32) -> String {
    let loaded = settings("kv-transfer", values).load(&context(hosts));
    loaded.unwrap_err().to_string()
}

fn at(flow: &FlowSpec) -> Time {
    match flow.start {
        Start::At(time) => time,
        start => panic!("{start:?}"),
    }
}

/// Llama 3 70B: a key and a value of 2 bytes in 80 layers, 8 heads, 128 dimensions.
#[test]
fn a_token_of_llama_3_70b_has_320_kib() {
    assert_eq!(KvTransferSettings::default().bytes_per_token(), 327_680);
    let all = flows(&[("prompt-sigma", number(0)), ("duration", text("1s"))], 8);
    assert!(all.len() > 10);
    assert!(
        all.iter()
            .all(|flow| flow.bytes == Bytes::new(1020 * 327_680))
    );
}

#[test]
fn requests_go_from_prefill_to_decode_hosts() {
    let values = [
        ("prefill", number(3)),
        ("decode", number(4)),
        ("rate", number(10_000)),
        ("duration", text("100ms")),
        ("start", text("5ms")),
    ];
    let all = flows(&values, 10);
    let hosts = |end: fn(&FlowSpec) -> HostId| {
        let mut hosts: Vec<u32> = all.iter().map(|flow| end(flow).0).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    };
    assert_eq!(hosts(|flow| flow.src), [0, 1, 2]);
    assert_eq!(hosts(|flow| flow.dst), [3, 4, 5, 6]);
    // A mean of 1000, plus or minus four standard deviations.
    assert!((875..=1125).contains(&all.len()), "{}", all.len());
    let within = Time::from_us(5_000)..Time::from_us(105_000);
    assert!(all.iter().all(|flow| within.contains(&at(flow))));
    assert!(all.is_sorted_by_key(at));
    assert!((1..).zip(&all).all(|(label, flow)| flow.label == label));
}

#[test]
fn the_load_is_what_prefill_hosts_offer() {
    let values = [
        ("load", Value::Float(0.5)),
        ("duration", text("20s")),
        ("kv-heads", number(1)),
    ];
    let all = flows(&values, 16);
    let bits: f64 = all.iter().map(|flow| 8.0 * flow.bytes.as_f64()).sum();
    let load = bits / (8.0 * 100e9 * 20.0);
    assert!((load - 0.5).abs() < 0.01, "{load}");
}

/// The parts of a cache add up to the whole cache. Each part is sent when its layers are computed.
#[test]
fn layers_are_sent_when_they_are_computed() {
    let usual = [
        ("duration", text("500ms")),
        ("prefill-per-token", text("10us")),
    ];
    let whole = flows(&usual, 4);
    let parts = flows(&[&usual[..], &[("chunks", number(3))]].concat(), 4);
    assert_eq!(parts.len(), 3 * whole.len());
    for flow in &whole {
        let tokens = flow.bytes.as_u64() / 327_680;
        assert_eq!(flow.bytes.as_u64() % 327_680, 0);
        let own = |part: &&FlowSpec| {
            let (end, prefill) = (at(flow).as_ps(), tokens * 10_000_000);
            let layers = part.bytes.as_u64() / (tokens * 4096);
            let done = [26, 53, 80].map(|done| end - prefill + prefill * done / 80);
            part.src == flow.src
                && part.dst == flow.dst
                && [26, 27].contains(&layers)
                && done.contains(&at(part).as_ps())
        };
        let own: Vec<&FlowSpec> = parts.iter().filter(own).collect();
        assert_eq!(own.len(), 3);
        let bytes: u64 = own.iter().map(|part| part.bytes.as_u64()).sum();
        assert_eq!(bytes, flow.bytes.as_u64());
    }
}

#[test]
fn requests_of_a_host_are_its_own() {
    let short = flows(&[("duration", text("200ms"))], 8);
    let long = flows(&[("duration", text("400ms"))], 8);
    let same = |a: &FlowSpec, b: &FlowSpec| {
        (a.src, a.dst, a.bytes, a.start) == (b.src, b.dst, b.bytes, b.start)
    };
    assert!(short.iter().zip(&long).all(|(a, b)| same(a, b)));
    assert!(long.len() > short.len());
}

#[test]
fn settings_without_effect_are_warned_of() {
    let values = [
        ("chunks", number(4)),
        ("rate", number(5000)),
        ("load", Value::Float(0.2)),
    ];
    let loaded = settings("kv-transfer", &values).load(&context(8)).unwrap();
    assert_eq!(
        loaded.setting_warnings,
        [
            "the 4 `chunks` of a cache start together, because `prefill-per-token` is zero",
            "`rate` takes the place of `load`",
        ]
    );
}

#[test]
fn faults_name_the_key_and_the_fix() {
    assert_snapshot!(error(&[("prefill", number(8))], 8), @"
    `prefill` of the kv-transfer workload: 8 prefill hosts, but the topology has 8 hosts
      fix: write 1 or more, and leave hosts that decode
    ");
    assert_snapshot!(error(&[("prefill", number(6)), ("decode", number(3))], 8), @r#"
    `decode` of the kv-transfer workload: 3 decode hosts after 6 prefill hosts, but the topology has 8 hosts
      fix: write a number from 1 to 2, or "auto"
    "#);
    assert_snapshot!(error(&[], 1), @"
    `prefill` of the kv-transfer workload: 0 prefill hosts, but the topology has 1 hosts
      fix: write 1 or more, and leave hosts that decode
    ");
    assert_snapshot!(error(&[("load", Value::Float(1.5))], 8), @"
    `load` of the kv-transfer workload: a load of 1.5
      fix: write a share of the rate of a NIC above 0 and at most 1, as in 0.1
    ");
    assert_snapshot!(error(&[("rate", Value::Float(0.0))], 8), @r#"
    `rate` of the kv-transfer workload: no requests
      fix: write a number above 0, or "auto"
    "#);
    assert_snapshot!(error(&[("rate", Value::Float(1e300))], 8), @"
    `rate` of the kv-transfer workload: 1e300 requests a second
      fix: let requests come to each prefill host at least 1ns apart on average
    ");
    assert_snapshot!(error(&[("rate", Value::Float(4e9))], 8), @"
    `duration` of the kv-transfer workload: about 4.0e7 requests in 10ms, in 1 parts each
      fix: choose a shorter duration, a lower `load` or `rate`, or fewer `chunks`: 2000000 flows are the most
    ");
    assert_snapshot!(error(&[("rate", Value::Float(1e9))], 8), @"
    `duration` of the kv-transfer workload: about 1.0e7 requests in 10ms, in 1 parts each
      fix: choose a shorter duration, a lower `load` or `rate`, or fewer `chunks`: 2000000 flows are the most
    ");
    assert_snapshot!(error(&[("layers", number(1)), ("head-dim", number(1)), ("prompt-most", number(1)), ("kv-heads", number(1)), ("load", number(1))], 8), @"
    `load` of the kv-transfer workload: a load of 1 by such small caches
      fix: let requests come to each prefill host at least 1ns apart on average
    ");
    assert_snapshot!(error(&[("rate", Value::Float(1e-300)), ("duration", text("10ms"))], 8), @"
    `duration` of the kv-transfer workload: no request happens to come within 10ms
      fix: choose a longer duration, a higher `load` or another seed
    ");
    assert_snapshot!(error(&[("chunks", number(81))], 8), @"
    `chunks` of the kv-transfer workload: 81 chunks of 80 layers
      fix: choose at most as many as there are `layers`
    ");
    assert_snapshot!(error(&[("prompt-sigma", number(5))], 8), @"
    `prompt-sigma` of the kv-transfer workload: a standard deviation of 5
      fix: write a number from 0 to 4
    ");
    assert_snapshot!(error(&[("prompt-median", number(4_000_000_000)), ("prompt-most", number(4_294_967_295))], 8), @"
    `prompt-most` of the kv-transfer workload: a prompt of 4294967295 tokens of 327680 B each makes more than 1000GB
      fix: choose 3051757 at most, or a smaller model
    ");
    assert_snapshot!(error(&[("prefill-per-token", text("2592000s"))], 8), @"
    `prefill-per-token` of the kv-transfer workload: 5870 tokens, each for 2592000s
      fix: let the longest prompt take at most 2592000s (30 days)
    ");
    assert_snapshot!(error(&[("prompts", text("none.txt"))], 8), @"
    `prompts` of the kv-transfer workload: there is no file `none.txt`
      fix: name a file that exists
    ");
    assert_snapshot!(error(&[("duration", text("1ps"))], 8), @"
    `duration` of the kv-transfer workload: no request happens to come within 1ps
      fix: choose a longer duration, a higher `load` or another seed
    ");
}
