//! The table of metrics.

use crate::merge::MergeRule;

/// Unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetricUnit {
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
    /// Flits.
    Flits,
    /// A count: of flows, links, packets or entries of a table.
    Count,
    /// A share from 0 to 1.
    Fraction,
}

/// Kind of subject of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubjectKind {
    /// The whole run.
    Run,
    /// One link.
    Link,
    /// One flow.
    Flow,
    /// One GPU.
    Gpu,
    /// One switch.
    Switch,
}

/// Declaration of a metric: a line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// Name in `series.parquet`; the unit is its last part.
    pub name: &'static str,
    /// Kind of subject of the metric.
    pub scope: SubjectKind,
    /// Unit of its values.
    pub unit: MetricUnit,
    /// Rule that merges neighbouring samples.
    pub merge: MergeRule,
    /// Name of a series in a plot with one series for each metric.
    pub label: &'static str,
    /// Title of a plot of the metric.
    pub title: &'static str,
    /// Label of the y axis of a plot.
    pub axis: &'static str,
    /// Sentence in place of a plot whose values are all zero; empty if the plot is drawn even then.
    pub when_zero: &'static str,
    /// Meaning, in a sentence.
    pub meaning: &'static str,
}

/// Declares [`Metric`] and its table.
macro_rules! metrics {
    ($(
        $(#[doc = $meaning:literal])+
        $metric:ident: $name:literal, $scope:ident, $unit:ident, $merge:ident, $label:literal,
            $title:literal, $axis:literal $(, $when_zero:literal)?;
    )+) => {
        /// Metric of a run over time: what a curve, or a row of `series.parquet`, tells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[doc = $meaning])+ $metric,)+
        }

        impl Metric {
            /// All metrics, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$metric),+];

            /// Declaration of the metric: its line of the table.
            pub const fn info(self) -> &'static MetricInfo {
                match self {
                    $(Self::$metric => {
                        const INFO: MetricInfo = MetricInfo {
                            name: $name,
                            scope: SubjectKind::$scope,
                            unit: MetricUnit::$unit,
                            merge: MergeRule::$merge,
                            label: $label,
                            title: $title,
                            axis: $axis,
                            when_zero: concat!($($when_zero)?),
                            meaning: concat!($($meaning),+).trim_ascii(),
                        };
                        &INFO
                    },)+
                }
            }
        }
    };
}

