//! Output queues of an endpoint: control packets, and for each data class in use a queue of control packets and a round robin of flows.

use crate::congestion::telemetry::IntPacket;
use crate::exact_push;
use crate::packet::{Class, ClassSet};
use clearway_prefetch::{LINE, prefetch_first};
use std::collections::VecDeque;

/// The packets and flows of one data class.
#[derive(Debug)]
pub(crate) struct ClassQueue<T> {
    class: Class,
    /// Control packets (probes, acknowledgements) in this class, each with the number of those in the class of control that go before it.
    control: VecDeque<(u64, IntPacket<T>)>,
    /// Slots in round robin: those that were sendable when they were put here, each at most once.
    pub(crate) round_robin: VecDeque<u32>,
    /// Number of slots that are sendable now.
    sendable: usize,
    /// Slots of this queue that no flow has.
    pub(crate) free: Vec<u32>,
}

/// Packets and flows that wait to be sent. A paused class holds back its own queue and nothing else.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    /// Packets in the class of control.
    control: VecDeque<IntPacket<T>>,
    /// Number of packets of the class of control that have left so far.
    control_left: u64,
    /// Queues of the data classes, in the order in which the classes came into use.
    queues: Vec<ClassQueue<T>>,
    /// The queue whose turn it is.
    turn: usize,
    /// True if the highest class goes first; else classes take turns.
    strict: bool,
    /// Classes in which a control packet waits.
    waiting: ClassSet,
    /// Classes that have a sendable flow.
    sendable: ClassSet,
}

impl<T> Outbox<T> {
    /// Creates an empty outbox. Data of a higher class goes first if `strict`; else classes take turns.
    pub(crate) fn new(strict: bool) -> Self {
        Self {
            strict,
            control: VecDeque::new(),
            control_left: 0,
            queues: Vec::new(),
            turn: 0,
            waiting: ClassSet::EMPTY,
            sendable: ClassSet::EMPTY,
        }
    }

