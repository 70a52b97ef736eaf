//! A packet-level simulator of data-centre fabrics: links, queues, switches, NICs, topologies and routing.
//!
//! # Example
//!
//! Sixteen hosts under four leaves and two spines: all hosts but the first send to it at once.
//!
//! ```
//! use clearway_fabric::topology::{PacketSizes, Routes, leaf_spine};
//! use clearway_fabric::{Flow, RunControl, Setup, Simulation, SwitchParameters, RunDecision, Watch};
//! use clearway_transport::{ClassSet, Profile};
//! use clearway_units::{Bytes, HostId, Rate, Span, Time};
//! use std::sync::Arc;
//!
//! let link = (Rate::from_gbps(100), Span::from_us(1));
//! let topology = leaf_spine(16, 4, 2, 1, link, link)?;
//! let routes = Routes::compute(&topology)?;
//! let sizes = PacketSizes { payload: 4096, header: 64, ack: 64 };
//! let profile = Profile::strack(routes.paths.network_facts(sizes));
//! let to_first = |host| Flow::timed(HostId(host), HostId(0), Bytes::new(100_000), Time::ZERO);
//! let setup = Setup {
//!     topology: &topology,
//!     routes,
//!     flows: (1..16).map(to_first).collect(),
//!     further_classes: ClassSet::EMPTY,
//!     profile: Arc::new(profile),
//!     further_transports: Default::default(),
//!     switch: SwitchParameters::default(),
//!     buffer: None,
//!     link_events: Arc::default(),
//!     seed: 1,
//! };
//! let outcome = Simulation::new(&setup, |_| None, Watch::Off).run(RunControl {
//!     threads: 1.into(),
//!     at_most: Time::from_us(10_000),
//!     coordinator: None,
//!     traffic: None,
//!     coordination_delay: None,
//!     on_progress: &mut |_| RunDecision::Continue,
//! });
//! outcome.check_conservation()?;
//! println!("finished at {}, {} packets dropped", outcome.finished, outcome.links.dropped);
//! // The link to the first host cannot carry so much in less time.
//! assert!(outcome.finished > Time::ZERO + link.0.span_of(Bytes::new(15 * 100_000)));
//! assert!(outcome.flows.iter().all(|flow| flow.received.is_some()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Stability
//!
//! In versions 0.x a minor release (0.2.0) may change the interface, and `CHANGELOG.md` names each change; a patch release (0.1.1) only
//! adds items. Meant to stay as they are: [`topology`] and its constructors, [`Flow`], [`Simulation`], [`Outcome`], [`Observer`].
//! [`Setup`], [`RunControl`] and [`SwitchParameters`] get a field for each new mechanism. The digest of a run may differ between minor
//! releases. `docs/interfaces/clearway-fabric.txt` lists all public items.
//!
//! # Features
//!
//! There are no cargo features.
//!
//! # The path of a packet
//!
//! [`Endpoint`](clearway_transport::Endpoint) → NIC of the host → link → switch (admission, queue of the
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
mod path_table;
mod pause;
mod prefetching;
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
pub use program::{KnownTransfer, NicMessage, NicMessageKind, Post, Program};
pub use simulation::{
    Advance, Driver, FlowSource, FurtherTransports, Outcome, RunControl, RunProgress, Sampler,
    Setup, Simulation, Snapshot, Stopped, TracedRoutes, Traffic,
};
pub use switch::{
    AdaptiveRoutingParameters, ClassMarks, LosslessClasses, MarkAt, PathChoice, QueueRules,
    SharedBufferParameters, SwitchParameters, TelemetryFormat, TrimVictim,
};
