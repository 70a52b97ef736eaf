//! Tables of an endpoint: flows by number, receivers, timers.

use crate::selective_repeat::{Receiver, Rules};
use clearway_units::{FlowId, Time};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// From a flow to its slot. Consecutive packets are often of one flow, so the last answer is kept.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    slots: FxHashMap<FlowId, u32>,
    last: Option<(FlowId, u32)>,
}

impl Directory {
    #[inline]
    pub(crate) fn find(&mut self, flow: FlowId) -> Option<u32> {
        match self.last {
            Some((last, slot)) if last == flow => Some(slot),
            _ => {
                let slot = *self.slots.get(&flow)?;
                self.last = Some((flow, slot));
                Some(slot)
            }
        }
    }

    pub(crate) fn peek(&self, flow: FlowId) -> Option<u32> {
        self.slots.get(&flow).copied()
    }

    /// False if the flow was there already.
    pub(crate) fn insert(&mut self, flow: FlowId, slot: u32) -> bool {
        self.last = Some((flow, slot));
        self.slots.insert(flow, slot).is_none()
    }

    pub(crate) fn remove(&mut self, flow: FlowId) {
        self.last = None;
        self.slots.remove(&flow);
    }
}

/// The receivers of an endpoint. Those of finished flows linger to answer late copies and are forgotten when new ones come:
/// no timer wakes an endpoint only to free memory.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    slots: Vec<Option<Receiver>>,
    free: Vec<u32>,
    directory: Directory,
    /// Finished flows and when to look at them again, earliest first.
    lingering: VecDeque<(Time, u32)>,
}

impl Receivers {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The receiver of `flow`, if there is one.
    pub(crate) fn find(&mut self, flow: FlowId) -> Option<&mut Receiver> {
        let index = self.directory.find(flow)?;
        self.slots[index as usize].as_mut()
    }

    /// The receiver of `flow`. For an unknown flow a new one, unless `psn` shows that this is not its beginning.
    #[inline]
    pub(crate) fn find_or_create(
        &mut self,
        now: Time,
        flow: FlowId,
        psn: u32,
        rules: &Rules,
    ) -> Option<&mut Receiver> {
        let index = match self.directory.find(flow) {
            Some(index) => index,
            None if psn < rules.window => self.create(now, flow, rules),
            None => return None,
        };
        self.slots[index as usize].as_mut()
    }

    fn create(&mut self, now: Time, flow: FlowId, rules: &Rules) -> u32 {
        self.forget(now, rules);
        let receiver = Some(Receiver::new(flow, rules));
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = receiver;
                index
            }
            None => {
                self.slots.push(receiver);
                self.slots.len() as u32 - 1
            }
        };
        self.directory.insert(flow, index);
        index
    }

    /// The flow has finished.
    pub(crate) fn linger(&mut self, now: Time, flow: FlowId, rules: &Rules) {
        if let Some(index) = self.directory.find(flow) {
            self.lingering
                .push_back((now.saturating_add(rules.linger), index));
        }
    }

    /// Forgets the flows that have lingered long enough since their last packet.
    pub(crate) fn forget(&mut self, now: Time, rules: &Rules) {
        while let Some(&(time, index)) = self.lingering.front()
            && time <= now
        {
            self.lingering.pop_front();
            let entry = &mut self.slots[index as usize];
            let Some(receiver) = entry else { continue };
            let until = receiver.last_arrival().saturating_add(rules.linger);
            if until > now {
                // All linger equally long, so the queue stays sorted well enough: this one waits no longer than once more.
                self.lingering
                    .push_back((now.saturating_add(rules.linger), index));
                continue;
            }
            self.directory.remove(receiver.flow());
            *entry = None;
            self.free.push(index);
        }
    }
}

/// The timers of an endpoint's flows, earliest first, then lowest slot.
#[derive(Debug, Default)]
pub(crate) struct TimerHeap {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

impl TimerHeap {
    pub(crate) fn push(&mut self, time: Time, slot: u32) {
        self.heap.push(Reverse((time, slot)));
    }

    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.heap
            .peek()
            .map_or(Time::NEVER, |Reverse((time, _))| *time)
    }

    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
