//! Lateness of delivered packets.

use clearway_units::Span;

/// Width of a class of lateness.
const STEP: Span = Span::from_us(10);
/// Number of classes; the last one holds all longer times.
const CLASSES: usize = 1001;

/// Times from the arrival of packets to their write, in classes of 10 us up to 10 ms.
#[derive(Debug, Clone)]
pub struct Lateness {
    counts: Vec<u64>,
    all: u64,
    longest: Span,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            counts: vec![0; CLASSES],
            all: 0,
            longest: Span::ZERO,
        }
    }
}

impl Lateness {
    /// Counts one packet.
    pub(super) fn add(&mut self, late: Span) {
        let class = (late.as_ps() / STEP.as_ps()).min(CLASSES as u64 - 1);
        self.counts[class as usize] += 1;
        self.all += 1;
        self.longest = self.longest.max(late);
    }

    /// The lateness that `per_mille` thousandths of the packets do not exceed, rounded up to 10 us; zero without packets.
    pub fn at(&self, per_mille: u64) -> Span {
        let rank = (self.all * per_mille).div_ceil(1000);
        let mut below = 0;
        for (class, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank && below > 0 && class + 1 < CLASSES {
                return (STEP * (class as u64 + 1)).min(self.longest);
            }
        }
        self.longest
    }

    /// The longest lateness.
    pub fn longest(&self) -> Span {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_rounded_up_to_their_class() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.at(500), Span::ZERO);
        (0..100).for_each(|us| lateness.add(Span::from_us(us)));
        assert_eq!(lateness.at(500), Span::from_us(50));
        assert_eq!(lateness.at(990), Span::from_us(99));
        lateness.add(Span::from_ms(700));
        assert_eq!(lateness.at(1000), Span::from_ms(700));
        assert_eq!(lateness.longest(), Span::from_ms(700));
    }
}
