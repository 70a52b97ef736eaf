//! Loss model of a link.

use crate::topology::{Cable, LinkId};
use clearway_units::{Purpose, RandomStream, Time};
use std::collections::VecDeque;

/// Loss model of a link: bit errors and packet loss.
#[derive(Debug)]
pub struct LinkErrors {
    /// Probability that one bit arrives right.
    bit_survives: f64,
    /// Probability that a packet arrives, were all bits right.
    packet_survives: f64,
    /// Values of that from later times on, the next one first.
    later: VecDeque<(Time, f64)>,
    /// Time from which on nothing arrives.
    dead_from: Time,
    random: RandomStream,
}

impl LinkErrors {
    /// Loss model of a link of `cable`; `None` for a perfect one.
    pub fn new(cable: &Cable, seed: u64, link: LinkId) -> Option<Box<Self>> {
        Self::with_changes(cable, &[], seed, link)
    }

    /// As [`new`](Self::new), where the probability of packet loss changes at these times.
    pub(crate) fn with_changes(
        cable: &Cable,
        losses: &[(Time, f64)],
        seed: u64,
        link: LinkId,
    ) -> Option<Box<Self>> {
        let perfect = cable.bit_error_rate <= 0.0
            && cable.packet_loss <= 0.0
            && losses.is_empty()
            && cable.dead_from == Time::NEVER;
        (!perfect).then(|| {
            Box::new(Self {
                bit_survives: 1.0 - cable.bit_error_rate,
                packet_survives: 1.0 - cable.packet_loss,
                later: losses.iter().map(|&(at, loss)| (at, 1.0 - loss)).collect(),
                dead_from: cable.dead_from,
                random: RandomStream::new(seed, Purpose::BitErrors, link.0.into()),
            })
        })
    }

    /// Decides whether a packet of `size` bytes whose last bit leaves at `end` is lost.
    pub fn hit(&mut self, end: Time, size: u16) -> bool {
        if end >= self.dead_from {
            return true;
        }
        while let Some(&(at, survives)) = self.later.front()
            && at <= end
        {
            self.later.pop_front();
            self.packet_survives = survives;
        }
        let survives = power(self.bit_survives, u32::from(size) * 8) * self.packet_survives;
        survives < 1.0 && self.random.unit() >= survives
    }
}

/// `base^exponent` by multiplications only, so that it is the same on every machine.
fn power(base: f64, mut exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_powers() {
        assert_eq!(power(2.0, 10), 1024.0);
        assert_eq!(power(0.5, 0), 1.0);
        assert!((power(1.0 - 1e-6, 33_200) - 0.967_345).abs() < 1e-6);
    }
}
