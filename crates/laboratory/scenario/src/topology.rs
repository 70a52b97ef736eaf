//! The `[topology]` section.

pub(crate) mod bcube;
pub(crate) mod built_fabric;
pub(crate) mod direct;
pub(crate) mod dragonfly;
pub(crate) mod error;
pub(crate) mod fat_tree;
pub(crate) mod file;
pub(crate) mod gpu_links;
pub(crate) mod multi_plane;
pub(crate) mod nccl_nodes;
pub(crate) mod nearest_nics;
pub(crate) mod oversubscription;
pub(crate) mod pods;
pub(crate) mod rail_optimised;
pub(crate) mod uplinks;

use crate::error::ScenarioError;
use crate::limits::{check_hosts, check_links, check_size, leaf_size};
use crate::link_names::{LinkNames, link_advice};
use crate::nics::NicChoice;
use crate::section::Section;
use crate::topology::bcube::Bcube;
use crate::topology::built_fabric::BuiltFabric;
use crate::topology::direct::{FullyConnected, Mesh, Ring, Torus};
use crate::topology::dragonfly::{Dragonfly, DragonflyPlus};
use crate::topology::error::{impossible, topology_error};
use crate::topology::fat_tree::FatTreeSettings;
use crate::topology::file::{NicSharing, TopologyFile, build_from_file};
use crate::topology::multi_plane::MultiPlaneSettings;
use crate::topology::oversubscription::Oversubscription;
use crate::topology::pods::Pods;
use crate::topology::rail_optimised::RailOptimisedSettings;
pub use crate::topology::uplinks::Uplinks;
use clearway_fabric::topology::{
    Cable, GroupRouting, PortChoice, Topology, VirtualChannels, dumbbell, leaf_spine, single_switch,
};
use clearway_units::{
    OmitDefaults, ParameterInfo, ParameterSet, Rate, SetError, Span, Time, Value,
};
use std::path::Path;

clearway_units::parameters! {
    /// Hosts on one switch.
    pub struct SingleSwitch {
        /// Number of hosts.
        pub hosts: u32 = 33, "hosts", "decision: 32 senders and a receiver";
        /// Rate of each link.
        pub rate: Rate = Rate::from_gbps(400), "link-rate", "STrack §4.2";
        /// Delay of each link.
        pub delay: Span = Span::from_us(2), "link-delay", "decision: 8 us round trip as in STrack §4.2";
    }
}

clearway_units::parameters! {
    /// Two switches with one link between them.
    pub struct Dumbbell {
        /// Hosts on the left switch; they have the lowest numbers.
        pub left: u32 = 4, "left", "decision";
        /// Hosts on the right switch.
        pub right: u32 = 4, "right", "decision";
        /// Rate of the links of hosts.
        pub rate: Rate = Rate::from_gbps(400), "link-rate", "STrack §4.2";
        /// Delay of the links of hosts.
        pub delay: Span = Span::from_us(1), "link-delay", "STrack §4.2";
        /// Rate of the link between the switches; "auto" is `link-rate`.
        pub middle_rate: Option<Rate> = None, "bottleneck-rate", "decision";
        /// Delay of the link between the switches; "auto" is `link-delay`.
        pub middle_delay: Option<Span> = None, "bottleneck-delay", "decision";
    }
}

clearway_units::parameters! {
    /// Leaves with hosts, each connected to every spine.
    pub struct LeafSpine {
        /// Number of hosts.
        pub hosts: u32 = 128, "hosts", "decision";
        /// Hosts on each leaf.
        pub hosts_per_leaf: u32 = 16, "hosts-per-leaf", "decision";
        /// Number of spines; "auto": by `oversubscription`.
        pub spines: Option<u32> = None, "spines", "STrack §4.2";
        /// Parallel links from each leaf to each spine.
        pub links: u32 = 1, "parallel-links", "STrack §4.2";
        /// Downlinks of a leaf per uplink.
        pub oversubscription: Oversubscription = Oversubscription::NONE, "oversubscription", "STrack §4.2: 1, 4 or 8";
        /// Rate of the links of hosts.
        pub rate: Rate = Rate::from_gbps(400), "link-rate", "STrack §4.2";
        /// Delay of the links of hosts.
        pub delay: Span = Span::from_us(1), "link-delay", "STrack §4.2: 8 us round trip over four links";
        /// Rate of the links between switches; "auto" is `link-rate`.
        pub fabric_rate: Option<Rate> = None, "fabric-link-rate", "STrack §4.2: all links alike";
        /// Delay of the links between switches; "auto" is `link-delay`.
        pub fabric_delay: Option<Span> = None, "fabric-link-delay", "STrack §4.2: all links alike";
    }
}

