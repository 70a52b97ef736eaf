//! The part of one rank in a collective: a state machine without IO.

use crate::error::BufferError;
use crate::message_order::MessageOrder;
use crate::plan::{BufferOperation, CollectivePlan, ELEMENT};
use clearway_units::{Purpose, RandomStream, Time};
use clearway_workload::collective::Effect;
use clearway_workload::{MessageNumber, Output, Pace, Rank, RankRun};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Buffers of a rank.
#[derive(Debug)]
pub enum Buffers<'a> {
    /// One buffer of S elements, for all operations except the all-to-all. An all-gather starts with this rank's block in the buffer. A
    /// reduce-scatter ends with this rank's block; the other blocks then hold partial sums.
    InPlace(&'a mut [f32]),
    /// Two buffers, for an all-to-all.
    Apart {
        /// S elements, of which block r is for rank r.
        send: &'a [f32],
        /// Elements from each rank in turn, as many as this rank's block has.
        receive: &'a mut [f32],
    },
}

impl Buffers<'_> {
    fn source(&self) -> &[f32] {
        match self {
            Self::InPlace(buffer) => buffer,
            Self::Apart { send, .. } => send,
        }
    }

    fn target(&mut self) -> &mut [f32] {
        match self {
            Self::InPlace(buffer) => buffer,
            Self::Apart { receive, .. } => receive,
        }
    }

    /// Checks that the buffers fit a plan.
    fn check(&self, plan: &CollectivePlan, rank: u32) -> Result<(), BufferError> {
        let (own, count) = (plan.block(rank).len(), plan.count());
        let wanted = match plan.algorithm().operation() {
            BufferOperation::AllToAll => (count, own * plan.ranks() as usize),
            _ => (count, count),
        };
        let given = match self {
            Self::InPlace(buffer) => (buffer.len(), buffer.len()),
            Self::Apart { send, receive } => (send.len(), receive.len()),
        };
        let is_apart = matches!(self, Self::Apart { .. });
        if is_apart != (plan.algorithm().operation() == BufferOperation::AllToAll) {
            return Err(BufferError::Kind(plan.algorithm().operation().name()));
        }
        match given == wanted {
            true => Ok(()),
            false => Err(BufferError::Length { given, wanted }),
        }
    }
}

/// A message that is ready to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// Rank to which it goes.
    pub to: u32,
    /// Number of the message in the graph.
    pub message: u32,
}

/// Message that a rank does not expect: the other end violates the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unexpected {
    /// No message between these ranks has the number.
    #[error("there is no message {0} from there")]
    Number(u32),
    /// A duplicate of an earlier message.
    #[error("message {0} came twice")]
    Twice(u32),
    /// The message has another length.
    #[error("message {message} has {given} bytes instead of {wanted}")]
    Length {
        /// Number of the message.
        message: u32,
        /// Received bytes.
        given: usize,
        /// Bytes of the message by the plan.
        wanted: usize,
    },
}

/// The part of one rank in a collective.
///
/// The caller polls messages that the graph releases, copies them from the buffers by [`write_content`](Self::write_content), and calls
/// [`on_sent`](Self::on_sent) when the transport has them. A received message is applied immediately, except that additions keep their
/// order.
#[derive(Debug)]
pub struct Execution {
    plan: Arc<CollectivePlan>,
    rank: u32,
    /// None if nothing has to be sent.
    run: Option<RankRun>,
    turns: MessageOrder,
    /// Messages whose turn has not come.
    early: BTreeMap<u32, Vec<u8>>,
    /// Number of messages that each rank has yet to send to this rank.
    expected: Vec<u32>,
}

impl Execution {
    /// Begins the part of a rank.
    ///
    /// # Errors
    /// If the buffers do not fit the plan.
    ///
    /// # Panics
    /// If the plan has no such rank.
    pub fn new(
        plan: &Arc<CollectivePlan>,
        rank: u32,
        buffers: &mut Buffers<'_>,
    ) -> Result<Self, BufferError> {
        assert!(rank < plan.ranks(), "the plan has this rank");
        buffers.check(plan, rank)?;
        if let Buffers::Apart { send, receive } = buffers {
            let block = plan.block(rank);
            let place = rank as usize * block.len();
            receive[place..place + block.len()].copy_from_slice(&send[block]);
        }
        let mut expected = vec![0; plan.ranks() as usize];
        for (_, (src, dst)) in plan.messages() {
            expected[src.index()] += u32::from(dst.0 == rank);
        }
        let run = plan.graph().map(|graph| {
            // Computations of these graphs take no time: they only join their dependencies.
            let pace = Pace {
                factor: 1.0,
                jitter: 0.0,
                random: RandomStream::new(0, Purpose::Compute, 0),
            };
            let mut run = RankRun::new(Arc::clone(graph), Rank(rank), 1, pace);
            run.start(Time::ZERO);
            run
        });
        Ok(Self {
            plan: Arc::clone(plan),
            rank,
            run,
            turns: MessageOrder::new(plan, rank),
            early: BTreeMap::new(),
            expected,
        })
    }

