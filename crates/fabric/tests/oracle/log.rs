//! What happened, node by node and link by link, and where two accounts of it part.

use crate::network::Network;
use clearway_fabric::topology::{LinkId, NodeId, Topology};
use clearway_fabric::{DropCause, Observer};
use clearway_transport::{Event, Header, Packet};
use clearway_units::{HostId, Time};
use std::fmt::Write;

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Entry {
    Arrival(Packet),
    Transport(Event),
    Queue(u64),
    Mark(Packet),
    Drop(Packet, DropCause),
}

type Lane = Vec<(Time, Entry)>;

/// Everything that happened, in the order of each place. A simulator may handle the queues of one switch one after the other,
/// so the arrivals at a switch are kept in order for each of its egress links only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Log {
    /// Arrivals at nodes, and what the endpoints of hosts say. Those of switches move to `entering`.
    nodes: Vec<Lane>,
    /// Arrivals at switches, by the link that they will take.
    entering: Vec<Lane>,
    /// What happens in the queues.
    links: Vec<Lane>,
}

impl Log {
    pub(crate) fn new(topology: &Topology) -> Self {
        let links = vec![Vec::new(); topology.cables.len() * 2];
        Self {
            nodes: vec![Vec::new(); topology.hosts as usize + topology.switches.len()],
            entering: links.clone(),
            links,
        }
    }

    /// Distributes the arrivals at switches over their egress links.
    pub(crate) fn by_queue(mut self, network: &Network<'_>) -> Self {
        for (index, lane) in self.nodes.iter_mut().enumerate() {
            let node = NodeId(index as u32);
            if network.is_host(node) {
                continue;
            }
            for (time, entry) in std::mem::take(lane) {
                if let Entry::Arrival(packet) = entry {
                    let link = network.next_link(node, &packet);
                    self.entering[link.0 as usize].push((time, entry));
                }
            }
        }
        self
    }

    /// Joins the logs of domains, which share no node and no link.
    pub(crate) fn join(mut self, others: impl IntoIterator<Item = Self>) -> Self {
        for other in others {
            let pairs = self.nodes.iter_mut().zip(other.nodes);
            for (mine, theirs) in pairs.chain(self.links.iter_mut().zip(other.links)) {
                assert!(
                    mine.is_empty() || theirs.is_empty(),
                    "two domains saw one place"
                );
                mine.extend(theirs);
            }
        }
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.count(|_| true)
    }

    /// How many entries `select` says yes to.
    pub(crate) fn count(&self, select: impl Fn(&Entry) -> bool) -> usize {
        let entries = self
            .nodes
            .iter()
            .chain(&self.entering)
            .chain(&self.links)
            .flatten();
        entries.filter(|(_, entry)| select(entry)).count()
    }

    /// The earliest difference to `other`, in words.
    pub(crate) fn first_difference(
        &self,
        other: &Self,
        names: [&str; 2],
        topology: &Topology,
    ) -> Option<String> {
        let node = |index: usize| topology.node_name(NodeId(index as u32));
        let link = |index: usize| topology.link_name(LinkId(index as u32));
        let at = |index: usize| format!("at {}", node(index));
        let before = |index: usize| format!("arriving for link {index}, {}", link(index));
        let on = |index: usize| format!("in the queue of link {index}, {}", link(index));
        let nodes = lanes(&self.nodes, &other.nodes, at);
        let entering = lanes(&self.entering, &other.entering, before);
        let links = lanes(&self.links, &other.links, on);
        let all = nodes.chain(entering).chain(links);
        let ((_, index), place, a, b) = all.min_by_key(|part| part.0)?;
        Some(describe(place, index, [a, b], names))
    }
}

/// The lanes that differ, and from where.
fn lanes<'a>(
    a: &'a [Lane],
    b: &'a [Lane],
    name: impl Fn(usize) -> String,
) -> impl Iterator<Item = ((Time, usize), String, &'a Lane, &'a Lane)> {
    let pairs = a.iter().zip(b).enumerate();
    pairs.filter_map(move |(i, (a, b))| Some((parting(a, b)?, name(i), a, b)))
}

/// When and at which index two sequences part.
fn parting(a: &[(Time, Entry)], b: &[(Time, Entry)]) -> Option<(Time, usize)> {
    let index = (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i))?;
    let time = |side: &[(Time, Entry)]| side.get(index).map_or(Time::NEVER, |entry| entry.0);
    Some((time(a).min(time(b)), index))
}

fn describe(place: String, index: usize, sides: [&[(Time, Entry)]; 2], names: [&str; 2]) -> String {
    let mut text = format!("first difference {place}, entry {index}\n");
    for &(time, entry) in &sides[0][index.saturating_sub(3)..index] {
        let _ = writeln!(text, "  both    {} {}", time.as_ps(), brief(entry));
    }
    for (name, side) in names.into_iter().zip(sides) {
        for i in index..index + 2 {
            let line = side.get(i).map_or("nothing more".into(), |&(time, entry)| {
                format!("{} {}", time.as_ps(), brief(entry))
            });
            let _ = writeln!(text, "  {name:7} {line}");
        }
    }
    text
}

fn brief(entry: Entry) -> String {
    match entry {
        Entry::Arrival(packet) => format!("arrival {}", brief_packet(packet)),
        Entry::Mark(packet) => format!("mark {}", brief_packet(packet)),
        Entry::Drop(packet, cause) => format!("drop ({cause:?}) {}", brief_packet(packet)),
        Entry::Queue(bytes) => format!("queue {bytes} B"),
        Entry::Transport(event) => format!("{event:?}"),
    }
}

fn brief_packet(packet: Packet) -> String {
    let what = match packet.header {
        Header::Data {
            psn,
            retransmission: false,
            ..
        } => format!("data {psn}"),
        Header::Data { psn, .. } => format!("data {psn} again"),
        Header::Sack { epsn, bitmap, .. } => format!("sack {epsn}+{bitmap:x}"),
        Header::Probe { base } => format!("probe {base}"),
    };
    format!(
        "flow {} {what} {}->{} port {} ecn {} {} B stamp {}",
        packet.flow,
        packet.src,
        packet.dst,
        packet.source_port,
        u8::from(packet.ecn),
        packet.size,
        packet.stamp.as_ps()
    )
}

impl Observer for Log {
    const TRACES_TRANSPORT: bool = true;

    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        self.nodes[node.0 as usize].push((now, Entry::Arrival(*packet)));
    }
    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.links[link.0 as usize].push((now, Entry::Queue(bytes)));
    }
    fn on_drop(&mut self, now: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        self.links[link.0 as usize].push((now, Entry::Drop(*packet, cause)));
    }
    fn on_mark(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.links[link.0 as usize].push((now, Entry::Mark(*packet)));
    }
    fn on_transport(&mut self, now: Time, host: HostId, event: &Event) {
        self.nodes[host.index()].push((now, Entry::Transport(*event)));
    }
}
