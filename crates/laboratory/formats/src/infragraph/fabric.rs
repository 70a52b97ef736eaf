//! Hosts, switches and links of a file, numbered.

use super::annotations;
use super::document::{ComponentKind, LinkKind, Named as _};
use super::model::{
    InfragraphFabric, InfragraphFile, InfragraphLink, InfragraphRole, InfragraphSwitch, Parts,
    instance_name, scale_up_switches,
};
use super::nodes::{NONE, Nodes, number};
use super::plan::Plan;
use super::server::{Inner, Unused};
use crate::text::shown;
use clearway_units::{Rate, Span};
use clearway_workload::{FileError, counted};
use std::collections::{BTreeMap, BTreeSet};

/// Delay of links without a latency.
const USUAL_DELAY: Span = Span::from_us(1);
/// Builds the fabric of a plan.
pub(super) fn fabric(mut plan: Plan<'_>) -> Result<InfragraphFile, FileError> {
    let nodes = number(&mut plan)?;
    let mut fabric = InfragraphFabric {
        name: plan.document.name.clone(),
        hosts: nodes.hosts,
        xpus_per_server: xpus_per_server(&mut plan, &nodes),
        separates_nics: false,
        switches: switches(&plan, &nodes)?,
        links: Vec::new(),
        queues: Vec::new(),
    };
    let lines = links(&mut plan, &nodes, &mut fabric)?;
    check_reach(&plan, &fabric, &lines)?;
    warn_of_joined_hosts(&mut plan, &fabric, &lines);
    let is_scale_up = scale_up_switches(fabric.hosts, fabric.switches.len(), &fabric.links);
    for (switch, is_scale_up) in fabric.switches.iter_mut().zip(is_scale_up) {
        if is_scale_up {
            switch.role = InfragraphRole::ScaleUp;
        }
    }
    annotations::apply(&mut plan, &nodes, &mut fabric)?;
    check_switch_names(&plan, &fabric)?;
    warn_of_unused(&mut plan, &nodes);
    Ok(InfragraphFile {
        fabric,
        warnings: plan.warnings,
    })
}

/// Number of hosts of each server, if all have the same.
fn xpus_per_server(plan: &mut Plan<'_>, nodes: &Nodes) -> u32 {
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    for (instance, copies) in nodes.first.iter().enumerate() {
        let Some(server) = plan.servers.get(&plan.device_of[instance]) else {
            continue;
        };
        if copies.iter().any(|node| *node != NONE) {
            let xpus = if server.is_split {
                server.xpus.len() as u32
            } else {
                1
            };
            sizes
                .entry(xpus)
                .or_insert(plan.document.instances[instance].name.line);
        }
    }
    match (sizes.len(), sizes.first_key_value()) {
        (1, Some((xpus, _))) => *xpus,
        (_, Some((xpus, _))) => {
            let (other, line) = sizes
                .last_key_value()
                .map_or((0, 1), |(other, line)| (*other, *line));
            plan.warn(
                line,
                format!(
                    "servers have {xpus} to {other} hosts, so each host counts as a node of jobs"
                ),
            );
            1
        }
        (_, None) => 1,
    }
}

fn switches(plan: &Plan<'_>, nodes: &Nodes) -> Result<Vec<InfragraphSwitch>, FileError> {
    let mut switches = Vec::new();
    for (instance, copies) in nodes.first.iter().enumerate() {
        if plan.servers.contains_key(&plan.device_of[instance]) {
            continue;
        }
        let own = &plan.document.instances[instance];
        for (index, _) in (0..).zip(copies).filter(|(_, node)| **node != NONE) {
            switches.push(InfragraphSwitch::new(instance_name(
                &own.name.text,
                index,
                own.count,
            )));
        }
    }
    for &(instance, index) in nodes.inner.keys() {
        let (own, device) = (
            &plan.document.instances[instance as usize],
            plan.device_of[instance as usize],
        );
        let name = instance_name(&own.name.text, index, own.count);
        for element in &plan.servers[&device].switches {
            let name = format!("{name}.{}", plan.devices.plain_name(device, *element));
            switches.push(InfragraphSwitch {
                role: InfragraphRole::ScaleUp,
                ..InfragraphSwitch::new(name)
            });
        }
    }
    Ok(switches)
}

/// Rate and delay of the links of a file, and the links without one of them.
struct Quantities<'a> {
    plan: &'a Plan<'a>,
    /// Links of which some have no latency, by line: name and number of cables.
    late: BTreeMap<usize, (String, usize)>,
}

