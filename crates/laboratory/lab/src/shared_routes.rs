//! Routes that runs of one process share.
//!
//! Successive runs mostly use the same fabric: runs of a sweep, trials of the planner, simulations of a notebook. A comparison of fabrics
//! takes far less time than the search for routes. Only the process outlives such runs, because each reads its scenario again. Therefore
//! the process remembers the routes.

use clearway_fabric::topology::{Routes, Topology, TopologyError};
use std::sync::Mutex;

/// Largest number of remembered fabrics.
const MOST_FABRICS: usize = 8;
/// Largest number of entries in the tables of all remembered fabrics, of 8 to 12 bytes each. Runs of larger fabrics take far longer than
/// the search.
const MOST_ENTRIES: usize = 2_000_000;

/// Routes of a fabric, which share the tables of an equal fabric in an earlier run of this process.
///
/// # Errors
/// As [`Routes::compute`].
pub(crate) fn routes_of(topology: &Topology) -> Result<Routes, TopologyError> {
    static SHARED: SharedRoutes = SharedRoutes::new();
    SHARED.routes(topology)
}

/// The last requested fabrics with their routes, latest first. Callers never wait for the lock, because a process may have been forked
/// while another thread held it.
struct SharedRoutes(Mutex<Vec<(Topology, Routes)>>);

impl SharedRoutes {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn routes(&self, topology: &Topology) -> Result<Routes, TopologyError> {
        if let Some(routes) = self.remembered(topology) {
            return Ok(routes);
        }
        let routes = Routes::compute(topology)?;
        self.remember(topology, &routes);
        Ok(routes)
    }

    /// Routes of an equal fabric, which becomes the latest.
    fn remembered(&self, topology: &Topology) -> Option<Routes> {
        let mut last = self.0.try_lock().ok()?;
        let place = last.iter().position(|(known, _)| known == topology)?;
        last[..=place].rotate_right(1);
        Some(last[0].1.clone())
    }

    fn remember(&self, topology: &Topology, routes: &Routes) {
        if entries(routes) > MOST_ENTRIES {
            return;
        }
        let new = (topology.clone(), routes.clone());
        let Ok(mut last) = self.0.try_lock() else {
            return;
        };
        // Another thread may have added the fabric in the meantime.
        if last.iter().any(|(known, _)| known == topology) {
            return;
        }
        last.insert(0, new);
        let mut all = 0;
        let kept = last.iter().take(MOST_FABRICS).take_while(|(_, routes)| {
            all += entries(routes);
            all <= MOST_ENTRIES
        });
        let kept = kept.count();
        let forgotten = last.split_off(kept);
        // Release the lock before large tables are freed.
        drop(last);
        drop(forgotten);
    }
}

/// Entries in the tables of all switches.
fn entries(routes: &Routes) -> usize {
    let groups = routes
        .attachments
        .iter()
        .map(|at| usize::from(at.group) + 1);
    routes.switches.len() * groups.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_fabric::topology::{dumbbell, leaf_spine};
    use clearway_units::{Rate, Span};
    use std::sync::Arc;

    const LINK: (Rate, Span) = (Rate::from_gbps(100), Span::from_us(1));

    fn fabric(left: u32) -> Topology {
        dumbbell(left, 3, LINK, LINK).unwrap()
    }

    fn is_shared(one: &Routes, other: &Routes) -> bool {
        Arc::ptr_eq(&one.switches, &other.switches) && Arc::ptr_eq(&one.paths, &other.paths)
    }

    #[test]
    fn equal_fabrics_share_routes_and_others_do_not() {
        let shared = SharedRoutes::new();
        let of = |topology: &Topology| shared.routes(topology).unwrap();
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
        let of = |left| shared.routes(&fabric(left)).unwrap();
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
    fn large_tables_are_forgotten_first_or_not_remembered() {
        let shared = SharedRoutes::new();
        let leaves = |leaves: u32| leaf_spine(leaves, 1, 1, 1, LINK, LINK).unwrap();
        let small = shared.routes(&fabric(2)).unwrap();
        let tables = [1000, 1001].map(|count| shared.routes(&leaves(count)).unwrap());
        assert!(tables.iter().map(entries).sum::<usize>() > MOST_ENTRIES);
        assert_eq!(shared.0.lock().unwrap().len(), 1, "the last one");
        assert!(!is_shared(&small, &shared.routes(&fabric(2)).unwrap()));
        let too_large = shared.routes(&leaves(1500)).unwrap();
        assert!(entries(&too_large) > MOST_ENTRIES);
        assert!(!is_shared(
            &too_large,
            &shared.routes(&leaves(1500)).unwrap()
        ));
        assert!(is_shared(
            &tables[1],
            &shared.routes(&leaves(1001)).unwrap()
        ));
    }

    #[test]
    fn nobody_waits_for_the_lock() {
        let shared = SharedRoutes::new();
        let first = shared.routes(&fabric(2)).unwrap();
        let held = shared.0.lock().unwrap();
        assert!(!is_shared(&first, &shared.routes(&fabric(2)).unwrap()));
        drop(held);
        assert!(is_shared(&first, &shared.routes(&fabric(2)).unwrap()));
    }

    #[test]
    fn a_fabric_without_routes_is_refused_each_time() {
        let shared = SharedRoutes::new();
        let mut broken = fabric(2);
        broken.cables.iter_mut().for_each(|cable| cable.up = false);
        assert!(shared.routes(&broken).is_err());
        assert!(shared.routes(&broken).is_err());
    }
}
