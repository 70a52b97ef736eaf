//! The recorder that follows chosen flows: the path of each packet, and the limits that kept senders from sending.

use crate::assemble::Assembly;
use crate::record::Merge;
use clearway_fabric::topology::{LinkId, NodeId, Topology};
use clearway_fabric::{DropCause, Interests, Observer, Senders};
use clearway_transport::{Class, ClassSet, DataFlags, Event, Header, Packet, SendLimit};
use clearway_units::{FlowId, HostId, Span, Time, WireClock};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest number of hops and transmissions kept, of 40 bytes each.
const MOST_RECORDS: u64 = 16 << 20;

/// Identity of a packet of a flow. Data packets and probes are identified by the instant at which they left their NIC, which sends one
/// packet at a time; an answer by the identity of the packet that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PacketId {
    pub(super) flow: FlowId,
    pub(super) stamp: Time,
    pub(super) is_answer: bool,
}

impl PacketId {
    /// `None` for packets that neither carry nor acknowledge payload, nor ask for an acknowledgement.
    fn from_packet(packet: &Packet) -> Option<Self> {
        let is_answer = match packet.header {
            Header::Data { .. } | Header::Probe { .. } => false,
            Header::Sack { .. } | Header::Ack { .. } | Header::Nack { .. } => true,
            Header::Notification | Header::RateControl { .. } | Header::Pull { .. } => return None,
        };
        Some(Self {
            flow: packet.flow,
            stamp: packet.stamp,
            is_answer,
        })
    }
}

/// Transmission of a packet of a followed flow over a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    pub(super) packet: PacketId,
    pub(super) link: LinkId,
    /// Class on this link, which depends on the virtual channel.
    pub(super) class: Class,
    pub(super) start: Time,
    pub(super) end: Time,
}

/// Transmission of a data packet of a followed flow at its NIC.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) psn: u32,
    /// True if the packet is a retransmission.
    pub(super) again: bool,
}

/// Transmission of any packet at the NIC of a followed flow's sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transmission {
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) flow: FlowId,
}

/// A queue pair of a flow.
pub(super) type QueuePair = (FlowId, u8);

/// The flows to follow, and the facts of the fabric that the recorders need.
#[derive(Debug)]
pub struct FollowPlan {
    flows: FxHashMap<FlowId, Windows>,
    by_source: FxHashMap<HostId, Source>,
    hosts: u32,
    links: Vec<(NodeId, WireClock)>,
    records: AtomicU64,
}

/// Flows of a sender, and the times in which some of them are followed.
#[derive(Debug, Default)]
struct Source {
    flows: Vec<FlowId>,
    windows: Windows,
}

/// Times, each with its begin and end, in order and apart from each other.
#[derive(Debug, Default)]
struct Windows(Vec<(Time, Time)>);

impl Windows {
    fn new(mut windows: Vec<(Time, Time)>) -> Self {
        windows.sort_unstable();
        windows.dedup_by(|next, last| {
            let is_joined = next.0 <= last.1;
            if is_joined {
                last.1 = last.1.max(next.1);
            }
            is_joined
        });
        Self(windows)
    }

    fn contains(&self, time: Time) -> bool {
        let begun = self.0.partition_point(|window| window.0 <= time);
        begun > 0 && time <= self.0[begun - 1].1
    }
}

impl FollowPlan {
    /// A plan to follow these flows in a run of `assembly`.
    pub fn new(assembly: &Assembly, flows: &[FlowId]) -> Arc<Self> {
        let always = (Time::ZERO, Time::NEVER);
        Self::within(assembly, flows.iter().map(|&flow| (flow, always)))
    }

    /// A plan for messages, each with its connection, its post and its end. In a run in which no packet gets older than `longest_age`
    /// before it arrives or is lost, it follows all packets that can have delayed them.
    pub fn for_messages(
        assembly: &Assembly,
        messages: impl Iterator<Item = (FlowId, (Time, Time))>,
        longest_age: Span,
    ) -> Arc<Self> {
        let before = |time: Time| Time::from_ps(time.as_ps().saturating_sub(longest_age.as_ps()));
        let windows = messages.map(|(flow, (from, to))| (flow, (before(from), to)));
        Self::within(assembly, windows)
    }

