//! What a finished run leaves behind: `summary.json`, `flows.parquet` and the tables on the terminal.
//!
//! The command line fills a [`RunRecord`] from a run; everything here only formats it.
//!
//! * [`Summary`] is `summary.json`; [`summary`] documents each of its fields.
//!
//! **Architecture Invariant:** this crate knows nothing of the simulator, of scenarios or of arguments. It reads no clock and prints
//! nothing itself; the same record gives the same bytes.

pub mod quantity;
mod table;

#[cfg(test)]

pub use table::{Align, Table};
