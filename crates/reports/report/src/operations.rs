//! `operations.parquet`: one row for each completed operation of a scale-up run, by GPU and number. Runs of packets have no rows.
//!
//! [`columns`](crate::columns) gives the meaning of each column.
//!
//! Types, metadata and compression are the same as in [`flows`](crate::flows).

use crate::flows::WriteFlowsError;
use crate::parquet_table::{
    Columns, Values, column, names, optional_column, properties_of_run, schema, write_group,
};
use crate::record::{OperationResults, OperationRow, RunRecord};
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;
use std::sync::Arc;

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "operations.parquet";

/// The most rows of a row group.
const ROWS_PER_GROUP: usize = 65_536;

/// An operation with the context that its columns need.
pub(crate) struct Row {
    operation: OperationRow,
    cycle_ps: u64,
}

impl Row {
    pub(crate) fn from_operation(&operation: &OperationRow, results: &OperationResults) -> Self {
        Self {
            operation,
            cycle_ps: results.totals.cycle_ps,
        }
    }

    /// The target, if its kind matches `is_group`.
    fn target(&self, is_group: bool) -> Option<u32> {
        let OperationRow { kind, target, .. } = self.operation;
        (kind.goes_to_group() == is_group).then_some(target)
    }

    fn picoseconds(&self, cycle: u64) -> u64 {
        cycle.saturating_mul(self.cycle_ps)
    }
}

pub(crate) const COLUMNS: &Columns<Row> = &[
    column(
        "gpu",
        Values::U32(|row| row.operation.gpu),
        "",
        "GPU that initiated the operation",
    ),
    column(
        "number",
        Values::U32(|row| row.operation.number),
        "",
        "number of the operation at that GPU, in the order of sending",
    ),
    column(
        "section",
        Values::Name(|row| row.operation.section),
        "",
        "name of the `[[workload]]` section that posted it",
    ),
    column(
        "kind",
        Values::Text(|row| row.operation.kind.name().into()),
        "",
        "`multicast write`, `reduction`, `write` or `read`",
    ),
    optional_column(
        "group",
        Values::OptionalU32(|row| row.target(true)),
        "",
        "unicast",
        "multicast group that it went to",
    ),
    optional_column(
        "destination",
        Values::OptionalU32(|row| row.target(false)),
        "",
        "multicast",
        "GPU that it went to",
    ),
    column(
        "posted_ps",
        Values::Ps(|row| row.picoseconds(row.operation.posted_cycle)),
        "ps",
        "when it was posted, since the start of the run",
    ),
    column(
        "sent_ps",
        Values::Ps(|row| row.picoseconds(row.operation.sent_cycle)),
        "ps",
        "when its head flit left the GPU, since the start of the run",
    ),
    column(
        "completed_ps",
        Values::Ps(|row| row.picoseconds(row.operation.completed_cycle)),
        "ps",
        "when its response was there, since the start of the run",
    ),
    column(
        "latency_cycles",
        Values::U64(|row| row.operation.latency_cycles()),
        "cycles",
        "cycles from `sent_ps` to `completed_ps`",
    ),
];

/// Writes the operations `results` of `record` to `sink`; [`columns`](crate::columns) describes them.
///
/// # Errors
/// If `sink` fails, a time is beyond 2^63 ps, or the section of an operation has no label.
pub fn write_operations(
    sink: impl Write + Send,
    record: &RunRecord,
    results: &OperationResults,
) -> Result<(), WriteFlowsError> {
    let properties = properties_of_run(record);
    let schema = schema("operations", COLUMNS)?;
    let mut file = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
    let sections = names(&results.sections);
    for operations in results.rows.chunks(ROWS_PER_GROUP) {
        let rows: Vec<Row> = operations
            .iter()
            .map(|row| Row::from_operation(row, results))
            .collect();
        write_group(&mut file, COLUMNS, &rows, &sections)?;
    }
    file.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::scale_up_run;
    use clearway_testing::Folder;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use std::fs::File;

    /// Writes `record` and opens the file with the reader of the Parquet library.
    fn written(test: &str, record: &RunRecord) -> SerializedFileReader<File> {
        let folder = Folder::new(&format!("report-{test}"));
        let path = folder.path().join(FILE_NAME);
        let results = record.operations.as_ref().unwrap();
        write_operations(File::create(&path).unwrap(), record, results).unwrap();
        SerializedFileReader::new(File::open(&path).unwrap()).unwrap()
    }

    #[test]
    fn every_operation_is_read_back() {
        let record = scale_up_run();
        let results = record.operations.as_ref().unwrap();
        let read = written("operations", &record).into_iter();
        let read: Vec<_> = read.map(|row| row.unwrap().into_columns()).collect();
        assert_eq!(read.len(), results.rows.len());
        for (columns, row) in read.into_iter().zip(&results.rows) {
            let either = |is| match is {
                true => Field::UInt(row.target),
                false => Field::Null,
            };
            let is_group = ["multicast write", "reduction"].contains(&row.kind.name());
            let ps = |cycle| Field::Long(i64::try_from(cycle * 640).unwrap());
            let expected = [
                ("gpu", Field::UInt(row.gpu)),
                ("number", Field::UInt(row.number)),
                (
                    "section",
                    Field::Str(results.sections[row.section as usize].clone()),
                ),
                ("kind", Field::Str(row.kind.name().into())),
                ("group", either(is_group)),
                ("destination", either(!is_group)),
                ("posted_ps", ps(row.posted_cycle)),
                ("sent_ps", ps(row.sent_cycle)),
                ("completed_ps", ps(row.completed_cycle)),
                (
                    "latency_cycles",
                    Field::ULong(row.completed_cycle - row.sent_cycle),
                ),
            ];
            assert_eq!(columns, expected.map(|(name, field)| (name.into(), field)));
        }
    }

    #[test]
    fn the_schema_has_exact_types() {
        let reader = written("operations-schema", &scale_up_run());
        let mut text = Vec::new();
        let schema = reader.metadata().file_metadata().schema();
        parquet::schema::printer::print_schema(&mut text, schema);
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @"
        message operations {
          REQUIRED INT32 gpu (INTEGER(32,false));
          REQUIRED INT32 number (INTEGER(32,false));
          REQUIRED BYTE_ARRAY section (STRING);
          REQUIRED BYTE_ARRAY kind (STRING);
          OPTIONAL INT32 group (INTEGER(32,false));
          OPTIONAL INT32 destination (INTEGER(32,false));
          REQUIRED INT64 posted_ps (INTEGER(64,true));
          REQUIRED INT64 sent_ps (INTEGER(64,true));
          REQUIRED INT64 completed_ps (INTEGER(64,true));
          REQUIRED INT64 latency_cycles (INTEGER(64,false));
        }
        ");
    }
}