clearway_units::parameters! {
    /// Faults and exceptions, for every kind of topology.
    pub struct LinkSettings {
        /// Exceptions for single links, such as "leaf0-spine2 down", "host3-leaf0 rate=100Gbps delay=2us" or "leaf1-spine0
        /// bit-error-rate=1e-9 packet-loss=0.001". With "dead-from=2ms" a link loses every packet from then on, unknown to routing.
        /// `clearway topology --links` prints the names; parallel links share a name.
        pub exceptions: Vec<String> = Vec::new(), "links", "the user";
        /// Probability that a bit arrives wrong, on every link.
        pub bit_error_rate: f64 = 0.0, "bit-error-rate", "decision";
        /// Number of leaves that lose uplinks.
        pub failing_leaves: u32 = 0, "failed-uplinks.leaves", "STrack §4.2: 16";
        /// Number of uplinks that each of these leaves loses.
        pub failed_uplinks: u32 = 0, "failed-uplinks.per-leaf", "STrack §4.2: 4 or 16";
        with {
            /// Reaction of routing to events.
            pub rerouting: OmitDefaults<Rerouting>,
        }
    }
}

clearway_units::parameters! {
    /// Reaction of routing to events of links.
    pub struct Rerouting {
        /// Time from an event of a link that goes down or comes back until all switches avoid it or use it again. Until then, packets sent
        /// to a link that is down are lost.
        pub delay: Span = Span::from_ms(10), "reroute-delay", "decision: a lost carrier, an update through BGP and the writing of tables take milliseconds each";
    }
}

macro_rules! kinds {
    ($($variant:ident($settings:ty) = $name:literal, $summary:literal;)+) => {
        /// The settings of one kind of topology.
        #[derive(Debug, Clone, PartialEq)]
        pub enum TopologyKind {
            $(#[doc = $summary] $variant($settings),)+
        }

        impl TopologyKind {
            /// Name and summary of each kind.
            pub const KINDS: &'static [(&'static str, &'static str)] = &[$(($name, $summary)),+];

            /// The defaults of a kind.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(Default::default())),)+
                    _ => None,
                }
            }
            /// Name of the kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }
            /// Settings of the kind.
            pub(crate) fn describe(&self) -> Vec<ParameterInfo> {
                match self {
                    $(Self::$variant(_) => <$settings>::describe(),)+
                }
            }
            fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
                match self {
                    $(Self::$variant(settings) => settings.set(key, value),)+
                }
            }
            fn entries(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant(settings) => settings.entries(),)+
                }
            }
        }
    };
}

kinds! {
    LeafSpine(LeafSpine) = "leaf-spine", "leaves with hosts, each connected to every spine";
    FatTree(FatTreeSettings) = "fat-tree", "a k-ary fat tree of two or three tiers";
    Pods(Pods) = "pods", "three tiers: pods of leaves and aggregation switches under planes of cores (HPCC's 320 hosts)";
    RailOptimised(RailOptimisedSettings) = "rail-optimised", "nodes of GPUs with NVLink inside and a rail for each of their NICs";
    MultiPlane(MultiPlaneSettings) = "multi-plane", "NICs with several ports, each port in a separate leaf-spine fabric";
    Dragonfly(Dragonfly) = "dragonfly", "groups of routers, with links between all routers of a group and between all pairs of groups";
    DragonflyPlus(DragonflyPlus) = "dragonfly-plus", "groups of leaves and spines, each pair of groups connected by spines";
    Bcube(Bcube) = "bcube", "servers with several ports that forward packets (TMDML's 9 servers)";
    Ring(Ring) = "ring", "hosts in a ring, each joined to the next";
    Torus(Torus) = "torus", "hosts in a grid of rings, joined without switches";
    Mesh(Mesh) = "mesh", "hosts in a grid of lines, joined without switches";
    FullyConnected(FullyConnected) = "fully-connected", "hosts that are each joined to all others";
    SingleSwitch(SingleSwitch) = "single-switch", "hosts on one switch";
    Dumbbell(Dumbbell) = "dumbbell", "two switches with one link between them";
    File(TopologyFile) = "file", "a fabric from a file: of htsim (.topo), HPCC ns-3 or SimAI, an InfraGraph (YAML, JSON), or nodes as in a file of NCCL (.xml)";
}

