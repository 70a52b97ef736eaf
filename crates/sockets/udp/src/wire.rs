//! Datagrams as bytes: version 1 of STrack over UDP.
//!
//! The chapter "STrack over UDP" of the book, `docs/src/udp.md`, has tables of all fields.

use std::fmt;

/// The version of this wire format.
pub const VERSION: u32 = 1;
/// Default UDP port of servers.
pub const PORT: u16 = clearway_transport::wire::strack::PORT;
/// Length of an Init, padding included: answers are shorter, so an Init with a forged source address amplifies nothing.
pub const INIT_LENGTH: usize = 1200;
/// Bytes of a packet in front of its encrypted part.
pub(crate) const HEADER: usize = 17;
/// Bytes of the tag of the encryption.
pub(crate) const TAG: usize = 16;
/// Bytes in front of the payload of a data packet.
pub(crate) const DATA_HEADER: usize = HEADER + 2 + STRACK_DATA + MESSAGE;
/// Bytes of the header of STrack with data or a selective acknowledgement.
pub(crate) const STRACK_DATA: usize = 40;
/// Length and tag of a message.
pub(crate) const MESSAGE: usize = 16;
/// Bytes of a cookie.
pub(crate) const COOKIE: usize = 24;

const INIT: u8 = 0x81;
const RETRY: u8 = 0x82;
const REFUSAL: u8 = 0x83;
const RESPONSE: u8 = 0x84;
const SHORT: u8 = 0x40;
/// Close code after a protocol violation, or if the path does not carry long datagrams.
pub(crate) const BROKEN: u64 = u64::MAX;
/// Close code shortly before the clock of the connection overflows.
#[cfg(feature = "net")]
pub(crate) const EXPIRED: u64 = u64::MAX - 1;
/// The most versions that one side can offer.
const MOST_VERSIONS: usize = 8;

/// The number that identifies a connection at its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Reason why a server refuses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// None of the client's versions.
    Version,
    /// The handshake was made with another key.
    Key,
    /// Encryption on one side only.
    Security,
    /// The limit of connections is reached.
    Busy,
    /// Parameters with which no connection is possible.
    Parameters,
}

impl RefusalReason {
    const ALL: [Self; 5] = [
        Self::Version,
        Self::Key,
        Self::Security,
        Self::Busy,
        Self::Parameters,
    ];

    fn code(self) -> u8 {
        Self::ALL
            .iter()
            .position(|&reason| reason == self)
            .unwrap_or(0) as u8
            + 1
    }
}

/// Parameters of one side, which the handshake sends to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) transport: u8,
    pub(crate) paths: u8,
    pub(crate) datagram: u16,
    pub(crate) credit: u64,
    pub(crate) idle_ms: u32,
    pub(crate) id: ConnectionId,
    /// Datagrams that the sockets buffer in total; zero is unknown.
    pub(crate) socket_datagrams: u32,
}

impl Parameters {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend([self.transport, self.paths]);
        out.extend(self.datagram.to_be_bytes());
        out.extend(self.credit.to_be_bytes());
        out.extend(self.idle_ms.to_be_bytes());
        out.extend(self.id.0.to_be_bytes());
        out.extend(self.socket_datagrams.to_be_bytes());
    }

    /// Parses parameters; further bytes belong to later versions.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let [transport, paths] = fields.take()?;
        Some(Self {
            transport,
            paths,
            datagram: u16::from_be_bytes(fields.take()?),
            credit: fields.u64()?,
            idle_ms: u32::from_be_bytes(fields.take()?),
            id: ConnectionId(fields.u64()?),
            // Releases before this field do not send it.
            socket_datagrams: fields.take().map_or(0, u32::from_be_bytes),
        })
    }
}

/// The first datagram of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Init<'a> {
    pub(crate) client: ConnectionId,
    pub(crate) security: u8,
    /// Versions of 4 bytes each.
    pub(crate) versions: &'a [u8],
    pub(crate) cookie: Option<[u8; COOKIE]>,
    pub(crate) message: &'a [u8],
}

