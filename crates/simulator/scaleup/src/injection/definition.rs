//! Definition of an injection control that is known by name, and its settings behind one face.

use super::{InjectionControl, InjectionFacts};
use clearway_units::{ParameterSet, plugin_settings};
use std::fmt;

/// Definition of a control that is known by name: its settings and its constructor.
pub trait InjectionDefinition: InjectionControl + Sized + 'static {
    /// Name of the control in a scenario.
    const NAME: &'static str;
    /// One line for `clearway list`.
    const SUMMARY: &'static str;
    /// Settings of the control.
    type Parameters: ParameterSet + fmt::Debug + Clone + PartialEq + Send + Sync + 'static;

    /// Checks limits that the types of the settings do not express.
    ///
    /// # Errors
    /// If a setting is out of range, or two settings contradict each other.
    fn check(parameters: &Self::Parameters) -> Result<(), InvalidSetting> {
        let _ = parameters;
        Ok(())
    }

    /// Creates the control of one GPU, with settings that [`check`](Self::check) accepts.
    fn new(parameters: &Self::Parameters, facts: &InjectionFacts<'_>) -> Self;
}

/// A setting that a control cannot work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSetting {
    /// Key of the setting.
    pub key: &'static str,
    /// Limit that it breaks; completes "`key` …".
    pub reason: String,
}

impl InvalidSetting {
    /// An error about `key`, unless `holds`.
    ///
    /// # Errors
    /// If `holds` is false.
    pub fn unless(
        holds: bool,
        key: &'static str,
        reason: impl Into<String>,
    ) -> Result<(), InvalidSetting> {
        if holds {
            return Ok(());
        }
        let reason = reason.into();
        Err(Self { key, reason })
    }
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.key, self.reason)
    }
}

impl std::error::Error for InvalidSetting {}

plugin_settings! {
    /// Choice of a control, and its settings.
    settings: InjectionSettings,
    definition: InjectionDefinition,
    behaviour: InjectionControl,
    build: new(facts: &InjectionFacts<'_>),
    checks: [
        /// Checks limits that [`set`](Self::set) alone cannot check.
        ///
        /// # Errors
        /// If a setting is out of range, or two settings contradict each other.
        pub check -> Result<(), InvalidSetting>
    ],
}

impl InjectionSettings {
    /// The control of one GPU with these settings.
    ///
    /// # Panics
    /// If [`check`](Self::check) refuses the settings.
    pub fn build(&self, facts: &InjectionFacts<'_>) -> Box<dyn InjectionControl> {
        if let Err(invalid) = self.check() {
            panic!("injection control `{}`: {invalid}", self.name());
        }
        self.create(facts)
    }
}
