//! One rank of a job at run time: a state machine that a simulator, or a host with sockets, drives.
//!
//! The state machine is told what happens at its host (a message of this rank has been acknowledged, one to it has arrived, time has come)
//! and says which messages to post. It knows only the messages of the other ranks. A job runs its graph for several iterations; a rank
//! begins the next one when it is through with the last: its own tasks are over, and all messages to it have arrived. Messages of ranks
//! that are ahead are counted for the iteration that they belong to.
//!
//! Where [`Slots`] say when a rank may begin to communicate, the first message of an iteration waits for the next slot, and the other
//! messages wait with it. A message from another rank shows that the job has begun: a rank that has received one waits no longer.
//!
//! Unnecessary calls are harmless: a deadline that has not come does nothing.

mod plan;
mod slots;
#[cfg(test)]
mod tests;
mod units;

use crate::graph::{ADDER, Rank, Task, TaskId};
use clearway_units::{Bytes, RandomStream, Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

pub use plan::PreparedGraph;
pub use slots::Slots;
use units::Units;

/// A message of one iteration of a job: the number by which both of its ends know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageNumber(pub u32);

/// Pace of the computations of a rank, in relation to the graph; computations of the [`ADDER`] take the time that the graph says.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Factor for the time of all computations of this rank, zero or more; 1 unless the rank is a straggler or the time of a trace is
    /// scaled.
    pub factor: f64,
    /// Maximum share of its time by which each computation takes longer, uniformly distributed; zero or more.
    pub jitter: f64,
    /// Random numbers for jitter.
    pub random: RandomStream,
}

impl Pace {
    /// Time of a computation on `unit` that takes `span` according to the graph.
    pub fn scale(&mut self, unit: u16, span: Span) -> Span {
        if unit == ADDER {
            return span;
        }
        let mut factor = self.factor;
        if self.jitter > 0.0 {
            factor *= 1.0 + self.jitter * self.random.unit();
        }
        if factor == 1.0 {
            return span;
        }
        // Too large a float becomes the largest integer.
        Span::from_ps((span.as_ps() as f64 * factor + 0.5) as u64)
    }
}

/// Output of a rank for its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Post this message on the connection to another rank.
    Post {
        /// Receiving rank.
        to: Rank,
        /// Number of the message.
        message: MessageNumber,
        /// Length of the message, above zero.
        bytes: Bytes,
    },
    /// Ask whether this message may be posted: its receiver takes a limited number at a time. [`RankRun::on_granted`] is the answer.
    Ask {
        /// Receiving rank.
        to: Rank,
        /// Number of the message.
        message: MessageNumber,
    },
    /// An iteration begins here.
    Begun {
        /// Number of the iteration, from 0.
        iteration: u32,
    },
    /// The first message of an iteration from here is posted.
    Sending {
        /// Number of the iteration, from 0.
        iteration: u32,
    },
    /// The rank is through with an iteration.
    Over {
        /// Number of the iteration, from 0.
        iteration: u32,
    },
    /// A wait for the clock begins; [`deadline`](RankRun::deadline) says when the rank has to be called.
    Timed {
        /// Time at which it is over.
        until: Time,
        /// Kind of the wait.
        wait: ClockWait,
    },
}

/// Kind of a wait for the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClockWait {
    /// A computation.
    Computation,
    /// The slot in which communication may begin.
    Slot,
}

/// An iteration that is under way here or of which something has arrived.
#[derive(Debug)]
struct Iteration {
    /// Number of dependencies for which each own task still waits.
    waits: Vec<u32>,
    /// Number of tasks and arrivals that are left until the rank is through.
    left: u32,
    /// One bit for each message to the rank, set when it has arrived.
    arrived: Vec<u64>,
    /// True if the communication has begun: messages may leave.
    is_open: bool,
    /// True if a message of this rank has been posted.
    is_sending: bool,
}

impl Iteration {
    fn new(plan: &PreparedGraph, rank: Rank) -> Self {
        let needs = |id: &TaskId| plan.graph().needs(*id).len() as u32;
        Self {
            waits: plan.rank_tasks(rank).iter().map(needs).collect(),
            left: plan.work_of(rank),
            arrived: vec![0; plan.incoming(rank).div_ceil(64)],
            is_open: false,
            is_sending: false,
        }
    }

