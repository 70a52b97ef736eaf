//! Watching a run: curves over time and totals of links, for reports, `series.parquet` and live views.
//!
//! ```text
//! fabric ── per packet ──► meters of links: bytes, marks, drops, peaks
//!    └── between rounds ──► Telemetry ── rows as they arise ──► sink (file, live view)
//!                               └── curves of bounded length ──► report
//! ```
//! Gauges (windows, bytes in flight, paused links) are read between rounds and cost nothing per packet. Counters and queue peaks are kept
//! per packet, because a sample would miss a short burst. If the exact course of single queues or flows matters, as in the papers' figures,
//! use the [recorders](crate::record) instead.

mod curves;
mod fairness;
mod link_choice;
mod plan;
mod scaleup;
mod telemetry;
#[cfg(test)]
mod tests;

pub use clearway_results::{Curve, Metric, SeriesRow, Subject};
pub use clearway_results::{FAIR, Fairness, JainCourse};
pub(crate) use fairness::AllowedRates;
pub use plan::WatchPlan;
pub use scaleup::ScaleupTelemetry;
pub use telemetry::{FrameSink, RunSampler, SampledSeries, Sink};
