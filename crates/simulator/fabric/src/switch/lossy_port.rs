//! The egress port of a lossy switch: a drop-tail queue with ECN marking, worked off lazily.
//!
//! Between two arrivals a port only transmits, and its transmissions follow from the queue. So a port has no events: [`LossyPort::advance`]
//! carries out the transmissions since the last look at the port.
//!
//! A port has a queue for control and one for data, or with strict priority one for each data class, of which the highest is served first.
//! The number of queues is a type parameter, so that the usual two cost no more than two.

use super::adaptive_routing::PortState;
use super::fifo::Fifo;
use super::marking::mark_if_long;
use super::parameters::{MarkAt, QueueRules};
use super::trimming::Trimming;
use crate::events::PortChange;
use crate::link::{Link, Sinks};
use crate::meter::LinkView;
use crate::observer::{DropCause, Observation};
use clearway_engine::Round;
use clearway_transport::Class;
use clearway_transport::congestion::telemetry::{IntPacket, Telemetry};
use clearway_units::{Purpose, RandomStream, Time};

/// A queue with its size.
#[derive(Debug)]
struct Queue<T> {
    packets: Fifo<IntPacket<T>>,
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

/// Classes that a port tells apart if all data is in one queue.
pub(crate) const ONE_DATA_QUEUE: usize = 2;

/// An egress port with so many queues, the first of them for control.
#[derive(Debug)]
pub(crate) struct LossyPort<T, const QUEUES: usize> {
    /// The class whose first packet is on the wire.
    busy: Option<Class>,
    /// Time at which the last bit of that packet leaves; without one, time at which the next transmission may start.
    at: Time,
    /// The largest packet that may [pass](Self::pass_or_enqueue).
    largest_passing: u64,
    /// By class; without control priority its packets are in the first data queue.
    queues: [Queue<T>; QUEUES],
    rules: QueueRules,
    random: RandomStream,
    link: Link<T>,
    trimming: Option<Box<Trimming>>,
}

/// Moves a packet to the end of a queue.
#[inline(always)]
pub(super) fn move_in<'q, T: Telemetry>(
    queue: &'q mut Fifo<IntPacket<T>>,
    packet: &mut IntPacket<T>,
) -> &'q mut IntPacket<T> {
    let slot = queue.next_slot(|| packet.packet.into());
    *slot = packet.take();
    slot
}

impl<T: Telemetry, const QUEUES: usize> LossyPort<T, QUEUES> {
    /// The last data queue.
    const LAST: Class = match Class::new(QUEUES as u8 - 1) {
        Some(class) => class,
        None => panic!("no more queues than classes"),
    };

    /// `last_hop` says that the link leads to a host.
    pub(crate) fn new(rules: QueueRules, seed: u64, link: Link<T>, last_hop: bool) -> Self {
        Self {
            busy: None,
            at: Time::ZERO,
            queues: std::array::from_fn(|_| Queue::default()),
            random: RandomStream::new(seed, Purpose::Marking, link.id.0.into()),
            trimming: Trimming::new(&rules, seed, link.id.0, last_hop),
            largest_passing: rules.limit.min(rules.largest_unmarked()),
            rules,
            link,
        }
    }

    /// Loads the packets that leave first, and what [`flush`](Self::flush) will touch, into the caches.
    #[inline]
    pub(super) fn prefetch_queues(&self) {
        self.queues
            .iter()
            .for_each(|queue| queue.packets.prefetch());
        self.link.prefetch_mailbox();
    }

