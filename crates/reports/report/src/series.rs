//! `series.parquet`: curves over time, one row for each value.
//!
//! [`columns`](crate::columns) gives the meaning of each column and lists the metrics.
//!
//! Rows are written during the run, ordered by time. The interval grows as a run gets long, and is longer where nothing happened, so
//! weigh means by `interval_ps`. Links and flows have rows only while they are followed. The metadata is the same as in
//! [`flows.parquet`](crate::flows).

mod read;

pub use read::{SeriesLine, read_series};

use crate::flows::WriteFlowsError;
use crate::observed::{SeriesRow, Subject};
use crate::parquet_table::{Columns, Values, column, properties, schema, write_group};
use crate::record::{RunRecord, ScenarioIdentity};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "series.parquet";

/// Maximum number of rows that wait to be written.
pub const ROWS_PER_GROUP: usize = 65_536;

/// A sample with the place of its subject's name.
pub(crate) struct Row {
    row: SeriesRow,
    subject: u32,
}

pub(crate) const COLUMNS: &Columns<Row> = &[
    column(
        "time_ps",
        Values::Ps(|row| row.row.time.as_ps()),
        "ps",
        "the end of the interval, since the start of the run",
    ),
    column(
        "interval_ps",
        Values::Ps(|row| row.row.interval.as_ps()),
        "ps",
        "length of the interval",
    ),
    column(
        "metric",
        Values::Text(|row| row.row.metric.name().into()),
        "",
        "name of a metric; the unit of its values is its last part",
    ),
    column(
        "subject",
        Values::Name(|row| row.subject),
        "",
        "of whom: `run`, a link such as `leaf0-spine2`, `flow 7`, or a node such as `gpu3`",
    ),
    column(
        "value",
        Values::Double(|row| row.row.value),
        "the metric's",
        "value of the metric",
    ),
];

/// Samples of a run, and the names of their subjects.
pub(crate) fn named(samples: &[SeriesRow], record: &RunRecord) -> (Vec<Row>, Vec<ByteArray>) {
    let observed = record.observed.as_ref();
    let mut subjects = Subjects::default();
    let name = |subject| observed.map_or_else(String::new, |seen| seen.name_of(subject));
    let rows = samples.iter().map(|&row| subjects.row(row, name)).collect();
    (rows, subjects.names)
}

/// Subjects and the places of their names.
#[derive(Default)]
struct Subjects {
    places: BTreeMap<Subject, u32>,
    names: Vec<ByteArray>,
}

impl Subjects {
    /// A sample with the place of its subject's name. `name` is called once for each subject.
    fn row(&mut self, row: SeriesRow, name: impl Fn(Subject) -> String) -> Row {
        let names = &mut self.names;
        let subject = *self.places.entry(row.subject).or_insert_with(|| {
            names.push(name(row.subject).into_bytes().into());
            names.len() as u32 - 1
        });
        Row { row, subject }
    }
}

/// Writes `series.parquet` row by row.
pub struct SeriesWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    waiting: Vec<Row>,
    subjects: Subjects,
}

impl<W: Write + Send> SeriesWriter<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// If `sink` fails.
    pub fn new(
        sink: W,
        version: &str,
        revision: &str,
        scenario: &ScenarioIdentity,
    ) -> std::result::Result<Self, WriteFlowsError> {
        let properties = Arc::new(properties(version, revision, scenario));
        Ok(Self {
            file: SerializedFileWriter::new(sink, schema("series", COLUMNS)?, properties)?,
            waiting: Vec::new(),
            subjects: Subjects::default(),
        })
    }

    /// Adds rows. `name` returns the name of a subject and is called once for each subject.
    ///
    /// # Errors
    /// If the sink fails, or a time is beyond 2^63 ps.
    pub fn add(
        &mut self,
        rows: impl IntoIterator<Item = SeriesRow>,
        name: impl Fn(Subject) -> String,
    ) -> std::result::Result<(), WriteFlowsError> {
        for row in rows {
            self.waiting.push(self.subjects.row(row, &name));
            if self.waiting.len() == ROWS_PER_GROUP {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Ends the file; returns the sink.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self) -> std::result::Result<W, WriteFlowsError> {
        if !self.waiting.is_empty() {
            self.write_group()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn write_group(&mut self) -> Result<()> {
        write_group(&mut self.file, COLUMNS, &self.waiting, &self.subjects.names)?;
        self.waiting.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Metric;
    use clearway_testing::Folder;
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
        let folder = Folder::new("report-series");
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
