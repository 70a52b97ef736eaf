//! Profiles and execution traces of PyTorch: one JSON file for each rank, plain or packed with gzip.
//!
//! * A *profile* is the file that `export_chrome_trace` of `torch.profiler` writes (Kineto): `traceEvents` with the kernels of the GPU and
//!   the calls of the processor, and `distributedInfo` with the rank and its groups. NCCL's kernels have the details of their
//!   communication, which Kineto copies from the processor's event `record_param_comms`.
//! * An *execution trace* is the file of `ExecutionTraceObserver`: `nodes`, among them `record_param_comms`. It has no times, unless
//!   Chakra's `chakra_trace_link` has added them.
//!
//! Each rank becomes a chain of computations beside its communications; the rules are in `timeline`. Decisions:
//!
//! * The duration of a communication is not used, as the simulation finds its own. Neither is waiting for it.
//! * Time in which the GPU does nothing, and nothing communicates, is a computation: the processor works.
//! * With annotations `ProfilerStep#N`, only kernels that the processor started within them are replayed: all ranks call the same
//!   collectives in a step, but recording begins and ends at any moment.
//! * The size of a collective is the larger of the bytes that the rank brings in and gets.
//! * An all-to-all whose parts are listed becomes a message for each part.
//! * A broadcast or reduce has the root that `record_param_comms` names, all other collectives with a root the first rank of the group.
//! * Groups have the ranks of the comm-group file, else those of the call, else those of `pg_config` or the node `process_group:init`.
//! * Calls without a kernel of their own, as in `batch_isend_irecv`, belong to the next kernel of NCCL that their thread starts, and
//!   run together.

mod build;
mod call;
mod files;
mod kineto;
mod nodes;
mod profile;
mod skipped;
#[cfg(test)]
mod tests;
mod timeline;
mod value;

pub use files::{PytorchFile, job_name, pytorch_files};

use crate::groups::{
    AddGroupError, Groups, GroupsTooLarge, Interned, Members, check_members, noted_groups,
    parse_groups,
};
use crate::packed::unpacked;
use crate::text::{Source, read_text, refused, shown};
use build::{At, Build, OperationName};
use call::{Call, CallFault};
use clearway_input::InputKind;
use clearway_workload::graph::{MOST_TASKS, Rank};
use clearway_workload::program::{Expand, JobProgram, OperationId, ProgramError, RankProgram};
use clearway_workload::{FileError, FileWarning, Graph, WorkloadError};
use kineto::{Session, session};
use nodes::node_session;
use profile::read_profile;
use skipped::Skipped;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use timeline::{ItemKind, schedule};

/// The traces of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PytorchTrace {
    /// Operations of the ranks.
    pub program: JobProgram,
    /// Warnings about parts that are read but not simulated.
    pub warnings: Vec<FileWarning>,
    /// The file of each rank, as the user named it.
    files: Vec<String>,
    /// Names and times of the operations of each rank.
    names: Vec<Vec<OperationName>>,
}

impl PytorchTrace {
    /// The tasks of the traces; `expand` converts collectives to messages.
    ///
    /// # Errors
    /// If sends, receives and collectives do not match or wait for each other in a cycle, with file, rank and time.
    pub fn graph(&self, expand: &mut Expand<'_>) -> Result<Graph, FileError> {
        self.program
            .graph(expand)
            .map_err(|error| self.located(&error))
    }

    fn operation_name(&self, OperationId { rank, index }: OperationId) -> String {
        let OperationName { call, at } = &self.names[rank.index()][index as usize];
        let call = call.as_deref().unwrap_or("a computation");
        format!("`{}` of rank {rank} {at}", shown(call))
    }

