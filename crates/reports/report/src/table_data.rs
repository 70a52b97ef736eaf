//! Tables of runs and sweeps in memory, with the columns of their Parquet files: for callers that do not want a file.
//!
//! Columns are laid out as in Arrow; see [`ColumnData`].

use crate::column_values::ColumnData;
use crate::columns::{ColumnInfo, columns_of};
use crate::observed::SeriesRow;
use crate::parquet_table::{Columns, in_memory, names};
use crate::record::RunRecord;
use crate::sweep::{self, SweepRecord};
use crate::{flows, iterations, links, operations, series};
use parquet::data_type::ByteArray;
use std::ops::Range;

/// The most rows of a [batch](RunTables::batch).
pub const ROWS_PER_BATCH: usize = 65_536;

/// Table of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableName {
    /// Rows of `flows.parquet`.
    Flows,
    /// Rows of `iterations.parquet`.
    Iterations,
    /// Totals of links.
    Links,
    /// Rows of `operations.parquet`.
    Operations,
    /// Rows of `series.parquet`.
    Series,
}

impl TableName {
    /// All tables.
    pub const ALL: [Self; 5] = [
        Self::Flows,
        Self::Iterations,
        Self::Links,
        Self::Operations,
        Self::Series,
    ];

    /// The name as a user types it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Iterations => "iterations",
            Self::Links => "links",
            Self::Operations => "operations",
            Self::Series => "series",
        }
    }

    /// The columns in their order.
    pub fn columns(self) -> Vec<ColumnInfo> {
        match self {
            Self::Flows => columns_of(flows::COLUMNS),
            Self::Iterations => columns_of(iterations::COLUMNS),
            Self::Links => columns_of(links::COLUMNS),
            Self::Operations => columns_of(operations::COLUMNS),
            Self::Series => columns_of(series::COLUMNS),
        }
    }
}

/// All tables of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunTables<'a> {
    /// Record of the run, with the rows of its flows.
    pub record: &'a RunRecord,
    /// Samples, in order of arrival.
    pub samples: &'a [SeriesRow],
}

/// Value that does not fit a table, such as a time beyond 2^63 ps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TableDataError(String);

type Batch = Result<Vec<ColumnData>, TableDataError>;

impl RunTables<'_> {
    /// Number of rows.
    pub fn rows(&self, table: TableName) -> usize {
        let record = self.record;
        match table {
            TableName::Flows => record.flows.len(),
            TableName::Iterations => record.jobs.iter().map(|job| job.times.len()).sum(),
            TableName::Links => record.observed.as_ref().map_or(0, |seen| seen.links.len()),
            TableName::Operations => record.operations.as_ref().map_or(0, |done| done.rows.len()),
            TableName::Series => self.samples.len(),
        }
    }

    /// The rows `range` of a table, column by column.
    ///
    /// # Errors
    /// If a value does not fit its column.
    ///
    /// # Panics
    /// If the table does not have these rows.
    pub fn batch(&self, table: TableName, range: Range<usize>) -> Batch {
        let record = self.record;
        let (first, count) = (range.start, range.len());
        match table {
            TableName::Flows => {
                let sections = names(&record.sections);
                batch(flows::COLUMNS, &record.flows[range], &sections)
            }
            TableName::Iterations => {
                let rows: Vec<_> = iterations::rows(record).skip(first).take(count).collect();
                batch(iterations::COLUMNS, &rows, &names(&record.sections))
            }
            TableName::Links => {
                let observed = record.observed.iter();
                let rows = observed.flat_map(links::rows).skip(first).take(count);
                batch(links::COLUMNS, &rows.collect::<Vec<_>>(), &[])
            }
            TableName::Operations => {
                let Some(results) = &record.operations else {
                    return batch(operations::COLUMNS, &[], &[]);
                };
                let rows = results.rows[range].iter();
                let rows: Vec<_> = rows
                    .map(|row| operations::Row::from_operation(row, results))
                    .collect();
                batch(operations::COLUMNS, &rows, &names(&results.sections))
            }
            TableName::Series => {
                let (rows, subjects) = series::named(&self.samples[range], record);
                batch(series::COLUMNS, &rows, &subjects)
            }
        }
    }
}

/// Table of a sweep: rows of `sweep.parquet`.
impl SweepRecord {
    /// Columns of the table in their order.
    pub fn columns(&self) -> Vec<ColumnInfo> {
        columns_of(&sweep::columns(self))
    }

    /// The rows `range`, column by column.
    ///
    /// # Errors
    /// If a value does not fit its column.
    ///
    /// # Panics
    /// If the table does not have these rows.
    pub fn batch(&self, range: Range<usize>) -> Batch {
        let rows = sweep::rows(self, &self.runs[range]);
        batch(&sweep::columns(self), &rows, &[])
    }
}

fn batch<R>(columns: &Columns<R>, rows: &[R], names: &[ByteArray]) -> Batch {
    let batch = in_memory(columns, rows, names);
    batch.map_err(|error| TableDataError(error.to_string()))
}

#[cfg(test)]
mod tests;
