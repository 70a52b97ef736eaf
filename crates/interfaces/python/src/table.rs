//! Tables of results.

use crate::arrow::{Batches, schema_of};
use crate::data::TableData;
use crate::errors::unwritten;
use arrow_array::RecordBatchReader;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use clearway_report::ColumnValues;
use clearway_report::columns::ColumnInfo;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::ops::Range;

/// A table of a result.
#[pyclass(frozen, module = "clearway._clearway")]
pub(crate) struct NativeTable(pub(crate) TableData);

#[pymethods]
impl NativeTable {
    fn __len__(&self) -> usize {
        self.0.rows()
    }

    /// For each column: name, type, unit, rows without a value, meaning.
    fn columns(&self) -> Vec<[String; 5]> {
        let columns = self.0.columns().into_iter();
        let words = |column: ColumnInfo| {
            let ColumnInfo {
                name,
                of_type,
                unit,
                null,
                meaning,
            } = column;
            let name = name.into_owned();
            [
                name,
                of_type.into(),
                unit.into_owned(),
                null.into(),
                meaning.into(),
            ]
        };
        columns.map(words).collect()
    }

    /// Values of rows, by column.
    fn values<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let stop = stop.min(self.__len__());
        let rows: Range<usize> = start.min(stop)..stop;
        let batch = self.0.batch(rows);
        let batch = batch.map_err(|error| unwritten(&error))?;
        let values = PyDict::new(py);
        for (info, column) in self.0.columns().iter().zip(batch) {
            let list = list(py, &column.values)?;
            let absent = column.present.iter().flatten().zip(0..);
            for (_, place) in absent.filter(|(present, _)| !**present) {
                list.set_item(place, py.None())?;
            }
            values.set_item(&*info.name, list)?;
        }
        Ok(values)
    }

    /// Capsule of an `ArrowArrayStream`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The Arrow interface allows a producer to ignore the request; each column has only one type.
        drop(requested_schema);
        let batches = Batches::new(self.0.clone());
        let batches: Box<dyn RecordBatchReader + Send> = Box::new(batches);
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(batches),
            c"arrow_array_stream",
        )
    }

    /// Capsule of an `ArrowSchema`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(schema_of(self.0.columns()));
        let schema = schema.map_err(|error| unwritten(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

fn list<'py>(py: Python<'py>, values: &ColumnValues) -> PyResult<Bound<'py, PyList>> {
    match values {
        ColumnValues::U32(values) => PyList::new(py, values),
        ColumnValues::U64(values) => PyList::new(py, values),
        ColumnValues::I64(values) => PyList::new(py, values),
        ColumnValues::Double(values) => PyList::new(py, values),
        ColumnValues::Text { offsets, bytes } => {
            let texts = offsets.windows(2).map(|ends| {
                let text = &bytes[ends[0] as usize..ends[1] as usize];
                String::from_utf8_lossy(text)
            });
            PyList::new(py, texts.collect::<Vec<_>>())
        }
    }
}
