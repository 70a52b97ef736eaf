//! Reads schedules in the binary form of `txt2bin`, with 39 bytes for each operation.

use super::{ANY, GoalFile, Places, Seen};
use crate::text::Source;
use clearway_units::{Bytes, Span};
use clearway_workload::FileError;
use clearway_workload::graph::Rank;
use clearway_workload::program::{
    JobProgram, Operation, OperationDependency, OperationId, RankProgram,
};

/// The first eight bytes, as a number.
pub(super) const MAGIC: u64 = 4223;
pub(super) const SEND: u8 = 1;
pub(super) const RECV: u8 = 2;
pub(super) const CALC: u8 = 3;

/// Size of the record of an operation, in bytes.
const RECORD: usize = 39;

/// True if `bytes` begin like a binary schedule.
pub fn is_goal_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_le_bytes())
}

/// Reads the binary schedule `bytes`; errors call the file `name`. Errors have no line (0) but name rank and node.
///
/// # Errors
/// At the first invalid record. [`GoalFile::graph`] finds faults that involve several ranks.
pub fn parse_goal_binary(name: &str, bytes: &[u8]) -> Result<GoalFile<'static>, FileError> {
    let reader = Reader {
        source: Source { file: name },
    };
    if !is_goal_binary(bytes) {
        let message = "this is not a binary schedule: it does not begin with the number 4223";
        return Err(reader.fault(message.into()));
    }
    // All offsets in the file count from the end of the magic number.
    let body = &bytes[8..];
    let cut_off = || reader.fault("the file ends within its table of ranks".into());
    let ranks = u32_at(body, 0).ok_or_else(cut_off)?;
    if ranks == 0 {
        return Err(reader.fault("the schedule has no ranks".into()));
    }
    let table = 6 + 16 * ranks as usize;
    let mut begin = table;
    if body.len() < table {
        return Err(cut_off());
    }
    let (mut program, mut nics) = (JobProgram::default(), Seen::default());
    for rank in (0..ranks).map(Rank) {
        let entry = 6 + 16 * rank.index();
        let place = |at| u64_at(body, at).and_then(|place| usize::try_from(place).ok());
        let (start, end) = (place(entry), place(entry + 8));
        let section = start.zip(end).filter(|&(start, _)| start >= begin);
        let section = section.and_then(|(start, end)| Some((body.get(start..end)?, end)));
        let Some((section, end)) = section else {
            let message = format!(
                "the position of the operations of rank {rank} is wrong: the ranks follow one another in the file"
            );
            return Err(reader.fault(message));
        };
        program.ranks.push(reader.rank(rank, section, &mut nics)?);
        begin = end;
    }
    let mut file = GoalFile {
        program,
        warnings: Vec::new(),
        name: name.into(),
        places: Places::Binary,
    };
    file.warn(nics);
    Ok(file)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Operations that wait for another operation: their number, and the offset of the first in the appendix.
struct Dependents {
    count: u32,
    first: u32,
    is_begun: bool,
}

struct Reader<'a> {
    source: Source<'a>,
}

