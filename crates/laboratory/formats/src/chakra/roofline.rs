//! Estimates of the duration of computations, from their operations and memory accesses.

use clearway_units::{Bytes, Rate, Span};
use std::num::NonZero;

/// Roofline of a GPU, as in ASTRA-sim: computations reach the lower of the peak performance and their operational intensity times the
/// memory bandwidth. So a computation takes the longer of two times: operations over the peak, and bytes over the memory bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roofline {
    /// Peak performance, in operations per second.
    pub peak: NonZero<u64>,
    /// Memory bandwidth; without it only the peak counts.
    pub memory: Option<Rate>,
}

impl Roofline {
    /// Time of `operations` on `bytes`, rounded up to a picosecond; `None` if it does not fit in 64 bits.
    pub fn span_of(self, operations: u64, bytes: Bytes) -> Option<Span> {
        const PS_PER_SECOND: u128 = 1_000_000_000_000;
        let ps = (u128::from(operations) * PS_PER_SECOND).div_ceil(self.peak.get().into());
        let at_peak = Span::from_ps(u64::try_from(ps).ok()?);
        let at_memory = self.memory.map_or(Span::ZERO, |rate| rate.span_of(bytes));
        Some(at_peak.max(at_memory)).filter(|&span| span < Span::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAK: u64 = 312_000_000_000_000;

    fn roofline(memory: Option<Rate>) -> Roofline {
        let peak = NonZero::new(PEAK).unwrap();
        Roofline { peak, memory }
    }

    #[test]
    fn the_slower_of_operations_and_memory_counts() {
        // 2039 GB/s: the ridge is at 153 operations per byte.
        let whole = roofline(Some(Rate::from_gbps(16_312)));
        let span = |operations, bytes| whole.span_of(operations, Bytes::new(bytes)).unwrap();
        assert_eq!(
            span(PEAK / 1000, 2_039_000_000),
            Span::from_ps(1_000_000_000)
        );
        assert_eq!(
            span(PEAK / 1000, 2_039_000_001),
            Span::from_ps(1_000_000_001)
        );
        assert_eq!(
            span(PEAK / 1000 + 1, 2_039_000_000),
            Span::from_ps(1_000_000_001)
        );
        assert_eq!(span(1, 2_039_000), Span::from_us(1));
        assert_eq!(span(PEAK, 0), Span::from_ps(1_000_000_000_000));
        let peak = roofline(None).span_of(312, Bytes::new(u64::MAX));
        assert_eq!(peak, Some(Span::from_ps(1)));
    }

    #[test]
    fn no_time_beyond_64_bits() {
        let slow = Roofline {
            peak: NonZero::<u64>::MIN,
            memory: Some(Rate::from_bps(1)),
        };
        assert_eq!(slow.span_of(u64::MAX, Bytes::ZERO), None);
        assert_eq!(slow.span_of(0, Bytes::new(u64::MAX)), None);
    }
}
