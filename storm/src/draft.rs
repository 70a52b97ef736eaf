//! A scenario as a list of entries that can be removed individually.

use clearway_units::Value;
use std::fmt::Write as _;

/// A section of a scenario, in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    /// Before all sections.
    Top,
    /// `[topology]`.
    Topology,
    /// `[switch]`.
    Switch,
    /// `[transport]`.
    Transport,
    /// `[injection]`.
    Injection,
    /// `[observe]`.
    Observe,
    /// The `[[event]]` of this number.
    Event(usize),
    /// The `[[workload]]` of this number.
    Workload(usize),
}

impl Section {
    /// The name in keys, such as `topology`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Topology => "topology",
            Self::Switch => "switch",
            Self::Transport => "transport",
            Self::Injection => "injection",
            Self::Observe => "observe",
            Self::Event(_) => "event",
            Self::Workload(_) => "workload",
        }
    }
}

/// One line of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) section: Section,
    pub(crate) key: String,
    pub(crate) value: Value,
    /// The key as counted by coverage: with the kind that it belongs to.
    pub(crate) covers: String,
}

/// A scenario under construction.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Draft {
    entries: Vec<Entry>,
}

impl Draft {
    /// Sets a key, or changes its value.
    pub(crate) fn set(&mut self, section: Section, key: &str, value: Value, covers: String) {
        self.entries
            .retain(|entry| entry.section != section || entry.key != key);
        self.entries.push(Entry {
            section,
            key: key.into(),
            value,
            covers,
        });
        self.entries.sort_by_key(|entry| entry.section);
    }

    /// All lines, section by section.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The same draft with another value at `place`.
    pub(crate) fn with_value(&self, place: usize, value: Value) -> Self {
        let mut draft = self.clone();
        draft.entries[place].value = value;
        draft
    }

    /// The entries at the places for which `keep` is true, with events and workloads renumbered.
    pub(crate) fn keep(&self, keep: impl Fn(usize) -> bool) -> Self {
        let kept = self.entries.iter().enumerate();
        let kept = kept.filter(|(place, _)| keep(*place));
        let mut entries: Vec<Entry> = kept.map(|(_, entry)| entry.clone()).collect();
        let (mut events, mut workloads) = (Vec::new(), Vec::new());
        for entry in &mut entries {
            let (number, numbers) = match &mut entry.section {
                Section::Event(number) => (number, &mut events),
                Section::Workload(number) => (number, &mut workloads),
                _ => continue,
            };
            if numbers.last() != Some(number) {
                numbers.push(*number);
            }
            *number = numbers.len() - 1;
        }
        Self { entries }
    }

    /// The scenario as TOML, with the entry of each line.
    fn lines(&self) -> (String, Vec<Option<usize>>) {
        let mut text = String::new();
        let mut lines = Vec::new();
        let mut section = Section::Top;
        for (place, entry) in self.entries.iter().enumerate() {
            if entry.section != section {
                section = entry.section;
                let _ = match section {
                    Section::Event(_) | Section::Workload(_) => {
                        writeln!(text, "\n[[{}]]", section.name())
                    }
                    other => writeln!(text, "\n[{}]", other.name()),
                };
                lines.extend([None, None]);
            }
            let _ = writeln!(text, "{} = {}", entry.key, entry.value);
            lines.push(Some(place));
        }
        (text, lines)
    }

    /// The scenario as TOML.
    pub(crate) fn text(&self) -> String {
        self.lines().0
    }

    /// The entry on a line of [`text`](Self::text), counted from 1.
    pub(crate) fn at_line(&self, line: usize) -> Option<usize> {
        *self.lines().1.get(line.checked_sub(1)?)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_lines_and_workloads_stay_numbered() {
        let mut draft = Draft::default();
        let mut set = |section, key: &str| {
            draft.set(section, key, Value::Integer(1), key.into());
        };
        set(Section::Workload(0), "a");
        set(Section::Workload(1), "b");
        set(Section::Workload(2), "c");
        set(Section::Event(0), "e");
        set(Section::Event(1), "f");
        set(Section::Top, "seed");
        set(Section::Topology, "hosts");
        let text = draft.text();
        assert!(
            text.starts_with(
                "seed = 1\n\n[topology]\nhosts = 1\n\n[[event]]\ne = 1\n\n[[event]]\nf = 1\n\n[[workload]]\na = 1\n"
            ),
            "{text}"
        );
        for (number, line) in (1..).zip(text.lines()) {
            let key = draft
                .at_line(number)
                .map(|place| &draft.entries()[place].key);
            match line.split_once(" = ") {
                Some((written, _)) => assert_eq!(key.unwrap(), written),
                None => assert_eq!(key, None),
            }
        }
        let fewer = draft.keep(|place| draft.entries()[place].key != "a");
        assert_eq!(
            fewer.entries().last().unwrap().section,
            Section::Workload(1)
        );
        assert_eq!(fewer.text().matches("[[workload]]").count(), 2);
        let fewer = draft.keep(|place| draft.entries()[place].key != "e");
        let sections = || fewer.entries().iter().map(|entry| entry.section);
        let events = sections().filter(|section| section.name() == "event");
        assert_eq!(events.collect::<Vec<_>>(), [Section::Event(0)]);
    }
}
