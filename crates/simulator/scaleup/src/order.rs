//! Order of the events in one cycle.

use crate::Cycle;
use clearway_units::mix64;

/// The port of `ports` that goes first in `cycle`. The ports above it follow, then the ports below it.
///
/// A fixed order would let the lowest port win each tie; one that moves on by a port each cycle would favour the port after one that is
/// often idle.
#[inline]
pub fn first_port(cycle: Cycle, ports: usize) -> usize {
    (((mix64(cycle) >> 32) * ports as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_goes_first_as_often_as_others() {
        for ports in [1usize, 3, 16, 24] {
            let mut counts = vec![0u32; ports];
            let cycles = 1000 * ports as u64;
            (0..cycles).for_each(|cycle| counts[first_port(cycle, ports)] += 1);
            assert!(
                counts.iter().all(|count| (880..1120).contains(count)),
                "{counts:?}"
            );
        }
    }
}
