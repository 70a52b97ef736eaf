//! Ranks of a job on a fabric: tasks that wait for one another, of which some are calls of collectives.

mod log;
#[cfg(test)]
mod tests;
mod units;

use crate::{Cycle, GroupId, Operation, OperationKind, Posts, Program, Target};
use clearway_units::HostId;
pub use log::{IterationCycles, IterationLog};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use units::Units;

/// Kind of a collective that switches carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// Each member has the sum of all arrays.
    AllReduce,
    /// Each member has its part of the sum of all arrays.
    ReduceScatter,
    /// Each member has the parts of all.
    AllGather,
    /// Each member has the first one's array.
    Broadcast,
    /// The first member has the sum of all arrays.
    Reduce,
    /// No member goes on before all have come.
    Barrier,
}

/// A collective of a group, which each member calls once in an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCall {
    /// Group in whose multicast domain it runs.
    pub group: GroupId,
    /// Number of members of the group.
    pub members: u32,
    /// Kind of the collective.
    pub kind: CallKind,
    /// Packets of the share of each member that has one.
    pub share: u64,
    /// First of its [`addresses`](Self::addresses), counted from the beginning of an iteration's.
    pub first_address: u64,
}

impl GroupCall {
    /// Members that have a share.
    fn sharers(&self) -> u64 {
        match self.kind {
            CallKind::AllReduce | CallKind::ReduceScatter | CallKind::AllGather => {
                self.members.into()
            }
            CallKind::Broadcast | CallKind::Reduce => 1,
            CallKind::Barrier => 0,
        }
    }

    /// Number of addresses that the call takes: one for each packet and one for each flag.
    pub fn addresses(&self) -> u64 {
        let packets = self.share.saturating_mul(self.sharers());
        packets.saturating_add(self.members.into())
    }

    /// Operations that all members together post.
    pub fn operations(&self) -> u64 {
        let of_a_packet = match self.kind {
            CallKind::AllReduce => 2,
            _ => 1,
        };
        let packets = self.share.saturating_mul(self.sharers());
        let operations = packets.saturating_mul(of_a_packet);
        operations.saturating_add(self.members.into())
    }

    /// Packets that the member at `place` works on.
    fn share_of(&self, place: u32) -> u64 {
        match u64::from(place) < self.sharers() {
            true => self.share,
            false => 0,
        }
    }

    /// Writes of data that arrive at each member.
    fn arrivals(&self) -> u64 {
        match self.kind {
            CallKind::AllReduce | CallKind::AllGather | CallKind::Broadcast => {
                self.share * self.sharers()
            }
            CallKind::ReduceScatter | CallKind::Reduce | CallKind::Barrier => 0,
        }
    }
}

/// Work of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Keeps a unit of the rank busy; without cycles, it takes no unit.
    Compute {
        /// Unit that computes.
        unit: u8,
        /// Length of the computation.
        cycles: Cycle,
    },
    /// Takes part in a collective.
    Collective {
        /// Index of the call in [`RankJob::calls`].
        call: u32,
        /// Place of the rank in the group, from zero: the first broadcasts and reduces.
        place: u32,
    },
}

/// Dependency of a task on another one of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskWait {
    /// Number of the other task.
    pub task: u32,
    /// True if the other task need only have begun.
    pub is_begun: bool,
}

/// Task of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankTask {
    /// Work of the task.
    pub work: Work,
    /// Tasks that it waits for, each wait once.
    pub waits: Vec<TaskWait>,
}

/// The part of a job that one rank does.
#[derive(Debug, Clone)]
pub struct RankJob {
    /// Tasks of an iteration.
    pub tasks: Vec<RankTask>,
    /// Calls of an iteration, of all ranks of the job.
    pub calls: Arc<[GroupCall]>,
    /// Number of iterations. A rank begins the next one when its own tasks are over.
    pub iterations: u32,
    /// Times of the rank's iterations, as they go by.
    pub log: IterationLog,
}

/// The most calls of all iterations of a job: tags have 30 bits for their numbers.
pub const MOST_CALLS: u64 = 1 << CALL_BITS;
const CALL_BITS: u32 = 30;

/// Role of an operation in its call: the upper two bits of its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Flag,
    Reduction,
    Data,
}

impl Part {
    fn tag(self, call: u32) -> u64 {
        (self as u64) << CALL_BITS | u64::from(call)
    }

    fn from_tag(tag: u64) -> (Self, u32) {
        let part = match tag >> CALL_BITS {
            0 => Self::Flag,
            1 => Self::Reduction,
            _ => Self::Data,
        };
        (part, (tag & (MOST_CALLS - 1)) as u32)
    }
}

