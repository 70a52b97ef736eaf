//! Number of paths that packets take, as ideal completion times count them.

use clearway_fabric::PathChoice;
use clearway_fabric::topology::{PathUse, SwitchRole, Topology};
use clearway_transport::Profile;

/// Number of paths that the packets of a flow take.
pub(crate) fn path_use(topology: &Topology, routing: PathChoice, profile: &Profile) -> PathUse {
    // NICs spread over their ports by a hash, whatever switches do.
    let has_ports = topology.switches.iter().any(|s| s.role == SwitchRole::Nic);
    match routing {
        // Each packet takes its own way, whatever its queue pair.
        _ if topology.detours().is_some() => PathUse::PerQueuePair(u32::MAX),
        PathChoice::Destination if !has_ports => PathUse::One,
        PathChoice::Ecmp | PathChoice::Destination => {
            PathUse::PerQueuePair(profile.selector.most_paths())
        }
    }
}
