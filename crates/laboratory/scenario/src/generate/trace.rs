//! Jobs from traces: GOAL schedules, execution traces of Chakra, profiles of PyTorch, workloads of SimAI.

mod file;
mod roofline;
mod settings;
mod system;

pub(crate) use file::TraceFile;
use file::TraceLocation;
use settings::TraceDimensions;
pub use settings::{GpuSpeed, ProfilerSteps, TraceSettings};
use system::by_system;

use super::collective_calls::{CallSettings, Calls};
use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use clearway_formats::{
    AstraSystem, ChakraOptions, GoalFile, TraceFormat, parse_goal, parse_goal_binary, read_text,
    refused,
};
use clearway_input::InputKind;
use clearway_workload::counted;
use clearway_workload::graph::{Graph, Rank};
use clearway_workload::rank::PreparedGraph;
use clearway_workload::{CollectiveCall, FileWarning, JobSpec, Workload, WorkloadError};
use std::sync::Arc;

impl WorkloadDefinition for TraceSettings {
    const NAME: &'static str = "trace";
    const SUMMARY: &'static str = "a job from a trace: a GOAL schedule, Chakra's execution traces, PyTorch's profiles, or a workload of SimAI";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        self.check()?;
        let schedule = self.scheduling.schedule::<Self>(1, 0)?;
        let system = self.read_system(context.base_dir)?;
        let system = system.as_ref();
        let calls = self.calls(system)?;
        let place = self.find(context.base_dir)?;
        let trace = self.read(&place, (&calls, system), context)?;
        let ranks = trace.graph.ranks();
        self.check_ranks(ranks, context)?;
        let slowed = (0..ranks).filter(|_| self.time_scale != 1.0);
        let job = JobSpec {
            label: place.label(),
            plan: Arc::new(PreparedGraph::new(trace.graph)),
            hosts: self.placing.place::<Self>(1, ranks, context)?,
            start: self.start,
            iterations: self.iterations,
            jitter: 0.0,
            stragglers: slowed.map(|rank| (Rank(rank), self.time_scale)).collect(),
            schedule,
            volume: None,
            priority: None,
            variant: 0,
            section: context.section,
        };
        job.check(context.hosts)
            .map_err(|(message, fix)| Self::fault("iterations", message, fix))?;
        Ok(LoadedWorkload {
            jobs: vec![job],
            warnings: system_warnings(system).chain(trace.warnings).collect(),
            setting_warnings: self.placing.warnings(context).collect(),
            ..LoadedWorkload::from(Workload::default())
        })
    }

    fn files(&self) -> Vec<&'static str> {
        let named = [
            ("file", &self.file),
            ("comm-groups", &self.comm_groups),
            ("system", &self.dimensions.system),
        ];
        let named = named.into_iter().filter(|(_, name)| !name.is_empty());
        named.map(|(key, _)| key).collect()
    }
}

/// Graph of a trace, and the warnings about it.
struct Trace {
    graph: Graph,
    warnings: Vec<FileWarning>,
}