    fn located(&self, error: &ProgramError) -> FileError {
        let name = |id: OperationId| self.operation_name(id);
        let file = &self.files[error.operation().rank.index()];
        let fix = match error {
            ProgramError::Expansion { .. } | ProgramError::TooManyBytes { .. } => error.fix(),
            _ => format!(
                "{}; ranks whose recordings begin or end at different moments have different calls: choose whole steps with `profiler-steps`",
                error.fix()
            ),
        };
        let fault = Source { file }.fault(0, None, error.message(&name));
        fault.fix(fix)
    }
}

/// Reads the traces of a job from the file of one rank or the folder of all, with the groups of the comm-group file `groups` if there is
/// one. `steps` are the numbers of the profiler's steps to replay, all if it is empty.
///
/// # Errors
/// If a trace is missing, or at the first invalid part.
pub fn read_pytorch(
    path: &Path,
    groups: Option<&Path>,
    steps: &[u32],
) -> Result<PytorchTrace, WorkloadError> {
    let files = pytorch_files(path).map_err(|reason| WorkloadError::Unreadable {
        file: path.display().to_string(),
        reason: reason.to_string(),
        fix: "name a file or a folder that you may read and that has such traces".into(),
    })?;
    let mut reader = PytorchReader::new(files.len() as u32).with_steps(steps);
    if let Some(path) = groups {
        reader.groups(
            &path.display().to_string(),
            &read_text(path, InputKind::GROUPS)?,
        )?;
    }
    for PytorchFile { path, rank } in files {
        let name = path.display().to_string();
        let file = clearway_input::open(&path, InputKind::TRACE);
        let file = file.map_err(|error| refused(&path, &error))?;
        reader.read(&name, rank, file)?;
    }
    Ok(reader.finish())
}

/// Reads the traces of a job, file by file.
#[derive(Debug)]
pub struct PytorchReader {
    ranks: u32,
    /// The groups of the comm-group file.
    groups: Groups,
    steps: Vec<u32>,
    interned: Interned,
    /// Operations of all ranks so far.
    operations: usize,
    groups_of_program: JobProgram,
    found: BTreeMap<u32, ReadRank>,
    skipped: BTreeMap<Skipped, (String, String, usize)>,
}

/// A rank whose trace has been read.
#[derive(Debug)]
struct ReadRank {
    file: String,
    program: RankProgram,
    names: Vec<OperationName>,
}

impl PytorchReader {
    /// Creates a reader of the traces of `ranks` ranks.
    pub fn new(ranks: u32) -> Self {
        Self {
            ranks,
            groups: Groups::default(),
            steps: Vec::new(),
            interned: Interned::default(),
            operations: 0,
            groups_of_program: JobProgram::default(),
            found: BTreeMap::new(),
            skipped: BTreeMap::new(),
        }
    }

    /// Chooses the profiler's steps to replay by their numbers: all if there are none.
    #[must_use]
    pub fn with_steps(self, steps: &[u32]) -> Self {
        let steps = steps.to_vec();
        Self { steps, ..self }
    }

    /// Reads the groups of the comm-group file `text`, which take precedence over the groups in traces; errors call the file `name`.
    ///
    /// # Errors
    /// If the text is not JSON with a list of ranks under each name, or if the ranks do not exist.
    pub fn groups(&mut self, name: &str, text: &str) -> Result<(), FileError> {
        self.groups = parse_groups(name, text, self.ranks)?;
        Ok(())
    }

