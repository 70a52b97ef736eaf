//! Departure times and paths of the packets of a window.

use crate::spray::PathId;
use clearway_units::Time;

/// Last departure of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) at: Time,
    pub(crate) path: PathId,
}

/// Ring of departures, addressed by packet sequence number.
#[derive(Debug, Clone)]
pub(crate) struct Departures(Box<[Departure]>);

impl Departures {
    /// Creates a ring for `capacity` packets, a power of two.
    pub(crate) fn new(capacity: u32) -> Self {
        debug_assert!(capacity.is_power_of_two());
        let none = Departure {
            at: Time::ZERO,
            path: 0,
        };
        Self(vec![none; capacity as usize].into_boxed_slice())
    }

    /// The departure of a packet.
    pub(crate) fn slot(&mut self, psn: u64) -> &mut Departure {
        let index = psn as usize & (self.0.len() - 1);
        &mut self.0[index]
    }
}