metrics! {
    /// Bytes in the data queue in front of a link, at the end of the interval.
    QueueDepth: "queue_bytes", Link, Bytes, Last, "queue",
        "Queues", "at the end of each interval";
    /// The most bytes that were in the data queue in front of a link during the interval.
    QueuePeak: "queue_peak_bytes", Link, Bytes, Max, "longest queue",
        "Longest queue", "longest in each interval", "All queues that were watched stayed empty.";
    /// Bits per second on the wire of a link, headers included, over the interval: never above the rate of the link. Of a packet whose
    /// transmission an interval cuts, each interval has its part.
    LinkRate: "link_bps", Link, BitsPerSecond, Mean, "throughput",
        "Throughput of links", "on the wire";
    /// Bits per second of payload that a flow's receiver has acknowledged to its sender, over the interval.
    FlowGoodput: "flow_goodput_bps", Flow, BitsPerSecond, Mean, "goodput",
        "Goodput of flows", "goodput";
    /// The congestion window of a flow in bytes, at the end of the interval.
    Window: "window_bytes", Flow, Bytes, Last, "window",
        "Congestion windows", "window";
    /// The rate in bits per second at which a flow may send, at the end of the interval.
    PacingRate: "pacing_bps", Flow, BitsPerSecond, Last, "pacing rate",
        "Rates at which flows may send", "rate";
    /// Bytes of a flow that are sent and not acknowledged, at the end of the interval.
    InFlight: "in_flight_bytes", Flow, Bytes, Last, "in flight",
        "In flight", "sent and not acknowledged";
    /// Payload of all flows, in bits per second.
    Goodput: "goodput_bps", Run, BitsPerSecond, Mean, "goodput",
        "Goodput of all flows", "goodput";
    /// Flows that have started and are not done, at the end of the interval.
    ActiveFlows: "active_flows", Run, Count, Last, "active",
        "Active flows", "flows";
    /// Flows that were done by the end of the interval.
    CompletedFlows: "completed_flows", Run, Count, Last, "completed",
        "Completed flows", "flows";
    /// Jain's fairness index over the goodput of flows in the last window of eight base round trips (or one interval, if that is
    /// longer), of the flows that were active during all of it: 1 is fair, 1/n is one of n.
    Fairness: "jain_index", Run, Fraction, Mean, "goodput",
        "Fairness of goodput", "Jain's index";
    /// Jain's fairness index over the rates at which flows may send, of all flows that are active at the end of the interval. The
    /// rate of a flow is its pacing rate or its window over its unloaded round trip, whichever is less.
    RateFairness: "jain_rate_index", Run, Fraction, Last, "allowed rates",
        "Fairness of allowed rates", "Jain's index";
    /// Packets marked during the interval.
    Marks: "marked_packets", Run, Count, Sum, "marks",
        "Marked packets", "per µs", "No packet was marked.";
    /// Packets dropped during the interval.
    Drops: "dropped_packets", Run, Count, Sum, "drops",
        "Dropped packets", "per µs", "No packet was dropped.";
    /// Links that flow control holds back: the most at any sample in the interval, so that a short pause is not lost when samples
    /// become one.
    PausedLinks: "paused_links", Run, Count, Max, "paused",
        "Paused links", "links", "No link was paused.";
    /// Request tokens of a GPU in flits, at the end of the interval; below zero while a sent operation is being paid for.
    RequestTokens: "request_tokens_flits", Gpu, Flits, Last, "request tokens",
        "Request tokens of GPUs", "flits";
    /// Response tokens of a GPU in flits, at the end of the interval; below zero while a sent operation is being paid for.
    ResponseTokens: "response_tokens_flits", Gpu, Flits, Last, "response tokens",
        "Response tokens of GPUs", "flits";
    /// Watermark of the request tokens of a GPU, at the end of the interval: of `wm-max` cycles, so many bring a token.
    RequestWatermark: "request_watermark_level", Gpu, Count, Last, "request watermark",
        "Watermarks of request tokens", "flits";
    /// Watermark of the response tokens of a GPU, at the end of the interval: of `wm-max` cycles, so many bring a token.
    ResponseWatermark: "response_watermark_level", Gpu, Count, Last, "response watermark",
        "Watermarks of response tokens", "flits";
    /// Flits of a GPU's own operations that are under way, at the end of the interval.
    Outstanding: "outstanding_flits", Gpu, Flits, Last, "outstanding",
        "Outstanding operations of GPUs", "flits under way";
    /// Entries of a switch's reduction table that are in use, at the end of the interval.
    ReductionEntries: "reduction_table_entries", Switch, Count, Last, "reduction table",
        "Reduction tables of switches", "entries in use", "No entry of a reduction table was in use at any sample.";
}

impl Metric {
    /// Name in the column `metric` of `series.parquet`.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The metric of that name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|metric| metric.name() == name)
    }

    /// Rule that merges neighbouring samples.
    pub const fn merge(self) -> MergeRule {
        self.info().merge
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_end_in_the_unit() {
        let names: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        assert_eq!(names.len(), Metric::ALL.len());
        for metric in Metric::ALL {
            let MetricInfo {
                name,
                unit,
                meaning,
                ..
            } = metric.info();
            let endings: &[&str] = match unit {
                MetricUnit::Bytes => &["_bytes"],
                MetricUnit::BitsPerSecond => &["_bps"],
                MetricUnit::Flits => &["_flits"],
                MetricUnit::Count => &["_flows", "_packets", "_links", "_entries", "_level"],
                MetricUnit::Fraction => &["_index"],
            };
            assert!(
                endings.iter().any(|ending| name.ends_with(ending)),
                "{name}"
            );
            assert!(
                meaning.ends_with('.') && !meaning.contains("  "),
                "{meaning}"
            );
            assert_eq!(Metric::named(name), Some(*metric));
        }
        assert_eq!(Metric::named("speed"), None);
    }
}
