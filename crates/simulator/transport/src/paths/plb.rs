//! Protective load balancing (PLB; Qureshi et al., SIGCOMM 2022), with the rules and numbers of Linux: one path, and a new random one
//! when round trips in a row were congested.
//!
//! A round trip is congested if at least half of its acknowledgements are marked. A flow with nothing in flight changes after three of
//! them, because that costs no reordering, a busy one after twelve. After a timeout it changes at once, and then stays for a while.
//!
//! Deviations: acknowledgements are counted instead of delivered packets, which acknowledgements of several packets do not tell apart; and
//! the pause after a timeout is ten timeouts (decision U19), drawn up to twice as long as in Linux, where it is a minute.

use super::{PathFeedback, PathId, PathSelector, SelectorContext, SelectorDefinition, SendState};
use crate::congestion::{LossCause, LossSample};
use clearway_units::{Bytes, RandomStream, Span, Time};
use std::num::NonZero;

const IDLE_ROUNDS: NonZero<u8> = NonZero::new(3).expect("not zero");
const ROUNDS: NonZero<u8> = NonZero::new(12).expect("not zero");
/// Timeouts for which a flow keeps its path after one.
const PAUSE: u64 = 10;

clearway_units::parameters! {
    /// Settings of [`Plb`].
    pub struct PlbParameters {
        /// Share of marked acknowledgements from which a round trip counts as congested (K).
        pub threshold: f64 = 0.5, "plb-threshold", "Linux: tcp_plb_cong_thresh";
        /// Congested round trips in a row after which a flow with nothing in flight changes its path (M).
        pub idle_rounds: NonZero<u8> = IDLE_ROUNDS, "plb-idle-rounds", "Linux: tcp_plb_idle_rehash_rounds";
        /// Congested round trips in a row after which any flow changes its path (N).
        pub rounds: NonZero<u8> = ROUNDS, "plb-rounds", "Linux: tcp_plb_rehash_rounds";
        /// Time for which a flow keeps its path after a timeout, randomly up to twice as long; `"auto"` is ten timeouts.
        pub pause: Option<Span> = None, "plb-pause", "decision U19; Linux, tcp_plb_suspend_rto_sec: 60 s";
    }
}

/// One path until it proves congested.
#[derive(Debug, Clone)]
pub struct Plb {
    path: PathId,
    /// Bytes that had been sent when the present round began; none before the first acknowledgement.
    round_end: Option<Bytes>,
    /// Acknowledgements of the round, and how many of them were marked.
    acknowledgements: u32,
    marked: u32,
    /// Congested rounds in a row.
    congested: u8,
    /// The path is kept until then.
    pause_end: Time,
    pause: Span,
    threshold: f64,
    idle_rounds: u8,
    rounds: u8,
    random: RandomStream,
}

impl SelectorDefinition for Plb {
    const NAME: &'static str = "plb";
    const SUMMARY: &'static str = "PLB: one path, a new random one after congested round trips";
    type Parameters = PlbParameters;

    fn new(parameters: &PlbParameters, mut context: SelectorContext<'_>) -> Self {
        let pause = parameters.pause;
        Self {
            path: context.random.next_u32() as PathId,
            round_end: None,
            acknowledgements: 0,
            marked: 0,
            congested: 0,
            pause_end: Time::ZERO,
            pause: pause.unwrap_or_else(|| times(context.timeout, PAUSE)),
            threshold: parameters.threshold,
            idle_rounds: parameters.idle_rounds.get(),
            rounds: parameters.rounds.get(),
            random: context.random,
        }
    }
}

/// `span` so many times, or the longest there is.
fn times(span: Span, count: u64) -> Span {
    Span::from_ps(span.as_ps().saturating_mul(count))
}

impl Plb {
    fn change(&mut self) {
        self.path = self.random.next_u32() as PathId;
        self.congested = 0;
    }
}

