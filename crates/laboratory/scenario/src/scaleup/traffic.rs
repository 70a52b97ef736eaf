//! Conversion of sections to groups and programs.

use super::limits::{check_operations, check_pairs, check_section};
use super::scenario::ScaleupScenario;
use super::trace::{self, FurtherGroups, ScaleupJob};
use super::workload::{
    CollectiveOperation, RandomSetsSettings, ScaleUpCollective, ScaleupWorkload,
    ScaleupWorkloadKind, UniformSettings,
};
use crate::ScenarioError;
use clearway_scaleup::{
    Concurrent, GroupId, Operation, OperationKind, OperationSet, Program, Script, Step, Target,
};
use clearway_units::{HostId, Purpose, RandomStream};
use clearway_workload::FileWarning;

/// Traffic of the GPUs of a scenario.
#[derive(Debug)]
pub struct ScaleupTraffic {
    /// Members of each group: first the groups of the sections, in order, then further groups of traces.
    pub groups: Vec<Vec<HostId>>,
    /// The program of each GPU.
    pub programs: Vec<Box<dyn Program>>,
    /// Number of operations that all programs together post.
    pub operations: u64,
    /// Jobs from traces, by section.
    pub jobs: Vec<ScaleupJob>,
    /// Warnings about traces.
    pub warnings: Vec<FileWarning>,
}

/// Traffic of the sections that are read so far.
struct Assembled {
    traffic: ScaleupTraffic,
    /// Programs of each GPU, with their sections.
    own: Vec<Vec<(u32, Box<dyn Program>)>>,
    /// Groups that do not belong to a section.
    further: FurtherGroups,
}

impl ScaleupScenario {
    /// Traffic of the GPUs.
    ///
    /// # Errors
    /// At the first invalid section.
    pub fn traffic(&self) -> Result<ScaleupTraffic, ScenarioError> {
        ScaleupTraffic::new(self)
    }
}

impl ScaleupTraffic {
    /// The traffic of a scenario.
    ///
    /// # Errors
    /// At the first invalid section.
    fn new(scenario: &ScaleupScenario) -> Result<Self, ScenarioError> {
        let sections = &scenario.workloads;
        let gpus = scenario.fabric.nvlink.gpus;
        let mut assembled = Assembled {
            traffic: Self {
                groups: Vec::new(),
                programs: Vec::new(),
                operations: 0,
                jobs: Vec::new(),
                warnings: Vec::new(),
            },
            own: (0..gpus).map(|_| Vec::new()).collect(),
            further: FurtherGroups::after(sections.len()),
        };
        for (number, section) in (0..).zip(sections) {
            let added = assembled.add(scenario, number, section);
            added.map_err(|error| error.or_in(scenario.places(), "workload", number as usize))?;
        }
        let Assembled {
            mut traffic,
            own,
            further,
        } = assembled;
        let programs = own
            .into_iter()
            .map(|own| Box::new(Concurrent::new(own)) as Box<dyn Program>);
        traffic.programs = programs.collect();
        traffic.groups.extend(further.into_groups());
        Ok(traffic)
    }
}

impl Assembled {
    fn add(
        &mut self,
        scenario: &ScaleupScenario,
        number: u32,
        section: &ScaleupWorkload,
    ) -> Result<(), ScenarioError> {
        let (gpus, seed) = (scenario.fabric.nvlink.gpus, scenario.general.seed);
        let traffic = &mut self.traffic;
        let members = members(section, number as usize, (gpus, seed), &traffic.groups)?;
        check_pairs(&members, &traffic.groups)?;
        if let ScaleupWorkloadKind::Trace(settings) = &section.kind {
            let own = (GroupId(number), members.as_slice());
            let loaded = trace::load(settings, scenario, own, &mut self.further)?;
            traffic.operations += loaded.operations;
            traffic.warnings.extend(loaded.warnings);
            traffic.jobs.push(loaded.job);
            for (gpu, program) in members.iter().zip(loaded.programs) {
                self.own[gpu.index()].push((number, Box::new(program)));
            }
        } else {
            let sets = sets(section, number, &members, seed)?;
            for (gpu, sets) in members.iter().zip(sets) {
                let steps = sets.iter().flat_map(|set| &set.steps);
                traffic.operations += steps
                    .map(|step| 1 + u64::from(step.then.is_some()))
                    .sum::<u64>();
                self.own[gpu.index()].push((number, Box::new(Script::new(sets))));
            }
        }
        check_operations(self.traffic.operations, "kind")?;
        self.traffic.groups.push(members);
        Ok(())
    }
}

/// The members of a section's group, in ascending order.
fn members(
    section: &ScaleupWorkload,
    number: usize,
    (gpus, seed): (u32, u64),
    before: &[Vec<HostId>],
) -> Result<Vec<HostId>, ScenarioError> {
    let keys = &section.members;
    if let Some(beyond) = keys.members.highest().filter(|&gpu| gpu >= gpus) {
        return Err(ScenarioError::about(
            &["members"],
            format!("`members` has GPU {beyond}, and there are {gpus}"),
            format!("name GPUs from 0 to {}", gpus - 1),
        ));
    }
    let mut free: Vec<HostId> = (0..gpus)
        .filter(|&gpu| keys.members.contains(gpu))
        .map(HostId)
        .collect();
    let Some(count) = keys.random_members else {
        return Ok(free);
    };
    free.retain(|gpu| !before.iter().any(|group| group.binary_search(gpu).is_ok()));
    if count == 0 || count as usize > free.len() {
        return Err(ScenarioError::about(
            &["random-members"],
            format!("{count} members of {} GPUs that are free", free.len()),
            "draw at least one, and no more than the sections before have left",
        ));
    }
    let mut random = RandomStream::new(seed, Purpose::Workload, (1 << 40) | number as u64);
    random.shuffle(&mut free);
    free.truncate(count as usize);
    free.sort_unstable();
    Ok(free)
}

