//! The fabrics of TMDML's evaluation as links and paths.

use super::{PlannedFlow, Problem, ProblemError};
use clearway_units::{Bytes, Purpose, RandomStream, Rate};

clearway_units::choices! {
    /// Choice of a path among those of equal length.
    pub enum EqualPathChoice {
        /// At random for each pair of servers and seed, as ECMP does with a hash of the header, and BCube with the order of the digits.
        Hashed = "hashed",
        /// Balanced, so that no link inside the fabric gets more of an all-to-all than those of the servers: by the destination in a
        /// fat-tree, the lower digit first in BCube.
        Balanced = "balanced",
    }
}

/// Servers, links and paths of a fabric. Every link has two directions, which are separate links in a [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fabric {
    rate: Rate,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    FatTree(FatTree),
    /// BCube(n, 1): n² servers with two NICs, switches with n ports.
    BCube(u32),
}

/// Three tiers. Aggregation switch `a` of each pod belongs to group `a mod groups`, which has separate cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FatTree {
    pods: u32,
    edges_per_pod: u32,
    servers_per_edge: u32,
    aggregations_per_pod: u32,
    groups: u32,
    cores_per_group: u32,
}

/// Point in a fat-tree at which a path is chosen.
#[derive(Clone, Copy)]
enum Turn {
    Aggregation,
    Core,
    Descent,
}

impl Fabric {
    /// The 8 servers of TMDML Fig 1: two pods of two edge and two aggregation switches, two cores. The wiring of the cores is not
    /// described; here each aggregation switch has a link to both cores, because the fabric could otherwise not reach the results of Table
    /// IV.
    pub const fn eight_servers(rate: Rate) -> Self {
        let shape = Shape::FatTree(FatTree {
            pods: 2,
            edges_per_pod: 2,
            servers_per_edge: 2,
            aggregations_per_pod: 2,
            groups: 1,
            cores_per_group: 2,
        });
        Self { rate, shape }
    }

    /// The fat-tree of switches with `ports` ports, an even number: `ports³ / 4` servers, 128 with 8.
    ///
    /// # Panics
    /// If `ports` is zero or odd.
    pub const fn fat_tree(ports: u32, rate: Rate) -> Self {
        assert!(
            ports > 0 && ports.is_multiple_of(2),
            "a fat-tree needs an even number of ports"
        );
        let half = ports / 2;
        let shape = Shape::FatTree(FatTree {
            pods: ports,
            edges_per_pod: half,
            servers_per_edge: half,
            aggregations_per_pod: half,
            groups: half,
            cores_per_group: half,
        });
        Self { rate, shape }
    }

    /// BCube(`ports`, 1) (TMDML Fig 4): a server is named by two digits, and a switch joins the servers that differ in one digit. Between
    /// servers that differ in both digits are two switches and a relaying server, which stores and forwards in its NIC.
    ///
    /// # Panics
    /// If there are fewer than two ports.
    pub const fn bcube(ports: u32, rate: Rate) -> Self {
        assert!(ports > 1, "a switch joins two servers at least");
        Self {
            rate,
            shape: Shape::BCube(ports),
        }
    }

    /// Number of servers.
    pub const fn servers(&self) -> u32 {
        match self.shape {
            Shape::FatTree(tree) => tree.servers(),
            Shape::BCube(ports) => ports * ports,
        }
    }

    /// The links, one for each direction.
    pub fn links(&self) -> Vec<Rate> {
        let links = match self.shape {
            Shape::FatTree(tree) => 2 * (tree.servers() + tree.edge_links() + tree.core_links()),
            Shape::BCube(ports) => 4 * ports * ports,
        };
        vec![self.rate; links as usize]
    }

    /// The links from server `from` to server `to`.
    ///
    /// # Panics
    /// If a server does not exist, or both are the same.
    pub fn path(&self, from: u32, to: u32, routing: EqualPathChoice, seed: u64) -> Vec<u32> {
        let servers = self.servers();
        assert!(
            from < servers && to < servers && from != to,
            "a path joins two servers"
        );
        let pair = u64::from(from) * u64::from(servers) + u64::from(to);
        let mut lots = RandomStream::new(seed, Purpose::Paths, pair);
        match self.shape {
            Shape::FatTree(tree) => tree.path(from, to, |turn, options| match (routing, turn) {
                (EqualPathChoice::Hashed, _) => lots.below(options),
                (EqualPathChoice::Balanced, Turn::Core) => to / tree.aggregations_per_pod % options,
                (EqualPathChoice::Balanced, _) => to % options,
            }),
            Shape::BCube(ports) => bcube_path(ports, from, to, || match routing {
                EqualPathChoice::Hashed => lots.below(2),
                EqualPathChoice::Balanced => 0,
            }),
        }
    }

