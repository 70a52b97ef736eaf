//! A rule at one endpoint: the state of each receiver, and the state that they share.
//!
//! The table of rules is generic over their type, so that each call finds both halves of the state without a cast, also for the boxed rules
//! of other crates.

use super::{DataArrival, FeedbackDefinition, Notify};
use crate::congestion::NetworkFacts;
use clearway_units::Time;

/// The rule of all receivers of one endpoint, which are known by the slots that the endpoint gives them.
pub trait EndpointFeedback: Send {
    /// A receiver begins in `slot`: either the next one, or one that was in use before and starts anew.
    fn open(&mut self, slot: usize);
    /// See [`CongestionFeedback::on_data`](super::CongestionFeedback::on_data).
    ///
    /// # Panics
    /// If the slot was never opened.
    fn on_data(&mut self, slot: usize, arrival: &DataArrival) -> Notify;
    /// See [`CongestionFeedback::on_deadline`](super::CongestionFeedback::on_deadline).
    ///
    /// # Panics
    /// If the slot was never opened.
    fn on_deadline(&mut self, slot: usize, now: Time) -> Notify;
    /// See [`CongestionFeedback::on_complete`](super::CongestionFeedback::on_complete).
    ///
    /// # Panics
    /// If the slot was never opened.
    fn on_complete(&mut self, slot: usize);
}

/// A rule `R` for each receiver, and the state that they share.
pub struct AtEndpoint<R: FeedbackDefinition> {
    parameters: R::Parameters,
    network: NetworkFacts,
    shared: R::Shared,
    receivers: Vec<R>,
}

impl<R: FeedbackDefinition> AtEndpoint<R> {
    pub(super) fn new(parameters: R::Parameters, network: NetworkFacts) -> Self {
        Self {
            parameters,
            network,
            shared: R::Shared::default(),
            receivers: Vec::new(),
        }
    }

    /// State that the receivers share.
    pub fn shared(&self) -> &R::Shared {
        &self.shared
    }
}

impl<R: FeedbackDefinition> EndpointFeedback for AtEndpoint<R> {
    fn open(&mut self, slot: usize) {
        let rule = R::new(&self.parameters, &self.network);
        match self.receivers.get_mut(slot) {
            Some(old) => *old = rule,
            None => {
                assert_eq!(slot, self.receivers.len(), "slots are opened in order");
                self.receivers.push(rule);
            }
        }
    }

    #[inline]
    fn on_data(&mut self, slot: usize, arrival: &DataArrival) -> Notify {
        self.receivers[slot].on_data(&mut self.shared, arrival)
    }

    fn on_deadline(&mut self, slot: usize, now: Time) -> Notify {
        self.receivers[slot].on_deadline(&mut self.shared, now)
    }

    fn on_complete(&mut self, slot: usize) {
        self.receivers[slot].on_complete(&mut self.shared);
    }
}
