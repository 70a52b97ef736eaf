//! The thread of the simulation: it takes orders from the program, and answers at the end of each step.

use super::event::{MessageEvent, MessageEventKind};
use crate::assemble::Assembly;
use crate::run::{Finished, FlowResult};
use clearway_fabric::{
    Advance, Driver, Flow, FlowEvent, FlowMilestone, FlowOutcome, FlowSource, RunDecision, Threads,
    Traffic, Watch,
};
use clearway_units::{FlowId, Span, Time};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// Outcome of the thread of the simulation.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) finished: Finished,
    pub(super) messages: Vec<(FlowId, FlowResult)>,
}

/// Order to the simulation.
pub(super) struct Order {
    pub(super) posted: Vec<Flow>,
    pub(super) goal: Goal,
}

/// End of a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    /// All events before this time have happened.
    Time(Time),
    /// A message was received or acknowledged, or all events before this time have happened. The step passes an event by at most this
    /// resolution.
    Event(Time, Option<Span>),
    /// No events are left.
    End,
}

/// State of the simulation at the end of a step.
pub(super) struct Answer {
    pub(super) now: Time,
    pub(super) next: Time,
    pub(super) events: Vec<MessageEvent>,
    /// True if the simulation is over.
    pub(super) is_over: bool,
}

/// Simulates a run on the simulation thread.
pub(super) fn simulate(
    assembly: &Assembly,
    threads: Threads,
    mut driver: Relay,
    interrupt: &AtomicBool,
    first: u32,
) -> Simulated {
    let mut done: Vec<(FlowId, Flow, FlowOutcome)> = Vec::new();
    let traffic = Traffic {
        arrivals: FlowSource::Posted(&mut driver),
        on_done: &mut |id, flow, outcome| done.push((id, *flow, *outcome)),
    };
    let on_progress = &mut |_| match interrupt.load(Ordering::Relaxed) {
        true => RunDecision::Stop,
        false => RunDecision::Continue,
    };
    let finished = assembly.simulate(
        (threads, on_progress),
        Watch::Off,
        None,
        Some(traffic),
        None,
    );
    driver.answer(finished.simulated, Time::NEVER, true);
    done.sort_unstable_by_key(|(id, ..)| *id);
    debug_assert!(
        done.iter()
            .map(|(id, ..)| id.0)
            .eq(first..first + done.len() as u32)
    );
    let result = |(id, flow, outcome): &(FlowId, Flow, FlowOutcome)| {
        let ideal = assembly.ideal_between((flow.src, flow.dst), flow.transport, flow.bytes);
        (*id, FlowResult::new(outcome, ideal))
    };
    Simulated {
        messages: done.iter().map(result).collect(),
        finished,
    }
}

/// Driver of the simulation that forwards the orders of the program.
pub(super) struct Relay {
    orders: Receiver<Order>,
    answers: Sender<Answer>,
    /// Goal of the current step; `None` between steps.
    goal: Option<Goal>,
    /// Events since the last answer.
    events: Vec<MessageEvent>,
}

impl Relay {
    pub(super) fn new(orders: Receiver<Order>, answers: Sender<Answer>) -> Self {
        Self {
            orders,
            answers,
            goal: None,
            events: Vec::new(),
        }
    }

    /// Ends the step at `now`; `next` is the time of the next event.
    fn answer(&mut self, now: Time, next: Time, is_over: bool) {
        let events = std::mem::take(&mut self.events);
        self.goal = None;
        // The send fails only if the program has dropped the run.
        let _ = self.answers.send(Answer {
            now,
            next,
            events,
            is_over,
        });
    }
}

impl Driver for Relay {
    fn advance(&mut self, now: Time, mut next: Time, post: &mut Vec<Flow>) -> Advance {
        loop {
            match self.goal {
                Some(Goal::End) => return Advance::ToTheEnd,
                Some(Goal::Time(limit)) if next < limit => return Advance::Until(limit),
                Some(Goal::Event(limit, resolution)) if next < limit && self.events.is_empty() => {
                    let end = resolution.map_or(limit, |span| next.saturating_add(span));
                    return Advance::Until(limit.min(end));
                }
                Some(Goal::Event(..)) if !self.events.is_empty() => self.answer(now, next, false),
                Some(Goal::Event(Time::NEVER, _)) => self.answer(now, next, false),
                Some(Goal::Time(limit) | Goal::Event(limit, _)) => self.answer(limit, next, false),
                None => {}
            }
            let Ok(order) = self.orders.recv() else {
                return Advance::Stop;
            };
            let first = order.posted.iter().filter_map(|flow| flow.start).min();
            next = next.min(first.unwrap_or(Time::NEVER));
            post.extend(order.posted);
            self.goal = Some(order.goal);
        }
    }

    fn on_event(&mut self, event: FlowEvent) {
        let kind = match event.milestone {
            FlowMilestone::Received => MessageEventKind::Received,
            FlowMilestone::Sent => MessageEventKind::Acknowledged,
            _ => return,
        };
        self.events.push(MessageEvent {
            time: event.time,
            flow: event.flow,
            kind,
        });
    }
}
