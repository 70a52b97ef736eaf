//! The transports of a host: one endpoint, and in runs with several transports one more for each of the others.
//!
//! Endpoints of a host do not know of each other. They share its NIC: the most [urgent](Endpoint::urgency) packet goes first, which is
//! control before data, and endpoints that are equally urgent take turns packet by packet. At one instant their timers run, and their
//! events are seen, in the order of the transports.
//!
//! The functions that the packet loop calls are compiled for one endpoint and for `SEVERAL`; a host chooses once a round. So runs with one
//! transport have no branch about it. The form for several is also right for one. Calls to several endpoints are not inlined, because few
//! runs have any.

use clearway_transport::congestion::telemetry::{IntPacket, Telemetry};
use clearway_transport::{ClassSet, Endpoint, Event, OpenFlow, Packet};
use clearway_units::{HostId, Time};

/// All endpoints of a host.
pub(crate) struct Endpoints<T> {
    first: Endpoint<T>,
    /// Endpoints of further transports; `None` where the run has one.
    further: Option<Box<FurtherEndpoints<T>>>,
}

struct FurtherEndpoints<T> {
    endpoints: Vec<Endpoint<T>>,
    /// By transport: true if switches record no telemetry on its packets, although they record it on packets of others.
    seals: Vec<bool>,
    /// The transport whose turn it is.
    turn: usize,
}

impl<T: Telemetry> Endpoints<T> {
    /// Creates the endpoints of a host, in the order of the transports, each with whether its transport uses telemetry.
    ///
    /// # Panics
    /// If `endpoints` is empty.
    pub(crate) fn new(endpoints: Vec<(Endpoint<T>, bool)>) -> Self {
        let seals = endpoints.iter().map(|(_, uses)| T::PRESENT && !uses);
        let seals: Vec<bool> = seals.collect();
        let mut endpoints = endpoints.into_iter().map(|(endpoint, _)| endpoint);
        let first = endpoints.next().expect("a run has a transport");
        let endpoints: Vec<Endpoint<T>> = endpoints.collect();
        let further = (!endpoints.is_empty()).then(|| FurtherEndpoints {
            endpoints,
            seals,
            turn: 0,
        });
        Self {
            first,
            further: further.map(Box::new),
        }
    }

