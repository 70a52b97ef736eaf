//! Exact shares of a link or a GPU.

use clearway_units::{Parameter, Rate, Value, ValueDomain};
use std::fmt;

/// A share of a link's capacity or of a GPU, in millionths, so that sums are exact: three thirds do not exceed the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// The whole.
    pub const WHOLE: Self = Self(1_000_000);

    /// The share `part`, rounded down to a millionth; `None` unless `part` is above zero and at most one.
    pub fn new(part: f64) -> Option<Self> {
        // The float error of a decimal fraction is far below the added 1e-3.
        let millionths = part * 1e6 + 1e-3;
        (1.0..=1e6 + 2e-3)
            .contains(&millionths)
            .then_some(Self(millionths as u32))
    }

    /// Share that `demand` takes of a link of `capacity`, rounded down but never to zero; `None` if it does not fit.
    pub fn of_rate(demand: Rate, capacity: Rate) -> Option<Self> {
        let millionths = u128::from(demand.as_bps()) * 1_000_000 / u128::from(capacity.as_bps());
        (demand <= capacity).then_some(Self((millionths as u32).max(1)))
    }

    /// Product of this share and `whole`, rounded down but never to zero.
    #[must_use]
    pub fn scale(self, whole: Self) -> Self {
        let millionths = u64::from(self.0) * u64::from(whole.0) / u64::from(Self::WHOLE.0);
        Self((millionths as u32).max(1))
    }

    /// The share as a fraction of one.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// The share in millionths.
    pub(super) const fn millionths(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

impl Parameter for Share {
    fn expected() -> String {
        "a share above 0 and at most 1, such as `0.5`".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Number
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Float(part) => Self::new(*part),
            Value::Integer(1) => Some(Self::WHOLE),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        Value::Float(self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_and_within_the_whole() {
        assert_eq!(Share::new(1.0), Some(Share::WHOLE));
        assert_eq!(Share::new(0.29).map(Share::millionths), Some(290_000));
        let third = Share::new(1.0 / 3.0).expect("a share");
        assert!(3 * third.millionths() <= Share::WHOLE.millionths());
        for nonsense in [0.0, -0.5, 1.001, f64::NAN, f64::INFINITY, 1e-9] {
            assert_eq!(Share::new(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_rate_is_a_share_of_a_capacity() {
        let of = |demand| Share::of_rate(Rate::from_gbps(demand), Rate::from_gbps(50));
        assert_eq!(of(25), Share::new(0.5));
        assert_eq!(of(50), Some(Share::WHOLE));
        assert_eq!(of(51), None);
        assert_eq!(
            Share::of_rate(Rate::from_bps(1), Rate::from_gbps(800)).map(Share::millionths),
            Some(1)
        );
    }
}
