//! Injection control: the decision when a GPU may send an operation into the network.
//!
//! Each GPU has one [`InjectionControl`]. The GPU asks it about each operation at the head of an injection channel. It reports sent
//! operations, arrivals of others' multicast operations, and completions. The control has no clock: each call carries the cycle, and cycles
//! never go back. Calls of one cycle come in this order: arrivals of others' operations, completions, then questions and sends.
//!
//! A new control is one file with a type that implements [`InjectionControl`] and [`InjectionDefinition`], and one line in
//! [`InjectionRegistry::builtin`]; a control of another crate is [added](InjectionRegistry::with_control) at run time. Other crates can
//! also use the parts that several controls share: [`TokenBuckets`], [`Probe`] and [`LatencyParameters`].

mod aimd;
mod definition;
mod none;
mod outstanding;
mod probe;
mod registry;
#[cfg(test)]
mod tests;
mod three_cpo;
mod tokens;
mod window;

pub use aimd::{Aimd, AimdParameters};
pub use definition::{InjectionDefinition, InjectionSettings, InvalidSetting};
pub use none::{NoControl, NoControlParameters};
pub use outstanding::OutstandingFlits;
pub use probe::{LatencyParameters, Probe};
pub use registry::InjectionRegistry;
pub use three_cpo::{ThreeCpo, ThreeCpoParameters};
pub use tokens::{TokenArrival, TokenBuckets, TokenNeed, TokenParameters, Tokens};
pub use window::{Window, WindowParameters};

use crate::{Cycle, FlitSizes, GroupId, OperationKind};
use clearway_units::HostId;
use std::fmt::Debug;

/// Answer to the question whether an operation may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectionDecision {
    /// The operation may be sent in this cycle.
    Now,
    /// Not before this later cycle, when the GPU must ask again. Earlier events may change the answer, so the GPU also asks again after
    /// each of them.
    NotBefore(Cycle),
    /// Not before the next completion or arrival of another's operation.
    Wait,
}

/// Membership of a GPU in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// The group.
    pub group: GroupId,
    /// Members, this GPU among them.
    pub members: u32,
    /// Rank of this GPU among the members.
    pub rank: u32,
}

/// Facts that a control knows of its GPU and of the network.
#[derive(Debug, Clone, Copy)]
pub struct InjectionFacts<'a> {
    /// The GPU.
    pub gpu: HostId,
    /// Seed of the run.
    pub seed: u64,
    /// The groups that the GPU belongs to, by ascending group.
    pub memberships: &'a [Membership],
    /// Lengths of packets.
    pub sizes: FlitSizes,
}

/// An operation that the GPU has begun to send: its head flit leaves in cycle `now`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The cycle.
    pub now: Cycle,
    /// Number of the operation at this GPU, in the order of sending.
    pub number: u64,
    /// Direction of its data.
    pub kind: OperationKind,
    /// The group that it goes to; `None` for unicast.
    pub group: Option<GroupId>,
    /// Cycles for which it was at the head of its injection channel.
    pub waited: Cycle,
}

/// A request of another member's multicast operation that has arrived at the GPU, whether or not memory has taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    /// The cycle.
    pub now: Cycle,
    /// Direction of its data.
    pub kind: OperationKind,
    /// The group that it goes to.
    pub group: GroupId,
    /// Rank of its initiator in the group.
    pub initiator: u32,
}

/// An operation of the GPU whose response has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// The cycle.
    pub now: Cycle,
    /// Number of the operation, as in [`Sent`].
    pub number: u64,
    /// Direction of its data.
    pub kind: OperationKind,
    /// The group that it went to; `None` for unicast.
    pub group: Option<GroupId>,
    /// Cycles from the head flit's departure to the response's arrival.
    pub latency: Cycle,
}

/// State of a control at an instant, for series and timelines.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct InjectionGauges {
    /// Request and response tokens, in flits; below zero while a sent operation is being paid for.
    pub tokens: Option<[f64; 2]>,
    /// Watermarks of request and response tokens.
    pub watermarks: Option<[f64; 2]>,
    /// Flits of the GPU's own operations under way.
    pub outstanding: u64,
}

/// The control of one GPU.
pub trait InjectionControl: Debug + Send {
    /// Says whether an operation may be sent in cycle `now`. May be asked any number of times.
    fn consent(
        &mut self,
        now: Cycle,
        kind: OperationKind,
        group: Option<GroupId>,
    ) -> InjectionDecision;

    /// Takes note that the GPU sends an operation, to which it has just consented.
    fn on_sent(&mut self, sent: &Sent);

    /// Takes note of another member's multicast request.
    fn on_remote(&mut self, remote: &Remote);

    /// Takes note of the completion of an operation.
    fn on_completed(&mut self, completed: &Completed);

    /// State at cycle `now`. The call must not change later answers.
    fn gauges(&mut self, now: Cycle) -> InjectionGauges;
}
