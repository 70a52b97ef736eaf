//! Profiles and execution traces that are read, and each reason for rejection.

mod chain;
mod names;

use super::*;
use crate::{TraceFormat, trace_files};
use clearway_units::Bytes;
use clearway_workload::TaskId;
use clearway_workload::program::{CollectiveCall, ExpansionFault, Operation};
use flate2::Compression;
use flate2::write::GzEncoder;
use insta::assert_snapshot;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// Profile of rank 0 with the groups `0`, of all, and `1`, of ranks 0 and 1.
struct Recording {
    rank: u32,
    world: u32,
    events: Vec<Json>,
    /// Correlation of the next kernel.
    next: i64,
}

impl Recording {
    fn new(rank: u32, world: u32) -> Self {
        Self {
            rank,
            world,
            events: Vec::new(),
            next: 1,
        }
    }

    /// Adds a call of the processor.
    fn call(mut self, name: &str, ts: f64, dur: f64, correlation: i64) -> Self {
        self.events.push(json!({
            "ph": "X", "cat": "cuda_runtime", "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": dur,
            "args": {"correlation": correlation},
        }));
        self
    }

    /// Adds a kernel and its launch, both with their times in microseconds.
    fn kernel(
        mut self,
        name: &str,
        stream: i64,
        launch: f64,
        (ts, dur): (f64, f64),
        more: Json,
    ) -> Self {
        let correlation = self.next;
        self.next += 1;
        let mut args = json!({"stream": stream, "correlation": correlation, "device": 0});
        args.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.events.push(json!({
            "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur, "args": args,
        }));
        self.call("cudaLaunchKernel", launch, 1.0, correlation)
    }

    fn compute(self, launch: f64, time: (f64, f64)) -> Self {
        self.kernel("gemm", 7, launch, time, json!({}))
    }

