//! Programs of hosts: their interface, and a program at its host with its connections.

use crate::flow::{Flow, FlowMilestone};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Time};
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

/// A program and the connections that it uses. Most hosts have none.
pub(crate) struct ProgramAtHost {
    program: Option<Box<dyn Program>>,
    /// Time at which the program goes on without a message, or a message of another NIC comes. Stored, because every event of the host asks
    /// for it.
    pub(crate) deadline: Time,
    /// Messages from programs of other NICs, each with the time at which it comes.
    nic_messages: BinaryHeap<Reverse<(Time, NicMessage)>>,
    /// Connections from here: messages to be posted, and messages to be acknowledged.
    sending: FxHashMap<FlowId, (u32, u32)>,
    /// Connections to here: messages that have yet to arrive.
    receiving: FxHashMap<FlowId, u32>,
}

impl Default for ProgramAtHost {
    fn default() -> Self {
        Self {
            program: None,
            deadline: Time::NEVER,
            nic_messages: BinaryHeap::new(),
            sending: FxHashMap::default(),
            receiving: FxHashMap::default(),
        }
    }
}

/// Position of a message among the messages of its connection.
pub(crate) struct Place {
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
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
        let first = self.nic_messages.peek().map(|Reverse((at, _))| *at);
        self.deadline = own.into_iter().chain(first).min().unwrap_or(Time::NEVER);
    }

    /// Time at which the program was done; `None` if it is not done, and zero without a program.
    pub(crate) fn over(&self) -> Option<Time> {
        let program = self.program.as_ref();
        program.map_or(Some(Time::ZERO), |program| program.over())
    }

    /// A message of another NIC is on its way, and comes at `at`.
    pub(crate) fn deliver(&mut self, at: Time, nic_message: NicMessage) {
        self.nic_messages.push(Reverse((at, nic_message)));
        self.deadline = self.deadline.min(at);
    }

    /// The next message of another NIC that has come by `now`.
    pub(crate) fn take_nic_message(&mut self, now: Time) -> Option<NicMessage> {
        let &Reverse((at, nic_message)) = self.nic_messages.peek()?;
        if at > now {
            return None;
        }
        self.nic_messages.pop();
        self.update_deadline();
        Some(nic_message)
    }

    pub(crate) fn poll_post(&mut self) -> Option<Post> {
        self.program.as_mut()?.poll_post()
    }

    pub(crate) fn poll_credit(&mut self) -> Option<(FlowId, FlowMilestone)> {
        self.program.as_mut()?.poll_credit()
    }

    pub(crate) fn poll_nic_message(&mut self) -> Option<(HostId, NicMessage)> {
        self.program.as_mut()?.poll_nic_message()
    }

    /// A message is posted on `connection`.
    ///
    /// # Panics
    /// If the flow is not a connection, or has no messages left.
    pub(crate) fn on_post(&mut self, id: FlowId, connection: &Flow) -> Place {
        let messages = connection.messages.expect("programs post on connections");
        let all = messages.get();
        let (to_post, _) = self.sending.entry(id).or_insert((all, all));
        let is_first = *to_post == all;
        *to_post = to_post
            .checked_sub(1)
            .expect("a connection has so many messages");
        Place {
            is_first,
            is_last: *to_post == 0,
        }
    }

    /// A message is acknowledged; true if it was the last.
    pub(crate) fn has_sent_all(&mut self, id: FlowId) -> bool {
        let Some((_, left)) = self.sending.get_mut(&id) else {
            return false;
        };
        *left -= 1;
        let all = *left == 0;
        if all {
            self.sending.remove(&id);
        }
        all
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
