//! Settings of connections, and the transport profile that follows from them and from the measured round trip.
//!
//! The paper states STrack for NICs: 400 Gb/s, a round trip of 8 us, timers of microseconds. A process sees its packets late, because of
//! the host's scheduling, and its timers have a resolution of a millisecond. A table in the chapter "STrack over UDP" of the book,
//! `docs/src/udp.md`, lists the resulting differences from the paper with reasons.

use crate::wire::{ConnectionId, DATA_HEADER, HEADER, Parameters, TAG};
use clearway_transport::congestion::feedback::FeedbackSettings;
use clearway_transport::congestion::{
    ControllerSettings, DcqcnParameters, NetworkFacts, PathFacts, WindowLimit,
};
use clearway_transport::paths::{AdaptiveParameters, SelectorSettings};
use clearway_transport::reliability::go_back_n::GoBackNParameters;
use clearway_transport::{Profile, Reliability};
use clearway_units::{Bytes, Rate, Span};
use std::fmt;
use std::num::NonZero;

/// Shortest round trip of a profile.
pub(crate) const LEAST_ROUND_TRIP: Span = Span::from_us(150);
/// Longest round trip of a profile.
const LONGEST_ROUND_TRIP: Span = Span::from_ms(1_000);
/// Shortest time after which a timer of the transport can fire.
const LEAST_TIMER: Span = Span::from_ms(2);
const LEAST_TIMEOUT: Span = Span::from_ms(50);
/// Packets beyond the first missing one that a receiver accepts.
const BITMAP: u32 = 16384;
/// Packets in a queue that do not count as congestion yet, in a network without marks.
const UNMARKED_PACKETS: u64 = 8;
/// Bytes of IP and UDP in front of a datagram.
const NETWORK: u32 = 28;
/// Bytes of a selective acknowledgement, as UDP payload.
const ACKNOWLEDGEMENT: u32 = 75;

/// Longest length that the longest datagram can have.
const MOST_DATAGRAM: u16 = 65_000;
/// Shortest length to which the interface limits the longest datagram: the kernel's path MTU may be a forgery.
#[cfg(feature = "net")]
pub(crate) const LEAST_CARRIED: u16 = 1200;
/// Shortest length that the longest datagram can have.
const LEAST_DATAGRAM: u16 = 512;
/// Longest datagram that jumbo frames of 9000 bytes carry, as UDP payload with IPv6.
pub const JUMBO_DATAGRAM: u16 = 8952;
/// Longest datagram that every path is taken to carry, as UDP payload: it fits an Ethernet frame with IPv6.
pub const MAX_UNPROVEN_DATAGRAM: u16 = 1452;

/// The most paths of a connection.
pub const MOST_PATHS: u8 = 64;

/// A key that both ends have, 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct PreSharedKey(pub [u8; 32]);

impl PreSharedKey {
    /// Parses a key of 64 hexadecimal digits; ignores surrounding white space.
    pub fn from_hex(text: &str) -> Option<Self> {
        let text = text.trim().as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let mut key = [0; 32];
        if text.len() != 2 * key.len() {
            return None;
        }
        for (byte, digits) in key.iter_mut().zip(text.chunks_exact(2)) {
            *byte = (digit(digits[0])? << 4 | digit(digits[1])?) as u8;
        }
        Some(Self(key))
    }

    /// The key as [`from_hex`](Self::from_hex) reads it.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PreSharedKey(..)")
    }
}

/// Name that distinguishes a server from others with the same key: 1 to [`LONGEST`](Self::LONGEST) bytes of text without control
/// characters.
///
/// The handshake authenticates the name without sending it: it succeeds only if both ends have the same name, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName(String);

impl ServerName {
    /// Bytes of the longest name.
    pub const LONGEST: usize = 255;

    /// Checks a name; `None` if it is invalid.
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=Self::LONGEST).contains(&name.len()) && !name.chars().any(char::is_control);
        fits.then(|| Self(name.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Condition for connecting, and encryption of packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Security {
    /// Only peers with the key can connect; every packet is encrypted.
    Key(PreSharedKey),
    /// Anybody can connect, and nothing is encrypted or authenticated: whoever sees packets can change them. Addresses are still validated.
    Insecure,
}

impl Security {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Insecure => 0,
            Self::Key(_) => 1,
        }
    }
}

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// STrack with adaptive spraying over all paths.
    Strack,
    /// Go-back-N on one path with DCQCN, like RoCEv2.
    GoBackN,
}

