//! An egress port of a switch with a shared buffer: a queue for each class, pause frames before all of them.
//!
//! Control goes first. With strict priority the highest data class that is not paused follows; else data classes take turns packet by
//! packet, the next higher one first, beginning above class 1; one that is empty or paused is passed over and keeps no claim.

use super::super::adaptive_routing::PortState;
use super::super::fifo::Fifo;
use super::super::marking::mark_if_long;
use super::super::parameters::{MarkAt, QueueRules};
use super::buffer::Buffer;
use crate::link::{Link, Sinks};
use crate::meter::LinkView;
use crate::observer::{DropCause, Observation};
use crate::pause::PauseState;
use crate::topology::channels_of_highest;
use clearway_transport::congestion::telemetry::{IntPacket, Telemetry};
use clearway_transport::{Class, ClassSet, Packet};
use clearway_units::{Purpose, RandomStream, Time};

/// A packet and the port through which it came in. It keeps the class in which it came in until it leaves, in the class of its queue: with
/// virtual channels they may differ.
#[derive(Debug)]
pub(super) struct Queued<T> {
    pub(super) packet: IntPacket<T>,
    pub(super) from: u16,
}

#[derive(Debug)]
struct Queue<T> {
    packets: Fifo<Queued<T>>,
    bytes: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            packets: Fifo::default(),
            bytes: 0,
        }
    }
}

/// Frame on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transmission {
    /// A pause frame with this content.
    Pause(ClassSet),
    /// The first packet of a class.
    Packet(Class),
    /// A port whose link is down: nothing is sent.
    Down,
}

/// Record of a packet that has left, for the accounts of the buffer: class in which it came in, ingress port and size.
#[derive(Debug, Clone, Copy)]
pub(super) struct DepartedPacket {
    pub(super) class: Class,
    pub(super) from: u16,
    pub(super) size: u64,
}

/// An egress port.
#[derive(Debug)]
pub(crate) struct SharedPort<T> {
    wire: Option<Transmission>,
    /// Time at which the last bit of that leaves; without it, and where no link has events, a time before which nothing waited that may be
    /// sent.
    at: Time,
    /// By class, as far as there has been any packet.
    queues: Vec<Queue<T>>,
    /// Bytes in all of them.
    bytes: u64,
    /// Classes with packets.
    waiting: ClassSet,
    /// The data class that was served last.
    turn: Class,
    /// Pause state of this transmitter, as the other end of the cable has set it.
    pub(super) pause: PauseState,
    /// Classes that the other end of the cable was last told to hold back.
    told: ClassSet,
    rules: QueueRules,
    /// The lowest class in which packets are treated here: control, or data where control has no priority.
    lowest: Class,
    /// The largest packet that gets no mark when it joins an empty queue and leaves one.
    pub(super) largest_unmarked: u64,
    random: RandomStream,
    pub(super) link: Link<T>,
}

impl<T: Telemetry> SharedPort<T> {
    pub(crate) fn new(rules: QueueRules, seed: u64, link: Link<T>) -> Self {
        Self {
            wire: None,
            at: Time::ZERO,
            queues: Vec::new(),
            bytes: 0,
            waiting: ClassSet::EMPTY,
            turn: Class::DATA,
            pause: PauseState::default(),
            told: ClassSet::EMPTY,
            lowest: match rules.control_priority {
                true => Class::CONTROL,
                false => Class::DATA,
            },
            largest_unmarked: rules.largest_unmarked(),
            rules,
            random: RandomStream::new(seed, Purpose::Marking, link.id.0.into()),
            link,
        }
    }

    /// The class in which a packet that comes in is treated here.
    #[inline]
    pub(super) fn class_of(&self, packet: &Packet) -> Class {
        packet.class.max(self.lowest)
    }

    /// The port as a choice among several sees it.
    pub(super) fn state(&self) -> PortState {
        PortState {
            bytes: self.bytes,
            limit: self.rules.limit,
            is_down: self.link.is_down(),
        }
    }

