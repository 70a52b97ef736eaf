//! State of the flows that are open here, for observers.

use super::key::Key;
use super::reliability_scheme::Sender;
use super::{Endpoint, FlowProgress, SendLimit};
use crate::congestion::Allowance;
use crate::congestion::telemetry::Telemetry;
use clearway_units::{Bytes, FlowId, Time};

/// A queue pair of a flow that is open at its sender.
pub struct OpenFlow<'a> {
    sender: &'a Sender,
    /// Allowance of its controller by now, where its group has told it nothing since.
    allowance: Option<Allowance>,
}

impl OpenFlow<'_> {
    /// The flow.
    pub fn flow(&self) -> FlowId {
        self.sender.flow()
    }
    /// Payload bytes that the receiver has reported.
    pub fn acknowledged(&self) -> Bytes {
        self.sender.acknowledged()
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
        Some(OpenFlow {
            sender: self.slots[index as usize].sender.as_ref()?,
            allowance: self.shared_allowance(index).map(|shared| shared.0),
        })
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
