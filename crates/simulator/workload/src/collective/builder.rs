//! Builds a collective: cuts ranges into messages, and finds the dependencies of each message.

use super::options::Options;
use super::{
    BlockOwners, Collective, CollectiveDefinition, CollectiveError, Effect, Move, Operation,
};
use crate::graph::{ADDER, Graph, MOST_TASKS, Rank, Task, TaskDependency, TaskId};
use clearway_units::{Bytes, Rate, Span};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Upper bound on the traffic of an algorithm. It is checked before any message is made, so that a collective too large for memory is
/// refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Contiguous ranges that are sent from one rank to another.
    pub(super) pieces: u128,
    /// Bytes of all of them.
    pub(super) payload: u128,
}

/// A range of bytes that has been sent to a rank, message by message, for others to depend on.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    range: Range<u64>,
    /// Offset at which the first message begins: no later than the range.
    origin: u64,
    /// Bytes of each message but the last.
    chunk: u64,
    /// Task after which the first message is complete at its receiver: the message, or the computation that adds it up.
    first: TaskId,
    /// Distance in task numbers from the task that completes one message to that which completes the next.
    stride: u32,
}

impl Piece {
    /// Piece without bytes.
    pub(super) const EMPTY: Self = Self {
        range: 0..0,
        origin: 0,
        chunk: 1,
        first: TaskId(0),
        stride: 1,
    };

    /// Piece of a single task, which covers every range.
    pub(super) const fn whole(task: TaskId) -> Self {
        Self {
            range: 0..u64::MAX,
            chunk: u64::MAX,
            first: task,
            ..Self::EMPTY
        }
    }

    /// Piece of a single task that carries `range`.
    pub(super) const fn of_range(task: TaskId, range: Range<u64>) -> Self {
        Self {
            origin: range.start,
            range,
            ..Self::whole(task)
        }
    }

    /// The same piece for its sender: over when it is acknowledged, without what the receiver computes then.
    pub(super) fn sent(self) -> Self {
        let first = TaskId(self.first.0 - (self.stride - 1));
        Self { first, ..self }
    }

    /// The part of the piece within `range`.
    pub(super) fn clipped(self, range: &Range<u64>) -> Self {
        let range = self.range.start.max(range.start)..self.range.end.min(range.end);
        Self { range, ..self }
    }

    /// Leaves the part of the piece within `range`; false if there is none.
    pub(super) fn clip(&mut self, range: &Range<u64>) -> bool {
        *self = std::mem::replace(self, Self::EMPTY).clipped(range);
        !self.range.is_empty()
    }

    /// Tasks that have to be over before the bytes of the piece within `range` are there.
    pub(super) fn covering(&self, range: &Range<u64>) -> impl Iterator<Item = TaskId> + use<> {
        let Range { start, end } = self.clone().clipped(range).range;
        let messages = match start < end {
            true => (start - self.origin) / self.chunk..(end - 1 - self.origin) / self.chunk + 1,
            false => 0..0,
        };
        let (first, stride) = (self.first.0, self.stride);
        messages.map(move |message| TaskId(first + message as u32 * stride))
    }
}

/// Pair of ranks, in one channel of a collective, whose messages share a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    src: Rank,
    dst: Rank,
    /// Index of the tree or ring to which the edge belongs, in a collective that has several.
    channel: usize,
}

impl Edge {
    /// The edge between two ranks in a channel of a collective that has several.
    pub(super) fn of_channel((src, dst): (u32, u32), channel: usize) -> Self {
        let (src, dst) = (Rank(src), Rank(dst));
        Self { src, dst, channel }
    }
}

impl From<(u32, u32)> for Edge {
    /// The edge between two ranks of a collective with one channel.
    fn from(ends: (u32, u32)) -> Self {
        Self::of_channel(ends, 0)
    }
}

/// Puts a collective together.
pub(super) struct Builder {
    collective: Collective,
    chunk: u64,
    window: usize,
    /// The last messages of each edge, where there is a window.
    under_way: BTreeMap<Edge, VecDeque<TaskId>>,
    reduction_rate: Option<Rate>,
    /// Time that each message takes at its receiver.
    delay: Span,
}