    /// Reads the trace of a rank; errors call the file `name`. `rank` is the rank in the name of the file, if it is there.
    ///
    /// # Errors
    /// At the first invalid part, with a line if the file is not JSON. [`PytorchTrace::graph`] finds faults that involve several ranks.
    pub fn read(
        &mut self,
        name: &str,
        rank: Option<u32>,
        reader: impl Read,
    ) -> Result<(), FileError> {
        let source = Source { file: name };
        let broken = |error: std::io::Error| {
            let fault = source.fault(0, None, format!("the trace cannot be read: {error}"));
            fault.fix("restore the file if it was cut off or changed")
        };
        let content = unpacked(source, reader)?.map_err(broken)?;
        let mut profile = read_profile(source, content)?;
        let info = std::mem::take(&mut profile.info);
        let rank = self.rank(source, rank, (info.rank, info.world_size))?;
        let fault = |fault: CallFault| {
            let message = format!("rank {rank} {}", fault.message);
            source.fault(0, None, message).fix(fault.fix)
        };
        let mut noted = Vec::new();
        let session = if profile.has_events {
            session(profile, &self.steps).map_err(fault)?
        } else if profile.has_nodes {
            if let Some(number) = self.steps.first() {
                let message = format!(
                    "rank {rank} has an execution trace, which has no `ProfilerStep#{number}`"
                );
                return Err(source
                    .fault(0, None, message)
                    .fix("leave `profiler-steps` out"));
            }
            let nodes = node_session(profile.nodes).map_err(fault)?;
            if nodes.session.is_untimed {
                self.skip(Skipped::Untimed, name, || format!("rank {rank}"));
            }
            for text in &nodes.groups {
                match noted_groups(text, self.ranks) {
                    Some(groups) => noted.extend(groups),
                    None => self.skip(Skipped::Groups, name, || format!("rank {rank}")),
                }
            }
            nodes.session
        } else {
            let message = format!("rank {rank} has neither `traceEvents` nor `nodes`");
            return Err(source.fault(0, None, message).fix(
                "name a file that `export_chrome_trace` or the execution trace observer of PyTorch wrote",
            ));
        };
        let noted = self.noted(source, rank, info.groups, noted)?;
        self.add(source, rank, session, &noted)
    }

    /// The rank of a file, from its name or content, which must agree.
    fn rank(
        &self,
        source: Source<'_>,
        named: Option<u32>,
        (noted, world): (Option<u32>, Option<u32>),
    ) -> Result<Rank, FileError> {
        let error = |message: String, fix: String| Err(source.fault(0, None, message).fix(fix));
        let files = self.ranks;
        let rank = match (named, noted) {
            (Some(named), Some(noted)) if named != noted => {
                return error(
                    format!("the file is called the trace of rank {named}, but its `distributedInfo` says rank {noted}"),
                    "rename the file, or name the folder of the traces, whose files may have any names".into(),
                );
            }
            (_, Some(rank)) | (Some(rank), None) => rank,
            (None, None) if files == 1 => 0,
            (None, None) => {
                return error(
                    "neither `distributedInfo` nor the name of the file says its rank".into(),
                    "call the files of all ranks `<prefix>.<rank>.json`, and name the first".into(),
                );
            }
        };
        if let Some(world) = world.filter(|&world| world != files) {
            return error(
                format!("the job has {world} ranks according to `distributedInfo`, but there are traces of {files}"),
                "record all ranks, and name the file of one of them if the names differ in the rank alone, else their folder".into(),
            );
        }
        if rank >= files {
            return error(
                format!("this is the trace of rank {rank}, but there are traces of {files} ranks"),
                "name the files of all ranks from 0, which may differ in the rank alone, or name their folder".into(),
            );
        }
        if let Some(other) = self.found.get(&rank) {
            return error(
                format!("this is a trace of rank {rank}, and so is {}", other.file),
                "keep one of them".into(),
            );
        }
        Ok(Rank(rank))
    }

    /// The groups that a trace lists.
    fn noted(
        &self,
        source: Source<'_>,
        rank: Rank,
        listed: Vec<(String, Vec<i64>)>,
        mut noted: Vec<(String, Members)>,
    ) -> Result<Groups, FileError> {
        for (name, ranks) in listed {
            let members = self.members(&ranks).map_err(|what| {
                let message = format!("group `{}` of rank {rank} {what}", shown(&name));
                source.fault(0, None, message).fix(GROUP_FIX)
            })?;
            noted.push((name, members));
        }
        let mut groups = Groups::default();
        for (name, members) in noted {
            groups.add(name, members).map_err(|error| {
                let (message, fix) = match error {
                    AddGroupError::TwoLists { group } => {
                        let group = shown(&group);
                        (format!("group `{group}` of rank {rank} is listed twice, with different ranks"), GROUP_FIX)
                    }
                    AddGroupError::TooMuch(GroupsTooLarge(what)) => {
                        (format!("rank {rank} lists {what}"), GroupsTooLarge::FIX)
                    }
                };
                source.fault(0, None, message).fix(fix)
            })?;
        }
        Ok(groups)
    }

