//! Parts that define the runs of a figure: scales, records, axes, and the rule over seeds.

use clearway_statistics::median;
use clearway_units::Span;

/// Scale of a reproduction.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Small scale, which shows the effect within minutes.
    Small,
    /// The size of the paper.
    Full,
}

impl Scale {
    /// Both scales.
    pub const ALL: [Self; 2] = [Self::Small, Self::Full];

    /// Name of the scale.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Full => "full",
        }
    }
}

/// Records kept of each run of a figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RecordSpec {
    /// Bucket width of the queue in front of the host with the most incoming flows.
    pub(crate) queue: Option<Span>,
    /// Name of a link whose queue is recorded instead.
    pub(crate) queue_link: Option<String>,
    /// Length from which a queue counts as long, and the bucket width of its record.
    pub(crate) long_queues: Option<Span>,
    /// Bucket width of drops and marks.
    pub(crate) losses: Option<Span>,
    /// True if marks are counted by switch.
    pub(crate) switch_marks: bool,
    /// True if loads of jobs on links are traced.
    pub(crate) link_loads: bool,
    /// The bin width of arrivals at the queues in front of hosts.
    pub(crate) last_hops: Option<Span>,
    /// True if the largest latency of each flow's packets is kept.
    pub(crate) packet_latency: bool,
    /// Number of flows whose arrivals are recorded, and the bin width.
    pub(crate) goodput: Option<(u32, Span)>,
    /// True if overlaps of jobs' communication are drawn per iteration.
    pub(crate) overlaps: bool,
    /// Number of acknowledgements kept of each flow.
    pub(crate) acks: Option<usize>,
    /// The time between samples of the rates at which flows may send.
    pub(crate) rates: Option<Span>,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AxisValue {
    pub(crate) label: String,
    pub(crate) settings: Vec<String>,
    /// Plan that replaces a simulation: the name of a built-in file of jobs, or the text of a file.
    pub(crate) plan: Option<String>,
    pub(crate) needs: Option<String>,
}

/// Axis along which the runs of a figure vary.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) name: String,
    /// Values by scale.
    pub(crate) values: [Vec<AxisValue>; 2],
}

/// Settings of one scale.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScaleSpec {
    pub(crate) setup: String,
    pub(crate) seeds: u64,
    pub(crate) settings: Vec<String>,
}

/// Rule that combines the numbers of all seeds into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OverSeeds {
    #[default]
    Median,
    Max,
    Min,
}

impl OverSeeds {
    /// One number from the numbers of all seeds; NaN if any of them is NaN.
    pub(crate) fn combine(self, values: &[f64]) -> f64 {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return f64::NAN;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        match self {
            Self::Min => sorted[0],
            Self::Max => sorted[last],
            Self::Median => median(values).expect("there are values"),
        }
    }
}
