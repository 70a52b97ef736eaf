//! Links that files of flows name by switch.

use crate::error::ScenarioError;
use crate::topology::error::impossible;
use clearway_fabric::topology::Topology;
use clearway_formats::{LinkFailure, SwitchLayer};

/// The cables to switches above, switch by switch, for the `failure` lines of a `.cm` file.
pub struct Uplinks {
    /// Uplinks of the switches of each tier, in order.
    tiers: [Vec<Vec<usize>>; 3],
}

impl Uplinks {
    /// The uplinks of a fabric.
    pub fn from_topology(topology: &Topology) -> Self {
        let mut of_switch = vec![Vec::new(); topology.switches.len()];
        for (index, cable) in topology.cables.iter().enumerate() {
            if let Some(switch) = topology.switch_index(cable.ends[0]) {
                of_switch[switch].push(index);
            }
        }
        let mut tiers = [const { Vec::new() }; 3];
        for (switch, uplinks) in topology.switches.iter().zip(of_switch) {
            if let Some(tier) = tiers.get_mut(usize::from(switch.tier)) {
                tier.push(uplinks);
            }
        }
        Self { tiers }
    }

    /// The cable that a `failure` line names: the n-th uplink of the n-th switch of a tier.
    pub fn named(&self, failure: &LinkFailure) -> Result<usize, ScenarioError> {
        let tier = match failure.layer {
            SwitchLayer::Leaf => 0,
            SwitchLayer::Aggregation => 1,
            SwitchLayer::Core => 2,
        };
        let switches = &self.tiers[tier];
        let uplinks = switches.get(failure.switch as usize).ok_or_else(|| {
            impossible(
                &["file"],
                format!(
                    "a `failure` line names switch {} of tier {tier}, which has {}",
                    failure.switch,
                    switches.len()
                ),
                "count switches of a tier from 0",
            )
        })?;
        let cable = uplinks.get(failure.uplink as usize).copied();
        cable.ok_or_else(|| {
            impossible(
                &["file"],
                format!(
                    "a `failure` line names uplink {} of a switch with {}",
                    failure.uplink,
                    uplinks.len()
                ),
                "count uplinks from 0; the top tier has none",
            )
        })
    }
}
