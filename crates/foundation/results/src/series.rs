//! Samples over time.

use crate::metric::Metric;
use clearway_units::{Span, Time};

/// Subject of a value: the run, a link, a flow or a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The whole run.
    Run,
    /// A link, by its index among all links.
    Link(u32),
    /// A flow, by its number.
    Flow(u32),
    /// A host, GPU or switch, by its index among all nodes.
    Node(u32),
}

impl Subject {
    /// Name of the subject: `run`, `flow 7`, and what `link` and `node` say of a number.
    pub fn name(
        self,
        link: impl FnOnce(u32) -> String,
        node: impl FnOnce(u32) -> String,
    ) -> String {
        match self {
            Self::Run => "run".into(),
            Self::Link(number) => link(number),
            Self::Flow(flow) => format!("flow {flow}"),
            Self::Node(number) => node(number),
        }
    }
}

/// Sample of one metric of one subject: a row of `series.parquet`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesRow {
    /// The end of the interval.
    pub time: Time,
    /// Length of the interval.
    pub interval: Span,
    /// The metric.
    pub metric: Metric,
    /// The subject.
    pub subject: Subject,
    /// The value, in the unit of the metric.
    pub value: f64,
}

/// Metric of one subject over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The metric.
    pub metric: Metric,
    /// The subject.
    pub subject: Subject,
    /// One value for each instant that the curves of a run share; NaN for a missing value.
    pub values: Vec<f64>,
}
