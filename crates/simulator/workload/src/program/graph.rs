//! The tasks that a program becomes.

use super::collectives::{Meeting, meetings};
use super::matching::{NONE, Numbers, order, partners};
use super::{
    CollectiveCall, Expand, ExpansionFault, JobProgram, Operation, OperationDependency,
    OperationId, ProgramError,
};
use crate::graph::{Graph, Rank, Task, TaskDependency, TaskId};
use clearway_units::{Bytes, Span};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

impl JobProgram {
    /// The tasks of the program, with the messages that `expand` makes of collective calls. Faults that [`Graph::check`] finds come only
    /// from `expand`.
    ///
    /// # Errors
    /// The first operation that cannot be matched, then operations that wait for one another.
    pub fn graph(&self, expand: &mut Expand<'_>) -> Result<Graph, ProgramError> {
        let numbers = Numbers::from_program(self)?;
        let orders: Vec<Vec<u32>> = self.ranks.iter().map(order).collect();
        let mut partner = partners(self, &numbers, &orders)?;
        let meetings = meetings(self, &numbers, &orders, &mut partner)?;
        drop(orders);
        self.check_bytes()?;
        let mut build = Build::new(self, numbers, partner, meetings);
        build.run(expand)?;
        match build.circle() {
            Some(operations) => Err(ProgramError::Circle { operations }),
            None => Ok(build.graph),
        }
    }

    fn check_bytes(&self) -> Result<(), ProgramError> {
        let mut sent = 0u64;
        let mut sender = Rank(0);
        for (send, operation) in self.numbered() {
            if sender != send.rank {
                (sender, sent) = (send.rank, 0);
            }
            if let Operation::Send { bytes, .. } = operation {
                let total = sent.checked_add(carried(bytes).as_u64());
                sent = total.ok_or(ProgramError::TooManyBytes { send })?;
            }
        }
        Ok(())
    }
}

/// Bytes of the message of a send of `bytes`: at least one, as a message needs a packet.
fn carried(bytes: Bytes) -> Bytes {
    bytes.max(Bytes::new(1))
}

/// State of the construction of a program's graph.
struct Build<'a> {
    program: &'a JobProgram,
    numbers: Numbers,
    /// For each send its receive, for each receive its send, and for each call the index of its meeting.
    partner: Vec<u32>,
    meetings: Vec<Meeting>,
    /// Number of ranks that have come to each meeting.
    present: Vec<u32>,
    /// Index of the first successor of each operation in `successors`, and one more.
    first_successor: Vec<u32>,
    /// Operations that wait for each operation, with true if it is enough that the latter has begun.
    successors: Vec<(u32, bool)>,
    /// Number of dependencies that each operation still waits for; zero once it has begun.
    left: Vec<u32>,
    /// The task after which each operation is over, or [`NONE`].
    end: Vec<u32>,
    /// The task after which a receive or call has begun, where there is one.
    begin: FxHashMap<u32, TaskId>,
    ready: BinaryHeap<Reverse<u32>>,
    graph: Graph,
    /// Kept to save its allocation.
    needs: Vec<TaskDependency>,
}

impl<'a> Build<'a> {
    fn new(
        program: &'a JobProgram,
        numbers: Numbers,
        partner: Vec<u32>,
        meetings: Vec<Meeting>,
    ) -> Self {
        let count = numbers.count();
        let mut first_successor = vec![0u32; count + 1];
        let mut left = Vec::with_capacity(count);
        let all_waits = || {
            program.numbered().flat_map(|(id, _)| {
                let waits = program.ranks[id.rank.index()].waits(id.index);
                waits.iter().map(move |wait| (id, *wait))
            })
        };
        let other = |id: OperationId, wait: OperationDependency| {
            numbers.number(OperationId {
                index: wait.operation,
                ..id
            }) as usize
        };
        for (id, _) in program.numbered() {
            left.push(program.ranks[id.rank.index()].waits(id.index).len() as u32);
        }
        // Counting sort of the waits by the operation that is waited for: `release` then finds its successors in one range.
        for (id, wait) in all_waits() {
            first_successor[other(id, wait) + 1] += 1;
        }
        for index in 0..count {
            first_successor[index + 1] += first_successor[index];
        }
        let mut fill = first_successor.clone();
        let mut successors = vec![(0u32, false); first_successor[count] as usize];
        for (id, wait) in all_waits() {
            let place = &mut fill[other(id, wait)];
            successors[*place as usize] = (numbers.number(id), wait.is_begun);
            *place += 1;
        }
        let ready = (0..count as u32).filter(|&number| left[number as usize] == 0);
        Self {
            program,
            partner,
            present: vec![0; meetings.len()],
            meetings,
            first_successor,
            successors,
            end: vec![NONE; count],
            begin: FxHashMap::default(),
            ready: ready.map(Reverse).collect(),
            graph: Graph::new(program.ranks.len() as u32),
            needs: Vec::new(),
            left,
            numbers,
        }
    }

