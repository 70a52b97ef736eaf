//! The elements of a file.

use super::elements::{DeviceClass, ELEMENTS};
use super::unused::{Unused, UnusedEntries};
use super::xml::Xml;
use super::{
    NcclGpu, NcclGpuLink, NcclLinkTarget, NcclNic, NcclPlace, NcclPlaceKind, NcclTopology,
};
use crate::text::{DecimalFault, exact_decimal, one_of, shown, whole_number};
use clearway_units::{Rate, Span};
use clearway_workload::FileError;
use roxmltree::Node;
use std::collections::BTreeMap;

/// Maximum numbers of GPUs and of NICs: far more than one NVLink domain has.
const MOST_DEVICES: usize = 4096;
const MOST_NUMBER: u64 = 65_535;
/// Maximum depth of PCI switches.
const DEEPEST: usize = 64;
const MOST_MBPS: u64 = 100_000_000;
/// Bit/s of a Mb/s.
const MEGABIT: u64 = 1_000_000;
/// Links of GPUs before all GPUs are known.
struct RawLink<'a> {
    /// Index of the GPU.
    gpu: usize,
    line: usize,
    target: Option<u64>,
    class: Option<&'a str>,
    count: u32,
}

struct Reader<'a, 'x> {
    xml: &'x Xml<'a>,
    places: Vec<NcclPlace>,
    /// Hosts by their hash.
    hosts: BTreeMap<&'x str, u32>,
    gpus: Vec<NcclGpu>,
    links: Vec<RawLink<'x>>,
    nics: Vec<NcclNic>,
    /// PCI devices of a GPU's class without `gpu`.
    plain_gpus: Vec<NcclGpu>,
    /// PCI devices of a network's class without `nic`.
    plain_nics: Vec<NcclNic>,
    /// PCI bus ID of each GPU, if it has one.
    bus_ids: Vec<Option<u64>>,
    unused: UnusedEntries,
}

/// Reads the file `text` of NCCL; errors call it `name`.
///
/// # Errors
/// At the first invalid element.
pub fn parse_nccl_topology(name: &str, text: &str) -> Result<NcclTopology, FileError> {
    let xml = Xml::parse(name, text)?;
    let mut reader = Reader {
        xml: &xml,
        places: Vec::new(),
        hosts: BTreeMap::new(),
        gpus: Vec::new(),
        links: Vec::new(),
        nics: Vec::new(),
        plain_gpus: Vec::new(),
        plain_nics: Vec::new(),
        bus_ids: Vec::new(),
        unused: UnusedEntries::default(),
    };
    reader.system(xml.root())?;
    reader.finish()
}

impl<'a, 'x> Reader<'a, 'x> {
    fn system(&mut self, system: Node<'x, 'a>) -> Result<(), FileError> {
        match system.tag_name().name() {
            "system" => {}
            "graphs" => {
                return Err(self.xml.fault(
                    system,
                    "this is a graph of NCCL, which has rings and trees, and no topology",
                    "write the topology with NCCL_TOPO_DUMP_FILE instead of NCCL_GRAPH_DUMP_FILE",
                ));
            }
            other => {
                let message = format!("the first element is `{}`", shown(other));
                let fix = "topologies of NCCL begin with `<system version=\"1\">`";
                return Err(self.xml.fault(system, message, fix));
            }
        }
        self.check_attributes(system);
        match system.attribute_node("version") {
            None => {
                let message = "`system` has no `version`";
                return Err(self.xml.fault(system, message, "write `version=\"1\"`"));
            }
            // 2 is RCCL's version, which has `xgmi`, `gcn` and `arch`.
            Some(version) if !["1", "2"].contains(&version.value()) => {
                let fix = "versions 1 of NCCL and 2 of RCCL are known: write the file again with NCCL_TOPO_DUMP_FILE";
                return Err(self.xml.bad_value(&version, fix));
            }
            Some(_) => {}
        }
        for cpu in self.children(system)? {
            self.cpu(cpu)?;
        }
        Ok(())
    }

