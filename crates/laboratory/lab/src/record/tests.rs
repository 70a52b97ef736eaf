use super::*;
use crate::{Assembly, Laboratory, RunOptions};
use clearway_fabric::topology::single_switch;
use clearway_fabric::{RunDecision, Watch};
use clearway_transport::Event;
use clearway_units::{Bytes, FlowId, HostId, Rate, Span};

fn us(us: u64) -> Time {
    Time::from_us(us)
}

#[test]
fn series_halve_their_resolution_when_they_are_full() {
    let mut series = Series::<u64>::new(Span::from_us(1), 4);
    for time in [0, 1, 1, 3] {
        *series.at(us(time)) += 1;
    }
    assert_eq!(series.buckets(), [1, 2, 0, 1]);
    *series.at(us(4)) += 10;
    assert_eq!(
        (series.width(), series.buckets()),
        (Span::from_us(2), &[3, 1, 10][..])
    );
    *series.at(us(31)) += 100;
    assert_eq!(
        (series.width(), series.buckets()),
        (Span::from_us(8), &[14, 0, 0, 100][..])
    );
    assert_eq!(series.start_of(3), us(24));
    assert_eq!(series.with_at_most(2).buckets(), [14, 100]);
}

#[test]
fn series_of_different_resolution_are_added_exactly() {
    let mut fine = Series::<u64>::new(Span::from_us(1), 4);
    let mut coarse = fine.clone();
    *fine.at(us(1)) += 1;
    *fine.at(us(2)) += 2;
    *coarse.at(us(7)) += 4;
    let mut other = coarse.clone();
    other.merge(fine.clone());
    fine.merge(coarse);
    assert_eq!(fine, other);
    assert_eq!(fine.buckets(), [1, 2, 0, 4]);
}

#[test]
fn queues_keep_exact_maxima_and_means() {
    let link = LinkId(7);
    let mut recorder = QueueRecorder::new(&[link], Span::from_us(1), 1 << 10);
    // 1000 B from 0.5 us to 2.25 us, then 3000 B until 2.5 us, then nothing; the other link does not count.
    let events = [(500, 1000), (2250, 3000), (2500, 0)];
    for (ns, bytes) in events {
        recorder.on_queue(Time::ZERO + Span::from_ns(ns), link, bytes);
        recorder.on_queue(Time::ZERO + Span::from_ns(ns), LinkId(6), 1_000_000);
    }
    recorder.close(us(4));
    let (_, queue) = recorder.queues().next().unwrap();
    let buckets = queue.series().buckets();
    let means: Vec<f64> = buckets.iter().map(|b| b.integral as f64 / 1e6).collect();
    assert_eq!(means, [500.0, 1000.0, 1000.0, 0.0, 0.0]);
    let maxima: Vec<u64> = buckets.iter().map(|bucket| bucket.max).collect();
    assert_eq!(maxima, [1000, 1000, 3000, 0, 0]);

    assert_eq!(queue.mean(us(0), us(4)), Some(625.0));
    assert_eq!(queue.mean(us(1), us(3)), Some(1000.0));
    let shrunk = queue.mean(
        Time::ZERO + Span::from_ns(900),
        Time::ZERO + Span::from_ns(2900),
    );
    assert_eq!(shrunk, Some(1000.0), "only the second microsecond is whole");
    assert_eq!(queue.mean(us(3), us(3)), None);
    assert_eq!(queue.peak(us(0), us(2)), Some(1000));

    let settled = |low, high, until| queue.settled(low, high, us(until));
    assert_eq!(settled(900.0, 1100.0, 3), Some(us(1)));
    assert_eq!(settled(0.0, 1100.0, 4), Some(us(0)));
    assert_eq!(settled(900.0, 1100.0, 4), None, "empty at the end");
}

#[test]
fn a_queue_that_outlasts_its_record_keeps_its_total() {
    let mut recorder = QueueRecorder::new(&[LinkId(1)], Span::from_us(1), 4);
    recorder.on_queue(us(1), LinkId(1), 10);
    recorder.on_queue(us(100), LinkId(1), 0);
    recorder.close(us(128));
    let (_, queue) = recorder.queues().next().unwrap();
    assert_eq!(queue.series().width(), Span::from_us(64));
    let total: u128 = queue.series().buckets().iter().map(|b| b.integral).sum();
    assert_eq!(total, 10 * 99_000_000);
}

type All = Both<Both<QueueRecorder, LossRecorder>, Both<GoodputRecorder, AckRecorder>>;

