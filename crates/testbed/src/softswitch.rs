//! Switches in user space: the process of `clearway softswitch`.

use crate::bed::down;
use crate::fault::Fault;
use crate::name::BedName;
use crate::plan::Plan;
use crate::setup::Setup;
use crate::state::{self, State};
use crate::system::wait;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
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
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
                lines.try_for_each(|line| tell.send(line))
            });
        }
        let mut switch = Self {
            child,
            input,
            lines,
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

    /// Totals of its links by name, as it told them last; asks for the next ones.
    pub(crate) fn counters(&mut self) -> Result<Option<BTreeMap<String, LinkTotals>>, Fault> {
        let last = self.lines.try_iter().last();
        self.tell("counters")?;
        Ok(last.map(|line| totals(&line)))
    }

    /// Ends it; totals of its links by name.
    pub(crate) fn end(mut self) -> BTreeMap<String, LinkTotals> {
        // What it has still to say of earlier questions stands in lines of its own.
        self.terminate();
        let lines: Vec<String> = self.lines.iter().collect();
        let whole = lines.iter().rposition(|line| line.starts_with('{'));
        totals(&lines[whole.unwrap_or(0)..].join("\n"))
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
fn start_detached(program: &Path, name: &BedName, scenario: &str) -> Result<u32, Fault> {
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

/// Starts the switches of a bed that has been made and stays; takes the bed away if they do not forward.
///
/// # Errors
/// If they do not.
pub fn start_switches(program: &Path, plan: &Plan, setup: &Setup) -> Result<(), Fault> {
    let started = start_detached(program, &plan.name, &scenario_text(setup)).and_then(|pid| {
        let state = state::read(&plan.name)?;
        let state = state.map(|state| State {
            switch_pid: Some(pid),
            ..state
        });
        state.map_or(Ok(()), |state| state::write(&plan.name, &state))
    });
    if started.is_err() {
        let _ = down(&plan.name);
    }
    started
}

/// The scenario for the switches. Links die when the bed says so, which is after hosts have connected, so it says nothing of that.
pub(crate) fn scenario_text(setup: &Setup) -> String {
    let text = setup.assembly.resolved(&setup.scenario);
    let mut parts = text.split("dead-from=");
    let mut changed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', '"']).unwrap_or(part.len());
        changed += "packet-loss=0";
        changed += &part[end..];
    }
    changed
}

/// Totals of links, as its JSON has them.
fn totals(text: &str) -> BTreeMap<String, LinkTotals> {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let links = document["links"].as_array().cloned().unwrap_or_default();
    let total = |link: &Value| {
        let number = |key: &str| link[key].as_u64().unwrap_or(0);
        let lost = ["queue_full_packets", "down_packets", "lost_packets"];
        let totals = LinkTotals {
            bytes: number("bytes"),
            drops: lost.map(number).iter().sum(),
            marks: number("marked_packets"),
        };
        // A direction of a link is `leaf0>spine1` there.
        Some((link["link"].as_str()?.replace('>', "-"), totals))
    };
    links.iter().filter_map(total).collect()
}