impl Transport {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Strack => 0,
            Self::GoBackN => 1,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Strack),
            1 => Some(Self::GoBackN),
            _ => None,
        }
    }
}

/// Settings of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Security of both ends.
    pub security: Security,
    /// Name of the server, `None` by default: a client gives the wanted server's name, a server its own. Both ends need the same name, or
    /// none. Without a key the name has no effect.
    pub server_name: Option<ServerName>,
    /// The transport; the client decides.
    pub transport: Transport,
    /// Paths, each with a socket of the client: 1 to [`MOST_PATHS`], 8 by default; one with [`Transport::GoBackN`]. The client decides.
    pub paths: u8,
    /// Rate of the slowest link of this host, 10 Gb/s by default: with the measured round trip it gives the largest window. With
    /// [`Transport::GoBackN`] it is also the most that a connection sends: on a faster network, say so.
    pub line_rate: Rate,
    /// Longest datagram as UDP payload, [`MAX_UNPROVEN_DATAGRAM`] by default; both ends use the smaller value. If it is longer than this
    /// default and no path carries it, an end sends datagrams of the default length.
    pub datagram: u16,
    /// Switches of the network mark congestion, true by default. Without marks, a queueing delay above the target counts as a mark, for
    /// packets that this end sends.
    pub ecn: bool,
    /// Memory for messages that arrive or that the application has not taken, 64 MiB by default. The longest message to an end is
    /// [`MESSAGE_COST`] less than its memory.
    pub receive_memory: u64,
    /// Bytes of messages that may wait to be sent or acknowledged, 64 MiB by default. One message always fits.
    pub send_memory: u64,
    /// Time without a packet from the other end after which the connection ends, 10 s by default. Keep-alives go out three times as often.
    pub idle: Span,
    /// Packets before a key update, 2^30 by default.
    pub key_update_after: u64,
    /// Messages before a new flow, because message numbers have 32 bits; 2^31 by default.
    pub messages_per_flow: u32,
    /// Datagrams of the longest length that the sockets of this end buffer in total; `None`, unknown, by default. `net` asks the operating
    /// system. The other end keeps no more in flight until the round trip of data justifies more.
    pub socket_datagrams: Option<u32>,
}

/// Memory that a message counts in addition to its bytes, so that the number of empty messages is also bounded.
pub const MESSAGE_COST: u64 = 256;

impl Settings {
    /// The defaults, with the given security.
    pub fn new(security: Security) -> Self {
        Self {
            security,
            server_name: None,
            transport: Transport::Strack,
            paths: 8,
            line_rate: Rate::from_gbps(10),
            datagram: MAX_UNPROVEN_DATAGRAM,
            ecn: true,
            receive_memory: 64 << 20,
            send_memory: 64 << 20,
            idle: Span::from_ms(10_000),
            key_update_after: crate::protection::KEY_UPDATE_AFTER,
            messages_per_flow: 1 << 31,
            socket_datagrams: None,
        }
    }

    /// The settings within their bounds.
    pub(crate) fn bounded(mut self) -> Self {
        self.paths = match self.transport {
            Transport::Strack => self.paths.clamp(1, MOST_PATHS),
            Transport::GoBackN => 1,
        };
        self.datagram = self.datagram.clamp(LEAST_DATAGRAM, MOST_DATAGRAM);
        self.receive_memory = self.receive_memory.max(1 << 16);
        self.idle = self.idle.max(Span::from_ms(10));
        self.key_update_after = self.key_update_after.max(1);
        self.messages_per_flow = self.messages_per_flow.clamp(1, u32::MAX - 1);
        self
    }

    /// The profile of a connection whose ends both have these settings, for a measured round trip: the input for a simulation of the
    /// connection.
    pub fn profile(&self, round_trip: Span) -> Profile {
        let settings = self.clone().bounded();
        let agreed = NegotiatedSettings {
            transport: settings.transport,
            paths: settings.paths,
            datagram: settings.datagram,
            credit: settings.receive_memory,
            idle: settings.idle,
            socket_datagrams: settings.socket_datagrams,
        };
        profile(&settings, &agreed, round_trip)
    }

    pub(crate) fn parameters(&self, id: ConnectionId) -> Parameters {
        Parameters {
            transport: self.transport.code(),
            paths: self.paths,
            datagram: self.datagram,
            credit: self.receive_memory,
            idle_ms: (self.idle.as_ps() / 1_000_000_000) as u32,
            id,
            socket_datagrams: self.socket_datagrams.unwrap_or(0),
        }
    }
}

