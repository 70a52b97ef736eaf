//! Path selectors: choice of the entropy of each packet.
//!
//! A path is not a route but an entropy value, which ECMP maps to routes. A new selector is one file and one line in the
//! `selectors!` list, exactly as for [controllers](crate::congestion).

mod adaptive;
mod bitmap;
mod dead_paths;
mod flowlet;
mod mixed;
mod oblivious;
mod path_silence;
mod plb;
mod reps;
mod single;
#[cfg(test)]
mod tests;

use crate::congestion::{LossSample, NetworkFacts};
use crate::plugin::settings_enum;
use clearway_units::{
    Bytes, ParameterInfo, ParameterSet, RandomStream, SetError, Span, Time, Value,
};
use std::num::NonZero;

pub use adaptive::{Adaptive, AdaptiveParameters, DeadPath};
pub use bitmap::{Bitmap, BitmapParameters};
pub use flowlet::{Flowlet, FlowletParameters};
pub use mixed::{Mixed, MixedParameters};
pub use oblivious::{Oblivious, ObliviousParameters};
pub use path_silence::{DeadPathThreshold, PathSilence};
pub use plb::{Plb, PlbParameters};
pub use reps::{Reps, RepsParameters};
pub use single::{Single, SingleParameters};

/// Number of paths of STrack §4.1, which all spraying selectors start from.
const DEFAULT_PATHS: NonZero<u16> = NonZero::new(256).expect("not zero");

/// Number of entropy values that there are.
const ALL_PATHS: u32 = PathId::MAX as u32 + 1;

/// An entropy value, `0..max_paths`.
pub type PathId = u16;

/// Verdict of an acknowledgement on the path of the packet that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathVerdict {
    /// The packet arrived without a mark.
    Good,
    /// The packet arrived with a congestion mark (ECN).
    Marked,
    /// The packet was answered by a negative acknowledgement (NACK): a packet of the flow was lost.
    Nack {
        /// The packet that was answered had a congestion mark.
        marked: bool,
    },
    /// The packet was trimmed on its way: a switch had no room for its payload.
    Trimmed {
        /// The switch is the last one before the receiver, which all paths have in common.
        last_hop: bool,
        /// The packet had a congestion mark.
        marked: bool,
    },
}

impl PathVerdict {
    /// Verdict of an acknowledgement, negative or not.
    #[inline]
    pub const fn from_flags(marked: bool, nack: bool) -> Self {
        match (nack, marked) {
            (true, marked) => Self::Nack { marked },
            (false, true) => Self::Marked,
            (false, false) => Self::Good,
        }
    }
    /// True if nothing speaks against the path: no mark, and trimming only at the last hop, which all paths share.
    #[inline]
    pub const fn is_good(self) -> bool {
        matches!(
            self,
            Self::Good
                | Self::Trimmed {
                    last_hop: true,
                    marked: false
                }
        )
    }
    /// True if the packet that was answered had a congestion mark, or was trimmed before the last hop.
    #[inline]
    pub const fn is_marked(self) -> bool {
        matches!(
            self,
            Self::Marked
                | Self::Nack { marked: true }
                | Self::Trimmed { marked: true, .. }
                | Self::Trimmed {
                    last_hop: false,
                    ..
                }
        )
    }
}

/// Feedback of one acknowledgement on one path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathFeedback {
    /// Arrival time of the acknowledgement at the sender.
    pub now: Time,
    /// Path of the packet that the acknowledgement answers. The peer reports it, so it may be any number.
    pub path: PathId,
    /// Fate of that packet.
    pub verdict: PathVerdict,
    /// Payload bytes of the flow that are known to have arrived, since its beginning.
    pub delivered: Bytes,
    /// Payload bytes of the flow that have been sent, since its beginning. Once `delivered` exceeds the value of `sent` at some instant, a
    /// round trip has passed since then. Equal to `delivered` if nothing is in flight.
    pub sent: Bytes,
    /// Round trip of the packet that the acknowledgement answers.
    pub rtt: Span,
}

/// State of a flow that is about to send a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SendState {
    /// Time at which the packet leaves.
    pub now: Time,
    /// Congestion window in packets, fractions included. May be infinite.
    pub window: f64,
    /// Payload bytes in flight before this packet.
    pub in_flight: Bytes,
}

/// A path selector of one flow. Pure state: no clock but the times passed in.
pub trait PathSelector: Send {
    /// An acknowledgement has come. The selector hears of it before the congestion controller.
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        let _ = feedback;
    }
    /// Packets have been declared lost, by any [cause](crate::congestion::LossCause) but trimming: a timeout is one. The path of a
    /// trimmed packet is known, and [`on_feedback`](Self::on_feedback) reports it; for timeouts see
    /// [`on_path_timeout`](Self::on_path_timeout).
    fn on_loss(&mut self, loss: &LossSample) {
        let _ = loss;
    }
    /// A packet that took this path was not answered within the timeout of the flow. Only senders with a timer for each packet
    /// (`rto-per-packet`) know it; [`on_loss`](Self::on_loss) follows, once for all packets.
    fn on_path_timeout(&mut self, path: PathId) {
        let _ = path;
    }
    /// Chooses the path of the next data packet, which is then sent.
    fn choose(&mut self, state: &SendState) -> PathId;
    /// Chooses the path of a probe; must not use up what [`choose`](Self::choose) has remembered.
    fn choose_for_probe(&mut self, state: &SendState) -> PathId {
        self.choose(state)
    }
}

/// Facts that a selector is given when its flow opens.
#[derive(Debug, Clone)]
pub struct SelectorContext<'a> {
    /// The network as the flow sees it.
    pub network: &'a NetworkFacts,
    /// Retransmission timeout of the flow's reliability scheme, before any backoff.
    pub timeout: Span,
    /// Time without any acknowledgement after which the reliability scheme probes; `None` if it never does.
    pub probe_after: Option<Span>,
    /// Random numbers of this flow alone, which the selector may keep.
    pub random: RandomStream,
}

