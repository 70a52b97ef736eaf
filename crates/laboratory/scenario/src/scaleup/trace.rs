//! Jobs from traces on a scale-up fabric.

use super::limits::MOST_OPERATIONS;
use super::scenario::ScaleupScenario;
use super::workload::ScaleupTraceSettings;
use crate::generate::{TraceFile, TraceSettings, WorkloadDefinition};
use crate::{ScenarioError, SourceLocation};
use clearway_formats::ChakraOptions;
use clearway_scaleup::{
    CallKind, FLIT_BYTES, GroupCall, GroupId, IterationLog, MOST_CALLS, RankJob, RankTask,
    RankTasks, TaskWait, Work,
};
use clearway_units::{HostId, Span};
use clearway_workload::graph::{Graph, TaskId};
use clearway_workload::program::{Collective, JobProgram, Operation};
use clearway_workload::{
    CollectiveCall, CollectiveKind, ExpansionFault, FileWarning, WorkloadError,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Job from a trace, with the facts that are needed after the run.
#[derive(Debug)]
pub struct ScaleupJob {
    /// Label of the job in results.
    pub label: String,
    /// Number of the section of the workload, from zero.
    pub section: u32,
    /// The GPU of each rank.
    pub gpus: Vec<HostId>,
    /// Number of iterations.
    pub iterations: u32,
    /// The log of each rank.
    pub logs: Vec<IterationLog>,
}

/// Loaded job.
pub(super) struct Loaded {
    pub(super) job: ScaleupJob,
    /// The program of each rank.
    pub(super) programs: Vec<RankTasks>,
    /// Operations that the programs post.
    pub(super) operations: u64,
    pub(super) warnings: Vec<FileWarning>,
}

/// Groups of traces without duplicates, numbered after the groups of the sections.
pub(super) struct FurtherGroups {
    first: u32,
    groups: Vec<Vec<HostId>>,
    numbers: BTreeMap<Vec<HostId>, GroupId>,
}

impl FurtherGroups {
    /// Empty list of groups; new groups get numbers after the groups of `sections` sections.
    pub(super) fn after(sections: usize) -> Self {
        Self {
            first: sections as u32,
            groups: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// The group of `members`, which are in ascending order.
    fn group(&mut self, members: Vec<HostId>) -> GroupId {
        let next = GroupId(self.first + self.groups.len() as u32);
        *self.numbers.entry(members).or_insert_with_key(|members| {
            self.groups.push(members.clone());
            next
        })
    }

    pub(super) fn into_groups(self) -> Vec<Vec<HostId>> {
        self.groups
    }
}

/// The job of a section with the group `own`.
pub(super) fn load(
    settings: &ScaleupTraceSettings,
    scenario: &ScaleupScenario,
    own: (GroupId, &[HostId]),
    further: &mut FurtherGroups,
) -> Result<Loaded, ScenarioError> {
    let trace = settings.of_packets();
    trace.check()?;
    let base_dir = scenario.base_dir.as_deref();
    let place = trace.find(base_dir)?;
    let options = ChakraOptions {
        roofline: trace.gpu.roofline()?,
        dimensions: Vec::new(),
    };
    let file = trace.open(&place, base_dir, options)?;
    let name = place.path.display().to_string();
    let ranks = own.1.len() as u32;
    check_ranks(&file, &name, ranks)?;
    let size = (ranks, settings.passes);
    file.graph(size, &mut refuse_what_switches_cannot)?;
    let (program, warnings) = file.into_program(size)?;
    refuse_messages(&program, &name)?;
    let collectives = program.collectives().map_err(|error| {
        let message = error.message(&|operation| operation.to_string());
        ScenarioError::at(&SourceLocation::Whole { file: name }, message, error.fix())
    })?;

    let mut calls = Calls::new(&program, scenario)?;
    for collective in &collectives {
        calls.add(collective, &program, own, further);
    }
    let operations = calls.check(settings.iterations)?;
    let shared: Arc<[GroupCall]> = calls.calls.into();
    let pace = (settings.time_scale, scenario.fabric.configuration.cycle);
    let logs: Vec<IterationLog> = own.1.iter().map(|_| IterationLog::default()).collect();
    let programs = program.ranks.iter().zip(&calls.parts).zip(&logs);
    let programs = programs.map(|((rank, parts), log)| {
        RankTasks::new(RankJob {
            tasks: tasks(rank, parts, pace),
            calls: Arc::clone(&shared),
            iterations: settings.iterations,
            log: log.clone(),
        })
    });
    Ok(Loaded {
        programs: programs.collect(),
        operations,
        warnings,
        job: ScaleupJob {
            label: place.label(),
            section: own.0.0,
            gpus: own.1.to_vec(),
            iterations: settings.iterations,
            logs,
        },
    })
}

fn check_ranks(file: &TraceFile, name: &str, members: u32) -> Result<(), ScenarioError> {
    match file.ranks() {
        Some(0) => {
            let fix = "name a trace that has ranks";
            Err(TraceSettings::fault("file", format!("{name} has no ranks"), fix).into())
        }
        Some(ranks) if ranks != members => Err(ScenarioError::about(
            &["members", "file"],
            format!("{name} has {ranks} ranks, and the section {members} members"),
            format!("name {ranks} GPUs in `members`, one for each rank"),
        )),
        _ => Ok(()),
    }
}

/// Kind of call for a collective; `None` if switches cannot carry out the collective.
fn call_kind(kind: CollectiveKind) -> Option<CallKind> {
    match kind {
        CollectiveKind::AllReduce => Some(CallKind::AllReduce),
        CollectiveKind::ReduceScatter => Some(CallKind::ReduceScatter),
        CollectiveKind::AllGather => Some(CallKind::AllGather),
        CollectiveKind::Broadcast => Some(CallKind::Broadcast),
        CollectiveKind::Reduce => Some(CallKind::Reduce),
        CollectiveKind::Barrier => Some(CallKind::Barrier),
        CollectiveKind::AllToAll | CollectiveKind::Gather | CollectiveKind::Scatter => None,
    }
}

/// Makes no messages of a call; rejects collectives that switches cannot carry out.
fn refuse_what_switches_cannot(
    call: &CollectiveCall<'_>,
    _: &mut Graph,
) -> Result<Vec<Vec<TaskId>>, ExpansionFault> {
    match call_kind(call.kind) {
        Some(_) => Ok(vec![Vec::new(); call.group.len()]),
        None => Err(ExpansionFault {
            reason: format!(
                "switches cannot carry out the collective \"{}\"",
                call.kind.name()
            ),
            fix: "leave it out of the trace, or run the trace on a fabric of packets".into(),
        }),
    }
}

/// Rejects messages between two ranks.
fn refuse_messages(program: &JobProgram, name: &str) -> Result<(), ScenarioError> {
    let is_message = |operation| {
        matches!(
            operation,
            Operation::Send { .. } | Operation::Receive { .. }
        )
    };
    match program.numbered().find(|&(_, it)| is_message(it)) {
        None => Ok(()),
        Some((id, _)) => Err(ScenarioError::at(
            &SourceLocation::Whole { file: name.into() },
            format!(
                "{id} sends or receives a message, which is not a collective that switches can carry out"
            ),
            "leave messages out of the trace, or run the trace on a fabric of packets",
        )),
    }
}

/// Calls of a job.
struct Calls {
    calls: Vec<GroupCall>,
    /// For each rank: the call of each operation, and the place of the rank in the call.
    parts: Vec<BTreeMap<u32, (u32, u32)>>,
    payload: u64,
    addresses: u64,
}

impl Calls {
    fn new(program: &JobProgram, scenario: &ScaleupScenario) -> Result<Self, WorkloadError> {
        let sizes = scenario.fabric.configuration.sizes();
        if sizes.payload == 0 {
            let fix = "set `topology.payload-flits` to 1 or more";
            let message = "packets carry no data, but the trace sends data";
            return Err(TraceSettings::fault("file", message, fix));
        }
        Ok(Self {
            calls: Vec::new(),
            parts: vec![BTreeMap::new(); program.ranks.len()],
            payload: u64::from(sizes.payload) * FLIT_BYTES,
            addresses: 0,
        })
    }

    /// Adds a collective, unless it takes no time.
    fn add(
        &mut self,
        collective: &Collective,
        program: &JobProgram,
        (own, gpus): (GroupId, &[HostId]),
        further: &mut FurtherGroups,
    ) {
        let Some(kind) = call_kind(collective.kind).filter(|_| !collective.is_silent()) else {
            return;
        };
        let ranks = &program.groups[collective.group as usize];
        let mut members: Vec<HostId> = ranks.iter().map(|rank| gpus[rank.index()]).collect();
        members.sort_unstable();
        let count = members.len() as u64;
        let parts = match kind {
            CallKind::Broadcast | CallKind::Reduce => 1,
            _ => count,
        };
        let share = collective.bytes.as_u64().div_ceil(self.payload);
        let call = GroupCall {
            group: match members == gpus {
                true => own,
                false => further.group(members),
            },
            members: count as u32,
            kind,
            share: match kind {
                CallKind::Barrier => 0,
                _ => share.div_ceil(parts),
            },
            first_address: self.addresses,
        };
        let number = self.calls.len() as u32;
        for ((rank, &operation), place) in ranks.iter().zip(&collective.calls).zip(0..) {
            self.parts[rank.index()].insert(operation, (number, place));
        }
        self.addresses = self.addresses.saturating_add(call.addresses());
        self.calls.push(call);
    }

    /// Checks that the calls of all iterations can be distinguished, and that their operations fit in memory. Returns the number of
    /// operations.
    fn check(&self, iterations: u32) -> Result<u64, WorkloadError> {
        let calls = self.calls.len() as u64 * u64::from(iterations);
        let operations = self.calls.iter().map(GroupCall::operations);
        let operations = operations.fold(0, u64::saturating_add);
        let operations = operations.saturating_mul(iterations.into());
        if calls > MOST_CALLS || operations > MOST_OPERATIONS {
            let message =
                format!("{calls} calls with {operations} operations, each of which leaves a row");
            let fix = format!(
                "ask for fewer iterations or passes, or a trace that carries less: {MOST_OPERATIONS} operations are the most"
            );
            return Err(TraceSettings::fault("iterations", message, fix));
        }
        Ok(operations)
    }
}

/// The tasks of a rank. `parts` gives the call of each collective, and the place of the rank in the call.
fn tasks(
    rank: &clearway_workload::program::RankProgram,
    parts: &BTreeMap<u32, (u32, u32)>,
    pace: (f64, Span),
) -> Vec<RankTask> {
    let task = |(number, operation): (u32, &Operation)| {
        let waits = rank.waits(number).iter().map(|wait| TaskWait {
            task: wait.operation,
            is_begun: wait.is_begun,
        });
        let work = match (*operation, parts.get(&number)) {
            (Operation::Compute { unit, span }, _) => Work::Compute {
                unit,
                cycles: cycles(span, pace),
            },
            (_, Some(&(call, place))) => Work::Collective { call, place },
            // A call that takes no time, which `Calls::add` skips.
            (_, None) => Work::Compute { unit: 0, cycles: 0 },
        };
        RankTask {
            work,
            waits: waits.collect(),
        }
    };
    (0..).zip(rank.operations()).map(task).collect()
}

/// Cycles of a computation, rounded up.
fn cycles(span: Span, (factor, cycle): (f64, Span)) -> u64 {
    let ps = match factor == 1.0 {
        true => span.as_ps(),
        // The cast saturates.
        false => (span.as_ps() as f64 * factor + 0.5) as u64,
    };
    ps.div_ceil(cycle.as_ps())
}

#[cfg(test)]
mod tests;
