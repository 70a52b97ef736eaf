//! Columns in memory, laid out as in Arrow: values side by side, texts as bytes with offsets, and beside them which rows have a value.

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// 32 bits without a sign.
    U32(Vec<u32>),
    /// 64 bits without a sign.
    U64(Vec<u64>),
    /// 64 bits with a sign: times in picoseconds.
    I64(Vec<i64>),
    /// Floating point numbers.
    Double(Vec<f64>),
    /// Texts.
    Text {
        /// Where each text begins in `bytes`, and where the last ends.
        offsets: Vec<i32>,
        /// The texts, one behind the other.
        bytes: Vec<u8>,
    },
}

/// Column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnData {
    /// One value for each row. Rows without one have any.
    pub values: ColumnValues,
    /// True for rows that have a value; `None` if all have one by the declaration of the column.
    pub present: Option<Vec<bool>>,
}
