//! Components of devices, counted out: each one of a component, also within devices of devices, is an element with a number.

use super::document::{ComponentKind, Device, Document, Edge, End, Placed, Scheme};
use super::endpoint::{indices, segments};
use crate::text::{Source, shown};
use clearway_units::{Rate, Span};
use clearway_workload::FileError;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of elements of a device, and of edges within the devices of a file.
const MOST: u64 = 1 << 22;
/// Maximum number of elements that all endpoints of a file select.
const MOST_SELECTED: u64 = 1 << 24;
/// Maximum depth of devices within devices.
const DEEPEST: usize = 16;

/// A component of a device, counted out.
#[derive(Debug)]
struct Slot {
    kind: ComponentKind,
    count: u32,
    /// Number of the first element.
    first: u32,
    /// Elements of each one: 1, or as many as the device has.
    size: u32,
    /// The device of a component that is a device.
    device: Option<usize>,
}

/// An edge within a device, between two elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct InnerEdge {
    pub(super) ends: [u32; 2],
    pub(super) rate: Option<Rate>,
    pub(super) delay: Option<Span>,
    /// True if the file gives transfers per second.
    pub(super) is_in_transfers: bool,
}

/// The devices of a file.
#[derive(Debug)]
pub(super) struct Devices<'a> {
    source: Source<'a>,
    devices: &'a [Device],
    names: BTreeMap<&'a str, usize>,
    /// Components of each device by name.
    components: Vec<BTreeMap<&'a str, usize>>,
    /// Links of each device by name.
    links: Vec<BTreeMap<&'a str, usize>>,
    slots: Vec<Vec<Slot>>,
    /// Number of elements of each device.
    elements: Vec<u32>,
    /// Kinds of the elements of each device.
    held: Vec<BTreeSet<ComponentKind>>,
    /// Devices, each after the devices within it.
    order: Vec<usize>,
    /// True for each device with edges, also within devices of it.
    has_edges: Vec<bool>,
    /// Number of elements that endpoints have selected so far.
    selected: Cell<u64>,
    /// Edges of each device without those within its devices.
    edges: Vec<Vec<InnerEdge>>,
}

impl<'a> Devices<'a> {
    /// Counts out the devices of a file.
    pub(super) fn new(source: Source<'a>, document: &'a Document) -> Result<Self, FileError> {
        let devices = document.devices.as_slice();
        let names = devices
            .iter()
            .map(|device| device.name.text.as_str())
            .zip(0..);
        let components = devices.iter().map(|device| {
            let names = device.components.iter().map(|own| own.name.text.as_str());
            names.zip(0..).collect()
        });
        let links = devices.iter().map(|device| {
            let names = device.links.iter().map(|own| own.name.text.as_str());
            names.zip(0..).collect()
        });
        let mut all = Self {
            components: components.collect(),
            links: links.collect(),
            source,
            devices,
            names: names.collect(),
            slots: devices.iter().map(|_| Vec::new()).collect(),
            elements: vec![0; devices.len()],
            held: vec![BTreeSet::new(); devices.len()],
            order: Vec::new(),
            has_edges: vec![false; devices.len()],
            selected: Cell::new(0),
            edges: Vec::new(),
        };
        let mut is_done = vec![false; devices.len()];
        for device in 0..devices.len() {
            all.count_out(device, &mut is_done, 0)?;
        }
        let mut count = 0;
        for (index, device) in devices.iter().enumerate() {
            let mut edges = Vec::new();
            for edge in &device.edges {
                all.expand(index, edge, &mut edges, &mut count)?;
            }
            all.edges.push(edges);
        }
        for &device in &all.order {
            let mut inner = all.slots[device].iter().filter_map(|slot| slot.device);
            let own = !all.edges[device].is_empty();
            all.has_edges[device] = own || inner.any(|inner| all.has_edges[inner]);
        }
        Ok(all)
    }

