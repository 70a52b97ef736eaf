use super::curves::Curves;
use super::link_choice::Longest;
use super::*;
use crate::{Assembly, Finished, Laboratory, RunDecision, RunOptions};
use clearway_fabric::topology::LinkId;
use clearway_fabric::{Observer, Watch};
use clearway_units::{Purpose, RandomStream, Span, Time};
use std::cmp::Reverse;

fn row(time: Time, interval: Span, metric: Metric, value: f64) -> SeriesRow {
    SeriesRow {
        time,
        interval,
        metric,
        subject: Subject::Run,
        value,
    }
}

#[test]
fn merged_neighbours_keep_sums_peaks_and_weighted_means() {
    let mut curves = Curves::new(4);
    let mut last = Time::ZERO;
    // Intervals of 1, 3, 2 and 2 us.
    for (end, value) in [(1, 8.0), (4, 4.0), (6, 1.0), (8, 2.0)] {
        let time = Time::from_us(end);
        let metrics = [
            Metric::Marks,
            Metric::QueuePeak,
            Metric::Goodput,
            Metric::Window,
        ];
        let rows = metrics.map(|metric| row(time, time - last, metric, value));
        last = time;
        assert_eq!(curves.add(time, &rows), end == 8);
    }
    // A curve that begins late has no earlier values. Of two merged neighbours it takes the only value.
    let late = row(Time::from_us(10), Span::from_us(2), Metric::Fairness, 0.5);
    curves.add(Time::from_us(10), &[late]);
    let (times, curves) = curves.into_parts();
    assert_eq!(times, [4, 8, 10].map(Time::from_us));
    let values = |metric| {
        let curve: &Curve = curves.iter().find(|curve| curve.metric == metric).unwrap();
        curve.values.clone()
    };
    assert_eq!(values(Metric::Marks)[..2], [12.0, 3.0]);
    assert_eq!(values(Metric::QueuePeak)[..2], [8.0, 2.0]);
    assert_eq!(values(Metric::Goodput)[..2], [5.0, 1.5]);
    assert_eq!(values(Metric::Window)[..2], [4.0, 2.0]);
    assert!(values(Metric::Window)[2].is_nan());
    let fairness = values(Metric::Fairness);
    assert!(fairness[0].is_nan() && fairness[1].is_nan() && fairness[2] == 0.5);
}

#[test]
fn the_longest_queues_are_those_that_sorting_finds() {
    let mut random = RandomStream::new(5, Purpose::Test, 5);
    for _ in 0..200 {
        let count = random.below(6) as usize;
        let queues: Vec<(u64, LinkId)> = (0..random.below(30))
            .map(|link| (random.below(5).into(), LinkId(link)))
            .collect();
        let mut longest = Longest::new(count);
        for (peak, link) in &queues {
            longest.offer(*peak, *link);
        }
        let mut sorted = queues;
        sorted.retain(|(peak, _)| *peak > 0);
        sorted.sort_by_key(|(peak, link)| (Reverse(*peak), *link));
        sorted.truncate(count);
        assert_eq!(longest.into_sorted().collect::<Vec<_>>(), sorted);
    }
}

fn assembly(name: &str, overrides: &[&str]) -> Assembly {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = Laboratory::new().load(name, &overrides).unwrap();
    Assembly::new(&scenario).unwrap()
}

/// The longest of all queues.
#[derive(Default)]
struct Highest(u64);

impl Observer for Highest {
    fn on_queue(&mut self, _: Time, _: LinkId, bytes: u64) {
        self.0 = self.0.max(bytes);
    }
}

