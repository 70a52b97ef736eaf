//! Processes that carry out successive runs.
//!
//! A process reads the names of runs from its standard input, one per line. `NAME` stands for the scenario `NAME.toml` in the process's
//! folder, and the results go into the folder `NAME` beside it. After each run the process writes an answer on a new line of its standard
//! output, even if a plug-in has begun a line there. The process is reused because its start takes longer than a small run.

use clearway_report::{StatusName, Summary};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Largest number of bytes kept of a process's messages.
const MOST_TEXT: usize = 8 << 10;

/// Longest line that may be an answer, in bytes.
const MOST_LINE: u64 = 1 << 20;

/// Command of the program that carries out runs; the folder follows.
pub const WORKER_COMMAND: &str = "carry-out";

/// Longest run in seconds after which its process is reused. For longer runs, the start of a process is negligible.
const MOST_SECONDS: f64 = 1.0;
/// Largest peak memory after which a process is reused. A process keeps part of its memory, which must not count for the next run.
const MOST_BYTES: u64 = 128 << 20;

/// Answer of a process when a run is over, as JSON on one line of its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAnswer {
    /// Exit code that `clearway run` would have had.
    pub code: u8,
    /// Text that `clearway run` would have written to standard error.
    pub errors: String,
}

/// Outcome of a run in a process.
#[derive(Debug)]
pub enum RunEnd {
    /// Results in the folder.
    Results(Box<Summary>),
    /// No results: the process was killed by the signal that systems use when memory runs out.
    Killed,
    /// No results, with the reason: the process could not read the scenario or one of its files, or could not write.
    Refused(String),
    /// No results, with the reason.
    Failed(String),
}

/// Number of a worker, and its answer; `None` if the process has ended.
pub(super) type Event = (usize, Option<RunAnswer>);

/// A process that carries out a run, or waits for one.
pub(super) struct Worker {
    number: usize,
    process: process::Child,
    /// Standard input; closing it ends the process.
    input: Option<ChildStdin>,
    folder: PathBuf,
    errors: JoinHandle<String>,
}

/// Files of a run that a process carries out.
pub(super) struct RunFiles {
    /// The folder of its results.
    pub(super) results: PathBuf,
    scenario: PathBuf,
}

impl Worker {
    /// Starts `command carry-out FOLDER`. The listener receives `number` with each answer.
    fn start(
        command: &[OsString],
        folder: &Path,
        (number, listener): (usize, Sender<Event>),
    ) -> Result<Self, String> {
        let (program, first) = command.split_first().ok_or("there is no program to run")?;
        let mut child = Command::new(program);
        child
            .args(first)
            .arg(WORKER_COMMAND)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C in the terminal must reach only the sweep, which then ends its children.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut child, 0);
        let spawned = child.spawn();
        let mut process = spawned
            .map_err(|error| format!("cannot start {}: {error}", Path::new(program).display()))?;
        let (input, output, errors) = (
            process.stdin.take(),
            process.stdout.take().ok_or("no standard output")?,
            process.stderr.take().ok_or("no standard error")?,
        );
        let errors = std::thread::spawn(move || read_end(errors));
        std::thread::spawn(move || {
            // The listener is gone after the sweep.
            for_each_answer(output, |answer| drop(listener.send((number, Some(answer)))));
            let _ = listener.send((number, None));
        });
        Ok(Self {
            number,
            process,
            input,
            folder: folder.to_owned(),
            errors,
        })
    }

    /// Starts a process that carries out the scenario `text` under this name.
    pub(super) fn start_with(
        command: &[OsString],
        folder: &Path,
        told: (usize, Sender<Event>),
        (name, text): (&str, &str),
    ) -> Result<(Self, RunFiles), String> {
        let mut worker = Self::start(command, folder, told)?;
        match worker.begin(name, text) {
            Ok(files) => Ok((worker, files)),
            Err(reason) => {
                worker.dismiss();
                Err(reason)
            }
        }
    }

    /// Lets the process carry out the scenario `text` under this name.
    ///
    /// # Errors
    /// If the scenario cannot be written, or the process has ended.
    pub(super) fn begin(&mut self, name: &str, text: &str) -> Result<RunFiles, String> {
        let files = RunFiles {
            results: self.folder.join(name),
            scenario: self.folder.join(format!("{name}.toml")),
        };
        let _ = fs::remove_dir_all(&files.results);
        let path = &files.scenario;
        fs::write(path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let input = self.input.as_mut().ok_or("no standard input")?;
        writeln!(input, "{name}")
            .map_err(|error| format!("cannot tell a process what to run: {error}"))?;
        Ok(files)
    }

    /// Number of the worker in answers.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Process number.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    /// Kills the process.
    pub(super) fn kill(&mut self) {
        // The error of an ended process does not matter.
        let _ = self.process.kill();
    }

    /// Ends an idle process.
    pub(super) fn dismiss(self) {
        self.wait();
    }

    /// Outcome of the run, from the process's answer if it gave one; and the process, if it can be reused. A folder without results is
    /// deleted.
    pub(super) fn finish(
        self,
        files: &RunFiles,
        answer: Option<RunAnswer>,
    ) -> (RunEnd, Option<Self>) {
        let (ended, worker) = match answer {
            Some(RunAnswer { code, errors }) => (of_code(code.into(), errors), Some(self)),
            None => (self.wait(), None),
        };
        let _ = fs::remove_file(&files.scenario);
        match (ended, Summary::read(&files.results)) {
            (Ended::Code(0 | 1), Ok(summary)) if summary.status != StatusName::Interrupted => {
                let is_small =
                    summary.wall_seconds <= MOST_SECONDS && summary.peak_rss_bytes <= MOST_BYTES;
                let worker = worker.and_then(|worker| match is_small {
                    true => Some(worker),
                    false => {
                        worker.dismiss();
                        None
                    }
                });
                (RunEnd::Results(Box::new(summary)), worker)
            }
            (ended, _) => {
                let _ = fs::remove_dir_all(&files.results);
                worker.into_iter().for_each(Self::dismiss);
                (ended.without_results(&files.scenario), None)
            }
        }
    }

    fn wait(mut self) -> Ended {
        drop(self.input.take());
        let status = self.process.wait();
        let text = self.errors.join().unwrap_or_default();
        match status {
            Ok(status) => ended(status, text),
            Err(error) => Ended::Said(-1, format!("cannot be waited for: {error}")),
        }
    }
}