    /// True if the queue of a lossy class takes `size` bytes more.
    #[inline]
    pub(super) fn takes_lossy(&self, class: Class, size: u64) -> bool {
        let bytes = self
            .queues
            .get(class.index())
            .map_or(0, |queue| queue.bytes);
        bytes + size <= self.rules.limit
    }

    #[inline]
    pub(super) fn enqueue<O: Observation>(
        &mut self,
        now: Time,
        class: Class,
        (packet, from): (&mut IntPacket<T>, u16),
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if self.queues.len() <= class.index() {
            self.queues.resize_with(class.index() + 1, Queue::default);
        }
        let queue = &mut self.queues[class.index()];
        let bytes = queue.bytes + u64::from(packet.size);
        queue.bytes = bytes;
        self.bytes += u64::from(packet.size);
        let unused = || Queued {
            packet: packet.packet.into(),
            from,
        };
        let queued = queue.packets.next_slot(unused);
        (queued.packet, queued.from) = (packet.take(), from);
        if bytes > self.rules.kmin && self.rules.mark == MarkAt::Enqueue {
            let chance = (&self.rules, &mut self.random);
            let packet = &mut queued.packet;
            mark_if_long(chance, &mut self.link, now, packet, bytes, sinks);
        }
        self.waiting.insert(class);
        if class.is_data() {
            sinks.observer.on_enqueue(now, self.link.id, bytes);
            if O::METERS_LINKS {
                self.link.meter.on_enqueue(bytes);
            }
        }
    }

    /// True if something is on the wire, waits or is to be told to the other end of the cable.
    #[inline]
    fn has_work(&self) -> bool {
        self.wire.is_some() || !self.waiting.is_empty() || !self.told.is_empty()
    }

    /// True if a packet of this class would be sent at once.
    #[inline]
    pub(super) fn is_free_for(&self, class: Class) -> bool {
        !self.has_work() && !self.pause.classes().contains(class)
    }

    /// Sends a packet for which the port [is free](Self::is_free_for), which arrives at `now` and whose last bit leaves at `end`, before
    /// anything else happens here.
    #[inline]
    pub(super) fn pass<O: Observation>(
        &mut self,
        now: Time,
        end: Time,
        class: Class,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        self.at = end;
        if class.is_data() {
            self.turn = class;
        }
        self.link.pass((now, end), class.is_data(), packet, sinks);
    }

    /// Begins the next transmission, if the wire is free and something may be sent; returns when its last bit leaves. `tell` has the
    /// classes that the other end of the cable should hold back.
    #[inline(always)] // Out of line, a hop with telemetry takes some 30 instructions more.
    pub(super) fn start(&mut self, now: Time, tell: ClassSet, frame: u32) -> Option<Time> {
        if self.wire.is_some() {
            return None;
        }
        // A pause frame goes before all packets: each packet before it would add to the headroom.
        let size = if tell != self.told {
            self.told = tell;
            self.wire = Some(Transmission::Pause(tell));
            frame
        } else {
            let class = self.next_class()?;
            self.wire = Some(Transmission::Packet(class));
            self.begin(now, class)
        };
        self.at = now + self.link.clock.span_of(size);
        Some(self.at)
    }

    /// Carries out the ends of transmissions up to and with `until` and the starts before `start`, in a round in which nobody's
    /// pauses change and the switch pauses no sender.
    #[inline(always)]
    pub(super) fn advance<O: Observation>(
        &mut self,
        (until, start): (Time, Time),
        frame: u32,
        buffer: &mut Buffer,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        loop {
            if self.wire.is_some() {
                if self.at > until {
                    return;
                }
                if let Some(DepartedPacket { class, from, size }) = self.complete(self.at, sinks)
                    && class.is_data()
                {
                    buffer.release_without_pause(from.into(), class, size);
                }
            } else {
                if self.at >= start {
                    return;
                }
                if self.start(self.at, ClassSet::EMPTY, frame).is_none() {
                    self.at = start;
                    return;
                }
            }
        }
    }

