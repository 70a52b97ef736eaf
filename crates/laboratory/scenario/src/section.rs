//! Sections of a scenario: setting their keys, and errors about unknown keys and names.

use crate::error::{ScenarioError, SourceLocation, UnknownKey};
use crate::source::{self, Entry};
use crate::synonyms::{meant_by_key, meant_by_name};
use clearway_units::{ParameterInfo, SetError, Value, nearest, suggestion};

/// The part of a section that can be set by key.
pub(crate) trait Section {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError>;
    /// All keys, for suggestions.
    fn keys(&self) -> Vec<ParameterInfo>;
}

/// Sets all `entries` of a section.
pub(crate) fn fill(
    name: &str,
    section: &mut dyn Section,
    entries: &[&Entry],
) -> Result<(), ScenarioError> {
    for entry in entries {
        if entry.section.is_empty() {
            refuse_misplaced_section(entry)?;
        }
        match section.set(&entry.key, &entry.value) {
            Ok(()) => {}
            Err(SetError::BadValue { expected }) => {
                let key = if entry.section.is_empty() {
                    entry.key.clone()
                } else {
                    format!("{}.{}", entry.section, entry.key)
                };
                return Err(ScenarioError::at(
                    &entry.place,
                    format!("`{key}` cannot be {}", entry.value),
                    format!("expected {expected}"),
                ));
            }
            Err(SetError::UnknownKey) => return Err(unknown_key(name, section, entry)),
        }
    }
    Ok(())
}

/// Rejects a dotted key at the top, which usually comes from a misspelt section name.
fn refuse_misplaced_section(entry: &Entry) -> Result<(), ScenarioError> {
    match entry.key.split_once('.') {
        Some((section, _)) if section != "stop" => Err(unknown_section(&entry.place, section)),
        _ => Ok(()),
    }
}

/// "no such section", with the nearest existing section.
fn unknown_section(place: &SourceLocation, section: &str) -> ScenarioError {
    let known = format!("the sections are: {}", source::SECTIONS.join(", "));
    let fix = suggestion(nearest(section, source::SECTIONS), &known);
    ScenarioError::at(place, format!("there is no section `{section}`"), fix)
}

fn unknown_key(name: &str, section: &dyn Section, entry: &Entry) -> ScenarioError {
    let parameters = section.keys();
    let keys = || parameters.iter().map(|parameter| parameter.key);
    let below: Vec<&str> = keys()
        .filter(|key| {
            key.strip_prefix(entry.key.as_str())
                .is_some_and(|rest| rest.starts_with('.'))
        })
        .collect();
    let meant = meant_by_key(&entry.key);
    let fix = if below.is_empty() {
        let mut known: Vec<&str> = keys().collect();
        known.sort_unstable();
        let known = format!("the keys are: {}", known.join(", "));
        match &meant {
            Some(meant) => meant.clone(),
            None => suggestion(nearest(&entry.key, keys()), &known),
        }
    } else {
        format!("give its parts: {}", below.join(", "))
    };
    let error = ScenarioError::at(
        &entry.place,
        format!("{name} has no key `{}`", entry.key),
        fix,
    );
    let unknown = (below.is_empty() && meant.is_none()).then(|| UnknownKey {
        section: entry.section.clone(),
        key: entry.key.clone(),
    });
    ScenarioError {
        unknown: unknown.map(Box::new),
        ..error
    }
}

/// "no such kind", with the nearest existing kind.
pub(crate) fn unknown_name(
    entry: &Entry,
    section: &str,
    key: &str,
    name: &str,
    names: &[&str],
) -> ScenarioError {
    let known = format!("use one of: {}", names.join(", "));
    let fix = match meant_by_name((section, key), name, names) {
        Some(meant) if meant.ends_with('?') => format!("{meant} Use one of: {}", names.join(", ")),
        Some(meant) => format!("{meant}; else {known}"),
        None => suggestion(nearest(name, names.iter().copied()), &known),
    };
    ScenarioError::at(
        &entry.place,
        format!("`{section}.{key}`: there is no {}", entry.value),
        fix,
    )
}
