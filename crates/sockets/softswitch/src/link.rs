//! A directed link: its queue, its wire, and its impairments.

use crate::command::{Change, Probability};
use crate::counters::ForwardedLinkCounters;
use crate::packet::{is_markable, mark};
use crate::pool::{Pool, Slot};
use clearway_fabric::topology::{LinkId, Topology};
use clearway_fabric::{LinkErrors, MarkAt, QueueRules};
use clearway_transport::Class;
use clearway_units::{HostId, Purpose, RandomStream, Rate, Span, Time, WireClock};
use std::collections::VecDeque;

/// Node at the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Host(HostId),
    /// By index.
    Switch(usize),
}

/// Impairments of a link, set by commands.
#[derive(Debug, Clone, Copy, Default)]
struct Impairments {
    is_down: bool,
    loss: Probability,
    duplicate: Probability,
    reorder: (Probability, Span),
    corrupt: Probability,
    mark: Probability,
}

/// Fate of a packet after its last bit has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransmitOutcome {
    Lost(Slot),
    /// Arrival at this time; the second slot is a copy that arrives with it.
    Carried(Slot, Time, Option<Slot>),
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) to: Node,
    clock: WireClock,
    delay: Span,
    /// Time that the switch at the far end takes.
    latency: Span,
    /// Rate and delay of the scenario.
    original: (Rate, Span),
    /// Marking rules; `None` at hosts, which do not mark.
    rules: Option<QueueRules>,
    /// Bytes in the queue above which a packet is dropped.
    limit: u64,
    /// The first packet is in transmission.
    queue: VecDeque<Slot>,
    bytes: u64,
    impairments: Impairments,
    errors: Option<Box<LinkErrors>>,
    marking: RandomStream,
    chance: RandomStream,
    /// Arrival of the last packet that was not held back; later packets do not pass it.
    last_arrival: Time,
    pub(crate) counters: ForwardedLinkCounters,
}

impl Link {
    /// A link of a topology. A link without rules begins at a host, whose queue has the given limit.
    pub(crate) fn new(
        topology: &Topology,
        id: LinkId,
        (rules, limit): (Option<QueueRules>, u64),
        seed: u64,
    ) -> Self {
        let (_, end) = topology.link_ends(id);
        let cable = &topology.cables[id.cable()];
        let latency = topology.link_delay(id).saturating_sub(cable.delay);
        Self {
            to: match topology.switch_index(end) {
                None => Node::Host(HostId(end.0)),
                Some(index) => Node::Switch(index),
            },
            clock: WireClock::new(cable.rate),
            delay: cable.delay,
            latency,
            original: (cable.rate, cable.delay),
            rules,
            limit,
            queue: VecDeque::new(),
            bytes: 0,
            impairments: Impairments::default(),
            errors: LinkErrors::new(cable, seed, id),
            marking: RandomStream::new(seed, Purpose::Marking, id.0.into()),
            chance: RandomStream::new(seed, Purpose::Impairment, id.0.into()),
            last_arrival: Time::ZERO,
            counters: ForwardedLinkCounters::default(),
        }
    }

