//! STrack's adaptive path selection: Algorithm 3 of the paper (arXiv 2407.15266).
//!
//! Decisions on what the paper leaves open: a set bit is a marked path, as the prose says; path 0 is a path like any other; a marked
//! acknowledgement forgets the path that was remembered; the sweep starts anywhere; a probe does not use up what is remembered.

use super::Branches;
use clearway_transport::spray::{
    Adaptive, AdaptiveParameters, PathFeedback, PathId, PathSelector, PathVerdict, SelectorContext,
    SelectorDefinition, SendState,
};
use clearway_transport::testing::network;
use clearway_units::{Bytes, Purpose, RandomStream, Rate, Span, Time};
use std::collections::BTreeSet;
use std::num::NonZero;

struct Model {
    bitmap: Vec<bool>,
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
        let (mut cleared, mut skipped) = (false, 0);
        while self.bitmap[self.rr] {
            if !cleared {
                self.bitmap[self.rr] = false;
                cleared = true;
            }
            skipped += 1;
            self.rr = (self.rr + 1) % paths;
        }
        self.taken.take(match skipped {
            0 => "next path",
            1 => "one path skipped",
            n if n == paths => "all paths marked",
            _ => "several paths skipped",
        });
        self.rr
    }
}

fn compare(seed: u64, max_paths: u16, taken: &mut Branches) -> PathId {
    let network = network(Rate::from_gbps(400), Span::from_us(8));
    let parameters = AdaptiveParameters {
        max_paths: NonZero::new(max_paths).expect("not zero"),
        ..Default::default()
    };
    let mut random = RandomStream::new(seed, Purpose::Test, 1);
    let context = SelectorContext {
        network: &network,
        timeout: Span::from_us(250),
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
        min_paths: 8,
        rr: first.into(),
        next_path: None,
        taken: Branches::default(),
    };
    let mut marked = 0.0;
    for step in 0..20_000 {
        if step % 100 == 0 {
            marked = [0.0, 0.2, 0.8, 1.0, 1.0][random.below(5) as usize];
            state.window = [1.0, 4.3, 17.9, 80.2, 128.0, 400.0][random.below(6) as usize];
        }
        match random.below(20) {
            0..9 => {
                let path = random.below(max_paths.into());
                let ecn = random.chance(marked);
                real.on_feedback(&PathFeedback {
                    now: Time::ZERO,
                    path: path as PathId,
                    verdict: if ecn {
                        PathVerdict::Marked
                    } else {
                        PathVerdict::Good
                    },
                    delivered: Bytes::ZERO,
                    sent: Bytes::ZERO,
                    rtt: Span::ZERO,
                });
                model.update_ecn_bitmap(ecn, path as usize);
            }
            9 => assert_eq!(
                usize::from(real.choose_for_probe(&state)),
                model.sweep(state.window),
                "{seed} {step}"
            ),
            _ => assert_eq!(
                usize::from(real.choose(&state)),
                model.choose_path(state.window),
                "{seed} {step}"
            ),
        }
    }
    taken.add(&model.taken);
    first
}

#[test]
fn paths_are_those_of_the_paper() {
    let mut taken = Branches::default();
    let mut first = BTreeSet::new();
    for (seed, max_paths) in [256, 256, 64, 16, 8, 8, 100, 256].into_iter().enumerate() {
        first.insert(compare(seed as u64, max_paths, &mut taken));
    }
    assert!(first.len() > 4, "flows start on different paths: {first:?}");
    taken.assert_all(
        "all paths marked, fewer paths than the last, next path, one path skipped, remembered path, remembered path 0, \
         several paths skipped",
    );
}
