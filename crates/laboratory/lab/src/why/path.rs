//! Critical path of an iteration of a job: a chain of messages and computations of a run, in which each step waited for the step before.
//!
//! [`Assembly::critical_path`] walks back through the [actions of the ranks](RankEvent) from the end of the last rank. A rank acts at the
//! last event that it waited for. A message leads to its sender and to the event at which the sender posted it, a computation to the event
//! at which it began. The steps add up to the time of the iteration, from the begin of its first rank. If a rank began later because of the
//! previous iteration, the path contains part of that iteration.
//!
//! [`Assembly::message_delays`] then walks back along the packets of each message, as for a [flow](super::FlowDelays).

use super::follow::FollowRecorder;
use super::trace::Trace;
use super::walk::Walk;
use super::{Delay, TooManyPackets, parts};
use crate::assemble::Assembly;
use crate::rank_events::{RankAction, RankCause, RankEvent};
use crate::run::Finished;
use clearway_units::{Bytes, FlowId, HostId, MessageId, Span, Time};
use clearway_workload::{ClockWait, Rank};
use rustc_hash::FxHashMap;

/// Kind of a step of a critical path, or of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// A message, until it arrived, or until its acknowledgement arrived if the sender waited for that.
    Message {
        /// Connection of the message.
        flow: FlowId,
        /// Length of the message.
        bytes: Bytes,
        /// True if the sender waited for the acknowledgement.
        acknowledged: bool,
        /// Time of the message on an idle network.
        ideal: Span,
    },
    /// A computation.
    Computation,
    /// The wait for the slot in which communication may begin.
    Slot,
    /// The wait for the turn at a receiver that accepts a limited number of messages at a time.
    Turn {
        /// Connection of the message.
        flow: FlowId,
    },
}

impl From<ClockWait> for StepKind {
    fn from(wait: ClockWait) -> Self {
        match wait {
            ClockWait::Computation => Self::Computation,
            ClockWait::Slot => Self::Slot,
        }
    }
}

/// Step of a critical path, or of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStep {
    /// Host that computes, sends or waits.
    pub host: HostId,
    /// Begin of the step.
    pub from: Time,
    /// End of the step.
    pub to: Time,
    /// Kind of the step.
    pub kind: StepKind,
}

impl PathStep {
    /// Length of the step.
    pub fn span(&self) -> Span {
        self.to.since(self.from)
    }
}

/// Critical path of an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalPath {
    /// Number of the job.
    pub job: usize,
    /// Number of the iteration, from 0.
    pub iteration: u32,
    /// Begin of the first rank.
    pub from: Time,
    /// End of the last rank.
    pub to: Time,
    /// The steps in order; the first begins at `from`, the last ends at `to`.
    pub steps: Vec<PathStep>,
    /// Begin of the action of the first step, which may be before `from`.
    begun: Time,
}

impl CriticalPath {
    /// The connection of each message of the path, and the time in which it was under way.
    pub fn messages(&self) -> impl Iterator<Item = (FlowId, (Time, Time))> {
        self.steps.iter().enumerate().filter_map(|(place, step)| {
            let StepKind::Message { flow, .. } = step.kind else {
                return None;
            };
            let from = if place == 0 { self.begun } else { step.from };
            Some((flow, (from, step.to)))
        })
    }
}

/// Breakdown of the time of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDelays {
    /// Place of the message among the steps of the path.
    pub step: usize,
    /// The parts, the longest first; they add up to the time of the step.
    pub parts: Vec<Delay>,
}

/// Actions of the ranks of one job, indexed for the walk back.
struct Actions<'a> {
    posts: FxHashMap<(FlowId, MessageId), &'a RankEvent>,
    asks: FxHashMap<(FlowId, MessageId), &'a RankEvent>,
    waits: FxHashMap<(Rank, Time), &'a RankEvent>,
    /// End of the iteration at its last rank.
    end: Option<&'a RankEvent>,
}

