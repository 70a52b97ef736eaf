use super::*;
use crate::injection::{InjectionFacts, InjectionRegistry};
use crate::{Configuration, Finished, RunLimits, Setup, Simulation, Tree};

fn compute(unit: u8, cycles: Cycle, waits: &[TaskWait]) -> RankTask {
    RankTask {
        work: Work::Compute { unit, cycles },
        waits: waits.to_vec(),
    }
}

fn collective(call: u32, place: u32, waits: &[TaskWait]) -> RankTask {
    RankTask {
        work: Work::Collective { call, place },
        waits: waits.to_vec(),
    }
}

fn over(task: u32) -> TaskWait {
    TaskWait {
        task,
        is_begun: false,
    }
}

fn begun(task: u32) -> TaskWait {
    TaskWait {
        task,
        is_begun: true,
    }
}

fn call(kind: CallKind, members: u32, share: u64) -> GroupCall {
    GroupCall {
        group: GroupId(0),
        members,
        kind,
        share,
        first_address: 0,
    }
}

fn job(tasks: Vec<RankTask>, calls: &[GroupCall], iterations: u32) -> RankJob {
    RankJob {
        tasks,
        calls: calls.into(),
        iterations,
        log: IterationLog::default(),
    }
}

/// Wakes a program whenever it wants, and returns the cycles of waking.
fn wake_until_idle(program: &mut RankTasks, posts: &mut Posts) -> Vec<Cycle> {
    let mut woken = Vec::new();
    while let Some(at) = (0..posts.wakes.len()).min_by_key(|&index| posts.wakes[index]) {
        let now = posts.wakes.swap_remove(at);
        woken.push(now);
        program.on_wake(now, posts);
    }
    woken
}

#[test]
fn a_unit_computes_one_thing_at_a_time() {
    let tasks = vec![
        compute(0, 10, &[]),
        compute(0, 5, &[]),
        compute(1, 7, &[]),
        compute(0, 0, &[over(0), over(2)]),
        compute(2, 1, &[begun(1)]),
        compute(1, 20, &[over(3)]),
    ];
    let job = job(tasks, &[], 2);
    let log = job.log.clone();
    let mut program = RankTasks::new(job);
    let mut posts = Posts::default();
    program.start(&mut posts);
    // Task 1 follows task 0 on its unit; 4 begins with it, and 5 when 0 is over.
    let woken = wake_until_idle(&mut program, &mut posts);
    assert_eq!(woken, [7, 10, 11, 15, 30, 37, 40, 41, 45, 60]);
    assert!(program.is_over());
    let times = IterationLog::merged(&[log]);
    let times: Vec<_> = times.iter().map(|it| (it.begun, it.over)).collect();
    assert_eq!(times, [(0, Some(30)), (30, Some(60))]);
}

#[test]
fn of_tasks_that_are_ready_the_lowest_begins_first() {
    let tasks = vec![
        compute(0, 0, &[over(3)]),
        compute(1, 2, &[over(0)]),
        compute(1, 3, &[over(3)]),
        compute(0, 0, &[]),
    ];
    let mut program = RankTasks::new(job(tasks, &[], 1));
    let mut posts = Posts::default();
    program.start(&mut posts);
    assert_eq!(wake_until_idle(&mut program, &mut posts), [2, 5]);
}

fn posted(posts: &mut Posts) -> Vec<Operation> {
    std::mem::take(&mut posts.operations)
}

#[test]
fn a_share_follows_the_flags_of_all() {
    let all_reduce = call(CallKind::AllReduce, 3, 2);
    let mut program = RankTasks::new(job(vec![collective(0, 1, &[])], &[all_reduce], 2));
    let mut posts = Posts::default();
    program.start(&mut posts);
    let flag = posted(&mut posts);
    assert_eq!(flag.len(), 1);
    assert_eq!((flag[0].kind, flag[0].address), (OperationKind::Write, 1));
    let (flag, data) = (Part::Flag.tag(0), Part::Data.tag(0));
    program.on_write(1, HostId(0), flag, &mut posts);
    program.on_write(2, HostId(1), flag, &mut posts);
    assert!(posted(&mut posts).is_empty());
    program.on_write(3, HostId(2), flag, &mut posts);
    let reads = posted(&mut posts);
    // Three flags, then the first member's share of two.
    let addresses: Vec<u64> = reads.iter().map(|read| read.address).collect();
    assert_eq!(addresses, [5, 6]);
    for read in &reads {
        assert_eq!(read.kind, OperationKind::Read);
        program.on_completion(4, read, &mut posts);
    }
    let writes = posted(&mut posts);
    assert!(writes.iter().zip(&reads).all(|(write, read)| {
        (write.kind, write.address) == (OperationKind::Write, read.address)
    }));
    for write in &writes {
        program.on_completion(5, write, &mut posts);
    }
    // Another member is an iteration ahead.
    program.on_write(5, HostId(2), Part::Flag.tag(1), &mut posts);
    for arrived in 1..=6 {
        assert_eq!(program.iteration, 0, "{arrived}");
        program.on_write(6, HostId(0), data, &mut posts);
    }
    assert_eq!(program.iteration, 1);
    let next = posted(&mut posts);
    // Addresses of the first iteration: three flags and six packets.
    assert_eq!((next[0].tag, next[0].address), (Part::Flag.tag(1), 9 + 1));
    program.on_write(7, HostId(0), Part::Flag.tag(1), &mut posts);
    program.on_write(7, HostId(1), Part::Flag.tag(1), &mut posts);
    assert_eq!(posted(&mut posts).len(), 2);
}