impl Init<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(INIT);
        out.extend(self.client.0.to_be_bytes());
        out.extend([self.security, (self.versions.len() / 4) as u8]);
        out.extend(self.versions);
        match &self.cookie {
            Some(cookie) => {
                out.push(COOKIE as u8);
                out.extend(cookie);
            }
            None => out.push(0),
        }
        out.extend((self.message.len() as u16).to_be_bytes());
        out.extend(self.message);
        out.resize((start + INIT_LENGTH).max(out.len()), 0);
    }

    /// The versions, best first.
    pub(crate) fn versions(&self) -> impl Iterator<Item = u32> + '_ {
        versions(self.versions)
    }

    /// The prologue of the handshake: the handshake fails if anybody changes one of these fields. The cookie limits an Init to one address
    /// and a few seconds, whoever sends a copy. The name of a server, at most 255 bytes, limits an Init to that server.
    pub(crate) fn prologue(&self, server: Option<&str>) -> Vec<u8> {
        // The two prefixes differ in their 17th byte, so no prologue of one form equals a prologue of the other.
        let mut prologue = match server {
            None => b"clearway strack over udp".to_vec(),
            Some(name) => {
                debug_assert!(name.len() <= 255, "the length of a name has one byte");
                let length = [name.len() as u8];
                [b"clearway strack to server", &length[..], name.as_bytes()].concat()
            }
        };
        prologue.extend(self.client.0.to_be_bytes());
        prologue.push(self.security);
        prologue.extend(self.versions);
        prologue.extend(self.cookie.iter().flatten());
        prologue
    }
}

/// The numbers in a list of versions.
pub(crate) fn versions(list: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let chunks = list.chunks_exact(4);
    chunks.map(|chunk| u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]))
}

/// A datagram of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handshake<'a> {
    Init(Init<'a>),
    Retry {
        client: ConnectionId,
        cookie: [u8; COOKIE],
    },
    Refusal {
        client: ConnectionId,
        reason: RefusalReason,
        versions: &'a [u8],
    },
    Response {
        client: ConnectionId,
        version: u32,
        message: &'a [u8],
    },
}

impl<'a> Handshake<'a> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Init(init) => init.write(out),
            Self::Retry { client, cookie } => {
                out.push(RETRY);
                out.extend(client.0.to_be_bytes());
                out.extend(cookie);
            }
            Self::Refusal {
                client,
                reason,
                versions,
            } => {
                out.push(REFUSAL);
                out.extend(client.0.to_be_bytes());
                out.extend([reason.code(), (versions.len() / 4) as u8]);
                out.extend(*versions);
            }
            Self::Response {
                client,
                version,
                message,
            } => {
                out.push(RESPONSE);
                out.extend(client.0.to_be_bytes());
                out.extend(version.to_be_bytes());
                out.extend((message.len() as u16).to_be_bytes());
                out.extend(*message);
            }
        }
    }

    /// Parses a handshake datagram; `None` if it is not one, or is malformed.
    pub(crate) fn read(datagram: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(datagram);
        let [first] = fields.take()?;
        let client = ConnectionId(fields.u64()?);
        match first {
            INIT if datagram.len() >= INIT_LENGTH => fields.init(client).map(Self::Init),
            RETRY => Some(Self::Retry {
                client,
                cookie: fields.take()?,
            }),
            REFUSAL => {
                let [code] = fields.take()?;
                Some(Self::Refusal {
                    client,
                    reason: *RefusalReason::ALL.get(usize::from(code).checked_sub(1)?)?,
                    versions: fields.versions()?,
                })
            }
            RESPONSE => Some(Self::Response {
                client,
                version: u32::from_be_bytes(fields.take()?),
                message: fields.message()?,
            }),
            _ => None,
        }
    }
}

/// Beginning of a packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    pub(crate) odd_phase: bool,
    pub(crate) receiver: ConnectionId,
    pub(crate) number: u64,
}