    fn count_out(
        &mut self,
        device: usize,
        is_done: &mut [bool],
        depth: usize,
    ) -> Result<(), FileError> {
        if is_done[device] {
            return Ok(());
        }
        let devices = self.devices;
        if depth > DEEPEST {
            let name = &devices[device].name;
            let message = format!(
                "device `{}` is within itself, or more than {DEEPEST} devices deep",
                shown(&name.text)
            );
            let fault = self.source.fault(name.line, Some(name.column), message);
            return Err(fault.fix("let no device contain itself"));
        }
        let (mut slots, mut elements) = (Vec::new(), 0);
        let mut held = BTreeSet::new();
        for component in &devices[device].components {
            let name = &component.name;
            let inner = match component.kind {
                ComponentKind::Device => {
                    let inner = self.index_of(name)?;
                    self.count_out(inner, is_done, depth + 1)?;
                    Some(inner)
                }
                _ => None,
            };
            let size = inner.map_or(1, |inner| self.elements[inner]);
            if component.count > 0 {
                let of_inner = inner.map(|inner| self.held[inner].clone());
                held.extend(of_inner.unwrap_or_else(|| BTreeSet::from([component.kind])));
            }
            slots.push(Slot {
                kind: component.kind,
                count: component.count,
                first: elements as u32,
                size,
                device: inner,
            });
            elements += u64::from(component.count) * u64::from(size);
            if elements > MOST {
                let device = shown(&devices[device].name.text);
                let message = format!("device `{device}` has more than {MOST} components");
                let fault = self.source.fault(name.line, Some(name.column), message);
                return Err(fault.fix("give smaller counts"));
            }
        }
        self.slots[device] = slots;
        self.elements[device] = elements as u32;
        self.held[device] = held;
        self.order.push(device);
        is_done[device] = true;
        Ok(())
    }

    /// The device with a name.
    pub(super) fn index_of(&self, name: &Placed) -> Result<usize, FileError> {
        let known = self.names.get(name.text.as_str()).copied();
        known.ok_or_else(|| {
            let message = format!("there is no device `{}`", shown(&name.text));
            let fault = self.source.fault(name.line, Some(name.column), message);
            fault.fix("add it to `devices` of the infrastructure, or name one of them")
        })
    }

