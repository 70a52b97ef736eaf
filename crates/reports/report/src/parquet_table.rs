//! Writing Parquet: tables whose columns are functions of a row, and the metadata of every file of a result.

use crate::column_values::{ColumnData, ColumnValues};
use crate::record::{RunRecord, ScenarioIdentity};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

/// Column of a table: its stored values, and its description in the book.
pub(crate) struct Column<R> {
    pub(crate) name: Cow<'static, str>,
    pub(crate) values: Values<R>,
    /// Unit of the values; empty for text and for numbers without a unit.
    pub(crate) unit: Cow<'static, str>,
    /// Rows without a value; empty if all rows have one.
    pub(crate) null: &'static str,
    /// Meaning, as a fragment.
    pub(crate) meaning: &'static str,
}

/// Column with a value in every row.
pub(crate) const fn column<R>(
    name: &'static str,
    values: Values<R>,
    unit: &'static str,
    meaning: &'static str,
) -> Column<R> {
    optional_column(name, values, unit, "", meaning)
}

/// Column in which the rows that `null` names have no value.
pub(crate) const fn optional_column<R>(
    name: &'static str,
    values: Values<R>,
    unit: &'static str,
    null: &'static str,
    meaning: &'static str,
) -> Column<R> {
    Column {
        name: Cow::Borrowed(name),
        values,
        unit: Cow::Borrowed(unit),
        null,
        meaning,
    }
}

/// Storage type of a column, with the function that takes its value from a row. Times are in picoseconds.
pub(crate) enum Values<R> {
    U32(fn(&R) -> u32),
    OptionalU32(fn(&R) -> Option<u32>),
    U64(fn(&R) -> u64),
    OptionalU64(fn(&R) -> Option<u64>),
    Ps(fn(&R) -> u64),
    OptionalPs(fn(&R) -> Option<u64>),
    Double(fn(&R) -> f64),
    OptionalDouble(fn(&R) -> Option<f64>),
    Text(fn(&R) -> ByteArray),
    /// Value of one of several similar columns, by its number.
    DoubleOf(usize, fn(&R, usize) -> f64),
    OptionalDoubleOf(usize, fn(&R, usize) -> Option<f64>),
    TextOf(usize, fn(&R, usize) -> ByteArray),
    /// Text as its place among the names that come with the rows.
    Name(fn(&R) -> u32),
}

/// The columns of a table, in their order.
pub(crate) type Columns<R> = [Column<R>];

/// Texts as Parquet stores them.
pub(crate) fn names<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<ByteArray> {
    texts.into_iter().map(|text| text.as_str().into()).collect()
}

/// The schema of a table.
pub(crate) fn schema<R>(table: &str, columns: &Columns<R>) -> Result<TypePtr> {
    let fields = columns
        .iter()
        .map(|column| column.field().map(Arc::new))
        .collect::<Result<_>>()?;
    let schema = Type::group_type_builder(table)
        .with_fields(fields)
        .build()?;
    Ok(Arc::new(schema))
}

/// Adds a row group, with the names that its rows refer to.
pub(crate) fn write_group<R, W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &Columns<R>,
    rows: &[R],
    names: &[ByteArray],
) -> Result<()> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let mut writer = group.next_column()?.expect("the schema has every column");
        let written = column.values.write(rows, names, &mut writer);
        written.map_err(|error| {
            ParquetError::General(format!("failed to write column `{}`: {error}", column.name))
        })?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// The same rows in memory, column by column.
pub(crate) fn in_memory<R>(
    columns: &Columns<R>,
    rows: &[R],
    names: &[ByteArray],
) -> Result<Vec<ColumnData>> {
    let column = |column: &Column<R>| column.values.collect(rows, names);
    columns.iter().map(column).collect()
}

/// Compression and metadata that every Parquet file of a result has.
pub(crate) fn properties(
    version: &str,
    revision: &str,
    scenario: &ScenarioIdentity,
) -> WriterProperties {
    let metadata = [
        ("clearway.scenario.name", scenario.name.clone()),
        ("clearway.scenario.hash", scenario.hash.clone()),
        ("clearway.scenario.seed", scenario.seed.to_string()),
    ];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
    properties_of(version, revision, metadata)
}

