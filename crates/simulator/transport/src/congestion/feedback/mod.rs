//! Congestion feedback: reaction of a receiver to congestion besides echoing marks on acknowledgements.
//!
//! A rule is told of each data packet and answers whether to send a notification to the sender (the CNP of RoCEv2), which
//! [`CongestionControl::on_notification`](crate::congestion::CongestionControl::on_notification) hears: now, or perhaps at a later
//! time. A new rule is one file and one line in the `rules!` list, exactly as for [controllers](crate::congestion).
//!
//! Each receiver has a separate rule. Common state of the rules of one endpoint, such as the average over all flows to a host, is their
//! [`Shared`](CongestionFeedback::Shared) state, which the endpoint keeps once and lends with each call.

mod at_endpoint;
mod interval;
mod none;
mod progress;
#[cfg(test)]
mod tests;

use crate::congestion::NetworkFacts;
use crate::plugin::settings_enum;
use clearway_units::{Bytes, MessageId, ParameterInfo, ParameterSet, SetError, Time, Value};

pub use at_endpoint::{AtEndpoint, EndpointFeedback};
pub use interval::{CnpSchedule, IntervalFeedback, IntervalParameters};
pub use none::{Silent, SilentParameters};
pub use progress::{HostProgress, Progress, ProgressParameters};

/// A data packet as a rule sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataArrival {
    /// The present.
    pub now: Time,
    /// True if the packet was marked.
    pub marked: bool,
    /// Bytes of payload.
    pub bytes: Bytes,
    /// Message that the packet belongs to.
    pub message: MessageId,
    /// Offset of the payload in the message: the progress of the message so far, if nothing is missing.
    pub offset: u64,
    /// True for the last packet of a message, or of its queue pair's part of it.
    pub ends_message: bool,
    /// True if the packet brings missing data: not a copy, and not a packet that the reliability scheme discards.
    pub accepted: bool,
}

/// Answer of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// The sender is not notified.
    No,
    /// The sender is notified now.
    Now,
    /// The rule is asked again at that time, by [`on_deadline`](CongestionFeedback::on_deadline). A later answer of this kind takes its
    /// place.
    At(Time),
}

/// The rule of one receiver, of one queue pair of one flow. It is pure state: its only clock is the times passed in.
pub trait CongestionFeedback: Send {
    /// State that the receivers of one endpoint share. `()` where each decides for itself, which costs nothing.
    type Shared: Default + Send;

    /// A data packet has come, expected or not.
    fn on_data(&mut self, shared: &mut Self::Shared, arrival: &DataArrival) -> Notify;

    /// The time of a [`Notify::At`] has come.
    fn on_deadline(&mut self, shared: &mut Self::Shared, now: Time) -> Notify {
        let _ = (shared, now);
        Notify::No
    }

    /// With the last packet that [`on_data`](Self::on_data) was told of, nothing is missing of that packet's message, or of the
    /// queue pair's part of it.
    #[inline]
    fn on_complete(&mut self, shared: &mut Self::Shared) {
        let _ = shared;
    }
}

/// Definition of a rule that is known by name.
pub trait FeedbackDefinition: CongestionFeedback + Sized + 'static {
    /// Name of the rule in a scenario: `transport.feedback = "…"`.
    const NAME: &'static str;
    /// One line for `clearway list feedback`.
    const SUMMARY: &'static str;
    /// Settings of the rule, keys of the `[transport]` section.
    type Parameters: ParameterSet + std::fmt::Debug + Clone + PartialEq + Send + Sync + 'static;

    /// Creates a rule for a new receiver.
    fn new(parameters: &Self::Parameters, network: &NetworkFacts) -> Self;

    /// Creates the rule at a new endpoint, which has no receivers yet.
    fn at_endpoint(parameters: &Self::Parameters, network: &NetworkFacts) -> AtEndpoint<Self> {
        AtEndpoint::new(parameters.clone(), *network)
    }
}

/// Generates [`Feedback`], which dispatches by `match` in the packet loop, and [`FeedbackSettings`].
macro_rules! rules {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        /// A rule of this crate at one endpoint, or a boxed one of another crate.
        pub enum Feedback {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $variant(AtEndpoint<$type>),)+
            /// One of another crate.
            Custom(Box<dyn EndpointFeedback>),
        }

        impl EndpointFeedback for Feedback {
            fn open(&mut self, slot: usize) {
                match self {
                    $(Self::$variant(rule) => rule.open(slot),)+
                    Self::Custom(rule) => rule.open(slot),
                }
            }
            #[inline]
            fn on_data(&mut self, slot: usize, arrival: &DataArrival) -> Notify {
                match self {
                    $(Self::$variant(rule) => rule.on_data(slot, arrival),)+
                    Self::Custom(rule) => rule.on_data(slot, arrival),
                }
            }
            fn on_deadline(&mut self, slot: usize, now: Time) -> Notify {
                match self {
                    $(Self::$variant(rule) => rule.on_deadline(slot, now),)+
                    Self::Custom(rule) => rule.on_deadline(slot, now),
                }
            }
            fn on_complete(&mut self, slot: usize) {
                match self {
                    $(Self::$variant(rule) => rule.on_complete(slot),)+
                    Self::Custom(rule) => rule.on_complete(slot),
                }
            }
        }

        settings_enum! {
            /// Choice of a rule, and its settings.
            settings: FeedbackSettings,
            /// Settings of a rule of another crate; see [`FeedbackSettings::custom`].
            custom: CustomFeedback,
            definition: FeedbackDefinition,
            behaviour: EndpointFeedback,
            built: Feedback,
            build: at_endpoint(network: &NetworkFacts),
            types: [$($variant($type)),+],
        }
    };
}

rules! {
    Silent(Silent),
    IntervalFeedback(IntervalFeedback),
    Progress(Progress),
}

impl Default for FeedbackSettings {
    /// No notifications.
    fn default() -> Self {
        Self::Silent(SilentParameters::default())
    }
}

impl FeedbackSettings {
    /// True if the rule may notify, so that it has to be asked.
    pub(crate) fn notifies(&self) -> bool {
        !matches!(self, Self::Silent(_))
    }
}
