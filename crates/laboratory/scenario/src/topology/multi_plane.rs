//! Multi-plane fabrics: NICs with several ports.

use crate::error::ScenarioError;
use crate::limits::{check_hosts, leaf_size};
use crate::topology::error::{impossible, topology_error};
use crate::topology::oversubscription::Oversubscription;
use clearway_fabric::topology::{MultiPlane, PortChoice, Topology, multi_plane};
use clearway_units::{Rate, Span};

clearway_units::parameters! {
    /// NICs with several ports, each port in a separate leaf-spine fabric.
    pub struct MultiPlaneSettings {
        /// Number of hosts.
        pub hosts: u32 = 64, "hosts", "decision";
        /// Number of planes, and of ports of each NIC; a port has the rate of the NIC divided by this.
        pub planes: u32 = 4, "planes", "UEC 1.0 §1: ports of a NIC on planes; 4 as in NICs of 4 x 200 Gb/s";
        /// Hosts on each leaf of a plane.
        pub hosts_per_leaf: u32 = 16, "hosts-per-leaf", "decision";
        /// Spines of each plane; "auto": by `oversubscription`.
        pub spines: Option<u32> = None, "spines", "by `oversubscription`";
        /// Parallel links from each leaf to each spine.
        pub links: u32 = 1, "parallel-links", "decision";
        /// Downlinks of a leaf per uplink.
        pub oversubscription: Oversubscription = Oversubscription::NONE, "oversubscription", "decision";
        /// Rate of all ports of a NIC together.
        pub rate: Rate = Rate::from_gbps(400), "link-rate", "STrack §4.2";
        /// Delay between a host and its leaves.
        pub delay: Span = Span::from_us(1), "link-delay", "STrack §4.2";
        /// Part of `link-delay` between the host and the ports of its NIC; "auto": half of it, which makes the rounds of the engine as long
        /// as possible.
        pub inside: Option<Span> = None, "nic-delay", "decision: a path is as long as with one port";
        /// Rate of the links between switches; "auto" is the rate of a port.
        pub fabric_rate: Option<Rate> = None, "fabric-link-rate", "all links of a plane alike";
        /// Delay of the links between switches; "auto" is `link-delay`.
        pub fabric_delay: Option<Span> = None, "fabric-link-delay", "all links alike";
        /// Choice of a NIC among its ports, for each packet. "least-queue": the port with the shortest queue; all ports carry the same
        /// load, and packets of a flow overtake each other. "hash": by the header, so that the transport's spraying decides.
        pub port_choice: PortChoice = PortChoice::LeastQueue, "port-choice", "decision: NICs know their own queues; UEC reference simulator: none";
    }
}

impl MultiPlaneSettings {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        const KEYS: [&str; 8] = [
            "planes",
            "hosts-per-leaf",
            "hosts",
            "nic-delay",
            "link-delay",
            "link-rate",
            "spines",
            "parallel-links",
        ];
        check_hosts(&["hosts"], self.hosts.into())?;
        if self.spines.is_some() && self.oversubscription != Oversubscription::NONE {
            return Err(impossible(
                &["spines", "oversubscription"],
                "both `spines` and `oversubscription` are given".into(),
                "give one of them: `spines = \"auto\"` or `oversubscription = 1` leaves the other to it",
            ));
        }
        let port = self.rate.as_bps().checked_div(self.planes.into());
        let port = port
            .filter(|&bps| bps > 0)
            .map_or(self.rate, Rate::from_bps);
        let spec = MultiPlane {
            planes: self.planes,
            hosts: self.hosts,
            hosts_per_leaf: self.hosts_per_leaf,
            spines: self.spines.map_or_else(|| self.spines(), Ok)?,
            bundle: self.links,
            nic: (self.rate, self.delay),
            inside: self.inside.unwrap_or(self.delay / 2),
            fabric: (
                self.fabric_rate.unwrap_or(port),
                self.fabric_delay.unwrap_or(self.delay),
            ),
            port_choice: self.port_choice,
        };
        multi_plane(&spec).map_err(|error| topology_error(&KEYS, &error))
    }

    /// Number of spines that gives the oversubscription.
    fn spines(&self) -> Result<u32, ScenarioError> {
        let down = self.hosts_per_leaf;
        let spines = self.oversubscription.spines(down, self.links);
        spines.ok_or_else(|| {
            let multiple = self.oversubscription.multiple(self.links);
            impossible(
                &["oversubscription", "parallel-links", "hosts-per-leaf"],
                format!(
                    "{down} hosts per leaf cannot be oversubscribed {} over {} parallel links",
                    self.oversubscription, self.links
                ),
                &match multiple.and_then(|n| leaf_size(self.hosts, n, down)) {
                    Some(size) => format!("use `hosts-per-leaf` = {size}, or give `spines`"),
                    None => "make `hosts-per-leaf` a multiple of `oversubscription` times `parallel-links`, or give `spines`".into(),
                },
            )
        })
    }
}
