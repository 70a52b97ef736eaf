//! Limits of sections: values that make no sense, and sizes that do not fit into memory.

use super::workload::{RandomSetsSettings, ScaleupWorkload, ScaleupWorkloadKind, UniformSettings};
use crate::ScenarioError;
use clearway_units::HostId;

/// Maximum number of operations of a run. An operation takes memory while it waits, and leaves a row in the results.
pub(super) const MOST_OPERATIONS: u64 = 20_000_000;
/// Maximum number of pairs of members, in all groups together: 3CPO keeps state for each pair.
const MOST_PAIRS: u64 = 1 << 25;

/// Rejects values that make no sense, and sizes that do not fit into memory.
pub(super) fn check_section(section: &ScaleupWorkload, members: u64) -> Result<(), ScenarioError> {
    let (key, each) = match &section.kind {
        ScaleupWorkloadKind::Collective(settings) => {
            require(settings.initiators.unwrap_or(1).into(), "initiators")?;
            // At most a read and a write for each transaction.
            ("transactions", u64::from(settings.transactions) * 2)
        }
        ScaleupWorkloadKind::RandomSets(settings) => {
            check_sets(settings)?;
            let factor = if settings.alternate_unicast {
                settings.unicast_factor
            } else {
                1
            };
            let largest = u64::from(settings.most_operations) * u64::from(factor);
            let key = match settings.most_operations > 1_000_000 {
                true => "most-operations",
                false => "sets",
            };
            (key, u64::from(settings.sets).saturating_mul(largest))
        }
        ScaleupWorkloadKind::UniformUnicast(settings) => {
            check_uniform(settings)?;
            ("operations", settings.operations.into())
        }
        // The operations of a trace are counted when the trace is read.
        ScaleupWorkloadKind::Trace(_) => return Ok(()),
    };
    require(each, key)?;
    check_operations(each.saturating_mul(members), key)
}

/// Rejects a run with too many operations; `key` determines their number.
pub(super) fn check_operations(all: u64, key: &'static str) -> Result<(), ScenarioError> {
    if all <= MOST_OPERATIONS {
        return Ok(());
    }
    let message = format!("up to {all} operations, each of which leaves a row");
    let fix = format!("ask for at most {MOST_OPERATIONS} in all");
    Err(ScenarioError::about(&[key], message, fix))
}

/// Rejects groups that are too large together.
pub(super) fn check_pairs(members: &[HostId], before: &[Vec<HostId>]) -> Result<(), ScenarioError> {
    let pairs = |members: &[HostId]| members.len() as u64 * members.len() as u64;
    let all = pairs(members) + before.iter().map(|members| pairs(members)).sum::<u64>();
    if all <= MOST_PAIRS {
        return Ok(());
    }
    let message = format!("groups with {all} pairs of members, for each of which there is state");
    let fix = format!(
        "name fewer members or sections: at most {MOST_PAIRS} pairs, which is one group of 5792"
    );
    Err(ScenarioError::about(
        &["members", "random-members", "kind"],
        message,
        fix,
    ))
}

fn require(count: u64, key: &'static str) -> Result<(), ScenarioError> {
    match count {
        0 => Err(ScenarioError::about(
            &[key],
            format!("`{key}` = 0 leaves nothing to do"),
            "use 1 or more",
        )),
        _ => Ok(()),
    }
}

fn check_sets(settings: &RandomSetsSettings) -> Result<(), ScenarioError> {
    require(settings.sets.into(), "sets")?;
    require(settings.most_operations.into(), "most-operations")?;
    if settings.alternate_unicast {
        require(settings.unicast_factor.into(), "unicast-factor")?;
    }
    let ranges = [
        (
            ["least-operations", "most-operations"],
            settings.least_operations,
            settings.most_operations,
        ),
        (
            ["least-pause", "most-pause"],
            settings.least_pause,
            settings.most_pause,
        ),
    ];
    for (keys, least, most) in ranges {
        if least > most {
            let message = format!("`{}` = {least} is above `{}` = {most}", keys[0], keys[1]);
            let fix = format!(
                "lower the one or raise the other: `{}` = {least} fits",
                keys[1]
            );
            return Err(ScenarioError::about(&keys, message, fix));
        }
    }
    Ok(())
}

fn check_uniform(settings: &UniformSettings) -> Result<(), ScenarioError> {
    match settings.reads <= 1.0 {
        true => Ok(()),
        false => Err(ScenarioError::about(
            &["reads"],
            format!("`reads` = {} is not a probability", settings.reads),
            "use 0 to 1",
        )),
    }
}
