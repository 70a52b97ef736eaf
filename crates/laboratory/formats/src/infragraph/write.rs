//! Writing of fabrics.
//!
//! Servers and switches have one device for each number of ports. Consecutive switches whose names count upwards are one instance, and
//! consecutive links that differ by one port or one instance at each end are one edge, so that regular fabrics give short files.

use super::annotations::PREFIX;
use super::model::{
    InfragraphFabric, InfragraphLink, InfragraphQueues, InfragraphRole, InfragraphSwitch,
    instance_name, scale_up_switches,
};
use super::parts::{component, device, inner_edge, link, switch};
use super::tree::Tree;
use clearway_units::{Rate, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Text form of an InfraGraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfragraphForm {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

/// The text of a fabric as InfraGraph. Reading it gives the same fabric.
///
/// # Panics
/// If a link joins two hosts. A host that forwards is written as a host and a switch.
pub fn write_infragraph(fabric: &InfragraphFabric, form: InfragraphForm) -> String {
    let mut links = fabric.links.iter();
    assert!(
        !links.any(|link| fabric.joins_hosts(link)),
        "links between hosts are not written"
    );
    let writer = Writer::new(fabric);
    let (infrastructure, annotations) = (writer.infrastructure(), writer.annotations());
    let tree = match annotations {
        None => infrastructure,
        Some(annotations) => Tree::Map(vec![
            ("infrastructure", infrastructure),
            ("annotations", annotations),
        ]),
    };
    match form {
        InfragraphForm::Yaml => tree.to_yaml(),
        InfragraphForm::Json => tree.to_json(),
    }
}

/// Instance of a file: servers, or switches whose names count upwards.
struct Instance {
    name: String,
    device: String,
    /// The first switch.
    first: usize,
    count: usize,
    /// True if the names do not follow from the name of the instance.
    is_named: bool,
}

/// A component of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Port {
    /// Place of the instance; the servers are the first.
    instance: usize,
    index: u32,
    component: &'static str,
    number: u32,
}

impl Port {
    /// Steps of index and number from this port to another of the same component.
    fn steps(&self, to: &Self) -> Option<(u32, u32)> {
        let is_same = (self.instance, self.component) == (to.instance, to.component);
        let steps = is_same.then(|| {
            let index = to.index.checked_sub(self.index)?;
            Some((index, to.number.checked_sub(self.number)?))
        });
        steps
            .flatten()
            .filter(|steps| matches!(steps, (0, 1) | (1, 0)))
    }
}

/// Consecutive links in one edge.
struct Run {
    ends: [Port; 2],
    link: usize,
    count: u32,
    /// Steps of index and number at each end.
    steps: [(u32, u32); 2],
}

struct Writer<'a> {
    fabric: &'a InfragraphFabric,
    /// The first is of servers.
    instances: Vec<Instance>,
    /// Ports of each link.
    ports: Vec<[Port; 2]>,
    /// NICs of each xpu.
    nics: u32,
    /// Ports of switches of each device.
    devices: BTreeMap<String, u32>,
    /// Rates and delays, each a link of the file.
    kinds: Vec<(Rate, Span)>,
}

impl<'a> Writer<'a> {
    fn new(fabric: &'a InfragraphFabric) -> Self {
        let mut writer = Self {
            fabric,
            instances: Vec::new(),
            ports: Vec::new(),
            nics: 0,
            devices: BTreeMap::new(),
            kinds: Vec::new(),
        };
        let mut of_switches = vec![0u32; fabric.switches.len()];
        let mut of_hosts = vec![0u32; fabric.hosts as usize];
        for link in &fabric.links {
            for &end in &link.ends {
                match end.checked_sub(fabric.hosts) {
                    Some(switch) => of_switches[switch as usize] += 1,
                    None if !link.is_of_xpu => of_hosts[end as usize] += 1,
                    None => {}
                }
            }
        }
        writer.nics = of_hosts.iter().copied().max().unwrap_or(0);
        writer.add_instances(&of_switches);
        writer.add_ports();
        let kinds: BTreeSet<(Rate, Span)> = fabric
            .links
            .iter()
            .map(|link| (link.rate, link.delay))
            .collect();
        writer.kinds = kinds.into_iter().collect();
        writer
    }

