//! Scenarios of scale-up fabrics: GPUs below switches that replicate and reduce, instead of hosts with transports.
//!
//! ```toml
//! [topology]                 # clearway explain nvlink
//! kind = "nvlink"
//! gpus = 128
//!
//! [injection]                # clearway explain 3cpo
//! kind = "3cpo"
//!
//! [[workload]]               # clearway explain collective
//! kind = "collective"
//! ```
//!
//! They share the sections and keys of other scenarios that have the same meaning. They have `[injection]` instead of `[transport]`, and
//! separate kinds of workloads.

mod catalogue;
mod fabric;
mod limits;
mod scenario;
mod trace;
mod traffic;
mod workload;

pub use catalogue::scaleup_groups;
pub use fabric::{FabricSettings, NvlinkSettings};
pub use scenario::ScaleupScenario;
pub use trace::ScaleupJob;
pub use traffic::ScaleupTraffic;
pub use workload::{CollectiveOperation, ScaleupWorkload, ScaleupWorkloadKind};

/// The kind of topology of a scale-up fabric.
pub const NVLINK: &str = "nvlink";

#[cfg(test)]
mod tests;