    /// A plan for flows, each with times: a packet is followed if it left its sender at one of them.
    fn within(
        assembly: &Assembly,
        windows: impl Iterator<Item = (FlowId, (Time, Time))>,
    ) -> Arc<Self> {
        let topology = &assembly.topology;
        let mut flows: BTreeMap<FlowId, Vec<(Time, Time)>> = BTreeMap::new();
        for (flow, window) in windows {
            flows.entry(flow).or_default().push(window);
        }
        let mut by_source: FxHashMap<HostId, Source> = FxHashMap::default();
        for (&flow, windows) in &flows {
            let source = by_source.entry(assembly.nics(flow).0).or_default();
            source.flows.push(flow);
            source.windows.0.extend(windows);
        }
        for source in by_source.values_mut() {
            source.windows = Windows::new(std::mem::take(&mut source.windows.0));
        }
        let facts = |number| {
            let link = LinkId(number);
            let rate = topology.cables[link.cable()].rate;
            (topology.link_ends(link).0, WireClock::new(rate))
        };
        let flows = flows.into_iter();
        Arc::new(Self {
            flows: flows
                .map(|(flow, windows)| (flow, Windows::new(windows)))
                .collect(),
            by_source,
            hosts: topology.hosts,
            links: (0..2 * topology.cables.len() as u32).map(facts).collect(),
            records: AtomicU64::new(0),
        })
    }

    /// True if the plan follows this flow.
    pub(super) fn follows(&self, flow: FlowId) -> bool {
        self.flows.contains_key(&flow)
    }

    /// True if there is room for another record.
    fn takes_one(&self) -> bool {
        self.records.fetch_add(1, Ordering::Relaxed) < MOST_RECORDS
    }

    /// True if some records had no room.
    pub(super) fn is_overrun(&self) -> bool {
        self.records.load(Ordering::Relaxed) > MOST_RECORDS
    }
}

/// Transmissions over a link while followed packets are in front of it.
#[derive(Debug, Default)]
struct Recent {
    ends: VecDeque<(Time, FlowId)>,
    /// Length at which transmissions that no followed packet has waited for are removed.
    tidy_at: usize,
}

/// Follows the flows of its plan. Each domain has one recorder; [`Merge`] joins them.
#[derive(Debug)]
pub struct FollowRecorder {
    pub(super) plan: Arc<FollowPlan>,
    pub(super) hops: Vec<Hop>,
    /// Data packets that are followed, each after the one that its queue pair sent before it.
    pub(super) sent: FxHashMap<QueuePair, Vec<Sent>>,
    /// The last data packet, if it is not followed.
    previous: FxHashMap<QueuePair, Sent>,
    pub(super) transmissions: FxHashMap<LinkId, Vec<Transmission>>,
    /// Limits of each queue pair, each with the time from which it held.
    pub(super) limits: FxHashMap<QueuePair, Vec<(Time, SendLimit)>>,
    /// Detections of losses.
    pub(super) losses: FxHashMap<FlowId, Vec<Time>>,
    pub(super) pauses: FxHashMap<LinkId, Vec<(Time, ClassSet)>>,
    /// The other flows whose data a flow's data has waited for, by link.
    pub(super) sharers: FxHashMap<(FlowId, LinkId), FxHashSet<FlowId>>,
    /// Followed packets in the switch, with their arrival times.
    present: FxHashMap<PacketId, Time>,
    recent: FxHashMap<LinkId, Recent>,
    /// Longest time from the departure of a packet at its NIC to its end, and to the end of an answer to it, for all flows.
    longest_age: Span,
}

impl FollowRecorder {
    /// A recorder for one domain.
    pub fn new(plan: &Arc<FollowPlan>) -> Self {
        Self {
            plan: Arc::clone(plan),
            hops: Vec::new(),
            sent: FxHashMap::default(),
            previous: FxHashMap::default(),
            transmissions: FxHashMap::default(),
            limits: FxHashMap::default(),
            losses: FxHashMap::default(),
            pauses: FxHashMap::default(),
            sharers: FxHashMap::default(),
            present: FxHashMap::default(),
            recent: FxHashMap::default(),
            longest_age: Span::ZERO,
        }
    }

    /// Longest time from the departure of a packet at its NIC to its arrival or loss, and to that of an answer to it, of all flows.
    pub fn longest_age(&self) -> Span {
        self.longest_age
    }

    fn followed(&self, packet: &Packet) -> Option<PacketId> {
        let windows = self.plan.flows.get(&packet.flow)?;
        PacketId::from_packet(packet).filter(|id| windows.contains(id.stamp))
    }

    fn note_age(&mut self, now: Time, packet: &Packet) {
        if let Some(id) = PacketId::from_packet(packet) {
            let age = now.as_ps().saturating_sub(id.stamp.as_ps());
            self.longest_age = self.longest_age.max(Span::from_ps(age));
        }
    }

