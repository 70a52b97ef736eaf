//! Runs of scale-up fabrics: their data and measures (Snyder §6.1.4).

use super::options::Options;
use clearway_fabric::{RunDecision, RunProgress, Stopped};
use clearway_lab::scaleup_fabric::{
    Cycle, FlitSizes, OperationRecord, PacketClass, Target, label_of,
};
use clearway_lab::{
    ScaleupAssembly, ScaleupFinished, ScaleupRunOptions, ScaleupScenario, ScenarioError,
};
use clearway_units::{Digest, Time};
use std::collections::BTreeMap;

/// Data of a run of a scale-up fabric. Operations are aggregated, because a run has millions of them.
#[derive(Debug)]
pub(crate) struct ScaleupData {
    sections: Vec<Section>,
    bandwidth: f64,
    unfinished: u64,
    simulated: Time,
    stopped: Option<Stopped>,
    flit_hops: u64,
    peak_entries: u32,
    table_waits: u64,
    digest: Digest,
}

/// Operations of a `[[workload]]` section.
#[derive(Debug, Default)]
struct Section {
    /// Number of GPUs in the section's group.
    members: u64,
    /// Flits received by GPUs; each response counts once for each answering GPU.
    flits: u64,
    /// First injection and last response.
    span: Option<(Cycle, Cycle)>,
    /// Latencies of each GPU's operations, by kind and number of the GPU.
    latencies: [BTreeMap<u32, Latencies>; 2],
}

/// Aggregated latencies of operations.
#[derive(Debug, Clone, Copy, Default)]
struct Latencies {
    count: u64,
    sum: u64,
    max: Cycle,
}

impl Latencies {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    fn mean(self) -> f64 {
        self.sum as f64 / self.count as f64
    }
}

impl Section {
    /// Adds an operation that `copies` GPUs answered.
    fn add(&mut self, record: &OperationRecord, copies: u64, sizes: FlitSizes) {
        let flits = |class| u64::from(sizes.flits(record.kind, class));
        self.flits += copies * (flits(PacketClass::Request) + flits(PacketClass::Response));
        let (first, last) = self.span.unwrap_or((record.sent, record.completed));
        self.span = Some((first.min(record.sent), last.max(record.completed)));
        let latency = record.latency();
        let own = self.latencies[record.kind as usize].entry(record.gpu.0);
        own.or_default().add(Latencies {
            count: 1,
            sum: latency,
            max: latency,
        });
    }

    /// Effective flits for each GPU of the group and cycle of the section's operations.
    fn bandwidth(&self) -> f64 {
        let cycles = self.span.map_or(0, |(first, last)| last - first);
        self.flits as f64 / (self.members * cycles) as f64
    }
}

impl ScaleupData {
    /// Runs a scenario on one thread.
    pub(super) fn simulate(
        scenario: &ScaleupScenario,
        on_progress: &dyn Fn(&RunProgress) -> RunDecision,
    ) -> Result<Self, ScenarioError> {
        let assembly = ScaleupAssembly::new(scenario)?;
        let groups = scenario.traffic()?.groups;
        let options = ScaleupRunOptions {
            threads: 1.into(),
            on_progress: &mut |progress| on_progress(&progress),
        };
        let finished = assembly.run(options, None);
        let sizes = scenario.fabric.configuration.sizes();
        let members: Vec<u64> = groups.iter().map(|group| group.len() as u64).collect();
        let sections = scenario.workloads.len();
        Ok(Self::summarise(&members, sections, sizes, &finished))
    }

    /// Data of a run with groups of `members` GPUs; the groups of sections come first.
    fn summarise(
        members: &[u64],
        sections: usize,
        sizes: FlitSizes,
        finished: &ScaleupFinished,
    ) -> Self {
        let fabric = &finished.fabric;
        let section = |&members: &u64| Section {
            members,
            ..Section::default()
        };
        let mut sections: Vec<Section> = members[..sections].iter().map(section).collect();
        for record in &fabric.operations {
            let copies = match record.target {
                Target::Gpu(_) => 1,
                Target::Group(group) => members[group.index()],
            };
            sections[label_of(record.tag) as usize].add(record, copies, sizes);
        }
        Self {
            sections,
            bandwidth: fabric.effective_bandwidth(),
            unfinished: fabric.unfinished,
            simulated: finished.simulated,
            stopped: finished.stopped,
            flit_hops: fabric.flit_hops,
            peak_entries: fabric.peak_entries,
            table_waits: fabric.waits_for_entries,
            digest: fabric.digest,
        }
    }

    /// Reason why the run ended early.
    pub(super) fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    /// Hash over the operations of the run.
    pub(super) fn digest(&self) -> String {
        self.digest.to_string()
    }

