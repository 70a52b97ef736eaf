//! State of the flows that are open here, for observers.

use super::key::Key;
use super::reliability_scheme::Sender;
use super::{Endpoint, FlowProgress, SendLimit};
use crate::congestion::telemetry::Telemetry;
use crate::congestion::{Allowance, CongestionControl, Controller};
use clearway_units::{Bytes, FlowId, MessageId, Span, Time};

/// A queue pair of a flow that is open at its sender.
pub struct OpenFlow<'a> {
    sender: &'a Sender,
    /// Allowance of its controller by now, where its group has told it nothing since.
    allowance: Option<Allowance>,
    controller: &'a Controller,
    /// Payload of a full packet.
    payload: u64,
}

impl OpenFlow<'_> {
    /// The flow.
    pub fn flow(&self) -> FlowId {
        self.sender.flow()
    }
    /// Index of the queue pair in the flow.
    pub fn queue_pair(&self) -> u8 {
        self.sender.queue_pair()
    }
    /// Payload bytes that the receiver has reported, and that were [skipped](Endpoint::skip).
    pub fn acknowledged(&self) -> Bytes {
        self.sender.progressed()
    }
    /// Sequence number of the next packet that was never sent, and the departure time of the last packet.
    pub fn departures(&self) -> (u64, Time) {
        (self.sender.sent_end(), self.sender.last_departure())
    }
    /// Message that is being sent, and full packets that may be [skipped](Endpoint::skip): all that were never sent, but for the last
    /// packet of the message. `None` if nothing new is left to send, or if the controller [counts](CongestionControl::counts_progress)
    /// what is sent.
    pub fn skippable(&self) -> Option<(MessageId, u64)> {
        let (message, rest) = self.sender.rest()?;
        (!self.controller.counts_progress())
            .then_some((message, rest.saturating_sub(1) / self.payload))
    }
    /// Time until the controller's timer; zero without one.
    pub fn timer(&self, now: Time) -> Span {
        let deadline = self.controller.deadline();
        match deadline.is_never() {
            true => Span::ZERO,
            false => deadline.since(now),
        }
    }
    /// Payload bytes of a full packet.
    pub fn full_payload(&self) -> u64 {
        self.payload
    }
    /// True if something was sent that is not acknowledged.
    pub fn has_outstanding(&self) -> bool {
        self.progress().unacknowledged_packets > 0
    }
    /// State of the queue pair's sender.
    pub fn progress(&self) -> FlowProgress {
        let progress = self.sender.progress();
        match self.allowance {
            Some(Allowance { window, rate }) => FlowProgress {
                window: Bytes::new(window as u64),
                rate,
                ..progress
            },
            None => progress,
        }
    }
}

impl<T: Telemetry> Endpoint<T> {
    /// State of the sender of a flow from here, its queue pairs together; `None` if the flow is not open.
    pub fn progress(&self, flow: FlowId) -> Option<FlowProgress> {
        let queue_pairs = self
            .slots_of(flow)
            .filter_map(|index| self.open_flow(index));
        let mut queue_pairs = queue_pairs.map(|open| open.progress());
        let mut progress = queue_pairs.next()?;
        queue_pairs.for_each(|other| progress.merge(&other));
        Some(progress)
    }

    /// Limit that keeps each open queue pair of a flow from sending its next packet at `now`, apart from a pause of its class.
    pub fn send_limits(
        &self,
        now: Time,
        flow: FlowId,
    ) -> impl Iterator<Item = (u8, SendLimit)> + '_ {
        let limit = move |index: u32, sender: &Sender| {
            let (may_send, departure) = match self.shared_allowance(index) {
                Some((_, fits, departure)) => (fits && sender.waits(&self.rules), departure),
                None => (sender.may_send(&self.rules), sender.departure()),
            };
            match may_send {
                true if !self.credit_of(sender) => SendLimit::Credit,
                true if departure <= now => SendLimit::Wire,
                true => SendLimit::Pacing,
                false if sender.has_packets() => SendLimit::Window,
                false => SendLimit::Application,
            }
        };
        self.slots_of(flow).filter_map(move |index| {
            let sender = self.slots[index as usize].sender.as_ref()?;
            Some((sender.queue_pair(), limit(index, sender)))
        })
    }

    /// Calls `look` for every queue pair of every open flow from here.
    pub fn for_each_open(&self, mut look: impl FnMut(&OpenFlow<'_>)) {
        let indices = 0..self.slots.len() as u32;
        indices
            .filter_map(|index| self.open_flow(index))
            .for_each(|open| look(&open));
    }

    fn open_flow(&self, index: u32) -> Option<OpenFlow<'_>> {
        let slot = &self.slots[index as usize];
        Some(OpenFlow {
            sender: slot.sender.as_ref()?,
            allowance: self.shared_allowance(index).map(|shared| shared.0),
            controller: self.controllers.get(slot.controller),
            payload: u64::from(self.profile.network.payload),
        })
    }

    /// Takes `packets` full packets of the message that a queue pair is sending for sent, delivered and acknowledged: fast-forward through
    /// a steady state. They get no sequence numbers, so that window, packets in flight, timers, controller and paths stay as they are, and
    /// the receiver need not know. The caller moves all clocks but this endpoint's by the time that the packets would have taken.
    ///
    /// # Panics
    /// If the queue pair is not open, or has [fewer](OpenFlow::skippable).
    pub fn skip(&mut self, flow: FlowId, queue_pair: u8, packets: u64) {
        let index = self.directory.peek(Key::new(flow, queue_pair));
        let index = index.expect("an open queue pair skips packets");
        let sender = self.slots[index as usize].sender.as_mut();
        sender
            .expect("an open queue pair has a sender")
            .skip(packets, &self.rules);
    }

    /// The slots of a flow that is open.
    fn slots_of(&self, flow: FlowId) -> impl Iterator<Item = u32> {
        (0..self.rules.queue_pairs)
            .filter_map(move |queue_pair| self.directory.peek(Key::new(flow, queue_pair)))
    }

    /// The senders of a flow.
    pub(super) fn queue_pairs(&self, flow: FlowId) -> impl Iterator<Item = &Sender> {
        self.slots_of(flow)
            .filter_map(|index| self.slots[index as usize].sender.as_ref())
    }
}
