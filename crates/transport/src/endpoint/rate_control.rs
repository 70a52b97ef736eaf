//! Rate allocation by s-PERC or 1RC at a host: control packets of flows that start here, and marks of their speculative data.
//!
//! A queue pair that gets a message to send joins the allocation: its [`Source`] sends a control packet at once and then one in each round
//! trip, which the receiver reflects. Until the first is back the queue pair waits, or with 1RC sends speculative packets at line rate.
//! When it has sent all, the next control packet takes it out of the links' sums. Its source may outlive it.
//!
//! # Decisions
//! * The scope `host` is `weights = true`; links know no other scope.
//! * The NIC's own link has an agent too, which keeps the rates of a host's flows together within the line rate; it lets all speculative
//!   packets pass.
//! * A connection leaves the count of open connections when its last control packet departs, not when that has come back.
//! * A message that is posted while its queue pair leaves goes on at the last rate, and joins again afterwards.
//! * With selective repeat, what links drop of the speculative packets is found by loss detection.
//! * Packets without attachments (telemetry of another kind, as in drivers without links) get line rate: nobody is there to allocate.

use super::Endpoint;
use super::flows::Key;
use crate::cc::{CongestionControl, NetworkFacts};
use crate::packet::{Header, Packet};
use crate::perc::{
    Attachment, Connections, LinkAgent, LinkParameters, RateAllocation, Source, SourceParameters,
    SpeculativeSequence, bdp_packets,
};
use crate::telemetry::{IntPacket, Telemetry};
use clearway_units::{Bytes, HostId, Purpose, RandomStream, Rate, Span, Time};
use rustc_hash::FxHashMap;

/// Added to the number of a source among timers, where slots of senders are below.
const SOURCE: u32 = 1 << 30;

/// A queue pair in the allocation.
struct Member {
    key: Key,
    source: Source,
    /// Its control packets, without time and record.
    template: Packet,
    /// The packet with which it began to send.
    first: u64,
    /// Time of its valid entry among the timers.
    armed: Time,
    /// False once it counts as an open connection no longer.
    open: bool,
    /// A message was posted when all had been sent.
    again: bool,
}

/// The allocation at a host.
pub(super) struct RateControl {
    settings: RateAllocation,
    /// Agent of the NIC's own link.
    nic: LinkAgent,
    host_rate: Rate,
    most_speculative: u32,
    /// The host's clock is ahead of time by so much.
    skew: Span,
    numbers: SpeculativeSequence,
    members: Vec<Option<Member>>,
    free: Vec<u32>,
    by_key: FxHashMap<Key, u32>,
}

impl RateControl {
    /// The allocation at `host`.
    pub(super) fn new(
        settings: RateAllocation,
        network: &NetworkFacts,
        host: HostId,
        seed: u64,
    ) -> Self {
        let speculation = settings.speculation;
        let skew = speculation.map_or(0, |speculation| speculation.clock_skew.as_ps());
        let mut random = RandomStream::new(seed, Purpose::HostClock, host.0.into());
        let nic = LinkParameters {
            epochs: None,
            ..settings.link(network, network.line_rate)
        };
        Self {
            nic: LinkAgent::new(&nic),
            host_rate: network.line_rate,
            most_speculative: speculation.map_or(0, |_| bdp_packets(network)),
            skew: Span::from_ps((random.unit() * skew as f64) as u64),
            numbers: SpeculativeSequence::new(
                speculation.map_or(network.base_rtt, |speculation| speculation.epoch),
            ),
            members: Vec::new(),
            free: Vec::new(),
            by_key: FxHashMap::default(),
            settings,
        }
    }

    /// The time that the host's clock shows.
    fn clock(&self, now: Time) -> Time {
        now.saturating_add(self.skew)
    }

    /// The time at which the host's clock shows `local`.
    fn time_at(&self, local: Time) -> Time {
        match local.is_never() {
            true => Time::NEVER,
            false => Time::from_ps(local.as_ps().saturating_sub(self.skew.as_ps())),
        }
    }

    fn connections(&mut self, local: Time) -> Connections {
        let counted = self.numbers.connections(local);
        match self.settings.weights {
            true => counted,
            false => Connections::ONE,
        }
    }

    /// The member that a timer is of; `None` if it is not of a source.
    #[inline]
    pub(super) fn source(timer: u32) -> Option<u32> {
        (timer & SOURCE != 0).then_some(timer & !SOURCE)
    }