impl Builder {
    /// Begins a collective of `ranks` ranks with buffers of `size`, which must have been [found sound](sound).
    ///
    /// # Errors
    /// If an option is zero, or if there would be too many messages or bytes.
    pub(super) fn new<D: CollectiveDefinition>(
        operation: Operation,
        ranks: u32,
        size: Bytes,
        extent: Extent,
        options: Options,
    ) -> Result<Self, CollectiveError> {
        if options.chunk == Some(Bytes::ZERO) {
            let fix = "write a size of at least one byte, as in \"128KiB\"";
            return Err(D::fault("chunk", "a chunk carries no bytes", fix));
        }
        if options.window == Some(0) {
            let fix = "write how many messages may be in flight, or \"auto\" for no limit";
            return Err(D::fault("window", "a window of no messages", fix));
        }
        if extent.payload > u128::from(u64::MAX) {
            let message = "the messages carry more than 2^64 bytes";
            return Err(D::fault("size", message, "write a smaller size"));
        }
        let chunk = options.chunk.map_or(u64::MAX, Bytes::as_u64);
        // Each message may come with a computation.
        let computes = options.reduction_rate.is_some() || !options.delay.is_zero();
        let of_message = 1 + u128::from(computes);
        let most = u128::from(MOST_TASKS) / of_message;
        let messages = extent.pieces + extent.payload / u128::from(chunk);
        if messages > most {
            let message = format!(
                "up to {messages} messages, but {most} are the most that a collective may have"
            );
            return Err(match most.checked_sub(extent.pieces) {
                None | Some(0) => D::rank_fault(message, "take fewer ranks"),
                Some(left) => {
                    let fix = enough(size, chunk, extent, left);
                    D::fault("chunk", message, fix)
                }
            });
        }
        Ok(Self {
            collective: Collective {
                operation,
                size,
                graph: Graph::new(ranks),
                moves: Vec::new(),
                scattered: BTreeMap::new(),
                owners: BlockOwners::NATURAL,
            },
            chunk,
            window: options.window.map_or(usize::MAX, |window| window as usize),
            under_way: BTreeMap::new(),
            reduction_rate: options.reduction_rate,
            delay: options.delay,
        })
    }

    /// A range chunk by chunk.
    pub(super) fn chunks(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let (size, mut at) = (self.chunk, range.start);
        std::iter::from_fn(move || {
            let chunk = at..at.saturating_add(size).min(range.end);
            at = chunk.end;
            (!chunk.is_empty()).then_some(chunk)
        })
    }

    /// Sends `range` from one rank to another, chunk by chunk. Each chunk waits for the messages of the pieces `after` that carry its
    /// bytes.
    pub(super) fn send(
        &mut self,
        edge: impl Into<Edge>,
        range: Range<u64>,
        effect: Effect,
        after: &[Piece],
    ) -> Piece {
        if range.is_empty() {
            return Piece::EMPTY;
        }
        let mut first = None;
        let edge = edge.into();
        for chunk in self.chunks(range.clone()) {
            let needs = after.iter().flat_map(|piece| piece.covering(&chunk));
            let arrived = self.message(edge, chunk.clone(), effect, needs);
            first = first.or(Some(arrived));
        }
        Piece {
            origin: range.start,
            range,
            chunk: self.chunk,
            first: first.unwrap_or(TaskId(0)),
            stride: self.stride(effect),
        }
    }

    /// Tasks of each message: itself, and what its receiver computes then.
    fn stride(&self, effect: Effect) -> u32 {
        1 + u32::from(self.computation(effect, Bytes::ZERO).is_some())
    }

    /// Time that the receiver of a message computes; none if it does not.
    fn computation(&self, effect: Effect, bytes: Bytes) -> Option<Span> {
        let reduction = self.reduction_rate.filter(|_| effect == Effect::Reduce);
        let reduction = reduction.map(|rate| rate.span_of(bytes));
        match self.delay.is_zero() {
            true => reduction,
            false => Some(self.delay + reduction.unwrap_or(Span::ZERO)),
        }
    }

    /// Sends several ranges from one rank to another, in one message if a chunk has room for them. Each message waits for all of `after`.
    pub(super) fn send_ranges(
        &mut self,
        edge: impl Into<Edge>,
        ranges: &[Range<u64>],
        effect: Effect,
        after: &[Piece],
    ) -> Piece {
        let edge = edge.into();
        let whole = 0..u64::MAX;
        let mut tasks = Vec::new();
        let mut ranges = ranges
            .iter()
            .filter(|range| !range.is_empty())
            .cloned()
            .peekable();
        while ranges.peek().is_some() {
            let (mut left, mut message) = (self.chunk, Vec::new());
            while let Some(range) = ranges.peek_mut().filter(|_| left > 0) {
                let cut = range.start.saturating_add(left).min(range.end);
                message.push(range.start..cut);
                left -= cut - range.start;
                range.start = cut;
                if range.is_empty() {
                    ranges.next();
                }
            }
            let after = after.iter().flat_map(|piece| piece.covering(&whole));
            tasks.push(self.message_of(edge, message, effect, after));
        }
        match tasks[..] {
            [] => Piece::EMPTY,
            [first, ..] => Piece {
                chunk: 1,
                range: 0..tasks.len() as u64,
                origin: 0,
                first,
                stride: self.stride(effect),
            },
        }
    }

    /// Sends `range` as one message when `after` are over. Returns the task for which its receiver has to wait.
    pub(super) fn message(
        &mut self,
        edge: impl Into<Edge>,
        range: Range<u64>,
        effect: Effect,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let bytes = Bytes::new(range.end - range.start);
        self.post(edge.into(), (Bytes::new(range.start), bytes), effect, after)
    }