    /// All scalar measures of the run, by name.
    pub(super) fn measures(&self) -> BTreeMap<String, f64> {
        let whole = Options::default();
        let mut measures = BTreeMap::from([
            ("simulated".into(), self.simulated.as_us()),
            ("flit-hops".into(), self.flit_hops as f64),
            ("reduction-entries-peak".into(), self.peak_entries.into()),
            ("table-waits".into(), self.table_waits as f64),
            ("unfinished-operations".into(), self.unfinished as f64),
        ]);
        let mut add = |name: &str, section: Option<usize>, value: Result<f64, String>| {
            let of = section.map_or(String::new(), |number| format!("({number})"));
            if let Some(value) = value.ok().filter(|value| value.is_finite()) {
                measures.insert(format!("{name}{of}"), value);
            }
        };
        let several = (self.sections.len() > 1).then_some(0..self.sections.len());
        let numbers = several.into_iter().flatten().map(Some);
        for section in [None].into_iter().chain(numbers) {
            let options = Options {
                section,
                ..whole.clone()
            };
            let bandwidth = effective_bandwidth(self, &options);
            add("effective-bandwidth", section, bandwidth);
            let mean = operation_latency_mean(self, &options);
            add("operation-latency-mean", section, mean);
            let max = operation_latency_max(self, &options);
            add("operation-latency-max", section, max);
        }
        measures
    }

    /// Rejects runs with unfinished operations, whose final results are unknown.
    fn check_finished(&self) -> Result<(), String> {
        match (self.unfinished, self.stopped) {
            (0, None) => Ok(()),
            (0, Some(_)) => Err("the run was stopped".into()),
            (left, _) => Err(format!("{left} operations are not finished")),
        }
    }

    /// The requested sections.
    fn sections(&self, options: &Options) -> Result<&[Section], String> {
        self.check_finished()?;
        let Some(number) = options.section else {
            return Ok(&self.sections);
        };
        let found = self.sections.get(number..=number);
        found.ok_or_else(|| format!("there is no section {number}"))
    }

    /// Latencies of the requested operations of each GPU.
    fn latencies(&self, options: &Options) -> Result<Vec<Latencies>, String> {
        let is_wanted = |kind: usize| options.kind.is_none_or(|wanted| wanted as usize == kind);
        let mut of_gpus: BTreeMap<u32, Latencies> = BTreeMap::new();
        for section in self.sections(options)? {
            let kinds = section.latencies.iter().enumerate();
            let kinds = kinds.filter(|(kind, _)| is_wanted(*kind));
            for (&gpu, &latencies) in kinds.flat_map(|(_, latencies)| latencies) {
                of_gpus.entry(gpu).or_default().add(latencies);
            }
        }
        match of_gpus.is_empty() {
            true => Err("there are no such operations".into()),
            false => Ok(of_gpus.into_values().collect()),
        }
    }

    fn all_latencies(&self, options: &Options) -> Result<Latencies, String> {
        let mut all = Latencies::default();
        self.latencies(options)?
            .into_iter()
            .for_each(|latencies| all.add(latencies));
        Ok(all)
    }
}

/// Effective flits for each GPU and cycle from the first injection to the last response: each response counts once for each answering GPU.
/// For one section: the flits of its operations, for each GPU of its group.
pub(super) fn effective_bandwidth(run: &ScaleupData, options: &Options) -> Result<f64, String> {
    let sections = run.sections(options)?;
    Ok(match options.section {
        None => run.bandwidth,
        Some(_) => sections[0].bandwidth(),
    })
}

/// Mean latency of operations, from injection to response, cycles.
pub(super) fn operation_latency_mean(run: &ScaleupData, options: &Options) -> Result<f64, String> {
    Ok(run.all_latencies(options)?.mean())
}

/// Longest latency of an operation, cycles.
pub(super) fn operation_latency_max(run: &ScaleupData, options: &Options) -> Result<f64, String> {
    Ok(run.all_latencies(options)?.max as f64)
}

/// Mean over GPUs of the mean latency of their operations, cycles.
pub(super) fn operation_latency_of_gpus_mean(
    run: &ScaleupData,
    options: &Options,
) -> Result<f64, String> {
    let of_gpus = run.latencies(options)?;
    let sum: f64 = of_gpus.iter().map(|latencies| latencies.mean()).sum();
    Ok(sum / of_gpus.len() as f64)
}

/// Flits over links.
pub(super) fn flit_hops(run: &ScaleupData, _: &Options) -> Result<f64, String> {
    Ok(run.flit_hops as f64)
}

/// Peak number of used entries of a reduction table.
pub(super) fn reduction_entries_peak(run: &ScaleupData, _: &Options) -> Result<f64, String> {
    Ok(run.peak_entries.into())
}

/// Requests that waited for an entry of a reduction table.
pub(super) fn table_waits(run: &ScaleupData, _: &Options) -> Result<f64, String> {
    Ok(run.table_waits as f64)
}

/// Posted operations that are not finished.
pub(super) fn unfinished_operations(run: &ScaleupData, _: &Options) -> Result<f64, String> {
    Ok(run.unfinished as f64)
}
