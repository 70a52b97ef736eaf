//! Jobs from traces: GOAL schedules, execution traces of Chakra, workloads of SimAI.

mod algorithms;
mod calls;
mod settings;

pub use settings::TraceSettings;

use super::{BuildContext, LoadedWorkload, WorkloadDefinition, located};
use calls::Calls;
use clearway_formats::chakra::{head, prefix_of, rank_files};
use clearway_formats::{
    TraceFormat, parse_goal, parse_goal_binary, parse_simai, read_chakra, read_text,
};
use clearway_workload::counted;
use clearway_workload::graph::{Graph, Rank};
use clearway_workload::rank::Plan;
use clearway_workload::{CollectiveCall, FileWarning, JobSpec, Workload, WorkloadError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl WorkloadDefinition for TraceSettings {
    const NAME: &'static str = "trace";
    const SUMMARY: &'static str =
        "a job from a trace: a GOAL schedule, Chakra's execution traces, or a workload of SimAI";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        self.check()?;
        let schedule = self.scheduling.schedule::<Self>(1, 0)?;
        let calls = Calls::new(self)?;
        let place = self.find(context)?;
        let trace = self.read(&place, &calls, context)?;
        let ranks = trace.graph.ranks();
        self.check_ranks(ranks, context)?;
        let slowed = (0..ranks).filter(|_| self.time_scale != 1.0);
        let job = JobSpec {
            label: place.label(),
            plan: Arc::new(Plan::new(trace.graph)),
            hosts: self.placing.place::<Self>(1, ranks, context)?,
            start: self.start,
            iterations: self.iterations,
            jitter: 0.0,
            stragglers: slowed.map(|rank| (Rank(rank), self.time_scale)).collect(),
            schedule,
            volume: None,
            priority: None,
            variant: 0,
        };
        job.check(context.hosts)
            .map_err(|(message, fix)| Self::fault("iterations", message, fix))?;
        Ok(LoadedWorkload {
            jobs: vec![job],
            warnings: trace.warnings,
            setting_warnings: self.placing.warnings(context).collect(),
            ..LoadedWorkload::from(Workload::default())
        })
    }

    fn files(&self) -> Vec<&'static str> {
        let named = [("file", &self.file), ("comm-groups", &self.comm_groups)];
        let named = named.into_iter().filter(|(_, name)| !name.is_empty());
        named.map(|(key, _)| key).collect()
    }
}

/// Graph of a trace, and the warnings about it.
struct Trace {
    graph: Graph,
    warnings: Vec<FileWarning>,
}

/// Location and format of a trace.
struct Place {
    /// Path of the file, or prefix of the files of all ranks.
    path: PathBuf,
    format: TraceFormat,
}

impl Place {
    /// Label of the job in results.
    fn label(&self) -> String {
        let name = match self.format {
            TraceFormat::Chakra => self.path.file_name(),
            _ => self.path.file_stem(),
        };
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

impl TraceSettings {
    fn check(&self) -> Result<(), WorkloadError> {
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
        // Of a number that is none, too.
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

    /// Finds the trace, and determines its format.
    fn find(&self, context: &BuildContext<'_>) -> Result<Place, WorkloadError> {
        let file = Path::new(&self.file);
        let path = match context.base_dir.map(|folder| folder.join(file)) {
            Some(beside) if beside.is_file() || is_prefix(&beside) => beside,
            _ if file.is_file() || is_prefix(file) => file.to_owned(),
            _ => located(file, context.base_dir),
        };
        let format = match self.format {
            Some(format) => format,
            None if is_prefix(&path) && !path.is_file() => TraceFormat::Chakra,
            None => Self::recognized(&path)?,
        };
        if !self.comm_groups.is_empty() && format != TraceFormat::Chakra {
            let message = format!("the trace is in the format \"{}\"", format.name());
            let fix = "leave it out: only Chakra's traces name groups";
            return Err(Self::fault("comm-groups", message, fix));
        }
        match format {
            TraceFormat::Chakra if path.is_file() => Ok(Place {
                path: Self::prefix(&path)?,
                format,
            }),
            format => Ok(Place { path, format }),
        }
    }

    /// The format of the file at `path`, by how it begins.
    fn recognized(path: &Path) -> Result<TraceFormat, WorkloadError> {
        let head = head(path).map_err(|error| unreadable(path, &error))?;
        TraceFormat::of(&head).ok_or_else(|| {
            let message = format!("{} begins like no trace that is known", path.display());
            let known: Vec<&str> = TraceFormat::ALL.iter().map(|format| format.name()).collect();
            let fix = format!(
                "say its `format`, one of {}; flows of htsim and HPCC are for workloads of kind \"file\"",
                known.join(", ")
            );
            Self::fault("file", message, fix)
        })
    }

    /// The prefix of the files of all ranks, of which `path` is one.
    fn prefix(path: &Path) -> Result<PathBuf, WorkloadError> {
        prefix_of(path).ok_or_else(|| {
            let message = format!("{} is the trace of one rank alone", path.display());
            let fix = "call the files of all ranks `<prefix>.<rank>.et`, with ranks from 0, and name the first";
            Self::fault("file", message, fix)
        })
    }

    /// Reads the trace, and makes messages of it.
    fn read(
        &self,
        place: &Place,
        calls: &Calls,
        context: &BuildContext<'_>,
    ) -> Result<Trace, WorkloadError> {
        let path = &place.path;
        let name = path.display().to_string();
        match place.format {
            TraceFormat::Goal => {
                let text = read_text(path)?;
                let file = parse_goal(&name, &text)?;
                Ok(Trace {
                    graph: file.graph()?,
                    warnings: file.warnings,
                })
            }
            TraceFormat::GoalBinary => {
                let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
                let file = parse_goal_binary(&name, &bytes)?;
                drop(bytes);
                Ok(Trace {
                    graph: file.graph()?,
                    warnings: file.warnings,
                })
            }
            TraceFormat::Chakra => {
                let groups = match self.comm_groups.as_str() {
                    "" => None,
                    name => Some(located(Path::new(name), context.base_dir)),
                };
                let trace = read_chakra(path, groups.as_deref())?;
                let graph = trace.graph(&mut |call, graph| calls.expand(call, graph))?;
                Self::checked(Trace {
                    graph,
                    warnings: trace.warnings,
                })
            }
            TraceFormat::Simai => {
                let file = parse_simai(&name, &read_text(path)?)?;
                let given = self.ranks.or(file.workload.all_gpus);
                let ranks = given.unwrap_or_else(|| self.placing.places(context));
                // Before work for ranks that have no hosts.
                self.check_ranks(ranks, context)?;
                let expand =
                    &mut |call: &CollectiveCall<'_>, graph: &mut Graph| calls.expand(call, graph);
                let graph = file.graph(ranks, self.passes, expand)?;
                Self::checked(Trace {
                    graph,
                    warnings: file.warnings,
                })
            }
        }
    }

    /// Checks that the graph can run: collectives can add up to more than a graph can hold.
    fn checked(trace: Trace) -> Result<Trace, WorkloadError> {
        match trace.graph.check() {
            Ok(()) => Ok(trace),
            Err(error) => {
                let fix = "let the collectives of the trace carry less";
                Err(Self::fault("file", error.to_string(), fix))
            }
        }
    }

    /// Checks that each rank has a host of its own.
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

/// True if there are traces of Chakra with this prefix.
fn is_prefix(path: &Path) -> bool {
    rank_files(path).is_ok_and(|files| !files.is_empty())
}

fn unreadable(path: &Path, error: &std::io::Error) -> WorkloadError {
    WorkloadError::Unreadable {
        file: path.display().to_string(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
