//! Tables of an endpoint: flows by number, receivers, timers.

use super::key::Key;
use super::reliability_scheme::{Receiver, Rules};
use crate::congestion::feedback::{EndpointFeedback, Feedback};
use crate::endpoint::flow::FinalAck;
use crate::exact_push;
use crate::packet::Packet;
use crate::profile::Profile;
use clearway_prefetch::{LINE, prefetch_first};
use clearway_units::Time;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Map from a queue pair to its slot. Consecutive packets are often of one flow, so the last answer is kept.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    slots: FxHashMap<Key, u32>,
    last: Option<(Key, u32)>,
}

impl Directory {
    #[inline]
    pub(crate) fn find(&mut self, key: Key) -> Option<u32> {
        match self.last {
            Some((last, slot)) if last == key => Some(slot),
            _ => {
                let slot = *self.slots.get(&key)?;
                self.last = Some((key, slot));
                Some(slot)
            }
        }
    }

    #[inline]
    pub(crate) fn peek(&self, key: Key) -> Option<u32> {
        self.slots.get(&key).copied()
    }

    /// Adds a queue pair; false if it was there already.
    pub(crate) fn insert(&mut self, key: Key, slot: u32) -> bool {
        self.last = Some((key, slot));
        self.slots.insert(key, slot).is_none()
    }

    pub(crate) fn remove(&mut self, key: Key) {
        self.last = None;
        self.slots.remove(&key);
    }
}

/// With more flows than this nobody knows which of them is next.
const FEW: usize = 2;

/// True if `slots` are so few that the next packets probably touch all of them.
#[inline]
pub(super) fn are_few<S>(slots: &[S]) -> bool {
    slots.len() <= FEW
}

/// A receiver in its slot.
struct ReceiverSlot {
    receiver: Receiver,
    key: Key,
}

/// The receiver of a packet.
pub(crate) struct Receiving<'a> {
    pub(crate) receiver: &'a mut Receiver,
    /// Rule for notifications, shared by all receivers.
    pub(crate) feedback: &'a mut Feedback,
    /// Slot of the receiver, here and in the rule for notifications.
    pub(crate) slot: usize,
}

/// The receivers of an endpoint. Receivers of finished flows linger, and when new ones come they are replaced by their final
/// acknowledgements: no timer wakes an endpoint only to free memory.
///
/// A final acknowledgement stays for good. However late a copy comes, its flow is known to be finished: it is answered, and
/// nothing is delivered a second time. No time after the last packet would do instead, as a copy can wait in queues for longer than
/// any timer here.
pub(crate) struct Receivers {
    slots: Vec<Option<ReceiverSlot>>,
    /// Rule for notifications. It has the same slots, unless it is never asked.
    feedback: Feedback,
    free: Vec<u32>,
    directory: Directory,
    /// Slots of finished flows, each with the time to look at it again, earliest first.
    lingering: VecDeque<(Time, u32)>,
    /// Flows that have lingered long enough: 17 bytes each, and room to grow.
    finished: FxHashMap<Key, FinalAck>,
}