    /// Queues a packet that arrives at `now`, unless there is no room. Returns the end of its transmission if it begins now.
    ///
    /// # Errors
    /// If there is no room.
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        slot: Slot,
        pool: &mut Pool,
    ) -> Result<Option<Time>, QueueFull> {
        let size = pool.bytes(slot).len();
        let bytes = self.bytes + size as u64;
        if bytes > self.limit {
            self.counters.queue_full += 1;
            return Err(QueueFull);
        }
        self.bytes = bytes;
        self.counters.largest_queue = self.counters.largest_queue.max(bytes);
        self.queue.push_back(slot);
        self.mark_by_queue(slot, MarkAt::Enqueue, pool);
        let is_first = self.queue.len() == 1;
        Ok(is_first.then(|| now + self.clock.span_of(size as u32)))
    }

    /// Ends the transmission of the first packet at `now`. Returns the packet's fate, and the end of the next transmission.
    pub(crate) fn finish(
        &mut self,
        now: Time,
        pool: &mut Pool,
    ) -> (Option<TransmitOutcome>, Option<Time>) {
        let Some(slot) = self.queue.pop_front() else {
            return (None, None);
        };
        let size = pool.bytes(slot).len();
        self.bytes -= size as u64;
        self.counters.packets += 1;
        self.counters.bytes += size as u64;
        self.mark_by_queue(slot, MarkAt::Dequeue, pool);
        let fate = self.fate(now, slot, pool);
        let next = self.queue.front();
        let next = next.map(|&slot| now + self.clock.span_of(pool.bytes(slot).len() as u32));
        (Some(fate), next)
    }

    /// Marks a packet, if the rules decide at this point and the queue is long.
    fn mark_by_queue(&mut self, slot: Slot, at: MarkAt, pool: &mut Pool) {
        let Some(rules) = &self.rules else { return };
        let version = pool.headers(slot).0.version;
        if rules.mark_at() == at
            && is_markable(version, pool.bytes(slot))
            && rules.marks(Class::DATA, self.bytes, &mut self.marking)
        {
            mark(version, pool.bytes_mut(slot));
            self.counters.marked += 1;
        }
    }

    fn hits(&mut self, probability: Probability) -> bool {
        self.chance.chance(probability.as_f64())
    }

    fn fate(&mut self, now: Time, slot: Slot, pool: &mut Pool) -> TransmitOutcome {
        let Impairments {
            is_down,
            loss,
            duplicate,
            reorder: (reorder, later),
            corrupt,
            mark: marking,
        } = self.impairments;
        let headers = pool.headers(slot).0;
        let packet = pool.bytes_mut(slot);
        if is_down {
            self.counters.down += 1;
            return TransmitOutcome::Lost(slot);
        }
        let size = packet.len().min(usize::from(u16::MAX)) as u16;
        let is_hit = self
            .errors
            .as_mut()
            .is_some_and(|errors| errors.hit(now, size));
        if self.hits(loss) || is_hit {
            self.counters.lost += 1;
            return TransmitOutcome::Lost(slot);
        }
        if self.hits(marking) && is_markable(headers.version, packet) {
            mark(headers.version, packet);
            self.counters.marked += 1;
        }
        if self.hits(corrupt) && headers.payload < packet.len() {
            self.corrupt(&mut packet[headers.payload..]);
        }
        let usual = now + self.delay + self.latency;
        let arrival = match self.hits(reorder) {
            true => {
                self.counters.reordered += 1;
                // `last_arrival` stays unchanged, so later packets can pass this packet.
                usual + later
            }
            false => {
                self.last_arrival = self.last_arrival.max(usual);
                self.last_arrival
            }
        };
        let copy = match self.hits(duplicate) {
            true => pool.copy(slot),
            false => None,
        };
        self.counters.duplicated += u64::from(copy.is_some());
        TransmitOutcome::Carried(slot, arrival, copy)
    }

    /// Changes one bit.
    fn corrupt(&mut self, payload: &mut [u8]) {
        let at = self.chance.below(payload.len() as u32);
        payload[at as usize] ^= 1 << self.chance.below(8);
        self.counters.corrupted += 1;
    }

    pub(crate) fn apply(&mut self, change: Change) {
        let impairments = &mut self.impairments;
        match change {
            Change::Down => impairments.is_down = true,
            Change::Up => impairments.is_down = false,
            Change::Loss(probability) => impairments.loss = probability,
            Change::Duplicate(probability) => impairments.duplicate = probability,
            Change::Reorder(probability, later) => impairments.reorder = (probability, later),
            Change::Corrupt(probability) => impairments.corrupt = probability,
            Change::Mark(probability) => impairments.mark = probability,
            Change::Delay(delay) => self.delay = delay,
            Change::Rate(rate) => self.clock = WireClock::new(rate),
            Change::Reset => {
                *impairments = Impairments::default();
                let (rate, delay) = self.original;
                (self.clock, self.delay) = (WireClock::new(rate), delay);
            }
        }
    }

    /// Packets in the queue.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }
}

/// Refusal of a packet by a full queue.
#[derive(Debug)]
pub(crate) struct QueueFull;