    fn xpus(&self) -> u32 {
        self.fabric.xpus_per_server.max(1)
    }

    fn add_instances(&mut self, ports: &[u32]) {
        let switches = &self.fabric.switches;
        self.instances.push(Instance {
            name: "host".into(),
            device: "server".into(),
            first: 0,
            count: (self.fabric.hosts / self.xpus()) as usize,
            is_named: false,
        });
        let mut taken = BTreeSet::from(["host".to_owned()]);
        let mut first = 0;
        while first < switches.len() {
            let count = count_upwards(&switches[first..]);
            let own = &switches[first..first + count];
            let name = free_name(&own[0].name, count, &mut taken);
            let derived = (0..).map(|index| instance_name(&name, index, count as u32));
            let is_named = own
                .iter()
                .zip(derived)
                .any(|(switch, derived)| switch.name != derived);
            let ports = ports[first..first + count]
                .iter()
                .copied()
                .max()
                .unwrap_or(0)
                .max(1);
            let device = format!("switch-{ports}p");
            self.devices.insert(device.clone(), ports);
            self.instances.push(Instance {
                name,
                device,
                first,
                count,
                is_named,
            });
            first += count;
        }
    }

    /// Gives each link the next free port of its switches, and the next free NIC of its host.
    fn add_ports(&mut self) {
        let fabric = self.fabric;
        let mut instance_of = Vec::with_capacity(fabric.switches.len());
        for (place, instance) in self.instances.iter().enumerate().skip(1) {
            instance_of.extend((0..instance.count).map(|index| (place, index as u32)));
        }
        let mut used = vec![0u32; fabric.hosts as usize + fabric.switches.len()];
        let mut next = |node: u32| {
            let used = &mut used[node as usize];
            *used += 1;
            *used - 1
        };
        let xpus = self.xpus();
        for link in &fabric.links {
            let ports = link.ends.map(|end| match end.checked_sub(fabric.hosts) {
                Some(switch) => {
                    let (instance, index) = instance_of[switch as usize];
                    Port {
                        instance,
                        index,
                        component: "port",
                        number: next(end),
                    }
                }
                None => {
                    let xpu = end % xpus;
                    let (component, number) = match link.is_of_xpu {
                        true => ("xpu", xpu),
                        false => ("nic", xpu * self.nics + next(end)),
                    };
                    Port {
                        instance: 0,
                        index: end / xpus,
                        component,
                        number,
                    }
                }
            });
            self.ports.push(ports);
        }
    }

    fn infrastructure(&self) -> Tree {
        let mut devices = vec![self.server()];
        devices.extend(
            self.devices
                .iter()
                .map(|(name, ports)| switch(name, *ports)),
        );
        let instances = self.instances.iter().map(|own| {
            Tree::Map(vec![
                ("name", Tree::text(&own.name)),
                ("device", Tree::text(&own.device)),
                ("count", Tree::number(own.count)),
            ])
        });
        let links = self
            .kinds
            .iter()
            .enumerate()
            .map(|(number, (rate, delay))| link(number, *rate, *delay));
        let edges = self.runs().into_iter().map(|run| self.edge(&run));
        Tree::Map(vec![
            ("name", Tree::text(&self.fabric.name)),
            ("devices", Tree::List(devices)),
            ("instances", Tree::List(instances.collect())),
            ("links", Tree::List(links.collect())),
            ("edges", Tree::List(edges.collect())),
        ])
    }

    /// The device of servers: xpus, each with NICs of its own.
    fn server(&self) -> Tree {
        let (xpus, nics) = (self.xpus(), self.nics);
        let mut components = vec![component("xpu", xpus, "xpu")];
        let mut edges = Vec::new();
        if nics > 0 {
            components.push(component("nic", xpus * nics, "nic"));
        }
        match nics {
            0 => {}
            1 => edges.push(inner_edge("xpu", "nic", "one2one", "pcie")),
            _ => edges.extend((0..xpus).map(|xpu| {
                let nics = format!("nic[{}:{}]", xpu * nics, (xpu + 1) * nics);
                inner_edge(&format!("xpu[{xpu}]"), &nics, "many2many", "pcie")
            })),
        }
        device("server", components, "pcie", edges)
    }

