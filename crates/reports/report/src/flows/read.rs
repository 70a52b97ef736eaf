//! Reading `flows.parquet` back.

use super::{FILE_NAME, SECTION};
use crate::parquet_file::{Fault, ReadTableError, has_column, optional, read_groups, required};
use crate::record::FlowRow;
use clearway_units::{Span, Time};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::reader::RowGroupReader;
use std::path::Path;

/// Flows of a file, and the names of their sections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowTable {
    /// Names of the sections that have flows, in the order of their first flows; for a file without sections, one empty name.
    pub sections: Vec<String>,
    /// The flows; their [sections](FlowRow::section) are places in `sections`.
    pub flows: Vec<FlowRow>,
}

impl FlowTable {
    /// Place of a section's name.
    fn section(&mut self, name: &ByteArray) -> Result<u32, &'static str> {
        let name = name.as_utf8().map_err(|_| "`section` is not text")?;
        let known = self.sections.iter().position(|known| known == name);
        Ok(known.unwrap_or_else(|| {
            self.sections.push(name.to_owned());
            self.sections.len() - 1
        }) as u32)
    }
}

/// Reads the flows that [`write_flows`](super::write_flows) wrote, from a result folder or a `flows.parquet`.
///
/// Columns of later versions are skipped. Columns that follow from others (`fct_ps`, `slowdown`) are computed, not read.
///
/// # Errors
/// If the file cannot be read, is damaged, holds something else, or has an impossible value.
pub fn read_flows(path: impl AsRef<Path>) -> Result<FlowTable, ReadTableError> {
    let mut table = FlowTable::default();
    read_groups(path.as_ref(), FILE_NAME, |group| {
        let mut columns = Columns::from_row_group(group)?;
        for row in 0..columns.rows() {
            let flow = columns.flow(row).and_then(|flow| {
                let section = table.section(&columns.section[row])?;
                Ok(FlowRow { section, ..flow })
            });
            let flow = flow.map_err(|what| Fault::Impossible(table.flows.len(), what))?;
            table.flows.push(flow);
        }
        Ok(())
    })?;
    Ok(table)
}

/// The stored values of a row group; unsigned integers are still signed integers with the same bits.
struct Columns {
    ids: [Vec<i32>; 3],
    counts: [Vec<i64>; 7],
    ideal: Vec<i64>,
    start: Vec<Option<i64>>,
    finish: Vec<Option<i64>>,
    attack: Vec<Option<i64>>,
    section: Vec<ByteArray>,
}

impl Columns {
    fn from_row_group(group: &dyn RowGroupReader) -> Result<Self, Fault> {
        let mut ids = [const { Vec::new() }; 3];
        for (values, name) in ids.iter_mut().zip(["flow", "src", "dst"]) {
            *values = required::<Int32Type>(group, name)?;
        }
        let mut counts = [const { Vec::new() }; 7];
        let names = [
            "label",
            "bytes",
            "packets",
            "retransmits",
            "marks",
            "probes",
            "timeouts",
        ];
        for (values, name) in counts.iter_mut().zip(names) {
            *values = required::<Int64Type>(group, name)?;
        }
        let ideal = required::<Int64Type>(group, "ideal_fct_ps")?;
        // Files of older versions have no sections.
        let section = match has_column(group, SECTION) {
            true => required::<ByteArrayType>(group, SECTION)?,
            false => vec![ByteArray::from(""); ideal.len()],
        };
        Ok(Self {
            ids,
            counts,
            ideal,
            section,
            start: optional::<Int64Type>(group, "start_ps")?,
            finish: optional::<Int64Type>(group, "finish_ps")?,
            attack: optional::<Int64Type>(group, "attack")?,
        })
    }

    fn rows(&self) -> usize {
        self.ideal.len()
    }

