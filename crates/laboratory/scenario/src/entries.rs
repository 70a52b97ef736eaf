//! Entries of a scenario by section, and their text.

use crate::error::ScenarioError;
use crate::section::unknown_name;
use crate::source::Entry;
use clearway_units::{Value, mix64};
use std::fmt::Write as _;

/// The hash `hash`, extended by `bytes`.
pub(crate) fn hash_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| mix64(hash ^ u64::from(byte)))
}

/// The entries of each `[[workload]]` section; one empty section if the scenario has none.
pub(crate) fn by_section(entries: &[Entry]) -> Result<Vec<Vec<&Entry>>, ScenarioError> {
    let mut sections = each_of(entries, "workload")?;
    if sections.is_empty() {
        sections.push(Vec::new());
    }
    Ok(sections)
}

/// The entries of each section of this name. An override may add a section, but not skip one.
pub(crate) fn each_of<'a>(
    entries: &'a [Entry],
    name: &str,
) -> Result<Vec<Vec<&'a Entry>>, ScenarioError> {
    let mut own: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.section == name)
        .collect();
    own.sort_by_key(|entry| entry.index);
    let mut sections: Vec<Vec<&Entry>> = Vec::new();
    for entry in own {
        let count = sections.len();
        if entry.index > count {
            return Err(ScenarioError::at(
                &entry.place,
                format!(
                    "there is no section `{name}[{}]`: the scenario has {count}",
                    entry.index
                ),
                format!("count sections from 0; `{name}[{count}]` adds one"),
            ));
        }
        if entry.index == count {
            sections.push(Vec::new());
        }
        sections[entry.index].push(entry);
    }
    Ok(sections)
}

/// The entries of one section.
pub(crate) fn in_section<'a>(entries: &'a [Entry], section: &str, index: usize) -> Vec<&'a Entry> {
    let own = |entry: &&Entry| entry.section == section && entry.index == index;
    entries.iter().filter(own).collect()
}

pub(crate) fn write_entries(text: &mut String, entries: Vec<(&'static str, Value)>) {
    for (key, value) in entries {
        let _ = writeln!(text, "{key} = {value}");
    }
}

/// The kind that a section names, or implies with `file`.
pub(crate) fn kind_of<K>(
    entries: &[&Entry],
    names: &[&str],
    named: impl Fn(&str) -> Option<K>,
    section: &str,
) -> Result<Option<K>, ScenarioError> {
    let Some(entry) = entries.iter().find(|entry| entry.key == "kind") else {
        let has_file = entries.iter().any(|entry| entry.key == "file");
        return Ok(if has_file { named("file") } else { None });
    };
    let name = match &entry.value {
        Value::Text(name) => name.as_str(),
        _ => "",
    };
    named(name)
        .map(Some)
        .ok_or_else(|| unknown_name(entry, section, "kind", name, names))
}

pub(crate) fn without_kind<'a>(entries: &[&'a Entry]) -> Vec<&'a Entry> {
    entries
        .iter()
        .copied()
        .filter(|entry| entry.key != "kind")
        .collect()
}