/// End of a run.
#[derive(Debug)]
enum Ended {
    /// Exit code without messages.
    Code(i32),
    /// Exit code with messages.
    Said(i32, String),
    /// The process was killed by the signal that systems use when memory runs out.
    Killed,
    /// The process was killed by another signal.
    Signal(i32, String),
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
        // A run that was ended by a limit reports it, and has results.
        0 | 1 => Ended::Code(code),
        _ => Ended::Said(code, text),
    }
}

impl Ended {
    /// Outcome for this end if there are no results.
    fn without_results(self, scenario: &Path) -> RunEnd {
        // The scenario file will be deleted, and its path differs each time.
        let named = |text: String| {
            let text = text.replace(&*scenario.to_string_lossy(), "the scenario");
            text.trim().to_owned()
        };
        match self {
            Self::Code(code) => RunEnd::Failed(format!(
                "the run ended with exit code {code} and left no results"
            )),
            Self::Said(2, text) => RunEnd::Refused(format!("exit code 2: {}", named(text))),
            Self::Said(code, text) => RunEnd::Failed(format!("exit code {code}: {}", named(text))),
            Self::Killed => RunEnd::Killed,
            Self::Signal(signal, text) => RunEnd::Failed(
                format!("ended by signal {signal} {}", named(text))
                    .trim_end()
                    .into(),
            ),
        }
    }
}

/// Time between two checks for an interruption.
const TICK: Duration = Duration::from_millis(50);

/// Carries out the scenario `text` in a separate process, like runs of a sweep, with results in `folder/name`. `None` if the run is
/// `interrupted` before its end; the process is then killed.
///
/// # Errors
/// If the process cannot be started.
pub fn carry_out(
    command: &[OsString],
    (folder, name): (&Path, &str),
    text: &str,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<RunEnd>, String> {
    let (sender, events) = channel();
    let (mut worker, files) = Worker::start_with(command, folder, (0, sender), (name, text))?;
    let answer = loop {
        match events.recv_timeout(TICK) {
            Ok((_, answer)) => break answer,
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) if interrupted() => {
                worker.kill();
                worker.finish(&files, None);
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    let (end, worker) = worker.finish(&files, answer);
    worker.into_iter().for_each(Worker::dismiss);
    Ok(Some(end))
}

/// Reads the answers of a process. Other output, such as a plug-in's, is skipped.
fn for_each_answer(output: impl Read, mut take: impl FnMut(RunAnswer)) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    // An error also ends the loop. A line longer than any answer is read in parts.
    while let Ok(1..) = output.by_ref().take(MOST_LINE).read_until(b'\n', &mut line) {
        if let Ok(answer) = serde_json::from_slice(&line) {
            take(answer);
        }
        line.clear();
    }
}

/// Reads all input, and gives its last bytes as text.
fn read_end(mut from: impl Read) -> String {
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use clearway_testing::Folder;

    /// Outcome of a process that runs this script with `sh`.
    fn run(script: &str) -> RunEnd {
        let folder = Folder::new("worker");
        let command = ["sh", "-c", script].map(OsString::from);
        let end = carry_out(&command, (folder.path(), "run"), "", &|| false);
        end.unwrap().expect("nobody interrupts it")
    }

    #[test]
    fn answers_are_found_in_whatever_a_plug_in_prints() {
        let answer = r#"{\"code\":2,\"errors\":\"error: no\"}"#;
        let script = format!(
            "read name; printf 'half \\377 of a line'; head -c 3000000 /dev/zero; printf '\\n%s\\n' \"{answer}\""
        );
        let end = run(&script);
        assert!(
            matches!(&end, RunEnd::Refused(reason) if reason == "exit code 2: error: no"),
            "{end:?}"
        );
    }

    #[test]
    fn a_process_that_ends_without_an_answer_costs_its_run() {
        let end = run("read name; echo nonsense; echo broken >&2; exit 3");
        assert!(
            matches!(&end, RunEnd::Failed(reason) if reason == "exit code 3: broken"),
            "{end:?}"
        );
        assert!(matches!(run("read name; kill -9 $$"), RunEnd::Killed));
    }
}
