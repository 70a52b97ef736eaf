//! Hosts and switches of a fabric.

/// Part of a fabric that a switch belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeRole {
    /// The network; also the role of hosts.
    #[default]
    Network,
    /// The scale-up fabric of a node, such as NVLink.
    ScaleUp,
    /// A NIC of several ports.
    Nic,
}

/// A host or a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// `host7`, `leaf3`.
    pub name: String,
    /// Tier of a switch: 0 next to hosts, increasing upwards; `None` for a host.
    pub tier: Option<u8>,
    /// Group of switches that the topology itself forms, such as those of a dragonfly.
    pub group: Option<u16>,
    /// Role in the fabric.
    pub role: NodeRole,
    /// The host of a further NIC: a place among the nodes.
    pub host: Option<u32>,
}

impl NodeRow {
    /// A host, or a switch of a tier, without further properties.
    pub fn new(name: impl Into<String>, tier: Option<u8>) -> Self {
        Self {
            name: name.into(),
            tier,
            group: None,
            role: NodeRole::Network,
            host: None,
        }
    }
}