impl TraceSettings {
    /// Checks the settings without their context.
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        if self.file.is_empty() {
            let fix = "name it, as in `file = \"training.goal\"`";
            return Err(Self::fault("file", "no file is named", fix));
        }
        for (key, count) in [
            ("passes", Some(self.passes)),
            ("iterations", Some(self.iterations)),
            ("ranks", self.ranks),
            ("parallelism", self.parallelism),
        ] {
            if count == Some(0) {
                return Err(Self::fault(key, format!("no {key}"), "write 1 or more"));
            }
        }
        self.gpu.roofline()?;
        // `!(a >= 0.0)` also rejects NaN.
        if !(self.time_scale >= 0.0 && self.time_scale <= 1e6) {
            let message = format!("a factor of {}", self.time_scale);
            let fix = "write a factor from 0 to 1e6";
            return Err(Self::fault("time-scale", message, fix));
        }
        if self.start.is_never() {
            let fix = "choose an earlier start";
            return Err(Self::fault("start", "this is beyond the longest run", fix));
        }
        Ok(())
    }

    /// Algorithms of the collectives, by the settings and the system file.
    fn calls(&self, system: Option<&AstraSystem>) -> Result<Calls, WorkloadError> {
        let settings = CallSettings {
            all_reduce: &self.all_reduce,
            all_gather: &self.all_gather,
            reduce_scatter: &self.reduce_scatter,
            all_to_all: &self.all_to_all,
            broadcast: &self.broadcast,
            chunk: self.chunk,
            parallelism: self.parallelism,
            channels: &self.channels,
            hierarchy: &self.dimensions.hierarchy,
            reduction: &self.dimensions.reduction,
        };
        Calls::new::<Self>(&settings, &|operation, algorithm| match system {
            Some(system) => by_system(self, system, (operation, algorithm)),
            None => Ok(None),
        })
    }

    /// Reads the trace and builds its graph.
    fn read(
        &self,
        place: &TraceLocation,
        (calls, system): (&Calls, Option<&AstraSystem>),
        context: &BuildContext<'_>,
    ) -> Result<Trace, WorkloadError> {
        let path = &place.path;
        let name = path.display().to_string();
        match place.format {
            TraceFormat::Goal => {
                let text = read_text(path, InputKind::TRACE)?;
                Self::of_schedule(parse_goal(&name, &text)?)
            }
            TraceFormat::GoalBinary => {
                let bytes = clearway_input::read(path, InputKind::TRACE);
                let bytes = bytes.map_err(|error| refused(path, &error))?;
                let file = parse_goal_binary(&name, &bytes)?;
                drop(bytes);
                Self::of_schedule(file)
            }
            TraceFormat::Chakra | TraceFormat::Simai | TraceFormat::Pytorch => {
                let options = ChakraOptions {
                    roofline: self.speed(system).roofline()?,
                    dimensions: match &self.dimensions.hierarchy.dimensions[..] {
                        [] => context.dimensions.to_vec(),
                        own => own.to_vec(),
                    },
                };
                let file = self.open(place, context.base_dir, options)?;
                let given = self.ranks.or(file.ranks());
                let ranks = match &file {
                    TraceFile::Chakra(trace) => trace.program.ranks.len() as u32,
                    TraceFile::Pytorch(trace) => trace.program.ranks.len() as u32,
                    TraceFile::Simai(_) => given.unwrap_or_else(|| self.placing.places(context)),
                };
                // Checked first, so that no time is spent on ranks without hosts.
                self.check_ranks(ranks, context)?;
                self.check_dimensions(ranks)?;
                let hosts = self.placing.place::<Self>(1, ranks, context)?;
                let expand = &mut |call: &CollectiveCall<'_>, graph: &mut Graph| {
                    calls.expand(call, (context, &hosts), graph)
                };
                let graph = file.graph((ranks, self.passes), expand)?;
                Self::checked(Trace {
                    graph,
                    warnings: file.into_warnings(),
                })
            }
        }
    }

    fn of_schedule(file: GoalFile<'_>) -> Result<Trace, WorkloadError> {
        let graph = file.graph()?;
        let longer = file.longer_receives();
        let warnings = file.warnings.into_iter().chain(longer);
        Ok(Trace {
            graph,
            warnings: warnings.collect(),
        })
    }

    /// Checks that the graph can run: its collectives together can exceed the limits of a graph.
    fn checked(trace: Trace) -> Result<Trace, WorkloadError> {
        match trace.graph.check() {
            Ok(()) => Ok(trace),
            Err(error) => {
                let fix = "let the collectives of the trace carry less";
                Err(Self::fault("file", error.to_string(), fix))
            }
        }
    }

    /// Checks that the ranks have the dimensions of the settings.
    fn check_dimensions(&self, ranks: u32) -> Result<(), WorkloadError> {
        let sizes = &self.dimensions.hierarchy.dimensions;
        let product = sizes.iter().map(|&size| u64::from(size));
        let product = product.fold(1, u64::saturating_mul);
        if sizes.is_empty() || product == u64::from(ranks) {
            return Ok(());
        }
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let message = format!(
            "dimensions of {} ranks, but the trace has {ranks}",
            sizes.join(" x ")
        );
        let fix = "write sizes whose product is the number of ranks";
        Err(Self::fault("dimensions", message, fix))
    }

    /// Checks the number of ranks: each rank needs a separate host.
    fn check_ranks(&self, ranks: u32, context: &BuildContext<'_>) -> Result<(), WorkloadError> {
        if let Some(wanted) = self.ranks.filter(|&wanted| wanted != ranks) {
            let message = format!("{wanted} ranks, but the trace has {ranks}");
            let fix = "leave it out: only workloads of SimAI run on any number of ranks";
            return Err(Self::fault("ranks", message, fix));
        }
        if ranks == 0 {
            let fix = "name a trace that has ranks";
            return Err(Self::fault("file", "a trace of no ranks", fix));
        }
        let places = self.placing.places(context);
        if !self.placing.hosts.is_empty() && places != ranks {
            let places = counted(places as usize, "host");
            let message = format!("{places} for {ranks} ranks of the trace");
            return Err(Self::fault("hosts", message, "name one host for each rank"));
        }
        if ranks > places {
            let places = counted(places as usize, "host");
            let source = self.placing.source(context);
            let message = format!("the trace has {ranks} ranks, but {source} {places}");
            let fix = format!("choose a topology with {ranks} hosts or more for it");
            return Err(Self::fault("file", message, fix));
        }
        Ok(())
    }
}

/// Warnings about the system file.
fn system_warnings(system: Option<&AstraSystem>) -> impl Iterator<Item = FileWarning> {
    system
        .into_iter()
        .flat_map(|system| system.warnings.clone())
}

#[cfg(test)]
mod tests;
