//! Switches in user space: the process of `clearway softswitch`.

use crate::fault::Fault;
use crate::name::BedName;
use crate::state;
use crate::system::wait;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Time until it has to forward, and until it has to have ended.
const READY: Duration = Duration::from_secs(10);

/// Totals of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LinkTotals {
    pub(crate) bytes: u64,
    pub(crate) drops: u64,
    pub(crate) marks: u64,
}

/// The process.
pub(crate) struct SoftSwitch {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    rest: Option<thread::JoinHandle<String>>,
}

/// Writes the scenario where the process finds it.
fn scenario_file(name: &BedName, scenario: &str) -> Result<PathBuf, Fault> {
    let path = state::file(name, "toml");
    state::write_text(&path, scenario)?;
    Ok(path)
}

fn command(program: &Path, name: &BedName, scenario: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg("softswitch")
        .arg(scenario)
        .args(["--hosts", &name.host_prefix(), "--json"])
        .process_group(0);
    command
}

fn not_started(error: &std::io::Error) -> Fault {
    Fault::new(
        format!("cannot start `clearway softswitch`: {error}"),
        "use `--switches kernel`",
    )
}

impl SoftSwitch {
    /// Starts it for a bed and waits until it forwards.
    pub(crate) fn start(program: &Path, name: &BedName, scenario: &str) -> Result<Self, Fault> {
        let scenario = scenario_file(name, scenario)?;
        let child = command(program, name, &scenario)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| not_started(&error))?;
        let input = child.stdin.take();
        let (tell, lines) = channel();
        let rest = child.stdout.take().map(|stdout| {
            thread::spawn(move || {
                let mut stdout = BufReader::new(stdout);
                let mut line = String::new();
                let _ = stdout.read_line(&mut line);
                let _ = tell.send(line);
                let mut rest = String::new();
                let _ = stdout.read_to_string(&mut rest);
                rest
            })
        });
        let mut switch = Self {
            child,
            input,
            lines,
            rest,
        };
        match switch.lines.recv_timeout(READY) {
            Ok(line) if line.trim() == "ready" => Ok(switch),
            _ => {
                let _ = switch.child.kill();
                Err(Fault::new(
                    "`clearway softswitch` does not forward",
                    "see its message above, or use `--switches kernel`",
                ))
            }
        }
    }

    /// Tells it something about its links: `link leaf0-spine1 down`.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), Fault> {
        let input = self.input.as_mut();
        let told = input.map(|input| writeln!(input, "{line}").and_then(|()| input.flush()));
        match told {
            Some(Ok(())) => Ok(()),
            _ => Err(Fault::new(
                "`clearway softswitch` has ended",
                "see its message above",
            )),
        }
    }

    /// Ends it; totals of its links by name.
    pub(crate) fn end(mut self) -> BTreeMap<String, LinkTotals> {
        self.terminate();
        let rest = self.rest.take().and_then(|rest| rest.join().ok());
        totals(&rest.unwrap_or_default())
    }

    fn terminate(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = wait(&mut self.child, READY);
    }
}

impl Drop for SoftSwitch {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.terminate();
        }
    }
}

/// Starts it for a bed that stays, and returns its process.
///
/// # Errors
/// If it does not forward.
pub fn start_detached(program: &Path, name: &BedName, scenario: &str) -> Result<u32, Fault> {
    let scenario = scenario_file(name, scenario)?;
    let log = state::file(name, "log");
    let output = File::create(&log).map_err(|error| not_started(&error))?;
    let child = command(program, name, &scenario)
        .stdin(Stdio::null())
        .stdout(output)
        .spawn();
    let mut child = child.map_err(|error| not_started(&error))?;
    for _ in 0..READY.as_millis() / 10 {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if said.starts_with("ready") {
            return Ok(child.id());
        }
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    Err(Fault::new(
        "`clearway softswitch` does not forward",
        "see its message above, or use `--switches kernel`",
    ))
}

/// Totals of links, as its JSON has them.
fn totals(text: &str) -> BTreeMap<String, LinkTotals> {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let links = document["links"].as_array().cloned().unwrap_or_default();
    let total = |link: &Value| {
        let number = |key: &str| link[key].as_u64().unwrap_or(0);
        let drops = match &link["drops"] {
            Value::Object(reasons) => reasons.values().filter_map(Value::as_u64).sum(),
            drops => drops.as_u64().unwrap_or(0),
        };
        let totals = LinkTotals {
            bytes: number("bytes"),
            drops,
            marks: number("marks"),
        };
        Some((link["link"].as_str()?.to_owned(), totals))
    };
    links.iter().filter_map(total).collect()
}
