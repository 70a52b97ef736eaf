//! Traces that run, and traces that are rejected.

use super::super::trace_files;
use super::*;
use crate::WorkloadSettings;
use crate::generate::collective_calls::{barrier, limited, reversed, star};
use clearway_formats::{write_chakra, write_goal, write_goal_binary};
use clearway_units::{Bytes, HostId, Parameter as _, Rate, SetError, Span, Time, Value};
use clearway_workload::CollectiveSettings;
use clearway_workload::graph::{Task, TaskDependency, TaskId};
use clearway_workload::program::{
    CollectiveKind, JobProgram, Operation, OperationDependency, RankProgram,
};
use insta::assert_snapshot;
use std::collections::BTreeSet;

const NIC_RATES: [Rate; 64] = [Rate::from_gbps(400); 64];

/// Folder of files that is removed after the test.
struct Folder(clearway_testing::Folder);

impl Folder {
    fn new(test: &str) -> Self {
        Self(clearway_testing::Folder::new(&format!("trace-{test}")))
    }

    fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.0.join(name), content).unwrap();
        self
    }

    fn load(&self, settings: &[(&str, Value)], hosts: u32) -> Result<LoadedWorkload, String> {
        let mut workload = WorkloadSettings::named("trace").unwrap();
        for (key, value) in settings {
            workload.set(key, value).unwrap();
        }
        let context = BuildContext {
            hosts,
            nic_rates: &NIC_RATES,
            gpus_per_node: 1,
            dimensions: &[],
            host_numbers: None,
            seed: 1,
            section: 0,
            taken: BuildContext::ALL_FREE,
            base_dir: Some(&*self.0),
        };
        let folder = self.0.display().to_string();
        let loaded = workload.load(&context);
        loaded.map_err(|error| error.to_string().replace(&folder, "DIR"))
    }

    fn job(&self, settings: &[(&str, Value)], hosts: u32) -> JobSpec {
        let mut loaded = self.load(settings, hosts).unwrap();
        assert_eq!(loaded.workload.flows, []);
        assert_eq!(loaded.jobs.len(), 1);
        loaded.jobs.remove(0)
    }

    fn error(&self, settings: &[(&str, Value)]) -> String {
        self.load(settings, 4).unwrap_err()
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn file(name: &str) -> (&'static str, Value) {
    ("file", text(name))
}

/// Rank 0 computes for 3 us and sends, rank 1 receives and answers.
fn ping_pong() -> JobProgram {
    let bytes = Bytes::new(5000);
    let compute = Operation::Compute {
        unit: 0,
        span: Span::from_us(3),
    };
    let send = |to| Operation::Send {
        to: Rank(to),
        bytes,
        tag: 7,
    };
    let receive = |from| Operation::Receive {
        from: Some(Rank(from)),
        bytes,
        tag: Some(7),
    };
    JobProgram {
        ranks: vec![
            RankProgram::new(
                vec![compute, send(1), receive(1)],
                vec![(1, OperationDependency::over(0))],
            ),
            RankProgram::new(
                vec![receive(0), send(0)],
                vec![(1, OperationDependency::over(0))],
            ),
        ],
        groups: Vec::new(),
    }
}

/// Every rank calls a collective of `bytes` bytes with all other ranks.
fn call_of(kind: CollectiveKind, bytes: u64, ranks: u32) -> JobProgram {
    let bytes = Bytes::new(bytes);
    let call = Operation::Collective {
        kind,
        bytes,
        group: 0,
    };
    let rank = |_| RankProgram::new(vec![call], Vec::new());
    JobProgram {
        ranks: (0..ranks).map(rank).collect(),
        groups: vec![(0..ranks).map(Rank).collect()],
    }
}

fn chakra_folder(test: &str, program: &JobProgram) -> Folder {
    let files = write_chakra(program).unwrap();
    let folder = Folder::new(test).with("groups.json", files.groups);
    let traces = files.traces.into_iter().enumerate();
    traces.fold(folder, |folder, (rank, trace)| {
        folder.with(&format!("run.{rank}.et"), trace)
    })
}

const SIMAI: &str = "\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0
1
mlp -1 500 ALLREDUCE 4096 600 ALLREDUCE 4096 600 REDUCESCATTER 8192 100
";

#[test]
fn the_same_program_in_three_formats_is_the_same_job() {
    let program = ping_pong();
    let folder = chakra_folder("formats", &program)
        .with("a.goal", write_goal(&program).unwrap())
        .with("a.bin", write_goal_binary(&program).unwrap());
    let job = folder.job(&[file("a.goal")], 4);
    assert_eq!(
        (job.label.as_str(), job.iterations, job.volume),
        ("a", 1, None)
    );
    assert_eq!(job.hosts, [HostId(0), HostId(1)]);
    assert!(job.stragglers.is_empty());
    assert_eq!(job.plan.graph().len(), 3);
    assert_eq!(folder.job(&[file("a.bin")], 4), job);
    for name in ["run", "run.0.et", "run.1.et"] {
        let chakra = folder.job(&[file(name)], 4);
        assert_eq!((chakra.label.as_str(), &chakra.plan), ("run", &job.plan));
    }
    for (name, format) in [("a.goal", "goal"), ("a.bin", "goal-binary")] {
        let settings = [file(name), ("format", text(format))];
        assert_eq!(folder.job(&settings, 4), job);
    }
}

#[test]
fn a_trace_of_chakra_is_all_its_files() {
    let folder = chakra_folder("files", &ping_pong()).with("a.goal", "");
    let path = |name: &str| folder.0.join(name);
    let all = ["run.0.et", "run.1.et"].map(path);
    for name in ["run", "run.0.et", "run.1.et"] {
        assert_eq!(trace_files(&path(name)), all);
    }
    for name in ["a.goal", "missing"] {
        assert_eq!(trace_files(&path(name)), [path(name)]);
    }
}

#[test]
fn a_rank_has_one_name() {
    let folder = chakra_folder("spelling", &ping_pong());
    let trace = std::fs::read(folder.0.join("run.0.et")).unwrap();
    let job = folder.job(&[file("run")], 4);
    // These spellings of numbers are neither read nor part of the hash.
    let others = ["00", "+1", "2_", "01", "4294967296"].map(|rank| format!("run.{rank}.et"));
    let folder = others
        .iter()
        .fold(folder, |folder, name| folder.with(name, "no trace"));
    assert_eq!(folder.job(&[file("run")], 4), job);
    let path = |name: &str| folder.0.join(name);
    assert_eq!(
        trace_files(&path("run")),
        ["run.0.et", "run.1.et"].map(path)
    );
    assert_eq!(trace_files(&path("run.00.et")), [path("run.00.et")]);
    let folder = folder.with("run.00.et", trace);
    assert_snapshot!(folder.error(&[file("run.00.et")]), @"
    `file` of the trace workload: DIR/run.00.et is the trace of one rank alone
      fix: call the files of all ranks `<prefix>.<rank>.et`, with ranks from 0, and name the first
    ");
}

#[test]
fn a_schedule_may_be_called_as_a_trace_of_chakra() {
    let folder =
        chakra_folder("named", &ping_pong()).with("run.2.et", write_goal(&ping_pong()).unwrap());
    let path = folder.0.join("run.2.et");
    assert_eq!(trace_files(&path), [path]);
    assert_eq!(folder.job(&[file("run.2.et")], 4).hosts.len(), 2);
}

#[test]
fn a_job_is_placed_and_paced() {
    let folder = Folder::new("placed").with("a.goal", write_goal(&ping_pong()).unwrap());
    let hosts = Value::List(vec![Value::Integer(3), Value::Integer(0)]);
    let settings = [
        file("a.goal"),
        ("hosts", hosts),
        ("start", text("5us")),
        ("iterations", Value::Integer(9)),
        ("time-scale", Value::Float(0.25)),
    ];
    let job = folder.job(&settings, 4);
    assert_eq!(job.hosts, [HostId(3), HostId(0)]);
    assert_eq!((job.start, job.iterations), (Time::from_us(5), 9));
    assert!(job.stragglers.values().eq(&[0.25; 2]));
    let random = [file("a.goal"), ("placement", text("random"))];
    assert_ne!(folder.job(&random, 64).hosts, [HostId(0), HostId(1)]);
}

#[test]
fn a_workload_of_simai_has_as_many_ranks_as_it_says_or_as_there_are_hosts() {
    let free = SIMAI.replace("all_gpus: 4", "");
    let folder = Folder::new("simai")
        .with("four.txt", SIMAI)
        .with("free.txt", free);
    let ranks = |settings: &[(&str, Value)]| folder.job(settings, 8).hosts.len();
    assert_eq!(ranks(&[file("four.txt")]), 4);
    assert_eq!(ranks(&[file("free.txt")]), 8);
    let six = ("ranks", Value::Integer(6));
    assert_eq!(ranks(&[file("free.txt"), six.clone()]), 6);
    let tasks = |passes| {
        let settings = [file("four.txt"), ("passes", Value::Integer(passes))];
        folder.job(&settings, 8).plan.graph().len()
    };
    assert_eq!(tasks(3), 3 * tasks(1));
    assert_snapshot!(folder.load(&[file("four.txt"), six], 8).unwrap_err(), @"
    DIR/four.txt:1: `all_gpus`: the workload is for 4 ranks, but 6 are to run it
      fix: give it 4 ranks, or generate it anew
    ");
}

#[test]
fn algorithms_are_chosen_for_each_operation() {
    let folder = chakra_folder("algorithms", &call_of(CollectiveKind::AllReduce, 1000, 8));
    let messages = |further: &[(&'static str, Value)]| {
        let all = [
            &[file("run"), ("comm-groups", text("groups.json"))],
            further,
        ]
        .concat();
        let job = folder.job(&all, 8);
        let graph = job.plan.graph();
        let of_bytes = |(_, task)| match task {
            Task::Message { bytes, .. } => Some(bytes.as_u64()),
            Task::Compute { .. } => None,
        };
        graph.numbered().filter_map(of_bytes).collect::<Vec<u64>>()
    };
    let once = 8 * 14;
    assert_eq!(messages(&[]), [125; 8 * 14]);
    let ring = [("all-reduce", text("ring"))];
    assert_eq!(messages(&ring).len(), once);
    let halving = [("all-reduce", text("halving-doubling"))];
    assert_eq!(messages(&halving).len(), 8 * 6);
    let chunk = [("chunk", text("25B"))];
    assert_eq!(messages(&chunk), vec![25; 5 * once]);
}

/// A trace of one computation: a million operations on 4078 bytes, without a duration.
fn million_operations() -> Vec<u8> {
    fn text(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag << 3 | 2, content.len() as u8], content].concat()
    }
    let number = |name: &str, varint: &[u8]| {
        let int64 = [&[9 << 3], varint].concat();
        text(10, &[text(1, name.as_bytes()), int64].concat())
    };
    let node = [
        // Type: a computation.
        vec![3 << 3, 4],
        number("num_ops", &[0xc0, 0x84, 0x3d]),
        number("tensor_size", &[0xee, 0x1f]),
    ];
    let metadata = text(1, b"1.0");
    [metadata, node.concat()]
        .map(|message| [&[message.len() as u8], &message[..]].concat())
        .concat()
}

#[test]
fn the_speed_of_gpus_gives_computations_a_time() {
    let folder = Folder::new("speed").with("run.0.et", million_operations());
    let run = |speed: &[(&'static str, Value)]| {
        let settings = [&[file("run")], speed].concat();
        let loaded = folder.load(&settings, 1).unwrap();
        let tasks = loaded.jobs[0].plan.graph().numbered();
        let spans = tasks.map(|(_, task)| match task {
            Task::Compute { span, .. } => span.as_ps(),
            Task::Message { .. } => panic!("one computation"),
        });
        let warnings = loaded
            .warnings
            .iter()
            .map(|warning| warning.message.clone());
        (spans.collect::<Vec<_>>(), warnings.collect::<Vec<_>>())
    };
    let (spans, warnings) = run(&[]);
    assert_eq!(spans, [0]);
    assert_snapshot!(warnings.join("\n"), @"node 0 of rank 0 has `num_ops` but no duration, and takes no time: set `peak-tflops` and `memory-bandwidth` to have it estimated");
    // A million operations at 1 TFLOP/s, and 4078 bytes at 2039 GB/s or 1 GB/s.
    let peak = ("peak-tflops", Value::Integer(1));
    assert_eq!(run(std::slice::from_ref(&peak)), (vec![1_000_000], vec![]));
    for (memory, ps) in [("2039GB/s", 1_000_000), ("8Gbps", 4_078_000)] {
        let speed = [peak.clone(), ("memory-bandwidth", text(memory))];
        assert_eq!(run(&speed), (vec![ps], vec![]), "{memory}");
    }
}

#[test]
fn faults_of_the_speed_of_gpus() {
    let folder = Folder::new("bad-speed").with("a.goal", write_goal(&ping_pong()).unwrap());
    let with = |further: (&'static str, Value)| folder.error(&[file("a.goal"), further]);
    assert_snapshot!(with(("peak-tflops", Value::Integer(0))), @"
    `peak-tflops` of the trace workload: a peak performance of 0 TFLOP/s
      fix: write TFLOP/s, above zero and up to 1e6: 312 for 312e12 operations per second
    ");
    assert_snapshot!(with(("peak-tflops", Value::Float(312e12))), @"
    `peak-tflops` of the trace workload: a peak performance of 312000000000000 TFLOP/s
      fix: write TFLOP/s, above zero and up to 1e6: 312 for 312e12 operations per second
    ");
    assert_snapshot!(with(("peak-tflops", Value::Integer(312))), @r#"
    `peak-tflops` of the trace workload: the trace is in the format "goal"
      fix: leave it out: only Chakra's traces have operations, others have times
    "#);
    assert_snapshot!(with(("memory-bandwidth", text("2039GB/s"))), @"
    `memory-bandwidth` of the trace workload: there is no `peak-tflops` with it
      fix: give both, as in `peak-tflops = 312`
    ");
    let refused = |key, value| {
        let mut workload = WorkloadSettings::named("trace").unwrap();
        match workload.set(key, &value).unwrap_err() {
            SetError::BadValue { expected } => expected,
            SetError::UnknownKey => panic!("{key} is a key"),
        }
    };
    assert_snapshot!(refused("peak-tflops", Value::Float(f64::NAN)), @r#"a number of zero or more, or "auto""#);
    assert_snapshot!(refused("peak-tflops", Value::Integer(-1)), @r#"a number of zero or more, or "auto""#);
    assert_snapshot!(refused("memory-bandwidth", text("0GB/s")), @r#"a rate such as "2039GB/s", or "auto""#);
    assert_snapshot!(refused("memory-bandwidth", Value::Integer(2039)), @r#"a rate such as "2039GB/s", or "auto"; a rate has a unit, one of B/s, KB/s, MB/s, GB/s, TB/s, Mbps, Gbps, Tbps: write "2039GB/s" if that is meant"#);
}

#[test]
fn every_collective_can_be_cut_into_chunks() {
    for kind in CollectiveSettings::KINDS {
        let mut settings = CollectiveSettings::named(kind.operation, kind.algorithm).unwrap();
        for key in ["size", "chunk"] {
            assert_eq!(settings.set(key, &text("7B")), Ok(()), "{kind:?}");
        }
        assert_eq!(
            settings.set("colour", &text("7B")),
            Err(SetError::UnknownKey)
        );
    }
}

/// For each rank, the ranks whose data it has, directly or indirectly, when all messages have arrived.
fn heard(graph: &Graph) -> Vec<BTreeSet<Rank>> {
    graph.check().unwrap();
    let alone = |rank| BTreeSet::from([Rank(rank)]);
    let mut heard: Vec<BTreeSet<Rank>> = (0..graph.ranks()).map(alone).collect();
    let mut carried: Vec<BTreeSet<Rank>> = Vec::new();
    for (id, task) in graph.numbered() {
        let Task::Message { src, dst, .. } = task else {
            panic!("messages alone")
        };
        let needs = graph.needs(id).iter();
        let known = needs.flat_map(|need| carried[need.task().index()].clone());
        let all: BTreeSet<Rank> = known.chain([src]).collect();
        heard[dst.index()].extend(&all);
        carried.push(all);
    }
    heard
}

#[test]
fn a_barrier_waits_for_all() {
    for ranks in 2..=17 {
        let all: BTreeSet<Rank> = (0..ranks).map(Rank).collect();
        let heard = heard(&barrier(ranks));
        assert!(heard.iter().all(|heard| *heard == all), "{ranks}");
    }
}

#[test]
fn a_reduce_brings_the_sum_of_all_to_the_first() {
    for algorithm in ["chain", "tree"] {
        for ranks in [2, 3, 8, 13] {
            let mut settings = CollectiveSettings::named("broadcast", algorithm).unwrap();
            settings.set("size", &text("1000B")).unwrap();
            settings.set("chunk", &text("300B")).unwrap();
            let graph = reversed(&settings.build(ranks).unwrap().graph);
            assert_eq!(heard(&graph)[0].len() as u32, ranks, "{algorithm}");
            let sent = graph.bytes_sent();
            assert_eq!(sent[0], Bytes::ZERO);
            assert!(sent[1..].iter().all(|&sent| sent == Bytes::new(1000)));
        }
    }
}

#[test]
fn a_gather_and_a_scatter_move_each_part_once() {
    let gather = star(4, Bytes::new(10), |other| (other, Rank(0)));
    assert_eq!(gather.bytes_sent(), [0, 3, 2, 2].map(Bytes::new));
    let scatter = star(4, Bytes::new(2), |other| (Rank(0), other));
    assert_eq!(scatter.bytes_sent(), [1, 0, 0, 0].map(Bytes::new));
    assert_eq!(scatter.len(), 1);
}

#[test]
fn an_all_to_all_has_few_messages_under_way() {
    let mut settings = CollectiveSettings::named("all-to-all", "direct").unwrap();
    settings.set("parallelism", &text("auto")).unwrap();
    let part = settings.build(6).unwrap().graph;
    let graph = limited(&part, 2);
    assert_eq!((graph.len(), graph.parallelism), (30, None));
    graph.check().unwrap();
    // Messages are numbered by distance, then by sender.
    for (id, _) in graph.numbered() {
        let before =
            id.0.checked_sub(12)
                .map(|id| TaskDependency::over(TaskId(id)));
        assert_eq!(graph.needs(id), before.as_slice());
    }
}

#[test]
fn every_collective_of_chakra_runs() {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    for kind in [
        AllReduce,
        AllGather,
        ReduceScatter,
        AllToAll,
        Broadcast,
        Reduce,
        Gather,
        Scatter,
        Barrier,
    ] {
        let folder = chakra_folder(kind.name(), &call_of(kind, 1000, 4));
        let job = folder.job(&[file("run"), ("comm-groups", text("groups.json"))], 4);
        let messages = job
            .connections(|_, _| 0)
            .iter()
            .map(|c| c.messages)
            .sum::<u32>();
        assert!(messages > 0, "{kind:?}");
    }
}

/// Bytes from rank 0 to each other rank.
fn sent_by_first(job: &JobSpec) -> Vec<(u32, u64)> {
    let mut sent = std::collections::BTreeMap::new();
    for (_, task) in job.plan.graph().numbered() {
        if let Task::Message {
            src: Rank(0),
            dst,
            bytes,
        } = task
        {
            *sent.entry(dst.0).or_default() += bytes.as_u64();
        }
    }
    sent.into_iter().collect()
}

#[test]
fn collectives_run_by_dimension() {
    let folder = chakra_folder("dimensions", &call_of(CollectiveKind::AllReduce, 1200, 6))
        .with(
            "rings.json",
            "{\"all-reduce-implementation\": [\"ring\", \"direct\"],\n \"preferred-dataset-splits\": 2, \"scheduling-policy\": \"FIFO\"}",
        )
        .with("flat.json", "{\"all-reduce-implementation\": [\"oneDirect\"]}");
    let sizes = || ("dimensions", vec![2u32, 3].to_value());
    // Halves to and from the neighbour, then thirds of a half among the three ranks of the second dimension.
    let by_dimension = [(1, 1200), (2, 400), (4, 400)];
    let words = |all: &[&str]| Value::List(all.iter().map(|word| text(word)).collect());
    let keys = [
        file("run"),
        ("comm-groups", text("groups.json")),
        sizes(),
        ("all-reduce", text("hierarchical")),
        ("algorithms", words(&["ring", "direct"])),
    ];
    assert_eq!(sent_by_first(&folder.job(&keys, 6)), by_dimension);
    let groups = || ("comm-groups", text("groups.json"));
    let system = |name| [file("run"), groups(), sizes(), ("system", text(name))];
    assert_eq!(
        sent_by_first(&folder.job(&system("rings.json"), 6)),
        by_dimension
    );
    let loaded = folder.load(&system("rings.json"), 6).unwrap();
    let warning = loaded.warnings[0].to_string();
    assert!(
        warning.contains("rings.json:2: `scheduling-policy` is not used"),
        "{warning}"
    );
    let flat = [1, 2, 3, 4, 5].map(|rank| (rank, 400));
    assert_eq!(sent_by_first(&folder.job(&system("flat.json"), 6)), flat);
}

#[test]
fn calls_of_a_part_have_the_dimensions_of_the_part() {
    let program = call_of(CollectiveKind::AllReduce, 1200, 6);
    let part = |ranks: &[u32], program: &JobProgram| {
        let mut program = program.clone();
        program.groups = vec![ranks.iter().copied().map(Rank).collect()];
        for rank in (0..6).filter(|rank| !ranks.contains(rank)) {
            program.ranks[rank as usize] = RankProgram::default();
        }
        let folder = chakra_folder("parts", &program);
        let keys = [
            file("run"),
            ("comm-groups", text("groups.json")),
            ("dimensions", vec![2u32, 3].to_value()),
            ("all-reduce", text("hierarchical")),
            (
                "algorithms",
                Value::List(vec![text("ring"), text("direct")]),
            ),
        ];
        sent_by_first(&folder.job(&keys, 6))
    };
    // A row of each dimension; a plane; what is no lattice is a ring.
    assert_eq!(part(&[0, 1], &program), [(1, 1200)]);
    assert_eq!(part(&[0, 2, 4], &program), [(2, 800), (4, 800)]);
    assert_eq!(part(&[0, 1, 4, 5], &program), [(1, 1200), (4, 600)]);
    assert_eq!(part(&[0, 1, 2], &program), [(1, 1600)]);
}

#[test]
fn faults_of_dimensions() {
    let folder = chakra_folder("no-dimensions", &call_of(CollectiveKind::AllReduce, 1200, 4))
        .with("two.json", "{\"all-reduce-implementation\": [\"ring\", \"direct\"]}")
        .with("mixed.json", "{\"all-gather-implementation\": [\"direct2\", \"direct\"]}")
        .with("wrong.json", "{\"all-reduce-implementation\": [\"rnig\"]}")
        .with(
            "baseline.json",
            "{\"all-reduce-implementation\": [\"ring\", \"ring\"], \"collective-optimization\": \"baseline\"}",
        )
        .with("a.goal", write_goal(&ping_pong()).unwrap());
    let error = |further: &[(&'static str, Value)]| {
        folder.error(
            &[
                &[file("run"), ("comm-groups", text("groups.json"))],
                further,
            ]
            .concat(),
        )
    };
    let system = |name| ("system", text(name));
    let errors = [
        error(&[("dimensions", vec![2u32, 3].to_value())]),
        error(&[("splits", Value::Integer(2))]),
        error(&[
            ("all-reduce", text("hierarchical")),
            ("dimensions", vec![2u32, 2].to_value()),
            ("algorithms", Value::List(vec![text("ring"); 3])),
        ]),
        error(&[system("two.json")]),
        error(&[system("two.json"), ("all-reduce", text("direct"))]),
        error(&[system("two.json"), ("splits", Value::Integer(2))]),
        error(&[system("mixed.json")]),
        error(&[system("wrong.json")]),
        error(&[system("baseline.json")]),
        error(&[system("none.json")]),
    ];
    assert_snapshot!(errors.join("\n"), @r#"
    `dimensions` of the trace workload: dimensions of 2 x 3 ranks, but the trace has 4
      fix: write sizes whose product is the number of ranks
    `splits` of the trace workload: no collective has the algorithm "hierarchical"
      fix: write it, as in `all-reduce = "hierarchical"`, or leave this out
    DIR/run.0.et: node 0 of rank 0: `algorithms` of the hierarchical all-reduce: 3 algorithms for 2 dimensions
      fix: write one for each dimension, or one for all
    DIR/run.0.et: node 0 of rank 0: `algorithms` of the hierarchical all-reduce: 2 algorithms for 1 dimension
      fix: write one for each dimension, or one for all, or the `dimensions` of the ranks, such as [8, 4]
    `all-reduce` of the trace workload: the system file has it, too
      fix: leave it out, or take it out of the file and leave out `system`
    `splits` of the trace workload: the system file has it, too
      fix: leave it out, or take it out of the file and leave out `system`
    `system` of the trace workload: its direct algorithms of the all-gather have different numbers
      fix: write the same number behind each `direct`
    DIR/wrong.json:1:32: `rnig` is not an algorithm
      fix: write ring, direct, halvingDoubling, doubleBinaryTree, oneRing, oneDirect or oneHalvingDoubling
    `system` of the trace workload: its `collective-optimization` is baseline: all data would go through each dimension
      fix: write localBWAware there, which reduces first
    cannot read DIR/none.json: No such file or directory (os error 2)
      fix: name a file that exists and that you may read
    "#);
}

/// Profile of a rank of two: a step with an all-reduce, and a step without.
fn profile(rank: u32) -> String {
    let call = r#""Collective name": "allreduce", "In msg nelems": 500, "Out msg nelems": 500, "dtype": "Half", "Group size": 2"#;
    let kernel = |name: &str, ts: u32, details: &str| {
        format!(
            r#"{{"cat": "kernel", "name": "{name}", "ts": {ts}, "dur": 10, "args": {{"stream": 7{details}}}}}"#
        )
    };
    let step = |number: u32, ts: u32| {
        format!(
            r#"{{"cat": "user_annotation", "name": "ProfilerStep#{number}", "ts": {ts}, "dur": 50}}"#
        )
    };
    let events = [
        step(3, 0),
        kernel("gemm", 0, ""),
        kernel("ncclDevKernel_AllReduce", 10, &format!(", {call}")),
        step(4, 50),
        kernel("gemm", 60, ""),
    ];
    let events = events.join(",\n");
    format!(
        r#"{{"distributedInfo": {{"rank": {rank}, "world_size": 2}}, "traceEvents": [{events}]}}"#
    )
}

#[test]
fn profiles_of_pytorch_run() {
    let folder = Folder::new("pytorch")
        .with("gpt_rank0.json", profile(0))
        .with("gpt_rank1.json", profile(1))
        .with("all.goal", write_goal(&ping_pong()).unwrap());
    let by_file = folder.job(&[file("gpt_rank1.json")], 2);
    assert_eq!(by_file.label, "gpt");
    let by_folder = folder.job(&[file("."), ("format", text("pytorch"))], 2);
    assert_eq!(by_folder.plan, by_file.plan);
    let spans_and_bytes = |job: &JobSpec| {
        let graph = job.plan.graph();
        let times = graph.numbered().map(|(_, task)| match task {
            Task::Compute {
                rank: Rank(0),
                span,
                ..
            } => (span.as_ps() / 1_000_000, 0),
            Task::Message {
                src: Rank(0),
                bytes,
                ..
            } => (0, bytes.as_u64()),
            _ => (0, 0),
        });
        times.fold((0, 0), |sum, task| (sum.0 + task.0, sum.1 + task.1))
    };
    // 100 us, of which 10 are communication of 1000 bytes.
    assert_eq!(spans_and_bytes(&by_file), (90, 1000));
    let steps = |step: i64| ("profiler-steps", Value::List(vec![Value::Integer(step)]));
    assert_eq!(
        spans_and_bytes(&folder.job(&[file("gpt_rank1.json"), steps(4)], 2)),
        (50, 0)
    );
    assert_snapshot!(folder.error(&[file("gpt_rank0.json"), steps(5)]), @"
    DIR/gpt_rank0.json: rank 0 has no `ProfilerStep#5`
      fix: choose steps from 3 to 4, or leave `profiler-steps` out
    ");
    assert_snapshot!(folder.error(&[file("all.goal"), steps(5)]), @r#"
    `profiler-steps` of the trace workload: the trace is in the format "goal"
      fix: leave it out: only profiles of PyTorch have steps
    "#);
    let paths = ["gpt_rank0.json", "gpt_rank1.json"].map(|name| folder.0.join(name));
    assert_eq!(trace_files(&paths[0]), paths);
    assert_eq!(trace_files(&folder.0), paths);
    assert_snapshot!(folder.with("gpt_rank2.json", profile(0)).error(&[file("gpt_rank0.json")]), @"
    DIR/gpt_rank0.json: the job has 2 ranks according to `distributedInfo`, but there are traces of 3
      fix: record all ranks, and name the file of one of them if the names differ in the rank alone, else their folder
    ");
}

#[test]
fn faults_of_settings() {
    let folder = Folder::new("settings")
        .with("a.goal", write_goal(&ping_pong()).unwrap())
        .with("flows.txt", "1\n0 1 3 100 5 2\n")
        .with(
            "lonely.et",
            write_chakra(&ping_pong()).unwrap().traces.remove(0),
        );
    let error = |settings: &[(&'static str, Value)]| folder.error(settings);
    let with = |further| error(&[file("a.goal"), further]);
    assert_snapshot!(error(&[]), @r#"
    `file` of the trace workload: no file is named
      fix: name it, as in `file = "training.goal"`
    "#);
    assert_snapshot!(error(&[file("b.goal")]), @"
    cannot read DIR/b.goal: No such file or directory (os error 2)
      fix: name a file that exists and that you may read
    ");
    assert_snapshot!(error(&[file("flows.txt")]), @"
    `file` of the trace workload: DIR/flows.txt is a topology or a file of flows of the HPCC simulator or SimAI; traces are GOAL schedules, traces of Chakra and PyTorch, and workloads of SimAI
      fix: `clearway run --set topology.file=TOPOLOGY --set workload.file=FLOWS`
    ");
    assert_snapshot!(error(&[file("lonely.et")]), @"
    `file` of the trace workload: DIR/lonely.et is the trace of one rank alone
      fix: call the files of all ranks `<prefix>.<rank>.et`, with ranks from 0, and name the first
    ");
    assert_snapshot!(error(&[file("run"), ("format", text("chakra"))]), @"
    cannot read DIR/run.0.et: there are no traces with this prefix
      fix: name a file that exists and that you may read
    ");
    assert_snapshot!(with(("comm-groups", text("groups.json"))), @r#"
    `comm-groups` of the trace workload: the trace is in the format "goal"
      fix: leave it out: only traces of Chakra and PyTorch name groups
    "#);
    assert_snapshot!(with(("ranks", Value::Integer(3))), @"
    `ranks` of the trace workload: 3 ranks, but the trace has 2
      fix: leave it out: only workloads of SimAI run on any number of ranks
    ");
    assert_snapshot!(with(("iterations", Value::Integer(0))), @"
    `iterations` of the trace workload: no iterations
      fix: write 1 or more
    ");
    assert_snapshot!(with(("iterations", Value::Integer(3_000_000_000))), @"
    `iterations` of the trace workload: 3000000000 iterations of 3 messages and computations
      fix: less than 2^32 in all iterations have numbers
    ");
    assert_snapshot!(with(("time-scale", Value::Float(1e9))), @"
    `time-scale` of the trace workload: a factor of 1000000000
      fix: write a factor from 0 to 1e6
    ");
    assert_snapshot!(with(("chunk", text("0B"))), @r#"
    `chunk` of the trace workload: a chunk carries no bytes
      fix: write a size of at least one byte, as in "128KiB"
    "#);
    assert_snapshot!(with(("all-reduce", text("rnig"))), @r#"
    `all-reduce` of the trace workload: there is no algorithm "rnig"
      fix: did you mean `ring`? Use one of: ring, halving-doubling, double-binary-tree, direct, hierarchical, parameter-server
    "#);
    assert_snapshot!(with(("broadcast", text("halving-doubling"))), @r#"
    `broadcast` of the trace workload: there is no algorithm "halving-doubling"
      fix: use one of: chain, tree
    "#);
    assert_snapshot!(with(("block", Value::Integer(0))), @"
    `block` of the trace workload: no block
      fix: write 1 or more
    ");
    assert_snapshot!(with(("hosts", Value::List(vec![Value::Integer(1)]))), @"
    `hosts` of the trace workload: 1 host for 2 ranks of the trace
      fix: name one host for each rank
    ");
    assert_snapshot!(folder.load(&[file("a.goal")], 1).unwrap_err(), @"
    `file` of the trace workload: the trace has 2 ranks, but the topology has 1 host
      fix: choose a topology with 2 hosts or more for it
    ");
}

#[test]
fn faults_of_traces_name_file_and_place() {
    let unmatched = "num_ranks 2\nrank 0 {\nl1: calc 10\n}\nrank 1 {\nl1: calc 5\nl2: recv 100b from 0 tag 3\n}\n";
    let circle = "num_ranks 2\nrank 0 {\nl1: recv 1b from 1 tag 0\nl2: send 1b to 1 tag 0\nl2 requires l1\n}\nrank 1 {\nl1: recv 1b from 0 tag 0\nl2: send 1b to 0 tag 0\nl2 requires l1\n}\n";
    let folder = chakra_folder("faults", &call_of(CollectiveKind::AllReduce, 1 << 50, 3))
        .with("unmatched.goal", unmatched)
        .with("circle.goal", circle)
        .with("none.goal", "num_ranks 0\n")
        .with(
            "dlrm.txt",
            SIMAI.replace("TRANSFORMER_FWD_IN_BCKWD", "DLRM"),
        );
    assert_snapshot!(folder.error(&[file("unmatched.goal")]), @"
    DIR/unmatched.goal:7: `l2` of rank 1 (line 7) receives from rank 0 with tag 3, but no send is left for it
      fix: add the send, or remove the receive
    ");
    assert_snapshot!(folder.error(&[file("circle.goal")]), @"
    DIR/circle.goal:3: operations wait for one another in a circle: `l1` of rank 0 (line 3), `l2` of rank 1 (line 9), `l1` of rank 1 (line 8), `l2` of rank 0 (line 4), each for the next and the last for the first
      fix: remove one of the dependencies
    ");
    assert_snapshot!(folder.error(&[file("none.goal")]), @"
    DIR/none.goal:1:11: `0` is not a valid number of ranks
      fix: write a whole number from 1 to 4294967295
    ");
    assert_snapshot!(folder.error(&[file("dlrm.txt")]), @"
    DIR/dlrm.txt:1: `policy`: HYBRID_DLRM can be read but not simulated
      fix: use HYBRID_TRANSFORMER_FWD_IN_BCKWD, which AICB writes
    ");
    assert_snapshot!(folder.error(&[file("run")]), @"
    DIR/run.0.et: node 0 of rank 0 calls on group `1`, but the ranks of this group are not known
      fix: name a comm-group file that lists it
    ");
    let known = [file("run"), ("comm-groups", text("groups.json"))];
    assert_snapshot!(folder.error(&known), @"
    DIR/run.0.et: node 0 of rank 0: `chunk` of the ring all-reduce: up to 34359738380 messages, but 33554432 are the most that a collective may have
      fix: write a chunk of 131073KiB or more, or a size of 1099511234560B at most
    ");
}
