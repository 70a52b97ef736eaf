//! Breakdown of the completion times of slow flows, and a lower bound that no transport can beat.
//!
//! Runs are deterministic, so the first run records nothing, and a second run follows the flows that were slow. A [`FollowRecorder`] keeps
//! the path of each packet of these flows; [`Assembly::flow_delays`] walks back along the critical path of each flow and splits its
//! completion time into [`Part`]s, without a remainder.

mod bound;
mod chain;
mod follow;
mod path;
mod ranks;
mod trace;
mod walk;

pub use bound::{BoundCause, LowerBound};
pub use chain::JobStep;
pub use clearway_results::DelayPart as Part;
pub use follow::{FollowPlan, FollowRecorder};
pub use path::{CriticalPath, MessageDelays, PathStep, StepKind};

use crate::assemble::Assembly;
use crate::rank_events::{RankCause, RankEvent};
use crate::run::Finished;
use clearway_fabric::topology::{LinkId, NodeId};
use clearway_transport::{Class, Reliability};
use clearway_units::{FlowId, Span, Time};
use follow::{Hop, arrival};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trace::Trace;
use walk::{Ledger, Subject, Walk};

/// Part of a completion time, with its link if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// Kind of the part.
    pub part: Part,
    /// The link, for serialisation of a train of packets, queueing and pauses.
    pub link: Option<LinkId>,
    /// Length of the part.
    pub span: Span,
}

/// Waiting times of all data packets of a flow in front of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkWait {
    /// The link.
    pub link: LinkId,
    /// Data packets and probes that left on it.
    pub packets: u64,
    /// Total time from arrival to the begin of transmission, including waits behind packets of the same flow.
    pub waited: Span,
    /// Number of other flows whose data the flow waited for there.
    pub sharers: usize,
}

/// Time that a connection of a job waited for events of one kind before it had data to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobWait {
    /// Kind of the events.
    pub cause: RankCause,
    /// Time on the critical path.
    pub span: Span,
}

/// The completion time of a flow in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowDelays {
    /// The flow.
    pub flow: FlowId,
    /// Completion time of the flow, which is the sum of the parts.
    pub completion: Span,
    /// Completion time on an idle network; zero if unknown.
    pub ideal: Span,
    /// The parts, the longest first.
    pub parts: Vec<Delay>,
    /// The link with the most queueing and pauses on the flow's critical path, else the link in front of which its packets waited longest.
    pub bottleneck: Option<LinkId>,
    /// Links that the flow's data crossed, longest waits first.
    pub links: Vec<LinkWait>,
    /// Nodes on the flow's paths at each hop; several nodes if packets took different paths.
    pub nodes: Vec<BTreeSet<NodeId>>,
    /// Number of distinct paths.
    pub ways: usize,
    /// Waits of a job's connection by cause, longest first; their sum is the waiting part.
    pub waits: Vec<JobWait>,
}

/// Error: followed flows have sent more packets than can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyPackets;

impl FlowDelays {
    /// Time of a part, summed over all links.
    pub fn total(&self, part: Part) -> Span {
        let spans = self.parts.iter().filter(|delay| delay.part == part);
        spans.fold(Span::ZERO, |sum, delay| sum + delay.span)
    }

    /// Time of a part at a link.
    pub fn at(&self, part: Part, link: LinkId) -> Span {
        let found = |delay: &&Delay| delay.part == part && delay.link == Some(link);
        self.parts
            .iter()
            .find(found)
            .map_or(Span::ZERO, |delay| delay.span)
    }
}

impl Assembly {
    /// The `most` slowest flows of a finished run: by slowdown, then flows without an ideal time by completion time.
    pub fn slowest_flows(&self, finished: &Finished, most: usize) -> Vec<FlowId> {
        let mut flows: Vec<(f64, Span, FlowId)> = Vec::new();
        for (id, flow) in (0..).map(FlowId).zip(&finished.flows) {
            if let Some(completion) = flow.completion() {
                let slowdown = match flow.ideal.is_zero() {
                    true => 0.0,
                    false => completion.as_ps() as f64 / flow.ideal.as_ps() as f64,
                };
                flows.push((slowdown, completion, id));
            }
        }
        flows.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        flows.into_iter().take(most).map(|(.., id)| id).collect()
    }

    /// Splits the completion times of followed flows, in the order of `flows`. Flows that are not done are left out.
    ///
    /// # Errors
    /// If the flows have sent too many packets.
    ///
    /// # Panics
    /// If a flow is not in this assembly.
    pub fn flow_delays(
        &self,
        flows: &[FlowId],
        recorder: FollowRecorder,
        finished: &Finished,
    ) -> Result<Vec<FlowDelays>, TooManyPackets> {
        if recorder.plan.is_overrun() {
            return Err(TooManyPackets);
        }
        let plan = Arc::clone(&recorder.plan);
        let trace = Trace::new(&self.topology, recorder);
        let mut posts_on: FxHashMap<FlowId, Vec<RankEvent>> = FxHashMap::default();
        for event in &finished.rank_events {
            if let Some(flow) = event.posts_on().filter(|&flow| plan.follows(flow)) {
                posts_on.entry(flow).or_default().push(*event);
            }
        }
        let delays = flows.iter().filter_map(|&flow| {
            let result = finished.flows[flow.index()];
            let subject = self.subject(flow, (result.started?, result.finished?));
            Some(self.delays_of(&trace, &subject, result.ideal, posts_on.get(&flow)))
        });
        Ok(delays.collect())
    }

