//! Reading and writing of workloads, the operations of ranks, and each reason for rejection.

use super::reader::{COLUMNS, KEYS};
use super::*;
use clearway_units::{Bytes, Span};
use clearway_workload::graph::{Graph, Rank, TaskId};
use clearway_workload::program::{
    CollectiveCall, ExpansionFault, JobProgram, Operation, OperationDependency, OperationId,
};
use insta::assert_snapshot;
use proptest::prelude::*;

const SMALL: &str = "\
HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0 pp_comm 0
3
embedding\t-1\t10\tNONE\t0\t20\tNONE\t0\t30\tREDUCESCATTER\t4096\t100
attention\t-1\t11\tALLREDUCE\t1000\t21\tALLGATHER\t2000\t31\tALLREDUCE_DP_EP\t500\t200
moe\t-1\t12\tALLTOALL_EP\t800\t22\tALLTOALL_EP\t900\t0\tNONE\t0\t0
";

fn parse(text: &str) -> SimaiWorkload {
    let file = parse_simai("x.txt", text).unwrap();
    assert_eq!(file.warnings, []);
    file.workload
}

fn refused(text: &str, message: &str) {
    let error = parse_simai("x.txt", text).unwrap_err();
    assert!(!error.fix.is_empty());
    let found = error.to_string();
    assert_eq!(found.lines().next().unwrap(), format!("x.txt:{message}"));
}

/// Every rank sends to every other rank, and ends when it has received all messages.
fn to_all(
    call: &CollectiveCall<'_>,
    graph: &mut Graph,
) -> Result<Vec<Vec<TaskId>>, ExpansionFault> {
    let mut ends = vec![Vec::new(); call.group.len()];
    for (&src, &start) in call.group.iter().zip(call.starts) {
        for (&dst, ends) in call.group.iter().zip(&mut ends) {
            if src != dst {
                ends.push(graph.message((src, dst), call.bytes, [start]));
            }
        }
    }
    Ok(ends)
}

#[test]
fn a_workload_is_read() {
    let workload = parse(SMALL);
    assert_eq!(workload.policy, SimaiPolicy::HybridTransformerFwdInBckwd);
    assert_eq!(
        (workload.tp, workload.ep, workload.all_gpus),
        (Some(2), 2, Some(8))
    );
    assert_eq!(workload.pp_comm, None);
    let attention = &workload.layers[1];
    let call = |kind, group, bytes| {
        let bytes = Bytes::new(bytes);
        Some(SimaiCall { kind, group, bytes })
    };
    let phase = |ns, call| SimaiPhase {
        compute: Span::from_ns(ns),
        call,
    };
    assert_eq!(
        *attention,
        SimaiLayer {
            name: "attention".into(),
            forward: phase(11, call(CollectiveKind::AllReduce, SimaiGroup::Tp, 1000)),
            input_gradient: phase(21, call(CollectiveKind::AllGather, SimaiGroup::Tp, 2000)),
            weight_gradient: phase(31, call(CollectiveKind::AllReduce, SimaiGroup::DpEp, 500)),
            update: Span::from_ns(200),
            policy: None,
        }
    );
    let alone = workload.layers[0].weight_gradient.call;
    assert_eq!(
        alone,
        call(CollectiveKind::ReduceScatter, SimaiGroup::Dp, 4096)
    );
}