/// The `[topology]` section.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologySettings {
    /// The shape.
    pub kind: TopologyKind,
    /// Faults and exceptions.
    pub links: LinkSettings,
}

impl Default for TopologySettings {
    fn default() -> Self {
        Self {
            kind: TopologyKind::LeafSpine(LeafSpine::default()),
            links: LinkSettings::default(),
        }
    }
}

impl TopologySettings {
    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        match self.kind.set(key, value) {
            Err(SetError::UnknownKey) => self.links.set(key, value),
            result => result,
        }
    }

    pub(crate) fn entries(&self) -> Vec<(&'static str, Value)> {
        let mut entries = self.kind.entries();
        entries.extend(self.links.entries());
        entries
    }

    pub(crate) fn describe(&self) -> Vec<ParameterInfo> {
        let mut parameters = self.kind.describe();
        parameters.extend(LinkSettings::describe());
        parameters
    }

    /// Replaces "auto" by values that follow from other keys of the section, as if the user had written them.
    pub(crate) fn settle(&mut self) {
        if let TopologyKind::FatTree(settings) = &mut self.kind {
            settings.settle();
        }
    }

    /// Rule that chooses the NICs of flows if hosts have several.
    pub fn nic_choice(&self, seed: u64) -> NicChoice {
        match &self.kind {
            TopologyKind::Bcube(settings) => settings.nic_choice(seed),
            TopologyKind::File(settings) if settings.nics == NicSharing::First => NicChoice::First,
            _ => NicChoice::InTurn,
        }
    }

    /// True if the ranks of a job share the equally near NICs of their hosts, message by message.
    pub fn shares_nics(&self) -> bool {
        matches!(&self.kind, TopologyKind::File(settings) if settings.nics != NicSharing::First)
    }

    /// Key of the topology that sends packets on detours, with its value; `None` if they take minimal routes.
    pub(crate) fn detours(&self) -> Option<GroupRouting> {
        let routing = match &self.kind {
            TopologyKind::Dragonfly(settings) => settings.links.routing,
            TopologyKind::DragonflyPlus(settings) => settings.links.routing,
            TopologyKind::File(settings) => settings.routing,
            _ => return None,
        };
        Some(routing).filter(|routing| *routing != GroupRouting::Minimal)
    }

    /// True if hosts have NICs that send each packet through the port with the shortest queue.
    pub(crate) fn has_least_queue_nics(&self) -> bool {
        match &self.kind {
            TopologyKind::MultiPlane(settings) => settings.port_choice == PortChoice::LeastQueue,
            TopologyKind::File(settings) => settings.nics == NicSharing::Stripe,
            _ => false,
        }
    }

    /// The key, with its value, that lets NICs send each packet through another port.
    pub(crate) fn overtaking_nics(&self) -> (&'static str, &'static str) {
        match &self.kind {
            TopologyKind::File(_) => ("nics", "stripe"),
            _ => ("port-choice", "least-queue"),
        }
    }

    /// True if paused links can wait for each other in a cycle, because hosts forward along rings, or along lines in any order.
    pub(crate) fn has_cycles_of_hosts(&self) -> bool {
        match &self.kind {
            TopologyKind::Ring(settings) => settings.can_deadlock(),
            TopologyKind::Torus(settings) => settings.can_deadlock(),
            TopologyKind::Mesh(settings) => settings.grid.is_in_any_order(),
            _ => false,
        }
    }

    /// With two virtual channels: true if a ring has a cable that closes it.
    pub(crate) fn two_channels(&self) -> Option<bool> {
        let (count, is_closed) = match &self.kind {
            TopologyKind::Ring(own) => (own.channels.count, own.hosts > 2),
            TopologyKind::Torus(own) => {
                let mut sizes = own.grid.dimensions.iter();
                (own.channels.count, sizes.any(|size| *size > 2))
            }
            _ => return None,
        };
        (count == VirtualChannels::Two).then_some(is_closed)
    }

    /// True if the fabric consists of groups of switches that are all connected with each other.
    pub(crate) fn has_groups(&self) -> bool {
        match &self.kind {
            TopologyKind::Dragonfly(_) | TopologyKind::DragonflyPlus(_) => true,
            TopologyKind::File(settings) => settings.routing != GroupRouting::Minimal,
            _ => false,
        }
    }

    /// Builds the fabric. `in_order` is true if a transport needs packets in order.
    pub(crate) fn build(
        &self,
        base_dir: Option<&Path>,
        in_order: bool,
    ) -> Result<BuiltFabric, ScenarioError> {
        let mut built: BuiltFabric = match &self.kind {
            TopologyKind::File(settings) => build_from_file(settings, base_dir, in_order)?,
            kind => kind.build()?.into(),
        };
        if let TopologyKind::RailOptimised(settings) = &self.kind {
            built.gpus_per_node = settings.gpus_per_node;
        }
        if let Some(dimensions) = self.kind.dimensions() {
            built.dimensions = dimensions;
        }
        self.links.apply(&mut built.topology)?;
        check_size(&built.topology)?;
        check_links(&built.topology, &self.entries())?;
        Ok(built)
    }
}

