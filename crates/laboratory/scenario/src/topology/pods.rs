//! Three-tier fabrics with given numbers of switches.

use crate::error::ScenarioError;
use crate::limits::check_hosts;
use crate::topology::error::{impossible, topology_error};
use clearway_fabric::topology::{CoreWiring, FatTree, Tier, Topology, fat_tree};
use clearway_units::{Rate, Span};

/// Maximum number of cables: 24 per host at the maximum number of hosts.
const MOST_CABLES: u64 = 24 << 20;

clearway_units::choices! {
    /// Cores that an aggregation switch has links to.
    pub enum Wiring {
        /// The cores of its plane, which it shares with one switch of every other pod.
        Planes = "planes",
        /// All cores, which all aggregation switches share.
        All = "all",
    }
}

clearway_units::parameters! {
    /// Pods in which every leaf connects to every aggregation switch, with cores above them. The default is the fabric of HPCC's
    /// evaluation: 320 hosts, 20 leaves, 20 aggregation switches, 16 cores.
    pub struct Pods {
        /// Number of pods.
        pub pods: u32 = 5, "pods", "HPCC §5.1";
        /// Leaves of each pod.
        pub leaves: u32 = 4, "leaves-per-pod", "HPCC §5.1";
        /// Hosts on each leaf.
        pub hosts: u32 = 16, "hosts-per-leaf", "HPCC §5.1";
        /// Aggregation switches of each pod; each leaf of the pod has one link to each of them.
        pub aggs: u32 = 4, "aggs-per-pod", "HPCC §5.1";
        /// Cores that each aggregation switch has a link to.
        pub cores: u32 = 4, "cores-per-agg", "HPCC §5.1";
        /// Wiring of the cores. "planes": switch j of every pod shares its cores only with switch j of all other pods. "all": all
        /// aggregation switches share the same cores (TMDML Figure 1).
        pub wiring: Wiring = Wiring::Planes, "core-wiring", "HPCC §5.1";
        /// Rate of the links of hosts.
        pub rate: Rate = Rate::from_gbps(100), "link-rate", "HPCC §5.1";
        /// Delay of the links of hosts.
        pub delay: Span = Span::from_us(1), "link-delay", "HPCC §5.1";
        /// Rate of the links between switches; "auto" is `link-rate`.
        pub fabric_rate: Option<Rate> = Some(Rate::from_gbps(400)), "fabric-link-rate", "HPCC §5.1";
        /// Delay of the links between switches; "auto" is `link-delay`.
        pub fabric_delay: Option<Span> = None, "fabric-link-delay", "HPCC §5.1: all links alike";
    }
}

impl Pods {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        const KEYS: [&str; 5] = [
            "pods",
            "leaves-per-pod",
            "hosts-per-leaf",
            "aggs-per-pod",
            "cores-per-agg",
        ];
        let [pods, leaves, hosts, aggs, cores] =
            [self.pods, self.leaves, self.hosts, self.aggs, self.cores].map(u64::from);
        let numbers = KEYS.iter().zip([pods, leaves, hosts, aggs, cores]);
        if let Some((key, _)) = numbers.into_iter().find(|(_, number)| *number == 0) {
            return Err(impossible(&[key], format!("`{key}` = 0"), "use at least 1"));
        }
        let hosts_of_pod = leaves.saturating_mul(hosts);
        check_hosts(&KEYS[..3], pods.saturating_mul(hosts_of_pod))?;
        let upper = aggs.saturating_mul(leaves.saturating_add(cores));
        if pods.saturating_mul(upper) > MOST_CABLES {
            return Err(impossible(
                &KEYS,
                format!("more than {MOST_CABLES} links between switches"),
                "use fewer switches",
            ));
        }
        let (cores, below_core) = match self.wiring {
            Wiring::Planes => (CoreWiring::Planes, self.pods),
            Wiring::All => (CoreWiring::All, self.pods * self.aggs),
        };
        let spec = FatTree {
            hosts: self.pods * self.leaves * self.hosts,
            hosts_per_pod: self.leaves * self.hosts,
            tiers: vec![
                tier(self.hosts, self.aggs, (self.rate, self.delay)),
                tier(self.leaves, self.cores, self.fabric_link()),
                tier(below_core, 0, self.fabric_link()),
            ],
            cores,
        };
        fat_tree(&spec).map_err(|error| topology_error(&KEYS, &error))
    }

    fn fabric_link(&self) -> (Rate, Span) {
        (
            self.fabric_rate.unwrap_or(self.rate),
            self.fabric_delay.unwrap_or(self.delay),
        )
    }
}

fn tier(down_ports: u32, up_ports: u32, (link_rate, link_delay): (Rate, Span)) -> Tier {
    Tier {
        down_ports,
        up_ports,
        link_rate,
        link_delay,
        switch_latency: Span::ZERO,
        bundle: 1,
    }
}
