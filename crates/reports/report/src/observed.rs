//! Observations of a run: curves over time, and totals of each link.
//!
//! Curves share their sampling instants. Early samples may be closer together than late samples, or have been merged, so each instant
//! is given.

use crate::fabric_map::FabricMap;
pub use crate::nodes::{NodeRole, NodeRow};
pub use clearway_results::{
    Curve, EventLog, Fairness, FlowSequence, FrameCounts, JainCourse, LinkFrames, Metric,
    SequenceKind, SequencePoint, SeriesRow, Subject, SubjectKind, TraceEvent, TraceRecord,
};
use clearway_units::{Rate, Span, Time};

/// One direction of a cable, over the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkRow {
    /// `leaf0-spine2`.
    pub name: String,
    /// Node at which the link begins: a place in [`RunObservations::nodes`].
    pub from: u32,
    /// Node at which the link ends.
    pub to: u32,
    /// Rate of the link.
    pub rate: Rate,
    /// False if the link is down from the beginning.
    pub is_up: bool,
    /// Bytes that the link carried, headers included.
    pub bytes: u64,
    /// Packets that the link carried.
    pub packets: u64,
    /// Packets that the queue in front of the link marked.
    pub marks: u64,
    /// Packets that were dropped in front of the link, or lost on it.
    pub drops: u64,
    /// Data packets that the queue in front of the link trimmed.
    pub trims: u64,
    /// Number of times that flow control paused the link.
    pub pauses: u64,
    /// Total time for which flow control paused the link.
    pub paused: Span,
    /// Maximum number of bytes in the link's data queue.
    pub peak_queue: u64,
}

impl LinkRow {
    /// A link that is up and has carried nothing, from node `from` to node `to`.
    pub fn new(name: impl Into<String>, (from, to): (u32, u32), rate: Rate) -> Self {
        Self {
            name: name.into(),
            from,
            to,
            rate,
            is_up: true,
            bytes: 0,
            packets: 0,
            marks: 0,
            drops: 0,
            trims: 0,
            pauses: 0,
            paused: Span::ZERO,
            peak_queue: 0,
        }
    }

    /// Share of the link's capacity over `span` that was used.
    pub fn utilisation(&self, span: Span) -> f64 {
        let possible = self.rate.as_bps() as f64 * span.as_ps() as f64 * 1e-12;
        if possible > 0.0 {
            self.bytes as f64 * 8.0 / possible
        } else {
            0.0
        }
    }
}

/// Observations of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunObservations {
    /// The ends of the intervals, increasing; the first interval begins at time zero.
    pub times: Vec<Time>,
    /// The curves, ordered by metric and subject.
    pub curves: Vec<Curve>,
    /// Hosts and switches.
    pub nodes: Vec<NodeRow>,
    /// Links, each cable twice.
    pub links: Vec<LinkRow>,
    /// Map of the nodes and links.
    pub map: FabricMap,
    /// Counts of the map's bundles over time; empty if nothing was sampled, or if there are too many bundles.
    pub frames: LinkFrames,
    /// Fairness within the last set of flows; `None` if there were never two flows at the same time.
    pub fairness: Option<Fairness>,
    /// Time-sequence graphs of captured flows.
    pub sequences: Vec<FlowSequence>,
}

impl RunObservations {
    /// The curves of one metric.
    pub fn curves_of(&self, metric: Metric) -> impl Iterator<Item = &Curve> {
        self.curves
            .iter()
            .filter(move |curve| curve.metric == metric)
    }

    /// Name of a subject: `run`, `leaf0-spine2`, `flow 7`, `gpu3`.
    pub fn name_of(&self, subject: Subject) -> String {
        subject.name(
            |link| self.links[link as usize].name.clone(),
            |node| self.nodes[node as usize].name.clone(),
        )
    }
}
