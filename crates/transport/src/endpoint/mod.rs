//! The transport of one host: many flows, one shape.
//!
//! A packet that arrives goes through [`Endpoint::on_packet`]: data to the receiver of its flow, which may leave an
//! acknowledgement in the control queue; an acknowledgement to the sender of its flow, which may thereupon be ready to send.
//! [`Endpoint::poll_transmit`] takes from the control queue and from the flows that may send, one packet each in turn.
//!
//! Receivers come into being with the first packet of a flow and are forgotten some time after the last; senders when they are
//! closed and everything is acknowledged. Memory is bounded by the flows that are alive at a time, not by their number.
//!
//! Timers are lazy: a flow has one entry in a heap, which is looked at when it comes due and put back if the flow's real
//! deadline has moved on. An acknowledgement therefore touches no heap.

mod flows;
mod report;
#[cfg(test)]
mod tests;

use crate::cc::CongestionControl;
use crate::packet::{Class, ClassSet, Header, Packet};
use crate::profile::Profile;
use crate::selective_repeat::{Context, Due, Receiver, Reports, Rules, Sender};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Span, Time};
use flows::{Directory, Receivers, TimerHeap};
use std::collections::VecDeque;
use std::sync::Arc;

pub use report::{EndpointCounters, Event, FlowProgress, FlowStatistics};

/// What can happen to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A flow from here to `peer` begins. The other end needs no notice.
    Open {
        /// Unique among all flows that are alive anywhere.
        flow: FlowId,
        /// The host at the other end.
        peer: HostId,
    },
    /// A message is ready to be sent. It waits for the messages before it on its flow to be *sent*, not acknowledged.
    Post {
        /// An open flow.
        flow: FlowId,
        /// Unique on its flow, and not `u32::MAX`.
        message: MessageId,
        /// Its length, which may be zero.
        bytes: Bytes,
    },
    /// No more messages will come. The flow lives until all of its messages are acknowledged. Closing before the last packet
    /// has left costs nothing; afterwards, an empty packet has to tell the receiver.
    Close {
        /// An open flow.
        flow: FlowId,
    },
    /// A packet has arrived.
    Packet(Packet),
    /// [`Endpoint::deadline`] has come. May be given early and often.
    Deadline,
}

/// One flow from this host. Another reliability scheme becomes an enum over senders here and one over receivers in
/// [`Receivers`]; the endpoint asks of them no more than the methods that it calls.
struct Slot {
    /// None when the slot is free.
    sender: Option<Sender>,
    /// The time of the flow's valid entry among the timers.
    armed: Time,
    /// The flow has an entry among the departures.
    paced: bool,
    /// The sender may send and is not held back by pacing.
    sendable: bool,
    /// The slot is among those that take turns. It may stay there when the flow has ended.
    queued: bool,
}

/// The transport of one host.
pub struct Endpoint {
    host: HostId,
    seed: u64,
    profile: Arc<Profile>,
    rules: Rules,
    control_first: bool,
    /// The last packet polled was control, so that it is data's turn.
    data_turn: bool,
    tracing: bool,
    /// Classes that flow control holds back.
    paused: ClassSet,

    slots: Vec<Slot>,
    free: Vec<u32>,
    directory: Directory,
    receivers: Receivers,

    control: VecDeque<Packet>,
    /// Slots that were sendable when they were put here, each at most once.
    turns: VecDeque<u32>,
    /// Slots that are sendable now.
    sendable: usize,

    timers: TimerHeap,
    /// When flows that pacing holds back may go on.
    departures: TimerHeap,
    events: VecDeque<Event>,
    counters: EndpointCounters,
}

macro_rules! context {
    ($endpoint:ident, $now:expr) => {
        Context {
            now: $now,
            rules: &$endpoint.rules,
            events: &mut $endpoint.events,
            counters: &mut $endpoint.counters,
            tracing: $endpoint.tracing,
        }
    };
}

impl Endpoint {
    /// The transport of `host`. The seed decides the entropies of its flows; two hosts may have the same.
    ///
    /// # Panics
    /// If a full packet of the profile's network has no payload or more than 65535 bytes.
    pub fn new(host: HostId, profile: Arc<Profile>, seed: u64) -> Self {
        let largest_window = profile.controller.build(&profile.network).largest_window();
        Self {
            host,
            seed,
            rules: Rules::new(&profile.reliability, &profile.network, largest_window),
            control_first: profile.reliability.control_first,
            data_turn: false,
            tracing: false,
            paused: ClassSet::EMPTY,
            profile,
            slots: Vec::new(),
            free: Vec::new(),
            directory: Directory::default(),
            receivers: Receivers::default(),
            control: VecDeque::new(),
            turns: VecDeque::new(),
            sendable: 0,
            timers: TimerHeap::default(),
            departures: TimerHeap::default(),
            events: VecDeque::new(),
            counters: EndpointCounters::default(),
        }
    }

    /// The host that this is the transport of.
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Switches [`Event::Ack`] and [`Event::Loss`] on or off, for all flows.
    pub fn set_tracing(&mut self, tracing: bool) {
        self.tracing = tracing;
    }

