//! Writes small traces to try: one of each kind that a workload of kind "trace" reads.
//!
//! `cargo run --release -p clearway-workload --example traces -- DIR` makes the folder DIR and in it
//!
//! * `exchange.goal` and `exchange.bin`: a schedule in GOAL of four ranks that compute and pass messages around, as text and in binary;
//! * `training.0.et` to `training.3.et`, with `training.groups.json`: execution traces of Chakra of four ranks, two by two in groups;
//! * `transformer.txt`: a workload of SimAI of eight ranks, two of which share each layer;
//! * `profile.0.json` to `profile.3.json`: profiles of PyTorch of four ranks, with two steps of data-parallel training;
//! * `execution.0.json` to `execution.3.json`: execution traces of PyTorch of four ranks, with sharded parameters.

#![allow(clippy::print_stdout, reason = "a program that prints")]

use clearway_formats::{
    SimaiCall, SimaiGroup, SimaiLayer, SimaiPhase, SimaiPolicy, SimaiWorkload, write_chakra,
    write_goal, write_goal_binary, write_simai,
};
use clearway_units::{Bytes, Span};
use clearway_workload::{
    CollectiveKind, JobProgram, Operation, OperationDependency, Rank, RankProgram,
};
use std::path::Path;
use std::process::ExitCode;

/// Number of ranks of the schedule and of the execution traces.
const RANKS: u32 = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder] = arguments.as_slice() else {
        eprintln!(
            "one argument is needed, the folder to write traces to, but there are {}",
            arguments.len()
        );
        eprintln!(
            "  fix: cargo run --release -p clearway-workload --example traces -- /tmp/traces"
        );
        return ExitCode::from(2);
    };
    match write(Path::new(folder)) {
        Ok(names) => {
            println!("wrote {} to {folder}", names.join(", "));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!(
                "cannot write to {folder}: {error}\n  fix: name a folder that you may write to"
            );
            ExitCode::FAILURE
        }
    }
}

/// Writes the traces to `folder`, which is made if it is not there. Returns the names of the files.
///
/// # Errors
/// If a file or the folder cannot be written.
pub(crate) fn write(folder: &Path) -> std::io::Result<Vec<String>> {
    std::fs::create_dir_all(folder)?;
    let mut names = Vec::new();
    for (name, content) in files().map_err(std::io::Error::other)? {
        std::fs::write(folder.join(&name), content)?;
        names.push(name);
    }
    Ok(names)
}

/// A file's name and its content.
type NamedFile = (String, Vec<u8>);

/// All files.
fn files() -> Result<Vec<NamedFile>, Box<dyn std::error::Error + Send + Sync>> {
    let exchange = program(Vec::new(), around);
    let mut files = vec![
        (
            "exchange.goal".to_owned(),
            write_goal(&exchange)?.into_bytes(),
        ),
        ("exchange.bin".to_owned(), write_goal_binary(&exchange)?),
    ];
    let chakra = write_chakra(&program(groups(), step))?;
    let traces = (0..RANKS).zip(chakra.traces);
    files.extend(traces.map(|(rank, trace)| (format!("training.{rank}.et"), trace)));
    files.push(("training.groups.json".into(), chakra.groups.into_bytes()));
    files.push((
        "transformer.txt".into(),
        write_simai(&transformer())?.into_bytes(),
    ));
    for rank in 0..RANKS {
        files.push((format!("profile.{rank}.json"), profile(rank).into_bytes()));
    }
    for rank in 0..RANKS {
        files.push((format!("execution.{rank}.json"), execution().into_bytes()));
    }
    Ok(files)
}

/// Program of all ranks. `operations` gives the operations of a rank, each with the index of the one that it waits for, if any.
fn program(
    groups: Vec<Vec<Rank>>,
    operations: fn(u32) -> Vec<(Operation, Option<u32>)>,
) -> JobProgram {
    let rank = |rank: u32| {
        let (operations, waits): (Vec<_>, Vec<_>) = operations(rank).into_iter().unzip();
        let waits = (0..).zip(waits);
        let waits =
            waits.filter_map(|(index, wait)| Some((index, OperationDependency::over(wait?))));
        RankProgram::new(operations, waits.collect())
    };
    JobProgram {
        ranks: (0..RANKS).map(rank).collect(),
        groups,
    }
}

