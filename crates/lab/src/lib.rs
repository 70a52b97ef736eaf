//! The laboratory: scenarios are read, assembled, run and reproduced here.
//!
//! ```text
//! TOML + --set ──► entries with their places ──► Scenario (typed, all defaults filled in)
//!                                                   │ assemble
//!                                                   ▼
//!                        Topology, Routes, flows, Profile  ──► Simulation ──► Finished
//! ```
//!
//! Everything a user can write is declared once with `parameters!` where it belongs (switches in `fabric`, controllers in
//! `transport`, generators in `workload`, topologies here); this crate only routes keys to their owners. So a new parameter
//! appears in the scenario, in `explain` and in the resolved scenario by itself.
//!
//! **Architecture invariant:** no terminal, no process exit, no formats of results. Nothing depends on this crate but the
//! command line, and language bindings later.

mod assemble;
mod catalogue;
mod dependencies;
mod doubts;
mod error;
mod fct;
mod fits;
mod grants;
mod jobs;
mod laboratory;
mod link_names;
mod loads;
mod nics;
pub mod observe;
pub mod plan;
pub mod record;
pub mod reproduce;
mod run;
pub mod scenario;
mod streamed;

pub use assemble::{Assembly, TopologyReport};
pub use catalogue::{Catalogue, Explanation, builtin_scenario, builtin_scenarios};
pub use dependencies::Dependencies;
pub use error::{Place, ScenarioError};
pub use fct::FctRecord;
pub use jobs::{Bandwidth, IterationTimes, JobResult};
pub use laboratory::Laboratory;
pub use run::{Finished, FlowResult, RunOptions};
pub use scenario::Scenario;

// What users of the library need to add their own and to drive a run.
pub use clearway_fabric::topology::{LinkId, NodeId};
pub use clearway_fabric::{LinkPauses, Observer, Progress, Rounds, Stopped, Verdict};
pub use clearway_transport::{Registry, cc, feedback, spray};
pub use clearway_units as units;
pub use clearway_workload::FlowSpec;
