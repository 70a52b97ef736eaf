//! Flows, their milestones and outcomes, and reactions to them.

use clearway_transport::congestion::PathFacts;
use clearway_transport::{Class, FlowStatistics, Opening};
use clearway_units::{Bytes, FlowId, HostId, Time};
use std::num::NonZeroU32;

/// A flow: one message, or a connection on which a [`Program`](crate::Program) posts several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Host that sends.
    pub src: HostId,
    /// Host that receives.
    pub dst: HostId,
    /// Bytes to send, all messages together.
    pub bytes: Bytes,
    /// Number of messages that a program posts; `None` for a flow that begins by the clock or by a [reaction](Reactions).
    pub messages: Option<NonZeroU32>,
    /// The class of its data packets.
    pub class: Class,
    /// Transport: 0 for [`Setup::profile`](crate::Setup::profile), n for the n-th of the
    /// [further ones](crate::Setup::further_transports).
    pub transport: u8,
    /// Index of its congestion controller's settings among the settings of its transport; see [`Opening::variant`].
    pub variant: u16,
    /// Payload of a communication phase, zero if nobody knows; see [`Opening::phase`].
    pub phase: Bytes,
    /// Start time; `None` if the flow starts when something [reacts](Reactions) with it, or when a program posts its first message.
    pub start: Option<Time>,
}

impl Flow {
    /// A message that begins by the clock, in the class of data.
    pub const fn timed(src: HostId, dst: HostId, bytes: Bytes, at: Time) -> Self {
        Self {
            src,
            dst,
            bytes,
            messages: None,
            class: Class::DATA,
            transport: 0,
            variant: 0,
            phase: Bytes::ZERO,
            start: Some(at),
        }
    }

    /// Settings with which its sender opens the flow on `path`.
    pub(crate) fn opening(&self, path: PathFacts) -> Opening {
        Opening {
            class: self.class,
            path,
            variant: self.variant,
            phase: self.phase,
        }
    }
}

/// Milestone in the life of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowMilestone {
    /// The message is ready at the sender.
    Started,
    /// The receiver has every packet.
    Received,
    /// The sender has every acknowledgement.
    Sent,
    /// The program of the sender requests a credit: it wants to post a message on a connection.
    CreditRequested,
    /// The program of the receiver returns a credit: it has had a message.
    CreditReturned,
}

/// Event of a flow: it has reached a milestone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowEvent {
    /// Time of the event.
    pub time: Time,
    /// Flow that has reached the milestone.
    pub flow: FlowId,
    /// Milestone that it has reached.
    pub milestone: FlowMilestone,
}

/// Starts flows in answer to events of other flows.
///
/// Reactions of a host see the events of that host (flows that it has sent and received) and start flows of that host at the same instant.
/// Reactions of the whole run see all events and start flows anywhere, but later by
/// [`RunControl::coordination_delay`](crate::RunControl::coordination_delay): an event takes effect elsewhere only after a delay. A
/// connection that they start is a message granted to the [program](crate::Program) of its sender.
pub trait Reactions: Send {
    /// `event` has happened; flows to start are pushed to `start`.
    fn on_event(&mut self, event: FlowEvent, start: &mut Vec<FlowId>);
}

/// Outcome of a flow: times of its milestones, and counters of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowOutcome {
    /// Time at which the message was ready.
    pub started: Option<Time>,
    /// Time at which the receiver had everything.
    pub received: Option<Time>,
    /// Time at which the last byte was acknowledged at the sender. From start to here is the flow completion time.
    pub sent: Option<Time>,
    /// Counters of the sender, until the flow was done or the run ended.
    pub statistics: FlowStatistics,
}
