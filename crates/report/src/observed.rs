//! What was watched while a run went on: curves over time, and totals of each link.
//!
//! Curves share their sampling instants. Early samples may be closer together than late ones, or have been merged, so the
//! instants are given one by one.

use clearway_units::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// What a curve, or a row of `series.parquet`, tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Bytes in the data queue in front of a link, at the end of the interval.
    QueueDepth,
    /// The most bytes that were in it during the interval.
    QueuePeak,
    /// Bits per second on the wire of a link, headers included, over the interval.
    LinkRate,
    /// Bits per second of payload that a flow's receiver has acknowledged to its sender, over the interval.
    FlowGoodput,
    /// The congestion window of a flow in bytes, at the end of the interval.
    Window,
    /// The rate in bits per second at which a flow may send, at the end of the interval.
    PacingRate,
    /// Bytes of a flow that are sent and not acknowledged, at the end of the interval.
    InFlight,
    /// Payload of all flows, in bits per second.
    Goodput,
    /// Flows that have started and are not done, at the end of the interval.
    ActiveFlows,
    /// Flows that were done by the end of the interval.
    CompletedFlows,
    /// Jain's fairness index over the goodput of flows in the last window of eight base round trips (or one interval, if that is
    /// longer), of the flows that were active during all of it: 1 is fair, 1/n is one of n.
    Fairness,
    /// Jain's fairness index over the rates at which flows may send, of all flows that are active at the end of the interval. The
    /// rate of a flow is its pacing rate or its window over its unloaded round trip, whichever is less.
    RateFairness,
    /// Packets marked during the interval.
    Marks,
    /// Packets dropped during the interval.
    Drops,
    /// Links that flow control holds back, at the end of the interval.
    PausedLinks,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::QueueDepth,
        Self::QueuePeak,
        Self::LinkRate,
        Self::FlowGoodput,
        Self::Window,
        Self::PacingRate,
        Self::InFlight,
        Self::Goodput,
        Self::ActiveFlows,
        Self::CompletedFlows,
        Self::Fairness,
        Self::RateFairness,
        Self::Marks,
        Self::Drops,
        Self::PausedLinks,
    ];

    /// As the column `metric` of `series.parquet` names it; the unit is its last part.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueDepth => "queue_bytes",
            Self::QueuePeak => "queue_peak_bytes",
            Self::LinkRate => "link_bps",
            Self::FlowGoodput => "flow_goodput_bps",
            Self::Window => "window_bytes",
            Self::PacingRate => "pacing_bps",
            Self::InFlight => "in_flight_bytes",
            Self::Goodput => "goodput_bps",
            Self::ActiveFlows => "active_flows",
            Self::CompletedFlows => "completed_flows",
            Self::Fairness => "jain_index",
            Self::RateFairness => "jain_rate_index",
            Self::Marks => "marked_packets",
            Self::Drops => "dropped_packets",
            Self::PausedLinks => "paused_links",
        }
    }
}

/// Whom a curve is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The whole run.
    Run,
    /// A link: its place in [`Observed::links`].
    Link(u32),
    /// A flow: its number.
    Flow(u32),
}

/// One value of one metric: a row of `series.parquet`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesRow {
    /// The end of the interval.
    pub time: Time,
    /// Its length.
    pub interval: Span,
    /// What.
    pub metric: Metric,
    /// Of whom.
    pub subject: Subject,
    /// How much.
    pub value: f64,
}

/// A metric of one subject over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What.
    pub metric: Metric,
    /// Of whom.
    pub subject: Subject,
    /// One value for each of [`Observed::times`]; not a number where there is none.
    pub values: Vec<f64>,
}

/// A host or a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// `host7`, `leaf3`.
    pub name: String,
    /// 0 for switches next to hosts, growing upwards; `None` for a host.
    pub tier: Option<u8>,
}