impl PacketHeader {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(SHORT | u8::from(self.odd_phase));
        out.extend(self.receiver.0.to_be_bytes());
        out.extend(self.number.to_be_bytes());
    }

    pub(crate) fn read(datagram: &[u8]) -> Option<Self> {
        let mut fields = Fields(datagram);
        let [first] = fields.take()?;
        (first & !1 == SHORT).then_some(())?;
        Some(Self {
            odd_phase: first & 1 == 1,
            receiver: ConnectionId(fields.u64()?),
            number: fields.u64()?,
        })
    }
}

/// Connection that a datagram is for: its id at the receiver, or the client's id in a handshake datagram. `None` if the datagram can only
/// be a client's first one, for a listener, or is malformed.
pub fn receiver_of(datagram: &[u8]) -> Option<ConnectionId> {
    match datagram.first()? {
        &RETRY | &REFUSAL | &RESPONSE => Fields(&datagram[1..]).u64().map(ConnectionId),
        _ => PacketHeader::read(datagram).map(|header| header.receiver),
    }
}

/// Content of a packet that does not belong to the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    PathChallenge(u64),
    PathResponse(u64),
    Credit(u64),
    Blocked(u64),
    Refused { flow: u32, message: u32 },
    KeepAlive,
    Close(u64),
    CloseReceived,
}

/// Type of a packet of the transport.
pub(crate) const TRANSPORT: u8 = 1;
/// Type of a data packet of a refused message.
pub(crate) const TRANSPORT_REFUSED: u8 = 2;
const PATH_CHALLENGE: u8 = 3;
const PATH_RESPONSE: u8 = 4;
const CREDIT: u8 = 5;
const BLOCKED: u8 = 6;
const REFUSED: u8 = 7;
const KEEP_ALIVE: u8 = 8;
const CLOSE: u8 = 9;
const CLOSE_RECEIVED: u8 = 10;

impl Frame {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::PathChallenge(token) => number(PATH_CHALLENGE, token, out),
            Self::PathResponse(token) => number(PATH_RESPONSE, token, out),
            Self::Credit(limit) => number(CREDIT, limit, out),
            Self::Blocked(limit) => number(BLOCKED, limit, out),
            Self::Close(code) => number(CLOSE, code, out),
            Self::Refused { flow, message } => {
                out.push(REFUSED);
                out.extend(flow.to_be_bytes());
                out.extend(message.to_be_bytes());
            }
            Self::KeepAlive => out.push(KEEP_ALIVE),
            Self::CloseReceived => out.push(CLOSE_RECEIVED),
        }
    }

    pub(crate) fn read(kind: u8, content: &[u8]) -> Option<Self> {
        let mut fields = Fields(content);
        Some(match kind {
            PATH_CHALLENGE => Self::PathChallenge(fields.u64()?),
            PATH_RESPONSE => Self::PathResponse(fields.u64()?),
            CREDIT => Self::Credit(fields.u64()?),
            BLOCKED => Self::Blocked(fields.u64()?),
            CLOSE => Self::Close(fields.u64()?),
            REFUSED => Self::Refused {
                flow: u32::from_be_bytes(fields.take()?),
                message: u32::from_be_bytes(fields.take()?),
            },
            KEEP_ALIVE => Self::KeepAlive,
            CLOSE_RECEIVED => Self::CloseReceived,
            _ => return None,
        })
    }
}

fn number(kind: u8, number: u64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(number.to_be_bytes());
}

