//! The transport of one host: senders and receivers of many flows.
//!
//! A packet that arrives goes through [`Endpoint::on_packet`]: data to the receiver of its flow, which may leave an acknowledgement in the
//! outbox; an acknowledgement to the sender of its flow, which may then be ready to send. [`Endpoint::poll_transmit`] takes control packets
//! from the outbox and asks the flows that may send, one packet each in turn.
//!
//! A flow has one queue pair, or several where its reliability scheme offers that. Each has a separate slot and counts as a separate flow.
//! Events and [`Endpoint::progress`] are about the whole flow.
//!
//! A receiver is created by the first packet of its flow. Some time after the last packet it is freed and only its final
//! acknowledgement stays, for good: a copy that comes later than any timer, or that is replayed, is answered and delivers nothing.
//! A sender is freed when it is closed and everything is acknowledged. Memory is bounded by the number of flows that are alive at a
//! time, plus a few bytes at the receiver of each finished flow.
//!
//! Timers are lazy: a flow has one entry in a heap, which is looked at when it comes due and put back if the flow's real
//! deadline has moved on. An acknowledgement therefore touches no heap.

mod candidates;
mod control;
mod controllers;
mod credit;
mod credit_control;
mod driver_queries;
pub(crate) mod flow;
mod flows;
mod gate;
mod groups;
mod key;
mod lifetime;
mod notifications;
mod prefetching;
mod progress;
mod rate_control;
mod reliability_scheme;
mod settle;
mod stripes;
#[cfg(test)]
mod tests;
mod transmit;
mod trimming;

use crate::congestion::CongestionControl;
use crate::congestion::feedback::{DataArrival, EndpointFeedback, Notify};
use crate::congestion::perc::RateAllocation;
use crate::congestion::scope::{Scope, ScopeParameters};
use crate::congestion::telemetry::{Hop, IntPacket, Telemetry};
use crate::endpoint::flow::{Context, Outbox, Reports, answer};
use crate::packet::{ClassSet, DataFlags, Header, Packet};
use crate::profile::Profile;
use clearway_units::{Bytes, FlowId, HostId, MessageId, Span, Time};
use controllers::{ControllerId, Controllers};
use credit_control::{CreditControl, CreditTimer};
use flows::{Directory, Notifications, Receivers, Receiving, TimerHeap};
use groups::{GroupId, Groups};
use key::Key;
use rate_control::RateControl;
use reliability_scheme::{Receiver, Rules, Sender};
use std::collections::VecDeque;
use std::sync::Arc;
use stripes::Stripes;

pub use crate::report::{EndpointCounters, Event, FlowProgress, FlowStatistics, SendLimit};
pub use progress::OpenFlow;

/// Context of a call of a sender of an endpoint.
macro_rules! context {
    ($endpoint:ident, $now:expr, $controller:expr) => {
        Context {
            now: $now,
            controller: $endpoint.controllers.lend($controller),
            events: &mut $endpoint.events,
            counters: &mut $endpoint.counters,
            tracing: $endpoint.tracing,
            hops: &[],
        }
    };
}
use context;

/// One flow from this host, or one of its queue pairs.
struct Slot {
    /// Sender in the slot; none if the slot is free.
    sender: Option<Sender>,
    /// The controller that governs the sender.
    controller: ControllerId,
    /// The scope's group, and whether the sender counts as busy there; unused if each queue pair is alone.
    group: GroupId,
    /// Number of the queue pair's opening in a group with a gate.
    order: u32,
    busy: bool,
    /// Unloaded round trip of the flow's path.
    path_rtt: Span,
    /// Bytes that were posted while exempt from rate allocation, and when the last of them were.
    exempted: (Bytes, Time),
    /// The time of the flow's valid entry among the timers.
    armed: Time,
    /// The time of the flow's valid entry among the departures.
    departs: Time,
    /// Index of the queue of the slot's class; it never changes.
    queue: u8,
    /// True if the sender may send and is not held back by pacing; behind the gate of a group, if it would send.
    sendable: bool,
    /// True while the slot is in the round robin of its queue. It may stay there when the flow has ended.
    queued: bool,
}

/// The transport of one host, whose packets carry telemetry `T`.
pub struct Endpoint<T = ()> {
    host: HostId,
    seed: u64,
    profile: Arc<Profile>,
    rules: Rules,
    control_first: bool,
    scope: Scope,
    /// True if the queue pairs of a group send by one condition.
    gated: bool,
    /// True if queue pairs hear of the others of their group when they are called.
    tells_late: bool,
    /// True if it is data's turn: the last packet polled was control, and control has no priority.
    data_turn: bool,
    tracing: bool,
    /// Classes that flow control holds back.
    paused: ClassSet,

