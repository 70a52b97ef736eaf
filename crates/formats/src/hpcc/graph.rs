//! The lines of a fabric's file.

use super::{Announced, Record, quantity};
use crate::text::{Line, Source, lines, shown, whole_number};
use clearway_units::{Rate, Span};
use clearway_workload::{FileError, FileWarning};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Most nodes of a fabric: far above what fits in the memory of one machine.
const MOST_NODES: u64 = 1 << 24;
const DELAYS: RangeInclusive<Span> = Span::from_ns(1)..=Span::from_ms(1000);
const HPCC_HEADER: &[&str] = &["node_num", "switch_num", "link_num"];
const SIMAI_HEADER: &[&str] = &[
    "node_num",
    "gpus_per_server",
    "nvswitch_num",
    "switch_num",
    "link_num",
    "gpu_type",
];
const LINK: &[&str] = &["src", "dst", "rate", "delay", "error_rate"];

/// A link of a fabric; both directions are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccLink {
    /// The nodes that it joins, as the file orders them.
    pub ends: [u32; 2],
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Probability that it loses a packet, whatever the packet's size; below 1.
    pub loss: f64,
}

/// Content of the file of a fabric. Each host has a link or several, all to switches, and the graph connects all hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccTopology {
    /// Hosts: the nodes from 0.
    pub hosts: u32,
    /// Switches: the nodes from `hosts`.
    pub switches: u32,
    /// Links in the order of the file, which numbers the interfaces of nodes.
    pub links: Vec<HpccLink>,
    /// Warnings about entries that can run but are probably not what the author meant.
    pub warnings: Vec<FileWarning>,
}

/// First line of the file.
struct Header {
    nodes: u64,
    /// Switches, the NVSwitches included.
    switches: u64,
    links: Announced,
}

/// A link and its line.
struct PlacedLink {
    link: HpccLink,
    line: usize,
}

/// Reads the fabric `text`; `name` is what errors call the file.
///
/// # Errors
/// At the first line that is not sound, or else where the whole is not.
pub fn parse_hpcc_topology(name: &str, text: &str) -> Result<HpccTopology, FileError> {
    let source = Source { file: name };
    let lines: Vec<Line<'_>> = lines(text).collect();
    let Some((first, rest)) = lines.split_first() else {
        let fault = source.fault(1, None, "the file is empty");
        return Err(fault.fix("begin it with the numbers of nodes, switches and links"));
    };
    let header = header(source, first)?;
    let (switches, rest) = switches(source, &header, first, rest)?;
    let links = links(source, &header, rest)?;
    let whole = Whole {
        source,
        header,
        switches,
        links,
    };
    whole.check()?;
    Ok(whole.finish())
}

fn header(source: Source<'_>, line: &Line<'_>) -> Result<Header, FileError> {
    let simai = line.tokens.len() == SIMAI_HEADER.len();
    if !simai && line.tokens.len() != HPCC_HEADER.len() {
        let message = format!(
            "the first line has 3 words, or 6 with GPUs, but {} stand here",
            line.tokens.len()
        );
        let fix = format!(
            "write `{}`, or `{}`",
            HPCC_HEADER.join(" "),
            SIMAI_HEADER.join(" ")
        );
        return Err(source.fault(line.number, None, message).fix(fix));
    }
    let names = if simai { SIMAI_HEADER } else { HPCC_HEADER };
    let record = Record::of(source, line, "the first line", names)?;
    let nodes = record.number(0, 1..=MOST_NODES)?;
    let (nv_switches, at) = if simai {
        record.number(1, 0..=MOST_NODES)?;
        (record.number(2, 0..=MOST_NODES)?, 3)
    } else {
        (0, 1)
    };
    let switches = nv_switches + record.number(at, 0..=MOST_NODES)?;
    if switches >= nodes {
        let message = format!("{switches} of {nodes} nodes are switches, so there are no hosts");
        let fix = "write all nodes as `node_num`: hosts and switches";
        return Err(record.fault(0, message, fix));
    }
    Ok(Header {
        nodes,
        switches,
        links: Announced {
            count: record.number(at + 1, 0..=MOST_NODES)?,
            line: line.number,
            noun: "link",
            name: "link_num",
        },
    })
}