impl PathSelector for Plb {
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        self.acknowledgements += 1;
        self.marked += u32::from(feedback.verdict.is_marked());
        let end = *self.round_end.get_or_insert(feedback.sent);
        if feedback.delivered <= end {
            return;
        }
        let is_congested =
            f64::from(self.marked) >= self.threshold * f64::from(self.acknowledgements);
        self.congested = match is_congested {
            true => self.congested.saturating_add(1),
            false => 0,
        };
        (self.acknowledgements, self.marked) = (0, 0);
        self.round_end = Some(feedback.sent);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if loss.cause == LossCause::Timeout {
            self.change();
            let more = u128::from(self.pause.as_ps()) * u128::from(self.random.next_u32());
            let pause = self.pause.as_ps().saturating_add((more >> 32) as u64);
            self.pause_end = loss.now.saturating_add(Span::from_ps(pause));
        }
    }

    fn choose(&mut self, state: &SendState) -> PathId {
        let is_idle = state.in_flight == Bytes::ZERO;
        let is_due =
            self.congested >= self.rounds || (is_idle && self.congested >= self.idle_rounds);
        if is_due && state.now >= self.pause_end {
            self.change();
        }
        self.path
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answer, context, facts, state};
    use super::*;
    use crate::paths::PathVerdict;

    const MTU: u64 = 4096;
    /// Packets of a round.
    const WINDOW: u64 = 10;

    /// A flow that always has a window in flight, and its selector.
    struct Flow {
        plb: Plb,
        now: Time,
        delivered: u64,
    }

    impl Flow {
        fn new() -> Self {
            let plb = Plb::new(&PlbParameters::default(), context(&facts(), 0));
            let (now, delivered) = (Time::from_us(10), 0);
            let mut flow = Self {
                plb,
                now,
                delivered,
            };
            flow.packet(true);
            flow
        }

        fn packet(&mut self, marked: bool) {
            self.delivered += MTU;
            let verdict = if marked {
                PathVerdict::Marked
            } else {
                PathVerdict::Good
            };
            self.plb.on_feedback(&PathFeedback {
                now: self.now,
                delivered: Bytes::new(self.delivered),
                sent: Bytes::new(self.delivered + (WINDOW - 1) * MTU),
                ..answer(self.plb.path, verdict)
            });
        }

        /// A round trip with so many marks; the path of the packet after it.
        fn round(&mut self, marked: u64, in_flight: u64) -> PathId {
            (0..WINDOW).for_each(|packet| self.packet(packet < marked));
            let state = SendState {
                now: self.now,
                in_flight: Bytes::new(in_flight),
                ..state(10.0)
            };
            self.plb.choose(&state)
        }

        fn time_out(&mut self) {
            self.plb.on_loss(&LossSample {
                now: self.now,
                cause: LossCause::Timeout,
                lost: Bytes::new(MTU),
                in_flight: Bytes::ZERO,
            });
        }
    }

    /// Specification, section 11: 11 congested rounds busy: no change, the 12th: change.
    #[test]
    fn a_busy_flow_changes_after_twelve_congested_rounds() {
        let mut flow = Flow::new();
        let path = flow.plb.path;
        for _ in 0..11 {
            assert_eq!(flow.round(5, MTU), path);
        }
        let other = flow.round(5, MTU);
        assert_ne!(other, path);
        for _ in 0..11 {
            assert_eq!(flow.round(10, MTU), other, "it counts anew");
        }
        assert_ne!(flow.round(10, MTU), other);
    }

    /// Section 4: a round is congested if at least K = 0.5 is marked; one that is not ends the count.
    #[test]
    fn rounds_count_in_a_row() {
        let mut flow = Flow::new();
        let path = flow.plb.path;
        for _ in 0..11 {
            flow.round(10, MTU);
        }
        flow.round(4, MTU);
        for _ in 0..11 {
            assert_eq!(flow.round(5, MTU), path);
        }
        assert_ne!(flow.round(5, MTU), path);
    }

    /// Section 4: rehash if idle and rounds >= M = 3.
    #[test]
    fn an_idle_flow_changes_after_three_rounds() {
        let mut flow = Flow::new();
        let path = flow.plb.path;
        assert_eq!(flow.round(10, 0), path);
        assert_eq!(flow.round(10, 0), path);
        assert_ne!(flow.round(10, 0), path);
    }

    /// Section 4 and decision U19: after a timeout a new path, then a pause of one to two times 10 RTO.
    #[test]
    fn a_timeout_changes_the_path_and_pauses() {
        let mut ends = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let mut flow = Flow::new();
            flow.plb.random =
                RandomStream::new(ends.len() as u64, clearway_units::Purpose::Test, 0);
            let before = flow.plb.path;
            flow.time_out();
            let path = flow.plb.path;
            assert_ne!(path, before);
            let pause = flow.plb.pause_end - flow.now;
            // The timeout of these tests is 250 us.
            assert!(pause >= Span::from_us(2500) && pause < Span::from_us(5000));
            ends.insert(pause);
            for _ in 0..20 {
                assert_eq!(flow.round(10, 0), path);
            }
            flow.now = flow.plb.pause_end;
            assert_ne!(flow.round(10, 0), path, "what it has counted holds");
        }
        assert!(ends.len() > 40, "pauses differ");
    }
}
