//! Results of runs as text for a terminal.
//!
//! * [`summary_table`] gives the summary of a run.
//! * [`comparison_table`], [`sweep_table`], [`tuning_table`], [`isolation_table`], [`isolation_matrix`], [`plan_table`],
//!   [`testbed_text`], [`why_text`] and [`why_comparison_text`] give the documents of [`clearway_report`].
//! * [`Table`] aligns columns.
//!
//! Cells, headings and sentences come from [`clearway_report`], so that pages show the same ones. This crate decides which cells
//! a terminal shows, in which order and how wide.
//!
//! **Architecture Invariant:** this crate depends on records and documents, not on the simulator or pages. It reads no clock and prints
//! nothing; the same record gives the same text.

mod comparison;
mod isolation;
mod plan;
#[cfg(test)]
#[path = "../../report/src/sample/mod.rs"]
mod sample;
#[cfg(test)]
#[path = "../../report/src/sample_tables/mod.rs"]
mod sample_tables;
mod summary;
mod sweep;
mod table;
mod testbed;
mod why;

pub use comparison::comparison_table;
pub use isolation::{isolation_matrix, isolation_table};
pub use plan::plan_table;
pub use summary::summary_table;
pub use sweep::{sweep_table, tuning_table};
pub use table::{Align, Table};
pub use testbed::testbed_text;
pub use why::{why_comparison_text, why_text};
