//! Fat trees of switches with a given number of ports, or for a given number of hosts.

use crate::error::ScenarioError;
use crate::limits::{check_hosts, leaf_size};
use crate::topology::error::{impossible, topology_error};
use crate::topology::oversubscription::Oversubscription;
use clearway_fabric::topology::{CoreWiring, FatTree, Tier, Topology, fat_tree};
use clearway_units::{OmitDefaults, Parameter as _, Rate, Span};

/// Ports of a switch if nothing else determines their number.
const USUAL_RADIX: u32 = 8;
/// Maximum number of ports of a switch.
const MOST_PORTS: u32 = 1024;
/// Hosts on a leaf in the suggestion of another kind of topology.
const USUAL_LEAF: u32 = 32;

clearway_units::parameters! {
    /// k-ary fat tree of switches with `radix` ports.
    pub struct FatTreeSettings {
        /// Ports of each switch; "auto": 8, or with `hosts` the smallest number that suffices.
        pub radix: Option<u32> = None, "radix", "decision";
        /// Tiers of switches: 2 (radix²/2 hosts) or 3 (radix³/4 hosts).
        pub tiers: u32 = 3, "tiers", "decision";
        /// Downlinks of a leaf per uplink.
        pub oversubscription: Oversubscription = Oversubscription::NONE, "oversubscription", "decision";
        /// Rate of each link.
        pub rate: Rate = Rate::from_gbps(400), "link-rate", "STrack §4.2";
        /// Delay of each link.
        pub delay: Span = Span::from_us(1), "link-delay", "STrack §4.2";
        with {
            /// Number of hosts.
            pub size: OmitDefaults<FatTreeSize>,
        }
    }
}

clearway_units::parameters! {
    /// Size of a fat tree that does not follow from the ports of its switches.
    pub struct FatTreeSize {
        /// Number of hosts. They take half of the ports of each leaf; `oversubscription` sets how many of the other half are uplinks. The
        /// number of pods (two tiers: leaves) follows from the hosts. "auto": as many hosts as the switches have ports for, with all ports
        /// in use.
        pub hosts: Option<u32> = None, "hosts", "by `radix`";
    }
}

/// Numbers of switches and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    /// Hosts on each leaf.
    down: u32,
    /// Uplinks of each leaf.
    up: u32,
    /// Leaves of each pod.
    leaves: u32,
    /// Uplinks of each aggregation switch.
    agg_up: u32,
    pods: u32,
}

