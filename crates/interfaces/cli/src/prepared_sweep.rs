//! Common part of `clearway sweep`, `clearway tune` and the bindings of other languages: plan, folder, program and progress of a sweep.

use crate::arguments::StudyArguments;
use crate::failure::Failure;
use crate::kinds::Kind;
use crate::messages::say;
use crate::progress::{Console, wall_time};
use crate::run::file_name;
use clearway_lab::{Laboratory, ScenarioError};
use clearway_report::SweepRecord;
use clearway_runs::REVISION;
use clearway_sweep::{
    ProgramIdentity, Published, Shard, Store, StoreError, Sweep, SweepPlan, SweepProgress, publish,
    record,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::thread::available_parallelism;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

/// Plan of a sweep as a user gives it.
#[derive(Debug, Clone, Copy)]
pub enum PlanSource<'a> {
    /// Name of a built-in plan, or path of a file.
    Name(&'a str),
    /// Text of a plan; paths in it are relative to the working directory.
    Text {
        /// Name of the text in errors.
        name: &'a str,
        /// The text.
        text: &'a str,
    },
}

/// Request for a sweep.
#[derive(Debug, Clone, Copy)]
pub struct SweepRequest<'a> {
    /// Plan of the sweep.
    pub plan: PlanSource<'a>,
    /// Folder of the sweep; `out/sweep-NAME` without one.
    pub out: Option<&'a Path>,
    /// Share of the runs to carry out; `None` for all runs.
    pub shard: Option<Shard>,
    /// Permission for more than 10000 runs.
    pub confirmed: bool,
}

/// A sweep with its folder, and the runs to carry out.
#[derive(Debug)]
pub struct PreparedSweep {
    /// All runs of the plan.
    pub sweep: Sweep,
    /// The folder, which may not exist yet.
    pub folder: PathBuf,
    /// Indexes of the runs to carry out.
    pub chosen: Vec<usize>,
}

impl PreparedSweep {
    /// Resolves a plan, without writing files.
    ///
    /// # Errors
    /// If the plan is invalid.
    pub fn resolve(laboratory: &Laboratory, request: &SweepRequest<'_>) -> Result<Self, Failure> {
        let plan = match request.plan {
            PlanSource::Name(name) => load(laboratory, name)?,
            PlanSource::Text { name, text } => SweepPlan::read(name, text, None)?,
        };
        let sweep = Sweep::resolve(plan, laboratory, &this_program(), request.confirmed)?;
        Ok(Self {
            folder: folder("sweep", request.out, &sweep),
            chosen: match request.shard {
                Some(shard) => sweep.shard(shard),
                None => (0..sweep.runs.len()).collect(),
            },
            sweep,
        })
    }

    /// Opens the folder, or creates it.
    ///
    /// # Errors
    /// If the folder has other contents, or cannot be written.
    pub fn open(&self) -> Result<Store, Failure> {
        Ok(Store::open(&self.folder, &self.sweep)?)
    }

    /// Collects the finished runs and writes the files of the sweep, which name `command`.
    ///
    /// # Errors
    /// If results cannot be read, or the files cannot be written.
    pub fn publish(
        &self,
        store: &Store,
        command: &str,
    ) -> Result<(SweepRecord, Published), Failure> {
        let record = record(&self.sweep, store, &this_program(), command)?;
        let published = publish(store, &record)?;
        Ok((record, published))
    }
}

/// The plan of this name. If the file is of another kind, the error names the right command.
fn load(laboratory: &Laboratory, name: &str) -> Result<SweepPlan, ScenarioError> {
    SweepPlan::load(name).map_err(|error| Kind::Sweep.explain(laboratory, name, error))
}

/// Folder of a study of this kind: `out`, or a folder named after the plan.
fn folder(kind: &str, out: Option<&Path>, sweep: &Sweep) -> PathBuf {
    let name = || format!("{kind}-{}", file_name(&sweep.plan.general.name));
    let default = || PathBuf::from("out").join(name());
    out.map_or_else(default, Path::to_path_buf)
}

/// Maximum number of concurrent runs: `jobs`, or the number of cores.
pub fn jobs_or_cores(jobs: Option<u16>) -> usize {
    let cores = || available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(cores, usize::from)
}

impl StudyArguments {
    /// The plan of the study.
    pub(crate) fn load(&self, laboratory: &Laboratory) -> Result<SweepPlan, ScenarioError> {
        load(laboratory, &self.plan)
    }

    /// Folder of the study of this kind.
    pub(crate) fn folder(&self, kind: &str, sweep: &Sweep) -> PathBuf {
        folder(kind, self.out.as_deref(), sweep)
    }

    /// Maximum number of concurrent runs.
    pub(crate) fn jobs(&self) -> usize {
        jobs_or_cores(self.jobs)
    }
}

/// Version and revision of this program.
pub(crate) fn this_program() -> ProgramIdentity {
    ProgramIdentity {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
    }
}

/// Command that starts this program; see [`set_program`].
static PROGRAM: RwLock<Vec<OsString>> = RwLock::new(Vec::new());

/// Sets the command that carries out runs, for processes other than the program `clearway`, such as an interpreter.
pub(crate) fn set_program(command: Vec<OsString>) {
    *PROGRAM.write().unwrap_or_else(PoisonError::into_inner) = command;
}

/// Command of this program, which carries out the runs. On Linux it is `/proc/self/exe` and not the path, because another program may
/// replace the file before a run starts.
pub(crate) fn own_program() -> Result<Vec<OsString>, Failure> {
    let set = PROGRAM.read().unwrap_or_else(PoisonError::into_inner);
    if !set.is_empty() {
        return Ok(set.clone());
    }
    let itself = Path::new("/proc/self/exe");
    if itself.exists() {
        return Ok(vec![itself.into()]);
    }
    let own = std::env::current_exe().map_err(|error| {
        Failure::new(format!(
            "cannot find this program, which carries out the runs: {error}\n  fix: start it by its full path"
        ))
    })?;
    Ok(vec![own.into()])
}

/// Progress of a sweep.
pub(crate) struct Display<'a> {
    console: &'a Console,
    bar: ProgressBar,
}

impl<'a> Display<'a> {
    pub(crate) fn new(runs: usize, console: &'a Console) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), console.draw_target());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {msg}") {
            bar.set_style(style);
        }
        Self { console, bar }
    }

    /// Restarts the display with a number of runs.
    pub(crate) fn begin(&self, runs: usize) {
        self.bar.set_length(runs as u64);
        self.bar.set_position(0);
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub(crate) fn update(&self, progress: &SweepProgress) {
        self.bar.set_position(progress.done as u64);
        self.bar.set_message(parts(progress).join("  "));
        self.console.log(|| {
            let parts = parts(progress).join(", ");
            format!("{} of {} runs done, {parts}", progress.done, progress.total)
        });
    }

    /// Prints the reason why a run failed, above the bar.
    pub(crate) fn say(&self, reason: &str) {
        self.bar.suspend(|| say(&format!("failed: {reason}")));
    }
}

/// Progress as text.
fn parts(progress: &SweepProgress) -> Vec<String> {
    let mut parts = vec![format!("{} running", progress.running)];
    if progress.elsewhere > 0 {
        parts.push(format!("{} elsewhere", progress.elsewhere));
    }
    if progress.failed > 0 {
        parts.push(format!("{} failed", progress.failed));
    }
    if let Some(left) = progress.left {
        parts.push(format!("{} to go", wall_time(left)));
    }
    parts
}
