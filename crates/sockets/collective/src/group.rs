//! A rank with its connections to other ranks, and its part in collectives.

use crate::buffer_pool::BufferPool;
use crate::error::GroupError;
use crate::execution::{Buffers, Execution};
use crate::peers::{Event, Peer, Tell, events};
use crate::plan::{Algorithm, BufferOperation, CollectivePlan, block};
use crate::wire::{Begin, CloseReason, Sequence, Tag};
use bytes::Bytes;
use clearway_udp::ConnectionError;
use clearway_udp::net::{Channel, Message};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Time limit for telling the other ranks why the group ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// The part of this rank in the running collective.
struct Active<'a, 'b> {
    execution: Execution,
    buffers: &'a mut Buffers<'b>,
}

/// A rank that is connected to other ranks.
///
/// All ranks call the same collectives in the same order; a different order, size or algorithm is an error. A rank may be ahead of others
/// by one collective. When a rank dies, the ranks connected to it get an error after the [idle time](clearway_udp::Settings::idle) of their
/// connections, and pass it on to the others. After an error the group is over, unless the error says otherwise.
///
/// The caller must await each call to its end: a dropped call ends the group.
pub struct Group {
    rank: u32,
    ranks: u32,
    addresses: Vec<SocketAddr>,
    peers: BTreeMap<u32, Peer>,
    tell: Tell,
    told: mpsc::Receiver<Event>,
    pool: BufferPool,
    /// Number of the running collective, or of the last one.
    current: Sequence,
    begin: Option<Begin>,
    broken: Option<GroupError>,
    /// The last plan.
    plan: Option<(Option<usize>, Arc<CollectivePlan>)>,
}

impl Group {
    /// A group without any other rank yet.
    pub(crate) fn alone(rank: u32, addresses: Vec<SocketAddr>, pool: BufferPool) -> Self {
        let (tell, told) = events();
        Self {
            rank,
            ranks: addresses.len() as u32,
            addresses,
            peers: BTreeMap::new(),
            tell,
            told,
            pool,
            current: Sequence::START,
            begin: None,
            broken: None,
            plan: None,
        }
    }

