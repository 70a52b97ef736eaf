//! A multipath test bed on one machine, and simulation against reality.
//!
//! ```text
//! scenario ─► Setup ─► Plan ─► up: namespaces, cables, routes, rates
//!               │                │
//!               │                ▼
//!               │              hosts: a process each, clearway-udp connections, the scenario's flows
//!               ▼                │
//!           simulation ──────────┴──► TestbedRecord: one table, one page
//! ```
//!
//! A [`BedPlan`] is a pure function of a scenario's fabric: commands for `ip` and `tc`. [`up`] carries it out and [`down`] takes away what
//! is there, also after a crash: a bed is known by its record and by the names of its namespaces. [`run()`] carries a scenario's flows over
//! a bed by the transport cores of the simulator, then simulates the same scenario.
//!
//! **Architecture invariant:** Linux alone, no terminal and no process exit. What is simulated and what is sent come from one
//! [`BedSetup`]; only namespaces of the bed are changed.

#![cfg(target_os = "linux")]

mod agent;
mod bed;
mod content;
mod counters;
mod delays;
mod differences;
mod fault;
mod hosts;
mod name;
mod plan;
mod process;
mod record;
mod run;
mod setup;
mod shared;
mod simulate;
mod soak;
mod soaking;
mod softswitch;
mod state;
mod system;
pub mod task;

pub use agent::agent;
pub use bed::{Removed, down, find, up};
pub use fault::Fault;
pub use name::{BedName, address_of};
pub use plan::{
    BedPlan, CommandBatch, LinkImpairment, MOST_NAMESPACES, PortFacts, StepProgram, Switches,
};
pub use process::Process;
pub use run::{BedRequest, Ended, run};
pub use setup::BedSetup;
pub use soak::{SoakRecord, SoakRequest, soak};
pub use softswitch::start_switches;
pub use state::BedState;
