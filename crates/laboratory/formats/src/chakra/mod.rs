//! Execution traces of Chakra, which ASTRA-sim runs: one file for each rank, `<prefix>.<rank>.et`, with the rank as `0` or `12` but not
//! `00` or `+1`.
//!
//! A file is a stream of protobuf messages, each after its length as a varint: first the global metadata, then nodes. The file may be
//! compressed with gzip. Nodes become the operations of a [`JobProgram`], in the order of their ids; operations wait for both kinds of
//! dependencies:
//!
//! * a computation occupies the GPU (unit 0) or, if `is_cpu_op` is true or missing, the processor (unit 1) for `duration_micros`;
//! * sends and receives match by sender, receiver and `comm_tag`;
//! * a collective is a call on the group that `pg_name` names: all ranks for `""` and `"0"`, otherwise the ranks in a comm-group file or in
//!   the metadata node of PyTorch. In PyTorch's node an empty list means all ranks. `comm_size` is the contribution of a rank, as in
//!   ASTRA-sim: one part for an all-gather and a gather. The n-th call of each rank on a group matches the n-th calls of the other ranks.
//!
//! Integers may be attributes of any integer type, and the version in the file does not matter. Differences from ASTRA-sim:
//!
//! * the GPU begins a communication as soon as its dependencies are over (there: one at a time);
//! * only computations without a duration are estimated from `num_ops` and `tensor_size`, with a [`Roofline`], and run on the GPU unless
//!   `is_cpu_op` says otherwise (there: with `roofline-enabled`, all computations of the GPU). Without a roofline they take no time, as
//!   memory nodes do, with warnings;
//! * a send without a matching receive is an error, and so is a collective that some ranks do not call (there: the run hangs);
//! * a dependency on a missing node is ignored, with a warning: PyTorch names parents that it does not write (there: an error);
//! * `comm_priority` and unknown attributes are ignored, with warnings;
//!
//! A collective along some dimensions of the network (`involved_dim`) is a call of the ranks that have the other coordinates in common, by
//! the [dimensions](ChakraOptions::dimensions) that the reader is given.

mod attributes;
mod dimensions;
mod files;
mod node;
mod proto;
mod roofline;
#[cfg(test)]
mod tests;
mod write;

pub use roofline::Roofline;
pub use write::{ChakraFiles, ChakraWriteError, write_chakra};

use crate::groups::{
    AddGroupError, Groups, GroupsTooLarge, Interned, Members, Names, is_all, noted_groups,
    parse_groups,
};
use crate::packed::{PACKED, unpacked};
use crate::text::{Source, read_text, refused, shown};
use attributes::{Unused, unused};
use clearway_input::InputKind;
use clearway_units::Bytes;
use clearway_workload::counted;
use clearway_workload::graph::{MOST_TASKS, Rank};
use clearway_workload::program::{
    CollectiveKind, Expand, JobProgram, Operation, OperationDependency, OperationId, ProgramError,
    RankProgram,
};
use clearway_workload::{FileError, FileWarning, Graph, WorkloadError};
pub use dimensions::ChakraOptions;
use dimensions::row;
pub use files::{prefix_of, rank_files};
use node::{Action, Fault, METADATA, Skipped, action, shown_node};
use proto::{Frames, GlobalMetadata, Node};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The traces of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChakraTrace {
    /// Operations of the ranks.
    pub program: JobProgram,
    /// Warnings about parts that are read but not simulated.
    pub warnings: Vec<FileWarning>,
    /// The file of each rank, as the user named it.
    files: Vec<String>,
    /// The ids of the nodes of each rank.
    nodes: Vec<Vec<u64>>,
}

impl ChakraTrace {
    /// The tasks of the traces; `expand` converts collectives to messages.
    ///
    /// # Errors
    /// If sends, receives and collectives do not match or wait for each other in a cycle, with file, rank and node.
    pub fn graph(&self, expand: &mut Expand<'_>) -> Result<Graph, FileError> {
        self.program
            .graph(expand)
            .map_err(|error| self.located(&error))
    }

    /// Warning about receives that are larger than their messages, if there are any.
    pub fn longer_receives(&self) -> Option<FileWarning> {
        let longer = self.program.longer_receives()?;
        Some(FileWarning {
            file: self.files[longer.receive.rank.index()].clone(),
            line: 0,
            message: longer.message(&|id| self.node_name(id)),
        })
    }

    fn node_name(&self, OperationId { rank, index }: OperationId) -> String {
        let node = self.nodes[rank.index()][index as usize];
        format!("node {node} of rank {rank}")
    }

