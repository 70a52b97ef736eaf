//! Routes that runs of one process share.
//!
//! Runs that follow each other are mostly of the same fabric: those of a sweep, trials of the planner, simulations of a notebook. To see
//! that a fabric is the same takes far less than the search for its routes; where it came from does not matter.

use clearway_fabric::topology::{Routes, Topology, TopologyError};
use std::sync::{Mutex, PoisonError};

/// So many fabrics are remembered: a sweep over fabrics takes turns.
const MOST_FABRICS: usize = 4;
/// Most cables of a fabric that is remembered, with tables of 10 MB. Runs of larger ones take far longer than the search.
const MOST_CABLES: usize = 100_000;

/// Routes of a fabric, which share their tables with those of an equal one in an earlier run of this process.
///
/// # Errors
/// As [`Routes::compute`].
pub(crate) fn routes_of(topology: &Topology) -> Result<Routes, TopologyError> {
    static SHARED: SharedRoutes = SharedRoutes::new();
    SHARED.of(topology)
}

/// The last fabrics asked for with their routes.
struct SharedRoutes(Mutex<Vec<(Topology, Routes)>>);

impl SharedRoutes {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn of(&self, topology: &Topology) -> Result<Routes, TopologyError> {
        if topology.cables.len() > MOST_CABLES {
            return Routes::compute(topology);
        }
        if let Some(routes) = self.remembered(topology) {
            return Ok(routes);
        }
        // Others need not wait for the search. Two that search for the same at one time find the same.
        let routes = Routes::compute(topology)?;
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.truncate(MOST_FABRICS - 1);
        last.insert(0, (topology.clone(), routes.clone()));
        Ok(routes)
    }

    /// Routes of an equal fabric, which becomes the last one asked for.
    fn remembered(&self, topology: &Topology) -> Option<Routes> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = last.iter().position(|(known, _)| known == topology)?;
        last[..=place].rotate_right(1);
        Some(last[0].1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_fabric::topology::dumbbell;
    use clearway_units::{Rate, Span};
    use std::sync::Arc;

    fn fabric(left: u32) -> Topology {
        let link = (Rate::from_gbps(100), Span::from_us(1));
        dumbbell(left, 3, link, link).unwrap()
    }

    fn is_shared(one: &Routes, other: &Routes) -> bool {
        Arc::ptr_eq(&one.switches, &other.switches) && Arc::ptr_eq(&one.paths, &other.paths)
    }

    #[test]
    fn equal_fabrics_share_routes_and_others_do_not() {
        let shared = SharedRoutes::new();
        let of = |topology: &Topology| shared.of(topology).unwrap();
        let first = of(&fabric(2));
        assert!(is_shared(&first, &of(&fabric(2))));
        let mut other = fabric(2);
        other.cables[0].rate = Rate::from_gbps(99);
        let of_other = of(&other);
        assert!(!is_shared(&first, &of_other));
        assert!(is_shared(&of_other, &of(&other)));
        assert!(is_shared(&first, &of(&fabric(2))));
    }

    #[test]
    fn fabrics_not_asked_for_again_are_forgotten() {
        let shared = SharedRoutes::new();
        let of = |left| shared.of(&fabric(left)).unwrap();
        let kept = [of(1), of(2)];
        for left in 3..3 + MOST_FABRICS as u32 {
            assert!(is_shared(&kept[0], &of(1)));
            of(left);
        }
        assert!(is_shared(&kept[0], &of(1)));
        assert!(!is_shared(&kept[1], &of(2)));
        assert_eq!(shared.0.lock().unwrap().len(), MOST_FABRICS);
    }

    #[test]
    fn a_fabric_without_routes_is_refused_each_time() {
        let shared = SharedRoutes::new();
        let mut broken = fabric(2);
        broken.cables.iter_mut().for_each(|cable| cable.up = false);
        assert!(shared.of(&broken).is_err());
        assert!(shared.of(&broken).is_err());
    }
}
