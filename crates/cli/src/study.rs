//! What `clearway sweep` and `clearway tune` share: folder, program and progress of a study.

use crate::arguments::StudyArguments;
use crate::failure::Failure;
use crate::kinds::Kind;
use crate::messages::say;
use crate::progress::{Console, wall_time};
use crate::run::file_name;
use clearway_lab::{Laboratory, ScenarioError};
use clearway_runs::REVISION;
use clearway_sweep::{Program, StoreError, Sweep, SweepPlan, SweepProgress};
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

impl StudyArguments {
    /// The plan of the study.
    pub(crate) fn load(&self, laboratory: &Laboratory) -> Result<SweepPlan, ScenarioError> {
        SweepPlan::load(&self.plan)
            .map_err(|error| Kind::Sweep.explain(laboratory, &self.plan, error))
    }

    /// Folder of the study of this kind: the one that was named, or one that is named after the plan.
    pub(crate) fn folder(&self, kind: &str, sweep: &Sweep) -> PathBuf {
        let name = || format!("{kind}-{}", file_name(&sweep.plan.general.name));
        let default = || PathBuf::from("out").join(name());
        self.out.clone().unwrap_or_else(default)
    }

    /// Most runs at once.
    pub(crate) fn jobs(&self) -> usize {
        let cores = || available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cores, usize::from)
    }
}

/// Version and revision of this program.
pub(crate) fn this_program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
    }
}

/// Command that stands for this program; see [`set_program`].
static PROGRAM: RwLock<Vec<OsString>> = RwLock::new(Vec::new());

/// Sets the command that carries out runs, in a process that is no program `clearway` itself, such as an interpreter.
pub(crate) fn set_program(command: Vec<OsString>) {
    *PROGRAM.write().unwrap_or_else(PoisonError::into_inner) = command;
}

/// This program, which carries out the runs: where the system knows it by another name than its path, that one, because another program may
/// have the path by the time a run starts.
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

    /// Begins anew with so many runs.
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

    /// Says why a run failed, above the bar.
    pub(crate) fn say(&self, reason: &str) {
        self.bar.suspend(|| say(&format!("failed: {reason}")));
    }
}

/// What is going on, in words.
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