impl Quantities<'_> {
    fn of(&mut self, link: &LinkKind, line: usize) -> Result<(Rate, Span), FileError> {
        let name = shown(&link.name.text);
        let rate = link.rate.or(self.plan.options.link_rate).ok_or_else(|| {
            let reason = match link.is_in_transfers {
                true => "has a bandwidth in transfers per second, whose size the file does not say",
                false => "has no bandwidth",
            };
            let fix = "add `physical: {bandwidth: {gigabits_per_second: 400}}` to it, or set `topology.link-rate`";
            self.plan.fault(link.name.line, format!("link `{name}` {reason}; line {line} uses it"), fix)
        })?;
        Ok((
            rate,
            self.delay(&link.name.text, link.name.line, link.delay),
        ))
    }

    fn delay(&mut self, name: &str, line: usize, delay: Option<Span>) -> Span {
        delay.or(self.plan.options.link_delay).unwrap_or_else(|| {
            self.late.entry(line).or_insert_with(|| (shown(name), 0)).1 += 1;
            USUAL_DELAY
        })
    }
}

/// Adds the links; returns their lines.
fn links(
    plan: &mut Plan<'_>,
    nodes: &Nodes,
    fabric: &mut InfragraphFabric,
) -> Result<Vec<usize>, FileError> {
    let mut quantities = Quantities {
        plan,
        late: BTreeMap::new(),
    };
    let mut lines = Vec::new();
    for cable in &plan.cables {
        let ends = cable.ends.map(|port| nodes.node(plan, port));
        let nodes = ends.map(|(node, _)| node);
        let link = &plan.document.links[cable.link as usize];
        let (rate, delay) = quantities.of(link, cable.line)?;
        fabric.links.push(InfragraphLink {
            is_of_xpu: ends.iter().any(|(_, is_of_xpu)| *is_of_xpu),
            ..InfragraphLink::new(nodes, rate, delay)
        });
        lines.push(cable.line);
    }
    for (instance, copies) in nodes.first.iter().enumerate() {
        let device = plan.device_of[instance];
        let Some(server) = plan.servers.get(&device).filter(|server| server.is_split) else {
            continue;
        };
        let line = plan.devices.line(device);
        for (index, first) in (0..).zip(copies).filter(|(_, first)| **first != NONE) {
            let inner = nodes
                .inner
                .get(&(instance as u32, index))
                .copied()
                .unwrap_or(0);
            for link in &server.links {
                let ends = link.ends.map(|end| match end {
                    Inner::Xpu(xpu) => first + xpu,
                    Inner::Switch(switch) => fabric.hosts + inner + switch,
                });
                let name = format!("within {}", plan.devices.name(device));
                let delay = quantities.delay(&name, line, link.delay);
                fabric.links.push(InfragraphLink {
                    is_of_xpu: true,
                    ..InfragraphLink::new(ends, link.rate, delay)
                });
                lines.push(line);
            }
        }
    }
    let late: Vec<(usize, (String, usize))> = quantities.late.into_iter().collect();
    if let Some((line, (name, _))) = late.first() {
        let count = late.iter().map(|(_, (_, count))| count).sum();
        let cables = counted(count, "cable");
        let message = format!(
            "link `{name}` has no latency: {cables} of such links have {USUAL_DELAY}; `topology.link-delay` sets another delay"
        );
        plan.warn(*line, message);
    }
    Ok(lines)
}

/// Warns of links between hosts. `lines` are those of the links.
fn warn_of_joined_hosts(plan: &mut Plan<'_>, fabric: &InfragraphFabric, lines: &[usize]) {
    let links = fabric.links.iter().zip(lines);
    let mut joined = links.filter(|(link, _)| fabric.joins_hosts(link));
    let Some((first, &line)) = joined.next() else {
        return;
    };
    let [a, b] = first.ends.map(|host| host_name(plan, host));
    let more = match joined.count() {
        0 => String::new(),
        count => format!(", and {count} more links such as this"),
    };
    plan.warn(
        line,
        format!(
            "a link joins the hosts {a} and {b}{more}: hosts with links to other hosts forward packets, between links of the same kind, of xpus or of NICs"
        ),
    );
}