    /// Sends `ranges`, which are not empty, as one message.
    fn message_of(
        &mut self,
        edge: Edge,
        ranges: Vec<Range<u64>>,
        effect: Effect,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        let offset = Bytes::new(ranges.first().map_or(0, |range| range.start));
        let arrived = self.post(edge, (offset, Bytes::new(bytes)), effect, after);
        if ranges.len() > 1 {
            let message = TaskId(arrived.0 + 1 - self.stride(effect));
            self.collective.scattered.insert(message, ranges);
        }
        arrived
    }

    fn post(
        &mut self,
        edge: Edge,
        (offset, bytes): (Bytes, Bytes),
        effect: Effect,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let Edge { src, dst, .. } = edge;
        let before = match self.window {
            usize::MAX => None,
            window => {
                let under_way = self.under_way.entry(edge).or_default();
                let is_full = under_way.len() == window;
                is_full.then(|| under_way.pop_front()).flatten()
            }
        };
        let after = after.into_iter().chain(before);
        let message = self.collective.graph.message((src, dst), bytes, after);
        self.collective.moves.push(Move { offset, effect });
        if self.window != usize::MAX {
            self.under_way.entry(edge).or_default().push_back(message);
        }
        match self.computation(effect, bytes) {
            Some(span) => self.compute(ADDER, dst.0, span, [message]),
            None => message,
        }
    }

    /// Adds a task that takes `span` when all of `pieces` have arrived at `rank`.
    pub(super) fn wait(&mut self, rank: u32, pieces: &[Piece], span: Span) -> TaskId {
        let all = 0..u64::MAX;
        let pieces = pieces.iter().flat_map(|piece| piece.covering(&all));
        self.compute(ADDER, rank, span, pieces)
    }

    /// Adds a task that is over when all of `pieces` have arrived at `rank` and `others` are over there.
    pub(super) fn join(
        &mut self,
        rank: u32,
        pieces: &[Piece],
        others: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let all = 0..u64::MAX;
        let pieces = pieces.iter().flat_map(|piece| piece.covering(&all));
        self.compute(0, rank, Span::ZERO, pieces.chain(others))
    }

    fn compute(
        &mut self,
        unit: u16,
        rank: u32,
        span: Span,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let (offset, effect) = (Bytes::ZERO, Effect::Nothing);
        self.collective.moves.push(Move { offset, effect });
        let rank = Rank(rank);
        let task = Task::Compute { rank, unit, span };
        let after = after.into_iter().map(TaskDependency::over);
        self.collective.graph.add(task, after)
    }

    /// The collective.
    pub(super) fn finish(self) -> Collective {
        self.collective
    }

    /// The collective, with the blocks of the ranks in this order.
    pub(super) fn finish_with(self, owners: BlockOwners) -> Collective {
        Collective {
            owners,
            ..self.collective
        }
    }
}

/// Fix to suggest: a chunk so large, or a size so small, that chunks make at most `left` messages beside the pieces.
fn enough(size: Bytes, chunk: u64, extent: Extent, left: u128) -> String {
    const KIB: u64 = 1024;
    let needed = (extent.payload / left) as u64 + 1;
    let larger = match needed.checked_next_multiple_of(KIB) {
        Some(larger) => larger / KIB,
        None => u64::MAX / KIB,
    };
    let smaller = left * u128::from(chunk) * u128::from(size.as_u64()) / extent.payload;
    let chunk = format!("write a chunk of {larger}KiB or more");
    match smaller as u64 {
        0 => chunk,
        smaller => format!("{chunk}, or a size of {} at most", Bytes::new(smaller)),
    }
}

/// Checks that a collective is possible among `ranks` ranks with `size` bytes.
///
/// # Errors
/// With less than two ranks, or without bytes.
pub(super) fn sound<D: CollectiveDefinition>(
    ranks: u32,
    size: Bytes,
) -> Result<(), CollectiveError> {
    if ranks < 2 {
        let message = match ranks {
            0 => "there are no ranks",
            _ => "one rank has nobody to exchange data with",
        };
        return Err(D::rank_fault(message, "take 2 ranks or more"));
    }
    if size == Bytes::ZERO {
        let fix = "write a size of at least one byte, as in \"128MB\"";
        return Err(D::fault("size", "a buffer without bytes", fix));
    }
    Ok(())
}

/// The rank `chosen`, or `otherwise`.
///
/// # Errors
/// If it is not among `ranks`.
pub(super) fn chosen_rank<D: CollectiveDefinition>(
    key: &'static str,
    chosen: Option<u32>,
    otherwise: u32,
    ranks: u32,
) -> Result<u32, CollectiveError> {
    let rank = chosen.unwrap_or(otherwise);
    if rank >= ranks {
        let message = format!("rank {rank}, but there are {ranks} ranks");
        let fix = format!("write a rank from 0 to {}", ranks - 1);
        return Err(D::fault(key, message, fix));
    }
    Ok(rank)
}
