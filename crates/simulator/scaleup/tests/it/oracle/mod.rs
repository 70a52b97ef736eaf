//! The simulator against a slow and plain second model, on random small scenarios: both must complete the same operations in the same
//! cycles, with the same packets on links and the same use of tables and queues, for any number of threads.
//!
//! A failing scenario is named by its seed: `CLEARWAY_ORACLE_SEED=17 cargo test -p clearway-scaleup --test it oracle`.
//! `CLEARWAY_ORACLE_SCENARIOS` sets how many there are.

mod gpu;
mod model;
mod network;
mod random;

use clearway_scaleup::injection::{InjectionFacts, InjectionSettings, Membership, NoControl};
use clearway_scaleup::{
    Configuration, Finished, GroupId, InjectionArbiter, InjectionChannels, Operation,
    OperationKind, OperationRecord, OperationSet, Replication, RunLimits, Setup, Simulation, Step,
    Target, Tree,
};
use clearway_testing::{cases, number};
use clearway_units::HostId;
use gpu::Gpu;
use model::{Oracle, Totals};
use network::Network;
use random::{Control, Scenario, Work};

/// Scenarios of a default run.
const SCENARIOS: u32 = 600;
/// One in so many scenarios runs with three threads as well, unless that takes so many rounds: threads that wait for each other are
/// slow where there are fewer cores.
const THREADED: u64 = 4;
const THREADED_ROUNDS: u64 = 60;
/// Scenarios of a default run without the oracle.
const FAST_SCENARIOS: u64 = 300;

fn simulate(scenario: &Scenario, threads: usize) -> Finished {
    let setup = Setup {
        configuration: scenario.configuration.clone(),
        tree: scenario.tree.clone(),
        groups: scenario.groups.clone(),
        seed: scenario.seed,
        control: &|facts| scenario.control(facts),
        programs: scenario.programs(),
    };
    let simulation = Simulation::new(setup).expect("a sound set-up");
    let limits = RunLimits {
        threads: threads.into(),
        at_most: None,
    };
    Finished {
        // Nothing else may depend on it.
        threads: 1,
        ..simulation.run(limits, None)
    }
}

/// The groups of a GPU, as its injection control is told of them.
fn memberships(groups: &[Vec<HostId>], gpu: HostId) -> Vec<Membership> {
    let mut memberships = Vec::new();
    for (group, members) in groups.iter().enumerate() {
        if let Some(rank) = members.iter().position(|&member| member == gpu) {
            memberships.push(Membership {
                group: GroupId(group as u32),
                members: members.len() as u32,
                rank: rank as u32,
            });
        }
    }
    memberships
}

fn oracle(scenario: &Scenario) -> (Vec<OperationRecord>, Totals) {
    let gpu = |(id, program)| {
        let id = HostId(id as u32);
        let control = scenario.control(&InjectionFacts {
            gpu: id,
            seed: scenario.seed,
            memberships: &memberships(&scenario.groups, id),
            sizes: scenario.configuration.sizes(),
        });
        Gpu::new(id, program, control, &scenario.configuration)
    };
    let gpus = scenario.programs().into_iter().enumerate().map(gpu);
    let gpus = gpus.collect();
    let network = Network {
        tree: scenario.tree.clone(),
        groups: scenario.groups.clone(),
    };
    Oracle::new(scenario.configuration.clone(), network, gpus).run()
}

/// Sums that the simulator gives.
fn totals(scenario: &Scenario, finished: &Finished) -> Totals {
    let switches = f64::from(scenario.tree.switches());
    let entries = finished.mean_entries * switches * finished.end as f64;
    Totals {
        unfinished: finished.unfinished,
        is_over: finished.is_over,
        last: finished.end,
        cycles: finished.cycles,
        effective_flits: finished.effective_flits,
        packet_hops: finished.packet_hops,
        flit_hops: finished.flit_hops,
        peak_entries: finished.peak_entries,
        entries: entries.round() as u64,
        waits_for_entries: finished.waits_for_entries,
        peak_queue: finished.peak_queue,
        peak_responses: finished.peak_responses,
    }
}

