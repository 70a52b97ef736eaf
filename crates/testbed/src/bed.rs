//! Beds: making them, and taking them away.

use crate::fault::Fault;
use crate::name::BedName;
use crate::plan::{Plan, Switches};
use crate::state::{self, State};
use crate::system::{carry_out, look};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Parts that were taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// Namespaces.
    pub namespaces: usize,
    /// There was a record of the bed.
    pub known: bool,
}

/// Makes a bed. What was made of it is taken away again if something fails, or if `interrupted` says so.
///
/// # Errors
/// If there is a bed of this name, or the system refuses a step.
pub fn up(
    plan: &Plan,
    scenario: &str,
    switches: Switches,
    interrupted: &dyn Fn() -> bool,
) -> Result<State, Fault> {
    if let Some(state) = state::read(&plan.name)? {
        return Err(already_up(&plan.name, &state));
    }
    if !existing(&plan.name)?.is_empty() {
        return Err(Fault::new(
            format!(
                "there are namespaces of a bed `{}` that nobody has a record of",
                plan.name
            ),
            format!(
                "take them away: `clearway testbed down --name {}`",
                plan.name
            ),
        ));
    }
    let state = State {
        scenario: scenario.into(),
        plan: digest(plan),
        switches,
        switch_pid: None,
        namespaces: plan.namespaces().cloned().collect(),
    };
    // First of all, so that a process that is killed in the middle leaves a record.
    state::write(&plan.name, &state)?;
    for step in &plan.steps {
        let done = match interrupted() {
            true => Err(Fault::new("interrupted", "run the command again")),
            false => carry_out(step),
        };
        if let Err(fault) = done {
            let _ = down(&plan.name);
            return Err(fault);
        }
    }
    Ok(state)
}

/// Number that tells plans apart.
fn digest(plan: &Plan) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    plan.to_text().hash(&mut hasher);
    hasher.finish()
}

/// The bed that is up, if it is the one of the plan.
///
/// # Errors
/// If another one of this name is.
pub fn find(plan: &Plan, switches: Switches) -> Result<Option<State>, Fault> {
    let Some(state) = state::read(&plan.name)? else {
        return Ok(None);
    };
    if (state.plan, state.switches) != (digest(plan), switches) {
        return Err(already_up(&plan.name, &state));
    }
    Ok(Some(state))
}

fn already_up(name: &BedName, state: &State) -> Fault {
    Fault::new(
        format!(
            "a test bed `{name}` is up already, of {} with switches of kind {}",
            state.scenario,
            state.switches.name()
        ),
        format!(
            "take it away with `clearway testbed down --name {name}`, or name another one with `--name`"
        ),
    )
}

/// Takes a bed away, whether it is whole or not. Without one, nothing is done.
///
/// # Errors
/// If the system refuses.
pub fn down(name: &BedName) -> Result<Removed, Fault> {
    let state = state::read(name)?;
    if let Some(pid) = state.as_ref().and_then(|state| state.switch_pid) {
        end_switch(pid);
    }
    let existing = existing(name)?;
    let batch = existing.iter().map(|name| format!("netns del {name}\n"));
    let step = crate::plan::Step {
        program: crate::plan::Program::Ip,
        namespace: None,
        batch: batch.collect(),
    };
    carry_out(&step)?;
    state::forget(name);
    Ok(Removed {
        namespaces: existing.len(),
        known: state.is_some(),
    })
}

/// Namespaces of a bed that there are.
fn existing(name: &BedName) -> Result<Vec<String>, Fault> {
    let listed = look("ip", &["netns", "list"])?;
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let own = names.filter(|found| found.starts_with(&name.prefix()));
    Ok(own.map(String::from).collect())
}

/// Ends the switches in user space, if the process is still that.
fn end_switch(pid: u32) {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let command = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
    let is_switch = |command: Vec<u8>| {
        let mut words = command.split(|byte| *byte == 0);
        words.any(|word| word == b"softswitch")
    };
    if !command.is_ok_and(is_switch) {
        return;
    }
    let _ = kill_process(process, Signal::TERM);
    for _ in 0..100 {
        if test_kill_process(process).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = kill_process(process, Signal::KILL);
}