/// The numbers of the switches, and the lines below them.
fn switches<'a, 'b>(
    source: Source<'_>,
    header: &Header,
    first: &Line<'_>,
    lines: &'a [Line<'b>],
) -> Result<(BTreeSet<u32>, &'a [Line<'b>]), FileError> {
    let mut switches = BTreeSet::new();
    let mut rest = lines;
    let mut last = first.number;
    while (switches.len() as u64) < header.switches {
        let next = rest.split_first().filter(|(line, _)| !is_link(line));
        let Some((line, below)) = next else {
            let message = format!(
                "line {} announces {} switches, but the file names {}",
                first.number,
                header.switches,
                switches.len()
            );
            let fix = "write the numbers of all switches on the second line";
            return Err(source.fault(last, None, message).fix(fix));
        };
        for token in &line.tokens {
            let fault = |message: String, fix: &str| {
                let fault = source.fault(line.number, Some(token.column), message);
                Err(fault.fix(fix))
            };
            let text = shown(token.text);
            let node = whole_number(token.text).filter(|&node| node < header.nodes);
            let Some(node) = node.and_then(|node| u32::try_from(node).ok()) else {
                let message =
                    format!("`{text}` is no node, where the number of a switch should be");
                let range = format!(
                    "name {} switches from 0 to {}",
                    header.switches,
                    header.nodes - 1
                );
                return fault(message, &range);
            };
            if !switches.insert(node) {
                let message = format!("switch {node} is listed twice");
                return fault(message, "name each switch once");
            }
            if switches.len() as u64 > header.switches {
                let message = format!(
                    "line {} announces {} switches, but more are named",
                    first.number, header.switches
                );
                return fault(message, "correct the number of switches on the first line");
            }
        }
        last = line.number;
        rest = below;
    }
    Ok((switches, rest))
}

/// True if the line is that of a link, not one with numbers of switches.
fn is_link(line: &Line<'_>) -> bool {
    line.tokens.len() == LINK.len() && whole_number(line.tokens[2].text).is_none()
}

fn links(
    source: Source<'_>,
    header: &Header,
    lines: &[Line<'_>],
) -> Result<Vec<PlacedLink>, FileError> {
    let mut links = Vec::new();
    let mut last = header.links.line;
    for line in lines {
        if links.len() as u64 == header.links.count {
            return Err(header.links.one_too_many(source, line.number));
        }
        let record = Record::of(source, line, "a link", LINK)?;
        last = line.number;
        links.push(PlacedLink {
            link: link(&record, header.nodes)?,
            line: line.number,
        });
    }
    if (links.len() as u64) < header.links.count {
        let found = links.len() as u64;
        return Err(header.links.too_few(source, last, found));
    }
    Ok(links)
}

fn link(record: &Record<'_>, nodes: u64) -> Result<HpccLink, FileError> {
    let node = |index| {
        let node = record.number(index, 0..=u64::from(u32::MAX))?;
        if node >= nodes {
            let message = format!("node {node} does not exist");
            let fix = format!("name a node from 0 to {}, or correct `node_num`", nodes - 1);
            return Err(record.fault(index, message, fix));
        }
        Ok(node as u32)
    };
    let ends = [node(0)?, node(1)?];
    if ends[0] == ends[1] {
        let message = format!("a link from node {} to itself", ends[0]);
        return Err(record.fault(1, message, "name two nodes"));
    }
    let rate = quantity::rate(record.tokens[2].text).ok_or_else(|| {
        let fix = "write a whole number of bit/s above zero, as in `100Gbps` or `25000000000bps`";
        record.no_value(2, fix)
    })?;
    let delay = quantity::time(record.tokens[3].text).ok_or_else(|| {
        let fix = "write a whole number of picoseconds, as in `1000ns` or `0.001ms`";
        record.no_value(3, fix)
    })?;
    if !DELAYS.contains(&delay) {
        let message = format!("a delay of {delay}");
        let fix = "write 1ns to 1s; a number without unit is in seconds";
        return Err(record.fault(3, message, fix));
    }
    let loss = quantity::probability(record.tokens[4].text).ok_or_else(|| {
        let fix = "write the probability that a packet is lost, from 0 to below 1";
        record.no_value(4, fix)
    })?;
    Ok(HpccLink {
        ends,
        rate,
        delay,
        loss,
    })
}

/// A file whose lines are sound.
struct Whole<'a> {
    source: Source<'a>,
    header: Header,
    switches: BTreeSet<u32>,
    links: Vec<PlacedLink>,
}

