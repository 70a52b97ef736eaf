//! Numbers of hosts and switches.

use super::document::ComponentKind;
use super::plan::{Plan, Port};
use crate::text::shown;
use clearway_workload::{FileError, counted};
use std::collections::BTreeMap;

/// No node: a copy of an instance without cables.
pub(super) const NONE: u32 = u32::MAX;

/// Numbers of the nodes of a file.
pub(super) struct Nodes {
    /// For each instance and copy the first of its hosts, or its switch; switches are counted from 0.
    pub(super) first: Vec<Vec<u32>>,
    /// For each instance and copy the first of the scale-up switches within it, counted from 0.
    pub(super) inner: BTreeMap<(u32, u32), u32>,
    /// Number of hosts.
    pub(super) hosts: u32,
}

impl Nodes {
    /// Switch of a copy of an instance, counted from 0.
    pub(super) fn switch(&self, plan: &Plan<'_>, instance: usize, index: u32) -> Option<usize> {
        let is_server = plan.servers.contains_key(&plan.device_of[instance]);
        let switch = *self.first[instance].get(index as usize)?;
        (!is_server && switch != NONE).then_some(switch as usize)
    }

    /// The node of a port, and true if it is a port of an xpu.
    pub(super) fn node(&self, plan: &Plan<'_>, port: Port) -> (u32, bool) {
        let first = self.first[port.instance as usize][port.index as usize];
        let Some(server) = plan.server(port) else {
            return (self.hosts + first, false);
        };
        let is_of_nic = matches!(
            server.kind(port.element),
            ComponentKind::Nic | ComponentKind::Port
        );
        match server.switch(port.element) {
            _ if !server.is_split => (first, !is_of_nic),
            Some(switch) => {
                let inner = self.inner.get(&(port.instance, port.index));
                (self.hosts + inner.copied().unwrap_or(0) + switch, false)
            }
            None => (first + server.owner(port.element).unwrap_or(0), !is_of_nic),
        }
    }
}

/// Numbers hosts and switches in the order of instances and their copies, scale-up switches within servers after all others.
pub(super) fn number(plan: &mut Plan<'_>) -> Result<Nodes, FileError> {
    let instances = &plan.document.instances;
    let mut first: Vec<Vec<u32>> = instances
        .iter()
        .map(|own| vec![NONE; own.count as usize])
        .collect();
    for port in plan.cables.iter().flat_map(|cable| cable.ends) {
        first[port.instance as usize][port.index as usize] = 0;
    }
    let (mut hosts, mut switches) = (0u32, 0);
    let mut inner = Vec::new();
    let mut unlinked = None;
    for (instance, copies) in first.iter_mut().enumerate() {
        let server = plan.servers.get(&plan.device_of[instance]);
        for (index, node) in (0..).zip(copies.iter_mut()) {
            let is_alone = plan.cables.is_empty() && server.is_some_and(|server| server.is_split);
            if *node == NONE && !is_alone {
                unlinked.get_or_insert((instance, index, 0)).2 += 1;
                continue;
            }
            match server {
                None => {
                    *node = switches;
                    switches += 1;
                }
                Some(server) => {
                    *node = hosts;
                    let xpus = if server.is_split {
                        server.xpus.len() as u32
                    } else {
                        1
                    };
                    hosts = hosts.saturating_add(xpus);
                    if server.is_split && !server.switches.is_empty() {
                        inner.push(((instance as u32, index), server.switches.len() as u32));
                    }
                }
            }
        }
    }
    if hosts == 0 || hosts > 1 << 23 {
        let line = instances[0].name.line;
        return Err(match hosts {
            0 => plan.fault(
                line,
                "no host has a cable: hosts are devices with an `xpu` or a `nic`",
                "join them to switches or to each other with `edges` of the infrastructure, or xpus within a device by links with a bandwidth",
            ),
            _ => plan.fault(line, "more than 8388608 hosts", "give smaller counts"),
        });
    }
    let inner = inner.into_iter().map(|(copy, count)| {
        let own = switches;
        switches += count;
        (copy, own)
    });
    let nodes = Nodes {
        inner: inner.collect(),
        first,
        hosts,
    };
    if let Some((instance, index, count)) = unlinked {
        let own = &plan.document.instances[instance].name;
        let (name, line) = (shown(&own.text), own.line);
        let copies = counted(count, "instance");
        plan.warn(line, format!("{copies} left out, the first is `{name}[{index}]`: no edge joins them to another instance"));
    }
    Ok(nodes)
}
