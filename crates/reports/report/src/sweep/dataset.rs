//! `sweep.parquet`: one row for each run of a sweep, in the order of the plan.
//!
//! [`columns`](crate::columns) gives the meaning of each column. All columns but the last three depend only on the plan and the program.

use super::{SweepMeasure, SweepRecord, SweepRun};
use crate::flows::WriteFlowsError;
use crate::parquet_table::{
    Column, Values, column, optional_column, properties_of, schema, write_group,
};
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;
use std::sync::Arc;

/// The name of the file in the folder of a sweep.
pub const FILE_NAME: &str = "sweep.parquet";

/// The most rows of a row group.
const ROWS_PER_GROUP: usize = 65_536;

/// A run with the sweep that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    sweep: &'a SweepRecord,
    run: &'a SweepRun,
}

impl<'a> Row<'a> {
    fn axis_text(&self, axis: usize) -> &'a str {
        &self.sweep.axes[axis].values[self.run.place[axis] as usize]
    }

    fn axis_number(&self, axis: usize) -> Option<f64> {
        let numbers = self.sweep.axes[axis].numbers.as_ref()?;
        Some(numbers.values[self.run.place[axis] as usize])
    }
}

/// Column of an axis whose values are all quantities; it has the key's name.
fn axis_number<'a>() -> Column<Row<'a>> {
    column(
        "KEY",
        Values::DoubleOf(0, |row, axis| row.axis_number(axis).unwrap_or(f64::NAN)),
        "the key's",
        "value of the axis KEY in the base unit of the key; if not all values are quantities, text as the plan gives it",
    )
}

/// Column of an axis as text.
fn axis_text<'a>() -> Column<Row<'a>> {
    column(
        "KEY.text",
        Values::TextOf(0, |row, axis| row.axis_text(axis).into()),
        "",
        "beside numbers: the value as the plan gives it",
    )
}

fn measure<'a>() -> Column<Row<'a>> {
    optional_column(
        "MEASURE",
        Values::OptionalDoubleOf(0, |row, measure| row.run.values[measure]),
        "the measure's",
        "the run has none",
        "value of the measure MEASURE, such as `slowdown.p99`: those of `compare.json`",
    )
}

fn identity<'a>() -> [Column<Row<'a>>; 3] {
    [
        column(
            "seed",
            Values::U64(|row| row.run.seed),
            "",
            "seed of the run",
        ),
        column(
            "key",
            Values::Text(|row| row.run.key.as_str().into()),
            "",
            "name of the run's folder in `runs`",
        ),
        column(
            "status",
            Values::Text(|row| row.run.status.name().into()),
            "",
            "`complete`, `incomplete`, `interrupted` or `failed`",
        ),
    ]
}

fn costs<'a>() -> [Column<Row<'a>>; 3] {
    [
        optional_column(
            "wall_seconds",
            Values::OptionalDouble(|row| row.run.wall_seconds),
            "s",
            "the run failed",
            "wall time of the run",
        ),
        optional_column(
            "cpu_seconds",
            Values::OptionalDouble(|row| row.run.cpu_seconds),
            "s",
            "the run failed",
            "CPU time of the run",
        ),
        optional_column(
            "peak_rss_bytes",
            Values::OptionalU64(|row| row.run.peak_rss_bytes),
            "bytes",
            "the run failed",
            "the most memory that the run held",
        ),
    ]
}

/// Columns of all sweeps; columns that depend on the plan have names in capitals.
pub(crate) fn kinds_of_columns<'a>() -> Vec<Column<Row<'a>>> {
    let of_axes = [axis_number(), axis_text()].into_iter();
    let columns = of_axes.chain(identity()).chain([measure()]).chain(costs());
    columns.collect()
}

/// Columns of a sweep.
pub(crate) fn columns<'a>(sweep: &SweepRecord) -> Vec<Column<Row<'a>>> {
    let mut columns = Vec::new();
    for (place, axis) in sweep.axes.iter().enumerate() {
        if let Some(numbers) = &axis.numbers {
            let column = axis_number().called(&axis.key, place);
            columns.push(column.in_unit(&numbers.unit));
            columns.push(axis_text().called(format!("{}.text", axis.key), place));
        } else {
            columns.push(axis_text().called(&axis.key, place));
        }
    }
    columns.extend(identity());
    let measures = sweep.measures.iter().enumerate();
    let measures =
        measures.map(|(place, of)| measure().called(&of.name, place).in_unit(unit_name(of)));
    columns.extend(measures);
    columns.extend(costs());
    columns
}

/// Rows of some runs of a sweep.
pub(crate) fn rows<'a>(sweep: &'a SweepRecord, runs: &'a [SweepRun]) -> Vec<Row<'a>> {
    runs.iter().map(|run| Row { sweep, run }).collect()
}

/// Writes the runs of `sweep` to `sink`.
///
/// # Errors
/// If `sink` fails.
pub fn write_sweep(
    sink: impl Write + Send,
    sweep: &SweepRecord,
) -> std::result::Result<(), WriteFlowsError> {
    let columns = columns(sweep);
    let units = sweep.axes.iter().filter_map(|axis| {
        let numbers = axis.numbers.as_ref()?;
        Some((axis.key.as_str(), numbers.unit.clone()))
    });
    let of_measures = sweep.measures.iter();
    let of_measures = of_measures.map(|measure| (measure.name.as_str(), unit_name(measure)));
    let units = units.chain(of_measures);
    let units = units.map(|(name, unit)| (format!("clearway.unit.{name}"), unit));
    let name = ("clearway.sweep.name".to_owned(), sweep.name.clone());
    let metadata = std::iter::once(name).chain(units);
    let properties = properties_of(&sweep.version, &sweep.revision, metadata);
    let schema = schema("sweep", &columns)?;
    let mut file = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
    for runs in sweep.runs.chunks(ROWS_PER_GROUP) {
        write_group(&mut file, &columns, &rows(sweep, runs), &[])?;
    }
    file.close()?;
    Ok(())
}

/// Name of the unit of a measure in `sweep.json`.
fn unit_name(measure: &SweepMeasure) -> String {
    match serde_json::to_value(measure.unit) {
        Ok(serde_json::Value::String(name)) => name,
        _ => unreachable!("units are words"),
    }
}