    slots: Vec<Slot>,
    controllers: Controllers,
    /// Queue pairs of each enforcement scope; none if each queue pair is alone.
    groups: Option<Box<Groups>>,
    /// Control packets of s-PERC and 1RC.
    rate_control: Option<Box<RateControl>>,
    /// Receiver credits.
    credit: Option<Box<CreditControl>>,
    alive: usize,
    directory: Directory,
    receivers: Receivers,
    outbox: Outbox<T>,

    /// Messages of flows with several queue pairs that are being sent, and received.
    sending: Stripes,
    receiving: Stripes,

    /// Timers of senders, and of receivers whose rule wants to be asked later.
    timers: TimerHeap,
    notifications: Notifications,
    /// Departure times of flows that pacing holds back.
    departures: TimerHeap,
    events: VecDeque<Event>,
    counters: EndpointCounters,
}

impl Endpoint {
    /// Creates the transport of `host`, without telemetry. The seed decides the entropies of its flows; two hosts may have the same.
    ///
    /// # Panics
    /// If a full packet of the profile's network has no payload or more than 65535 bytes.
    pub fn new(host: HostId, profile: Arc<Profile>, seed: u64) -> Self {
        Self::with_telemetry(host, profile, seed)
    }
}

impl<T: Telemetry> Endpoint<T> {
    /// Creates the transport of `host` as [`new`](Endpoint::new) does, for packets that carry telemetry.
    ///
    /// # Panics
    /// As `new`.
    pub fn with_telemetry(host: HostId, profile: Arc<Profile>, seed: u64) -> Self {
        let controllers = profile.controllers();
        let largest_windows = controllers.map(|c| c.build(&profile.network).largest_window());
        let largest_window = largest_windows.fold(0.0, f64::max);
        let controller = profile.controller.build(&profile.network);
        let allocation = controller.allocation();
        let weights = profile.scope.scope == Scope::Host;
        let rate_control = allocation.map(|settings| {
            let weights = weights || settings.weights;
            let settings = RateAllocation {
                weights,
                ..settings.clone()
            };
            RateControl::new(settings, &profile, host, seed)
        });
        let scope = match rate_control {
            Some(_) => ScopeParameters::default(),
            None => profile.scope.clone(),
        };
        let rules = Rules::new(&profile, largest_window);
        let credit = CreditControl::new(&profile);
        let gated = scope
            .scope
            .is_gated(credit.is_some(), rules.scheme.has_sleek());
        Self {
            host,
            seed,
            rules,
            gated,
            tells_late: gated || matches!(scope.scope, Scope::Destination | Scope::Host),
            control_first: profile.reliability.control_first(),
            scope: scope.scope,
            data_turn: false,
            tracing: false,
            paused: ClassSet::EMPTY,
            slots: Vec::new(),
            controllers: Controllers::default(),
            groups: Groups::new(&scope),
            rate_control: rate_control.map(Box::new),
            credit,
            alive: 0,
            directory: Directory::default(),
            receivers: Receivers::new(&profile),
            outbox: Outbox::new(profile.strict_priority),
            profile,
            sending: Stripes::default(),
            receiving: Stripes::default(),
            timers: TimerHeap::default(),
            notifications: Notifications::default(),
            departures: TimerHeap::default(),
            events: VecDeque::new(),
            counters: EndpointCounters::default(),
        }
    }

    /// Host of this transport.
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Switches [`Event::Ack`] and [`Event::Loss`] on or off, for all flows.
    pub fn set_tracing(&mut self, tracing: bool) {
        self.tracing = tracing;
    }

    /// Sets the classes that the link's flow control holds back: [`poll_transmit`](Self::poll_transmit) returns no packet of them.
    /// Control is among them only where it has no priority and shares the queues of a data class.
    pub fn set_paused(&mut self, paused: ClassSet) {
        self.paused = paused;
    }

    /// Counters since the start.
    pub fn counters(&self) -> &EndpointCounters {
        &self.counters
    }

    /// With selective repeat, packets that may be on their way beyond the first missing one of a flow.
    #[cfg(test)]
    fn window_limit(&self) -> Option<u32> {
        self.rules.window()
    }

    /// Flows from here that are alive, counted once for each queue pair.
    pub fn open_senders(&self) -> usize {
        self.alive
    }

    /// Flows to here that have a receiver, finished ones that linger included, counted once for each queue pair.
    pub fn open_receivers(&self) -> usize {
        self.receivers.len()
    }

    /// Processes a packet that has arrived. Nothing that a peer sends makes it panic.
    #[inline(always)]
    pub fn on_packet(&mut self, now: Time, packet: &IntPacket<T>) {
        self.on_arrival(now, &packet.packet, packet.telemetry.clone());
    }

