//! Traces on a simulated fabric.

use clearway_formats::{write_chakra, write_goal};
use clearway_lab::{Assembly, Finished, Laboratory, Scenario};
use clearway_units::{Bytes, Span, Value};
use clearway_workload::{
    CollectiveKind, CollectiveSettings, Graph, JobProgram, Operation, OperationDependency, Rank,
    RankProgram, Task,
};
use insta::assert_snapshot;

/// A folder of files, gone with the test.
struct Folder(clearway_testing::Folder);

impl Folder {
    fn new(test: &str) -> Self {
        Self(clearway_testing::Folder::new(&format!("traces-{test}")))
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), content).unwrap();
    }

    fn scenario(&self, workload: &str) -> Scenario {
        self.overridden(workload, &[])
    }

    fn overridden(&self, workload: &str, overrides: &[&str]) -> Scenario {
        let text = format!("{FABRIC}[[workload]]\n{workload}\n");
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
        let base = Some(&*self.0);
        let scenario = Laboratory::new().read("test", &text, base, &overrides);
        scenario.unwrap()
    }

    fn run(&self, workload: &str) -> Finished {
        let finished = Laboratory::new().run(&self.scenario(workload)).unwrap();
        assert_eq!(finished.stopped, None, "{workload}");
        finished
    }

    /// The times of all iterations of the only job.
    fn times(&self, workload: &str) -> Vec<Span> {
        let finished = self.run(workload);
        assert_eq!(finished.jobs.len(), 1);
        let times = finished.jobs[0].times.iter();
        times.map(|times| times.span().unwrap()).collect()
    }
}

/// 8 hosts of 400 Gb/s.
const FABRIC: &str = "\
[topology]
kind = \"leaf-spine\"
hosts = 8
hosts-per-leaf = 8
spines = 1
link-rate = \"400Gbps\"
link-delay = \"500ns\"
[switch]
queue = \"100MB\"
ecn.enabled = false
[transport]
controller = \"constant\"
";

/// Program of the ranks of a graph of messages: each message is a send and a receive, and later sends wait for them.
fn program_of(graph: &Graph) -> JobProgram {
    let ranks = graph.ranks() as usize;
    let mut operations: Vec<Vec<Operation>> = vec![Vec::new(); ranks];
    let mut waits: Vec<Vec<(u32, OperationDependency)>> = vec![Vec::new(); ranks];
    // Of each message the number of its send and of its receive.
    let mut places: Vec<[u32; 2]> = Vec::new();
    for (id, task) in graph.numbered() {
        let Task::Message { src, dst, bytes } = task else {
            panic!("messages alone")
        };
        let (sends, tag) = (operations[src.index()].len() as u32, 0);
        for need in graph.needs(id) {
            let other = need.task();
            let is_receive = graph.task(other).rank() != src;
            let place = places[other.index()][usize::from(is_receive)];
            waits[src.index()].push((sends, OperationDependency::over(place)));
        }
        operations[src.index()].push(Operation::Send {
            to: dst,
            bytes,
            tag,
        });
        let receives = operations[dst.index()].len() as u32;
        operations[dst.index()].push(Operation::Receive {
            from: Some(src),
            bytes,
            tag: Some(tag),
        });
        places.push([sends, receives]);
    }
    let own = operations.into_iter().zip(waits);
    JobProgram {
        ranks: own.map(|(o, w)| RankProgram::new(o, w)).collect(),
        groups: Vec::new(),
    }
}

#[test]
fn a_trace_of_a_ring_takes_as_long_as_the_ring() {
    let mut ring = CollectiveSettings::named("all-reduce", "ring").unwrap();
    ring.set("size", &Value::Text("4MB".into())).unwrap();
    let graph = ring.build(8).unwrap().graph;
    let folder = Folder::new("ring");
    folder.write("ring.goal", write_goal(&program_of(&graph)).unwrap());
    let job = folder.run("kind = \"ring-all-reduce\"\nsize = \"4MB\"\niterations = 3");
    let trace = folder.run("kind = \"trace\"\nfile = \"ring.goal\"\niterations = 3");
    assert_eq!(job.jobs[0].times.len(), 3);
    assert_eq!(trace.jobs[0].times, job.jobs[0].times);
    assert_eq!(trace.digest, job.digest);
    assert_eq!(trace.jobs[0].label, "ring");
    assert_eq!((trace.jobs[0].ranks, trace.jobs[0].volume), (8, None));
}

