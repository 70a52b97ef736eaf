//! A scenario under construction: its entries so far, and the stream of random choices.

use crate::draft::{Draft, Section};
use crate::random_choices::RandomChoices;
use crate::typical_settings::{SettingProfile, StressFactors};
use crate::values::{self, text};
use clearway_units::{ParameterInfo, Value, ValueDomain};

/// A scenario that the reader accepts, with the number of entries that were mended.
#[derive(Debug)]
pub(crate) struct GeneratedScenario {
    pub(crate) draft: Draft,
    /// Entries that the reader refused.
    pub(crate) mended: usize,
    pub(crate) choices: RandomChoices,
    pub(crate) stress: StressFactors,
    profile: &'static SettingProfile,
}

impl GeneratedScenario {
    /// An empty scenario.
    pub(crate) fn new(
        profile: &'static SettingProfile,
        stress: StressFactors,
        choices: RandomChoices,
    ) -> Self {
        Self {
            draft: Draft::default(),
            mended: 0,
            choices,
            stress,
            profile,
        }
    }

    /// Sets a key that chooses a kind.
    pub(crate) fn set_kind(&mut self, section: Section, key: &str, name: &str) {
        let covers = format!("{}.{key} {name}", section.name());
        self.draft.set(section, key, text(name), covers);
    }

    /// The value of a key from the typical settings or from its domain, if the key is to be set.
    pub(crate) fn usual(&mut self, section: Section, info: &ParameterInfo) -> Option<Value> {
        let is_list = matches!(info.domain, ValueDomain::List(_));
        let (choices, stress) = (&mut self.choices, self.stress);
        if !choices.chance(stress.boldness * 0.1)
            && let Some(value) = self
                .profile
                .value(section.name(), info.key, stress, choices)
            && (!is_list || matches!(value, None | Some(Value::List(_))))
        {
            return value;
        }
        let set = choices.chance(stress.boldness);
        set.then(|| values::generated(info, choices))
    }

    /// Changes the entry on a refused line; false if that is not possible.
    pub(crate) fn mend_line(&mut self, line: usize) -> bool {
        let Some(place) = self.draft.at_line(line) else {
            return false;
        };
        self.mended += 1;
        let entry = self.draft.entries()[place].clone();
        let name = entry.section.name();
        if self.profile.needs(name, &entry.key) {
            let setting = self
                .profile
                .value(name, &entry.key, self.stress, &mut self.choices);
            let Some(Some(value)) = setting else {
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
