//! Tests of scenario files, events and example traces. One program, so that they are linked once.

mod events;
mod example_traces;
mod files;
mod import;