    fn run(&mut self, expand: &mut Expand<'_>) -> Result<(), ProgramError> {
        while let Some(Reverse(number)) = self.ready.pop() {
            let id = self.numbers.id(number);
            match self.program.operation(id) {
                Operation::Compute { unit, span } => {
                    let rank = id.rank;
                    let unit = unit.into();
                    self.begin_and_end(number, id, Task::Compute { rank, unit, span });
                }
                Operation::Send { to, bytes, .. } => self.send(number, id, to, bytes),
                Operation::Receive { .. } => self.receive(number, id),
                Operation::Collective { .. } => self.call(number, id, expand)?,
            }
        }
        Ok(())
    }

    fn begin_and_end(&mut self, number: u32, id: OperationId, task: Task) {
        self.collect_needs(id);
        let task = self.graph.add(task, self.needs.drain(..));
        self.end[number as usize] = task.0;
        self.release(number, true);
        self.release(number, false);
    }

    fn send(&mut self, number: u32, id: OperationId, to: Rank, bytes: Bytes) {
        let task = match to == id.rank {
            true => join(id.rank),
            false => Task::Message {
                src: id.rank,
                dst: to,
                bytes: carried(bytes),
            },
        };
        self.begin_and_end(number, id, task);
        let receive = self.partner[number as usize];
        // One that waits for more is received when that is over.
        if self.left[receive as usize] == 0 {
            self.arrive(receive, self.numbers.id(receive));
        }
    }

    fn receive(&mut self, number: u32, id: OperationId) {
        let has_waits = !self.program.ranks[id.rank.index()]
            .waits(id.index)
            .is_empty();
        let (from, to) = self.range_of(number);
        if has_waits
            && self.successors[from..to]
                .iter()
                .any(|&(_, is_begun)| is_begun)
        {
            self.collect_needs(id);
            let begun = self.graph.add(join(id.rank), self.needs.drain(..));
            self.begin.insert(number, begun);
        }
        self.release(number, true);
        let send = self.partner[number as usize];
        if self.end[send as usize] != NONE {
            self.arrive(number, id);
        }
    }

    /// Ends a receive that has begun, whose message is known.
    fn arrive(&mut self, number: u32, id: OperationId) {
        if self.end[number as usize] != NONE {
            return;
        }
        let message = self.end[self.partner[number as usize] as usize];
        match self.begin.get(&number) {
            Some(&begun) => self.needs.push(TaskDependency::over(begun)),
            None => self.collect_needs(id),
        }
        self.end[number as usize] = match self.needs.is_empty() {
            true => message,
            false => {
                self.needs.push(TaskDependency::over(TaskId(message)));
                self.graph.add(join(id.rank), self.needs.drain(..)).0
            }
        };
        self.release(number, false);
    }

    fn call(
        &mut self,
        number: u32,
        id: OperationId,
        expand: &mut Expand<'_>,
    ) -> Result<(), ProgramError> {
        self.collect_needs(id);
        let start = self.graph.add(join(id.rank), self.needs.drain(..));
        self.begin.insert(number, start);
        self.release(number, true);
        let index = self.partner[number as usize] as usize;
        if self.meetings[index].is_silent() {
            self.end[number as usize] = start.0;
            self.release(number, false);
            return Ok(());
        }
        self.present[index] += 1;
        if self.present[index] as usize == self.meetings[index].calls.len() {
            self.meet(index, expand)?;
        }
        Ok(())
    }

