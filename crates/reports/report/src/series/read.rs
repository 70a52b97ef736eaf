//! Reading `series.parquet` back.

use super::FILE_NAME;
use crate::observed::Metric;
use crate::parquet_file::{Fault, ReadTableError, read_groups, required};
use clearway_units::Time;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use std::path::Path;

/// A row of the file, with the name of its subject.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesLine<'a> {
    /// The end of the interval.
    pub time: Time,
    /// Metric of the value.
    pub metric: Metric,
    /// Subject of the value: `run`, `leaf0-spine2`, `flow 7`.
    pub subject: &'a str,
    /// Value of the metric.
    pub value: f64,
}

/// Passes all rows that [`SeriesWriter`](super::SeriesWriter) wrote, in order, to `each`.
///
/// Metrics of later versions are skipped.
///
/// # Errors
/// If the file cannot be read, is damaged, holds something else, or has an impossible value.
pub fn read_series(
    path: impl AsRef<Path>,
    mut each: impl FnMut(SeriesLine<'_>),
) -> Result<(), ReadTableError> {
    let mut first = 0;
    read_groups(path.as_ref(), FILE_NAME, |group| {
        let times = required::<Int64Type>(group, "time_ps")?;
        let metrics = required::<ByteArrayType>(group, "metric")?;
        let subjects = required::<ByteArrayType>(group, "subject")?;
        let values = required::<DoubleType>(group, "value")?;
        for (place, &ps) in times.iter().enumerate() {
            let impossible = |what| Fault::Impossible(first + place, what);
            let ps = u64::try_from(ps).map_err(|_| impossible("`time_ps` is negative"))?;
            let metric = text(&metrics[place]).ok_or_else(|| impossible("`metric` is not text"))?;
            let subject =
                text(&subjects[place]).ok_or_else(|| impossible("`subject` is not text"))?;
            if let Some(metric) = Metric::named(metric) {
                each(SeriesLine {
                    time: Time::from_ps(ps),
                    metric,
                    subject,
                    value: values[place],
                });
            }
        }
        first += times.len();
        Ok(())
    })
}

fn text(value: &ByteArray) -> Option<&str> {
    std::str::from_utf8(value.data()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::{SeriesRow, Subject};
    use crate::record::ScenarioIdentity;
    use crate::series::SeriesWriter;
    use clearway_testing::Folder;
    use clearway_units::Span;
    use proptest::prelude::*;

    fn rows(count: u64) -> Vec<SeriesRow> {
        let subjects = [
            Subject::Run,
            Subject::Link(1),
            Subject::Flow(9),
            Subject::Node(2),
        ];
        let row = |number: u64| SeriesRow {
            time: Time::from_us(number),
            interval: Span::from_us(1),
            metric: Metric::ALL[number as usize % Metric::ALL.len()],
            subject: subjects[number as usize % 4],
            value: number as f64 / 2.0,
        };
        (0..count).map(row).collect()
    }

    fn bytes(rows: &[SeriesRow]) -> Vec<u8> {
        let scenario = ScenarioIdentity {
            name: "incast".into(),
            hash: "0123abcd".into(),
            seed: 7,
        };
        let name = |subject: Subject| {
            let link = |link: u32| ["a-b", "b-a"][link as usize].to_owned();
            subject.name(link, |node| format!("gpu{node}"))
        };
        let mut writer = SeriesWriter::new(Vec::new(), "1.0", "abc", &scenario).unwrap();
        writer.add(rows.iter().copied(), name).unwrap();
        writer.finish().unwrap()
    }

    fn read(folder: &Folder, bytes: &[u8]) -> Result<Vec<(SeriesRow, String)>, ReadTableError> {
        std::fs::write(folder.path().join(FILE_NAME), bytes).unwrap();
        let mut lines = Vec::new();
        read_series(folder.path(), |line| {
            let row = SeriesRow {
                time: line.time,
                interval: Span::from_us(1),
                metric: line.metric,
                subject: Subject::Run,
                value: line.value,
            };
            lines.push((row, line.subject.to_owned()));
        })?;
        Ok(lines)
    }

    #[test]
    fn what_was_written_is_read_back() {
        let folder = Folder::new("report-series-read");
        let rows = rows(super::super::ROWS_PER_GROUP as u64 + 5);
        let lines = read(&folder, &bytes(&rows)).unwrap();
        assert_eq!(lines.len(), rows.len());
        for (row, (line, subject)) in rows.iter().zip(&lines) {
            let expected = match row.subject {
                Subject::Run => "run",
                Subject::Link(_) => "b-a",
                Subject::Flow(_) => "flow 9",
                Subject::Node(_) => "gpu2",
            };
            let row = SeriesRow {
                subject: Subject::Run,
                ..*row
            };
            assert_eq!((&row, expected), (line, subject.as_str()));
        }
        assert!(read(&folder, &bytes(&[])).unwrap().is_empty());
    }

    #[test]
    fn flows_are_no_series() {
        let folder = Folder::new("report-series-flows");
        let mut flows = Vec::new();
        crate::flows::write_flows(&mut flows, &crate::sample::run()).unwrap();
        let error = read(&folder, &flows).unwrap_err().to_string();
        assert!(
            error.ends_with("holds something else: there is no column `time_ps`"),
            "{error}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn damaged_files_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let folder = Folder::new("report-series-damaged");
            let mut bytes = bytes(&rows(50));
            for (place, value) in changes {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            if let Ok(lines) = read(&folder, &bytes) {
                prop_assert!(lines.len() <= 50);
            }
        }
    }
}
