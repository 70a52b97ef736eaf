//! `iterations.parquet`: one row for each iteration of a job that began, job by job, in order. Runs without jobs have no rows.
//!
//! [`columns`](crate::columns) gives the meaning of each column.
//!
//! Types, metadata and compression are the same as in [`flows`](crate::flows).

use crate::flows::WriteFlowsError;
use crate::parquet_file::{Fault, ReadTableError, optional, read_groups, required};
use crate::parquet_table::{
    Columns, Values, column, names, optional_column, properties_of_run, schema, write_group,
};
use crate::record::{IterationRow, RunRecord};
use clearway_units::Time;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "iterations.parquet";

/// The most rows of a row group.
const ROWS_PER_GROUP: usize = 65_536;

/// An iteration with its job.
pub(crate) struct Row {
    job: u32,
    iteration: u32,
    section: u32,
    times: IterationRow,
}

pub(crate) const COLUMNS: &Columns<Row> = &[
    column(
        "job",
        Values::U32(|row| row.job),
        "",
        "place of the job in `jobs` of `summary.json`, from zero",
    ),
    column(
        "iteration",
        Values::U32(|row| row.iteration),
        "",
        "number of the iteration in the job, from zero",
    ),
    column(
        "begun_ps",
        Values::Ps(|row| row.times.begun.as_ps()),
        "ps",
        "when its first rank began, since the start of the run",
    ),
    optional_column(
        "sending_ps",
        Values::OptionalPs(|row| row.times.sending.map(Time::as_ps)),
        "ps",
        "nothing was sent",
        "when the first message was posted: until then ranks compute or wait for a slot",
    ),
    optional_column(
        "over_ps",
        Values::OptionalPs(|row| row.times.over.map(Time::as_ps)),
        "ps",
        "the run ended before",
        "when its last rank was through",
    ),
    optional_column(
        "time_ps",
        Values::OptionalPs(|row| row.times.time().map(|span| span.as_ps())),
        "ps",
        "the run ended before",
        "`over_ps` - `begun_ps`",
    ),
    column(
        "section",
        Values::Name(|row| row.section),
        "",
        "name of the `[[workload]]` section that the job belongs to",
    ),
];

/// The rows of a run.
pub(crate) fn rows(record: &RunRecord) -> impl Iterator<Item = Row> {
    let jobs = (0..).zip(&record.jobs);
    jobs.flat_map(|(job, row)| {
        let times = (0..).zip(&row.times);
        times.map(move |(iteration, &times)| Row {
            job,
            iteration,
            section: row.section,
            times,
        })
    })
}

/// Writes the iterations of the jobs of `record` to `sink`; the [table of the module](self) describes the columns.
///
/// # Errors
/// If `sink` fails, or a time is beyond 2^63 ps.
pub fn write_iterations(
    sink: impl Write + Send,
    record: &RunRecord,
) -> Result<(), WriteFlowsError> {
    let properties = properties_of_run(record);
    let schema = schema("iterations", COLUMNS)?;
    let mut file = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
    let rows: Vec<Row> = rows(record).collect();
    let names = names(&record.sections);
    for rows in rows.chunks(ROWS_PER_GROUP) {
        write_group(&mut file, COLUMNS, rows, &names)?;
    }
    file.close()?;
    Ok(())
}

/// Reads the output of [`write_iterations`], from a result folder or an `iterations.parquet`: the iterations of each job that began, by
/// number of the job.
///
/// # Errors
/// If the file cannot be read, is damaged, holds something else, or has an impossible value.
pub fn read_iterations(
    path: impl AsRef<Path>,
) -> Result<BTreeMap<u32, Vec<IterationRow>>, ReadTableError> {
    let mut jobs: BTreeMap<u32, Vec<IterationRow>> = BTreeMap::new();
    let mut row = 0;
    read_groups(path.as_ref(), FILE_NAME, |group| {
        let numbers = required::<Int32Type>(group, "job")?;
        let begun = required::<Int64Type>(group, "begun_ps")?;
        let sending = optional::<Int64Type>(group, "sending_ps")?;
        let over = optional::<Int64Type>(group, "over_ps")?;
        for (place, job) in numbers.into_iter().enumerate() {
            let job = job.cast_unsigned();
            if jobs.last_key_value().is_some_and(|(&last, _)| job < last) {
                return Err(Fault::Impossible(row, "its job is out of order"));
            }
            let time = |ps: i64| match u64::try_from(ps) {
                Ok(ps) => Ok(Time::from_ps(ps)),
                Err(_) => Err(Fault::Impossible(row, "a time before the run")),
            };
            jobs.entry(job).or_default().push(IterationRow {
                begun: time(begun[place])?,
                sending: sending[place].map(time).transpose()?,
                over: over[place].map(time).transpose()?,
            });
            row += 1;
        }
        Ok(())
    })?;
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{job, run};
    use clearway_testing::Folder;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use std::fs::File;

    #[test]
    fn every_iteration_is_read_back() {
        let mut record = run();
        record.jobs = vec![
            job("a", 3, &[90, 110, 100]),
            job("b", 2, &[40]),
            job("never begun", 5, &[]),
            job("c", 70_000, &vec![1; 70_000]),
            job("stopped before", 1, &[]),
        ];
        record.jobs[1].times.push(IterationRow {
            begun: Time::from_us(45),
            sending: None,
            over: None,
        });
        let folder = Folder::new("report-iterations");
        let path = folder.path().join(FILE_NAME);
        write_iterations(File::create(&path).unwrap(), &record).unwrap();
        let read = read_iterations(folder.path()).unwrap();
        let jobs = (0..)
            .zip(&record.jobs)
            .filter(|(_, job)| !job.times.is_empty());
        let times: BTreeMap<_, _> = jobs.map(|(id, job)| (id, job.times.clone())).collect();
        assert_eq!(times.keys().copied().collect::<Vec<u32>>(), [0, 1, 3]);
        assert_eq!(read, times);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let mut text = Vec::new();
        let schema = reader.metadata().file_metadata().schema();
        parquet::schema::printer::print_schema(&mut text, schema);
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @"
        message iterations {
          REQUIRED INT32 job (INTEGER(32,false));
          REQUIRED INT32 iteration (INTEGER(32,false));
          REQUIRED INT64 begun_ps (INTEGER(64,true));
          OPTIONAL INT64 sending_ps (INTEGER(64,true));
          OPTIONAL INT64 over_ps (INTEGER(64,true));
          OPTIONAL INT64 time_ps (INTEGER(64,true));
          REQUIRED BYTE_ARRAY section (STRING);
        }
        ");
    }
}
