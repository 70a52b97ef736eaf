//! When the transmissions of a switch end: at most one for each port.
//!
//! A tournament of times: a port that begins or ends a transmission changes its own time and those above it that this decides.

use clearway_units::Time;

/// Ends of transmissions by port.
#[derive(Debug)]
pub(super) struct Ends {
    /// A binary tree from index 1 on: the earlier time of two below each, the ports' own in the second half.
    times: Vec<Time>,
}

impl Ends {
    /// Of so many ports, which transmit nothing.
    pub(super) fn new(ports: usize) -> Self {
        let leaves = ports.next_power_of_two();
        Self {
            times: vec![Time::NEVER; 2 * leaves],
        }
    }

    fn leaves(&self) -> usize {
        self.times.len() / 2
    }

    /// The end of what `port` transmits; [`Time::NEVER`] if that is nothing.
    pub(super) fn of(&self, port: u16) -> Time {
        self.times[self.leaves() + usize::from(port)]
    }

    /// The earliest end.
    #[inline]
    pub(super) fn first(&self) -> Time {
        self.times[1]
    }

    /// The port with the earliest end; of several the lowest.
    #[inline]
    pub(super) fn first_port(&self) -> u16 {
        let (leaves, first) = (self.leaves(), self.first());
        let mut node = 1;
        while node < leaves {
            node *= 2;
            node += usize::from(self.times[node] != first);
        }
        (node - leaves) as u16
    }

    /// What `port` transmits ends at `end`, or with [`Time::NEVER`] it transmits nothing.
    #[inline]
    pub(super) fn set(&mut self, port: u16, end: Time) {
        let mut node = self.leaves() + usize::from(port);
        self.times[node] = end;
        while node > 1 {
            let first = self.times[node].min(self.times[node ^ 1]);
            node /= 2;
            if self.times[node] == first {
                return;
            }
            self.times[node] = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_earliest_of_the_lowest_port(
            ports in 1u16..40,
            changes in prop::collection::vec((0u16..40, 0u64..20), 1..200),
        ) {
            let mut ends = Ends::new(ports.into());
            let mut known = vec![Time::NEVER; ports.into()];
            for (port, at) in changes {
                let (port, at) = (port % ports, if at < 5 { Time::NEVER } else { Time::from_ps(at) });
                ends.set(port, at);
                known[usize::from(port)] = at;
                let first = *known.iter().min().unwrap();
                prop_assert_eq!(ends.first(), first);
                prop_assert_eq!(ends.of(port), at);
                if !first.is_never() {
                    let lowest = known.iter().position(|at| *at == first).unwrap();
                    prop_assert_eq!(usize::from(ends.first_port()), lowest);
                }
            }
        }
    }
}
