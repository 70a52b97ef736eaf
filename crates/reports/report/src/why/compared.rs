//! `why.json` of a comparison: the parts of the time of the slowest iteration, or of the slowest flow, for each variant.
//!
//! | field | unit | meaning |
//! |---|---|---|
//! | `kind`, `schema` | - | `why-comparison`, and the version of this table, 1 |
//! | `seed` | - | seed of the runs that are explained, the first with which all variants ran |
//! | `answer` | - | how much longer each variant took than the first one, and by which kinds of time |
//! | `variants[].id`, `.label`, `.name` | - | letter and label as in [`compare.json`](crate::comparison), and the short name of the answer |
//! | `….folder` | - | folder of the run; the `why.json` of the run has links, hosts and steps |
//! | `….what` | - | the explained iteration or flow |
//! | `….took_us` | us | its time |
//! | `….parts[]` | us | kinds of time, `part` and `us`, the longest first; their sum is `took_us` |
//! | `….sentence` | - | the same in words, as in the `why.json` of the run |

use super::{SlowFlow, SlowIteration, WhyRecord};
use crate::quantity::{span, three_digits};
use clearway_units::Span;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of kinds of time that a sentence names.
const MOST_PARTS: usize = 3;
/// Minimum share of a kind of time in the sum of all differences to be named.
const NOTABLE: f64 = 0.05;

/// Variants of a comparison, each with the explained run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhyComparison {
    kind: &'static str,
    schema: u32,
    /// Seed of the runs.
    pub seed: u64,
    /// Answer: the additional time of each variant compared with the first.
    pub answer: String,
    /// The variants, in order.
    pub variants: Vec<ExplainedVariant>,
}

/// Variant of a comparison with the kinds of time of its slowest iteration or flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedVariant {
    /// Letter of the variant: `A`, `B`, ….
    pub id: String,
    /// Label that tells the variant from the others.
    pub label: String,
    /// Short name of the variant.
    pub name: String,
    /// Folder of the run.
    pub folder: String,
    /// The explained iteration or flow.
    pub what: String,
    /// Time of the iteration or flow.
    pub took_us: f64,
    /// Kinds of time, the longest first.
    pub parts: Vec<PartTime>,
    /// The kinds of time in words.
    pub sentence: String,
    /// Kinds of time in picoseconds; their sum is [`took`](Self::took).
    #[serde(skip)]
    pub times: BTreeMap<&'static str, u64>,
}

/// Time of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartTime {
    /// Kind of time.
    pub part: &'static str,
    /// The time.
    pub us: f64,
}