    /// Classes that the link's flow control holds back from now on: [`poll_transmit`](Self::poll_transmit) yields none of them.
    pub fn set_paused(&mut self, paused: ClassSet) {
        self.paused = paused;
    }

    /// What has been counted since the start.
    pub fn counters(&self) -> &EndpointCounters {
        &self.counters
    }

    /// Packets that may be on their way beyond the first missing one of a flow.
    pub fn window_limit(&self) -> u32 {
        self.rules.window
    }

    /// Flows from here that are alive.
    pub fn open_senders(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Flows to here that are remembered, finished ones that linger included.
    pub fn open_receivers(&self) -> usize {
        self.receivers.len()
    }

    /// How a flow from here is doing; `None` if it is not open.
    pub fn progress(&self, flow: FlowId) -> Option<FlowProgress> {
        let slot = self.directory.peek(flow)?;
        self.slots[slot as usize]
            .sender
            .as_ref()
            .map(Sender::progress)
    }

    /// Something has happened at `now`.
    ///
    /// # Panics
    /// If a flow is opened twice, or is posted on or closed without being open: that is the caller's defect. Nothing that a
    /// peer sends makes it panic.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Open { flow, peer } => self.open(flow, peer),
            Input::Post {
                flow,
                message,
                bytes,
            } => self.post(now, flow, message, bytes),
            Input::Close { flow } => self.close(now, flow),
            Input::Packet(packet) => self.on_packet(now, &packet),
            Input::Deadline => self.on_deadline(now),
        }
    }

    /// A packet has arrived: [`Input::Packet`] without the copy.
    #[inline]
    pub fn on_packet(&mut self, now: Time, packet: &Packet) {
        match packet.header {
            Header::Data { psn, .. } => self.on_data(now, packet, psn),
            Header::Sack { .. } => self.on_sack(now, packet),
            Header::Probe { .. } => self.on_probe(now, packet),
        }
    }

    /// Something can be sent right now, with pacing as of the last [`Input::Deadline`].
    #[inline]
    pub fn ready(&self) -> bool {
        self.data_ready() || !self.control.is_empty()
    }

    /// A flow may send and its class is not paused.
    #[inline]
    fn data_ready(&self) -> bool {
        self.sendable > 0 && !self.paused.contains(Class::DATA)
    }

    /// The next packet for the wire, stamped with `now`. Its header hash is left zero.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.control.is_empty() || (self.data_turn && self.data_ready()) {
            self.data_turn = false;
            return self.transmit_data(now);
        }
        self.data_turn = !self.control_first;
        self.transmit_control(now)
    }

    /// The next thing that happened.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Input::Deadline`] should be given next; [`Time::NEVER`] if nothing waits. It may be too early, never too late.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.timers.next().min(self.departures.next())
    }

    /// Payload bytes in flight on all flows, with its sign.
    #[cfg(test)]
    fn in_flight_exact(&self) -> i64 {
        let senders = self.slots.iter().filter_map(|slot| slot.sender.as_ref());
        senders.map(Sender::in_flight_exact).sum()
    }

    fn open(&mut self, flow: FlowId, peer: HostId) {
        let sender = Sender::new(flow, self.host, peer, &self.profile, &self.rules, self.seed);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                sender: None,
                armed: Time::NEVER,
                paced: false,
                sendable: false,
                queued: false,
            });
            self.slots.len() as u32 - 1
        });
        self.slots[index as usize].sender = Some(sender);
        let fresh = self.directory.insert(flow, index);
        assert!(fresh, "flow {flow} is opened twice");
    }

    fn post(&mut self, now: Time, flow: FlowId, message: MessageId, bytes: Bytes) {
        let index = self.expect_open(flow);
        if let Some(sender) = &mut self.slots[index as usize].sender {
            sender.post(message, bytes, &self.rules);
        }
        self.refresh(now, index);
    }

    fn close(&mut self, now: Time, flow: FlowId) {
        let index = self.expect_open(flow);
        if let Some(sender) = &mut self.slots[index as usize].sender {
            sender.close(&self.rules);
        }
        self.refresh(now, index);
        self.reap(index);
    }

    /// The slot of a flow that the caller says is open.
    fn expect_open(&mut self, flow: FlowId) -> u32 {
        match self.directory.find(flow) {
            Some(index) => index,
            None => panic!("flow {flow} is not open"),
        }
    }

    #[inline]
    fn on_data(&mut self, now: Time, packet: &Packet, psn: u32) {
        let Some(receiver) = self
            .receivers
            .find_or_create(now, packet.flow, psn, &self.rules)
        else {
            self.counters.overflow += 1;
            return;
        };
        let mut reports = Reports {
            control: &mut self.control,
            events: &mut self.events,
            counters: &mut self.counters,
        };
        if receiver.on_data(now, packet, &self.rules, &mut reports) {
            self.receivers.linger(now, packet.flow, &self.rules);
        }
    }

    fn on_probe(&mut self, now: Time, packet: &Packet) {
        self.counters.probes_received += 1;
        // Of an unknown flow nothing has arrived, and the sender needs to hear that; but a probe alone begins no flow.
        let sack = match self.receivers.find(packet.flow) {
            Some(receiver) => receiver.on_probe(now, packet, &self.rules),
            None => Receiver::new(packet.flow, &self.rules).on_probe(now, packet, &self.rules),
        };
        self.control.extend(sack);
    }

    #[inline]
    fn on_sack(&mut self, now: Time, packet: &Packet) {
        self.counters.sacks_received += 1;
        let Some(index) = self.directory.find(packet.flow) else {
            self.counters.stray += 1;
            return;
        };
        let slot = &mut self.slots[index as usize];
        let Some(sender) = &mut slot.sender else {
            return;
        };
        sender.on_sack(packet, &mut context!(self, now));
        let deadline = sender.controller_deadline();
        if deadline < slot.armed {
            slot.armed = deadline;
            self.timers.push(deadline, index);
        }
        let finished = sender.is_finished();
        self.refresh(now, index);
        if finished {
            self.reap(index);
        }
    }

    /// Brings what is known of a flow's readiness up to date.
    #[inline(always)]
    fn refresh(&mut self, now: Time, index: u32) {
        let slot = &self.slots[index as usize];
        let Some(sender) = &slot.sender else {
            return;
        };
        let may_send = sender.may_send(&self.rules);
        let sendable = may_send && sender.departure() <= now;
        if sendable != slot.sendable || sendable != may_send {
            self.change_readiness(index, may_send, sendable);
        }
    }

    #[inline(never)]
    fn change_readiness(&mut self, index: u32, may_send: bool, sendable: bool) {
        let slot = &mut self.slots[index as usize];
        if let Some(sender) = &slot.sender
            && may_send
            && !sendable
            && !slot.paced
        {
            slot.paced = true;
            self.departures.push(sender.departure(), index);
        }
        if sendable != slot.sendable {
            slot.sendable = sendable;
            self.sendable = self.sendable + usize::from(sendable) - usize::from(!sendable);
        }
        if sendable && !slot.queued {
            slot.queued = true;
            self.turns.push_back(index);
        }
    }

    #[inline]
    fn transmit_data(&mut self, now: Time) -> Option<Packet> {
        while self.data_ready() {
            let index = *self.turns.front()?;
            let slot = &mut self.slots[index as usize];
            // The entry may be from before the window shrank, or from before the slot's last flow ended.
            if let Some(sender) = &mut slot.sender
                && slot.sendable
            {
                let packet = sender.transmit(&mut context!(self, now));
                // Only a flow that starts or restarts can have a deadline that is earlier than it was.
                if sender.has_restarted() && sender.deadline() < slot.armed {
                    slot.armed = sender.deadline();
                    self.timers.push(slot.armed, index);
                }
                self.end_turn(now, index);
                return Some(packet);
            }
            slot.queued = false;
            self.turns.pop_front();
        }
        None
    }

    /// The flow whose turn it was has sent a packet.
    #[inline]
    fn end_turn(&mut self, now: Time, index: u32) {
        self.refresh(now, index);
        let slot = &mut self.slots[index as usize];
        if !slot.sendable {
            slot.queued = false;
            self.turns.pop_front();
        } else if self.turns.len() > 1 {
            self.turns.rotate_left(1);
        }
    }

    #[inline]
    fn transmit_control(&mut self, now: Time) -> Option<Packet> {
        let mut packet = self.control.pop_front()?;
        if let Header::Probe { .. } = packet.header {
            packet.stamp = now;
            self.counters.probes_sent += 1;
            if let Some(index) = self.directory.find(packet.flow)
                && let Some(sender) = &mut self.slots[index as usize].sender
            {
                sender.on_probe_sent(now);
            }
        } else {
            self.counters.sacks_sent += 1;
        }
        Some(packet)
    }

    fn on_deadline(&mut self, now: Time) {
        while let Some((_, index)) = self.departures.pop_due(now) {
            self.slots[index as usize].paced = false;
            self.refresh(now, index);
        }
        while let Some((time, index)) = self.timers.pop_due(now) {
            if self.slots[index as usize].armed == time {
                self.on_timer(now, index);
            }
        }
        self.receivers.forget(now, &self.rules);
    }

    fn on_timer(&mut self, now: Time, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.armed = Time::NEVER;
        let Some(sender) = &mut slot.sender else {
            return;
        };
        if sender.on_deadline(&mut context!(self, now)) == Due::Probe {
            self.control.push_back(sender.probe(&self.rules));
        }
        // A deadline that does not move must not keep the caller in a loop.
        let deadline = sender.deadline().max(now + Span::from_ps(1));
        if !deadline.is_never() {
            slot.armed = deadline;
            self.timers.push(deadline, index);
        }
        self.refresh(now, index);
    }

    /// Frees the slot of a flow that is closed and done.
    fn reap(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if let Some(sender) = &slot.sender
            && sender.is_finished()
        {
            debug_assert!(!slot.sendable, "a finished flow has something to send");
            self.directory.remove(sender.flow());
            slot.sender = None;
            self.free.push(index);
        }
    }
}
