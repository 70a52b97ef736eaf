//! Connections of a job, by pair of ranks and lane.
//!
//! A lane is one of several connections from one rank to another, each between a different pair of NICs. Ranks have lanes if the hosts of a
//! file have several equally near NICs (`topology.nics` = "in-turn"). Packets of a connection then stay in order, and all NICs have work.
//! Messages take the lanes in turn, in the order of the graph. The NICs of the first lane depend on the ranks, so that pairs with one
//! message each spread over all NICs.

use crate::scenario::{Scenario, shared_pairs};
use crate::shared_routes::routes_of;
use clearway_fabric::topology::{Routes, Topology};
use clearway_units::{FlowId, HostId};
use clearway_workload::{JobSpec, Rank, RankConnection, TaskId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// NICs of hosts over which the ranks of jobs spread their messages.
pub(crate) struct SharedNics<'a> {
    topology: &'a Topology,
    /// `None` if ranks do not share NICs.
    routes: Option<Routes>,
}

impl<'a> SharedNics<'a> {
    /// The NICs that the scenario's ranks share on its fabric. A fabric that cannot be routed is reported elsewhere.
    pub(crate) fn new(scenario: &Scenario, topology: &'a Topology) -> Self {
        let shares = scenario.topology.shares_nics() && topology.may_be_apart();
        let routes = shares.then(|| routes_of(topology).ok()).flatten();
        Self { topology, routes }
    }

    /// Largest number of lanes from a rank on one host to a rank on another, above zero.
    pub(crate) fn lanes(&self, src: HostId, dst: HostId) -> u32 {
        let pairs = |routes: &Routes| shared_pairs(self.topology, &routes.paths, src, dst).len();
        self.routes.as_ref().map_or(1, pairs).max(1) as u32
    }
}

/// Lanes from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Connection of the first lane; the other lanes have the next numbers.
    connection: FlowId,
    /// Number of lanes, above zero.
    count: u32,
    /// True if the hosts have NICs for several lanes, even if there are too few messages for them.
    shares_nics: bool,
}

impl Lanes {
    /// True if the hosts have NICs for several lanes.
    pub(crate) fn shares_nics(self) -> bool {
        self.shares_nics
    }

    /// The connection of the message at this place among the messages of its pair of ranks.
    pub(crate) fn at(self, place: u32) -> FlowId {
        FlowId(self.connection.0 + place % self.count)
    }

    /// The connections of all lanes.
    pub(crate) fn connections(self) -> impl Iterator<Item = FlowId> {
        (0..self.count).map(move |lane| self.at(lane))
    }
}

/// Place of each message of a graph among the messages of its pair of ranks; empty if all pairs have one lane.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessagePlaces(Option<Arc<[u32]>>);

impl MessagePlaces {
    /// The place of a message. `task` counts the tasks of all iterations.
    pub(crate) fn place(&self, task: u32) -> u32 {
        let place = |places: &Arc<[u32]>| places[task as usize % places.len()];
        self.0.as_ref().map_or(0, place)
    }
}

/// The connections of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobConnections {
    pairs: BTreeMap<(Rank, Rank), Lanes>,
    places: MessagePlaces,
}

impl JobConnections {
    /// Connections of `job`, not yet numbered, with at most `most` lanes per pair of ranks; and the load of each connection, in the order
    /// of numbers.
    pub(crate) fn new(
        job: &JobSpec,
        most: impl Fn(Rank, Rank) -> u32,
    ) -> (Self, Vec<RankConnection>) {
        let mut listed = job.connections(|_, _| 0);
        let pairs = listed.iter().map(|connection| {
            let pair = (connection.src, connection.dst);
            let most = most(pair.0, pair.1);
            let lanes = Lanes {
                connection: FlowId(0),
                count: most.min(connection.messages / job.iterations).max(1),
                shares_nics: most > 1,
            };
            (pair, lanes)
        });
        let mut connections = Self {
            pairs: pairs.collect(),
            places: MessagePlaces::default(),
        };
        if connections.pairs.values().any(|lanes| lanes.count > 1) {
            connections.places = MessagePlaces(Some(job.plan.places_in_pairs().into()));
            listed = job.connections(|pair, task| connections.lane(pair, task));
        }
        (connections, listed)
    }

    /// The lanes of a pair of ranks.
    pub(crate) fn lanes(&self, pair: (Rank, Rank)) -> Lanes {
        self.pairs[&pair]
    }

    /// Number of the lane, from 0, that carries a message.
    fn lane(&self, pair: (Rank, Rank), task: TaskId) -> u32 {
        self.places.place(task.0) % self.pairs[&pair].count
    }

    /// Gives the first lane from one rank to another its number.
    pub(crate) fn number(&mut self, pair: (Rank, Rank), connection: FlowId) {
        if let Some(lanes) = self.pairs.get_mut(&pair) {
            lanes.connection = connection;
        }
    }

    /// The connection that carries a message.
    pub(crate) fn connection(&self, pair: (Rank, Rank), task: TaskId) -> FlowId {
        self.pairs[&pair].at(self.places.place(task.0))
    }

    /// The place of each message.
    pub(crate) fn places(&self) -> &MessagePlaces {
        &self.places
    }

    /// The pairs of ranks with their lanes, ordered by sender, then by receiver.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = ((Rank, Rank), Lanes)> {
        self.pairs.iter().map(|(&pair, &lanes)| (pair, lanes))
    }

    /// All connections, in the order of their numbers, with their pairs of ranks.
    pub(crate) fn all(&self) -> impl Iterator<Item = ((Rank, Rank), FlowId)> {
        self.pairs()
            .flat_map(|(pair, lanes)| lanes.connections().map(move |id| (pair, id)))
    }
}
