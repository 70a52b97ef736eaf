//! Writing Parquet: tables whose columns are functions of a row, and what every file of a result says of itself.

use crate::record::ScenarioIdentity;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Storage type of a column, with the function that takes its value from a row. Times are in picoseconds.
pub(crate) enum Column<R> {
    U32(fn(&R) -> u32),
    OptionalU32(fn(&R) -> Option<u32>),
    U64(fn(&R) -> u64),
    OptionalU64(fn(&R) -> Option<u64>),
    Ps(fn(&R) -> u64),
    OptionalPs(fn(&R) -> Option<u64>),
    OptionalDouble(fn(&R) -> Option<f64>),
    Text(fn(&R) -> ByteArray),
}

/// The columns of a table by name, in their order.
pub(crate) type Columns<R> = [(&'static str, Column<R>)];

/// The schema of a table.
pub(crate) fn schema<R>(table: &str, columns: &Columns<R>) -> Result<TypePtr> {
    let fields = columns
        .iter()
        .map(|(name, column)| column.field(name).map(Arc::new))
        .collect::<Result<_>>()?;
    let schema = Type::group_type_builder(table)
        .with_fields(fields)
        .build()?;
    Ok(Arc::new(schema))
}

/// Adds a row group.
pub(crate) fn write_group<R, W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &Columns<R>,
    rows: &[R],
) -> Result<()> {
    let mut group = file.next_row_group()?;
    for (name, column) in columns {
        let mut writer = group.next_column()?.expect("the schema has every column");
        column.write(rows, &mut writer).map_err(|error| {
            ParquetError::General(format!("failed to write column `{name}`: {error}"))
        })?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// Compression and metadata of every Parquet file of a result.
pub(crate) fn properties(
    version: &str,
    revision: &str,
    scenario: &ScenarioIdentity,
) -> WriterProperties {
    let metadata = [
        ("clearway.version", version.to_owned()),
        ("clearway.revision", revision.to_owned()),
        ("clearway.scenario.name", scenario.name.clone()),
        ("clearway.scenario.hash", scenario.hash.clone()),
        ("clearway.scenario.seed", scenario.seed.to_string()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("clearway version {version} (build {revision})"))
        .set_key_value_metadata(Some(metadata.into()))
        .build()
}

impl<R> Column<R> {
    fn field(&self, name: &str) -> Result<Type> {
        let int64 = |signed| (PhysicalType::INT64, Some(LogicalType::integer(64, signed)));
        let (physical, logical) = match self {
            Self::U32(_) | Self::OptionalU32(_) => {
                (PhysicalType::INT32, Some(LogicalType::integer(32, false)))
            }
            Self::U64(_) | Self::OptionalU64(_) => int64(false),
            Self::Ps(_) | Self::OptionalPs(_) => int64(true),
            Self::OptionalDouble(_) => (PhysicalType::DOUBLE, None),
            Self::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match self {
            Self::U32(_) | Self::U64(_) | Self::Ps(_) | Self::Text(_) => Repetition::REQUIRED,
            Self::OptionalU32(_)
            | Self::OptionalU64(_)
            | Self::OptionalPs(_)
            | Self::OptionalDouble(_) => Repetition::OPTIONAL,
        };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }

    fn write(&self, rows: &[R], writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        // Parquet stores unsigned integers as the signed ones with the same bits.
        match self {
            Self::U32(value) => {
                required::<_, Int32Type>(writer, rows, |row| Ok(value(row).cast_signed()))
            }
            Self::OptionalU32(value) => {
                optional::<_, Int32Type>(writer, rows, |row| Ok(value(row).map(u32::cast_signed)))
            }
            Self::U64(value) => {
                required::<_, Int64Type>(writer, rows, |row| Ok(value(row).cast_signed()))
            }
            Self::OptionalU64(value) => {
                optional::<_, Int64Type>(writer, rows, |row| Ok(value(row).map(u64::cast_signed)))
            }
            Self::Ps(value) => {
                required::<_, Int64Type>(writer, rows, |row| picoseconds(value(row)))
            }
            Self::OptionalPs(value) => optional::<_, Int64Type>(writer, rows, |row| {
                value(row).map(picoseconds).transpose()
            }),
            Self::OptionalDouble(value) => {
                optional::<_, DoubleType>(writer, rows, |row| Ok(value(row)))
            }
            Self::Text(value) => required::<_, ByteArrayType>(writer, rows, |row| Ok(value(row))),
        }
    }
}

fn picoseconds(ps: u64) -> Result<i64> {
    i64::try_from(ps)
        .map_err(|_| ParquetError::General(format!("{ps} ps is more than a signed number holds")))
}

fn required<R, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    rows: &[R],
    value: impl Fn(&R) -> Result<T::T>,
) -> Result<()> {
    let values = rows.iter().map(value).collect::<Result<Vec<_>>>()?;
    writer.typed::<T>().write_batch(&values, None, None)?;
    Ok(())
}

fn optional<R, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    rows: &[R],
    value: impl Fn(&R) -> Result<Option<T::T>>,
) -> Result<()> {
    let values = rows.iter().map(value).collect::<Result<Vec<_>>>()?;
    let present: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    writer
        .typed::<T>()
        .write_batch(&values, Some(&present), None)?;
    Ok(())
}
