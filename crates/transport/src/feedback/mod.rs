//! Congestion feedback: what a receiver does about congestion besides echoing marks on acknowledgements.
//!
//! A rule is told of each data packet and answers whether to send a notification to the sender (the CNP of RoCEv2), which
//! [`CongestionControl::on_notification`](crate::cc::CongestionControl::on_notification) hears. A new rule is one file and one
//! line in the `rules!` list, exactly as for [controllers](crate::cc).

mod interval;
mod none;
#[cfg(test)]
mod tests;

use crate::cc::NetworkFacts;
use crate::plugin::plugin_settings;
use clearway_units::{Bytes, MessageId, ParameterInfo, ParameterSet, SetError, Time, Value};

pub use interval::{Interval, IntervalParameters};
pub use none::{Silent, SilentParameters};

/// A data packet as a rule sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataArrival {
    /// The present.
    pub now: Time,
    /// The packet was marked.
    pub marked: bool,
    /// Its payload.
    pub bytes: Bytes,
    /// Its message.
    pub message: MessageId,
    /// Where in the message the payload goes: how far the message has got, if nothing is missing.
    pub offset: u64,
    /// It is the last packet of its message, or of its queue pair's part of it.
    pub ends_message: bool,
}

/// The rule of one receiver: of one queue pair of one flow. Pure state: no clock but the times passed in.
pub trait CongestionFeedback: Send {
    /// A data packet has come, expected or not. True if the sender is to be notified.
    fn on_data(&mut self, arrival: &DataArrival) -> bool;
}

/// What makes a rule known by name.
pub trait FeedbackDefinition: CongestionFeedback + Sized + 'static {
    /// Its name in a scenario: `transport.feedback = "…"`.
    const NAME: &'static str;
    /// One line for `clearway list feedback`.
    const SUMMARY: &'static str;
    /// Its settings, keys of the `[transport]` section.
    type Parameters: ParameterSet + std::fmt::Debug + Clone + PartialEq + Send + Sync + 'static;

    /// A rule for a new receiver.
    fn new(parameters: &Self::Parameters, network: &NetworkFacts) -> Self;
}

/// Generates [`Feedback`], which dispatches by `match` in the packet loop, and [`FeedbackSettings`].
macro_rules! rules {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        /// A rule of this crate, or a boxed one of another crate.
        pub enum Feedback {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $variant($type),)+
            /// One of another crate.
            Custom(Box<dyn CongestionFeedback>),
        }

        impl CongestionFeedback for Feedback {
            #[inline]
            fn on_data(&mut self, arrival: &DataArrival) -> bool {
                match self {
                    $(Self::$variant(rule) => rule.on_data(arrival),)+
                    Self::Custom(rule) => rule.on_data(arrival),
                }
            }
        }

        plugin_settings! {
            /// Which rule, and its settings.
            settings: FeedbackSettings,
            /// Settings of a rule of another crate; see [`FeedbackSettings::custom`].
            custom: CustomFeedback,
            definition: FeedbackDefinition,
            behaviour: CongestionFeedback,
            built: Feedback,
            build: (network: &NetworkFacts),
            types: [$($variant($type)),+],
        }
    };
}

rules! {
    Silent(Silent),
    Interval(Interval),
}

impl Default for FeedbackSettings {
    /// No notifications.
    fn default() -> Self {
        Self::Silent(SilentParameters::default())
    }
}

impl FeedbackSettings {
    /// Whether there is a point in asking the rule.
    pub(crate) fn notifies(&self) -> bool {
        !matches!(self, Self::Silent(_))
    }
}
