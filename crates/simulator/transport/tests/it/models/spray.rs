//! STrack's adaptive path selection: Algorithm 3 of the paper (arXiv 2407.15266).
//!
//! Decisions on open points of the paper: a set bit is a marked path, as the prose says; path 0 is a path like any other; a marked
//! acknowledgement forgets the path that was remembered; the sweep starts anywhere; a probe does not use up the remembered path.
//!
//! With `dead-path = "probe"`, which the paper does not have, the sweep steps over dead paths as if they were not there.

use super::Branches;
use clearway_transport::paths::{
    Adaptive, AdaptiveParameters, DeadPath, PathFeedback, PathId, PathSelector, PathVerdict,
    SelectorContext, SelectorDefinition, SendState,
};
use clearway_transport::testing::network;
use clearway_units::{Bytes, Purpose, RandomStream, Rate, Span, Time};
use std::collections::BTreeSet;
use std::num::NonZero;

const TIMEOUT: Span = Span::from_us(250);
const PROBE_AFTER: Span = Span::from_us(24);

/// Departures on a path.
#[derive(Debug, Clone, Default)]
struct Departures {
    unanswered: Vec<Time>,
    last: Time,
}

struct Model {
    bitmap: Vec<bool>,
    avoids: bool,
    now: Time,
    departures: Vec<Departures>,
    answered: Time,
    min_paths: usize,
    rr: usize,
    next_path: Option<usize>,
    taken: Branches,
}

impl Model {
    fn update_ecn_bitmap(&mut self, ecn: bool, path: usize) {
        self.bitmap[path] = ecn;
        self.next_path = if ecn { None } else { Some(path) };
    }

    fn answer(&mut self, path: usize, departure: Time) {
        self.answered = self.answered.max(departure);
        self.departures[path].unanswered.clear();
    }

    fn send(&mut self, path: usize) -> usize {
        self.departures[path].unanswered.push(self.now);
        self.departures[path].last = self.now;
        path
    }

    fn is_avoided(&self, path: usize) -> bool {
        let Departures { unanswered, last } = &self.departures[path];
        let Some(first) = unanswered.first().filter(|_| self.avoids) else {
            return false;
        };
        let wait = TIMEOUT.max(last.since(*first));
        *first + PROBE_AFTER < self.answered && self.now < *last + wait
    }

    fn choose_path(&mut self, cwnd: f64) -> usize {
        if let Some(path) = self.next_path.take() {
            self.taken.take("remembered path");
            if path == 0 {
                self.taken.take("remembered path 0");
            }
            self.rr = path;
            return path;
        }
        self.sweep(cwnd)
    }

    fn sweep(&mut self, cwnd: f64) -> usize {
        let paths = ((2.0 * cwnd) as usize).clamp(self.min_paths, self.bitmap.len());
        if self.rr >= paths {
            self.taken.take("fewer paths than the last");
        }
        self.rr = (self.rr + 1) % paths;
        let all = self.bitmap.len();
        let dead = (0..paths).filter(|path| self.is_avoided(*path)).count();
        let beyond = dead == paths && dead < all;
        self.taken.take(match (beyond, dead) {
            (true, _) => "all paths of the sweep dead",
            (_, 0) => "no path dead",
            _ => "some paths dead",
        });
        let (first, end) = if beyond { (paths, all) } else { (0, paths) };
        self.rr = self.rr.max(first);
        let (mut cleared, mut skipped) = (false, 0);
        while self.is_avoided(self.rr) || self.bitmap[self.rr] {
            if !self.is_avoided(self.rr) {
                if !cleared {
                    self.bitmap[self.rr] = false;
                    cleared = true;
                }
                skipped += 1;
            }
            self.rr += 1;
            if self.rr == end {
                self.rr = first;
            }
        }
        self.taken.take(match skipped {
            0 => "next path",
            1 => "one path skipped",
            n if n == end - first => "all paths marked",
            _ => "several paths skipped",
        });
        self.rr
    }
}