    fn located(&self, error: &ProgramError) -> FileError {
        let name = |id: OperationId| self.node_name(id);
        let file = &self.files[error.operation().rank.index()];
        let fault = Source { file }.fault(0, None, error.message(&name));
        fault.fix(error.fix())
    }
}

/// Reads the traces `<prefix>.0.et`, `<prefix>.1.et` and so on, with the groups of the comm-group file `groups` if there is one.
///
/// # Errors
/// If a trace is missing, or at the first invalid node.
pub fn read_chakra(
    prefix: &Path,
    groups: Option<&Path>,
    options: ChakraOptions,
) -> Result<ChakraTrace, WorkloadError> {
    let files = all_ranks(prefix)?;
    let mut reader = ChakraReader::new(files.len() as u32, options);
    if let Some(path) = groups {
        reader.groups(
            &path.display().to_string(),
            &read_text(path, InputKind::GROUPS)?,
        )?;
    }
    for path in files {
        let name = path.display().to_string();
        let file = clearway_input::open(&path, InputKind::TRACE);
        let file = file.map_err(|error| refused(&path, &error))?;
        reader.rank(&name, file)?;
    }
    Ok(reader.finish())
}

/// Advice about a rank without a trace.
const NO_RANK: &str = "name a file that exists and that you may read";

/// The files of all ranks: the files with the prefix, none of which may be missing.
fn all_ranks(prefix: &Path) -> Result<Vec<PathBuf>, WorkloadError> {
    let unreadable = |reason: String| WorkloadError::Unreadable {
        file: format!("{}.0.et", prefix.display()),
        reason,
        fix: NO_RANK.into(),
    };
    let files = rank_files(prefix).map_err(|error| unreadable(error.to_string()))?;
    for (expected, (&rank, path)) in (0..).zip(&files) {
        if rank != expected {
            let found = path.display();
            return Err(WorkloadError::Unreadable {
                file: format!("{}.{expected}.et", prefix.display()),
                reason: format!("it does not exist, but {found} does"),
                fix: NO_RANK.into(),
            });
        }
    }
    match files.is_empty() {
        true => Err(unreadable("there are no traces with this prefix".into())),
        false => Ok(files.into_values().collect()),
    }
}

/// Reads the traces of a job, rank by rank.
#[derive(Debug)]
pub struct ChakraReader {
    ranks: u32,
    /// The groups of the comm-group file.
    groups: Groups,
    options: ChakraOptions,
    interned: Interned,
    /// Nodes and dependencies of all ranks so far.
    counts: (usize, usize),
    skipped: BTreeMap<Skipped, (usize, String, u64)>,
    trace: ChakraTrace,
}

impl ChakraReader {
    /// Creates a reader of the traces of `ranks` ranks.
    pub fn new(ranks: u32, options: ChakraOptions) -> Self {
        Self {
            ranks,
            groups: Groups::default(),
            options,
            interned: Interned::default(),
            counts: (0, 0),
            skipped: BTreeMap::new(),
            trace: ChakraTrace {
                program: JobProgram::default(),
                warnings: Vec::new(),
                files: Vec::new(),
                nodes: Vec::new(),
            },
        }
    }

    /// Reads the groups of the comm-group file `text`, which take precedence over the groups in traces; errors call the file `name`.
    ///
    /// # Errors
    /// If the text is not JSON with a list of ranks under each name, or if the ranks do not exist.
    pub fn groups(&mut self, name: &str, text: &str) -> Result<(), FileError> {
        self.groups = parse_groups(name, text, self.ranks)?;
        Ok(())
    }