    /// Loads what the next packet will touch into the caches: the first control packets and the queues.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_first(self.control.as_slices().0, 4 * LINE);
        prefetch_first(&self.queues, 2 * LINE);
    }

    /// Loads what the first queue points to.
    #[inline]
    pub(crate) fn prefetch_contents(&self) {
        if let Some(queue) = self.queues.first() {
            prefetch_first(queue.round_robin.as_slices().0, LINE);
        }
    }

    /// True if something may be sent while the classes `paused` may not.
    #[inline]
    pub(crate) fn is_ready(&self, paused: ClassSet) -> bool {
        !self.waiting.union(self.sendable).without(paused).is_empty()
    }

    #[inline]
    pub(crate) fn has_control(&self, paused: ClassSet) -> bool {
        !self.waiting.without(paused).is_empty()
    }

    #[inline]
    pub(crate) fn has_flow(&self, paused: ClassSet) -> bool {
        !self.sendable.without(paused).is_empty()
    }

    /// Number of flows that may send.
    pub(crate) fn sendable(&self) -> u64 {
        self.queues.iter().map(|queue| queue.sendable as u64).sum()
    }

    /// The highest class that has a sendable flow and is not paused.
    pub(crate) fn highest_class(&self, paused: ClassSet) -> Option<Class> {
        self.sendable.without(paused).highest()
    }

    /// Returns the queue of a data class; creates it if it does not exist.
    pub(crate) fn queue_of(&mut self, class: Class) -> u8 {
        let known = self.queues.iter().position(|queue| queue.class == class);
        let index = known.unwrap_or_else(|| {
            let queue = ClassQueue {
                class,
                control: VecDeque::new(),
                round_robin: VecDeque::new(),
                sendable: 0,
                free: Vec::new(),
            };
            exact_push::push(&mut self.queues, queue);
            self.queues.len() - 1
        });
        index as u8
    }

    #[inline]
    pub(crate) fn queue(&mut self, queue: u8) -> &mut ClassQueue<T> {
        &mut self.queues[usize::from(queue)]
    }

    /// Counts a flow of a queue that has become sendable, or is so no longer.
    pub(crate) fn count_sendable(&mut self, queue: u8, sendable: bool) {
        self.count_all_sendable(queue, 1, sendable);
    }

    /// Counts `count` flows of a queue that have become sendable together, or are so no longer.
    #[inline]
    pub(crate) fn count_all_sendable(&mut self, queue: u8, count: usize, sendable: bool) {
        if count == 0 {
            return;
        }
        let queue = &mut self.queues[usize::from(queue)];
        match sendable {
            true => queue.sendable += count,
            false => queue.sendable -= count,
        }
        match queue.sendable {
            0 => self.sendable.remove(queue.class),
            _ => self.sendable.insert(queue.class),
        };
    }

    /// Queue whose flow sends next: the queue of the highest class if `strict`; else queues take turns packet by packet.
    #[inline]
    pub(crate) fn next_queue(&self, paused: ClassSet) -> Option<u8> {
        let ready = self.sendable.without(paused);
        if ready.is_empty() {
            return None;
        }
        // Nearly always the only one.
        match self.queues.get(self.turn) {
            Some(queue) if ready.contains(queue.class) && !self.strict => Some(self.turn as u8),
            _ => self.queue_after_turn(ready),
        }
    }

    #[cold]
    fn queue_after_turn(&self, ready: ClassSet) -> Option<u8> {
        if self.strict {
            let class = ready.highest()?;
            let queue = self.queues.iter().position(|queue| queue.class == class);
            return queue.map(|queue| queue as u8);
        }
        let count = self.queues.len();
        let queues = (self.turn..count).chain(0..self.turn.min(count));
        let mut ready = queues.filter(|queue| ready.contains(self.queues[*queue].class));
        ready.next().map(|queue| queue as u8)
    }

    /// Ends the turn of a queue of which a packet has been sent.
    #[inline]
    pub(crate) fn end_turn(&mut self, queue: u8) {
        self.turn = usize::from(queue) + 1;
        if self.turn == self.queues.len() {
            self.turn = 0;
        }
    }

    /// Queues a control packet (probe, acknowledgement, notification) in the class that it has.
    #[inline]
    pub(crate) fn push(&mut self, packet: IntPacket<T>) {
        if packet.class == Class::CONTROL {
            self.push_control(packet);
        } else {
            self.push_in_class(packet);
        }
    }

    #[inline(always)] // By a call, the packet would be written twice.
    pub(crate) fn push_control(&mut self, packet: IntPacket<T>) {
        self.waiting.insert(Class::CONTROL);
        self.control.push_back(packet);
    }

    fn push_in_class(&mut self, packet: IntPacket<T>) {
        let class = packet.class;
        self.waiting.insert(class);
        let before = self.control_left + self.control.len() as u64;
        let queue = self.queue_of(class);
        self.queue(queue).control.push_back((before, packet));
    }

    /// Takes the control packet, of any class, that has waited longest. If several queues wait since the same control packet, the one whose
    /// class came into use first is served. If the class of control is paused, all others go before it.
    #[inline]
    pub(crate) fn pop(&mut self, paused: ClassSet) -> Option<IntPacket<T>> {
        let mut classes = self.waiting.without(paused);
        classes.remove(Class::CONTROL);
        let control_waits = paused.contains(Class::CONTROL);
        if !classes.is_empty() {
            let due = if control_waits {
                u64::MAX
            } else {
                self.control_left
            };
            if let Some(packet) = self.pop_in_class(classes, due) {
                return Some(packet);
            }
        }
        if control_waits {
            return None;
        }
        let packet = self.control.pop_front()?;
        self.control_left += 1;
        if self.control.is_empty() {
            self.waiting.remove(Class::CONTROL);
        }
        Some(packet)
    }

    /// Takes a control packet in one of `classes` before which no more than `due` packets of the class of control have to leave.
    fn pop_in_class(&mut self, classes: ClassSet, due: u64) -> Option<IntPacket<T>> {
        let queue = self.queues.iter_mut().find(|queue| {
            let first = queue.control.front().map(|(before, _)| *before);
            classes.contains(queue.class) && first.is_some_and(|before| before <= due)
        })?;
        let (_, packet) = queue.control.pop_front()?;
        if queue.control.is_empty() {
            self.waiting.remove(queue.class);
        }
        Some(packet)
    }
}
