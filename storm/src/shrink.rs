//! Reduction of a failing scenario to the smallest one that fails in the same way.

use crate::draft::{Draft, Section};
use crate::typical_settings;
use clearway_units::Value;

/// Removes and simplifies entries as long as `fails` holds. To end the search, `fails` may return false at any time.
pub(crate) fn shrunk(draft: &Draft, mut fails: impl FnMut(&Draft) -> bool) -> Draft {
    let mut least = draft.clone();
    loop {
        let before = least.clone();
        without_workloads(&mut least, &mut fails);
        without_entries(&mut least, &mut fails);
        with_less(&mut least, &mut fails);
        if least == before {
            return least;
        }
    }
}

/// Tries `candidate` in place of `least`.
fn improve(least: &mut Draft, candidate: Draft, fails: &mut impl FnMut(&Draft) -> bool) -> bool {
    let better = candidate != *least && fails(&candidate);
    if better {
        *least = candidate;
    }
    better
}

/// Removes whole sections of workloads, the last ones first.
fn without_workloads(least: &mut Draft, fails: &mut impl FnMut(&Draft) -> bool) {
    let number = |draft: &Draft, place: usize| match draft.entries()[place].section {
        Section::Workload(number) => Some(number),
        _ => None,
    };
    let count = |draft: &Draft| {
        let last = draft.entries().len().checked_sub(1);
        last.and_then(|last| number(draft, last))
            .map_or(0, |last| last + 1)
    };
    for section in (0..count(least)).rev() {
        if count(least) > 1 {
            let candidate = least.keep(|place| number(least, place) != Some(section));
            improve(least, candidate, fails);
        }
    }
}

/// Removes entries, first many at a time and then single ones (Zeller and Hildebrandt 2002).
fn without_entries(least: &mut Draft, fails: &mut impl FnMut(&Draft) -> bool) {
    let mut share = least.entries().len() / 2;
    while share > 0 {
        let mut from = 0;
        while from < least.entries().len() {
            let taken = |place: usize| {
                let entry = &least.entries()[place];
                (from..from + share).contains(&place)
                    // Removed only singly: without such an entry, runs get long or other keys unknown.
                    && (share == 1 || entry.key != "kind")
                    && (share == 1 || !typical_settings::is_needed(entry.section.name(), &entry.key))
            };
            let candidate = least.keep(|place| !taken(place));
            if !improve(least, candidate, fails) {
                from += share;
            }
        }
        share /= 2;
    }
}

/// Simplifies values.
fn with_less(least: &mut Draft, fails: &mut impl FnMut(&Draft) -> bool) {
    for place in 0..least.entries().len() {
        // The simplest first.
        for value in simpler(&least.entries()[place].key, &least.entries()[place].value) {
            let candidate = least.with_value(place, value);
            if improve(least, candidate, fails) {
                break;
            }
        }
    }
}

/// Simpler values than `value`, the simplest first.
fn simpler(key: &str, value: &Value) -> Vec<Value> {
    match value {
        Value::Integer(number) => {
            let fewer = [1, 2, number / 2, number - 1];
            let fewer = fewer
                .into_iter()
                .filter(|fewer| fewer < number && *fewer > 0);
            fewer.map(Value::Integer).collect()
        }
        Value::List(items) if items.len() > 1 => {
            let without = |place: usize| {
                let mut items = items.clone();
                items.remove(place);
                Value::List(items)
            };
            (0..items.len()).map(without).collect()
        }
        // Other kinds and shorter limits would make different scenarios.
        Value::Text(text) if key != "kind" && key != "stop.at-most" => {
            let number = text.find(|c: char| !c.is_ascii_digit() && c != '.');
            let Some((digits, unit)) = number.and_then(|end| text.split_at_checked(end)) else {
                return Vec::new();
            };
            let Ok(number) = digits.parse::<f64>() else {
                return Vec::new();
            };
            let rounded = [1.0, 10.0, 100.0, number.trunc()];
            let rounded = rounded
                .into_iter()
                .filter(|&other| other < number && other > 0.0);
            rounded
                .map(|number| Value::Text(format!("{number}{unit}")))
                .collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let mut draft = Draft::default();
        let mut set = |section, key: &str, value: Value| {
            draft.set(section, key, value, String::new());
        };
        set(Section::Top, "stop.at-most", Value::Text("1ms".into()));
        for number in 0..3 {
            let section = Section::Workload(number);
            set(section, "kind", Value::Text(format!("kind{number}")));
            set(section, "count", Value::Integer(40));
            set(section, "message", Value::Text("123.5KB".into()));
        }
        set(Section::Switch, "queue", Value::Text("9300B".into()));
        set(
            Section::Topology,
            "links",
            Value::List((0..4).map(Value::Integer).collect()),
        );
        let mut tries = 0;
        let least = shrunk(&draft, |draft| {
            tries += 1;
            let text = draft.text();
            let has = |key: &str, holds: fn(&Value) -> bool| {
                let mut entries = draft.entries().iter();
                entries.any(|entry| entry.key == key && holds(&entry.value))
            };
            text.contains("kind1")
                && has("count", |value| matches!(value, Value::Integer(9..)))
                && has("links", |value| value.to_string().contains('2'))
        });
        assert_eq!(
            least.text(),
            "\n[topology]\nlinks = [2]\n\n[[workload]]\nkind = \"kind1\"\ncount = 9\n"
        );
        assert!(tries < 150, "{tries}");
    }
}
