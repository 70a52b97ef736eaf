//! Traffic of a run: flows with their triggers, jobs of ranks, generators of both, and readers of the traffic files and traces that users
//! of other simulators have.
//!
//! * A [`Workload`] is a list of [`FlowSpec`]s and of triggers between them. Every source of traffic ends in one, and
//!   [`Workload::check`] proves before a run that each of its flows will start.
//! * [`Triggers`] is the state machine that a simulator drives: an activation in, flows to start out.
//! * [`WorkloadSettings`] is the registry of generators: one settings struct in one file and one line in the list of
//!   [`generate`] make a new one.
//! * A [`Graph`] holds the messages and computations of the ranks of a job, and the dependencies between them.
//! * A [`JobSpec`] places such a graph on hosts and runs it for one or more iterations.
//! * A [`RankRun`] is one rank of a job at run time: a state machine that says which messages to post when.
//! * A [`Program`] holds the operations of each rank of a job, as traces list them: sends and receives apart, and calls of
//!   collectives. It becomes a `Graph`. [`parse_goal`] and [`parse_goal_binary`] read it from GOAL schedules, [`read_chakra`] from the
//!   execution traces of Chakra; a [`SimaiWorkload`], read by [`parse_simai`], makes it for any number of ranks.
//!   [`TraceFormat`] recognizes the format, and [`TraceSettings`](generate::TraceSettings) makes jobs of them.
//! * [`SizeDistribution`] is a distribution of flow sizes in data-centre traffic: built in ([`PublishedSizes`]) or from a file
//!   ([`parse_sizes`]).
//! * [`parse_cm`] reads htsim's connection matrices (`.cm`), [`parse_topo`] its fabrics (`.topo`); [`parse_hpcc_flows`] and
//!   [`parse_hpcc_topology`] those of the HPCC simulator for ns-3; [`FileFormat`] recognizes the format. All are strict: what would be
//!   ignored or rounded elsewhere is an error with file, line and fix, or at least a warning.
//!
//! **Architecture Invariant:** nothing here knows of links, queues or transports. `topo` and `hpcc` describe a fabric's file and build
//! none.

mod arrivals;
pub mod chakra;
mod check;
pub mod cm;
pub mod collective;
mod error;
mod exponential;
mod flow;
mod format;
pub mod generate;
pub mod goal;
pub mod graph;
pub mod hpcc;
mod job;
pub mod program;
pub mod rank;
pub mod simai;
pub mod sizes;
mod text;
pub mod topo;
mod trigger;
mod words;

pub use arrivals::{Arrivals, MergedArrivals};
pub use chakra::{
    ChakraFiles, ChakraReader, ChakraTrace, ChakraWriteError, read_chakra, write_chakra,
};
pub use cm::{CmFile, LinkFailure, StartUnit, SwitchLayer, parse_cm, write_cm};
pub use collective::{Collective, CollectiveError, CollectiveFault, CollectiveSettings};
pub use error::{FileError, FileWarning, FlowName, Subject, WorkloadError};
pub use flow::{FlowSpec, Start, TriggerIndex, TriggerKind, TriggerSpec, Workload};
pub use format::{FileFormat, TraceFormat};
pub use generate::{BuildContext, LoadedWorkload, WorkloadDefinition, WorkloadSettings};
pub use goal::{
    GoalFile, GoalWriteError, is_goal_binary, parse_goal, parse_goal_binary, write_goal,
    write_goal_binary,
};
pub use graph::{Graph, GraphError, Need, Parallelism, Rank, Successors, Task, TaskId};
pub use hpcc::{HpccLink, HpccTopology, parse_hpcc_flows, parse_hpcc_topology};
pub use job::{Connection, JobSpec, Schedule, Volume};
pub use program::{
    CollectiveCall, CollectiveKind, Expand, ExpansionFault, Operation, OperationId, Program,
    ProgramError, RankProgram, Wait,
};
pub use rank::{MessageNumber, Output, Pace, Plan, RankRun, Slots};
pub use simai::{
    SimaiCall, SimaiFile, SimaiGroup, SimaiLayer, SimaiPhase, SimaiPolicy, SimaiWorkload,
    SimaiWriteError, parse_simai, write_simai,
};
pub use sizes::{PublishedSizes, SizeDistribution, SizePoint, SizeSource, parse_sizes};
pub use text::read_text;
pub use topo::{TierSpec, TopoFile, parse_topo};
pub use trigger::{Trigger, Triggers};
