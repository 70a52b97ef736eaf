//! Path selectors: which entropy the next packet carries.
//!
//! A path is not a route but an entropy value, which ECMP maps to routes. A new selector is one file and one line in the
//! `selectors!` list, exactly as for [controllers](crate::cc).

use clearway_units::{ParameterSet, RandomStream};

/// An entropy value, `0..max_paths`.
pub type PathId = u16;

/// A path selector of one flow.
pub trait PathSelector: Send {
    /// An acknowledgement has come back for a packet on `path`, marked or not.
    fn on_ack(&mut self, path: PathId, ecn: bool);
    /// The path of the next data packet. `window` is the congestion window in packets, at least 1.
    fn choose(&mut self, window: u32) -> PathId;
    /// The path of a probe; must not use up what [`choose`](Self::choose) has remembered.
    fn choose_for_probe(&mut self, window: u32) -> PathId {
        self.choose(window)
    }
}

/// What makes a selector known by name.
pub trait SelectorDefinition: PathSelector + Sized + 'static {
    /// Its name in a scenario: `transport.spray = "…"`.
    const NAME: &'static str;
    /// One line for `clearway list spray`.
    const SUMMARY: &'static str;
    /// Its settings, keys of the `[transport]` section.
    type Parameters: ParameterSet + std::fmt::Debug + Clone + PartialEq + Send + Sync + 'static;

    /// A selector for a new flow, which may keep the stream.
    fn new(parameters: &Self::Parameters, random: RandomStream) -> Self;
}
