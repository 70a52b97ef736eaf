//! Edges of the infrastructure, cable by cable, and the devices that are hosts or switches.

use super::device::{Devices, Pairs, no_link};
use super::document::{ComponentKind, Document, End, Placed};
use super::endpoint::{Indices, indices, segments};
use super::model::{InfragraphHosts, InfragraphOptions};
use super::server::Server;
use crate::text::{Source, one_of, shown};
use clearway_workload::{FileError, FileWarning, counted};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of instances.
const MOST_INSTANCES: u64 = 1 << 22;
/// Maximum number of cables.
const MOST_CABLES: u64 = 1 << 22;

/// A component of one copy of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Port {
    pub(super) instance: u32,
    /// Number of the copy.
    pub(super) index: u32,
    pub(super) element: u32,
}

/// A cable between two instances.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedCable {
    pub(super) ends: [Port; 2],
    /// Place of its link in the infrastructure.
    pub(super) link: u32,
    pub(super) line: usize,
}

/// A file whose endpoints are known.
pub(super) struct Plan<'a> {
    pub(super) source: Source<'a>,
    pub(super) document: &'a Document,
    pub(super) devices: &'a Devices<'a>,
    pub(super) options: &'a InfragraphOptions,
    instances: BTreeMap<&'a str, usize>,
    /// Device of each instance.
    pub(super) device_of: Vec<usize>,
    /// Devices with xpus or NICs.
    pub(super) servers: BTreeMap<usize, Server>,
    pub(super) cables: Vec<PlacedCable>,
    pub(super) warnings: Vec<FileWarning>,
}

impl<'a> Plan<'a> {
    /// Reads the edges of the infrastructure.
    pub(super) fn new(
        source: Source<'a>,
        document: &'a Document,
        devices: &'a Devices<'a>,
        options: &'a InfragraphOptions,
    ) -> Result<Self, FileError> {
        let instances = &document.instances;
        let device_of = instances.iter().map(|own| devices.index_of(&own.device));
        let mut plan = Self {
            instances: instances
                .iter()
                .map(|own| own.name.text.as_str())
                .zip(0..)
                .collect(),
            device_of: device_of.collect::<Result<_, _>>()?,
            source,
            document,
            devices,
            options,
            servers: BTreeMap::new(),
            cables: Vec::new(),
            warnings: Vec::new(),
        };
        plan.check_count()?;
        plan.read_edges()?;
        plan.find_servers()?;
        plan.drop_other_cables();
        plan.split_servers()?;
        Ok(plan)
    }

