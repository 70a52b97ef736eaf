//! Whole fabrics against results known in advance.

use clearway_scaleup::injection::{
    Completed, InjectionControl, InjectionDecision, InjectionFacts, InjectionGauges, Remote, Sent,
};
use clearway_scaleup::{
    Configuration, Finished, GroupId, Operation, OperationKind, OperationSet, Program, RunLimits,
    Script, Setup, Simulation, Step, Target, Tree,
};
use clearway_units::{HostId, Purpose, RandomStream};

/// At most `most` operations of each kind at once.
#[derive(Debug)]
struct Limit {
    most: u32,
    outstanding: [u32; 2],
}

impl InjectionControl for Limit {
    fn consent(&mut self, _: u64, kind: OperationKind, _: Option<GroupId>) -> InjectionDecision {
        match self.outstanding[kind as usize] < self.most {
            true => InjectionDecision::Now,
            false => InjectionDecision::Wait,
        }
    }
    fn on_sent(&mut self, sent: &Sent) {
        self.outstanding[sent.kind as usize] += 1;
    }
    fn on_remote(&mut self, _: &Remote) {}
    fn on_completed(&mut self, completed: &Completed) {
        self.outstanding[completed.kind as usize] -= 1;
    }
    fn gauges(&mut self, _: u64) -> InjectionGauges {
        InjectionGauges::default()
    }
}

fn limit(most: u32) -> impl Fn(&InjectionFacts<'_>) -> Box<dyn InjectionControl> {
    move |_| {
        Box::new(Limit {
            most,
            outstanding: [0; 2],
        })
    }
}

/// 64 GPUs, 8 leaves, 4 spines with 2 links each (§6.3.1).
fn paper_tree() -> Tree {
    Tree {
        gpus: 64,
        gpus_per_leaf: 8,
        spines: 4,
        links_per_spine: 2,
    }
}

fn run(
    tree: Tree,
    configuration: Configuration,
    groups: Vec<Vec<HostId>>,
    most: u32,
    sets: impl Fn(u32) -> Vec<OperationSet>,
) -> Finished {
    let program = |gpu| Box::new(Script::new(sets(gpu))) as Box<dyn Program>;
    let programs = (0..tree.gpus).map(program).collect();
    let setup = Setup {
        configuration,
        tree,
        groups,
        seed: 1,
        control: &limit(most),
        programs,
    };
    let simulation = Simulation::new(setup).expect("a sound set-up");
    let limits = RunLimits {
        threads: 1.into(),
        at_most: None,
    };
    let finished = simulation.run(limits, None);
    assert_eq!(finished.fault, None);
    assert_eq!(finished.unfinished, 0);
    assert!(finished.is_over);
    finished
}

fn operation(kind: OperationKind, target: Target, address: u64) -> Operation {
    Operation {
        kind,
        target,
        address,
        tag: 0,
    }
}

fn only(operation: Operation) -> Step {
    Step {
        first: operation,
        then: None,
    }
}

fn set(steps: Vec<Step>) -> Vec<OperationSet> {
    vec![OperationSet { pause: 0, steps }]
}

/// Reads and then writes of `transactions` addresses by each of the first `initiators` of group 0.
fn all_reduce(initiators: u32, transactions: u64) -> impl Fn(u32) -> Vec<OperationSet> {
    move |gpu| {
        let group = Target::Group(GroupId(0));
        let step = |k| {
            let address = u64::from(gpu) << 32 | k;
            Step {
                first: operation(OperationKind::Read, group, address),
                then: Some(operation(OperationKind::Write, group, address)),
            }
        };
        match gpu < initiators {
            true => set((0..transactions).map(step).collect()),
            false => Vec::new(),
        }
    }
}

