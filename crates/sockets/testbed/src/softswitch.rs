//! Switches in user space: the process of `clearway softswitch`.

use crate::bed::down;
use crate::fault::Fault;
use crate::name::BedName;
use crate::plan::BedPlan;
use crate::process::Process;
use crate::setup::BedSetup;
use crate::state;
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

/// Time limit for the start of forwarding, and for the end of the process.
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

/// Writes the scenario to a file for the process.
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

fn does_not_forward() -> Fault {
    Fault::new(
        "`clearway softswitch` does not forward",
        "see its message above, or use `--switches kernel`",
    )
}

impl SoftSwitch {
    /// Starts the process for a bed and waits until it forwards.
    pub(crate) fn start(program: &Path, name: &BedName, scenario: &str) -> Result<Self, Fault> {
        let scenario = scenario_file(name, scenario)?;
        let child = command(program, name, &scenario)
            // However this process ends, its end of the pipe closes.
            .arg("--end-with-input")
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
        let switch = Self {
            child,
            input,
            lines,
        };
        state::record_child(name, switch.child.id())?;
        match switch.lines.recv_timeout(READY) {
            Ok(line) if line.trim() == "ready" => Ok(switch),
            _ => Err(does_not_forward()),
        }
    }

    /// Sends a command about links, such as `link leaf0-spine1 down`.
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

    /// Latest totals of links by name; requests the next totals.
    pub(crate) fn counters(&mut self) -> Result<Option<BTreeMap<String, LinkTotals>>, Fault> {
        let last = self.lines.try_iter().last();
        self.tell("counters")?;
        Ok(last.map(|line| totals(&line)))
    }

    /// Ends the process; returns totals of links by name.
    pub(crate) fn end(mut self) -> BTreeMap<String, LinkTotals> {
        // Answers to earlier requests are on separate lines.
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

/// Starts the process for a bed that stays, and records the process there first.
fn start_detached(program: &Path, name: &BedName, scenario: &str) -> Result<(), Fault> {
    let scenario = scenario_file(name, scenario)?;
    let log = state::file(name, "log");
    let output = File::create(&log).map_err(|error| not_started(&error))?;
    let child = command(program, name, &scenario)
        .stdin(Stdio::null())
        // A reader of this process's output would otherwise wait until the switches end.
        .stderr(output.try_clone().map_err(|error| not_started(&error))?)
        .stdout(output)
        .spawn();
    let mut child = child.map_err(|error| not_started(&error))?;
    let process = Process::from_pid(child.id());
    let forwards = state::update(name, |state| state.switch = process)
        .and_then(|()| await_ready(&mut child, &log));
    if forwards.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    forwards
}

fn await_ready(child: &mut Child, log: &Path) -> Result<(), Fault> {
    for _ in 0..READY.as_millis() / 10 {
        let has_ended = child.try_wait().is_ok_and(|status| status.is_some());
        let said = std::fs::read_to_string(log).unwrap_or_default();
        if said.lines().any(|line| line == "ready") {
            return Ok(());
        }
        if has_ended {
            let fault = does_not_forward();
            let said = said.trim_end();
            return Err(Fault::new(format!("{}: {said}", fault.what), fault.fix));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(does_not_forward())
}

/// Starts the switches of an existing bed that stays; removes the bed if they do not forward.
///
/// # Errors
/// If the switches do not forward.
pub fn start_switches(program: &Path, plan: &BedPlan, setup: &BedSetup) -> Result<(), Fault> {
    let started = start_detached(program, &plan.name, &scenario_text(setup));
    if started.is_err() {
        let _ = down(&plan.name);
    }
    started
}

/// The scenario for the switches, without times of death: the bed takes links down itself, after hosts have connected.
pub(crate) fn scenario_text(setup: &BedSetup) -> String {
    let mut scenario = setup.scenario.clone();
    let exceptions = &mut scenario.topology.links.exceptions;
    *exceptions = exceptions
        .iter()
        .filter_map(|text| without_death(text))
        .collect();
    setup.assembly.resolved(&scenario)
}

/// An exception for links without its time of death; `None` if nothing else remains.
fn without_death(exception: &str) -> Option<String> {
    let words = exception.split_whitespace();
    let kept: Vec<&str> = words
        .filter(|word| !word.starts_with("dead-from="))
        .collect();
    (kept.len() > 1).then(|| kept.join(" "))
}

/// Totals of links, from the JSON of the process.
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
        // The process names a direction of a link `leaf0>spine1`.
        Some((link["link"].as_str()?.replace('>', "-"), totals))
    };
    links.iter().filter_map(total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Switches;
    use clearway_lab::Laboratory;

    #[test]
    fn links_that_die_lose_packets_until_then() {
        let links = [
            "leaf0-spine1 packet-loss=0.25 dead-from=300ms",
            "leaf1-spine1 dead-from=300ms",
            "leaf1-spine0 dead-from=300ms bit-error-rate=1e-6",
            "leaf1-spine2 packet-loss=0.125",
        ];
        let keys = [format!("topology.links={links:?}")];
        let laboratory = Laboratory::new();
        let setup = BedSetup::new(&laboratory, "testbed-dead-path", &keys, Switches::Soft).unwrap();
        let scenario = laboratory.read("text", &scenario_text(&setup), None, &[]);
        let topology = scenario.unwrap().fabric().unwrap().topology;
        assert_eq!(crate::plan::deaths(&topology), []);
        let mut lossy: Vec<_> = topology
            .links_up()
            .filter(|link| link.end() == 0)
            .map(|link| (topology.link_name(link), &topology.cables[link.cable()]))
            .filter(|(_, cable)| cable.packet_loss + cable.bit_error_rate > 0.0)
            .map(|(name, cable)| (name, cable.packet_loss, cable.bit_error_rate))
            .collect();
        lossy.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [
            ("leaf0-spine1", 0.25, 0.0),
            ("leaf1-spine0", 0.0, 1e-6),
            ("leaf1-spine2", 0.125, 0.0),
        ];
        let expected = expected.map(|(name, loss, errors)| (name.to_owned(), loss, errors));
        assert_eq!(lossy, expected);
    }
}
