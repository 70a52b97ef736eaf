//! A multipath test bed on one machine, and simulation against reality.
//!
//! ```text
//! scenario ─► BedSetup ─► BedPlan ─► up: namespaces, cables, routes, rates
//!                │                    │
//!                │                    ▼
//!                │                  hosts: a process each, clearway-udp connections, the scenario's flows
//!                ▼                    │
//!            simulation ──────────────┴──► TestbedRecord: one table, one page
//! ```
//!
//! A [`BedPlan`] is a pure function of a scenario's fabric: commands for `ip` and `tc`. [`up`] executes the plan, and [`down`] removes the
//! existing parts, even after a crash: the record of a bed and the names of its namespaces identify them. [`run()`] sends a scenario's
//! flows over a bed with the transport cores of the simulator, then simulates the same scenario.
//!
//! **Architecture invariant:** Linux only, no terminal and no process exit. The simulation and the real flows come from one [`BedSetup`].
//! Only namespaces of the bed change.

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
