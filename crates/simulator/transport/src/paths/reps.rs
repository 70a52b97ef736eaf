//! Recycled entropies: REPS (Bonato et al. 2024), as its authors' artifact and the UEC reference simulator have it.
//!
//! The paths of the last eight unmarked acknowledgements are remembered, each for one packet; the oldest goes first. Without one, packets
//! take random paths. After a timeout the selector *freezes*: it goes round the remembered paths again and again, used up or not, because
//! these have worked, and random ones may lead into a failure. When it thaws it forgets all, and explores with random paths.
//!
//! * Decision U18: a timeout freezes only if no round trip was longer than 1.65 unloaded ones since the lost packet left (`freeze-rtt`),
//!   because switches that drop lose packets by congestion too. Where they trim packets instead, a timeout is a failure at any round trips,
//!   and the limit may be arbitrarily large. When the packet left is not known: the last timeout is looked at, and up to another one before
//!   it.
//! * Decision U20: thawed, it explores with the packets of one bandwidth-delay product; frozen it is for 100 us.
//! * Where acknowledgements answer several packets, as many paths fewer come back: each can be used several times (`path-uses`).
//! * A probe takes a random path, or when frozen the next remembered one without using it up; the sources say nothing of probes.

use super::{
    DEFAULT_PATHS, PathFeedback, PathId, PathSelector, SelectorContext, SelectorDefinition,
    SendState,
};
use crate::congestion::{LossCause, LossSample};
use clearway_units::{RandomStream, Span, Time};
use std::num::NonZero;

/// Paths that are remembered.
const SLOTS: usize = 8;

clearway_units::parameters! {
    /// Settings of [`Reps`].
    pub struct RepsParameters {
        /// Number of paths, at least 1.
        pub max_paths: NonZero<u16> = DEFAULT_PATHS, "max-paths", "STrack §4.1; UEC 1.0.3: 64 to 256; REPS artifact: 65535";
        /// Packets that reuse the path of an unmarked acknowledgement: as many as one acknowledgement answers.
        pub uses: NonZero<u8> = NonZero::<u8>::MIN, "path-uses", "REPS: each entropy is used once, and each packet acknowledged";
        /// Duration of a freeze: after a timeout, the selector takes only paths that have worked.
        pub freeze: Span = Span::from_us(100), "freeze", "REPS artifact, runs with failures: 100 us";
        /// Longest round trip before a timeout at which the selector freezes, in unloaded round trips: a timeout without congestion is a
        /// failure. Where switches trim packets instead of dropping them, a large number makes any timeout freeze.
        pub freeze_rtt: f64 = 1.65, "freeze-rtt", "REPS artifact without trimming: 1.65";
    }
}

/// A remembered path, and how many packets may still take it.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    path: PathId,
    uses: u8,
}

/// The longest round trip of the last timeout, and of up to another one before it.
#[derive(Debug, Clone)]
struct LongestRoundTrip {
    period: Span,
    /// End of the present period.
    end: Time,
    present: Span,
    before: Span,
}

impl LongestRoundTrip {
    fn note(&mut self, now: Time, rtt: Span) {
        if now >= self.end {
            let is_next = now < self.end.saturating_add(self.period);
            self.before = if is_next { self.present } else { Span::ZERO };
            self.present = Span::ZERO;
            self.end = now.saturating_add(self.period);
        }
        self.present = self.present.max(rtt);
    }

    fn at(&mut self, now: Time) -> Span {
        self.note(now, Span::ZERO);
        self.present.max(self.before)
    }
}

/// The path selector of REPS.
#[derive(Debug, Clone)]
pub struct Reps {
    slots: [Slot; SLOTS],
    /// The slot that is written next (`head`).
    head: usize,
    /// Slots before `head` that may be used (`fresh`).
    fresh: usize,
    /// Slots that have ever been written (`used`).
    written: usize,
    /// Packets that are still to explore (`explore`).
    explore: u32,
    /// The end of the freeze, and the slot that is used next.
    frozen: Option<(Time, usize)>,
    round_trips: LongestRoundTrip,
    /// Longest round trip with which a timeout freezes.
    freeze_rtt: Span,
    freeze: Span,
    uses: u8,
    /// Packets of a bandwidth-delay product.
    bdp: u32,
    max_paths: u32,
    random: RandomStream,
}

impl SelectorDefinition for Reps {
    const NAME: &'static str = "reps";
    const SUMMARY: &'static str =
        "REPS: paths of unmarked acknowledgements again, then random paths";
    type Parameters = RepsParameters;