/// [Compression and metadata](properties) of a file that is written when the run is over, with the estimated error of a run that is not
/// exact.
pub(crate) fn properties_of_run(record: &RunRecord) -> WriterProperties {
    let own = properties(&record.version, &record.revision, &record.scenario);
    let forward = record.fast_forward.as_ref();
    let Some(forward) = forward.filter(|forward| forward.is_inexact()) else {
        return own;
    };
    let mut metadata = own.key_value_metadata().cloned().unwrap_or_default();
    metadata.push(KeyValue::new(
        "clearway.fast-forward.estimated".to_owned(),
        forward.estimated.to_string(),
    ));
    own.into_builder()
        .set_key_value_metadata(Some(metadata))
        .build()
}

/// Compression of a Parquet file, and `metadata` next to the version of the program that wrote the file.
pub(crate) fn properties_of(
    version: &str,
    revision: &str,
    metadata: impl IntoIterator<Item = (String, String)>,
) -> WriterProperties {
    let program = [
        ("clearway.version".to_owned(), version.to_owned()),
        ("clearway.revision".to_owned(), revision.to_owned()),
    ];
    let metadata = program.into_iter().chain(metadata);
    let metadata = metadata.map(|(key, value)| KeyValue::new(key, value));
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("clearway version {version} (build {revision})"))
        .set_key_value_metadata(Some(metadata.collect()))
        .build()
}

impl<R> Column<R> {
    /// The same column as one of several similar columns, with its name and number.
    pub(crate) fn called(mut self, name: impl Into<String>, number: usize) -> Self {
        self.name = Cow::Owned(name.into());
        match &mut self.values {
            Values::DoubleOf(place, _)
            | Values::OptionalDoubleOf(place, _)
            | Values::TextOf(place, _) => *place = number,
            _ => unreachable!("there is one such column"),
        }
        self
    }

    /// The same column with values in this unit.
    pub(crate) fn in_unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Cow::Owned(unit.into());
        self
    }

    fn field(&self) -> Result<Type> {
        let (physical, logical) = self.values.types();
        let repetition = match self.null {
            "" => Repetition::REQUIRED,
            _ => Repetition::OPTIONAL,
        };
        Type::primitive_type_builder(&self.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }
}

impl<R> Values<R> {
    fn types(&self) -> (PhysicalType, Option<LogicalType>) {
        let int64 = |signed| (PhysicalType::INT64, Some(LogicalType::integer(64, signed)));
        match self {
            Self::U32(_) | Self::OptionalU32(_) => {
                (PhysicalType::INT32, Some(LogicalType::integer(32, false)))
            }
            Self::U64(_) | Self::OptionalU64(_) => int64(false),
            Self::Ps(_) | Self::OptionalPs(_) => int64(true),
            Self::Double(_)
            | Self::OptionalDouble(_)
            | Self::DoubleOf(..)
            | Self::OptionalDoubleOf(..) => (PhysicalType::DOUBLE, None),
            Self::Text(_) | Self::Name(_) | Self::TextOf(..) => {
                (PhysicalType::BYTE_ARRAY, Some(LogicalType::String))
            }
        }
    }

