//! A transport: reliability, congestion controller and path selector, composed.

use crate::cc::{ControllerSettings, NetworkFacts};
use crate::selective_repeat::SelectiveRepeatParameters;
use crate::spray::SelectorSettings;

/// What all flows of a run have in common. Both ends of a flow must have the same profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// What is known of the network.
    pub network: NetworkFacts,
    /// Acknowledgements, loss detection and retransmission.
    pub reliability: SelectiveRepeatParameters,
    /// The congestion controller.
    pub controller: ControllerSettings,
    /// The path selector.
    pub selector: SelectorSettings,
}

impl Profile {
    /// STrack with adaptive spraying and the defaults of its paper.
    pub fn strack(network: NetworkFacts) -> Self {
        Self {
            network,
            reliability: SelectiveRepeatParameters::default(),
            controller: ControllerSettings::Strack(Default::default()),
            selector: SelectorSettings::Adaptive(Default::default()),
        }
    }
}
