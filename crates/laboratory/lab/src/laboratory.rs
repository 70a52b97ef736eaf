//! The entry point for programs: built-in parts plus the user's parts.

use crate::scenario::builtin_scenario;
use crate::scenario::{General, ScenarioError};
use crate::{Assembly, Experiment, Finished, RunOptions, Scenario};
use clearway_fabric::{Observer, RunDecision, Watch};
use clearway_input::{InputKind, STANDARD_INPUT};
use clearway_scaleup::injection::{InjectionDefinition, InjectionRegistry};
use clearway_scenario::SourceLocations;
use clearway_transport::Registry;
use clearway_transport::congestion::ControllerDefinition;
use clearway_transport::congestion::feedback::FeedbackDefinition;
use clearway_transport::paths::SelectorDefinition;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Reads and runs scenarios with the controllers, path selectors and feedback rules that it knows.
///
/// ```
/// use clearway_lab::Laboratory;
/// let laboratory = Laboratory::new();
/// let scenario = laboratory.load("quickstart", &["topology.hosts=32".into()]).unwrap();
/// let finished = laboratory.run(&scenario).unwrap();
/// assert!(finished.longest_completion().unwrap() > finished.flows[0].ideal);
/// ```
#[derive(Debug, Clone)]
pub struct Laboratory {
    registry: Registry,
    injection: InjectionRegistry,
}

impl Default for Laboratory {
    fn default() -> Self {
        Self::new()
    }
}

impl Laboratory {
    /// A laboratory with all built-in parts.
    pub fn new() -> Self {
        Self {
            registry: Registry::builtin(),
            injection: InjectionRegistry::builtin(),
        }
    }

    /// Adds a congestion controller; scenarios choose it with `transport.controller`.
    ///
    /// # Panics
    /// If the name is already taken.
    pub fn with_controller<T: ControllerDefinition>(self) -> Self {
        Self {
            registry: self.registry.with_controller::<T>(),
            ..self
        }
    }

    /// Adds a path selector; scenarios choose it with `transport.spray`.
    ///
    /// # Panics
    /// If the name is already taken.
    pub fn with_selector<T: SelectorDefinition>(self) -> Self {
        Self {
            registry: self.registry.with_selector::<T>(),
            ..self
        }
    }

    /// Adds a feedback rule; scenarios choose it with `transport.feedback`.
    ///
    /// # Panics
    /// If the name is already taken.
    pub fn with_feedback<T: FeedbackDefinition>(self) -> Self {
        Self {
            registry: self.registry.with_feedback::<T>(),
            ..self
        }
    }

    /// Adds an injection control; scenarios of scale-up fabrics choose it with `injection.kind`.
    ///
    /// # Panics
    /// If the name is already taken.
    pub fn with_injection<T: InjectionDefinition>(self) -> Self {
        Self {
            injection: self.injection.with_control::<T>(),
            ..self
        }
    }

    /// The injection controls of scale-up fabrics.
    pub fn injection(&self) -> &InjectionRegistry {
        &self.injection
    }

    /// The controllers, selectors and feedback rules.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Reads the scenario text `text`, called `name` in errors.
    ///
    /// # Errors
    /// At the first invalid entry.
    pub fn read(
        &self,
        name: &str,
        text: &str,
        base_dir: Option<&Path>,
        overrides: &[String],
    ) -> Result<Scenario, ScenarioError> {
        Scenario::read(&self.registry, name, text, base_dir, overrides)
    }

    /// Reads the scenario text `text` of either kind of fabric, called `name` in errors.
    ///
    /// # Errors
    /// At the first invalid entry.
    pub fn read_any(
        &self,
        name: &str,
        text: &str,
        base_dir: Option<&Path>,
        overrides: &[String],
    ) -> Result<Experiment, ScenarioError> {
        let registries = (&self.registry, &self.injection);
        Experiment::read(registries, name, text, base_dir, overrides)
    }

    /// The text of a built-in scenario, by its name, or of a scenario file, by its path, unchanged.
    ///
    /// # Errors
    /// If there is no such scenario or file.
    pub fn text(&self, scenario: &str) -> Result<String, ScenarioError> {
        text_of(scenario).map(|text| text.text.into_owned())
    }

