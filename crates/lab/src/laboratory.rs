//! The entry for programs: built-in parts plus one's own.

use crate::scenario::builtin_scenario;
use crate::scenario::{Place, ScenarioError};
use crate::{Assembly, Finished, RunOptions, Scenario};
use clearway_fabric::{Observer, Verdict};
use clearway_transport::Registry;
use clearway_transport::cc::ControllerDefinition;
use clearway_transport::feedback::FeedbackDefinition;
use clearway_transport::spray::SelectorDefinition;
use clearway_units::{nearest, suggestion};
use std::path::Path;

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
}

impl Default for Laboratory {
    fn default() -> Self {
        Self::new()
    }
}

impl Laboratory {
    /// A laboratory with everything that is built in.
    pub fn new() -> Self {
        Self {
            registry: Registry::builtin(),
        }
    }

    /// Adds a congestion controller of your own; scenarios choose it with `transport.controller`.
    ///
    /// # Panics
    /// If its name is taken.
    pub fn with_controller<T: ControllerDefinition>(self) -> Self {
        Self {
            registry: self.registry.with_controller::<T>(),
        }
    }

    /// Adds a path selector of your own; scenarios choose it with `transport.spray`.
    ///
    /// # Panics
    /// If its name is taken.
    pub fn with_selector<T: SelectorDefinition>(self) -> Self {
        Self {
            registry: self.registry.with_selector::<T>(),
        }
    }

    /// Adds a feedback rule of your own; scenarios choose it with `transport.feedback`.
    ///
    /// # Panics
    /// If its name is taken.
    pub fn with_feedback<T: FeedbackDefinition>(self) -> Self {
        Self {
            registry: self.registry.with_feedback::<T>(),
        }
    }

    /// The controllers, selectors and feedback rules.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Reads the scenario text `text`, called `name` in errors.
    ///
    /// # Errors
    /// At the first thing that cannot be meant.
    pub fn read(
        &self,
        name: &str,
        text: &str,
        base_dir: Option<&Path>,
        overrides: &[String],
    ) -> Result<Scenario, ScenarioError> {
        Scenario::read(&self.registry, name, text, base_dir, overrides)
    }

    /// Loads a built-in scenario by its name, or a scenario file by its path.
    ///
    /// # Errors
    /// If there is no such scenario or file, or at the first thing in it that cannot be meant.
    pub fn load(&self, scenario: &str, overrides: &[String]) -> Result<Scenario, ScenarioError> {
        if let Some(text) = builtin_scenario(scenario) {
            return self.read(scenario, text, None, overrides);
        }
        let path = Path::new(scenario);
        let text = std::fs::read_to_string(path).map_err(|error| no_scenario(scenario, &error))?;
        let name = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let mut scenario = self.read(scenario, &text, path.parent(), overrides)?;
        if scenario.general.name == "unnamed" {
            scenario.general.name = name.unwrap_or_default();
        }
        Ok(scenario)
    }

    /// Runs a scenario on one thread and waits for its end.
    ///
    /// # Errors
    /// If its parts do not fit together.
    pub fn run(&self, scenario: &Scenario) -> Result<Finished, ScenarioError> {
        self.run_observed(scenario, || ())
    }

    /// As [`run`](Self::run), watched by one observer for each domain.
    ///
    /// # Errors
    /// If its parts do not fit together.
    pub fn run_observed<O: Observer>(
        &self,
        scenario: &Scenario,
        observer: impl FnMut() -> O,
    ) -> Result<Finished<O>, ScenarioError> {
        let options = RunOptions {
            threads: 1,
            on_progress: &mut |_| Verdict::Continue,
            on_flow: &mut |_, _, _| (),
        };
        Ok(Assembly::new(scenario)?.run(options, observer))
    }
}

fn no_scenario(name: &str, error: &std::io::Error) -> ScenarioError {
    let builtin: Vec<&str> = crate::builtin_scenarios()
        .iter()
        .map(|(name, _)| *name)
        .collect();
    let known = format!(
        "give the path of a TOML file or a built-in scenario: {}",
        builtin.join(", ")
    );
    let fix = suggestion(nearest(name, builtin.iter().copied()), &known);
    let place = Place::Whole { file: name.into() };
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            ScenarioError::at(&place, "there is no such file or built-in scenario", fix)
        }
        _ => ScenarioError::at(
            &place,
            format!("cannot be read: {error}"),
            "name a text file in UTF-8 that you may read",
        ),
    }
}