    fn new(parameters: &RepsParameters, context: SelectorContext<'_>) -> Self {
        let network = context.network;
        let packet = u64::from(network.payload + network.header).max(1);
        let limit = network.path.rtt.as_ps() as f64 * parameters.freeze_rtt;
        Self {
            slots: [Slot::default(); SLOTS],
            head: 0,
            fresh: 0,
            written: 0,
            explore: 0,
            frozen: None,
            round_trips: LongestRoundTrip {
                period: context.timeout,
                end: Time::ZERO,
                present: Span::ZERO,
                before: Span::ZERO,
            },
            freeze_rtt: Span::from_ps(limit as u64),
            freeze: parameters.freeze,
            uses: parameters.uses.get(),
            bdp: u32::try_from(network.bdp.as_u64().div_ceil(packet)).unwrap_or(u32::MAX),
            max_paths: parameters.max_paths.get().into(),
            random: context.random,
        }
    }

    fn most_paths(parameters: &RepsParameters) -> u32 {
        parameters.max_paths.get().into()
    }
}

impl Reps {
    fn remember(&mut self, path: PathId) {
        let slot = &mut self.slots[self.head];
        // A frozen selector takes paths without using them up; its count is forgotten when it thaws.
        if slot.uses == 0 {
            self.fresh = (self.fresh + 1).min(SLOTS);
        }
        *slot = Slot {
            path,
            uses: self.uses,
        };
        self.head = (self.head + 1) % SLOTS;
        self.written = (self.written + 1).min(SLOTS);
    }

    fn thaw(&mut self) {
        self.frozen = None;
        self.slots = [Slot::default(); SLOTS];
        (self.head, self.fresh, self.written) = (0, 0, 0);
        self.explore = self.bdp;
    }

    fn random_path(&mut self) -> PathId {
        self.random.below(self.max_paths) as PathId
    }

    /// The oldest remembered path that may be used.
    fn oldest(&mut self) -> Option<PathId> {
        if self.fresh == 0 {
            return None;
        }
        let slot = &mut self.slots[(self.head + SLOTS - self.fresh) % SLOTS];
        slot.uses -= 1;
        if slot.uses == 0 {
            self.fresh -= 1;
        }
        Some(slot.path)
    }
}

impl PathSelector for Reps {
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        self.round_trips.note(feedback.now, feedback.rtt);
        if let Some((end, _)) = self.frozen
            && feedback.now > end
        {
            self.thaw();
        }
        if feedback.verdict.is_good() && u32::from(feedback.path) < self.max_paths {
            self.remember(feedback.path);
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if loss.cause != LossCause::Timeout || self.frozen.is_some() || self.explore > 0 {
            return;
        }
        if self.round_trips.at(loss.now) < self.freeze_rtt {
            self.frozen = Some((loss.now.saturating_add(self.freeze), 0));
        }
    }

    fn choose(&mut self, _: &SendState) -> PathId {
        if self.explore > 0 {
            self.explore -= 1;
            return self.random_path();
        }
        if let Some((_, next)) = &mut self.frozen
            && self.written > 0
        {
            let slot = self.slots[*next % self.written];
            *next = (*next + 1) % self.written;
            return slot.path;
        }
        match self.frozen {
            Some(_) => self.random_path(),
            None => self.oldest().unwrap_or_else(|| self.random_path()),
        }
    }