impl TopologyKind {
    /// Hosts in each dimension of a kind that has dimensions.
    fn dimensions(&self) -> Option<Vec<u32>> {
        match self {
            Self::Ring(ring) => Some(vec![ring.hosts]),
            Self::FullyConnected(all) => Some(vec![all.hosts]),
            Self::Torus(torus) => Some(torus.grid.dimensions.clone()),
            Self::Mesh(mesh) => Some(mesh.grid.dimensions.clone()),
            _ => None,
        }
    }

    /// The fabric of a kind that needs no file.
    fn build(&self) -> Result<Topology, ScenarioError> {
        Ok(match self {
            Self::SingleSwitch(s) => single_switch(s.hosts, s.rate, s.delay)
                .map_err(|e| topology_error(&["hosts"], &e))?,
            Self::Dumbbell(d) => {
                let middle = (
                    d.middle_rate.unwrap_or(d.rate),
                    d.middle_delay.unwrap_or(d.delay),
                );
                dumbbell(d.left, d.right, (d.rate, d.delay), middle)
                    .map_err(|e| topology_error(&["left", "right"], &e))?
            }
            Self::LeafSpine(settings) => build_leaf_spine(settings)?,
            Self::FatTree(settings) => settings.build()?,
            Self::Pods(settings) => settings.build()?,
            Self::RailOptimised(settings) => settings.build()?,
            Self::Dragonfly(settings) => settings.build()?,
            Self::DragonflyPlus(settings) => settings.build()?,
            Self::MultiPlane(settings) => settings.build()?,
            Self::Bcube(settings) => settings.build()?,
            Self::Ring(settings) => settings.build()?,
            Self::Torus(settings) => settings.build()?,
            Self::Mesh(settings) => settings.build()?,
            Self::FullyConnected(settings) => settings.build()?,
            Self::File(_) => unreachable!("files are read before"),
        })
    }
}

impl Section for TopologySettings {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        Self::set(self, key, value)
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        self.describe()
    }
}

fn build_leaf_spine(s: &LeafSpine) -> Result<Topology, ScenarioError> {
    check_hosts(&["hosts"], s.hosts.into())?;
    if s.hosts_per_leaf == 0 {
        return Err(impossible(
            &["hosts-per-leaf"],
            "leaves without hosts".into(),
            "use at least one host per leaf",
        ));
    }
    if !s.hosts.is_multiple_of(s.hosts_per_leaf) {
        let fix = match s.hosts.checked_next_multiple_of(s.hosts_per_leaf) {
            None | Some(0) => "use at least 2 hosts and at least 1 per leaf".into(),
            Some(next) => format!(
                "use whole leaves, for instance `hosts` = {next}, or another `hosts-per-leaf`"
            ),
        };
        return Err(impossible(
            &["hosts", "hosts-per-leaf"],
            format!(
                "`hosts` = {} is not a multiple of `hosts-per-leaf` = {}",
                s.hosts, s.hosts_per_leaf
            ),
            &fix,
        ));
    }
    if s.spines.is_some() && s.oversubscription != Oversubscription::NONE {
        return Err(impossible(
            &["spines", "oversubscription"],
            "both `spines` and `oversubscription` are given".into(),
            "give one of them: `spines = \"auto\"` or `oversubscription = 1` leaves the other to it",
        ));
    }
    let spines = match s.spines {
        Some(spines) => spines,
        None => spines_for(s)?,
    };
    let fabric = (
        s.fabric_rate.unwrap_or(s.rate),
        s.fabric_delay.unwrap_or(s.delay),
    );
    leaf_spine(
        s.hosts,
        s.hosts_per_leaf,
        spines,
        s.links,
        (s.rate, s.delay),
        fabric,
    )
    .map_err(|error| topology_error(&["spines", "parallel-links"], &error))
}

