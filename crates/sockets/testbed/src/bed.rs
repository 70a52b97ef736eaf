//! Creation and removal of beds.

use crate::fault::Fault;
use crate::name::BedName;
use crate::plan::{BedPlan, Switches};
use crate::process;
use crate::state::{self, BedState};
use crate::system::{carry_out, look};
use std::hash::{Hash as _, Hasher as _};

/// Removed parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// Namespaces.
    pub namespaces: usize,
    /// A record of the bed existed.
    pub known: bool,
}

/// Creates a bed. Removes the created parts again if a step fails, or if `interrupted` returns true.
///
/// # Errors
/// If a bed with this name exists, or the system refuses a step.
pub fn up(
    plan: &BedPlan,
    scenario: &str,
    switches: Switches,
    interrupted: &dyn Fn() -> bool,
) -> Result<BedState, Fault> {
    if let Some(state) = state::read(&plan.name)? {
        return Err(already_up(&plan.name, &state));
    }
    if !existing(&plan.name)?.is_empty() {
        return Err(Fault::new(
            format!(
                "namespaces of a bed `{}` exist, but its record is missing",
                plan.name
            ),
            format!(
                "take them away: `clearway testbed down --name {}`",
                plan.name
            ),
        ));
    }
    let mut state = BedState {
        scenario: scenario.into(),
        plan: digest(plan),
        switches,
        complete: false,
        switch: None,
        children: Vec::new(),
        namespaces: plan.namespaces().cloned().collect(),
    };
    // First of all, so that a process killed in the middle leaves a record.
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
    state.complete = true;
    state::write(&plan.name, &state)?;
    Ok(state)
}

/// Number that tells plans apart.
fn digest(plan: &BedPlan) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    plan.to_text().hash(&mut hasher);
    hasher.finish()
}

/// The bed that is up, if it matches the plan.
///
/// # Errors
/// If a different or unfinished bed with this name is up.
pub fn find(plan: &BedPlan, switches: Switches) -> Result<Option<BedState>, Fault> {
    let state = state::read(&plan.name)?;
    state.map(|state| check(plan, switches, state)).transpose()
}

/// The bed of a record, if it is complete and matches the plan.
fn check(plan: &BedPlan, switches: Switches, state: BedState) -> Result<BedState, Fault> {
    let is_same = (state.plan, state.switches) == (digest(plan), switches);
    match is_same && state.complete {
        true => Ok(state),
        false => Err(already_up(&plan.name, &state)),
    }
}

fn already_up(name: &BedName, state: &BedState) -> Fault {
    let (scenario, switches) = (&state.scenario, state.switches.name());
    let what = match state.complete {
        true => format!(
            "a test bed `{name}` is up already, of {scenario} with switches of kind {switches}"
        ),
        false => format!(
            "a test bed `{name}` of {scenario} is half made: the command that made it was killed, or still makes it"
        ),
    };
    Fault::new(
        what,
        format!(
            "take it away with `clearway testbed down --name {name}`, or name another one with `--name`"
        ),
    )
}

/// Removes a bed, complete or not, and ends its processes. Does nothing without a bed.
///
/// # Errors
/// If the system refuses.
pub fn down(name: &BedName) -> Result<Removed, Fault> {
    let state = state::read(name)?;
    process::end(&state.as_ref().map(BedState::processes).unwrap_or_default());
    let existing = existing(name)?;
    let batch = existing.iter().map(|name| format!("netns del {name}\n"));
    let step = crate::plan::CommandBatch {
        program: crate::plan::StepProgram::Ip,
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

/// Existing namespaces of a bed.
fn existing(name: &BedName) -> Result<Vec<String>, Fault> {
    let listed = look("ip", &["netns", "list"])?;
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let own = names.filter(|found| found.starts_with(&name.prefix()));
    Ok(own.map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bed_counts_once_all_of_it_has_been_made() {
        let plan = BedPlan {
            name: BedName::new("x").unwrap(),
            hosts: Vec::new(),
            switches: Vec::new(),
            needs_netem: false,
            steps: Vec::new(),
        };
        let state = |complete, plan| BedState {
            scenario: "some".into(),
            plan,
            switches: Switches::Kernel,
            complete,
            switch: None,
            children: Vec::new(),
            namespaces: Vec::new(),
        };
        let own = digest(&plan);
        let said = |state| check(&plan, Switches::Kernel, state).map_err(|fault| fault.what);
        assert_eq!(said(state(true, own)), Ok(state(true, own)));
        let half = said(state(false, own)).unwrap_err();
        assert!(half.contains("`x` of some is half made"), "{half}");
        let other = said(state(true, own + 1)).unwrap_err();
        assert!(other.contains("is up already, of some"), "{other}");
        assert!(check(&plan, Switches::Soft, state(true, own)).is_err());
    }
}