    /// Members from a list; an empty list is all ranks.
    fn members(&self, ranks: &[i64]) -> Result<Members, String> {
        if ranks.is_empty() {
            return Ok(Members::All);
        }
        let number = |&rank: &i64| {
            let number = u32::try_from(rank).ok();
            number.map(Rank).ok_or_else(|| format!("has rank {rank}"))
        };
        let ranks: Vec<Rank> = ranks.iter().map(number).collect::<Result<_, _>>()?;
        check_members(&ranks, self.ranks)?;
        Ok(Members::from_ranks(ranks, self.ranks))
    }

    /// Adds the operations of a rank.
    fn add(
        &mut self,
        source: Source<'_>,
        rank: Rank,
        session: Session,
        noted: &Groups,
    ) -> Result<(), FileError> {
        let is_empty =
            |window: &timeline::Window| window.works.is_empty() && window.talks.is_empty();
        if session.windows.iter().all(is_empty) {
            let message = format!("rank {rank} has no kernels of the GPU and no communications");
            return Err(source.fault(0, None, message).fix(call::RECORD_AGAIN));
        }
        let is_long = |window: &timeline::Window| window.to - window.from > MOST_WINDOW;
        if session.windows.iter().any(is_long) {
            let message = format!("rank {rank} has kernels that lie more than 213 days apart");
            let fix = "restore the file if it was changed";
            return Err(source.fault(0, None, message).fix(fix));
        }
        if session.outside > 0 {
            self.skip(Skipped::Outside, source.file, || format!("rank {rank}"));
        }
        if session.windows.iter().all(|window| window.talks.is_empty()) {
            self.skip(Skipped::Silent, source.file, || format!("rank {rank}"));
        }
        let mut build = Build::default();
        let mut last = None;
        for (window, calls) in session.windows.iter().zip(&session.calls) {
            let first = build.ends.len();
            for item in schedule(window, &session.processor) {
                let after = item.after.iter().map(|&other| build.ends[first + other]);
                let mut after: Vec<u32> = after.collect();
                if after.is_empty() {
                    after.extend(last);
                }
                let at = match session.is_untimed {
                    false => At::Time(item.at),
                    true => At::Number(item.at + 1),
                };
                match item.kind {
                    ItemKind::Compute(nanoseconds) => build.compute(nanoseconds, at, &after),
                    ItemKind::Talk(talk) => {
                        self.talk(source, rank, (&calls[talk], at), noted, &after, &mut build)?;
                    }
                }
                self.count(source, rank, build.operations.len())?;
            }
            last = build.ends.last().copied();
        }
        self.operations += build.operations.len();
        let read = ReadRank {
            file: source.file.to_owned(),
            program: RankProgram::new(build.operations, build.waits),
            names: build.names,
        };
        self.found.insert(rank.0, read);
        Ok(())
    }

    /// Checks that the operations of all ranks fit.
    fn count(&self, source: Source<'_>, rank: Rank, own: usize) -> Result<(), FileError> {
        if self.operations + own <= MOST_TASKS as usize {
            return Ok(());
        }
        let message = format!(
            "with rank {rank} the traces have more than {MOST_TASKS} computations and communications"
        );
        let fault = source.fault(0, None, message);
        Err(fault.fix("choose fewer steps with `profiler-steps`"))
    }

