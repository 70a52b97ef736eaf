//! The paths of ideal completion times.

use crate::shared_routes::routes_of;
use clearway_fabric::topology::{Paths, Routes, Topology, TopologyError};
use clearway_fabric::{LinkChange, LinkSchedule};
use std::sync::Arc;

/// Paths from which ideal times are computed. Each link has its highest rate of the run, so no event lets a flow beat its ideal time.
///
/// # Errors
/// As [`Routes::compute`].
pub(crate) fn ideal_paths(
    topology: &Topology,
    events: &LinkSchedule,
    routes: &Routes,
) -> Result<Arc<Paths>, TopologyError> {
    let is_rate = |change| matches!(change, LinkChange::Rate(_));
    if !events.events().iter().any(|event| is_rate(event.change)) {
        return Ok(Arc::clone(&routes.paths));
    }
    let mut fastest = topology.clone();
    for (index, cable) in fastest.cables.iter_mut().enumerate() {
        cable.rate = events.fastest(index, cable.rate);
    }
    Ok(routes_of(&fastest)?.paths)
}
