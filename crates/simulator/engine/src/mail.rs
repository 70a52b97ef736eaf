//! Mailboxes between domains: one writer, one reader, two halves.

use crate::Round;
use clearway_prefetch::prefetch;
use clearway_units::Time;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The shared middle of a mailbox. The halves' locks are never contended: in any round the writer uses one half and the reader
/// the other. They are there so that the compiler, and not a comment, guarantees it.
#[derive(Debug)]
struct Mailbox<M> {
    halves: [Mutex<Delivery<M>>; 2],
}

/// Messages for one round.
#[derive(Debug)]
struct Delivery<M> {
    messages: Vec<M>,
    /// The time that the writer has named with them.
    first: Time,
}

impl<M> Default for Delivery<M> {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            first: Time::NEVER,
        }
    }
}

/// Flags by which a domain learns which of its inlets have messages.
#[derive(Debug, Default)]
pub struct ReadyInlets {
    halves: [Half; 2],
}

#[derive(Debug, Default)]
struct Half {
    /// Messages for the reader of the mailboxes, all inlets together.
    messages: AtomicU64,
    /// Bit `i % 64` of word `i / 64` is set if inlet `i` has messages.
    inlets: Vec<AtomicU64>,
}

impl ReadyInlets {
    fn with_inlets(inlets: usize) -> Self {
        let half = || Half {
            messages: AtomicU64::new(0),
            inlets: (0..inlets.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
        };
        Self {
            halves: [half(), half()],
        }
    }

    // Relaxed suffices: the barrier between two rounds orders all of this.
    fn announce(&self, half: usize, inlet: u32, messages: usize) {
        let half = &self.halves[half];
        half.inlets[inlet as usize / 64].fetch_or(1 << (inlet % 64), Ordering::Relaxed);
        half.messages.fetch_add(messages as u64, Ordering::Relaxed);
    }

    /// True if any message waits for `round`.
    #[inline]
    pub(crate) fn has_mail(&self, round: &Round) -> bool {
        self.halves[round.reading_half()]
            .messages
            .load(Ordering::Relaxed)
            > 0
    }

    /// Lists the inlets that have messages for `round`, in ascending order, and forgets them. Returns how many messages these are.
    #[inline]
    pub(crate) fn take(&self, round: &Round, inlets: &mut Vec<u32>) -> u64 {
        inlets.clear();
        let half = &self.halves[round.reading_half()];
        let messages = half.messages.swap(0, Ordering::Relaxed);
        if messages == 0 {
            return 0;
        }
        for (word, bits) in half.inlets.iter().enumerate() {
            let mut bits = bits.swap(0, Ordering::Relaxed);
            while bits != 0 {
                inlets.push(word as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        messages
    }
}

/// Empty buffers for messages, lent from mailbox to mailbox.
///
/// A mailbox holds memory only while it holds messages. The few buffers that a thread passes from the inlets that it has read to
/// the outlets that it fills stay in its cache, however many mailboxes there are.
#[derive(Debug)]
pub struct BufferPool<M>(Vec<Vec<M>>);

impl<M> Default for BufferPool<M> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<M> BufferPool<M> {
    /// Messages for which a new buffer has room.
    const CAPACITY: usize = 16;
    /// More spare buffers than this, or larger ones, are given back to the system.
    const MOST_SPARE: usize = 4096;
    const LARGEST_SPARE: usize = 4096;

    #[cold]
    fn lend(&mut self) -> Vec<M> {
        self.0
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(Self::CAPACITY))
    }

    fn take_back(&mut self, mut bag: Vec<M>) {
        if (1..=Self::LARGEST_SPARE).contains(&bag.capacity()) && self.0.len() < Self::MOST_SPARE {
            bag.clear();
            self.0.push(bag);
        }
    }
}

/// The writing end of a mailbox.
#[derive(Debug)]
pub struct Outlet<M> {
    mailbox: Arc<Mailbox<M>>,
    reader: Arc<ReadyInlets>,
    inlet: u32,
    messages: Vec<M>,
}

impl<M> Outlet<M> {
    /// Adds a message; it leaves with the next [`send`](Self::send).
    #[inline]
    pub fn post(&mut self, message: M, buffers: &mut BufferPool<M>) {
        self.make_room(buffers);
        self.messages.push(message);
    }

    /// As [`post`](Self::post), for a message that is made in its place, by one call: a large one is written once.
    #[inline]
    pub fn post_with(&mut self, buffers: &mut BufferPool<M>, mut message: impl FnMut() -> M) {
        self.make_room(buffers);
        // `push` would have to keep the message while it makes room, and `once_with` has an option of it, whose tag is read.
        self.messages.extend(iter::once(()).map(|()| message()));
    }

    #[inline]
    fn make_room(&mut self, buffers: &mut BufferPool<M>) {
        if self.messages.capacity() == 0 {
            self.messages = buffers.lend();
        }
    }

    /// Loads most of what [`send`](Self::send) will touch into the caches.
    #[inline]
    pub fn prefetch_mailbox(&self) {
        prefetch(&*self.mailbox);
        prefetch(&*self.reader);
    }

    /// The messages posted and not yet sent.
    #[inline]
    pub fn posted(&self) -> &[M] {
        &self.messages
    }

    /// Hands over all posted messages; the reader finds them in the round after this one.
    pub fn send(&mut self, round: &Round) {
        self.send_with_time(round, Time::ZERO);
    }

    /// As [`send`](Self::send), and names a time: that at which the reader has something to do. The reader learns it without a look at the
    /// messages, which may be in no cache.
    pub fn send_with_time(&mut self, round: &Round, first: Time) {
        if self.messages.is_empty() {
            return;
        }
        let half = round.writing_half();
        let messages = self.messages.len();
        {
            let mut waiting = self.mailbox.halves[half]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            waiting.first = waiting.first.min(first);
            if waiting.messages.is_empty() {
                std::mem::swap(&mut waiting.messages, &mut self.messages);
            } else {
                waiting.messages.append(&mut self.messages);
            }
        }
        self.reader.announce(half, self.inlet, messages);
    }
}

/// The reading end of a mailbox: messages in the order in which they were posted.
#[derive(Debug)]
pub struct Inlet<M> {
    mailbox: Arc<Mailbox<M>>,
    messages: Vec<M>,
    read: usize,
}

impl<M> Inlet<M> {
    /// Loads what [`collect`](Self::collect) will touch into the caches.
    #[inline]
    pub fn prefetch_mailbox(&self) {
        prefetch(&*self.mailbox);
    }

    /// Takes over the messages sent in the round before. To be called in each round in which the engine names this inlet. Returns the
    /// earliest [time that was named](Outlet::send_with_time) with them.
    pub fn collect(&mut self, round: &Round, buffers: &mut BufferPool<M>) -> Time {
        let mut waiting = self.mailbox.halves[round.reading_half()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.read == self.messages.len() {
            buffers.take_back(std::mem::replace(
                &mut self.messages,
                std::mem::take(&mut waiting.messages),
            ));
        } else {
            self.messages.drain(..self.read);
            self.messages.append(&mut waiting.messages);
            buffers.take_back(std::mem::take(&mut waiting.messages));
        }
        self.read = 0;
        std::mem::replace(&mut waiting.first, Time::NEVER)
    }

    /// Gives the buffer back if all messages are read.
    #[inline]
    pub fn tidy(&mut self, buffers: &mut BufferPool<M>) {
        if self.read == self.messages.len() {
            self.read = 0;
            buffers.take_back(std::mem::take(&mut self.messages));
        }
    }

    /// The messages not yet read.
    #[inline]
    pub fn unread(&self) -> &[M] {
        &self.messages[self.read..]
    }

    /// The first message not yet read.
    #[inline]
    pub fn first_unread(&self) -> Option<&M> {
        self.messages.get(self.read)
    }

    /// A message by its place among those [not yet read](Self::unread).
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn unread_at(&self, place: usize) -> &M {
        &self.messages[self.read + place]
    }

    /// As [`unread_at`](Self::unread_at), for a reader that takes things out of the message.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn unread_at_mut(&mut self, place: usize) -> &mut M {
        &mut self.messages[self.read + place]
    }

    /// As [`unread`](Self::unread), for a reader that notes things on them.
    #[inline]
    pub fn unread_mut(&mut self) -> &mut [M] {
        &mut self.messages[self.read..]
    }

    /// Marks the first `count` unread messages as read.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        self.read += count;
        debug_assert!(self.read <= self.messages.len());
    }

    /// Shows each message that has been sent and not read, messages for later rounds included. For use between rounds.
    pub fn for_each_in_transit(&self, mut look: impl FnMut(&M)) {
        self.unread().iter().for_each(&mut look);
        for half in &self.mailbox.halves {
            let waiting = half.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.messages.iter().for_each(&mut look);
        }
    }

    /// Number of messages that have been sent and not read, messages for later rounds included. For use between rounds.
    pub fn in_transit(&self) -> usize {
        let halves = self.mailbox.halves.iter();
        let waiting = halves.map(|half| {
            half.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .messages
                .len()
        });
        self.unread().len() + waiting.sum::<usize>()
    }
}

/// Sets up the mailboxes of an [`Engine`](crate::Engine).
#[derive(Debug)]
pub struct MailboxBuilder {
    inlets: Vec<u32>,
    mailrooms: Vec<Arc<ReadyInlets>>,
}

impl MailboxBuilder {
    /// Mailboxes for domains with the given numbers of inlets.
    pub fn new(inlets_of_domain: &[usize]) -> Self {
        Self {
            inlets: vec![0; inlets_of_domain.len()],
            mailrooms: inlets_of_domain
                .iter()
                .map(|&inlets| Arc::new(ReadyInlets::with_inlets(inlets)))
                .collect(),
        }
    }

    /// A mailbox whose reader is `domain`; the inlet takes that domain's next inlet number, counted from zero.
    ///
    /// # Panics
    /// If all announced inlets of the domain are taken.
    pub fn mailbox<M>(&mut self, domain: usize) -> (Outlet<M>, Inlet<M>) {
        let inlet = self.inlets[domain];
        self.inlets[domain] += 1;
        let reader = Arc::clone(&self.mailrooms[domain]);
        assert!(
            (inlet as usize) < reader.halves[0].inlets.len() * 64,
            "domain {domain} has more inlets than announced"
        );
        let mailbox = Arc::new(Mailbox {
            halves: Default::default(),
        });
        let outlet = Outlet {
            mailbox: Arc::clone(&mailbox),
            reader,
            inlet,
            messages: Vec::new(),
        };
        let inlet = Inlet {
            mailbox,
            messages: Vec::new(),
            read: 0,
        };
        (outlet, inlet)
    }

    /// The mailrooms, one for each domain, for [`Engine::new`](crate::Engine::new).
    pub fn into_mailrooms(self) -> Vec<Arc<ReadyInlets>> {
        self.mailrooms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Time;

    fn round(ordinal: u64) -> Round {
        Round {
            ordinal,
            start: Time::ZERO,
            end: Time::ZERO,
        }
    }

    #[test]
    fn letters_arrive_one_round_later_in_order() {
        let mut buffers = BufferPool::default();
        let mut post = MailboxBuilder::new(&[70]);
        let mut ends: Vec<_> = (0..70).map(|_| post.mailbox::<u32>(0)).collect();
        let room = Arc::clone(&post.into_mailrooms()[0]);
        for inlet in [69, 3] {
            ends[inlet].0.post(1, &mut buffers);
            ends[inlet].0.post(2, &mut buffers);
            ends[inlet].0.send(&round(0));
        }
        let mut named = vec![9];
        room.take(&round(0), &mut named);
        assert!(
            named.is_empty() && !room.has_mail(&round(0)),
            "not in the same round"
        );
        assert!(room.has_mail(&round(1)));
        assert_eq!(room.take(&round(1), &mut named), 4, "messages");
        assert_eq!(named, [3, 69]);
        ends[3].1.collect(&round(1), &mut buffers);
        assert_eq!(ends[3].1.unread(), [1, 2]);
        assert!(!room.has_mail(&round(3)), "taken once");
    }

    #[test]
    fn the_reader_learns_the_earliest_time_that_was_named() {
        let mut buffers = BufferPool::default();
        let (mut outlet, mut inlet) = MailboxBuilder::new(&[1]).mailbox::<u32>(0);
        let mut post_at = |ordinal, first| {
            outlet.post(1, &mut buffers);
            outlet.send_with_time(&round(ordinal), first);
        };
        post_at(0, Time::from_us(7));
        post_at(0, Time::from_us(5));
        post_at(1, Time::from_us(3));
        outlet.send_with_time(&round(1), Time::ZERO); // Nothing is posted.
        assert_eq!(inlet.collect(&round(1), &mut buffers), Time::from_us(5));
        assert_eq!(inlet.unread(), [1, 1]);
        assert_eq!(inlet.collect(&round(2), &mut buffers), Time::from_us(3));
        assert_eq!(inlet.unread(), [1, 1, 1]);
        outlet.post(1, &mut buffers);
        outlet.send(&round(2));
        assert_eq!(inlet.collect(&round(3), &mut buffers), Time::ZERO);
        assert_eq!(inlet.collect(&round(5), &mut buffers), Time::NEVER);
    }

    #[test]
    fn places_count_from_the_first_unread_message() {
        let mut buffers = BufferPool::default();
        let (mut outlet, mut inlet) = MailboxBuilder::new(&[1]).mailbox::<u32>(0);
        (0..5).for_each(|number| outlet.post(number, &mut buffers));
        outlet.send(&round(0));
        inlet.collect(&round(1), &mut buffers);
        for read in 0..5 {
            assert_eq!(*inlet.unread_at(0), read);
            assert_eq!(*inlet.unread_at(4 - read as usize), 4);
            inlet.advance(1);
        }
    }

    #[test]
    fn unread_letters_stay_in_front() {
        let mut buffers = BufferPool::default();
        let mut post = MailboxBuilder::new(&[1]);
        let (mut outlet, mut inlet) = post.mailbox::<u32>(0);
        outlet.post(1, &mut buffers);
        outlet.post(2, &mut buffers);
        outlet.send(&round(0));
        inlet.collect(&round(1), &mut buffers);
        inlet.advance(1);
        outlet.post(3, &mut buffers);
        outlet.send(&round(1));
        inlet.collect(&round(2), &mut buffers);
        assert_eq!(inlet.unread(), [2, 3]);
        inlet.tidy(&mut buffers);
        assert_eq!(inlet.unread(), [2, 3], "not while messages are unread");
        inlet.advance(2);
        inlet.tidy(&mut buffers);
        assert_eq!(inlet.messages.capacity(), 0);
        assert!(!buffers.0.is_empty());
    }
}
