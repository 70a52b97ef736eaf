//! Flows that come one after the other: pulled from their source when their time has nearly come, forgotten when they are done.

use crate::command::StartFlow;
use crate::flow::{Flow, FlowEvent, FlowMilestone, FlowOutcome};
use clearway_transport::FlowStatistics;
use clearway_units::{FlowId, Span, Time};
use rustc_hash::FxHashMap;

/// Flows of which a run need not know more than those that are under way.
pub struct Traffic<'a> {
    /// Yields the flows in the order of their starts, which all of them have. They are numbered in this order, after those of
    /// [`Setup::flows`](super::Setup::flows).
    pub arrivals: &'a mut dyn Iterator<Item = Flow>,
    /// Takes each flow when it is done, in the order of that time; when the run is over, also those that are not, by number: those
    /// that were under way, then those whose time never came.
    pub on_done: &'a mut dyn FnMut(FlowId, &Flow, &FlowOutcome),
}

/// The flows of a [`Traffic`] that are under way.
///
/// Flows are ordered for whole rounds of the engine. There is always one that waits (the *anchor*), so that the engine knows
/// when something happens next; once its round is over, the next one and all others of that one's round follow.
pub(super) struct Stream<'a> {
    traffic: Traffic<'a>,
    /// The flow after those that have been ordered.
    next: Option<Flow>,
    next_id: u32,
    anchor: Option<Time>,
    lookahead: Span,
    under_way: FxHashMap<FlowId, (Flow, FlowOutcome)>,
}

impl<'a> Stream<'a> {
    /// A stream whose flows are numbered from `first` on.
    pub(super) fn new(traffic: Traffic<'a>, first: usize, lookahead: Span) -> Self {
        let next = traffic.arrivals.next();
        Self {
            traffic,
            next,
            next_id: first as u32,
            anchor: None,
            lookahead,
            under_way: FxHashMap::default(),
        }
    }

    /// Orders flows when all rounds before `now` are over.
    ///
    /// # Panics
    /// If flows do not come in the order of their starts, or there are more than 2^32.
    pub(super) fn order(&mut self, now: Time, mut order: impl FnMut(StartFlow)) {
        let is_over = self.anchor.is_none_or(|anchor| anchor < now);
        let Some(first) = self.next.filter(|_| is_over) else {
            return;
        };
        let anchor = start_of(&first);
        self.anchor = Some(anchor);
        let length = self.lookahead.as_ps();
        let round = anchor.as_ps() / length;
        while let Some(flow) = self.next
            && start_of(&flow).as_ps() / length == round
        {
            let id = FlowId(self.next_id);
            self.next_id = self.next_id.checked_add(1).expect("fewer than 2^32 flows");
            self.under_way.insert(id, (flow, FlowOutcome::default()));
            let at = start_of(&flow);
            order(StartFlow { at, id, flow });
            self.next = self.traffic.arrivals.next();
            assert!(
                self.next.is_none_or(|next| start_of(&next) >= at),
                "flows come in the order of their starts"
            );
        }
    }

    /// Flows that have been ordered, and those of which it is known that they will be.
    pub(super) fn known(&self, first: usize) -> usize {
        self.next_id as usize - first + usize::from(self.next.is_some())
    }

    /// Notes that a flow of this stream has reached a milestone. Returns the flow, and its outcome if it is done; `None` if it was done
    /// before, or had reached the milestone before.
    pub(super) fn note(
        &mut self,
        event: FlowEvent,
        statistics: FlowStatistics,
    ) -> Option<(Flow, Option<FlowOutcome>)> {
        let (flow, outcome) = self.under_way.get_mut(&event.flow)?;
        if !outcome.note(event, statistics) {
            return None;
        }
        let (flow, outcome) = (*flow, *outcome);
        if event.milestone != FlowMilestone::Sent {
            return Some((flow, None));
        }
        self.under_way.remove(&event.flow);
        (self.traffic.on_done)(event.flow, &flow, &outcome);
        Some((flow, Some(outcome)))
    }

    /// Outcome so far of a flow that is under way.
    pub(super) fn outcome_mut(&mut self, id: FlowId) -> Option<&mut FlowOutcome> {
        self.under_way.get_mut(&id).map(|(_, outcome)| outcome)
    }

    /// The run is over: hands out what is left, by number, also to `note`.
    pub(super) fn close(self, mut note: impl FnMut(FlowId, &Flow, &FlowOutcome)) {
        let Traffic { arrivals, on_done } = self.traffic;
        let mut hand_out = |id, flow: &Flow, outcome: &FlowOutcome| {
            on_done(id, flow, outcome);
            note(id, flow, outcome);
        };
        let mut left: Vec<_> = self.under_way.into_iter().collect();
        left.sort_unstable_by_key(|(id, _)| *id);
        for (id, (flow, outcome)) in &left {
            hand_out(*id, flow, outcome);
        }
        let never_begun = self.next.into_iter().chain(arrivals);
        for (id, flow) in (self.next_id..).zip(never_begun) {
            hand_out(FlowId(id), &flow, &FlowOutcome::default());
        }
    }
}

fn start_of(flow: &Flow) -> Time {
    flow.start.expect("a flow of a stream has a start")
}
