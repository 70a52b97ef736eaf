//! Servers: devices with xpus or NICs, and the parts of them that packets cross.

use super::device::{Devices, InnerEdge};
use super::document::ComponentKind;
use crate::text::{Source, shown};
use clearway_units::{Rate, Span};
use clearway_workload::FileError;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of steps of the search for the NICs near to xpus.
const MOST_STEPS: u64 = 1 << 28;

/// A node within a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Inner {
    /// An xpu, by its place among the xpus of the device.
    Xpu(u32),
    /// A scale-up switch, by its place among those of the device.
    Switch(u32),
}

/// A link between two xpus or scale-up switches.
#[derive(Debug)]
pub(super) struct InnerLink {
    pub(super) ends: [Inner; 2],
    pub(super) rate: Rate,
    pub(super) delay: Option<Span>,
}

/// What a server has within it that is not simulated.
#[derive(Debug, Default)]
pub(super) struct Unused {
    /// Number of elements of each kind.
    pub(super) elements: BTreeMap<ComponentKind, u64>,
    /// Number of edges with a bandwidth or latency.
    pub(super) measured_edges: u64,
    /// Number of edges between two xpus, without a bandwidth.
    pub(super) xpu_edges: u64,
}

/// A device with xpus or NICs.
#[derive(Debug)]
pub(super) struct Server {
    /// Elements that are xpus.
    pub(super) xpus: Vec<u32>,
    /// Elements that are scale-up switches.
    pub(super) switches: Vec<u32>,
    /// Links of xpus and scale-up switches with each other.
    pub(super) links: Vec<InnerLink>,
    /// Place of the xpu of each element with a cable.
    owners: BTreeMap<u32, u32>,
    kinds: Vec<ComponentKind>,
    /// True if its xpus are hosts, false if it is one host.
    pub(super) is_split: bool,
    pub(super) unused: Unused,
}

impl Server {
    /// The server `device`, whose elements `used` have cables.
    pub(super) fn new(
        source: Source<'_>,
        devices: &Devices<'_>,
        device: usize,
        used: &BTreeSet<u32>,
    ) -> Result<Self, FileError> {
        let too_large = || {
            let message = format!(
                "device `{}` has too many edges",
                shown(devices.name(device))
            );
            let fault = source.fault(devices.line(device), None, message);
            fault.fix("describe fewer components, or set `topology.endpoints` to \"device\"")
        };
        let kinds = devices.kinds(device);
        let edges = devices.all_edges(device).ok_or_else(too_large)?;
        let of_kind = |kind| {
            let elements =
                (0..devices.len(device)).filter(|element| kinds[*element as usize] == kind);
            elements.collect::<Vec<u32>>()
        };
        let xpus = of_kind(ComponentKind::Xpu);
        let is_scale_up = scale_up(&kinds, &edges);
        let mut switches = of_kind(ComponentKind::Switch);
        switches.retain(|switch| is_scale_up[*switch as usize]);
        let steps = (xpus.len() as u64 + 1) * (edges.len() as u64 + used.len() as u64 + 1);
        if steps > MOST_STEPS {
            return Err(too_large());
        }
        let mut server = Self {
            owners: BTreeMap::new(),
            links: Vec::new(),
            is_split: false,
            unused: Unused::default(),
            xpus,
            switches,
            kinds,
        };
        server.add_links(&edges);
        server.find_owners(&edges, &is_scale_up, used);
        Ok(server)
    }

    /// The kind of an element.
    pub(super) fn kind(&self, element: u32) -> ComponentKind {
        self.kinds[element as usize]
    }

    /// Place of the xpu that an element with a cable belongs to.
    pub(super) fn owner(&self, element: u32) -> Option<u32> {
        self.owners.get(&element).copied()
    }

    /// Place of a scale-up switch among those of the device.
    pub(super) fn switch(&self, element: u32) -> Option<u32> {
        self.switches
            .binary_search(&element)
            .ok()
            .map(|place| place as u32)
    }

    fn inner(&self, element: u32) -> Option<Inner> {
        let xpu = self.xpus.binary_search(&element).ok();
        let xpu = xpu.map(|place| Inner::Xpu(place as u32));
        xpu.or_else(|| self.switch(element).map(Inner::Switch))
    }

