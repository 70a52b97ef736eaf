//! Control packets of s-PERC and 1RC: their departures, and the effect of their return on a queue pair.

use super::Endpoint;
use super::key::Key;
use super::rate_control::{Member, SOURCE};
use crate::congestion::misbehaviour::Misbehaviour;
use crate::congestion::perc::{Attachment, Connections, HostLimit, Source, SourceParameters};
use crate::congestion::telemetry::{IntPacket, Telemetry};
use crate::congestion::{CongestionControl, NetworkFacts};
use crate::packet::{Header, Packet};
use clearway_units::{Bytes, Rate, Span, Time};

impl<T: Telemetry> Endpoint<T> {
    /// Lets a queue pair that has got a message of `bytes` to send join the allocation, if there is one.
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
        // A queue pair may carry no part of a message.
        if sender.has_sent_all() {
            return;
        }
        let speculates = control.settings.speculation.is_some();
        let limit = control.settings.exempt.as_u64();
        let (before, last) = slot.exempted;
        let recent = match now.since(last) <= slot.path_rtt {
            true => Bytes::new(before.as_u64().saturating_add(bytes.as_u64())),
            false => bytes,
        };
        let total = recent.as_u64().max(sender.backlog(limit));
        let exempt = !T::AGENTS || (!speculates && total <= limit);
        slot.exempted = (recent, now);
        let at_once = (exempt || speculates).then_some(control.host_rate);
        let controller = self.controllers.lend(slot.controller);
        controller.on_allocation(at_once);
        sender.take_allowance(controller, &self.rules);
        if exempt {
            return;
        }
        let misbehaviour = match controller.allocation() {
            Some(own) => own.misbehaviour,
            None => Some(Misbehaviour::Rate),
        };
        let local = control.clock(now);
        control.numbers.on_open(local);
        let size = control.settings.control as u16;
        // Its contents are filled in when it is sent.
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
            not_before: Time::ZERO,
            longest_gap: slot.path_rtt * u64::from(control.settings.control_gap),
            open: true,
            again: false,
            misbehaviour,
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
        let leaves = member.source.will_leave();
        if member.open && leaves && member.source.due() <= local {
            member.open = false;
            control.numbers.on_close(local);
        }
        let connections = control.connections(local);
        let Some(member) = &mut control.members[index as usize] else {
            return;
        };
        let may_send = leaves || member.not_before <= local;
        if may_send
            && member.source.due() <= local
            && control.settings.host_limit == HostLimit::Demand
            && let Some(slot) = self.directory.find(member.key)
            && let slot = &self.slots[slot as usize]
            && let Some(sender) = &slot.sender
        {
            let most = control.host_rate.bytes_in(slot.path_rtt).as_u64();
            let posted = sender.backlog(most);
            let demand = demand(posted, slot.path_rtt, &self.profile.network);
            member.source.set_demand(demand);
        }
        let announced = match member.misbehaviour {
            Some(Misbehaviour::Weight) => Connections::ONE,
            _ => connections,
        };
        let lost = member.source.timeouts();
        let sent = match may_send {
            true => member.source.transmit(local, announced),
            false => None,
        };
        if let Some(mut record) = sent {
            self.counters.rate_controls_lost += u64::from(member.source.timeouts() - lost);
            control.nic.on_control(now, &mut record);
            if leaves && member.misbehaviour == Some(Misbehaviour::Leaving) {
                member.source.vanish();
                return self.go_on(now, index, false);
            }
            let mut packet: IntPacket<T> = Packet {
                stamp: now,
                header: record.header(false),
                ..member.template
            }
            .into();
            packet
                .telemetry
                .attach(Attachment::Control(Box::new(record)));
            self.outbox.push_control(packet);
        }
        let due = control.members[index as usize]
            .as_ref()
            .map_or(Time::NEVER, Member::due);
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
        let Attachment::Control(record) = telemetry.attachment() else {
            self.counters.invalid += 1;
            return;
        };
        if let Header::RateControl {
            reflected: false, ..
        } = packet.header
        {
            let header = record.header(true);
            let packet = crate::endpoint::flow::answer(packet, packet.size, header);
            self.outbox.push_control(IntPacket { packet, telemetry });
            return;
        }
        self.counters.rate_controls_received += 1;
        let key = Key::from_packet(packet);
        let Some(control) = &mut self.rate_control else {
            return;
        };
        let local = control.clock(now);
        let returned = control.by_key.get(&key).copied().and_then(|index| {
            let member = control.members[index as usize].as_mut()?;
            let mut returned = member.source.on_return(local, record)?;
            if member.misbehaviour == Some(Misbehaviour::Rate) {
                // No packet was speculative, and none is dropped for it.
                returned.delivered = None;
            }
            let gap = control.settings.gap(returned.rate).min(member.longest_gap);
            member.not_before = record.sent().saturating_add(gap);
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
                self.join_allocation(now, slot, key, Bytes::ZERO);
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
        if member.misbehaviour == Some(Misbehaviour::Rate) {
            return Some(Attachment::None);
        }
        let shares = control.settings.speculation;
        let speculative = match shares.is_some_and(|it| it.shared_numbers) {
            true => member.source.speculate(&mut control.numbers),
            false => member.source.speculate_alone(),
        };
        if let Some(speculative) = speculative {
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

/// Rate at which so many bytes of payload take a round trip, with their headers.
fn demand(posted: u64, round_trip: Span, network: &NetworkFacts) -> Rate {
    let payload = posted.max(1);
    let packets = payload.div_ceil(u64::from(network.payload));
    let wire = payload + packets * u64::from(network.header);
    let bps = wire as f64 * 8.0 / round_trip.as_secs();
    Rate::from_bps((bps as u64).max(1))
}
