use super::layout::Group;
use super::*;
use crate::generate::sample::{context, settings, text};
use crate::generate::{BuildContext, WorkloadSettings};
use clearway_units::{Span, Value};
use clearway_workload::JobSpec;
use clearway_workload::graph::{Rank, Task};
use clearway_workload::program::{CollectiveKind, Operation};
use insta::assert_snapshot;
use std::num::NonZero;

const GPT_13B: &[(&str, i64)] = &[("layers", 40), ("hidden", 5120), ("heads", 40)];
const GPT_175B: &[(&str, i64)] = &[("layers", 96), ("hidden", 12288), ("heads", 96)];
const SMALL: &[(&str, i64)] = &[
    ("layers", 4),
    ("hidden", 64),
    ("heads", 8),
    ("vocabulary", 128),
    ("sequence", 32),
];

fn numbers(values: &[(&'static str, i64)]) -> Vec<(&'static str, Value)> {
    let value = |&(key, value)| (key, Value::Integer(value));
    values.iter().map(value).collect()
}

/// A small model with further values.
fn small(values: &[(&'static str, i64)]) -> Vec<(&'static str, Value)> {
    numbers(&[SMALL, values].concat())
}

fn training(values: &[(&str, Value)]) -> TrainingSettings {
    match settings("training", values) {
        WorkloadSettings::Training(settings) => settings,
        other => unreachable!("{}", other.kind()),
    }
}

fn jobs(values: &[(&str, Value)], hosts: u32) -> Vec<JobSpec> {
    let loaded = settings("training", values).load(&context(hosts));
    loaded.unwrap_or_else(|error| panic!("{error}")).jobs
}

fn graph(values: &[(&str, Value)], ranks: u32) -> Graph {
    jobs(values, ranks).remove(0).plan.graph().clone()
}

fn error(values: &[(&str, Value)], hosts: u32) -> String {
    match settings("training", values).load(&context(hosts)) {
        Ok(_) => panic!("{values:?} is accepted"),
        Err(error) => error.to_string(),
    }
}

/// Bytes that each rank sends, if it is the same for all.
fn sent(values: &[(&str, Value)], ranks: u32) -> u64 {
    let sent = graph(values, ranks).bytes_sent();
    assert!(sent.iter().all(|own| *own == sent[0]), "{sent:?}");
    sent[0].as_u64()
}

/// Calls of a kind by a rank, with their bytes.
fn calls(program: &JobProgram, rank: u32, wanted: CollectiveKind) -> Vec<u64> {
    let operations = program.ranks[rank as usize].operations().iter();
    let call = |operation: &Operation| match *operation {
        Operation::Collective { kind, bytes, .. } if kind == wanted => Some(bytes.as_u64()),
        _ => None,
    };
    operations.filter_map(call).collect()
}

/// Ends of all tasks if a message takes `time` and nothing waits for the network.
fn ends(graph: &Graph, time: impl Fn(Bytes) -> u64) -> Vec<u64> {
    let mut ends: Vec<u64> = Vec::with_capacity(graph.len());
    for (id, task) in graph.numbered() {
        let needs = graph.needs(id).iter().map(|need| ends[need.task().index()]);
        let start = needs.max().unwrap_or(0);
        ends.push(match task {
            Task::Compute { span, .. } => start + span.as_ps(),
            Task::Message { bytes, .. } => start + time(bytes),
        });
    }
    ends
}

fn duration(graph: &Graph, time: impl Fn(Bytes) -> u64) -> u64 {
    ends(graph, time).into_iter().max().unwrap()
}

fn computed(graph: &Graph) -> u64 {
    let tasks = graph.numbered();
    let times = tasks.map(|(_, task)| match task {
        Task::Compute { span, .. } => span.as_ps(),
        Task::Message { .. } => 0,
    });
    times.sum()
}

#[test]
fn models_have_the_published_numbers_of_parameters() {
    let billions = |values: &[(&str, Value)]| {
        let parameters = training(values).model.parameters();
        format!("{:.1}", parameters as f64 / 1e9)
    };
    assert_eq!(billions(&numbers(GPT_13B)), "12.8");
    assert_eq!(billions(&numbers(GPT_175B)), "174.6");
    let moe = |values: &[(&'static str, i64)]| {
        let mut values = numbers(values);
        values.push(("gated-ffn", Value::Boolean(true)));
        values.push(("tied-embeddings", Value::Boolean(false)));
        billions(&values)
    };
    let mixtral = [
        ("layers", 32),
        ("hidden", 4096),
        ("heads", 32),
        ("kv-heads", 8),
        ("ffn", 14336),
        ("vocabulary", 32000),
        ("experts", 8),
    ];
    // "The model has 46.7B total parameters" (Mistral AI); DBRX: "132B total parameters" (Databricks).
    assert_eq!(moe(&mixtral), "46.7");
    let dbrx = [
        ("layers", 40),
        ("hidden", 6144),
        ("heads", 48),
        ("kv-heads", 8),
        ("ffn", 10752),
        ("vocabulary", 100_352),
        ("experts", 16),
        ("top-k", 4),
    ];
    assert_eq!(moe(&dbrx), "131.6");
}

#[test]
fn computations_add_up_to_the_equations_of_megatron() {
    // 4 data-parallel ranks x 3 micro-batches of 2 sequences.
    let (batch, s, l, h, v) = (24.0, 2048.0, 40.0, 5120.0, 51200.0);
    let layers = batch * s * l * h * h;
    let without = 72.0 * layers * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
    let with = 96.0 * layers * (1.0 + s / (6.0 * h) + v / (16.0 * l * h));
    for (recompute, operations) in [(false, without), (true, with)] {
        let parts = [
            ("micro-batch", 2),
            ("micro-batches", 3),
            ("tensor-parallel", 2),
        ];
        let mut values = numbers(&[GPT_13B, &parts, &[("pipeline-parallel", 2)]].concat());
        values.push(("recompute", Value::Boolean(recompute)));
        let rate = 989.4e12 * 0.5;
        let seconds = computed(&graph(&values, 16)) as f64 / 1e12;
        let ratio = seconds * rate / operations;
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }
}

#[test]
fn pipelines_idle_as_long_as_the_published_bubble() {
    // With messages of no time an iteration takes (m + p - 1) (forward + backward): a bubble of (p - 1) / m of the ideal time (SC '21
    // §2.2.1), (p - 1) / (m + p - 1) of the whole. The output layer of one token in the vocabulary takes less than a picosecond.
    for (p, m) in [(1u64, 1u64), (2, 1), (2, 5), (4, 2), (4, 4), (4, 9), (8, 3)] {
        let mut values = numbers(&[
            ("layers", 8),
            ("hidden", 4096),
            ("heads", 1),
            ("vocabulary", 1),
            ("sequence", 64),
            ("pipeline-parallel", p as i64),
            ("micro-batches", m as i64),
        ]);
        values.push(("peak-tflops", Value::Float(1e6)));
        values.push(("utilisation", Value::Float(1.0)));
        // Two replicas, since one rank alone sends nothing.
        let graph = graph(&values, 2 * p as u32);
        let layers = 8 / p;
        let layer = computed(&graph) / (2 * m * 8);
        assert!(layer > 70_000);
        assert_eq!(
            duration(&graph, |_| 0),
            (m + p - 1) * layers * layer,
            "p = {p}, m = {m}"
        );
    }
}

#[test]
fn a_stage_runs_one_forward_and_one_backward_in_turn() {
    let settings = training(&small(&[("pipeline-parallel", 4), ("micro-batches", 6)]));
    let program = settings.program(4).unwrap();
    // Receives from the next stage begin backward passes, sends to it end forward passes.
    let order = |rank: u32| -> String {
        let letter = |operation: &Operation| match *operation {
            Operation::Send { to, .. } if to.0 == rank + 1 => Some('F'),
            Operation::Receive { from, .. } if from == Some(Rank(rank + 1)) => Some('B'),
            _ => None,
        };
        let operations = program.ranks[rank as usize].operations().iter();
        operations.filter_map(letter).collect()
    };
    assert_eq!(order(0), "FFFFBFBFBBBB");
    assert_eq!(order(1), "FFFBFBFBFBBB");
    assert_eq!(order(2), "FFBFBFBFBFBB");
}

#[test]
fn stages_send_activations_and_gradients() {
    let values = [
        ("pipeline-parallel", 4),
        ("micro-batches", 6),
        ("micro-batch", 3),
        ("tensor-parallel", 2),
    ];
    let message = 3 * 32 * 64 * 2;
    let between = |sequence: bool| -> Vec<(u32, u32, u64)> {
        let mut values = small(&values);
        values.push(("sequence-parallel", Value::Boolean(sequence)));
        values.push(("tied-embeddings", Value::Boolean(false)));
        let graph = graph(&values, 8);
        let mut all: Vec<(u32, u32, u64)> = Vec::new();
        for (_, task) in graph.numbered() {
            if let Task::Message { src, dst, bytes } = task
                && src.0 / 2 != dst.0 / 2
            {
                all.push((src.0, dst.0, bytes.as_u64()));
            }
        }
        all.sort_unstable();
        all
    };
    for (sequence, bytes) in [(false, message), (true, message / 2)] {
        let mut expected = Vec::new();
        for rank in 0..6 {
            expected.extend([(rank, rank + 2, bytes); 6]);
            expected.extend([(rank + 2, rank, bytes); 6]);
        }
        expected.sort_unstable();
        assert_eq!(between(sequence), expected);
    }
}

#[test]
fn data_parallel_ranks_sum_gradients_and_gather_parameters() {
    // Each of 8 ranks has the whole model.
    let parameters = 4 * 12 * 64 * 64 + 128 * 64;
    assert_eq!(training(&small(&[])).model.parameters(), parameters);
    let parameters = parameters as u64;
    assert_eq!(sent(&small(&[]), 8), parameters * (4 + 2) * 7 / 8);
    let values = |key, value| [small(&[("gradient-bytes", 2)]), vec![(key, value)]].concat();
    let whole = values("distributed-optimizer", Value::Boolean(false));
    assert_eq!(sent(&whole, 8), 2 * parameters * 2 * 7 / 8);
    assert_eq!(
        sent(&values("layers-per-bucket", Value::Integer(3)), 8),
        parameters * (2 + 2) * 7 / 8
    );
    // Layers 3 and 2 and 1, then layer 0 with the embedding.
    let buckets = |per: i64| {
        let settings = training(&small(&[("layers-per-bucket", per)]));
        let program = settings.program(8).unwrap();
        let summed = calls(&program, 0, CollectiveKind::ReduceScatter);
        let gathered = calls(&program, 0, CollectiveKind::AllGather);
        assert!(summed.iter().zip(&gathered).all(|(s, g)| *s == 2 * g));
        assert_eq!(summed.len(), gathered.len());
        summed
    };
    let (layer, embedding) = (12 * 64 * 64 * 4, 128 * 64 * 4);
    assert_eq!(buckets(3), [3 * layer, layer + embedding]);
    assert_eq!(buckets(1), [layer, layer, layer, layer + embedding]);
    assert_eq!(buckets(100), [4 * layer + embedding]);
}

#[test]
fn gradients_are_summed_while_computation_goes_on() {
    let time = |bytes: Bytes| bytes.as_u64() * 20;
    let with = |overlap: bool| {
        let mut values = numbers(&[
            ("layers", 8),
            ("hidden", 1024),
            ("heads", 8),
            ("vocabulary", 64),
        ]);
        values.push(("overlap-grad-reduce", Value::Boolean(overlap)));
        values.push(("chunk", text("100MB")));
        duration(&graph(&values, 4), time)
    };
    let (beside, after) = (with(true), with(false));
    // The reduce-scatter of a layer has 3 steps, each of a quarter of 12 h² gradients of 4 bytes.
    let layer = 12 * 1024 * 1024 * 4 * 3 / 4 * 20;
    let saved = after - beside;
    let compute = training(&numbers(&[("layers", 8), ("hidden", 1024), ("heads", 8)]));
    let cost = Cost::new(
        &compute,
        Layout {
            tensor: 1,
            data: 4,
            pipeline: 1,
            expert: 1,
        },
    )
    .unwrap();
    let backward = 2 * (cost.attention.as_ps() + cost.ffn.as_ps());
    assert!(backward < layer);
    // Sums take longer than the backward passes of the layers, so seven of these run beside them.
    assert_eq!(saved, 7 * backward);
}

#[test]
fn tensor_parallel_ranks_reduce_twice_a_layer_and_pass() {
    let activations = 2 * 32 * 64 * 2;
    let values = small(&[
        ("tensor-parallel", 4),
        ("micro-batch", 2),
        ("micro-batches", 3),
    ]);
    // Four in each layer, one of the input embedding, one of the output layer.
    let reduces = 3 * (4 * 4 + 2);
    let program = training(&values).program(4).unwrap();
    let all = calls(&program, 2, CollectiveKind::AllReduce);
    assert_eq!(all, vec![activations; reduces]);
    let bytes = reduces as u64 * 2 * activations * 3 / 4;
    assert_eq!(sent(&values, 4), bytes);
    // By sequence, each is a reduce-scatter and an all-gather.
    let by_sequence = [
        values.clone(),
        vec![("sequence-parallel", Value::Boolean(true))],
    ]
    .concat();
    assert_eq!(sent(&by_sequence, 4), bytes);
    let recomputed = [values, vec![("recompute", Value::Boolean(true))]].concat();
    let reduces = 3 * (4 * 6 + 2);
    assert_eq!(sent(&recomputed, 4), reduces * 2 * activations * 3 / 4);
}

#[test]
fn stages_sum_the_gradient_of_shared_embeddings() {
    let values = small(&[("pipeline-parallel", 2), ("tensor-parallel", 2)]);
    let program = training(&values).program(8).unwrap();
    for rank in 0..8 {
        // Half of the embedding, after all gradients of the rank.
        let all = calls(&program, rank, CollectiveKind::AllReduce);
        assert_eq!(all.last(), Some(&(128 * 64 / 2 * 4)));
    }
    let apart = [values, vec![("tied-embeddings", Value::Boolean(false))]].concat();
    let program = training(&apart).program(8).unwrap();
    let all = calls(&program, 0, CollectiveKind::AllReduce);
    assert!(all.iter().all(|&bytes| bytes == 32 * 64 * 2));
}

#[test]
fn tokens_go_to_experts_and_back() {
    let mut values = small(&[
        ("experts", 8),
        ("top-k", 2),
        ("expert-parallel", 4),
        ("micro-batches", 3),
    ]);
    let dispatch = 32 * 64 * 2 * 2;
    let program = training(&values).program(8).unwrap();
    let all = calls(&program, 5, CollectiveKind::AllToAll);
    assert_eq!(all, vec![dispatch; 3 * 4 * 4]);
    // Dense parameters are summed by 8 ranks, two experts of each layer by 2.
    let (dense, experts) = (4 * 4 * 64 * 64 + 128 * 64, 4 * 2 * 8 * 64 * 64);
    let tokens = 3 * 4 * 4 * dispatch * 3 / 4;
    let gradients = (dense * 7 / 8 + experts / 2) * (4 + 2);
    assert_eq!(sent(&values, 8), tokens + gradients);
    // Tensor-parallel ranks send each its part of the tokens, and have whole experts.
    values.push(("tensor-parallel", Value::Integer(2)));
    values.push(("sequence-parallel", Value::Boolean(true)));
    let program = training(&values).program(8).unwrap();
    let all = calls(&program, 5, CollectiveKind::AllToAll);
    assert_eq!(all, vec![dispatch / 2; 3 * 4 * 4]);
}

#[test]
fn ranks_are_in_the_order_of_megatron() {
    let degrees = ParallelismDegrees {
        tensor: NonZero::new(2).unwrap(),
        pipeline: NonZero::new(2).unwrap(),
        expert: NonZero::new(4).unwrap(),
        ..ParallelismDegrees::default()
    };
    let layout = Layout::new(&degrees, 16).unwrap();
    let groups = layout.groups();
    let group = |kind: Group, rank: u32| -> Vec<u32> {
        let own = &groups[layout.index(kind, rank) as usize];
        assert_eq!(own.len(), layout.size(kind) as usize);
        own.iter().map(|rank| rank.0).collect()
    };
    assert_eq!(group(Group::Tensor, 5), [4, 5]);
    assert_eq!(group(Group::Data, 5), [1, 3, 5, 7]);
    assert_eq!(group(Group::Data, 12), [8, 10, 12, 14]);
    assert_eq!(group(Group::Expert, 5), [4, 5, 6, 7]);
    assert_eq!(group(Group::ExpertData, 5), [1, 5]);
    assert_eq!(group(Group::ExpertData, 15), [11, 15]);
    assert_eq!(group(Group::Embedding, 5), [5, 13]);
    assert_eq!(group(Group::Embedding, 13), [5, 13]);
    // The example of Megatron-LM (`generate_masked_orthogonal_rank_groups`): TP 2, DP 3, PP 4.
    let degrees = ParallelismDegrees {
        tensor: NonZero::new(2).unwrap(),
        pipeline: NonZero::new(4).unwrap(),
        ..ParallelismDegrees::default()
    };
    let layout = Layout::new(&degrees, 24).unwrap();
    let groups = layout.groups();
    let data = |rank: u32| groups[layout.index(Group::Data, rank) as usize].clone();
    assert_eq!(data(0), [0, 2, 4].map(Rank));
    assert_eq!(data(1), [1, 3, 5].map(Rank));
    assert_eq!(data(23), [19, 21, 23].map(Rank));
}

#[test]
fn jobs_that_lie_alike_share_a_plan_and_runs_repeat_it() {
    let values = small(&[("jobs", 2), ("ranks", 8), ("tensor-parallel", 2)]);
    let of_nodes = |seed| {
        let context = BuildContext {
            gpus_per_node: 4,
            seed,
            ..context(16)
        };
        settings("training", &values).load(&context).unwrap().jobs
    };
    let both = of_nodes(1);
    assert!(Arc::ptr_eq(&both[0].plan, &both[1].plan));
    assert_eq!(both, of_nodes(1));
    // No random number is drawn for packed ranks.
    assert_eq!(both[1].plan, of_nodes(2)[1].plan);
    // Rings of data-parallel ranks have a channel for each of the two ranks of a node.
    let flat = jobs(&values, 16);
    assert_ne!(flat[0].plan, both[0].plan);
}

#[test]
fn iterations_repeat() {
    let values = small(&[("iterations", 3), ("ranks", 4)]);
    let job = jobs(&values, 8).remove(0);
    assert_eq!((job.iterations, job.hosts.len()), (3, 4));
    assert_eq!(job.label, "training");
}

#[test]
fn computations_take_the_time_of_the_accelerator() {
    let mut values = small(&[]);
    values.push(("peak-tflops", Value::Float(312.0)));
    values.push(("utilisation", Value::Float(0.25)));
    let settings = training(&values);
    let layout = Layout::new(&settings.degrees, 4).unwrap();
    let cost = Cost::new(&settings, layout).unwrap();
    // 8 s h² + 4 s² h operations of the attention, 16 s h² of the feed-forward part, at 78 TFLOP/s.
    let (s, h) = (32u64, 64u64);
    let ps = |operations: u64| Span::from_ps(operations * 1_000_000_000_000 / 78_000_000_000_000);
    assert_eq!(cost.attention, ps(8 * s * h * h + 4 * s * s * h));
    assert_eq!(cost.ffn, ps(16 * s * h * h));
    assert_eq!(cost.output, ps(2 * s * h * 128));
}

#[test]
fn faults_name_the_key_and_a_fix() {
    let number = |values: &[(&'static str, i64)], ranks| error(&small(values), ranks);
    assert_snapshot!(number(&[("tensor-parallel", 2), ("pipeline-parallel", 2)], 6), @"
    `ranks` of the training workload: 6 ranks cannot be divided into replicas of 2 x 2 ranks
      fix: choose a multiple of `tensor-parallel` times `pipeline-parallel`, or other degrees
    ");
    assert_snapshot!(number(&[("pipeline-parallel", 3)], 6), @"
    `layers` of the training workload: 4 cannot be divided by `pipeline-parallel` = 3
      fix: choose a multiple of 3, or another `pipeline-parallel`
    ");
    assert_snapshot!(number(&[("tensor-parallel", 16)], 16), @"
    `heads` of the training workload: 8 cannot be divided by `tensor-parallel` = 16
      fix: choose a multiple of 16, or another `tensor-parallel`
    ");
    assert_snapshot!(number(&[("tensor-parallel", 4), ("kv-heads", 2)], 4), @"
    `kv-heads` of the training workload: 2 cannot be divided by `tensor-parallel` = 4
      fix: choose a multiple of 4, or another `tensor-parallel`
    ");
    assert_snapshot!(number(&[("tensor-parallel", 4), ("vocabulary", 126)], 4), @"
    `vocabulary` of the training workload: 126 cannot be divided by `tensor-parallel` = 4
      fix: choose a multiple of 4, or another `tensor-parallel`
    ");
    assert_snapshot!(number(&[("experts", 6), ("expert-parallel", 4)], 4), @"
    `experts` of the training workload: 6 cannot be divided by `expert-parallel` = 4
      fix: choose a multiple of 4, or another `expert-parallel`
    ");
    assert_snapshot!(number(&[("experts", 8), ("expert-parallel", 8)], 4), @"
    `expert-parallel` of the training workload: 4 ranks of a stage cannot be divided into groups of 8
      fix: choose a divisor of the ranks of a stage, `ranks` / `pipeline-parallel`
    ");
    assert_snapshot!(number(&[("expert-parallel", 4)], 4), @"
    `expert-parallel` of the training workload: a dense model has no experts
      fix: write `experts` too, or leave this out
    ");
    assert_snapshot!(number(&[("experts", 4), ("top-k", 5)], 4), @"
    `top-k` of the training workload: 5 different experts of 4
      fix: choose at most as many as there are `experts`
    ");
    assert_snapshot!(number(&[("experts", 4), ("tensor-parallel", 2)], 4), @"
    `sequence-parallel` of the training workload: experts with `tensor-parallel` take tokens that are divided by sequence
      fix: write `sequence-parallel = true`, or `tensor-parallel = 1`
    ");
    assert_snapshot!(number(&[("heads", 3)], 4), @"
    `hidden` of the training workload: 64 cannot be divided by `heads` = 3
      fix: choose a multiple of 3, or another `heads`
    ");
    assert_snapshot!(number(&[("heads", 4), ("kv-heads", 3)], 4), @"
    `heads` of the training workload: 4 cannot be divided by `kv-heads` = 3
      fix: choose a multiple of 3, or another `kv-heads`
    ");
    assert_snapshot!(number(&[], 1), @"
    `ranks` of the training workload: one rank has the whole model: nothing is sent
      fix: choose two ranks or more
    ");
    assert_snapshot!(number(&[("ranks", 5)], 4), @"
    `ranks` of the training workload: 1 job of 5 ranks, but the topology has 4 hosts
      fix: every rank needs its own host: choose fewer `ranks` or `jobs`, or more hosts
    ");
    assert_snapshot!(number(&[("micro-batches", 1_000_000)], 4), @"
    `micro-batches` of the training workload: 1000000 micro-batches of 4 layers on each of 4 ranks make up to 480000000 operations, besides messages of collectives
      fix: choose fewer `micro-batches`, `layers` or `ranks`: 33554432 are the most
    ");
    assert_snapshot!(number(&[("hidden", 1 << 30), ("layers", 1000)], 4), @"
    `hidden` of the training workload: a model of 1.4e22 parameters
      fix: choose fewer `layers`, or a smaller `hidden`, `ffn` or `vocabulary`
    ");
    assert_snapshot!(number(&[("sequence", 1 << 31), ("micro-batch", 1 << 31)], 4), @"
    `sequence` of the training workload: a micro-batch of 4611686018427387904 tokens of 64 elements
      fix: choose a smaller `sequence`, `micro-batch` or `hidden`
    ");
    assert_snapshot!(number(&[("chunk", 0)], 4), @r#"
    `chunk` of the training workload: a chunk carries no bytes
      fix: write a size of at least one byte, as in "128KiB"
    "#);
    assert_snapshot!(number(&[("parallelism", 0)], 4), @r#"
    `parallelism` of the training workload: no messages at a time
      fix: write 1 or more, or "auto" for no limit
    "#);
    let given = |key, value| error(&[small(&[]), vec![(key, value)]].concat(), 4);
    assert_snapshot!(given("peak-tflops", Value::Float(0.0)), @"
    `peak-tflops` of the training workload: a peak performance of 0 TFLOP/s
      fix: write TFLOP/s, above zero and up to 1e6: 312 for 312e12 operations per second
    ");
    assert_snapshot!(given("peak-tflops", Value::Float(1e-12)), @"
    `peak-tflops` of the training workload: an iteration computes longer than the longest run
      fix: choose a larger `peak-tflops`, or fewer `micro-batches`
    ");
    let slow = [("peak-tflops", Value::Float(1e-9))];
    assert_snapshot!(error(&[&slow[..], &numbers(GPT_13B)].concat(), 4), @"
    `peak-tflops` of the training workload: the computation of one layer takes longer than the longest run
      fix: choose a larger `peak-tflops`, or a smaller model or `sequence`
    ");
    assert_snapshot!(given("utilisation", Value::Float(1.5)), @"
    `utilisation` of the training workload: a share of 1.5
      fix: write a share above 0 and up to 1, such as 0.5
    ");
    assert_snapshot!(given("all-reduce", text("rings")), @r#"
    `all-reduce` of the training workload: there is no algorithm "rings"
      fix: did you mean `ring`? Use one of: ring, halving-doubling, double-binary-tree, direct, hierarchical, parameter-server
    "#);
    let bytewise = [("chunk", text("1B"))];
    assert_snapshot!(error(&[&bytewise[..], &numbers(GPT_13B)].concat(), 4), @"
    `layers` of the training workload: `chunk` of the ring reduce-scatter: up to 3774873612 messages, but 33554432 are the most that a collective may have
      fix: write a chunk of 1KiB or more, or a size of 11184806B at most
    ");
    assert_snapshot!(given("splits", Value::Integer(2)), @r#"
    `splits` of the training workload: no collective has the algorithm "hierarchical"
      fix: write it, as in `all-reduce = "hierarchical"`, or leave this out
    "#);
}
