//! Results of a finished run as records and files: `summary.json`, `flows.parquet`, and documents on several runs.
//!
//! The command line fills a [`RunRecord`] from a run; this crate only formats it. The crates `clearway-report-text` and
//! `clearway-report-html` lay the records out for a terminal and as pages.
//!
//! * [`Summary`] is `summary.json`; [`summary`] documents each of its fields.
//! * [`FlowsBySize`] gives slowdown by flow size; [`by_size`] documents its bins and classes, [`by_section`] the same by section of the
//!   workload. [`StartFinish`] shows whether flows finish in the order of their starts, [`Fairness`] how soon they share fairly.
//! * [`JobSummary`] gives the iteration times of a job; [`jobs`] documents its bandwidths.
//! * [`write_flows`] writes `flows.parquet`, [`read_flows`] reads it back.
//! * [`write_iterations`] writes `iterations.parquet`, [`read_iterations`] reads it back.
//! * [`OperationSummary`] gives the results of a scale-up run; [`operation_summary`] documents its fields. [`write_operations`] writes
//!   `operations.parquet`.
//! * [`SeriesWriter`] writes `series.parquet`, [`read_series`] reads it back.
//! * [`RunTables`] gives all these tables in memory, column by column.
//! * [`columns`] documents each column of all these files; the book's page is made from the same tables.
//! * [`fct_txt`] writes completed flows in the format of HPCC's simulator for ns-3; [`fct`] documents the columns. [`htsim_txt`] writes
//!   them in the format of htsim, see [`htsim`].
//! * [`PcapngWriter`] writes captures for Wireshark.
//! * [`write_timeline`] writes `trace.perfetto`; [`timeline`] documents its elements.
//! * [`ResultFolder`] puts these files, and any others of the caller, in place in one step. [`Owner`] identifies the process of temporary
//!   files.
//! * [`Comparison`] compares variants: `compare.json`, which [`comparison`] documents.
//! * [`PlanRecord`] is `plan.json`; [`plan`] documents the fields.
//! * [`SweepRecord`] is `sweep.json` and [`write_sweep`] writes `sweep.parquet`; [`sweep`] documents the fields.
//! * [`TestbedRecord`](testbed::TestbedRecord) compares one scenario in the simulator and on a test bed; [`testbed`] documents it.
//! * [`WhyRecord`](why::WhyRecord) is `why.json`; [`why`] documents the fields.
//! * [`quantity`] prints single quantities for people.
//!
//! **Architecture Invariant:** this crate does not depend on the simulator, scenarios or arguments. It reads no clock and prints
//! nothing; the same record gives the same bytes.

pub mod attack_sides;
pub mod by_section;
pub mod by_size;
pub mod by_transport;
mod column_values;
pub mod columns;
pub mod comparison;
pub mod fabric_map;
pub mod fast_forward;
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
mod nodes;
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

// `sample` refers to this crate by name, as other crates do.
#[cfg(test)]
extern crate self as clearway_report;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod sample_tables;

pub use attack_sides::{AttackSide, AttackSides, User};
pub use by_section::{FlowFigures, SectionClass, SectionSummary};
pub use by_size::{FlowsBySize, SizeBin, SizeClass, Tail};
pub use by_transport::TransportSummary;
pub use clearway_results::{
    FabricUse, OperationClass, OperationTotals, PacketCounts, ReductionTableUse,
};
pub use column_values::{ColumnData, ColumnValues};
pub use comparison::{ComparedRun, Comparison, Origin, Variant};
pub use fabric_map::{Bundle, FabricMap, MapBox, MapRow};
pub use fct::{FctRow, fct_txt};
pub use flows::{FlowTable, FlowsWriter, WriteFlowsError, read_flows, write_flows};
pub use folder::{FolderError, MissingFile, ResultFolder};
pub use htsim::{HtsimRow, HtsimTotals, htsim_txt};
pub use iterations::{read_iterations, write_iterations};
pub use jobs::{JobCounts, JobSummary};
pub use observed::{
    Curve, EventLog, Fairness, JainCourse, LinkFrames, LinkRow, Metric, NodeRole, NodeRow,
    RunObservations, SeriesRow, Subject, SubjectKind,
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
