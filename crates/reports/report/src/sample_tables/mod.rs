//! Small comparisons, studies and sweeps for the tests of `report` and of its tables in `report-text`, which includes this file as a
//! module. They are made of the records in `sample`.

pub(crate) mod comparison;
pub(crate) mod isolation;
pub(crate) mod points;
pub(crate) mod why;