    /// The known elements in `parent`.
    fn children(&mut self, parent: Node<'x, 'a>) -> Result<Vec<Node<'x, 'a>>, FileError> {
        let mut known = Vec::new();
        for child in parent.children() {
            if child.is_text() && !child.text().unwrap_or_default().trim().is_empty() {
                let text = shown(child.text().unwrap_or_default().trim());
                let message = format!("there is text between elements: `{text}`");
                return Err(self.xml.fault(child, message, "remove it"));
            }
            if !child.is_element() {
                continue;
            }
            let name = child.tag_name().name();
            let Some((_, parents, _)) = ELEMENTS.iter().find(|element| element.0 == name) else {
                self.unused
                    .named(Unused::Element, self.xml.line(child), name);
                continue;
            };
            let parent = parent.tag_name().name();
            if !parents.split(' ').any(|allowed| allowed == parent) {
                let message = format!("`{name}` stands in `{parent}`");
                let places: Vec<&str> = parents.split(' ').filter(|p| !p.is_empty()).collect();
                let fix = match places.is_empty() {
                    true => "begin the file with it, once".to_owned(),
                    false => format!("move it into {}", one_of(&places)),
                };
                return Err(self.xml.fault(child, message, fix));
            }
            self.check_attributes(child);
            known.push(child);
        }
        Ok(known)
    }

    fn check_attributes(&mut self, element: Node<'x, 'a>) {
        let name = element.tag_name().name();
        let known = ELEMENTS.iter().find(|(own, ..)| *own == name);
        for attribute in element.attributes() {
            let key = attribute.name();
            if key != "keep" && !known.is_some_and(|(_, _, keys)| keys.contains(&key)) {
                let line = self.xml.line(element);
                self.unused.named(Unused::Attribute, line, key);
            }
        }
    }

    fn add_place(&mut self, kind: NcclPlaceKind, parent: Option<u32>) -> u32 {
        self.places.push(NcclPlace { kind, parent });
        self.places.len() as u32 - 1
    }

    fn cpu(&mut self, cpu: Node<'x, 'a>) -> Result<(), FileError> {
        let hash = cpu.attribute("host_hash").unwrap_or_default();
        let host = match self.hosts.get(hash) {
            Some(&host) => {
                self.unused.add(Unused::Cpus, self.xml.line(cpu));
                host
            }
            None => {
                let host = self.add_place(NcclPlaceKind::Host, None);
                self.hosts.insert(hash, host);
                host
            }
        };
        let place = self.add_place(NcclPlaceKind::Cpu, Some(host));
        for child in self.children(cpu)? {
            match child.tag_name().name() {
                "nic" => self.nic(child, place)?,
                _ => self.pci(child, place, 1)?,
            }
        }
        Ok(())
    }

    /// A PCI device that hangs on `above`.
    fn pci(&mut self, pci: Node<'x, 'a>, above: u32, depth: usize) -> Result<(), FileError> {
        if depth > DEEPEST {
            let message = format!("`pci` elements lie more than {DEEPEST} deep in each other");
            return Err(self.xml.fault(pci, message, "remove bridges"));
        }
        let line = self.xml.line(pci);
        if pci
            .attribute("link_speed")
            .is_some_and(|speed| !speed.is_empty())
        {
            self.unused.add(Unused::PciRates, line);
        }
        let children = self.children(pci)?;
        let named = |name: &str| {
            let own = children
                .iter()
                .filter(|child| child.tag_name().name() == name);
            own.copied().collect::<Vec<_>>()
        };
        let (gpus, nics, below) = (named("gpu"), named("nic"), named("pci"));
        for link in named("pcilink") {
            self.unused.add(Unused::PciLinks, self.xml.line(link));
        }
        for further in gpus.iter().skip(1) {
            self.unused.add(Unused::Partitions, self.xml.line(*further));
        }
        if let Some(gpu) = gpus.first() {
            self.gpu(*gpu, pci, above)?;
        }
        for nic in &nics {
            self.nic(*nic, above)?;
        }
        if gpus.is_empty() && nics.is_empty() && below.is_empty() {
            self.plain_device(pci, above)?;
        }
        if !below.is_empty() {
            let place = self.add_place(NcclPlaceKind::PciSwitch, Some(above));
            for device in below {
                self.pci(device, place, depth + 1)?;
            }
        }
        Ok(())
    }

    /// A PCI device of which only its class is known.
    fn plain_device(&mut self, pci: Node<'x, 'a>, place: u32) -> Result<(), FileError> {
        let line = self.xml.line(pci);
        match DeviceClass::of(pci.attribute("class").unwrap_or_default()) {
            DeviceClass::Gpu => {
                self.check_count(self.plain_gpus.len(), pci)?;
                let dev = self.plain_gpus.len() as u32;
                self.plain_gpus.push(NcclGpu {
                    line,
                    dev,
                    place,
                    sm: None,
                    gcn: None,
                    links: Vec::new(),
                    is_described: false,
                });
            }
            DeviceClass::Nic => {
                self.check_count(self.plain_nics.len(), pci)?;
                let dev = self.plain_nics.len() as u32;
                let name = pci.attribute("busid").unwrap_or_default();
                self.plain_nics.push(NcclNic {
                    line,
                    name: shown(name),
                    dev,
                    place,
                    speed: None,
                    latency: Span::ZERO,
                    rail: None,
                    plane: None,
                });
            }
            DeviceClass::NvSwitch | DeviceClass::CpuBridge | DeviceClass::Other => {}
        }
        Ok(())
    }