    /// Records a packet that leaves the NIC of a host.
    fn on_nic(
        &mut self,
        (start, end): (Time, Time),
        link: LinkId,
        host: HostId,
        packet: &Packet,
        is_followed: bool,
    ) {
        let flow = packet.flow;
        let source = self.plan.by_source.get(&host);
        let is_near = source.is_some_and(|source| source.windows.contains(end));
        if is_near || is_followed {
            if !self.plan.takes_one() {
                return;
            }
            let transmissions = self.transmissions.entry(link).or_default();
            transmissions.push(Transmission { start, end, flow });
        }
        let Header::Data { psn, flags, .. } = packet.header else {
            return;
        };
        if !self.plan.follows(flow) {
            return;
        }
        let queue_pair = (flow, packet.queue_pair);
        let sent = Sent {
            start,
            end,
            psn,
            again: flags.contains(DataFlags::RETRANSMISSION),
        };
        if is_followed {
            let own = self.sent.entry(queue_pair).or_default();
            own.extend(self.previous.remove(&queue_pair));
            own.push(sent);
        } else {
            self.previous.insert(queue_pair, sent);
        }
    }

    /// Records a packet that leaves a switch port for which followed packets may wait.
    fn on_port(&mut self, end: Time, link: LinkId, packet: &Packet, followed: Option<PacketId>) {
        let recent = self.recent.entry(link).or_default();
        if packet.class.is_data() {
            recent.ends.push_back((end, packet.flow));
        }
        let arrival = followed.and_then(|id| self.present.remove(&id));
        if let Some(arrival) = arrival
            && packet.class.is_data()
        {
            let behind = recent.ends.iter().rev();
            let others = behind
                .take_while(|(end, _)| *end > arrival)
                .map(|&(_, flow)| flow)
                .filter(|&flow| flow != packet.flow);
            let sharers = self.sharers.entry((packet.flow, link)).or_default();
            sharers.extend(others);
        }
        if recent.ends.len() > recent.tidy_at {
            let oldest = self.present.values().min().copied().unwrap_or(end);
            let gone = recent.ends.partition_point(|(end, _)| *end <= oldest);
            recent.ends.drain(..gone);
            recent.tidy_at = 64 + 2 * recent.ends.len();
        }
        if self.present.is_empty() {
            self.recent.clear();
        }
    }
}

impl Observer for FollowRecorder {
    fn interests(&self) -> Interests {
        Interests {
            arrivals: true,
            departures: true,
            transport: true,
            senders: true,
            ..Interests::NONE
        }
    }

    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        if node.0 < self.plan.hosts {
            self.note_age(now, packet);
        } else if let Some(id) = self.followed(packet) {
            self.present.insert(id, now);
        }
    }

    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        let (from, clock) = self.plan.links[link.0 as usize];
        let span = clock.span_of(packet.size.into());
        let start = Time::from_ps(end.as_ps() - span.as_ps());
        let followed = self.followed(packet);
        if from.0 < self.plan.hosts {
            self.on_nic(
                (start, end),
                link,
                HostId(from.0),
                packet,
                followed.is_some(),
            );
        } else if !self.present.is_empty() {
            self.on_port(end, link, packet, followed);
        }
        if let Some(id) = followed
            && self.plan.takes_one()
        {
            self.hops.push(Hop {
                packet: id,
                link,
                class: packet.class,
                start,
                end,
            });
        }
    }

    fn on_drop(&mut self, now: Time, _: LinkId, packet: &Packet, _: DropCause) {
        self.note_age(now, packet);
        if let Some(id) = self.followed(packet) {
            self.present.remove(&id);
        }
    }

    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        self.pauses.entry(link).or_default().push((now, classes));
    }

    fn on_transport(&mut self, _: Time, _: HostId, event: &Event) {
        if let Event::Loss { flow, now, .. } = *event
            && self.plan.follows(flow)
        {
            self.losses.entry(flow).or_default().push(now);
        }
    }

    fn on_endpoint(&mut self, now: Time, endpoint: &dyn Senders) {
        let Some(source) = self.plan.by_source.get(&endpoint.host()) else {
            return;
        };
        for &flow in &source.flows {
            endpoint.for_each_limit(now, flow, &mut |queue_pair, limit| {
                let limits = self.limits.entry((flow, queue_pair)).or_default();
                if limits.last().is_none_or(|&(_, last)| last != limit) {
                    limits.push((now, limit));
                }
            });
        }
    }
}

impl Merge for FollowRecorder {
    /// Records of another domain. The sending end of a link and the sender of a flow are in only one domain.
    fn merge(&mut self, other: Self) {
        self.hops.extend(other.hops);
        self.sent.extend(other.sent);
        self.transmissions.extend(other.transmissions);
        self.limits.extend(other.limits);
        self.losses.extend(other.losses);
        self.pauses.extend(other.pauses);
        self.sharers.extend(other.sharers);
        self.longest_age = self.longest_age.max(other.longest_age);
    }
}

/// Time from the end of a transmission to the arrival at the next node: propagation and switch latency.
pub(super) fn arrival(topology: &Topology, hop: &Hop) -> Time {
    hop.end + topology.link_delay(hop.link)
}
