//! Flows that come one after the other: pulled from their source when their time has nearly come or posted while the run goes on, and
//! forgotten when they are done.

use crate::command::StartFlow;
use crate::flow::{Flow, FlowEvent, FlowMilestone, FlowOutcome};
use clearway_transport::FlowStatistics;
use clearway_units::{FlowId, Span, Time};
use rustc_hash::FxHashMap;

/// Flows that come during a run, which holds only the flows under way.
pub struct Traffic<'a> {
    /// Source of the flows. They are numbered in the order in which they come, after those of [`Setup::flows`](super::Setup::flows).
    pub arrivals: FlowSource<'a>,
    /// Takes each flow when it is done, in the order of that time. When the run is over it also takes the other flows, by number: flows
    /// that were under way, then flows whose time never came.
    pub on_done: OnDone<'a>,
}

/// Callback for flows that are done.
type OnDone<'a> = &'a mut dyn FnMut(FlowId, &Flow, &FlowOutcome);

/// Source of the flows of a [`Traffic`].
pub enum FlowSource<'a> {
    /// Yields the flows in the order of their starts, which all of them have.
    Known(&'a mut dyn Iterator<Item = Flow>),
    /// Posts them while the run goes on.
    Posted(&'a mut dyn Driver),
}

/// Poster of flows during a run, which also says how far the run goes.
pub trait Driver {
    /// Called between rounds. All events before `now` have happened, and `next` is the time of the first one that is left, [`Time::NEVER`]
    /// without events. Flows to start are pushed to `post`, with starts at or after `now`.
    fn advance(&mut self, now: Time, next: Time, post: &mut Vec<Flow>) -> Advance;

    /// Takes note that a flow, listed or posted, has reached a milestone. Events of one round come in order.
    fn on_event(&mut self, event: FlowEvent);
}

/// Extent to which a run may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// Until all events before this time have happened; it is after the next event, posted flows included.
    Until(Time),
    /// Until nothing is left to happen.
    ToTheEnd,
    /// Not at all: the run ends.
    Stop,
}

/// The flows of a [`Traffic`] that are under way.
///
/// Flows are ordered for whole rounds of the engine. There is always one that waits (the *anchor*), so that the engine knows
/// when something happens next; once its round is over, the next one and all others of that one's round follow.
pub(super) struct Stream<'a> {
    arrivals: FlowSource<'a>,
    on_done: OnDone<'a>,
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
        let Traffic {
            mut arrivals,
            on_done,
        } = traffic;
        Self {
            next: arrivals.next(),
            arrivals,
            on_done,
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
        // Flows are ordered for one round at a time, so that the flows of later rounds take no memory.
        let length = self.lookahead.as_ps();
        let round = anchor.as_ps() / length;
        while let Some(flow) = self.next
            && start_of(&flow).as_ps() / length == round
        {
            let at = start_of(&flow);
            order(self.start(flow));
            self.next = self.arrivals.next();
            assert!(
                self.next.is_none_or(|next| start_of(&next) >= at),
                "flows come in the order of their starts"
            );
        }
    }

    /// Lets the driver go on, if there is one, and orders the flows that it posts.
    ///
    /// # Panics
    /// If flows start before `now`, or there are more than 2^32.
    pub(super) fn drive(
        &mut self,
        now: Time,
        next: Time,
        mut order: impl FnMut(StartFlow),
    ) -> Advance {
        let FlowSource::Posted(driver) = &mut self.arrivals else {
            return Advance::ToTheEnd;
        };
        let mut posted = Vec::new();
        let advance = driver.advance(now, next, &mut posted);
        for flow in posted {
            assert!(start_of(&flow) >= now, "what is posted is not of the past");
            order(self.start(flow));
        }
        advance
    }

    /// Tells the driver of an event, if there is one.
    pub(super) fn tell(&mut self, event: FlowEvent) {
        if let FlowSource::Posted(driver) = &mut self.arrivals {
            driver.on_event(event);
        }
    }

    /// Numbers a flow that is under way from now on.
    fn start(&mut self, flow: Flow) -> StartFlow {
        let id = FlowId(self.next_id);
        self.next_id = self.next_id.checked_add(1).expect("fewer than 2^32 flows");
        self.under_way.insert(id, (flow, FlowOutcome::default()));
        let at = start_of(&flow);
        StartFlow { at, id, flow }
    }

    /// Start of the first flow that has not been ordered.
    pub(super) fn next_start(&self) -> Time {
        self.next.as_ref().map_or(Time::NEVER, start_of)
    }

    /// Flows that have been ordered, and a flow that is known to come next.
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
        (self.on_done)(event.flow, &flow, &outcome);
        Some((flow, Some(outcome)))
    }

    /// Outcome so far of a flow that is under way.
    pub(super) fn outcome_mut(&mut self, id: FlowId) -> Option<&mut FlowOutcome> {
        self.under_way.get_mut(&id).map(|(_, outcome)| outcome)
    }

    /// Ends the stream when the run is over: hands out the remaining flows, by number, also to `note`.
    pub(super) fn close(mut self, mut note: impl FnMut(FlowId, &Flow, &FlowOutcome)) {
        let on_done = self.on_done;
        let mut hand_out = |id, flow: &Flow, outcome: &FlowOutcome| {
            on_done(id, flow, outcome);
            note(id, flow, outcome);
        };
        let mut left: Vec<_> = self.under_way.into_iter().collect();
        left.sort_unstable_by_key(|(id, _)| *id);
        for (id, (flow, outcome)) in &left {
            hand_out(*id, flow, outcome);
        }
        let others = std::iter::from_fn(|| self.arrivals.next());
        let never_begun = self.next.into_iter().chain(others);
        for (id, flow) in (self.next_id..).zip(never_begun) {
            hand_out(FlowId(id), &flow, &FlowOutcome::default());
        }
    }
}

impl FlowSource<'_> {
    /// The next flow that is known already.
    fn next(&mut self) -> Option<Flow> {
        match self {
            Self::Known(flows) => flows.next(),
            Self::Posted(_) => None,
        }
    }
}

fn start_of(flow: &Flow) -> Time {
    flow.start.expect("a flow of a stream has a start")
}