impl ExplainedVariant {
    /// The slowest iteration of a run with jobs, otherwise its slowest flow; `None` if the run has neither.
    pub fn from_record(
        id: &str,
        label: &str,
        name: &str,
        folder: String,
        why: &WhyRecord,
    ) -> Option<Self> {
        let (what, times, sentence) = match (&why.iteration, why.flows.first()) {
            (Some(iteration), _) => of_iteration(iteration),
            (None, Some(flow)) => of_flow(flow),
            (None, None) => return None,
        };
        let mut parts: Vec<(&'static str, u64)> =
            times.iter().map(|(&part, &ps)| (part, ps)).collect();
        parts.sort_by_key(|&(_, ps)| std::cmp::Reverse(ps));
        let part = |(part, ps)| PartTime {
            part,
            us: Span::from_ps(ps).as_us(),
        };
        Some(Self {
            id: id.into(),
            label: label.into(),
            name: name.into(),
            folder,
            what,
            took_us: Span::from_ps(times.values().sum()).as_us(),
            parts: parts.into_iter().map(part).collect(),
            sentence,
            times,
        })
    }

    /// Time of the iteration or flow.
    pub fn took(&self) -> Span {
        Span::from_ps(self.times.values().sum())
    }

    /// Sentence on the additional time compared with the first variant, with the kinds of time behind it.
    fn beside(&self, first: &Self) -> String {
        let (own, other) = (self.took(), first.took());
        let what = match self.what == first.what {
            true => "it took".to_owned(),
            false => format!("the slowest was {}, which took", self.what),
        };
        let longer = match own == other {
            true => "as long".to_owned(),
            false => {
                let ratio = own.as_ps() as f64 / other.as_ps().max(1) as f64;
                format!("{} times as long", three_digits(ratio))
            }
        };
        let differences = self.differences(first);
        let all: i128 = differences.iter().map(|(_, ps)| ps.abs()).sum();
        let notable = |(_, ps): &&(&str, i128)| ps.abs() as f64 >= NOTABLE * all as f64;
        let named = differences.iter().filter(|(_, ps)| *ps != 0);
        let named = named.filter(notable).take(MOST_PARTS);
        let named: Vec<String> = named
            .map(|(part, ps)| {
                let more = if *ps > 0 { "more" } else { "less" };
                let time = span(Span::from_ps(ps.unsigned_abs() as u64));
                format!("{time} {more} {part}")
            })
            .collect();
        let why = match named.is_empty() {
            true => String::new(),
            false => format!(": {}", named.join(", ")),
        };
        format!("With {} {what} {}, {longer}{why}.", self.name, span(own))
    }

    /// Differences of kinds of time to the first variant, in picoseconds, the greatest first.
    fn differences(&self, first: &Self) -> Vec<(&'static str, i128)> {
        let time = |of: &Self, part: &str| i128::from(of.times.get(part).copied().unwrap_or(0));
        let mut parts: Vec<&'static str> = self
            .times
            .keys()
            .chain(first.times.keys())
            .copied()
            .collect();
        parts.sort_unstable();
        parts.dedup();
        let differences = parts
            .into_iter()
            .map(|part| (part, time(self, part) - time(first, part)));
        let mut differences: Vec<(&'static str, i128)> = differences.collect();
        differences.sort_by_key(|&(_, ps)| std::cmp::Reverse(ps.abs()));
        differences
    }
}

impl WhyComparison {
    /// Variants explained by their runs with one seed.
    pub fn new(seed: u64, variants: Vec<ExplainedVariant>) -> Self {
        let mut own = Self {
            kind: "why-comparison",
            schema: 1,
            seed,
            answer: String::new(),
            variants,
        };
        own.answer = own.sentences().join(" ");
        own
    }

    /// A sentence for each variant.
    pub fn sentences(&self) -> Vec<String> {
        let Some((first, others)) = self.variants.split_first() else {
            return Vec::new();
        };
        let took = span(first.took());
        let mut sentences = vec![format!("With {} {} took {took}.", first.name, first.what)];
        sentences.extend(others.iter().map(|other| other.beside(first)));
        sentences
    }

    /// `why.json` of the comparison: indented, with a final line break.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("it holds text and finite numbers") + "\n"
    }

    /// Kinds of time, ordered by the largest difference between variants.
    pub fn parts(&self) -> Vec<&'static str> {
        let parts = self
            .variants
            .iter()
            .flat_map(|variant| variant.times.keys());
        let mut parts: Vec<&'static str> = parts.copied().collect();
        parts.sort_unstable();
        parts.dedup();
        let range = |part: &&'static str| {
            let times = self.variants.iter();
            let times = times.map(|variant| variant.times.get(*part).copied().unwrap_or(0));
            times.clone().max().unwrap_or(0) - times.min().unwrap_or(0)
        };
        parts.sort_by_key(|part| std::cmp::Reverse(range(part)));
        parts
    }
}

fn of_iteration(iteration: &SlowIteration) -> (String, BTreeMap<&'static str, u64>, String) {
    let parts = iteration.parts.iter();
    let times = parts.map(|row| (row.part.name(), row.ps)).collect();
    let what = format!("iteration {} of {}", iteration.iteration, iteration.job);
    (what, times, iteration.sentence.clone())
}

fn of_flow(flow: &SlowFlow) -> (String, BTreeMap<&'static str, u64>, String) {
    let mut times: BTreeMap<&'static str, u64> = BTreeMap::new();
    for row in &flow.parts {
        *times.entry(row.part.name()).or_default() += row.ps;
    }
    let what = format!(
        "flow {} from host {} to host {}",
        flow.flow, flow.src, flow.dst
    );
    (what, times, flow.sentence.clone())
}

#[cfg(test)]
mod tests {
    use crate::sample_tables::why::explained;

    #[test]
    fn the_answer_names_the_kinds_of_time_that_differ() {
        let compared = explained();
        insta::assert_snapshot!(compared.answer.replace(". With", ".\nWith"), @"
        With strack iteration 1 of ring took 580.0 us.
        With rocev2 it took 610.0 us, 1.05 times as long: 40.00 us more queueing, 10.00 us less propagation.
        With same it took 580.0 us, as long.
        With lossy it took 1.580 ms, 2.72 times as long: 999.0 us more timeout.
        ");
        let json: serde_json::Value = serde_json::from_str(&compared.to_json()).unwrap();
        assert_eq!(json["variants"][1]["name"], "rocev2");
        assert_eq!(json["kind"], "why-comparison");
    }
}
