//! Tables as record batches of Arrow.

use crate::data::TableData;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchReader, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use clearway_report::columns::ColumnInfo;
use clearway_report::{ColumnData, ColumnValues, ROWS_PER_BATCH};
use std::sync::Arc;

/// Schema of a table with these columns, equal to the schema of its Parquet file.
pub(crate) fn schema_of(columns: Vec<ColumnInfo>) -> Schema {
    let fields = columns.into_iter().map(|column| {
        let of_type = match column.of_type {
            "uint32" => DataType::UInt32,
            "uint64" => DataType::UInt64,
            "int64" => DataType::Int64,
            "double" => DataType::Float64,
            _ => DataType::Utf8,
        };
        Field::new(column.name, of_type, !column.null.is_empty())
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// The rows of a table as batches, each created on request.
pub(crate) struct Batches {
    data: TableData,
    schema: SchemaRef,
    next: usize,
}

impl Batches {
    pub(crate) fn new(data: TableData) -> Self {
        Self {
            schema: Arc::new(schema_of(data.columns())),
            data,
            next: 0,
        }
    }

    fn batch(&self, end: usize) -> Result<RecordBatch, ArrowError> {
        let batch = self.data.batch(self.next..end);
        let columns = batch.map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        let arrays = columns.into_iter().map(array).collect::<Result<_, _>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.data.rows();
        if self.next >= rows {
            return None;
        }
        let end = rows.min(self.next + ROWS_PER_BATCH);
        let batch = self.batch(end);
        self.next = end;
        Some(batch)
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn array(column: ColumnData) -> Result<ArrayRef, ArrowError> {
    let nulls = column.present.map(NullBuffer::from);
    Ok(match column.values {
        ColumnValues::U32(values) => Arc::new(UInt32Array::try_new(values.into(), nulls)?),
        ColumnValues::U64(values) => Arc::new(UInt64Array::try_new(values.into(), nulls)?),
        ColumnValues::I64(values) => Arc::new(Int64Array::try_new(values.into(), nulls)?),
        ColumnValues::Double(values) => Arc::new(Float64Array::try_new(values.into(), nulls)?),
        ColumnValues::Text { offsets, bytes } => {
            let offsets = OffsetBuffer::new(offsets.into());
            Arc::new(StringArray::try_new(
                offsets,
                Buffer::from_vec(bytes),
                nulls,
            )?)
        }
    })
}
