//! Places of the parts of a scenario in the user's input, for errors that are detected later.

use super::source::Entry;
use crate::error::{ScenarioError, SourceLocation};

/// Places of all keys that the user set.
#[derive(Debug, Clone)]
pub struct SourceLocations {
    whole: SourceLocation,
    /// True if the file is empty.
    is_empty: bool,
    /// Keys, sorted by section, in the order of the input within a section.
    keys: Vec<KeyPlace>,
}

#[derive(Debug, Clone)]
struct KeyPlace {
    section: String,
    index: usize,
    key: String,
    place: SourceLocation,
}

impl KeyPlace {
    fn section(&self) -> (&str, usize) {
        (&self.section, self.index)
    }
}

/// Always equal: scenarios are equal regardless of their places.
impl PartialEq for SourceLocations {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl SourceLocations {
    /// The places of `entries`, which come from `file` or from overrides.
    pub fn new(file: &str, entries: &[Entry]) -> Self {
        let key = |entry: &Entry| KeyPlace {
            section: entry.section.clone(),
            index: entry.index,
            key: entry.key.clone(),
            place: entry.place.clone(),
        };
        let mut keys: Vec<KeyPlace> = entries.iter().map(key).collect();
        keys.sort_by(|a, b| a.section().cmp(&b.section()));
        Self {
            whole: SourceLocation::Whole { file: file.into() },
            is_empty: false,
            keys,
        }
    }

    /// As [`new`](Self::new) for a file of `lines` entries, some of which overrides may have replaced.
    pub(crate) fn of_file(file: &str, lines: usize, entries: &[Entry]) -> Self {
        Self {
            is_empty: lines == 0,
            ..Self::new(file, entries)
        }
    }

    /// The file, if it is empty.
    pub(crate) fn empty_file(&self) -> Option<&str> {
        match &self.whole {
            SourceLocation::Whole { file } if self.is_empty => Some(file),
            _ => None,
        }
    }

    /// The keys of a section, in order.
    fn of_section(&self, section: &str, index: usize) -> &[KeyPlace] {
        let wanted = (section, index);
        let first = self.keys.partition_point(|known| known.section() < wanted);
        let behind = &self.keys[first..];
        &behind[..behind.partition_point(|known| known.section() == wanted)]
    }

    /// True if the user set `key` of a section.
    pub fn is_given(&self, section: &str, index: usize, key: &str) -> bool {
        let mut own = self.of_section(section, index).iter();
        own.any(|known| known.key == key)
    }

    /// The best place for a fault in `keys` of a section. Overrides come before lines, because the last change is the likeliest cause. Then
    /// comes the first key that the user set, then the section, then the scenario.
    pub fn of_keys(&self, section: &str, index: usize, keys: &[&str]) -> SourceLocation {
        let of_section = || self.of_section(section, index).iter();
        let is_override = |known: &&KeyPlace| matches!(known.place, SourceLocation::Override(_));
        let named = |known: &&KeyPlace| keys.contains(&known.key.as_str());
        let first_named = || {
            keys.iter()
                .find_map(|key| of_section().find(|known| known.key == *key))
        };
        let first_line = || {
            of_section().min_by_key(|known| match known.place {
                SourceLocation::Line { line, .. } => line,
                _ => usize::MAX,
            })
        };
        of_section()
            .filter(is_override)
            .rfind(named)
            .or_else(first_named)
            .or_else(|| of_section().rfind(is_override))
            .or_else(first_line)
            .map_or_else(|| self.whole.clone(), |known| known.place.clone())
    }
}

impl ScenarioError {
    /// The same error. If it has no place, it gets the place of its keys in the `index`-th `section`.
    pub fn or_in(mut self, places: &SourceLocations, section: &str, index: usize) -> Self {
        let find = || places.of_keys(section, index, &self.keys);
        if self.place.is_none() {
            self.place = Some(find());
        }
        self
    }
}