    /// Adds the calls of a communication, which run together.
    fn talk(
        &mut self,
        source: Source<'_>,
        rank: Rank,
        (calls, at): (&[Call], At),
        noted: &Groups,
        after: &[u32],
        build: &mut Build,
    ) -> Result<(), FileError> {
        let first = build.operations.len();
        for call in calls {
            let title = || format!("`{}` of rank {rank} {at}", shown(&call.name));
            let fault = |CallFault { message, fix }: CallFault| {
                let message = format!("{} {message}", title());
                source.fault(0, None, message).fix(fix)
            };
            let group = self.group(call, noted).map_err(fault)?;
            let members = &self.groups_of_program.groups[group as usize];
            let added = call.add_operations(rank, (group, members), &mut build.operations);
            if let Some(approximation) = added.map_err(fault)? {
                self.skip(Skipped::Approximation(approximation), source.file, title);
            }
            build.name(&call.name, at);
        }
        build.end(first, at, after);
        Ok(())
    }

    /// Number of the group of a call.
    fn group(&mut self, call: &Call, noted: &Groups) -> Result<u32, CallFault> {
        let name = call.group.as_deref().unwrap_or("");
        let fault = |message: String| CallFault {
            message,
            fix: GROUP_FIX.into(),
        };
        let listed = call
            .ranks
            .as_ref()
            .and_then(|ranks| ranks.listed(self.ranks));
        let of_call = listed.map(|ranks| self.members(&ranks)).transpose();
        let of_call = of_call.map_err(|what| fault(format!("is a call on a group that {what}")))?;
        let is_all = call.group_size == Some(self.ranks.into());
        let members = self.groups.get(name).cloned();
        let members = members.or(of_call).or_else(|| noted.get(name).cloned());
        let members = members.or(is_all.then_some(Members::All)).ok_or_else(|| {
            if call.group.is_none() {
                return CallFault {
                    message: "does not name its group".into(),
                    fix: call::RECORD_AGAIN.into(),
                };
            }
            fault(format!(
                "is a call on group `{}`, whose ranks are not known",
                shown(name)
            ))
        })?;
        let members = match call.root() {
            Some(root) => members.led_by(root, self.ranks),
            None => members,
        };
        let program = &mut self.groups_of_program;
        let number = self.interned.number(program, name, &members, self.ranks);
        number.map_err(|GroupsTooLarge(what)| CallFault {
            message: format!("is a call with whose group the traces have {what}"),
            fix: GroupsTooLarge::FIX.into(),
        })
    }

    /// Counts a part that is not simulated; for the first part of its kind, `name` returns its name in the warning.
    fn skip(&mut self, what: Skipped, file: &str, name: impl FnOnce() -> String) {
        let first = || (file.to_owned(), name(), 0);
        self.skipped.entry(what).or_insert_with(first).2 += 1;
    }

    /// The traces of all ranks.
    ///
    /// # Panics
    /// If ranks are missing.
    pub fn finish(self) -> PytorchTrace {
        assert_eq!(
            self.found.len(),
            self.ranks as usize,
            "a trace for each rank"
        );
        let mut program = self.groups_of_program;
        let (mut files, mut names) = (Vec::new(), Vec::new());
        for read in self.found.into_values() {
            program.ranks.push(read.program);
            files.push(read.file);
            names.push(read.names);
        }
        let warnings = self
            .skipped
            .into_iter()
            .map(|(what, (file, first, count))| {
                let others = match count {
                    1 => String::new(),
                    count => format!(" (and {} more like it)", count - 1),
                };
                FileWarning {
                    file,
                    line: 0,
                    message: format!("{first} {}{others}", what.message()),
                }
            });
        PytorchTrace {
            program,
            warnings: warnings.collect(),
            files,
            names,
        }
    }
}

/// Advice about a group whose ranks are wrong or unknown.
const GROUP_FIX: &str =
    "list the ranks of the group in a comm-group file, and name it with `comm-groups`";

/// Maximum length of a window in nanoseconds: as many picoseconds as 64 bits hold.
const MOST_WINDOW: i64 = (u64::MAX / 1000) as i64;