    /// The next message that is ready to send.
    pub fn poll_message(&mut self) -> Option<Outgoing> {
        let run = self.run.as_mut()?;
        loop {
            if let Output::Post { to, message, .. } = run.poll_output()? {
                return Some(Outgoing {
                    to: to.0,
                    message: message.0,
                });
            }
        }
    }

    /// Bytes of a message.
    ///
    /// # Panics
    /// If the plan has no such message.
    pub fn length(&self, message: u32) -> usize {
        self.plan.source(message).len() * ELEMENT
    }

    /// Writes the content of a message that is ready to send: elements in little-endian order.
    ///
    /// # Panics
    /// If the plan has no such message, or `into` has another [length](Self::length).
    pub fn write_content(&self, message: u32, buffers: &Buffers<'_>, into: &mut [u8]) {
        let elements = &buffers.source()[self.plan.source(message)];
        assert_eq!(into.len(), elements.len() * ELEMENT, "length of a message");
        let places = into.as_chunks_mut::<ELEMENT>().0;
        for (place, element) in places.iter_mut().zip(elements) {
            *place = element.to_le_bytes();
        }
    }

    /// Records that a polled message has been copied, and that the transport will deliver it.
    pub fn on_sent(&mut self, message: u32) {
        if let Some(run) = &mut self.run {
            run.on_sent(Time::ZERO, MessageNumber(message));
        }
    }

    /// Processes a received message. Returns its buffer, if it is no longer needed.
    ///
    /// # Errors
    /// If the rank does not expect the message; the state is then unchanged.
    pub fn on_message(
        &mut self,
        from: u32,
        message: u32,
        data: Vec<u8>,
        buffers: &mut Buffers<'_>,
    ) -> Result<Option<Vec<u8>>, Unexpected> {
        if self.plan.ends(message) != Some((Rank(from), Rank(self.rank))) {
            return Err(Unexpected::Number(message));
        }
        let (range, _) = self.plan.target(message);
        let (given, wanted) = (data.len(), range.len() * ELEMENT);
        if given != wanted {
            return Err(Unexpected::Length {
                message,
                given,
                wanted,
            });
        }
        if self.turns.waits(message) {
            if self.early.contains_key(&message) {
                return Err(Unexpected::Twice(message));
            }
            self.early.insert(message, data);
            self.expected[from as usize] -= 1;
            return Ok(None);
        }
        self.note_application(message)?;
        self.expected[from as usize] -= 1;
        self.apply(message, &data, buffers);
        let mut free = self.turns.on_added(message);
        while let Some(next) = free.pop() {
            if let Some(data) = self.early.remove(&next) {
                self.note_application(next)?;
                self.apply(next, &data, buffers);
                free.extend(self.turns.on_added(next));
            }
        }
        Ok(Some(data))
    }

    fn note_application(&mut self, message: u32) -> Result<(), Unexpected> {
        let run = self.run.as_mut().ok_or(Unexpected::Number(message))?;
        match run.on_received(Time::ZERO, MessageNumber(message)) {
            true => Ok(()),
            false => Err(Unexpected::Twice(message)),
        }
    }

    fn apply(&self, message: u32, data: &[u8], buffers: &mut Buffers<'_>) {
        let (range, effect) = self.plan.target(message);
        let elements = &mut buffers.target()[range];
        let received = data.as_chunks::<ELEMENT>().0;
        let pairs = elements.iter_mut().zip(received);
        match effect {
            Effect::Reduce => pairs.for_each(|(own, bytes)| *own += f32::from_le_bytes(*bytes)),
            Effect::Copy => pairs.for_each(|(own, bytes)| *own = f32::from_le_bytes(*bytes)),
            Effect::Nothing => {}
        }
    }

    /// True if a rank has yet to send messages to this rank.
    pub fn expects(&self, from: u32) -> bool {
        self.expected[from as usize] > 0
    }

    /// True when the buffers hold the result, and the transport has all messages that other ranks need.
    pub fn is_over(&self) -> bool {
        self.run.as_ref().is_none_or(RankRun::is_over)
    }
}
