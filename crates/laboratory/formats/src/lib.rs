//! Readers and writers of the files that users of other simulators have: traffic, fabrics, traces of training jobs.
//!
//! * [`parse_cm`] reads htsim's connection matrices (`.cm`), [`parse_topo`] its fabrics (`.topo`); [`parse_hpcc_flows`] and
//!   [`parse_hpcc_topology`] those of the HPCC simulator for ns-3; [`FileFormat`] recognizes the format.
//! * [`parse_goal`] and [`parse_goal_binary`] read a [`JobProgram`](clearway_workload::Program) from GOAL schedules, [`read_chakra`] from
//!   the execution traces of Chakra; a [`SimaiWorkload`], read by [`parse_simai`], makes it for any number of ranks. [`TraceFormat`]
//!   recognizes the format.
//! * [`KnownFile`] says what a file is where another kind of file is wanted.
//! * [`parse_sizes`] reads a distribution of flow sizes in the format of HPCC's traffic generator.
//!
//! All are strict: what would be ignored or rounded elsewhere is an error with file, line and fix, or at least a warning.
//!
//! **Architecture Invariant:** nothing here knows of links, queues, transports or scenarios. `topo` and `hpcc` describe a fabric's file
//! and build none.

pub mod chakra;
pub mod cm;
mod format;
pub mod goal;
pub mod hpcc;
mod known_file;
pub mod simai;
mod sizes;
mod text;
pub mod topo;
mod words;

pub use chakra::{
    ChakraFiles, ChakraReader, ChakraTrace, ChakraWriteError, Roofline, read_chakra, write_chakra,
};
pub use cm::{CmConnection, CmFile, LinkFailure, StartUnit, SwitchLayer, parse_cm, write_cm};
pub use format::{FileFormat, TraceFormat, head};
pub use goal::{
    GoalFile, GoalWriteError, is_goal_binary, parse_goal, parse_goal_binary, write_goal,
    write_goal_binary,
};
pub use hpcc::{HpccHosts, HpccLink, HpccTopology, parse_hpcc_flows, parse_hpcc_topology};
pub use known_file::KnownFile;
pub use simai::{
    SimaiCall, SimaiFile, SimaiGroup, SimaiLayer, SimaiPhase, SimaiPolicy, SimaiWorkload,
    SimaiWriteError, parse_simai, write_simai,
};
pub use sizes::parse_sizes;
pub use text::{one_of, read_text, refused, shown, whole_number};
pub use topo::{TierSpec, TopoFile, parse_topo};
