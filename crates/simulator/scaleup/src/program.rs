//! Programs of the GPUs.

use crate::{Cycle, Operation};
use clearway_units::HostId;
use std::fmt::Debug;

/// Request of a program to its GPU.
#[derive(Debug, Default)]
pub struct Posts {
    pub(crate) operations: Vec<Operation>,
    pub(crate) wakes: Vec<Cycle>,
}

impl Posts {
    /// Posts an operation. It waits in the injection channel of its kind behind those posted before.
    pub fn operation(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    /// Operations posted, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Cycles at which [`Program::on_wake`] is asked for.
    pub fn wakes(&self) -> &[Cycle] {
        &self.wakes
    }

    /// Asks for a call of [`Program::on_wake`] at a later cycle. Earlier requests stay: each leads to a separate call.
    pub fn wake_at(&mut self, cycle: Cycle) {
        self.wakes.push(cycle);
    }
}

/// The program of one GPU. It has no clock: each call carries the cycle.
pub trait Program: Debug + Send {
    /// Begins, in cycle 0.
    fn start(&mut self, posts: &mut Posts);

    /// Goes on after the completion of an operation.
    fn on_completion(&mut self, now: Cycle, operation: &Operation, posts: &mut Posts);

    /// Takes note of a write that has arrived in this GPU's memory, its own multicast writes included.
    fn on_write(&mut self, now: Cycle, initiator: HostId, tag: u64, posts: &mut Posts) {
        let _ = (now, initiator, tag, posts);
    }

    /// Goes on at a cycle that it has asked for.
    fn on_wake(&mut self, now: Cycle, posts: &mut Posts) {
        let _ = (now, posts);
    }

    /// True if the program will not post any more operations.
    fn is_over(&self) -> bool;
}