    fn check_count(&self, count: usize, element: Node<'x, 'a>) -> Result<(), FileError> {
        if count < MOST_DEVICES {
            return Ok(());
        }
        let message = format!("there are more than {MOST_DEVICES} GPUs or NICs");
        let fix = "keep the elements of one node, and give the number of nodes as `topology.nodes`";
        Err(self.xml.fault(element, message, fix))
    }

    /// The number of a device, which its element must have.
    fn dev(&self, element: Node<'x, 'a>) -> Result<u32, FileError> {
        let dev = self.xml.number(element, "dev", 0..=MOST_NUMBER)?;
        let dev = dev.ok_or_else(|| self.lacks(element, "dev", "its number in the host"))?;
        Ok(dev as u32)
    }

    fn lacks(&self, element: Node<'x, 'a>, key: &str, what: &str) -> FileError {
        let name = element.tag_name().name();
        let message = format!("`{name}` has no `{key}`");
        self.xml
            .fault(element, message, format!("write `{key}`, {what}"))
    }

    fn gpu(&mut self, gpu: Node<'x, 'a>, pci: Node<'x, 'a>, place: u32) -> Result<(), FileError> {
        self.check_count(self.gpus.len(), gpu)?;
        let line = self.xml.line(gpu);
        let dev = self.dev(gpu)?;
        let sm = self.xml.number(gpu, "sm", 0..=MOST_NUMBER)?;
        if self.xml.number(gpu, "gdr", 0..=1)? == Some(0) {
            self.unused.add(Unused::NoGpuDirect, line);
        }
        self.bus_ids
            .push(pci.attribute("busid").and_then(bus_number));
        let index = self.gpus.len();
        self.gpus.push(NcclGpu {
            line,
            dev,
            place,
            sm: sm.map(|sm| sm as u32),
            gcn: gpu.attribute("gcn").map(shown),
            links: Vec::new(),
            is_described: true,
        });
        for child in self.children(gpu)? {
            match child.tag_name().name() {
                "c2c" => self.unused.add(Unused::C2c, self.xml.line(child)),
                name => self.link(child, index, name == "xgmi")?,
            }
        }
        Ok(())
    }

    fn link(&mut self, link: Node<'x, 'a>, gpu: usize, is_xgmi: bool) -> Result<(), FileError> {
        let count = self.xml.number(link, "count", 1..=MOST_NUMBER)?;
        let count = count.ok_or_else(|| self.lacks(link, "count", "the number of links"))?;
        let target = link.attribute("target");
        let target = target.ok_or_else(|| self.lacks(link, "target", "its neighbour's bus ID"))?;
        // xGMI leads to GPUs alone.
        let class = link.attribute("tclass").or(is_xgmi.then_some("0x03"));
        self.links.push(RawLink {
            gpu,
            line: self.xml.line(link),
            target: bus_number(target),
            class,
            count: count as u32,
        });
        Ok(())
    }

    fn nic(&mut self, nic: Node<'x, 'a>, place: u32) -> Result<(), FileError> {
        for child in self.children(nic)? {
            match child.tag_name().name() {
                "net" => self.net(child, place)?,
                _ => self.unused.add(Unused::NoNetwork, self.xml.line(child)),
            }
        }
        Ok(())
    }

