//! Jobs of mixture-of-experts layers: sizes, streams, faults.

use super::*;
use crate::generate::sample::{context, settings, text};
use clearway_units::Value;
use clearway_workload::JobSpec;
use clearway_workload::graph::Task;
use insta::assert_snapshot;

fn number(number: i64) -> Value {
    Value::Integer(number)
}

fn jobs(values: &[(&str, Value)], hosts: u32) -> Vec<JobSpec> {
    settings("moe", values).load(&context(hosts)).unwrap().jobs
}

fn error(values: &[(&str, Value)], hosts: u32) -> String {
    let loaded = settings("moe", values).load(&context(hosts));
    loaded.unwrap_err().to_string()
}

/// Bytes of all messages of a job.
fn bytes(job: &JobSpec) -> u64 {
    let tasks = job.plan.graph().numbered();
    let bytes = tasks.map(|(_, task)| match task {
        Task::Message { bytes, .. } => bytes.as_u64(),
        Task::Compute { .. } => 0,
    });
    bytes.sum()
}

/// DeepSeek-V3 on 64 GPUs, with separate copies: 128 tokens go to 8 experts each, except copies that stay on the rank. A copy has 7168
/// bytes on the way there and twice as many on the way back.
#[test]
fn balanced_copies_for_each_expert_are_tokens_times_k() {
    let values = [
        ("router", text("balanced")),
        ("copies", text("expert")),
        ("node-limit", number(8)),
        ("layers", number(1)),
    ];
    let jobs = jobs(&values, 64);
    assert_eq!(jobs.len(), 1);
    // Four cycles of the list of 256 experts for each rank; in each cycle, copies for the four experts of the rank are not sent.
    assert_eq!(bytes(&jobs[0]), 64 * (128 * 8 - 4 * 4) * 7168 * 3);
    jobs[0].plan.graph().check().unwrap();
    assert_eq!(jobs[0].label, "moe");
}

#[test]
fn layers_jobs_sections_and_seeds_route_differently() {
    let values = [
        ("jobs", number(2)),
        ("tokens", number(8)),
        ("skew", Value::Float(1.0)),
        ("layers", number(2)),
    ];
    let generator = settings("moe", &values);
    let graphs = |seed, section| {
        let context = BuildContext {
            seed,
            section,
            ..context(32)
        };
        let jobs = generator.load(&context).unwrap().jobs;
        jobs.into_iter().map(|job| job.plan).collect::<Vec<_>>()
    };
    let first = graphs(1, 0);
    assert_eq!(first, graphs(1, 0));
    assert_ne!(first[0], first[1]);
    assert_ne!(first, graphs(2, 0));
    assert_ne!(first, graphs(1, 1));
    // More layers do not change earlier layers.
    let longer = [&values[..3], &[("layers", number(3))]].concat();
    let longer = jobs(&longer, 32);
    let short = first[0].graph();
    let tasks = longer[0].plan.graph().numbered().take(short.len());
    assert!(tasks.eq(short.numbered()));
}

#[test]
fn training_goes_through_the_layers_twice() {
    let values = |backward| {
        [
            ("tokens", number(4)),
            ("backward", Value::Boolean(backward)),
        ]
    };
    let (once, twice) = (jobs(&values(false), 16), jobs(&values(true), 16));
    assert_eq!(bytes(&twice[0]), 2 * bytes(&once[0]));
}

#[test]
fn ranks_send_so_many_messages_at_a_time() {
    let limit = |value| {
        jobs(&[("tokens", number(4)), ("parallelism", value)], 8)[0]
            .plan
            .graph()
            .parallelism
    };
    assert_eq!(limit(text("auto")), None);
    assert_eq!(
        limit(number(3)).map(|limit| (limit.from_sender, limit.to_receiver)),
        Some((3, None))
    );
}

#[test]
fn settings_without_effect_are_warned_of() {
    let warnings = |values: &[(&str, Value)]| {
        settings("moe", values)
            .load(&context(8))
            .unwrap()
            .setting_warnings
    };
    assert_eq!(warnings(&[]), Vec::<String>::new());
    let values = [
        ("router", text("balanced")),
        ("skew", Value::Float(0.5)),
        ("jitter", Value::Float(0.5)),
        ("expert-compute", text("0s")),
    ];
    assert_eq!(
        warnings(&values),
        [
            "`skew` = 0.5 applies only to the router \"random\"",
            "`jitter` lengthens computations, and `compute` and `expert-compute` are zero",
        ]
    );
}

#[test]
fn faults_name_the_key_and_the_fix() {
    assert_snapshot!(error(&[("top-k", number(9)), ("experts", number(8))], 8), @"
    `top-k` of the moe workload: 9 different experts of 8
      fix: choose at most as many as there are `experts`
    ");
    assert_snapshot!(error(&[("skew", Value::Float(8.5))], 8), @"
    `skew` of the moe workload: an exponent of 8.5
      fix: write an exponent from 0 to 8
    ");
    assert_snapshot!(error(&[("capacity-factor", Value::Float(0.0))], 8), @r#"
    `capacity-factor` of the moe workload: experts that take 0 times the mean
      fix: write a factor above 0, such as 1.25, or "auto" for no limit
    "#);
    assert_snapshot!(error(&[("experts", number(8))], 64), @"
    `node-limit` of the moe workload: 4 nodes of 8 ranks are sure to have 4 experts, fewer than the 8 of a token
      fix: choose a larger `node-limit`, a smaller `top-k`, or more `experts`
    ");
    assert_snapshot!(error(&[("ranks", number(1))], 8), @"
    `ranks` of the moe workload: all tokens find their experts on their own ranks: nothing is sent
      fix: choose more ranks, tokens or experts
    ");
    assert_snapshot!(error(&[("ranks", number(9))], 8), @"
    `ranks` of the moe workload: 1 job of 9 ranks, but the topology has 8 hosts
      fix: every rank needs its own host: choose fewer `ranks` or `jobs`, or more hosts
    ");
    assert_snapshot!(error(&[("layers", number(1_000_000))], 8), @"
    `layers` of the moe workload: 1000000 layers of 8 ranks in 1 job make up to 128000000 messages and computations
      fix: choose fewer layers, ranks or jobs: 16777216 are the most
    ");
    assert_snapshot!(error(&[("tokens", number(100_000_000))], 8), @"
    `tokens` of the moe workload: 8 experts for each of 100000000 tokens of each rank, in 2 layers of 8 ranks in 1 job, take too long to draw
      fix: choose 2097152 tokens at most, or fewer layers, ranks or jobs
    ");
    assert_snapshot!(error(&[("tokens", number(4_294_967_295)), ("top-k", number(256)), ("node-limit", number(8)), ("layers", number(1000))], 64), @"
    `tokens` of the moe workload: 256 experts for each of 4294967295 tokens of each rank, in 1000 layers of 64 ranks in 1 job, take too long to draw
      fix: choose a smaller `top-k`, or fewer layers, ranks or jobs
    ");
    assert_snapshot!(error(&[("experts", number(4_294_967_295))], 8), @"
    `experts` of the moe workload: 4294967295 experts in each of 2 layers of 8 ranks in 1 job
      fix: choose fewer: 16777216 in all layers are the most
    ");
    assert_snapshot!(error(&[("iterations", number(0))], 8), @"
    `iterations` of the moe workload: no iterations
      fix: write 1 or more
    ");
}