/// A call of an iteration that has been heard of and is not over here.
#[derive(Debug, Default)]
struct Present {
    /// Task of this rank that has begun its part, and the place of the rank.
    begun: Option<(u32, u32)>,
    flags: u32,
    /// Writes of data that have arrived.
    arrived: u64,
    has_posted: bool,
    /// Packets of the own share that are not complete.
    outstanding: u64,
}

/// The program of a rank, which runs the tasks of its job.
///
/// A collective goes through a group's multicast domain. A member that begins its part posts a *flag*, a multicast write to the group.
/// When the flags of all members have arrived in its memory, its own among them, it posts its share:
///
/// * all-reduce: its part of the array, each packet a read reduction and, when that is complete, the multicast write of its result;
/// * reduce-scatter: its part by read reductions, all-gather: its part by multicast writes;
/// * broadcast: the first member writes all, reduce: the first member reads all;
/// * barrier: nothing.
///
/// The call is over at a member when the operations of its share are complete and all data that members write has arrived in its
/// memory. The acknowledgement of a flag is not waited for. No flag says that others have read a member's memory: a member that is
/// through with a reduce-scatter or a reduce may be read a little longer.
#[derive(Debug)]
pub struct RankTasks {
    job: RankJob,
    /// For each task, those that wait for it, with true if they wait for its beginning alone.
    successors: Vec<Vec<(u32, bool)>>,
    /// Addresses of an iteration.
    addresses: u64,
    iteration: u32,
    /// For each task of the iteration, the dependencies that it still waits for.
    left: Vec<u32>,
    /// Tasks that are not over.
    open: usize,
    ready: BinaryHeap<Reverse<u32>>,
    units: Units,
    /// By number, over all iterations: others may be an iteration ahead.
    present: BTreeMap<u32, Present>,
}

impl RankTasks {
    /// The program of a rank of a job.
    ///
    /// # Panics
    /// If a task waits for one, or calls a collective, that does not exist, or with more calls than [`MOST_CALLS`].
    pub fn new(job: RankJob) -> Self {
        let calls = job.calls.len() as u64 * u64::from(job.iterations);
        assert!(calls <= MOST_CALLS, "calls have numbers of 30 bits");
        let mut successors = vec![Vec::new(); job.tasks.len()];
        for (number, task) in (0..).zip(&job.tasks) {
            for wait in &task.waits {
                successors[wait.task as usize].push((number, wait.is_begun));
            }
            if let Work::Collective { call, .. } = task.work {
                assert!((call as usize) < job.calls.len(), "no such call");
            }
        }
        Self {
            successors,
            addresses: job.calls.iter().map(GroupCall::addresses).sum(),
            iteration: 0,
            left: Vec::new(),
            open: 0,
            ready: BinaryHeap::new(),
            units: Units::default(),
            present: BTreeMap::new(),
            job,
        }
    }

    /// Begins the tasks of an iteration that wait for nothing.
    fn begin_iteration(&mut self, now: Cycle) {
        self.job.log.begin(now);
        let tasks = &self.job.tasks;
        self.open = tasks.len();
        self.left.clear();
        self.left
            .extend(tasks.iter().map(|task| task.waits.len() as u32));
        let ready = (0..).zip(&self.left).filter(|&(_, &left)| left == 0);
        self.ready.extend(ready.map(|(task, _)| Reverse(task)));
    }

    /// Begins all that can begin.
    fn go_on(&mut self, now: Cycle, posts: &mut Posts) {
        while !self.is_over() {
            while let Some(Reverse(task)) = self.ready.pop() {
                self.begin(task, now, posts);
            }
            if self.open > 0 {
                return;
            }
            self.job.log.end(now);
            self.iteration += 1;
            if !self.is_over() {
                self.begin_iteration(now);
            }
        }
    }

    fn begin(&mut self, task: u32, now: Cycle, posts: &mut Posts) {
        match self.job.tasks[task as usize].work {
            Work::Compute { cycles: 0, .. } => {
                self.release(task, true);
                self.end(task);
            }
            Work::Compute { unit, .. } => {
                self.units.queue(unit, task);
                self.compute_next(unit, now, posts);
            }
            Work::Collective { call, place } => {
                self.release(task, true);
                self.raise_flag(task, (call, place), now, posts);
            }
        }
    }

