//! Placement of jobs, and tasks of their ranks.

use super::*;
use crate::generate::TakenHosts;
use crate::{LoadedWorkload, WorkloadSettings};
use clearway_units::{HostId, Rate};
use clearway_workload::TaskDependency;
use clearway_workload::graph::Task;
use clearway_workload::{JobSpec, Output, RankRun};
use insta::assert_snapshot;

const NIC_RATES: [Rate; 64] = [Rate::from_gbps(400); 64];

fn load(kind: &str, settings: &[(&str, &str)], hosts: u32) -> Result<LoadedWorkload, String> {
    load_beside(kind, settings, hosts, BuildContext::ALL_FREE)
}

/// As `load`, with jobs of earlier sections on the hosts `taken`.
fn load_beside(
    kind: &str,
    settings: &[(&str, &str)],
    hosts: u32,
    taken: &TakenHosts,
) -> Result<LoadedWorkload, String> {
    let mut workload = WorkloadSettings::named(kind).unwrap();
    for (key, value) in settings {
        let list = value
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let value = match (list, value.parse::<i64>(), value.parse::<f64>()) {
            (Some(list), ..) => {
                let items = list
                    .split(',')
                    .map(|item| Value::Integer(item.trim().parse().unwrap()));
                Value::List(items.collect())
            }
            (_, Ok(number), _) => Value::Integer(number),
            (_, _, Ok(number)) => Value::Float(number),
            _ => Value::Text((*value).into()),
        };
        workload.set(key, &value).unwrap();
    }
    let context = BuildContext {
        hosts,
        nic_rates: &NIC_RATES,
        gpus_per_node: 1,
        dimensions: &[],
        host_numbers: None,
        seed: 1,
        section: 0,
        taken,
        base_dir: None,
    };
    workload.load(&context).map_err(|error| error.to_string())
}

fn jobs(kind: &str, settings: &[(&str, &str)], hosts: u32) -> Vec<JobSpec> {
    load(kind, settings, hosts).unwrap().jobs
}