    /// Reads the trace of the next rank; errors call the file `name`. Errors have no line (0) but name rank and node.
    ///
    /// # Errors
    /// At the first invalid node. [`ChakraTrace::graph`] finds faults that involve several ranks.
    ///
    /// # Panics
    /// If all ranks have been read.
    pub fn rank(&mut self, name: &str, reader: impl Read) -> Result<(), FileError> {
        let rank = Rank(self.trace.files.len() as u32);
        assert!(rank.0 < self.ranks, "a trace for each rank, and no more");
        self.trace.files.push(name.into());
        let source = Source { file: name };
        let mut pending = Pending::default();
        read_nodes(source, rank, reader, |node| {
            self.node(source, rank, &node, &mut pending)
        })?;
        let Pending {
            mut nodes,
            needed,
            names,
            noted,
            seen,
        } = pending;
        drop(seen);
        self.count(nodes.len(), needed.len(), rank)
            .map_err(|Fault { message, fix }| source.fault(0, None, message).fix(fix))?;
        nodes.sort_by_key(|node| node.id);
        let ids: Vec<u64> = nodes.iter().map(|node| node.id).collect();
        let mut groups = Vec::with_capacity(names.all().len());
        for (index, name) in (0..).zip(names.all()) {
            groups.push(self.group(name, &noted).map_err(|GroupsTooLarge(what)| {
                let first = nodes.iter().find(|node| node.action.calls_on(index));
                let node = first.map_or(0, |node| node.id);
                let message = format!(
                    "with group `{}`, which node {node} of rank {rank} calls on, the traces have {what}",
                    shown(name)
                );
                source.fault(0, None, message).fix(GroupsTooLarge::FIX)
            })?);
        }
        let names = names.all();
        let mut operations = Vec::with_capacity(nodes.len());
        let mut waits = Vec::with_capacity(needed.len());
        for (index, node) in (0..).zip(&nodes) {
            let operation = match node.action {
                Ready::Operation(operation) => Ok(operation),
                Ready::Call { kind, bytes, group } => {
                    let group = group as usize;
                    call((kind, bytes), &names[group], groups[group])
                }
            };
            operations.push(operation.map_err(|Fault { message, fix }| {
                let message = format!("node {} of rank {rank} {message}", node.id);
                source.fault(0, None, message).fix(fix)
            })?);
            for dependency in &needed[node.needed.clone()] {
                let Ok(other) = ids.binary_search(dependency) else {
                    let name = || format!("node {} of rank {rank}", node.id);
                    self.skip_first(Skipped::Parent, rank, name);
                    continue;
                };
                waits.push((index, OperationDependency::over(other as u32)));
            }
        }
        let program = RankProgram::new(operations, waits);
        self.trace.program.ranks.push(program);
        self.trace.nodes.push(ids);
        Ok(())
    }

    /// Keeps the parts of a node that are needed once all nodes have been read.
    fn node(
        &mut self,
        source: Source<'_>,
        rank: Rank,
        node: &Node,
        pending: &mut Pending,
    ) -> Result<(), FileError> {
        pending
            .admit(node, rank)
            .map_err(|Fault { message, fix }| source.fault(0, None, message).fix(fix))?;
        let inputs = node.inputs.as_ref().filter(|_| node.kind == METADATA);
        if let Some(inputs) = inputs.filter(|inputs| inputs.values.contains("pg_name")) {
            match noted_groups(&inputs.values, self.ranks) {
                Some(noted) => pending
                    .note(noted)
                    .map_err(|error| cannot_note(source, &shown_node(node, rank), error))?,
                None => self.skip(Skipped::Groups, node, rank),
            }
        }
        let action = action(node, rank, self.options.roofline);
        let (action, skipped) = action.map_err(|Fault { message, fix }| {
            let message = format!("{} {message}", shown_node(node, rank));
            source.fault(0, None, message).fix(fix)
        })?;
        if let Some(what) = skipped {
            self.skip(what, node, rank);
        }
        for Unused { what, name } in unused(node) {
            let node = || shown_node(node, rank);
            self.skip_first(what, rank, || match name {
                Some(name) => format!("attribute `{}` of {}", shown(name), node()),
                None => node(),
            });
        }
        let action = match action {
            Action::Operation(operation) => Ready::Operation(operation),
            Action::Call {
                kind,
                bytes,
                group,
                dimensions,
            } => {
                let group = match dimensions {
                    None => group.into(),
                    Some(involved) => self.note_row((source, involved), (node, rank), pending)?,
                };
                let number = pending.names.number(&group);
                let group = number.map_err(|GroupsTooLarge(what)| {
                    let node = shown_node(node, rank);
                    let message = format!("with {node} the trace calls on {what}");
                    source.fault(0, None, message).fix(GroupsTooLarge::FIX)
                })?;
                Ready::Call { kind, bytes, group }
            }
        };
        let first = pending.needed.len();
        pending
            .needed
            .extend(node.ctrl_deps.iter().chain(&node.data_deps));
        pending.nodes.push(ReadNode {
            id: node.id,
            action,
            needed: first..pending.needed.len(),
        });
        Ok(())
    }

