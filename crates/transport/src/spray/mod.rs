//! Path selectors: which entropy the next packet carries.
//!
//! A path is not a route but an entropy value, which ECMP maps to routes. A new selector is one file and one line in the
//! `selectors!` list, exactly as for [controllers](crate::cc).

mod adaptive;
mod oblivious;
mod single;
#[cfg(test)]
mod tests;

use crate::plugin::plugin_settings;
use clearway_units::{ParameterInfo, ParameterSet, RandomStream, SetError, Value};
use std::num::NonZero;

pub use adaptive::{Adaptive, AdaptiveParameters};
pub use oblivious::{Oblivious, ObliviousParameters};
pub use single::{Single, SingleParameters};

/// Number of paths of STrack §4.1, which both spraying selectors start from.
const DEFAULT_PATHS: NonZero<u16> = NonZero::new(256).expect("not zero");

/// An entropy value, `0..max_paths`.
pub type PathId = u16;

/// A path selector of one flow.
pub trait PathSelector: Send {
    /// An acknowledgement has come back for a packet on `path`, marked or not.
    fn on_ack(&mut self, path: PathId, ecn: bool);
    /// The path of the next data packet. `window` is the congestion window in packets, fractions included.
    fn choose(&mut self, window: f64) -> PathId;
    /// The path of a probe; must not use up what [`choose`](Self::choose) has remembered.
    fn choose_for_probe(&mut self, window: f64) -> PathId {
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

/// Generates [`Selector`], which dispatches by `match` in the packet loop, and [`SelectorSettings`].
macro_rules! selectors {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        /// A path selector of this crate, or a boxed one of another crate.
        pub enum Selector {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $variant($type),)+
            /// One of another crate.
            Custom(Box<dyn PathSelector>),
        }

        impl PathSelector for Selector {
            #[inline]
            fn on_ack(&mut self, path: PathId, ecn: bool) {
                match self {
                    $(Self::$variant(selector) => selector.on_ack(path, ecn),)+
                    Self::Custom(selector) => selector.on_ack(path, ecn),
                }
            }
            #[inline]
            fn choose(&mut self, window: f64) -> PathId {
                match self {
                    $(Self::$variant(selector) => selector.choose(window),)+
                    Self::Custom(selector) => selector.choose(window),
                }
            }
            fn choose_for_probe(&mut self, window: f64) -> PathId {
                match self {
                    $(Self::$variant(selector) => selector.choose_for_probe(window),)+
                    Self::Custom(selector) => selector.choose_for_probe(window),
                }
            }
        }

        plugin_settings! {
            /// Which path selector, and its settings.
            settings: SelectorSettings,
            /// Settings of a path selector of another crate; see [`SelectorSettings::custom`].
            custom: CustomSelector,
            definition: SelectorDefinition,
            behaviour: PathSelector,
            built: Selector,
            build: new(random: RandomStream),
            types: [$($variant($type)),+],
        }
    };
}

impl SelectorSettings {
    /// The most paths that one selector chooses from.
    pub fn most_paths(&self) -> u32 {
        match self {
            Self::Adaptive(parameters) => parameters.max_paths.get().into(),
            Self::Oblivious(parameters) => parameters.max_paths.get().into(),
            Self::Single(_) => 1,
            Self::Custom(_) => u32::from(PathId::MAX) + 1,
        }
    }
}

selectors! {
    Adaptive(Adaptive),
    Oblivious(Oblivious),
    Single(Single),
}