/// Settings of a connection that both ends share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NegotiatedSettings {
    pub(crate) transport: Transport,
    pub(crate) paths: u8,
    pub(crate) datagram: u16,
    /// Initial credit from the other end.
    pub(crate) credit: u64,
    pub(crate) idle: Span,
    /// Datagrams that the sockets of the other end buffer.
    pub(crate) socket_datagrams: Option<u32>,
}

impl NegotiatedSettings {
    /// The settings that two sides share; `None` if one side asks for an unknown feature.
    pub(crate) fn negotiate(
        client: &Parameters,
        server: &Parameters,
        here_is_client: bool,
    ) -> Option<Self> {
        let there = if here_is_client { server } else { client };
        let idle = client.idle_ms.min(server.idle_ms);
        let fits = (LEAST_DATAGRAM..=MOST_DATAGRAM).contains(&there.datagram)
            && (1..=MOST_PATHS).contains(&client.paths)
            && idle >= 10;
        if !fits {
            return None;
        }
        let mut agreed = Self {
            transport: Transport::from_code(client.transport)?,
            paths: client.paths,
            datagram: there.datagram,
            credit: there.credit,
            idle: Span::from_ms(u64::from(idle)),
            socket_datagrams: Some(there.socket_datagrams).filter(|&datagrams| datagrams > 0),
        };
        agreed.shorten(client.datagram.min(server.datagram));
        Some(agreed)
    }

    /// Shortens the longest datagram to `length`. Sockets then hold more of them.
    pub(crate) fn shorten(&mut self, length: u16) {
        let memory = socket_memory(self.datagram);
        let held = |datagrams| u64::from(datagrams) * memory / socket_memory(length);
        let held = self.socket_datagrams.map(held);
        self.socket_datagrams = held.map(|held| u32::try_from(held).unwrap_or(u32::MAX));
        self.datagram = length;
    }
}

/// Memory that Linux counts for a datagram of `length` bytes in a socket: its head, and its data buffer, a power of two with headers in
/// front and a description behind.
pub(crate) fn socket_memory(length: u16) -> u64 {
    const HEADERS: u64 = 106;
    const DESCRIPTION: u64 = 320;
    const HEAD: u64 = 256;
    (u64::from(length) + HEADERS + DESCRIPTION).next_power_of_two() + HEAD
}

/// Round trip above which a packet counts as marked in a network without marks: the base round trip and the target of queueing delay,
/// or some packets at the line rate, where that is more.
pub(crate) fn marking_round_trip(settings: &Settings, profile: &Profile) -> Option<Span> {
    let network = &profile.network;
    let packet = Bytes::new(u64::from(network.payload + network.header));
    let few = settings.line_rate.span_of(packet) * UNMARKED_PACKETS;
    let target = network.propagation_rtt.max(few);
    (!settings.ecn).then_some(network.base_rtt + target)
}

/// Largest window in a network with a round trip, in bytes: 1.25 bandwidth-delay products.
pub(crate) fn largest_window(network: &NetworkFacts, round_trip: Span) -> u64 {
    let frame = Bytes::new(u64::from(network.payload + network.header));
    let round_trip = round_trip + network.line_rate.span_of(frame);
    let bytes = network.line_rate.bytes_in(round_trip).as_u64();
    bytes + bytes / 4
}

/// Bytes of a message in a full packet. The encrypted part has whole blocks of AES: the rest of a block costs more than another block.
fn payload(settings: &Settings, datagram: u16) -> u32 {
    const BLOCK: usize = 16;
    let content = usize::from(datagram) - HEADER - TAG;
    let rest = match settings.security {
        Security::Key(_) => content % BLOCK,
        Security::Insecure => 0,
    };
    (content - rest - (DATA_HEADER - HEADER)) as u32
}

