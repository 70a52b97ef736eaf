//! Results of a finished run as records and files: `summary.json`, `flows.parquet`, and documents on several runs.
//!
//! The command line fills a [`RunRecord`] from a run; everything here only formats it. The crates `clearway-report-text` and
//! `clearway-report-html` lay the records out for a terminal and as pages.
//!
//! * [`Summary`] is `summary.json`; [`summary`] documents each of its fields.
//! * [`FlowsBySize`] tells slowdown by flow size; [`by_size`] documents its bins and classes, [`by_section`] the same by section of the
//!   workload. [`StartFinish`] tells whether flows finish in the order of their starts, [`Fairness`] how soon they share fairly.
//! * [`JobSummary`] tells how long the iterations of a job took; [`jobs`] documents what its bandwidths mean.
//! * [`write_flows`] writes `flows.parquet`, [`read_flows`] reads it back.
//! * [`write_iterations`] writes `iterations.parquet`, [`read_iterations`] reads it back.
//! * [`OperationSummary`] tells what a scale-up run came to; [`operation_summary`] documents its fields. [`write_operations`] writes
//!   `operations.parquet`.
//! * [`SeriesWriter`] writes `series.parquet`, [`read_series`] reads it back.
//! * [`RunTables`] gives all of these in memory, column by column.
//! * [`columns`] documents each column of all of these files; the book's page is made of the same tables.
//! * [`fct_txt`] gives completed flows as HPCC's simulator for ns-3 writes them; [`fct`] documents the columns. [`htsim_txt`] speaks
//!   of them as htsim does, see [`htsim`].
//! * [`PcapngWriter`] writes captures for Wireshark.
//! * [`write_timeline`] is `trace.perfetto`; [`timeline`] documents what is drawn how.
//! * [`ResultFolder`] puts them, and whatever else the caller adds, in place in one step. [`Owner`] says whose temporary files are.
//! * [`Comparison`] lays variants side by side: `compare.json`, which [`comparison`] documents.
//! * [`PlanRecord`] is `plan.json`; [`plan`] documents the fields.
//! * [`SweepRecord`] is `sweep.json` and [`write_sweep`] writes `sweep.parquet`; [`sweep`] documents the fields.
//! * [`TestbedRecord`](testbed::TestbedRecord) is what a simulation and a test bed make of one scenario; [`testbed`] documents it.
//! * [`WhyRecord`](why::WhyRecord) is `why.json`; [`why`] documents the fields.
//! * [`quantity`] prints single quantities for people.
//!
//! **Architecture Invariant:** this crate knows nothing of the simulator, of scenarios or of arguments. It reads no clock and prints
//! nothing itself; the same record gives the same bytes.

pub mod attack_sides;
pub mod by_section;
pub mod by_size;
pub mod by_transport;
mod column_values;
pub mod columns;
pub mod comparison;
pub mod fct;
pub mod flows;
mod folder;
mod harm;
pub mod htsim;
pub mod isolation;
pub mod iterations;
pub mod jobs;
mod links;
mod measures;
pub mod observed;
pub mod operation_summary;
pub mod operations;
mod owner;
mod parquet_file;
mod parquet_table;
pub mod pcapng;
pub mod plan;
pub mod quantity;
mod record;
mod seed_spread;
pub mod series;
pub mod start_finish;
mod statistics;
pub mod summary;
pub mod sweep;
mod table_data;
pub mod testbed;
pub mod timeline;
mod unit;
pub mod why;

// `sample` names this crate as other crates do.
#[cfg(test)]
extern crate self as clearway_report;
#[cfg(test)]
mod sample;

pub use attack_sides::{AttackSide, AttackSides, User};
pub use by_section::{FlowFigures, SectionClass, SectionSummary};
pub use by_size::{FlowsBySize, SizeBin, SizeClass, Tail};
pub use by_transport::TransportSummary;
pub use clearway_results::{
    FabricUse, OperationClass, OperationTotals, PacketCounts, ReductionTableUse,
};
pub use column_values::{ColumnData, ColumnValues};
pub use comparison::{ComparedRun, Comparison, Origin, Variant};
pub use fct::{FctRow, fct_txt};
pub use flows::{FlowTable, FlowsWriter, WriteFlowsError, read_flows, write_flows};
pub use folder::{FolderError, MissingFile, ResultFolder};
pub use htsim::{HtsimRow, HtsimTotals, htsim_txt};
pub use iterations::{read_iterations, write_iterations};
pub use jobs::{JobCounts, JobSummary};
pub use observed::{
    Curve, EventLog, Fairness, JainCourse, LinkRow, Metric, NodeRow, RunObservations, SeriesRow,
    Subject, SubjectKind,
};
pub use operation_summary::{OperationBreakdown, OperationSummary};
pub use operations::write_operations;
pub use owner::Owner;
pub use parquet_file::ReadTableError;
pub use pcapng::{CapturedLink, PcapngWriter};
pub use plan::PlanRecord;
pub use record::{
    FlowRow, FlowTimes, IterationRow, JobRow, LinkEventRow, OperationResults, OperationRow,
    PausedLink, RunRecord, ScenarioIdentity, Status, TransportRow,
};
pub use series::{SeriesLine, SeriesWriter, read_series};
pub use start_finish::StartFinish;
pub use statistics::Distribution;
pub use summary::{FlowCounts, ReadSummaryError, StatusName, Summary};
pub use sweep::{SweepRecord, write_sweep};
pub use table_data::{ROWS_PER_BATCH, RunTables, TableDataError, TableName};
pub use timeline::write_timeline;
