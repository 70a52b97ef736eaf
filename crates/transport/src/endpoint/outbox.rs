//! What an endpoint has to send: control packets, and for each data class in use a lane of notices and of flows that take turns.

use crate::packet::{Class, ClassSet};
use crate::telemetry::IntPacket;
use std::collections::VecDeque;

/// The packets and flows of one data class.
#[derive(Debug)]
pub(crate) struct Lane<T> {
    class: Class,
    /// Probes and acknowledgements in this class, each with the number of control packets that go before it.
    notices: VecDeque<(u64, IntPacket<T>)>,
    /// Slots that were sendable when they were put here, each at most once.
    pub(crate) turns: VecDeque<u32>,
    /// Slots that are sendable now.
    sendable: usize,
    /// Slots of this lane that no flow has.
    pub(crate) free: Vec<u32>,
}

/// Everything that waits to be sent. A paused class holds back its own lane and nothing else.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    control: VecDeque<IntPacket<T>>,
    /// Control packets that have ever left.
    control_left: u64,
    /// In the order in which the classes came into use.
    lanes: Vec<Lane<T>>,
    /// The lane whose turn it is.
    turn: usize,
    /// The highest class goes first, whosever turn it is.
    strict: bool,
    /// Classes that have a notice or control packet.
    notices: ClassSet,
    /// Classes that have a sendable flow.
    sendable: ClassSet,
}

impl<T> Outbox<T> {
    /// Data of a higher class goes first if `strict`; else classes take turns.
    pub(crate) fn new(strict: bool) -> Self {
        Self {
            strict,
            control: VecDeque::new(),
            control_left: 0,
            lanes: Vec::new(),
            turn: 0,
            notices: ClassSet::EMPTY,
            sendable: ClassSet::EMPTY,
        }
    }

    /// Something may be sent while the classes `paused` may not.
    #[inline]
    pub(crate) fn is_ready(&self, paused: ClassSet) -> bool {
        !self.notices.union(self.sendable).without(paused).is_empty()
    }

    #[inline]
    pub(crate) fn has_notice(&self, paused: ClassSet) -> bool {
        !self.notices.without(paused).is_empty()
    }

    #[inline]
    pub(crate) fn has_flow(&self, paused: ClassSet) -> bool {
        !self.sendable.without(paused).is_empty()
    }

    /// The lane of a data class, which comes into being.
    pub(crate) fn lane_of(&mut self, class: Class) -> u8 {
        let known = self.lanes.iter().position(|lane| lane.class == class);
        let index = known.unwrap_or_else(|| {
            self.lanes.push(Lane {
                class,
                notices: VecDeque::new(),
                turns: VecDeque::new(),
                sendable: 0,
                free: Vec::new(),
            });
            self.lanes.len() - 1
        });
        index as u8
    }

    #[inline]
    pub(crate) fn lane(&mut self, lane: u8) -> &mut Lane<T> {
        &mut self.lanes[usize::from(lane)]
    }

    /// A flow of a lane has become sendable, or is so no longer.
    pub(crate) fn count_sendable(&mut self, lane: u8, sendable: bool) {
        let lane = &mut self.lanes[usize::from(lane)];
        lane.sendable = lane.sendable + usize::from(sendable) - usize::from(!sendable);
        if lane.sendable == 0 {
            self.sendable.remove(lane.class);
        } else {
            self.sendable.insert(lane.class);
        }
    }

    /// The lane whose flow is next: that of the highest class, or else lanes take turns packet by packet.
    #[inline]
    pub(crate) fn next_lane(&self, paused: ClassSet) -> Option<u8> {
        let ready = self.sendable.without(paused);
        if ready.is_empty() {
            return None;
        }
        // Nearly always the only one.
        match self.lanes.get(self.turn) {
            Some(lane) if ready.contains(lane.class) && !self.strict => Some(self.turn as u8),
            _ => self.lane_after_turn(ready),
        }
    }

    #[cold]
    fn lane_after_turn(&self, ready: ClassSet) -> Option<u8> {
        if self.strict {
            let class = ready.highest()?;
            let lane = self.lanes.iter().position(|lane| lane.class == class);
            return lane.map(|lane| lane as u8);
        }
        let count = self.lanes.len();
        let lanes = (self.turn..count).chain(0..self.turn.min(count));
        let mut ready = lanes.filter(|lane| ready.contains(self.lanes[*lane].class));
        ready.next().map(|lane| lane as u8)
    }

    /// A packet of this lane has been sent.
    #[inline]
    pub(crate) fn end_turn(&mut self, lane: u8) {
        self.turn = usize::from(lane) + 1;
        if self.turn == self.lanes.len() {
            self.turn = 0;
        }
    }

    /// Queues a packet that is no flow's data, in the class that it has.
    #[inline]
    pub(crate) fn push(&mut self, packet: IntPacket<T>) {
        if packet.class == Class::CONTROL {
            self.push_control(packet);
        } else {
            self.push_notice(packet);
        }
    }

    #[inline]
    pub(crate) fn push_control(&mut self, packet: IntPacket<T>) {
        self.notices.insert(Class::CONTROL);
        self.control.push_back(packet);
    }

    fn push_notice(&mut self, packet: IntPacket<T>) {
        let class = packet.class;
        self.notices.insert(class);
        let before = self.control_left + self.control.len() as u64;
        let lane = self.lane_of(class);
        self.lane(lane).notices.push_back((before, packet));
    }

    /// The control packet or notice that has waited longest. Of several lanes that wait since the same control packet, the one
    /// whose class came into use first. Control that is paused lets everything else go before it.
    #[inline]
    pub(crate) fn pop(&mut self, paused: ClassSet) -> Option<IntPacket<T>> {
        let mut classes = self.notices.without(paused);
        classes.remove(Class::CONTROL);
        let control_waits = paused.contains(Class::CONTROL);
        if !classes.is_empty() {
            let due = if control_waits {
                u64::MAX
            } else {
                self.control_left
            };
            if let Some(packet) = self.pop_notice(classes, due) {
                return Some(packet);
            }
        }
        if control_waits {
            return None;
        }
        let packet = self.control.pop_front()?;
        self.control_left += 1;
        if self.control.is_empty() {
            self.notices.remove(Class::CONTROL);
        }
        Some(packet)
    }

    /// A notice of `classes` before which no more than `due` control packets have to leave.
    fn pop_notice(&mut self, classes: ClassSet, due: u64) -> Option<IntPacket<T>> {
        let lane = self.lanes.iter_mut().find(|lane| {
            let first = lane.notices.front().map(|(before, _)| *before);
            classes.contains(lane.class) && first.is_some_and(|before| before <= due)
        })?;
        let (_, packet) = lane.notices.pop_front()?;
        if lane.notices.is_empty() {
            self.notices.remove(lane.class);
        }
        Some(packet)
    }
}