#[test]
fn jobs_of_sections_are_on_different_hosts() {
    let mut taken = TakenHosts::new();
    taken.extend([0, 1, 5].map(HostId));
    let beside = |settings: &[(&str, &str)]| {
        load_beside("ring-all-reduce", settings, 10, &taken).map(|loaded| hosts_of(&loaded.jobs))
    };
    assert_eq!(beside(&[]).unwrap(), [[2, 3, 4, 6, 7, 8, 9]]);
    assert_eq!(
        beside(&[("jobs", "2")]).unwrap(),
        [[2, 3, 4], [6, 7, 8]],
        "as many ranks as there are free hosts for each job"
    );
    let mut random = beside(&[("placement", "random")]).unwrap().remove(0);
    assert!(!random.is_sorted());
    random.sort_unstable();
    assert_eq!(random, [2, 3, 4, 6, 7, 8, 9]);
    let mut blocks = beside(&[
        ("placement", "random-block"),
        ("block", "2"),
        ("ranks", "6"),
    ])
    .unwrap()
    .remove(0);
    blocks.sort_unstable();
    assert_eq!(blocks, [2, 3, 6, 7, 8, 9], "whole blocks alone");
    assert_snapshot!(beside(&[("ranks", "8")]).unwrap_err(), @"
    `ranks` of the ring-all-reduce workload: 1 job of 8 ranks, but jobs of earlier sections leave 7 hosts
      fix: choose fewer `ranks`, or a larger topology, or name `hosts` that sections are to share
    ");
    assert_snapshot!(beside(&[("placement", "random"), ("ranks", "4"), ("neighbours", "2")]).unwrap_err(), @"
    `neighbours` of the ring-all-reduce workload: not all of the first 2 hosts are free
      fix: write the section with `neighbours` before other jobs
    ");
    // Named hosts are shared, with a warning.
    let shared = [("hosts", "[5, 6]")];
    let shared = load_beside("ring-all-reduce", &shared, 10, &taken).unwrap();
    assert_eq!(hosts_of(&shared.jobs), [[5, 6]]);
    assert_snapshot!(shared.setting_warnings.join("\n"), @"host 5 of `hosts` already has a rank of a job from an earlier section: both share its NIC");
}

#[test]
fn settings_without_effect_are_warned_of() {
    let warnings = |settings: &[(&str, &str)]| {
        load("ring-all-reduce", settings, 8)
            .unwrap()
            .setting_warnings
    };
    let idle = warnings(&[
        ("jitter", "0.5"),
        ("stragglers", "2"),
        ("overlap", "0.5"),
        ("block", "4"),
        ("hosts", "[3, 1]"),
        ("placement", "random"),
    ]);
    assert_snapshot!(idle.join("\n"), @r#"
    `jitter` lengthens computations, and `compute` is zero
    `stragglers` lengthens computations, and `compute` is zero
    `overlap` = 0.5 has no effect with one bucket: it is ready only when the computation ends
    `block` = 4 applies only to the placement "random-block"
    `hosts` takes the place of `placement`
    "#);
    let used = warnings(&[
        ("compute", "1ms"),
        ("jitter", "0.5"),
        ("stragglers", "2"),
        ("overlap", "0.5"),
        ("buckets", "2"),
        ("block", "4"),
        ("placement", "random-block"),
    ]);
    assert_eq!(used, [""; 0]);
}

fn hosts_of(jobs: &[JobSpec]) -> Vec<Vec<u32>> {
    let own = |job: &JobSpec| job.hosts.iter().map(|host| host.0).collect();
    jobs.iter().map(own).collect()
}

#[test]
fn every_rank_has_a_host_of_its_own() {
    let packed = jobs("ring-all-reduce", &[("jobs", "2"), ("size", "1MB")], 6);
    assert_eq!(hosts_of(&packed), [[0, 1, 2], [3, 4, 5]]);
    let random = [
        ("jobs", "4"),
        ("ranks", "8"),
        ("placement", "random"),
        ("size", "1MB"),
    ];
    let random = hosts_of(&jobs("ring-all-reduce", &random, 40));
    let mut all = random.concat();
    assert!(!random[0].is_sorted());
    all.sort_unstable();
    all.dedup();
    assert_eq!((random.len(), all.len()), (4, 32));
    let near = [
        ("jobs", "4"),
        ("ranks", "8"),
        ("placement", "random"),
        ("neighbours", "5"),
    ];
    let near = hosts_of(&jobs("ring-all-reduce", &near, 40));
    assert_eq!(near[0][..5], [0, 1, 2, 3, 4]);
    let mut all = near.concat();
    assert!(near[0][5..].iter().any(|&host| host > 10));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 32);
    let blocks = [
        ("jobs", "2"),
        ("ranks", "8"),
        ("placement", "random-block"),
        ("block", "4"),
    ];
    for own in hosts_of(&jobs("all-to-all", &blocks, 64)) {
        for block in own.chunks(4) {
            assert_eq!(block[0] % 4, 0);
            assert!(block.windows(2).all(|pair| pair[1] == pair[0] + 1));
        }
    }
    let listed = [
        ("jobs", "2"),
        ("hosts", "[3, 1, 0, 5]"),
        ("stagger", "2us"),
        ("start", "1us"),
    ];
    let listed = jobs("double-binary-tree", &listed, 6);
    assert_eq!(hosts_of(&listed), [[3, 1], [0, 5]]);
    let starts: Vec<Time> = listed.iter().map(|job| job.start).collect();
    assert_eq!(starts, [1, 3].map(Time::from_us));
    assert_eq!(listed[1].label, "double-binary-tree 1");
    assert!(
        Arc::ptr_eq(&listed[0].plan, &listed[1].plan),
        "jobs that do the same share a plan"
    );
}

#[test]
fn buckets_become_ready_one_after_the_other() {
    let settings = [
        ("compute", "100us"),
        ("buckets", "3"),
        ("overlap", "0.6"),
        ("size", "1000B"),
        ("ranks", "2"),
    ];
    let job = &jobs("ring-all-reduce", &settings, 2)[0];
    let graph = job.plan.graph();
    graph.check().unwrap();
    let spans: Vec<Span> = graph
        .numbered()
        .filter_map(|(_, task)| match task {
            Task::Compute {
                rank: Rank(1),
                span,
                ..
            } => Some(span),
            _ => None,
        })
        .collect();
    // 40 us without overlap, then 20 us for each bucket.
    assert_eq!(spans, [60, 20, 20].map(Span::from_us));
    // 2 (N-1)/N of 1000 B from each of two ranks.
    assert_eq!(graph.bytes_sent(), [Bytes::new(1000); 2]);
    assert_eq!(job.volume.unwrap().bytes, Bytes::new(1000));
    // Messages of a rank wait for its computation.
    for (id, task) in graph.numbered() {
        if let Task::Message { src, .. } = task {
            let is_gate = |dependency: &TaskDependency| {
                let task = graph.task(dependency.task());
                matches!(task, Task::Compute { rank, .. } if rank == src)
            };
            assert!(graph.needs(id).iter().any(is_gate));
        }
    }
}

#[test]
fn parts_add_up_to_the_whole_whatever_its_size() {
    for (whole, parts) in [(u64::MAX, 7), (u64::MAX, 4_000_000_000), (10, 3), (0, 2)] {
        let shares = [0, 1, parts / 2, parts - 1].map(|part| share_of(whole, part, parts));
        for share in shares {
            assert!(share == whole / parts || share == whole / parts + 1);
        }
    }
    let sum: u64 = (0..7).map(|part| share_of(u64::MAX, part, 7)).sum();
    assert_eq!(sum, u64::MAX);
    // 2^53 + 1 ps as a float is rounded up: a share must not exceed the whole.
    let span = (1u64 << 53) + 3;
    let compute = format!("{span}ps");
    let settings = [
        ("compute", compute.as_str()),
        ("overlap", "1.0"),
        ("buckets", "2"),
        ("size", "18446744073709551615B"),
        ("chunk", "18446744073709551615B"),
    ];
    let loaded = load("chain-broadcast", &settings, 2).unwrap();
    let graph = loaded.jobs[0].plan.graph();
    let computed = graph.numbered().filter_map(|(_, task)| match task {
        Task::Compute {
            rank: Rank(0),
            span,
            ..
        } => Some(span.as_ps()),
        _ => None,
    });
    assert_eq!(computed.sum::<u64>(), span);
    assert_eq!(graph.bytes_sent()[0], Bytes::new(u64::MAX));
}

#[test]
fn buckets_have_together_what_a_graph_may_have() {
    let of = |buckets: &str| {
        let settings = [("buckets", buckets), ("size", "1GB"), ("chunk", "1GB")];
        load("ring-all-reduce", &settings, 8).unwrap_err()
    };
    assert_snapshot!(of("900000000"), @"
    `buckets` of the ring-all-reduce workload: 900000000 buckets of 22 messages and computations, but 33554432 are the most that an iteration may have
      fix: choose 1525201 buckets at most, or a larger `chunk`
    ");
}

#[test]
fn sums_are_formed_beside_the_computation() {
    let settings = [
        ("compute", "100us"),
        ("buckets", "2"),
        ("overlap", "1.0"),
        ("size", "2000B"),
        ("reduction-rate", "8Gbps"),
        ("stragglers", "2"),
        ("straggler-factor", "2.0"),
    ];
    let job = &jobs("ring-all-reduce", &settings, 2)[0];
    let mut rank = RankRun::new(Arc::clone(&job.plan), Rank(0), 1, job.pace(Rank(0), 0, 1));
    rank.start(Time::ZERO);
    // The first half of the computation of a straggler.
    assert_eq!(rank.deadline(), Time::from_us(100));
    rank.on_deadline(Time::from_us(100));
    let posted = std::iter::from_fn(|| rank.poll_output()).find_map(|output| match output {
        Output::Post { message, .. } => Some(message),
        _ => None,
    });
    let incoming = job
        .plan
        .graph()
        .numbered()
        .find_map(|(id, task)| match task {
            Task::Message { dst: Rank(0), .. } => Some(clearway_workload::MessageNumber(id.0)),
            _ => None,
        });
    assert!(posted.is_some());
    // 500 B from the neighbour arrive. Their reduction takes 0.5 us, and ends long before the second half of the computation.
    rank.on_received(Time::from_us(110), incoming.unwrap());
    assert_eq!(rank.deadline(), Time::from_ps(110_500_000));
    rank.on_deadline(Time::from_ps(110_500_000));
    assert!(
        std::iter::from_fn(|| rank.poll_output())
            .any(|output| matches!(output, Output::Post { .. }))
    );
    assert_eq!(rank.deadline(), Time::from_us(200));
}

#[test]
fn stragglers_are_drawn_for_each_job() {
    let settings = [
        ("jobs", "8"),
        ("stragglers", "2"),
        ("straggler-factor", "3.0"),
        ("size", "1MB"),
    ];
    let jobs = jobs("ring-all-reduce", &settings, 64);
    assert!(jobs.iter().all(|job| job.stragglers.len() == 2));
    assert!(
        jobs.iter()
            .all(|job| job.stragglers.values().all(|&factor| factor == 3.0))
    );
    assert!(
        jobs.iter()
            .any(|job| job.stragglers.keys().ne(jobs[0].stragglers.keys()))
    );
}

#[test]
fn faults_of_settings() {
    let error = |settings: &[(&str, &str)]| load("ring-all-reduce", settings, 8).unwrap_err();
    assert_snapshot!(error(&[("jobs", "0")]), @"
    `jobs` of the ring-all-reduce workload: no jobs
      fix: write 1 or more
    ");
    assert_snapshot!(error(&[("ranks", "0")]), @r#"
    `ranks` of the ring-all-reduce workload: jobs without ranks
      fix: write 1 or more, or "auto"
    "#);
    assert_snapshot!(error(&[("ranks", "4"), ("stragglers", "5")]), @"
    `stragglers` of the ring-all-reduce workload: 5 stragglers of 4 ranks
      fix: choose at most as many as a job has ranks
    ");
    assert_snapshot!(error(&[("jobs", "3"), ("ranks", "4")]), @"
    `ranks` of the ring-all-reduce workload: 3 jobs of 4 ranks, but the topology has 8 hosts
      fix: every rank needs its own host: choose fewer `ranks` or `jobs`, or more hosts
    ");
    assert_snapshot!(error(&[("jobs", "9")]), @"
    `ranks` of the ring-all-reduce workload: 9 jobs of 1 rank, but the topology has 8 hosts
      fix: every rank needs its own host: choose fewer `ranks` or `jobs`, or more hosts
    ");
    assert_snapshot!(error(&[("hosts", "[1, 9]")]), @"
    `hosts` of the ring-all-reduce workload: host 9, but the topology has 8 hosts
      fix: hosts are numbered from 0
    ");
    assert_snapshot!(error(&[("hosts", "[1, 1]")]), @"
    `hosts` of the ring-all-reduce workload: host 1 is named twice
      fix: give each rank its own host
    ");
    assert_snapshot!(error(&[("hosts", "[1, 2, 3]"), ("jobs", "2")]), @"
    `hosts` of the ring-all-reduce workload: 3 hosts for 2 jobs of 1 ranks
      fix: name one host for each rank
    ");
    assert_snapshot!(error(&[("placement", "random-block"), ("block", "3"), ("ranks", "4")]), @"
    `block` of the ring-all-reduce workload: 1 jobs of 4 ranks in blocks of 3 on 8 hosts
      fix: choose a block that divides the ranks, and hosts enough for whole blocks
    ");
    assert_snapshot!(error(&[("neighbours", "2")]), @r#"
    `neighbours` of the ring-all-reduce workload: 2 neighbours of 8 ranks
      fix: choose `placement = "random"`, and at most as many as a job has ranks
    "#);
    assert_snapshot!(error(&[("overlap", "1.5")]), @"
    `overlap` of the ring-all-reduce workload: a share of 1.5
      fix: write a share from 0 to 1
    ");
    assert_snapshot!(error(&[("straggler-factor", "0.5")]), @"
    `straggler-factor` of the ring-all-reduce workload: a factor of 0.5
      fix: write a factor from 1 to 1e6
    ");
    assert_snapshot!(error(&[("ranks", "1")]), @"
    `ranks` of the ring-all-reduce workload: one rank has nobody to exchange data with
      fix: take 2 ranks or more
    ");
    assert_snapshot!(error(&[("iterations", "4000000000")]), @"
    `iterations` of the ring-all-reduce workload: 4000000000 iterations of 13776 messages and computations
      fix: less than 2^32 in all iterations have numbers
    ");
    assert_snapshot!(error(&[("size", "3B"), ("buckets", "4")]), @"
    `buckets` of the ring-all-reduce workload: 4 buckets of 3 bytes in all
      fix: choose at most one bucket for each byte
    ");
}
