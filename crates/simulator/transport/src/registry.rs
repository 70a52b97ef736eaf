//! Controllers, selectors and feedback rules by name, also from other crates.

use crate::congestion::feedback::{FeedbackDefinition, FeedbackSettings};
use crate::congestion::{ControllerDefinition, ControllerSettings};
use crate::paths::{SelectorDefinition, SelectorSettings};

/// The controllers, path selectors and feedback rules that a scenario may name.
///
/// ```
/// use clearway_transport::Registry;
/// let registry = Registry::builtin();
/// assert_eq!(registry.controller("strack").unwrap().name(), "strack");
/// assert!(registry.selectors().any(|(name, _)| name == "adaptive"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    controllers: Vec<ControllerSettings>,
    selectors: Vec<SelectorSettings>,
    feedback: Vec<FeedbackSettings>,
}

impl Registry {
    /// Creates a registry of the controllers, path selectors and feedback rules of this crate.
    pub fn builtin() -> Self {
        Self {
            controllers: ControllerSettings::BUILTIN
                .iter()
                .filter_map(|&(name, _)| ControllerSettings::named(name))
                .collect(),
            selectors: SelectorSettings::BUILTIN
                .iter()
                .filter_map(|&(name, _)| SelectorSettings::named(name))
                .collect(),
            feedback: FeedbackSettings::BUILTIN
                .iter()
                .filter_map(|&(name, _)| FeedbackSettings::named(name))
                .collect(),
        }
    }
    /// Adds a controller of another crate.
    ///
    /// # Panics
    /// If its name is taken.
    pub fn with_controller<T: ControllerDefinition>(mut self) -> Self {
        assert!(
            self.controller(T::NAME).is_none(),
            "two controllers are called `{}`",
            T::NAME
        );
        self.controllers.push(ControllerSettings::custom::<T>());
        self
    }
    /// Adds a path selector of another crate.
    ///
    /// # Panics
    /// If its name is taken.
    pub fn with_selector<T: SelectorDefinition>(mut self) -> Self {
        assert!(
            self.selector(T::NAME).is_none(),
            "two path selectors are called `{}`",
            T::NAME
        );
        self.selectors.push(SelectorSettings::custom::<T>());
        self
    }
    /// Adds a feedback rule of another crate.
    ///
    /// # Panics
    /// If its name is taken.
    pub fn with_feedback<T: FeedbackDefinition>(mut self) -> Self {
        assert!(
            self.feedback_rule(T::NAME).is_none(),
            "two feedback rules are called `{}`",
            T::NAME
        );
        self.feedback.push(FeedbackSettings::custom::<T>());
        self
    }
    /// The defaults of the controller called `name`.
    pub fn controller(&self, name: &str) -> Option<ControllerSettings> {
        self.controllers.iter().find(|c| c.name() == name).cloned()
    }
    /// The defaults of the path selector called `name`.
    pub fn selector(&self, name: &str) -> Option<SelectorSettings> {
        self.selectors.iter().find(|s| s.name() == name).cloned()
    }
    /// The defaults of the feedback rule called `name`.
    pub fn feedback_rule(&self, name: &str) -> Option<FeedbackSettings> {
        self.feedback.iter().find(|f| f.name() == name).cloned()
    }
    /// Name and summary of each controller, in the order of registration.
    pub fn controllers(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.controllers.iter().map(|c| (c.name(), c.summary()))
    }
    /// Name and summary of each path selector, in the order of registration.
    pub fn selectors(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.selectors.iter().map(|s| (s.name(), s.summary()))
    }
    /// Name and summary of each feedback rule, in the order of registration.
    pub fn feedback_rules(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.feedback.iter().map(|f| (f.name(), f.summary()))
    }
}
