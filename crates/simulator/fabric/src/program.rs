//! Programs of hosts: their interface, and a program at its host with its connections.

use crate::flow::{Flow, FlowMilestone};
use clearway_transport::FlowStatistics;
use clearway_units::{Bytes, FlowId, HostId, MessageId, Span, Time};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

/// A message for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post {
    /// A [`Flow`] with messages.
    pub connection: FlowId,
    /// Unique on its connection, and not `u32::MAX`.
    pub message: MessageId,
    /// Length of the message.
    pub bytes: Bytes,
}

/// A message whose transfer is known: it takes these times, and no packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTransfer {
    /// A [`Flow`] with messages.
    pub connection: FlowId,
    /// Unique on its connection, and not `u32::MAX`.
    pub message: MessageId,
    /// Length of the message.
    pub bytes: Bytes,
    /// Time until it has arrived in full; at least the shortest delay of a link.
    pub received: Span,
    /// Time until it is acknowledged.
    pub sent: Span,
}

/// Program of a host: it posts messages on connections from there, in answer to messages that have come or are acknowledged, or when its
/// deadline has come.
///
/// A state machine: after each call it is asked what to post until it has nothing more.
pub trait Program: Send {
    /// A message of this program is acknowledged.
    fn on_sent(&mut self, now: Time, connection: FlowId, message: MessageId);
    /// A message on a connection to its host has arrived in full.
    fn on_received(&mut self, now: Time, connection: FlowId, message: MessageId);
    /// [`deadline`](Self::deadline) has come.
    fn on_deadline(&mut self, now: Time);
    /// Time at which the program goes on without a message; [`Time::NEVER`] if it waits for messages only.
    fn deadline(&self) -> Time;
    /// The next message to post.
    fn poll_post(&mut self) -> Option<Post>;
    /// The next message to transfer without packets, because its times are known.
    fn poll_known(&mut self) -> Option<KnownTransfer> {
        None
    }
    /// Time at which its work was over; `None` while some is left, be it only a computation. A program that only answers messages has no
    /// work and returns zero.
    fn over(&self) -> Option<Time> {
        Some(Time::ZERO)
    }
    /// The coordinator has granted a [credit](FlowMilestone::CreditRequested) on a connection from here: one more message may be posted.
    fn on_granted(&mut self, now: Time, connection: FlowId) {
        let _ = (now, connection);
    }
    /// The next credit that is [requested](FlowMilestone::CreditRequested) or [returned](FlowMilestone::CreditReturned), with its
    /// connection: for the coordinator.
    fn poll_credit(&mut self) -> Option<(FlowId, FlowMilestone)> {
        None
    }
    /// The program of another NIC of the same machine has sent this.
    fn on_nic_message(&mut self, now: Time, nic_message: NicMessage) {
        let _ = (now, nic_message);
    }
    /// The next message for the program of another NIC, and that NIC.
    fn poll_nic_message(&mut self) -> Option<(HostId, NicMessage)> {
        None
    }
}

/// Message from the program of one NIC to the program of another, where a machine has several. It takes no bytes of the network and as much
/// time as the coordinator's decisions ([`RunControl::coordination_delay`](crate::RunControl::coordination_delay)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NicMessage {
    /// The connection that it is about.
    pub connection: FlowId,
    /// The message on it.
    pub message: MessageId,
    /// Length of the message; zero where only the message's fate is told.
    pub bytes: Bytes,
    /// Kind of the NIC message.
    pub kind: NicMessageKind,
}

/// Kind of a [`NicMessage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NicMessageKind {
    /// The message is to be posted.
    Post,
    /// The message is acknowledged.
    Sent,
    /// The message has arrived.
    Received,
    /// One more message may be posted, whichever it is.
    Granted,
}

/// Event that comes to a host without a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Delivery {
    /// The program of another NIC of the machine has sent something.
    NicMessage(NicMessage),
    /// The message of a [known transfer](KnownTransfer) from here is acknowledged.
    Acknowledged(FlowId, MessageId),
    /// The message of a [known transfer](KnownTransfer) of this length to here has arrived.
    Arrived(FlowId, MessageId, Bytes),
}

/// A program and the connections that it uses. Most hosts have none.
pub(crate) struct ProgramAtHost {
    program: Option<Box<dyn Program>>,
    /// Time at which the program goes on without a message, or the next delivery comes. Stored, because every event of the host asks
    /// for it.
    pub(crate) deadline: Time,
    /// Time that the run has [skipped](crate::Snapshot::skip): the program's clock is ahead of the host's by so much.
    skipped: Span,
    /// Deliveries, each with the time at which it comes.
    deliveries: BinaryHeap<Reverse<(Time, Delivery)>>,
    /// Connections from here.
    sending: FxHashMap<FlowId, Sending>,
    /// Connections to here: messages that have yet to arrive.
    receiving: FxHashMap<FlowId, u32>,
}

impl Default for ProgramAtHost {
    fn default() -> Self {
        Self {
            program: None,
            deadline: Time::NEVER,
            skipped: Span::ZERO,
            deliveries: BinaryHeap::new(),
            sending: FxHashMap::default(),
            receiving: FxHashMap::default(),
        }
    }
}

