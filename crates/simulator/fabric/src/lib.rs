//! Links, ports, queues, switches, NIC hosts, topologies and routing: everything between two transport endpoints.
//!
//! The path of a packet: [`Endpoint`](clearway_transport::Endpoint) → NIC of the host → link → switch (admission, queue of the
//! egress port, marking) → link → … → host → endpoint. A *link* is one direction of a cable; it is also a mailbox of the engine,
//! so a packet needs one message per hop and no other event: queues work off their packets lazily, when the next one arrives or
//! the round ends.
//!
//! # Order at equal times
//! At one instant a node handles, in this order: the end of a transmission, events of links, pause frames taking effect (also one that
//! has arrived at this instant), arrivals, the start of a transmission, timers. Ends of transmissions of one instant at one switch go
//! by port.
//! Arrivals of one instant at one switch are ordered by a mix of seed, instant and link that is a bijection on links: unique,
//! independent of threads and domains, and without a port that always comes first (see the `order` module).
//!
//! **Architecture invariant:** no files, no text formats, no TOML. No transport logic: a switch reads addressing, class and
//! size of a packet and writes its congestion mark, nothing else.

mod agent;
mod command;
mod domain;
mod endpoints;
mod events;
mod flow;
mod forwarding;
mod host;
mod link;
mod meter;
mod observer;
mod order;
mod pause;
mod program;
mod simulation;
mod switch;
pub mod topology;

pub use agent::Agent;
pub use clearway_engine::{Rounds, RunDecision, Threads};
pub use events::{LinkChange, LinkEvent, LinkSchedule};
pub use flow::{Flow, FlowEvent, FlowMilestone, FlowOutcome, Reactions};
pub use forwarding::Forwarding;
pub use link::{LinkCounters, LinkErrors};
pub use meter::{LinkInterval, LinkTotals, LinkView};
pub use observer::{DropCause, Interests, Observer, Senders, Watch};
pub use pause::LinkPauses;
pub use program::{NicMessage, NicMessageKind, Post, Program};
pub use simulation::{
    Advance, Driver, FlowSource, FurtherTransports, Outcome, RunControl, RunProgress, Sampler,
    Setup, Simulation, Snapshot, Stopped, TracedRoutes, Traffic,
};
pub use switch::{
    AdaptiveRoutingParameters, ClassMarks, LosslessClasses, MarkAt, PathChoice, QueueRules,
    SharedBufferParameters, SwitchParameters, TelemetryFormat, TrimVictim,
};
