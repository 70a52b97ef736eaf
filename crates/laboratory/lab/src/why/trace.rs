//! Records of followed flows, arranged for the walk along a critical path.

use super::follow::{FollowRecorder, Hop, PacketId, QueuePair, Sent, Transmission, arrival};
use clearway_fabric::topology::{LinkId, Topology};
use clearway_transport::{Class, ClassSet, SendLimit};
use clearway_units::{FlowId, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Pause of a link: begin, end, and paused classes.
type Pause = (Time, Time, ClassSet);

/// The records of all domains.
pub(super) struct Trace<'a> {
    pub(super) topology: &'a Topology,
    pub(super) sent: FxHashMap<QueuePair, Vec<Sent>>,
    pub(super) transmissions: FxHashMap<LinkId, Vec<Transmission>>,
    pub(super) limits: FxHashMap<QueuePair, Vec<(Time, SendLimit)>>,
    pub(super) losses: FxHashMap<FlowId, Vec<Time>>,
    pub(super) sharers: FxHashMap<(FlowId, LinkId), FxHashSet<FlowId>>,
    /// The hops of each packet, in order.
    hops: FxHashMap<PacketId, Vec<Hop>>,
    /// The data packets and probes of a flow on a link, in order of departure.
    on_link: FxHashMap<(FlowId, LinkId), Vec<Hop>>,
    /// Queue pair and place of the data packet of a flow that left at this time; places count the packets of the queue pair.
    places: FxHashMap<(FlowId, Time), (u8, usize)>,
    /// Answers by flow and the time of arrival at its sender.
    answers: FxHashMap<(FlowId, Time), PacketId>,
    pauses: FxHashMap<LinkId, Vec<Pause>>,
}

impl<'a> Trace<'a> {
    pub(super) fn new(topology: &'a Topology, recorder: FollowRecorder) -> Self {
        let mut hops: FxHashMap<PacketId, Vec<Hop>> = FxHashMap::default();
        let mut on_link: FxHashMap<(FlowId, LinkId), Vec<Hop>> = FxHashMap::default();
        for hop in recorder.hops {
            hops.entry(hop.packet).or_default().push(hop);
            if !hop.packet.is_answer {
                let key = (hop.packet.flow, hop.link);
                on_link.entry(key).or_default().push(hop);
            }
        }
        let sort = |hops: &mut Vec<Hop>| hops.sort_unstable_by_key(|hop| hop.end);
        hops.values_mut().for_each(sort);
        on_link.values_mut().for_each(sort);
        let mut answers = FxHashMap::default();
        for (&id, hops) in hops.iter().filter(|(id, _)| id.is_answer) {
            if let Some(last) = hops.last()
                && topology
                    .switch_index(topology.link_ends(last.link).1)
                    .is_none()
            {
                answers.insert((id.flow, arrival(topology, last)), id);
            }
        }
        let mut places = FxHashMap::default();
        for (&(flow, queue_pair), sent) in &recorder.sent {
            let place = |(index, sent): (usize, &Sent)| ((flow, sent.start), (queue_pair, index));
            places.extend(sent.iter().enumerate().map(place));
        }
        let pauses = recorder.pauses.into_iter();
        Self {
            topology,
            sent: recorder.sent,
            transmissions: recorder.transmissions,
            limits: recorder.limits,
            losses: recorder.losses,
            sharers: recorder.sharers,
            hops,
            on_link,
            places,
            answers,
            pauses: pauses
                .map(|(link, changes)| (link, intervals(&changes)))
                .collect(),
        }
    }

    /// The hops of a packet, in order.
    pub(super) fn hops(&self, packet: PacketId) -> &[Hop] {
        self.hops.get(&packet).map_or(&[], Vec::as_slice)
    }

    /// The data packet that left its NIC at `start`, as queue pair and place.
    pub(super) fn place(&self, flow: FlowId, start: Time) -> Option<(u8, usize)> {
        self.places.get(&(flow, start)).copied()
    }

    /// The answer that reached the sender of `flow` at this instant.
    pub(super) fn answer_at(&self, flow: FlowId, time: Time) -> Option<PacketId> {
        self.answers.get(&(flow, time)).copied()
    }

    /// Arrivals of a flow's packets: data at its receiver, and answers at its sender, each with its time.
    pub(super) fn arrivals(&self) -> FxHashMap<FlowId, Vec<(Time, PacketId)>> {
        let mut arrivals: FxHashMap<FlowId, Vec<(Time, PacketId)>> = FxHashMap::default();
        for (&id, hops) in &self.hops {
            let Some(last) = hops.last() else { continue };
            let end = self.topology.link_ends(last.link).1;
            if self.topology.switch_index(end).is_none() {
                let own = arrivals.entry(id.flow).or_default();
                own.push((arrival(self.topology, last), id));
            }
        }
        arrivals.values_mut().for_each(|own| own.sort_unstable());
        arrivals
    }

    /// The previous packet of the same flow on the same link.
    pub(super) fn before(&self, hop: &Hop) -> Option<Hop> {
        let hops = self.on_link.get(&(hop.packet.flow, hop.link))?;
        let place = hops.partition_point(|other| other.end < hop.end);
        place.checked_sub(1).map(|place| hops[place])
    }

    /// The hops of the data packets and probes of a flow, by link.
    pub(super) fn links_of(&self, flow: FlowId) -> BTreeMap<LinkId, &[Hop]> {
        let own = self.on_link.iter().filter(|((of, _), _)| *of == flow);
        own.map(|(&(_, link), hops)| (link, hops.as_slice()))
            .collect()
    }

    /// The paths of a flow's data packets, each with the number of packets that reached its end.
    pub(super) fn ways_of(&self, flow: FlowId) -> BTreeMap<Vec<LinkId>, u64> {
        let mut ways = BTreeMap::new();
        let own = |id: &PacketId| id.flow == flow && !id.is_answer;
        for (_, hops) in self.hops.iter().filter(|(id, _)| own(id)) {
            let way: Vec<LinkId> = hops.iter().map(|hop| hop.link).collect();
            let end = way.last().map(|&last| self.topology.link_ends(last).1);
            if end.is_some_and(|end| self.topology.switch_index(end).is_none()) {
                *ways.entry(way).or_default() += 1;
            }
        }
        ways
    }

    /// The parts of `from..to` in which `class` was paused on a link, in order.
    pub(super) fn pauses(
        &self,
        (from, to): (Time, Time),
        link: LinkId,
        class: Class,
    ) -> impl Iterator<Item = (Time, Time)> + '_ {
        let all = self.pauses.get(&link).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|pause| pause.1 <= from);
        all[first..]
            .iter()
            .take_while(move |pause| pause.0 < to)
            .filter(move |pause| pause.2.contains(class))
            .map(move |pause| (pause.0.max(from), pause.1.min(to)))
    }
}

/// Pauses, from the changes of the paused classes.
fn intervals(changes: &[(Time, ClassSet)]) -> Vec<Pause> {
    let ends = changes[1..].iter().map(|change| change.0);
    let pauses = changes.iter().zip(ends.chain([Time::NEVER]));
    pauses
        .filter(|((_, classes), _)| !classes.is_empty())
        .map(|(&(from, classes), to)| (from, to, classes))
        .collect()
}