    pub(super) fn fault(
        &self,
        line: usize,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> FileError {
        self.source.fault(line, None, message).fix(fix)
    }

    pub(super) fn warn(&mut self, line: usize, message: String) {
        self.warnings.push(FileWarning {
            file: self.source.file.into(),
            line,
            message,
        });
    }

    fn check_count(&self) -> Result<(), FileError> {
        let mut count = 0;
        for instance in &self.document.instances {
            count += u64::from(instance.count);
            if count > MOST_INSTANCES {
                let message = format!("more than {MOST_INSTANCES} instances of devices");
                return Err(self.fault(instance.name.line, message, "give smaller counts"));
            }
        }
        Ok(())
    }

    /// The instance with a name.
    pub(super) fn instance(&self, name: &str, text: &Placed) -> Result<usize, FileError> {
        self.instances.get(name).copied().ok_or_else(|| {
            let instances = self.document.instances.iter();
            let names: Vec<&str> = instances
                .map(|own| own.name.text.as_str())
                .take(8)
                .collect();
            let message = format!("there is no instance `{}`", shown(name));
            let fault = self.source.fault(text.line, Some(text.column), message);
            fault.fix(format!("use {}, or add it to `instances`", one_of(&names)))
        })
    }

    /// Instance, copies of it and elements that an endpoint selects.
    fn select(&self, end: &End) -> Result<(usize, Indices, Vec<u32>), FileError> {
        let owner = end.owner.as_ref().unwrap_or(&end.component);
        let parts = segments(self.source, owner)?;
        let [segment] = parts[..] else {
            let message = format!("`{}` is not the name of an instance", shown(&owner.text));
            let fault = self.source.fault(owner.line, Some(owner.column), message);
            return Err(fault
                .fix("write the name of an instance with a slice, and the rest in `component`"));
        };
        let instance = self.instance(segment.name, owner)?;
        let count = self.document.instances[instance].count;
        let copies = indices(self.source, owner, segment, count)?;
        let elements = self
            .devices
            .select(self.device_of[instance], None, &end.component)?;
        Ok((instance, copies, elements))
    }

    fn read_edges(&mut self) -> Result<(), FileError> {
        let links = self
            .document
            .links
            .iter()
            .map(|link| link.name.text.as_str());
        let links: BTreeMap<&str, u32> = links.zip(0..).collect();
        let mut known = FxHashMap::default();
        let (mut cut, mut again, mut looped) = (None, None, None);
        for edge in &self.document.edges {
            let Some(&link) = links.get(edge.link.text.as_str()) else {
                return Err(no_link(self.source, &edge.link, "the infrastructure"));
            };
            let [a, b] = [self.select(&edge.ends[0])?, self.select(&edge.ends[1])?];
            let len = |end: &(usize, Indices, Vec<u32>)| u64::from(end.1.len) * end.2.len() as u64;
            let pairs = Pairs::new(self.source, edge, (len(&a), len(&b)), a == b)?;
            if (self.cables.len() as u64).saturating_add(pairs.len()) > MOST_CABLES {
                let message = format!("more than {MOST_CABLES} cables");
                return Err(self.fault(edge.line, message, "join fewer endpoints"));
            }
            if pairs.is_cut() {
                cut.get_or_insert((edge.line, 0)).1 += 1;
            }
            for (from, to) in pairs.iter() {
                let ends = [port(&a, from), port(&b, to)];
                if ends[0] == ends[1] {
                    continue;
                }
                if (ends[0].instance, ends[0].index) == (ends[1].instance, ends[1].index) {
                    looped.get_or_insert((edge.line, 0, ends[0])).1 += 1;
                    continue;
                }
                let cable = PlacedCable {
                    ends,
                    link,
                    line: edge.line,
                };
                let pair = [ends[0].min(ends[1]), ends[0].max(ends[1])];
                match known.get(&pair) {
                    Some(&place) => {
                        let place: usize = place;
                        self.cables[place].link = link;
                        again.get_or_insert((edge.line, 0)).1 += 1;
                    }
                    None => {
                        known.insert(pair, self.cables.len());
                        self.cables.push(cable);
                    }
                }
            }
        }
        self.warn_of_edges(cut, again);
        if let Some((line, count, port)) = looped {
            let cables = counted(count, "cable");
            let name = self.copy_name(port);
            self.warn(
                line,
                format!("{cables} from an instance to itself, the first of {name}, not used"),
            );
        }
        Ok(())
    }

    fn warn_of_edges(&mut self, cut: Option<(usize, usize)>, again: Option<(usize, usize)>) {
        if let Some((line, count)) = cut {
            let edges = counted(count, "edge");
            self.warn(
                line,
                format!("`one2one` of {edges} joins lists of different length: the rest of the longer list has no cable there"),
            );
        }
        if let Some((line, count)) = again {
            let cables = counted(count, "cable");
            self.warn(
                line,
                format!("{cables} between endpoints that an earlier edge joins: each pair of endpoints has one cable, with the last link"),
            );
        }
    }

    /// A copy of an instance, as in `host[3]`.
    pub(super) fn copy_name(&self, port: Port) -> String {
        let name = &self.document.instances[port.instance as usize].name.text;
        format!("`{}[{}]`", shown(name), port.index)
    }

    /// The server that a port is of; `None` if it is of a switch.
    pub(super) fn server(&self, port: Port) -> Option<&Server> {
        self.servers.get(&self.device_of[port.instance as usize])
    }

    fn find_servers(&mut self) -> Result<(), FileError> {
        let mut used: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for &device in &self.device_of {
            let is_server = [ComponentKind::Xpu, ComponentKind::Nic];
            if is_server.iter().any(|kind| self.devices.has(device, *kind)) {
                used.entry(device).or_default();
            }
        }
        for port in self.cables.iter().flat_map(|cable| cable.ends) {
            if let Some(used) = used.get_mut(&self.device_of[port.instance as usize]) {
                used.insert(port.element);
            }
        }
        for (device, used) in used {
            let server = Server::new(self.source, self.devices, device, &used)?;
            self.servers.insert(device, server);
        }
        Ok(())
    }

    /// Removes the cables at components of servers that have no packets, with a warning.
    fn drop_other_cables(&mut self) {
        let is_simulated = |port: &Port| {
            self.server(*port)
                .is_none_or(|server| match server.kind(port.element) {
                    ComponentKind::Xpu | ComponentKind::Nic | ComponentKind::Port => true,
                    ComponentKind::Switch => server.switch(port.element).is_some(),
                    _ => false,
                })
        };
        let (kept, dropped): (Vec<PlacedCable>, Vec<PlacedCable>) = self
            .cables
            .iter()
            .partition(|cable| cable.ends.iter().all(is_simulated));
        let Some(first) = dropped.first() else {
            return;
        };
        let end = first
            .ends
            .iter()
            .find(|end| !is_simulated(end))
            .unwrap_or(&first.ends[0]);
        let device = self.device_of[end.instance as usize];
        let name = shown(&self.devices.element_name(device, end.element));
        let cables = counted(dropped.len(), "cable");
        let message = format!(
            "{cables} not used, the first at `{name}` of {}: only xpus, NICs and ports of servers have traffic",
            self.copy_name(*end)
        );
        let line = first.line;
        self.cables = kept;
        self.warn(line, message);
    }

    /// Decides for each server whether its xpus are hosts.
    fn split_servers(&mut self) -> Result<(), FileError> {
        // Xpus with a cable, of each copy of a server with a cable.
        let mut linked: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
        for port in self.cables.iter().flat_map(|cable| cable.ends) {
            if let Some(server) = self.server(port) {
                let xpus = linked.entry((port.instance, port.index)).or_default();
                if server.switch(port.element).is_none() {
                    xpus.extend(server.owner(port.element));
                }
            }
        }
        let is_alone = self.cables.is_empty();
        let mut missing: BTreeMap<usize, (u32, u32, u32)> = BTreeMap::new();
        for (&(instance, index), xpus) in &linked {
            let device = self.device_of[instance as usize];
            let all = self.servers[&device].xpus.len() as u32;
            if let Some(xpu) = (0..all).find(|xpu| !xpus.contains(xpu)) {
                missing.entry(device).or_insert((instance, index, xpu));
            }
        }
        let mut warnings = Vec::new();
        for (&device, server) in &mut self.servers {
            let missing = missing.get(&device);
            server.is_split = match self.options.hosts {
                _ if server.xpus.is_empty() => false,
                InfragraphHosts::Device => false,
                InfragraphHosts::Xpu => true,
                InfragraphHosts::Auto if is_alone => !server.links.is_empty(),
                InfragraphHosts::Auto => missing.is_none(),
            };
            if server.is_split
                || server.xpus.len() < 2
                || self.options.hosts == InfragraphHosts::Device
            {
                continue;
            }
            let name = shown(self.devices.name(device));
            let why = missing.map_or_else(String::new, |(instance, index, xpu)| {
                let instance = shown(&self.document.instances[*instance as usize].name.text);
                format!(": xpu {xpu} of `{instance}[{index}]` has no NIC with a cable")
            });
            warnings.push((
                self.devices.line(device),
                format!(
                    "the {} xpus of `{name}` are one host{why}",
                    server.xpus.len()
                ),
            ));
        }
        for (line, message) in warnings {
            self.warn(line, message);
        }
        Ok(())
    }
}

/// The port at a place in the list that an endpoint selects: all of one copy, then those of the next.
fn port((instance, copies, elements): &(usize, Indices, Vec<u32>), place: u64) -> Port {
    let len = elements.len() as u64;
    Port {
        instance: *instance as u32,
        index: copies.at((place / len) as u32),
        element: elements[(place % len) as usize],
    }
}