fn compare(seed: u64, max_paths: u16, dead_path: DeadPath, taken: &mut Branches) -> PathId {
    let network = network(Rate::from_gbps(400), Span::from_us(8));
    let parameters = AdaptiveParameters {
        max_paths: NonZero::new(max_paths).expect("not zero"),
        dead_path,
        ..Default::default()
    };
    let mut random = RandomStream::new(seed, Purpose::Test, 1);
    let context = SelectorContext {
        network: &network,
        timeout: TIMEOUT,
        probe_after: Some(PROBE_AFTER),
        random: RandomStream::new(seed, Purpose::Paths, seed),
    };
    let mut real = Adaptive::new(&parameters, context);
    let mut state = SendState {
        now: Time::ZERO,
        window: 1000.0,
        in_flight: Bytes::ZERO,
    };
    // The first path is anywhere; from there on all is decided.
    let first = real.choose(&state);
    let mut model = Model {
        bitmap: vec![false; max_paths.into()],
        avoids: dead_path == DeadPath::Probe,
        now: Time::ZERO,
        departures: vec![Departures::default(); max_paths.into()],
        answered: Time::ZERO,
        min_paths: 8,
        rr: first.into(),
        next_path: None,
        taken: Branches::default(),
    };
    model.send(first.into());
    let (mut marked, mut silent) = (0.0, 0);
    for step in 0..20_000 {
        if step % 100 == 0 {
            marked = [0.0, 0.2, 0.8, 1.0, 1.0][random.below(5) as usize];
            state.window = [1.0, 4.3, 17.9, 80.2, 128.0, 400.0][random.below(6) as usize];
            // Paths from here on answer.
            silent = u32::from(random.chance(0.3)) * random.below(max_paths.into());
        }
        state.now += Span::from_ns(random.below(500).into());
        model.now = state.now;
        match random.below(20) {
            0..9 => {
                let path = silent + random.below(u32::from(max_paths) - silent);
                let ecn = random.chance(marked);
                let rtt =
                    Span::from_ns(random.below(20_000).into()).min(state.now.since(Time::ZERO));
                real.on_feedback(&PathFeedback {
                    now: state.now,
                    path: path as PathId,
                    verdict: PathVerdict::from_flags(ecn, false),
                    delivered: Bytes::ZERO,
                    sent: Bytes::ZERO,
                    rtt,
                });
                model.update_ecn_bitmap(ecn, path as usize);
                model.answer(
                    path as usize,
                    Time::ZERO + state.now.since(Time::ZERO).saturating_sub(rtt),
                );
            }
            9 => assert_eq!(
                usize::from(real.choose_for_probe(&state)),
                {
                    let path = model.sweep(state.window);
                    model.send(path)
                },
                "{seed} {step}"
            ),
            _ => assert_eq!(
                usize::from(real.choose(&state)),
                {
                    let path = model.choose_path(state.window);
                    model.send(path)
                },
                "{seed} {step}"
            ),
        }
    }
    taken.add(&model.taken);
    first
}

fn compare_all(dead_path: DeadPath, branches: &str) {
    let mut taken = Branches::default();
    let mut first = BTreeSet::new();
    for (seed, max_paths) in [256, 256, 64, 16, 8, 8, 100, 256].into_iter().enumerate() {
        first.insert(compare(seed as u64, max_paths, dead_path, &mut taken));
    }
    assert!(first.len() > 4, "flows start on different paths: {first:?}");
    taken.assert_all(branches);
}

#[test]
fn paths_are_those_of_the_paper() {
    compare_all(
        DeadPath::Off,
        "all paths marked, fewer paths than the last, next path, no path dead, one path skipped, remembered path, \
         remembered path 0, several paths skipped",
    );
}

#[test]
fn dead_paths_are_stepped_over() {
    compare_all(
        DeadPath::Probe,
        "all paths marked, all paths of the sweep dead, fewer paths than the last, next path, no path dead, one path skipped, \
         remembered path, remembered path 0, several paths skipped, some paths dead",
    );
}