    /// Edges, each for consecutive links that step evenly.
    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let kinds: BTreeMap<(Rate, Span), usize> = self.kinds.iter().copied().zip(0..).collect();
        let mut last: Option<[Port; 2]> = None;
        for (link, ports) in self.fabric.links.iter().zip(&self.ports) {
            let kind = kinds[&(link.rate, link.delay)];
            let steps =
                last.and_then(|last| last[0].steps(&ports[0]).zip(last[1].steps(&ports[1])));
            last = Some(*ports);
            if let (Some(run), Some((a, b))) = (runs.last_mut(), steps)
                && run.link == kind
                && (run.count == 1 || run.steps == [a, b])
            {
                run.steps = [a, b];
                run.count += 1;
                continue;
            }
            runs.push(Run {
                ends: *ports,
                link: kind,
                count: 1,
                steps: [(0, 0); 2],
            });
        }
        runs
    }

    fn edge(&self, run: &Run) -> Tree {
        let end = |end: usize| {
            let (port, (index, number)) = (run.ends[end], run.steps[end]);
            let slice = |from: u32, step: u32| match step {
                0 => format!("[{from}]"),
                _ => format!("[{from}:{}]", from + run.count),
            };
            let name = &self.instances[port.instance].name;
            Tree::Map(vec![
                (
                    "instance",
                    Tree::text(name.clone() + &slice(port.index, index)),
                ),
                (
                    "component",
                    Tree::text(port.component.to_owned() + &slice(port.number, number)),
                ),
            ])
        };
        Tree::Map(vec![
            ("ep1", end(0)),
            ("ep2", end(1)),
            ("scheme", Tree::text("one2one")),
            ("link", Tree::text(format!("link{}", run.link))),
        ])
    }

    /// Facts that InfraGraph has no words for.
    fn annotations(&self) -> Option<Tree> {
        let mut lists = Vec::new();
        let mut add = |name: &'static str, list: Vec<Tree>| {
            if !list.is_empty() {
                lists.push((name, Tree::List(list)));
            }
        };
        add("nodes", self.of_switches());
        add("edges", self.of_links());
        add("graph", self.of_graph());
        (!lists.is_empty()).then_some(Tree::Map(lists))
    }

    fn of_switches(&self) -> Vec<Tree> {
        let fabric = self.fabric;
        let derived = scale_up_switches(fabric.hosts, fabric.switches.len(), &fabric.links);
        let roles: Vec<Option<&str>> = (fabric.switches.iter().zip(derived))
            .map(|(switch, is_scale_up)| {
                let derived = match is_scale_up {
                    true => InfragraphRole::ScaleUp,
                    false => InfragraphRole::Network,
                };
                (switch.role != derived).then(|| switch.role.name())
            })
            .collect();
        let mut nodes = Vec::new();
        for own in &self.instances[1..] {
            let switches = &fabric.switches[own.first..own.first + own.count];
            let mut add = |attribute: &str, value: &dyn Fn(usize) -> Option<String>| {
                for (from, to, value) in equal_values(own.count, value) {
                    nodes.push(Tree::Map(vec![
                        ("name", Tree::text(format!("{}[{from}:{to}]", own.name))),
                        ("attributes", attributes(&[(attribute, value)])),
                    ]));
                }
            };
            if own.is_named {
                add("name", &|_| Some(switches[0].name.clone()));
            }
            add("tier", &|index| {
                switches[index].tier.map(|tier| tier.to_string())
            });
            add("latency", &|index| {
                let latency = switches[index].latency;
                (!latency.is_zero()).then(|| latency.to_string())
            });
            add("role", &|index| roles[own.first + index].map(str::to_owned));
            add("group", &|index| {
                switches[index].group.map(|group| group.to_string())
            });
        }
        nodes
    }

    fn of_links(&self) -> Vec<Tree> {
        let name = |port: &Port| {
            let instance = &self.instances[port.instance].name;
            Tree::text(format!(
                "{instance}.{}.{}.{}",
                port.index, port.component, port.number
            ))
        };
        let links = self.fabric.links.iter().zip(&self.ports);
        let annotated = links.filter_map(|(link, [a, b])| {
            let facts = facts(link);
            let edge = vec![
                ("ep1", name(a)),
                ("ep2", name(b)),
                ("attributes", attributes(&facts)),
            ];
            (!facts.is_empty()).then_some(Tree::Map(edge))
        });
        annotated.collect()
    }

    fn of_graph(&self) -> Vec<Tree> {
        let mut facts = Vec::new();
        if self.fabric.separates_nics {
            facts.push(("nics".to_owned(), "separate".to_owned()));
        }
        for (tier, InfragraphQueues { up, down }) in self.fabric.queues.iter().enumerate() {
            for (side, bytes) in [("up", up), ("down", down)] {
                facts.extend(
                    bytes.map(|bytes| (format!("queue-{side}-{tier}"), bytes.as_u64().to_string())),
                );
            }
        }
        let facts = facts.iter().map(|(name, value)| attribute(name, value));
        facts.collect()
    }
}