    /// Name of the type for readers of the book.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Self::U32(_) | Self::OptionalU32(_) => "uint32",
            Self::U64(_) | Self::OptionalU64(_) => "uint64",
            Self::Ps(_) | Self::OptionalPs(_) => "int64",
            Self::Double(_)
            | Self::OptionalDouble(_)
            | Self::DoubleOf(..)
            | Self::OptionalDoubleOf(..) => "double",
            Self::Text(_) | Self::Name(_) | Self::TextOf(..) => "text",
        }
    }

    fn collect(&self, rows: &[R], names: &[ByteArray]) -> Result<ColumnData> {
        let all = |values| ColumnData {
            values,
            present: None,
        };
        Ok(match self {
            Self::U32(value) => all(ColumnValues::U32(rows.iter().map(value).collect())),
            Self::U64(value) => all(ColumnValues::U64(rows.iter().map(value).collect())),
            Self::Ps(value) => {
                let values = rows.iter().map(|row| picoseconds(value(row)));
                all(ColumnValues::I64(values.collect::<Result<_>>()?))
            }
            Self::Double(value) => all(ColumnValues::Double(rows.iter().map(value).collect())),
            Self::OptionalU32(value) => some_of(rows.iter().map(value), ColumnValues::U32),
            Self::OptionalU64(value) => some_of(rows.iter().map(value), ColumnValues::U64),
            Self::OptionalPs(value) => {
                let values = rows.iter().map(|row| value(row).map(picoseconds));
                let values: Vec<_> = values.map(Option::transpose).collect::<Result<_>>()?;
                some_of(values, ColumnValues::I64)
            }
            Self::OptionalDouble(value) => some_of(rows.iter().map(value), ColumnValues::Double),
            Self::DoubleOf(number, value) => {
                let values = rows.iter().map(|row| value(row, *number));
                all(ColumnValues::Double(values.collect()))
            }
            Self::OptionalDoubleOf(number, value) => some_of(
                rows.iter().map(|row| value(row, *number)),
                ColumnValues::Double,
            ),
            Self::TextOf(number, value) => all(texts(rows, |row| Ok(value(row, *number)))?),
            Self::Text(value) => all(texts(rows, |row| Ok(value(row)))?),
            Self::Name(place) => all(texts(rows, |row| name(names, place(row)))?),
        })
    }

    fn write(
        &self,
        rows: &[R],
        names: &[ByteArray],
        writer: &mut SerializedColumnWriter<'_>,
    ) -> Result<()> {
        // Parquet stores unsigned integers as signed integers with the same bits.
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
            Self::Double(value) => required::<_, DoubleType>(writer, rows, |row| Ok(value(row))),
            Self::OptionalDouble(value) => {
                optional::<_, DoubleType>(writer, rows, |row| Ok(value(row)))
            }
            Self::Text(value) => required::<_, ByteArrayType>(writer, rows, |row| Ok(value(row))),
            Self::DoubleOf(number, value) => {
                required::<_, DoubleType>(writer, rows, |row| Ok(value(row, *number)))
            }
            Self::OptionalDoubleOf(number, value) => {
                optional::<_, DoubleType>(writer, rows, |row| Ok(value(row, *number)))
            }
            Self::TextOf(number, value) => {
                required::<_, ByteArrayType>(writer, rows, |row| Ok(value(row, *number)))
            }
            Self::Name(place) => {
                required::<_, ByteArrayType>(writer, rows, |row| name(names, place(row)))
            }
        }
    }
}

/// Values of a column in which some rows may have none.
fn some_of<T: Default + Copy>(
    values: impl IntoIterator<Item = Option<T>>,
    column: fn(Vec<T>) -> ColumnValues,
) -> ColumnData {
    let values = values.into_iter();
    let (values, present) = values
        .map(|value| (value.unwrap_or_default(), value.is_some()))
        .unzip();
    ColumnData {
        values: column(values),
        present: Some(present),
    }
}

fn texts<R>(rows: &[R], text: impl Fn(&R) -> Result<ByteArray>) -> Result<ColumnValues> {
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for row in rows {
        bytes.extend_from_slice(text(row)?.data());
        let end = i32::try_from(bytes.len());
        offsets.push(end.map_err(|_| ParquetError::General("more than 2 GB of text".into()))?);
    }
    Ok(ColumnValues::Text { offsets, bytes })
}

/// The name at `place`.
fn name(names: &[ByteArray], place: u32) -> Result<ByteArray> {
    let name = names.get(place as usize).cloned();
    name.ok_or_else(|| ParquetError::General(format!("nothing is name {place}")))
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
