//! `flows.parquet`: one row for each flow, or message of a flow. Rows are ordered by number, or, if flows are not listed before the run,
//! by completion.
//!
//! [`columns`](crate::columns) gives the meaning of each column.
//!
//! Times are signed because readers subtract them: in most data frames a difference of unsigned columns wraps around silently. Signed times
//! have room for 106 days. The key-value metadata holds `clearway.version`, `clearway.revision`, `clearway.scenario.name`,
//! `clearway.scenario.hash` and `clearway.scenario.seed`, and `clearway.fast-forward.estimated` if the run is not exact. Columns are
//! compressed with Snappy, in row groups of up to 65 536 rows.

mod read;

pub use read::{FlowTable, read_flows};

use crate::parquet_table::{
    Columns, Values, column, names, optional_column, properties, properties_of_run, schema,
    write_group,
};
use crate::record::{FlowRow, RunRecord, ScenarioIdentity};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;
use std::sync::Arc;
use thiserror::Error;

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "flows.parquet";

/// Maximum number of rows in a row group: a reader decodes at least this many at a time.
pub const ROWS_PER_GROUP: usize = 65_536;

pub(crate) const COLUMNS: &Columns<FlowRow> = &[
    column(
        "flow",
        Values::U32(|row| row.flow),
        "",
        "number of the flow in the run",
    ),
    column(
        "label",
        Values::U64(|row| row.label),
        "",
        "the workload's number for the flow or message; several sections may have the same",
    ),
    column("src", Values::U32(|row| row.src), "", "sending host"),
    column("dst", Values::U32(|row| row.dst), "", "receiving host"),
    column(
        "bytes",
        Values::U64(|row| row.bytes),
        "bytes",
        "payload of the message, without headers",
    ),
    optional_column(
        "start_ps",
        Values::OptionalPs(|row| row.start.map(|time| time.as_ps())),
        "ps",
        "never started",
        "when it was ready to send, since the start of the run",
    ),
    optional_column(
        "finish_ps",
        Values::OptionalPs(|row| row.finish.map(|time| time.as_ps())),
        "ps",
        "not completed",
        "when its last byte was acknowledged at the sender, since the start of the run",
    ),
    optional_column(
        "fct_ps",
        Values::OptionalPs(|row| row.fct().map(|span| span.as_ps())),
        "ps",
        "not completed",
        "flow completion time: `finish_ps` - `start_ps`",
    ),
    column(
        "ideal_fct_ps",
        Values::Ps(|row| row.ideal_fct.as_ps()),
        "ps",
        "the same alone on an idle network; 0 for a connection on which a job posts many messages",
    ),
    optional_column(
        "slowdown",
        Values::OptionalDouble(FlowRow::slowdown),
        "ratio",
        "not completed, or no ideal",
        "`fct_ps` / `ideal_fct_ps`",
    ),
    column(
        "packets",
        Values::U64(|row| row.packets),
        "packets",
        "data packets sent, retransmissions included",
    ),
    column(
        "retransmits",
        Values::U64(|row| row.retransmits),
        "packets",
        "data packets sent again",
    ),
    column(
        "marks",
        Values::U64(|row| row.marks),
        "packets",
        "acknowledgements that echoed a congestion mark",
    ),
    column(
        "probes",
        Values::U64(|row| row.probes),
        "packets",
        "probes sent",
    ),
    column(
        "timeouts",
        Values::U64(|row| row.timeouts),
        "timeouts",
        "retransmission timeouts that expired",
    ),
    optional_column(
        "attack",
        Values::OptionalU64(|row| row.attack),
        "",
        "no part of an attack",
        "label of the message that the flow is a piece of",
    ),
    column(
        SECTION,
        Values::Name(|row| row.section),
        "",
        "name of the `[[workload]]` section that the flow belongs to",
    ),
];

/// Name of the column of sections.
const SECTION: &str = "section";

/// Writes `flows.parquet` row by row; [`columns`](crate::columns) describes them.
///
/// It holds one row group at a time, so that memory does not grow with the number of flows.
pub struct FlowsWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    /// Names of sections.
    sections: Vec<ByteArray>,
    rows: Vec<FlowRow>,
}

impl<W: Write + Send> FlowsWriter<W> {
    /// Begins the file in `sink`, with rows of `sections`.
    ///
    /// # Errors
    /// If `sink` fails.
    pub fn new(
        sink: W,
        version: &str,
        revision: &str,
        scenario: &ScenarioIdentity,
        sections: &[String],
    ) -> std::result::Result<Self, WriteFlowsError> {
        Self::with_properties(sink, properties(version, revision, scenario), sections)
    }

