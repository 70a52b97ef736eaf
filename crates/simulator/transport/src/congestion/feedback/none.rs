//! No notifications: acknowledgements echo marks, and that is all. STrack, DCTCP, TCP, and the HPCC artifact's DCQCN.

use super::{CongestionFeedback, DataArrival, FeedbackDefinition, Notify};
use crate::congestion::NetworkFacts;

clearway_units::parameters! {
    /// Settings of [`Silent`]: none.
    pub struct SilentParameters {}
}

/// Never notifies.
#[derive(Debug, Clone)]
pub struct Silent;

impl FeedbackDefinition for Silent {
    const NAME: &'static str = "none";
    const SUMMARY: &'static str = "no notifications: acknowledgements echo marks";
    type Parameters = SilentParameters;

    fn new(_: &SilentParameters, _: &NetworkFacts) -> Self {
        Self
    }
}

impl CongestionFeedback for Silent {
    type Shared = ();

    #[inline]
    fn on_data(&mut self, (): &mut (), _: &DataArrival) -> Notify {
        Notify::No
    }
}
