//! Bound of what is in flight by what the other end's sockets hold.
//!
//! The largest window follows from the round trip of the handshake. On a host that was overloaded then, that is tens of milliseconds,
//! and the window many times what the sockets of the other end hold while its process is not scheduled. So no more is in flight than
//! they hold, or than the largest window for the least round trip of data, where that is more: on a long way it opens with
//! the first acknowledgements.

use crate::settings::{LEAST_ROUND_TRIP, largest_window};
use clearway_transport::cc::NetworkFacts;
use clearway_transport::{Class, ClassSet, Endpoint};
use clearway_units::Span;

/// The bound of one connection, in bytes of payload.
#[derive(Debug)]
pub(super) struct FlightBound {
    network: NetworkFacts,
    /// Bytes that the sockets hold.
    held: u64,
    /// Least round trip of data, and the bound that follows.
    least: Span,
    bound: u64,
}

impl FlightBound {
    /// The bound for sockets that hold so many datagrams; `None` if the window is never larger.
    pub(super) fn new(network: &NetworkFacts, datagrams: u32) -> Option<Self> {
        let held = u64::from(datagrams) * u64::from(network.payload);
        (largest_window(network, network.propagation_rtt) > held).then_some(Self {
            network: *network,
            held,
            least: Span::MAX,
            bound: held,
        })
    }

    /// Takes note of the round trip of data.
    pub(super) fn observe(&mut self, round_trip: Span) {
        if round_trip < self.least {
            self.least = round_trip;
            let window = largest_window(&self.network, round_trip.max(LEAST_ROUND_TRIP));
            self.bound = self.held.max(window);
        }
    }

    /// Holds data back while there is too much in flight.
    pub(super) fn apply(&self, endpoint: &mut Endpoint) {
        let mut in_flight = 0;
        endpoint.for_each_open(|flow| in_flight += flow.progress().in_flight.as_u64());
        let mut paused = ClassSet::EMPTY;
        if in_flight >= self.bound {
            paused.insert(Class::DATA);
        }
        endpoint.set_paused(paused);
    }
}