    /// Expands a meeting to which all ranks have come.
    fn meet(&mut self, index: usize, expand: &mut Expand<'_>) -> Result<(), ProgramError> {
        let Meeting {
            kind,
            bytes,
            group,
            ref calls,
        } = self.meetings[index];
        let calls = calls.clone();
        let starts: Vec<TaskId> = calls.iter().map(|number| self.begin[number]).collect();
        let group = &self.program.groups[group as usize];
        let call = CollectiveCall {
            kind,
            bytes,
            group,
            starts: &starts,
        };
        let error = |fault: ExpansionFault| ProgramError::Expansion {
            call: self.numbers.id(calls[0]),
            fault,
        };
        let ends = expand(&call, &mut self.graph).map_err(error)?;
        if ends.len() != group.len() {
            return Err(error(ExpansionFault {
                reason: "the expansion says nothing of some ranks".into(),
                fix: "let it name tasks for each rank of the group".into(),
            }));
        }
        for (place, &number) in calls.iter().enumerate() {
            // A rank that only receives is not past the call before it has come to it.
            let tasks = std::iter::once(starts[place]).chain(ends[place].iter().copied());
            let needs = tasks.map(TaskDependency::over);
            let end = self.graph.add(join(group[place]), needs);
            self.end[number as usize] = end.0;
        }
        for number in calls {
            self.release(number, false);
        }
        Ok(())
    }

    /// Collects in `needs` the tasks that the operation waits for.
    fn collect_needs(&mut self, id: OperationId) {
        for wait in self.program.ranks[id.rank.index()].waits(id.index) {
            let other = OperationId {
                index: wait.operation,
                ..id
            };
            let number = self.numbers.number(other);
            let end = TaskId(self.end[number as usize]);
            let need = match (wait.is_begun, self.program.operation(other)) {
                (false, _) => Some(TaskDependency::over(end)),
                (true, Operation::Compute { .. } | Operation::Send { .. }) => {
                    Some(TaskDependency::begun(end))
                }
                // A receive that waits for nothing has begun from the start.
                (true, _) => self.begin.get(&number).copied().map(TaskDependency::over),
            };
            self.needs.extend(need);
        }
    }

    /// Releases the successors of an operation that has begun, or is over: they have one thing less to wait for.
    fn release(&mut self, number: u32, is_begun: bool) {
        let (from, to) = self.range_of(number);
        for index in from..to {
            let (next, needs_begun) = self.successors[index];
            if needs_begun == is_begun {
                let left = &mut self.left[next as usize];
                *left -= 1;
                if *left == 0 {
                    self.ready.push(Reverse(next));
                }
            }
        }
    }

    fn range_of(&self, number: u32) -> (usize, usize) {
        let index = number as usize;
        let first = &self.first_successor;
        (first[index] as usize, first[index + 1] as usize)
    }

    /// Operations that wait for one another: the first cycle found by following the waits from the lowest operation that is not over.
    fn circle(&self) -> Option<Vec<OperationId>> {
        let lowest = self.end.iter().position(|&end| end == NONE)?;
        let mut way = vec![(lowest as u32, false)];
        let mut places = BTreeMap::from([(way[0], 0)]);
        loop {
            let step = self.stuck_by(way[way.len() - 1]);
            if let Some(&place) = places.get(&step) {
                let mut circle: Vec<u32> = way[place..].iter().map(|step| step.0).collect();
                // Beginning and end of an operation are separate steps, but the cycle names it once.
                circle.dedup();
                if circle.len() > 1 && circle.first() == circle.last() {
                    circle.pop();
                }
                return Some(circle.into_iter().map(|n| self.numbers.id(n)).collect());
            }
            places.insert(step, way.len());
            way.push(step);
        }
    }

    /// Returns the step that keeps an operation from its end or, if `is_begun`, from its beginning: an operation, and true if its beginning
    /// is awaited.
    fn stuck_by(&self, (number, is_begun): (u32, bool)) -> (u32, bool) {
        const STUCK: &str = "what is not over waits for something that is not";
        let id = self.numbers.id(number);
        let has_begun = |number: u32| self.left[number as usize] == 0;
        if is_begun {
            let waits = self.program.ranks[id.rank.index()].waits(id.index);
            let step = waits.iter().find_map(|wait| {
                let index = wait.operation;
                let other = self.numbers.number(OperationId { index, ..id });
                let is_stuck = match wait.is_begun {
                    true => !has_begun(other),
                    false => self.end[other as usize] == NONE,
                };
                is_stuck.then_some((other, wait.is_begun))
            });
            return step.expect(STUCK);
        }
        if !has_begun(number) {
            return (number, true);
        }
        let partner = self.partner[number as usize];
        match self.program.operation(id) {
            Operation::Collective { .. } => {
                let calls = &self.meetings[partner as usize].calls;
                let late = calls.iter().find(|&&call| !has_begun(call));
                (*late.expect(STUCK), true)
            }
            _ => (partner, false),
        }
    }
}

/// A task that takes no time.
fn join(rank: Rank) -> Task {
    Task::Compute {
        rank,
        unit: 0,
        span: Span::ZERO,
    }
}
