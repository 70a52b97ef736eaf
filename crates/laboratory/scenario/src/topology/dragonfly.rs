//! Dragonfly and Dragonfly+.

use crate::error::ScenarioError;
use crate::limits::check_hosts;
use crate::topology::error::topology_error;
use clearway_fabric::topology::{
    DragonflyLinks, GroupRouting, Topology, dragonfly, dragonfly_plus,
};
use clearway_units::{Rate, Span};

clearway_units::parameters! {
    /// Links and routes of both kinds of dragonflies.
    pub struct GroupLinks {
        /// Rate of the links of hosts.
        pub rate: Rate = Rate::from_gbps(400), "link-rate", "STrack §4.2";
        /// Delay of the links of hosts.
        pub delay: Span = Span::from_us(1), "link-delay", "STrack §4.2";
        /// Rate of the links within groups; "auto" is `link-rate`.
        pub local_rate: Option<Rate> = None, "local-link-rate", "all links alike";
        /// Delay of the links within groups; "auto" is `link-delay`.
        pub local_delay: Option<Span> = None, "local-link-delay", "all links alike";
        /// Rate of the links between groups; "auto" is `link-rate`.
        pub global_rate: Option<Rate> = None, "global-link-rate", "all links alike";
        /// Delay of the links between groups; "auto" is `link-delay`.
        pub global_delay: Option<Span> = None, "global-link-delay", "all links alike";
        /// Route from group to group. "minimal": the direct link. "valiant": over a third group, which the sender's switch draws for each
        /// packet; half the capacity for any traffic. "ugal": the one of these two with the shorter queue at this switch, times the number
        /// of links of the route.
        pub routing: GroupRouting = GroupRouting::Minimal, "routing", "Kim et al., ISCA 2008, §4.1";
    }
}

clearway_units::parameters! {
    /// Groups of routers, with links between all routers of a group and between all pairs of groups.
    pub struct Dragonfly {
        /// Hosts on each router, p.
        pub hosts: u32 = 2, "hosts-per-router", "decision: 72 hosts";
        /// Routers in each group, a; "auto": 2 p.
        pub routers: Option<u32> = None, "routers-per-group", "Kim et al., ISCA 2008, §3.1: a = 2p = 2h";
        /// Links of each router to other groups, h; "auto": p.
        pub global_links: Option<u32> = None, "global-links", "Kim et al., ISCA 2008, §3.1: a = 2p = 2h";
        /// Number of groups, at most a h + 1; "auto" is this maximum.
        pub groups: Option<u32> = None, "groups", "Kim et al., ISCA 2008, §3.1: g = a h + 1";
        with {
            /// Links and routes.
            pub links: GroupLinks,
        }
    }
}

clearway_units::parameters! {
    /// Groups of leaves and spines, each pair of groups connected by spines.
    pub struct DragonflyPlus {
        /// Hosts on each leaf.
        pub hosts: u32 = 4, "hosts-per-leaf", "decision: 272 hosts; half of the ports of switches with 8";
        /// Leaves in each group; "auto" is `hosts-per-leaf`.
        pub leaves: Option<u32> = None, "leaves-per-group", "Shpiner et al., HiPINEB 2017: half of a switch's ports";
        /// Spines in each group, all connected to all of its leaves; "auto" is `hosts-per-leaf`.
        pub spines: Option<u32> = None, "spines-per-group", "Shpiner et al., HiPINEB 2017: half of a switch's ports";
        /// Links of each spine to other groups, h; "auto" is `hosts-per-leaf`.
        pub global_links: Option<u32> = None, "global-links", "Shpiner et al., HiPINEB 2017: half of a switch's ports";
        /// Number of groups, at most one more than the links of a group to other groups; "auto" is this maximum.
        pub groups: Option<u32> = None, "groups", "Shpiner et al., HiPINEB 2017: the largest";
        with {
            /// Links and routes.
            pub links: GroupLinks,
        }
    }
}

impl GroupLinks {
    fn dragonfly_links(&self, groups: u32, global_links: u32) -> DragonflyLinks {
        let (rate, delay) = (self.rate, self.delay);
        DragonflyLinks {
            groups,
            global_links,
            host: (rate, delay),
            local: (
                self.local_rate.unwrap_or(rate),
                self.local_delay.unwrap_or(delay),
            ),
            global: (
                self.global_rate.unwrap_or(rate),
                self.global_delay.unwrap_or(delay),
            ),
            routing: self.routing,
        }
    }
}

/// Maximum number of groups of `switches` switches, each with `global_links` links to other groups.
fn most_groups(switches: u32, global_links: u32) -> u32 {
    switches.saturating_mul(global_links).saturating_add(1)
}

/// Checks the number of hosts, the product of `factors`.
fn check_size(keys: &[&'static str], factors: [u32; 3]) -> Result<(), ScenarioError> {
    let hosts = factors.map(u64::from).into_iter();
    check_hosts(keys, hosts.fold(1, u64::saturating_mul))
}

impl Dragonfly {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        const KEYS: [&str; 5] = [
            "groups",
            "global-links",
            "routers-per-group",
            "hosts-per-router",
            "routing",
        ];
        let routers = self.routers.unwrap_or(self.hosts.saturating_mul(2));
        let global_links = self.global_links.unwrap_or(self.hosts);
        let groups = self.groups.unwrap_or(most_groups(routers, global_links));
        check_size(&KEYS, [groups, routers, self.hosts])?;
        dragonfly(
            routers,
            self.hosts,
            &self.links.dragonfly_links(groups, global_links),
        )
        .map_err(|error| topology_error(&KEYS, &error))
    }
}

impl DragonflyPlus {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        const KEYS: [&str; 6] = [
            "groups",
            "global-links",
            "spines-per-group",
            "leaves-per-group",
            "hosts-per-leaf",
            "routing",
        ];
        let [leaves, spines, global_links] =
            [self.leaves, self.spines, self.global_links].map(|own| own.unwrap_or(self.hosts));
        let groups = self.groups.unwrap_or(most_groups(spines, global_links));
        check_size(&KEYS, [groups, leaves, self.hosts])?;
        let links = self.links.dragonfly_links(groups, global_links);
        dragonfly_plus((leaves, spines), self.hosts, &links)
            .map_err(|error| topology_error(&KEYS, &error))
    }
}
