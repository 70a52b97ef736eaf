//! Matching of receives with sends.

use super::{JobProgram, Operation, OperationId, ProgramError, RankProgram};
use crate::graph::Rank;
use clearway_units::Bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No operation.
pub(super) const NONE: u32 = u32::MAX;

/// Numbers for all operations of a program, rank by rank.
pub(super) struct Numbers {
    /// The number of each rank's first operation, and one more.
    first: Vec<u32>,
}

impl Numbers {
    pub(super) fn from_program(program: &JobProgram) -> Result<Self, ProgramError> {
        let mut first = vec![0u32];
        let mut count = 0u32;
        for (rank, operations) in (0..).zip(&program.ranks) {
            let here = operations.operations.len();
            let too_many = || ProgramError::TooMany {
                operation: OperationId {
                    rank: Rank(rank),
                    index: (1 << 31) - 1 - count,
                },
            };
            let sum = u32::try_from(here).ok().and_then(|n| count.checked_add(n));
            count = sum.filter(|&n| n < 1 << 31).ok_or_else(too_many)?;
            first.push(count);
        }
        Ok(Self { first })
    }

    pub(super) fn count(&self) -> usize {
        self.first.last().map_or(0, |&count| count as usize)
    }

    pub(super) fn number(&self, id: OperationId) -> u32 {
        self.first[id.rank.index()] + id.index
    }

    pub(super) fn id(&self, number: u32) -> OperationId {
        let rank = self.first.partition_point(|&first| first <= number) - 1;
        OperationId {
            rank: Rank(rank as u32),
            index: number - self.first[rank],
        }
    }
}

