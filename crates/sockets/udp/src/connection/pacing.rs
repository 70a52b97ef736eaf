//! Pacing by a clock that is looked at now and then.
//!
//! A controller that sets a rate keeps packets a gap apart: 1.2 us at 10 Gb/s. A process looks at its clock once for many packets, and
//! its timers are good to a millisecond; if it let one packet go each time, it would send one packet for each system call, and nothing
//! in the time that it has slept too long. So the transport is asked by a clock of its own, which goes from one departure to the next:
//! what is due since the process came last goes at once, and with it what would leave within [`AHEAD`]. The rate is the controller's;
//! bursts are as long as the timer is coarse.

use clearway_transport::{Endpoint, Header, Packet, SendLimit};
use clearway_units::{FlowId, Span, Time};

/// Time by which packets leave early, together with one that is due: 43 packets at 10 Gb/s.
const AHEAD: Span = Span::from_us(50);
/// Time that is made up for when the process comes late: that of a timer of a millisecond, and of being scheduled.
const BEHIND: Span = Span::from_ms(2);

/// The departures of packets that are paced.
#[derive(Debug)]
pub(super) struct Pacing {
    /// Departure of the next packet, if one waits for it: then lateness is the process's.
    next: Option<Time>,
    /// A packet was due, and those within [`AHEAD`] go with it.
    bursts: bool,
}

impl Pacing {
    pub(super) fn new() -> Self {
        Self {
            next: None,
            bursts: false,
        }
    }

    /// The next packet that is to be sent now; `flow` is the one that has messages.
    pub(super) fn poll(
        &mut self,
        endpoint: &mut Endpoint,
        flow: FlowId,
        now: Time,
    ) -> Option<Packet> {
        let limit = match self.bursts {
            true => now.saturating_add(AHEAD),
            false => now,
        };
        let earliest = Time::from_ps(now.as_ps().saturating_sub(BEHIND.as_ps()));
        let mut at = self.next.unwrap_or(now).clamp(earliest, limit);
        loop {
            if let Some(packet) = endpoint.poll_transmit(at) {
                return Some(self.departs(endpoint, now, at, packet.packet));
            }
            let due = endpoint.deadline();
            if due > limit {
                self.bursts = false;
                let mut limits = endpoint.send_limits(now, flow);
                if !limits.any(|(_, limit)| limit == SendLimit::Pacing) {
                    self.next = None;
                }
                return None;
            }
            at = due.max(earliest);
            endpoint.on_deadline(at);
        }
    }

    /// Takes note of a packet that leaves now and was due at `at`.
    fn departs(&mut self, endpoint: &Endpoint, now: Time, at: Time, mut packet: Packet) -> Packet {
        if matches!(packet.header, Header::Data { .. }) {
            packet.stamp = now;
            self.bursts = true;
            self.next = Some(endpoint.deadline().max(at));
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{NegotiatedSettings, Security, Settings, Transport, profile};
    use crate::wire::ConnectionId;
    use clearway_transport::cc::ControllerSettings;
    use clearway_transport::{Class, Opening};
    use clearway_units::{Bytes, HostId, MessageId, Rate};
    use std::sync::Arc;

    /// An endpoint with 100 MB to send at 10 Gb/s, and the bytes of a packet on the wire.
    fn endpoint() -> (Endpoint, f64) {
        let settings = Settings {
            transport: Transport::GoBackN,
            line_rate: Rate::from_gbps(10),
            ..Settings::new(Security::Insecure)
        };
        let parameters = settings.parameters(ConnectionId(1));
        let agreed = NegotiatedSettings::of(&parameters, &parameters, true).unwrap();
        let mut profile = profile(&settings, &agreed, Span::from_us(100));
        // Without acknowledgements nothing but pacing is to hold packets back.
        profile.controller = ControllerSettings::named("dcqcn").unwrap();
        let network = profile.network;
        let mut endpoint = Endpoint::new(HostId(0), Arc::new(profile), 1);
        let opening = Opening::usual(Class::DATA, network.path);
        endpoint.open(FlowId(0), HostId(1), &opening);
        let length = Bytes::new(100_000_000);
        endpoint.post(Time::from_us(1000), FlowId(0), MessageId(0), length);
        (endpoint, f64::from(network.payload + network.header))
    }

    fn burst(pacing: &mut Pacing, endpoint: &mut Endpoint, now: Time) -> u32 {
        let packets = std::iter::from_fn(|| pacing.poll(endpoint, FlowId(0), now));
        packets
            .inspect(|packet| assert_eq!(packet.stamp, now))
            .count() as u32
    }

    #[test]
    fn the_rate_is_kept_however_seldom_the_clock_is_looked_at() {
        for step_us in [1, 10, 100, 1_000, 1_900] {
            let (mut endpoint, size) = endpoint();
            let mut pacing = Pacing::new();
            let start = Time::from_us(1_000);
            let mut packets = 0;
            let mut now = start;
            while now.since(start) < Span::from_ms(19) {
                packets += burst(&mut pacing, &mut endpoint, now);
                now += Span::from_us(step_us);
            }
            let seconds = now.since(start).as_secs();
            let rate = f64::from(packets) * size * 8.0 / seconds / 1e10;
            assert!((0.89..1.02).contains(&rate), "{step_us} us: {rate}");
        }
    }

    #[test]
    fn bursts_are_bounded_and_nothing_leaves_much_too_early() {
        let (mut endpoint, size) = endpoint();
        let mut pacing = Pacing::new();
        let gap_us = size * 8.0 / 1e4;
        let first = burst(&mut pacing, &mut endpoint, Time::from_us(1_000));
        assert!((40..=45).contains(&first), "{first}");
        assert_eq!(burst(&mut pacing, &mut endpoint, Time::from_us(1_010)), 0);
        // After a second without a call there is as much as in two milliseconds.
        let late = burst(&mut pacing, &mut endpoint, Time::from_us(1_000_000));
        let most = 2_050.0 / gap_us + 2.0;
        assert!(
            f64::from(late) <= most && f64::from(late) > most - 5.0,
            "{late}"
        );
    }
}