    /// The name of the group of the ranks that differ from `rank` in the `involved` dimensions alone.
    fn note_row(
        &self,
        (source, involved): (Source<'_>, &[bool]),
        (node, rank): (&Node, Rank),
        pending: &mut Pending,
    ) -> Result<String, FileError> {
        let members = row(&self.options.dimensions, self.ranks, (rank, involved));
        let members = members.map_err(|Fault { message, fix }| {
            let message = format!("{} {message}", shown_node(node, rank));
            source.fault(0, None, message).fix(fix)
        })?;
        let flags = involved
            .iter()
            .map(|is_involved| if *is_involved { '1' } else { '0' });
        let name = format!("dimensions {}", flags.collect::<String>());
        pending
            .note(vec![(
                name.clone(),
                Members::from_ranks(members, self.ranks),
            )])
            .map_err(|error| cannot_note(source, &shown_node(node, rank), error))?;
        Ok(name)
    }

    /// Counts the nodes and dependencies of another rank.
    fn count(&mut self, nodes: usize, dependencies: usize, rank: Rank) -> Result<(), Fault> {
        self.counts.0 += nodes;
        self.counts.1 += dependencies;
        if self.counts.0 > MOST_NODES_OF_ALL || self.counts.1 > MOST_DEPENDENCIES_OF_ALL {
            return Err(Fault {
                message: format!(
                    "with rank {rank} the traces have more than {MOST_NODES_OF_ALL} nodes or {MOST_DEPENDENCIES_OF_ALL} dependencies"
                ),
                fix: "run a trace of fewer ranks or iterations".into(),
            });
        }
        Ok(())
    }

    fn skip(&mut self, what: Skipped, node: &Node, rank: Rank) {
        self.skip_first(what, rank, || shown_node(node, rank));
    }

    /// Counts a part that is not simulated; for the first part of its kind, `name` returns its name in the warning.
    fn skip_first(&mut self, what: Skipped, rank: Rank, name: impl FnOnce() -> String) {
        let first = || (rank.index(), name(), 0);
        self.skipped.entry(what).or_insert_with(first).2 += 1;
    }

    /// Number of the group `name` and its number of ranks, if the ranks are known.
    fn group(&mut self, name: &str, noted: &Groups) -> Result<Option<(u32, u64)>, GroupsTooLarge> {
        let members = match is_all(name) {
            true => Some(&Members::All),
            false => self.groups.get(name).or_else(|| noted.get(name)),
        };
        let Some(members) = members else {
            return Ok(None);
        };
        let program = &mut self.trace.program;
        let number = self.interned.number(program, name, members, self.ranks)?;
        Ok(Some((number, members.count(self.ranks) as u64)))
    }

    /// The traces of all ranks.
    ///
    /// # Panics
    /// If ranks are missing.
    pub fn finish(mut self) -> ChakraTrace {
        let read = self.trace.files.len();
        assert_eq!(read, self.ranks as usize, "a trace for each rank");
        for (what, (file, first, count)) in self.skipped {
            let others = match count {
                1 => String::new(),
                count => format!(" (and {} more like it)", count - 1),
            };
            self.trace.warnings.push(FileWarning {
                file: self.trace.files[file].clone(),
                line: 0,
                message: format!("{first} {}{others}", what.message()),
            });
        }
        self.trace
    }
}

/// The nodes of a rank whose trace is being read.
#[derive(Default)]
struct Pending {
    nodes: Vec<ReadNode>,
    /// The ids of all nodes that others depend on.
    needed: Vec<u64>,
    /// The names of the groups of collectives.
    names: Names,
    /// The groups that metadata nodes list.
    noted: Groups,
    /// The ids of all nodes.
    seen: FxHashSet<u64>,
}

/// Maximum number of nodes of a rank, and of dependencies: each takes some 2 GB during reading. A compressed file of a few megabytes can
/// hold more, enough to fill the memory.
const MOST_NODES: usize = 1 << 24;
const MOST_DEPENDENCIES: usize = 1 << 26;

/// Maximum number of nodes of all ranks together: the maximum number of tasks of a graph, some 2 GB with the same number of dependencies.
const MOST_NODES_OF_ALL: usize = MOST_TASKS as usize;
const MOST_DEPENDENCIES_OF_ALL: usize = 1 << 27;

impl Pending {
    /// Rejects a node that is invalid in this trace, before any part of the node is stored.
    fn admit(&mut self, node: &Node, rank: Rank) -> Result<(), Fault> {
        if node.id == 0 && node.kind == 0 && node.name.is_empty() {
            return Err(Fault {
                message: format!(
                    "after {}, rank {rank} has a node without id, name and type",
                    counted(self.nodes.len(), "node")
                ),
                fix: "restore the file if it was changed: zeros at its end are not nodes".into(),
            });
        }
        if !self.seen.insert(node.id) {
            return Err(Fault {
                message: format!("node {} of rank {rank} stands twice", node.id),
                fix: "give each node its own id".into(),
            });
        }
        let dependencies = self.needed.len() + node.ctrl_deps.len() + node.data_deps.len();
        if self.nodes.len() >= MOST_NODES || dependencies > MOST_DEPENDENCIES {
            return Err(Fault {
                message: format!(
                    "rank {rank} has more than {MOST_NODES} nodes or {MOST_DEPENDENCIES} dependencies"
                ),
                fix: "split the trace".into(),
            });
        }
        Ok(())
    }

