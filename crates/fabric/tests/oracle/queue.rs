//! An egress port of the oracle: two queues, at most one packet on the wire, drop-tail, marks.

use clearway_fabric::topology::LinkId;
use clearway_fabric::{MarkAt, SwitchParameters};
use clearway_transport::{Class, Packet};
use clearway_units::{Bytes, Purpose, RandomStream};
use std::collections::VecDeque;

/// The rules of one port, in bytes.
struct Rules {
    limit: u64,
    kmin: u64,
    kmax: u64,
    /// In 2^-32.
    pmax: u128,
}

/// An egress port.
pub(crate) struct Port {
    parameters: SwitchParameters,
    rules: Rules,
    random: RandomStream,
    /// By class.
    waiting: [VecDeque<Packet>; 2],
    /// The packet on the wire, and the queue it comes from.
    sending: Option<(usize, Packet)>,
}

/// What became of a packet that arrived for a port.
pub(crate) enum Admission {
    Dropped,
    /// Queued; for the data queue its new size.
    Queued {
        bytes: Option<u64>,
        marked: bool,
    },
}

impl Port {
    pub(crate) fn new(parameters: &SwitchParameters, bdp: Bytes, seed: u64, link: LinkId) -> Self {
        let rules = Rules {
            limit: parameters.queue.resolve(bdp).as_u64(),
            kmin: parameters.kmin.resolve(bdp).as_u64(),
            kmax: parameters.kmax.resolve(bdp).as_u64(),
            pmax: (parameters.pmax * 4_294_967_296.0) as u128,
        };
        Self {
            parameters: parameters.clone(),
            rules,
            random: RandomStream::new(seed, Purpose::Marking, u64::from(link.0)),
            waiting: Default::default(),
            sending: None,
        }
    }

    /// Everything in a queue, the packet on the wire included.
    fn bytes(&self, queue: usize) -> u64 {
        let on_the_wire = self.sending.iter().filter(|(from, _)| *from == queue);
        let packets = self.waiting[queue]
            .iter()
            .chain(on_the_wire.map(|(_, packet)| packet));
        packets.map(|packet| u64::from(packet.size)).sum()
    }

    pub(crate) fn packets(&self) -> u64 {
        let waiting: usize = self.waiting.iter().map(VecDeque::len).sum();
        waiting as u64 + u64::from(self.sending.is_some())
    }

    pub(crate) fn admit(&mut self, mut packet: Packet) -> (Packet, Admission) {
        let control = packet.class == Class::CONTROL && self.parameters.control_priority;
        let queue = usize::from(!control);
        let bytes = self.bytes(queue) + u64::from(packet.size);
        if bytes > self.rules.limit {
            return (packet, Admission::Dropped);
        }
        let marked = self.parameters.mark == MarkAt::Enqueue && self.mark(&mut packet, bytes);
        self.waiting[queue].push_back(packet);
        let bytes = (!control).then_some(bytes);
        (packet, Admission::Queued { bytes, marked })
    }

    /// Puts the next packet on the wire; its size.
    pub(crate) fn begin(&mut self) -> Option<u16> {
        if self.sending.is_some() {
            return None;
        }
        let queue = (0..2).find(|&queue| !self.waiting[queue].is_empty())?;
        self.sending = self.waiting[queue]
            .pop_front()
            .map(|packet| (queue, packet));
        self.sending.map(|(_, packet)| packet.size)
    }

    /// The packet on the wire has left: it, what stays in the data queue if it was there, and whether it was marked now.
    pub(crate) fn end(&mut self) -> (Packet, Option<u64>, bool) {
        let (queue, mut packet) = self.sending.take().expect("a packet is on the wire");
        let left = self.bytes(queue);
        let marked =
            queue == 1 && self.parameters.mark == MarkAt::Dequeue && self.mark(&mut packet, left);
        (packet, (queue == 1).then_some(left), marked)
    }

    /// True if the packet is marked now and was not before.
    fn mark(&mut self, packet: &mut Packet, bytes: u64) -> bool {
        let Rules {
            kmin, kmax, pmax, ..
        } = self.rules;
        if !self.parameters.ecn || packet.class == Class::CONTROL || bytes <= kmin {
            return false;
        }
        let marks = bytes > kmax || {
            let draw = u128::from(self.random.next_u32());
            draw * u128::from(kmax - kmin) < u128::from(bytes - kmin) * pmax
        };
        let fresh = marks && !packet.ecn;
        packet.ecn |= marks;
        fresh
    }
}