#[test]
fn keys_may_be_missing_or_written_otherwise() {
    const LAYER: &str = "1\nl -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n";
    let of_one_layer = |policy| {
        let mut workload = SimaiWorkload::new(policy);
        workload.layers.push(SimaiLayer {
            name: "l".into(),
            ..SimaiLayer::default()
        });
        workload
    };
    let old = parse(&format!(
        "HYBRID_TRANSFORMER model_parallel_NPU_group: 8 checkpoints: 0 checkpoint_initiates: 0\n{LAYER}"
    ));
    assert_eq!(
        old,
        SimaiWorkload {
            tp: Some(8),
            ..of_one_layer(SimaiPolicy::HybridTransformer)
        }
    );
    let micro = parse(&format!("MICRO ep: 0 pp: 0 vpp: 0\n{LAYER}"));
    assert_eq!(micro, of_one_layer(SimaiPolicy::Micro));
    let parse_with_warnings = |text: &str, count: usize| {
        let file = parse_simai("x.txt", text).unwrap();
        assert_eq!(file.warnings.len(), count, "{:?}", file.warnings);
        file.workload
    };
    let exponent = parse_with_warnings(&format!("MICRO pp_comm: 1.23456789e5\n{LAYER}"), 1);
    assert_eq!(exponent.pp_comm, Some(Bytes::new(123_456)));
    // The input gradients of the first layer have no effect, which also causes a warning.
    let layer = "l -1 10.0 NONE 0 0.5 NONE 7 1e1 ALLREDUCE 16777216.0 0";
    let text = format!("DATA pp_comm: 8388608.5 ga 4\n1\n{layer}\n");
    let workload = parse_with_warnings(&text, 2);
    assert_eq!(
        (workload.pp_comm, workload.ga),
        (Some(Bytes::new(8_388_608)), 4)
    );
    assert_eq!(
        workload.layers[0].input_gradient,
        SimaiPhase {
            compute: Span::from_ps(500),
            call: None
        }
    );
    assert_eq!(
        workload.layers[0].weight_gradient.compute,
        Span::from_ns(10)
    );
    let custom = parse("HYBRID_CUSTOMIZED\n1\nl -1 0 NONE 0 0 NONE 0 0 NONE 0 0 DATA\n");
    assert_eq!(custom.layers[0].policy, Some(SimaiPolicy::Data));
    let dlrm = parse(&format!("HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 3\n{LAYER}"));
    assert_eq!(dlrm.dlrm_last_bottom_layer, Some(3));
}