    /// A collective of `elements` floats on stream 20.
    fn collective(self, name: &str, elements: [i64; 2], launch: f64, time: (f64, f64)) -> Self {
        let size = self.world;
        let more = json!({
            "Collective name": name, "In msg nelems": elements[0], "Out msg nelems": elements[1], "dtype": "Float",
            "Group size": size, "Process Group Name": "0", "In split size": "[]", "Out split size": "[]",
        });
        self.kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            20,
            launch,
            time,
            more,
        )
    }

    fn step(mut self, number: u32, ts: f64, dur: f64) -> Self {
        self.events.push(json!({
            "ph": "X", "cat": "user_annotation", "name": format!("ProfilerStep#{number}"), "pid": 9, "tid": 9, "ts": ts, "dur": dur,
        }));
        self
    }

    /// Adds `record_param_comms` of the processor.
    fn record(mut self, ts: f64, dur: f64, args: Json) -> Self {
        self.events.push(json!({
            "ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": ts, "dur": dur, "args": args,
        }));
        self
    }

    fn text(&self) -> String {
        let ranks: Vec<u32> = (0..self.world).collect();
        json!({
            "schemaVersion": 1,
            "deviceProperties": [],
            "distributedInfo": {
                "backend": "nccl", "rank": self.rank, "world_size": self.world, "pg_count": 2,
                "pg_config": [
                    {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": self.world, "ranks": ranks},
                    {"pg_name": "1", "pg_desc": "pair", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": ranks[..ranks.len().min(2)]},
                ],
            },
            "traceEvents": self.events,
            "traceName": "t.json",
        })
        .to_string()
    }
}

/// The traces of these texts, one for each rank.
fn read(texts: &[String]) -> Result<PytorchTrace, String> {
    read_steps(texts, &[])
}

fn read_steps(texts: &[String], steps: &[u32]) -> Result<PytorchTrace, String> {
    let mut reader = PytorchReader::new(texts.len() as u32).with_steps(steps);
    for (rank, text) in (0..).zip(texts) {
        let name = format!("t.{rank}.json");
        let read = reader.read(&name, Some(rank), text.as_bytes());
        read.map_err(|error| error.to_string())?;
    }
    Ok(reader.finish())
}

/// The operations of a rank as text: each with its dependencies.
fn shown_rank(trace: &PytorchTrace, rank: usize) -> String {
    let program = &trace.program.ranks[rank];
    let mut text = String::new();
    for (index, operation) in (0..).zip(program.operations()) {
        let what = match *operation {
            Operation::Compute { span, .. } => format!("compute {span}"),
            Operation::Send { to, bytes, tag } => format!("send {bytes} to {to} tag {tag}"),
            Operation::Receive { from, bytes, tag } => {
                let (from, tag) = (from.unwrap(), tag.unwrap());
                format!("receive {bytes} from {from} tag {tag}")
            }
            Operation::Collective { kind, bytes, group } => {
                let ranks = trace.program.groups[group as usize].iter();
                let ranks: Vec<String> = ranks.map(ToString::to_string).collect();
                format!("{} {bytes} of {}", kind.name(), ranks.join(","))
            }
        };
        let waits: Vec<String> = program
            .waits(index)
            .iter()
            .map(|wait| wait.operation.to_string())
            .collect();
        let waits = waits.join(",");
        let after = if waits.is_empty() { "" } else { " after " };
        writeln!(text, "{index} {what}{after}{waits}").unwrap();
    }
    text
}

fn around(
    call: &CollectiveCall<'_>,
    graph: &mut Graph,
) -> Result<Vec<Vec<TaskId>>, ExpansionFault> {
    let next = call.group.iter().cycle().skip(1);
    let messages = call.group.iter().zip(next).zip(call.starts);
    Ok(messages
        .map(|((&src, &dst), &start)| {
            vec![graph.message((src, dst), call.bytes.max(Bytes::new(1)), [start])]
        })
        .collect())
}

/// A step of data-parallel training: the second half of the backward pass runs beside the first all-reduce, the optimizer waits for both.
fn data_parallel(rank: u32, world: u32) -> Recording {
    Recording::new(rank, world)
        .compute(0.0, (10.0, 100.0))
        .call("cudaStreamWaitEvent", 3.0, 1.0, 900)
        .collective("allreduce", [1000, 1000], 5.0, (110.0, 50.0))
        .record(2.0, 4.0, json!({}))
        .compute(6.0, (112.0, 88.0))
        .call("cudaStreamWaitEvent", 9.0, 1.0, 901)
        .collective("allreduce", [500, 500], 10.0, (200.0, 40.0))
        .record(8.0, 4.0, json!({}))
        .call("cudaStreamWaitEvent", 14.0, 1.0, 902)
        .compute(15.0, (245.0, 30.0))
}

#[test]
fn a_step_of_data_parallel_training() {
    let trace = read(&[data_parallel(0, 2).text(), data_parallel(1, 2).text()]).unwrap();
    assert_eq!(trace.warnings, []);
    // The first all-reduce waits for the first kernel alone, and the second kernel for no all-reduce. The optimizer waits for both, and
    // the 5 us before it are time of the processor. 40 us in which the GPU only communicates are no computation.
    assert_snapshot!(shown_rank(&trace, 0), @"
    0 compute 100us
    1 all-reduce 4KB of 0,1 after 0
    2 compute 88us after 0
    3 all-reduce 2KB of 0,1 after 1,2
    4 compute 5us after 2,3
    5 compute 30us after 1,4
    6 compute 0s after 5
    ");
    let graph = trace.graph(&mut around).unwrap();
    graph.check().unwrap();
}

#[test]
fn packed_files_are_the_same() {
    let texts = [data_parallel(0, 2).text(), data_parallel(1, 2).text()];
    let plain = read(&texts).unwrap();
    let mut reader = PytorchReader::new(2);
    for (rank, text) in (0..).zip(&texts) {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(TraceFormat::detect(&packed), Some(TraceFormat::Pytorch));
        assert_eq!(
            TraceFormat::detect(text.as_bytes()),
            Some(TraceFormat::Pytorch)
        );
        reader
            .read(&format!("t.{rank}.json"), Some(rank), packed.as_slice())
            .unwrap();
    }
    assert_eq!(reader.finish(), plain);
}

#[test]
fn steps_are_chosen() {
    let recording = |rank| {
        Recording::new(rank, 2)
            .collective("allreduce", [1, 1], -5.0, (-4.0, 1.0))
            .step(4, 0.0, 100.0)
            .compute(1.0, (10.0, 20.0))
            .collective("allreduce", [4, 4], 2.0, (30.0, 20.0))
            .step(5, 100.0, 100.0)
            .compute(101.0, (120.0, 20.0))
            .collective("allreduce", [5, 5], 102.0, (140.0, 20.0))
            .text()
    };
    let texts = [recording(0), recording(1)];
    let all = read(&texts).unwrap();
    assert_snapshot!(all.warnings[0], @"t.0.json: rank 0 has communications that were started outside of all `ProfilerStep`s, which are left out (and 1 more like it)");
    assert_snapshot!(shown_rank(&all, 0), @"
    0 compute 30us
    1 all-reduce 16B of 0,1 after 0
    2 compute 90us after 0
    3 compute 20us after 1,2
    4 all-reduce 20B of 0,1 after 1,3
    5 compute 40us after 3
    6 compute 0s after 4,5
    ");
    let one = read_steps(&texts, &[5]).unwrap();
    assert_snapshot!(shown_rank(&one, 1), @"
    0 compute 40us
    1 all-reduce 20B of 0,1 after 0
    2 compute 40us after 0
    3 compute 0s after 1,2
    ");
    assert_snapshot!(read_steps(&texts, &[6]).unwrap_err(), @"
    t.0.json: rank 0 has no `ProfilerStep#6`
      fix: choose steps from 4 to 5, or leave `profiler-steps` out
    ");
    assert_snapshot!(read_steps(&[data_parallel(0, 1).text()], &[0]).unwrap_err(), @"
    t.0.json: rank 0 has no `ProfilerStep#0`
      fix: leave `profiler-steps` out, or call `step()` of the profiler after each iteration
    ");
}

#[test]
fn every_kind_of_call() {
    let recording = |rank: u32| {
        let mut recording = Recording::new(rank, 2);
        let calls = [
            ("allreduce", [8, 8]),
            ("_allgather_base", [4, 8]),
            ("all_gather", [4, 8]),
            ("allgather_into_tensor_coalesced", [4, 8]),
            ("_reduce_scatter_base", [8, 4]),
            ("all_to_all", [8, 8]),
            ("broadcast", [8, 8]),
            ("reduce", [8, 8]),
            ("gather", [4, 8]),
            ("scatter", [4, 8]),
            ("barrier", [0, 0]),
        ];
        for (index, (name, elements)) in calls.into_iter().enumerate() {
            let at = 10.0 * index as f64;
            recording = recording.collective(name, elements, at, (at + 5.0, 5.0));
        }
        recording.text()
    };
    let trace = read(&[recording(0), recording(1)]).unwrap();
    let operations = shown_rank(&trace, 1);
    let calls: Vec<&str> = operations
        .lines()
        .filter(|line| !line.contains("compute"))
        .collect();
    assert_snapshot!(calls.join("\n"), @"
    0 all-reduce 32B of 0,1
    2 all-gather 32B of 0,1 after 0,1
    4 all-gather 32B of 0,1 after 2,3
    6 all-gather 32B of 0,1 after 4,5
    8 reduce-scatter 32B of 0,1 after 6,7
    10 all-to-all 32B of 0,1 after 8,9
    12 broadcast 32B of 0,1 after 10,11
    14 reduce 32B of 0,1 after 12,13
    16 gather 32B of 0,1 after 14,15
    18 scatter 32B of 0,1 after 16,17
    20 barrier 0B of 0,1 after 18,19
    ");
    assert_snapshot!(trace.warnings[0], @"t.0.json: `broadcast` of rank 0 at 65.000 us has a root that is not in the trace, and takes the first rank of its group as the root (and 7 more like it)");
    trace.graph(&mut around).unwrap().check().unwrap();
}

#[test]
fn the_root_of_a_broadcast_comes_first() {
    let recording = |rank| {
        let external = json!({"External id": 77, "Collective name": "broadcast", "In msg nelems": 10, "Out msg nelems": 10,
            "dtype": "BFloat16", "Group size": 4, "Process Group Name": "0", "Rank": 2});
        let mut of_kernel = external.clone();
        of_kernel.as_object_mut().unwrap().remove("Rank");
        let name = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        Recording::new(rank, 4)
            .record(0.0, 3.0, external)
            .kernel(name, 20, 1.0, (5.0, 5.0), of_kernel.clone())
            // Kineto gives the details to copies within the call as well.
            .kernel(
                "vectorized_elementwise_kernel",
                7,
                2.0,
                (4.0, 1.0),
                of_kernel,
            )
            .text()
    };
    let texts: Vec<String> = (0..4).map(recording).collect();
    let trace = read(&texts).unwrap();
    assert_eq!(trace.warnings, []);
    assert_snapshot!(shown_rank(&trace, 0), @"
    0 broadcast 20B of 2,3,0,1
    1 compute 1us
    2 compute 0s after 0,1
    ");
}

#[test]
fn sends_and_receives() {
    let recording = |rank: u32| {
        let (name, key) = if rank == 0 {
            ("send", "Dst Rank")
        } else {
            ("recv", "Src Rank")
        };
        let peer = 1 - rank;
        let details = json!({"Collective name": name, "In msg nelems": 100, "Out msg nelems": 100, "dtype": "Half",
            "Group size": 2, "Process Group Name": "1", "Process Group Ranks": "[0, 1]", key: peer});
        Recording::new(rank, 2)
            .compute(0.0, (5.0, 10.0))
            .kernel(
                "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                21,
                1.0,
                (15.0, 9.0),
                details,
            )
            .text()
    };
    let trace = read(&[recording(0), recording(1)]).unwrap();
    assert_snapshot!(shown_rank(&trace, 0), @"
    0 compute 10us
    1 send 200B to 1 tag 0 after 0
    2 compute 0s after 0,1
    ");
    assert_snapshot!(shown_rank(&trace, 1), @"
    0 compute 10us
    1 receive 200B from 0 tag 0 after 0
    2 compute 0s after 0,1
    ");
    trace.graph(&mut around).unwrap().check().unwrap();
}

#[test]
fn a_kernel_for_several_calls() {
    // As of `batch_isend_irecv`: two calls of the processor, then one kernel that has no details.
    let recording = |rank: u32| {
        let peer = 1 - rank;
        let details = |name: &str, key: &str, external: i64| {
            json!({"Collective name": name, "In msg nelems": 100, "Out msg nelems": 100, "dtype": "Half", "External id": external,
                "Group size": 2, "Process Group Name": "0", key: peer, "Rank": peer})
        };
        let name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
        Recording::new(rank, 2)
            .record(1.0, 1.0, details("send", "Dst Rank", 5))
            .record(3.0, 1.0, details("recv", "Src Rank", 6))
            .kernel(name, 21, 6.0, (15.0, 9.0), json!({}))
            .record(8.0, 1.0, details("recv", "Src Rank", 7))
            .record(9.0, 1.0, details("send", "Dst Rank", 8))
            .kernel(name, 21, 10.0, (30.0, 9.0), json!({}))
            .text()
    };
    let trace = read(&[recording(0), recording(1)]).unwrap();
    assert_snapshot!(shown_rank(&trace, 0), @"
    0 send 200B to 1 tag 0
    1 receive 200B from 1 tag 0
    2 compute 0s after 0,1
    3 compute 6us
    4 receive 200B from 1 tag 0 after 2,3
    5 send 200B to 1 tag 0 after 2,3
    6 compute 0s after 4,5
    7 compute 0s after 2,3,6
    ");
    trace.graph(&mut around).unwrap().check().unwrap();
    let alone = Recording::new(0, 1).kernel("ncclKernel_SendRecv", 21, 6.0, (15.0, 9.0), json!({}));
    assert_snapshot!(read(&[alone.text()]).unwrap_err(), @"
    t.0.json: rank 0 has the kernel `ncclKernel_SendRecv` at 15.000 us, but no `Collective name` for it
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    ");
}

#[test]
fn parts_of_an_all_to_all() {
    let recording = |rank: u32, sent: &str, received: &str, elements: [i64; 2]| {
        let details = json!({"Collective name": "all_to_allv", "In msg nelems": elements[0], "Out msg nelems": elements[1],
            "dtype": "Byte", "Group size": 3, "Process Group Name": "0", "In split size": sent, "Out split size": received});
        let name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
        Recording::new(rank, 3)
            .kernel(name, 21, 1.0, (15.0, 9.0), details)
            .text()
    };
    // Rows of ten elements.
    let exact = [
        recording(0, "[1, 2, 0]", "[1, 3, 1]", [30, 50]),
        recording(1, "[3, 4, 5]", "[2, 4, 2]", [120, 80]),
        recording(2, "[1, 2, 3]", "[0, 5, 3]", [60, 80]),
    ];
    let trace = read(&exact).unwrap();
    assert_eq!(trace.warnings, []);
    assert_snapshot!(shown_rank(&trace, 0), @"
    0 send 20B to 1 tag 1
    1 receive 10B from 2 tag 1
    2 receive 30B from 1 tag 1
    3 compute 0s after 0,1,2
    4 compute 0s after 3
    ");
    let graph = trace.graph(&mut around).unwrap();
    let sent: Vec<u64> = graph
        .bytes_sent()
        .iter()
        .map(|bytes| bytes.as_u64())
        .collect();
    assert_eq!(sent, [20, 80, 30]);
    // A list that is cut off: each sends equal parts of its own array.
    let cut_off = [0, 1, 2].map(|rank| {
        recording(
            rank,
            "[1, ..., 1]",
            "[1, ..., 1]",
            [30 * (1 + i64::from(rank)), 50],
        )
    });
    let trace = read(&cut_off).unwrap();
    assert_snapshot!(trace.warnings[0], @"t.0.json: `all_to_allv` of rank 0 at 15.000 us lists only some of its parts, and sends equal parts: an execution trace lists all (and 2 more like it)");
    let graph = trace.graph(&mut around).unwrap();
    let sent: Vec<u64> = graph
        .bytes_sent()
        .iter()
        .map(|bytes| bytes.as_u64())
        .collect();
    assert_eq!(sent, [20, 40, 60]);
    let mut wrong = exact.clone();
    wrong[0] = recording(0, "[1, 2, 1]", "[1, 3, 1]", [30, 50]);
    assert_snapshot!(read(&wrong).unwrap_err(), @"
    t.0.json: `all_to_allv` of rank 0 at 15.000 us has 30 elements, but the parts of `In split size` sum up to 4
      fix: restore the file if it was changed
    ");
    wrong[0] = recording(0, "[1, 2]", "[1, 3, 1]", [30, 50]);
    assert_snapshot!(read(&wrong).unwrap_err(), @"
    t.0.json: `all_to_allv` of rank 0 at 15.000 us has 2 parts as `In split size` in a group of 3 ranks
      fix: restore the file if it was changed
    ");
    wrong[0] = recording(0, "[4, -1, 0]", "[1, 3, 1]", [30, 50]);
    assert_snapshot!(read(&wrong).unwrap_err(), @"
    t.0.json: `all_to_allv` of rank 0 at 15.000 us has a negative part in `In split size`
      fix: restore the file if it was changed
    ");
}

#[test]
fn groups_come_from_several_places() {
    let details = |more: Json| {
        let mut details = json!({"Collective name": "allreduce", "In msg nelems": 1, "Out msg nelems": 1, "dtype": "Float",
            "Group size": 2, "Process Group Name": "1"});
        details
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        details
    };
    let recording = |rank: u32, more: Json| {
        Recording::new(rank, 4)
            .kernel(
                "ncclDevKernel_AllReduce",
                20,
                0.0,
                (1.0, 1.0),
                details(more),
            )
            .text()
    };
    let ranks_of = |more: fn(u32) -> Json| {
        let texts: Vec<String> = (0..2).map(|rank| recording(rank, more(rank))).collect();
        let mut reader = PytorchReader::new(4);
        for (rank, text) in (0..).zip(&texts) {
            reader
                .read("t", Some(rank), text.as_bytes())
                .map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(reader.groups_of_program.groups)
    };
    let pair = vec![[Rank(0), Rank(1)].to_vec()];
    // From `pg_config`, and from the call.
    assert_eq!(ranks_of(|_| json!({})).unwrap(), pair);
    assert_eq!(
        ranks_of(|_| json!({"Process Group Ranks": "[0, ..., 1]"})).unwrap(),
        pair
    );
    let of_call = ranks_of(|rank| json!({"Process Group Ranks": [rank, 3]})).unwrap();
    assert_eq!(of_call, [[Rank(0), Rank(3)], [Rank(1), Rank(3)]]);
    // A group of all ranks needs no list.
    let all = ranks_of(|_| json!({"Process Group Name": "x", "Group size": 4})).unwrap();
    assert_eq!(all, [[Rank(0), Rank(1), Rank(2), Rank(3)]]);
    assert_snapshot!(ranks_of(|_| json!({"Process Group Name": "x"})).unwrap_err(), @"
    t: `allreduce` of rank 0 at 1.000 us is a call on group `x`, whose ranks are not known
      fix: list the ranks of the group in a comm-group file, and name it with `comm-groups`
    ");
    assert_snapshot!(ranks_of(|_| json!({"Process Group Ranks": [0, 4]})).unwrap_err(), @"
    t: `allreduce` of rank 0 at 1.000 us is a call on a group that has rank 4, but there are traces of 4 ranks
      fix: list the ranks of the group in a comm-group file, and name it with `comm-groups`
    ");
    assert_snapshot!(ranks_of(|_| json!({"Process Group Ranks": [2, 3]})).unwrap_err(), @"
    t: `allreduce` of rank 0 at 1.000 us is a call on a group without rank 0
      fix: check that each rank has its own file, and name the ranks of the group with `comm-groups`
    ");
}

#[test]
fn a_comm_group_file_comes_first() {
    let mut reader = PytorchReader::new(4);
    reader
        .groups("g.json", "{\"0\": [0, 1, 2, 3], \"1\": [0, 2]}")
        .unwrap();
    let details = json!({"Collective name": "allreduce", "In msg nelems": 1, "Out msg nelems": 1, "dtype": "Float",
        "Group size": 2, "Process Group Name": "1", "Process Group Ranks": [0, 1]});
    let text = Recording::new(0, 4)
        .kernel("ncclDevKernel_AllReduce", 20, 0.0, (1.0, 1.0), details)
        .text();
    reader.read("t", Some(0), text.as_bytes()).unwrap();
    assert_eq!(reader.groups_of_program.groups, [[Rank(0), Rank(2)]]);
}

/// Nodes of an execution trace: the groups, then the calls.
fn nodes(calls: &[Json]) -> String {
    let groups = json!([
        {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [], "group_size": 2, "group_count": 2},
    ]);
    let mut nodes = vec![json!({
        "id": 3, "name": "## process_group:init ##", "ctrl_deps": 2,
        "inputs": {"values": [groups.to_string()], "shapes": [[]], "types": ["String"]},
    })];
    nodes.extend_from_slice(calls);
    json!({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": nodes}).to_string()
}

/// A call of `name` with this id, of `elements` and the other rank or root `rank`.
fn call_node(id: i64, name: &str, elements: [i64; 2], rank: i64) -> Json {
    let attribute = |name: &str, value: Json| json!({"name": name, "type": "x", "value": value});
    json!({
        "id": id, "name": "record_param_comms", "ctrl_deps": 2,
        "inputs": {"values": [[[14, 15, 0, 1, 4, "cuda:0"]], [12, false], ["0", "default_pg"], rank, name, [], [], -1, -1, 2]},
        "outputs": {"values": []},
        "attrs": [
            attribute("rf_id", json!(1)),
            attribute("collective_name", json!(name)),
            attribute("dtype", json!("Float")),
            attribute("in_msg_nelems", json!(elements[0])),
            attribute("out_msg_nelems", json!(elements[1])),
            attribute("in_split_size", json!("[]")),
            attribute("out_split_size", json!("[]")),
            attribute("pg_name", json!("0")),
            attribute("pg_size", json!(2)),
        ],
    })
}

#[test]
fn an_execution_trace_has_no_times() {
    let text = |rank: i64| {
        let message = if rank == 0 { "send" } else { "recv" };
        nodes(&[
            call_node(30, message, [7, 7], 1 - rank),
            call_node(20, "_allgather_base", [50, 100], 0),
            call_node(25, "wait", [0, 0], 0),
            call_node(40, "broadcast", [5, 5], 1),
        ])
    };
    let trace = read(&[text(0), text(1)]).unwrap();
    assert_snapshot!(trace.warnings[0], @"t.0.json: rank 0 has an execution trace without times: its communications follow one another, and computations take no time; a profile has times (and 1 more like it)");
    assert_snapshot!(shown_rank(&trace, 0), @"
    0 all-gather 400B of 0,1
    1 send 28B to 1 tag 0 after 0
    2 broadcast 20B of 1,0 after 1
    3 compute 0s after 0,1,2
    ");
    trace.graph(&mut around).unwrap().check().unwrap();
    let old = text(0)
        .replace("pg_name\",\"type", "other\",\"type")
        .replace("pg_size", "other");
    assert_snapshot!(read(&[old.clone(), old]).unwrap_err(), @"
    t.0.json: `_allgather_base` of rank 0 (its communication 1) does not name its group
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    ");
    let twice = read(&[text(0), text(0)]).unwrap();
    assert_snapshot!(twice.graph(&mut around).unwrap_err(), @"
    t.0.json: `send` of rank 0 (its communication 2) sends to rank 1 with tag 0, but no receive is left there for it
      fix: add the receive at rank 1, or remove the send; ranks whose recordings begin or end at different moments have different calls: choose whole steps with `profiler-steps`
    ");
    assert_snapshot!(read_steps(&[text(0), text(1)], &[1]).unwrap_err(), @"
    t.0.json: rank 0 has an execution trace, which has no `ProfilerStep#1`
      fix: leave `profiler-steps` out
    ");
}

#[test]
fn a_linked_execution_trace_has_times() {
    let kernel = |id: i64, parent: i64, name: &str, ts: f64, dur: f64, stream: i64| {
        json!({"id": id, "name": name, "ctrl_deps": parent, "cat": "kernel", "ts": ts, "inclusive_dur": dur, "stream": stream,
            "inputs": {"values": []}, "attrs": []})
    };
    let mut call = call_node(20, "allreduce", [50, 50], 0);
    let object = call.as_object_mut().unwrap();
    object.insert("ts".into(), json!(3.0));
    object.insert("inclusive_dur".into(), json!(2.0));
    let nccl = json!({"id": 21, "name": "nccl:all_reduce", "ctrl_deps": 20, "inputs": {"values": []}, "ts": 4.0, "inclusive_dur": 1.0});
    let operator = json!({"id": 10, "name": "aten::mm", "ctrl_deps": 2, "inputs": {"values": []}, "ts": 1.0, "inclusive_dur": 1.0});
    let text = nodes(&[
        operator,
        kernel(11, 10, "gemm", 10.0, 20.0, 7),
        call,
        nccl,
        kernel(22, 21, "ncclDevKernel_AllReduce", 30.0, 9.0, 20),
    ]);
    let trace = read(&[text.clone(), text.clone()]).unwrap();
    assert_eq!(trace.warnings, []);
    assert_snapshot!(shown_rank(&trace, 0), @"
    0 compute 20us
    1 all-reduce 200B of 0,1 after 0
    2 compute 0s after 0,1
    ");
    let untimed = text.replace("\"ts\":10.0", "\"ts\":null");
    assert_snapshot!(read(&[untimed.clone(), untimed]).unwrap_err(), @"
    t.0.json: rank 0 has a kernel without a valid time, node 11
      fix: restore the file if it was changed; `ts` and `inclusive_dur` are microseconds
    ");
    let lost = text.replace("\"ctrl_deps\":20", "\"ctrl_deps\":19");
    assert_snapshot!(read(&[lost.clone(), lost]).unwrap_err(), @"
    t.0.json: rank 0 has the kernel `ncclDevKernel_AllReduce` at 30.000 us, but no `record_param_comms` for it
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    ");
}

#[test]
fn faults_of_files() {
    let one = |text: &str| {
        let mut reader = PytorchReader::new(1);
        reader
            .read("t.json", None, text.as_bytes())
            .unwrap_err()
            .to_string()
    };
    assert_snapshot!(one("{\"traceEvents\": [{\"ts\": 1},\n  oops]}"), @"
    t.json:2:3: expected value
      fix: restore the file if it was cut off or changed; PyTorch writes JSON, plain or packed with gzip
    ");
    assert_snapshot!(one("{\"traceEvents\": {}}"), @"
    t.json:1:17: invalid type: map, expected a list
      fix: restore the file if it was cut off or changed; PyTorch writes JSON, plain or packed with gzip
    ");
    assert_snapshot!(one("{\"traceEvents\": []"), @"
    t.json:1:18: EOF while parsing an object
      fix: restore the file if it was cut off or changed; PyTorch writes JSON, plain or packed with gzip
    ");
    assert_snapshot!(one("{}"), @"
    t.json: rank 0 has neither `traceEvents` nor `nodes`
      fix: name a file that `export_chrome_trace` or the execution trace observer of PyTorch wrote
    ");
    assert_snapshot!(one("{\"traceEvents\": []}"), @"
    t.json: rank 0 has no kernels of the GPU and no communications
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    ");
    assert_snapshot!(one("{\"nodes\": []}"), @"
    t.json: rank 0 has no kernels of the GPU and no communications
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    ");
    let kernel = |ts: &str| {
        one(&format!(
            "{{\"traceEvents\": [{{\"cat\": \"kernel\", \"name\": \"gemm\", \"ts\": {ts}}}, {{\"cat\": \"kernel\", \"ts\": 0}}]}}"
        ))
    };
    assert_snapshot!(kernel("null"), @"
    t.json: rank 0 has the kernel `gemm` without a valid time
      fix: restore the file if it was changed; `ts` and `dur` are microseconds
    ");
    assert_snapshot!(kernel("18446744073709551615"), @"
    t.json: rank 0 has the kernel `gemm` without a valid time
      fix: restore the file if it was changed; `ts` and `dur` are microseconds
    ");
    assert_snapshot!(kernel("1e30"), @"
    t.json: rank 0 has the kernel `gemm` without a valid time
      fix: restore the file if it was changed; `ts` and `dur` are microseconds
    ");
    assert_snapshot!(kernel("18500000000000"), @"
    t.json: rank 0 has kernels that lie more than 213 days apart
      fix: restore the file if it was changed
    ");
    assert_snapshot!(one("\x1f\u{8b}"), @"
    t.json:1:1: expected value
      fix: restore the file if it was cut off or changed; PyTorch writes JSON, plain or packed with gzip
    ");
    assert_snapshot!(one(&data_parallel(0, 2).text()), @"
    t.json: the job has 2 ranks according to `distributedInfo`, but there are traces of 1
      fix: record all ranks, and name the file of one of them if the names differ in the rank alone, else their folder
    ");
    let two = |named: Option<u32>, text: &str| {
        let mut reader = PytorchReader::new(2);
        let first = data_parallel(0, 2).text();
        reader.read("first.json", None, first.as_bytes()).unwrap();
        reader
            .read("t.json", named, text.as_bytes())
            .unwrap_err()
            .to_string()
    };
    assert_snapshot!(two(None, &data_parallel(0, 2).text()), @"
    t.json: this is a trace of rank 0, and so is first.json
      fix: keep one of them
    ");
    assert_snapshot!(two(Some(0), &data_parallel(1, 2).text()), @"
    t.json: the file is called the trace of rank 0, but its `distributedInfo` says rank 1
      fix: rename the file, or name the folder of the traces, whose files may have any names
    ");
    assert_snapshot!(two(None, &data_parallel(2, 2).text()), @"
    t.json: this is the trace of rank 2, but there are traces of 2 ranks
      fix: name the files of all ranks from 0, which may differ in the rank alone, or name their folder
    ");
    assert_snapshot!(two(None, &nodes(&[])), @"
    t.json: neither `distributedInfo` nor the name of the file says its rank
      fix: call the files of all ranks `<prefix>.<rank>.json`, and name the first
    ");
}

#[test]
fn faults_of_calls() {
    let with = |more: Json| {
        let mut details = json!({"Collective name": "allreduce", "In msg nelems": 1, "Out msg nelems": 1, "dtype": "Float",
            "Group size": 1, "Process Group Name": "0"});
        details
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let text = Recording::new(0, 1)
            .kernel("ncclDevKernel_X", 20, 0.0, (1.5, 1.0), details)
            .text();
        read(&[text]).unwrap_err()
    };
    assert_snapshot!(with(json!({"Collective name": "all_together"})), @"
    t.0.json: `all_together` of rank 0 at 1.500 us is not a known communication
      fix: leave it out of the trace, or write it as a collective that PyTorch has with NCCL
    ");
    assert_snapshot!(with(json!({"dtype": "Quad"})), @"
    t.0.json: `allreduce` of rank 0 at 1.500 us has elements of the unknown type `Quad`
      fix: write one of PyTorch's types, such as `Float` or `BFloat16`
    ");
    assert_snapshot!(with(json!({"dtype": null})), @"
    t.0.json: `allreduce` of rank 0 at 1.500 us has no `dtype`
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    ");
    assert_snapshot!(with(json!({"In msg nelems": null})), @"
    t.0.json: `allreduce` of rank 0 at 1.500 us has no `In msg nelems`
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    ");
    assert_snapshot!(with(json!({"Out msg nelems": -3})), @"
    t.0.json: `allreduce` of rank 0 at 1.500 us has -3 as `Out msg nelems`
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    ");
    assert_snapshot!(with(json!({"In msg nelems": i64::MAX})), @"
    t.0.json: `allreduce` of rank 0 at 1.500 us has 9223372036854775807 elements, more than 2^64 bytes
      fix: restore the file if it was changed
    ");
    assert_snapshot!(with(json!({"Collective name": "send"})), @"
    t.0.json: `send` of rank 0 at 1.500 us does not name the other rank
      fix: record with PyTorch 2.6 or later, which writes `Dst Rank` and `Src Rank`
    ");
    assert_snapshot!(with(json!({"Collective name": "send", "Dst Rank": 3})), @"
    t.0.json: `send` of rank 0 at 1.500 us names rank 3, which is not in its group
      fix: record with PyTorch 2.6 or later, which writes `Dst Rank` and `Src Rank`
    ");
    assert_snapshot!(with(json!({"Collective name": "recv", "Rank": 3})), @"
    t.0.json: `recv` of rank 0 at 1.500 us names place 3 of its group of 1 rank
      fix: record with PyTorch 2.6 or later, which writes `Dst Rank` and `Src Rank`
    ");
}

#[test]
fn calls_that_do_not_meet_are_named() {
    let more = data_parallel(0, 2).collective("allreduce", [7, 7], 16.0, (300.0, 1.0));
    let trace = read(&[more.text(), data_parallel(1, 2).text()]).unwrap();
    assert_snapshot!(trace.graph(&mut around).unwrap_err(), @"
    t.0.json: `allreduce` of rank 0 at 300.000 us is a collective in which rank 1 takes no part: it has fewer calls on that group
      fix: check that the trace of rank 1 is complete and belongs to the same run; ranks whose recordings begin or end at different moments have different calls: choose whole steps with `profiler-steps`
    ");
}