/// Checks that a run came to its end.
fn check_end(scenario: &Scenario, finished: &Finished) {
    let seed = scenario.seed;
    assert_eq!(finished.fault, None, "seed {seed}: {scenario:#?}");
    assert_eq!(finished.unfinished, 0, "seed {seed}: {scenario:#?}");
    assert!(!finished.is_stopped, "seed {seed}");
}

/// Shows the operations that differ, first the one with which it begins.
fn compare(scenario: &Scenario, fast: &Finished, slow: &[OperationRecord], totals_slow: &Totals) {
    let seed = scenario.seed;
    let pairs = fast.operations.iter().zip(slow).filter(|(a, b)| a != b);
    let first = pairs.min_by_key(|(a, b)| {
        let earlier = |x: u64, y: u64| if x == y { u64::MAX } else { x.min(y) };
        let posted = earlier(a.posted, b.posted);
        posted
            .min(earlier(a.sent, b.sent))
            .min(earlier(a.completed, b.completed))
    });
    if let Some((fast, slow)) = first {
        panic!("seed {seed}: fast {fast:#?}, slow {slow:#?} of {scenario:#?}");
    }
    let counts = (fast.operations.len(), slow.len());
    assert_eq!(counts.0, counts.1, "seed {seed}: {scenario:#?}");
    let totals_fast = totals(scenario, fast);
    assert_eq!(totals_fast, *totals_slow, "seed {seed}: {scenario:#?}");
}

/// Coverage of the scenarios, counted so that the test does not become trivial unnoticed.
#[derive(Debug, Default)]
struct Coverage {
    operations: usize,
    multicast_reads: usize,
    multicast_writes: usize,
    unicast: usize,
    /// Scenarios in which requests waited for entries.
    waits_for_entries: usize,
    /// Scenarios in which some output queue was full, but for less than a packet.
    full_queues: usize,
    /// Scenarios in which responses queued at a GPU.
    response_queues: usize,
    /// Operations that were sent later than they were posted.
    held: usize,
    round_robin: usize,
    nearest: usize,
    shared: usize,
    moody: usize,
    threaded: usize,
}

fn is_multicast(record: &OperationRecord) -> bool {
    matches!(record.target, Target::Group(_))
}

impl Coverage {
    fn add(&mut self, scenario: &Scenario, finished: &Finished) {
        let configuration = &scenario.configuration;
        let sizes = configuration.sizes();
        let count = |is: fn(&OperationRecord) -> bool| {
            let records = finished.operations.iter();
            records.filter(|record| is(record)).count()
        };
        self.operations += finished.operations.len();
        self.multicast_reads += count(|r| is_multicast(r) && r.kind == OperationKind::Read);
        self.multicast_writes += count(|r| is_multicast(r) && r.kind == OperationKind::Write);
        self.unicast += count(|r| !is_multicast(r));
        self.waits_for_entries += usize::from(finished.waits_for_entries > 0);
        let packet = sizes.header + sizes.payload;
        let is_full = finished.peak_queue + packet > configuration.output_queue;
        self.full_queues += usize::from(is_full);
        self.response_queues += usize::from(finished.peak_responses > 1);
        self.held += count(|record| record.sent > record.posted);
        let is_round_robin = configuration.arbiter == InjectionArbiter::RoundRobin;
        self.round_robin += usize::from(is_round_robin);
        let is_nearest = configuration.replication == Replication::Nearest;
        self.nearest += usize::from(is_nearest);
        let is_shared = configuration.channels == InjectionChannels::Shared;
        self.shared += usize::from(is_shared);
        self.moody += usize::from(scenario.control == Control::Moody);
    }

