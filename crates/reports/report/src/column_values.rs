//! Columns in memory, laid out as in Arrow: contiguous values, texts as bytes with offsets, and a mask of the rows that have a value.

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
    /// 64-bit signed integers: times in picoseconds.
    I64(Vec<i64>),
    /// Floating point numbers.
    Double(Vec<f64>),
    /// Texts.
    Text {
        /// Start of each text in `bytes`, then the end of the last text.
        offsets: Vec<i32>,
        /// The concatenated texts.
        bytes: Vec<u8>,
    },
}

/// Column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnData {
    /// One value for each row. Rows without a value hold an arbitrary value.
    pub values: ColumnValues,
    /// True for rows that have a value; `None` if the declaration of the column gives every row a value.
    pub present: Option<Vec<bool>>,
}
