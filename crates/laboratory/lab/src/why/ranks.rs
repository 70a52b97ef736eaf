//! Messages, computations and waits of all ranks of a job while an iteration ran.

use super::path::{PathStep, StepKind};
use crate::assemble::Assembly;
use crate::rank_events::{RankAction, RankCause, RankEvent};
use crate::run::Finished;
use clearway_units::{Bytes, FlowId, MessageId, Span, Time};
use clearway_workload::Rank;
use rustc_hash::FxHashMap;

/// Begins of messages and of waits for turns of one job.
#[derive(Default)]
struct Begins<'a> {
    posts: FxHashMap<(FlowId, MessageId), &'a RankEvent>,
    asks: FxHashMap<(FlowId, MessageId), &'a RankEvent>,
}

impl<'a> Begins<'a> {
    fn from_events(events: impl Iterator<Item = &'a RankEvent>) -> Self {
        let mut begins = Self::default();
        for event in events {
            match event.action {
                RankAction::Post {
                    connection,
                    message,
                    ..
                } => begins.posts.insert((connection, message), event),
                RankAction::Ask {
                    connection,
                    message,
                } => begins.asks.insert((connection, message), event),
                _ => None,
            };
        }
        begins
    }
}

impl Assembly {
    /// The finished steps of all ranks of a job that overlap an iteration, cut to its time, by begin; empty if the iteration is not over.
    ///
    /// A message lasts from its post to its arrival. Unlike the steps of a [critical path](Self::critical_path), these overlap in time.
    /// The flows of the run must have been followed.
    pub fn rank_steps(&self, finished: &Finished, job: usize, iteration: u32) -> Vec<PathStep> {
        let window = finished.jobs.get(job).and_then(|result| {
            let times = result.times.get(iteration as usize)?;
            Some((result, times.begun, times.over?))
        });
        let Some((result, from, to)) = window else {
            return Vec::new();
        };
        let events = finished.rank_events.iter();
        let events = events.filter(|event| event.job as usize == job);
        let begins = Begins::from_events(events.clone());
        let mut ideals: FxHashMap<(FlowId, Bytes), Span> = FxHashMap::default();
        let mut steps = Vec::new();
        let mut add = |(rank, begin, end): (Rank, Time, Time), mut kind: StepKind| {
            if let StepKind::Message { ideal, .. } = &mut kind {
                let before = from.as_ps().saturating_sub(begin.as_ps());
                *ideal = Span::from_ps(ideal.as_ps().saturating_sub(before));
            }
            let (begin, end) = (begin.max(from), end.min(to));
            if begin < end {
                steps.push(PathStep {
                    host: result.hosts[rank.index()],
                    from: begin,
                    to: end,
                    kind,
                });
            }
        };
        for event in events {
            match (event.action, event.cause) {
                (RankAction::Wait { until, wait }, _) => {
                    add((event.rank, event.time, until), StepKind::from(wait));
                }
                (RankAction::Receive, RankCause::Message(flow)) => {
                    let Some(post) = begins.posts.get(&(flow, event.message)) else {
                        continue;
                    };
                    let RankAction::Post { bytes, .. } = post.action else {
                        continue;
                    };
                    let least = || self.least(flow, bytes).arrival;
                    let kind = StepKind::Message {
                        flow,
                        bytes,
                        acknowledged: false,
                        ideal: *ideals.entry((flow, bytes)).or_insert_with(least),
                    };
                    add((post.rank, post.time, event.time), kind);
                }
                (
                    RankAction::Post {
                        connection: flow,
                        message,
                        ..
                    },
                    RankCause::Turn,
                ) => {
                    if let Some(ask) = begins.asks.get(&(flow, message)) {
                        add((ask.rank, ask.time, event.time), StepKind::Turn { flow });
                    }
                }
                _ => {}
            }
        }
        steps.sort_by_key(|step| step.from);
        steps
    }
}