impl FatTreeSettings {
    /// Replaces `radix` = "auto" by a number, if one fits.
    pub(crate) fn settle(&mut self) {
        self.radix = self.radix.or_else(|| match self.size.hosts {
            None => Some(USUAL_RADIX),
            Some(hosts) => radixes().find(|&radix| self.holding(hosts, radix).is_some()),
        });
    }

    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        if !(2..=3).contains(&self.tiers) {
            return Err(impossible(
                &["tiers"],
                format!("a fat tree of {} tiers", self.tiers),
                "set `tiers` to 2 or 3",
            ));
        }
        let shape = match self.size.hosts {
            None => self.full()?,
            Some(hosts) => {
                check_hosts(&["hosts"], hosts.into())?;
                let radix = self.radix;
                let shape = radix.and_then(|radix| self.holding(hosts, radix));
                shape.ok_or_else(|| self.no_such_size(hosts))?
            }
        };
        let tier = |down_ports, up_ports| Tier {
            down_ports,
            up_ports,
            link_rate: self.rate,
            link_delay: self.delay,
            switch_latency: Span::ZERO,
            bundle: 1,
        };
        let of_pod = shape.down * shape.leaves;
        let mut tiers = vec![tier(shape.down, shape.up), tier(shape.leaves, shape.agg_up)];
        if self.tiers == 3 {
            tiers.push(tier(shape.pods, 0));
        }
        let spec = FatTree {
            hosts: of_pod * shape.pods,
            hosts_per_pod: of_pod,
            tiers,
            cores: CoreWiring::Interleaved,
        };
        fat_tree(&spec).map_err(|error| topology_error(&["radix"], &error))
    }

    /// A tree whose switches use all ports.
    fn full(&self) -> Result<Shape, ScenarioError> {
        let radix = self.radix.unwrap_or(USUAL_RADIX);
        let up = self.oversubscription.links_up_of(radix);
        let up = up.filter(|_| is_radix(radix));
        let Some(up) = up else {
            let multiple = self.oversubscription.multiple_of_ports();
            let ports = format!("use an even radix up to 1024 that is a multiple of {multiple}");
            let half = FatTreeSettings {
                radix: Some(radix),
                ..self.clone()
            };
            let hosts = half.most_hosts();
            let fix = match hosts.filter(|&hosts| half.holding(hosts, radix).is_some()) {
                Some(hosts) => {
                    format!(
                        "{ports}, or write `hosts = {hosts}`, which take half of each leaf's ports"
                    )
                }
                None => ports,
            };
            return Err(impossible(
                &["radix", "oversubscription"],
                format!(
                    "switches of radix {radix} with {} oversubscription",
                    self.oversubscription
                ),
                &fix,
            ));
        };
        let half = radix / 2;
        let down = radix - up;
        let shape = match self.tiers {
            2 => Shape {
                down,
                up,
                leaves: radix,
                agg_up: 0,
                pods: 1,
            },
            _ => Shape {
                down,
                up,
                leaves: half,
                agg_up: half,
                pods: radix,
            },
        };
        let hosts = u64::from(down) * u64::from(shape.leaves) * u64::from(shape.pods);
        check_hosts(&["radix", "tiers"], hosts)?;
        Ok(shape)
    }

    /// Hosts of a full tree whose hosts take half of the ports of each leaf.
    fn most_hosts(&self) -> Option<u32> {
        let radix = self.radix?;
        let of_leaf = radix / 2;
        let leaves = if self.tiers == 2 { 1 } else { of_leaf };
        radix.checked_mul(of_leaf)?.checked_mul(leaves)
    }

    /// Tree for `hosts` hosts, which take half of the ports of each leaf; `None` if they do not fill whole pods or leaves, or are too many.
    fn holding(&self, hosts: u32, radix: u32) -> Option<Shape> {
        let half = radix / 2;
        let parts = hosts.checked_div(self.unit(half))?;
        let fills = parts * self.unit(half) == hosts && (1..=radix).contains(&parts);
        let up = self.oversubscription.links_up(half)?;
        (is_radix(radix) && fills).then_some(match self.tiers {
            2 => Shape {
                down: half,
                up,
                leaves: parts,
                agg_up: 0,
                pods: 1,
            },
            _ => Shape {
                down: half,
                up,
                leaves: half,
                agg_up: half,
                pods: parts,
            },
        })
    }

    /// Hosts of a pod; with two tiers, hosts of a leaf.
    fn unit(&self, half: u32) -> u32 {
        if self.tiers == 2 { half } else { half * half }
    }

    /// Error about a number of hosts, with suggestions.
    fn no_such_size(&self, hosts: u32) -> ScenarioError {
        let of_radix = self.radix.map(|radix| format!(" of radix {radix}"));
        let message = format!(
            "no fat tree of {} tiers{} has {hosts} hosts at {}",
            self.tiers,
            of_radix.unwrap_or_default(),
            self.oversubscription
        );
        let mut fixes = Vec::new();
        if self.radix.is_some() {
            let fitting = radixes().find(|&radix| self.holding(hosts, radix).is_some());
            fixes.extend(fitting.map(|radix| format!("use `radix = {radix}`")));
        }
        if fixes.is_empty() {
            let near = self.sizes_near(hosts);
            let near: Vec<String> = near.map(|size| format!("`hosts = {size}`")).collect();
            if !near.is_empty() {
                fixes.push(format!("use {}", near.join(" or ")));
            }
        }
        let multiple = self.oversubscription.multiple(1);
        let size = multiple.and_then(|multiple| leaf_size(hosts, multiple, USUAL_LEAF));
        fixes.extend(size.map(|size| {
            format!(
                "`kind = \"leaf-spine\"` with `hosts = {hosts}`, `hosts-per-leaf = {size}`, `oversubscription = {}`",
                self.oversubscription.to_value()
            )
        }));
        if fixes.is_empty() {
            fixes.push("use another `oversubscription`, or `kind = \"pods\"`".into());
        }
        impossible(
            &["hosts", "radix", "oversubscription", "tiers"],
            message,
            &fixes.join(", or "),
        )
    }

    /// The nearest possible numbers of hosts below and above `hosts`.
    fn sizes_near(&self, hosts: u32) -> impl Iterator<Item = u32> {
        let radixes = radixes().filter(|radix| self.radix.is_none_or(|own| own == *radix));
        let (mut below, mut above) = (None, None);
        for radix in radixes {
            let unit = self.unit(radix / 2);
            let parts = (hosts / unit).clamp(1, radix);
            for parts in [parts, parts + 1] {
                let size = unit * parts;
                if size < 2 || self.holding(size, radix).is_none() {
                    continue;
                }
                if size < hosts {
                    below = below.max(Some(size));
                } else if above.is_none_or(|former| size < former) {
                    above = Some(size);
                }
            }
        }
        below.into_iter().chain(above)
    }
}

fn is_radix(radix: u32) -> bool {
    (2..=MOST_PORTS).contains(&radix) && radix.is_multiple_of(2)
}

