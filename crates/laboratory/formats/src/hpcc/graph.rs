//! The lines of a fabric's file.

use super::{Announced, Record, quantity};
use crate::text::{Line, Source, lines, shown, whole_number};
use clearway_units::{Rate, Span};
use clearway_workload::{FileError, FileWarning};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Maximum number of nodes of a fabric: far more than fit in the memory of one machine.
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
/// First line of the topologies of PowerTCP's ns-3.
const TORS_HEADER: &[&str] = &["node_num", "switch_num", "tor_num", "link_num"];
/// First line with four further words, which the ns-3 simulator does not read.
const LONG_HEADER: &[&str] = &["node_num", "switch_num", "link_num", "", "", "", ""];
const LINK: &[&str] = &["src", "dst", "rate", "delay", "error_rate"];

/// A link of a fabric; both directions are equal.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccLink {
    /// The two nodes of the link, in the order of the file.
    pub ends: [u32; 2],
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Probability that the link loses a packet of any size; below 1.
    pub loss: f64,
}

/// Content of the file of a fabric. Each host has one or more links, to switches or to other hosts, and the graph connects all hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccTopology {
    /// Hosts: the nodes from 0.
    pub hosts: u32,
    /// Numbers of the hosts in the file, in the order of the hosts; `None` if they are 0, 1, 2 and so on.
    pub host_numbers: Option<Vec<u32>>,
    /// Switches: the nodes from `hosts`, with their numbers in the file.
    pub switches: Vec<u32>,
    /// Number of consecutive hosts that are the GPUs of one server with NVSwitches; 1 where hosts are servers.
    pub gpus_per_server: u32,
    /// Links in the order of the file, which numbers the interfaces of nodes.
    pub links: Vec<HpccLink>,
    /// Warnings about entries that can run but are probably mistakes.
    pub warnings: Vec<FileWarning>,
}

/// First line of the file.
struct Header {
    nodes: u64,
    /// Number of switches, including NVSwitches.
    switches: u64,
    links: Announced,
    gpus_per_server: u64,
    nv_switches: u64,
    warning: Option<FileWarning>,
}

/// A link and its line.
struct PlacedLink {
    link: HpccLink,
    line: usize,
}

/// Reads the fabric `text`; errors call the file `name`.
///
/// # Errors
/// At the first invalid line, or else where the file as a whole is inconsistent.
pub fn parse_hpcc_topology(name: &str, text: &str) -> Result<HpccTopology, FileError> {
    let source = Source { file: name };
    let lines: Vec<Line<'_>> = lines(text).collect();
    let Some((first, rest)) = lines.split_first() else {
        let fault = source.fault(1, None, "the file is empty");
        return Err(fault.fix("begin it with the numbers of nodes, switches and links"));
    };
    let header = header(source, first)?;
    let (switches, rest) = switches(source, &header, first, rest)?;
    let (links, further) = links(source, &header, rest)?;
    let mut whole = CheckedGraph {
        source,
        header,
        switches,
        links,
        further,
        left_out: BTreeSet::new(),
    };
    whole.leave_out();
    whole.check()?;
    Ok(whole.finish())
}

fn header(source: Source<'_>, line: &Line<'_>) -> Result<Header, FileError> {
    let found = line.tokens.len();
    let known = [HPCC_HEADER, TORS_HEADER, SIMAI_HEADER, LONG_HEADER];
    let Some(names) = known.into_iter().find(|names| names.len() == found) else {
        let message = format!("the first line has 3 words, or 6 with GPUs, but it has {found}");
        let fix = format!(
            "write `{}`, or `{}`",
            HPCC_HEADER.join(" "),
            SIMAI_HEADER.join(" ")
        );
        return Err(source.fault(line.number, None, message).fix(fix));
    };
    let record = Record::split_line(source, line, "the first line", names)?;
    let number = |name: &str, least: u64| match names.iter().position(|own| *own == name) {
        Some(index) => record.number(index, least..=MOST_NODES),
        None => Ok(0),
    };
    let nodes = number("node_num", 1)?;
    let nv_switches = number("nvswitch_num", 0)?;
    let gpus_per_server = number("gpus_per_server", 0)?;
    let switches = nv_switches + number("switch_num", 0)?;
    if switches >= nodes {
        let message = format!("{switches} of {nodes} nodes are switches, so there are no hosts");
        let fix = "write all nodes as `node_num`: hosts and switches";
        return Err(record.fault(0, message, fix));
    }
    Ok(Header {
        nodes,
        switches,
        links: Announced {
            count: number("link_num", 0)?,
            line: line.number,
            noun: "link",
            name: "link_num",
        },
        gpus_per_server,
        nv_switches,
        warning: unused_words(source, line, names),
    })
}

