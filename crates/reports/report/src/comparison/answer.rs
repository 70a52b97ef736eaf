//! The answer of a comparison in a sentence: by how much each variant is slower or faster than the first.

use super::{Comparison, MeasureRow, Spread, VariantOutcome};
use crate::quantity::three_digits;
use std::collections::BTreeSet;

/// Measures by which variants are judged, with a phrase for each: the first measure that all runs have decides. Less is better.
const JUDGED_BY: [(&str, &str); 2] = [
    ("jobs_us.max", "in the slowest job"),
    ("slowdown.p99", "by the p99 slowdown of flows"),
];

impl Comparison {
    /// The answer in a sentence, such as "uet is 1.07 (1.05 to 1.09) times as slow as strack in the slowest job; hpcc cannot be told
    /// apart"; `None` for a single variant, or if some variant has none of the measures.
    pub fn answer(&self) -> Option<String> {
        if self.variants.len() < 2 {
            return None;
        }
        let (row, by) = self.judged_by()?;
        let names = short_names(&self.variants);
        let mut parts: Vec<String> = Vec::new();
        for (place, spread) in row.values.iter().enumerate().skip(1) {
            let first = &row.values[0];
            parts.push(format!(
                "{} {}",
                names[place],
                verdict(spread, first, &names[0])?
            ));
        }
        let mut text = parts.join("; ");
        text += &format!(", {by}");
        if row.values.iter().any(|spread| spread.per_seed.len() < 2) {
            text += " (one seed: seeds alone may explain it)";
        }
        Some(text + ".")
    }

    /// The measure by which the variants are judged, with its phrase; `None` if no measure has a value for every variant.
    pub(super) fn judged_by(&self) -> Option<(&MeasureRow, &'static str)> {
        JUDGED_BY.iter().find_map(|(name, by)| {
            let row = self.measures.iter().find(|row| row.name == *name)?;
            let all_have = row.values.iter().all(|spread| spread.median.is_some());
            all_have.then_some((row, *by))
        })
    }
}

/// True if all runs are of scenarios of one name.
pub(super) fn are_of_one_scenario(variants: &[VariantOutcome]) -> bool {
    let runs = variants.iter().flat_map(|variant| &variant.runs);
    let mut names = runs.map(|run| &run.scenario.name);
    let first = names.next();
    names.all(|name| Some(name) == first)
}

/// A short name of each variant: its label without the settings that all variants share, and without the key if it is the only key that
/// differs. If such a name is empty or not unique, all variants are named by their letters.
pub(super) fn short_names(variants: &[VariantOutcome]) -> Vec<String> {
    let is_of_one_scenario = are_of_one_scenario(variants);
    let settings: Vec<Vec<&str>> = variants.iter().map(settings_of).collect();
    let shared = |setting: &&str| settings.iter().all(|own| own.contains(setting));
    let rest: Vec<Vec<&str>> = settings
        .iter()
        .map(|own| {
            let own = own.iter().filter(|setting| !shared(setting));
            let (set, named): (Vec<&str>, Vec<&str>) = own.partition(|part| part.contains('='));
            // In runs of one scenario, names of folders add nothing to the settings.
            match set.is_empty() || !is_of_one_scenario {
                true => named.into_iter().chain(set).collect(),
                false => set,
            }
        })
        .collect();
    let keys: BTreeSet<&str> = rest
        .iter()
        .flatten()
        .map(|setting| setting.split_once('=').map_or(*setting, |(key, _)| key))
        .collect();
    let name = |own: &[&str]| match own {
        [setting] if keys.len() == 1 => {
            let value = setting.split_once('=').map_or(*setting, |(_, value)| value);
            value.trim_matches('"').to_owned()
        }
        own => own.join(", "),
    };
    let names: Vec<String> = rest.iter().map(|own| name(own)).collect();
    let count = names.iter().collect::<BTreeSet<_>>().len();
    match count == names.len() && names.iter().all(|name| !name.is_empty()) {
        true => names,
        false => variants.iter().map(|variant| variant.id.clone()).collect(),
    }
}

/// Factors below this value have more digits.
const CLOSE: f64 = 1.01;

/// Factor between the greatest and the least value of a variant from which on seeds differ much.
const MUCH: f64 = 2.0;

/// Parts of a label: a scenario, and settings.
fn settings_of(variant: &VariantOutcome) -> Vec<&str> {
    variant
        .label
        .split(", ")
        .flat_map(|part| part.splitn(2, ": "))
        .collect()
}

/// Phrase on the values of a variant, of which less is better, compared with the first variant, called `name`.
fn verdict(own: &Spread, first: &Spread, name: &str) -> Option<String> {
    let ratio = own.ratio?;
    if ratio == 1.0 && own.min == first.min && own.max == first.max {
        return Some(format!("is equal to {name}"));
    }
    let interval = own.ratio_interval();
    // The interval compares pairs of one seed each, so it is more informative than the ranges.
    let is_open = match own.mean_ratio_interval {
        Some([low, high]) => low <= 1.0 && 1.0 <= high,
        None => own.within_spread == Some(true),
    };
    if is_open {
        let why = match interval {
            Some([low, high]) => {
                format!(" ({} to {} times)", three_digits(low), three_digits(high))
            }
            None => seeds_differ(own, first),
        };
        return Some(format!("cannot be told apart from {name}{why}"));
    }
    // The interval belongs to the ratio of the means.
    let ratio = own
        .mean_ratio
        .filter(|_| interval.is_some())
        .unwrap_or(ratio);
    let (factor, interval, word) = match ratio >= 1.0 {
        true => (ratio, interval, "slow"),
        false => (
            1.0 / ratio,
            interval.map(|[low, high]| [1.0 / high, 1.0 / low]),
            "fast",
        ),
    };
    if !factor.is_finite() {
        return None;
    }
    // More digits distinguish a factor close to one from one.
    let digits = |value: f64| match factor < CLOSE {
        true => format!("{value:.4}"),
        false => three_digits(value),
    };
    let range = match interval {
        Some([low, high]) if low < high => format!(" ({} to {})", digits(low), digits(high)),
        _ => String::new(),
    };
    Some(format!(
        "is {}{range} times as {word} as {name}",
        digits(factor)
    ))
}

/// Difference between the seeds of a variant or of the first variant, in brackets, if it is large.
fn seeds_differ(own: &Spread, first: &Spread) -> String {
    let widest = own.seeds_differ().max(first.seeds_differ());
    match widest >= MUCH {
        true => format!(" (seeds differ {}-fold)", three_digits(widest)),
        false => String::new(),
    }
}
