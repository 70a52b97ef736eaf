//! Schedules in GOAL, the language of LogGOPSim, Schedgen and ATLAHS, as text and in the binary form that `txt2bin` makes of it.
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
//! The readers give a [`JobProgram`], of which a [`Graph`] is made as its [module](clearway_workload::program) says. Differences from
//! LogGOPSim:
//!
//! * The network is this simulator's: of the LogGOPS parameters, none is used. Sending and receiving cost the processor nothing, and
//!   `cpu` counts for `calc` only. Large messages are sent like small ones (there: from 64 KiB on after a rendezvous).
//! * A send is over when its message is acknowledged (there: when the processor has handed it over).
//! * A rank has one network interface; `nic` is read and does nothing but a warning.
//! * A receive may take more than comes, as in MPI, but not less (there: sizes are not compared).
//! * Receives take messages in the order in which they are listed (there: in which they begin), so that the schedule does not depend on
//!   the network; what does is refused.
//!
//! The reader of the text takes more in these points: comments may stand behind an operation, and `}` on the line of the last one. It
//! is stricter in these: a label stands once in a rank, numbers fit their field, ranks come in their order and all are there, and
//! a send's tag is a number. Without `tag`, it is 0 at both ends.

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

/// A schedule that was read.
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

/// Places of the operations in the file.
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
    /// If sends and receives do not fit each other or wait for one another, with the place of the operation.
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

    /// Warning of receives that take more than comes to them, if there are any.
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

    /// Adds warnings about operations that are not simulated as they stand there; `nics` are those on other interfaces than 0.
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

/// Number of operations of a kind, and the first of them.
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
    /// The line of an operation, from 1; 0 if there are no lines.
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