    fn compute_next(&mut self, unit: u8, now: Cycle, posts: &mut Posts) {
        let Some(task) = self.units.take_next(unit) else {
            return;
        };
        let Work::Compute { cycles, .. } = self.job.tasks[task as usize].work else {
            unreachable!("units compute");
        };
        let end = now.saturating_add(cycles);
        self.units.begin(unit, task, end);
        posts.wake_at(end);
        self.release(task, true);
    }

    fn end(&mut self, task: u32) {
        self.open -= 1;
        self.release(task, false);
    }

    /// Releases the tasks that wait for the beginning of `task`, or for its end.
    fn release(&mut self, task: u32, is_begun: bool) {
        for &(next, waits_for_begin) in &self.successors[task as usize] {
            if waits_for_begin == is_begun {
                let left = &mut self.left[next as usize];
                *left -= 1;
                if *left == 0 {
                    self.ready.push(Reverse(next));
                }
            }
        }
    }

    /// The call with a number, and its first address.
    fn call(&self, number: u32) -> (GroupCall, u64) {
        let calls = self.job.calls.len() as u32;
        let call = self.job.calls[(number % calls) as usize];
        let before = u64::from(number / calls) * self.addresses;
        (call, before + call.first_address)
    }

    fn raise_flag(&mut self, task: u32, (call, place): (u32, u32), now: Cycle, posts: &mut Posts) {
        let number = self.iteration * self.job.calls.len() as u32 + call;
        let (call, address) = self.call(number);
        self.present.entry(number).or_default().begun = Some((task, place));
        self.job.log.send(now);
        posts.operation(Operation {
            kind: OperationKind::Write,
            target: Target::Group(call.group),
            address: address + u64::from(place),
            tag: Part::Flag.tag(number),
        });
    }

    /// Takes the steps of a call that are possible: posts the share, ends it.
    fn advance(&mut self, number: u32, posts: &mut Posts) {
        let (call, address) = self.call(number);
        let Some(present) = self.present.get_mut(&number) else {
            return;
        };
        let Some((task, place)) = present.begun else {
            return;
        };
        if present.flags < call.members {
            return;
        }
        if !present.has_posted {
            present.has_posted = true;
            present.outstanding = call.share_of(place);
            post_share(number, &call, (place, address), posts);
        }
        if present.outstanding == 0 && present.arrived == call.arrivals() {
            self.present.remove(&number);
            self.end(task);
        }
    }
}

/// Posts the operations of a member's share; those that wait for others follow these.
fn post_share(number: u32, call: &GroupCall, (place, address): (u32, u64), posts: &mut Posts) {
    let share = call.share_of(place);
    let (kind, part) = match call.kind {
        CallKind::AllReduce | CallKind::ReduceScatter | CallKind::Reduce => {
            (OperationKind::Read, Part::Reduction)
        }
        CallKind::AllGather | CallKind::Broadcast | CallKind::Barrier => {
            (OperationKind::Write, Part::Data)
        }
    };
    let first = address + u64::from(call.members) + u64::from(place) * call.share;
    for address in first..first + share {
        posts.operation(Operation {
            kind,
            target: Target::Group(call.group),
            address,
            tag: part.tag(number),
        });
    }
}

impl Program for RankTasks {
    fn start(&mut self, posts: &mut Posts) {
        if !self.is_over() {
            self.begin_iteration(0);
        }
        self.go_on(0, posts);
    }

    fn on_completion(&mut self, now: Cycle, operation: &Operation, posts: &mut Posts) {
        let (part, number) = Part::from_tag(operation.tag);
        if part == Part::Flag {
            return;
        }
        let (call, _) = self.call(number);
        if (part, call.kind) == (Part::Reduction, CallKind::AllReduce) {
            posts.operation(Operation {
                kind: OperationKind::Write,
                tag: Part::Data.tag(number),
                ..*operation
            });
            return;
        }
        if let Some(present) = self.present.get_mut(&number) {
            present.outstanding -= 1;
        }
        self.advance(number, posts);
        self.go_on(now, posts);
    }

    fn on_write(&mut self, now: Cycle, _: HostId, tag: u64, posts: &mut Posts) {
        let (part, number) = Part::from_tag(tag);
        let present = self.present.entry(number).or_default();
        match part {
            Part::Flag => present.flags += 1,
            Part::Reduction | Part::Data => present.arrived += 1,
        }
        self.advance(number, posts);
        self.go_on(now, posts);
    }

    fn on_wake(&mut self, now: Cycle, posts: &mut Posts) {
        while let Some((unit, task)) = self.units.pop_due(now) {
            self.end(task);
            self.compute_next(unit, now, posts);
        }
        self.go_on(now, posts);
    }

    fn is_over(&self) -> bool {
        self.iteration == self.job.iterations
    }
}
