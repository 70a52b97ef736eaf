//! The oracle's own view of adaptive routing, with everything examined for each packet, and nothing forgotten except where the rules
//! require it.

use clearway_fabric::topology::{LinkId, NodeId, SwitchRole, Topology};
use clearway_fabric::{AdaptiveRoutingParameters, PathChoice, SwitchParameters};
use clearway_transport::Packet;
use clearway_units::{Bytes, FlowId, HostId, Purpose, RandomStream, Time, mix64};
use std::collections::BTreeMap;

/// A link as the choice sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) link: LinkId,
    pub(crate) works: bool,
    pub(crate) bytes: u64,
    pub(crate) limit: u64,
}

/// The memory of one switch.
#[derive(Debug, Clone)]
struct Memory {
    random: RandomStream,
    salt: u64,
    /// Links whose turn is to come, by the set that they are of; the last is next.
    hands: BTreeMap<Vec<LinkId>, Vec<LinkId>>,
    /// Grade of a link, and when it was looked at.
    seen: BTreeMap<LinkId, (Time, u64)>,
    /// Link of each flow, and when it sent last.
    flows: BTreeMap<(FlowId, u8, HostId), (LinkId, Time)>,
}

/// Choices of all switches.
#[derive(Debug)]
pub(crate) struct Choices<'a> {
    parameters: &'a SwitchParameters,
    /// Parameters that NICs use.
    exact: AdaptiveRoutingParameters,
    roles: BTreeMap<NodeId, SwitchRole>,
    memories: BTreeMap<NodeId, Memory>,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(parameters: &'a SwitchParameters, topology: &Topology, seed: u64) -> Self {
        let (first, count) = (topology.hosts, topology.switches.len() as u32);
        let roles = topology.switches.iter().map(|switch| switch.role);
        let stream = |purpose, index: u32| RandomStream::new(seed, purpose, index.into());
        let memory = |index| Memory {
            random: stream(Purpose::LocalChoice, index),
            salt: stream(Purpose::Hashing, index).next_u64(),
            hands: BTreeMap::new(),
            seen: BTreeMap::new(),
            flows: BTreeMap::new(),
        };
        Self {
            parameters,
            exact: AdaptiveRoutingParameters {
                hash_below: Bytes::ZERO,
                ..AdaptiveRoutingParameters::default()
            },
            roles: (first..).map(NodeId).zip(roles).collect(),
            memories: (0..count)
                .map(|index| (NodeId(first + index), memory(index)))
                .collect(),
        }
    }

    /// The link that `packet` takes from `switch`, one of those that lead on.
    pub(crate) fn choose_link(
        &mut self,
        switch: NodeId,
        packet: &Packet,
        ways: &[Way],
        now: Time,
    ) -> LinkId {
        let rule = self.parameters.path_choice(self.roles[&switch]);
        let adaptive = match self.roles[&switch] {
            SwitchRole::Nic(_) => &self.exact,
            _ => &*self.parameters.adaptive,
        };
        let memory = self.memories.get_mut(&switch).expect("a switch");
        let any = ways.iter().any(|way| way.works);
        let open: Vec<Way> = ways
            .iter()
            .copied()
            .filter(|way| way.works || !any)
            .collect();
        if u64::from(packet.size) < adaptive.hash_below.as_u64() {
            let hash = mix64(memory.salt ^ u64::from(packet.header_hash)) >> 32;
            return open[(hash * open.len() as u64 / (1 << 32)) as usize].link;
        }
        if rule == PathChoice::RoundRobin {
            let all: Vec<LinkId> = ways.iter().map(|way| way.link).collect();
            loop {
                let hand = memory.hands.entry(all.clone()).or_default();
                match hand.pop() {
                    None => {
                        hand.extend(&all);
                        memory.random.shuffle(hand);
                    }
                    Some(link) if open.iter().any(|way| way.link == link) => return link,
                    Some(_) => {}
                }
            }
        }
        let grades: Vec<(u64, LinkId)> = open
            .iter()
            .map(|way| (memory.grade(adaptive, way, now), way.link))
            .collect();
        let kept = match rule {
            PathChoice::Flowlet => memory.kept(adaptive, packet, &grades, now),
            _ => None,
        };
        let link = match kept {
            Some((own, true)) => own.min_by_grade(memory.best(&grades)),
            Some((own, false)) => own.1,
            None => memory.best(&grades).1,
        };
        let key = (packet.flow, packet.queue_pair, packet.dst);
        memory.flows.insert(key, (link, now));
        link
    }
}

trait ByGrade {
    fn min_by_grade(self, other: Self) -> LinkId;
}

impl ByGrade for (u64, LinkId) {
    /// The link of the other one if its grade is less.
    fn min_by_grade(self, other: Self) -> LinkId {
        match other.0 < self.0 {
            true => other.1,
            false => self.1,
        }
    }
}

impl Memory {
    fn grade(&mut self, adaptive: &AdaptiveRoutingParameters, way: &Way, now: Time) -> u64 {
        let refresh = adaptive.refresh;
        let known = self.seen.get(&way.link).copied();
        if let Some((at, grade)) = known
            && now < at + refresh
        {
            return grade;
        }
        let levels = &adaptive.levels;
        let reached = levels
            .iter()
            .filter(|share| way.bytes as f64 >= **share * way.limit as f64);
        let grade = match levels.is_empty() {
            true => way.bytes,
            false => reached.count() as u64,
        };
        self.seen.insert(way.link, (now, grade));
        grade
    }

    fn best(&mut self, grades: &[(u64, LinkId)]) -> (u64, LinkId) {
        let least = grades.iter().map(|grade| grade.0).min().expect("a link");
        let best: Vec<(u64, LinkId)> = grades
            .iter()
            .copied()
            .filter(|grade| grade.0 == least)
            .collect();
        match best.len() {
            1 => best[0],
            several => best[self.random.below(several as u32) as usize],
        }
    }

    /// The link that the packet's flow had, and whether it may leave it now.
    fn kept(
        &mut self,
        adaptive: &AdaptiveRoutingParameters,
        packet: &Packet,
        grades: &[(u64, LinkId)],
        now: Time,
    ) -> Option<((u64, LinkId), bool)> {
        let gap = adaptive.flowlet_gap;
        let key = (packet.flow, packet.queue_pair, packet.dst);
        let (link, last) = *self.flows.get(&key)?;
        if now.since(last) > gap * 1000 {
            return None;
        }
        let own = *grades.iter().find(|grade| grade.1 == link)?;
        let leaves = now.since(last) > gap && self.random.next_u32() % 2 == 1;
        Some((own, leaves))
    }
}
