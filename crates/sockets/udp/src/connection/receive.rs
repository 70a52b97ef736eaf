//! Incoming datagrams.

use super::{Connection, HERE, State, THERE};
use crate::error::ConnectionError;
use crate::incoming::{PayloadOutcome, Place};
use crate::protection::Unopened;
use crate::wire::{BROKEN, Fields, Frame, HEADER, TRANSPORT, TRANSPORT_REFUSED};
use clearway_transport::wire::{Network, strack};
use clearway_transport::{Class, DataFlags, Event as Report, Header, Packet};
use clearway_units::{FlowId, MessageId, Time};
use std::net::SocketAddr;

/// Most flows of the other end that are unfinished or linger at a time. The other end has one flow, and a second one while it changes
/// flows.
const MOST_FLOWS: usize = 64;
/// Most flows of the other end in total: this end keeps a final acknowledgement for each.
const MOST_FLOWS_EVER: u32 = 1 << 16;
/// Message number of the packet that ends a flow.
const NO_MESSAGE: MessageId = MessageId(u32::MAX);

impl Connection {
    /// Processes a datagram from an address, with or without a congestion mark. Decrypts the datagram in place.
    pub fn handle(&mut self, now: Time, from: SocketAddr, marked: bool, datagram: &mut [u8]) {
        if datagram.first().is_some_and(|first| first & 0x80 != 0) {
            return self.on_handshake(now, datagram);
        }
        if matches!(self.state, State::Connecting(_) | State::Closed) {
            self.discarded.forged += 1;
            return;
        }
        let length = datagram.len();
        let range = match self.protection.open(datagram) {
            Ok(range) => range,
            Err(Unopened::Replayed) => {
                self.discarded.replayed += 1;
                return;
            }
            Err(Unopened::Forged) => {
                self.discarded.forged += 1;
                if self.protection.is_worn_out() {
                    self.end(ConnectionError::Violation(
                        "too many forged packets have come",
                    ));
                }
                return;
            }
        };
        debug_assert_eq!(range.start, HEADER);
        let [path, kind, content @ ..] = &datagram[range] else {
            self.discarded.malformed += 1;
            return;
        };
        self.on_authentic(now, from, *path);
        match *kind {
            TRANSPORT | TRANSPORT_REFUSED => {
                let with_payload = *kind == TRANSPORT;
                self.on_transport(now, marked, with_payload, content);
            }
            kind => match Frame::read(kind, content) {
                Some(frame) => self.on_frame(now, from, *path, frame, length),
                None => self.discarded.malformed += 1,
            },
        }
    }

    /// Records an authentic packet of the other end.
    #[inline]
    fn on_authentic(&mut self, now: Time, from: SocketAddr, path: u8) {
        self.timers.heard = now;
        if !self.confirmed {
            self.confirm(now);
        }
        if !self.is_client {
            self.paths.on_packet(now, path, from);
        }
    }

    #[cold]
    fn confirm(&mut self, now: Time) {
        self.confirmed = true;
        self.timers.confirm_by = None;
        if !self.is_client {
            // Since the answer to the client's last handshake message.
            self.note_round_trip(now.since(self.timers.spoken));
        }
        if !self.is_client {
            self.begin_search(now);
        }
        self.tell_connected();
    }

    /// Processes a frame from a datagram of `length` bytes.
    fn on_frame(&mut self, now: Time, from: SocketAddr, path: u8, frame: Frame, length: usize) {
        match frame {
            Frame::PathChallenge(token) => {
                if path < self.paths.len() {
                    let most = self.agreed.map_or(0, |agreed| agreed.datagram.into());
                    self.pending.respond(path, from, token, length.min(most));
                }
            }
            Frame::PathResponse(token) => {
                if let Some(answer) = self.paths.on_response(now, path, from, token) {
                    self.note_round_trip(answer.round_trip);
                    if answer.full {
                        self.timers.proven_by = None;
                        self.end_search();
                    }
                    // The application gets no events after the end.
                    if answer.came_up && self.is_open() {
                        self.events.path(path, true);
                    }
                }
            }
            Frame::Credit(limit) => {
                if self.outgoing.grant(limit) && self.is_open() {
                    self.post(now);
                }
            }
            Frame::Blocked(known) => {
                if let Some(limit) = self.incoming.on_blocked(known) {
                    self.pending.push(Frame::Credit(limit));
                }
            }
            Frame::Refused { flow, message } => self.on_refused(FlowId(flow), MessageId(message)),
            Frame::KeepAlive => {}
            Frame::Close(code) => self.on_closed_there(now, code),
            Frame::CloseReceived => {
                if matches!(self.state, State::Closing { .. }) {
                    self.end(ConnectionError::Here);
                }
            }
        }
    }

    fn on_refused(&mut self, flow: FlowId, message: MessageId) {
        if let Some(message) = self.outgoing.find(flow, message)
            && !message.refused
        {
            message.refused = true;
            message.data = bytes::Bytes::new();
            let id = message.id;
            self.events.refused(id);
        }
    }

    fn on_transport(&mut self, now: Time, marked: bool, with_payload: bool, content: &[u8]) {
        // While there is no length of datagrams there is no transport: the other end sends the packet again.
        if !self.is_open() || self.is_searching() {
            return;
        }
        let network = Network {
            src: THERE,
            dst: HERE,
            class: Class::DATA,
            marked,
            source_port: 0,
            destination_port: 0,
        };
        let Ok((packet, rest)) = strack::read_header(content, &network) else {
            self.discarded.malformed += 1;
            return;
        };
        match packet.header {
            Header::Data { .. } => self.on_data(now, &packet, with_payload.then_some(()), rest),
            Header::Sack { .. } | Header::Ack { .. } => self.on_acknowledgement(now, packet),
            Header::Probe { .. } | Header::Notification => {
                if let Some(core) = self.core() {
                    core.endpoint.on_packet(now, &packet.into());
                }
            }
            // No switch between sockets trims packets, and no receiver grants credit.
            Header::RateControl { .. } | Header::Nack { .. } | Header::Pull { .. } => {
                self.discarded.malformed += 1;
            }
        }
        self.take_reports(now);
    }