    /// The name of a device.
    pub(super) fn name(&self, device: usize) -> &'a str {
        &self.devices[device].name.text
    }

    /// The line of a device.
    pub(super) fn line(&self, device: usize) -> usize {
        self.devices[device].name.line
    }

    /// Number of elements of a device.
    pub(super) fn len(&self, device: usize) -> u32 {
        self.elements[device]
    }

    /// True if a device has a component of a kind, also within devices of it.
    pub(super) fn has(&self, device: usize, kind: ComponentKind) -> bool {
        self.held[device].contains(&kind)
    }

    /// The elements that an endpoint selects.
    pub(super) fn select(
        &self,
        device: usize,
        owner: Option<&Placed>,
        component: &Placed,
    ) -> Result<Vec<u32>, FileError> {
        let mut at = device;
        let mut selected = vec![0u32];
        let mut is_device = true;
        for text in owner.into_iter().chain([component]) {
            for (place, segment) in segments(self.source, text)?.into_iter().enumerate() {
                let found = self.components[at].get(segment.name).copied();
                let Some(slot) = found.filter(|_| is_device) else {
                    // InfraGraph lets an endpoint begin with the name of its device.
                    if place == 0 && is_device && segment.name == self.name(device) && at == device
                    {
                        continue;
                    }
                    return Err(self.no_component(at, text, segment.name, is_device));
                };
                let slot = &self.slots[at][slot];
                let chosen = indices(self.source, text, segment, slot.count)?;
                let count = selected.len() as u64 * u64::from(chosen.len);
                self.selected.set(self.selected.get().saturating_add(count));
                if count > MOST || self.selected.get() > MOST_SELECTED {
                    return Err(self.too_many(text));
                }
                selected = selected
                    .iter()
                    .flat_map(|base| {
                        chosen
                            .iter()
                            .map(move |index| base + slot.first + index * slot.size)
                    })
                    .collect();
                is_device = slot.device.is_some();
                at = slot.device.unwrap_or(at);
            }
        }
        if is_device {
            let message = format!("`{}` is a device, not a component", shown(&component.text));
            let fault = self
                .source
                .fault(component.line, Some(component.column), message);
            return Err(fault.fix("add the component within it, as in `cx5[0].port[0]`"));
        }
        Ok(selected)
    }

    fn no_component(&self, device: usize, text: &Placed, name: &str, is_device: bool) -> FileError {
        let owner = shown(self.name(device));
        let components = self.devices[device].components.iter();
        let names: Vec<&str> = components
            .map(|own| own.name.text.as_str())
            .take(8)
            .collect();
        let (message, fix) = match is_device {
            true => (
                format!("device `{owner}` has no component `{}`", shown(name)),
                match names.is_empty() {
                    true => format!("add `components` to device `{owner}`"),
                    false => format!("use {}", crate::text::one_of(&names)),
                },
            ),
            false => (
                format!(
                    "`{}` names a part of a component that is not a device",
                    shown(&text.text)
                ),
                "end the endpoint at the component".to_owned(),
            ),
        };
        self.source
            .fault(text.line, Some(text.column), message)
            .fix(fix)
    }

    fn too_many(&self, text: &Placed) -> FileError {
        let message = format!(
            "too many components are selected, the last by `{}`",
            shown(&text.text)
        );
        let fault = self.source.fault(text.line, Some(text.column), message);
        fault.fix("select fewer with slices, or give smaller counts")
    }

    /// Adds the edges between the elements that an edge of a device selects.
    fn expand(
        &self,
        device: usize,
        edge: &Edge,
        edges: &mut Vec<InnerEdge>,
        count: &mut u64,
    ) -> Result<(), FileError> {
        let link = self.links[device].get(edge.link.text.as_str());
        let Some(link) = link.map(|link| &self.devices[device].links[*link]) else {
            let owner = format!("device `{}`", shown(self.name(device)));
            return Err(no_link(self.source, &edge.link, &owner));
        };
        let select = |end: &End| self.select(device, end.owner.as_ref(), &end.component);
        let [a, b] = [select(&edge.ends[0])?, select(&edge.ends[1])?];
        let pairs = Pairs::new(self.source, edge, (a.len() as u64, b.len() as u64), a == b)?;
        *count = count.saturating_add(pairs.len());
        if *count > MOST {
            return Err(self.too_many(&edge.ends[0].component));
        }
        for (from, to) in pairs.iter() {
            let ends = [a[from as usize], b[to as usize]];
            if ends[0] != ends[1] {
                edges.push(InnerEdge {
                    ends,
                    rate: link.rate,
                    delay: link.delay,
                    is_in_transfers: link.is_in_transfers,
                });
            }
        }
        Ok(())
    }

    /// All edges within a device, also within devices of it; `None` if there are too many.
    pub(super) fn all_edges(&self, device: usize) -> Option<Vec<InnerEdge>> {
        let mut edges = Vec::new();
        self.add_edges(device, 0, &mut edges).then_some(edges)
    }

    fn add_edges(&self, device: usize, base: u32, edges: &mut Vec<InnerEdge>) -> bool {
        if (edges.len() + self.edges[device].len()) as u64 > MOST {
            return false;
        }
        edges.extend(self.edges[device].iter().map(|edge| InnerEdge {
            ends: edge.ends.map(|end| base + end),
            ..*edge
        }));
        self.slots[device].iter().all(|slot| {
            let Some(inner) = slot.device.filter(|inner| self.has_edges[*inner]) else {
                return true;
            };
            let mut copies = (0..slot.count).map(|copy| base + slot.first + copy * slot.size);
            copies.all(|base| self.add_edges(inner, base, edges))
        })
    }

    /// The kinds of all elements of a device.
    pub(super) fn kinds(&self, device: usize) -> Vec<ComponentKind> {
        let mut kinds = Vec::with_capacity(self.elements[device] as usize);
        for slot in self.slots[device].iter().filter(|slot| slot.size > 0) {
            match slot.device {
                None => kinds.extend((0..slot.count).map(|_| slot.kind)),
                Some(inner) => {
                    let inner = self.kinds(inner);
                    kinds.extend((0..slot.count).flat_map(|_| inner.iter().copied()));
                }
            }
        }
        kinds
    }

    /// The component that an element is of.
    fn slot_of(&self, device: usize, element: u32) -> Option<usize> {
        self.slots[device]
            .iter()
            .position(|slot| (slot.first..slot.first + slot.count * slot.size).contains(&element))
    }

    /// The name of an element with its indices, as in `cx5[0].port[1]`.
    pub(super) fn element_name(&self, device: usize, element: u32) -> String {
        self.named(device, element, &|name, index| format!("{name}[{index}]"))
    }

    /// The name of an element as a part of the name of a node, as in `nvsw3`.
    pub(super) fn plain_name(&self, device: usize, element: u32) -> String {
        self.named(device, element, &super::model::numbered)
    }

    fn named(&self, device: usize, element: u32, form: &dyn Fn(&str, u32) -> String) -> String {
        let Some(place) = self.slot_of(device, element) else {
            return String::new();
        };
        let slot = &self.slots[device][place];
        let (index, rest) = (
            (element - slot.first) / slot.size,
            (element - slot.first) % slot.size,
        );
        let own = form(&self.devices[device].components[place].name.text, index);
        match slot.device {
            None => own,
            Some(inner) => format!("{own}.{}", self.named(inner, rest, form)),
        }
    }
}

