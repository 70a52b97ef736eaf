//! Intervals, and their position relative to a limit.

/// Confidence interval: a range with both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Position of a value that is only known to lie in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalVerdict {
    /// The whole interval is below the limits.
    Below,
    /// The whole interval is above the limits.
    Above,
    /// The whole interval is within the limits, ends included.
    Within,
    /// A part of the interval is within the limits, and a part is not.
    Undecided,
}

impl Interval {
    /// Position of the interval relative to the limits `other`, which may be equal.
    pub fn against(&self, other: Self) -> IntervalVerdict {
        if self.high < other.low {
            IntervalVerdict::Below
        } else if self.low > other.high {
            IntervalVerdict::Above
        } else if self.low >= other.low && self.high <= other.high {
            IntervalVerdict::Within
        } else {
            IntervalVerdict::Undecided
        }
    }

    /// The lower end and the upper end.
    pub fn ends(self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// The interval that consists of one number.
    pub fn at(value: f64) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    /// True if the number lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Number estimated from several seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate itself.
    pub value: f64,
    /// Confidence interval; `None` if there are too few seeds.
    pub interval: Option<Interval>,
    /// Number of seeds of the estimate.
    pub seeds: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_an_interval_touches() {
        let interval = Interval {
            low: 1.0,
            high: 2.0,
        };
        assert_eq!(interval.against(Interval::at(2.5)), IntervalVerdict::Below);
        assert_eq!(
            interval.against(Interval::at(2.0)),
            IntervalVerdict::Undecided
        );
        assert_eq!(
            interval.against(Interval::at(1.0)),
            IntervalVerdict::Undecided
        );
        assert_eq!(interval.against(Interval::at(0.5)), IntervalVerdict::Above);
        assert_eq!(interval.against(interval), IntervalVerdict::Within);
        assert_eq!(Interval::at(2.0).against(interval), IntervalVerdict::Within);
        let wide = Interval {
            low: 0.0,
            high: 1.5,
        };
        assert_eq!(interval.against(wide), IntervalVerdict::Undecided);
        assert!(interval.contains(1.0) && interval.contains(2.0) && !interval.contains(2.1));
    }
}
