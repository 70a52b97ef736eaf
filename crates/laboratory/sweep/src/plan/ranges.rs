//! `[sample.ranges]`: ranges of drawn keys.

use super::quantity::{QuantityKind, quantity};
use super::reader::{RANGES, Reader};
use super::sample::Range;
use super::settings::SampleSection;
use super::{Sample, SampleRange};
use clearway_scenario::ScenarioError;
use clearway_scenario::source::Entry;
use clearway_units::Value;
use std::collections::BTreeMap;

/// Keys of a range with two ends.
const PARTS: [&str; 3] = ["from", "to", "scale"];

/// The sample, if the plan has one.
pub(super) fn sample(reader: &Reader) -> Result<Option<Sample>, ScenarioError> {
    if reader.count("sample") == 0 {
        return Ok(None);
    }
    let is_range = |key: &str| key.starts_with(RANGES);
    let settings: SampleSection = reader.fill("[sample]", "sample", 0, is_range)?;
    let fault = |keys: &[&str], message: &str, fix: &str| {
        Err(ScenarioError::at(
            &reader.place("sample", 0, keys),
            message,
            fix,
        ))
    };
    if settings.points == 0 {
        return fault(
            &["points"],
            "the sample is empty: it has 0 points, and the plan 0 runs",
            "write how many points are to be drawn, as in `points = 40`",
        );
    }
    let ranges = ranges(reader)?;
    if ranges.is_empty() {
        return fault(
            &[],
            "the sample has no ranges to draw from",
            "write `[sample.ranges]` and below it a range for each key, as in `\"workload.message\" = [\"64KB\", \"1MB\"]`",
        );
    }
    Ok(Some(Sample { settings, ranges }))
}

/// Ranges of a plan, in order.
fn ranges(reader: &Reader) -> Result<Vec<SampleRange>, ScenarioError> {
    let mut ranges = Vec::new();
    let mut parts: BTreeMap<&str, BTreeMap<&str, &Entry>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for entry in reader.section("sample", 0) {
        let Some(key) = entry.key.strip_prefix(RANGES) else {
            continue;
        };
        if let Value::List(values) = &entry.value {
            let values = reader.distinct(entry, key, values)?;
            let range = Range::Choices(values);
            let place = entry.place.clone();
            ranges.push((
                key,
                SampleRange {
                    key: key.into(),
                    range,
                    place,
                },
            ));
            order.push(key);
            continue;
        }
        let named = key
            .rsplit_once('.')
            .filter(|(_, part)| PARTS.contains(part));
        let Some((key, part)) = named else {
            return Err(ScenarioError::at(
                &entry.place,
                format!("`{key}` is not a range"),
                "give its ends, as in `{ from = \"5us\", to = \"50us\", scale = \"log\" }`, or a list of values to choose from",
            ));
        };
        if !order.contains(&key) {
            order.push(key);
        }
        parts.entry(key).or_default().insert(part, entry);
    }
    for (key, parts) in parts {
        ranges.push((key, between(key, &parts)?));
    }
    ranges.sort_by_key(|(key, _)| order.iter().position(|known| known == key));
    Ok(ranges.into_iter().map(|(_, range)| range).collect())
}

fn between(key: &str, parts: &BTreeMap<&str, &Entry>) -> Result<SampleRange, ScenarioError> {
    let any = parts.values().next().expect("a range has a part");
    let end = |name: &str| {
        let entry = parts.get(name).ok_or_else(|| {
            ScenarioError::at(
                &any.place,
                format!("the range of `{key}` has no `{name}`"),
                "give both ends, as in `{ from = \"5us\", to = \"50us\" }`",
            )
        })?;
        let found = quantity(&entry.value).filter(|(_, number)| *number >= 0.0);
        found
            .map(|(kind, number)| (*entry, kind, number))
            .ok_or_else(|| {
                ScenarioError::at(
                    &entry.place,
                    format!("the range of `{key}` cannot end at {}", entry.value),
                    "give a quantity of zero or more, or write a list of values to choose from",
                )
            })
    };
    let (first, from_kind, from) = end("from")?;
    let (_, to_kind, to) = end("to")?;
    let fault = |message: String, fix: &str| Err(ScenarioError::at(&first.place, message, fix));
    let Some(kind) = from_kind.and(to_kind) else {
        let message = format!("the ends of the range of `{key}` are quantities of different kinds");
        return fault(message, "write both in units of one kind");
    };
    if from >= to {
        let message = format!("the range of `{key}` ends before it begins");
        return fault(message, "give a `to` that is greater than `from`");
    }
    let log = match parts.get("scale").map(|entry| (&entry.value, entry)) {
        None => false,
        Some((Value::Text(scale), _)) if scale == "log" => true,
        Some((Value::Text(scale), _)) if scale == "linear" => false,
        Some((other, entry)) => {
            return Err(ScenarioError::at(
                &entry.place,
                format!("the scale of the range of `{key}` cannot be {other}"),
                "expected one of \"linear\", \"log\"",
            ));
        }
    };
    if log && from == 0.0 {
        let message = format!("the range of `{key}` begins at zero, which has no logarithm");
        return fault(message, "begin above zero, or set `scale = \"linear\"`");
    }
    let whole = kind != QuantityKind::Number;
    debug_assert!(!whole || from.fract() == 0.0, "base units are whole");
    Ok(SampleRange {
        key: key.into(),
        range: Range::Between {
            kind,
            from,
            to,
            log,
        },
        place: first.place.clone(),
    })
}
