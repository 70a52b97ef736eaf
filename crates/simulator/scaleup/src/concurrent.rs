//! Several programs on one GPU.

use crate::{Cycle, Operation, Posts, Program};
use clearway_units::HostId;

/// Programs that run side by side on one GPU, each with a label. Tags of operations have the label in their upper half, and the programs'
/// tags, below 2^32, in the lower.
#[derive(Debug, Default)]
pub struct Concurrent {
    programs: Vec<(u32, Box<dyn Program>)>,
}

/// The label of the program that posted an operation with `tag`.
pub fn label_of(tag: u64) -> u32 {
    (tag >> 32) as u32
}

impl Concurrent {
    /// Programs with their labels, each once.
    pub fn new(programs: Vec<(u32, Box<dyn Program>)>) -> Self {
        Self { programs }
    }

    /// Calls the programs that `concerns`, and marks their operations with the label.
    fn each(
        &mut self,
        posts: &mut Posts,
        concerns: impl Fn(u32) -> bool,
        mut call: impl FnMut(&mut dyn Program, &mut Posts),
    ) {
        for (label, program) in &mut self.programs {
            if !concerns(*label) {
                continue;
            }
            let before = posts.operations.len();
            call(program.as_mut(), posts);
            for operation in &mut posts.operations[before..] {
                operation.tag = u64::from(*label) << 32 | operation.tag & u64::from(u32::MAX);
            }
        }
    }
}

fn own_tag(tag: u64) -> u64 {
    tag & u64::from(u32::MAX)
}

impl Program for Concurrent {
    fn start(&mut self, posts: &mut Posts) {
        self.each(posts, |_| true, |program, posts| program.start(posts));
    }

    fn on_completion(&mut self, now: Cycle, operation: &Operation, posts: &mut Posts) {
        let label = label_of(operation.tag);
        let operation = Operation {
            tag: own_tag(operation.tag),
            ..*operation
        };
        self.each(
            posts,
            |own| own == label,
            |program, posts| program.on_completion(now, &operation, posts),
        );
    }

    fn on_write(&mut self, now: Cycle, initiator: HostId, tag: u64, posts: &mut Posts) {
        let label = label_of(tag);
        self.each(
            posts,
            |own| own == label,
            |program, posts| program.on_write(now, initiator, own_tag(tag), posts),
        );
    }

    fn on_wake(&mut self, now: Cycle, posts: &mut Posts) {
        self.each(
            posts,
            |_| true,
            |program, posts| program.on_wake(now, posts),
        );
    }

    fn is_over(&self) -> bool {
        self.programs.iter().all(|(_, program)| program.is_over())
    }
}