/// The order in which a rank begins its operations: as listed, or where they wait for later ones, the lowest first of those that can
/// run. Operations in a cycle, and those that wait for them, come last.
pub(super) fn order(rank: &RankProgram) -> Vec<u32> {
    let count = rank.operations.len() as u32;
    let listed = (0..count).all(|who| rank.waits(who).iter().all(|wait| wait.operation < who));
    if listed {
        return (0..count).collect();
    }
    let mut successors: Vec<(u32, u32)> = Vec::with_capacity(rank.waits.len());
    let mut left: Vec<u32> = Vec::with_capacity(count as usize);
    for who in 0..count {
        let waits = rank.waits(who);
        left.push(waits.len() as u32);
        successors.extend(waits.iter().map(|wait| (wait.operation, who)));
    }
    successors.sort_unstable();
    let mut ready: BinaryHeap<Reverse<u32>> = (0..count)
        .filter(|&who| left[who as usize] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(count as usize);
    while let Some(Reverse(done)) = ready.pop() {
        order.push(done);
        let from = successors.partition_point(|&(operation, _)| operation < done);
        for &(_, next) in successors[from..].iter().take_while(|edge| edge.0 == done) {
            left[next as usize] -= 1;
            if left[next as usize] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    // Operations in a cycle get places as well, so that matching goes on; the construction of the graph reports the cycle.
    order.extend((0..count).filter(|&who| left[who as usize] > 0));
    order
}

/// For each receive the number of its send and the other way round; [`NONE`] for all other operations.
pub(super) fn partners(
    program: &JobProgram,
    numbers: &Numbers,
    orders: &[Vec<u32>],
) -> Result<Vec<u32>, ProgramError> {
    let mut partner = vec![NONE; numbers.count()];
    let (first, incoming) = incoming(program, numbers, orders)?;
    for (rank, order) in (0..).map(Rank).zip(orders) {
        let range = first[rank.index()]..first[rank.index() + 1];
        let mut mailbox = Mailbox::new(&incoming[range]);
        for &index in order {
            let id = OperationId { rank, index };
            let Operation::Receive { from, bytes, tag } = program.operation(id) else {
                continue;
            };
            let send = mailbox.take(id, from, tag)?;
            if send.bytes > bytes {
                return Err(ProgramError::TooSmall {
                    receive: id,
                    takes: bytes,
                    send: numbers.id(send.number),
                    brings: send.bytes,
                });
            }
            let receive = numbers.number(id);
            partner[receive as usize] = send.number;
            partner[send.number as usize] = receive;
        }
        if let Some(left) = mailbox.left() {
            return Err(ProgramError::NoReceive {
                send: numbers.id(left.number),
                to: rank,
                tag: left.tag,
            });
        }
    }
    Ok(partner)
}

/// A message on its way.
#[derive(Clone, Copy)]
struct Incoming {
    /// Number of its send.
    number: u32,
    from: Rank,
    tag: u32,
    bytes: Bytes,
}

/// All messages: the index of the first one to each rank and one more, and the messages to each rank by sender and order.
fn incoming(
    program: &JobProgram,
    numbers: &Numbers,
    orders: &[Vec<u32>],
) -> Result<(Vec<usize>, Vec<Incoming>), ProgramError> {
    let ranks = program.ranks.len();
    let mut first = vec![0usize; ranks + 1];
    for (id, operation) in program.numbered() {
        let named = match operation {
            Operation::Send { to, .. } => Some(to),
            Operation::Receive { from, .. } => from,
            Operation::Compute { .. } | Operation::Collective { .. } => None,
        };
        if let Some(rank) = named.filter(|rank| rank.index() >= ranks) {
            return Err(ProgramError::NoSuchRank {
                operation: id,
                rank,
                ranks: ranks as u32,
            });
        }
        if let Operation::Send { to, .. } = operation {
            first[to.index() + 1] += 1;
        }
    }
    for rank in 0..ranks {
        first[rank + 1] += first[rank];
    }
    let mut fill = first.clone();
    let nothing = Incoming {
        number: NONE,
        from: Rank(0),
        tag: 0,
        bytes: Bytes::ZERO,
    };
    let mut incoming = vec![nothing; first[ranks]];
    for (rank, order) in (0..).map(Rank).zip(orders) {
        for &index in order {
            let id = OperationId { rank, index };
            if let Operation::Send { to, bytes, tag } = program.operation(id) {
                incoming[fill[to.index()]] = Incoming {
                    number: numbers.number(id),
                    from: rank,
                    tag,
                    bytes,
                };
                fill[to.index()] += 1;
            }
        }
    }
    Ok((first, incoming))
}

/// The messages to one rank that no receive has taken yet.
struct Mailbox<'a> {
    /// Messages by sender and order.
    messages: &'a [Incoming],
    taken: Vec<bool>,
    /// The messages of each sender, as places in `messages`.
    senders: Vec<Queue>,
    /// Number of senders that have messages left, and index of the first that may.
    senders_left: usize,
    next_sender: usize,
    /// The places in `messages` by tag, sender and order.
    by_tag: Vec<u32>,
    /// The messages of each tag and sender, as places in `by_tag`.
    pairs: Vec<Queue>,
    tags: Vec<Tag>,
}

/// Messages with the same sender, or the same tag and sender.
struct Queue {
    tag: u32,
    from: Rank,
    next: usize,
    end: usize,
    left: usize,
}

/// Messages with the same tag.
struct Tag {
    tag: u32,
    /// The first of its pairs that may have messages left.
    next_pair: usize,
    end_pair: usize,
    pairs_left: usize,
}

impl<'a> Mailbox<'a> {
    fn new(messages: &'a [Incoming]) -> Self {
        let mut by_tag: Vec<u32> = (0..messages.len() as u32).collect();
        by_tag.sort_by_key(|&place| messages[place as usize].tag);
        let senders = queues(messages.iter().map(|message| (0, message.from)));
        let pairs = queues(by_tag.iter().map(|&place| {
            let message = &messages[place as usize];
            (message.tag, message.from)
        }));
        let mut tags: Vec<Tag> = Vec::new();
        for (index, pair) in pairs.iter().enumerate() {
            match tags.last_mut() {
                Some(tag) if tag.tag == pair.tag => {
                    tag.end_pair = index + 1;
                    tag.pairs_left += 1;
                }
                _ => tags.push(Tag {
                    tag: pair.tag,
                    next_pair: index,
                    end_pair: index + 1,
                    pairs_left: 1,
                }),
            }
        }
        Self {
            messages,
            taken: vec![false; messages.len()],
            senders_left: senders.len(),
            senders,
            next_sender: 0,
            by_tag,
            pairs,
            tags,
        }
    }

    /// The message that `receive` gets.
    fn take(
        &mut self,
        receive: OperationId,
        from: Option<Rank>,
        tag: Option<u32>,
    ) -> Result<Incoming, ProgramError> {
        let nothing = ProgramError::NoSend { receive, from, tag };
        let place = match (from, tag) {
            (Some(from), None) => self.sender(from).and_then(|at| self.next_of_sender(at)),
            (Some(from), Some(tag)) => self.pair(tag, from).and_then(|at| self.next_of_pair(at)),
            (None, None) => {
                let at = first_left(&self.senders, &mut self.next_sender, self.senders.len());
                if self.senders_left > 1 {
                    return Err(ambiguous(receive, &self.senders[self.next_sender..]));
                }
                at.and_then(|at| self.next_of_sender(at))
            }
            (None, Some(tag)) => {
                let Ok(at) = self.tags.binary_search_by_key(&tag, |tag| tag.tag) else {
                    return Err(nothing);
                };
                let tag = &mut self.tags[at];
                let pair = first_left(&self.pairs, &mut tag.next_pair, tag.end_pair);
                if tag.pairs_left > 1 {
                    let pairs = &self.pairs[tag.next_pair..tag.end_pair];
                    return Err(ambiguous(receive, pairs));
                }
                pair.and_then(|pair| self.next_of_pair(pair))
            }
        };
        let place = place.ok_or(nothing)?;
        self.remove(place);
        Ok(self.messages[place])
    }

    fn sender(&self, from: Rank) -> Option<usize> {
        self.senders
            .binary_search_by_key(&from, |queue| queue.from)
            .ok()
    }

    fn pair(&self, tag: u32, from: Rank) -> Option<usize> {
        let key = |queue: &Queue| (queue.tag, queue.from);
        self.pairs.binary_search_by_key(&(tag, from), key).ok()
    }

    fn next_of_sender(&mut self, at: usize) -> Option<usize> {
        let queue = &mut self.senders[at];
        while queue.next < queue.end && self.taken[queue.next] {
            queue.next += 1;
        }
        (queue.next < queue.end).then_some(queue.next)
    }

    fn next_of_pair(&mut self, at: usize) -> Option<usize> {
        let queue = &mut self.pairs[at];
        while queue.next < queue.end && self.taken[self.by_tag[queue.next] as usize] {
            queue.next += 1;
        }
        (queue.next < queue.end).then(|| self.by_tag[queue.next] as usize)
    }

    fn remove(&mut self, place: usize) {
        const KNOWN: &str = "every message is in both queues";
        self.taken[place] = true;
        let Incoming { from, tag, .. } = self.messages[place];
        let sender = self.sender(from).expect(KNOWN);
        self.senders[sender].left -= 1;
        self.senders_left -= usize::from(self.senders[sender].left == 0);
        let pair = self.pair(tag, from).expect(KNOWN);
        self.pairs[pair].left -= 1;
        if self.pairs[pair].left == 0 {
            let tag = self.tags.binary_search_by_key(&tag, |tag| tag.tag);
            self.tags[tag.expect(KNOWN)].pairs_left -= 1;
        }
    }

    /// The first message that no receive has taken.
    fn left(&self) -> Option<Incoming> {
        let place = self.taken.iter().position(|taken| !taken)?;
        Some(self.messages[place])
    }
}

/// One queue for each run of the same key.
fn queues(keys: impl Iterator<Item = (u32, Rank)>) -> Vec<Queue> {
    let mut queues: Vec<Queue> = Vec::new();
    for (place, (tag, from)) in keys.enumerate() {
        match queues.last_mut() {
            Some(queue) if (queue.tag, queue.from) == (tag, from) => {
                queue.end = place + 1;
                queue.left += 1;
            }
            _ => queues.push(Queue {
                tag,
                from,
                next: place,
                end: place + 1,
                left: 1,
            }),
        }
    }
    queues
}

/// The first of `queues` from `next` on that has messages left; moves `next` there.
fn first_left(queues: &[Queue], next: &mut usize, end: usize) -> Option<usize> {
    while *next < end && queues[*next].left == 0 {
        *next += 1;
    }
    (*next < end).then_some(*next)
}

/// Error of a receive for which several of `queues` have messages left.
fn ambiguous(receive: OperationId, queues: &[Queue]) -> ProgramError {
    let mut left = queues.iter().filter(|queue| queue.left > 0);
    let mut sender = || left.next().map_or(Rank(0), |queue| queue.from);
    ProgramError::Ambiguous {
        receive,
        senders: [sender(), sender()],
    }
}