/// Runs with telemetry. Gives the outcome, all rows and the curves.
fn watch(
    assembly: &Assembly,
    threads: usize,
) -> (Finished, Vec<SeriesRow>, SampledSeries, Vec<Highest>) {
    let mut rows = Vec::new();
    let sink: Sink<'_> = Box::new(|sample| rows.extend_from_slice(sample));
    let mut telemetry = RunSampler::new(assembly, Some(sink)).unwrap();
    let options = RunOptions {
        threads: threads.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    let mut highest = assembly.per_domain(Highest::default);
    let watch = Watch::by(&mut highest);
    let finished = assembly.run_sampled(options, watch, Some(&mut telemetry));
    let watched = telemetry.into_watched();
    (finished, rows, watched, highest)
}

fn sum(rows: &[SeriesRow], metric: Metric, of: impl Fn(&SeriesRow) -> f64) -> f64 {
    let own = rows.iter().filter(|row| row.metric == metric);
    own.map(of).sum()
}

const INCAST: [&str; 3] = [
    "topology.hosts=32",
    "workload.senders=24",
    "workload.message=300KB",
];

#[test]
fn what_is_sampled_adds_up_to_what_the_run_counts() {
    let bit_errors = "topology.bit-error-rate=1e-8";
    for extra in [bit_errors, "switch.queue=100KB", "switch.ecn.kmin=1KB"] {
        let mut overrides = INCAST.to_vec();
        overrides.push(extra);
        let assembly = assembly("incast-32", &overrides);
        let (finished, rows, watched, _) = watch(&assembly, 1);
        let count = |metric| sum(&rows, metric, |row| row.value) as u64;
        assert_eq!(count(Metric::Marks), finished.links.marked, "{extra}");
        let lost = finished.links.dropped + finished.links.corrupted;
        assert_eq!(count(Metric::Drops), lost, "{extra}");
        let seconds = |row: &SeriesRow| row.interval.as_ps() as f64 * 1e-12;
        let payload = sum(&rows, Metric::Goodput, |row| row.value * seconds(row) / 8.0);
        let bytes: u64 = assembly
            .workload
            .flows
            .iter()
            .map(|flow| flow.bytes.as_u64())
            .sum();
        assert!(
            (payload / bytes as f64 - 1.0).abs() < 1e-9,
            "{payload} of {bytes}"
        );
        let flows = finished.flows.len() as f64;
        let completed = |row: &&SeriesRow| row.metric == Metric::CompletedFlows;
        assert_eq!(rows.iter().rfind(completed).unwrap().value, flows);
        assert!(*watched.times.last().unwrap() >= finished.simulated);
        let totals = &finished.meters;
        // A packet that bit errors destroy has left and counts as a hop; a packet that a queue drops has not.
        let packets: u64 = totals.iter().map(|totals| totals.packets).sum();
        assert_eq!(packets, finished.links.hops, "{extra}");
        let marks: u64 = totals.iter().map(|totals| totals.marks).sum();
        assert_eq!(marks, finished.links.marked);
    }
}

#[test]
fn bytes_of_messages_without_packets_are_no_goodput() {
    let assembly = assembly(
        "incast-32",
        &[
            "topology.hosts=16",
            "workload.kind=ring-all-reduce",
            "workload.ranks=8",
            "workload.size=2MB",
            "workload.iterations=12",
            "fast-forward.error=1%",
        ],
    );
    let (finished, rows, ..) = watch(&assembly, 1);
    let report = finished.fast_forward.unwrap();
    assert!(report.remembered_bytes > report.simulated_bytes);
    let seconds = |row: &SeriesRow| row.interval.as_ps() as f64 * 1e-12;
    let payload = sum(&rows, Metric::Goodput, |row| row.value * seconds(row) / 8.0);
    let simulated = report.simulated_bytes.as_u64() as f64;
    assert!(
        (payload / simulated - 1.0).abs() < 1e-9,
        "{payload} of {simulated}"
    );
}

#[test]
fn the_longest_queue_is_the_one_that_an_exact_recorder_sees() {
    let assembly = assembly("incast-32", &INCAST);
    let (finished, rows, watched, highest) = watch(&assembly, 1);
    let totals = &finished.meters;
    let longest = totals.iter().map(|totals| totals.peak_queue).max().unwrap();
    let sampled = rows
        .iter()
        .filter(|row| row.metric == Metric::QueuePeak)
        .map(|row| row.value as u64);
    assert_eq!(sampled.max(), Some(longest));
    let exact = highest.iter().map(|highest| highest.0).max();
    assert_eq!(Some(longest), exact);
    let peaks = |curve: &&Curve| curve.metric == Metric::QueuePeak;
    let of_curves = watched.curves.iter().filter(peaks);
    let highest = of_curves
        .flat_map(|curve| &curve.values)
        .copied()
        .fold(0.0, f64::max);
    assert_eq!(highest as u64, longest);
}

#[test]
fn samples_change_nothing_and_do_not_depend_on_threads() {
    for lossless in [false, true] {
        let mut overrides = INCAST.to_vec();
        overrides.push("topology.hosts-per-leaf=8");
        if lossless {
            overrides.extend([
                "transport.kind=rocev2",
                "switch.kind=shared-buffer",
                "switch.buffer=3MB",
            ]);
        }
        let assembly = assembly("incast-32", &overrides);
        let (one, rows, watched, _) = watch(&assembly, 1);
        let options = RunOptions {
            threads: 1.into(),
            on_progress: &mut |_| RunDecision::Continue,
            on_flow: &mut |_, _, _| (),
        };
        let unwatched = assembly.run(options, Watch::Off);
        assert_eq!(one.digest, unwatched.digest);
        for threads in [2, 4] {
            let (other, same_rows, same_watched, _) = watch(&assembly, threads);
            assert_eq!(other.digest, one.digest);
            assert_eq!(same_rows, rows);
            assert_eq!(format!("{same_watched:?}"), format!("{watched:?}"));
        }
        let paused = sum(&rows, Metric::PausedLinks, |row| row.value);
        assert_eq!(paused > 0.0, lossless, "only flow control pauses links");
    }
}

#[test]
fn long_runs_keep_a_bounded_number_of_points() {
    let mut overrides = INCAST.to_vec();
    overrides.extend([
        "observe.series.every=1us",
        "observe.series.points=16",
        "observe.series.links=top:2",
    ]);
    let assembly = assembly("incast-32", &overrides);
    let (_, rows, watched, _) = watch(&assembly, 1);
    assert!(
        (8..=16).contains(&watched.times.len()),
        "{}",
        watched.times.len()
    );
    assert!(
        watched
            .curves
            .iter()
            .all(|curve| curve.values.len() == watched.times.len())
    );
    let links = |metric| {
        watched
            .curves
            .iter()
            .filter(move |curve| curve.metric == metric)
    };
    assert_eq!(links(Metric::QueueDepth).count(), 2);
    assert!(
        rows.len() > watched.curves.len() * 16,
        "the file keeps its resolution"
    );
}

#[test]
fn fairness_is_that_of_the_bytes_that_flows_got() {
    // Each flow is alone on its path and gets the full rate, so shares are equal whichever acknowledgements a sample sees.
    let assembly = assembly(
        "permutation-1k",
        &["topology.hosts=32", "workload.message=4MB"],
    );
    let (_, rows, ..) = watch(&assembly, 1);
    let indices: Vec<f64> = rows
        .iter()
        .filter(|row| row.metric == Metric::Fairness)
        .map(|row| row.value)
        .collect();
    assert!(!indices.is_empty());
    assert!(
        indices
            .iter()
            .all(|index| (0.97..=1.0 + 1e-12).contains(index)),
        "{indices:?}"
    );
}

#[test]
fn named_links_and_flows_have_curves() {
    let mut overrides = INCAST.to_vec();
    overrides.extend([
        r#"observe.series.links=["host3-leaf0"]"#,
        r#"observe.series.flows=["2", "0"]"#,
    ]);
    let assembly = assembly("incast-32", &overrides);
    let (_, _, watched, _) = watch(&assembly, 1);
    let mut subjects: Vec<Subject> = watched.curves.iter().map(|curve| curve.subject).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let link = subjects.iter().filter(|of| matches!(of, Subject::Link(_)));
    let flows = subjects.iter().filter_map(|of| match of {
        Subject::Flow(flow) => Some(*flow),
        _ => None,
    });
    assert_eq!((link.count(), flows.collect::<Vec<_>>()), (1, vec![0, 2]));
    for wrong in [
        r#"observe.series.links=["host3-leaf9"]"#,
        r#"observe.series.flows=["24"]"#,
    ] {
        let mut overrides: Vec<String> = INCAST.map(String::from).to_vec();
        overrides.push(wrong.into());
        let scenario = Laboratory::new().load("incast-32", &overrides).unwrap();
        let error = Assembly::new(&scenario).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--set {wrong}")), "{error}");
    }
}

#[test]
fn fairness_is_told_of_the_last_set_of_flows() {
    let staggered = |starts: &str| {
        let flows = format!("workload.flows=[{starts}]");
        let settings = [
            "workload.kind=flows",
            flows.as_str(),
            "observe.series.every=1us",
        ];
        let assembly = assembly("quickstart", &settings);
        let (finished, rows, watched, _) = watch(&assembly, 1);
        (finished, rows, watched.fairness)
    };
    let (finished, rows, fairness) =
        staggered(r#""1->0 20MB", "2->0 10MB at 50us", "3->0 20MB at 100us""#);
    let fairness = fairness.unwrap();
    let done = finished
        .flows
        .iter()
        .filter_map(|flow| flow.finished)
        .min()
        .unwrap();
    let from = Time::from_us(100);
    assert_eq!((fairness.from_us, fairness.flows), (100.0, 3));
    assert_eq!(fairness.until_us, Some(done.as_us()));
    let of = |metric| {
        let rows = rows.iter().filter(move |row| row.metric == metric);
        rows.filter(|row| (from..=done).contains(&row.time))
    };
    let rates: Vec<f64> = of(Metric::RateFairness).map(|row| row.value).collect();
    let course = fairness.allowed_rate.unwrap();
    assert_eq!(course.min, rates.iter().copied().fold(1.0, f64::min));
    assert_eq!(course.last, rates[rates.len() - 1]);
    if let Some(settled) = course.settled_us {
        let is_after = |row: &&SeriesRow| row.time.since(from).as_us() >= settled;
        let after = of(Metric::RateFairness).filter(is_after);
        assert!(after.map(|row| row.value).all(|index| index >= FAIR));
    }
    // All flows have a rate from their start.
    assert!((1.0 / 3.0..=1.0).contains(&course.min), "{course:?}");
    let goodput = fairness.goodput.unwrap();
    assert!((1.0 / 3.0..=1.0).contains(&goodput.min), "{goodput:?}");
    assert!(
        goodput
            .settled_us
            .is_none_or(|us| 0.0 < us && us <= done.since(from).as_us())
    );
    // Flows that are never active together are not compared.
    let (_, _, alone) = staggered(r#""1->0 1MB", "2->0 1MB at 500us""#);
    assert_eq!(alone, None);
}

/// No link carries more in an interval than its rate allows, for every kind of switch and length of interval. The intervals of a link add
/// up to its total.
#[test]
fn no_link_is_faster_than_its_rate() {
    let lossless = "transport.kind=rocev2";
    let shared = "switch.kind=shared-buffer";
    for overrides in [
        &["transport.kind=hpcc"][..],
        &["transport.kind=hpcc", shared],
        &[lossless, shared],
        &["switch.strict-priority=true"],
        &["stop.at-most=37us"],
    ] {
        for every in ["100ns", "330ns", "2us"] {
            let every = format!("observe.series.every={every}");
            let links = "observe.series.links=top:1024";
            let small = "workload.message=300KB";
            let own = [overrides, &[every.as_str(), links, small]].concat();
            let assembly = assembly("incast-32", &own);
            let (finished, rows, ..) = watch(&assembly, 1);
            let mut carried = vec![0.0; finished.meters.len()];
            let mut busy = 0;
            for row in rows.iter().filter(|row| row.metric == Metric::LinkRate) {
                let Subject::Link(link) = row.subject else {
                    panic!("{row:?}");
                };
                let rate = assembly.topology.cables[LinkId(link).cable()].rate;
                let share = row.value / rate.as_bps() as f64;
                assert!(
                    (0.0..1.0 + 1e-9).contains(&share),
                    "{own:?} {row:?}: {share}"
                );
                busy += usize::from(share > 0.999);
                carried[link as usize] += row.value * row.interval.as_ps() as f64 / 8e12;
            }
            assert!(busy > 0, "{own:?}: no link is busy");
            // The bottleneck is followed from the first interval with a queue. The end of a run may fall within a transmission.
            let links = 0..finished.meters.len();
            let fullest = links.max_by_key(|&link| finished.meters[link].bytes);
            let fullest = fullest.unwrap();
            let all = finished.meters[fullest].bytes as f64;
            assert!(carried[fullest] < all + 4200.0, "{own:?}");
            assert!(carried[fullest] > 0.9 * all, "{own:?}");
        }
    }
}