    /// A packet arrives at `now` for this port.
    #[inline(always)] // The loop over a port's arrivals is the hottest of all; calls cost it a fifth.
    pub(crate) fn enqueue<O: Observation>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if self.advance(now, sinks) {
            self.at = self.at.max(now);
        }
        if T::AGENTS && !self.link.admits(now, packet, sinks) {
            return;
        }
        self.admit(now, packet, sinks);
    }

    /// As [`enqueue`](Self::enqueue). Nothing else happens at this port before `next()`: a packet that finds it idle and leaves by then
    /// does not need the queue.
    #[inline(always)]
    pub(crate) fn pass_or_enqueue<O: Observation>(
        &mut self,
        now: Time,
        next: impl FnOnce() -> Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let is_idle = self.advance(now, sinks);
        if T::AGENTS && !self.link.admits(now, packet, sinks) {
            return;
        }
        if is_idle {
            self.at = self.at.max(now);
            let end = self.at + self.link.clock.span_of(packet.size.into());
            if end <= next() && u64::from(packet.size) <= self.largest_passing {
                return self.pass(now, end, packet, sinks);
            }
        }
        self.admit(now, packet, sinks);
    }

    /// Sends a packet that arrives at `now` and whose last bit leaves at `end`, before anything else happens at this port.
    #[inline(never)]
    fn pass<O: Observation>(
        &mut self,
        now: Time,
        end: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        self.at = end;
        let is_data = packet.class.is_data() || !self.rules.control_priority;
        self.link.pass((now, end), is_data, packet, sinks);
    }

    /// Puts a packet that arrives at `now` into its queue, if it fits.
    #[inline(always)]
    fn admit<O: Observation>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let class = if self.rules.control_priority {
            packet.class.min(Self::LAST)
        } else {
            packet.class.min(Self::LAST).max(Class::DATA)
        };
        let queue = &mut self.queues[class.index()];
        let bytes = queue.bytes + u64::from(packet.size);
        if bytes > self.rules.limit {
            return self.on_overflow(now, packet, class, sinks);
        }
        queue.bytes = bytes;
        let packet = move_in(&mut queue.packets, packet);
        if class.is_data() {
            sinks.observer.on_enqueue(now, self.link.id, bytes);
            if O::METERS_LINKS {
                self.link.meter.on_enqueue(bytes);
            }
            if bytes > self.rules.kmin && self.rules.mark == MarkAt::Enqueue {
                let chance = (&self.rules, &mut self.random);
                mark_if_long(chance, &mut self.link, now, packet, bytes, sinks);
            }
        }
    }

    /// A packet arrives that does not fit: it is dropped, or a packet is trimmed.
    #[cold]
    #[inline(never)]
    fn on_overflow<O: Observation>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        class: Class,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let Some(trimming) = &mut self.trimming else {
            self.link.lose(now, packet, DropCause::QueueFull, sinks);
            return;
        };
        if !class.is_data() {
            return self.enqueue_control(now, packet, sinks);
        }
        if !packet.can_be_trimmed() {
            self.link.lose(now, packet, DropCause::QueueFull, sinks);
            return;
        }
        let mut victim = packet.take();
        let queue = &mut self.queues[class.index()];
        // The packet in transmission can no longer be trimmed.
        let waiting = queue.packets.len() - usize::from(self.busy == Some(class));
        if !trimming.takes_arriving()
            && waiting > 0
            && let Some(youngest) = queue.packets.back_mut()
        {
            // The arriving packet takes the place of the youngest only if it fits there.
            let bytes = queue.bytes - u64::from(youngest.size) + u64::from(victim.size);
            if youngest.can_be_trimmed() && bytes <= self.rules.limit {
                std::mem::swap(youngest, &mut victim);
                queue.bytes = bytes;
                sinks.observer.on_queue(now, self.link.id, bytes);
                if bytes > self.rules.kmin && self.rules.mark == MarkAt::Enqueue {
                    let chance = (&self.rules, &mut self.random);
                    mark_if_long(chance, &mut self.link, now, youngest, bytes, sinks);
                }
            }
        }
        self.link.note_trim(now, &victim, sinks);
        trimming.trim(&mut victim);
        self.enqueue_control(now, &mut victim, sinks);
    }

    /// Puts a control packet, or a trimmed packet, into the queue of control, which has more room where packets are trimmed.
    fn enqueue_control<O: Observation>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let limit = self
            .trimming
            .as_ref()
            .map_or(self.rules.limit, |trimming| trimming.control_limit);
        let queue = &mut self.queues[Class::CONTROL.index()];
        let bytes = queue.bytes + u64::from(packet.size);
        if bytes > limit {
            self.link.lose(now, packet, DropCause::QueueFull, sinks);
            return;
        }
        queue.bytes = bytes;
        move_in(&mut queue.packets, packet);
    }

    /// As [`enqueue`](Self::enqueue), where the port may be down.
    pub(crate) fn enqueue_if_up<O: Observation>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        match self.link.is_down() {
            false => self.enqueue(now, packet, sinks),
            true => self.link.lose(now, packet, DropCause::LinkDown, sinks),
        }
    }

    /// Carries out the events here before `now`, and the events at `now` that come before arrivals.
    pub(super) fn bring_up_to_date<O: Observation>(
        &mut self,
        now: Time,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        self.pass_changes(now, sinks);
        self.advance(now, sinks);
    }

    /// The port as a choice among several sees it, at the time up to which it was brought.
    pub(super) fn state(&self) -> PortState {
        PortState {
            bytes: self.queues.iter().map(|queue| queue.bytes).sum(),
            limit: self.rules.limit,
            is_down: self.link.is_down(),
        }
    }

    /// Drops a packet whose destination no way leads to.
    pub(crate) fn refuse<O: Observation>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        // Observers hear of earlier events first.
        self.advance(now, sinks);
        self.link.lose(now, packet, DropCause::NoRoute, sinks);
    }

    /// Carries out the events of the link up to and with `until`.
    pub(crate) fn pass_changes<O: Observation>(
        &mut self,
        until: Time,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        while let Some((at, change)) = self.link.next_change()
            && at <= until
        {
            self.advance(at, sinks);
            self.link.pass_change();
            if change == PortChange::Down {
                self.drop_all(at, sinks);
            }
        }
    }

    /// Drops all that waits or is on the wire.
    fn drop_all<O: Observation>(&mut self, now: Time, sinks: &mut Sinks<'_, O, T>) {
        self.busy = None;
        self.at = now;
        for (class, queue) in self.queues.iter_mut().enumerate() {
            for packet in queue.packets.iter() {
                self.link.lose(now, packet, DropCause::LinkDown, sinks);
            }
            queue.packets.clear();
            if std::mem::take(&mut queue.bytes) > 0 && class >= Class::DATA.index() {
                sinks.observer.on_dequeue(now, self.link.id, 0);
            }
        }
    }

    /// Time of the next event of the link.
    pub(crate) fn next_change(&self) -> Time {
        self.link.next_change().map_or(Time::NEVER, |(at, _)| at)
    }

    /// Carries out all ends of transmissions up to and with `until`, and all starts before it: at one instant an end comes
    /// before arrivals and a start after them. Returns true if nothing waits then, and nothing is on the wire.
    #[inline(always)]
    fn advance<O: Observation>(&mut self, until: Time, sinks: &mut Sinks<'_, O, T>) -> bool {
        if let Some(class) = self.busy {
            if self.at > until {
                return false;
            }
            self.busy = None;
            self.end_transmission(class, sinks);
        }
        while let Some(class) = self.waiting_class() {
            if self.at >= until {
                return false;
            }
            let waiting: u64 = match T::PRESENT {
                true => self.queues.iter().map(|queue| queue.bytes).sum(),
                false => 0,
            };
            let Some(packet) = self.queues[class.index()].packets.front_mut() else {
                return true;
            };
            // Dequeued: all that arrived until now is in the queues, and nothing later.
            if T::PRESENT {
                let behind = waiting - u64::from(packet.size);
                self.link.record(self.at, packet, behind);
            }
            self.at += self.link.clock.span_of(packet.size.into());
            if self.at > until {
                self.busy = Some(class);
                return false;
            }
            self.end_transmission(class, sinks);
        }
        true
    }

    /// The last bit of the first packet of a class leaves now.
    #[inline(always)]
    fn end_transmission<O: Observation>(&mut self, class: Class, sinks: &mut Sinks<'_, O, T>) {
        let queue = &mut self.queues[class.index()];
        let Some(packet) = queue.packets.front_mut() else {
            return;
        };
        queue.bytes -= u64::from(packet.size);
        if class.is_data() {
            let bytes = queue.bytes;
            sinks.observer.on_dequeue(self.at, self.link.id, bytes);
            if bytes > self.rules.kmin && self.rules.mark == MarkAt::Dequeue {
                let chance = (&self.rules, &mut self.random);
                mark_if_long(chance, &mut self.link, self.at, packet, bytes, sinks);
            }
        }
        self.link.carry(self.at, self.at, packet, sinks);
        queue.packets.pop_front();
    }

    /// The class that is served next, or is being served.
    #[inline]
    fn waiting_class(&self) -> Option<Class> {
        if !self.queues[0].packets.is_empty() {
            return Some(Class::CONTROL);
        }
        if QUEUES == ONE_DATA_QUEUE {
            return (!self.queues[1].packets.is_empty()).then_some(Class::DATA);
        }
        let mut data = (1..QUEUES).rev();
        let highest = data.find(|&queue| !self.queues[queue].packets.is_empty());
        highest.and_then(|queue| Class::new(queue as u8))
    }

    /// Ends a round: hands over the packets that have left. Returns the earliest arrival handed over.
    pub(crate) fn flush<O: Observation>(
        &mut self,
        round: &Round,
        sinks: &mut Sinks<'_, O, T>,
    ) -> Time {
        // A transmission that ends at the last instant of the round still belongs to it. One that ends at the first instant of the next
        // must wait, or its packet could not arrive within the lookahead of that round.
        let last = Time::from_ps(round.end().as_ps() - 1);
        self.advance(last, sinks);
        self.link.flush(round, sinks.counters)
    }

    /// Time of the next event of this port if nothing arrives; [`Time::NEVER`] if all queues are empty.
    pub(crate) fn next(&self) -> Time {
        match self.waiting_class() {
            None => Time::NEVER,
            Some(_) => self.at,
        }
    }

    /// The link at `now`, with the bytes in front of it that are data.
    pub(crate) fn view(&mut self, now: Time) -> LinkView<'_> {
        let data = &self.queues[Class::DATA.index()..];
        let bytes = data.iter().map(|queue| queue.bytes).sum();
        let first = self
            .busy
            .and_then(|class| self.queues[class.index()].packets.front());
        let on_wire = first.map(|packet| (packet.size, self.at));
        self.link.view(now, bytes, on_wire)
    }

    /// Packets that wait or are on the wire.
    pub(crate) fn queued(&self) -> u64 {
        self.queues
            .iter()
            .map(|queue| queue.packets.len() as u64)
            .sum()
    }
}