fn compute(us: u64) -> Operation {
    let (unit, span) = (0, Span::from_us(us));
    Operation::Compute { unit, span }
}

/// Rank 0 computes and sends to the next one, which computes and passes it on, until it is back at rank 0.
fn around(rank: u32) -> Vec<(Operation, Option<u32>)> {
    let (bytes, tag) = (Bytes::new(1_000_000), 1);
    let send = Operation::Send {
        to: Rank((rank + 1) % RANKS),
        bytes,
        tag,
    };
    let receive = Operation::Receive {
        from: Some(Rank((rank + RANKS - 1) % RANKS)),
        bytes,
        tag: Some(tag),
    };
    match rank {
        0 => vec![(compute(20), None), (send, Some(0)), (receive, None)],
        _ => vec![(receive, None), (compute(20), Some(0)), (send, Some(1))],
    }
}

/// Groups of ranks: neighbours share layers, ranks two apart have the same layers.
fn groups() -> Vec<Vec<Rank>> {
    [[0, 1], [2, 3], [0, 2], [1, 3]]
        .map(|group| group.map(Rank).to_vec())
        .to_vec()
}

/// A step of training: forward, backward, each with a sum in the first group of the rank, and the gradients' sum in its second one.
fn step(rank: u32) -> Vec<(Operation, Option<u32>)> {
    let sum = |group, bytes| Operation::Collective {
        kind: CollectiveKind::AllReduce,
        bytes: Bytes::new(bytes),
        group,
    };
    let (near, far) = (rank / 2, 2 + rank % 2);
    vec![
        (compute(50), None),
        (sum(near, 4_000_000), Some(0)),
        (compute(100), Some(1)),
        (sum(near, 4_000_000), Some(2)),
        (sum(far, 16_000_000), Some(2)),
    ]
}

/// Two layers on eight ranks, two of which share each layer.
fn transformer() -> SimaiWorkload {
    let phase = |us, kind, group, bytes| SimaiPhase {
        compute: Span::from_us(us),
        call: Some(SimaiCall {
            kind,
            group,
            bytes: Bytes::new(bytes),
        }),
    };
    let sum = CollectiveKind::AllReduce;
    let layer = |name: &str| SimaiLayer {
        name: name.into(),
        forward: phase(50, sum, SimaiGroup::Tp, 4_000_000),
        input_gradient: phase(60, sum, SimaiGroup::Tp, 4_000_000),
        weight_gradient: phase(
            60,
            CollectiveKind::ReduceScatter,
            SimaiGroup::Dp,
            16_000_000,
        ),
        update: Span::from_us(10),
        policy: None,
    };
    SimaiWorkload {
        tp: Some(2),
        all_gpus: Some(8),
        layers: vec![layer("attention"), layer("mlp")],
        ..SimaiWorkload::new(SimaiPolicy::HybridTransformerFwdInBckwd)
    }
}

/// Events of a profile.
#[derive(Default)]
struct Events {
    events: Vec<String>,
    correlation: u32,
}

