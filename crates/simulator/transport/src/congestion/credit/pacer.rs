//! The pacer of one host: which flow is granted credit, and when.

use super::{CreditRules, distance};
use crate::packet::{Header, Packet};
use clearway_units::Time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// Quanta whose time passes after a turn that granted nothing.
const LEAST_TURN: u16 = 4;

/// The queue that a flow stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// The flow wants credit.
    Active,
    /// The flow has all the credit that it asked for.
    Idle,
}

/// A flow as the pacer knows it.
#[derive(Debug, Clone, Copy)]
struct Granted {
    /// Pull packet of this flow without its content.
    template: Packet,
    /// All quanta granted so far, modulo 2^16.
    latest: u16,
    /// The highest target that the sender has told, modulo 2^16.
    target: u16,
    place: Place,
    /// Number of the flow's valid entry in its queue.
    ticket: u32,
}

/// Pacer of the flows of a host, which are known by a key.
#[derive(Debug)]
pub(crate) struct Pacer<K> {
    flows: Vec<Option<Granted>>,
    by_key: FxHashMap<K, u32>,
    free: Vec<u32>,
    /// Flows with their tickets.
    active: VecDeque<(u32, u32)>,
    idle: VecDeque<(u32, u32)>,
    /// Time before which nothing is granted.
    not_before: Time,
    /// Time of the next turn, if there is one.
    next: Option<Time>,
    tickets: u32,
}

impl<K: Copy + Eq + Hash> Pacer<K> {
    pub(crate) fn new() -> Self {
        Self {
            flows: Vec::new(),
            by_key: FxHashMap::default(),
            free: Vec::new(),
            active: VecDeque::new(),
            idle: VecDeque::new(),
            not_before: Time::ZERO,
            next: None,
            tickets: 0,
        }
    }

    /// A packet of a flow has come with a target; `template` answers it. Packets that were trimmed, and probes, ask for credit whether they
    /// bring a new target or not. Returns the time of a turn that has to be arranged for, if there was none.
    pub(crate) fn on_target(
        &mut self,
        now: Time,
        key: K,
        target: u16,
        insists: bool,
        template: &dyn Fn() -> Packet,
    ) -> Option<Time> {
        let index = match self.by_key.get(&key) {
            Some(index) => *index,
            None => self.add(key, template()),
        };
        let flow = self.flows[index as usize].as_mut()?;
        let progress = distance(flow.target, target) > 0;
        if progress {
            flow.target = target;
            flow.template = template();
        }
        if (!progress && !insists) || flow.place == Place::Active {
            return None;
        }
        self.queue(index, Place::Active);
        self.arrange(now)
    }

    /// The flow has received all.
    pub(crate) fn remove(&mut self, key: K) {
        if let Some(index) = self.by_key.remove(&key) {
            self.flows[index as usize] = None;
            self.free.push(index);
        }
    }

    /// Time of the next turn.
    pub(crate) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Takes a turn that is due at `now`: the pull that it grants, if it grants any.
    pub(crate) fn take_turn(&mut self, now: Time, rules: &CreditRules) -> Option<Packet> {
        if self.next.is_none_or(|next| next > now) {
            return None;
        }
        self.next = None;
        let (pull, quanta) = match self.front(Place::Active) {
            Some(index) => self.grant(index, rules),
            None => match self.front(Place::Idle).filter(|_| rules.idle_pulls) {
                Some(index) => self.grant_idle(index, rules),
                None => return None,
            },
        };
        // A turn that grants nothing takes time as well, or the pacer would loop at one instant.
        let quanta = if quanta == 0 { LEAST_TURN } else { quanta };
        self.not_before = now.saturating_add(rules.span_of(quanta));
        let idle = rules.idle_pulls && !self.idle.is_empty();
        if idle || !self.active.is_empty() {
            self.next = Some(self.not_before);
        }
        pull
    }

    /// Grants the credit that a flow wants, up to a pull's worth.
    fn grant(&mut self, index: u32, rules: &CreditRules) -> (Option<Packet>, u16) {
        let Some(flow) = self.flows[index as usize].as_mut() else {
            return (None, 0);
        };
        let wanted = distance(flow.latest, flow.target).max(0) as u16;
        let quanta = wanted.min(rules.pull);
        flow.latest = flow.latest.wrapping_add(quanta);
        let pull = flow.pull();
        let place = match wanted > quanta {
            true => Place::Active,
            false => Place::Idle,
        };
        self.queue(index, place);
        (Some(pull), quanta)
    }

    /// Grants a flow that has all that it asked for a pull's worth, while nobody else wants any.
    fn grant_idle(&mut self, index: u32, rules: &CreditRules) -> (Option<Packet>, u16) {
        let Some(flow) = self.flows[index as usize].as_mut() else {
            return (None, 0);
        };
        // `most_idle` bounds the earlier grants: one pull beyond it does not hurt.
        flow.latest = flow.latest.wrapping_add(rules.pull);
        let pull = flow.pull();
        let ahead = distance(flow.target, flow.latest);
        let stays = ahead >= 0 && (ahead as u16) < rules.most_idle;
        let place = if stays { Place::Idle } else { Place::Nowhere };
        self.queue(index, place);
        (Some(pull), rules.pull)
    }

    /// Takes the first flow out of a queue.
    fn front(&mut self, place: Place) -> Option<u32> {
        let queue = match place {
            Place::Active => &mut self.active,
            Place::Idle => &mut self.idle,
            Place::Nowhere => return None,
        };
        while let Some((index, ticket)) = queue.pop_front() {
            // An entry may be of a flow that has moved or ended since.
            if let Some(flow) = &mut self.flows[index as usize]
                && flow.ticket == ticket
            {
                flow.place = Place::Nowhere;
                return Some(index);
            }
        }
        None
    }

    /// Puts a flow at the end of a queue; its entry in another queue is void.
    fn queue(&mut self, index: u32, place: Place) {
        let Some(flow) = self.flows[index as usize].as_mut() else {
            return;
        };
        self.tickets = self.tickets.wrapping_add(1);
        (flow.place, flow.ticket) = (place, self.tickets);
        match place {
            Place::Active => self.active.push_back((index, self.tickets)),
            Place::Idle => self.idle.push_back((index, self.tickets)),
            Place::Nowhere => {}
        }
    }

    fn add(&mut self, key: K, template: Packet) -> u32 {
        let flow = Some(Granted {
            template,
            latest: 0,
            target: 0,
            place: Place::Nowhere,
            ticket: 0,
        });
        let index = match self.free.pop() {
            Some(index) => {
                self.flows[index as usize] = flow;
                index
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        self.by_key.insert(key, index);
        index
    }

    /// Arranges for a turn; its time, if it is new or earlier than before.
    fn arrange(&mut self, now: Time) -> Option<Time> {
        let at = self.not_before.max(now);
        if self.next.is_some_and(|next| next <= at) {
            return None;
        }
        self.next = Some(at);
        self.next
    }

    /// Quanta granted to a flow so far and its target, for tests.
    #[cfg(test)]
    pub(crate) fn granted(&self, key: K) -> Option<(u16, u16)> {
        let index = *self.by_key.get(&key)?;
        let flow = self.flows[index as usize].as_ref()?;
        Some((flow.latest, flow.target))
    }
}

impl Granted {
    fn pull(&self) -> Packet {
        Packet {
            header: Header::Pull { pull: self.latest },
            ..self.template
        }
    }
}
