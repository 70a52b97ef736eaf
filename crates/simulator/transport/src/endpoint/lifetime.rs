//! Lifecycle of the flows that start here: opening, posting of messages, closing, removal.

use super::controllers::ControllerId;
use super::key::Key;
use super::reliability_scheme::Sender;
use super::{Endpoint, Slot};
use crate::congestion::telemetry::Telemetry;
use crate::endpoint::flow::SenderIdentity;
use crate::exact_push;
use crate::packet::{AddressHash, Class};
use crate::profile::Opening;
use clearway_units::{Bytes, FlowId, HostId, MessageId, Span, Time};

impl<T: Telemetry> Endpoint<T> {
    /// Opens a flow from here to `peer`; the other end is not told. `flow` is a number that no flow had before, anywhere: packets of
    /// a finished flow are taken for late copies.
    ///
    /// # Panics
    /// If the flow is open, its class is the control class, or the profile has no such variant.
    pub fn open(&mut self, flow: FlowId, peer: HostId, opening: &Opening) {
        let class = opening.class;
        assert!(class.is_data(), "flow {flow} is opened as control");
        let network = self.profile.network.on_path(opening.path);
        // Each queue pair has its share.
        let queue_pairs = u64::from(self.rules.queue_pairs);
        let phase = Bytes::new(opening.phase.as_u64().div_ceil(queue_pairs));
        for queue_pair in 0..self.rules.queue_pairs {
            let ends = SenderIdentity {
                flow,
                source: self.host,
                peer,
                queue_pair,
                class,
                addresses: AddressHash::new(self.host, peer),
            };
            let index = self.free_slot(class);
            let controller = self.join(index, &ends, opening, phase);
            let paths = self.profile.paths(&network, ends.entity(), self.seed);
            let lent = self.controllers.lend(controller);
            let sender = Sender::new(ends, paths, lent, &self.rules);
            let slot = &mut self.slots[index as usize];
            slot.sender = Some(sender);
            slot.controller = controller;
            slot.path_rtt = opening.path.rtt;
            slot.exempted = (Bytes::ZERO, Time::ZERO);
            self.open_credit(index);
            self.tell(index);
            self.alive += 1;
            let fresh = self.directory.insert(Key::new(flow, queue_pair), index);
            assert!(fresh, "flow {flow} is opened twice");
        }
    }

    /// A slot for a flow of `class`.
    fn free_slot(&mut self, class: Class) -> u32 {
        let queue = self.outbox.queue_of(class);
        self.outbox.queue(queue).free.pop().unwrap_or_else(|| {
            let slot = Slot {
                sender: None,
                controller: ControllerId::default(),
                group: 0,
                order: 0,
                busy: false,
                path_rtt: Span::ZERO,
                exempted: (Bytes::ZERO, Time::ZERO),
                armed: Time::NEVER,
                departs: Time::NEVER,
                queue,
                sendable: false,
                queued: false,
            };
            exact_push::push(&mut self.slots, slot);
            self.slots.len() as u32 - 1
        })
    }

    /// Posts a message on an open flow. It waits for the messages before it on its flow to be *sent*, not acknowledged. `message` is
    /// unique on its flow and not `u32::MAX`; a length of zero is allowed.
    ///
    /// # Panics
    /// If the flow is not open.
    pub fn post(&mut self, now: Time, flow: FlowId, message: MessageId, bytes: Bytes) {
        if self.rules.queue_pairs > 1 {
            let carriers = self.rules.carriers(message, bytes);
            self.sending.begin(flow, message, carriers);
        }
        for queue_pair in 0..self.rules.queue_pairs {
            let index = self.expect_open(flow, queue_pair);
            self.forget_idle(now, index);
            self.catch_up(index);
            let idle = |sender: &Sender| !sender.is_busy();
            let is_idle = self.slots[index as usize].sender.as_ref().is_some_and(idle);
            self.restart_credit(index, is_idle);
            if let Some(sender) = &mut self.slots[index as usize].sender {
                sender.post(message, bytes, &self.rules);
            }
            self.join_allocation(now, index, Key::new(flow, queue_pair), bytes);
            self.refresh(now, index);
        }
    }

    /// Closes a flow: no more messages will come. It lives until all of its messages are acknowledged. Closing before the last packet
    /// has left costs nothing; afterwards, an empty packet has to tell the receiver.
    ///
    /// # Panics
    /// If the flow is not open.
    pub fn close(&mut self, now: Time, flow: FlowId) {
        for queue_pair in 0..self.rules.queue_pairs {
            let index = self.expect_open(flow, queue_pair);
            self.catch_up(index);
            if let Some(sender) = &mut self.slots[index as usize].sender {
                sender.close(&self.rules);
            }
            self.refresh(now, index);
        }
        self.reap(flow);
    }

    /// The slot of a flow that the caller says is open.
    fn expect_open(&mut self, flow: FlowId, queue_pair: u8) -> u32 {
        match self.directory.find(Key::new(flow, queue_pair)) {
            Some(index) => index,
            None => panic!("flow {flow} is not open"),
        }
    }

    /// Frees the slots of a flow that is closed and done on all queue pairs.
    pub(super) fn reap(&mut self, flow: FlowId) {
        if !self.queue_pairs(flow).all(Sender::is_finished) {
            return;
        }
        for queue_pair in 0..self.rules.queue_pairs {
            let key = Key::new(flow, queue_pair);
            let Some(index) = self.directory.peek(key) else {
                continue;
            };
            let slot = &mut self.slots[index as usize];
            debug_assert!(!slot.sendable, "a finished flow has something to send");
            self.directory.remove(key);
            slot.sender = None;
            self.alive -= 1;
            self.outbox.queue(slot.queue).free.push(index);
            self.leave(index);
        }
    }
}