    /// Loads a built-in scenario by its name, or a scenario file by its path. The scenario must be of a packet fabric.
    ///
    /// # Errors
    /// If there is no such scenario or file, or at its first invalid entry.
    pub fn load(&self, scenario: &str, overrides: &[String]) -> Result<Scenario, ScenarioError> {
        let text = text_of(scenario)?;
        let mut loaded = self.read(text.called, &text.text, text.folder.as_deref(), overrides)?;
        if !is_named(loaded.places()) {
            text.name(&mut loaded.general);
        }
        Ok(loaded)
    }

    /// Loads a built-in scenario by its name, or a scenario file by its path, of either kind of fabric.
    ///
    /// # Errors
    /// If there is no such scenario or file, or at its first invalid entry.
    pub fn load_any(
        &self,
        scenario: &str,
        overrides: &[String],
    ) -> Result<Experiment, ScenarioError> {
        let text = text_of(scenario)?;
        let mut loaded =
            self.read_any(text.called, &text.text, text.folder.as_deref(), overrides)?;
        if !is_named(loaded.places()) {
            text.name(loaded.general_mut());
        }
        Ok(loaded)
    }

    /// Runs a scenario on one thread and waits for its end.
    ///
    /// # Errors
    /// If its parts do not fit together.
    pub fn run(&self, scenario: &Scenario) -> Result<Finished, ScenarioError> {
        Ok(run_alone(&Assembly::new(scenario)?, Watch::Off))
    }

    /// As [`run`](Self::run), with one observer for each domain. Returns the observers with the outcome.
    ///
    /// # Errors
    /// If its parts do not fit together.
    pub fn run_observed<O: Observer>(
        &self,
        scenario: &Scenario,
        observer: impl FnMut() -> O,
    ) -> Result<(Finished, Vec<O>), ScenarioError> {
        let assembly = Assembly::new(scenario)?;
        let mut observers = assembly.per_domain(observer);
        let finished = run_alone(&assembly, Watch::by(&mut observers));
        Ok((finished, observers))
    }
}

/// Runs an assembly on one thread.
fn run_alone(assembly: &Assembly, watch: Watch<'_>) -> Finished {
    let options = RunOptions {
        threads: 1.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    assembly.run(options, watch)
}

/// Text of a scenario, and its origin.
struct ScenarioText<'a> {
    /// Name of the scenario in errors.
    called: &'a str,
    text: Cow<'static, str>,
    folder: Option<PathBuf>,
    /// Name of the file without its extension.
    stem: Option<String>,
}

impl ScenarioText<'_> {
    /// Names the scenario after its file.
    fn name(self, general: &mut General) {
        if let Some(stem) = self.stem {
            general.name = stem;
        }
    }
}

/// True if the scenario gives its name. In a resolved scenario, "unnamed" also counts as a name.
fn is_named(places: &SourceLocations) -> bool {
    places.is_given("", 0, "name")
}

/// The text of a built-in scenario, of a file or of standard input.
fn text_of(scenario: &str) -> Result<ScenarioText<'_>, ScenarioError> {
    let alone = |called, text| ScenarioText {
        called,
        text,
        folder: None,
        stem: None,
    };
    if let Some(text) = builtin_scenario(scenario) {
        return Ok(alone(scenario, text.into()));
    }
    let text = clearway_input::read_text_or_standard_input(scenario, InputKind::SCENARIO).map_err(
        |error| {
            let builtin = crate::builtin_scenarios().iter().map(|(name, _)| *name);
            ScenarioError::no_file(scenario, &error, "scenario", builtin)
        },
    )?;
    if scenario == STANDARD_INPUT {
        return Ok(alone("standard input", text.into()));
    }
    let path = Path::new(scenario);
    let stem = path.file_stem();
    Ok(ScenarioText {
        folder: path.parent().map(Path::to_path_buf),
        stem: stem.map(|stem| stem.to_string_lossy().into_owned()),
        ..alone(scenario, text.into())
    })
}
