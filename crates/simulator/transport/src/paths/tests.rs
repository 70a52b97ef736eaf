mod dead_paths;
mod paired;

use super::*;
use crate::Registry;
use crate::testing::network;
use clearway_units::{Purpose, Rate, Span};
use proptest::prelude::*;
use std::num::NonZero;

pub(super) fn facts() -> NetworkFacts {
    network(Rate::from_gbps(400), Span::from_us(8))
}

pub(super) fn context(network: &NetworkFacts, entity: u64) -> SelectorContext<'_> {
    SelectorContext {
        network,
        timeout: Span::from_us(250),
        probe_after: Some(Span::from_us(24)),
        random: RandomStream::new(1, Purpose::Paths, entity),
    }
}

/// State of a flow whose window has `window` packets.
pub(super) fn state(window: f64) -> SendState {
    SendState {
        now: Time::ZERO,
        window,
        in_flight: Bytes::ZERO,
    }
}

/// An acknowledgement at time zero.
pub(super) fn answer(path: PathId, verdict: PathVerdict) -> PathFeedback {
    PathFeedback {
        now: Time::ZERO,
        path,
        verdict,
        delivered: Bytes::ZERO,
        sent: Bytes::ZERO,
        rtt: Span::ZERO,
    }
}

fn feedback(path: PathId, marked: bool) -> PathFeedback {
    answer(path, PathVerdict::from_flags(marked, false))
}

fn adaptive(max_paths: u16, min_paths: u16) -> Adaptive {
    let parameters = AdaptiveParameters {
        max_paths: NonZero::new(max_paths).unwrap(),
        min_paths: NonZero::new(min_paths).unwrap(),
        ..Default::default()
    };
    Adaptive::new(&parameters, context(&facts(), 0))
}

/// An adaptive selector that has used `path` last.
fn adaptive_at(path: PathId) -> Adaptive {
    let mut selector = adaptive(256, 8);
    selector.on_feedback(&feedback(path, false));
    assert_eq!(selector.choose(&state(1.0)), path);
    selector
}

#[test]
fn an_unmarked_path_is_used_once_even_path_zero() {
    let mut selector = adaptive_at(200);
    selector.on_feedback(&feedback(0, false));
    assert_eq!(selector.choose(&state(50.0)), 0);
    assert_eq!(selector.choose(&state(50.0)), 1);
    assert_eq!(selector.choose(&state(50.0)), 2);
}

#[test]
fn a_mark_empties_the_remembered_path() {
    let mut selector = adaptive_at(3);
    selector.on_feedback(&feedback(20, false));
    selector.on_feedback(&feedback(21, true));
    assert_eq!(selector.choose(&state(50.0)), 4);
}

#[test]
fn a_probe_sweeps_but_leaves_the_remembered_path() {
    let mut selector = adaptive_at(3);
    selector.on_feedback(&feedback(20, false));
    assert_eq!(selector.choose_for_probe(&state(50.0)), 4);
    assert_eq!(selector.choose(&state(50.0)), 20);
}

#[test]
fn each_packet_forgives_one_skipped_path() {
    let mut selector = adaptive_at(0);
    (1..=3).for_each(|path| selector.on_feedback(&feedback(path, true)));
    // 1 is forgiven, 2 and 3 are skipped.
    assert_eq!(selector.choose(&state(4.0)), 4);
    assert_eq!(
        (0..4)
            .map(|_| selector.choose(&state(4.0)))
            .collect::<Vec<_>>(),
        [5, 6, 7, 0]
    );
    // 1 was forgiven; 2 is skipped and forgiven, 3 skipped.
    assert_eq!(
        (0..2)
            .map(|_| selector.choose(&state(4.0)))
            .collect::<Vec<_>>(),
        [1, 4]
    );
    assert_eq!(
        (0..5)
            .map(|_| selector.choose(&state(4.0)))
            .collect::<Vec<_>>(),
        [5, 6, 7, 0, 1]
    );
    assert_eq!(selector.choose(&state(4.0)), 2);
    assert_eq!(selector.choose(&state(4.0)), 4, "3 is still bad once more");
}

#[test]
fn all_paths_bad_ends_at_the_first_skipped() {
    let mut selector = adaptive_at(7);
    (0..256).for_each(|path| selector.on_feedback(&feedback(path, true)));
    assert_eq!(selector.choose(&state(4.0)), 0, "of eight paths");
    // Path 0 is the only good one; on the way to it, path 1 is forgiven.
    assert_eq!(selector.choose(&state(1000.0)), 0, "of 256 paths");
    assert_eq!(selector.choose(&state(1000.0)), 1);
}

#[test]
fn the_sweep_follows_the_window() {
    // floor(2 × window) between the least and the greatest number of paths.
    for (window, paths) in [(1.3, 8), (4.4, 8), (4.5, 9), (97.7, 195), (1e9, 256)] {
        let mut selector = adaptive_at(255);
        let mut highest = 0;
        for _ in 0..600 {
            highest = highest.max(selector.choose(&state(window)));
        }
        assert_eq!(u32::from(highest) + 1, paths, "window {window}");
    }
}

#[test]
fn the_last_path_may_lie_beyond_the_sweep() {
    let mut selector = adaptive_at(100);
    assert_eq!(selector.choose(&state(4.0)), 101 % 8);
}

/// Algorithm 3 as corrected, word for word and one bit at a time.
struct Printed {
    bad: Vec<bool>,
    last: usize,
    next: Option<usize>,
    least: usize,
}

