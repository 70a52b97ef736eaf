//! Traffic of a run: flows with their triggers, and jobs of ranks.
//!
//! * A [`Workload`] is a list of [`FlowSpec`]s and of triggers between them. Every source of traffic ends in one, and
//!   [`Workload::check`] proves before a run that each of its flows will start.
//! * [`Triggers`] is the state machine that a simulator drives: an activation in, flows to start out.
//! * [`Arrivals`] are flows that begin at random, one after the other, as an iterator.
//! * A [`Graph`] holds the messages and computations of the ranks of a job, and the dependencies between them.
//! * [`collective`] has the algorithms of collectives as such graphs.
//! * [`experts`] has the traffic of mixture-of-experts layers as such graphs.
//! * A [`JobSpec`] places such a graph on hosts and runs it for one or more iterations.
//! * A [`RankRun`] is one rank of a job at run time: a state machine that says which messages to post when.
//! * A [`JobProgram`] holds the operations of each rank of a job, as traces list them: sends and receives apart, and calls of
//!   collectives. It becomes a `Graph`.
//! * An [`Attack`] turns the flows of some hosts into flows that take more than their share.
//! * [`SizeDistribution`] is a distribution of flow sizes in data-centre traffic; some are built in ([`PublishedSizes`]).
//!
//! **Architecture Invariant:** nothing here knows of links, queues or transports, and nothing reads a file.

mod arrivals;
mod attack;
mod check;
pub mod collective;
mod error;
pub mod experts;
mod exponential;
mod flow;
pub mod graph;
mod job;
mod power;
pub mod program;
pub mod rank;
pub mod sizes;
mod trigger;
mod trigger_spec;

pub use arrivals::{Arrivals, MergedArrivals, PoissonSource};
pub use attack::{Attack, AttackFault, AttackKind};
pub use collective::{Collective, CollectiveError, CollectiveFault, CollectiveSettings};
pub use error::{ErrorSubject, FileError, FileWarning, FlowName, WorkloadError, counted};
pub use flow::{FlowSpec, Start, Workload};
pub use graph::{
    Graph, GraphCall, GraphError, Parallelism, Rank, Successors, Task, TaskDependency, TaskId,
};
pub use job::{JobSpec, RankConnection, Schedule, Volume};
pub use program::{
    CollectiveCall, CollectiveKind, Expand, ExpansionFault, JobProgram, Operation,
    OperationDependency, OperationId, ProgramError, RankProgram,
};
pub use rank::{ClockWait, MessageNumber, Output, Pace, PreparedGraph, RankRun, Slots};
pub use sizes::{PublishedSizes, SizeDistribution, SizePoint};
pub use trigger::{Trigger, Triggers};
pub use trigger_spec::{TriggerIndex, TriggerKind, TriggerSpec};
