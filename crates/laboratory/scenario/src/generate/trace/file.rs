//! Trace files: paths and contents.

use super::TraceSettings;
use crate::generate::{WorkloadDefinition, located};
use clearway_formats::chakra::{prefix_of, rank_files};
use clearway_formats::pytorch::job_name;
use clearway_formats::{
    ChakraOptions, ChakraTrace, KnownFile, PytorchTrace, SimaiFile, TraceFormat, head, parse_simai,
    read_chakra, read_pytorch, read_text, refused,
};
use clearway_input::InputKind;
use clearway_workload::graph::Graph;
use clearway_workload::program::{Expand, JobProgram};
use clearway_workload::{FileWarning, WorkloadError};
use std::path::{Path, PathBuf};

/// Location and format of a trace.
pub(crate) struct TraceLocation {
    /// Path of the file, or prefix of the files of all ranks.
    pub(crate) path: PathBuf,
    pub(super) format: TraceFormat,
}

impl TraceLocation {
    /// Label of the job in results.
    pub(crate) fn label(&self) -> String {
        let name = match self.format {
            TraceFormat::Pytorch => return job_name(&self.path),
            TraceFormat::Chakra => self.path.file_name(),
            _ => self.path.file_stem(),
        };
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Trace with collectives.
pub(crate) enum TraceFile {
    /// Traces of Chakra.
    Chakra(ChakraTrace),
    /// Workload of SimAI.
    Simai(SimaiFile),
    /// Profiles or execution traces of PyTorch.
    Pytorch(PytorchTrace),
}

impl TraceFile {
    /// Warnings about parts that are read but not simulated.
    pub(crate) fn into_warnings(self) -> Vec<FileWarning> {
        match self {
            Self::Chakra(trace) => {
                let longer = trace.longer_receives();
                trace.warnings.into_iter().chain(longer).collect()
            }
            Self::Simai(file) => file.warnings,
            Self::Pytorch(trace) => trace.warnings,
        }
    }

    /// Number of ranks, if the trace states it.
    pub(crate) fn ranks(&self) -> Option<u32> {
        match self {
            Self::Chakra(trace) => Some(trace.program.ranks.len() as u32),
            Self::Simai(file) => file.workload.all_gpus,
            Self::Pytorch(trace) => Some(trace.program.ranks.len() as u32),
        }
    }

    /// Tasks of the trace; `expand` converts collectives to messages.
    pub(crate) fn graph(
        &self,
        (ranks, passes): (u32, u32),
        expand: &mut Expand<'_>,
    ) -> Result<Graph, WorkloadError> {
        Ok(match self {
            Self::Chakra(trace) => trace.graph(expand)?,
            Self::Simai(file) => file.graph(ranks, passes, expand)?,
            Self::Pytorch(trace) => trace.graph(expand)?,
        })
    }

    /// Operations of the ranks, and the warnings.
    pub(crate) fn into_program(
        self,
        (ranks, passes): (u32, u32),
    ) -> Result<(JobProgram, Vec<FileWarning>), WorkloadError> {
        match self {
            Self::Chakra(trace) => Ok((trace.program, trace.warnings)),
            Self::Simai(file) => Ok((file.workload.program(ranks, passes)?, file.warnings)),
            Self::Pytorch(trace) => Ok((trace.program, trace.warnings)),
        }
    }
}

impl TraceSettings {
    /// Finds the trace, and determines its format.
    pub(crate) fn find(&self, base_dir: Option<&Path>) -> Result<TraceLocation, WorkloadError> {
        let file = Path::new(&self.file);
        let exists = |path: &Path| path.exists() || is_prefix(path);
        let path = match base_dir.map(|folder| folder.join(file)) {
            Some(beside) if exists(&beside) => beside,
            _ if exists(file) => file.to_owned(),
            _ => located(file, base_dir),
        };
        let format = match self.format {
            Some(format) => format,
            None if is_prefix(&path) && !path.is_file() => TraceFormat::Chakra,
            None if path.is_dir() => TraceFormat::Pytorch,
            None => Self::recognized(&path)?,
        };
        let is_other = || format!("the trace is in the format \"{}\"", format.name());
        let has_groups = matches!(format, TraceFormat::Chakra | TraceFormat::Pytorch);
        if !self.comm_groups.is_empty() && !has_groups {
            let fix = "leave it out: only traces of Chakra and PyTorch name groups";
            return Err(Self::fault("comm-groups", is_other(), fix));
        }
        if !self.steps.profiler_steps.is_empty() && format != TraceFormat::Pytorch {
            let fix = "leave it out: only profiles of PyTorch have steps";
            return Err(Self::fault("profiler-steps", is_other(), fix));
        }
        self.gpu.check_format(format)?;
        match format {
            TraceFormat::Chakra if path.is_file() => Ok(TraceLocation {
                path: Self::prefix(&path)?,
                format,
            }),
            format => Ok(TraceLocation { path, format }),
        }
    }

    /// The format of the file at `path`, determined by its first bytes.
    fn recognized(path: &Path) -> Result<TraceFormat, WorkloadError> {
        let head = head(path).map_err(|error| refused(path, &error))?;
        let name = path.display().to_string();
        match KnownFile::named(&name, &head) {
            Some(KnownFile::Trace(format)) => Ok(format),
            Some(known) => {
                let message = format!(
                    "{name} is {}; traces are GOAL schedules, traces of Chakra and PyTorch, and workloads of SimAI",
                    known.what()
                );
                Err(Self::fault("file", message, known.fix(&name)))
            }
            None => {
                let known: Vec<&str> = TraceFormat::ALL
                    .iter()
                    .map(|format| format.name())
                    .collect();
                let fix = format!(
                    "say its `format`, one of {}; flows of htsim and HPCC are for workloads of kind \"file\"",
                    known.join(", ")
                );
                let message = format!("{name} begins like no trace that is known");
                Err(Self::fault("file", message, fix))
            }
        }
    }

    /// The prefix of the files of all ranks; `path` is one of these files.
    fn prefix(path: &Path) -> Result<PathBuf, WorkloadError> {
        prefix_of(path).ok_or_else(|| {
            let message = format!("{} is the trace of one rank alone", path.display());
            let fix = "call the files of all ranks `<prefix>.<rank>.et`, with ranks from 0, and name the first";
            Self::fault("file", message, fix)
        })
    }

    /// Reads a trace that has collectives.
    pub(crate) fn open(
        &self,
        place: &TraceLocation,
        base_dir: Option<&Path>,
        options: ChakraOptions,
    ) -> Result<TraceFile, WorkloadError> {
        let path = &place.path;
        let groups = match self.comm_groups.as_str() {
            "" => None,
            name => Some(located(Path::new(name), base_dir)),
        };
        match place.format {
            TraceFormat::Pytorch => Ok(TraceFile::Pytorch(read_pytorch(
                path,
                groups.as_deref(),
                &self.steps.profiler_steps,
            )?)),
            TraceFormat::Chakra => Ok(TraceFile::Chakra(read_chakra(
                path,
                groups.as_deref(),
                options,
            )?)),
            TraceFormat::Simai => {
                let name = path.display().to_string();
                Ok(TraceFile::Simai(parse_simai(
                    &name,
                    &read_text(path, InputKind::TRACE)?,
                )?))
            }
            TraceFormat::Goal | TraceFormat::GoalBinary => {
                let message = format!(
                    "{} is a GOAL schedule, which has sends and receives and no collectives",
                    path.display()
                );
                let fix = "name a trace of Chakra or PyTorch or a workload of SimAI, or run it on a fabric of packets";
                Err(Self::fault("file", message, fix))
            }
        }
    }
}

/// True if there are traces of Chakra with this prefix.
fn is_prefix(path: &Path) -> bool {
    rank_files(path).is_ok_and(|files| !files.is_empty())
}
