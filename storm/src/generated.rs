//! A scenario that is being drawn: what it has so far, and the choices that are left.

use crate::draft::{Draft, Section};
use crate::random_choices::Lots;
use crate::typical_settings::{Habits, Mood};
use crate::values::{self, text};
use clearway_units::{ParameterInfo, Value, ValueDomain};

/// A scenario that the reader accepts, and how many entries it took to find it.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) draft: Draft,
    /// Entries that the reader refused.
    pub(crate) mended: usize,
    pub(crate) lots: Lots,
    pub(crate) mood: Mood,
    habits: &'static Habits,
}

impl Drawn {
    /// An empty scenario.
    pub(crate) fn new(habits: &'static Habits, mood: Mood, lots: Lots) -> Self {
        Self {
            draft: Draft::default(),
            mended: 0,
            lots,
            mood,
            habits,
        }
    }

    /// Sets a key that chooses a kind.
    pub(crate) fn set_kind(&mut self, section: Section, key: &str, name: &str) {
        let covers = format!("{}.{key} {name}", section.name());
        self.draft.set(section, key, text(name), covers);
    }

    /// The value of a key by habit or from its domain alone, if it is to have one.
    pub(crate) fn usual(&mut self, section: Section, info: &ParameterInfo) -> Option<Value> {
        let is_list = matches!(info.domain, ValueDomain::List(_));
        let (lots, mood) = (&mut self.lots, self.mood);
        if !lots.chance(mood.boldness * 0.1)
            && let Some(value) = self.habits.value(section.name(), info.key, mood, lots)
            && (!is_list || matches!(value, None | Some(Value::List(_))))
        {
            return value;
        }
        let set = lots.chance(mood.boldness);
        set.then(|| values::drawn(info, lots))
    }

    /// Changes what stands on a refused line; false if that cannot be done.
    pub(crate) fn mend_line(&mut self, line: usize) -> bool {
        let Some(place) = self.draft.at_line(line) else {
            return false;
        };
        self.mended += 1;
        let entry = self.draft.entries()[place].clone();
        let name = entry.section.name();
        if self.habits.needs(name, &entry.key) {
            let habit = self
                .habits
                .value(name, &entry.key, self.mood, &mut self.lots);
            let Some(Some(value)) = habit else {
                return false;
            };
            self.draft = self.draft.with_value(place, value);
            return true;
        }
        if entry.key == "kind" {
            return false;
        }
        self.draft = self.draft.keep(|other| other != place);
        true
    }
}