/// All ranks compute for 100 us, then call a collective of 4 MB together.
fn compute_and_call(kind: CollectiveKind, ranks: u32) -> JobProgram {
    let compute = Operation::Compute {
        unit: 0,
        span: Span::from_us(100),
    };
    let call = Operation::Collective {
        kind,
        bytes: Bytes::new(4_000_000),
        group: 0,
    };
    let rank = |_| RankProgram::new(vec![compute, call], vec![(1, OperationDependency::over(0))]);
    JobProgram {
        ranks: (0..ranks).map(rank).collect(),
        groups: vec![(0..ranks).map(Rank).collect()],
    }
}

#[test]
fn collectives_of_chakra_take_as_long_as_jobs() {
    let folder = Folder::new("chakra");
    for (kind, job, further) in [
        (CollectiveKind::AllReduce, "ring-all-reduce", ""),
        (CollectiveKind::AllGather, "ring-all-gather", ""),
        (
            CollectiveKind::AllToAll,
            "all-to-all",
            "receiver-limit = false",
        ),
        (CollectiveKind::Broadcast, "chain-broadcast", ""),
    ] {
        let files = write_chakra(&compute_and_call(kind, 8)).unwrap();
        folder.write("groups.json", files.groups);
        for (rank, trace) in files.traces.iter().enumerate() {
            folder.write(&format!("run.{rank}.et"), trace);
        }
        let trace = "kind = \"trace\"\nfile = \"run\"\ncomm-groups = \"groups.json\"";
        let size = format!("kind = \"{job}\"\nsize = \"4MB\"\n{further}");
        assert_eq!(
            folder.times(trace),
            folder.times(&format!("{size}\ncompute = \"100us\"")),
            "{job}"
        );
        let alone = folder.times(&format!("{trace}\ntime-scale = 0"));
        assert_eq!(alone, folder.times(&size), "{job}");
    }
}

const SIMAI: &str = "\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 2 pp: 1 vpp: 1 ga: 1
2
attention -1 50000 ALLREDUCE 4000000 60000 ALLREDUCE 4000000 60000 REDUCESCATTER 8000000 10000
experts -1 50000 ALLTOALL_EP 4000000 60000 ALLTOALL_EP 4000000 60000 ALLREDUCE_DP_EP 8000000 10000
";

#[test]
fn a_workload_of_simai_runs_to_its_end() {
    let folder = Folder::new("simai");
    folder.write("aicb.txt", SIMAI);
    let trace = "kind = \"trace\"\nfile = \"aicb.txt\"";
    let times = folder.times(&format!("{trace}\niterations = 2"));
    let us: Vec<f64> = times.iter().map(|span| span.as_us()).collect();
    // 330 us of computing, and two all-reduces that nothing overlaps: 2 3/4 4 MB at 400 Gb/s are 120 us each.
    assert!(us.iter().all(|us| (570.0..900.0).contains(us)), "{us:?}");
    let silent = folder.times(&format!("{trace}\ntime-scale = 0"))[0].as_us();
    assert!((240.0..us[0] - 200.0).contains(&silent), "{silent}");
    let halving = folder.times(&format!("{trace}\nall-reduce = \"halving-doubling\""));
    assert_ne!(halving[0], times[0]);
}