/// Runs a scenario on one switch; returns its recorders and the end of the run.
fn record(overrides: &[&str]) -> (All, Time) {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = Laboratory::new()
        .read("test", "", None, &overrides)
        .unwrap();
    let assembly = Assembly::new(&scenario).unwrap();
    let last_hop = assembly.topology.link_to_host(HostId(0)).unwrap();
    let mut recorders = assembly.per_domain(|| Both {
        first: Both {
            first: QueueRecorder::new(&[last_hop], Span::from_us(1), 1 << 10),
            second: LossRecorder::new(Span::from_us(1), 1 << 10),
        },
        second: Both {
            first: GoodputRecorder::new(u32::MAX, Span::from_us(1), 1 << 10),
            second: AckRecorder::new(2),
        },
    });
    let options = RunOptions {
        threads: 1.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    let finished = assembly.run(options, Watch::by(&mut recorders));
    let mut whole = merge_all(recorders).unwrap();
    whole.first.first.close(finished.simulated);
    (whole, finished.simulated)
}

/// Two hosts send one packet each to a third at the same time: one passes, the other waits for one packet time.
#[test]
fn two_packets_meet_in_one_queue() {
    let (all, end) = record(&[
        "topology.kind=single-switch",
        "topology.hosts=3",
        "topology.link-rate=400Gbps",
        "topology.link-delay=2us",
        "workload.kind=incast",
        "workload.senders=2",
        "workload.message=4096B",
    ]);
    // 4160 B take 83.2 ns, so both arrive at 2.0832 us and the second leaves 166.4 ns later.
    let (_, queue) = all.first.first.queues().next().unwrap();
    let buckets = queue.series().buckets();
    assert_eq!(buckets.iter().map(|b| b.max).max(), Some(8320));
    let total: u128 = buckets.iter().map(|bucket| bucket.integral).sum();
    assert_eq!(total, (8320 + 4160) * 83_200);

    let goodput = all.second.first.flows();
    assert_eq!(goodput.len(), 2);
    for arrivals in goodput.values() {
        assert_eq!(arrivals.total(), 4096);
        assert_eq!(arrivals.series().buckets(), [0, 0, 0, 0, 4096]);
    }
    // Acknowledgements of 64 B take 1.28 ns on each of two links; the second sender's packet waited for the first's.
    let mut rtts: Vec<u64> = all
        .second
        .second
        .flows()
        .values()
        .map(|trace| {
            assert_eq!((trace.count, trace.marked), (1, 0));
            trace.first[0].rtt.as_ps()
        })
        .collect();
    rtts.sort_unstable();
    let alone = 8_000_000 + 2 * 83_200 + 2 * 1_280;
    assert_eq!(rtts, [alone, alone + 83_200]);
    assert_eq!(end, Time::from_ps(alone + 83_200));
    assert_eq!(all.first.second.drops.count(), 0);
}

#[test]
fn the_longest_queue_anywhere_is_kept_and_when_it_was_last_long() {
    let topology = single_switch(3, Rate::from_gbps(400), Span::from_us(1)).unwrap();
    let above = Span::from_us(2);
    let mut recorder = LongQueueRecorder::new(&topology, above, above, 100);
    let mut other = recorder.clone();
    // 50 KB take a microsecond.
    for (us, link, bytes) in [
        (1, 1, 100_000),
        (3, 1, 150_000),
        (5, 3, 250_000),
        (7, 3, 100_001),
        (9, 1, 0),
    ] {
        recorder.on_queue(Time::from_us(us), LinkId(link), bytes);
    }
    other.on_queue(Time::from_us(4), LinkId(5), 300_000);
    recorder.merge(other);
    let longest: Vec<u64> = recorder
        .series()
        .buckets()
        .iter()
        .map(|l| l.0.as_ps())
        .collect();
    assert_eq!(longest, [0, 3_000_000, 6_000_000, 2_000_020]);
    assert_eq!(recorder.last(), Some(Time::from_us(7)));
}

#[test]
fn what_comes_to_hosts_is_counted_when_it_joins_the_queue() {
    let topology = single_switch(3, Rate::from_gbps(400), Span::from_us(1)).unwrap();
    let mut recorder = LastHopRecorder::new(&topology, Span::from_us(2), 100);
    let other = recorder.clone();
    // Link 1 leads to host 0, link 0 away from it.
    recorder.on_enqueue(us(0), LinkId(1), 4000);
    recorder.on_enqueue(us(1), LinkId(1), 8000);
    recorder.on_dequeue(us(1), LinkId(1), 4000);
    recorder.on_enqueue(us(2), LinkId(1), 10_000);
    recorder.on_enqueue(us(2), LinkId(0), 50_000);
    recorder.merge(other);
    let hops: Vec<_> = recorder.hops().iter().collect();
    let [(LinkId(1), hop)] = hops[..] else {
        panic!("one queue in front of a host")
    };
    assert_eq!(hop.arrivals.buckets(), [8000, 6000]);
    assert_eq!(hop.longest_delay(), Span::from_ns(200));
}

/// 4 senders with a queue that holds 10 packets: losses are counted once, goodput without duplicates.
#[test]
fn recorders_agree_with_the_counters_of_a_lossy_run() {
    let settings = [
        "topology.kind=single-switch",
        "topology.hosts=5",
        "switch.queue=41600B",
        "workload.kind=incast",
        "workload.senders=4",
        "workload.message=400KB",
    ];
    let (all, end) = record(&settings);
    let overrides: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let laboratory = Laboratory::new();
    let scenario = laboratory.read("test", "", None, &overrides).unwrap();
    let plain = laboratory.run(&scenario).unwrap();
    assert_eq!(plain.simulated, end, "recorders change nothing");

    let losses = &all.first.second;
    assert!(losses.drops.count() > 0);
    assert_eq!(losses.drops.count(), plain.links.dropped);
    assert_eq!(losses.marks.count(), plain.links.marked);
    assert!(losses.drops.first <= losses.drops.last && losses.drops.last < Some(end));
    for arrivals in all.second.first.flows().values() {
        assert_eq!(arrivals.total(), 400_000);
    }
    let acks = all.second.second.flows();
    let count: u64 = acks.values().map(|trace| trace.count).sum();
    assert_eq!(count, plain.endpoints.sacks_received);
    assert!(acks.values().all(|trace| trace.first.len() == 2));
    assert_eq!(
        acks.keys().copied().collect::<Vec<_>>(),
        [0, 1, 2, 3].map(FlowId)
    );
    let (_, queue) = all.first.first.queues().next().unwrap();
    assert_eq!(queue.peak(Time::ZERO, end), Some(41_600));
}

/// Packets of three senders meet in one queue; a flow of two packets alone waits for nobody.
#[test]
fn latencies_are_the_largest_of_each_flow() {
    let overrides = [
        "topology.kind=single-switch",
        "topology.hosts=5",
        "topology.link-rate=400Gbps",
        "topology.link-delay=2us",
        "workload.kind=flows",
        r#"workload.flows=["1->0 4096B", "2->0 4096B", "3->0 4096B", "1->4 8192B at 1ms"]"#,
    ];
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = Laboratory::new()
        .read("test", "", None, &overrides)
        .unwrap();
    let assembly = Assembly::new(&scenario).unwrap();
    let options = RunOptions {
        threads: 1.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    let mut recorders = assembly.per_domain(PacketLatencyRecorder::default);
    assembly.run(options, Watch::by(&mut recorders));
    let latencies = merge_all(recorders).unwrap();
    let largest = |flow| latencies.largest(FlowId(flow)).as_ps();
    // 4160 B take 83.2 ns on each of two links.
    let alone = 4_000_000 + 2 * 83_200;
    let mut incast = [0, 1, 2].map(largest);
    incast.sort_unstable();
    assert_eq!(incast, [alone, alone + 83_200, alone + 2 * 83_200]);
    assert_eq!((largest(3), largest(4)), (alone, 0));
}

#[test]
fn the_last_cut_of_a_window() {
    let mut recorder = AckRecorder::new(1);
    let cuts = |recorder: &AckRecorder| recorder.flows()[&FlowId(0)].last_cut();
    let mut windows = |windows: &[u64]| {
        for &window in windows {
            let event = Event::Ack {
                flow: FlowId(0),
                now: us(1),
                rtt: Span::from_us(1),
                ecn: false,
                window: Bytes::new(window),
                in_flight: Bytes::ZERO,
                path: 0,
            };
            recorder.on_transport(us(1), HostId(0), &event);
        }
        cuts(&recorder)
    };
    assert_eq!(windows(&[1000, 2000, 2000]), None);
    assert_eq!(windows(&[1000, 1500]), Some(0.5));
    assert_eq!(windows(&[2000, 1500, 4000]), Some(0.75));
}