    /// Processes an acknowledgement, whose entropy field is the path of the acknowledged packet.
    fn on_acknowledgement(&mut self, now: Time, mut packet: Packet) {
        let path = packet.source_port;
        let Some(core) = &mut self.core else {
            return;
        };
        let salt = self.outgoing.salt(packet.flow).unwrap_or(0);
        packet.source_port = path ^ salt;
        if core
            .marking
            .is_some_and(|most| now.since(packet.stamp) > most)
        {
            packet.ecn = true;
        }
        if let Some(bound) = &mut core.bound {
            bound.observe(now.since(packet.stamp));
        }
        core.endpoint.on_packet(now, &packet.into());
        let path = path.min(u16::from(u8::MAX)) as u8;
        if packet.ecn {
            self.runs.forgive(path);
        }
        let down = self.paths.on_answer(now, path, packet.stamp, packet.ecn);
        if let Some(path) = down {
            self.events.path(path, false);
        }
    }

    fn on_data(&mut self, now: Time, packet: &Packet, payload: Option<()>, rest: &[u8]) {
        if self.core().is_none() {
            return;
        }
        let Some(core) = &mut self.core else { return };
        if packet.flow > core.peer_flow {
            let next = FlowId(core.peer_flow.0 + 1);
            if core.endpoint.open_receivers() >= MOST_FLOWS {
                // Those whose time is over are forgotten.
                core.endpoint.on_deadline(now);
            }
            let room = core.endpoint.open_receivers() < MOST_FLOWS;
            if packet.flow != next || !room || next.0 >= MOST_FLOWS_EVER {
                self.discarded.malformed += 1;
                return;
            }
        }
        if core.endpoint.accepts(packet) {
            let Some(place) = place_of(packet, rest) else {
                self.discarded.malformed += 1;
                return;
            };
            if let Some((place, bytes)) = place {
                let bytes = payload.map(|()| bytes);
                if bytes.is_some_and(|bytes| bytes.len() as u64 != place.bytes) {
                    self.discarded.malformed += 1;
                    return;
                }
                let (flow, message) = (place.flow, place.message);
                match self.incoming.place(&place, bytes, &mut *self.acceptor) {
                    PayloadOutcome::Taken => {}
                    PayloadOutcome::Refused => {
                        if self.incoming.tell_refused(flow, message) {
                            self.refuse(flow, message);
                        }
                    }
                    PayloadOutcome::Withheld => return self.refuse(flow, message),
                    PayloadOutcome::Violation(what) => return self.end_for_violation(now, what),
                }
            }
            if let Some(core) = &mut self.core {
                core.peer_flow = core.peer_flow.max(packet.flow);
            }
        }
        if let Some(core) = &mut self.core {
            core.endpoint.on_packet(now, &(*packet).into());
        }
    }

    /// Tells the other end that this end refuses a message.
    #[cold]
    fn refuse(&mut self, flow: FlowId, message: MessageId) {
        let (flow, message) = (flow.0, message.0);
        self.pending.push(Frame::Refused { flow, message });
    }

    /// Ends a connection whose other end is not trusted; sends only the close frame.
    #[cold]
    fn end_for_violation(&mut self, now: Time, what: &'static str) {
        self.events.closed(ConnectionError::Violation(what));
        self.core = None;
        self.pending.push(Frame::Close(BROKEN));
        self.state = State::Draining;
        self.timers.close_at = Some(now + self.timers.idle);
    }

    /// Processes the events of the transport.
    #[inline]
    fn take_reports(&mut self, now: Time) {
        while let Some(core) = &mut self.core
            && let Some(report) = core.endpoint.poll_event()
        {
            match report {
                Report::Received {
                    flow,
                    message,
                    bytes,
                } => {
                    let finished = self.incoming.finish(flow, message);
                    if let Some((tag, data)) = finished {
                        debug_assert_eq!(data.len() as u64, bytes.as_u64());
                        self.events.received(tag, data);
                    }
                }
                Report::Sent { flow, message, .. } => {
                    let finished = self.outgoing.finish(flow, message);
                    if let Some(message) = finished
                        && !message.refused
                    {
                        self.events.sent(message.id);
                    }
                    self.close_if_done(now);
                }
                Report::Ack { .. } | Report::Loss { .. } => {}
            }
        }
    }
}

/// Place of a data packet's payload, and the payload: nothing for the packet that ends a flow. `None` if the packet is malformed.
#[inline]
fn place_of<'a>(packet: &Packet, rest: &'a [u8]) -> Option<Option<(Place, &'a [u8])>> {
    let Header::Data {
        message,
        offset,
        payload,
        parts,
        flags,
        ..
    } = packet.header
    else {
        return None;
    };
    (packet.queue_pair == 0 && parts == 1 && packet.can_be_trimmed()).then_some(())?;
    let end_of_message = flags.contains(DataFlags::END_OF_MESSAGE);
    if flags.contains(DataFlags::END_OF_FLOW) && !end_of_message {
        return (payload == 0 && message == NO_MESSAGE).then_some(None);
    }
    let mut fields = Fields(rest);
    let place = Place {
        flow: packet.flow,
        message,
        length: fields.u64()?,
        tag: fields.u64()?,
        offset,
        bytes: u64::from(payload),
        ends_message: end_of_message,
    };
    Some(Some((place, fields.0)))
}