impl Receivers {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            slots: Vec::new(),
            feedback: profile.feedback.build(&profile.network),
            free: Vec::new(),
            directory: Directory::default(),
            lingering: VecDeque::new(),
            finished: FxHashMap::default(),
        }
    }

    /// Loads the receivers into the caches, if they are few.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if are_few(&self.slots) {
            prefetch_first(&self.slots, usize::MAX);
        }
    }

    /// Loads what they point to.
    #[inline]
    pub(crate) fn prefetch_contents(&self) {
        if are_few(&self.slots) {
            let slots = self.slots.iter().flatten();
            slots.for_each(|slot| slot.receiver.prefetch());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The rule of all receivers, to be asked at a deadline.
    pub(crate) fn feedback_mut(&mut self) -> &mut Feedback {
        &mut self.feedback
    }

    /// The rule of all receivers.
    #[cfg(test)]
    pub(crate) fn feedback(&self) -> &Feedback {
        &self.feedback
    }

    /// The receiver of a queue pair, if there is one.
    pub(crate) fn find(&mut self, key: Key) -> Option<&mut Receiver> {
        let index = self.directory.find(key)?;
        let slot = self.slots[index as usize].as_mut()?;
        Some(&mut slot.receiver)
    }

    /// True if a queue pair has a receiver that has received all.
    pub(crate) fn is_finished(&mut self, key: Key) -> bool {
        self.find(key)
            .is_some_and(|receiver| receiver.is_finished())
    }

    /// Final acknowledgement of a queue pair that has finished and whose receiver is gone.
    pub(crate) fn final_ack(&self, key: Key) -> Option<FinalAck> {
        self.finished.get(&key).copied()
    }

    /// Returns the receiver of a data packet. Creates one for an unknown flow, unless the flow has finished or `psn` shows that this
    /// is not its beginning.
    #[inline]
    pub(crate) fn find_or_create(
        &mut self,
        now: Time,
        packet: &Packet,
        psn: u32,
        rules: &Rules,
    ) -> Option<Receiving<'_>> {
        let index = match self.directory.find(Key::from_packet(packet)) {
            Some(index) => index,
            None if self.begins_flow(packet, psn, rules) => self.create(now, packet, rules),
            None => return None,
        };
        let slot = index as usize;
        Some(Receiving {
            receiver: &mut self.slots[slot].as_mut()?.receiver,
            feedback: &mut self.feedback,
            slot,
        })
    }

    /// True if a data packet that has no receiver may begin its flow.
    #[inline]
    pub(crate) fn begins_flow(&self, packet: &Packet, psn: u32, rules: &Rules) -> bool {
        psn < rules.first_packets
            && packet.queue_pair < rules.queue_pairs
            && !self.finished.contains_key(&Key::from_packet(packet))
    }

    fn create(&mut self, now: Time, packet: &Packet, rules: &Rules) -> u32 {
        self.forget(now, rules);
        let key = Key::from_packet(packet);
        let kept = Some(ReceiverSlot {
            receiver: Receiver::new(packet.flow, rules),
            key,
        });
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = kept;
                index
            }
            None => {
                exact_push::push(&mut self.slots, kept);
                self.slots.len() as u32 - 1
            }
        };
        if rules.notifies {
            self.feedback.open(index as usize);
        }
        self.directory.insert(key, index);
        index
    }

    /// Lets the receiver of a finished flow linger.
    pub(crate) fn linger(&mut self, now: Time, key: Key, rules: &Rules) {
        if let Some(index) = self.directory.find(key) {
            self.lingering
                .push_back((now.saturating_add(rules.linger), index));
        }
    }

    /// Frees the receivers of flows that have lingered long enough since their last packet, and keeps their final acknowledgements.
    pub(crate) fn forget(&mut self, now: Time, rules: &Rules) {
        while let Some(&(time, index)) = self.lingering.front()
            && time <= now
        {
            self.lingering.pop_front();
            let entry = &mut self.slots[index as usize];
            let Some(kept) = entry else { continue };
            let last_arrival = kept.receiver.last_arrival();
            if last_arrival.saturating_add(rules.linger) > now {
                // All linger equally long, so the queue stays sorted well enough: this one waits no longer than once more.
                self.lingering
                    .push_back((now.saturating_add(rules.linger), index));
                continue;
            }
            self.directory.remove(kept.key);
            self.finished.insert(kept.key, kept.receiver.final_ack());
            *entry = None;
            self.free.push(index);
        }
    }
}

/// Notifications that receivers may have to send later, by the slot of the receiver.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    pending: FxHashMap<u32, (Time, Packet)>,
}

impl Notifications {
    /// Added to the slot of a receiver among timers, where slots of senders are below.
    const RECEIVER: u32 = 1 << 31;

    /// Asks the rule again at `time`; then it may send `notification`.
    pub(crate) fn ask_at(
        &mut self,
        time: Time,
        slot: usize,
        notification: Packet,
        timers: &mut TimerHeap,
    ) {
        let slot = slot as u32;
        self.pending.insert(slot, (time, notification));
        timers.push(time, slot | Self::RECEIVER);
    }

    /// Slot of the receiver that a timer is of; `None` if it is a sender's.
    #[inline]
    pub(crate) fn receiver(timer: u32) -> Option<u32> {
        (timer & Self::RECEIVER != 0).then_some(timer & !Self::RECEIVER)
    }

    /// The notification that the receiver in `slot` is to be asked about at `time`.
    pub(crate) fn take(&mut self, time: Time, slot: u32) -> Option<Packet> {
        let (at, notification) = *self.pending.get(&slot)?;
        if at != time {
            return None;
        }
        self.pending.remove(&slot);
        Some(notification)
    }
}

/// The timers of an endpoint's flows, earliest first, then lowest slot.
#[derive(Debug, Default)]
pub(crate) struct TimerHeap {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

impl TimerHeap {
    #[inline]
    pub(crate) fn push(&mut self, time: Time, slot: u32) {
        self.heap.push(Reverse((time, slot)));
    }

    /// Loads the first timers into the caches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_first(self.heap.as_slice(), LINE);
    }

    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.heap
            .peek()
            .map_or(Time::NEVER, |Reverse((time, _))| *time)
    }

    #[inline]
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
