//! An egress port of the oracle in a lossy switch: queues for control and data, or for each class, at most one packet on the wire,
//! drop-tail, marks.

use super::IntPacket;
use clearway_fabric::topology::LinkId;
use clearway_fabric::{ClassMarks, DropCause, MarkAt, SwitchParameters, TrimVictim};
use clearway_transport::{Class, DataFlags, Header, Packet};
use clearway_units::{Bytes, Purpose, RandomStream, Rate};
use std::collections::VecDeque;

/// The rules of one port, and its dice.
pub(crate) struct Rules {
    parameters: SwitchParameters,
    /// Sizes in bytes.
    limit: u64,
    kmin: u64,
    kmax: u64,
    /// In 2^-32.
    pmax: u128,
    /// The same of classes that have their own.
    of_classes: Vec<(Class, [u64; 2], u128)>,
    random: RandomStream,
    trimming: RandomStream,
    last_hop: bool,
    /// Classes 5 to 7 are the second virtual channels of 1 to 3.
    pub(crate) two_channels: bool,
}

impl Rules {
    pub(crate) fn new(
        parameters: &SwitchParameters,
        (rate, bdp): (Rate, Bytes),
        seed: u64,
        (link, last_hop): (LinkId, bool),
    ) -> Self {
        let own = |marks: &ClassMarks| {
            let sizes = [marks.kmin, marks.kmax].map(|size| size.resolve(rate, bdp).as_u64());
            (marks.class, sizes, (marks.pmax * 4_294_967_296.0) as u128)
        };
        Self {
            of_classes: parameters.class_marks.iter().map(own).collect(),
            limit: parameters.queue.resolve(rate, bdp).as_u64(),
            kmin: parameters.kmin.resolve(rate, bdp).as_u64(),
            kmax: parameters.kmax.resolve(rate, bdp).as_u64(),
            pmax: (parameters.pmax * 4_294_967_296.0) as u128,
            random: RandomStream::new(seed, Purpose::Marking, u64::from(link.0)),
            trimming: RandomStream::new(seed, Purpose::Trimming, u64::from(link.0)),
            last_hop,
            two_channels: false,
            parameters: parameters.clone(),
        }
    }

    /// True if a queue may have so many bytes.
    pub(crate) fn allow(&self, bytes: u64) -> bool {
        bytes <= self.limit
    }

    /// Decides about a mark at the moment `at`; true if the packet is marked now and was not before.
    pub(crate) fn mark(&mut self, at: MarkAt, packet: &mut Packet, bytes: u64) -> bool {
        let class = match self.two_channels {
            true => packet.class.index() % 4,
            false => packet.class.index(),
        };
        let own = self.of_classes.iter().find(|own| own.0.index() == class);
        let (kmin, kmax, pmax) = own.map_or(
            (self.kmin, self.kmax, self.pmax),
            |&(_, [kmin, kmax], pmax)| (kmin, kmax, pmax),
        );
        let here = self.parameters.mark_last_hop || !self.last_hop;
        let enabled = self.parameters.ecn && here && self.parameters.mark == at;
        if !enabled || packet.class == Class::CONTROL || bytes <= kmin {
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

    /// True if control packets have a separate class.
    pub(crate) fn control_priority(&self) -> bool {
        self.parameters.control_priority
    }

    /// True if each data class has a separate queue, and the highest goes first.
    pub(crate) fn strict_priority(&self) -> bool {
        self.parameters.strict_priority
    }
}

/// An egress port.
pub(crate) struct Port {
    rules: Rules,
    /// By class.
    waiting: [VecDeque<IntPacket>; Class::COUNT],
    /// The packet on the wire, and the queue it comes from.
    sending: Option<(usize, IntPacket)>,
}

/// Result of the admission of a packet to a port or switch.
pub(crate) struct Joined {
    /// The new size of the queue that it has joined, if it is a data queue.
    pub(crate) bytes: Option<u64>,
    pub(crate) marked: bool,
    /// The packet that was trimmed for want of room, as it was before, and true if not even the rest of it had room.
    pub(crate) trimmed: Option<(Packet, bool)>,
}

impl Port {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            waiting: Default::default(),
            sending: None,
        }
    }

    /// Bytes in a queue, the packet on the wire included.
    fn bytes(&self, queue: usize) -> u64 {
        let on_the_wire = self.sending.iter().filter(|(from, _)| *from == queue);
        let packets = self.waiting[queue]
            .iter()
            .chain(on_the_wire.map(|(_, packet)| packet));
        packets.map(|packet| u64::from(packet.size)).sum()
    }

