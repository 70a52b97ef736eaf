//! Flowlets chosen by the host, as the artifact of REPS has them: one path, and a new random one when no acknowledgement has come for
//! half an unloaded round trip, at most once in a retransmission timeout.
//!
//! A flow that nothing has been heard of yet keeps its first path.

use super::{PathFeedback, PathId, PathSelector, SelectorContext, SelectorDefinition, SendState};
use clearway_units::{RandomStream, Span, Time};

clearway_units::parameters! {
    /// Settings of [`Flowlet`].
    pub struct FlowletParameters {
        /// Time without an acknowledgement after which a flow changes its path, in unloaded round trips.
        pub gap: f64 = 0.5, "flowlet-gap", "REPS artifact: half a base round trip";
        /// Minimum time between two changes; `"auto"` is a retransmission timeout.
        pub interval: Option<Span> = None, "flowlet-interval", "REPS artifact: one RTO";
    }
}

/// One path for each burst of packets.
#[derive(Debug, Clone)]
pub struct Flowlet {
    path: PathId,
    /// Arrival of the last acknowledgement, if there was any.
    heard: Option<Time>,
    /// The path is kept until then.
    next_change: Time,
    gap: Span,
    interval: Span,
    random: RandomStream,
}

impl SelectorDefinition for Flowlet {
    const NAME: &'static str = "flowlet";
    const SUMMARY: &'static str = "one path, a new random one after a gap in the acknowledgements";
    type Parameters = FlowletParameters;

    fn new(parameters: &FlowletParameters, mut context: SelectorContext<'_>) -> Self {
        let gap = context.network.path.rtt.as_ps() as f64 * parameters.gap;
        Self {
            path: context.random.next_u32() as PathId,
            heard: None,
            next_change: Time::ZERO,
            gap: Span::from_ps(gap as u64),
            interval: parameters.interval.unwrap_or(context.timeout),
            random: context.random,
        }
    }
}

impl PathSelector for Flowlet {
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        self.heard = Some(feedback.now);
    }

    fn choose(&mut self, state: &SendState) -> PathId {
        let ends = |heard: Time| state.now.since(heard) > self.gap;
        if self.heard.is_some_and(ends) && state.now >= self.next_change {
            self.path = self.random.next_u32() as PathId;
            self.next_change = state.now.saturating_add(self.interval);
        }
        self.path
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answer, context, facts, state};
    use super::*;
    use crate::paths::PathVerdict;

    /// Specification, section 4: a new random path if more than half a base round trip has passed since the last acknowledgement, and at
    /// most once in an RTO (here 250 us).
    #[test]
    fn a_gap_changes_the_path_but_not_twice_in_a_timeout() {
        let mut selector = Flowlet::new(&FlowletParameters::default(), context(&facts(), 0));
        let half = Span::from_ps(facts().path.rtt.as_ps() / 2);
        let mut at = |now: Time, heard: bool| {
            if heard {
                let mut feedback = answer(0, PathVerdict::Good);
                feedback.now = now;
                selector.on_feedback(&feedback);
            }
            selector.choose(&SendState { now, ..state(1.0) })
        };
        let first = at(Time::ZERO, false);
        assert_eq!(at(Time::from_us(900), false), first, "nothing heard yet");
        let start = Time::from_us(1000);
        assert_eq!(at(start, true), first);
        assert_eq!(at(start + half, false), first, "not longer than the gap");
        let change = start + half + Span::from_ps(1);
        let second = at(change, false);
        assert_ne!(second, first);
        let almost = change + Span::from_us(250) - Span::from_ps(1);
        assert_eq!(at(almost, false), second, "one RTO");
        let third = at(change + Span::from_us(250), false);
        assert_ne!(third, second);
        assert_eq!(at(change + Span::from_us(600), true), third, "just heard");
    }
}
