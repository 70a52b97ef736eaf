//! Avoidance of paths without an answer, by adaptive spraying.

use super::*;

/// Paths of these flows.
const PATHS: u16 = 4;

/// A flow with four paths that avoids dead ones, in virtual time: a round trip of 8 us, a probe after 24 us, a timeout of 250 us.
struct Flow {
    selector: Adaptive,
    now: Time,
}

impl Flow {
    fn new(dead_path: DeadPath) -> Self {
        let paths = NonZero::new(PATHS).unwrap();
        let parameters = AdaptiveParameters {
            max_paths: paths,
            min_paths: paths,
            dead_path,
        };
        Self {
            selector: Adaptive::new(&parameters, context(&facts(), 0)),
            now: Time::from_us(100),
        }
    }

    /// Lets a round trip pass.
    fn wait(&mut self) {
        self.now += Span::from_us(8);
    }

    /// A packet by the sweep.
    fn send(&mut self) -> PathId {
        let state = SendState {
            now: self.now,
            ..state(1.0)
        };
        self.selector.choose_for_probe(&state)
    }

    /// The answer to a packet that left on `path` a round trip ago.
    fn answer(&mut self, path: PathId, marked: bool) {
        self.selector.on_feedback(&PathFeedback {
            now: self.now,
            rtt: Span::from_us(8),
            ..feedback(path, marked)
        });
    }

    /// A packet for each path and a round trip, in which these answer. Returns the paths taken, sorted.
    fn round(&mut self, answering: &[PathId]) -> Vec<PathId> {
        let mut taken: Vec<_> = (0..PATHS).map(|_| self.send()).collect();
        self.wait();
        for &path in taken.iter().filter(|path| answering.contains(path)) {
            self.answer(path, false);
        }
        taken.sort_unstable();
        taken
    }

    /// Rounds in which these paths answer, until path 2 is dead.
    fn until_dead(answering: &[PathId]) -> Self {
        let mut flow = Self::new(DeadPath::Probe);
        let rounds = (1..20).find(|_| !flow.round(answering).contains(&2));
        assert_eq!(
            rounds,
            Some(6),
            "24 us after the first packet, and a round trip"
        );
        flow
    }
}

#[test]
fn a_path_that_dies_is_avoided_after_the_time_of_a_probe() {
    let mut flow = Flow::until_dead(&[0, 1, 3]);
    for _ in 0..10 {
        assert!(!flow.round(&[0, 1, 3]).contains(&2));
    }
    // The printed algorithm sends it every fourth packet.
    let mut printed = Flow::new(DeadPath::Off);
    for _ in 0..20 {
        assert_eq!(printed.round(&[0, 1, 3]), [0, 1, 2, 3]);
    }
}

#[test]
fn a_path_that_comes_back_is_tried_once_in_a_while_and_then_used() {
    let mut flow = Flow::until_dead(&[0, 1, 3]);
    let mut tries = Vec::new();
    let last = flow.now - Span::from_us(16);
    while tries.len() < 4 {
        let sent = flow.now;
        let taken = flow.round(&[0, 1, 3]);
        let times = taken.iter().filter(|path| **path == 2).count();
        assert!(times <= 1, "one packet for a try");
        if times == 1 {
            tries.push(sent.since(last).as_ps() / 1_000_000);
        }
    }
    // After a timeout, and then as long again as it has been silent: since 32 us before its last packet.
    assert_eq!(tries, [256, 544, 1120, 2272]);
    while !flow.round(&[0, 1, 2, 3]).contains(&2) {}
    for _ in 0..20 {
        assert_eq!(flow.round(&[0, 1, 2, 3]), [0, 1, 2, 3]);
    }
}

#[test]
fn without_any_answers_no_path_is_dead() {
    let mut flow = Flow::new(DeadPath::Probe);
    for _ in 0..100 {
        assert_eq!(flow.round(&[]), [0, 1, 2, 3]);
    }
}