    /// One stage of an All-Reduce of `model` bytes: every server sends the model divided by the number of servers, rounded up to a byte, to
    /// each other server. The scatter and the gather stage are equal and take the same paths, because they use the same connections.
    ///
    /// # Errors
    /// If the model is empty.
    pub fn all_reduce_stage(
        &self,
        model: Bytes,
        routing: EqualPathChoice,
        seed: u64,
    ) -> Result<Problem, ProblemError> {
        let servers = self.servers();
        let part = Bytes::new(model.as_u64().div_ceil(servers.into()));
        let pairs = (0..servers).flat_map(|from| (0..servers).map(move |to| (from, to)));
        let flows: Vec<PlannedFlow> = pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| self.flow(from, to, part, routing, seed))
            .collect();
        Problem::new(&self.links(), &flows)
    }

    /// The traffic to a parameter server: every other server sends `bytes` to `server`.
    ///
    /// # Errors
    /// If there are no bytes.
    ///
    /// # Panics
    /// If the server does not exist.
    pub fn incast(
        &self,
        server: u32,
        bytes: Bytes,
        routing: EqualPathChoice,
        seed: u64,
    ) -> Result<Problem, ProblemError> {
        let flows: Vec<PlannedFlow> = (0..self.servers())
            .filter(|&from| from != server)
            .map(|from| self.flow(from, server, bytes, routing, seed))
            .collect();
        Problem::new(&self.links(), &flows)
    }

    fn flow(
        &self,
        from: u32,
        to: u32,
        bytes: Bytes,
        routing: EqualPathChoice,
        seed: u64,
    ) -> PlannedFlow {
        PlannedFlow {
            path: self.path(from, to, routing, seed),
            destination: to,
            bytes,
        }
    }
}

impl FatTree {
    const fn servers(&self) -> u32 {
        self.pods * self.edges_per_pod * self.servers_per_edge
    }

    /// Links between edge and aggregation switches, in one direction.
    const fn edge_links(&self) -> u32 {
        self.pods * self.edges_per_pod * self.aggregations_per_pod
    }

    /// Links between aggregation switches and cores, in one direction.
    const fn core_links(&self) -> u32 {
        self.pods * self.aggregations_per_pod * self.cores_per_group
    }

    /// The path between two servers. Links are numbered by tier, starting at the servers, and in each tier up-links come first.
    fn path(&self, from: u32, to: u32, mut choose: impl FnMut(Turn, u32) -> u32) -> Vec<u32> {
        let servers = self.servers();
        let edges_base = 2 * servers;
        let cores_base = edges_base + 2 * self.edge_links();
        let (from_edge, to_edge) = (from / self.servers_per_edge, to / self.servers_per_edge);
        if from_edge == to_edge {
            return vec![from, servers + to];
        }
        let edge_up = |edge: u32, aggregation: u32| {
            edges_base + edge * self.aggregations_per_pod + aggregation
        };
        let core_up = |pod: u32, aggregation: u32, core: u32| {
            cores_base
                + (pod * self.aggregations_per_pod + aggregation) * self.cores_per_group
                + core
        };
        let (from_pod, to_pod) = (from_edge / self.edges_per_pod, to_edge / self.edges_per_pod);
        let up = choose(Turn::Aggregation, self.aggregations_per_pod);
        let mut path = vec![from, edge_up(from_edge, up)];
        let mut down = up;
        if from_pod != to_pod {
            let core = choose(Turn::Core, self.cores_per_group);
            let group = up % self.groups;
            down = group
                + self.groups * choose(Turn::Descent, self.aggregations_per_pod / self.groups);
            path.extend([
                core_up(from_pod, up, core),
                core_up(to_pod, down, core) + self.core_links(),
            ]);
        }
        path.extend([edge_up(to_edge, down) + self.edge_links(), servers + to]);
        path
    }
}

/// Links are numbered by direction (out of the server, into it), server and level. `first` selects the digit that is corrected first.
fn bcube_path(ports: u32, from: u32, to: u32, first: impl FnOnce() -> u32) -> Vec<u32> {
    let servers = ports * ports;
    let out = |server: u32, level: u32| 2 * server + level;
    let into = |server: u32, level: u32| 2 * (servers + server) + level;
    // A switch of level 0 changes the low digit, a switch of level 1 the high digit.
    match (from % ports == to % ports, from / ports == to / ports) {
        (false, true) => vec![out(from, 0), into(to, 0)],
        (true, false) => vec![out(from, 1), into(to, 1)],
        _ => {
            let first = first();
            let relay = match first {
                0 => from / ports * ports + to % ports,
                _ => to / ports * ports + from % ports,
            };
            vec![
                out(from, first),
                into(relay, first),
                out(relay, 1 - first),
                into(to, 1 - first),
            ]
        }
    }
}

#[cfg(test)]
mod tests;