impl Events {
    /// Adds an event of the GPU or the processor; times are in microseconds.
    fn add(
        &mut self,
        (category, name): (&str, &str),
        thread: u32,
        (ts, dur): (u32, u32),
        args: &str,
    ) {
        self.events.push(format!(
            r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {thread}, "tid": {thread}, "ts": {ts}.000, "dur": {dur}.000, "args": {{{args}}}}}"#
        ));
    }

    /// Adds a kernel, and the call by which the processor starts it at the time `launch`.
    fn kernel(&mut self, name: &str, stream: u32, launch: u32, time: (u32, u32), args: &str) {
        self.correlation += 1;
        let correlation = self.correlation;
        let launched = format!(r#""correlation": {correlation}"#);
        self.add(
            ("cuda_runtime", "cudaLaunchKernel"),
            PROCESSOR,
            (launch, 1),
            &launched,
        );
        let args = format!(r#""stream": {stream}, "correlation": {correlation}{args}"#);
        self.add(("kernel", name), stream, time, &args);
    }

    /// Adds an all-reduce of `elements` floats on a stream for communication, with the wait of this stream for the computation.
    fn all_reduce(&mut self, elements: u32, launch: u32, time: (u32, u32)) {
        let id = launch;
        let details = format!(
            r#", "External id": {id}, "Collective name": "allreduce", "In msg nelems": {elements}, "Out msg nelems": {elements}, "Group size": {RANKS}, "dtype": "Float", "In split size": "[]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3]""#
        );
        self.add(
            ("cpu_op", "record_param_comms"),
            PROCESSOR,
            (launch - 2, 5),
            &details[2..],
        );
        self.wait(launch - 1);
        self.kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            20,
            launch,
            time,
            &details,
        );
    }

    /// Adds a call by which one stream waits for another.
    fn wait(&mut self, at: u32) {
        self.add(
            ("cuda_runtime", "cudaStreamWaitEvent"),
            PROCESSOR,
            (at, 1),
            "",
        );
    }
}

/// Thread of the processor.
const PROCESSOR: u32 = 100;

/// Profile of a rank: two steps with a forward pass, a backward pass in two halves, each with an all-reduce of its gradients, and an
/// optimizer that waits for both.
fn profile(rank: u32) -> String {
    let mut events = Events::default();
    for step in 0..2 {
        let start = 1000 * step;
        let name = format!("ProfilerStep#{step}");
        events.add(("user_annotation", &name), PROCESSOR, (start, 950), "");
        events.kernel("forward", 7, start + 5, (start + 20, 200), "");
        events.kernel(
            "backward_of_the_second_half",
            7,
            start + 10,
            (start + 220, 200),
            "",
        );
        events.all_reduce(4_000_000, start + 20, (start + 420, 230));
        events.kernel(
            "backward_of_the_first_half",
            7,
            start + 30,
            (start + 420, 200),
            "",
        );
        events.all_reduce(4_000_000, start + 40, (start + 650, 180));
        events.wait(start + 50);
        events.kernel("optimizer", 7, start + 60, (start + 832, 50), "");
    }
    let events = events.events.join(",\n");
    format!(
        r#"{{"schemaVersion": 1, "deviceProperties": [],
"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {RANKS}, "pg_count": 1,
"pg_config": [{{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": {RANKS}, "ranks": [0, 1, 2, 3]}}]}},
"traceEvents": [
{events}
]}}
"#
    )
}

/// Execution trace of a rank, the same for all: two layers whose parameters are gathered and whose gradients are scattered.
fn execution() -> String {
    const PART: u32 = 500_000;
    let call = |id: u32, name: &str, [sent, received]: [u32; 2]| {
        let attributes = [
            ("collective_name", format!("\"{name}\"")),
            ("dtype", "\"BFloat16\"".into()),
            ("in_msg_nelems", sent.to_string()),
            ("out_msg_nelems", received.to_string()),
            ("pg_name", "\"0\"".into()),
            ("pg_size", RANKS.to_string()),
        ];
        let attributes: Vec<String> = attributes
            .iter()
            .map(|(name, value)| format!(r#"{{"name": "{name}", "type": "", "value": {value}}}"#))
            .collect();
        format!(
            r#"{{"id": {id}, "name": "record_param_comms", "ctrl_deps": 2, "inputs": {{"values": []}}, "attrs": [{}]}}"#,
            attributes.join(", ")
        )
    };
    let groups =
        r#"[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"ranks\": [], \"group_size\": 4}]"#;
    let nodes = [
        format!(
            r###"{{"id": 3, "name": "## process_group:init ##", "ctrl_deps": 2, "inputs": {{"values": ["{groups}"]}}}}"###
        ),
        call(10, "_allgather_base", [PART, RANKS * PART]),
        call(20, "_allgather_base", [PART, RANKS * PART]),
        call(30, "_reduce_scatter_base", [RANKS * PART, PART]),
        call(40, "_reduce_scatter_base", [RANKS * PART, PART]),
    ];
    format!(
        "{{\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 1, \"nodes\": [\n{}\n]}}\n",
        nodes.join(",\n")
    )
}