    /// Facts of a flow for a walk through this interval.
    fn subject(&self, flow: FlowId, (started, finished): (Time, Time)) -> Subject {
        Subject {
            flow,
            uplink: self.topology.ports()[self.nics(flow).0.index()][0],
            class: self.class_of(flow),
            class_of_answers: match self.has_control_priority() {
                true => Class::CONTROL,
                false => Class::DATA,
            },
            goes_back: matches!(self.reliability_of(flow), Reliability::GoBackN(_)),
            started,
            finished,
        }
    }

    fn delays_of(
        &self,
        trace: &Trace<'_>,
        subject: &Subject,
        ideal: Span,
        posts: Option<&Vec<RankEvent>>,
    ) -> FlowDelays {
        let mut walk = Walk::new(trace, subject);
        let ledger = walk.run();
        let completion = subject.finished - subject.started;
        let sum = ledger.values().fold(Span::ZERO, |sum, &span| sum + span);
        assert_eq!(sum, completion, "the parts of a completion time add up");
        let links = link_waits(trace, subject, walk.at_nic.len());
        let ways = trace.ways_of(subject.flow);
        FlowDelays {
            flow: subject.flow,
            completion,
            ideal,
            bottleneck: bottleneck(&ledger, &links),
            parts: parts(ledger),
            links,
            nodes: self.nodes_of(ways.keys()),
            ways: ways.len(),
            waits: waits(&walk.idle, posts.map_or(&[], Vec::as_slice)),
        }
    }

    /// The nodes at each hop, over all paths with the most frequent number of links.
    fn nodes_of<'w>(
        &self,
        ways: impl Iterator<Item = &'w Vec<LinkId>> + Clone,
    ) -> Vec<BTreeSet<NodeId>> {
        let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
        for way in ways.clone() {
            *lengths.entry(way.len()).or_default() += 1;
        }
        let usual = lengths
            .into_iter()
            .max_by_key(|&(length, ways)| (ways, length));
        let Some((length, _)) = usual else {
            return Vec::new();
        };
        let mut nodes = vec![BTreeSet::new(); length + 1];
        for way in ways.filter(|way| way.len() == length) {
            for (place, &link) in way.iter().enumerate() {
                let (from, to) = self.topology.link_ends(link);
                nodes[place].insert(from);
                nodes[place + 1].insert(to);
            }
        }
        nodes
    }
}

/// Waits of a connection by cause: the last event by the end of the wait at which its rank posted a message.
fn waits(idle: &[(Span, Time)], posts: &[RankEvent]) -> Vec<JobWait> {
    let mut spans: BTreeMap<RankCause, Span> = BTreeMap::new();
    for &(span, until) in idle {
        let place = posts.partition_point(|post| post.time <= until);
        if let Some(post) = place.checked_sub(1).map(|place| posts[place]) {
            *spans.entry(post.cause).or_default() += span;
        }
    }
    let spans = spans.into_iter().filter(|(_, span)| !span.is_zero());
    let mut waits: Vec<JobWait> = spans.map(|(cause, span)| JobWait { cause, span }).collect();
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.span));
    waits
}

/// The parts, the longest first.
fn parts(ledger: Ledger) -> Vec<Delay> {
    let delay = |((part, link), span)| Delay { part, link, span };
    let mut parts: Vec<Delay> = ledger.into_iter().map(delay).collect();
    parts.sort_by_key(|delay| std::cmp::Reverse(delay.span));
    parts
}

fn bottleneck(ledger: &Ledger, links: &[LinkWait]) -> Option<LinkId> {
    let mut held: BTreeMap<LinkId, Span> = BTreeMap::new();
    for (&(part, link), &span) in ledger {
        if let (Part::Queueing | Part::Pause, Some(link)) = (part, link) {
            *held.entry(link).or_default() += span;
        }
    }
    let longest = held
        .into_iter()
        .max_by_key(|&(link, span)| (span, std::cmp::Reverse(link)));
    let waited = links.iter().find(|wait| !wait.waited.is_zero());
    longest
        .map(|(link, _)| link)
        .or(waited.map(|wait| wait.link))
}

/// The links that a flow has crossed, longest waits first.
fn link_waits(trace: &Trace<'_>, subject: &Subject, at_nic: usize) -> Vec<LinkWait> {
    let flow = subject.flow;
    let wait = |(link, hops): (LinkId, &[Hop])| {
        let waits = hops.iter().map(|hop| waited(trace, hop));
        let others = trace.sharers.get(&(flow, link));
        LinkWait {
            link,
            packets: hops.len() as u64,
            waited: waits.fold(Span::ZERO, |sum, wait| sum + wait),
            sharers: match link == subject.uplink {
                true => at_nic,
                false => others.map_or(0, |others| others.len()),
            },
        }
    };
    let mut links: Vec<LinkWait> = trace.links_of(flow).into_iter().map(wait).collect();
    links.sort_by_key(|wait| (std::cmp::Reverse(wait.waited), wait.link));
    links
}

/// Time that a packet waited in front of a switch's link before its transmission began.
fn waited(trace: &Trace<'_>, hop: &Hop) -> Span {
    let hops = trace.hops(hop.packet);
    let place = hops.partition_point(|other| other.end < hop.end);
    let before = place.checked_sub(1).map(|place| &hops[place]);
    before.map_or(Span::ZERO, |before| {
        hop.start - arrival(trace.topology, before)
    })
}