/// Number of switches at the beginning of a list whose names count upwards.
fn count_upwards(switches: &[InfragraphSwitch]) -> usize {
    let (stem, first) = stem(&switches[0].name);
    let Some(first) = first else {
        return 1;
    };
    let names = switches.iter().zip(first..);
    names
        .take_while(|(switch, number)| stem_is(&switch.name, stem, *number))
        .count()
        .max(1)
}

/// A name without the number at its end, and the number.
fn stem(name: &str) -> (&str, Option<u64>) {
    let stem = name.trim_end_matches(|last: char| last.is_ascii_digit());
    let digits = &name[stem.len()..];
    let is_plain = digits.len() < 10 && (digits == "0" || !digits.starts_with('0'));
    match digits.parse().ok().filter(|_| is_plain) {
        Some(number) => (stem, Some(number)),
        None => (name, None),
    }
}

fn stem_is(name: &str, own: &str, number: u64) -> bool {
    stem(name) == (own, Some(number))
}

/// A name for an instance of `count` switches of which the first is called `first`.
fn free_name(first: &str, count: usize, taken: &mut BTreeSet<String>) -> String {
    let base = match count {
        1 => first,
        // `leaf0.3` is number 3 of `leaf0`.
        _ => stem(first).0.trim_end_matches('.'),
    };
    let clean = base
        .chars()
        .map(|c| match c.is_ascii_alphanumeric() || c == '_' {
            true => c,
            false => '-',
        });
    let clean: String = clean.collect();
    let clean = if clean.is_empty() {
        "switch".to_owned()
    } else {
        clean
    };
    let numbered = (2..).map(|number| format!("{clean}-{number}"));
    let mut names = [clean.clone()].into_iter().chain(numbered);
    let name = names.find(|name| !taken.contains(name)).unwrap_or(clean);
    taken.insert(name.clone());
    name
}

/// Ranges of equal values.
fn equal_values(
    count: usize,
    value: &dyn Fn(usize) -> Option<String>,
) -> Vec<(usize, usize, String)> {
    let mut ranges: Vec<(usize, usize, String)> = Vec::new();
    for index in 0..count {
        let Some(own) = value(index) else { continue };
        match ranges.last_mut() {
            Some((_, to, last)) if *to == index && *last == own => *to += 1,
            _ => ranges.push((index, index + 1, own)),
        }
    }
    ranges
}

/// What is unusual about a link.
fn facts(link: &InfragraphLink) -> Vec<(&'static str, String)> {
    let probability = |value: f64| (value > 0.0).then(|| value.to_string());
    let dead = link
        .dead_from
        .map(|time| time.since(Time::ZERO).to_string());
    [
        ("packet-loss", probability(link.packet_loss)),
        ("bit-error-rate", probability(link.bit_error_rate)),
        ("dead-from", dead),
        ("down", (!link.is_up).then(|| "true".to_owned())),
        ("order", (link.order > 0).then(|| link.order.to_string())),
        ("dateline", link.is_dateline.then(|| "true".to_owned())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

fn attribute(name: &str, value: &str) -> Tree {
    Tree::Map(vec![
        ("attribute", Tree::text(format!("{PREFIX}{name}"))),
        ("value", Tree::text(value)),
    ])
}

fn attributes(facts: &[(&str, String)]) -> Tree {
    Tree::List(
        facts
            .iter()
            .map(|(name, value)| attribute(name, value))
            .collect(),
    )
}
