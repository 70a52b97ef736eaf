//! The egress port of a lossy switch: a drop-tail queue with ECN marking, worked off lazily.
//!
//! Nothing happens at a port between two arrivals but transmissions, and these follow from the queue. So a port has no events
//! of its own: [`Port::advance`] carries out, when something looks at the port, what has happened since.

use crate::link::{Ledger, Link};
use crate::observer::{DropCause, Observer};
use clearway_engine::Round;
use clearway_transport::{Class, Packet};
use clearway_units::{Bytes, Purpose, RandomStream, RelativeSize, Time};
use std::collections::VecDeque;

clearway_units::choices! {
    /// When a queue decides about a mark.
    pub enum MarkAt {
        /// When a packet leaves, by the bytes that stay behind it.
        Dequeue = "dequeue",
        /// When a packet arrives, by the bytes with it.
        Enqueue = "enqueue",
    }
}

clearway_units::parameters! {
    /// What the egress ports of a lossy switch do. Sizes relative to the bandwidth-delay product take the port's own rate times
    /// the fabric's propagation round trip.
    pub struct SwitchParameters {
        /// Bytes in an egress queue, the packet in transmission included, above which an arriving packet is dropped. Where control
        /// has priority it has a queue of its own with the same limit.
        pub queue: RelativeSize = RelativeSize::percent_of_bdp(500), "queue", "STrack §4.1: drops if queuing exceeds 5 BDP";
        /// Whether queues mark data packets.
        pub ecn: bool = true, "ecn.enabled", "STrack §4.1";
        /// Queue up to which nothing is marked.
        pub kmin: RelativeSize = RelativeSize::percent_of_bdp(25), "ecn.kmin", "STrack §4.1: 25% BDP";
        /// Queue above which everything is marked.
        pub kmax: RelativeSize = RelativeSize::percent_of_bdp(75), "ecn.kmax", "STrack §4.1: 75% BDP";
        /// Probability of a mark just below `ecn.kmax`; it grows linearly from zero at `ecn.kmin`.
        pub pmax: f64 = 1.0, "ecn.pmax", "decision Q12: STrack does not say; the UEC reference simulator marks linearly up to 1";
        /// Whether the decision is taken when a packet leaves or when it arrives.
        pub mark: MarkAt = MarkAt::Dequeue, "ecn.mark", "STrack §2.2.2: marking at egress, when a packet exits a queue";
        /// Whether acknowledgements and probes overtake data.
        pub control_priority: bool = true, "control-priority", "decision: acknowledgements and probes in a strict-priority queue";
    }
}

/// [`SwitchParameters`] resolved for one port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueRules {
    limit: u64,
    kmin: u64,
    kmax: u64,
    /// `pmax` in units of 2^-32.
    pmax: u64,
    ecn: bool,
    mark: MarkAt,
    control_priority: bool,
}

impl QueueRules {
    pub(crate) fn new(parameters: &SwitchParameters, bdp: Bytes) -> Self {
        let size = |size: RelativeSize| size.resolve(bdp).as_u64().min(u32::MAX.into());
        Self {
            limit: parameters.queue.resolve(bdp).as_u64(),
            kmin: size(parameters.kmin),
            kmax: size(parameters.kmax),
            pmax: (parameters.pmax.clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64,
            ecn: parameters.ecn,
            mark: parameters.mark,
            control_priority: parameters.control_priority,
        }
    }

    /// Whether a packet with `bytes` around it is marked; draws a number only where the answer is open.
    #[inline]
    fn marks(&self, bytes: u64, random: &mut RandomStream) -> bool {
        if bytes <= self.kmin || !self.ecn {
            return false;
        }
        if bytes > self.kmax {
            return true;
        }
        // draw / 2^32 < pmax · (bytes - kmin) / (kmax - kmin), without a division.
        u64::from(random.next_u32()) * (self.kmax - self.kmin) < (bytes - self.kmin) * self.pmax
    }
}

/// A queue with its size.
#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<Packet>,
    bytes: u64,
}

/// An egress port.
#[derive(Debug)]
pub(crate) struct Port {
    /// The class whose first packet is on the wire.
    busy: Option<Class>,
    /// When that packet's last bit leaves; otherwise when the next transmission may start.
    at: Time,
    /// By class; without control priority all packets are in the data queue.
    queues: [Queue; 2],
    rules: QueueRules,
    random: RandomStream,
    link: Link,
}

impl Port {
    pub(crate) fn new(rules: QueueRules, seed: u64, link: Link) -> Self {
        Self {
            busy: None,
            at: Time::ZERO,
            queues: Default::default(),
            rules,
            random: RandomStream::new(seed, Purpose::Marking, link.id.0.into()),
            link,
        }
    }

