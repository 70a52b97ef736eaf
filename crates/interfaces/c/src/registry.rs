//! Handles: numbers of simulations, each given out once.

use crate::fault::Fault;
use crate::simulation::Simulation;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The simulations that exist, by the number of the handle.
struct Registry {
    simulations: BTreeMap<usize, Arc<Simulation>>,
    /// Handles given out so far.
    count: usize,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    simulations: BTreeMap::new(),
    count: 0,
});

/// Distance of the numbers of two handles. Numbers are odd, unlike the addresses of most objects of a program.
const DISTANCE: usize = 2;

fn registry() -> MutexGuard<'static, Registry> {
    // Nothing panics while the lock is held, so the map is valid.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a simulation. Returns the number of its handle, which is not zero and no other handle has ever had.
pub(crate) fn register(simulation: Simulation) -> Result<usize, Fault> {
    let mut registry = registry();
    let next = registry.count.checked_mul(DISTANCE);
    let Some(number) = next.and_then(|next| next.checked_add(1)) else {
        return Err(Fault::misuse(
            "too many simulations were created",
            "start another process",
        ));
    };
    registry.count += 1;
    registry.simulations.insert(number, Arc::new(simulation));
    Ok(number)
}

/// The simulation with this handle.
pub(crate) fn simulation(handle: usize) -> Result<Arc<Simulation>, Fault> {
    let registry = registry();
    match registry.simulations.get(&handle) {
        Some(simulation) => Ok(Arc::clone(simulation)),
        None => Err(unknown(handle, &registry)),
    }
}

/// Removes the simulation with this handle.
pub(crate) fn remove(handle: usize) {
    let removed = registry().simulations.remove(&handle);
    // Dropped without the lock: its threads may take a while to end.
    drop(removed);
}

fn unknown(handle: usize, registry: &Registry) -> Fault {
    let was_given = handle % DISTANCE == 1 && handle / DISTANCE < registry.count;
    let what = match (handle, was_given) {
        (0, _) => "the simulation is a null pointer",
        (_, true) => "the simulation was destroyed",
        (_, false) => "the pointer is no simulation",
    };
    Fault::misuse(
        what,
        "pass what clearway_create returned, before clearway_destroy",
    )
}