impl Printed {
    fn choose(&mut self, window: f64) -> usize {
        if let Some(path) = self.next.take() {
            self.last = path;
            return path;
        }
        let paths = ((2.0 * window) as usize)
            .min(self.bad.len())
            .max(self.least);
        self.last = (self.last + 1) % paths;
        let mut cleared = false;
        while self.bad[self.last] {
            if !cleared {
                self.bad[self.last] = false;
                cleared = true;
            }
            self.last = (self.last + 1) % paths;
        }
        self.last
    }
}

proptest! {
    #[test]
    fn agrees_with_the_algorithm_bit_by_bit(
        max_paths in 8u16..300,
        steps in prop::collection::vec((any::<u16>(), 0u8..6, 1.0f64..200.0), 1..400),
    ) {
        let mut selector = adaptive(max_paths, 8);
        let start = selector.clone().choose(&state(1e9));
        let paths = usize::from(max_paths);
        let last = (usize::from(start) + paths - 1) % paths;
        let mut printed = Printed { bad: vec![false; paths], last, next: None, least: 8 };
        for (path, kind, window) in steps {
            let path = path % max_paths;
            match kind {
                0 | 1 => prop_assert_eq!(usize::from(selector.choose(&state(window))), printed.choose(window)),
                2 => {
                    selector.on_feedback(&feedback(path, false));
                    printed.bad[usize::from(path)] = false;
                    printed.next = Some(usize::from(path));
                }
                _ => {
                    selector.on_feedback(&feedback(path, true));
                    printed.bad[usize::from(path)] = true;
                    printed.next = None;
                }
            }
        }
    }
}

#[test]
fn single_stays_on_its_path_and_flows_differ() {
    let path = |flow| {
        let mut selector = Single::new(&SingleParameters {}, context(&facts(), flow));
        let path = selector.choose(&state(1.0));
        selector.on_feedback(&feedback(path, true));
        assert_eq!(selector.choose(&state(9.0)), path);
        path
    };
    assert_ne!(path(1), path(2));
}

/// A selector of another crate.
struct Last;

clearway_units::parameters! {
    /// Settings of the selector of the tests.
    pub struct LastParameters {
        /// Unused.
        pub paths: u16 = 4, "paths", "nowhere";
    }
}

impl PathSelector for Last {
    fn choose(&mut self, _: &SendState) -> PathId {
        3
    }
}

impl SelectorDefinition for Last {
    const NAME: &'static str = "last";
    const SUMMARY: &'static str = "always path 3";
    type Parameters = LastParameters;
    fn new(_: &LastParameters, _: SelectorContext<'_>) -> Self {
        Self
    }
}

#[test]
fn every_registered_selector_survives_random_acknowledgements() {
    let registry = Registry::builtin().with_selector::<Last>();
    let network = facts();
    for (name, summary) in registry.selectors() {
        let settings = registry.selector(name).unwrap();
        assert_eq!((settings.name(), settings.summary()), (name, summary));
        let (mut one, mut two) = (
            settings.build(context(&network, 1)),
            settings.build(context(&network, 1)),
        );
        let mut random = RandomStream::new(2, Purpose::Test, 0);
        for _ in 0..20_000 {
            let path = random.next_u32() as PathId;
            let path = if random.chance(0.9) { path % 256 } else { path };
            let (ecn, window) = (random.chance(0.7), 300.0 * random.unit());
            one.on_feedback(&feedback(path, ecn));
            two.on_feedback(&feedback(path, ecn));
            assert_eq!(
                one.choose(&state(window)),
                two.choose(&state(window)),
                "{name} is not deterministic"
            );
            assert_eq!(
                one.choose_for_probe(&state(window)),
                two.choose_for_probe(&state(window))
            );
        }
    }
}

#[test]
fn extreme_settings_are_survived() {
    for (max_paths, min_paths) in [(1, 1), (1, 8), (u16::MAX, u16::MAX), (64, 1), (65, 1)] {
        let mut selector = adaptive(max_paths, min_paths);
        for step in 0..1000u16 {
            let path = selector.choose(&state(f64::from(step)));
            assert!(path < max_paths);
            selector.on_feedback(&feedback(path, step % 3 != 0));
        }
    }
}

#[test]
fn settings_of_other_crates_behave_like_our_own() {
    let mut settings = SelectorSettings::custom::<Last>();
    let fresh = settings.clone();
    assert_eq!(settings, fresh);
    settings.set("paths", &Value::Integer(9)).unwrap();
    assert_ne!(settings, fresh);
    assert_eq!(settings.entries(), [("paths", Value::Integer(9))]);
    assert_eq!(
        settings.set("path", &Value::Integer(9)),
        Err(SetError::UnknownKey)
    );
    assert_eq!(settings.describe()[0].key, "paths");
    assert!(format!("{settings:?}").contains("last"));
    assert_eq!(settings.build(context(&facts(), 0)).choose(&state(1.0)), 3);
    assert_eq!(SelectorSettings::named("last"), None);
}

#[test]
fn the_most_paths_are_those_of_the_settings() {
    let most = |name: &str| SelectorSettings::named(name).unwrap().most_paths();
    assert_eq!(["adaptive", "oblivious", "single"].map(most), [256, 256, 1]);
    assert_eq!(["bitmap", "reps", "mixed"].map(most), [256; 3]);
    assert_eq!(
        ["plb", "flowlet"].map(most),
        [65_536; 2],
        "any path may come"
    );
    let last = SelectorSettings::custom::<Last>();
    assert_eq!(last.most_paths(), 65_536);
}
