//! A run in a process of its own.

use clearway_report::{StatusName, Summary};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most that is kept of what a child says.
const MOST_TEXT: usize = 8 << 10;

/// A process that carries out a run.
pub(super) struct Child {
    process: process::Child,
    folder: PathBuf,
    scenario: PathBuf,
    errors: JoinHandle<String>,
}

/// What came of a run that a child carried out.
#[derive(Debug)]
pub enum RunEnd {
    /// Results, which are in the folder.
    Results(Box<Summary>),
    /// No results: the child was killed by the signal with which systems without memory end processes.
    Killed,
    /// No results: the child could not read the scenario or a file that it names, or could not write; with the reason.
    Refused(String),
    /// No results, with the reason.
    Failed(String),
}

/// How a child ended.
#[derive(Debug)]
enum Ended {
    /// By itself, with this exit code and without a word.
    Code(i32),
    /// By itself, with an exit code and what it said.
    Said(i32, String),
    /// By the signal with which systems without memory end processes.
    Killed,
    /// By another signal.
    Signal(i32, String),
}

impl Child {
    /// Starts `command run …` on the scenario `text`, with results in `work/name`. Whoever listens is told the place of `told` when the
    /// child has ended, and can wait for it then.
    pub(super) fn spawn(
        command: &[OsString],
        work: &Path,
        name: &str,
        text: &str,
        told: (usize, Sender<usize>),
    ) -> Result<Self, String> {
        let folder = work.join(name);
        let scenario = work.join(format!("{name}.toml"));
        let fault = |path: &Path, error| format!("cannot write {}: {error}", path.display());
        let _ = fs::remove_dir_all(&folder);
        fs::write(&scenario, text).map_err(|error| fault(&scenario, error))?;
        let (program, first) = command.split_first().ok_or("there is no program to run")?;
        let mut child = Command::new(program);
        child
            .args(first)
            .args([
                "run",
                "--quiet",
                "--no-report",
                "--threads",
                "1",
                "--end-with-input",
                "--out",
            ])
            .arg(&folder)
            .arg(&scenario)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // The terminal's Ctrl-C is for the sweep, which ends its children.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut child, 0);
        let spawned = child.spawn();
        let mut process = spawned
            .map_err(|error| format!("cannot start {}: {error}", Path::new(program).display()))?;
        let errors = process
            .stderr
            .take()
            .ok_or("a child without standard error")?;
        let errors = std::thread::spawn(move || {
            let text = read_end(errors);
            // Nobody listens if the sweep is over.
            let _ = told.1.send(told.0);
            text
        });
        Ok(Self {
            process,
            folder,
            scenario,
            errors,
        })
    }

    /// Number of the process.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    /// The folder of its results.
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Ends it.
    pub(super) fn kill(&mut self) {
        // One that has ended needs no more.
        let _ = self.process.kill();
    }

    /// Waits until it has ended, and sees what is in its folder. A folder without results is deleted.
    pub(super) fn wait(self) -> RunEnd {
        let folder = self.folder.clone();
        let ended = self.ended();
        match (ended, Summary::read(&folder)) {
            (Ended::Code(0 | 1), Ok(summary)) if summary.status != StatusName::Interrupted => {
                RunEnd::Results(Box::new(summary))
            }
            (ended, _) => {
                let _ = fs::remove_dir_all(&folder);
                ended.without_results()
            }
        }
    }

    fn ended(mut self) -> Ended {
        // Its standard input stays open until then: it would end otherwise.
        let input = self.process.stdin.take();
        let status = self.process.wait();
        drop(input);
        let text = self.errors.join().unwrap_or_default();
        // The file is gone when somebody reads this, and its path would be another one each time.
        let text = text.replace(&*self.scenario.to_string_lossy(), "the scenario");
        let _ = fs::remove_file(&self.scenario);
        match status {
            Ok(status) => ended(status, text),
            Err(error) => Ended::Said(-1, format!("cannot be waited for: {error}")),
        }
    }
}

#[cfg(unix)]
fn ended(status: ExitStatus, text: String) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    const SIGKILL: i32 = 9;
    match (status.code(), status.signal()) {
        (Some(code), _) => of_code(code, text),
        (None, Some(SIGKILL)) => Ended::Killed,
        (None, signal) => Ended::Signal(signal.unwrap_or(0), text),
    }
}

#[cfg(not(unix))]
fn ended(status: ExitStatus, text: String) -> Ended {
    of_code(status.code().unwrap_or(-1), text)
}

fn of_code(code: i32, text: String) -> Ended {
    match code {
        // A run that a limit ended says so, and has results.
        0 | 1 => Ended::Code(code),
        _ => Ended::Said(code, text),
    }
}

impl Ended {
    /// What it means that there are no results.
    fn without_results(self) -> RunEnd {
        match self {
            Self::Code(code) => RunEnd::Failed(format!(
                "the run ended with exit code {code} and left no results"
            )),
            Self::Said(2, text) => RunEnd::Refused(format!("exit code 2: {}", text.trim())),
            Self::Said(code, text) => RunEnd::Failed(format!("exit code {code}: {}", text.trim())),
            Self::Killed => RunEnd::Killed,
            Self::Signal(signal, text) => RunEnd::Failed(
                format!("ended by signal {signal} {}", text.trim())
                    .trim_end()
                    .into(),
            ),
        }
    }
}

/// Time between two looks at what whoever waits for a run wants.
const TICK: Duration = Duration::from_millis(50);

/// Carries out the scenario `text` by `command run …`, as runs of a sweep are, with results in `work/name`. `None` if it is `interrupted`
/// before it ends; the child is ended then.
///
/// # Errors
/// If the child cannot be started.
pub fn carry_out(
    command: &[OsString],
    (work, name): (&Path, &str),
    text: &str,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<RunEnd>, String> {
    let (sender, ended) = channel();
    let mut child = Child::spawn(command, work, name, text, (0, sender))?;
    loop {
        match ended.recv_timeout(TICK) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(Some(child.wait())),
            Err(RecvTimeoutError::Timeout) if interrupted() => {
                child.kill();
                child.wait();
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The end of what is read, which is read to its end.
fn read_end(mut from: impl std::io::Read) -> String {
    let mut kept: Vec<u8> = Vec::new();
    let mut part = [0; 4096];
    loop {
        match from.by_ref().read(&mut part) {
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
            Ok(length) => {
                kept.extend_from_slice(&part[..length]);
                let excess = kept.len().saturating_sub(MOST_TEXT);
                kept.drain(..excess);
            }
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
