//! A configuration under translation.

use super::files::Files;
use crate::import::draft::{Draft, Effect};
use crate::import::simai_files::SimaiFiles;
use crate::limits::LONGEST;
use clearway_formats::{HpccConfig, HpccSetting, HpccValue};
use clearway_units::Span;

/// Start of the flows in HPCC's files, and of the time in `LINK_DOWN`.
pub(super) const FLOWS_BEGIN: Span = Span::from_ms(2000);

/// Algorithm of the file: its `CC_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Dcqcn,
    Hpcc,
    Timely,
    Dctcp,
}

/// An import under way.
pub(super) struct Import<'a> {
    pub(super) config: &'a HpccConfig,
    /// Name of the file in sources.
    pub(super) name: String,
    pub(super) mode: Mode,
    /// Other files of SimAI; `None` for HPCC.
    pub(super) simai: Option<SimaiFiles<'a>>,
    pub(super) files: Files,
    pub(super) draft: Draft,
    /// Keys that the scenario or a note accounts for.
    pub(super) used: Vec<&'static str>,
}

impl<'a> Import<'a> {
    /// The setting of `key`; the scenario or a note accounts for it from now on.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a HpccSetting> {
        self.used.push(key);
        self.config.get(key)
    }

    /// Source of a key that the setting sets.
    pub(super) fn source(&self, setting: &HpccSetting) -> String {
        let whole = format!(
            "{}:{} {} {}",
            self.name, setting.line, setting.key, setting.text
        );
        match whole.chars().count() > 60 {
            true => format!("{}:{} {}", self.name, setting.line, setting.key),
            false => whole,
        }
    }

    /// Source of a key that no setting sets.
    pub(super) const fn default_source(&self) -> &'static str {
        match self.simai {
            None => "default of HPCC's simulator",
            Some(_) => "SimAI's default",
        }
    }

    /// Source of a key that is fixed in the program.
    pub(super) const fn fixed_source(&self) -> &'static str {
        match self.simai {
            None => "as in HPCC's simulator",
            Some(_) => "as in SimAI",
        }
    }

    /// Value and source of a key with 0 or 1.
    pub(super) fn switch_of(&mut self, key: &'static str, default: bool) -> (bool, String) {
        match self.get(key).map(|setting| (&setting.value, setting)) {
            Some((HpccValue::Switch(value), setting)) => (*value, self.source(setting)),
            _ => (default, self.default_source().into()),
        }
    }

    /// Value and source of a key with a whole number.
    pub(super) fn whole_of(&mut self, key: &'static str, default: u64) -> (u64, String) {
        match self.get(key).map(|setting| (&setting.value, setting)) {
            Some((HpccValue::Whole(value), setting)) => (*value, self.source(setting)),
            _ => (default, self.default_source().into()),
        }
    }

    /// Value and source of a key with a number.
    pub(super) fn number_of(&mut self, key: &'static str, default: f64) -> (f64, String) {
        match self.get(key).map(|setting| (&setting.value, setting)) {
            Some((HpccValue::Fraction(value), setting)) => (*value, self.source(setting)),
            _ => (default, self.default_source().into()),
        }
    }

    /// Value and source of a key with a duration; `default` also if the duration is too long.
    pub(super) fn duration_of(&mut self, key: &'static str, default: Span) -> (Span, String) {
        match self.get(key).map(|setting| (&setting.value, setting)) {
            Some((HpccValue::Duration(value), setting)) => {
                (value.unwrap_or(LONGEST), self.source(setting))
            }
            _ => (default, self.default_source().into()),
        }
    }

    /// Notes a setting that has no counterpart.
    pub(super) fn note_setting(&mut self, effect: Effect, setting: &HpccSetting, meaning: &str) {
        let source = self.source(setting);
        self.draft.note(effect, source, meaning);
    }

    /// Notes a key that has no counterpart; the file may leave it out, if the program has this default.
    pub(super) fn note_key(
        &mut self,
        effect: Effect,
        key: &'static str,
        default: &str,
        meaning: &str,
    ) {
        match self.config.get(key) {
            Some(setting) => self.note_setting(effect, setting, meaning),
            None => {
                let what = format!("{key} {default} ({})", self.default_source());
                self.draft.note(effect, what, meaning);
            }
        }
    }
}
