//! Traces that run on a scale-up fabric, and traces that are rejected.

use crate::{Experiment, ScaleupScenario, ScaleupTraffic, ScenarioError};
use clearway_formats::{write_chakra, write_goal};
use clearway_scaleup::injection::{InjectionFacts, InjectionRegistry};
use clearway_scaleup::{
    Finished, IterationCycles, IterationLog, OperationKind, RunLimits, Setup, Simulation, Target,
};
use clearway_transport::Registry;
use clearway_units::{Bytes, HostId, Span};
use clearway_workload::graph::Rank;
use clearway_workload::program::{
    CollectiveKind, JobProgram, Operation, OperationDependency, RankProgram,
};
use insta::assert_snapshot;

/// Folder of files that is removed after the test.
struct Folder(clearway_testing::Folder);

impl Folder {
    fn new(test: &str) -> Self {
        Self(clearway_testing::Folder::new(&format!(
            "scaleup-trace-{test}"
        )))
    }

    fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.0.join(name), content).unwrap();
        self
    }

    fn chakra(self, program: &JobProgram) -> Self {
        let files = write_chakra(program).unwrap();
        let traces = (0..).zip(files.traces);
        let folder = self.with("groups.json", files.groups);
        traces.fold(folder, |folder, (rank, trace): (u32, _)| {
            folder.with(&format!("run.{rank}.et"), trace)
        })
    }

    fn experiment(&self, text: &str, settings: &[&str]) -> Result<Experiment, ScenarioError> {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let registries = (&Registry::builtin(), &InjectionRegistry::builtin());
        Experiment::read(registries, "x.toml", text, Some(&*self.0), &settings)
    }

    fn scenario(&self, settings: &[&str]) -> ScaleupScenario {
        match self.experiment(TEXT, settings).unwrap() {
            Experiment::Scaleup(scenario) => *scenario,
            Experiment::Packets(_) => panic!("a scale-up fabric"),
        }
    }

    fn error(&self, settings: &[&str]) -> String {
        let error = self.scenario(settings).traffic().unwrap_err();
        assert!(error.place.is_some());
        let folder = self.0.display().to_string();
        error.to_string().replace(&folder, "DIR")
    }
}

const TEXT: &str = "[topology]\nkind = \"nvlink\"\ngpus = 16\ngpus-per-leaf = 4\n\
                    [[workload]]\nkind = \"trace\"\nfile = \"trace.txt\"\n";

/// All 16 ranks add up 256 KiB: 128 transactions of 128 B each.
const ALL_REDUCE: &str = "\
MICRO
1
mlp -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 262144 0
";

/// Iterations of each job in a run of a scenario.
fn run(scenario: &ScaleupScenario, threads: usize) -> (Finished, Vec<Vec<IterationCycles>>) {
    let ScaleupTraffic {
        groups,
        programs,
        operations,
        jobs,
        ..
    } = scenario.traffic().unwrap();
    let setup = Setup {
        configuration: scenario.fabric.configuration.clone(),
        tree: scenario.fabric.nvlink.tree(),
        groups,
        seed: 1,
        control: &|facts: &InjectionFacts<'_>| scenario.injection.build(facts),
        programs,
    };
    let limits = RunLimits {
        threads: threads.into(),
        at_most: None,
    };
    let finished = Simulation::new(setup).unwrap().run(limits, None);
    assert_eq!((&finished.fault, finished.unfinished), (&None, 0));
    assert!(finished.is_over);
    assert_eq!(finished.operations.len() as u64, operations);
    let times = jobs.iter().map(|job| IterationLog::merged(&job.logs));
    (finished, times.collect())
}

#[test]
fn an_all_reduce_takes_as_long_as_links_need_for_it() {
    let folder = Folder::new("all-reduce").with("trace.txt", ALL_REDUCE);
    let scenario = folder.scenario(&["workload.iterations=2"]);
    let (finished, times) = run(&scenario, 1);
    for gpu in 0..16 {
        let of = |kind| {
            let own = finished.operations.iter();
            own.filter(|it| it.gpu == HostId(gpu) && it.kind == kind)
                .count()
        };
        // And one flag for each iteration.
        assert_eq!(
            (of(OperationKind::Read), of(OperationKind::Write)),
            (256, 258)
        );
    }
    // Ten flits of each packet of 128 B cross each GPU's link.
    let least = 262_144 / 128 * 10;
    let spans: Vec<u64> = times[0]
        .iter()
        .map(|it| it.over.unwrap() - it.begun)
        .collect();
    assert_eq!(spans.len(), 2);
    assert!(
        spans.iter().all(|span| (least..2 * least).contains(span)),
        "{spans:?}"
    );
    let (again, same) = run(&scenario, 3);
    assert_eq!((again.digest, same), (finished.digest, times));
}

/// Ranks 3 and 1, and ranks 0 and 2, broadcast and then reduce, as the first of their group says; all meet at a barrier.
fn pairs() -> JobProgram {
    let call = |kind, bytes, group| Operation::Collective {
        kind,
        bytes: Bytes::new(bytes),
        group,
    };
    let compute = Operation::Compute {
        unit: 0,
        span: Span::from_us(1),
    };
    let rank = |rank: u32| {
        let pair = u32::from(rank.is_multiple_of(2));
        let operations = vec![
            compute,
            call(CollectiveKind::Broadcast, 300, pair),
            call(CollectiveKind::Reduce, 128, pair),
            call(CollectiveKind::Barrier, 0, 2),
            call(CollectiveKind::AllToAll, 0, 2),
        ];
        let after = |number| (number, OperationDependency::over(number - 1));
        RankProgram::new(operations, (1..5).map(after).collect())
    };
    let group = |ranks: &[u32]| ranks.iter().copied().map(Rank).collect();
    JobProgram {
        ranks: (0..4).map(rank).collect(),
        groups: vec![group(&[3, 1]), group(&[0, 2]), group(&[0, 1, 2, 3])],
    }
}

