//! Reading Parquet back: columns by name and type, with an error for every kind of damage.

use clearway_input::{InputError, InputKind};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum number of values decoded at a time. It limits the memory that a damaged row count can make the reader reserve.
const BATCH: usize = 65_536;

/// A table that could not be read back.
#[derive(Debug, Error)]
pub enum ReadTableError {
    /// The file could not be opened.
    #[error("failed to read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: InputError,
    },
    /// The file is damaged or not Parquet.
    #[error("`{}` is damaged or not Parquet", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Error of the Parquet reader.
        source: ParquetError,
    },
    /// The file is Parquet, but holds something else.
    #[error("`{}` holds something else: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Description of the missing or mismatched part.
        what: String,
    },
    /// A value is impossible.
    #[error("`{}` is damaged: row {row}: {what}", path.display())]
    Impossible {
        /// The file.
        path: PathBuf,
        /// The row, counted from zero.
        row: usize,
        /// Fault of the row.
        what: &'static str,
    },
}

/// Fault of a file, without the name of the file.
pub(crate) enum Fault {
    Damaged(ParquetError),
    Foreign(String),
    /// A row and its fault.
    Impossible(usize, &'static str),
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Self {
        Self::Damaged(error)
    }
}

/// Passes the row groups of the table at `path` to `each` in turn. If `path` is a folder, the table is the file `file_name` in it.
///
/// # Errors
/// If the file cannot be read or is damaged, or `each` fails.
pub(crate) fn read_groups(
    path: &Path,
    file_name: &str,
    each: impl FnMut(&dyn RowGroupReader) -> Result<(), Fault>,
) -> Result<(), ReadTableError> {
    let mut path = path.to_path_buf();
    if path.is_dir() {
        path.push(file_name);
    }
    let file = match clearway_input::open(&path, InputKind::TABLE) {
        Ok(file) => file,
        Err(source) => return Err(ReadTableError::Unreadable { path, source }),
    };
    // The Parquet library panics on some damaged files; a damaged file is not a defect of this program.
    let read = catch_unwind(AssertUnwindSafe(|| read(file, each)));
    let read = read.unwrap_or_else(|_| {
        let message = "its parts contradict each other";
        Err(ParquetError::General(message.into()).into())
    });
    read.map_err(|fault| match fault {
        Fault::Damaged(source) => ReadTableError::Damaged { path, source },
        Fault::Foreign(what) => ReadTableError::Foreign { path, what },
        Fault::Impossible(row, what) => ReadTableError::Impossible { path, row, what },
    })
}

fn read(
    file: File,
    mut each: impl FnMut(&dyn RowGroupReader) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let length = file.metadata().map_err(ParquetError::from)?.len();
    let reader = SerializedFileReader::new(file)?;
    check_extents(reader.metadata(), length)?;
    for group in 0..reader.num_row_groups() {
        each(&*reader.get_row_group(group)?)?;
    }
    Ok(())
}

/// Fails if a column lies outside of the file according to its metadata, which the library assumes to be impossible.
fn check_extents(metadata: &ParquetMetaData, length: u64) -> Result<(), Fault> {
    let columns = metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    for column in columns {
        let start = column
            .dictionary_page_offset()
            .unwrap_or(column.data_page_offset());
        let size = column.compressed_size();
        let end = start.checked_add(size).filter(|_| start >= 0 && size >= 0);
        if end.is_none_or(|end| end.cast_unsigned() > length) {
            let message = format!("column `{}` lies outside of the file", column.column_path());
            return Err(ParquetError::General(message).into());
        }
    }
    Ok(())
}

/// True if there is a column `name`.
pub(crate) fn has_column(group: &dyn RowGroupReader, name: &str) -> bool {
    let schema = group.metadata().schema_descr();
    let mut columns = schema.columns().iter();
    columns.any(|column| column.path().parts() == [name])
}

/// The values of the column `name`; no value may be missing.
pub(crate) fn required<T: DataType>(
    group: &dyn RowGroupReader,
    name: &str,
) -> Result<Vec<T::T>, Fault> {
    let values: Option<Vec<T::T>> = optional::<T>(group, name)?.into_iter().collect();
    values.ok_or_else(|| Fault::Foreign(format!("column `{name}` has empty rows")))
}

/// The values of the column `name`, one for each row of the group.
pub(crate) fn optional<T: DataType>(
    group: &dyn RowGroupReader,
    name: &str,
) -> Result<Vec<Option<T::T>>, Fault> {
    let schema = group.metadata().schema_descr();
    let place = schema
        .columns()
        .iter()
        .position(|column| column.path().parts() == [name]);
    let place = place.ok_or_else(|| Fault::Foreign(format!("there is no column `{name}`")))?;
    let column = schema.column(place);
    let other = || {
        Fault::Foreign(format!(
            "column `{name}` is not of type {}",
            T::get_physical_type()
        ))
    };
    if column.physical_type() != T::get_physical_type() || column.max_rep_level() > 0 {
        return Err(other());
    }
    let mut reader = T::get_column_reader(group.get_column_reader(place)?).ok_or_else(other)?;
    let rows = group.metadata().num_rows();
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    loop {
        let (records, _, _) = reader.read_records(BATCH, Some(&mut levels), None, &mut values)?;
        read += records;
        if records == 0 {
            break;
        }
    }
    let present = |levels: &[i16]| levels.iter().filter(|&&level| level > 0).count();
    let nullable = column.max_def_level() > 0;
    let complete = match nullable {
        true => levels.len() == read && present(&levels) == values.len(),
        false => values.len() == read,
    };
    if !complete || i64::try_from(read) != Ok(rows) {
        let message = format!("column `{name}` has {read} values for {rows} rows");
        return Err(ParquetError::General(message).into());
    }
    let mut values = values.into_iter();
    Ok(match nullable {
        true => levels
            .into_iter()
            .map(|level| if level > 0 { values.next() } else { None })
            .collect(),
        false => values.map(Some).collect(),
    })
}
