//! Tests of plans, groups and measurements between threads. One program, so that they are linked once.

mod executions;
mod groups;
mod measure;
