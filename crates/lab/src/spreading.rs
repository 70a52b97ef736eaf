//! Paths that the packets of a flow take, as fabric and switches have it.

use clearway_fabric::PathChoice;
use clearway_fabric::topology::{PathUse, SwitchRole, Topology};
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
    /// Choice in a fabric whose switches choose next hops by `routing`.
    pub(crate) fn of(topology: &Topology, routing: PathChoice) -> Self {
        // NICs spread over their ports by a hash, whatever switches do.
        let has_ports = topology.switches.iter().any(|s| s.role == SwitchRole::Nic);
        match routing {
            _ if topology.detours().is_some() => Self::Switches,
            PathChoice::Adaptive | PathChoice::RoundRobin | PathChoice::Flowlet => Self::Switches,
            PathChoice::Destination if !has_ports => Self::Destination,
            PathChoice::Ecmp | PathChoice::Destination => Self::Entropy,
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