/// Numbers of ports that switches can have.
fn radixes() -> impl Iterator<Item = u32> {
    (2..=MOST_PORTS).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn tree(
        hosts: Option<u32>,
        radix: Option<u32>,
        tiers: u32,
        oversubscription: u32,
    ) -> FatTreeSettings {
        let mut settings = FatTreeSettings {
            radix,
            tiers,
            oversubscription: Oversubscription::new(oversubscription, 1).unwrap(),
            size: OmitDefaults(FatTreeSize { hosts }),
            ..FatTreeSettings::default()
        };
        settings.settle();
        settings
    }

    /// Hosts, leaves, aggregation switches and cores, and the uplinks of leaf 0 with its hosts.
    fn counts(settings: &FatTreeSettings) -> ([usize; 4], (usize, usize)) {
        let topology = settings.build().unwrap();
        let tier = |tier| topology.switches.iter().filter(|s| s.tier == tier).count();
        let switches = [topology.hosts as usize, tier(0), tier(1), tier(2)];
        let leaf = clearway_fabric::topology::NodeId(topology.hosts);
        let up = topology.cables.iter().filter(|cable| cable.ends[0] == leaf);
        let down = topology.cables.iter().filter(|cable| cable.ends[1] == leaf);
        (switches, (down.count(), up.count()))
    }

    #[test]
    fn trees_have_as_many_hosts_as_asked_for() {
        let of = |hosts, tiers, oversubscription| {
            let settings = tree(Some(hosts), None, tiers, oversubscription);
            (settings.radix.unwrap(), counts(&settings))
        };
        assert_eq!(of(1024, 3, 1), (16, ([1024, 128, 128, 64], (8, 8))));
        assert_eq!(of(1024, 3, 2), (16, ([1024, 128, 64, 32], (8, 4))));
        assert_eq!(of(1024, 3, 4), (16, ([1024, 128, 32, 16], (8, 2))));
        assert_eq!(of(1024, 3, 16), (32, ([1024, 64, 4, 16], (16, 1))));
        assert_eq!(of(1024, 2, 2), (64, ([1024, 32, 16, 0], (32, 16))));
        assert_eq!(of(576, 3, 3), (24, ([576, 48, 16, 48], (12, 4))));
    }

    #[test]
    fn a_full_tree_is_that_of_its_radix() {
        assert_eq!(tree(None, None, 3, 1).radix, Some(8));
        for radix in [4, 8, 16] {
            let hosts = radix * radix * radix / 4;
            let full = tree(None, Some(radix), 3, 1);
            let sized = tree(Some(hosts), None, 3, 1);
            assert_eq!(sized.radix, Some(radix));
            assert_eq!(full.build().unwrap(), sized.build().unwrap());
        }
        assert_eq!(
            counts(&tree(None, Some(12), 3, 2)),
            ([576, 72, 48, 24], (8, 4))
        );
    }

    #[test]
    fn impossible_trees_name_those_that_exist() {
        let error = |settings: FatTreeSettings| {
            let error = settings.build().unwrap_err();
            format!("{}\n{}", error.message, error.fix)
        };
        assert_snapshot!(error(tree(None, Some(16), 3, 2)), @"
        impossible topology: switches of radix 16 with 2:1 oversubscription
        use an even radix up to 1024 that is a multiple of 3, or write `hosts = 1024`, which take half of each leaf's ports
        ");
        assert_snapshot!(error(tree(None, Some(16), 2, 2)), @"
        impossible topology: switches of radix 16 with 2:1 oversubscription
        use an even radix up to 1024 that is a multiple of 3, or write `hosts = 128`, which take half of each leaf's ports
        ");
        assert_snapshot!(error(tree(None, Some(7), 3, 1)), @"
        impossible topology: switches of radix 7 with 1:1 oversubscription
        use an even radix up to 1024 that is a multiple of 2
        ");
        assert_snapshot!(error(tree(Some(1024), None, 3, 3)), @"
        impossible topology: no fat tree of 3 tiers has 1024 hosts at 3:1
        use `hosts = 1008` or `hosts = 1053`
        ");
        assert_snapshot!(error(tree(Some(1020), None, 3, 2)), @r#"
        impossible topology: no fat tree of 3 tiers has 1020 hosts at 2:1
        use `hosts = 1008` or `hosts = 1024`, or `kind = "leaf-spine"` with `hosts = 1020`, `hosts-per-leaf = 30`, `oversubscription = 2`
        "#);
        assert_snapshot!(error(tree(Some(1024), Some(8), 3, 2)), @r#"
        impossible topology: no fat tree of 3 tiers of radix 8 has 1024 hosts at 2:1
        use `radix = 16`, or `kind = "leaf-spine"` with `hosts = 1024`, `hosts-per-leaf = 32`, `oversubscription = 2`
        "#);
        assert_snapshot!(error(tree(Some(100), Some(8), 3, 2)), @r#"
        impossible topology: no fat tree of 3 tiers of radix 8 has 100 hosts at 2:1
        use `radix = 20`, or `kind = "leaf-spine"` with `hosts = 100`, `hosts-per-leaf = 20`, `oversubscription = 2`
        "#);
        assert_snapshot!(error(tree(Some(0), None, 3, 1)), @"
        impossible topology: no hosts
        use at least two hosts
        ");
        assert_snapshot!(error(tree(Some(1024), None, 4, 1)), @"
        impossible topology: a fat tree of 4 tiers
        set `tiers` to 2 or 3
        ");
        assert_snapshot!(error(tree(Some(4_000_000_000), None, 2, 1)), @"
        impossible topology: 4000000000 hosts
        use at most 1048576
        ");
    }
}
