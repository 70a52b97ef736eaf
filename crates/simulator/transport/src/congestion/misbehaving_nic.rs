//! NICs that do not obey: rules of a transport that a sender breaks, as settings of its controller.
//!
//! A flow whose NIC breaks a [rule](Misbehaviour) has a [variant](Profile::variants) of the controller's settings, which
//! [`Profile::misbehaving`] makes of those that it would have. All other flows are as without: nothing asks them.
//!
//! | misbehaviour | what the NIC does | of |
//! |---|---|---|
//! | [`Leaving`](Misbehaviour::Leaving) | when all is sent, it stops sending control packets instead of one that leaves | s-PERC, 1RC |
//! | [`Weight`](Misbehaviour::Weight) | its control and speculative packets announce one open connection | s-PERC, 1RC with weights |
//! | [`Rate`](Misbehaviour::Rate) | it sends at line rate, and never marks a packet as speculative | s-PERC, 1RC |
//! | [`Marks`](Misbehaviour::Marks) | it sends at line rate, whatever marks, delays, telemetry or losses say | all others |
//!
//! # Decisions
//! * With `Rate` control packets go on, so that the links count a flow as one that obeys: without them they would know nothing of it.
//! * The agent of the NIC's own link is told that a flow leaves. Only packets are forged.
//! * Retransmissions are as before: a NIC that sends again only lost packets has more of the link for new data.
//! * Selective repeat has the greatest window of the controller that is replaced, because the bitmap of the receiver has room for no
//!   more. Go-back-N has no such limit.
//! * Credits of receivers and enforcement scopes stay: a NIC that shares a window among its queue pairs shares this one.

use crate::congestion::misbehaviour::{MisbehavingNic, Misbehaviour};
use crate::congestion::scope::Scope;
use crate::congestion::{CongestionControl as _, ConstantParameters, ControllerSettings};
use crate::profile::{Profile, Reliability};
use clearway_units::{Bytes, RelativeSize};

/// Reason why a transport does not have the rule that is to be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MisbehaviourError {
    /// Links allocate no rates.
    NoAllocation,
    /// Links allocate rates, and nothing is left to the controller.
    Allocation,
    /// Flows have no weights.
    NoWeights,
    /// The controller is constant and has no rule to break.
    NoControl,
}

/// Window of go-back-N without a controller, which nothing fills.
const UNLIMITED: Bytes = Bytes::new(1 << 40);

impl Profile {
    /// Misbehaviour that every controller except a constant one has a rule against: exceeding the rate that links allocate, or the
    /// controller's allowance.
    pub const fn usual_misbehaviour(controller: &ControllerSettings) -> Misbehaviour {
        match controller {
            ControllerSettings::SPerc(_) | ControllerSettings::OneRc(_) => Misbehaviour::Rate,
            _ => Misbehaviour::Marks,
        }
    }

    /// Settings of the controller of a flow whose NIC breaks a rule, and which has `own` otherwise.
    ///
    /// # Errors
    /// If the transport has no such rule.
    pub fn misbehaving(
        &self,
        own: &ControllerSettings,
        misbehaviour: Misbehaviour,
    ) -> Result<ControllerSettings, MisbehaviourError> {
        let mut settings = own.clone();
        let common = match &mut settings {
            ControllerSettings::SPerc(own) => Some(&mut own.common),
            ControllerSettings::OneRc(own) => Some(&mut own.common),
            _ => None,
        };
        match (misbehaviour, common) {
            (Misbehaviour::Marks, Some(_)) => Err(MisbehaviourError::Allocation),
            (Misbehaviour::Marks, None) if matches!(own, ControllerSettings::Constant(_)) => {
                Err(MisbehaviourError::NoControl)
            }
            (Misbehaviour::Rate, Some(_)) | (Misbehaviour::Marks, None) => {
                Ok(self.uncontrolled(own))
            }
            (_, None) => Err(MisbehaviourError::NoAllocation),
            (Misbehaviour::Weight, Some(common))
                if !common.weights && self.scope.scope != Scope::Host =>
            {
                Err(MisbehaviourError::NoWeights)
            }
            (Misbehaviour::Leaving | Misbehaviour::Weight, Some(common)) => {
                common.misbehaviour = MisbehavingNic(Some(misbehaviour));
                Ok(settings)
            }
        }
    }

    /// Settings of a flow that sends at line rate, in place of a controller's settings.
    fn uncontrolled(&self, replaced: &ControllerSettings) -> ControllerSettings {
        let largest = replaced.build(&self.network).largest_window();
        let window = match self.reliability {
            Reliability::SelectiveRepeat(_) if largest.is_finite() => Bytes::new(largest as u64),
            _ => UNLIMITED,
        };
        ControllerSettings::Constant(ConstantParameters {
            window: RelativeSize::Absolute(window),
            rate: None,
        })
    }
}

#[cfg(test)]
mod tests;
