//! Definition of an injection control that is known by name, and its settings behind one face.

use super::{InjectionControl, InjectionFacts};
use clearway_units::{ParameterInfo, ParameterSet, SetError, Value};
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

/// Choice of a control, and its settings.
pub struct InjectionSettings(Box<dyn ErasedSettings>);

impl InjectionSettings {
    /// Default settings of `T`, of this crate or another.
    pub fn of<T: InjectionDefinition>() -> Self {
        Self::with::<T>(T::Parameters::default())
    }
    /// Given settings of `T`, of this crate or another.
    pub fn with<T: InjectionDefinition>(parameters: T::Parameters) -> Self {
        Self(Box::new(Erased::<T>(parameters)))
    }
    /// Name in a scenario.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }
    /// One-line summary of the control.
    pub fn summary(&self) -> &'static str {
        self.0.summary()
    }
    /// Every parameter with its default, meaning and source.
    pub fn describe(&self) -> Vec<ParameterInfo> {
        self.0.describe()
    }
    /// Sets the parameter `key`.
    ///
    /// # Errors
    /// If there is no such key or the value does not fit it.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        self.0.set(key, value)
    }
    /// Every parameter with its present value.
    pub fn entries(&self) -> Vec<(&'static str, Value)> {
        self.0.entries()
    }
    /// Checks limits between and beyond what [`set`](Self::set) can check.
    ///
    /// # Errors
    /// If a setting is out of range, or two settings contradict each other.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        self.0.check()
    }
    /// The control of one GPU with these settings.
    ///
    /// # Panics
    /// If [`check`](Self::check) refuses the settings.
    pub fn build(&self, facts: &InjectionFacts<'_>) -> Box<dyn InjectionControl> {
        if let Err(invalid) = self.check() {
            panic!("injection control `{}`: {invalid}", self.name());
        }
        self.0.build(facts)
    }
}

impl Clone for InjectionSettings {
    fn clone(&self) -> Self {
        Self(self.0.boxed_clone())
    }
}

impl PartialEq for InjectionSettings {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.entries() == other.entries()
    }
}

impl fmt::Debug for InjectionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.name()).field(&self.entries()).finish()
    }
}

trait ErasedSettings: Send + Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    fn describe(&self) -> Vec<ParameterInfo>;
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError>;
    fn entries(&self) -> Vec<(&'static str, Value)>;
    fn check(&self) -> Result<(), InvalidSetting>;
    fn build(&self, facts: &InjectionFacts<'_>) -> Box<dyn InjectionControl>;
    fn boxed_clone(&self) -> Box<dyn ErasedSettings>;
}

struct Erased<T: InjectionDefinition>(T::Parameters);

impl<T: InjectionDefinition> ErasedSettings for Erased<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }
    fn summary(&self) -> &'static str {
        T::SUMMARY
    }
    fn describe(&self) -> Vec<ParameterInfo> {
        T::Parameters::describe()
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        self.0.set(key, value)
    }
    fn entries(&self) -> Vec<(&'static str, Value)> {
        self.0.entries()
    }
    fn check(&self) -> Result<(), InvalidSetting> {
        T::check(&self.0)
    }
    fn build(&self, facts: &InjectionFacts<'_>) -> Box<dyn InjectionControl> {
        Box::new(T::new(&self.0, facts))
    }
    fn boxed_clone(&self) -> Box<dyn ErasedSettings> {
        Box::new(Self(self.0.clone()))
    }
}
