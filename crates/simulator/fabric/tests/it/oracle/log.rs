//! Log of a run, node by node and link by link, and the first difference between two logs.

use super::network::Network;
use crate::common::Scenario;
use clearway_fabric::topology::{GroupRouting, LinkId, NodeId, Topology};
use clearway_fabric::{DropCause, Interests, Observer};
use clearway_transport::{ClassSet, Event, Header, Packet};
use clearway_units::{HostId, Time};
use std::collections::BTreeMap;
use std::fmt::Write;

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Entry {
    Arrival(Packet),
    Transport(Event),
    Queue(u64),
    Mark(Packet),
    Trim(Packet),
    Drop(Packet, DropCause),
    Pause(ClassSet),
}

/// Place of an entry. For one place, all logs must have the same order.
///
/// A simulator may handle the queues of one switch one after the other, so arrivals there are told apart by the link that
/// they will take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Arrivals at a node, and events of its endpoint.
    Node(NodeId),
    /// Arrivals at a switch for an egress link.
    Towards(LinkId),
    /// The length of the queue of a link.
    Queue(LinkId),
    /// Marks and losses on a link.
    Fate(LinkId),
    /// Classes that the transmitter of a link holds back.
    Pauses(LinkId),
}

type Lane = Vec<(Time, Entry)>;

/// All entries of a run, by place.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Log(BTreeMap<Place, Lane>);

impl Log {
    fn push(&mut self, place: Place, time: Time, entry: Entry) {
        self.0.entry(place).or_default().push((time, entry));
    }

    /// Distributes the arrivals at switches over their egress links, where queues are handled one after the other.
    pub(crate) fn comparable(self, scenario: &Scenario, network: &Network<'_>) -> Self {
        // Where ports are chosen by their queues, all arrivals are handled in the order of time.
        let in_order = |node| {
            let topology = &scenario.topology;
            let role = topology.role_of(node).expect("a switch");
            let detours = topology.detours().map(|groups| groups.routing);
            scenario.switch.path_choice(role).is_local() || detours == Some(GroupRouting::Ugal)
        };
        let mut sorted = Self::default();
        for (place, lane) in self.0 {
            for (time, entry) in lane {
                match (place, entry) {
                    (Place::Node(node), Entry::Arrival(packet))
                        if !network.is_host(node) && !in_order(node) =>
                    {
                        let (Ok(links) | Err(links)) = network.next_links(node, &packet, time);
                        let link = network.hashed(node, &packet, &links);
                        sorted.push(Place::Towards(link), time, entry);
                    }
                    _ => sorted.push(place, time, entry),
                }
            }
        }
        sorted
    }

    /// Joins the logs of domains, which share no place.
    pub(crate) fn join(logs: impl IntoIterator<Item = Self>) -> Self {
        let mut joined = Self::default();
        for (place, lane) in logs.into_iter().flat_map(|log| log.0) {
            let before = joined.0.insert(place, lane);
            assert!(before.is_none(), "two domains saw {place:?}");
        }
        joined
    }

    pub(crate) fn len(&self) -> usize {
        self.count(|_| true)
    }

    /// Number of entries that `select` says yes to.
    pub(crate) fn count(&self, select: impl Fn(&Entry) -> bool) -> usize {
        let entries = self.0.values().flatten();
        entries.filter(|(_, entry)| select(entry)).count()
    }

    /// Classes that the transmitter of each link was told to hold back, with times.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = (LinkId, Vec<(Time, ClassSet)>)> + '_ {
        self.0.iter().filter_map(|(place, lane)| {
            let Place::Pauses(link) = *place else {
                return None;
            };
            let told = lane.iter().filter_map(|&(time, entry)| match entry {
                Entry::Pause(classes) => Some((time, classes)),
                _ => None,
            });
            Some((link, told.collect()))
        })
    }

    /// The earliest difference to `other`, in words.
    pub(crate) fn first_difference(
        &self,
        other: &Self,
        names: [&str; 2],
        topology: &Topology,
    ) -> Option<String> {
        let places = self.0.keys().chain(other.0.keys());
        let partings = places.filter_map(|place| {
            let sides = [self, other].map(|log| log.0.get(place).map_or(&[][..], Vec::as_slice));
            Some((parting(sides[0], sides[1])?, *place, sides))
        });
        let ((_, index), place, [a, b]) =
            partings.min_by_key(|(when, place, _)| (*when, *place))?;
        let place = match place {
            Place::Node(node) => format!("at {}", topology.node_name(node)),
            Place::Towards(link) => format!("arriving for {}", topology.link_name(link)),
            Place::Queue(link) => format!("in the queue of {}", topology.link_name(link)),
            Place::Fate(link) => format!("in marks and losses of {}", topology.link_name(link)),
            Place::Pauses(link) => format!("in pauses of {}", topology.link_name(link)),
        };
        Some(describe(&place, index, [a, b], names))
    }
}

/// Time and index at which two sequences part.
fn parting(a: &[(Time, Entry)], b: &[(Time, Entry)]) -> Option<(Time, usize)> {
    let index = (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i))?;
    let time = |side: &[(Time, Entry)]| side.get(index).map_or(Time::NEVER, |entry| entry.0);
    Some((time(a).min(time(b)), index))
}

fn describe(place: &str, index: usize, sides: [&[(Time, Entry)]; 2], names: [&str; 2]) -> String {
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
        Entry::Trim(packet) => format!("trim {}", brief_packet(packet)),
        Entry::Drop(packet, cause) => format!("drop ({cause:?}) {}", brief_packet(packet)),
        Entry::Queue(bytes) => format!("queue {bytes} B"),
        Entry::Pause(classes) => format!("{classes:?}"),
        Entry::Transport(event) => format!("{event:?}"),
    }
}

fn brief_packet(packet: Packet) -> String {
    let what = match packet.header {
        Header::Data { psn, flags, .. } => format!("data {psn} {flags:?}"),
        Header::Sack { epsn, bitmap, .. } => format!("sack {epsn}+{bitmap:x}"),
        Header::Probe { base, .. } => format!("probe {base}"),
        Header::Pull { pull } => format!("pull {pull}"),
        Header::Ack { epsn, nack, .. } => format!("ack {epsn} nack {nack}"),
        Header::Nack { psn, last_hop } => format!("nack {psn} last hop {last_hop}"),
        Header::Notification => "notification".into(),
        header @ Header::RateControl { .. } => format!("{header:?}"),
    };
    format!(
        "flow {} class {} {what} {}->{} port {} ecn {} {} B stamp {}",
        packet.flow,
        packet.class.index(),
        packet.src,
        packet.dst,
        packet.source_port,
        u8::from(packet.ecn),
        packet.size,
        packet.stamp.as_ps()
    )
}

impl Observer for Log {
    fn interests(&self) -> Interests {
        Interests {
            transport: true,
            ..Interests::PACKETS
        }
    }

    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        self.push(Place::Node(node), now, Entry::Arrival(*packet));
    }
    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.push(Place::Queue(link), now, Entry::Queue(bytes));
    }
    fn on_drop(&mut self, now: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        self.push(Place::Fate(link), now, Entry::Drop(*packet, cause));
    }
    fn on_trim(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.push(Place::Fate(link), now, Entry::Trim(*packet));
    }
    fn on_mark(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.push(Place::Fate(link), now, Entry::Mark(*packet));
    }
    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        self.push(Place::Pauses(link), now, Entry::Pause(classes));
    }
    fn on_transport(&mut self, now: Time, host: HostId, event: &Event) {
        self.push(Place::Node(NodeId(host.0)), now, Entry::Transport(*event));
    }
}
