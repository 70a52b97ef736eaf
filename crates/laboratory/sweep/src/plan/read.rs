//! Parser of the text of a plan.

use super::SweepPlan;
use super::asserts::assertions;
use super::builtin::builtin_sweeps;
use super::measure::check_measure;
use super::ranges::sample;
use super::reader::{Reader, normal};
use super::settings::{MOST_PLANNED, SweepGeneral, TuneSection};
use clearway_input::{InputKind, STANDARD_INPUT};
use clearway_scenario::{ScenarioError, SourceLocation, builtin_scenario};
use clearway_units::{nearest, suggestion};
use std::path::Path;

impl SweepPlan {
    /// Reads the text `text`, called `file` in errors.
    ///
    /// # Errors
    /// At the first invalid entry.
    pub fn read(file: &str, text: &str, base_dir: Option<&Path>) -> Result<Self, ScenarioError> {
        let reader = Reader::new(file, text)?;
        let general: SweepGeneral = reader.fill("a plan", "", 0, |_| false)?;
        let scenario_place = reader.place("", 0, &["scenario"]);
        if general.scenario.is_empty() {
            let place = SourceLocation::Whole { file: file.into() };
            return Err(ScenarioError::at(
                &place,
                "the plan names no scenario",
                "write `scenario = \"quickstart\"` or the path of a scenario file at its top",
            ));
        }
        let plan = Self {
            general,
            set: reader.values("set", 0),
            axes: reader.axes()?,
            points: reader.points(),
            sample: sample(&reader)?,
            tune: tune(&reader)?,
            assertions: assertions(&reader)?,
            text: text.into(),
            file: file.into(),
            base_dir: base_dir.map(Path::to_path_buf),
            scenario_place,
            tune_places: ["measure", "then"].map(|key| reader.place("tune", 0, &[key])),
        };
        plan.check(&reader)?;
        Ok(plan)
    }

    /// Loads a built-in plan by its name, or a plan file by its path; `-` is standard input.
    ///
    /// # Errors
    /// If there is no such plan, or at its first invalid entry.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        let builtin = builtin_sweeps().iter().find(|(known, _)| *known == name);
        if let Some((_, text)) = builtin {
            return Self::read(name, text, None);
        }
        let text = clearway_input::read_text_or_standard_input(name, InputKind::PLAN).map_err(
            |error| {
                let builtin = builtin_sweeps().iter().map(|(name, _)| *name);
                ScenarioError::no_file(name, &error, "plan of a sweep", builtin)
            },
        )?;
        if name == STANDARD_INPUT {
            return Self::read("standard input", &text, None);
        }
        let path = Path::new(name);
        let mut plan = Self::read(name, &text, path.parent())?;
        if plan.general.name == SweepGeneral::default().name {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy());
            plan.general.name = stem.map_or(plan.general.name, |stem| stem.into_owned());
        }
        Ok(plan)
    }

    /// Sets goal and budget of a tuning from the command line.
    ///
    /// # Errors
    /// If the measure does not exist, or the budget exceeds the limit of a plan.
    pub fn set_tune(
        &mut self,
        measure: Option<&str>,
        budget: Option<u64>,
    ) -> Result<(), ScenarioError> {
        if let Some(measure) = measure {
            let place = SourceLocation::Whole {
                file: format!("--measure {measure}"),
            };
            check_measure(measure, &place)?;
            self.tune.measure = measure.into();
            self.tune_places[0] = place;
        }
        if let Some(budget) = budget {
            let file = format!("--budget {budget}");
            check_budget(budget, &SourceLocation::Whole { file })?;
        }
        self.tune.budget = budget.or(self.tune.budget);
        Ok(())
    }

    /// Scenario for the laboratory to load: the name of a built-in scenario, or a path.
    pub fn scenario(&self) -> String {
        let name = &self.general.scenario;
        match (&self.base_dir, builtin_scenario(name)) {
            (Some(folder), None) => folder.join(name).to_string_lossy().into_owned(),
            _ => name.clone(),
        }
    }

    /// Rejects keys that are given in two ways, and plans that vary nothing.
    fn check(&self, reader: &Reader) -> Result<(), ScenarioError> {
        if self.general.scenario == STANDARD_INPUT {
            return Err(ScenarioError::at(
                &self.scenario_place,
                "the scenario of a plan cannot be standard input, which is read once",
                "write it to a file",
            ));
        }
        if let (Some(_), Some(axis)) = (&self.sample, self.axes.first()) {
            return Err(ScenarioError::at(
                &axis.place,
                "a plan has a grid or drawn points, and this one has both",
                "give each axis as a list of `[sample.ranges]`, or leave `[sample]` out",
            ));
        }
        self.check_keys()?;
        self.check_each(&reader.place("tune", 0, &["each"]))?;
        if self.axes.is_empty()
            && self.points.is_empty()
            && self.sample.is_none()
            && self.general.seeds.count() <= 1
        {
            return Err(ScenarioError::at(
                &reader.place("axes", 0, &[]),
                "the grid is empty: the plan varies nothing, and has 1 run",
                "give `[axes]`, `[[point]]`, `[sample]` or `seeds`; a single run is `clearway run`",
            ));
        }
        Ok(())
    }

    /// Rejects axes of `tune.each` that are not in the grid, and grids without other axes.
    fn check_each(&self, place: &SourceLocation) -> Result<(), ScenarioError> {
        let each = &self.tune.each;
        let fault = |message: String, fix: String| Err(ScenarioError::at(place, message, fix));
        if each.is_empty() {
            return Ok(());
        }
        if self.sample.is_some() || !self.points.is_empty() {
            return fault(
                "`each` wants a grid, and this plan has points that are drawn or written out"
                    .into(),
                "give all axes in `[axes]`".into(),
            );
        }
        let names: Vec<String> = self.axes.iter().map(|axis| axis.key.clone()).collect();
        if let Some(unknown) = each.iter().find(|key| !names.contains(key)) {
            let near = nearest(unknown, names.iter().map(String::as_str));
            let known = format!("the axes are: {}", names.join(", "));
            return fault(
                format!("`{unknown}` is not an axis of the plan"),
                suggestion(near, &known),
            );
        }
        if names.iter().all(|name| each.contains(name)) {
            return fault(
                "`each` names every axis, so no axis is left to tune".into(),
                "leave one out, or add an axis to `[axes]`".into(),
            );
        }
        Ok(())
    }

    /// Rejects keys that are in two places.
    fn check_keys(&self) -> Result<(), ScenarioError> {
        let set = self
            .set
            .iter()
            .map(|value| ("`[set]`", &value.key, &value.place));
        let axes = self
            .axes
            .iter()
            .map(|axis| ("`[axes]`", &axis.key, &axis.place));
        let ranges = self.sample.iter().flat_map(|sample| &sample.ranges);
        let ranges = ranges.map(|range| ("`[sample.ranges]`", &range.key, &range.place));
        let points = self.points.iter().flat_map(|point| &point.values);
        let points: Vec<_> = points
            .map(|value| ("`[[point]]`", &value.key, &value.place))
            .collect();
        let mut seen: Vec<(&str, &str)> = Vec::new();
        // A point may set the key of a grid axis, but not a key that is set for all runs.
        let once = set.chain(axes).chain(ranges).map(|found| (found, true));
        for ((section, key, place), unique) in
            once.chain(points.into_iter().map(|found| (found, false)))
        {
            if key == "seed" {
                return Err(ScenarioError::at(
                    place,
                    format!("{section} gives the seed"),
                    "write `seeds = 3`, `seeds = \"1-5\"` or `seeds = [1, 2, 7]` at the top of the plan",
                ));
            }
            let before = seen
                .iter()
                .find(|(other, known)| known == key && (unique || *other == "`[set]`"));
            if let Some((other, _)) = before {
                return Err(ScenarioError::at(
                    place,
                    format!(
                        "`{key}` is given here and in {other}: one of them would have no effect"
                    ),
                    "remove one of the two",
                ));
            }
            seen.push((section, key));
        }
        Ok(())
    }
}