    fn check(&self, scenarios: usize) {
        let often = [
            self.full_queues,
            self.response_queues,
            self.round_robin,
            self.nearest,
            self.shared,
            self.moody,
        ];
        assert!(often.iter().all(|&n| n > scenarios / 4), "{self:?}");
        assert!(self.waits_for_entries > scenarios / 10, "{self:?}");
        assert!(self.operations > 50 * scenarios, "{self:?}");
        let many = [
            self.multicast_reads,
            self.multicast_writes,
            self.unicast,
            self.held,
        ];
        assert!(many.iter().all(|&n| n > 10 * scenarios), "{self:?}");
        assert!(self.threaded > scenarios / 12, "{self:?}");
    }
}

fn from_environment(key: &str) -> Option<u64> {
    let value = std::env::var(key).ok()?;
    Some(value.parse().expect("a number"))
}

/// Checks one scenario against the oracle.
fn check(scenario: &Scenario) -> Finished {
    let finished = simulate(scenario, 1);
    let (operations, totals) = oracle(scenario);
    compare(scenario, &finished, &operations, &totals);
    check_end(scenario, &finished);
    finished
}

#[test]
fn oracle_completes_the_same_operations_in_the_same_cycles() {
    let seeds = match from_environment("CLEARWAY_ORACLE_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            0..number(
                "CLEARWAY_ORACLE_SCENARIOS",
                cases(SCENARIOS, 5 * SCENARIOS).into(),
            )
        }
    };
    let scenarios = seeds.end - seeds.start;
    let mut coverage = Coverage::default();
    for seed in seeds {
        let scenario = Scenario::new(seed);
        let finished = check(&scenario);
        coverage.add(&scenario, &finished);
        let rounds = finished.end / u64::from(scenario.configuration.latency);
        if (seed % THREADED == 0 && rounds < THREADED_ROUNDS) || scenarios == 1 {
            let threaded = simulate(&scenario, 3);
            assert_eq!(finished, threaded, "seed {seed}: {scenario:#?}");
            coverage.threaded += 1;
        }
    }
    if scenarios >= SCENARIOS.into() {
        coverage.check(scenarios as usize);
    }
}

/// Memory of twelve GPUs takes several writes in one cycle, that after a read's departure: more events than a short sort has.
#[test]
fn acknowledgements_that_are_ready_at_once_keep_the_order_of_requests() {
    let operation = |kind, tag| Operation {
        kind,
        target: Target::Group(GroupId(0)),
        address: 0,
        tag,
    };
    let only = |first| Step { first, then: None };
    let mut steps = vec![only(operation(OperationKind::Read, 0))];
    steps.extend((1..9).map(|tag| only(operation(OperationKind::Write, tag))));
    let others = (1..12).map(|gpu: u32| {
        let read = Operation {
            target: Target::Gpu(HostId((gpu * 5) % 12)),
            ..operation(OperationKind::Read, 0)
        };
        Work::Script(vec![OperationSet {
            pause: 0,
            steps: vec![only(read); 4],
        }])
    });
    let mut work = vec![Work::Script(vec![OperationSet { pause: 0, steps }])];
    work.extend(others);
    for (read_latency, write_latency, response_queue) in [(20, 2, 18), (50, 13, 18), (200, 18, 9)] {
        check(&Scenario {
            seed: 0,
            configuration: Configuration {
                latency: 10,
                response_queue: Some(response_queue),
                read_latency,
                write_latency,
                channels: InjectionChannels::Shared,
                ..Configuration::default()
            },
            tree: Tree {
                gpus: 12,
                gpus_per_leaf: 12,
                spines: 0,
                links_per_spine: 1,
            },
            groups: vec![(0..12).map(HostId).collect()],
            control: Control::Named(InjectionSettings::defaults::<NoControl>()),
            work: work.clone(),
        });
    }
}

fn all_end(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let scenario = Scenario::new(seed);
        check_end(&scenario, &simulate(&scenario, 1));
    }
}

#[test]
fn random_runs_come_to_their_end() {
    let first = 1 << 32;
    all_end(first..first + FAST_SCENARIOS);
}

#[test]
#[ignore = "takes long"]
fn ten_thousand_random_runs_come_to_their_end() {
    let first = 1 << 33;
    all_end(first..first + 10_000);
}