#[test]
fn shares_are_those_of_the_kind() {
    let expect = |kind, place, reads: usize, writes: usize| {
        let mut posts = Posts::default();
        post_share(0, &call(kind, 4, 3), (place, 0), &mut posts);
        let of = |kind| posts.operations.iter().filter(|it| it.kind == kind).count();
        let found = (of(OperationKind::Read), of(OperationKind::Write));
        assert_eq!(found, (reads, writes), "{kind:?} {place}");
    };
    for place in [0, 3] {
        expect(CallKind::AllReduce, place, 3, 0);
        expect(CallKind::ReduceScatter, place, 3, 0);
        expect(CallKind::AllGather, place, 0, 3);
        expect(CallKind::Barrier, place, 0, 0);
    }
    expect(CallKind::Broadcast, 0, 0, 3);
    expect(CallKind::Broadcast, 1, 0, 0);
    expect(CallKind::Reduce, 0, 3, 0);
    expect(CallKind::Reduce, 1, 0, 0);
}

#[test]
fn logs_of_ranks_are_merged_from_the_first_to_the_last() {
    let log = |times: &[(Cycle, Option<Cycle>)]| {
        let log = IterationLog::default();
        for &(begun, over) in times {
            log.begin(begun);
            over.into_iter().for_each(|over| log.end(over));
        }
        log
    };
    let [a, b] = [
        log(&[(0, Some(5)), (5, Some(9))]),
        log(&[(0, Some(7)), (7, None)]),
    ];
    let none = log(&[]);
    let merged = |logs: &[IterationLog]| -> Vec<_> {
        let merged = IterationLog::merged(logs);
        merged.iter().map(|it| (it.begun, it.over)).collect()
    };
    assert_eq!(merged(&[a.clone(), b.clone()]), [(0, Some(7)), (5, None)]);
    assert_eq!(merged(&[b, a.clone()]), [(0, Some(7)), (5, None)]);
    assert_eq!(merged(&[none.clone(), a.clone()]), [(0, None), (5, None)]);
    assert_eq!(merged(&[a, none]), [(0, None), (5, None)]);
}

/// GPUs below one switch.
fn run(threads: usize, jobs: Vec<RankJob>) -> (Finished, Vec<IterationCycles>) {
    let gpus = jobs.len() as u32;
    let logs: Vec<IterationLog> = jobs.iter().map(|job| job.log.clone()).collect();
    let programs = jobs
        .into_iter()
        .map(|job| Box::new(RankTasks::new(job)) as Box<dyn Program>);
    let control = InjectionRegistry::builtin().control("none").unwrap();
    let setup = Setup {
        configuration: Configuration::default(),
        tree: Tree {
            gpus,
            gpus_per_leaf: gpus,
            spines: 0,
            links_per_spine: 0,
        },
        groups: vec![(0..gpus).map(HostId).collect()],
        seed: 1,
        control: &|facts: &InjectionFacts<'_>| control.build(facts),
        programs: programs.collect(),
    };
    let limits = RunLimits {
        threads: threads.into(),
        at_most: None,
    };
    let finished = Simulation::new(setup).unwrap().run(limits, None);
    assert_eq!((&finished.fault, finished.unfinished), (&None, 0));
    assert!(finished.is_over);
    (finished, IterationLog::merged(&logs))
}

/// Cycles after which the flags of `members` that are raised together have arrived: one latency, and then each flag's flits.
fn flags(members: u64) -> Cycle {
    150 + 9 * members
}

#[test]
fn a_barrier_takes_as_long_as_its_flags() {
    for members in [2u32, 4, 8] {
        let barrier = call(CallKind::Barrier, members, 0);
        let job = |place| job(vec![collective(0, place, &[])], &[barrier], 1);
        let (_, times) = run(1, (0..members).map(job).collect());
        assert_eq!(times[0].sending, Some(0));
        assert_eq!(times[0].over, Some(flags(members.into())));
    }
}

#[test]
fn nobody_starts_before_all_are_ready() {
    let all_reduce = call(CallKind::AllReduce, 4, 5);
    let job = |place| {
        let late = compute(0, 1000 * Cycle::from(place == 2), &[]);
        job(
            vec![late, collective(0, place, &[over(0)])],
            &[all_reduce],
            2,
        )
    };
    let (finished, times) = run(1, (0..4).map(job).collect());
    let reads = |number: u64| {
        let all = finished.operations.iter();
        let mut reads: Vec<Cycle> = all
            .filter(|it| it.tag == Part::Reduction.tag(number as u32))
            .map(|it| it.posted)
            .collect();
        reads.sort_unstable();
        reads
    };
    let first = reads(0);
    assert_eq!(first.len(), 20);
    // The others' flags have long been there.
    assert!(first.iter().all(|&at| at == 1000 + flags(1)), "{first:?}");
    let idle = Configuration::default();
    let latencies =
        [OperationKind::Read, OperationKind::Write].map(|kind| idle.idle_latency(kind, false));
    let least = flags(1) + latencies.iter().sum::<Cycle>();
    let ended = times[0].over.unwrap();
    // A link carries ten flits for each packet of the array.
    assert!(
        (1000 + least..1000 + least + 20 * 10).contains(&ended),
        "{ended} {least}"
    );
    // GPU 2 is late again, from when its own iteration ended.
    assert!(reads(1)[0] >= times[1].begun + 1000 + flags(1));
}