#[test]
fn the_path_that_answered_last_is_never_dead() {
    let mut flow = Flow::until_dead(&[0]);
    assert_eq!(flow.round(&[]), [0; 4], "all others are dead");
    // Path 0 is silent as well now, and path 1 answers late.
    for _ in 0..4 {
        flow.wait();
    }
    flow.answer(1, false);
    assert_eq!(flow.round(&[]), [1; 4]);
    assert_eq!(flow.round(&[]), [1; 4]);
}

#[test]
fn a_queue_that_all_paths_share_makes_none_dead() {
    let mut flow = Flow::new(DeadPath::Probe);
    for _ in 0..12 {
        (0..PATHS).for_each(|_| _ = flow.send());
        flow.wait();
    }
    // The answers come after 96 us, and in the order of the packets.
    for _ in 0..12 {
        for path in 0..PATHS {
            flow.selector.on_feedback(&PathFeedback {
                now: flow.now,
                rtt: Span::from_us(96),
                ..feedback(path, false)
            });
        }
        let mut taken: Vec<_> = (0..PATHS).map(|_| flow.send()).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3]);
        flow.wait();
    }
}

#[test]
fn a_marked_path_goes_before_a_dead_one() {
    let mut flow = Flow::until_dead(&[0, 1, 3]);
    for path in [0, 1, 3] {
        flow.answer(path, true);
    }
    let taken: Vec<_> = (0..6).map(|_| flow.send()).collect();
    assert!(!taken.contains(&2), "{taken:?}");
}

#[test]
fn beyond_a_sweep_of_dead_paths_there_are_others() {
    let parameters = AdaptiveParameters {
        max_paths: NonZero::new(16).unwrap(),
        min_paths: NonZero::new(PATHS).unwrap(),
        dead_path: DeadPath::Probe,
    };
    let mut flow = Flow::new(DeadPath::Probe);
    flow.selector = Adaptive::new(&parameters, context(&facts(), 0));
    for _ in 0..8 {
        (0..PATHS).for_each(|_| _ = flow.send());
        flow.wait();
        flow.answer(9, true);
    }
    let taken: Vec<_> = (0..6).map(|_| flow.send()).collect();
    assert_eq!(taken, [4; 6]);
}

#[test]
fn a_sender_without_probes_avoids_no_path() {
    let network = facts();
    let paths = NonZero::new(PATHS).unwrap();
    let parameters = AdaptiveParameters {
        max_paths: paths,
        min_paths: paths,
        dead_path: DeadPath::Probe,
    };
    let context = SelectorContext {
        probe_after: None,
        ..context(&network, 0)
    };
    let mut flow = Flow::new(DeadPath::Probe);
    flow.selector = Adaptive::new(&parameters, context);
    for _ in 0..20 {
        assert_eq!(flow.round(&[0]), [0, 1, 2, 3]);
    }
}

proptest! {
    #[test]
    fn any_answers_leave_a_path_to_choose(
        steps in prop::collection::vec((0u64..50, any::<u16>(), 0u8..4, 1.0f64..20.0), 1..400),
    ) {
        let parameters = AdaptiveParameters {
            max_paths: NonZero::new(32).unwrap(),
            dead_path: DeadPath::Probe,
            ..Default::default()
        };
        let mut selector = Adaptive::new(&parameters, context(&facts(), 0));
        let mut now = Time::ZERO;
        for (us, path, kind, window) in steps {
            now += Span::from_us(us);
            let state = SendState { now, ..state(window) };
            match kind {
                0 => prop_assert!(selector.choose_for_probe(&state) < 32),
                1 => prop_assert!(selector.choose(&state) < 32),
                // Paths that there are not, and round trips from before the start.
                _ => selector.on_feedback(&PathFeedback {
                    now,
                    rtt: Span::from_us(us * 7),
                    ..feedback(path % 40, kind == 3)
                }),
            }
            prop_assert!((0..32).any(|path| !selector.avoids(path, now)));
        }
    }
}