    fn choose_for_probe(&mut self, _: &SendState) -> PathId {
        match self.frozen {
            Some((_, next)) if self.written > 0 => self.slots[next % self.written].path,
            _ => self.random_path(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answer, context, facts, state};
    use super::*;
    use crate::paths::PathVerdict;
    use clearway_units::Bytes;

    fn reps() -> Reps {
        Reps::new(&RepsParameters::default(), context(&facts(), 0))
    }

    fn hear(selector: &mut Reps, paths: impl IntoIterator<Item = PathId>) {
        for path in paths {
            selector.on_feedback(&answer(path, PathVerdict::Good));
        }
    }

    fn choices(selector: &mut Reps, count: usize) -> Vec<PathId> {
        let choose = || selector.choose(&state(1.0));
        std::iter::repeat_with(choose).take(count).collect()
    }

    /// The next random path, which stays the next.
    fn next_random(selector: &Reps) -> PathId {
        selector.clone().random_path()
    }

    fn lose(selector: &mut Reps, at: Time, cause: LossCause) {
        selector.on_loss(&LossSample {
            now: at,
            cause,
            lost: Bytes::new(4096),
            in_flight: Bytes::ZERO,
        });
    }

    /// Specification, section 11: Good 1..10 without sends, then choose: 3 4 5 .. 10, then random.
    #[test]
    fn the_last_eight_good_paths_are_used_once_oldest_first() {
        let mut selector = reps();
        hear(&mut selector, 1..=10);
        assert_eq!(choices(&mut selector, 8), [3, 4, 5, 6, 7, 8, 9, 10]);
        for _ in 0..20 {
            let random = next_random(&selector);
            assert_eq!(choices(&mut selector, 1), [random]);
        }
    }

    /// Section 11: Good 5, Ecn 6, Good 7: 5 7 random; frozen after that: 5 7 5 7.
    #[test]
    fn marked_paths_are_not_remembered_and_frozen_ones_are_used_again() {
        let mut selector = reps();
        hear(&mut selector, [5]);
        selector.on_feedback(&answer(6, PathVerdict::Marked));
        selector.on_feedback(&answer(6, PathVerdict::Nack { marked: false }));
        hear(&mut selector, [7]);
        assert_eq!(choices(&mut selector, 2), [5, 7]);
        let random = next_random(&selector);
        assert_eq!(choices(&mut selector, 1), [random]);
        lose(&mut selector, Time::from_us(1), LossCause::Timeout);
        assert_eq!(selector.choose_for_probe(&state(1.0)), 5);
        assert_eq!(choices(&mut selector, 4), [5, 7, 5, 7]);
    }

    /// Section 4: frozen with `used == 0`, random.
    #[test]
    fn a_selector_that_freezes_with_nothing_remembered_takes_random_paths() {
        let mut selector = reps();
        lose(&mut selector, Time::from_us(1), LossCause::Timeout);
        assert!(selector.frozen.is_some());
        let random = next_random(&selector);
        assert_eq!(choices(&mut selector, 1), [random]);
        hear(&mut selector, [9]);
        assert_eq!(choices(&mut selector, 3), [9, 9, 9]);
    }

    /// Section 4 and decision U20: 100 us later the first feedback clears the cache, and a bandwidth-delay product explores.
    #[test]
    fn it_thaws_forgets_and_explores() {
        let mut selector = reps();
        hear(&mut selector, [1, 2]);
        lose(&mut selector, Time::from_us(10), LossCause::Timeout);
        let mut feedback = answer(3, PathVerdict::Good);
        feedback.now = Time::from_us(110);
        selector.on_feedback(&feedback);
        assert_eq!(choices(&mut selector, 4), [1, 2, 3, 1], "still frozen");
        feedback.now += Span::from_ps(1);
        selector.on_feedback(&feedback);
        // 400 Gb/s for 8.08448 us are 404 224 bytes, in packets of 4160.
        assert_eq!(selector.explore, 98);
        lose(&mut selector, feedback.now, LossCause::Timeout);
        assert!(selector.frozen.is_none(), "not while it explores");
        for _ in 0..98 {
            let random = next_random(&selector);
            assert_eq!(choices(&mut selector, 1), [random]);
        }
        assert_eq!(choices(&mut selector, 1), [3]);
    }

    /// Decision U18: only a timeout without congestion, and nothing but a timeout, freezes.
    #[test]
    fn long_round_trips_keep_it_from_freezing() {
        let base = facts().path.rtt.as_ps();
        let after = |rtt: u64, since: Span, cause| {
            let mut selector = reps();
            let mut feedback = answer(1, PathVerdict::Good);
            (feedback.now, feedback.rtt) = (Time::from_us(1000), Span::from_ps(rtt));
            selector.on_feedback(&feedback);
            lose(&mut selector, feedback.now + since, cause);
            selector.frozen.is_some()
        };
        let soon = Span::from_us(200);
        assert!(after(base * 164 / 100, soon, LossCause::Timeout));
        assert!(!after(base * 166 / 100, soon, LossCause::Timeout));
        assert!(!after(base, soon, LossCause::OutOfOrder));
        // The timeout of these tests is 250 us: round trips older than two timeouts do not count.
        assert!(!after(base * 2, Span::from_us(400), LossCause::Timeout));
        assert!(after(base * 2, Span::from_us(500), LossCause::Timeout));
    }

    /// Section 4: `lifetime` uses of each slot.
    #[test]
    fn paths_may_be_used_several_times() {
        let parameters = RepsParameters {
            uses: NonZero::new(4).unwrap(),
            ..Default::default()
        };
        let mut selector = Reps::new(&parameters, context(&facts(), 0));
        hear(&mut selector, [5]);
        assert_eq!(choices(&mut selector, 2), [5, 5]);
        hear(&mut selector, [6]);
        assert_eq!(choices(&mut selector, 6), [5, 5, 6, 6, 6, 6]);
        assert_eq!(selector.fresh, 0);
    }
}