#[test]
fn what_is_not_simulated_is_a_warning() {
    let text = "HYBRID_TRANSFORMER pp: 4 mbs: 1 2 checkpoints: 1 0 checkpoint_initiates: 0\n2\n\
                norm -1 0 BROADCAST 16384 1 NONE 0 1 BROADCAST 8 100\n\
                norm -1 0 BROADCAST 16384 1 NONE 0 1 NONE 0 100\n";
    let file = parse_simai("x.txt", text).unwrap();
    let warnings: Vec<String> = file.warnings.iter().map(FileWarning::to_string).collect();
    assert_eq!(
        warnings,
        [
            "x.txt:1: `mbs:` is not known, and ignored as in SimAI",
            "x.txt:3: `BROADCAST` is not a collective of SimAI, which treats it as `NONE` (and 2 more like it)",
            "x.txt:1: left out, as in SimAI: 2 updates (200ns in all); weights are updated after a collective of their gradients alone",
            "x.txt:1: a pipeline of 4 stages sets ranks apart, but no messages go from stage to stage and no stage waits for another, as in SimAI",
            "x.txt:1: no forward pass is computed again: SimAI reads the checkpoints but never does so",
        ]
    );
    let layer = "m -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1\n";
    let micro = parse_simai("x.txt", &format!("MICRO\n3\n{}", layer.repeat(3))).unwrap();
    assert_eq!(
        micro.warnings[0].to_string(),
        "x.txt:1: `MICRO` runs the first of 3 layers, as in SimAI: 2 are left out; give each its own file"
    );
    let keys = "HYBRID_TRANSFORMER pp: 2 pp_comm: 8 DLRM_LAST_BOTTOM_LAYER: 1";
    let staged = parse_simai("x.txt", &format!("{keys}\n1\n{layer}")).unwrap();
    let single = parse_simai("x.txt", &format!("DATA pp_comm: 8\n1\n{layer}")).unwrap();
    let warnings = staged.warnings.iter().chain(&single.warnings);
    let warnings: Vec<&str> = warnings.map(|warning| warning.message.as_str()).collect();
    assert_snapshot!(warnings.join("\n"), @"
    a pipeline of 2 stages sets ranks apart, but no messages go from stage to stage and no stage waits for another, as in SimAI; `pp_comm` is not used
    `DLRM_LAST_BOTTOM_LAYER` is not used: the policy is of another model
    left out, as in SimAI: 1 computation (1ns in all); `DATA` runs the collectives of weight gradients alone
    `pp_comm` is not used: there is one stage
    ");
    assert_eq!(file.workload.layers[0].forward.call, None);
    assert_eq!(file.workload.checkpoints, [0]);
}

/// Keys and columns without effect and without warning, with the reason.
const UNUSED: [(&str, &str); 3] = [
    (
        "vpp",
        "SimAI uses it only for the times of a pipeline that it adds after the run",
    ),
    ("ga", "the generator writes the layers as often"),
    ("dependency", "SimAI reads it and never uses it"),
];

#[test]
fn each_key_and_column_is_used_warned_about_or_known_to_be_unused() {
    let header = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 \
                  checkpoint_initiates: 0 pp_comm: 0";
    let layer = "l -1 5 ALLREDUCE 800 5 ALLREDUCE 800 5 ALLREDUCE 800 5";
    let outcome = |header: &str, layer: &str| {
        let file = parse_simai("x.txt", &format!("{header}\n1\n{layer}\n"));
        file.map(|file| {
            let program = file.workload.program(8, 1);
            (program, file.warnings, file.workload.layers[0].name.clone())
        })
    };
    let base = outcome(header, layer);
    let is_unused = |name| UNUSED.iter().any(|(unused, _)| *unused == name);
    for key in KEYS {
        let value = match key {
            "checkpoints" | "checkpoint_initiates" => "1 0",
            _ => "4",
        };
        let (others, old) = match header.split_once(&format!("{key}: ")) {
            Some((before, after)) => (before, after.split_once(' ').map_or("", |(_, rest)| rest)),
            None => (header, ""),
        };
        let changed = outcome(&format!("{others} {key}: {value} {old}"), layer);
        assert_eq!(changed == base, is_unused(key), "{key}");
    }
    let words: Vec<&str> = layer.split(' ').collect();
    for (place, column) in COLUMNS[..12].iter().enumerate() {
        let mut words = words.clone();
        words[place] = if words[place] == "ALLREDUCE" {
            "ALLTOALL"
        } else {
            "7"
        };
        let changed = outcome(header, &words.join(" "));
        assert_eq!(changed == base, is_unused(column), "{column}");
    }
    // Layers with separate policies are rejected.
    let custom = outcome(
        &header.replace("TRANSFORMER", "CUSTOMIZED"),
        &format!("{layer} DATA"),
    );
    assert!(custom.unwrap().0.is_err());
}

#[test]
fn faults_have_a_place() {
    refused("", "1: the file is empty");
    refused("HYBRID\n", "1:1: unknown word `HYBRID`");
    refused("MICRO", "1: the number of layers is missing");
    refused("MICRO eq: 1\n0\n", "1:7: unknown word `eq:`");
    refused("MICRO 7\n0\n", "1:7: unknown word `7`");
    refused(
        "MICRO ep: 1 ep: 1\n0\n",
        "1:13: `ep` stands twice on the line",
    );
    refused("MICRO ep:\n0\n", "1:7: `ep` lacks its value");
    refused("MICRO ep: x\n0\n", "1:11: `x` is not a valid value for ep");
    refused(
        "MICRO ep: 4294967296\n0\n",
        "1:11: `4294967296` is not a valid value for `ep`",
    );
    refused("MICRO ga: 0.5\n0\n", "1:11: `0.5` is too fine for ga");
    refused("MICRO ga: 0\n", "1:11: `0` is not a valid value for `ga`");
    refused(
        "DATA all_gpus: 0\n",
        "1:16: `0` is not a valid value for `all_gpus`",
    );
    refused(
        "DATA model_parallel_NPU_group: 0\n",
        "1:32: `0` is not a valid value for `model_parallel_NPU_group`",
    );
    refused("MICRO\n0\n", "2:1: there are no layers");
    refused(
        "MICRO pp_comm: 1.5e\n",
        "1:16: `1.5e` is not a valid value for pp_comm",
    );
    refused(
        "MICRO checkpoints: 2 1\n0\n",
        "1:20: `checkpoints` announces 2 layers, but 1 word is left on the line",
    );
    refused(
        "MICRO\n1 layer\n",
        "2:3: the second line is the number of layers and nothing else",
    );
    refused(
        "MICRO\nx\n",
        "2:1: `x` is not a valid value for the number of layers",
    );
    refused(
        "MICRO\n1\n",
        "2: line 2 announces 1 layer, but the file has 0",
    );
    let layer = "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
    refused(
        &format!("MICRO\n1\n{layer}\n{layer}\n"),
        "4: line 2 announces 1 layer, and this line comes after them; SimAI ignores the rest of the file",
    );
    let line = |from: &str, to: &str, message: &str| {
        refused(
            &format!("MICRO\n1\n{}\n", layer.replacen(from, to, 1)),
            message,
        );
    };
    line(" 1", "", "3: a layer has 12 words, but this line has 11");
    line(
        "-1",
        "-1 0",
        "3:35: a layer has 12 words, but this line has 13",
    );
    line(
        "-1",
        "-2",
        "3:3: `-2` is not a valid value for the dependency",
    );
    line(
        "-1 1",
        "-1 -5",
        "3:6: `-5` is not a valid value for forward compute time",
    );
    line(
        "NONE 0",
        "NONE x",
        "3:13: `x` is not a valid value for forward bytes",
    );
    line("NONE", "ALREDUCE", "3:8: unknown word `ALREDUCE`");
    line("NONE", "ALLREDUCE_TP", "3:8: unknown word `ALLREDUCE_TP`");
    line(
        "-1 1",
        "-1 0.0001",
        "3:6: `0.0001` is too fine for forward compute time",
    );
}

fn members(program: &JobProgram, rank: u32, index: u32) -> Vec<u32> {
    let rank = Rank(rank);
    match program.operation(OperationId { rank, index }) {
        Operation::Collective { group, .. } => program.groups[group as usize]
            .iter()
            .map(|rank| rank.0)
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn groups_are_laid_out_as_in_megatron() {
    let calls = "l -1 0 ALLREDUCE 8 0 ALLTOALL_EP 8 0 ALLREDUCE 8 0\nm -1 0 NONE 0 0 NONE 0 0 ALLREDUCE_DP_EP 8 0\n";
    let text = format!(
        "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 2 pp: 2 all_gpus: 16\n2\n{calls}"
    );
    let workload = parse_simai("x.txt", &text).unwrap().workload;
    let program = workload.program(16, 1).unwrap();
    // In the order of the pass: tensor, then from the last layer on same experts, experts, data.
    let of_rank = |rank| [0, 1, 3, 4].map(|index| members(&program, rank, index));
    assert_eq!(
        of_rank(0),
        [vec![0, 1], vec![0, 4], vec![0, 2], vec![0, 2, 4, 6]]
    );
    assert_eq!(
        of_rank(7),
        [vec![6, 7], vec![3, 7], vec![5, 7], vec![1, 3, 5, 7]]
    );
    assert_eq!(
        of_rank(10),
        [vec![10, 11], vec![10, 14], vec![8, 10], vec![8, 10, 12, 14]]
    );
    // 8 + 4 + 8 + 8 groups, each rank in one of each kind.
    assert_eq!(program.groups.len(), 28);
    program.graph(&mut to_all).unwrap().check().unwrap();
}

/// The operations of rank 0: the computation in nanoseconds (after its unit) or the size of a collective, and the dependencies.
fn steps(workload: &SimaiWorkload, passes: u32) -> Vec<(String, Vec<u32>)> {
    let program = workload.program(8, passes).unwrap();
    program.graph(&mut to_all).unwrap().check().unwrap();
    let rank = &program.ranks[0];
    let operations = (0..).zip(rank.operations());
    let steps = operations.map(|(index, operation)| {
        let name = match operation {
            Operation::Compute { unit, span } => format!("{unit}:{}", span.as_ps() / 1000),
            Operation::Collective { bytes, .. } => format!("{} B", bytes.as_u64()),
            other => panic!("{other:?}"),
        };
        (
            name,
            rank.waits(index)
                .iter()
                .map(|wait| wait.operation)
                .collect(),
        )
    });
    steps.collect()
}

fn named(expected: &[(&str, &[u32])]) -> Vec<(String, Vec<u32>)> {
    let owned = expected
        .iter()
        .map(|(name, waits)| ((*name).to_owned(), waits.to_vec()));
    owned.collect()
}

#[test]
fn a_pass_of_a_transformer_waits_for_all_but_weight_gradients() {
    let one: [(&str, &[u32]); 16] = [
        ("0:10", &[]),
        ("0:11", &[0]),
        ("1000 B", &[1]),
        ("0:12", &[2]),
        ("800 B", &[3]),
        ("0:22", &[4]),
        ("900 B", &[5]),
        ("0:21", &[6]),
        ("2000 B", &[7]),
        ("0:31", &[8]),
        ("500 B", &[9]),
        ("1:200", &[10]),
        ("0:20", &[9]),
        ("0:30", &[12]),
        ("4096 B", &[13]),
        ("1:100", &[14]),
    ];
    let workload = parse(SMALL);
    assert_eq!(steps(&workload, 1), named(&one));
    // The second pass waits for the updates of the first.
    let two = steps(&workload, 2);
    assert_eq!(two[..16], named(&one));
    assert_eq!(
        two[16..19],
        named(&[("0:10", &[13, 15]), ("0:11", &[11, 16]), ("1000 B", &[17])])
    );
}

#[test]
fn other_policies_have_other_passes() {
    let with = |policy: &str| {
        let (_, rest) = SMALL.split_once('\n').unwrap();
        let file = parse_simai("x.txt", &format!("{policy}\n{rest}")).unwrap();
        file.workload
    };
    let inference: [(&str, &[u32]); 5] = [
        ("0:10", &[]),
        ("0:11", &[0]),
        ("1000 B", &[1]),
        ("0:12", &[2]),
        ("800 B", &[3]),
    ];
    assert_eq!(steps(&with("DISTRIBUTED_INFERENCE"), 1), named(&inference));
    assert_eq!(
        steps(&with("MICRO"), 2),
        named(&[("4096 B", &[]), ("4096 B", &[])])
    );
    let data: [(&str, &[u32]); 11] = [
        ("0:10", &[]),
        ("0:11", &[0]),
        ("0:12", &[1]),
        ("0:22", &[2]),
        ("0:31", &[3]),
        ("500 B", &[4]),
        ("1:200", &[5]),
        ("0:21", &[4]),
        ("0:30", &[7]),
        ("4096 B", &[8]),
        ("1:100", &[9]),
    ];
    assert_eq!(steps(&with("DATA"), 1), named(&data));
    let model: [(&str, &[u32]); 7] = [
        ("0:22", &[4]),
        ("900 B", &[5]),
        ("0:21", &[5, 6]),
        ("2000 B", &[7]),
        ("0:31", &[7]),
        ("0:20", &[8, 9]),
        ("0:30", &[10]),
    ];
    let found = steps(&with("MODEL"), 1);
    assert_eq!(found[..5], named(&inference));
    assert_eq!(found[5..], named(&model));
}

#[test]
fn waits_grow_with_the_operations() {
    let (layers, passes) = (50, 10);
    let layer = "x -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 4096 0\n";
    let workload = parse(&format!("DATA\n{layers}\n{}", layer.repeat(layers)));
    let program = workload.program(4, passes).unwrap();
    let rank = &program.ranks[0];
    let waits_of = |index| rank.waits(index).len();
    let operations = 0..rank.operations().len() as u32;
    let waits: usize = operations.map(waits_of).sum();
    // Each update waits for its call; each call of the nine later passes for the join of all updates of the pass before.
    let later = passes as usize - 1;
    assert_eq!(waits, 10 * layers + later * 2 * layers + later - 1);
    // The first call of the second pass comes after all updates of the first.
    let join = 2 * layers as u32;
    let updates: Vec<u32> = rank.waits(join).iter().map(|wait| wait.operation).collect();
    assert!(updates.iter().copied().eq((1..join).step_by(2)));
    assert_eq!(rank.waits(join + 1), [OperationDependency::over(join)]);
    program.graph(&mut to_all).unwrap().check().unwrap();

    let layer = "x -1 0 NONE 0 0 ALLREDUCE 4096 0 NONE 0 0\n";
    let text = format!("MODEL\n{layers}\n{}", layer.repeat(layers));
    let workload = parse_simai("x.txt", &text).unwrap().workload;
    let program = workload.program(4, passes).unwrap();
    let rank = &program.ranks[0];
    let count = rank.operations().len() as u32;
    let waits: usize = (0..count).map(|index| rank.waits(index).len()).sum();
    // A join of two and a call for each layer but the first.
    assert!(waits < 2 * count as usize, "{waits} of {count}");
}

#[test]
fn faults_of_a_run_have_a_line() {
    let file = parse_simai("x.txt", &format!("\n{SMALL}")).unwrap();
    let error = file.graph(9, 1, &mut to_all).unwrap_err();
    assert_eq!(
        error.to_string(),
        "x.txt:2: `all_gpus`: the workload is for 8 ranks, but 9 are to run it\n  fix: give it 8 ranks, or generate it anew"
    );
    let graph = file.graph(8, 2, &mut to_all).unwrap();
    let program = file.workload.program(8, 2).unwrap();
    assert_eq!(graph, program.graph(&mut to_all).unwrap());
    // Of both passes; the layer is told by the size of its collective.
    for (bytes, line) in [(1000, 5), (900, 6), (2000, 5), (4096, 4), (500, 5)] {
        let refused = file.graph(
            8,
            2,
            &mut |call, graph| match call.bytes.as_u64() == bytes {
                true => Err(ExpansionFault {
                    reason: "too large".into(),
                    fix: "choose a smaller one".into(),
                }),
                false => to_all(call, graph),
            },
        );
        let error = refused.unwrap_err();
        assert_eq!(
            (error.line, error.fix.as_str()),
            (line, "choose a smaller one")
        );
        let layer = &file.workload.layers[line - 4].name;
        assert_eq!(
            error.message,
            format!("layer `{layer}` at rank 0: too large")
        );
    }
}

#[test]
fn groups_that_do_not_fit_are_refused() {
    let workload = parse(SMALL);
    let refused = |change: &dyn Fn(&mut SimaiWorkload), ranks, message: &str| {
        let mut workload = workload.clone();
        change(&mut workload);
        let error = workload.program(ranks, 1).unwrap_err();
        assert_eq!(error.message(), message);
        assert!(!error.fix().is_empty());
    };
    refused(
        &|_| {},
        4,
        "`all_gpus` of the SimAI workload: the workload is for 8 ranks, but 4 are to run it",
    );
    refused(
        &|w| w.tp = Some(3),
        8,
        "`model_parallel_NPU_group` of the SimAI workload: 8 ranks cannot be divided into 1 stages of groups of 3",
    );
    refused(
        &|w| w.pp = 3,
        8,
        "`model_parallel_NPU_group` of the SimAI workload: 8 ranks cannot be divided into 3 stages of groups of 2",
    );
    refused(
        &|w| w.ep = 3,
        8,
        "`ep` of the SimAI workload: 4 data-parallel ranks cannot be divided into groups of 3",
    );
    refused(
        &|w| w.policy = SimaiPolicy::HybridDlrm,
        8,
        "`policy` of the SimAI workload: HYBRID_DLRM can be read but not simulated",
    );
    let none = SimaiWorkload::new(SimaiPolicy::Data);
    assert!(none.program(0, 1).is_err() && none.program(1, 1).unwrap().is_empty());
}

#[test]
fn a_workload_that_is_too_large_says_what_would_fit() {
    let layer = "l -1 5 ALLREDUCE 1024 5 ALLREDUCE 1024 5 ALLREDUCE 1024 100\n".repeat(1000);
    let error = |header: &str, ranks, passes| {
        let text = format!("HYBRID_TRANSFORMER {header}\n1000\n{layer}");
        let error = parse_simai("x.txt", &text)
            .unwrap()
            .graph(ranks, passes, &mut to_all)
            .unwrap_err();
        error.to_string()
    };
    // A layer has 7 operations: 4792 ranks have 33544000 in all layers, and 8192 ranks 33546240 in 585.
    assert_snapshot!(error("model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 8192", 8192, 1), @"
    x.txt:1: `layers`: 57344000 operations of 8192 ranks in 1 pass, besides the messages of collectives, but a job may have 33554432 of both
      fix: write `all_gpus: 4792` or less, a multiple of TP x EP x PP = 2, or keep at most the first 585 of its 1000 layers
    ");
    assert_snapshot!(error("model_parallel_NPU_group: 2 ep: 16 pp: 12 all_gpus: 9216", 9216, 2), @"
    x.txt:1: `layers`: at least 129024000 operations of 9216 ranks in 2 passes, besides the messages of collectives, but a job may have 33554432 of both
      fix: run one pass, and write `all_gpus: 4608` or less, a multiple of TP x EP x PP = 384, or keep at most the first 520 of its 1000 layers
    ");
    assert_snapshot!(error("", 5000, 1), @"
    x.txt:1: `layers`: 35000000 operations of 5000 ranks in 1 pass, besides the messages of collectives, but a job may have 33554432 of both
      fix: run it on 4793 ranks or less, or keep at most the first 958 of its 1000 layers
    ");
    let data = format!("DATA ep: 4 pp: 5\n1000\n{layer}");
    let refused = parse_simai("x.txt", &data)
        .unwrap()
        .workload
        .program(20_000, 1)
        .unwrap_err();
    assert_snapshot!(refused.fix(), @"run it on 6700 ranks or less, a multiple of TP x EP x PP = 20, or keep at most the first 335 of its 1000 layers");
    assert_snapshot!(error("", 4, u32::MAX), @"
    x.txt:1: `layers`: at least 120259084260000 operations of 4 ranks in 4294967295 passes, besides the messages of collectives, but a job may have 33554432 of both
      fix: run at most 1198 of these passes
    ");
    assert_snapshot!(error("", 1, 5000), @"
    x.txt:1: `layers`: at least 35000000 operations of 1 rank in 5000 passes, besides the messages of collectives, but a job may have 33554432 of both
      fix: run at most 4793 of these passes
    ");
    assert_snapshot!(error("model_parallel_NPU_group: 64 ep: 64 pp: 2 all_gpus: 50331648", 50_331_648, 1), @"
    x.txt:1: `layers`: 352321536000 operations of 50331648 ranks in 1 pass, besides the messages of collectives, but a job may have 33554432 of both
      fix: generate it with fewer layers and for fewer ranks
    ");
}

fn any_phase(alone: SimaiGroup) -> impl Strategy<Value = SimaiPhase> {
    let group = prop_oneof![Just(alone), Just(SimaiGroup::Ep), Just(SimaiGroup::DpEp)];
    let call = (0..CALLS.len(), group, any::<u64>()).prop_map(|(kind, group, bytes)| SimaiCall {
        kind: CALLS[kind].1,
        group,
        bytes: Bytes::new(bytes),
    });
    let compute = (0..u64::MAX / 1000).prop_map(Span::from_ns);
    (compute, proptest::option::of(call)).prop_map(|(compute, call)| SimaiPhase { compute, call })
}

fn any_workload() -> impl Strategy<Value = SimaiWorkload> {
    let layer = (
        "[a-zA-Z0-9_.-]{1,12}",
        any_phase(SimaiGroup::Tp),
        any_phase(SimaiGroup::Tp),
        any_phase(SimaiGroup::Dp),
        0..u64::MAX / 1000,
        0..SimaiPolicy::ALL.len(),
    );
    let positive = || proptest::option::of(1..=u32::MAX);
    let header = (
        0..SimaiPolicy::ALL.len(),
        positive(),
        1u32..9,
        1u32..9,
        positive(),
        any::<Option<u32>>(),
    );
    let lists = (
        proptest::collection::vec(any::<u32>(), 0..3),
        proptest::option::of(1..=u64::MAX),
    );
    let layers = proptest::collection::vec(layer, 1..6);
    (header, lists, layers).prop_map(
        |((policy, tp, ep, pp, all_gpus, last), (kept, pp_comm), layers)| {
            let policy = SimaiPolicy::ALL[policy];
            let layers = layers.into_iter().map(
                |(name, forward, input_gradient, weight_gradient, ns, own)| {
                    let customized = policy == SimaiPolicy::HybridCustomized;
                    SimaiLayer {
                        name,
                        forward,
                        input_gradient,
                        weight_gradient,
                        update: Span::from_ns(ns),
                        policy: customized.then_some(SimaiPolicy::ALL[own]),
                    }
                },
            );
            SimaiWorkload {
                policy,
                tp,
                ep,
                pp,
                vpp: ep,
                ga: pp,
                all_gpus,
                checkpoints: kept.clone(),
                checkpoint_initiates: kept,
                pp_comm: pp_comm.map(Bytes::new),
                dlrm_last_bottom_layer: last,
                layers: layers.collect(),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(workload in any_workload()) {
        let text = write_simai(&workload).unwrap();
        prop_assert_eq!(parse_simai("x.txt", &text).unwrap().workload, workload);
    }

    #[test]
    fn each_rank_has_one_group_of_each_kind(tp in 1u32..5, dp in 1u32..5, ep in 1u32..5, pp in 1u32..4) {
        let mut workload = parse(SMALL);
        (workload.tp, workload.ep, workload.pp) = (Some(tp), ep, pp);
        workload.all_gpus = None;
        let ranks = tp * dp * ep * pp;
        let program = workload.program(ranks, 1).unwrap();
        let mut seen = vec![0; ranks as usize];
        for rank in program.groups.iter().flatten() {
            seen[rank.index()] += 1;
        }
        prop_assert!(seen.iter().all(|&groups| groups == 4));
        program.graph(&mut to_all).unwrap().check().unwrap();
    }
}

#[test]
fn what_simai_cannot_say_is_refused() {
    let write = |change: &dyn Fn(&mut SimaiLayer)| {
        let mut workload = parse(SMALL);
        change(&mut workload.layers[1]);
        write_simai(&workload).unwrap_err().to_string()
    };
    let call = |kind, group| {
        let bytes = Bytes::new(1);
        Some(SimaiCall { kind, group, bytes })
    };
    let (sum, barrier) = (CollectiveKind::AllReduce, CollectiveKind::Barrier);
    assert_eq!(
        write(&|l| l.name = "a b".into()),
        "layer 1: its name is not one word"
    );
    assert_eq!(
        write(&|l| l.name = "#a".into()),
        "layer 1: its name is not one word"
    );
    assert!(write(&|l| l.update = Span::from_ps(1)).contains("nanoseconds"));
    assert!(write(&|l| l.forward.call = call(sum, SimaiGroup::Dp)).contains("no such group"));
    assert!(
        write(&|l| l.weight_gradient.call = call(sum, SimaiGroup::Tp)).contains("no such group")
    );
    assert!(
        write(&|l| l.forward.call = call(barrier, SimaiGroup::Tp)).contains("no such collective")
    );
    assert!(write(&|l| l.policy = Some(SimaiPolicy::Data)).contains("its own policy"));
    let none = SimaiWorkload::new(SimaiPolicy::Data);
    assert_eq!(
        write_simai(&none).unwrap_err().to_string(),
        "layer 0: it is missing, and a workload of SimAI needs at least one layer"
    );
    let mut custom = parse(SMALL);
    custom.policy = SimaiPolicy::HybridCustomized;
    assert!(
        write_simai(&custom)
            .unwrap_err()
            .to_string()
            .contains("lacks its policy")
    );
}

#[test]
fn parts_that_a_policy_does_not_run_are_named() {
    let warning = |policy: &str, layers: &[&str]| {
        let text = format!(
            "{policy} all_gpus: 4\n{}\n{}\n",
            layers.len(),
            layers.join("\n")
        );
        let warnings = parse_simai("w.txt", &text).unwrap().warnings;
        let all: Vec<String> = warnings
            .iter()
            .map(|warning| warning.message.clone())
            .collect();
        all.join("\n")
    };
    let full = "a -1 10 ALLREDUCE 4096 20 ALLGATHER 4096 30 ALLREDUCE 8192 5";
    let idle = "b -1 10 NONE 0 20 NONE 0 30 NONE 0 5";
    assert_snapshot!(warning("MICRO", &[full]), @"left out, as in SimAI: 1 collective of forward passes, 1 collective of input gradients, 3 computations, 1 update (65ns in all); `MICRO` runs the collective of weight gradients alone");
    assert_snapshot!(warning("DATA", &[full, idle]), @"left out, as in SimAI: 1 collective of forward passes, 1 collective of input gradients, 1 computation, 1 update (25ns in all); `DATA` runs the collectives of weight gradients alone");
    assert_snapshot!(warning("MODEL", &[full, full]), @"left out, as in SimAI: 1 collective of input gradients, 2 collectives of weight gradients, 2 updates (10ns in all); `MODEL` has no collectives of weight gradients and no updates");
    assert_snapshot!(warning("DISTRIBUTED_INFERENCE", &[full]), @"left out, as in SimAI: 1 collective of input gradients, 1 collective of weight gradients, 2 computations, 1 update (55ns in all); `DISTRIBUTED_INFERENCE` runs forward passes alone");
    let transformer =
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1";
    assert_snapshot!(warning(transformer, &[full, idle]), @"left out, as in SimAI: 1 update (5ns in all); weights are updated after a collective of their gradients alone");
    assert_eq!(warning(transformer, &[full]), "");
}