/// One direction of a cable, over the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkRow {
    /// `leaf0-spine2`.
    pub name: String,
    /// Where it begins: a place in [`Observed::nodes`].
    pub from: u32,
    /// Where it ends.
    pub to: u32,
    /// What it can carry.
    pub rate: Rate,
    /// Bytes that it carried, headers included.
    pub bytes: u64,
    /// Packets that it carried.
    pub packets: u64,
    /// Packets that the queue in front of it marked.
    pub marks: u64,
    /// Packets that were dropped in front of it, or lost on it.
    pub drops: u64,
    /// How often flow control held it back.
    pub pauses: u64,
    /// For how long in all.
    pub paused: Span,
    /// The most bytes that were in its data queue.
    pub peak_queue: u64,
}

impl LinkRow {
    /// The part of what it could have carried in `span` that it did carry.
    pub fn utilisation(&self, span: Span) -> f64 {
        let possible = self.rate.as_bps() as f64 * span.as_ps() as f64 * 1e-12;
        if possible > 0.0 {
            self.bytes as f64 * 8.0 / possible
        } else {
            0.0
        }
    }
}

/// How Jain's index went from the last time that a flow started beside others until the first flow after that was done: among the
/// same flows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// When a flow last started beside others, in microseconds.
    pub from_us: f64,
    /// When the first flow after that was done, in microseconds; `None` if none was.
    pub until_us: Option<f64>,
    /// How many flows were active in between.
    pub flows: u64,
    /// Of what flows got, as [`Metric::Fairness`] has it, of windows that begin after the last start; `None` if no such window ended
    /// in time.
    pub goodput: Option<JainCourse>,
    /// Of the rates at which they may send, as [`Metric::RateFairness`] has it; `None` if there was no sample, or no controller
    /// limits its flow.
    pub allowed_rate: Option<JainCourse>,
}

/// Jain's index over some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JainCourse {
    /// The least value.
    pub min: f64,
    /// The last one.
    pub last: f64,
    /// How long after the last start it was first 0.95 or more and stayed there, in microseconds; `None` if it was not in the end.
    pub settled_us: Option<f64>,
}

/// Everything that was watched.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// The ends of the intervals, growing; the first one begins at time zero.
    pub times: Vec<Time>,
    /// The curves, ordered by metric and subject.
    pub curves: Vec<Curve>,
    /// Hosts and switches.
    pub nodes: Vec<NodeRow>,
    /// Links, each cable twice.
    pub links: Vec<LinkRow>,
    /// How fair the last set of flows was; `None` if there were never two at once.
    pub fairness: Option<Fairness>,
}

impl Observed {
    /// The curves of one metric.
    pub fn of(&self, metric: Metric) -> impl Iterator<Item = &Curve> {
        self.curves
            .iter()
            .filter(move |curve| curve.metric == metric)
    }

    /// How a subject is called: `run`, `leaf0-spine2`, `flow 7`.
    pub fn name_of(&self, subject: Subject) -> String {
        match subject {
            Subject::Run => "run".into(),
            Subject::Link(link) => self.links[link as usize].name.clone(),
            Subject::Flow(flow) => format!("flow {flow}"),
        }
    }
}

/// What happened at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// A packet of a flow vanished in front of, or on, a link.
    Dropped {
        /// A place in [`Observed::links`].
        link: u32,
        /// The flow.
        flow: u32,
    },
    /// A sender took packets for lost.
    LossDetected {
        /// The flow.
        flow: u32,
        /// How it was found, in a word or two: `timeout`, `out of order`.
        cause: &'static str,
        /// How many packets are sent again.
        packets: u32,
    },
    /// Flow control holds back a link from now on, or lets it go on.
    Pause {
        /// A place in [`Observed::links`].
        link: u32,
        /// A bit for each class that is held back; zero: none is.
        classes: u8,
    },
}

/// One entry of [`Happenings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HappeningRow {
    /// When.
    pub time: Time,
    /// What.
    pub what: Happening,
}

/// Single events of a run, for timelines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Happenings {
    /// In the order of time.
    pub rows: Vec<HappeningRow>,
    /// How many more there were than are kept.
    pub left_out: u64,
    /// Flows that started because another one got somewhere: `(cause, effect)`.
    pub dependencies: Vec<(u32, u32)>,
}