    /// Loads the packets that leave first, and what the end of a round will touch, into the caches.
    #[inline]
    pub(super) fn prefetch_queues(&self) {
        self.queues
            .iter()
            .for_each(|queue| queue.packets.prefetch());
        self.link.prefetch_mailbox();
    }

    /// [Advances](Self::advance) to an arrival at `now`.
    #[inline(always)]
    pub(super) fn bring_up_to_date<O: Observation>(
        &mut self,
        now: Time,
        frame: u32,
        buffer: &mut Buffer,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        match self.has_work() {
            true => self.advance((now, now), frame, buffer, sinks),
            false => self.at = self.at.max(now),
        }
    }

    /// Time at which the last bit of the transmission on the wire leaves.
    #[inline]
    pub(super) fn end(&self) -> Time {
        match self.wire {
            Some(Transmission::Packet(_) | Transmission::Pause(_)) => self.at,
            Some(Transmission::Down) | None => Time::NEVER,
        }
    }

    /// The first packet of `class` is dequeued; returns its size.
    #[inline]
    fn begin(&mut self, now: Time, class: Class) -> u32 {
        let Some(Queued { packet, .. }) = self.queues[class.index()].packets.front_mut() else {
            return 0;
        };
        if T::PRESENT {
            let behind = self.bytes - u64::from(packet.size);
            self.link.record(now, packet, behind);
        }
        packet.size.into()
    }

    /// Control first, then the data classes in turn or by priority; none that is paused.
    #[inline]
    fn next_class(&mut self) -> Option<Class> {
        const DATA: ClassSet = ClassSet::only(Class::DATA);
        let eligible = self.waiting.without(self.pause.classes());
        // The usual case, told by one comparison.
        if eligible == DATA {
            self.turn = Class::DATA;
            return Some(Class::DATA);
        }
        if eligible.contains(Class::CONTROL) {
            return Some(Class::CONTROL);
        }
        let eligible = match self.rules.strict_priority {
            false => eligible,
            true if self.rules.has_channels => channels_of_highest(eligible),
            true => return eligible.highest(),
        };
        let class = eligible.next_after(self.turn)?;
        self.turn = class;
        Some(class)
    }

