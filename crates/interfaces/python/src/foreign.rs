//! Arrow tables of other libraries.

use crate::errors::wrong;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatchReader};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

/// The rows of an Arrow table, each as a dictionary without null values. Columns have different names, and hold integers, texts and lists
/// of integers.
#[pyfunction]
pub(crate) fn rows_of<'py>(
    py: Python<'py>,
    table: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let capsule = table.call_method0("__arrow_c_stream__")?;
    let reader = reader(capsule.cast::<PyCapsule>()?).map_err(unreadable)?;
    let schema = reader.schema();
    let names = schema.fields().iter().map(|field| field.name());
    for (place, name) in names.clone().enumerate() {
        if names.clone().take(place).any(|other| other == name) {
            return Err(wrong(format!(
                "the table has two columns `{name}`\n  fix: leave one out"
            )));
        }
    }
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(unreadable)?;
        let first = rows.len();
        rows.extend((0..batch.num_rows()).map(|_| PyDict::new(py)));
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            for (row, dictionary) in rows[first..].iter().enumerate() {
                if !is_null(column, row) {
                    dictionary.set_item(field.name(), value(py, field.name(), column, row)?)?;
                }
            }
        }
    }
    Ok(rows)
}

fn unreadable(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow table cannot be read: {error}"))
}

/// Takes the stream out of its capsule.
#[allow(unsafe_code)]
fn reader(capsule: &Bound<'_, PyCapsule>) -> Result<RecordBatchStreamReader, ArrowError> {
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"));
    let pointer = pointer.map_err(|error| ArrowError::CDataInterface(error.to_string()))?;
    let stream = pointer.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the Arrow PyCapsule interface promises that a capsule of this name, which has just been checked, points to an initialised
    // `ArrowArrayStream` that outlives the call. `from_raw` moves the stream out and leaves a released stream, which the capsule deletes.
    unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) }
}

fn is_null(column: &ArrayRef, row: usize) -> bool {
    *column.data_type() == DataType::Null || column.is_null(row)
}

/// Value of a row that is not null.
fn value<'py>(
    py: Python<'py>,
    name: &str,
    column: &ArrayRef,
    row: usize,
) -> PyResult<Bound<'py, PyAny>> {
    macro_rules! number {
        ($type:ty) => {
            Ok(column
                .as_primitive::<$type>()
                .value(row)
                .into_pyobject(py)?
                .into_any())
        };
    }
    let list = |items: ArrayRef| {
        if items.logical_null_count() > 0 {
            return Err(wrong(format!(
                "column `{name}` has a list with a null in it\n  fix: leave nulls out of lists"
            )));
        }
        let items = (0..items.len()).map(|item| value(py, name, &items, item));
        let list = PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?;
        Ok(list.into_any())
    };
    let text = |text: &str| Ok(text.into_pyobject(py)?.into_any());
    match column.data_type() {
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Utf8 => text(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(row)),
        DataType::Utf8View => text(column.as_string_view().value(row)),
        DataType::List(_) => list(column.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(column.as_list::<i64>().value(row)),
        other => Err(PyTypeError::new_err(format!(
            "column `{name}` is of type {other}; integers, texts and lists of integers are understood"
        ))),
    }
}
