//! Plots of curves: their metrics and words.

use super::super::plot::Unit;
use clearway_report::observed::Metric;

/// Metrics of GPUs.
pub(super) const GPU_METRICS: &[Metric] = &[
    Metric::RequestTokens,
    Metric::ResponseTokens,
    Metric::RequestWatermark,
    Metric::ResponseWatermark,
    Metric::Outstanding,
];

/// Metrics of switches.
pub(super) const SWITCH_METRICS: &[Metric] = &[Metric::ReductionEntries];

/// Description of a plot of curves.
pub(super) struct View {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Label of the y axis.
    pub(super) label: &'static str,
    /// The metrics of the plot, all of one unit.
    pub(super) metrics: &'static [Metric],
    /// Sentence to print instead of the plot if all values are zero; empty if the plot is drawn even then.
    pub(super) if_zero: &'static str,
}

impl View {
    pub(super) fn unit(&self) -> Unit {
        Unit::from_metric(self.metrics[0])
    }
}

pub(super) const LINKS: [View; 3] = [
    View {
        id: "queue-peak",
        title: "Queues",
        label: "longest in each interval",
        metrics: &[Metric::QueuePeak],
        if_zero: "All queues that were watched stayed empty.",
    },
    View {
        id: "queue-depth",
        title: "Queues",
        label: "at the end of each interval",
        metrics: &[Metric::QueueDepth],
        if_zero: "",
    },
    View {
        id: "link-rate",
        title: "Throughput of links",
        label: "on the wire",
        metrics: &[Metric::LinkRate],
        if_zero: "",
    },
];

pub(super) const FLOWS: [View; 4] = [
    View {
        id: "flow-goodput",
        title: "Goodput of flows",
        label: "goodput",
        metrics: &[Metric::FlowGoodput],
        if_zero: "",
    },
    View {
        id: "flow-window",
        title: "Congestion windows",
        label: "window",
        metrics: &[Metric::Window],
        if_zero: "",
    },
    View {
        id: "flow-rate",
        title: "Rates at which flows may send",
        label: "rate",
        metrics: &[Metric::PacingRate],
        if_zero: "",
    },
    View {
        id: "flow-in-flight",
        title: "In flight",
        label: "sent and not acknowledged",
        metrics: &[Metric::InFlight],
        if_zero: "",
    },
];

pub(super) const NODES: [View; 6] = [
    View {
        id: "request-tokens",
        title: "Request tokens of GPUs",
        label: "flits",
        metrics: &[Metric::RequestTokens],
        if_zero: "",
    },
    View {
        id: "response-tokens",
        title: "Response tokens of GPUs",
        label: "flits",
        metrics: &[Metric::ResponseTokens],
        if_zero: "",
    },
    View {
        id: "request-watermark",
        title: "Watermarks of request tokens",
        label: "flits",
        metrics: &[Metric::RequestWatermark],
        if_zero: "",
    },
    View {
        id: "response-watermark",
        title: "Watermarks of response tokens",
        label: "flits",
        metrics: &[Metric::ResponseWatermark],
        if_zero: "",
    },
    View {
        id: "outstanding",
        title: "Outstanding operations of GPUs",
        label: "flits under way",
        metrics: &[Metric::Outstanding],
        if_zero: "",
    },
    View {
        id: "reduction-entries",
        title: "Reduction tables of switches",
        label: "entries in use",
        metrics: SWITCH_METRICS,
        if_zero: "No entry of a reduction table was in use at any sample.",
    },
];

pub(super) const RUN: [View; 6] = [
    View {
        id: "goodput",
        title: "Goodput of all flows",
        label: "goodput",
        metrics: &[Metric::Goodput],
        if_zero: "",
    },
    View {
        id: "fairness",
        title: "Fairness",
        label: "Jain's index",
        metrics: &[Metric::Fairness, Metric::RateFairness],
        if_zero: "",
    },
    View {
        id: "active-flows",
        title: "Flows",
        label: "flows",
        metrics: &[Metric::ActiveFlows, Metric::CompletedFlows],
        if_zero: "",
    },
    View {
        id: "marks",
        title: "Marked packets",
        label: "per µs",
        metrics: &[Metric::Marks],
        if_zero: "No packet was marked.",
    },
    View {
        id: "drops",
        title: "Dropped packets",
        label: "per µs",
        metrics: &[Metric::Drops],
        if_zero: "No packet was dropped.",
    },
    View {
        id: "paused-links",
        title: "Paused links",
        label: "links",
        metrics: &[Metric::PausedLinks],
        if_zero: "No link was paused.",
    },
];