    /// Loads what the next packets of the first transport will touch into the caches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.first.prefetch();
    }

    /// Loads what that points to.
    #[inline]
    pub(crate) fn prefetch_contents(&self) {
        self.first.prefetch_contents();
    }

    pub(crate) fn host(&self) -> HostId {
        self.first.host()
    }

    /// There is more than one.
    pub(crate) fn are_several(&self) -> bool {
        self.further.is_some()
    }

    /// In the order of the transports.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Endpoint<T>> {
        let further = self.further.iter().flat_map(|further| &further.endpoints);
        std::iter::once(&self.first).chain(further)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Endpoint<T>> {
        let further = self.further.iter_mut();
        let further = further.flat_map(|further| &mut further.endpoints);
        std::iter::once(&mut self.first).chain(further)
    }

    /// Lets queue pairs skip as many packets as `packets` says.
    pub(crate) fn skip(&mut self, packets: &mut dyn FnMut(&OpenFlow<'_>) -> u64) {
        for endpoint in self.iter_mut() {
            let mut skipped = Vec::new();
            endpoint.for_each_open(|open| {
                let packets = packets(open);
                if packets > 0 {
                    skipped.push((open.flow(), open.queue_pair(), packets));
                }
            });
            for (flow, queue_pair, packets) in skipped {
                endpoint.skip(flow, queue_pair, packets);
            }
        }
    }

    /// The endpoint of a transport.
    pub(crate) fn endpoint_mut(&mut self, transport: u8) -> &mut Endpoint<T> {
        let further = usize::from(transport).checked_sub(1);
        match further.zip(self.further.as_mut()) {
            Some((place, further)) => &mut further.endpoints[place],
            None => &mut self.first,
        }
    }

    pub(crate) fn set_paused(&mut self, paused: ClassSet) {
        self.iter_mut()
            .for_each(|endpoint| endpoint.set_paused(paused));
    }

    #[inline]
    pub(crate) fn are_ready<const SEVERAL: bool>(&self) -> bool {
        self.first.ready() || SEVERAL && self.iter().any(Endpoint::ready)
    }

    #[inline]
    pub(crate) fn deadline<const SEVERAL: bool>(&self) -> Time {
        match SEVERAL {
            false => self.first.deadline(),
            true => self.earliest_deadline(),
        }
    }

    fn earliest_deadline(&self) -> Time {
        let deadlines = self.iter().map(Endpoint::deadline);
        deadlines.min().unwrap_or(Time::NEVER)
    }

    /// Runs the timers that are due.
    #[inline]
    pub(crate) fn on_deadline<const SEVERAL: bool>(&mut self, now: Time) {
        if SEVERAL {
            let due = self
                .iter_mut()
                .filter(|endpoint| endpoint.deadline() <= now);
            due.for_each(|endpoint| endpoint.on_deadline(now));
        } else {
            self.first.on_deadline(now);
        }
    }

    /// Hands a packet to the endpoint of its flow. `transports` lists the transport of each flow by number. Further flows have the first
    /// transport.
    #[inline(always)]
    pub(crate) fn on_packet<const SEVERAL: bool>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        transports: &[u8],
    ) {
        let telemetry = std::mem::take(&mut packet.telemetry);
        match SEVERAL {
            false => self.first.on_arrival(now, &packet.packet, telemetry),
            true => self.dispatch(now, &packet.packet, telemetry, transports),
        }
    }

    #[inline(never)]
    fn dispatch(&mut self, now: Time, packet: &Packet, telemetry: T, transports: &[u8]) {
        let transport = transports.get(packet.flow.index()).copied();
        self.endpoint_mut(transport.unwrap_or(0))
            .on_arrival(now, packet, telemetry);
    }

    /// Gives the next packet to `send`, if there is one.
    #[inline]
    pub(crate) fn transmit_with<const SEVERAL: bool>(
        &mut self,
        now: Time,
        send: impl FnOnce(&mut IntPacket<T>),
    ) {
        if !SEVERAL {
            self.first.transmit_with(now, send);
        } else if let Some(mut packet) = self.transmit_in_turn(now) {
            send(&mut packet);
        }
    }

    /// The most urgent packet; of several, the packet of the endpoint whose turn is next.
    #[inline(never)]
    fn transmit_in_turn(&mut self, now: Time) -> Option<IntPacket<T>> {
        let Some(further) = &self.further else {
            return self.first.poll_transmit(now);
        };
        let turn = further.turn;
        let urgencies = self.iter().map(Endpoint::urgency).enumerate();
        let waiting = urgencies.filter_map(|(place, urgency)| Some((place, urgency?)));
        // Places before the one whose turn it is come after the last one.
        let (place, _) = waiting
            .min_by_key(|(place, urgency)| (std::cmp::Reverse(*urgency), *place < turn, *place))?;
        let packet = self.endpoint_mut(place as u8).poll_transmit(now);
        let further = self.further.as_mut()?;
        further.turn = (place + 1) % (further.endpoints.len() + 1);
        let mut packet = packet?;
        if further.seals[place] {
            packet.telemetry.seal();
        }
        Some(packet)
    }

    #[inline]
    pub(crate) fn poll_event<const SEVERAL: bool>(&mut self) -> Option<Event> {
        match SEVERAL {
            false => self.first.poll_event(),
            true => self.iter_mut().find_map(Endpoint::poll_event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::PacketSizes;
    use clearway_transport::congestion::telemetry::{Hop, HopRecords};
    use clearway_transport::congestion::{
        AckSample, Allowance, CongestionControl, ControllerDefinition, ControllerSettings,
        NetworkFacts, PathFacts,
    };
    use clearway_transport::{Class, Header, Opening, Profile};
    use clearway_units::{Bytes, FlowId, MessageId, Rate, Span};
    use std::sync::Arc;

    const PEER: HostId = HostId(9);

    fn profile(strict_priority: bool) -> Profile {
        let rate = Rate::from_gbps(100);
        let sizes = PacketSizes {
            payload: 1000,
            header: 64,
            ack: 64,
        };
        let path = PathFacts {
            rtt: Span::from_us(10),
            switches: 1,
        };
        let network = NetworkFacts {
            line_rate: rate,
            base_rtt: path.rtt,
            propagation_rtt: path.rtt,
            bdp: rate.bytes_in(path.rtt),
            payload: sizes.payload,
            header: sizes.header,
            ack: sizes.ack,
            path,
        };
        Profile {
            strict_priority,
            ..Profile::strack(network)
        }
    }

    fn endpoint<T: Telemetry>(host: HostId, profile: &Profile) -> Endpoint<T> {
        Endpoint::with_telemetry(host, Arc::new(profile.clone()), 1)
    }

    fn several<T: Telemetry>(profiles: &[Profile]) -> Endpoints<T> {
        let own = |profile: &Profile| (endpoint(HostId(0), profile), profile.uses_telemetry());
        Endpoints::new(profiles.iter().map(own).collect())
    }

    fn open<T: Telemetry>(endpoint: &mut Endpoint<T>, to: HostId, flow: u32, class: u8) {
        let path = PathFacts {
            rtt: Span::from_us(10),
            switches: 1,
        };
        let class = Class::new(class).unwrap();
        endpoint.open(FlowId(flow), to, &Opening::usual(class, path));
        let bytes = Bytes::new(50_000);
        endpoint.post(Time::ZERO, FlowId(flow), MessageId(0), bytes);
        endpoint.close(Time::ZERO, FlowId(flow));
    }

    /// The flows of the next packets.
    fn sent<T: Telemetry>(endpoints: &mut Endpoints<T>, count: usize) -> Vec<u32> {
        let mut next = || {
            assert!(endpoints.are_ready::<true>());
            let packet = endpoints.transmit_in_turn(Time::ZERO);
            packet.unwrap().flow.0
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn transports_take_turns_whatever_the_number_of_their_flows() {
        let mut endpoints = several::<()>(&[profile(false), profile(false), profile(false)]);
        for flow in [0, 1, 2] {
            open(endpoints.endpoint_mut(0), PEER, flow, 1);
        }
        open(endpoints.endpoint_mut(2), PEER, 3, 1);
        assert_eq!(sent(&mut endpoints, 8), [0, 3, 1, 3, 2, 3, 0, 3]);
        open(endpoints.endpoint_mut(1), PEER, 4, 1);
        assert_eq!(sent(&mut endpoints, 6), [1, 4, 3, 2, 4, 3]);
    }

    #[test]
    fn control_of_any_transport_goes_before_data_of_all() {
        let mut endpoints = several::<()>(&[profile(false), profile(false)]);
        open(endpoints.endpoint_mut(0), PEER, 0, 1);
        assert_eq!(sent(&mut endpoints, 1), [0]);
        let mut peer = endpoint::<()>(PEER, &profile(false));
        open(&mut peer, HostId(0), 1, 1);
        while let Some(mut packet) = peer.poll_transmit(Time::ZERO) {
            endpoints.on_packet::<true>(Time::ZERO, &mut packet, &[0, 1]);
        }
        let mut controls = 0;
        let first_data = loop {
            let packet = endpoints.transmit_in_turn(Time::ZERO).unwrap();
            match packet.header {
                Header::Data { .. } => break packet,
                _ => controls += 1,
            }
            assert_eq!(packet.flow, FlowId(1));
        };
        assert!(controls > 10, "{controls}");
        assert_eq!(first_data.flow, FlowId(0));
        assert!(
            endpoints.poll_event::<true>().is_some(),
            "flow 1 has arrived"
        );
    }

    #[test]
    fn the_highest_class_goes_first_across_transports_where_it_does_within() {
        let mut endpoints = several::<()>(&[profile(true), profile(true)]);
        open(endpoints.endpoint_mut(0), PEER, 0, 2);
        open(endpoints.endpoint_mut(1), PEER, 1, 5);
        assert_eq!(sent(&mut endpoints, 4), [1, 1, 1, 1]);
        let mut five = ClassSet::EMPTY;
        five.insert(Class::new(5).unwrap());
        endpoints.set_paused(five);
        assert_eq!(sent(&mut endpoints, 2), [0, 0]);
        five.insert(Class::new(2).unwrap());
        endpoints.set_paused(five);
        assert!(!endpoints.are_ready::<true>());
        assert_eq!(endpoints.transmit_in_turn(Time::ZERO), None);
    }

    /// A controller that uses no telemetry, and has to see none.
    struct Deaf;

    clearway_units::parameters! {
        /// No settings that count.
        pub struct Settings {
            /// Unused.
            pub unused: u32 = 1, "unused", "a set has a parameter";
        }
    }

    impl CongestionControl for Deaf {
        fn on_ack(&mut self, sample: &AckSample<'_>) {
            assert_eq!(sample.hops, []);
        }
        fn allowance(&self) -> Allowance {
            Allowance {
                window: 100_000.0,
                rate: None,
            }
        }
    }

    impl ControllerDefinition for Deaf {
        const NAME: &'static str = "deaf";
        const SUMMARY: &'static str = "sees no telemetry";
        type Parameters = Settings;
        fn new(_: &Settings, _: &NetworkFacts) -> Self {
            Self
        }
    }

    #[test]
    fn telemetry_is_recorded_on_packets_of_transports_that_use_it() {
        let with = |controller| Profile {
            controller,
            ..profile(false)
        };
        let hpcc = with(ControllerSettings::named("hpcc").unwrap());
        let deaf = with(ControllerSettings::custom::<Deaf>());
        let mut endpoints = several::<HopRecords>(&[hpcc, deaf.clone()]);
        open(endpoints.endpoint_mut(0), PEER, 0, 1);
        open(endpoints.endpoint_mut(1), PEER, 1, 1);
        let mut peer = endpoint::<HopRecords>(PEER, &deaf);
        let hop = Hop {
            time: Time::ZERO,
            rate: Rate::from_gbps(100),
            sent: 0,
            queue: 0,
        };
        for _ in 0..20 {
            let mut packet = endpoints.transmit_in_turn(Time::ZERO).unwrap();
            packet.telemetry.record(hop);
            let recorded = if packet.flow == FlowId(0) { 1 } else { 0 };
            assert_eq!(packet.telemetry.hops().len(), recorded);
            if packet.flow == FlowId(1) {
                peer.on_packet(Time::ZERO, &packet);
            }
        }
        let mut answers = 0;
        while let Some(mut packet) = peer.poll_transmit(Time::ZERO) {
            endpoints.on_packet::<true>(Time::ZERO, &mut packet, &[0, 1]);
            answers += 1;
        }
        assert!(answers > 5, "{answers}");
    }
}
