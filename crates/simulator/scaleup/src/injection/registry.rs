//! Injection controls by name, controls of other crates included.

use super::{Aimd, InjectionDefinition, InjectionSettings, NoControl, ThreeCpo, Window};

/// The injection controls that a scenario may name.
///
/// ```
/// use clearway_scaleup::injection::InjectionRegistry;
/// let registry = InjectionRegistry::builtin();
/// assert_eq!(registry.control("3cpo").unwrap().name(), "3cpo");
/// assert!(registry.controls().any(|(name, _)| name == "window"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct InjectionRegistry(Vec<InjectionSettings>);

impl InjectionRegistry {
    /// Creates a registry of the controls of this crate.
    pub fn builtin() -> Self {
        Self(Vec::new())
            .with_control::<NoControl>()
            .with_control::<Window>()
            .with_control::<Aimd>()
            .with_control::<ThreeCpo>()
    }
    /// Adds a control.
    ///
    /// # Panics
    /// If its name is taken.
    #[must_use]
    pub fn with_control<T: InjectionDefinition>(mut self) -> Self {
        assert!(
            self.control(T::NAME).is_none(),
            "two injection controls are called `{}`",
            T::NAME
        );
        self.0.push(InjectionSettings::defaults::<T>());
        self
    }
    /// The defaults of the control called `name`.
    pub fn control(&self, name: &str) -> Option<InjectionSettings> {
        self.0.iter().find(|c| c.name() == name).cloned()
    }
    /// Name and summary of each control, in the order of registration.
    pub fn controls(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.0.iter().map(|c| (c.name(), c.summary()))
    }
}
