//! Departure times of the packets of a window.

use clearway_units::Time;

/// Ring of departure times, addressed by packet sequence number.
#[derive(Debug, Clone)]
pub(crate) struct Departures(Box<[Time]>);

impl Departures {
    /// Creates a ring for `capacity` packets, a power of two.
    pub(crate) fn new(capacity: u32) -> Self {
        debug_assert!(capacity.is_power_of_two());
        Self(vec![Time::ZERO; capacity as usize].into_boxed_slice())
    }

    /// The time of a packet.
    pub(crate) fn slot(&mut self, psn: u64) -> &mut Time {
        let index = psn as usize & (self.0.len() - 1);
        &mut self.0[index]
    }
}