/// The profile for a round trip.
pub(crate) fn profile(
    settings: &Settings,
    agreed: &NegotiatedSettings,
    round_trip: Span,
) -> Profile {
    let rtt = round_trip.clamp(LEAST_ROUND_TRIP, LONGEST_ROUND_TRIP);
    let payload = payload(settings, agreed.datagram);
    let line_rate = settings.line_rate;
    let frame = Bytes::new(u64::from(agreed.datagram) + u64::from(NETWORK));
    let base_rtt = rtt + line_rate.span_of(frame);
    let network = NetworkFacts {
        line_rate,
        base_rtt,
        propagation_rtt: rtt,
        bdp: line_rate.bytes_in(base_rtt),
        payload,
        header: DATA_HEADER as u32 + TAG as u32 + NETWORK,
        ack: ACKNOWLEDGEMENT + NETWORK,
        path: PathFacts {
            rtt: base_rtt,
            switches: 1,
        },
    };
    let times = |span: Span| span.as_ps() as f64 / rtt.as_ps() as f64;
    let timeout = (rtt * 30)
        .max(LEAST_TIMEOUT)
        .min(rtt * 3 + Span::from_ms(200));
    let mut profile = Profile::strack(network);
    match agreed.transport {
        Transport::Strack => {
            if let Some(repeat) = profile.reliability.selective_repeat_mut() {
                repeat.bitmap = Some(BITMAP);
                repeat.timeout = timeout;
                repeat.probe_after = repeat.probe_after.max(times(LEAST_TIMER));
                repeat.probe_rtt_limit = repeat.probe_rtt_limit.max(times(LEAST_TIMER));
            }
            let paths = NonZero::new(u16::from(agreed.paths)).unwrap_or(NonZero::<u16>::MIN);
            profile.selector = SelectorSettings::Adaptive(AdaptiveParameters {
                max_paths: paths,
                min_paths: paths,
                ..AdaptiveParameters::default()
            });
        }
        Transport::GoBackN => {
            profile.reliability = Reliability::GoBackN(GoBackNParameters {
                timeout,
                timeout_max: timeout * 8,
                ..GoBackNParameters::default()
            });
            profile.controller = ControllerSettings::Dcqcn(DcqcnParameters {
                window: WindowLimit::Fixed,
                ..DcqcnParameters::default()
            });
            profile.selector = SelectorSettings::named("single").unwrap_or(profile.selector);
            profile.feedback = FeedbackSettings::named("interval").unwrap_or(profile.feedback);
        }
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_follow_the_round_trip_and_have_floors() {
        let settings = Settings::new(Security::Insecure);
        let parameters = settings.parameters(ConnectionId(1));
        let agreed = NegotiatedSettings::negotiate(&parameters, &parameters, true).unwrap();
        let timeout = |us| match profile(&settings, &agreed, Span::from_us(us)).reliability {
            Reliability::SelectiveRepeat(repeat) => repeat.timeout,
            Reliability::GoBackN(_) => unreachable!(),
        };
        assert_eq!(timeout(5), Span::from_ms(50));
        assert_eq!(timeout(2_000), Span::from_ms(60));
        assert_eq!(timeout(100_000), Span::from_ms(500));
        let near = profile(&settings, &agreed, Span::from_us(5)).network;
        assert_eq!(near.propagation_rtt, Span::from_us(150));
        assert_eq!(near.payload, 1452 - 91);
        let encrypted = Settings::new(Security::Key(PreSharedKey([1; 32])));
        let encrypted = encrypted.profile(Span::ZERO).network.payload;
        assert_eq!(encrypted, 1452 - 91 - 11);
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let key = PreSharedKey(std::array::from_fn(|index| (index as u8).wrapping_mul(9)));
        assert_eq!(
            PreSharedKey::from_hex(&format!(" {}\n", key.to_hex())),
            Some(key.clone())
        );
        for wrong in [
            "",
            "12",
            &key.to_hex()[1..],
            &format!("{}0", &key.to_hex()),
            &"\u{e4}".repeat(32),
        ] {
            assert_eq!(PreSharedKey::from_hex(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "PreSharedKey(..)");
    }

    #[test]
    fn names_of_servers_are_short_text_without_control_characters() {
        for name in ["a", "node 1", "b\u{fc}ro.example:4794", &"x".repeat(255)] {
            assert_eq!(ServerName::new(name).unwrap().as_str(), name);
        }
        for wrong in [
            "",
            "a\n",
            "\0",
            "\u{85}",
            &"x".repeat(256),
            &"\u{fc}".repeat(128),
        ] {
            assert_eq!(ServerName::new(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn parameters_out_of_bounds_are_no_agreement() {
        let good = Settings::new(Security::Insecure).parameters(ConnectionId(1));
        let bad = [
            Parameters { paths: 0, ..good },
            Parameters { paths: 65, ..good },
            Parameters {
                datagram: 10,
                ..good
            },
            Parameters {
                transport: 9,
                ..good
            },
            Parameters { idle_ms: 0, ..good },
        ];
        for bad in bad {
            assert_eq!(
                NegotiatedSettings::negotiate(&bad, &good, false),
                None,
                "{bad:?}"
            );
        }
        assert!(NegotiatedSettings::negotiate(&good, &good, false).is_some());
    }
}