impl Reader<'_> {
    fn fault(&self, message: String) -> FileError {
        let fix = "restore the file if it was cut off or changed, or make it anew with txt2bin from the text";
        self.source.fault(0, None, message).fix(fix)
    }

    fn rank(&self, rank: Rank, section: &[u8], nics: &mut Seen) -> Result<RankProgram, FileError> {
        let sizes = || {
            self.fault(format!(
                "the operations of rank {rank} do not have the announced size; the format of LogGOPSim2 cannot be read"
            ))
        };
        let count = u32_at(section, 0).ok_or_else(sizes)?;
        let roots = u32_at(section, 4).ok_or_else(sizes)?;
        let records = 8 + 4 * roots as usize;
        let appendix = records + RECORD * count as usize;
        if section.len() < appendix || !(section.len() - appendix).is_multiple_of(4) {
            return Err(sizes());
        }
        if count >= 1 << 31 {
            return Err(self.fault(format!("rank {rank} has more than 2^31 operations")));
        }
        let appendix = &section[appendix..];
        let mut operations = Vec::with_capacity(count as usize);
        let mut waits = Vec::with_capacity(appendix.len() / 4);
        let mut announced = Vec::with_capacity(count as usize);
        for index in 0..count {
            let record = &section[records + RECORD * index as usize..][..RECORD];
            let id = OperationId { rank, index };
            operations.push(self.operation(id, record)?);
            announced.push(u32_at(record, 0).ok_or_else(sizes)?);
            if record[22] > 0 && record[4] != CALC {
                nics.count(id);
            }
            for (at, is_begun) in [(23, false), (31, true)] {
                let dependents = Dependents {
                    count: u32_at(record, at).ok_or_else(sizes)?,
                    first: u32_at(record, at + 4).ok_or_else(sizes)?,
                    is_begun,
                };
                self.dependents(id, &dependents, appendix, count, &mut waits)?;
            }
            if waits.len() > appendix.len() / 4 {
                return Err(sizes());
            }
        }
        if waits.len() < appendix.len() / 4 {
            return Err(sizes());
        }
        self.check_announced(rank, &announced, &waits)?;
        self.check_roots(rank, &section[8..records], &announced)?;
        Ok(RankProgram::new(operations, waits))
    }

    fn operation(&self, id: OperationId, record: &[u8]) -> Result<Operation, FileError> {
        let broken = |what: &str| {
            let OperationId { rank, index } = id;
            self.fault(format!("node {index} of rank {rank} {what}"))
        };
        let short = || broken("is cut off");
        let peer = u32_at(record, 5).ok_or_else(short)?;
        let size = u64_at(record, 9).ok_or_else(short)?;
        let tag = u32_at(record, 17).ok_or_else(short)?;
        let named = |number| (number != ANY).then_some(number);
        match record[4] {
            SEND => Ok(Operation::Send {
                to: Rank(named(peer).ok_or_else(|| broken("sends to any rank"))?),
                bytes: Bytes::new(size),
                tag: named(tag).ok_or_else(|| broken("sends with any tag"))?,
            }),
            RECV => Ok(Operation::Receive {
                from: named(peer).map(Rank),
                bytes: Bytes::new(size),
                tag: named(tag),
            }),
            CALC => {
                let span = size.checked_mul(1000).map(Span::from_ps);
                Ok(Operation::Compute {
                    unit: record[21],
                    span: span.ok_or_else(|| broken("computes for more than 213 days"))?,
                })
            }
            _ => Err(broken("is neither send, recv nor calc")),
        }
    }

    fn dependents(
        &self,
        id: OperationId,
        dependents: &Dependents,
        appendix: &[u8],
        count: u32,
        waits: &mut Vec<(u32, OperationDependency)>,
    ) -> Result<(), FileError> {
        let OperationId { rank, index } = id;
        if dependents.count == 0 {
            return Ok(());
        }
        let first = 4 * dependents.first as usize;
        let listed = appendix.get(first..first + 4 * dependents.count as usize);
        let Some(listed) = listed else {
            let message = format!(
                "node {index} of rank {rank} refers to a place outside the list of dependents"
            );
            return Err(self.fault(message));
        };
        if waits.len() + listed.len() / 4 > appendix.len() / 4 {
            let message =
                format!("with node {index}, rank {rank} has more dependents than are listed");
            return Err(self.fault(message));
        }
        for place in (0..listed.len()).step_by(4) {
            let who = u32_at(listed, place).filter(|&who| who < count);
            let Some(who) = who else {
                let message = format!(
                    "node {index} of rank {rank} has a dependent that does not exist; there are {count} nodes"
                );
                return Err(self.fault(message));
            };
            let wait = OperationDependency {
                operation: index,
                is_begun: dependents.is_begun,
            };
            waits.push((who, wait));
        }
        Ok(())
    }

    /// Checks that every operation has the number of dependencies that it announces.
    fn check_announced(
        &self,
        rank: Rank,
        announced: &[u32],
        waits: &[(u32, OperationDependency)],
    ) -> Result<(), FileError> {
        let mut found = vec![0u32; announced.len()];
        for (who, _) in waits {
            found[*who as usize] += 1;
        }
        match found.iter().zip(announced).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(index) => Err(self.fault(format!(
                "node {index} of rank {rank} has {} dependencies, but says {}",
                found[index], announced[index]
            ))),
        }
    }

    /// Checks that the listed roots are the operations without dependencies.
    fn check_roots(&self, rank: Rank, roots: &[u8], announced: &[u32]) -> Result<(), FileError> {
        let listed = (0..roots.len())
            .step_by(4)
            .filter_map(|at| u32_at(roots, at));
        let mut listed: Vec<u32> = listed.collect();
        listed.sort_unstable();
        let mut free = (0..).zip(announced).filter(|&(_, &waits)| waits == 0);
        let is_same = listed
            .iter()
            .all(|&root| free.next().map(|free| free.0) == Some(root));
        if is_same && free.next().is_none() {
            return Ok(());
        }
        Err(self.fault(format!(
            "the list of roots of rank {rank} differs from the list of nodes without dependencies"
        )))
    }
}
