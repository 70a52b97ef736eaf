//! Entries of a plan, section by section.

use super::{PlannedAxis, PlannedPoint, PlannedValue};
use clearway_scenario::source::{Entry, FileSections};
use clearway_scenario::{ScenarioError, SourceLocation, SourceLocations};
use clearway_units::{ParameterSet, SetError, Value, nearest, suggestion};
use std::collections::BTreeSet;

/// Prefix of the keys of `[sample.ranges]`.
pub(super) const RANGES: &str = "ranges.";

const LAYOUT: FileSections = FileSections {
    sections: &["set", "axes", "point", "sample", "tune", "assert"],
    several: &["point", "assert"],
    top: &[],
    filled: &["sample", "tune"],
};

/// Normal form of a key: the first section does not need a number.
pub(super) fn normal(key: &str) -> String {
    key.replacen("[0].", ".", 1)
}

/// Line of an entry, and the position of its key in the line.
fn position(lines: &[&str], entry: &Entry) -> (usize, usize) {
    let SourceLocation::Line { line, .. } = entry.place else {
        return (0, 0);
    };
    let text = lines.get(line - 1).copied().unwrap_or_default();
    let mut key = entry.key.strip_prefix(RANGES).unwrap_or(&entry.key);
    loop {
        match (text.find(key), key.rsplit_once('.')) {
            (Some(column), _) => return (line, column),
            (None, Some((rest, _))) => key = rest,
            (None, None) => return (line, usize::MAX),
        }
    }
}

/// Entries of a plan with their places.
pub(super) struct Reader {
    entries: Vec<Entry>,
    places: SourceLocations,
}

impl Reader {
    /// Entries of the text of a plan, in order, with normal forms of keys.
    pub(super) fn new(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut entries = LAYOUT.read(file, text)?;
        let lines: Vec<&str> = text.lines().collect();
        entries.sort_by_key(|entry| position(&lines, entry));
        let mut seen = BTreeSet::new();
        for entry in &mut entries {
            let key = normal(&entry.key);
            let given = std::mem::replace(&mut entry.key, key);
            if !seen.insert((entry.section.clone(), entry.index, entry.key.clone())) {
                return Err(ScenarioError::at(
                    &entry.place,
                    format!(
                        "`{given}` is given already: `{}` is the same key",
                        entry.key
                    ),
                    "remove one of the two",
                ));
            }
        }
        Ok(Self {
            places: SourceLocations::new(file, &entries),
            entries,
        })
    }

    /// Entries of a section.
    pub(super) fn section<'r>(
        &'r self,
        section: &'r str,
        index: usize,
    ) -> impl Iterator<Item = &'r Entry> {
        let own = move |entry: &&Entry| entry.section == section && entry.index == index;
        self.entries.iter().filter(own)
    }

    /// Number of sections with a name.
    pub(super) fn count(&self, section: &str) -> usize {
        let own = self.entries.iter().filter(|entry| entry.section == section);
        own.map(|entry| entry.index + 1).max().unwrap_or(0)
    }

    /// Best place for a fault in `keys` of a section.
    pub(super) fn place(&self, section: &str, index: usize, keys: &[&str]) -> SourceLocation {
        self.places.of_keys(section, index, keys)
    }

    /// A section filled with the user's entries, except keys for which `is_other` is true.
    pub(super) fn fill<S: ParameterSet>(
        &self,
        what: &str,
        section: &str,
        index: usize,
        is_other: impl Fn(&str) -> bool,
    ) -> Result<S, ScenarioError> {
        let mut settings = S::default();
        for entry in self.section(section, index) {
            if is_other(&entry.key) {
                continue;
            }
            match settings.set(&entry.key, &entry.value) {
                Ok(()) => {}
                Err(SetError::BadValue { expected }) => {
                    return Err(ScenarioError::at(
                        &entry.place,
                        format!("`{}` cannot be {}", entry.key, entry.value),
                        format!("expected {expected}"),
                    ));
                }
                Err(SetError::UnknownKey) => return Err(unknown_key::<S>(what, section, entry)),
            }
        }
        Ok(settings)
    }

    /// Keys and values of a section.
    pub(super) fn values(&self, section: &str, index: usize) -> Vec<PlannedValue> {
        let value = |entry: &Entry| PlannedValue {
            key: entry.key.clone(),
            value: entry.value.clone(),
            place: entry.place.clone(),
        };
        self.section(section, index).map(value).collect()
    }

    /// Axes of the grid.
    pub(super) fn axes(&self) -> Result<Vec<PlannedAxis>, ScenarioError> {
        let axis = |entry: &Entry| {
            let Value::List(values) = &entry.value else {
                return Err(ScenarioError::at(
                    &entry.place,
                    format!("the axis `{}` has no list of values", entry.key),
                    format!(
                        "write `\"{}\" = [{}]`, or move it to `[set]`",
                        entry.key, entry.value
                    ),
                ));
            };
            Ok(PlannedAxis {
                key: entry.key.clone(),
                values: self.distinct(entry, &entry.key, values)?,
                place: entry.place.clone(),
            })
        };
        self.section("axes", 0).map(axis).collect()
    }

    /// The values of a list, which must be distinct.
    pub(super) fn distinct(
        &self,
        entry: &Entry,
        key: &str,
        values: &[Value],
    ) -> Result<Vec<Value>, ScenarioError> {
        if values.is_empty() {
            return Err(ScenarioError::at(
                &entry.place,
                format!("the grid is empty: `{key}` has no values, and the plan 0 runs"),
                "give it values, or remove it",
            ));
        }
        let twice = (1..values.len()).find(|&at| values[..at].contains(&values[at]));
        twice.map_or(Ok(values.to_vec()), |at| {
            Err(ScenarioError::at(
                &entry.place,
                format!("`{key}` has the value {} twice", values[at]),
                "name each once; `seeds` repeats runs",
            ))
        })
    }

    /// Single points.
    pub(super) fn points(&self) -> Vec<PlannedPoint> {
        let point = |index| PlannedPoint {
            values: self.values("point", index),
        };
        (0..self.count("point")).map(point).collect()
    }
}

fn unknown_key<S: ParameterSet>(what: &str, section: &str, entry: &Entry) -> ScenarioError {
    let mut keys: Vec<&str> = S::describe()
        .iter()
        .map(|parameter| parameter.key)
        .collect();
    keys.sort_unstable();
    let known = match section {
        "" => format!(
            "the keys are: {}; the sections are: {}; keys of the scenario go into `[set]` or `[axes]`",
            keys.join(", "),
            LAYOUT.sections.join(", ")
        ),
        _ => format!("the keys are: {}", keys.join(", ")),
    };
    ScenarioError::at(
        &entry.place,
        format!("{what} has no key `{}`", entry.key),
        suggestion(nearest(&entry.key, keys), &known),
    )
}
