//! Fabrics as InfraGraph, read and written.
//!
//! Hosts are written as xpus, each with as many NICs as it has links. All that the format has no words for goes into annotations, so that
//! a fabric that is written and read has the same nodes and cables in the same order, and a run the same digest. Three things are not in
//! the file: `topology.routing` between groups, the sharing of NICs (`topology.nics`), and numbers of hosts in files of flows. A router of
//! a host is written as a switch.
//!
//! Hosts that are joined directly forward. The links of xpus and those of NICs have a router each, so a host forwards nothing from its
//! scale-up fabric to the network.

use crate::error::ScenarioError;
use crate::graph::{counts, tiers};
use crate::topology::error::topology_error;
use clearway_fabric::topology::{
    Cable, GroupRouting, NodeId, PortChoice, SwitchGroups, SwitchRole, SwitchSpec, TierQueues,
    Topology,
};
use clearway_formats::{
    InfragraphFabric, InfragraphForm, InfragraphLink, InfragraphQueues, InfragraphRole,
    InfragraphSwitch, write_infragraph,
};
use clearway_units::{HostId, Rate, Span, Time};
use std::collections::BTreeSet;

/// Text of a fabric as InfraGraph. `gpus_per_node` consecutive hosts are the xpus of one device.
pub fn infragraph_text(
    name: &str,
    topology: &Topology,
    gpus_per_node: u32,
    form: InfragraphForm,
) -> String {
    write_infragraph(&from_topology(name, topology, gpus_per_node), form)
}

/// The fabric of a file. Hosts with a link to another host forward, see [`Topology::with_routers_of`]. Others may have several cables: see
/// [`Topology::split_hosts`].
pub(crate) fn to_topology(
    fabric: &InfragraphFabric,
    routing: GroupRouting,
) -> Result<Topology, ScenarioError> {
    let ends = fabric.links.iter().map(|link| link.ends);
    let tiers = tiers(fabric.hosts, fabric.switches.len(), ends);
    let tier_of = |switch: usize| fabric.switches[switch].tier.unwrap_or(tiers[switch]);
    let switches = fabric.switches.iter().enumerate();
    let switches = switches.map(|(index, switch)| SwitchSpec {
        latency: switch.latency,
        role: match switch.role {
            InfragraphRole::Network => SwitchRole::Network,
            InfragraphRole::ScaleUp => SwitchRole::ScaleUp,
            InfragraphRole::NicLeastQueue => SwitchRole::Nic(PortChoice::LeastQueue),
            InfragraphRole::NicHash => SwitchRole::Nic(PortChoice::Hash),
        },
        ..SwitchSpec::new(&switch.name, tier_of(index))
    });
    let node_tier = |node: u32| {
        let switch = node.checked_sub(fabric.hosts);
        switch.map(|index| tier_of(index as usize))
    };
    let cables = fabric.links.iter().map(|link| {
        // From the lower to the upper tier, as in all fabrics: a cable is an uplink of its first end.
        let [a, b] = link.ends;
        let ends = if node_tier(a) <= node_tier(b) {
            [a, b]
        } else {
            [b, a]
        };
        Cable {
            packet_loss: link.packet_loss,
            bit_error_rate: link.bit_error_rate,
            dead_from: link.dead_from.unwrap_or(Time::NEVER),
            up: link.is_up,
            order: link.order,
            dateline: link.is_dateline,
            ..Cable::new(ends.map(NodeId), (link.rate, link.delay))
        }
    });
    let queues = fabric.queues.iter().map(|queues| TierQueues {
        up: queues.up,
        down: queues.down,
    });
    let topology = Topology {
        summary: format!(
            "infragraph: {}",
            counts(fabric.hosts, tiers.len(), fabric.links.len())
        ),
        hosts: fabric.hosts,
        further_nics: Vec::new(),
        queues: queues.collect(),
        groups: groups(fabric, routing)?,
        switches: switches.collect(),
        cables: cables.collect(),
    };
    with_routers(fabric, topology)
}

/// The fabric with routers in hosts that are joined with others. As switches that only xpus reach, routers of xpus are parts of a scale-up
/// fabric if there are NICs.
fn with_routers(fabric: &InfragraphFabric, topology: Topology) -> Result<Topology, ScenarioError> {
    let joined = |link: &&InfragraphLink| fabric.joins_hosts(link);
    if topology.groups.is_some() && fabric.links.iter().any(|link| joined(&link)) {
        return Err(ScenarioError::about(
            &["file"],
            "links join hosts directly, and switches are in groups",
            "join the hosts to switches, or remove `clearway-group`",
        ));
    }
    let has_nics = fabric.links.iter().any(|link| fabric.is_of_nic(link));
    let of_xpus = match has_nics {
        true => SwitchRole::ScaleUp,
        false => SwitchRole::Network,
    };
    let kinds = [(false, SwitchRole::Network), (true, of_xpus)];
    kinds
        .into_iter()
        .try_fold(topology, |topology, (is_of_xpu, role)| {
            let joined = fabric.links.iter().filter(joined);
            let own = joined.filter(|link| link.is_of_xpu == is_of_xpu);
            let forwarding: BTreeSet<u32> = own.flat_map(|link| link.ends).collect();
            topology.with_routers_of(role, |host, cable| {
                let link = fabric.links.get(cable);
                link.is_some_and(|link| link.is_of_xpu == is_of_xpu) && forwarding.contains(&host)
            })
        })
        .map_err(|error| topology_error(&["file", "link-delay"], &error))
}