    fn with_properties(
        sink: W,
        properties: WriterProperties,
        sections: &[String],
    ) -> std::result::Result<Self, WriteFlowsError> {
        let file =
            SerializedFileWriter::new(sink, schema("flows", COLUMNS)?, Arc::new(properties))?;
        Ok(Self {
            file,
            sections: names(sections),
            rows: Vec::new(),
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the sink fails, a time is beyond 2^63 ps, or the section of the row has no name.
    pub fn add(&mut self, row: FlowRow) -> std::result::Result<(), WriteFlowsError> {
        self.rows.push(row);
        if self.rows.len() == ROWS_PER_GROUP {
            write_group(&mut self.file, COLUMNS, &self.rows, &self.sections)?;
            self.rows.clear();
        }
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn finish(mut self) -> std::result::Result<W, WriteFlowsError> {
        if !self.rows.is_empty() {
            write_group(&mut self.file, COLUMNS, &self.rows, &self.sections)?;
        }
        Ok(self.file.into_inner()?)
    }
}

/// Writes the flows of `record` to `sink` as [`FlowsWriter`] does.
///
/// # Errors
/// If `sink` fails, or a time is beyond 2^63 ps.
pub fn write_flows(
    sink: impl Write + Send,
    record: &RunRecord,
) -> std::result::Result<(), WriteFlowsError> {
    let mut writer =
        FlowsWriter::with_properties(sink, properties_of_run(record), &record.sections)?;
    for row in &record.flows {
        writer.add(row.clone())?;
    }
    writer.finish()?;
    Ok(())
}

/// A Parquet file could not be written: the sink failed, or a time is too large for the file.
#[derive(Debug, Error)]
#[error("failed to write Parquet")]
pub struct WriteFlowsError(#[from] ParquetError);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_forward::FastForwardSummary;
    use crate::sample::{flow, incomplete_run, run};
    use clearway_testing::Folder;
    use clearway_units::{Span, Time};
    use parquet::basic::Compression;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use proptest::prelude::*;
    use std::error::Error as _;
    use std::fs::File;

    /// Writes `record` and opens the file with the reader of the Parquet library.
    fn written(test: &str, record: &RunRecord) -> SerializedFileReader<File> {
        let folder = Folder::new(&format!("report-{test}"));
        let path = folder.path().join(FILE_NAME);
        write_flows(File::create(&path).unwrap(), record).unwrap();
        SerializedFileReader::new(File::open(&path).unwrap()).unwrap()
    }

    /// Columns and values that the file must hold for `row`, spelt out independently of the table of columns.
    fn expected(row: &FlowRow) -> Vec<(&'static str, Field)> {
        let ps = |ps: u64| Field::Long(ps.try_into().unwrap());
        let or_null = |value: Option<Field>| value.unwrap_or(Field::Null);
        let fct = row
            .start
            .zip(row.finish)
            .map(|(start, finish)| finish - start);
        let slowdown = fct.map(|fct| fct.as_ps() as f64 / row.ideal_fct.as_ps() as f64);
        vec![
            ("flow", Field::UInt(row.flow)),
            ("label", Field::ULong(row.label)),
            ("src", Field::UInt(row.src)),
            ("dst", Field::UInt(row.dst)),
            ("bytes", Field::ULong(row.bytes)),
            ("start_ps", or_null(row.start.map(|time| ps(time.as_ps())))),
            (
                "finish_ps",
                or_null(row.finish.map(|time| ps(time.as_ps()))),
            ),
            ("fct_ps", or_null(fct.map(|fct| ps(fct.as_ps())))),
            ("ideal_fct_ps", ps(row.ideal_fct.as_ps())),
            ("slowdown", or_null(slowdown.map(Field::Double))),
            ("packets", Field::ULong(row.packets)),
            ("retransmits", Field::ULong(row.retransmits)),
            ("marks", Field::ULong(row.marks)),
            ("probes", Field::ULong(row.probes)),
            ("timeouts", Field::ULong(row.timeouts)),
            ("attack", or_null(row.attack.map(Field::ULong))),
            (
                "section",
                Field::Str(run().sections[row.section as usize].clone()),
            ),
        ]
    }

    fn assert_holds(reader: SerializedFileReader<File>, flows: &[FlowRow]) {
        let rows: Vec<_> = reader.into_iter().map(|row| row.unwrap()).collect();
        assert_eq!(rows.len(), flows.len());
        for (row, flow) in rows.into_iter().zip(flows) {
            let columns: Vec<(String, Field)> = row.into_columns();
            let columns: Vec<(&str, Field)> = columns
                .iter()
                .map(|(name, field)| (name.as_str(), field.clone()))
                .collect();
            assert_eq!(columns, expected(flow));
        }
    }

    #[test]
    fn every_value_is_read_back() {
        let mut record = incomplete_run();
        record.flows.push(FlowRow {
            flow: u32::MAX,
            label: u64::MAX,
            src: u32::MAX - 1,
            dst: 1 << 31,
            bytes: u64::MAX - 1,
            start: Some(Time::ZERO),
            finish: Some(Time::from_ps(i64::MAX as u64)),
            ideal_fct: Span::from_ps(3),
            packets: 1 << 63,
            retransmits: u64::MAX - 2,
            marks: u64::MAX - 3,
            probes: u64::MAX - 4,
            timeouts: u64::MAX - 5,
            attack: Some(u64::MAX - 6),
            section: 1,
        });
        assert_holds(written("every-value", &record), &record.flows);
    }

    #[test]
    fn the_schema_has_exact_types() {
        let reader = written("schema", &run());
        let mut text = Vec::new();
        let schema = reader.metadata().file_metadata().schema();
        parquet::schema::printer::print_schema(&mut text, schema);
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @"
        message flows {
          REQUIRED INT32 flow (INTEGER(32,false));
          REQUIRED INT64 label (INTEGER(64,false));
          REQUIRED INT32 src (INTEGER(32,false));
          REQUIRED INT32 dst (INTEGER(32,false));
          REQUIRED INT64 bytes (INTEGER(64,false));
          OPTIONAL INT64 start_ps (INTEGER(64,true));
          OPTIONAL INT64 finish_ps (INTEGER(64,true));
          OPTIONAL INT64 fct_ps (INTEGER(64,true));
          REQUIRED INT64 ideal_fct_ps (INTEGER(64,true));
          OPTIONAL DOUBLE slowdown;
          REQUIRED INT64 packets (INTEGER(64,false));
          REQUIRED INT64 retransmits (INTEGER(64,false));
          REQUIRED INT64 marks (INTEGER(64,false));
          REQUIRED INT64 probes (INTEGER(64,false));
          REQUIRED INT64 timeouts (INTEGER(64,false));
          OPTIONAL INT64 attack (INTEGER(64,false));
          REQUIRED BYTE_ARRAY section (STRING);
        }
        ");
    }

    #[test]
    fn the_file_says_where_it_comes_from() {
        let reader = written("metadata", &run());
        let metadata = reader.metadata().file_metadata();
        assert_eq!(
            metadata.created_by(),
            Some("clearway version 0.1.0 (build 0123abc)")
        );
        let pairs: Vec<_> = metadata
            .key_value_metadata()
            .unwrap()
            .iter()
            .map(|pair| (pair.key.as_str(), pair.value.as_deref().unwrap()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("clearway.version", "0.1.0"),
                ("clearway.revision", "0123abc"),
                ("clearway.scenario.name", "permutation-4"),
                ("clearway.scenario.hash", "89abcdef01234567"),
                ("clearway.scenario.seed", "1"),
            ]
        );
        // A run that is not exact says how far it may be off.
        let mut record = run();
        record.fast_forward = Some(FastForwardSummary {
            estimated: 0.0075,
            remembered_bytes: 1,
            ..FastForwardSummary::default()
        });
        let reader = written("estimated", &record);
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        let last = metadata.unwrap().last().unwrap();
        assert_eq!(last.key, "clearway.fast-forward.estimated");
        assert_eq!(last.value.as_deref(), Some("0.0075"));
    }

    #[test]
    fn row_groups_are_bounded_and_compressed() {
        let mut record = run();
        let fct = |number: u32| {
            (!number.is_multiple_of(3)).then(|| Span::from_us(u64::from(number) + 50))
        };
        record.flows = (0..ROWS_PER_GROUP as u32 + 1)
            .map(|number| flow(number, fct(number)))
            .collect();
        let reader = written("row-groups", &record);
        let metadata = reader.metadata().clone();
        let groups = metadata.row_groups();
        let rows: Vec<i64> = groups.iter().map(|group| group.num_rows()).collect();
        assert_eq!(rows, [65_536, 1]);
        for column in groups[0].columns() {
            assert_eq!(column.compression(), Compression::SNAPPY);
        }
        assert_holds(reader, &record.flows);
    }

    #[test]
    fn a_run_without_flows_gives_an_empty_table() {
        let mut record = run();
        record.flows.clear();
        assert_holds(written("no-flows", &record), &[]);
    }

    #[test]
    fn a_time_beyond_the_signed_range_is_refused() {
        let mut record = run();
        record.flows[0].ideal_fct = Span::MAX;
        let error = write_flows(Vec::new(), &record).unwrap_err();
        let source = error.source().unwrap().to_string();
        assert!(source.contains("`ideal_fct_ps`"), "{source}");
    }

    fn any_flow() -> impl Strategy<Value = FlowRow> {
        let times = (
            prop::option::of(0u64..1 << 50),
            prop::option::of(0u64..1 << 50),
            1u64..1 << 50,
        );
        (times, any::<[u32; 3]>(), any::<[u64; 7]>()).prop_map(
            |((start, fct, ideal), ids, counts)| {
                let [flow, src, dst] = ids;
                let [label, bytes, packets, retransmits, marks, probes, timeouts] = counts;
                let start = start.map(Time::from_ps);
                FlowRow {
                    flow,
                    label,
                    src,
                    dst,
                    bytes,
                    start,
                    finish: start
                        .zip(fct)
                        .map(|(start, fct)| start + Span::from_ps(fct)),
                    ideal_fct: Span::from_ps(ideal),
                    packets,
                    retransmits,
                    marks,
                    probes,
                    timeouts,
                    attack: None,
                    section: flow % 2,
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_flows_are_read_back(flows in prop::collection::vec(any_flow(), 0..50)) {
            let record = RunRecord { flows, ..run() };
            assert_holds(written("any-flows", &record), &record.flows);
        }
    }
}