/// Warning about unused words of the first line.
fn unused_words(source: Source<'_>, line: &Line<'_>, names: &[&str]) -> Option<FileWarning> {
    let unused = match names.len() {
        4 => format!("`tor_num` {} is", shown(line.tokens[2].text)),
        7 => "the words after `link_num` are".to_string(),
        _ => return None,
    };
    Some(FileWarning {
        file: source.file.into(),
        line: line.number,
        message: format!("{unused} not used: the links say which switch is where"),
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
                let message = format!("`{text}` is not a node; expected the number of a switch");
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

/// True if the line describes a link, false if it has numbers of switches.
fn is_link(line: &Line<'_>) -> bool {
    line.tokens.len() == LINK.len() && whole_number(line.tokens[2].text).is_none()
}

fn links(
    source: Source<'_>,
    header: &Header,
    lines: &[Line<'_>],
) -> Result<(Vec<PlacedLink>, Option<FileWarning>), FileError> {
    let mut links = Vec::new();
    let mut last = header.links.line;
    for (place, line) in lines.iter().enumerate() {
        if links.len() as u64 == header.links.count {
            let further = header
                .links
                .further(source, line.number, lines.len() - place);
            return Ok((links, Some(further)));
        }
        let record = Record::split_line(source, line, "a link", LINK)?;
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
    Ok((links, None))
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

/// A file whose lines are valid.
struct CheckedGraph<'a> {
    source: Source<'a>,
    header: Header,
    switches: BTreeSet<u32>,
    links: Vec<PlacedLink>,
    /// Warning about links beyond the announced number.
    further: Option<FileWarning>,
    /// Hosts without used links.
    left_out: BTreeSet<u32>,
}

impl CheckedGraph<'_> {
    /// The hosts, by their numbers in the file.
    fn hosts(&self) -> impl Iterator<Item = u32> {
        let nodes = 0..self.header.nodes as u32;
        nodes.filter(|node| !self.switches.contains(node) && !self.left_out.contains(node))
    }

    /// Removes the hosts whose links are all unused, unless this affects all hosts.
    fn leave_out(&mut self) {
        if self.further.is_some() {
            let linked = self.links.iter().flat_map(|placed| placed.link.ends);
            let linked: BTreeSet<u32> = linked.collect();
            let is_without = |host: &u32| !linked.contains(host);
            if !self.hosts().all(|host| is_without(&host)) {
                self.left_out = self.hosts().filter(is_without).collect();
            }
        }
    }

    /// Warning about removed hosts.
    fn missing_hosts(&self) -> Option<FileWarning> {
        let first = self.left_out.first()?;
        let more = match self.left_out.len() {
            1 => " is".to_string(),
            2 => " and one more are".to_string(),
            count => format!(" and {} more are", count - 1),
        };
        Some(FileWarning {
            file: self.source.file.into(),
            line: self.header.links.line,
            message: format!(
                "node {first}{more} left out: a host without a link among those that are used"
            ),
        })
    }

    fn check(&self) -> Result<(), FileError> {
        self.check_host_links()?;
        self.check_reach()
    }

    fn fault(&self, line: usize, message: String, fix: impl Into<String>) -> FileError {
        self.source.fault(line, None, message).fix(fix)
    }

    /// A fix for missing links, which may be among the unused links.
    fn or_correct_number(&self, fix: &str) -> String {
        match &self.further {
            Some(further) => format!(
                "{fix}, or correct `{}`: the lines from {} on are not used",
                self.header.links.name, further.line
            ),
            None => fix.into(),
        }
    }

    /// Checks that each host has a link.
    fn check_host_links(&self) -> Result<(), FileError> {
        let mut linked = vec![false; self.header.nodes as usize];
        for placed in &self.links {
            let [a, b] = placed.link.ends;
            linked[a as usize] = true;
            linked[b as usize] = true;
        }
        match self.hosts().find(|host| !linked[*host as usize]) {
            None => Ok(()),
            Some(host) => {
                let message = format!("host {host} has no link");
                let fix =
                    "join each host to a switch or to another host, or list the node as a switch";
                Err(self.fault(self.header.links.line, message, self.or_correct_number(fix)))
            }
        }
    }

    /// Checks that the graph connects all hosts. Paths through hosts count: a host with several links may be the only connection of two
    /// parts.
    fn check_reach(&self) -> Result<(), FileError> {
        let mut neighbours: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for placed in &self.links {
            let [a, b] = placed.link.ends;
            neighbours.entry(a).or_default().push(b);
            neighbours.entry(b).or_default().push(a);
        }
        let first = self.hosts().next().unwrap_or(0);
        let mut reached = BTreeSet::from([first]);
        let mut front = vec![first];
        while let Some(node) = front.pop() {
            for &next in neighbours.get(&node).into_iter().flatten() {
                if reached.insert(next) {
                    front.push(next);
                }
            }
        }
        match self.hosts().find(|host| !reached.contains(host)) {
            Some(host) => {
                let message = format!("no path leads from host {first} to host {host}");
                let fix = "add the links that join them";
                Err(self.fault(self.header.links.line, message, self.or_correct_number(fix)))
            }
            None => Ok(()),
        }
    }

    /// Warning about links between nodes that an earlier line already joins.
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

    /// Warning about links between hosts, which may be a switch that is not listed.
    fn joined_hosts(&self) -> Option<FileWarning> {
        let is_host = |node: &u32| !self.switches.contains(node);
        let mut joined = self
            .links
            .iter()
            .filter(|placed| placed.link.ends.iter().all(is_host));
        let first = joined.next()?;
        let [a, b] = first.link.ends;
        let more = match joined.count() {
            0 => String::new(),
            count => format!(", and {count} more links such as this"),
        };
        Some(FileWarning {
            file: self.source.file.into(),
            line: first.line,
            message: format!(
                "a link joins the hosts {a} and {b}{more}: hosts with links to other hosts forward packets; list a node as a switch if it is one"
            ),
        })
    }

    /// Warning about hosts whose numbers are not 0, 1, 2 and so on.
    fn other_numbers(&self) -> Option<FileWarning> {
        let (place, node) = (0u32..)
            .zip(self.hosts())
            .find(|(place, node)| place != node)?;
        Some(FileWarning {
            file: self.source.file.into(),
            line: self.header.links.line,
            message: format!(
                "hosts are counted from 0 here, in the order of their numbers, so that node {node} is host {place}; switches keep their numbers, and files of flows have those of this file"
            ),
        })
    }

    /// Number of GPUs of a server, and a warning if the file's number is not used.
    fn servers(&self, hosts: u32) -> (u32, Option<FileWarning>) {
        let gpus = u32::try_from(self.header.gpus_per_server).unwrap_or(u32::MAX);
        let why = if gpus <= 1 {
            return (1, None);
        } else if self.header.nv_switches == 0 {
            "no NVSwitch joins them".to_string()
        } else if !hosts.is_multiple_of(gpus) {
            format!("{hosts} hosts are not whole servers")
        } else {
            return (gpus, None);
        };
        let warning = FileWarning {
            file: self.source.file.into(),
            line: self.header.links.line,
            message: format!("`gpus_per_server` {gpus} is not used, each host is a server: {why}"),
        };
        (1, Some(warning))
    }

    fn finish(mut self) -> HpccTopology {
        let hosts: Vec<u32> = self.hosts().collect();
        let warnings = [
            self.header.warning.take(),
            self.other_numbers(),
            self.further.take(),
            self.missing_hosts(),
            self.joined_hosts(),
            self.parallel_links(),
        ];
        let (gpus_per_server, not_used) = self.servers(hosts.len() as u32);
        let switches: Vec<u32> = self.switches.iter().copied().collect();
        let nodes: FxHashMap<u32, u32> = hosts.iter().chain(&switches).copied().zip(0..).collect();
        let links = self.links.into_iter().map(|placed| HpccLink {
            ends: placed.link.ends.map(|node| nodes[&node]),
            ..placed.link
        });
        HpccTopology {
            hosts: hosts.len() as u32,
            links: links.collect(),
            gpus_per_server,
            host_numbers: (hosts.last() != Some(&(hosts.len() as u32 - 1))).then_some(hosts),
            switches,
            warnings: warnings.into_iter().chain([not_used]).flatten().collect(),
        }
    }
}
