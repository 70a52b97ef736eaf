//! The vocabulary of results: one declaration for each measure of a run.
//!
//! Recorders write these measures, and `series.parquet`, reports, the live view, timelines and comparisons read them. The table [`Metric`]
//! holds the name, unit, subject and [`MergeRule`] (for too many samples) of each metric. The table [`PacketCounts`] holds the totals of a
//! whole run, for summaries, comparisons and the terminal. The table [`OperationFigures`] holds the figures of a scale-up run.
//! [`LinkFrames`] are counts of links over time, for a map of the fabric.

mod delay;
mod events;
mod fairness;
mod frames;
mod merge;
mod metric;
mod operations;
mod sequence;
mod series;
mod totals;

pub use delay::DelayPart;
pub use events::{EventLog, TraceEvent, TraceRecord};
pub use fairness::{FAIR, Fairness, JainCourse};
pub use frames::{FrameCounts, FrameRecorder, LinkBundles, LinkFrames};
pub use merge::MergeRule;
pub use metric::{Metric, MetricInfo, MetricUnit, SubjectKind};
pub use operations::{
    BreakdownFigures, FabricUse, FigureColumn, FigureUnit, LatencyCycles, OperationClass,
    OperationFigures, OperationTotals, ReductionTableUse,
};
pub use sequence::{FlowSequence, SequenceKind, SequencePoint};
pub use series::{Curve, SeriesRow, Subject};
pub use totals::{PacketCounts, ShowCondition, Total, TotalUnit};
