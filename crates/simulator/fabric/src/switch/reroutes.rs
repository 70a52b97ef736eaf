//! Routes that change during a run, as switches learn of links that go down and come back.

use crate::events::LinkSchedule;
use crate::topology::{LinkId, NodeId, Routes, SwitchRoutes, Topology};
use clearway_units::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Routes of all switches from one instant on.
#[derive(Debug)]
struct Epoch {
    begin: Time,
    /// Index among the distinct states of the fabric.
    state: usize,
}

/// Routes of all switches in one state of the fabric.
#[derive(Debug)]
struct State {
    switches: Vec<SwitchRoutes>,
    /// Links to hosts that are avoided.
    dead_ends: BTreeSet<LinkId>,
}

/// The later routes of all switches. States of the fabric that come again have their routes once.
#[derive(Debug)]
pub(crate) struct Reroutes {
    epochs: Vec<Epoch>,
    states: Vec<State>,
    /// Number of hosts, behind which switches are nodes.
    hosts: u32,
}

impl Reroutes {
    /// Routes after each change that routing learns of.
    ///
    /// # Panics
    /// If the fabric has no routes when all of its links are up.
    pub(crate) fn new(topology: &Topology, schedule: &LinkSchedule) -> Arc<Self> {
        let mut known: BTreeMap<BTreeSet<usize>, usize> = BTreeMap::new();
        let mut states = Vec::new();
        let mut epochs = Vec::new();
        for (begin, down) in schedule.known_failures() {
            let state = known.get(&down).copied().unwrap_or_else(|| {
                states.push(State::new(topology, &down));
                known.insert(down, states.len() - 1);
                states.len() - 1
            });
            epochs.push(Epoch { begin, state });
        }
        Arc::new(Self {
            epochs,
            states,
            hosts: topology.hosts,
        })
    }

    fn at(&self, now: Time) -> Option<&State> {
        let begun = self.epochs.partition_point(|epoch| epoch.begin <= now);
        let last = &self.epochs[begun.checked_sub(1)?];
        Some(&self.states[last.state])
    }

    /// The routes of a switch at `now`, if they are no longer the first ones.
    pub(super) fn of_switch(&self, switch: NodeId, now: Time) -> Option<&SwitchRoutes> {
        Some(&self.at(now)?.switches[(switch.0 - self.hosts) as usize])
    }

    /// True if the link to a host is avoided at `now`.
    pub(super) fn is_dead_end(&self, link: LinkId, now: Time) -> bool {
        self.at(now)
            .is_some_and(|state| state.dead_ends.contains(&link))
    }
}

impl State {
    fn new(topology: &Topology, down: &BTreeSet<usize>) -> Self {
        let switches = Routes::avoiding(topology, down);
        let is_host = |node: NodeId| topology.switch_index(node).is_none();
        let links = down
            .iter()
            .flat_map(|&cable| [0, 1].map(|end| LinkId::from_end(cable, end)));
        Self {
            switches: switches.expect("routes were computed for the whole fabric"),
            dead_ends: links
                .filter(|link| is_host(topology.link_ends(*link).1))
                .collect(),
        }
    }
}