    /// Number of this rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of all ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    pub(crate) fn address(&self, rank: u32) -> SocketAddr {
        self.addresses[rank as usize]
    }

    pub(crate) fn teller(&self) -> Tell {
        self.tell.clone()
    }

    /// Adds a rank that has connected.
    pub(crate) fn add(
        &mut self,
        rank: u32,
        channel: Channel,
        early: Vec<Message>,
    ) -> Result<(), GroupError> {
        if let Some(known) = self.peers.get(&rank) {
            let error = GroupError::Twice {
                rank,
                first: known.channel.peer(),
                second: channel.peer(),
            };
            channel.close(error.ending().code());
            return Err(error);
        }
        let peer = Peer::new(rank, self.address(rank), channel, &self.tell);
        self.peers.insert(rank, peer);
        early
            .into_iter()
            .try_for_each(|message| self.on_message(rank, message, None))
    }

    pub(crate) fn has(&self, rank: u32) -> bool {
        self.peers.contains_key(&rank)
    }

    /// Waits for an event before the first collective of this rank; `None` at the deadline.
    pub(crate) async fn event_until(&mut self, deadline: Instant) -> Option<Event> {
        timeout_at(deadline, self.told.recv()).await.ok().flatten()
    }

    /// All-reduce: the sum of the buffers of all ranks, in place, by the ring or another algorithm.
    ///
    /// # Errors
    /// If the buffers of the ranks have different lengths, or a rank is lost.
    pub async fn all_reduce(
        &mut self,
        algorithm: Option<Algorithm>,
        buffer: &mut [f32],
    ) -> Result<(), GroupError> {
        let plan = self.plan(BufferOperation::AllReduce, algorithm, buffer.len(), None)?;
        self.run(&plan, &mut Buffers::InPlace(buffer)).await
    }

    /// All-gather: the blocks of all ranks. This rank's [`block`](Self::block) is in its place before the call.
    ///
    /// # Errors
    /// As [`all_reduce`](Self::all_reduce).
    pub async fn all_gather(&mut self, buffer: &mut [f32]) -> Result<(), GroupError> {
        let plan = self.plan(BufferOperation::AllGather, None, buffer.len(), None)?;
        self.run(&plan, &mut Buffers::InPlace(buffer)).await
    }

    /// Reduce-scatter: this rank's block of the sum of all buffers, in its place. The rest of the buffer then holds partial sums.
    ///
    /// # Errors
    /// As [`all_reduce`](Self::all_reduce).
    pub async fn reduce_scatter(&mut self, buffer: &mut [f32]) -> Result<(), GroupError> {
        let plan = self.plan(BufferOperation::ReduceScatter, None, buffer.len(), None)?;
        self.run(&plan, &mut Buffers::InPlace(buffer)).await
    }

    /// All-to-all: block r of `send` goes to rank r. `receive` gets this rank's block from each rank in turn.
    ///
    /// # Errors
    /// As [`all_reduce`](Self::all_reduce), and if the length of `receive` is not the number of ranks times this rank's block.
    pub async fn all_to_all(
        &mut self,
        send: &[f32],
        receive: &mut [f32],
    ) -> Result<(), GroupError> {
        let plan = self.plan(BufferOperation::AllToAll, None, send.len(), None)?;
        self.run(&plan, &mut Buffers::Apart { send, receive }).await
    }

    /// Elements of the block of a rank in a buffer of `count`.
    pub fn block(&self, rank: u32, count: usize) -> Range<usize> {
        block(self.ranks, rank, count)
    }

    /// The plan of a collective of this group; the group caches the last plan.
    ///
    /// # Errors
    /// If there would be too many messages, or the algorithm belongs to another operation.
    pub fn plan(
        &mut self,
        operation: BufferOperation,
        algorithm: Option<Algorithm>,
        count: usize,
        chunk: Option<usize>,
    ) -> Result<Arc<CollectivePlan>, GroupError> {
        let algorithm = algorithm.unwrap_or_else(|| Algorithm::default_of(operation));
        if algorithm.operation() != operation {
            return Err(GroupError::Plan {
                message: format!("{algorithm} is not an algorithm for {}", operation.name()),
                fix: "take an algorithm of the operation".into(),
            });
        }
        if let Some((asked, plan)) = &self.plan
            && (*asked, plan.algorithm(), plan.count()) == (chunk, algorithm, count)
        {
            return Ok(Arc::clone(plan));
        }
        let plan = CollectivePlan::new(algorithm, self.ranks, count, chunk);
        let plan = Arc::new(plan.map_err(|error| GroupError::Plan {
            message: error.to_string(),
            fix: error.fix,
        })?);
        self.plan = Some((chunk, Arc::clone(&plan)));
        Ok(plan)
    }

    /// Takes part in a collective. Returns when the buffers hold the result; other ranks may still be busy.
    ///
    /// # Errors
    /// If the buffers do not fit the plan (the group stays usable), if another rank has begun a different collective, or if a rank is lost.
    pub async fn run(
        &mut self,
        plan: &Arc<CollectivePlan>,
        buffers: &mut Buffers<'_>,
    ) -> Result<(), GroupError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        if plan.ranks() != self.ranks {
            let (plan, own) = (plan.ranks(), self.ranks);
            return Err(GroupError::Members(format!(
                "the plan is for {plan} ranks, and the group has {own}"
            )));
        }
        let execution = Execution::new(plan, self.rank, buffers)?;
        // In case the caller drops this future.
        self.broken = Some(GroupError::Interrupted);
        let active = Active { execution, buffers };
        match self.carry_out(Begin::from_plan(plan), active).await {
            Ok(()) => {
                self.broken = None;
                Ok(())
            }
            Err(error) => {
                self.end(&error).await;
                Err(error)
            }
        }
    }

    async fn carry_out(
        &mut self,
        begin: Begin,
        mut active: Active<'_, '_>,
    ) -> Result<(), GroupError> {
        // So that no rank is ahead by two collectives.
        while self.peers.values().any(|peer| !peer.has_begun) {
            let event = self.event().await;
            self.on_event(event, None)?;
        }
        self.current = self.current.next();
        for (&rank, peer) in &mut self.peers {
            // A rank that finished this collective before it left is not missed.
            if peer.has_left && peer.next.is_none() {
                let address = peer.address;
                return Err(GroupError::Left { rank, address });
            }
            peer.send(
                Tag::Begin(self.current),
                Bytes::copy_from_slice(begin.bytes()),
            );
            let next = peer.next.take();
            peer.has_begun = next.is_some();
            if let Some(theirs) = next {
                compare(rank, &theirs, self.rank, &begin)?;
            }
        }
        self.begin = Some(begin);
        let ranks: Vec<u32> = self.peers.keys().copied().collect();
        for rank in ranks {
            self.apply_held(rank, &mut active)?;
            self.check_left(rank, &active)?;
        }
        loop {
            self.send_ready(&mut active);
            if active.execution.is_over() {
                return Ok(());
            }
            let event = self.event().await;
            self.on_event(event, Some(&mut active))?;
            // Process all queued events before the next wake-up.
            while let Ok(event) = self.told.try_recv() {
                self.on_event(event, Some(&mut active))?;
            }
        }
    }

    /// Gives the writers the messages that are ready.
    fn send_ready(&mut self, active: &mut Active<'_, '_>) {
        let Active { execution, buffers } = active;
        while let Some(outgoing) = execution.poll_message() {
            if let Some(peer) = self.peers.get_mut(&outgoing.to) {
                peer.ready.push_back(outgoing.message);
            }
        }
        for peer in self.peers.values_mut() {
            while let Some(message) = peer.take_ready(|message| execution.length(message)) {
                let mut data = self.pool.take(execution.length(message));
                execution.write_content(message, buffers, &mut data);
                peer.send(Tag::Message(self.current, message), self.pool.share(data));
            }
        }
    }

    async fn event(&mut self) -> Event {
        // The group itself holds a sender, so the queue does not end.
        match self.told.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    fn on_event(
        &mut self,
        event: Event,
        active: Option<&mut Active<'_, '_>>,
    ) -> Result<(), GroupError> {
        match event {
            Event::Sent { rank, tag, length } => {
                if let Tag::Message(sequence, message) = tag
                    && let Some(peer) = self.peers.get_mut(&rank)
                {
                    peer.on_sent(length);
                    if let Some(active) = active.filter(|_| sequence == self.current) {
                        active.execution.on_sent(message);
                    }
                }
                Ok(())
            }
            Event::Received { rank, message } => self.on_message(rank, message, active),
            Event::Refused { rank } => {
                let Some(peer) = self.peers.get_mut(&rank) else {
                    return Ok(());
                };
                // Otherwise the end of the connection gives the reason.
                peer.refuses = true;
                let address = peer.address;
                match peer.has_left {
                    true => Err(GroupError::Left { rank, address }),
                    false => Ok(()),
                }
            }
            Event::Over { rank, closed } => self.on_over(rank, closed, active),
            // Ranks that connect too late, or twice.
            Event::Met { .. } | Event::Unmet(_) => Ok(()),
        }
    }

    /// Processes an event before the first collective of this rank.
    pub(crate) fn on_early(&mut self, event: Event) -> Result<(), GroupError> {
        self.on_event(event, None)
    }

    fn on_message(
        &mut self,
        rank: u32,
        message: Message,
        active: Option<&mut Active<'_, '_>>,
    ) -> Result<(), GroupError> {
        let (current, next) = (self.current, self.current.next());
        let Some(peer) = self.peers.get_mut(&rank) else {
            return Ok(());
        };
        match (Tag::from_code(message.tag), active) {
            (Some(Tag::Begin(sequence)), active) if sequence == current || sequence == next => {
                let Some(theirs) = Begin::read(message.data) else {
                    return Err(self.violation(rank, "a collective that does not exist"));
                };
                if sequence == next {
                    let twice = peer.next.replace(theirs);
                    return self.forbid(rank, twice.is_some());
                }
                let twice = std::mem::replace(&mut peer.has_begun, true);
                self.forbid(rank, twice)?;
                if let Some(ours) = &self.begin {
                    compare(rank, &theirs, self.rank, ours)?;
                }
                active.map_or(Ok(()), |active| self.apply_held(rank, active))
            }
            (Some(Tag::Message(sequence, number)), Some(active))
                if sequence == current && peer.has_begun =>
            {
                self.apply(rank, number, message.data, active)
            }
            // Messages overtake each other, and other ranks overtake this rank.
            (Some(Tag::Message(sequence, number)), active)
                if sequence == next || sequence == current && active.is_some() =>
            {
                peer.held.push((sequence, number, message.data));
                Ok(())
            }
            _ => Err(self.violation(rank, "a message that belongs to no collective here")),
        }
    }

    fn forbid(&self, rank: u32, twice: bool) -> Result<(), GroupError> {
        match twice {
            true => Err(self.violation(rank, "a collective that begins twice")),
            false => Ok(()),
        }
    }

    /// Applies messages that a rank sent before its announcement of the collective arrived.
    fn apply_held(&mut self, rank: u32, active: &mut Active<'_, '_>) -> Result<(), GroupError> {
        let current = self.current;
        let Some(peer) = self.peers.get_mut(&rank).filter(|peer| peer.has_begun) else {
            return Ok(());
        };
        let (held, later): (Vec<_>, Vec<_>) = std::mem::take(&mut peer.held)
            .into_iter()
            .partition(|(sequence, ..)| *sequence == current);
        peer.held = later;
        held.into_iter()
            .try_for_each(|(_, message, data)| self.apply(rank, message, data, active))
    }

    /// Checks that a rank that has left has sent all needed messages.
    fn check_left(&self, rank: u32, active: &Active<'_, '_>) -> Result<(), GroupError> {
        match self.peers.get(&rank) {
            Some(peer) if peer.has_left && active.execution.expects(rank) => {
                let address = peer.address;
                Err(GroupError::Left { rank, address })
            }
            _ => Ok(()),
        }
    }

    fn apply(
        &self,
        rank: u32,
        message: u32,
        data: Vec<u8>,
        active: &mut Active<'_, '_>,
    ) -> Result<(), GroupError> {
        let execution = &mut active.execution;
        match execution.on_message(rank, message, data, active.buffers) {
            Ok(data) => {
                data.into_iter().for_each(|data| self.pool.put(data));
                Ok(())
            }
            Err(unexpected) => Err(self.violation(rank, &unexpected.to_string())),
        }
    }

    fn on_over(
        &mut self,
        rank: u32,
        closed: ConnectionError,
        active: Option<&mut Active<'_, '_>>,
    ) -> Result<(), GroupError> {
        let address = self.address(rank);
        let Some(peer) = self.peers.get_mut(&rank) else {
            return Ok(());
        };
        peer.is_over = true;
        let error = GroupError::of_end(rank, address, closed);
        if !error.is_leave() {
            return Err(error);
        }
        peer.has_left = true;
        let needed = active.is_some_and(|active| active.execution.expects(rank));
        // A rank that has not begun will not begin, and a rank that refuses messages lacks them.
        match needed || !peer.has_begun || peer.refuses {
            true => Err(GroupError::Left { rank, address }),
            false => Ok(()),
        }
    }

    fn violation(&self, rank: u32, what: &str) -> GroupError {
        GroupError::Violation {
            rank,
            address: self.address(rank),
            what: what.to_owned(),
        }
    }

    /// Closes all connections and tells the other ranks why.
    pub(crate) async fn end(&mut self, error: &GroupError) {
        self.broken = Some(error.clone());
        let code = error.ending().code();
        for peer in self.peers.values() {
            peer.channel.close(code);
        }
        let deadline = Instant::now() + FAREWELL;
        while self.peers.values().any(|peer| !peer.is_over) {
            match timeout_at(deadline, self.told.recv()).await {
                Ok(Some(Event::Over { rank, .. })) => {
                    let peer = self.peers.get_mut(&rank);
                    peer.into_iter().for_each(|peer| peer.is_over = true);
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Ends a group that this rank has not left.
    pub(crate) async fn end_unfinished(&mut self) {
        let error = self.broken.take();
        self.end(&error.unwrap_or(GroupError::Interrupted)).await;
    }

    /// Leaves the group: waits until the other ranks have all messages from this rank.
    ///
    /// # Errors
    /// If a rank is lost before; the earlier error if the group is over.
    pub async fn leave(mut self) -> Result<(), GroupError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        // Events since the last collective: the other ranks must hear of a failure, not that this rank is done.
        while let Ok(event) = self.told.try_recv() {
            match self.on_event(event, None) {
                Ok(()) | Err(GroupError::Left { .. }) => {}
                Err(error) => {
                    self.end(&error).await;
                    return Err(error);
                }
            }
        }
        let mut ends = JoinSet::new();
        for (&rank, peer) in &mut self.peers {
            let (end, address) = (peer.shut_down(CloseReason::Done), peer.address);
            ends.spawn(async move { (rank, address, end.await) });
        }
        let mut told = std::mem::replace(&mut self.told, events().1);
        let mut result = Ok(());
        // Further events must not block connections.
        let drain = tokio::spawn(async move { while told.recv().await.is_some() {} });
        while let Some(end) = ends.join_next().await {
            let Ok((rank, address, closed)) = end else {
                continue;
            };
            let is_ours = closed == ConnectionError::Here;
            let error = GroupError::of_end(rank, address, closed);
            if is_ours || error.is_leave() || result.is_err() {
                continue;
            }
            // The ranks that are still connected must not blame this rank for leaving too early.
            for peer in self.peers.values() {
                peer.channel.close(error.ending().code());
            }
            result = Err(error);
        }
        drain.abort();
        result
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A rank that disappears without leaving is a failure for the others. A rank that leaves or ends reports this first.
        let ending = self.broken.as_ref().map(GroupError::ending);
        let code = ending.unwrap_or(CloseReason::Failed).code();
        for peer in self.peers.values() {
            peer.channel.close(code);
        }
    }
}

fn compare(rank: u32, theirs: &Begin, own: u32, ours: &Begin) -> Result<(), GroupError> {
    match theirs == ours {
        true => Ok(()),
        false => Err(GroupError::Disagreement {
            rank,
            theirs: theirs.to_string(),
            own,
            ours: ours.to_string(),
        }),
    }
}