/// Number of spines that gives the oversubscription.
fn spines_for(s: &LeafSpine) -> Result<u32, ScenarioError> {
    let spines = s.oversubscription.spines(s.hosts_per_leaf, s.links);
    spines
        .ok_or_else(|| {
            let multiple = s.oversubscription.multiple(s.links);
            impossible(
                &["oversubscription", "parallel-links", "hosts-per-leaf"],
                format!(
                    "{} hosts per leaf cannot be oversubscribed {} over {} parallel links",
                    s.hosts_per_leaf, s.oversubscription, s.links
                ),
                &match multiple.and_then(|n| leaf_size(s.hosts, n, s.hosts_per_leaf)) {
                    Some(size) => format!("use `hosts-per-leaf` = {size}, or give `spines`"),
                    None => "make `hosts-per-leaf` a multiple of `oversubscription` times `parallel-links`, or give `spines`".into(),
                },
            )
        })
}

impl LinkSettings {
    fn apply(&self, topology: &mut Topology) -> Result<(), ScenarioError> {
        if self.bit_error_rate >= 1.0 {
            return Err(impossible(
                &["bit-error-rate"],
                format!("a bit error rate of {}", self.bit_error_rate),
                "use a probability below 1, such as 1e-9",
            ));
        }
        // Zero leaves the rates that the file of a fabric gives.
        if self.bit_error_rate > 0.0 {
            for cable in &mut topology.cables {
                cable.bit_error_rate = self.bit_error_rate;
            }
        }
        let (leaves, uplinks) = (self.failing_leaves as usize, self.failed_uplinks as usize);
        let keys = ["failed-uplinks.leaves", "failed-uplinks.per-leaf"];
        if (leaves == 0) != (uplinks == 0) {
            return Err(impossible(
                &keys,
                format!("{leaves} leaves lose {uplinks} uplinks each"),
                "give both `failed-uplinks.leaves` and `failed-uplinks.per-leaf`, or none",
            ));
        }
        if leaves > 0 {
            topology
                .fail_uplinks(leaves, uplinks)
                .map_err(|error| topology_error(&keys, &error))?;
        }
        let first_words = self.exceptions.iter().filter_map(|text| first_word(text));
        let links = LinkNames::from_topology(topology, first_words);
        self.exceptions
            .iter()
            .try_for_each(|text| apply_exception(topology, &links, text))
    }
}

const EXCEPTION_WORDS: &str = "use `down`, `rate=100Gbps`, `delay=2us`, `bit-error-rate=1e-9`, `packet-loss=0.001` or `dead-from=2ms`";

/// Applies one word of an exception; `None` if it cannot be read.
fn change_cable(cable: &mut Cable, word: &str) -> Option<()> {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    match key {
        "down" if value.is_empty() => cable.up = false,
        "rate" => cable.rate = value.parse().ok()?,
        "delay" => cable.delay = value.parse().ok()?,
        "bit-error-rate" => cable.bit_error_rate = probability(value)?,
        "packet-loss" => cable.packet_loss = probability(value)?,
        "dead-from" => cable.dead_from = Time::ZERO + value.parse::<Span>().ok()?,
        _ => return None,
    }
    Some(())
}

fn probability(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value| (0.0..1.0).contains(value))
}

fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

/// Applies one exception: a link's name and its changed properties.
fn apply_exception(
    topology: &mut Topology,
    links: &LinkNames<'_>,
    text: &str,
) -> Result<(), ScenarioError> {
    let fault = |message: String, fix: &str| {
        ScenarioError::about(&["links"], format!("`links`: \"{text}\": {message}"), fix)
    };
    let mut words = text.split_whitespace();
    let name = words.next().ok_or_else(|| {
        fault(
            "empty".into(),
            "name a link, for instance \"leaf0-spine2 down\"",
        )
    })?;
    let cables = links.cables(name);
    if cables.is_empty() {
        let fix = link_advice(topology, name);
        return Err(fault(format!("no link `{name}`"), &fix));
    }
    let mut changed = false;
    for word in words {
        changed = true;
        for &cable in &cables {
            change_cable(&mut topology.cables[cable], word)
                .ok_or_else(|| fault(format!("cannot read `{word}`"), EXCEPTION_WORDS))?;
        }
    }
    if changed {
        Ok(())
    } else {
        Err(fault(
            "nothing about the link is said".into(),
            EXCEPTION_WORDS,
        ))
    }
}
