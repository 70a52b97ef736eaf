//! Sweeps: one scenario at many points, each with several seeds.
//!
//! ```text
//! plan.toml ──► SweepPlan ──► Sweep: every run resolved, with its key ──► Store: what is done, claimed, failed
//!                                                                           │ execute: child processes
//!                                                                           ▼
//!                                              SweepRecord: sweep.parquet, sweep.json, report.html
//! ```
//!
//! * [`plan`] reads the points of a sweep: a grid, a list of points, or drawn points.
//! * [`Sweep`] resolves each point with the laboratory. The key of a run is the hash of everything that determines its results.
//! * [`Store`] is the folder, which several processes may share.
//! * [`execute`] carries out the missing runs, and [`record`] collects the results.
//!
//! **Architecture invariant:** no terminal and no process exit. The outcome does not depend on the order of runs or on the number of
//! processes.

mod assertions;
mod axes;
mod clock;
mod dataset;
mod execute;
pub mod plan;
mod points;
mod shard;
mod store;
mod tune;

pub use axes::Axis;
pub use dataset::{Published, not_complete, publish, record};
pub use execute::{
    Dispatched, Dispatcher, ExecuteOptions, RunAnswer, RunEnd, SweepExecution, SweepProgress,
    WORKER_COMMAND, carry_out, execute,
};
pub use plan::{SweepPlan, builtin_sweeps, catalogue_sections, counted};
pub use points::{MOST_RUNS, PlannedRun, ProgramIdentity, RunKey, Sweep};
pub use shard::Shard;
pub use store::{Claim, Claimed, Failed, Merged, Store, StoreError, check_part};
pub use tune::{Rung, Tuning, TuningSchedule, fit, runs_of_tuning, tune};