    /// The flow of a row, without its section.
    fn flow(&mut self, row: usize) -> Result<FlowRow, &'static str> {
        let [flow, src, dst] = self.ids.each_ref().map(|ids| ids[row].cast_unsigned());
        let [label, bytes, packets, retransmits, marks, probes, timeouts] = self
            .counts
            .each_ref()
            .map(|counts| counts[row].cast_unsigned());
        let time = |ps: Option<i64>| ps.map(u64::try_from).transpose();
        let start = time(self.start[row]).map_err(|_| "`start_ps` is negative")?;
        let finish = time(self.finish[row]).map_err(|_| "`finish_ps` is negative")?;
        let ideal = u64::try_from(self.ideal[row]).map_err(|_| "`ideal_fct_ps` is negative")?;
        match (start, finish) {
            (None, Some(_)) => return Err("a flow finished that never started"),
            (Some(start), Some(finish)) if finish < start => {
                return Err("a flow finished before it started");
            }
            _ => {}
        }
        Ok(FlowRow {
            flow,
            label,
            src,
            dst,
            bytes,
            start: start.map(Time::from_ps),
            finish: finish.map(Time::from_ps),
            ideal_fct: Span::from_ps(ideal),
            packets,
            retransmits,
            marks,
            probes,
            timeouts,
            attack: self.attack[row].map(i64::cast_unsigned),
            section: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::write_flows;
    use crate::record::RunRecord;
    use crate::sample::{flow, incomplete_run, run};
    use clearway_testing::Folder;
    use proptest::prelude::*;
    use std::error::Error as _;
    use std::fs;

    fn bytes(record: &RunRecord) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_flows(&mut bytes, record).unwrap();
        bytes
    }

    /// Reads a file with these contents, in a folder of the test.
    fn read_bytes(folder: &Folder, bytes: &[u8]) -> Result<Vec<FlowRow>, ReadTableError> {
        fs::write(folder.path().join(FILE_NAME), bytes).unwrap();
        read_flows(folder.path()).map(|table| table.flows)
    }

    #[test]
    fn sections_are_read_back_by_name() {
        let folder = Folder::new("report-read-sections");
        let mut record = run();
        record.flows[0].section = 1;
        fs::write(folder.path().join(FILE_NAME), bytes(&record)).unwrap();
        let table = read_flows(folder.path()).unwrap();
        assert_eq!(table.sections, ["burst", "permutation"]);
        let sections: Vec<u32> = table.flows.iter().map(|flow| flow.section).collect();
        assert_eq!(sections, [0, 1, 1, 1]);
    }

    #[test]
    fn what_was_written_is_read_back() {
        let folder = Folder::new("report-read-back");
        let mut large = run();
        large.flows = (0..=super::super::ROWS_PER_GROUP as u32)
            .map(|number| {
                let done = !number.is_multiple_of(3);
                flow(
                    number,
                    done.then(|| Span::from_us(u64::from(number % 7) + 50)),
                )
            })
            .collect();
        large.flows[1].label = u64::MAX;
        large.flows[2].src = u32::MAX;
        large.flows[3].attack = Some(u64::MAX);
        let mut none = run();
        none.flows.clear();
        for record in [run(), incomplete_run(), none, large] {
            assert_eq!(
                read_bytes(&folder, &bytes(&record)).unwrap(),
                record.flows,
                "{} flows",
                record.flows.len()
            );
        }
        let file = folder.path().join(FILE_NAME);
        assert!(read_flows(file).is_ok(), "the file itself can be named");
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = Folder::new("report-read-missing");
        let error = read_flows(folder.path()).unwrap_err();
        assert!(
            matches!(&error, ReadTableError::Unreadable { path, .. } if path.ends_with(FILE_NAME))
        );
        assert!(error.source().is_some());
    }

    #[test]
    fn other_files_are_refused() {
        let folder = Folder::new("report-read-foreign");
        for text in ["", "PAR1", "hello", "PAR1PAR1", "PAR1\u{1}\0\0\0PAR1"] {
            let error = read_bytes(&folder, text.as_bytes()).unwrap_err();
            assert!(matches!(error, ReadTableError::Damaged { .. }), "{text:?}");
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_refused() {
        let folder = Folder::new("report-read-cut");
        let whole = bytes(&incomplete_run());
        for length in (0..whole.len()).step_by(17) {
            assert!(read_bytes(&folder, &whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_row() {
        let folder = Folder::new("report-read-impossible");
        let mut columns = Columns {
            ids: [const { Vec::new() }; 3].map(|_: Vec<i32>| vec![1]),
            counts: [const { Vec::new() }; 7].map(|_: Vec<i64>| vec![1]),
            ideal: vec![1],
            start: vec![Some(5)],
            finish: vec![Some(4)],
            attack: vec![None],
            section: vec![ByteArray::from("")],
        };
        let mut fault = |start, finish, ideal| {
            (columns.start[0], columns.finish[0]) = (start, finish);
            columns.ideal[0] = ideal;
            columns.flow(0).unwrap_err()
        };
        assert_eq!(
            [
                fault(Some(5), Some(4), 1),
                fault(None, Some(4), 1),
                fault(Some(-5), Some(4), 1),
                fault(Some(5), Some(-4), 1),
                fault(Some(5), None, -1),
            ],
            [
                "a flow finished before it started",
                "a flow finished that never started",
                "`start_ps` is negative",
                "`finish_ps` is negative",
                "`ideal_fct_ps` is negative",
            ]
        );
        let mut record = run();
        record.flows[2].start = None;
        let error = read_bytes(&folder, &bytes(&record)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.ends_with("row 2: a flow finished that never started"),
            "{text}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// A file damaged in any way by a disk or a user yields an answer, never a panic.
        #[test]
        fn damaged_files_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let folder = Folder::new("report-read-damaged");
            let mut bytes = bytes(&incomplete_run());
            for (place, value) in changes {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            if let Ok(flows) = read_bytes(&folder, &bytes) {
                // Values may have changed, but they are possible values.
                prop_assert!(flows.iter().filter_map(FlowRow::fct).count() <= flows.len());
            }
        }
    }
}