    fn add(&mut self, member: Member) -> u32 {
        let key = member.key;
        let index = match self.free.pop() {
            Some(index) => {
                self.members[index as usize] = Some(member);
                index
            }
            None => {
                self.members.push(Some(member));
                self.members.len() as u32 - 1
            }
        };
        self.by_key.insert(key, index);
        index
    }

    fn member(&mut self, index: u32) -> Option<&mut Member> {
        self.members.get_mut(index as usize)?.as_mut()
    }

    /// Takes out the member if its source is done; true if it has to join again.
    fn remove_if_done(&mut self, index: u32) -> Option<(Key, bool)> {
        let member = self
            .member(index)
            .filter(|member| member.source.is_done())?;
        let (key, again) = (member.key, member.again);
        self.members[index as usize] = None;
        self.by_key.remove(&key);
        self.free.push(index);
        Some((key, again))
    }
}

impl<T: Telemetry> Endpoint<T> {
    /// Lets a queue pair that has got `bytes` to send join the allocation, if there is one.
    pub(super) fn join_allocation(&mut self, now: Time, index: u32, key: Key, bytes: Bytes) {
        let Some(control) = &mut self.rate_control else {
            return;
        };
        if let Some(&member) = control.by_key.get(&key) {
            if let Some(member) = control.member(member) {
                member.again = true;
            }
            return;
        }
        let slot = &mut self.slots[index as usize];
        let Some(sender) = &mut slot.sender else {
            return;
        };
        let speculates = control.settings.speculation.is_some();
        let exempt = !T::AGENTS || (!speculates && bytes <= control.settings.exempt);
        let at_once = (exempt || speculates).then_some(control.host_rate);
        let controller = self.controllers.lend(slot.controller);
        controller.on_allocation(at_once);
        sender.take_allowance(controller, &self.rules);
        if exempt {
            return;
        }
        let local = control.clock(now);
        control.numbers.on_open(local);
        let size = control.settings.control as u16;
        // What it says is filled in when it is sent.
        let template = sender.control_packet(now, size, Header::Notification);
        let parameters = SourceParameters {
            host_rate: control.host_rate,
            round_trip: slot.path_rtt,
            most_speculative: control.most_speculative,
        };
        let member = control.add(Member {
            key,
            source: Source::new(local, parameters),
            template,
            first: sender.sent_end(),
            armed: Time::NEVER,
            open: true,
            again: false,
        });
        self.send_control(now, member);
    }

    /// Sends the control packet of a member that is due, if it is, and sets its timer.
    fn send_control(&mut self, now: Time, index: u32) {
        let Some(control) = &mut self.rate_control else {
            return;
        };
        let local = control.clock(now);
        let Some(member) = &mut control.members[index as usize] else {
            return;
        };
        if member.open && member.source.will_leave() && member.source.due() <= local {
            member.open = false;
            control.numbers.on_close(local);
        }
        let connections = control.connections(local);
        let Some(member) = &mut control.members[index as usize] else {
            return;
        };
        let lost = member.source.timeouts();
        if let Some(mut record) = member.source.transmit(local, connections) {
            self.counters.rate_controls_lost += u64::from(member.source.timeouts() - lost);
            control.nic.on_control(now, &mut record);
            let mut packet: IntPacket<T> = Packet {
                stamp: now,
                header: record.header(false),
                ..member.template
            }
            .into();
            packet.telemetry.attach(Attachment::Control(record));
            self.outbox.push_control(packet);
        }
        let due = control.members[index as usize]
            .as_ref()
            .map_or(Time::NEVER, |member| member.source.due());
        let due = control.time_at(due);
        if let Some(member) = &mut control.members[index as usize]
            && due != member.armed
            && !due.is_never()
        {
            member.armed = due;
            self.timers.push(due, index | SOURCE);
        }
    }

    /// The timer of a member has come.
    pub(super) fn on_source_due(&mut self, now: Time, time: Time, index: u32) {
        let armed = |member: &mut Member| {
            let valid = member.armed == time;
            if valid {
                member.armed = Time::NEVER;
            }
            valid
        };
        let control = self.rate_control.as_mut();
        if control
            .and_then(|control| control.member(index))
            .is_some_and(armed)
        {
            self.send_control(now, index);
        }
    }