#[test]
fn what_cannot_run_says_why() {
    let folder = Folder::new("refused");
    let error = |workload: &str| {
        let error = Assembly::new(&folder.scenario(workload)).unwrap_err();
        let folder = folder.0.display().to_string();
        error.to_string().replace(&folder, "DIR")
    };
    assert_snapshot!(error("kind = \"trace\"\nfile = \"missing.goal\""), @"
    test:14: cannot read DIR/missing.goal: No such file or directory (os error 2)
      fix: name a file that exists and that you may read
    ");
    let nine = "num_ranks 9\n".to_owned()
        + &(0..9)
            .map(|r| format!("rank {r} {{\n}}\n"))
            .collect::<String>();
    folder.write("nine.goal", nine);
    assert_snapshot!(error("kind = \"trace\"\nfile = \"nine.goal\""), @"
    test:15: `file` of the trace workload: the trace has 9 ranks, but the topology has 8 hosts
      fix: choose a topology with 9 hosts or more for it
    ");
    folder.write(
        "lonely.goal",
        "num_ranks 2\nrank 0 {\n}\nrank 1 {\nl1: recv 100b from 0 tag 3\n}\n",
    );
    assert_snapshot!(error("kind = \"trace\"\nfile = \"lonely.goal\""), @"
    DIR/lonely.goal:5: `l1` of rank 1 (line 5) receives from rank 0 with tag 3, but no send is left for it
      fix: add the send, or remove the receive
    ");
}

#[test]
fn the_hash_covers_the_traces_of_all_ranks() {
    let folder = Folder::new("hash");
    let files = write_chakra(&compute_and_call(CollectiveKind::AllReduce, 2)).unwrap();
    folder.write("groups.json", files.groups);
    for (rank, trace) in files.traces.iter().enumerate() {
        folder.write(&format!("run.{rank}.et"), trace);
    }
    let trace = "kind = \"trace\"\nfile = \"run\"\ncomm-groups = \"groups.json\"";
    let scenario = folder.scenario(trace);
    let before = scenario.hash();
    let digest = folder.run(trace).digest;
    // Elsewhere, where the names alone would lead nowhere.
    let laboratory = Laboratory::new();
    let resolved = laboratory.read("test", &scenario.resolved(), None, &[]);
    let resolved = resolved.unwrap();
    assert_eq!(resolved.hash(), before);
    assert_eq!(laboratory.run(&resolved).unwrap().digest, digest);
    folder.write(
        "run.1.et",
        std::fs::read(folder.0.join("run.0.et")).unwrap(),
    );
    assert_eq!(scenario.hash(), before, "both ranks do the same");
    let one = write_chakra(&compute_and_call(CollectiveKind::Broadcast, 2)).unwrap();
    folder.write("run.1.et", &one.traces[1]);
    assert_ne!(scenario.hash(), before);
}

#[test]
fn an_override_names_another_trace() {
    let folder = Folder::new("override");
    let trace = "kind = \"trace\"\nfile = \"a.goal\"\niterations = 3";
    let kept = folder.overridden(trace, &["workload.file=b.goal"]);
    assert_eq!(kept, folder.scenario(&trace.replace("a.goal", "b.goal")));
    for overrides in [
        ["workload.kind=trace", "workload.file=b.goal"],
        ["workload.file=b.goal", "workload.kind=trace"],
    ] {
        let chosen = folder.overridden("kind = \"permutation\"", &overrides);
        assert_eq!(chosen.workloads[0].kind(), "trace");
    }
}

#[test]
fn warnings_of_the_reader_reach_the_user() {
    let folder = Folder::new("warnings");
    folder.write(
        "empty.goal",
        "num_ranks 2\nrank 0 {\nl1: send 0b to 1 tag 3\n}\nrank 1 {\nl1: recv 0b from 0 tag 3\n}\n",
    );
    let workload = "kind = \"trace\"\nfile = \"empty.goal\"";
    let assembly = Assembly::new(&folder.scenario(workload)).unwrap();
    let warnings = assembly.warnings.join("\n");
    assert_snapshot!(warnings.replace(&folder.0.display().to_string(), "DIR"), @"DIR/empty.goal:3: `l1` of rank 0 (line 3) has no bytes to send, and sends one because a message needs a packet");
    assert_eq!(folder.times(workload).len(), 1);
}

#[test]
fn computations_of_traces_end_in_the_time_that_a_simulation_can_count() {
    let folder = Folder::new("computations");
    let rank =
        |compute: &str| format!("rank 0 {{\na: calc {compute}\n}}\nrank 1 {{\nb: calc 1\n}}\n");
    for (nanoseconds, fits) in [("2592000000000000", true), ("3000000000000000", false)] {
        folder.write("long.goal", format!("num_ranks 2\n{}", rank(nanoseconds)));
        let scenario = folder.scenario("kind = \"trace\"\nfile = \"long.goal\"");
        let error = Assembly::new(&scenario)
            .err()
            .map(|error| error.to_string());
        match fits {
            true => assert_eq!(error, None),
            false => assert_snapshot!(error.unwrap(), @r"
            test:15: a computation of the job long can take 3000000s
              fix: use at most 2592000s (30 days)
            "),
        }
    }
}