/// Error about a link that its owner does not have.
pub(super) fn no_link(source: Source<'_>, link: &Placed, owner: &str) -> FileError {
    let message = format!("{owner} has no link `{}`", shown(&link.text));
    let fault = source.fault(link.line, Some(link.column), message);
    fault.fix("add it to the `links` there, or name one of them")
}

/// Pairs of places in the two lists of an edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs {
    scheme: Scheme,
    lens: (u64, u64),
}

impl Pairs {
    /// The pairs of an edge whose endpoints select lists of these lengths; `is_same` is true if the lists are equal.
    pub(super) fn new(
        source: Source<'_>,
        edge: &Edge,
        lens: (u64, u64),
        is_same: bool,
    ) -> Result<Self, FileError> {
        if edge.scheme == Scheme::Ring && !is_same {
            let fault = source.fault(
                edge.line,
                None,
                "a `ring` between two different lists of endpoints",
            );
            return Err(fault
                .fix("write the same endpoints as `ep1` and `ep2`; each is joined to the next"));
        }
        Ok(Self {
            scheme: edge.scheme,
            lens,
        })
    }

    /// Number of pairs.
    pub(super) fn len(self) -> u64 {
        match self.scheme {
            Scheme::OneToOne => self.lens.0.min(self.lens.1),
            Scheme::ManyToMany => self.lens.0.saturating_mul(self.lens.1),
            // Two are joined by one edge, not by one in each direction.
            Scheme::Ring if self.lens.0 == 2 => 1,
            Scheme::Ring => self.lens.0,
        }
    }

    /// True if `one2one` leaves out a part of the longer list.
    pub(super) fn is_cut(self) -> bool {
        self.scheme == Scheme::OneToOne && self.lens.0 != self.lens.1
    }

    /// The pairs in order.
    pub(super) fn iter(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.len()).map(move |place| match self.scheme {
            Scheme::OneToOne => (place, place),
            Scheme::ManyToMany => (place / self.lens.1, place % self.lens.1),
            Scheme::Ring => (place, (place + 1) % self.lens.0),
        })
    }
}
