//! Hosts that are joined with each other, without switches.

use crate::error::ScenarioError;
use crate::limits::check_hosts;
use crate::topology::error::topology_error;
use clearway_fabric::topology::{
    Dimension, DimensionLinks, DirectRouting, Topology, direct_network,
};
use clearway_units::{Rate, Span};

clearway_units::parameters! {
    /// Links of a direct network.
    pub struct DirectLinks {
        /// Rate of each link, in each direction. A host sends at the rate of all its links together.
        pub rate: Rate = Rate::from_gbps(400), "link-rate", "decision: a port of 400 Gb/s";
        /// Delay from one host to the next, at least 3 ns. A tenth of it lies inside each host, between the host and its router.
        pub delay: Span = Span::from_us(1), "link-delay", "decision: as in a leaf-spine";
    }
}

clearway_units::parameters! {
    /// Hosts in a ring, each joined to the next.
    pub struct Ring {
        /// Number of hosts.
        pub hosts: u32 = 8, "hosts", "decision";
        with {
            /// Links.
            pub links: DirectLinks,
        }
    }
}

clearway_units::parameters! {
    /// Hosts that are each joined to all others.
    pub struct FullyConnected {
        /// Number of hosts.
        pub hosts: u32 = 8, "hosts", "decision: a server";
        with {
            /// Links.
            pub links: DirectLinks,
        }
    }
}

clearway_units::parameters! {
    /// Sizes and routes of a network of several dimensions.
    pub struct Grid {
        /// Hosts in each dimension, the first of which changes fastest with the number of the host.
        pub dimensions: Vec<u32> = vec![4, 4, 4], "dimensions", "decision: 64 hosts";
        /// Paths of packets. "shortest": all shortest paths. "dimension-order": through the dimensions in order, which keeps links with
        /// flow control from waiting for each other in a cycle on a mesh, but not on a torus with dimensions of four hosts or more.
        pub routing: DirectRouting = DirectRouting::Shortest, "routing", "Dally and Seitz, 1987, for dimension order";
    }
}

clearway_units::parameters! {
    /// Hosts in a grid of several dimensions, in which each row is a ring.
    pub struct Torus {
        with {
            /// Sizes and routes.
            pub grid: Grid,
            /// Links.
            pub links: DirectLinks,
        }
    }
}

clearway_units::parameters! {
    /// Hosts in a grid of several dimensions, in which each row is a line.
    pub struct Mesh {
        with {
            /// Sizes and routes.
            pub grid: Grid,
            /// Links.
            pub links: DirectLinks,
        }
    }
}

impl Grid {
    /// True if paused links can wait for each other in a cycle: in a ring of four hosts or more, where a path has two links of it, or
    /// where packets take dimensions in any order.
    pub(crate) fn can_deadlock(&self, links: DimensionLinks) -> bool {
        let in_any_order = self.routing == DirectRouting::Shortest;
        let wide = self.dimensions.iter().filter(|size| **size > 1).count();
        let has_ring =
            links == DimensionLinks::Ring && self.dimensions.iter().any(|size| *size > 3);
        has_ring || in_any_order && wide > 1
    }
}

impl Ring {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        self.links.one_dimension(self.hosts, DimensionLinks::Ring)
    }
}

impl FullyConnected {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        self.links
            .one_dimension(self.hosts, DimensionLinks::FullyConnected)
    }
}

impl Torus {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        self.links.grid(&self.grid, DimensionLinks::Ring)
    }
}

impl Mesh {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        self.links.grid(&self.grid, DimensionLinks::Line)
    }
}

impl DirectLinks {
    fn dimension(&self, size: u32, links: DimensionLinks) -> Dimension {
        Dimension {
            size,
            links,
            rate: self.rate,
            delay: self.delay,
        }
    }

    fn one_dimension(&self, hosts: u32, links: DimensionLinks) -> Result<Topology, ScenarioError> {
        check_hosts(&["hosts"], hosts.into())?;
        direct_network(&[self.dimension(hosts, links)], DirectRouting::Shortest)
            .map_err(|error| topology_error(&["hosts"], &error))
    }

    fn grid(&self, grid: &Grid, links: DimensionLinks) -> Result<Topology, ScenarioError> {
        let sizes = grid.dimensions.iter();
        let hosts = sizes.fold(1u64, |all, &size| all.saturating_mul(size.into()));
        check_hosts(&["dimensions"], hosts)?;
        let sizes = grid.dimensions.iter();
        let dimensions: Vec<Dimension> = sizes.map(|&size| self.dimension(size, links)).collect();
        direct_network(&dimensions, grid.routing)
            .map_err(|error| topology_error(&["dimensions"], &error))
    }
}
