//! Schedules in GOAL, the language of LogGOPSim, Schedgen and ATLAHS, as text and in the binary form that `txt2bin` produces.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   compute: calc 1500 cpu 1              // nanoseconds on a processor
//!   l2: send 4096b to 1 tag 7
//!   l2 requires compute                   // begins when `compute` is over
//! }
//! rank 1 {
//!   l1: recv 4096b from 0 tag 7           // -1: from any rank, with any tag
//!   l2: calc 100
//!   l2 irequires l1                       // begins when `l1` has begun
//! }
//! ```
//!
//! The readers return a [`JobProgram`]. Its [module](clearway_workload::program) documents the conversion to a [`Graph`]. Differences from
//! LogGOPSim:
//!
//! * This simulator's network replaces the LogGOPS parameters. Sends and receives cost the processor nothing, and `cpu` only applies to
//!   `calc`. Large messages are sent like small messages (there: from 64 KiB on after a rendezvous).
//! * A send ends when its message is acknowledged (there: when the processor has handed it over).
//! * A rank has one network interface; `nic` is read, causes a warning and has no other effect.
//! * A receive may be larger than its message, as in MPI, but not smaller (there: sizes are not compared).
//! * Receives match messages in the order of the file (there: in the order in which they begin), so that the schedule does not depend on
//!   the network. A schedule that depends on the network is rejected.
//!
//! The text reader is more lenient in these points: a comment may follow an operation, and `}` may end the line of the last operation. It
//! is stricter in these points: a label occurs once in a rank, numbers fit their field, all ranks are present and in order, and a send's
//! tag is a number. Without `tag`, the tag is 0 at both ends.

mod binary;
mod lexer;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use binary::{is_goal_binary, parse_goal_binary};
pub(crate) use text::begins_as_a_schedule;
pub use text::parse_goal;
pub use write::{GoalWriteError, write_goal, write_goal_binary};

use crate::text::{Source, shown};
use clearway_units::Bytes;
use clearway_workload::program::{
    CollectiveCall, ExpansionFault, JobProgram, Operation, OperationId, ProgramError,
};
use clearway_workload::{FileError, FileWarning, Graph};

/// Number that stands for any rank and for any tag in a binary schedule.
const ANY: u32 = u32::MAX;

/// A schedule read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalFile<'a> {
    /// Operations of the ranks.
    pub program: JobProgram,
    /// Warnings about parts that are read but not simulated.
    pub warnings: Vec<FileWarning>,
    /// The file, as the user named it.
    name: String,
    places: Places<'a>,
}

/// Positions of the operations in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Places<'a> {
    /// Text, with the byte offset at which each operation of each rank begins.
    Text {
        text: &'a str,
        starts: Vec<Vec<usize>>,
    },
    /// Binary form, which has no lines.
    Binary,
}

impl GoalFile<'_> {
    /// The tasks of the schedule.
    ///
    /// # Errors
    /// If sends and receives do not match or wait for each other in a cycle, with the position of the operation.
    pub fn graph(&self) -> Result<Graph, FileError> {
        let mut expand = |_: &CollectiveCall<'_>, _: &mut Graph| {
            Err(ExpansionFault {
                reason: "GOAL has no collectives".into(),
                fix: "write sends and receives".into(),
            })
        };
        self.program
            .graph(&mut expand)
            .map_err(|error| self.located(&error))
    }

    /// Warning about receives that are larger than their messages, if there are any.
    pub fn longer_receives(&self) -> Option<FileWarning> {
        let longer = self.program.longer_receives()?;
        Some(FileWarning {
            file: self.name.clone(),
            line: self.places.line(longer.receive),
            message: longer.message(&|id| self.places.name(id)),
        })
    }

    fn located(&self, error: &ProgramError) -> FileError {
        let line = self.places.line(error.operation());
        let message = error.message(&|id| self.places.name(id));
        let source = Source { file: &self.name };
        source.fault(line, None, message).fix(error.fix())
    }

    /// Adds warnings about operations that are not simulated as written; `nics` are the operations on interfaces other than 0.
    fn warn(&mut self, nics: Seen) {
        let (mut empty, mut own) = (Seen::default(), Seen::default());
        for (id, operation) in self.program.numbered() {
            if let Operation::Send { to, bytes, .. } = operation {
                if bytes == Bytes::ZERO {
                    empty.count(id);
                }
                if to == id.rank {
                    own.count(id);
                }
            }
        }
        for (seen, what) in [
            (
                nics,
                "on a network interface other than 0, but each rank has one",
            ),
            (
                empty,
                "no bytes to send, and sends one because a message needs a packet",
            ),
            (own, "its own rank as receiver, which takes no time"),
        ] {
            let Some(first) = seen.first else { continue };
            let others = match seen.count {
                1 => String::new(),
                count => format!(" (and {} more like it)", count - 1),
            };
            let message = match what.starts_with("on") {
                true => format!("{} runs {what}{others}", self.places.name(first)),
                false => format!("{} has {what}{others}", self.places.name(first)),
            };
            self.warnings.push(FileWarning {
                file: self.name.clone(),
                line: self.places.line(first),
                message,
            });
        }
    }
}

/// Number of operations of a kind, and the first operation.
#[derive(Default)]
struct Seen {
    first: Option<OperationId>,
    count: u64,
}

impl Seen {
    fn count(&mut self, id: OperationId) {
        self.first.get_or_insert(id);
        self.count += 1;
    }
}

impl Places<'_> {
    /// The line of an operation, from 1; 0 if the file has no lines.
    fn line(&self, OperationId { rank, index }: OperationId) -> usize {
        match self {
            Self::Text { text, starts } => {
                lexer::line_of(text, starts[rank.index()][index as usize])
            }
            Self::Binary => 0,
        }
    }

    /// Name of an operation in messages.
    fn name(&self, id: OperationId) -> String {
        let OperationId { rank, index } = id;
        match self {
            Self::Text { text, starts } => {
                let start = starts[rank.index()][index as usize];
                let line = self.line(id);
                match lexer::label_at(text, start) {
                    Some(label) => format!("`{}` of rank {rank} (line {line})", shown(label)),
                    None => format!("the operation of rank {rank} on line {line}"),
                }
            }
            Self::Binary => format!("node {index} of rank {rank}"),
        }
    }
}
