//! Plots of curves over time: the metrics of each plot. Titles and axes come from the table of metrics.

use super::plot::Unit;
use clearway_results::{Metric, MetricInfo};

/// Plot of one metric, or of several metrics with the same unit.
pub(super) struct View {
    /// Name of the plot in the page.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) metrics: &'static [Metric],
}

impl View {
    /// The plot of a single metric, with its title.
    const fn new(id: &'static str, metrics: &'static [Metric; 1]) -> Self {
        let title = metrics[0].info().title;
        Self { id, title, metrics }
    }

    /// A plot with another title: of several metrics, or where the title of the metric does not fit.
    const fn titled(id: &'static str, title: &'static str, metrics: &'static [Metric]) -> Self {
        Self { id, title, metrics }
    }

    /// Declaration of the first metric, whose unit and axis apply to all.
    pub(super) const fn info(&self) -> &'static MetricInfo {
        self.metrics[0].info()
    }

    pub(super) fn unit(&self) -> Unit {
        Unit::from_metric(self.metrics[0])
    }
}

/// Peaks of several queues: the title of the metric is for the longest one alone.
pub(super) const QUEUE_PEAK: View = View::titled("queue-peak", "Queues", &[Metric::QueuePeak]);
pub(super) const LINK_RATE: View = View::new("link-rate", &[Metric::LinkRate]);
pub(super) const FLOW_GOODPUT: View = View::new("flow-goodput", &[Metric::FlowGoodput]);
pub(super) const GOODPUT: View = View::new("goodput", &[Metric::Goodput]);
pub(super) const FAIRNESS: View = View::titled(
    "fairness",
    "Fairness",
    &[Metric::Fairness, Metric::RateFairness],
);
pub(super) const FLOW_COUNTS: View = View::titled(
    "active-flows",
    "Flows",
    &[Metric::ActiveFlows, Metric::CompletedFlows],
);
pub(super) const MARKS: View = View::new("marks", &[Metric::Marks]);
pub(super) const DROPS: View = View::new("drops", &[Metric::Drops]);
/// Marked and dropped packets in one plot, for pages with little room.
pub(super) const MARKS_AND_DROPS: View = View::titled(
    "marks",
    "Marked and dropped packets",
    &[Metric::Marks, Metric::Drops],
);
pub(super) const PAUSED_LINKS: View = View::new("paused-links", &[Metric::PausedLinks]);

/// Plots of links.
pub(super) const LINKS: [View; 3] = [
    QUEUE_PEAK,
    View::new("queue-depth", &[Metric::QueueDepth]),
    LINK_RATE,
];

/// Plots of flows.
pub(super) const FLOWS: [View; 4] = [
    FLOW_GOODPUT,
    View::new("flow-window", &[Metric::Window]),
    View::new("flow-rate", &[Metric::PacingRate]),
    View::new("flow-in-flight", &[Metric::InFlight]),
];

/// Plots of GPUs and switches of scale-up fabrics.
pub(super) const NODES: [View; 6] = [
    View::new("request-tokens", &[Metric::RequestTokens]),
    View::new("response-tokens", &[Metric::ResponseTokens]),
    View::new("request-watermark", &[Metric::RequestWatermark]),
    View::new("response-watermark", &[Metric::ResponseWatermark]),
    View::new("outstanding", &[Metric::Outstanding]),
    View::new("reduction-entries", &[Metric::ReductionEntries]),
];

/// Plots of the run.
pub(super) const RUN: [View; 6] = [GOODPUT, FAIRNESS, FLOW_COUNTS, MARKS, DROPS, PAUSED_LINKS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_plot_share_unit_and_axis() {
        let tables: [&[View]; 5] = [&LINKS, &FLOWS, &NODES, &RUN, &[MARKS_AND_DROPS]];
        for view in tables.into_iter().flatten() {
            for metric in view.metrics {
                assert_eq!(Unit::from_metric(*metric), view.unit(), "{}", view.id);
                assert_eq!(metric.info().axis, view.info().axis, "{}", view.id);
            }
        }
    }

    #[test]
    fn every_metric_has_a_plot() {
        let tables: [&[View]; 4] = [&LINKS, &FLOWS, &NODES, &RUN];
        for metric in Metric::ALL {
            let views = tables.into_iter().flatten();
            let count = views.filter(|view| view.metrics.contains(metric)).count();
            assert_eq!(count, 1, "{}", metric.name());
        }
    }
}
