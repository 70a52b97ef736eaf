//! Domains of parameter values, for programs that generate values.

/// Kind of value that a parameter takes: the information of [`Parameter::expected`](crate::Parameter::expected), for programs.
///
/// A domain may be larger than what a scenario accepts, because some limits follow from other settings; it is never smaller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueDomain {
    /// A duration, written as `"1us"`.
    Duration,
    /// An instant of simulated time, written as a duration.
    Instant,
    /// A rate, written as `"400Gbps"`.
    Rate,
    /// A size in bytes, written as `"2MB"`.
    Size,
    /// A size in bytes, relative to a bandwidth-delay product, written as `"25%bdp"`, or the bytes that a link sends in a time, written as
    /// `"32us"`.
    RelativeSize,
    /// A whole number within bounds, both included.
    Whole {
        /// The least.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// A number of zero or more.
    Number,
    /// `true` or `false`.
    Flag,
    /// One of fixed words.
    Words(Vec<&'static str>),
    /// Any text.
    Text,
    /// A list of values of one domain.
    List(Box<ValueDomain>),
    /// A value of any of several domains.
    Either(Vec<ValueDomain>),
}

impl ValueDomain {
    /// Values of `self` and one fixed word, such as `"auto"`.
    pub fn or_word(self, word: &'static str) -> Self {
        Self::Either(vec![Self::Words(vec![word]), self])
    }

    /// Lists of values of `self`.
    pub fn list(self) -> Self {
        Self::List(Box::new(self))
    }
}