    fn net(&mut self, net: Node<'x, 'a>, place: u32) -> Result<(), FileError> {
        let line = self.xml.line(net);
        if net.attribute("dev").is_none() {
            self.unused.add(Unused::NoDevice, line);
            return Ok(());
        }
        let dev = self.dev(net)?;
        if self.xml.number(net, "net", 0..=1)? == Some(0) {
            self.unused.add(Unused::NoNetwork, line);
            return Ok(());
        }
        self.check_count(self.nics.len(), net)?;
        let latency = self.latency(net)?;
        for (kind, is_unused) in [
            (
                Unused::NoGpuDirect,
                self.xml.number(net, "gdr", 0..=1)? == Some(0),
            ),
            (
                Unused::InNetworkReduction,
                self.xml.number(net, "coll", 0..=1)? == Some(1),
            ),
            (Unused::Latency, !latency.is_zero()),
        ] {
            if is_unused {
                self.unused.add(kind, line);
            }
        }
        let name = match net.attribute("name") {
            Some(name) => shown(name),
            None => format!("net{dev}"),
        };
        self.nics.push(NcclNic {
            line,
            name,
            dev,
            place,
            speed: self.speed(net)?,
            latency,
            rail: self.undefined_or_number(net, "rail")?,
            plane: self.undefined_or_number(net, "plane")?,
        });
        Ok(())
    }

    /// The rate of a NIC. Some have a rate of -1, or of zero, if they do not know it.
    fn speed(&self, net: Node<'x, 'a>) -> Result<Option<Rate>, FileError> {
        match net.attribute("speed") {
            None => Ok(None),
            Some(text) if is_negative(text) => Ok(None),
            Some(_) => {
                let mbps = self.xml.number(net, "speed", 0..=MOST_MBPS)?;
                let mbps = mbps.filter(|mbps| *mbps > 0);
                Ok(mbps.map(|mbps| Rate::from_bps(mbps * MEGABIT)))
            }
        }
    }

    /// A number that is -1 if it is not defined.
    fn undefined_or_number(&self, net: Node<'x, 'a>, key: &str) -> Result<Option<u32>, FileError> {
        match net.attribute(key) {
            Some("-1") => Ok(None),
            _ => {
                let number = self.xml.number(net, key, 0..=MOST_NUMBER)?;
                Ok(number.map(|number| number as u32))
            }
        }
    }

    /// The latency of a NIC, in microseconds in the file.
    fn latency(&self, net: Node<'x, 'a>) -> Result<Span, FileError> {
        let Some(attribute) = net.attribute_node("latency") else {
            return Ok(Span::ZERO);
        };
        exact_decimal(attribute.value(), 6)
            .map(Span::from_ps)
            .map_err(|fault| {
                let fix = match fault {
                    DecimalFault::NotANumber => "write microseconds, as in `0.5`",
                    DecimalFault::TooLarge => "write less than 1e12 microseconds",
                    DecimalFault::TooFine => "write at most 6 decimals",
                };
                self.xml.bad_value(&attribute, fix)
            })
    }

    /// The node, if it has GPUs.
    fn finish(mut self) -> Result<NcclTopology, FileError> {
        self.take_plain_devices();
        if self.gpus.is_empty() {
            let fix = "write the file on a machine with GPUs; a GPU is a `gpu` in a `pci`, or a `pci` of class `0x03…`";
            return Err(self.xml.fault(self.xml.root(), "there are no GPUs", fix));
        }
        let mut hosts: Vec<u32> = Vec::new();
        for (own, place) in (0..).zip(&self.places) {
            hosts.push(place.parent.map_or(own, |parent| hosts[parent as usize]));
        }
        self.sort_gpus(&hosts);
        let gpu_key = |gpu: &NcclGpu| (hosts[gpu.place as usize], gpu.dev);
        let nic_key = |nic: &NcclNic| (hosts[nic.place as usize], nic.dev);
        self.nics.sort_by_key(nic_key);
        self.nics.dedup_by(|other, nic| {
            let is_same = nic_key(nic) == nic_key(other) && nic.name == other.name;
            if is_same {
                nic.place = common_place(&self.places, nic.place, other.place);
            }
            is_same
        });
        let gpus = self.gpus.iter().map(|gpu| (gpu_key(gpu), gpu.line));
        let nics = self.nics.iter().map(|nic| (nic_key(nic), nic.line));
        refuse_twins(self.xml, "GPUs", gpus)?;
        refuse_twins(self.xml, "NICs", nics)?;
        self.resolve_links(&hosts)?;
        Ok(NcclTopology {
            places: self.places,
            gpus: self.gpus,
            nics: self.nics,
            warnings: self.unused.into_warnings(self.xml.file()),
        })
    }

