//! The schema of scenario files: generators of traffic with their settings.
//!
//! * [`WorkloadSettings`] is the registry of generators: one settings struct in one file and one line in the list of [`generate`]
//!   make a new one.
//! * [`SizeSource`] is a distribution of flow sizes: built in, or from a file.

pub mod generate;
mod size_source;

pub use generate::{BuildContext, LoadedWorkload, WorkloadDefinition, WorkloadSettings};
pub use size_source::SizeSource;
