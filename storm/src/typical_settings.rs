//! Typical settings of generated scenarios: small, quick and hostile.
//!
//! The tables are `typical_settings/packets.toml` and `typical_settings/scaleup.toml`. A key that is not listed is generated from its
//! domain, so a new key needs no entry. Listed settings keep runs short (few hosts, small messages) or put them where faults have been
//! found (slow links, deep queues, short timeouts).

use crate::random_choices::RandomChoices;
use clearway_lab::scenario::source::FileSections;
use clearway_units::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Typical settings of one kind of scenario.
#[derive(Debug)]
pub(crate) struct SettingProfile {
    /// Settings that keep runs small.
    usual: Settings,
    /// Settings that stress a run. Their probability is scaled by [`StressFactors::hostility`].
    hostile: Settings,
}

/// Typical settings by section and key.
type Settings = BTreeMap<(String, String), TypicalSetting>;

/// One line of a table.
#[derive(Debug, Default)]
struct TypicalSetting {
    /// Probability that the key is set.
    probability: f64,
    /// Values to choose from.
    values: Vec<Value>,
}

/// Typical settings of scenarios of packet fabrics.
pub(crate) static PACKETS: LazyLock<SettingProfile> = LazyLock::new(|| {
    SettingProfile::parse(
        "packets.toml",
        include_str!("typical_settings/packets.toml"),
    )
});

/// Typical settings of scenarios of scale-up fabrics.
pub(crate) static SCALE_UP: LazyLock<SettingProfile> = LazyLock::new(|| {
    SettingProfile::parse(
        "scaleup.toml",
        include_str!("typical_settings/scaleup.toml"),
    )
});

/// Exceptions for links, in the syntax of `topology.links`.
const LINK_EXCEPTIONS: [&str; 13] = [
    "down",
    "rate=1Gbps",
    "rate=3Gbps",
    "rate=10Gbps",
    "rate=100Gbps",
    "rate=800Gbps",
    "delay=1ns",
    "delay=7us",
    "delay=100us",
    "rate=3Gbps delay=7us",
    "bit-error-rate=1e-6",
    "packet-loss=0.001",
    "packet-loss=0.3",
];

/// Factors that determine the wildness of a scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StressFactors {
    /// Probability that a key without a typical setting is set.
    pub(crate) boldness: f64,
    /// Factor on the probabilities of hostile keys.
    pub(crate) hostility: f64,
}

impl StressFactors {
    pub(crate) fn random(choices: &mut RandomChoices) -> Self {
        Self {
            boldness: *choices.pick(&[0.0, 0.02, 0.06, 0.2, 0.5]),
            hostility: *choices.pick(&[0.3, 1.0, 1.0, 1.6]),
        }
    }
}

/// Sections of a table of settings.
const LAYOUT: FileSections = FileSections {
    sections: &["usual", "hostile"],
    several: &[],
    top: &[],
    filled: &[],
};

impl SettingProfile {
    /// The profile of an embedded table.
    ///
    /// # Panics
    ///
    /// Panics if the table is malformed; a test reads both.
    fn parse(file: &str, text: &str) -> Self {
        let entries = LAYOUT.read(file, text);
        let entries = entries.unwrap_or_else(|error| panic!("{error}"));
        let settings = |name: &str| {
            let mut settings = Settings::new();
            for entry in entries.iter().filter(|entry| entry.section == name) {
                let (path, field) = entry.key.rsplit_once('.').expect("a field of a key");
                let (section, key) = path.split_once('.').expect("a key of a section");
                let section = if section == "top-level" { "" } else { section };
                let setting = settings.entry((section.into(), key.into()));
                let setting = setting.or_default();
                match (field, &entry.value) {
                    ("probability", Value::Float(probability)) => {
                        setting.probability = *probability;
                    }
                    ("values", Value::List(values)) => setting.values.clone_from(values),
                    _ => panic!("{}: `{}` has no meaning", entry.place, entry.key),
                }
            }
            settings
        };
        Self {
            usual: settings("usual"),
            hostile: settings("hostile"),
        }
    }

    /// Value of a key from the tables: `None` if it has no typical setting or a hostile one that is not chosen, `Some(None)` if the key
    /// keeps its default.
    pub(crate) fn value(
        &self,
        section: &str,
        key: &str,
        stress: StressFactors,
        choices: &mut RandomChoices,
    ) -> Option<Option<Value>> {
        let name = (section.to_owned(), key.to_owned());
        if let Some(setting) = self.usual.get(&name) {
            let set = choices.chance(setting.probability);
            return Some(set.then(|| choices.pick(&setting.values).clone()));
        }
        let setting = self.hostile.get(&name)?;
        let set = choices.chance(setting.probability * stress.hostility);
        set.then(|| Some(choices.pick(&setting.values).clone()))
    }

    /// True if runs get long without the key.
    pub(crate) fn needs(&self, section: &str, key: &str) -> bool {
        let setting = self.usual.get(&(section.to_owned(), key.to_owned()));
        setting.is_some_and(|setting| setting.probability == 1.0)
    }
}

/// True if runs of some kind of scenario get long without the key.
pub(crate) fn is_needed(section: &str, key: &str) -> bool {
    PACKETS.needs(section, key) || SCALE_UP.needs(section, key)
}

/// An exception for the link called `name`.
pub(crate) fn link_exception(name: &str, choices: &mut RandomChoices) -> String {
    format!("{name} {}", choices.pick(&LINK_EXCEPTIONS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use clearway_lab::Laboratory;

    #[test]
    fn typical_settings_are_of_keys_that_exist() {
        let universe = Schema::from_laboratory(&Laboratory::new()).universe();
        for profile in [&*PACKETS, &*SCALE_UP] {
            for (section, key) in profile.usual.keys().chain(profile.hostile.keys()) {
                let full = match section.as_str() {
                    "" => format!("{key} ("),
                    section => format!("{section}.{key} ("),
                };
                assert!(
                    universe.iter().any(|known| known.starts_with(&full)),
                    "{full}"
                );
            }
        }
    }

    #[test]
    fn every_setting_has_a_probability_and_values() {
        for profile in [&*PACKETS, &*SCALE_UP] {
            for (key, setting) in profile.usual.iter().chain(&profile.hostile) {
                let TypicalSetting {
                    probability,
                    values,
                } = setting;
                assert!(*probability > 0.0 && *probability <= 1.0, "{key:?}");
                assert!(!values.is_empty(), "{key:?}");
            }
        }
    }

    #[test]
    fn values_keep_the_types_of_toml() {
        let choices = &mut RandomChoices::new(1, 1);
        let stress = StressFactors {
            boldness: 1.0,
            hostility: 1e9,
        };
        let mut value = |section, key| PACKETS.value(section, key, stress, choices).flatten();
        assert!(matches!(
            value("topology", "radix"),
            Some(Value::Integer(_))
        ));
        assert!(matches!(
            value("transport", "strict-window"),
            Some(Value::Boolean(true))
        ));
        assert!(matches!(
            value("switch", "pfc.classes"),
            Some(Value::List(_))
        ));
        assert!(matches!(value("workload", "message"), Some(Value::Text(_))));
    }
}
