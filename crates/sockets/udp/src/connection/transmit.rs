//! Outgoing datagrams.

use super::{Connection, State, Transmit};
use crate::path_runs::PathRuns;
use crate::wire::{Frame, TRANSPORT, TRANSPORT_REFUSED};
use clearway_transport::wire::strack;
use clearway_transport::{Header, Packet};
use clearway_units::Time;
use std::net::SocketAddr;

impl Connection {
    /// Appends the next datagram to `out`; `None` if there is nothing to send now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        match &mut self.state {
            State::Closed => return None,
            State::Connecting(client) => {
                let start = out.len();
                return client.poll_transmit(now, out).then(|| Transmit {
                    path: client.path(),
                    to: client.server(),
                    from: None,
                    ecn_capable: false,
                    length: out.len() - start,
                    alone: false,
                });
            }
            _ => {}
        }
        // The other end sends data as soon as its challenge is answered, and should have answered that of this end by then.
        if self.is_searching()
            && self.is_open()
            && let Some(transmit) = self.challenge(now, out)
        {
            return Some(transmit);
        }
        if let Some(waiting) = self.pending.pop() {
            let place = waiting.place.unwrap_or_else(|| self.paths.next_up());
            return Some(self.frame(now, place, waiting.frame, waiting.length, out));
        }
        if !self.is_open() {
            return None;
        }
        if let Some(transmit) = self.challenge(now, out) {
            return Some(transmit);
        }
        let packet = match self.staged.pop() {
            Some(packet) => packet,
            None => self.stage(now)?,
        };
        Some(self.packet(now, packet, out))
    }

    /// Takes packets from the transport, without needless acknowledgements.
    #[inline]
    fn stage(&mut self, now: Time) -> Option<Packet> {
        let core = self.core.as_mut()?;
        self.staged.pull(|| core.poll_transmit(now))
    }

    /// Writes a challenge that is due.
    fn challenge(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let random = &mut self.random;
        let keeps = self.timers.search_by.is_some();
        let due = self.paths.poll_challenge(now, keeps, || random.u64())?;
        // Paths are good if they carry the longest datagrams in both directions.
        let datagram = self.agreed.map_or(0, |agreed| agreed.datagram);
        let length = if due.full { datagram.into() } else { 0 };
        let frame = Frame::PathChallenge(due.token);
        let transmit = self.frame(now, (due.path, due.to), frame, length, out);
        Some(Transmit {
            alone: due.full,
            ..transmit
        })
    }

    /// Writes a frame, padded to a datagram of `length` bytes.
    fn frame(
        &mut self,
        now: Time,
        (path, to): (u8, SocketAddr),
        frame: Frame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Transmit {
        let start = out.len();
        self.protection.begin(self.remote, out);
        out.push(path);
        frame.write(out);
        let padded = start + length.saturating_sub(self.protection.tag());
        out.resize(padded.max(out.len()), 0);
        self.finish(now, start, path, to, false, out)
    }

    /// Writes a packet of the transport, on the chosen path if that path is up.
    #[inline]
    fn packet(&mut self, now: Time, mut packet: Packet, out: &mut Vec<u8>) -> Transmit {
        let start = out.len();
        let is_data = matches!(packet.header, Header::Data { .. });
        let probes = is_data || matches!(packet.header, Header::Probe { .. });
        // An answer copies the entropy of the packet that it answers, which is a path already.
        let chosen = match probes {
            true => packet.source_port ^ self.outgoing.salt(packet.flow).unwrap_or(0),
            false => packet.source_port,
        };
        let chosen = (chosen % u16::from(self.paths.len())) as u8;
        let (path, to) = match is_data {
            true => self.path_of_run(now, chosen),
            false => self.paths.usable(chosen),
        };
        self.protection.begin(self.remote, out);
        if probes {
            packet.source_port = u16::from(path);
            self.paths.on_sent(now, path);
        }
        let kind_at = out.len() + 1;
        out.extend([path, TRANSPORT]);
        strack::write(&packet, out);
        if let Header::Data {
            message,
            offset,
            payload,
            ..
        } = packet.header
            && let Some(message) = self.outgoing.find(packet.flow, message)
        {
            out.extend(message.length.to_be_bytes());
            out.extend(message.tag.to_be_bytes());
            match message.refused {
                true => out[kind_at] = TRANSPORT_REFUSED,
                false => {
                    let offset = offset as usize;
                    let end = offset + usize::from(payload);
                    out.extend_from_slice(&message.data[offset..end]);
                }
            }
        }
        self.finish(now, start, path, to, probes, out)
    }

    /// Path of a data packet for which the selector chose `chosen`.
    #[inline]
    fn path_of_run(&mut self, now: Time, chosen: u8) -> (u8, SocketAddr) {
        let (chosen, to) = self.paths.usable(chosen);
        let core = self.core.as_ref();
        let length = || {
            let window = core.map_or(0, |core| core.window_packets());
            PathRuns::length(window, self.paths.len())
        };
        let path = self.runs.next(now, chosen, length);
        if path == chosen {
            return (path, to);
        }
        let (usable, to) = self.paths.usable(path);
        if usable != path {
            self.runs.forgive(path);
        }
        (usable, to)
    }

    #[inline]
    fn finish(
        &mut self,
        now: Time,
        start: usize,
        path: u8,
        to: SocketAddr,
        ecn_capable: bool,
        out: &mut Vec<u8>,
    ) -> Transmit {
        self.protection.seal(start, out);
        self.timers.spoken = now;
        Transmit {
            path,
            to,
            from: self.source,
            ecn_capable,
            length: out.len() - start,
            alone: false,
        }
    }
}
