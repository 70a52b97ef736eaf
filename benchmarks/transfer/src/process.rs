//! Processes of ends: where they run, and their time limit.

use crate::failure::Failure;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time that a process has beyond that of its transfer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Place of a process: its processor and its network namespace.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) processor: usize,
    pub(crate) namespace: Option<String>,
}

impl Place {
    /// A command that runs there.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut words: Vec<String> = Vec::new();
        if let Some(namespace) = &self.namespace {
            words.extend(["ip", "netns", "exec", namespace].map(str::to_owned));
        }
        let processor = self.processor.to_string();
        words.extend(["taskset", "--cpu-list", &processor, program].map(str::to_owned));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// A process whose output is read line by line, and which ends with this.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    limit: Duration,
}

impl Running {
    pub(crate) fn start(mut command: Command, time: Duration) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |error| Failure::new(format!("cannot run `{name}`: {error}"));
        let mut child = command.spawn().map_err(failed)?;
        let (tell, lines) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let mut lines = BufReader::new(output).lines();
                while let Some(Ok(line)) = lines.next()
                    && tell.send(line).is_ok()
                {}
            });
        }
        Ok(Self {
            child,
            lines,
            limit: time + PATIENCE,
        })
    }

    /// The next line of its output.
    pub(crate) fn line(&mut self) -> Result<String, Failure> {
        let ended =
            |_| Failure::new("an end of a transfer has said nothing: see its message above");
        self.lines.recv_timeout(self.limit).map_err(ended)
    }

    /// The rest of its output.
    pub(crate) fn rest(self) -> String {
        let mut all = String::new();
        while let Ok(line) = self.lines.recv_timeout(self.limit) {
            all.push_str(&line);
            all.push('\n');
        }
        all
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless something went wrong.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The output of a command that has to succeed.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::new(format!("cannot run `{program}`: {error}")))?;
    let mut text = [String::new(), String::new()];
    if let Some(mut out) = child.stdout.take() {
        out.read_to_string(&mut text[0])?;
    }
    if let Some(mut error) = child.stderr.take() {
        error.read_to_string(&mut text[1])?;
    }
    let [out, error] = text;
    match child.wait()?.success() {
        true => Ok(out),
        false => Err(Failure::new(format!(
            "`{program} {}` has failed: {}",
            arguments.join(" "),
            error.trim()
        ))),
    }
}