#[test]
fn idle_round_trips_take_what_links_switches_and_memory_take() {
    let all = (0..64).map(HostId).collect::<Vec<_>>();
    let near = (0..8).map(HostId).collect::<Vec<_>>();
    let alone = |kind, target| {
        let sets = |gpu: u32| match gpu {
            0 => set(vec![only(operation(kind, target, 7))]),
            _ => Vec::new(),
        };
        let finished = run(
            paper_tree(),
            Configuration::default(),
            vec![all.clone(), near.clone()],
            1,
            sets,
        );
        finished.operations[0].latency()
    };
    use OperationKind::{Read, Write};
    // Six passes through switches of 150 cycles, 9 flits one way and 1 the other, 180 cycles of memory for a read.
    for far in [Target::Gpu(HostId(63)), Target::Group(GroupId(0))] {
        assert_eq!(alone(Write, far), 6 * 150 + 10);
        assert_eq!(alone(Read, far), 6 * 150 + 10 + 180);
    }
    for close in [Target::Gpu(HostId(7)), Target::Group(GroupId(1))] {
        assert_eq!(alone(Write, close), 2 * 150 + 10);
        assert_eq!(alone(Read, close), 2 * 150 + 10 + 180);
    }
}

#[test]
fn uniform_random_unicast_fills_the_links() {
    let sets = |gpu: u32| {
        let mut random = RandomStream::new(1, Purpose::Test, u64::from(gpu));
        let steps = (0..3000).map(|_| {
            let target = loop {
                let target = random.below(64);
                if target != gpu {
                    break target;
                }
            };
            only(operation(
                OperationKind::Write,
                Target::Gpu(HostId(target)),
                random.next_u64(),
            ))
        });
        set(steps.collect())
    };
    let finished = run(
        paper_tree(),
        Configuration::default(),
        Vec::new(),
        u32::MAX,
        sets,
    );
    // Ten flits for each operation and GPU. The last to finish has nobody to share with.
    let middle: Vec<_> = finished
        .operations
        .iter()
        .filter(|record| record.completed < 25_000 && record.completed >= 5_000)
        .collect();
    let rate = middle.len() as f64 * 10.0 / 64.0 / 20_000.0;
    assert!(rate > 0.95, "{rate}, {} cycles", finished.cycles);
}

#[test]
fn all_reduce_reaches_twice_the_line_rate_with_a_window_and_not_without() {
    let group = vec![(0..64).map(HostId).collect::<Vec<_>>()];
    let bandwidth = |most| {
        let finished = run(
            paper_tree(),
            Configuration::default(),
            group.clone(),
            most,
            all_reduce(64, 128),
        );
        finished.effective_bandwidth()
    };
    let (window, none) = (bandwidth(3), bandwidth(u32::MAX));
    assert!(window > 1.85, "{window}");
    assert!(none <= 0.7 * window, "{none}");
}

#[test]
fn packets_and_credits_are_conserved_wherever_a_run_stops() {
    let groups = vec![(0..64).map(HostId).collect::<Vec<_>>()];
    for cycle in [0, 1, 151, 700, 1500, 4000, 9000, 14_000] {
        let programs = (0..64).map(|gpu| {
            let sets = all_reduce(64, 16)(gpu);
            Box::new(Script::new(sets)) as Box<dyn Program>
        });
        let setup = Setup {
            configuration: Configuration {
                reduction_table: Some(40),
                ..Configuration::default()
            },
            tree: paper_tree(),
            groups: groups.clone(),
            seed: 1,
            control: &limit(u32::MAX),
            programs: programs.collect(),
        };
        let simulation = Simulation::new(setup).expect("a sound set-up");
        let limits = RunLimits {
            threads: 2.into(),
            at_most: Some(cycle),
        };
        let finished = simulation.run(limits, None);
        assert_eq!(finished.fault, None, "{cycle}");
        assert!(finished.is_stopped, "{cycle}");
    }
}

#[test]
fn nothing_happens_at_the_end_of_a_run_or_later() {
    let run = |at_most| {
        let programs =
            (0..64).map(|gpu| Box::new(Script::new(all_reduce(64, 4)(gpu))) as Box<dyn Program>);
        let setup = Setup {
            configuration: Configuration::default(),
            tree: paper_tree(),
            groups: vec![(0..64).map(HostId).collect()],
            seed: 1,
            control: &limit(3),
            programs: programs.collect(),
        };
        let limits = RunLimits {
            threads: 1.into(),
            at_most,
        };
        Simulation::new(setup)
            .expect("a sound set-up")
            .run(limits, None)
    };
    let whole = run(None);
    for end in [1000, 1095, 1777, 2001] {
        let part = run(Some(end));
        let before = whole
            .operations
            .iter()
            .filter(|record| record.completed < end);
        assert!(part.operations.iter().eq(before), "{end}");
        assert_eq!((part.end, part.is_stopped), (end, true));
    }
}
