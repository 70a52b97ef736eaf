//! Adaptive routing: choice of an egress port by the switch's own state.
//!
//! Candidates are the equal-cost next hops of a packet. ECMP and the number of the destination choose the same one for equal headers; these
//! rules look at the switch: the bytes that wait at each port ([`PathChoice::Adaptive`]), the port whose turn it is
//! ([`PathChoice::RoundRobin`]), or the bytes and the time since a flow's last packet ([`PathChoice::Flowlet`]). So a switch with one of
//! them handles its arrivals in the order of time, and all candidates are up to date when it chooses.
//!
//! The source is the UEC reference simulator, whose switches grade queues by thresholds (`adaptive.levels`) and look at them every now and
//! then (`adaptive.refresh`). Here queues are exact by default, and the shortest one is taken (decision U21).
//!
//! * Ties are broken by the switch's own random stream.
//! * Small packets (`adaptive.hash-below`) are spread over the candidates by a hash of the header, as by ECMP.
//! * A port whose link is down is not a candidate while another one is up: a switch sees its own links without any routing. ECMP waits for
//!   the new routes.
//! * Flows of flowlets are told apart by number, queue pair and destination: acknowledgements are another flow than their data.

use super::ecmp;
use super::parameters::{AdaptiveRoutingParameters, PathChoice, SwitchParameters};
use crate::topology::SwitchRole;
use clearway_transport::Packet;
use clearway_units::{Bytes, FlowId, HostId, Purpose, RandomStream, Span, Time};
use rustc_hash::FxHashMap;

/// Gaps after which a flow of flowlets is forgotten: it is new then.
const FORGOTTEN_AFTER: u64 = 1000;

/// Least number of flows that are remembered before any is forgotten.
const LEAST_FLOWS: usize = 1024;

/// State of an egress port that a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortState {
    /// Bytes that wait at the port, the packet on the wire included.
    pub(super) bytes: u64,
    /// Bytes in a queue above which packets are dropped.
    pub(super) limit: u64,
    /// The link is down.
    pub(super) is_down: bool,
}

/// A rule, with its state.
#[derive(Debug)]
pub(crate) struct AdaptiveRouting {
    rule: Rule,
    grades: Grades,
    hash_below: u64,
    salt: u64,
    random: RandomStream,
    /// The candidates of the packet at hand.
    candidates: Vec<Candidate>,
}

/// A port that a packet may take.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    port: u16,
    /// The less, the better; zero until it is asked for.
    grade: u64,
}

#[derive(Debug)]
enum Rule {
    Adaptive,
    RoundRobin(Hands),
    Flowlet(Flowlets),
}

impl AdaptiveRouting {
    /// The rule of the switch `index` in a run with `seed`; `None` if headers or destinations decide.
    pub(crate) fn new(
        parameters: &SwitchParameters,
        role: SwitchRole,
        seed: u64,
        index: usize,
    ) -> Option<Box<Self>> {
        // NICs see their queues exactly; the settings of switches do not apply to them.
        let exact = AdaptiveRoutingParameters {
            hash_below: Bytes::ZERO,
            ..AdaptiveRoutingParameters::default()
        };
        let adaptive = match role {
            SwitchRole::Nic(_) => &exact,
            SwitchRole::Network | SwitchRole::ScaleUp => &*parameters.adaptive,
        };
        let rule = match parameters.path_choice(role) {
            PathChoice::Ecmp | PathChoice::Destination => return None,
            PathChoice::Adaptive => Rule::Adaptive,
            PathChoice::RoundRobin => Rule::RoundRobin(Hands::default()),
            PathChoice::Flowlet => Rule::Flowlet(Flowlets::new(adaptive.flowlet_gap)),
        };
        Some(Box::new(Self {
            rule,
            grades: Grades::new(adaptive),
            hash_below: adaptive.hash_below.as_u64(),
            salt: RandomStream::new(seed, Purpose::Hashing, index as u64).next_u64(),
            random: RandomStream::new(seed, Purpose::LocalChoice, index as u64),
            candidates: Vec::new(),
        }))
    }

    /// Chooses one of `ports`, of which there is at least one, for a packet at `now`.
    pub(super) fn choose(
        &mut self,
        now: Time,
        packet: &Packet,
        ports: &[u16],
        state: impl Fn(u16) -> PortState,
    ) -> u16 {
        // If all ports are down, any of them will do: the packet is lost in each case.
        let all_down = ports.iter().all(|port| state(*port).is_down);
        let is_candidate = |port: u16| all_down || !state(port).is_down;
        let candidate = |&port: &u16| is_candidate(port).then_some(Candidate { port, grade: 0 });
        self.candidates.clear();
        self.candidates.extend(ports.iter().filter_map(candidate));
        if u64::from(packet.size) < self.hash_below {
            let index = ecmp(packet.header_hash, self.salt, self.candidates.len());
            return self.candidates[index].port;
        }
        if let Rule::RoundRobin(hands) = &mut self.rule {
            return hands.deal(ports, is_candidate, &mut self.random);
        }
        for candidate in &mut self.candidates {
            candidate.grade = self
                .grades
                .grade_at(now, candidate.port, state(candidate.port));
        }
        let (candidates, random) = (&self.candidates, &mut self.random);
        match &mut self.rule {
            Rule::Flowlet(flowlets) => flowlets.choose(now, packet, candidates, random),
            _ => best(candidates, random).port,
        }
    }
}