/// Checks that each host has a link, and that the graph connects all hosts.
fn check_reach(
    plan: &Plan<'_>,
    fabric: &InfragraphFabric,
    lines: &[usize],
) -> Result<(), FileError> {
    let mut parts = Parts::new(fabric.hosts as usize + fabric.switches.len());
    let mut is_linked = vec![false; fabric.hosts as usize];
    for [a, b] in fabric.links.iter().map(|link| link.ends) {
        parts.join(a as usize, b as usize);
        for host in [a, b] {
            if let Some(is_linked) = is_linked.get_mut(host as usize) {
                *is_linked = true;
            }
        }
    }
    let line = lines.first().copied().unwrap_or(1);
    if let Some(host) = is_linked.iter().position(|is_linked| !is_linked) {
        let message = format!(
            "host {host}, {}, has no cable",
            host_name(plan, host as u32)
        );
        let fix = "join it to a switch or another host, or set `topology.endpoints` to \"device\", so that the device is one host";
        return Err(plan.fault(line, message, fix));
    }
    let first = parts.root(0);
    match (0..fabric.hosts).find(|host| parts.root(*host as usize) != first) {
        None => Ok(()),
        Some(host) => {
            let message = format!(
                "no path leads from host 0, {}, to host {host}, {}",
                host_name(plan, 0),
                host_name(plan, host)
            );
            Err(plan.fault(line, message, "add the edges that join them"))
        }
    }
}

/// The instance, and the xpu in it, that a host is, for messages.
fn host_name(plan: &Plan<'_>, host: u32) -> String {
    let mut before = 0;
    let mut used: BTreeSet<(u32, u32)> = BTreeSet::new();
    for port in plan.cables.iter().flat_map(|cable| cable.ends) {
        if plan.server(port).is_some() {
            used.insert((port.instance, port.index));
        }
    }
    for (instance, own) in (0..).zip(&plan.document.instances) {
        let device = plan.device_of[instance as usize];
        let Some(server) = plan.servers.get(&device) else {
            continue;
        };
        let copies = (0..own.count)
            .filter(|index| plan.cables.is_empty() || used.contains(&(instance, *index)));
        for index in copies {
            let hosts = if server.is_split {
                server.xpus.len() as u32
            } else {
                1
            };
            if host < before + hosts {
                let copy = format!("{}[{index}]", shown(&own.name.text));
                return match server.is_split {
                    true => {
                        let xpu = server.xpus[(host - before) as usize];
                        format!("`{copy}.{}`", plan.devices.element_name(device, xpu))
                    }
                    false => format!("`{copy}`"),
                };
            }
            before += hosts;
        }
    }
    String::new()
}

fn check_switch_names(plan: &Plan<'_>, fabric: &InfragraphFabric) -> Result<(), FileError> {
    let mut names = BTreeSet::new();
    match fabric
        .switches
        .iter()
        .find(|switch| !names.insert(&switch.name))
    {
        None => Ok(()),
        Some(switch) => {
            let message = format!(
                "two switches are called `{}`, from their instances and indices",
                shown(&switch.name)
            );
            let line = plan.document.instances[0].name.line;
            Err(plan.fault(line, message, "rename one of the instances"))
        }
    }
}

/// Warns of the content of servers that is not simulated, once for each kind.
fn warn_of_unused(plan: &mut Plan<'_>, nodes: &Nodes) {
    let mut all = Unused::default();
    let mut line = None;
    for (instance, copies) in nodes.first.iter().enumerate() {
        let device = plan.device_of[instance];
        let Some(server) = plan.servers.get(&device) else {
            continue;
        };
        let copies = copies.iter().filter(|node| **node != NONE).count() as u64;
        if copies == 0 {
            continue;
        }
        line.get_or_insert(plan.devices.line(device));
        for (kind, count) in &server.unused.elements {
            *all.elements.entry(*kind).or_insert(0) += count * copies;
        }
        if !server.is_split {
            *all.elements.entry(ComponentKind::Switch).or_insert(0) +=
                server.switches.len() as u64 * copies;
            all.measured_edges += server.links.len() as u64 * copies;
        }
        all.measured_edges += server.unused.measured_edges * copies;
        all.xpu_edges += server.unused.xpu_edges * copies;
    }
    let line = line.unwrap_or(1);
    for (kind, count) in all.elements.into_iter().filter(|(_, count)| *count > 0) {
        let reason = match kind {
            ComponentKind::Switch => {
                "only scale-up switches are, which links with a bandwidth join to xpus"
            }
            _ => "packets do not reach them",
        };
        let components = counted(count as usize, "component");
        plan.warn(
            line,
            format!(
                "{components} of kind `{}` within servers are not simulated: {reason}",
                kind.name()
            ),
        );
    }
    if all.measured_edges > 0 {
        let edges = counted(all.measured_edges as usize, "edge");
        plan.warn(
            line,
            format!(
                "the bandwidth and latency of {edges} within servers, as of PCIe, are not used"
            ),
        );
    }
    if all.xpu_edges > 0 {
        let edges = counted(all.xpu_edges as usize, "edge");
        plan.warn(
            line,
            format!(
                "{edges} between xpus within servers are not simulated: they have no bandwidth"
            ),
        );
    }
}