    /// A packet arrives at `now` for this port.
    #[inline(always)] // The loop over a port's arrivals is the hottest of all; calls cost it a fifth.
    pub(crate) fn enqueue<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        ledger: &mut Ledger<'_, O>,
    ) {
        self.advance(now, ledger);
        if self.waiting_class().is_none() {
            self.at = self.at.max(now);
        }
        let class = if self.rules.control_priority {
            packet.class.min(Class::DATA)
        } else {
            Class::DATA
        };
        let queue = &mut self.queues[class.index()];
        let bytes = queue.bytes + u64::from(packet.size);
        if bytes > self.rules.limit {
            ledger
                .counters
                .note_loss(now, self.link.id, packet, DropCause::QueueFull);
            ledger
                .observer
                .on_drop(now, self.link.id, packet, DropCause::QueueFull);
            return;
        }
        queue.bytes = bytes;
        queue.packets.push_back(*packet);
        if class == Class::DATA {
            ledger.observer.on_queue(now, self.link.id, bytes);
            if self.rules.mark == MarkAt::Enqueue {
                self.decide(now, bytes, false, ledger);
            }
        }
    }

    /// Carries out all ends of transmissions up to and with `until`, and all starts before it: at one instant an end comes
    /// before arrivals and a start after them.
    #[inline(always)]
    fn advance<O: Observer>(&mut self, until: Time, ledger: &mut Ledger<'_, O>) {
        loop {
            let class = match self.busy {
                Some(class) => {
                    if self.at > until {
                        return;
                    }
                    class
                }
                None => {
                    let Some(class) = self.waiting_class() else {
                        return;
                    };
                    if self.at >= until {
                        return;
                    }
                    let size = self.queues[class.index()]
                        .packets
                        .front()
                        .map_or(0, |packet| packet.size);
                    self.at += self.link.clock.span_of(size.into());
                    if self.at > until {
                        self.busy = Some(class);
                        return;
                    }
                    class
                }
            };
            self.busy = None;
            self.complete(class, ledger);
        }
    }

    /// The last bit of the first packet of `class` leaves.
    #[inline(always)]
    fn complete<O: Observer>(&mut self, class: Class, ledger: &mut Ledger<'_, O>) {
        let queue = &mut self.queues[class.index()];
        let size = queue.packets.front().map_or(0, |packet| packet.size);
        queue.bytes -= u64::from(size);
        if class == Class::DATA {
            let bytes = queue.bytes;
            ledger.observer.on_queue(self.at, self.link.id, bytes);
            if bytes > self.rules.kmin && self.rules.mark == MarkAt::Dequeue {
                self.decide(self.at, bytes, true, ledger);
            }
        }
        let packets = &mut self.queues[class.index()].packets;
        if let Some(packet) = packets.front() {
            self.link.carry(self.at, packet, ledger);
            packets.pop_front();
        }
    }

    /// The class that is served next, or is being served.
    #[inline]
    fn waiting_class(&self) -> Option<Class> {
        if !self.queues[0].packets.is_empty() {
            Some(Class::CONTROL)
        } else if !self.queues[1].packets.is_empty() {
            Some(Class::DATA)
        } else {
            None
        }
    }

    /// Decides about a mark on the first packet of the data queue, or on the last, with `bytes` in question.
    #[inline(never)]
    fn decide<O: Observer>(
        &mut self,
        now: Time,
        bytes: u64,
        first: bool,
        ledger: &mut Ledger<'_, O>,
    ) {
        let packets = &mut self.queues[Class::DATA.index()].packets;
        let packet = if first {
            packets.front_mut()
        } else {
            packets.back_mut()
        };
        let Some(packet) = packet.filter(|packet| packet.class.is_data()) else {
            return;
        };
        if self.rules.marks(bytes, &mut self.random) && !packet.ecn {
            packet.ecn = true;
            ledger.counters.marked += 1;
            ledger.observer.on_mark(now, self.link.id, packet);
        }
    }

    /// Ends a round: hands over what has left. Returns the earliest arrival handed over.
    pub(crate) fn flush<O: Observer>(&mut self, round: &Round, ledger: &mut Ledger<'_, O>) -> Time {
        // A transmission that ends with the last instant of the round still belongs to it; one that ends with the first of
        // the next must wait, or its packet could not arrive within the lookahead of that round.
        let last = Time::from_ps(round.end().as_ps() - 1);
        self.advance(last, ledger);
        self.link.flush(round, ledger.counters)
    }

    /// When this port next has something to do, if nothing arrives.
    pub(crate) fn next(&self) -> Time {
        match self.waiting_class() {
            None => Time::NEVER,
            Some(_) => self.at,
        }
    }

    /// Packets that wait or are on the wire.
    pub(crate) fn queued(&self) -> u64 {
        self.queues
            .iter()
            .map(|queue| queue.packets.len() as u64)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::{ParameterSet, Value};

    #[test]
    fn defaults_are_those_of_the_strack_paper() {
        let rules = QueueRules::new(&SwitchParameters::default(), Bytes::new(400_000));
        assert_eq!(
            (rules.limit, rules.kmin, rules.kmax),
            (2_000_000, 100_000, 300_000)
        );
        assert_eq!(rules.pmax, 1 << 32);
    }

    #[test]
    fn marking_is_linear_between_the_thresholds() {
        let mut parameters = SwitchParameters::default();
        parameters.set("ecn.pmax", &Value::Float(0.5)).unwrap();
        let rules = QueueRules::new(&parameters, Bytes::new(400_000));
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        let mut share = |bytes| {
            (0..20_000)
                .filter(|_| rules.marks(bytes, &mut random))
                .count()
        };
        assert_eq!(share(100_000), 0);
        assert!(
            share(200_000).abs_diff(5_000) < 310,
            "a quarter, within 5 sigma"
        );
        assert!(share(300_000).abs_diff(10_000) < 360, "pmax at kmax");
        assert_eq!(share(300_001), 20_000);
    }
}
