//! Rules that merge samples.

/// Rule that merges the values of neighbouring intervals into one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MergeRule {
    /// The last value: levels at the end of an interval.
    Last,
    /// The greatest value: peaks within an interval.
    Max,
    /// The mean over time: rates and shares, each value as long as it lasted.
    Mean,
    /// The sum: counts of events in an interval.
    Sum,
}

impl MergeRule {
    /// The name, for scripts: `last`, `max`, `mean` or `sum`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Sum => "sum",
        }
    }

    /// True if a value describes its whole interval, not the end of the interval.
    pub const fn is_over_interval(self) -> bool {
        match self {
            Self::Last => false,
            Self::Max | Self::Mean | Self::Sum => true,
        }
    }

    /// The value of several neighbouring intervals: `samples` are their values in the order of time, each with the length of its interval.
    /// NaN values do not count; if all values are NaN, the result is also NaN.
    pub fn fold(self, samples: impl IntoIterator<Item = (f64, f64)>) -> f64 {
        let mut samples = samples.into_iter().filter(|(value, _)| !value.is_nan());
        let Some((first, length)) = samples.next() else {
            return f64::NAN;
        };
        match self {
            Self::Last => samples.last().map_or(first, |(value, _)| value),
            Self::Max => samples.fold(first, |most, (value, _)| most.max(value)),
            Self::Sum => samples.fold(first, |sum, (value, _)| sum + value),
            Self::Mean => {
                let mut rest = samples.peekable();
                // The mean of one value is exactly that value.
                if rest.peek().is_none() {
                    return first;
                }
                let begin = (first * length, length);
                let add =
                    |(sum, all): (f64, f64), (value, length)| (sum + value * length, all + length);
                let (sum, all) = rest.fold(begin, add);
                sum / all
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [MergeRule; 4] = [
        MergeRule::Last,
        MergeRule::Max,
        MergeRule::Mean,
        MergeRule::Sum,
    ];

    #[test]
    fn samples_become_one_by_their_rule() {
        let samples = [(4.0, 1.0), (f64::NAN, 5.0), (9.0, 3.0), (6.0, 2.0)];
        let merged = ALL.map(|rule| rule.fold(samples));
        assert_eq!(merged, [6.0, 9.0, (4.0 + 27.0 + 12.0) / 6.0, 19.0]);
        assert!(ALL.iter().all(|rule| rule.fold([(f64::NAN, 1.0)]).is_nan()));
        assert!(ALL.iter().all(|rule| rule.fold([]).is_nan()));
        assert_eq!(ALL.map(MergeRule::name), ["last", "max", "mean", "sum"]);
    }

    proptest! {
        /// Samples merged in steps give the same value as samples merged at once.
        #[test]
        fn steps_make_no_difference(
            samples in prop::collection::vec((-1e6..1e6, 0.1..10.0), 2..20), at in 1usize..19,
        ) {
            let at = at.min(samples.len() - 1);
            let (early, late) = samples.split_at(at);
            for rule in ALL {
                let step = |part: &[(f64, f64)]| {
                    (rule.fold(part.iter().copied()), part.iter().map(|(_, length)| length).sum())
                };
                let whole = rule.fold(samples.iter().copied());
                let steps = rule.fold([step(early), step(late)]);
                prop_assert!((whole - steps).abs() <= 1e-6, "{rule:?} {whole} {steps}");
            }
        }
    }
}
