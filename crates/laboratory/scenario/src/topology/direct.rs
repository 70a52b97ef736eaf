//! Hosts that are joined with each other, without switches.

use crate::error::ScenarioError;
use crate::limits::check_hosts;
use crate::topology::error::topology_error;
use clearway_fabric::topology::{
    Dimension, DimensionLinks, DirectRouting, Topology, VirtualChannels, direct_network,
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
    /// Virtual channels of the links of rings.
    pub struct RingChannels {
        /// Virtual channels of each lossless priority on each link, 1 or 2. With 2, links with flow control cannot wait for each other in a
        /// cycle: packets change to the second channel where a ring closes. It needs `switch.kind = "shared-buffer"`, priorities of 1 to 3,
        /// and `routing = "dimension-order"` if there are several dimensions.
        pub count: VirtualChannels = VirtualChannels::One, "virtual-channels", "Dally and Seitz, 1987; Dally, 1990";
    }
}

clearway_units::parameters! {
    /// Hosts in a ring, each joined to the next.
    pub struct Ring {
        /// Number of hosts.
        pub hosts: u32 = 8, "hosts", "decision";
        with {
            /// Virtual channels.
            pub channels: RingChannels,
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
        /// flow control from waiting for each other in a cycle on a mesh; on a torus with dimensions of four hosts or more it also takes
        /// two virtual channels.
        pub routing: DirectRouting = DirectRouting::Shortest, "routing", "Dally and Seitz, 1987, for dimension order";
    }
}

clearway_units::parameters! {
    /// Hosts in a grid of several dimensions, in which each row is a ring.
    pub struct Torus {
        with {
            /// Sizes and routes.
            pub grid: Grid,
            /// Virtual channels.
            pub channels: RingChannels,
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
    /// True if packets take several dimensions in any order, where paused links can wait for each other in a cycle.
    pub(crate) fn is_in_any_order(&self) -> bool {
        let wide = self.dimensions.iter().filter(|size| **size > 1).count();
        self.routing == DirectRouting::Shortest && wide > 1
    }
}

impl RingChannels {
    /// True if paused links of a ring of `hosts` can wait for each other: with four hosts or more, where a path has two links of it.
    fn can_deadlock(&self, hosts: u32) -> bool {
        self.count == VirtualChannels::One && hosts > 3
    }
}

impl Ring {
    /// True if paused links can wait for each other in a cycle.
    pub(crate) fn can_deadlock(&self) -> bool {
        self.channels.can_deadlock(self.hosts)
    }

    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        let ring = (self.hosts, DimensionLinks::Ring);
        self.links.one_dimension(ring, self.channels.count)
    }
}

impl FullyConnected {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        let all = (self.hosts, DimensionLinks::FullyConnected);
        self.links.one_dimension(all, VirtualChannels::One)
    }
}

impl Torus {
    /// True if paused links can wait for each other in a cycle.
    pub(crate) fn can_deadlock(&self) -> bool {
        let mut sizes = self.grid.dimensions.iter();
        self.grid.is_in_any_order() || sizes.any(|size| self.channels.can_deadlock(*size))
    }

    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        if self.channels.count == VirtualChannels::Two && self.grid.is_in_any_order() {
            return Err(ScenarioError::about(
                &["virtual-channels", "routing"],
                "`topology.virtual-channels` = 2 prevents deadlock only if packets take the dimensions in order, and `topology.routing` = \"shortest\"",
                "set `topology.routing = \"dimension-order\"`, or `topology.virtual-channels = 1`",
            ));
        }
        self.links
            .grid(&self.grid, DimensionLinks::Ring, self.channels.count)
    }
}

impl Mesh {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        self.links
            .grid(&self.grid, DimensionLinks::Line, VirtualChannels::One)
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

    fn one_dimension(
        &self,
        (hosts, links): (u32, DimensionLinks),
        channels: VirtualChannels,
    ) -> Result<Topology, ScenarioError> {
        check_hosts(&["hosts"], hosts.into())?;
        let dimension = self.dimension(hosts, links);
        direct_network(&[dimension], DirectRouting::Shortest, channels)
            .map_err(|error| topology_error(&["hosts"], &error))
    }

    fn grid(
        &self,
        grid: &Grid,
        links: DimensionLinks,
        channels: VirtualChannels,
    ) -> Result<Topology, ScenarioError> {
        let sizes = grid.dimensions.iter();
        let hosts = sizes.fold(1u64, |all, &size| all.saturating_mul(size.into()));
        check_hosts(&["dimensions"], hosts)?;
        let sizes = grid.dimensions.iter();
        let dimensions: Vec<Dimension> = sizes.map(|&size| self.dimension(size, links)).collect();
        direct_network(&dimensions, grid.routing, channels)
            .map_err(|error| topology_error(&["dimensions"], &error))
    }
}