    /// As [`on_packet`](Self::on_packet), with the telemetry beside the packet, which goes on to the acknowledgement without a copy.
    // With an endpoint for each kind of telemetry the compiler would leave calls between here and the reliability schemes, which cost 3 %
    // of a hop; so the functions on this path are marked.
    #[inline(always)]
    pub fn on_arrival(&mut self, now: Time, packet: &Packet, telemetry: T) {
        match packet.header {
            Header::Data {
                psn,
                flags,
                pull_target,
                ..
            } => {
                let trimmed = flags.contains(DataFlags::TRIMMED);
                if self.credit.is_some() {
                    self.note_target(now, packet, pull_target, trimmed);
                }
                if trimmed {
                    return self.on_trimmed(now, packet, psn, telemetry);
                }
                self.on_data(now, packet, psn, telemetry);
            }
            Header::Sack { .. } | Header::Ack { .. } | Header::Nack { .. } => {
                self.on_acknowledgement(now, packet, telemetry.hops());
            }
            Header::Notification => self.on_notification(now, packet),
            Header::Probe { .. } => self.on_probe(now, packet),
            Header::Pull { pull } => self.on_pull(now, packet, pull),
            Header::RateControl { .. } => self.on_rate_control(now, packet, telemetry),
        }
    }

    /// Returns the next event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Time at which [`on_deadline`](Self::on_deadline) is to be called next; [`Time::NEVER`] if nothing waits. It may be too early,
    /// never too late.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.timers.next().min(self.departures.next())
    }

    #[inline(always)]
    fn on_data(&mut self, now: Time, packet: &Packet, psn: u32, telemetry: T) {
        let rules = &self.rules;
        let Some(receiving) = self.receivers.find_or_create(now, packet, psn, rules) else {
            return self.on_unexpected(packet, telemetry);
        };
        let Receiving {
            receiver,
            feedback,
            slot,
        } = receiving;
        if rules.notifies {
            let accepted = receiver.accepts(psn, rules);
            let notification = || answer(packet, rules.ack, Header::Notification);
            match feedback.on_data(slot, &arrival(now, packet, accepted)) {
                Notify::No => {}
                Notify::Now => self.outbox.push_control(notification().into()),
                Notify::At(time) => {
                    let timers = &mut self.timers;
                    self.notifications
                        .ask_at(time, slot, notification(), timers);
                }
            }
        }
        let events_before = self.events.len();
        let mut reports = Reports {
            outbox: &mut self.outbox,
            events: &mut self.events,
            counters: &mut self.counters,
            telemetry,
        };
        let finished = receiver.on_data(now, packet, rules, &mut reports);
        if rules.notifies && self.events.len() > events_before {
            feedback.on_complete(slot);
        }
        if finished {
            let key = Key::from_packet(packet);
            self.receivers.linger(now, key, rules);
            self.end_grants(key);
        }
        if self.rules.queue_pairs > 1 {
            self.merge_parts(events_before, packet);
        }
    }

    /// Processes a data packet that has no receiver and begins no flow.
    #[cold]
    fn on_unexpected(&mut self, packet: &Packet, telemetry: T) {
        let Some(last) = self.receivers.final_ack(Key::from_packet(packet)) else {
            self.counters.overflow += 1;
            return;
        };
        self.counters.data_received += 1;
        self.counters.marked += u64::from(packet.ecn);
        self.counters.duplicates += 1;
        if let Some(packet) = last.answer(packet, &self.rules) {
            self.outbox.push(IntPacket { packet, telemetry });
        }
    }

    fn on_probe(&mut self, now: Time, packet: &Packet) {
        self.counters.probes_received += 1;
        if let Header::Probe {
            pull_target: Some(target),
            ..
        } = packet.header
        {
            self.note_target(now, packet, target, true);
        }
        let (key, rules) = (Key::from_packet(packet), &self.rules);
        let sack = match self.receivers.find(key) {
            Some(receiver) => receiver.on_probe(now, packet, rules),
            None => match self.receivers.final_ack(key) {
                Some(last) => last.answer(packet, rules),
                // Nothing of an unknown flow has arrived, and the sender needs to hear that; but a probe alone does not begin a flow.
                None => Receiver::new(packet.flow, rules).on_probe(now, packet, rules),
            },
        };
        if let Some(sack) = sack {
            self.outbox.push_control(sack.into());
        }
    }

    #[inline(always)]
    fn on_acknowledgement(&mut self, now: Time, packet: &Packet, hops: &[Hop]) {
        self.counters.sacks_received += 1;
        let Some(index) = self.directory.find(Key::from_packet(packet)) else {
            self.counters.stray += 1;
            return;
        };
        let events_before = self.events.len();
        self.catch_up(index);
        let slot = &mut self.slots[index as usize];
        let Some(sender) = &mut slot.sender else {
            return;
        };
        let cx = &mut Context {
            hops,
            ..context!(self, now, slot.controller)
        };
        if self.scope.shares_controller() {
            cx.controller
                .select_sender(Key::from_packet(packet).number());
        }
        let deadline = match packet.header {
            Header::Ack { .. } => sender.on_ack(packet, cx, &self.rules),
            Header::Nack { .. } => sender.on_nack(packet, cx, &self.rules),
            _ => sender.on_sack(packet, cx, &self.rules),
        };
        if deadline < slot.armed {
            slot.armed = deadline;
            self.timers.push(deadline, index);
        }
        let finished = sender.is_finished();
        if self.credit.is_some() {
            self.note_answer(now, index);
        }
        self.refresh(now, index);
        if self.rules.queue_pairs > 1 {
            self.merge_parts(events_before, packet);
        }
        if finished {
            self.reap(packet.flow);
        }
    }

    /// Merges the events from number `from` on, which are of parts of messages, so that only whole messages are reported.
    fn merge_parts(&mut self, from: usize, cause: &Packet) {
        for event in self.events.split_off(from) {
            let merged = match event {
                Event::Received {
                    flow,
                    message,
                    bytes,
                } => {
                    if let Header::Data { parts, .. } = cause.header {
                        self.receiving.begin(flow, message, parts);
                    }
                    let whole = self.receiving.on_part(flow, message, bytes);
                    whole.map(|bytes| Event::Received {
                        flow,
                        message,
                        bytes,
                    })
                }
                Event::Sent {
                    flow,
                    message,
                    bytes,
                    ..
                } => {
                    let whole = self.sending.on_part(flow, message, bytes);
                    whole.map(|bytes| Event::Sent {
                        flow,
                        message,
                        bytes,
                        statistics: self.statistics(flow),
                    })
                }
                event => Some(event),
            };
            self.events.extend(merged);
        }
    }

    /// Statistics of a flow, its queue pairs together.
    fn statistics(&self, flow: FlowId) -> FlowStatistics {
        let mut statistics = FlowStatistics::default();
        self.queue_pairs(flow)
            .for_each(|sender| statistics.merge(sender.statistics()));
        statistics
    }

    /// Runs the timers that are due and lets paced flows go on. May be called early and often.
    pub fn on_deadline(&mut self, now: Time) {
        while let Some((time, index)) = self.departures.pop_due(now) {
            if index & candidates::GROUP != 0 {
                self.on_group_departure(now, time, index & !candidates::GROUP);
                continue;
            }
            let slot = &mut self.slots[index as usize];
            if slot.departs == time {
                slot.departs = Time::NEVER;
                self.catch_up(index);
                self.refresh(now, index);
            }
        }
        while let Some((time, index)) = self.timers.pop_due(now) {
            if let Some(receiver) = Notifications::receiver(index) {
                self.on_notification_due(now, time, receiver);
            } else if let Some(source) = RateControl::source(index) {
                self.on_source_due(now, time, source);
            } else if let Some(timer) = CreditTimer::from_timer(index) {
                self.on_credit_timer(now, time, timer);
            } else if index & candidates::GROUP_TIMER != 0 {
                self.on_group_timer(now, time, index & !candidates::GROUP_TIMER);
            } else if self.slots[index as usize].armed == time {
                self.on_timer(now, index);
            }
        }
        self.receivers.forget(now, &self.rules);
    }

    fn on_timer(&mut self, now: Time, index: u32) {
        self.catch_up(index);
        let slot = &mut self.slots[index as usize];
        slot.armed = Time::NEVER;
        let Some(sender) = &mut slot.sender else {
            return;
        };
        let cx = &mut context!(self, now, slot.controller);
        let probe = sender.on_deadline(cx, &self.rules);
        // A deadline that does not move must not keep the caller in a loop.
        let deadline = sender
            .deadline(cx.controller, &self.rules)
            .max(now + Span::from_ps(1));
        if let Some(probe) = probe {
            self.outbox.push(probe.into());
        }
        if !deadline.is_never() {
            slot.armed = deadline;
            self.timers.push(deadline, index);
        }
        if self.credit.is_some() {
            self.ask_after_timeout(now, index);
        }
        self.refresh(now, index);
    }
}

/// Description of a data packet for the rule for notifications.
fn arrival(now: Time, packet: &Packet, accepted: bool) -> DataArrival {
    let mut arrival = DataArrival {
        now,
        marked: packet.ecn,
        bytes: Bytes::ZERO,
        message: MessageId(0),
        offset: 0,
        ends_message: false,
        accepted,
    };
    if let Header::Data {
        message,
        offset,
        payload,
        flags,
        ..
    } = packet.header
    {
        arrival.bytes = Bytes::new(u64::from(payload));
        (arrival.message, arrival.offset) = (message, offset);
        arrival.ends_message = flags.contains(DataFlags::END_OF_MESSAGE);
    }
    arrival
}
