//! `series.parquet`: curves over time, one row for each value.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `time_ps` | int64 | the end of the interval, in picoseconds since the start of the run |
//! | `interval_ps` | int64 | its length |
//! | `metric` | text | the name of a [`Metric`](crate::Metric); the unit is its last part |
//! | `subject` | text | of whom: `run`, a link such as `leaf0-spine2`, `flow 7`, or a node such as `gpu3` |
//! | `value` | double | how much |
//!
//! [`Metric`](crate::Metric) has the names of metrics, and says what each is.
//!
//! Rows are written while the run goes on, ordered by time. The interval grows as a run gets long, and is longer where nothing
//! happened, so weigh means by `interval_ps`. Links and flows have rows only while they are followed. The metadata is that of
//! [`flows.parquet`](crate::flows).

mod read;

pub use read::{SeriesLine, read_series};

use crate::flows::WriteFlowsError;
use crate::observed::{SeriesRow, Subject};
use crate::parquet_table::properties;
use crate::record::ScenarioIdentity;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "series.parquet";

/// The most rows that wait to be written.
pub const ROWS_PER_GROUP: usize = 65_536;

/// Writes `series.parquet` row by row.
pub struct SeriesWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    waiting: Vec<SeriesRow>,
    names: BTreeMap<Subject, ByteArray>,
}

impl<W: Write + Send> SeriesWriter<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// If `sink` does.
    pub fn new(
        sink: W,
        version: &str,
        revision: &str,
        scenario: &ScenarioIdentity,
    ) -> std::result::Result<Self, WriteFlowsError> {
        let fields = [
            ("time_ps", PhysicalType::INT64, None),
            ("interval_ps", PhysicalType::INT64, None),
            (
                "metric",
                PhysicalType::BYTE_ARRAY,
                Some(LogicalType::String),
            ),
            (
                "subject",
                PhysicalType::BYTE_ARRAY,
                Some(LogicalType::String),
            ),
            ("value", PhysicalType::DOUBLE, None),
        ];
        let field = |(name, physical, logical)| {
            Type::primitive_type_builder(name, physical)
                .with_logical_type(logical)
                .with_repetition(Repetition::REQUIRED)
                .build()
                .map(Arc::new)
        };
        let fields = fields.into_iter().map(field).collect::<Result<_>>()?;
        let schema = Type::group_type_builder("series")
            .with_fields(fields)
            .build()?;
        let properties = Arc::new(properties(version, revision, scenario));
        Ok(Self {
            file: SerializedFileWriter::new(sink, Arc::new(schema), properties)?,
            waiting: Vec::new(),
            names: BTreeMap::new(),
        })
    }

    /// Adds rows. `name` says how a subject is called, and is asked once for each.
    ///
    /// # Errors
    /// If the sink does, or a time is beyond 2^63 ps.
    pub fn add(
        &mut self,
        rows: impl IntoIterator<Item = SeriesRow>,
        name: impl Fn(Subject) -> String,
    ) -> std::result::Result<(), WriteFlowsError> {
        for row in rows {
            self.names
                .entry(row.subject)
                .or_insert_with(|| name(row.subject).into_bytes().into());
            self.waiting.push(row);
            if self.waiting.len() == ROWS_PER_GROUP {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Ends the file; gives back what it was written to.
    ///
    /// # Errors
    /// If the sink does.
    pub fn finish(mut self) -> std::result::Result<W, WriteFlowsError> {
        if !self.waiting.is_empty() {
            self.write_group()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn write_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        let picoseconds = |ps: u64| {
            i64::try_from(ps).map_err(|_| {
                ParquetError::General(format!("{ps} ps is more than a signed number holds"))
            })
        };
        let times: Vec<i64> = rows
            .iter()
            .map(|row| picoseconds(row.time.as_ps()))
            .collect::<Result<_>>()?;
        let intervals: Vec<i64> = rows
            .iter()
            .map(|row| picoseconds(row.interval.as_ps()))
            .collect::<Result<_>>()?;
        let metrics: Vec<ByteArray> = rows.iter().map(|row| row.metric.name().into()).collect();
        let subjects: Vec<ByteArray> = rows
            .iter()
            .map(|row| self.names[&row.subject].clone())
            .collect();
        let values: Vec<f64> = rows.iter().map(|row| row.value).collect();
        let mut group = self.file.next_row_group()?;
        column::<Int64Type>(&mut group, &times)?;
        column::<Int64Type>(&mut group, &intervals)?;
        column::<ByteArrayType>(&mut group, &metrics)?;
        column::<ByteArrayType>(&mut group, &subjects)?;
        column::<DoubleType>(&mut group, &values)?;
        group.close()?;
        self.waiting = rows;
        self.waiting.clear();
        Ok(())
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
) -> Result<()> {
    let mut writer = group.next_column()?.expect("the schema has every column");
    writer.typed::<T>().write_batch(values, None, None)?;
    writer.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Metric;
    use crate::sample::TestFolder;
    use clearway_units::{Span, Time};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use std::fs::File;

    const SUBJECTS: [Subject; 4] = [
        Subject::Run,
        Subject::Link(1),
        Subject::Flow(9),
        Subject::Node(2),
    ];

    #[test]
    fn rows_are_read_back_in_order_and_in_groups() {
        let scenario = ScenarioIdentity {
            name: "incast".into(),
            hash: "0123abcd".into(),
            seed: 7,
        };
        let folder = TestFolder::new("series");
        let path = folder.path().join(FILE_NAME);
        let file = File::create(&path).unwrap();
        let mut writer = SeriesWriter::new(file, "1.0", "abc", &scenario).unwrap();
        let rows = (0..ROWS_PER_GROUP as u64 + 5).map(|number| SeriesRow {
            time: Time::from_us(number),
            interval: Span::from_us(1),
            metric: Metric::ALL[number as usize % Metric::ALL.len()],
            subject: SUBJECTS[number as usize % 4],
            value: number as f64 / 2.0,
        });
        let name = |subject: Subject| {
            subject.name(|link| format!("link{link}"), |node| format!("gpu{node}"))
        };
        writer.add(rows, name).unwrap();
        writer.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let rows: Vec<_> = reader
            .into_iter()
            .map(std::result::Result::unwrap)
            .collect();
        assert_eq!(rows.len(), ROWS_PER_GROUP + 5);
        let row = &rows[ROWS_PER_GROUP + 1];
        let number = ROWS_PER_GROUP as i64 + 1;
        assert_eq!(row.get_long(0).unwrap(), number * 1_000_000);
        assert_eq!(row.get_long(1).unwrap(), 1_000_000);
        let metric = Metric::ALL[number as usize % Metric::ALL.len()];
        assert_eq!(row.get_string(2).unwrap(), metric.name());
        let subject = ["run", "link1", "flow 9", "gpu2"][number as usize % 4];
        assert_eq!(row.get_string(3).unwrap(), subject);
        assert_eq!(row.get_double(4).unwrap(), number as f64 / 2.0);
    }
}
