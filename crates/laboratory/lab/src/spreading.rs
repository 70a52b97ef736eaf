//! Paths that the packets of a flow take, as fabric and switches have it.

use clearway_fabric::topology::{PathUse, Topology};
use clearway_fabric::{PathChoice, SwitchParameters};
use clearway_transport::Profile;

/// Choice of the way of a packet among several that are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spreading {
    /// The destination.
    Destination,
    /// The entropy of the packet.
    Entropy,
    /// Switches, packet by packet.
    Switches,
}

impl Spreading {
    /// Choice in a fabric whose switches have these parameters.
    pub(crate) fn of(topology: &Topology, parameters: &SwitchParameters) -> Self {
        let roles = topology.switches.iter().map(|spec| spec.role);
        let mut rules = roles.map(|role| parameters.path_choice(role));
        if topology.detours().is_some() || rules.clone().any(PathChoice::is_local) {
            return Self::Switches;
        }
        match rules.all(|rule| rule == PathChoice::Destination) {
            true => Self::Destination,
            false => Self::Entropy,
        }
    }

    /// Number of paths that the packets of a flow take.
    pub(crate) fn path_use(self, profile: &Profile) -> PathUse {
        match self {
            Self::Destination => PathUse::One,
            Self::Entropy => PathUse::PerQueuePair(profile.selector.most_paths()),
            Self::Switches => PathUse::PerQueuePair(u32::MAX),
        }
    }
}
