//! The laboratory: assembles, runs and observes scenarios.
//!
//! ```text
//! TOML + --set ──► entries with their places ──► Scenario (typed, all defaults filled in)
//!                                                   │ assemble
//!                                                   ▼
//!                        Topology, Routes, flows, Profile  ──► Simulation ──► Finished
//! ```
//!
//! Every user setting is declared once with `parameters!` in the crate that uses it (switches in `fabric`, controllers in `transport`,
//! generators and topologies in [`scenario`]). A new parameter appears in the scenario, in `explain` and in the resolved scenario
//! automatically.
//!
//! **Architecture invariant:** no terminal, no process exit, no formats of results. Plans of jobs, reproduction, the command line and
//! users' programs build on this crate.

mod assemble;
mod dependencies;
mod expected_work;
mod fast_forward;
mod fct;
mod frames;
mod grants;
mod ideal;
mod ideal_paths;
mod idle_nics;
mod job_result;
mod jobs;
mod laboratory;
mod lanes;
mod loads;
pub mod observe;
mod prepared;
mod rank_events;
pub mod record;
mod run;
mod scaleup;
mod sections;
mod shared_routes;
mod spreading;
mod stepped;
mod streamed;
mod topology_report;
mod transports;
pub mod why;

pub use assemble::Assembly;
pub use dependencies::Dependencies;
pub use expected_work::ExpectedWork;
pub use fast_forward::{FastForwardReport, RememberedCalls, SkippedTime};
pub use fct::FctRecord;
pub use job_result::{Bandwidth, IterationTimes, JobResult};
pub use laboratory::Laboratory;
pub use loads::JobLoads;
pub use rank_events::{RankAction, RankCause, RankEvent};
pub use run::{Finished, FlowResult, RunOptions};
pub use scaleup::{FLIT_BYTES, ScaleupAssembly, ScaleupFinished, ScaleupLink, ScaleupRunOptions};
pub use stepped::{
    MessageEvent, MessageEventKind, PostedMessage, SteppedEnd, SteppedOptions, SteppedRun,
};
pub use topology_report::TopologyReport;

pub use clearway_scaleup as scaleup_fabric;
pub use clearway_scenario as scenario;
pub use clearway_scenario::{
    Catalogue, CatalogueGroup, Experiment, Explanation, HostSet, ScaleupScenario, Scenario,
    ScenarioError, SourceLocation, builtin_scenario, builtin_scenarios, without_bdp_comments,
};

// Types that users of the library need to add parts and to drive a run.
pub use clearway_fabric::topology::{LinkId, NodeId, SwitchRole};
pub use clearway_fabric::{
    DropCause, Interests, LinkChange, LinkEvent, LinkPauses, Observer, Rounds, RunDecision,
    RunProgress, Senders, Stopped, Threads, Watch,
};
pub use clearway_transport::congestion::feedback;
pub use clearway_transport::{Registry, Scope, congestion, paths};
pub use clearway_units as units;
pub use clearway_workload::{AttackKind, FlowSpec};
