//! The sliding effect of unfair shares (Rajasekaran et al., HotNets '22, §2): two jobs that compute and communicate in turn, on a fluid
//! link.
//!
//! Both compute for `c` and move `V`, in units of time at the whole link. While both communicate, the first has the share `f`; its
//! communication begins `d` earlier. It is done after `d + (V - d) / f`; by then the second has moved `(V - d) (1 - f) / f`, and needs the
//! rest of `V` alone. So the lead grows to `d' = V (2 - 1/f) + d (1/f - 1)`: towards `V`, at which the phases no longer meet, and the
//! distance to `V` shrinks by `1/f - 1` in each iteration.

use clearway_units::{Bytes, Purpose, RandomStream, Span, Time};
use clearway_workload::{Graph, MessageNumber, Output, Pace, PreparedGraph, Rank, RankRun};
use std::sync::Arc;

/// A job of two ranks, of which the first computes and then sends to the second.
struct Job {
    ranks: [RankRun; 2],
    /// Message under way, and the time that the rest of it takes at the whole link, in picoseconds.
    under_way: Option<(MessageNumber, f64)>,
    /// Begin and end of each communication.
    phases: Vec<(Time, Time)>,
}

impl Job {
    fn new(compute: Span, iterations: u32) -> Self {
        let mut graph = Graph::new(2);
        let gate = graph.compute(Rank(0), compute, []);
        graph.message((Rank(0), Rank(1)), Bytes::new(1), [gate]);
        let plan = Arc::new(PreparedGraph::new(graph));
        let rank = |rank| {
            let pace = Pace {
                factor: 1.0,
                jitter: 0.0,
                random: RandomStream::new(1, Purpose::Test, 0),
            };
            RankRun::new(Arc::clone(&plan), Rank(rank), iterations, pace)
        };
        let mut job = Self {
            ranks: [rank(0), rank(1)],
            under_way: None,
            phases: Vec::new(),
        };
        for rank in &mut job.ranks {
            rank.start(Time::ZERO);
        }
        job
    }

    /// Takes the messages that the ranks post, of `volume` each.
    fn listen(&mut self, now: Time, volume: Span) {
        for rank in &mut self.ranks {
            while let Some(output) = rank.poll_output() {
                if let Output::Post { message, .. } = output {
                    assert!(self.under_way.is_none());
                    self.under_way = Some((message, volume.as_ps() as f64));
                    self.phases.push((now, Time::NEVER));
                }
            }
        }
    }

    /// Completes the message under way.
    fn finish(&mut self, now: Time) {
        let (message, _) = self.under_way.take().unwrap();
        self.phases.last_mut().unwrap().1 = now;
        self.ranks[1].on_received(now, message);
        self.ranks[0].on_sent(now, message);
    }

    fn deadline(&self) -> Time {
        self.ranks[0].deadline()
    }
}

/// The phases of two jobs, of which the first has the share `f` where they meet.
fn run(compute: Span, volume: Span, f: f64, iterations: u32) -> [Vec<(Time, Time)>; 2] {
    let mut jobs = [Job::new(compute, iterations), Job::new(compute, iterations)];
    let mut now = Time::ZERO;
    loop {
        jobs.iter_mut().for_each(|job| job.listen(now, volume));
        let both = jobs.iter().all(|job| job.under_way.is_some());
        let rates = if both { [f, 1.0 - f] } else { [1.0, 1.0] };
        let end = |(job, rate): (&Job, f64)| match job.under_way {
            Some((_, left)) => now + Span::from_ps((left / rate).ceil() as u64),
            None => job.deadline(),
        };
        let next = jobs.iter().zip(rates).map(end).min().unwrap();
        if next.is_never() {
            return jobs.map(|job| job.phases);
        }
        let step = next.since(now).as_ps() as f64;
        now = next;
        for (job, rate) in jobs.iter_mut().zip(rates) {
            let is_due = job.deadline() <= now;
            match &mut job.under_way {
                Some((_, left)) => *left -= step * rate,
                None if is_due => job.ranks[0].on_deadline(now),
                None => {}
            }
            if job.under_way.is_some_and(|(_, left)| left < 1.0) {
                job.finish(now);
            }
        }
    }
}

const VOLUME: Span = Span::from_ms(100);

/// Lead of the first job's communication in each iteration, as a share of the volume.
fn leads(compute: Span, f: f64, iterations: u32) -> Vec<f64> {
    let [first, second] = run(compute, VOLUME, f, iterations);
    assert_eq!(
        (first.len(), second.len()),
        (iterations as usize, iterations as usize)
    );
    let lead = |(a, b): (&(Time, Time), &(Time, Time))| b.0.since(a.0).as_us() / VOLUME.as_us();
    first.iter().zip(&second).map(lead).collect()
}

#[test]
fn an_unfair_share_pulls_the_phases_of_two_equal_jobs_apart() {
    for f in [0.5, 0.55, 2.0 / 3.0, 0.75, 0.9] {
        let ratio = 1.0 / f - 1.0;
        let mut expected = 0.0;
        for lead in leads(VOLUME * 2, f, 14) {
            assert!((lead - expected).abs() < 1e-6, "{f}: {lead} {expected}");
            expected = (2.0 - 1.0 / f) + expected * ratio;
        }
        let left = 1.0 - expected;
        assert!(
            left < 0.06 || f < 0.6,
            "{f}: {left} of the volume still meets"
        );
    }
}

#[test]
fn two_thirds_are_apart_by_the_fourth_iteration() {
    let missing: Vec<f64> = leads(VOLUME, 2.0 / 3.0, 5)
        .into_iter()
        .map(|lead| 1.0 - lead)
        .collect();
    for (missing, expected) in missing.iter().zip([1.0, 0.5, 0.25, 0.125, 0.0625]) {
        assert!((missing - expected).abs() < 1e-6, "{missing} {expected}");
    }
}

#[test]
fn an_iteration_is_then_as_long_as_alone_and_before_longer_by_the_volume() {
    let length = |f| {
        let [first, second] = run(VOLUME, VOLUME, f, 20);
        [first, second].map(|phases| {
            let last = phases[19].1.since(phases[18].1);
            last.as_us() / VOLUME.as_us()
        })
    };
    assert_eq!(length(0.5), [3.0, 3.0]);
    for length in length(0.7) {
        assert!((length - 2.0).abs() < 1e-4, "{length}");
    }
}