    /// Bytes in all queues.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        (0..Class::COUNT).map(|queue| self.bytes(queue)).sum()
    }

    /// The packet on the wire.
    pub(crate) fn on_the_wire(&mut self) -> Option<&mut IntPacket> {
        self.sending.as_mut().map(|(_, packet)| packet)
    }

    pub(crate) fn packets(&self) -> u64 {
        let waiting: usize = self.waiting.iter().map(VecDeque::len).sum();
        waiting as u64 + u64::from(self.sending.is_some())
    }

    pub(crate) fn admit(&mut self, packet: &mut IntPacket) -> Result<Joined, DropCause> {
        let control = packet.class == Class::CONTROL && self.rules.control_priority();
        let queue = match (control, self.rules.strict_priority()) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => packet.class.index().max(1),
        };
        let bytes = self.bytes(queue) + u64::from(packet.size);
        let twice = queue == 0 && self.rules.parameters.trimming;
        let allowed = match twice {
            true => bytes <= 2 * self.rules.limit,
            false => self.rules.allow(bytes),
        };
        if !allowed {
            return match self.rules.parameters.trimming && queue > 0 {
                true => self.trim(packet, queue),
                false => Err(DropCause::QueueFull),
            };
        }
        let marked = self.rules.mark(MarkAt::Enqueue, packet, bytes);
        self.waiting[queue].push_back(packet.clone());
        let bytes = (!control).then_some(bytes);
        Ok(Joined {
            bytes,
            marked,
            trimmed: None,
        })
    }

    /// A data packet does not fit into its queue: it or the youngest one there goes on without its payload.
    fn trim(&mut self, packet: &mut IntPacket, queue: usize) -> Result<Joined, DropCause> {
        let whole = |packet: &Packet| match packet.header {
            Header::Data { flags, .. } => !flags.contains(DataFlags::TRIMMED),
            _ => false,
        };
        if !whole(packet) {
            return Err(DropCause::QueueFull);
        }
        let any = self.rules.parameters.trim_victim == TrimVictim::Random;
        let spares_arriving = any && self.rules.trimming.next_u32() % 2 == 1;
        let mut joined = Joined {
            bytes: None,
            marked: false,
            trimmed: None,
        };
        let full = self.bytes(queue);
        let after = |youngest: &IntPacket| full - u64::from(youngest.size) + u64::from(packet.size);
        let place = self.waiting[queue].back().cloned().filter(|youngest| {
            spares_arriving && whole(youngest) && self.rules.allow(after(youngest))
        });
        let mut victim = match place {
            None => packet.clone(),
            Some(youngest) => {
                let bytes = after(&youngest);
                joined.marked = self.rules.mark(MarkAt::Enqueue, packet, bytes);
                joined.bytes = Some(bytes);
                self.waiting[queue].pop_back();
                self.waiting[queue].push_back(packet.clone());
                youngest
            }
        };
        let before = victim.packet;
        let rest = self.rules.parameters.trim_size.as_u64() as u16;
        victim.size = victim.size.min(rest);
        victim.class = Class::CONTROL;
        if let Header::Data { flags, .. } = &mut victim.header {
            let own = [DataFlags::TRIMMED, DataFlags::LAST_HOP];
            for flag in &own[..1 + usize::from(self.rules.last_hop)] {
                *flags = flags.union(*flag);
            }
        }
        let lost = self.bytes(0) + u64::from(victim.size) > 2 * self.rules.limit;
        if !lost {
            self.waiting[0].push_back(victim);
        }
        joined.trimmed = Some((before, lost));
        Ok(joined)
    }

    /// Everything that waits or is on the wire, by queue; the queues are empty then.
    pub(crate) fn give_up(&mut self) -> Vec<(usize, IntPacket)> {
        let on_the_wire = self.sending.take();
        let mut all = Vec::new();
        for (queue, waiting) in self.waiting.iter_mut().enumerate() {
            all.extend(on_the_wire.clone().filter(|(from, _)| *from == queue));
            all.extend(waiting.drain(..).map(|packet| (queue, packet)));
        }
        all
    }

    /// Puts the next packet on the wire; its size.
    pub(crate) fn begin(&mut self) -> Option<u16> {
        if self.sending.is_some() {
            return None;
        }
        let mut order = std::iter::once(0).chain((1..Class::COUNT).rev());
        let queue = order.find(|&queue| !self.waiting[queue].is_empty())?;
        self.sending = self.waiting[queue]
            .pop_front()
            .map(|packet| (queue, packet));
        self.sending.as_ref().map(|(_, packet)| packet.size)
    }

    /// Ends the transmission. Returns the packet that has left, the bytes that stay in its queue if that is for data, and whether the
    /// packet was marked now.
    pub(crate) fn end(&mut self) -> (IntPacket, Option<u64>, bool) {
        let (queue, mut packet) = self.sending.take().expect("a packet is on the wire");
        let left = self.bytes(queue);
        let marked = queue > 0 && self.rules.mark(MarkAt::Dequeue, &mut packet, left);
        (packet, (queue > 0).then_some(left), marked)
    }
}