    /// Sorts GPUs by host and number. `hosts` are those of the places.
    fn sort_gpus(&mut self, hosts: &[u32]) {
        let mut order: Vec<usize> = (0..self.gpus.len()).collect();
        order.sort_by_key(|own| {
            let gpu = &self.gpus[*own];
            (hosts[gpu.place as usize], gpu.dev)
        });
        let mut places = vec![0; order.len()];
        for (new, own) in order.iter().enumerate() {
            places[*own] = new;
        }
        self.gpus = order.iter().map(|own| self.gpus[*own].clone()).collect();
        let id = |own: &usize| self.bus_ids.get(*own).copied().flatten();
        self.bus_ids = order.iter().map(id).collect();
        for link in &mut self.links {
            link.gpu = places[link.gpu];
        }
    }

    /// Finds out what the links of GPUs lead to. `hosts` are those of the places.
    fn resolve_links(&mut self, hosts: &[u32]) -> Result<(), FileError> {
        let host_of = |gpu: &NcclGpu| hosts[gpu.place as usize];
        let mut by_id: BTreeMap<(u32, u64), u32> = BTreeMap::new();
        for ((own, gpu), id) in (0..).zip(&self.gpus).zip(&self.bus_ids) {
            let Some(id) = *id else { continue };
            if let Some(first) = by_id.insert((host_of(gpu), id), own) {
                let first = self.gpus[first as usize].line;
                let message = format!(
                    "two GPUs of one host have the same `busid`, the other on line {first}"
                );
                return Err(self
                    .xml
                    .fault_on(gpu.line, message, "give each its own `busid`"));
            }
        }
        for link in std::mem::take(&mut self.links) {
            let host = host_of(&self.gpus[link.gpu]);
            let gpu = link.target.and_then(|id| by_id.get(&(host, id)).copied());
            let gpu = gpu.filter(|gpu| *gpu as usize != link.gpu);
            let target = match (link.class.map(DeviceClass::of), gpu) {
                (Some(DeviceClass::CpuBridge), _) => {
                    self.unused.add(Unused::NvlinksToCpu, link.line);
                    continue;
                }
                (Some(DeviceClass::Gpu), None) => {
                    self.unused.add(Unused::NvlinksToOthers, link.line);
                    continue;
                }
                // NCCL, too, takes a device that it cannot see for an NVSwitch.
                (Some(DeviceClass::Gpu) | None, Some(gpu)) => NcclLinkTarget::Gpu(gpu),
                _ => NcclLinkTarget::Switch,
            };
            self.gpus[link.gpu].links.push(NcclGpuLink {
                line: link.line,
                target,
                count: link.count,
            });
        }
        Ok(())
    }

    /// Takes devices of which only the class is known for GPUs and NICs, if there are no others.
    fn take_plain_devices(&mut self) {
        if self.gpus.is_empty() {
            self.gpus = std::mem::take(&mut self.plain_gpus);
        }
        if self.nics.is_empty() {
            self.nics = std::mem::take(&mut self.plain_nics);
        }
        for gpu in &self.plain_gpus {
            self.unused.add(Unused::PlainGpus, gpu.line);
        }
        for nic in &self.plain_nics {
            self.unused.add(Unused::PlainNics, nic.line);
        }
    }
}

/// The number that a PCI bus ID stands for, as NCCL reads it: hexadecimal digits, with colons and dots between them.
fn bus_number(id: &str) -> Option<u64> {
    let digits: String = id.chars().filter(|sign| !":.".contains(*sign)).collect();
    u64::from_str_radix(&digits, 16).ok()
}

/// True for a whole number below zero.
fn is_negative(text: &str) -> bool {
    let digits = text.strip_prefix('-');
    digits.is_some_and(|digits| whole_number(digits).is_some())
}

/// The lowest place that is above both, or one of them. NCCL lists a NIC without a PCI device below several CPUs.
fn common_place(places: &[NcclPlace], a: u32, b: u32) -> u32 {
    // Parents have lower numbers than their children.
    let (low, high) = (a.min(b), a.max(b));
    match places[high as usize].parent {
        Some(parent) if low != high => common_place(places, low, parent),
        _ => low,
    }
}

/// Refuses two devices with one number in one host. `devices` are sorted: host and number, then line.
fn refuse_twins(
    xml: &Xml<'_>,
    what: &str,
    devices: impl Iterator<Item = ((u32, u32), usize)> + Clone,
) -> Result<(), FileError> {
    let mut pairs = devices.clone().zip(devices.skip(1));
    let Some((((_, dev), first), (_, second))) = pairs.find(|(a, b)| a.0 == b.0) else {
        return Ok(());
    };
    let message = format!("two {what} of one host have dev {dev}, the other on line {first}");
    let fix = "give each a separate number; CPUs of several hosts need different `host_hash`";
    Err(xml.fault_on(second, message, fix))
}
