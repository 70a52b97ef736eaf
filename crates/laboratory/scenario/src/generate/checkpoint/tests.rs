//! Shards, objects and copies of checkpoints, and faults.

use super::*;
use crate::generate::sample::{context, settings, text};
use clearway_units::Value;
use clearway_workload::JobSpec;
use clearway_workload::graph::Task;
use insta::assert_snapshot;

fn number(number: i64) -> Value {
    Value::Integer(number)
}

fn jobs(values: &[(&str, Value)], hosts: u32) -> Vec<JobSpec> {
    let loaded = settings("checkpoint", values).load(&context(hosts));
    loaded.unwrap().jobs
}

fn error(values: &[(&str, Value)], hosts: u32) -> String {
    let loaded = settings("checkpoint", values).load(&context(hosts));
    loaded.unwrap_err().to_string()
}

/// Messages of a job: sender, receiver, bytes.
fn messages(job: &JobSpec) -> Vec<(u32, u32, u64)> {
    let tasks = job.plan.graph().numbered();
    let messages = tasks.filter_map(|(_, task)| match task {
        Task::Message { src, dst, bytes } => Some((src.0, dst.0, bytes.as_u64())),
        Task::Compute { .. } => None,
    });
    messages.collect()
}

#[test]
fn every_byte_is_written_once_in_objects_of_the_size() {
    let values = [
        ("parameters", number(1_000_003)),
        ("object", text("100KB")),
        ("ranks", number(6)),
    ];
    let jobs = jobs(&values, 12);
    let all = messages(&jobs[0]);
    jobs[0].plan.graph().check().unwrap();
    assert_eq!(
        all.iter().map(|(.., bytes)| bytes).sum::<u64>(),
        14 * 1_000_003
    );
    for rank in 0..6 {
        let own: Vec<_> = all.iter().filter(|message| message.0 == rank).collect();
        // 2 333 340 bytes and a part of one more.
        assert_eq!(own.len(), 24);
        assert!(own[..23].iter().all(|message| message.2 == 100_000));
        assert!((33_340..=33_341).contains(&own[23].2));
        // One storage host after the other; rank r begins with the r-th, modulo 4.
        assert!(
            (0..)
                .zip(&own)
                .all(|(object, message)| message.1 == 6 + (rank + object) % 4)
        );
    }
    let hosts: Vec<u32> = jobs[0].hosts.iter().map(|host| host.0).collect();
    assert_eq!(hosts, [0, 1, 2, 3, 4, 5, 8, 9, 10, 11]);
    assert_eq!(
        jobs[0].volume.map(|volume| volume.bytes),
        Some(Bytes::new(14_000_042))
    );
}

#[test]
fn copies_go_from_one_storage_host_to_the_next() {
    let values = [
        ("parameters", number(1000)),
        ("replicas", number(3)),
        ("ranks", number(2)),
        ("object", text("1KB")),
        ("striping", text("random")),
    ];
    let job = &jobs(&values, 8)[0];
    job.plan.graph().check().unwrap();
    let all = messages(job);
    assert_eq!(all.len(), 2 * 7 * 3);
    for copies in all.chunks(3) {
        let [
            (writer, first, bytes),
            (from, to, second),
            (next, last, third),
        ] = copies
        else {
            panic!("three copies");
        };
        assert!(*writer < 2);
        assert_eq!((first, to), (from, next));
        assert_eq!(
            (*to, *last),
            (2 + (first - 2 + 1) % 4, 2 + (first - 2 + 2) % 4)
        );
        assert!(bytes == second && second == third);
    }
}

#[test]
fn jobs_share_the_storage_hosts() {
    let values = [
        ("parameters", number(1000)),
        ("jobs", number(2)),
        ("storage-hosts", Value::List(vec![number(0), number(7)])),
    ];
    let jobs = jobs(&values, 8);
    let hosts = |job: usize| {
        jobs[job]
            .hosts
            .iter()
            .map(|host| host.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(hosts(0), [1, 2, 3, 0, 7]);
    assert_eq!(hosts(1), [4, 5, 6, 0, 7]);
}

#[test]
fn ranks_begin_late_by_a_time_of_their_own() {
    let values = [
        ("parameters", number(1000)),
        ("interval", text("1ms")),
        ("start-jitter", text("100us")),
        ("ranks", number(8)),
    ];
    let job = &jobs(&values, 12)[0];
    let spans = job
        .plan
        .graph()
        .numbered()
        .filter_map(|(_, task)| match task {
            Task::Compute { span, .. } => Some(span),
            Task::Message { .. } => None,
        });
    let mut spans: Vec<Span> = spans.collect();
    assert!(
        spans
            .iter()
            .all(|&span| span >= Span::from_us(1000) && span <= Span::from_us(1100))
    );
    spans.sort_unstable();
    spans.dedup();
    assert_eq!(spans.len(), 8);
}

#[test]
fn faults_name_the_key_and_the_fix() {
    let few = ("parameters", number(1000));
    let list = |hosts: &[i64]| Value::List(hosts.iter().map(|&host| number(host)).collect());
    assert_snapshot!(error(&[("storage", number(8))], 8), @"
    `storage` of the checkpoint workload: 8 storage hosts, but the topology has 8 hosts
      fix: choose fewer, and leave hosts that write
    ");
    assert_snapshot!(error(&[few.clone(), ("replicas", number(5))], 8), @"
    `replicas` of the checkpoint workload: 5 copies of each object, but 4 storage hosts
      fix: choose at most as many as there are storage hosts
    ");
    assert_snapshot!(error(&[few.clone(), ("storage-hosts", list(&[8]))], 8), @"
    `storage-hosts` of the checkpoint workload: host 8, but the topology has 8 hosts
      fix: hosts are numbered from 0
    ");
    assert_snapshot!(error(&[few.clone(), ("storage-hosts", list(&[1, 1]))], 8), @"
    `storage-hosts` of the checkpoint workload: host 1 is named twice
      fix: name each host once
    ");
    assert_snapshot!(error(&[few.clone(), ("storage-hosts", list(&[1])), ("hosts", list(&[0, 1]))], 8), @"
    `storage-hosts` of the checkpoint workload: host 1 is to write and to store
      fix: name other `storage-hosts`, or other `hosts` for the ranks
    ");
    assert_snapshot!(error(&[few.clone(), ("ranks", number(5))], 8), @"
    `ranks` of the checkpoint workload: 1 job of 5 ranks, but storage and other jobs leave 4 hosts
      fix: choose fewer `ranks`, `jobs` or `storage` hosts, or a larger topology
    ");
    assert_snapshot!(error(&[few, ("object", text("0B"))], 8), @r#"
    `object` of the checkpoint workload: objects carry no bytes
      fix: write a size of at least one byte, as in "4MiB"
    "#);
    assert_snapshot!(error(&[("object", text("1B"))], 8), @"
    `object` of the checkpoint workload: shards of 28000000000 B in objects of 1B are up to 112000000000 copies of objects in all
      fix: choose larger objects, or fewer parameters, replicas or jobs: 16777216 are the most
    ");
    assert_snapshot!(error(&[("parameters", number(0))], 8), @"
    `parameters` of the checkpoint workload: 0 parameters of 14 B each on 4 ranks
      fix: give each rank at least one byte, and all together less than 2^64
    ");
    assert_snapshot!(error(&[("parameters", number(i64::MAX))], 8), @"
    `parameters` of the checkpoint workload: 9223372036854775807 parameters of 14 B each on 4 ranks
      fix: give each rank at least one byte, and all together less than 2^64
    ");
}
