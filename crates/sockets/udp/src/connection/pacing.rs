//! Pacing by a process that reads its clock only now and then.
//!
//! A rate controller spaces packets by a gap: 1.2 us at 10 Gb/s. A process reads its clock once for many packets, and its timers have a
//! resolution of a millisecond. With one packet per wake-up, the process would make a system call for each packet and lose the time that it
//! overslept. So the transport runs on a virtual clock, which moves from one departure to the next. Packets that became due since the last
//! call leave now, together with packets that are due within [`AHEAD`]. The controller sets the rate; the resolution of the timer sets the
//! length of bursts.

use clearway_transport::{Endpoint, Header, Packet, SendLimit};
use clearway_units::{FlowId, Span, Time};

/// Time by which packets may leave early, together with a packet that is due: 43 packets at 10 Gb/s.
const AHEAD: Span = Span::from_us(50);
/// Longest lateness of the process that pacing makes up for: a timer of a millisecond, plus scheduling.
const BEHIND: Span = Span::from_ms(2);

/// The departures of packets that are paced.
#[derive(Debug)]
pub(super) struct Pacing {
    /// Departure of the next packet, if a packet waits for it: then the process causes the lateness.
    next: Option<Time>,
    /// A packet was due, and the packets within [`AHEAD`] leave with it.
    bursts: bool,
}

impl Pacing {
    pub(super) fn new() -> Self {
        Self {
            next: None,
            bursts: false,
        }
    }

    /// The next packet to send now; `flow` is the flow with messages.
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

    /// Records a packet that leaves now and was due at `at`.
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
    use clearway_transport::congestion::ControllerSettings;
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
        let agreed = NegotiatedSettings::negotiate(&parameters, &parameters, true).unwrap();
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