    /// A control packet has come: to the receiver, which reflects it, or back to the source.
    pub(super) fn on_rate_control(&mut self, now: Time, packet: &Packet, telemetry: T) {
        let Attachment::Control(record) = *telemetry.attachment() else {
            self.counters.invalid += 1;
            return;
        };
        if let Header::RateControl {
            reflected: false, ..
        } = packet.header
        {
            let header = record.header(true);
            let packet = crate::flow::answer(packet, packet.size, header);
            self.outbox.push_control(IntPacket { packet, telemetry });
            return;
        }
        self.counters.rate_controls_received += 1;
        let key = Key::of(packet);
        let Some(control) = &mut self.rate_control else {
            return;
        };
        let local = control.clock(now);
        let returned = control.by_key.get(&key).copied().and_then(|index| {
            let member = control.members[index as usize].as_mut()?;
            let returned = member.source.on_return(local, &record)?;
            Some((index, member.first, returned))
        });
        let Some((index, first, returned)) = returned else {
            self.counters.stray += 1;
            return;
        };
        let mut done = true;
        if let Some(slot) = self.directory.find(key) {
            let slot_index = slot;
            let slot = &mut self.slots[slot as usize];
            if let Some(sender) = &mut slot.sender {
                if let Some(delivered) = returned.delivered {
                    let from = first + u64::from(delivered);
                    let dropped = sender.sent_end().saturating_sub(from);
                    if control.settings.speculation.is_some() && dropped > 0 {
                        self.counters.speculative_dropped += dropped;
                        sender.rewind(from, &self.rules);
                    }
                }
                let controller = self.controllers.lend(slot.controller);
                controller.on_allocation(Some(returned.rate));
                sender.take_allowance(controller, &self.rules);
                done = sender.has_sent_all();
                self.refresh(now, slot_index);
            }
        }
        self.go_on(now, index, done);
    }

    /// Sends the next control packet of a member if it is due, or takes it out.
    fn go_on(&mut self, now: Time, index: u32, all_sent: bool) {
        let Some(control) = &mut self.rate_control else {
            return;
        };
        let local = control.clock(now);
        if all_sent && let Some(member) = control.member(index) {
            member.source.on_all_sent(local);
        }
        let Some((key, again)) = control.remove_if_done(index) else {
            return self.send_control(now, index);
        };
        if again && let Some(slot) = self.directory.find(key) {
            let sender = &self.slots[slot as usize].sender;
            if sender.as_ref().is_some_and(|sender| !sender.has_sent_all()) {
                let unknown = Bytes::new(u64::MAX);
                self.join_allocation(now, slot, key, unknown);
                self.refresh(now, slot);
            }
        }
    }

    /// Attachment of the next data packet of the queue pair in the slot `index`; `None` if it may not be sent now, because the queue pair
    /// has to wait for its rate.
    pub(super) fn attachment(&mut self, now: Time, index: u32) -> Option<Attachment> {
        let Some(control) = &mut self.rate_control else {
            return Some(Attachment::None);
        };
        let slot = &mut self.slots[index as usize];
        let sender = slot.sender.as_mut()?;
        let key = sender.key();
        let Some(&member) = control.by_key.get(&key) else {
            return Some(Attachment::None);
        };
        let member = control.members[member as usize].as_mut()?;
        if member.source.rate().is_some() {
            return Some(Attachment::None);
        }
        if let Some(speculative) = member.source.speculate(&mut control.numbers) {
            self.counters.speculative_sent += 1;
            return Some(Attachment::Speculative(speculative));
        }
        let controller = self.controllers.lend(slot.controller);
        controller.on_allocation(None);
        sender.take_allowance(controller, &self.rules);
        self.refresh(now, index);
        None
    }

    /// Takes note that the queue pair in the slot `index` has sent a packet: if it was the last, it leaves the allocation.
    pub(super) fn note_sent(&mut self, now: Time, index: u32) {
        let Some(control) = &mut self.rate_control else {
            return;
        };
        let Some(sender) = &self.slots[index as usize].sender else {
            return;
        };
        if !sender.has_sent_all() {
            return;
        }
        if let Some(&member) = control.by_key.get(&sender.key())
            && control
                .member(member)
                .is_some_and(|member| member.source.rate().is_some())
        {
            self.go_on(now, member, true);
        }
    }
}