    /// True if nothing is on the wire.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.wire.is_none()
    }

    /// TransmissionEnds the transmission on the wire, whose last bit leaves at `now`. Returns the departure if it was a packet.
    #[inline]
    pub(super) fn complete<O: Observation>(
        &mut self,
        now: Time,
        sinks: &mut Sinks<'_, O, T>,
    ) -> Option<DepartedPacket> {
        let class = match self.wire.take()? {
            Transmission::Pause(classes) => {
                self.link.carry_pause(now, classes, sinks);
                return None;
            }
            Transmission::Packet(class) => class,
            Transmission::Down => unreachable!("what was on the wire ended with it"),
        };
        let queue = &mut self.queues[class.index()];
        let Queued { packet, from } = queue.packets.front_mut()?;
        let (from, size) = (*from, u64::from(packet.size));
        queue.bytes -= size;
        self.bytes -= size;
        if class.is_data() {
            sinks.observer.on_dequeue(now, self.link.id, queue.bytes);
            if queue.bytes > self.rules.kmin && self.rules.mark == MarkAt::Dequeue {
                let chance = (&self.rules, &mut self.random);
                mark_if_long(chance, &mut self.link, now, packet, queue.bytes, sinks);
            }
        }
        self.link.carry(now, now, packet, sinks);
        queue.packets.pop_front();
        if queue.packets.is_empty() {
            self.waiting.remove(class);
        }
        Some(DepartedPacket { class, from, size })
    }

    /// As [`complete`](Self::complete), for a packet that may have come in on another virtual channel than it leaves on. It gets the class
    /// of its queue; control in a queue of data stays control.
    #[cold]
    #[inline(never)]
    pub(super) fn complete_on_channel<O: Observation>(
        &mut self,
        now: Time,
        sinks: &mut Sinks<'_, O, T>,
    ) -> Option<DepartedPacket> {
        let mut account = None;
        if let Some(Transmission::Packet(class)) = self.wire
            && let Some(Queued { packet, .. }) = self.queues[class.index()].packets.front_mut()
            && packet.class.is_data()
        {
            account = Some(std::mem::replace(&mut packet.class, class));
        }
        let left = self.complete(now, sinks)?;
        Some(DepartedPacket {
            class: account.unwrap_or(left.class),
            ..left
        })
    }

    /// The link goes down at `now`: drops all that waits or is on the wire, for the accounts of the buffer, and forgets pauses.
    pub(super) fn go_down<O: Observation>(
        &mut self,
        now: Time,
        sinks: &mut Sinks<'_, O, T>,
    ) -> Vec<DepartedPacket> {
        self.wire = Some(Transmission::Down);
        // Pauses end with the link. A port that comes back tells the other end anew.
        self.told = ClassSet::EMPTY;
        self.waiting = ClassSet::EMPTY;
        if !self.pause.classes().is_empty() {
            self.pause.forget(now);
            self.tell_pause(now, sinks);
        }
        let mut dropped = Vec::new();
        for (index, queue) in self.queues.iter_mut().enumerate() {
            let Some(class) = Class::new(index as u8) else {
                continue;
            };
            for queued in queue.packets.iter() {
                let packet = &queued.packet;
                self.link.lose(now, packet, DropCause::LinkDown, sinks);
                dropped.push(DepartedPacket {
                    class: packet.class.max(self.lowest),
                    from: queued.from,
                    size: packet.size.into(),
                });
            }
            queue.packets.clear();
            self.bytes -= queue.bytes;
            if std::mem::take(&mut queue.bytes) > 0 && class.is_data() {
                sinks.observer.on_dequeue(now, self.link.id, 0);
            }
        }
        dropped
    }

    /// The link is up again at `now`.
    pub(super) fn come_up<O: Observation>(&mut self, now: Time, sinks: &mut Sinks<'_, O, T>) {
        self.wire = None;
        if !self.pause.storm().is_empty() {
            self.pause.resume(now);
            self.tell_pause(now, sinks);
        }
    }

    /// A pause storm holds back these classes from `now` on, none after its end.
    pub(super) fn change_storm<O: Observation>(
        &mut self,
        now: Time,
        classes: ClassSet,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        self.pause.set_storm(classes);
        if !self.link.is_down() {
            self.pause.resume(now);
            self.tell_pause(now, sinks);
        }
    }

    /// Tells the observer the classes that are held back from `now` on.
    pub(super) fn tell_pause<O: Observation>(&self, now: Time, sinks: &mut Sinks<'_, O, T>) {
        let (link, classes) = (self.link.id, self.pause.classes());
        sinks
            .observer
            .tell(|observer| observer.on_pause(now, link, classes));
    }

    /// True if an event of the link changes nothing: nothing waits, and nobody holds anything back. `tell` has the classes that the other
    /// end of the cable should hold back.
    pub(super) fn is_quiet(&self, tell: ClassSet) -> bool {
        let is_idle = matches!(self.wire, None | Some(Transmission::Down));
        let pauses = [tell, self.told, self.pause.classes()];
        is_idle && self.waiting.is_empty() && pauses.iter().all(|classes| classes.is_empty())
    }

    /// The link at `now`, with the bytes of data in front of it.
    pub(super) fn view(&mut self, now: Time) -> LinkView<'_> {
        let data = self.queues.iter().skip(Class::DATA.index());
        let bytes = data.map(|queue| queue.bytes).sum();
        let first = match self.wire {
            Some(Transmission::Packet(class)) => self.queues[class.index()].packets.front(),
            Some(Transmission::Pause(_) | Transmission::Down) | None => None,
        };
        let on_wire = first.map(|queued| (queued.packet.size, self.at));
        self.link.view(now, bytes, on_wire)
    }

    /// Packets that wait or are on the wire.
    pub(super) fn queued(&self) -> u64 {
        let lengths = self.queues.iter().map(|queue| queue.packets.len());
        lengths.sum::<usize>() as u64
    }
}