/// `[tune]`; its defaults if the plan has none.
fn tune(reader: &Reader) -> Result<TuneSection, ScenarioError> {
    let mut settings: TuneSection = reader.fill("[tune]", "tune", 0, |_| false)?;
    settings.each = settings.each.iter().map(|key| normal(key)).collect();
    let fault = |key: &str, message: String, fix: &str| {
        let place = reader.place("tune", 0, &[key]);
        Err(ScenarioError::at(&place, message, fix))
    };
    if !settings.measure.is_empty() {
        check_measure(&settings.measure, &reader.place("tune", 0, &["measure"]))?;
    }
    if !settings.then.is_empty() {
        check_measure(&settings.then, &reader.place("tune", 0, &["then"]))?;
    }
    if settings.within < 0.0 || settings.within >= 1.0 {
        let message = format!("`within` = {}", settings.within);
        return fault(
            "within",
            message,
            "give a share from 0 to below 1, such as 0.01",
        );
    }
    if (settings.within > 0.0) == settings.then.is_empty() {
        return fault(
            "within",
            "`within` and `then` belong together: points within that share of the best one are as good, and `then` chooses among them".into(),
            "give both, such as `within = 0.01` and `then = \"packets.sent\"`, or neither",
        );
    }
    if let Some(budget) = settings.budget {
        check_budget(budget, &reader.place("tune", 0, &["budget"]))?;
    }
    match (settings.budget, settings.keep) {
        (Some(0), _) => fault(
            "budget",
            "a budget of 0 runs".into(),
            "give at least one run",
        ),
        (_, 0 | 1) => fault(
            "keep",
            format!(
                "`keep` = {}: no rung would have fewer points",
                settings.keep
            ),
            "one of `keep` points goes on to the next rung: give at least 2; the default is 3",
        ),
        _ => Ok(settings),
    }
}

/// Rejects budgets of more runs than a plan can have.
fn check_budget(budget: u64, place: &SourceLocation) -> Result<(), ScenarioError> {
    match budget <= MOST_PLANNED {
        true => Ok(()),
        false => Err(ScenarioError::at(
            place,
            format!("a budget of {budget} runs"),
            format!("give at most {MOST_PLANNED}"),
        )),
    }
}