/// A connection from a host.
struct Sending {
    /// Messages to be posted.
    to_post: u32,
    /// Messages to be acknowledged.
    to_acknowledge: u32,
    /// True if the endpoint has opened it: it has had a message with packets.
    is_open: bool,
    /// Counters of the sender at the last message with packets.
    statistics: FlowStatistics,
}

/// Position of a message among the messages of its connection.
pub(crate) struct Place {
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
    /// True if the endpoint has opened the connection before.
    pub(crate) is_open: bool,
}

impl ProgramAtHost {
    pub(crate) fn new(program: Box<dyn Program>) -> Self {
        Self {
            deadline: program.deadline(),
            program: Some(program),
            ..Self::default()
        }
    }

    /// Tells the program something.
    pub(crate) fn tell(&mut self, tell: impl FnOnce(&mut dyn Program)) {
        if let Some(program) = &mut self.program {
            tell(&mut **program);
            self.update_deadline();
        }
    }

    fn update_deadline(&mut self) {
        let own = self.program.as_ref().map(|program| program.deadline());
        let own = own.map(|deadline| deadline.earlier_by(self.skipped));
        let first = self.deliveries.peek().map(|Reverse((at, _))| *at);
        self.deadline = own.into_iter().chain(first).min().unwrap_or(Time::NEVER);
    }

    /// Time that the run has skipped.
    pub(crate) fn skipped(&self) -> Span {
        self.skipped
    }

    /// Time at which the program was done; `None` if it is not done, and zero without a program.
    pub(crate) fn over(&self) -> Option<Time> {
        let program = self.program.as_ref();
        program.map_or(Some(Time::ZERO), |program| program.over())
    }

    /// The run skips time: everything that waits for the clock comes so much earlier.
    pub(crate) fn skip(&mut self, time: Span) {
        self.skipped += time;
        let deliveries = std::mem::take(&mut self.deliveries).into_iter();
        let moved =
            deliveries.map(|Reverse((at, delivery))| Reverse((at.earlier_by(time), delivery)));
        self.deliveries = moved.collect();
        self.update_deadline();
    }

    /// A delivery is on its way, and comes at `at`.
    pub(crate) fn deliver(&mut self, at: Time, delivery: Delivery) {
        self.deliveries.push(Reverse((at, delivery)));
        self.deadline = self.deadline.min(at);
    }

    /// The next delivery that has come by `now`.
    pub(crate) fn take_delivery(&mut self, now: Time) -> Option<Delivery> {
        let &Reverse((at, delivery)) = self.deliveries.peek()?;
        if at > now {
            return None;
        }
        self.deliveries.pop();
        self.update_deadline();
        Some(delivery)
    }

    pub(crate) fn poll_post(&mut self) -> Option<Post> {
        self.program.as_mut()?.poll_post()
    }

    pub(crate) fn poll_known(&mut self) -> Option<KnownTransfer> {
        self.program.as_mut()?.poll_known()
    }

    pub(crate) fn poll_credit(&mut self) -> Option<(FlowId, FlowMilestone)> {
        self.program.as_mut()?.poll_credit()
    }

    pub(crate) fn poll_nic_message(&mut self) -> Option<(HostId, NicMessage)> {
        self.program.as_mut()?.poll_nic_message()
    }

    /// A message is posted on `connection`, with packets if `has_packets`.
    ///
    /// # Panics
    /// If the flow is not a connection, or has no messages left.
    pub(crate) fn on_post(&mut self, id: FlowId, connection: &Flow, has_packets: bool) -> Place {
        let messages = connection.messages.expect("programs post on connections");
        let all = messages.get();
        let own = self.sending.entry(id).or_insert_with(|| Sending {
            to_post: all,
            to_acknowledge: all,
            is_open: false,
            statistics: FlowStatistics::default(),
        });
        let is_first = own.to_post == all;
        own.to_post = own
            .to_post
            .checked_sub(1)
            .expect("a connection has so many messages");
        let is_open = own.is_open;
        own.is_open |= has_packets;
        Place {
            is_first,
            is_last: own.to_post == 0,
            is_open,
        }
    }

    /// A message is acknowledged, with the counters of the sender if it had packets; returns the counters if it was the last.
    pub(crate) fn on_acknowledged(
        &mut self,
        id: FlowId,
        statistics: Option<FlowStatistics>,
    ) -> Option<FlowStatistics> {
        let own = self.sending.get_mut(&id)?;
        own.to_acknowledge -= 1;
        if let Some(statistics) = statistics {
            own.statistics = statistics;
        }
        if own.to_acknowledge > 0 {
            return None;
        }
        let own = self.sending.remove(&id)?;
        Some(own.statistics)
    }

    /// A message has arrived; true if it was the last of so many. Nothing that comes after the last makes it the last again.
    pub(crate) fn has_received_all(&mut self, id: FlowId, messages: Option<NonZeroU32>) -> bool {
        let all = messages.map_or(1, NonZeroU32::get);
        let left = self.receiving.entry(id).or_insert(all);
        let was_last = *left == 1;
        *left = left.saturating_sub(1);
        was_last
    }
}

/// True if a program posts on this flow. Flows that are not in the table are never connections.
pub(crate) fn is_connection(flows: &[Flow], id: FlowId) -> bool {
    flows
        .get(id.index())
        .is_some_and(|flow| flow.messages.is_some())
}