impl Whole<'_> {
    fn hosts(&self) -> u32 {
        self.header.nodes as u32 - self.switches.len() as u32
    }

    fn check(&self) -> Result<(), FileError> {
        self.check_order()?;
        self.check_host_links()?;
        self.check_reach()
    }

    fn fault(&self, line: usize, message: String, fix: impl Into<String>) -> FileError {
        self.source.fault(line, None, message).fix(fix)
    }

    /// Checks that hosts have the numbers from 0.
    fn check_order(&self) -> Result<(), FileError> {
        let hosts = self.hosts();
        match self.switches.first() {
            Some(&first) if first < hosts => {
                let message =
                    format!("switch {first} has a lower number than some of the {hosts} hosts");
                let fix = format!(
                    "number the hosts from 0 to {}, and the switches after them",
                    hosts - 1
                );
                Err(self.fault(self.header.links.line, message, fix))
            }
            _ => Ok(()),
        }
    }

    /// Checks that each host has a link, and that all links of hosts lead to switches.
    fn check_host_links(&self) -> Result<(), FileError> {
        let hosts = self.hosts();
        let mut linked = vec![false; hosts as usize];
        for placed in &self.links {
            let [a, b] = placed.link.ends;
            if a < hosts && b < hosts {
                let message = format!("a link joins the hosts {a} and {b}");
                let fix = "join each host to a switch; hosts do not forward";
                return Err(self.fault(placed.line, message, fix));
            }
            if let Some(host) = linked.get_mut(a.min(b) as usize) {
                *host = true;
            }
        }
        match linked.iter().position(|linked| !linked) {
            None => Ok(()),
            Some(host) => {
                let message = format!("host {host} has no link");
                let fix = "join each host to a switch, or list the node as a switch";
                Err(self.fault(self.header.links.line, message, fix))
            }
        }
    }

    /// Checks that the graph connects all hosts. Paths through hosts count: a host with several links may be all that joins two parts.
    fn check_reach(&self) -> Result<(), FileError> {
        let mut neighbours: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for placed in &self.links {
            let [a, b] = placed.link.ends;
            neighbours.entry(a).or_default().push(b);
            neighbours.entry(b).or_default().push(a);
        }
        let mut reached = BTreeSet::from([0]);
        let mut front = vec![0];
        while let Some(node) = front.pop() {
            for &next in neighbours.get(&node).into_iter().flatten() {
                if reached.insert(next) {
                    front.push(next);
                }
            }
        }
        match (0..self.hosts()).find(|host| !reached.contains(host)) {
            Some(host) => {
                let message = format!("no path leads from host 0 to host {host}");
                let fix = "add the links that join their switches";
                Err(self.fault(self.header.links.line, message, fix))
            }
            None => Ok(()),
        }
    }

    /// Warning about links between nodes that an earlier line has joined.
    fn parallel_links(&self) -> Option<FileWarning> {
        let mut joined = BTreeMap::new();
        let mut parallel = Vec::new();
        for placed in &self.links {
            let [a, b] = placed.link.ends;
            let nodes = (a.min(b), a.max(b));
            match joined.get(&nodes) {
                None => drop(joined.insert(nodes, placed.line)),
                Some(&first) => parallel.push((placed.line, nodes, first)),
            }
        }
        let &(line, (a, b), first) = parallel.first()?;
        let more = match parallel.len() {
            1 => String::new(),
            2 => ", as on one more line".into(),
            count => format!(", as on {} more lines", count - 1),
        };
        Some(FileWarning {
            file: self.source.file.into(),
            line,
            message: format!(
                "nodes {a} and {b} are joined again, first on line {first}{more}: all links are used here, the HPCC simulator uses only the last"
            ),
        })
    }

    fn finish(self) -> HpccTopology {
        HpccTopology {
            hosts: self.hosts(),
            switches: self.switches.len() as u32,
            warnings: self.parallel_links().into_iter().collect(),
            links: self.links.into_iter().map(|placed| placed.link).collect(),
        }
    }
}