/// Groups of switches, if the file has them.
fn groups(
    fabric: &InfragraphFabric,
    routing: GroupRouting,
) -> Result<Option<SwitchGroups>, ScenarioError> {
    let impossible =
        |message: String, fix: &str| Err(ScenarioError::about(&["routing", "file"], message, fix));
    let of_switch: Vec<u16> = fabric.switches.iter().filter_map(|own| own.group).collect();
    if of_switch.is_empty() {
        return match routing {
            GroupRouting::Minimal => Ok(None),
            _ => impossible(
                format!(
                    "`topology.routing` = \"{}\" needs groups of switches, and the file has none",
                    routing.name()
                ),
                "annotate switches with `clearway-group`, or leave `topology.routing` out",
            ),
        };
    }
    if let Some(other) = fabric.switches.iter().find(|own| own.group.is_none()) {
        return impossible(
            format!("switch `{}` is in no group, others are", other.name),
            "annotate all switches with `clearway-group`, or none",
        );
    }
    let numbers: BTreeSet<u16> = of_switch.iter().copied().collect();
    let count = numbers.len() as u16;
    if numbers.last() != Some(&(count - 1)) {
        return impossible(
            format!("the numbers of the {count} groups of switches leave some out"),
            "number the groups 0, 1, 2 and so on",
        );
    }
    let groups = SwitchGroups {
        of_switch,
        count,
        routing,
    };
    if groups.has_detours() && count > SwitchGroups::MOST_DETOURS {
        return impossible(
            format!("{count} groups of switches are too many for detours"),
            "use at most 254 groups, or `topology.routing = \"minimal\"`",
        );
    }
    Ok(Some(groups))
}

fn from_topology(name: &str, topology: &Topology, gpus_per_node: u32) -> InfragraphFabric {
    let hosts = topology.machines();
    let node = |node: NodeId| match topology.switch_index(node) {
        Some(switch) => hosts + switch as u32,
        None => topology.machine_of(HostId(node.0)).0,
    };
    let links = topology.cables.iter().map(|cable| {
        let of_host = cable.ends.iter().any(|end| topology.is_host(*end));
        InfragraphLink {
            is_of_xpu: of_host && topology.is_scale_up(cable),
            packet_loss: cable.packet_loss,
            bit_error_rate: cable.bit_error_rate,
            dead_from: (cable.dead_from != Time::NEVER).then_some(cable.dead_from),
            is_up: cable.up,
            order: cable.order,
            is_dateline: cable.dateline,
            ..InfragraphLink::new(cable.ends.map(node), cable.rate, cable.delay)
        }
    });
    let links: Vec<InfragraphLink> = links.collect();
    let tiers = tiers(
        hosts,
        topology.switches.len(),
        links.iter().map(|link| link.ends),
    );
    let groups = topology.groups.as_ref();
    let switches = topology.switches.iter().zip(tiers).enumerate();
    let switches = switches.map(|(index, (switch, derived))| InfragraphSwitch {
        tier: (switch.tier != derived).then_some(switch.tier),
        latency: switch.latency,
        role: match switch.role {
            SwitchRole::Network => InfragraphRole::Network,
            SwitchRole::ScaleUp => InfragraphRole::ScaleUp,
            SwitchRole::Nic(PortChoice::LeastQueue) => InfragraphRole::NicLeastQueue,
            SwitchRole::Nic(PortChoice::Hash) => InfragraphRole::NicHash,
        },
        group: groups.map(|groups| groups.of_switch[index]),
        ..InfragraphSwitch::new(&switch.name)
    });
    let queues = topology.queues.iter().map(|queues| InfragraphQueues {
        up: queues.up,
        down: queues.down,
    });
    InfragraphFabric {
        name: name.into(),
        hosts,
        xpus_per_server: gpus_per_node,
        separates_nics: has_equal_nics(hosts, &links),
        switches: switches.collect(),
        queues: queues.collect(),
        links,
    }
}

/// True if a host has two links of one rate and delay, which are not ports of one NIC.
fn has_equal_nics(hosts: u32, links: &[InfragraphLink]) -> bool {
    let mut seen: BTreeSet<(u32, Rate, Span)> = BTreeSet::new();
    links.iter().any(|link| {
        let mut hosts = link.ends.into_iter().filter(|end| *end < hosts);
        hosts.any(|host| !seen.insert((host, link.rate, link.delay)))
    })
}
