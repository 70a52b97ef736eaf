//! Tests of transfers of files between two ends. One program, so that they are linked once.

mod fuzz;
mod loopback;