/// Sets of operations of each member.
fn sets(
    section: &ScaleupWorkload,
    number: u32,
    members: &[HostId],
    seed: u64,
) -> Result<Vec<Vec<OperationSet>>, ScenarioError> {
    check_section(section, members.len() as u64)?;
    let group = Target::Group(GroupId(number));
    let stream = |gpu: HostId| {
        RandomStream::new(
            seed,
            Purpose::Workload,
            (u64::from(number) + 1) << 32 | u64::from(gpu.0),
        )
    };
    match &section.kind {
        ScaleupWorkloadKind::Collective(settings) => collective(settings, group, members),
        ScaleupWorkloadKind::RandomSets(settings) => {
            let sets = members
                .iter()
                .map(|&gpu| random_sets(settings, group, gpu, members, &mut stream(gpu)));
            Ok(sets.collect())
        }
        ScaleupWorkloadKind::Trace(_) => unreachable!("a trace has programs of its own"),
        ScaleupWorkloadKind::UniformUnicast(settings) => {
            if members.len() < 2 {
                return Err(ScenarioError::about(
                    &["members"],
                    "one GPU has nobody to write to",
                    "name at least two members",
                ));
            }
            let sets = members
                .iter()
                .map(|&gpu| uniform(settings, gpu, members, &mut stream(gpu)));
            Ok(sets.collect())
        }
    }
}

fn operation(kind: OperationKind, target: Target, address: u64) -> Operation {
    Operation {
        kind,
        target,
        address,
        tag: 0,
    }
}

/// The address of a GPU's `number`-th operation; all operations have different addresses.
fn address(gpu: HostId, number: u64) -> u64 {
    u64::from(gpu.0) << 40 | number
}

fn collective(
    settings: &ScaleUpCollective,
    group: Target,
    members: &[HostId],
) -> Result<Vec<Vec<OperationSet>>, ScenarioError> {
    let count = members.len() as u32;
    let initiators = settings.initiators.unwrap_or(count);
    if initiators > count {
        return Err(ScenarioError::about(
            &["initiators"],
            format!("{initiators} initiators of a group of {count}"),
            "name more members, or fewer initiators",
        ));
    }
    // Initiators are spread evenly: initiator i of I is member i N / I of N.
    let is_initiator = |rank: u32| {
        let next = |rank: u32| (u64::from(rank) * u64::from(initiators)).div_ceil(u64::from(count));
        next(rank) < next(rank + 1)
    };
    let step = |address| {
        let read = operation(OperationKind::Read, group, address);
        let write = operation(OperationKind::Write, group, address);
        let (first, then) = match settings.operation {
            CollectiveOperation::AllReduce => (read, Some(write)),
            CollectiveOperation::ReduceScatter => (read, None),
            CollectiveOperation::AllGather => (write, None),
        };
        Step { first, then }
    };
    let sets = (0..count).zip(members).map(|(rank, &gpu)| {
        if !is_initiator(rank) {
            return Vec::new();
        }
        let steps = (0..settings.transactions).map(|k| step(address(gpu, k.into())));
        vec![OperationSet {
            pause: 0,
            steps: steps.collect(),
        }]
    });
    Ok(sets.collect())
}

/// Random number from `least` to `most`, if `least` is not larger.
fn between(random: &mut RandomStream, least: u32, most: u32) -> u32 {
    match (most - least).checked_add(1) {
        Some(count) => least + random.below(count),
        // The range has all 2^32 numbers.
        None => random.next_u32(),
    }
}

fn random_sets(
    settings: &RandomSetsSettings,
    group: Target,
    gpu: HostId,
    members: &[HostId],
    random: &mut RandomStream,
) -> Vec<OperationSet> {
    let mut number = 0;
    let mut set = |index: u32| {
        let count = between(random, settings.least_operations, settings.most_operations);
        let is_unicast = settings.alternate_unicast && index.is_multiple_of(2) && members.len() > 1;
        let (target, count) = match is_unicast {
            true => (other(members, gpu, random), count * settings.unicast_factor),
            false => (group, count),
        };
        let pause = match index {
            0 => 0,
            _ => between(random, settings.least_pause, settings.most_pause),
        };
        let steps = (0..count).map(|_| {
            number += 1;
            Step {
                first: operation(drawn_kind(random, 0.5), target, address(gpu, number)),
                then: None,
            }
        });
        OperationSet {
            pause: pause.into(),
            steps: steps.collect(),
        }
    };
    (0..settings.sets).map(&mut set).collect()
}

fn drawn_kind(random: &mut RandomStream, reads: f64) -> OperationKind {
    match random.chance(reads) {
        true => OperationKind::Read,
        false => OperationKind::Write,
    }
}

/// A member other than `gpu`.
fn other(members: &[HostId], gpu: HostId, random: &mut RandomStream) -> Target {
    let drawn = random.below(members.len() as u32 - 1) as usize;
    let own = members.binary_search(&gpu).unwrap_or(members.len());
    Target::Gpu(members[drawn + usize::from(drawn >= own)])
}

fn uniform(
    settings: &UniformSettings,
    gpu: HostId,
    members: &[HostId],
    random: &mut RandomStream,
) -> Vec<OperationSet> {
    let steps = (0..settings.operations).map(|number| {
        let target = other(members, gpu, random);
        Step {
            first: operation(
                drawn_kind(random, settings.reads),
                target,
                address(gpu, number.into()),
            ),
            then: None,
        }
    });
    vec![OperationSet {
        pause: 0,
        steps: steps.collect(),
    }]
}
