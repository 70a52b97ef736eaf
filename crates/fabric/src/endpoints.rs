//! The transports of a host: one endpoint, and in runs with several transports one more for each of the others.
//!
//! Endpoints of a host do not know of each other. They share its NIC: the most [urgent](Endpoint::urgency) packet goes first, which is
//! control before data, and endpoints that are equally urgent take turns packet by packet. At one instant their timers run, and their
//! events are seen, in the order of the transports.
//!
//! What the packet loop calls is compiled for one endpoint and for `SEVERAL`; a host decides once a round. So runs with one transport
//! have no branch about it. Calls to several endpoints are not inlined, because few runs have any.

use clearway_transport::telemetry::{IntPacket, Telemetry};
use clearway_transport::{ClassSet, Endpoint, Event};
use clearway_units::{HostId, Time};

/// All endpoints of a host.
pub(crate) struct Endpoints<T> {
    first: Endpoint<T>,
    /// Those of further transports; `None` where the run has one.
    further: Option<Box<FurtherEndpoints<T>>>,
}

struct FurtherEndpoints<T> {
    endpoints: Vec<Endpoint<T>>,
    /// By transport: switches record no telemetry on its packets, although they do so on those of others.
    seals: Vec<bool>,
    /// The transport whose turn it is.
    turn: usize,
}

impl<T: Telemetry> Endpoints<T> {
    /// Creates the endpoints of a host, in the order of the transports, each with whether its transport uses telemetry.
    ///
    /// # Panics
    /// If there is none.
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

    /// The endpoint of a transport.
    pub(crate) fn of(&mut self, transport: u8) -> &mut Endpoint<T> {
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

    /// Hands a packet to the endpoint of its flow. `transports` are those of flows, by number; of further flows it is the first.
    #[inline(always)]
    pub(crate) fn on_packet<const SEVERAL: bool>(
        &mut self,
        now: Time,
        packet: &IntPacket<T>,
        transports: &[u8],
    ) {
        match SEVERAL {
            false => self.first.on_packet(now, packet),
            true => self.dispatch(now, packet, transports),
        }
    }

    #[inline(never)]
    fn dispatch(&mut self, now: Time, packet: &IntPacket<T>, transports: &[u8]) {
        let transport = transports.get(packet.flow.index()).copied();
        self.of(transport.unwrap_or(0)).on_packet(now, packet);
    }

    #[inline]
    pub(crate) fn poll_transmit<const SEVERAL: bool>(&mut self, now: Time) -> Option<IntPacket<T>> {
        match SEVERAL {
            false => self.first.poll_transmit(now),
            true => self.transmit_in_turn(now),
        }
    }

    /// The most urgent packet; of several that are, that of the next endpoint whose turn it is.
    #[inline(never)]
    fn transmit_in_turn(&mut self, now: Time) -> Option<IntPacket<T>> {
        let turn = self.further.as_ref()?.turn;
        let urgencies = self.iter().map(Endpoint::urgency).enumerate();
        let waiting = urgencies.filter_map(|(place, urgency)| Some((place, urgency?)));
        // Places before the one whose turn it is come after the last one.
        let (place, _) = waiting
            .min_by_key(|(place, urgency)| (std::cmp::Reverse(*urgency), *place < turn, *place))?;
        let packet = self.of(place as u8).poll_transmit(now);
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