/// Remaining bytes to read.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn message(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_be_bytes(self.take()?);
        self.bytes(length.into())
    }

    fn versions(&mut self) -> Option<&'a [u8]> {
        let [count] = self.take()?;
        let count = usize::from(count);
        (1..=MOST_VERSIONS).contains(&count).then_some(())?;
        self.bytes(4 * count)
    }

    fn init(&mut self, client: ConnectionId) -> Option<Init<'a>> {
        let [security] = self.take()?;
        let versions = self.versions()?;
        let cookie = match self.take()? {
            [0] => None,
            [length] if usize::from(length) == COOKIE => Some(self.take()?),
            _ => return None,
        };
        Some(Init {
            client,
            security,
            versions,
            cookie,
            message: self.message()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..most)
    }

    #[test]
    fn the_prologue_has_all_fields_of_an_init_and_the_name_of_the_server() {
        let init = Init {
            client: ConnectionId(0x0102_0304_0506_0708),
            security: 1,
            versions: &[0, 0, 0, 1],
            cookie: Some([0xcc; COOKIE]),
            message: b"not in it",
        };
        let mut fields = vec![1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0, 1];
        fields.extend([0xcc; COOKIE]);
        let without = [&b"clearway strack over udp"[..], &fields].concat();
        assert_eq!(init.prologue(None), without);
        let with = [&b"clearway strack to server\x06node 1"[..], &fields].concat();
        assert_eq!(init.prologue(Some("node 1")), with);
    }

    proptest! {
        #[test]
        fn handshakes_are_read_as_they_were_written(
            id in any::<u64>(),
            security in any::<u8>(),
            offered in prop::collection::vec(any::<u32>(), 1..=MOST_VERSIONS),
            cookie in prop::option::of(any::<[u8; COOKIE]>()),
            message in bytes(500),
            reason in 0usize..5,
        ) {
            let client = ConnectionId(id);
            let list: Vec<u8> = offered.iter().flat_map(|version| version.to_be_bytes()).collect();
            let all = [
                Handshake::Init(Init { client, security, versions: &list, cookie, message: &message }),
                Handshake::Retry { client, cookie: cookie.unwrap_or_default() },
                Handshake::Refusal { client, reason: RefusalReason::ALL[reason], versions: &list },
                Handshake::Response { client, version: offered[0], message: &message },
            ];
            for handshake in all {
                let mut out = Vec::new();
                handshake.write(&mut out);
                prop_assert_eq!(Handshake::read(&out), Some(handshake));
                if !matches!(handshake, Handshake::Init(_)) {
                    prop_assert_eq!(receiver_of(&out), Some(client));
                    prop_assert!(out.len() < INIT_LENGTH);
                }
                // What is cut off is not read; an Init keeps its length by padding.
                for length in 0..out.len() {
                    prop_assert_eq!(Handshake::read(&out[..length]), None);
                }
            }
            prop_assert_eq!(versions(&list).collect::<Vec<_>>(), offered);
        }

        #[test]
        fn frames_and_parameters_are_read_as_they_were_written(number in any::<u64>(), flow in any::<u32>(), message in any::<u32>()) {
            let frames = [
                Frame::PathChallenge(number),
                Frame::PathResponse(number),
                Frame::Credit(number),
                Frame::Blocked(number),
                Frame::Refused { flow, message },
                Frame::KeepAlive,
                Frame::Close(number),
                Frame::CloseReceived,
            ];
            for frame in frames {
                let mut out = Vec::new();
                frame.write(&mut out);
                prop_assert_eq!(Frame::read(out[0], &out[1..]), Some(frame));
                for length in 1..out.len() {
                    prop_assert_eq!(Frame::read(out[0], &out[1..length]), None);
                }
            }
            let parameters = Parameters {
                transport: flow as u8,
                paths: message as u8,
                datagram: flow as u16,
                credit: number,
                idle_ms: flow,
                id: ConnectionId(number),
                socket_datagrams: message,
            };
            let mut out = Vec::new();
            parameters.write(&mut out);
            let untold = Parameters { socket_datagrams: 0, ..parameters };
            for length in 0..out.len() {
                let read = (length >= 24).then_some(untold);
                prop_assert_eq!(Parameters::read(&out[..length]), read);
            }
            out.extend(b"of a later version");
            prop_assert_eq!(Parameters::read(&out), Some(parameters));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(kind in any::<u8>(), mut bytes in bytes(1400), first in 0x80u8..0x86) {
            let _ = (Handshake::read(&bytes), PacketHeader::read(&bytes), receiver_of(&bytes));
            let _ = (Frame::read(kind, &bytes), Parameters::read(&bytes));
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            let _ = (Handshake::read(&bytes), receiver_of(&bytes));
            bytes.resize(INIT_LENGTH, 0);
            if let Some(Handshake::Init(init)) = Handshake::read(&bytes) {
                prop_assert!(init.versions().count() <= MOST_VERSIONS);
            }
        }
    }
}