    /// Adds the links of xpus and scale-up switches, and counts what is not simulated.
    fn add_links(&mut self, edges: &[InnerEdge]) {
        let mut places = BTreeMap::new();
        for edge in edges {
            let ends = edge.ends.map(|end| self.inner(end));
            let measured = edge.rate.is_some() || edge.delay.is_some() || edge.is_in_transfers;
            match (ends, edge.rate) {
                ([Some(Inner::Xpu(_)), Some(Inner::Xpu(_))], None) => self.unused.xpu_edges += 1,
                ([Some(a), Some(b)], Some(rate)) => {
                    let link = InnerLink {
                        ends: match (a, b) {
                            // A link of two xpus keeps the direction of its edge, as those between instances do.
                            (Inner::Xpu(_), Inner::Xpu(_)) => [a, b],
                            _ => [a.min(b), a.max(b)],
                        },
                        rate,
                        delay: edge.delay,
                    };
                    let pair = [a.min(b), a.max(b)];
                    match places.get(&pair) {
                        Some(&place) => self.links[place] = link,
                        None => {
                            places.insert(pair, self.links.len());
                            self.links.push(link);
                        }
                    }
                }
                _ => self.unused.measured_edges += u64::from(measured),
            }
        }
        let is_used = |element: u32, kind| match kind {
            ComponentKind::Xpu | ComponentKind::Nic | ComponentKind::Port => true,
            ComponentKind::Switch => self.switch(element).is_some(),
            _ => false,
        };
        let mut unused = BTreeMap::new();
        for (element, kind) in (0..).zip(&self.kinds) {
            if !is_used(element, *kind) {
                *unused.entry(*kind).or_insert(0) += 1;
            }
        }
        self.unused.elements = unused;
    }

    /// Gives each element with a cable to an xpu: the nearest, and of equally near ones the one with the fewest so far.
    fn find_owners(&mut self, edges: &[InnerEdge], is_scale_up: &[bool], used: &BTreeSet<u32>) {
        let mut neighbours: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for [a, b] in edges.iter().map(|edge| edge.ends) {
            if !is_scale_up[a as usize] && !is_scale_up[b as usize] {
                neighbours.entry(a).or_default().push(b);
                neighbours.entry(b).or_default().push(a);
            }
        }
        let distances: Vec<BTreeMap<u32, u32>> = self
            .xpus
            .iter()
            .map(|xpu| self.distances(*xpu, &neighbours, used))
            .collect();
        let mut loads = vec![0u32; self.xpus.len()];
        for &element in used {
            let own = self.xpus.binary_search(&element).ok();
            let nearest = || {
                let distance =
                    |xpu: &usize| distances[*xpu].get(&element).copied().unwrap_or(u32::MAX);
                (0..self.xpus.len()).min_by_key(|xpu| (distance(xpu), loads[*xpu]))
            };
            if let Some(xpu) = own.or_else(nearest) {
                loads[xpu] += u32::from(own.is_none());
                self.owners.insert(element, xpu as u32);
            }
        }
    }

    /// Number of edges from an xpu to each used element, on ways that cross no other xpu.
    fn distances(
        &self,
        xpu: u32,
        neighbours: &BTreeMap<u32, Vec<u32>>,
        used: &BTreeSet<u32>,
    ) -> BTreeMap<u32, u32> {
        let mut seen = vec![false; self.kinds.len()];
        seen[xpu as usize] = true;
        let mut distances = BTreeMap::new();
        let mut front = vec![xpu];
        for distance in 1.. {
            let mut next = Vec::new();
            for at in front.iter().flat_map(|at| neighbours.get(at)).flatten() {
                if std::mem::replace(&mut seen[*at as usize], true)
                    || self.kind(*at) == ComponentKind::Xpu
                {
                    continue;
                }
                if used.contains(at) {
                    distances.insert(*at, distance);
                }
                next.push(*at);
            }
            if next.is_empty() {
                break;
            }
            front = next;
        }
        distances
    }
}

/// For each element, true if it is a switch that links with a bandwidth join to xpus, and that has no neighbours but xpus and switches.
fn scale_up(kinds: &[ComponentKind], edges: &[InnerEdge]) -> Vec<bool> {
    let mut has_xpu = vec![false; kinds.len()];
    let mut has_others = vec![false; kinds.len()];
    for edge in edges {
        let [a, b] = edge.ends;
        for (own, other) in [(a, b), (b, a)] {
            match kinds[other as usize] {
                ComponentKind::Xpu => has_xpu[own as usize] |= edge.rate.is_some(),
                ComponentKind::Switch => {}
                _ => has_others[own as usize] = true,
            }
        }
    }
    let switches = (0..kinds.len()).map(|element| {
        kinds[element] == ComponentKind::Switch && has_xpu[element] && !has_others[element]
    });
    switches.collect()
}
