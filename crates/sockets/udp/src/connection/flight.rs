//! Bound of the bytes in flight, derived from the capacity of the other end's sockets.
//!
//! The largest window follows from the round trip of the handshake. On an overloaded host this round trip is tens of milliseconds, and the
//! window is many times the capacity of the other end's sockets while its process is not scheduled. The bound is the larger of this
//! capacity and the largest window for the least round trip of data. On a long path the bound rises with the first acknowledgements.

use crate::settings::{LEAST_ROUND_TRIP, largest_window};
use clearway_transport::congestion::NetworkFacts;
use clearway_transport::{Class, ClassSet, Endpoint};
use clearway_units::Span;

/// The bound of one connection, in bytes of payload.
#[derive(Debug)]
pub(super) struct FlightBound {
    network: NetworkFacts,
    /// Capacity of the sockets in bytes.
    held: u64,
    /// Least round trip of data, and the resulting bound.
    least: Span,
    bound: u64,
}

impl FlightBound {
    /// The bound for sockets that hold `datagrams` datagrams; `None` if the window is never larger.
    pub(super) fn new(network: &NetworkFacts, datagrams: u32) -> Option<Self> {
        let held = u64::from(datagrams) * u64::from(network.payload);
        (largest_window(network, network.propagation_rtt) > held).then_some(Self {
            network: *network,
            held,
            least: Span::MAX,
            bound: held,
        })
    }

    /// Records a round trip of data.
    pub(super) fn observe(&mut self, round_trip: Span) {
        if round_trip < self.least {
            self.least = round_trip;
            let window = largest_window(&self.network, round_trip.max(LEAST_ROUND_TRIP));
            self.bound = self.held.max(window);
        }
    }

    /// Holds data back while too many bytes are in flight.
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
