//! Paths that the packets of a flow take, by fabric and switches.

use clearway_fabric::topology::{PathUse, Topology};
use clearway_fabric::{PathChoice, SwitchParameters};
use clearway_transport::Profile;

/// Criterion by which a packet's path is chosen among equal paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spreading {
    /// The destination.
    Destination,
    /// The entropy of the packet.
    Entropy,
    /// Switches choose for each packet.
    Switches,
}

impl Spreading {
    /// Criterion in a fabric whose switches have these parameters.
    pub(crate) fn from_topology(topology: &Topology, parameters: &SwitchParameters) -> Self {
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