const CHAKRA: [&str; 3] = [
    "workload.file=run",
    "workload.comm-groups=groups.json",
    "workload.members=4-7",
];

#[test]
fn groups_of_a_trace_are_groups_of_the_fabric() {
    let folder = Folder::new("groups").chakra(&pairs());
    let scenario = folder.scenario(&CHAKRA);
    let traffic = scenario.traffic().unwrap();
    let gpus = |of: &[u32]| of.iter().copied().map(HostId).collect::<Vec<_>>();
    // All is the section's own group.
    assert_eq!(
        traffic.groups,
        [gpus(&[4, 5, 6, 7]), gpus(&[4, 6]), gpus(&[5, 7])]
    );
    // Of each pair four flags, three packets and one; then four flags.
    assert_eq!(traffic.operations, 2 * 8 + 4);
    assert_eq!(traffic.jobs[0].gpus, gpus(&[4, 5, 6, 7]));
    let (finished, times) = run(&scenario, 2);
    let data = finished.operations.iter().filter(|it| {
        it.kind == OperationKind::Read && matches!(it.target, Target::Group(group) if group.0 > 0)
    });
    // The first ranks of the groups, 3 and 0.
    let readers: Vec<HostId> = data.map(|it| it.gpu).collect();
    assert_eq!(readers, gpus(&[4, 7]));
    let cycles = Span::from_us(1).as_ps().div_ceil(640);
    assert_eq!(times[0][0].sending, Some(cycles));
    let half = folder.scenario(&[&CHAKRA[..], &["workload.time-scale=0.5"]].concat());
    let (_, scaled) = run(&half, 1);
    assert_eq!(scaled[0][0].sending, Some(cycles.div_ceil(2)));
}

#[test]
fn traces_stand_beside_other_sections() {
    let folder = Folder::new("beside").chakra(&pairs());
    let collective = "[[workload]]\nmembers = \"0-3\"\ntransactions = 4\n";
    let file = "file = \"run\"\ncomm-groups = \"groups.json\"\nmembers = \"4-7\"\n";
    let text = TEXT.replace("file = \"trace.txt\"\n", file) + collective;
    let Experiment::Scaleup(scenario) = folder.experiment(&text, &[]).unwrap() else {
        panic!("a scale-up fabric");
    };
    let groups = scenario.traffic().unwrap().groups;
    assert_eq!(groups[1], (0..4).map(HostId).collect::<Vec<_>>());
    assert_eq!(groups.len(), 4);
    run(&scenario, 1);
}

#[test]
fn scenarios_know_their_traces() {
    let folder = Folder::new("files").with("trace.txt", ALL_REDUCE);
    let path = folder.0.join("trace.txt");
    let scenario = folder.scenario(&[]);
    let experiment = folder.experiment(TEXT, &[]).unwrap();
    let named = [("workload[0].file".to_owned(), path.clone())];
    assert_eq!(experiment.files(), named);
    assert_eq!(experiment.hash(), scenario.hash());
    assert!(scenario.resolved().contains(&path.display().to_string()));
    let elsewhere = Folder::new("elsewhere").with("other.txt", ALL_REDUCE);
    let other = elsewhere.scenario(&["workload.file=other.txt"]);
    assert_eq!(other.hash(), scenario.hash());
    let folder = folder.with("trace.txt", ALL_REDUCE.replace("262144", "262145"));
    assert_ne!(folder.scenario(&[]).hash(), other.hash());
}

/// Every rank of four calls a collective.
fn call_of(kind: CollectiveKind) -> JobProgram {
    let call = Operation::Collective {
        kind,
        bytes: Bytes::new(1000),
        group: 0,
    };
    JobProgram {
        ranks: vec![RankProgram::new(vec![call], Vec::new()); 4],
        groups: vec![(0..4).map(Rank).collect()],
    }
}

#[test]
fn what_switches_cannot_carry_out_is_refused() {
    let send = Operation::Send {
        to: Rank(1),
        bytes: Bytes::new(5),
        tag: 0,
    };
    let receive = Operation::Receive {
        from: Some(Rank(0)),
        bytes: Bytes::new(5),
        tag: Some(0),
    };
    let message = JobProgram {
        ranks: [send, receive]
            .map(|operation| RankProgram::new(vec![operation], Vec::new()))
            .to_vec(),
        groups: Vec::new(),
    };
    let goal = Folder::new("goal").with("a.goal", write_goal(&message).unwrap());
    let mut errors = vec![goal.error(&["workload.file=a.goal"])];
    let messages = Folder::new("messages").chakra(&message);
    errors.push(messages.error(&["workload.file=run", "workload.members=0-1"]));
    let all_to_all = Folder::new("all-to-all").chakra(&call_of(CollectiveKind::AllToAll));
    errors.push(all_to_all.error(&CHAKRA));
    assert_snapshot!(errors.join("\n"));
}

#[test]
fn traces_that_do_not_fit_are_refused() {
    let folder = Folder::new("misfit")
        .with("trace.txt", ALL_REDUCE)
        .chakra(&pairs());
    let refusals = [
        &["workload.file=missing.txt"][..],
        &["workload.file="],
        &["workload.passes=0"],
        &["workload.iterations=0"],
        &["workload.time-scale=1e7"],
        &["workload.iterations=100000000"],
        &["workload.comm-groups=groups.json"],
        &["topology.payload-flits=0"],
        &[CHAKRA[0], CHAKRA[1]],
    ];
    let errors = refusals.map(|settings| folder.error(settings));
    assert_snapshot!(errors.join("\n"));
}