/// One of the candidates with the least grade.
fn best(candidates: &[Candidate], random: &mut RandomStream) -> Candidate {
    let grades = candidates.iter().map(|candidate| candidate.grade);
    let least = grades.min().unwrap_or(0);
    let all = || candidates.iter().filter(|own| own.grade == least);
    let chosen = match all().count() {
        1 => 0,
        several => random.below(several as u32) as usize,
    };
    *all().nth(chosen).expect("there is a candidate")
}

/// Grades of ports: their bytes, or how many thresholds these have reached.
#[derive(Debug)]
struct Grades {
    /// Shares of a queue's limit, growing; none if bytes count.
    thresholds: Vec<f64>,
    refresh: Span,
    /// By port: the last grade, and until when it holds.
    known: Vec<(u64, Time)>,
}

impl Grades {
    fn new(parameters: &AdaptiveRoutingParameters) -> Self {
        Self {
            thresholds: parameters.levels.clone(),
            refresh: parameters.refresh,
            known: Vec::new(),
        }
    }

    fn grade_at(&mut self, now: Time, port: u16, state: PortState) -> u64 {
        if self.refresh.is_zero() {
            return self.grade(state);
        }
        let index = usize::from(port);
        if self.known.len() <= index {
            self.known.resize(index + 1, (0, Time::ZERO));
        }
        if self.known[index].1 <= now {
            self.known[index] = (self.grade(state), now.saturating_add(self.refresh));
        }
        self.known[index].0
    }

    fn grade(&self, state: PortState) -> u64 {
        if self.thresholds.is_empty() {
            return state.bytes;
        }
        let (bytes, limit) = (state.bytes as f64, state.limit as f64);
        let reached = |share: &&f64| bytes >= **share * limit;
        self.thresholds.iter().filter(reached).count() as u64
    }
}

/// The next hops of each set that have not had their turn yet.
#[derive(Debug, Default)]
struct Hands(FxHashMap<Box<[u16]>, Vec<u16>>);

impl Hands {
    /// Deals the next port of a set that is a candidate; each sweep has a new order.
    fn deal(
        &mut self,
        ports: &[u16],
        is_candidate: impl Fn(u16) -> bool,
        random: &mut RandomStream,
    ) -> u16 {
        if !self.0.contains_key(ports) {
            self.0.insert(ports.into(), Vec::new());
        }
        let hand = self.0.get_mut(ports).expect("it has just been put there");
        loop {
            if hand.is_empty() {
                hand.extend_from_slice(ports);
                random.shuffle(hand);
            }
            if let Some(port) = hand.pop().filter(|port| is_candidate(*port)) {
                return port;
            }
        }
    }
}

/// A flow as switches tell it from others.
type FlowKey = (FlowId, u8, HostId);

/// The ports of flows, which change between bursts.
#[derive(Debug)]
struct Flowlets {
    gap: Span,
    /// Port and time of the last packet of each flow.
    flows: FxHashMap<FlowKey, (u16, Time)>,
    /// Number of flows at which those are forgotten that have ended.
    most: usize,
}

impl Flowlets {
    fn new(gap: Span) -> Self {
        Self {
            gap,
            flows: FxHashMap::default(),
            most: LEAST_FLOWS,
        }
    }

    /// A flow keeps its port; after a gap it takes the best one instead with a chance of a half, if that has a lower grade.
    fn choose(
        &mut self,
        now: Time,
        packet: &Packet,
        candidates: &[Candidate],
        random: &mut RandomStream,
    ) -> u16 {
        let key = (packet.flow, packet.queue_pair, packet.dst);
        let forgotten = Span::from_ps(self.gap.as_ps().saturating_mul(FORGOTTEN_AFTER));
        let before = self.flows.get(&key).copied();
        let before = before.filter(|(_, last)| now.since(*last) <= forgotten);
        let of_port = |port: u16| candidates.iter().find(|candidate| candidate.port == port);
        let kept = before.and_then(|(port, last)| Some((*of_port(port)?, last)));
        let chosen = match kept {
            None => best(candidates, random),
            Some((own, last)) if now.since(last) > self.gap && random.next_u32() & 1 == 1 => {
                let best = best(candidates, random);
                if best.grade < own.grade { best } else { own }
            }
            Some((own, _)) => own,
        };
        let port = chosen.port;
        self.flows.insert(key, (port, now));
        if self.flows.len() > self.most {
            self.flows
                .retain(|_, (_, last)| now.since(*last) <= forgotten);
            // Doubling keeps the mean cost of forgetting constant for each packet.
            self.most = (2 * self.flows.len()).max(LEAST_FLOWS);
        }
        port
    }
}

#[cfg(test)]
mod tests;
