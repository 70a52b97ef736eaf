//! The vocabulary of results: what a run is measured by, declared once.
//!
//! Recorders fill it, and `series.parquet`, reports, the live view, timelines and comparisons read it: the name of a metric, its unit, what
//! it is of, and how samples become one where there are too many ([`MergeRule`]) stand in one table, [`Metric`]. What is counted over a
//! whole run stands in another, [`PacketCounts`], which summaries, comparisons and the terminal follow, and that of a scale-up run in a
//! third, [`OperationFigures`].

mod delay;
mod events;
mod fairness;
mod merge;
mod metric;
mod operations;
mod series;
mod totals;

pub use delay::DelayPart;
pub use events::{EventLog, TraceEvent, TraceRecord};
pub use fairness::{FAIR, Fairness, JainCourse};
pub use merge::MergeRule;
pub use metric::{Metric, MetricInfo, MetricUnit, SubjectKind};
pub use operations::{
    BreakdownFigures, FabricUse, FigureColumn, FigureUnit, LatencyCycles, OperationClass,
    OperationFigures, OperationTotals, ReductionTableUse,
};
pub use series::{Curve, SeriesRow, Subject};
pub use totals::{PacketCounts, Shown, Total, TotalUnit};