    /// Notes that the message with this place has arrived; false if it had before.
    fn note_arrival(&mut self, place: usize) -> bool {
        let (word, bit) = (&mut self.arrived[place / 64], 1 << (place % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// One rank of a job.
#[derive(Debug)]
pub struct RankRun {
    plan: Arc<PreparedGraph>,
    rank: Rank,
    iterations: u32,
    pace: Pace,
    /// The number of the iteration in front of `open`, which is the one that runs.
    current: u32,
    /// Empty before the start.
    open: VecDeque<Iteration>,
    running: bool,
    units: Units,
    slots: Option<Slots>,
    /// The slot for which the present iteration waits; [`Time::NEVER`] if it does not.
    opens: Time,
    /// Messages that wait for it.
    early: VecDeque<TaskId>,
    /// Messages that only the limit of parallelism holds back.
    held: VecDeque<TaskId>,
    under_way: u32,
    /// Tasks that are ready and have not begun.
    ready: VecDeque<TaskId>,
    outputs: VecDeque<Output>,
}

impl RankRun {
    /// Rank `rank` of a job that runs its plan `iterations` times.
    ///
    /// # Panics
    /// If the graph has no such rank, or all iterations together have more than 2^32 - 1 messages.
    pub fn new(plan: Arc<PreparedGraph>, rank: Rank, iterations: u32, pace: Pace) -> Self {
        assert!(rank.0 < plan.graph().ranks(), "the job has this rank");
        let messages = plan.graph().len() as u64 * u64::from(iterations);
        assert!(messages < u64::from(u32::MAX), "messages have numbers");
        Self {
            plan,
            rank,
            iterations,
            pace,
            current: 0,
            open: VecDeque::new(),
            running: false,
            units: Units::default(),
            slots: None,
            opens: Time::NEVER,
            early: VecDeque::new(),
            held: VecDeque::new(),
            under_way: 0,
            ready: VecDeque::new(),
            outputs: VecDeque::new(),
        }
    }

    /// The same rank, which begins to communicate in these slots alone.
    #[must_use]
    pub fn with_slots(self, slots: Option<Slots>) -> Self {
        Self { slots, ..self }
    }

    /// Number of the rank in its job.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// True if the rank is through with all iterations.
    pub fn is_over(&self) -> bool {
        self.current == self.iterations
    }

    /// Starts the rank.
    pub fn start(&mut self, now: Time) {
        if !self.running && !self.is_over() {
            self.running = true;
            self.begin();
            self.settle(now);
        }
    }

    /// A message that this rank has asked for may be posted.
    pub fn on_granted(&mut self, message: MessageNumber) {
        let (_, task) = self.resolve(message);
        self.post(task);
    }

    /// A message that this rank has posted is acknowledged.
    ///
    /// # Panics
    /// If it was not posted in the present iteration.
    pub fn on_sent(&mut self, now: Time, message: MessageNumber) {
        let (iteration, task) = self.resolve(message);
        assert_eq!(iteration, self.current, "a rank waits for its own messages");
        self.under_way -= 1;
        if let Some(held) = self.held.pop_front() {
            self.leave(held);
        }
        self.on_over(0, task);
        self.settle(now);
    }

    /// Takes note that a message to this rank has arrived; true if the rank waits for it. A repeated message, one of an iteration that is
    /// over, or one that is not to this rank changes nothing.
    pub fn on_received(&mut self, now: Time, message: MessageNumber) -> bool {
        let (iteration, task) = self.resolve(message);
        let is_known = iteration < self.iterations;
        let Some(place) = self.plan.arrival(task, self.rank).filter(|_| is_known) else {
            return false;
        };
        let Some(ahead) = iteration.checked_sub(self.current) else {
            return false;
        };
        let ahead = ahead as usize;
        // The sender may be ahead: its message counts for the iteration that it belongs to.
        while self.open.len() <= ahead {
            let iteration = Iteration::new(&self.plan, self.rank);
            self.open.push_back(iteration);
        }
        if !self.open[ahead].note_arrival(place) {
            return false;
        }
        // The message shows that the job communicates already, so this rank does not wait for a slot.
        self.open[ahead].is_open = true;
        if ahead == 0 {
            self.let_go();
        }
        self.on_over(ahead, task);
        self.settle(now);
        true
    }

    /// [`deadline`](Self::deadline) has come.
    pub fn on_deadline(&mut self, now: Time) {
        if self.opens <= now {
            self.open[0].is_open = true;
            self.let_go();
        }
        while let Some(task) = self.units.pop_due(now) {
            self.on_over(0, task);
            self.go_on(now, self.plan.graph().task(task));
        }
        self.settle(now);
    }

    /// Time at which the next computation is over, or at which the slot comes for which messages wait; [`Time::NEVER`] without either.
    pub fn deadline(&self) -> Time {
        self.units.next().min(self.opens)
    }

    /// Next output, in the order in which they arose.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn resolve(&self, message: MessageNumber) -> (u32, TaskId) {
        let tasks = self.plan.graph().len() as u32;
        (message.0 / tasks, TaskId(message.0 % tasks))
    }

    /// Begins the present iteration.
    fn begin(&mut self) {
        let iteration = self.current;
        self.outputs.push_back(Output::Begun { iteration });
        if self.open.is_empty() {
            let iteration = Iteration::new(&self.plan, self.rank);
            self.open.push_back(iteration);
        }
        let waits = &self.open[0].waits;
        let own = self.plan.rank_tasks(self.rank).iter().zip(waits);
        let ready = own.filter(|&(_, &waits)| waits == 0).map(|(id, _)| *id);
        self.ready.extend(ready);
    }

    /// Begins ready tasks and further iterations, until the rank has to wait for an event.
    fn settle(&mut self, now: Time) {
        loop {
            while let Some(task) = self.ready.pop_front() {
                self.begin_task(now, task);
            }
            let through = self.running && self.open.front().is_some_and(|open| open.left == 0);
            if !through {
                return;
            }
            self.open.pop_front();
            let iteration = self.current;
            self.outputs.push_back(Output::Over { iteration });
            self.current += 1;
            if self.is_over() {
                self.running = false;
                return;
            }
            self.begin();
        }
    }

    fn begin_task(&mut self, now: Time, id: TaskId) {
        match self.plan.graph().task(id) {
            Task::Message { .. } => {
                self.on_begun(id);
                if self.may_communicate(now) {
                    self.leave_or_hold(id);
                } else {
                    self.early.push_back(id);
                }
            }
            Task::Compute { span, .. } if span.is_zero() => {
                self.on_begun(id);
                self.on_over(0, id);
            }
            task @ Task::Compute { unit, .. } => {
                self.units.queue(unit, id);
                self.go_on(now, task);
            }
        }
    }

    /// Lets the unit of a computation begin with the next one, if it is free.
    fn go_on(&mut self, now: Time, task: Task) {
        let Task::Compute { unit, .. } = task else {
            return;
        };
        if let Some(next) = self.units.take_next(unit) {
            let Task::Compute { span, .. } = self.plan.graph().task(next) else {
                return;
            };
            let end = now.saturating_add(self.pace.scale(unit, span));
            self.units.begin(unit, next, end);
            self.outputs.push_back(Output::Timed {
                until: end,
                wait: ClockWait::Computation,
            });
            self.on_begun(next);
        }
    }

    /// True if messages of the present iteration may leave; if not, the slot is chosen in which they will.
    fn may_communicate(&mut self, now: Time) -> bool {
        let (Some(slots), iteration) = (self.slots, &mut self.open[0]) else {
            return true;
        };
        if !iteration.is_open && self.opens.is_never() {
            let slot = slots.next(now);
            iteration.is_open = slot <= now;
            if !iteration.is_open {
                self.opens = slot;
                self.outputs.push_back(Output::Timed {
                    until: slot,
                    wait: ClockWait::Slot,
                });
            }
        }
        iteration.is_open
    }

    /// Lets messages go that have waited for the slot.
    fn let_go(&mut self) {
        self.opens = Time::NEVER;
        while let Some(early) = self.early.pop_front() {
            self.leave_or_hold(early);
        }
    }

    /// Lets a message leave, unless too many are in flight.
    fn leave_or_hold(&mut self, id: TaskId) {
        let limit = self.plan.graph().parallelism;
        if limit.is_some_and(|limit| self.under_way >= limit.from_sender) {
            self.held.push_back(id);
        } else {
            self.leave(id);
        }
    }

    /// Lets a message leave, or asks whether it may.
    fn leave(&mut self, id: TaskId) {
        self.under_way += 1;
        let limit = self.plan.graph().parallelism;
        if limit.is_none_or(|limit| limit.to_receiver.is_none()) {
            self.post(id);
        } else if let Task::Message { dst: to, .. } = self.plan.graph().task(id) {
            let message = self.number(id);
            self.outputs.push_back(Output::Ask { to, message });
        }
    }

    fn post(&mut self, id: TaskId) {
        if let Task::Message { dst: to, bytes, .. } = self.plan.graph().task(id) {
            let message = self.number(id);
            let first = !std::mem::replace(&mut self.open[0].is_sending, true);
            if first {
                let iteration = self.current;
                self.outputs.push_back(Output::Sending { iteration });
            }
            self.outputs.push_back(Output::Post { to, message, bytes });
        }
    }

    /// The number of an own message in the present iteration.
    fn number(&self, id: TaskId) -> MessageNumber {
        MessageNumber(self.current * self.plan.graph().len() as u32 + id.0)
    }

    fn on_begun(&mut self, id: TaskId) {
        self.release(0, id, true);
    }

    /// Notes that a task, or a message to this rank, is over in the iteration `ahead` of the present one.
    fn on_over(&mut self, ahead: usize, id: TaskId) {
        self.open[ahead].left -= 1;
        self.release(ahead, id, false);
    }

    fn release(&mut self, ahead: usize, id: TaskId, for_beginning: bool) {
        let waits = &mut self.open[ahead].waits;
        // Tasks of a later iteration, or before the start, become ready in `begin`, which looks at all counts.
        let begins = self.running && ahead == 0;
        for waiting in self.plan.waiting(id, self.rank, for_beginning) {
            let waits = &mut waits[self.plan.place(waiting)];
            *waits -= 1;
            if *waits == 0 && begins {
                self.ready.push_back(waiting);
            }
        }
    }
}