/// Definition of a selector that is known by name: its settings and its constructor.
pub trait SelectorDefinition: PathSelector + Sized + 'static {
    /// Name of the selector in a scenario: `transport.spray = "…"`.
    const NAME: &'static str;
    /// One line for `clearway list spray`.
    const SUMMARY: &'static str;
    /// Settings of the selector, keys of the `[transport]` section.
    type Parameters: ParameterSet + std::fmt::Debug + Clone + PartialEq + Send + Sync + 'static;

    /// Creates the selector of a new flow.
    fn new(parameters: &Self::Parameters, context: SelectorContext<'_>) -> Self;
    /// The most paths that one flow takes in its life; all that there are by default.
    fn most_paths(parameters: &Self::Parameters) -> u32 {
        let _ = parameters;
        ALL_PATHS
    }
}

/// A selector behind a pointer. Those with much state are kept so, because each sender has room for any selector.
impl<T: PathSelector> PathSelector for Box<T> {
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        (**self).on_feedback(feedback);
    }
    fn on_loss(&mut self, loss: &LossSample) {
        (**self).on_loss(loss);
    }
    fn on_path_timeout(&mut self, path: PathId) {
        (**self).on_path_timeout(path);
    }
    fn choose(&mut self, state: &SendState) -> PathId {
        (**self).choose(state)
    }
    fn choose_for_probe(&mut self, state: &SendState) -> PathId {
        (**self).choose_for_probe(state)
    }
}

impl<T: SelectorDefinition> SelectorDefinition for Box<T> {
    const NAME: &'static str = T::NAME;
    const SUMMARY: &'static str = T::SUMMARY;
    type Parameters = T::Parameters;

    fn new(parameters: &Self::Parameters, context: SelectorContext<'_>) -> Self {
        Self::new(T::new(parameters, context))
    }
    fn most_paths(parameters: &Self::Parameters) -> u32 {
        T::most_paths(parameters)
    }
}

/// Generates [`Selector`], which dispatches by `match` in the packet loop, and [`SelectorSettings`].
macro_rules! selectors {
    ($first:ident($first_type:ty), $($variant:ident($type:ty)),+ $(,)?) => {
        selectors!(@all $first($first_type), $first($first_type), $($variant($type)),+);
    };
    (@all $first:ident($first_type:ty), $($variant:ident($type:ty)),+) => {
        /// A path selector of this crate, or a boxed one of another crate.
        pub enum Selector {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $variant($type),)+
            /// A selector of another crate.
            Custom(Box<dyn PathSelector>),
        }

        impl PathSelector for Selector {
            #[inline(always)]
            fn on_feedback(&mut self, feedback: &PathFeedback) {
                // Separate copies: the compiler then drops the fields that the selector at hand does not read.
                match self {
                    Self::$first(selector) => selector.on_feedback(&{ *feedback }),
                    _ => self.pass_feedback({ *feedback }),
                }
            }
            fn on_loss(&mut self, loss: &LossSample) {
                match self {
                    $(Self::$variant(selector) => selector.on_loss(loss),)+
                    Self::Custom(selector) => selector.on_loss(loss),
                }
            }
            fn on_path_timeout(&mut self, path: PathId) {
                match self {
                    $(Self::$variant(selector) => selector.on_path_timeout(path),)+
                    Self::Custom(selector) => selector.on_path_timeout(path),
                }
            }
            #[inline(always)]
            fn choose(&mut self, state: &SendState) -> PathId {
                match self {
                    Self::$first(selector) => selector.choose(&{ *state }),
                    _ => self.pass_choice({ *state }),
                }
            }
            fn choose_for_probe(&mut self, state: &SendState) -> PathId {
                match self {
                    $(Self::$variant(selector) => selector.choose_for_probe(state),)+
                    Self::Custom(selector) => selector.choose_for_probe(state),
                }
            }
        }

        impl Selector {
            /// As `on_feedback`; not inlined, so that the packet loop holds the code of one selector and not of all.
            #[inline(never)]
            fn pass_feedback(&mut self, feedback: PathFeedback) {
                match self {
                    $(Self::$variant(selector) => selector.on_feedback(&feedback),)+
                    Self::Custom(selector) => selector.on_feedback(&feedback),
                }
            }
            /// As `choose`; not inlined either.
            #[inline(never)]
            fn pass_choice(&mut self, state: SendState) -> PathId {
                match self {
                    $(Self::$variant(selector) => selector.choose(&state),)+
                    Self::Custom(selector) => selector.choose(&state),
                }
            }
        }

        impl SelectorSettings {
            /// The most paths that one selector chooses from.
            pub fn most_paths(&self) -> u32 {
                match self {
                    $(Self::$variant(parameters) => <$type as SelectorDefinition>::most_paths(parameters),)+
                    Self::Custom(_) => ALL_PATHS,
                }
            }
        }

        settings_enum! {
            /// Choice of a path selector, and its settings.
            settings: SelectorSettings,
            /// Settings of a path selector of another crate; see [`SelectorSettings::custom`].
            custom: CustomSelector,
            definition: SelectorDefinition,
            behaviour: PathSelector,
            built: Selector,
            build: new(context: SelectorContext<'_>),
            types: [$($variant($type)),+],
        }
    };
}

selectors! {
    Adaptive(Adaptive),
    Oblivious(Oblivious),
    Bitmap(Box<Bitmap>),
    Reps(Box<Reps>),
    Mixed(Box<Mixed>),
    Plb(Box<Plb>),
    Flowlet(Box<Flowlet>),
    Single(Single),
}