impl<'a> Actions<'a> {
    fn from_events(events: &'a [RankEvent], job: usize, iteration: u32) -> Self {
        let mut actions = Self {
            posts: FxHashMap::default(),
            asks: FxHashMap::default(),
            waits: FxHashMap::default(),
            end: None,
        };
        for event in events.iter().filter(|event| event.job as usize == job) {
            match event.action {
                RankAction::Post {
                    connection,
                    message,
                    ..
                } => {
                    actions.posts.insert((connection, message), event);
                }
                RankAction::Ask {
                    connection,
                    message,
                } => {
                    actions.asks.insert((connection, message), event);
                }
                // Of two waits that end at the same time, the wait that began first counts.
                RankAction::Wait { until, .. } => {
                    actions.waits.entry((event.rank, until)).or_insert(event);
                }
                RankAction::Over { iteration: over } if over == iteration => {
                    actions.end = Some(event);
                }
                RankAction::Over { .. } | RankAction::Receive => {}
            }
        }
        actions
    }

    /// The action that led to the cause of `event`.
    fn before(&self, event: &RankEvent) -> Option<&'a RankEvent> {
        match (event.cause, event.action) {
            (RankCause::Start, _) => None,
            (RankCause::Message(flow) | RankCause::Acknowledgement(flow), _) => {
                self.posts.get(&(flow, event.message)).copied()
            }
            (RankCause::Clock, _) => self.waits.get(&(event.rank, event.time)).copied(),
            (
                RankCause::Turn,
                RankAction::Post {
                    connection,
                    message,
                    ..
                },
            ) => self.asks.get(&(connection, message)).copied(),
            (RankCause::Turn, _) => None,
        }
    }
}

impl Assembly {
    /// The critical path of an iteration of a job in a run whose flows were followed; `None` if the iteration is not over.
    pub fn critical_path(
        &self,
        finished: &Finished,
        job: usize,
        iteration: u32,
    ) -> Option<CriticalPath> {
        let result = finished.jobs.get(job)?;
        let times = result.times.get(iteration as usize)?;
        let (from, to) = (times.begun, times.over?);
        let actions = Actions::from_events(&finished.rank_events, job, iteration);
        let mut event = actions.end?;
        let mut steps = Vec::new();
        while event.time > from {
            let Some(before) = actions.before(event) else {
                break;
            };
            let kind = self.step_kind(event, before)?;
            steps.push(PathStep {
                host: result.hosts[before.rank.index()],
                from: before.time.max(from),
                to: event.time,
                kind,
            });
            event = before;
        }
        steps.reverse();
        Some(CriticalPath {
            job,
            iteration,
            from,
            to,
            steps,
            begun: event.time.min(from),
        })
    }

    /// The step that leads from an action to an event.
    fn step_kind(&self, event: &RankEvent, before: &RankEvent) -> Option<StepKind> {
        Some(match before.action {
            RankAction::Post {
                connection: flow,
                bytes,
                ..
            } => {
                let acknowledged = matches!(event.cause, RankCause::Acknowledgement(_));
                let least = self.least(flow, bytes);
                StepKind::Message {
                    flow,
                    bytes,
                    acknowledged,
                    ideal: match acknowledged {
                        true => least.acknowledgement,
                        false => least.arrival,
                    },
                }
            }
            RankAction::Ask { connection, .. } => StepKind::Turn { flow: connection },
            RankAction::Wait { wait, .. } => wait.into(),
            RankAction::Over { .. } | RankAction::Receive => return None,
        })
    }

    /// Splits the message times of a path whose flows were followed.
    ///
    /// # Errors
    /// If the flows have sent too many packets.
    pub fn message_delays(
        &self,
        path: &CriticalPath,
        recorder: FollowRecorder,
    ) -> Result<Vec<MessageDelays>, TooManyPackets> {
        if recorder.plan.is_overrun() {
            return Err(TooManyPackets);
        }
        let trace = Trace::new(&self.topology, recorder);
        let arrivals = trace.arrivals();
        let mut delays = Vec::new();
        for (place, step) in path.steps.iter().enumerate() {
            let StepKind::Message {
                flow, acknowledged, ..
            } = step.kind
            else {
                continue;
            };
            let subject = self.subject(flow, (step.from, step.to));
            let mut walk = Walk::new(&trace, &subject);
            let own = arrivals.get(&flow).map_or(&[][..], Vec::as_slice);
            let until = own.partition_point(|&(came, _)| came <= step.to);
            let mut last = own[..until].iter().rev();
            let last = last.find(|(_, id)| id.is_answer == acknowledged);
            let ledger = match last {
                Some(&last) => walk.run_from(last),
                None => walk.run(),
            };
            delays.push(MessageDelays {
                step: place,
                parts: parts(ledger),
            });
        }
        Ok(delays)
    }
}
