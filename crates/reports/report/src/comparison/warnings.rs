//! Reasons why ratios may be misleading.

use super::outcome::{RunOutcome, VariantOutcome};
use crate::quantity::{bytes, count};
use crate::summary::StatusName;

/// Warnings to read before relying on the ratios.
pub(super) fn collect(variants: &[VariantOutcome]) -> Vec<String> {
    let Some((first, others)) = variants.split_first() else {
        return Vec::new();
    };
    let mut warnings: Vec<String> = variants.iter().filter_map(unfinished).collect();
    warnings.extend(variants.iter().flat_map(of_runs));
    for other in others {
        warnings.extend(other_work(first, other));
        warnings.extend(other_program(first, other));
        warnings.extend(same_run(first, other));
    }
    warnings
}

/// Warnings about the runs of a variant, with the seeds concerned if not all are.
fn of_runs(variant: &VariantOutcome) -> Vec<String> {
    let mut texts: Vec<&String> = Vec::new();
    for text in variant.runs.iter().flat_map(|run| &run.warnings) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let sentence = |text: &String| {
        let own = variant
            .runs
            .iter()
            .filter(|run| run.warnings.contains(text));
        let seeds: Vec<String> = own.map(|run| run.scenario.seed.to_string()).collect();
        match (seeds.len() == variant.runs.len(), seeds.len()) {
            (true, _) => format!("{}: {text}", variant.id),
            (false, 1) => format!("{} with seed {}: {text}", variant.id, seeds[0]),
            (false, _) => format!("{} with seeds {}: {text}", variant.id, seeds.join(", ")),
        }
    };
    texts.into_iter().map(sentence).collect()
}

/// Warning that times cover only completed flows and iterations: the slowest are missing.
fn unfinished(variant: &VariantOutcome) -> Option<String> {
    let short = |run: &&RunOutcome| run.status != StatusName::Complete;
    let short: Vec<&RunOutcome> = variant.runs.iter().filter(short).collect();
    let seeds: Vec<String> = short.iter().copied().map(completed).collect();
    let has_flows = |run: &&RunOutcome| run.flows.completed < run.flows.total;
    let has_operations =
        |run: &&RunOutcome| run.operations.is_some_and(|all| all.completed < all.total);
    // Computations may remain after all messages have completed.
    let left_out = if short.iter().any(has_operations) {
        "its latencies leave out the slowest operations"
    } else if short.is_empty() || short.iter().any(has_flows) {
        "its completion times leave out the slowest flows"
    } else {
        "its times of iterations leave out those that were not over"
    };
    (!seeds.is_empty()).then(|| {
        let seeds = seeds.join("; ");
        format!("{} is incomplete ({seeds}): {left_out}", variant.id)
    })
}

fn completed(run: &RunOutcome) -> String {
    let of = |completed, total| format!("{} of {}", count(completed), count(total));
    let (flows, jobs) = (run.flows, run.jobs);
    let jobs = match jobs.completed < jobs.total {
        true => format!(" and {} jobs", of(jobs.completed, jobs.total)),
        false => String::new(),
    };
    let work = match run.operations {
        Some(all) if flows.total == 0 => format!("{} operations", of(all.completed, all.total)),
        _ => format!("{} flows", of(flows.completed, flows.total)),
    };
    format!("seed {}: {work}{jobs} completed", run.scenario.seed)
}

/// The runs of two variants with a common seed.
fn common<'a>(
    first: &'a VariantOutcome,
    other: &'a VariantOutcome,
) -> impl Iterator<Item = (&'a RunOutcome, &'a RunOutcome)> {
    other.runs.iter().filter_map(|own| {
        let same_seed = |run: &&RunOutcome| run.scenario.seed == own.scenario.seed;
        first.runs.iter().find(same_seed).map(|run| (run, own))
    })
}

fn other_work(first: &VariantOutcome, other: &VariantOutcome) -> Option<String> {
    let amount = |run: &RunOutcome| {
        let operations = run.operations.map(|operations| operations.total);
        (run.flows.total, run.bytes, operations)
    };
    let differ = |(a, b): &(&RunOutcome, &RunOutcome)| amount(a) != amount(b);
    let any = || Some((first.runs.first()?, other.runs.first()?));
    let pair = match common(first, other).next() {
        Some(_) => common(first, other).find(differ),
        // Random sizes may differ from seed to seed; other differences cannot be excluded then.
        None => any().filter(differ),
    };
    let (a, b) = pair?;
    let seeds = match (a.scenario.seed, b.scenario.seed) {
        (a, b) if a == b => format!("seed {a}"),
        (a, b) => format!("seeds {a} and {b}"),
    };
    Some(format!(
        "{} and {} do different work: {} against {} with {seeds}",
        first.id,
        other.id,
        work(a),
        work(b),
    ))
}

fn work(run: &RunOutcome) -> String {
    if let (Some(operations), 0) = (run.operations, run.flows.total) {
        return format!("{} operations in all", count(operations.total));
    }
    let flows = match run.flows.total {
        1 => "1 flow".into(),
        total => format!("{} flows", count(total)),
    };
    format!("{flows} of {} in all", bytes(run.bytes))
}

fn other_program(first: &VariantOutcome, other: &VariantOutcome) -> Option<String> {
    let program = |run: &RunOutcome| format!("{} (revision {})", run.version, run.revision);
    let a = program(first.runs.first()?);
    let b = other.runs.iter().map(program).find(|b| *b != a)?;
    Some(format!(
        "{} and {} come from different programs: {a} and {b}",
        first.id, other.id
    ))
}

/// Warning about a setting that changes nothing, which is often a mistake. The digest covers only completed work, so it does not suffice
/// for runs that were cut off.
fn same_run(first: &VariantOutcome, other: &VariantOutcome) -> Option<String> {
    let mut pairs = common(first, other).peekable();
    let kind = match pairs.peek()?.0.operations {
        Some(_) => "operation",
        None => "packet",
    };
    let is_whole = |run: &RunOutcome| run.status == StatusName::Complete;
    let is_same =
        |(a, b): (&RunOutcome, &RunOutcome)| is_whole(a) && is_whole(b) && a.digest == b.digest;
    pairs.all(is_same).then(|| {
        format!(
            "{} came to the same as {}, {kind} for {kind} (equal digests)",
            other.id, first.id
        )
    })
}
