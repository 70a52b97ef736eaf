//! Fabrics as the reader returns them and the writer takes them, and facts that both derive from them.

use clearway_units::{Bytes, Rate, Span, Time};
use clearway_workload::FileWarning;

clearway_units::choices! {
    /// Nodes of an InfraGraph that are hosts.
    pub enum InfragraphHosts {
        /// Xpus, or devices whose xpus do not all have a NIC with a cable.
        Auto = "auto",
        /// Xpus, each with the NICs nearest to it.
        Xpu = "xpu",
        /// Devices with an xpu or a NIC, each with all its NICs.
        Device = "device",
    }
}

clearway_units::choices! {
    /// Role of a switch in a fabric.
    pub enum InfragraphRole {
        /// Switch of the network.
        Network = "network",
        /// Switch between the xpus of a scale-up domain.
        ScaleUp = "scale-up",
        /// Ports of a NIC, which sends each packet to the shortest queue.
        NicLeastQueue = "nic-least-queue",
        /// Ports of a NIC, which chooses by a hash of the header.
        NicHash = "nic-hash",
    }
}

/// Rules for reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfragraphOptions {
    /// Nodes that are hosts.
    pub hosts: InfragraphHosts,
    /// Rate of links without a bandwidth; `None`: an error.
    pub link_rate: Option<Rate>,
    /// Delay of links without a latency; `None`: 1 us, with a warning.
    pub link_delay: Option<Span>,
}

impl Default for InfragraphOptions {
    fn default() -> Self {
        Self {
            hosts: InfragraphHosts::Auto,
            link_rate: None,
            link_delay: None,
        }
    }
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfragraphSwitch {
    /// Name, unique in the fabric.
    pub name: String,
    /// Tier, if it is not the distance from the nearest host.
    pub tier: Option<u8>,
    /// Time from the arrival of a packet to its queue.
    pub latency: Span,
    /// Role in the fabric.
    pub role: InfragraphRole,
    /// Group of a dragonfly.
    pub group: Option<u16>,
}

impl InfragraphSwitch {
    /// A switch of the network.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tier: None,
            latency: Span::ZERO,
            role: InfragraphRole::Network,
            group: None,
        }
    }
}

/// A link; both directions are equal.
#[derive(Debug, Clone, PartialEq)]
pub struct InfragraphLink {
    /// The two nodes: hosts from 0, then switches.
    pub ends: [u32; 2],
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// True if it is a port of an xpu, not of a NIC.
    pub is_of_xpu: bool,
    /// Probability that a packet of any size is lost.
    pub packet_loss: f64,
    /// Probability that a bit arrives wrong.
    pub bit_error_rate: f64,
    /// Time from which on every packet is lost.
    pub dead_from: Option<Time>,
    /// False: disconnected.
    pub is_up: bool,
    /// Place in the order in which packets take links, of several shortest paths.
    pub order: u8,
    /// True if packets change to the second virtual channel on this link.
    pub is_dateline: bool,
}

impl InfragraphLink {
    /// A link between two nodes.
    pub const fn new(ends: [u32; 2], rate: Rate, delay: Span) -> Self {
        Self {
            ends,
            rate,
            delay,
            is_of_xpu: false,
            packet_loss: 0.0,
            bit_error_rate: 0.0,
            dead_from: None,
            is_up: true,
            order: 0,
            is_dateline: false,
        }
    }
}

/// Most bytes in the queues of ports of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InfragraphQueues {
    /// At ports towards a higher tier.
    pub up: Option<Bytes>,
    /// At all other ports.
    pub down: Option<Bytes>,
}

/// A fabric. Each host has one or more links, and the graph connects all hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct InfragraphFabric {
    /// Name of the infrastructure.
    pub name: String,
    /// Number of hosts: nodes from 0.
    pub hosts: u32,
    /// Number of consecutive hosts that are the xpus of one device; 1 if devices are hosts.
    pub xpus_per_server: u32,
    /// True if equal NICs of a host are not ports of one NIC.
    pub separates_nics: bool,
    /// Switches: nodes from `hosts`.
    pub switches: Vec<InfragraphSwitch>,
    /// Links in the order of edges.
    pub links: Vec<InfragraphLink>,
    /// Queues by tier, where the file says how long they are.
    pub queues: Vec<InfragraphQueues>,
}

impl InfragraphFabric {
    /// True if a link joins two hosts.
    pub fn joins_hosts(&self, link: &InfragraphLink) -> bool {
        link.ends.iter().all(|end| *end < self.hosts)
    }

    /// True if a link has an end at a NIC.
    pub fn is_of_nic(&self, link: &InfragraphLink) -> bool {
        !link.is_of_xpu && link.ends.iter().any(|end| *end < self.hosts)
    }
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct InfragraphFile {
    /// The fabric.
    pub fabric: InfragraphFabric,
    /// Warnings about content that is not used, and about probable mistakes.
    pub warnings: Vec<FileWarning>,
}

/// Name of a numbered node: `leaf3`, or `leaf0.3` if the name ends with a digit.
pub(super) fn numbered(name: &str, number: u32) -> String {
    match name.ends_with(|last: char| last.is_ascii_digit()) {
        true => format!("{name}.{number}"),
        false => format!("{name}{number}"),
    }
}

/// Name of one of the `count` copies of an instance.
pub(super) fn instance_name(name: &str, index: u32, count: u32) -> String {
    match count {
        1 => name.to_owned(),
        _ => numbered(name, index),
    }
}

/// For each switch, true if only ports of xpus reach it, in a fabric with NICs.
pub(super) fn scale_up_switches(
    hosts: u32,
    switches: usize,
    links: &[InfragraphLink],
) -> Vec<bool> {
    let ends = |link: &InfragraphLink| link.ends.map(|end| end.checked_sub(hosts));
    let mut parts = Parts::new(switches);
    for link in links {
        if let [Some(a), Some(b)] = ends(link) {
            parts.join(a as usize, b as usize);
        }
    }
    let (mut has_nic, mut has_xpu) = (vec![false; switches], vec![false; switches]);
    for link in links {
        if let [None, Some(switch)] | [Some(switch), None] = ends(link) {
            let root = parts.root(switch as usize);
            match link.is_of_xpu {
                true => has_xpu[root] = true,
                false => has_nic[root] = true,
            }
        }
    }
    let has_nics = links
        .iter()
        .any(|link| !link.is_of_xpu && link.ends.iter().any(|end| *end < hosts));
    let roots = (0..switches).map(|switch| parts.root(switch));
    roots
        .map(|root| has_nics && has_xpu[root] && !has_nic[root])
        .collect()
}

/// Parts of a graph whose nodes are connected.
pub(super) struct Parts(Vec<usize>);

impl Parts {
    pub(super) fn new(nodes: usize) -> Self {
        Self((0..nodes).collect())
    }

    /// A node that stands for the part of `node`.
    pub(super) fn root(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    pub(super) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}