    /// Stores the groups that a metadata node lists.
    fn note(&mut self, groups: Vec<(String, Members)>) -> Result<(), AddGroupError> {
        groups
            .into_iter()
            .try_for_each(|(group, members)| self.noted.add(group, members))
    }
}

/// Error about groups in `node` that cannot be stored.
fn cannot_note(source: Source<'_>, node: &str, error: AddGroupError) -> FileError {
    match error {
        AddGroupError::TwoLists { group } => {
            let group = shown(&group);
            let message =
                format!("with {node} group `{group}` is listed twice, with different ranks");
            let fault = source.fault(0, None, message);
            fault.fix("list each group once in the metadata, or give each group its own name")
        }
        AddGroupError::TooMuch(GroupsTooLarge(what)) => {
            let message = format!("with {node} the trace lists {what}");
            source.fault(0, None, message).fix(GroupsTooLarge::FIX)
        }
    }
}

struct ReadNode {
    id: u64,
    action: Ready,
    /// Range of the node's dependencies in `Pending::needed`.
    needed: Range<usize>,
}

/// Operation that a node becomes, before its group is known.
enum Ready {
    Operation(Operation),
    Call {
        kind: CollectiveKind,
        bytes: Bytes,
        group: u32,
    },
}

impl Ready {
    /// True if the operation is a call on the group with this number.
    fn calls_on(&self, number: u32) -> bool {
        matches!(self, Self::Call { group, .. } if *group == number)
    }
}

/// Collective call on the group `name`; `group` is its number and its number of ranks, if the ranks are known.
fn call(
    (kind, bytes): (CollectiveKind, Bytes),
    name: &str,
    group: Option<(u32, u64)>,
) -> Result<Operation, Fault> {
    let (group, ranks) = group.ok_or_else(|| Fault {
        message: format!(
            "calls on group `{}`, but the ranks of this group are not known",
            shown(name)
        ),
        fix: "name a comm-group file that lists it".into(),
    })?;
    let parts = match kind {
        CollectiveKind::AllGather | CollectiveKind::Gather => ranks,
        _ => 1,
    };
    let bytes = bytes.as_u64().checked_mul(parts).ok_or_else(|| Fault {
        message: "brings in more than 2^64 bytes with all others".into(),
        fix: "write a smaller `comm_size`".into(),
    })?;
    let bytes = Bytes::new(bytes);
    Ok(Operation::Collective { kind, bytes, group })
}

/// True if `content` begins like a trace: compressed, or with a message that begins with the version of the schema.
pub(crate) fn begins_as_a_trace(content: &[u8]) -> bool {
    // Key of field 1, a text that begins with a digit.
    const VERSION: u8 = 0x0a;
    let length = content.iter().take(5).position(|&byte| byte < 0x80);
    let metadata = length.map_or(&[][..], |last| &content[last + 1..]);
    let is_plain = matches!(metadata, [VERSION, _, first, ..] if first.is_ascii_digit());
    is_plain || content.starts_with(&PACKED)
}

fn read_nodes(
    source: Source<'_>,
    rank: Rank,
    reader: impl Read,
    mut take: impl FnMut(Node) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let broken = |count: u64, error: &std::io::Error| {
        let message =
            format!("message {count} of the trace of rank {rank} cannot be read: {error}");
        let fault = source.fault(0, None, message);
        fault.fix("restore the file if it was cut off or changed; a trace is a stream of protobuf messages of Chakra, plain or packed with gzip")
    };
    let whole = unpacked(source, reader)?.map_err(|error| broken(0, &error))?;
    let mut frames = Frames::new(whole);
    let metadata = frames.next::<GlobalMetadata>();
    if metadata.map_err(|error| broken(0, &error))?.is_none() {
        let message = format!("the trace of rank {rank} is empty");
        let fault = source.fault(0, None, message);
        return Err(fault.fix("write a trace that begins with the global metadata"));
    }
    loop {
        let count = frames.count;
        match frames.next::<Node>() {
            Ok(Some(node)) => take(node)?,
            Ok(None) => return Ok(()),
            Err(error) => return Err(broken(count, &error)),
        }
    }
}
