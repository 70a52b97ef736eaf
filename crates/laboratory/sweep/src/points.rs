//! Conversion of a plan to its runs, with every point resolved and a key for every run.

use crate::assertions;
use crate::axes::{Axis, RawPoint, complete, name_of_point, points};
use crate::plan::{MOST_PLANNED, PlannedValue, SweepPlan, counted};
use crate::shard::Shard;
use clearway_lab::{Experiment, Laboratory};
use clearway_report::sweep::Assertion;
use clearway_scenario::{FileHashes, ScenarioError, SourceLocation};
use clearway_units::mix64;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Largest number of runs of a plan without confirmation.
pub const MOST_RUNS: u64 = 10_000;

/// Key of a run: the hash of its resolved scenario, its files, and the program's version and revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey(u64);

impl RunKey {
    /// Key of an experiment with this `program`; files with hashes in `files` are not read again.
    pub fn from_experiment(
        experiment: &Experiment,
        program: &ProgramIdentity,
        files: &FileHashes,
    ) -> Self {
        let text = format!("{} {}", program.version, program.revision);
        let start = experiment.fingerprint_with(files);
        Self(
            text.bytes()
                .fold(start, |hash, byte| mix64(hash ^ u64::from(byte))),
        )
    }

    /// The key printed as `text`.
    pub fn read(text: &str) -> Option<Self> {
        let key = u64::from_str_radix(text, 16).ok().map(Self)?;
        (key.to_string() == text).then_some(key)
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The program that carries out runs; results of different programs are not mixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramIdentity {
    /// Version of the program.
    pub version: String,
    /// Source revision of the program.
    pub revision: String,
}

/// A run of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// Place of the run's value on each axis.
    pub place: Vec<u32>,
    /// Axes that the run's point sets; on the other axes the run has the scenario's value.
    set: Vec<bool>,
    /// Seed of the run.
    pub seed: u64,
    /// Key of the run.
    pub key: RunKey,
}

/// A plan with all its points resolved.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The plan.
    pub plan: SweepPlan,
    /// Axes of the plan.
    pub axes: Vec<Axis>,
    /// All runs in the order of the plan: by point, then by seed.
    pub runs: Vec<PlannedRun>,
    /// Assertions on the results, with the axes' spelling of values.
    pub assertions: Vec<Assertion>,
    /// The program for which the runs have keys.
    program: ProgramIdentity,
    /// Hashes of the files that scenarios of the plan read.
    files: Arc<FileHashes>,
}

impl Sweep {
    /// Resolves every run of `plan`; rejects more than [`MOST_RUNS`] runs unless they are `confirmed`.
    ///
    /// # Errors
    /// At the first point that cannot run, or that repeats another point.
    pub fn resolve(
        plan: SweepPlan,
        laboratory: &Laboratory,
        program: &ProgramIdentity,
        confirmed: bool,
    ) -> Result<Self, ScenarioError> {
        check_count(&plan, confirmed)?;
        let scenario = plan.scenario();
        let base = load(&plan, laboratory, &scenario, &overrides_of_all(&plan))?;
        let (axes, points) = points(&plan, &base.every_setting());
        let seeds = plan.general.seeds.list(base.general().seed);
        let mut sweep = Self {
            runs: Vec::with_capacity(points.len() * seeds.len()),
            axes,
            plan,
            assertions: Vec::new(),
            program: program.clone(),
            files: Arc::default(),
        };
        let mut seen = BTreeMap::new();
        let (mut sections, mut tenants) = (BTreeSet::new(), BTreeSet::new());
        for (number, point) in points.iter().enumerate() {
            let mut overrides = overrides_of_all(&sweep.plan);
            overrides.extend(overrides_of(&sweep.axes, point));
            let mut experiment = load(&sweep.plan, laboratory, &scenario, &overrides)?;
            let place = complete(&mut sweep.axes, point, &experiment);
            sections.extend(experiment.distinct_sections());
            tenants.extend(experiment.tenants());
            for seed in &seeds {
                experiment.general_mut().seed = *seed;
                let run = PlannedRun {
                    place: place.clone(),
                    set: point.iter().map(Option::is_some).collect(),
                    seed: *seed,
                    key: RunKey::from_experiment(&experiment, program, &sweep.files),
                };
                sweep.add(run, number, &mut seen)?;
            }
        }
        assertions::check_measures(&sweep.plan, &sections, &tenants)?;
        let places = sweep.runs.iter().map(|run| &*run.place).collect();
        sweep.assertions = assertions::resolved(&sweep.plan, &sweep.axes, &places)?;
        Ok(sweep)
    }

    /// Adds a run of the point with this number; `seen` are the places of the known keys.
    fn add(
        &mut self,
        run: PlannedRun,
        number: usize,
        seen: &mut BTreeMap<RunKey, usize>,
    ) -> Result<(), ScenarioError> {
        if let Some(&other) = seen.get(&run.key) {
            let other = &self.runs[other];
            // A point that is drawn twice, for instance from a list, runs once.
            if self.plan.sample.is_some() && other.place == run.place {
                return Ok(());
            }
            let place = place_of_point(&self.plan, number);
            return Err(same(&self.plan, &self.axes, other, &run, place));
        }
        seen.insert(run.key, self.runs.len());
        self.runs.push(run);
        Ok(())
    }

    /// The scenario of a run, as carried out.
    ///
    /// # Errors
    /// If files have changed since the run was planned, because its key is the key of the old files.
    pub fn experiment(
        &self,
        laboratory: &Laboratory,
        run: &PlannedRun,
    ) -> Result<Experiment, ScenarioError> {
        let places = run.place.iter().zip(&run.set);
        let point: RawPoint = places.map(|(place, set)| set.then_some(*place)).collect();
        let mut overrides = overrides_of_all(&self.plan);
        overrides.extend(overrides_of(&self.axes, &point));
        let scenario = self.plan.scenario();
        let mut experiment = load(&self.plan, laboratory, &scenario, &overrides)?;
        experiment.general_mut().seed = run.seed;
        if RunKey::from_experiment(&experiment, &self.program, &self.files) != run.key {
            let place = SourceLocation::Whole { file: scenario };
            return Err(ScenarioError::at(
                &place,
                "the scenario, or a file that it reads, has changed since the sweep began",
                "run the sweep again: it keeps the runs of the earlier scenario, and counts them for that scenario only",
            ));
        }
        Ok(experiment)
    }

    /// Axes and values of a run, and its seed: `transport.spray=single seed=1`.
    pub fn name_of(&self, run: &PlannedRun) -> String {
        let point = name_of_point(&self.axes, &run.place);
        format!("{point} seed={}", run.seed).trim_start().into()
    }

    /// Places in [`runs`](Self::runs) of a part. Every run is in one part, independent of its place in the plan.
    pub fn shard(&self, shard: Shard) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.runs.len()).collect();
        order.sort_by_key(|&at| self.runs[at].key);
        let own = order.into_iter().enumerate();
        let own = own.filter(|(rank, _)| shard.has(*rank));
        let mut own: Vec<usize> = own.map(|(_, at)| at).collect();
        own.sort_unstable();
        own
    }
}

fn check_count(plan: &SweepPlan, confirmed: bool) -> Result<(), ScenarioError> {
    let place = SourceLocation::Whole {
        file: plan.file.clone(),
    };
    let fix = "`[sample]` draws a few points of a large space";
    let too_many = |count: String, most: u64| {
        let shape = plan.shape();
        format!("the plan has {count} runs ({shape}), which is more than {most}")
    };
    match plan.run_count() {
        Some(count) if count <= MOST_RUNS || (confirmed && count <= MOST_PLANNED) => Ok(()),
        Some(count) if count <= MOST_PLANNED => Err(ScenarioError::at(
            &place,
            too_many(count.to_string(), MOST_RUNS),
            format!("add `--yes` if that is meant; {fix}"),
        )),
        count => {
            let count = count.map_or("2^64 or more".into(), |count| count.to_string());
            Err(ScenarioError::at(
                &place,
                too_many(count, MOST_PLANNED),
                fix,
            ))
        }
    }
}

/// An override and its place in the plan.
type Override = (String, SourceLocation);

fn overrides_of_all(plan: &SweepPlan) -> Vec<Override> {
    let text = |set: &PlannedValue| (format!("{}={}", set.key, set.value), set.place.clone());
    plan.set.iter().map(text).collect()
}

fn overrides_of(axes: &[Axis], point: &RawPoint) -> Vec<Override> {
    let values = axes.iter().zip(point);
    let values = values.filter_map(|(axis, place)| {
        let place = (*place)? as usize;
        let text = format!("{}={}", axis.key, axis.values[place]);
        Some((text, axis.places[place].clone()))
    });
    values.collect()
}

/// The scenario with overrides; errors in overrides have their lines in the plan.
fn load(
    plan: &SweepPlan,
    laboratory: &Laboratory,
    scenario: &str,
    overrides: &[Override],
) -> Result<Experiment, ScenarioError> {
    let texts: Vec<String> = overrides.iter().map(|(text, _)| text.clone()).collect();
    laboratory.load_any(scenario, &texts).map_err(|mut error| {
        match &error.place {
            Some(SourceLocation::Override(text)) => {
                let given = overrides.iter().find(|(known, _)| known == text);
                if let Some((text, place)) = given {
                    error.message = format!("{text}: {}", error.message);
                    error.place = Some(place.clone());
                }
            }
            // The scenario itself does not exist.
            Some(SourceLocation::Whole { file }) if file == scenario => {
                error.message = format!(
                    "`scenario` = \"{}\": {}",
                    plan.general.scenario, error.message
                );
                error.place = Some(plan.scenario_place.clone());
            }
            _ => {}
        }
        error
    })
}

/// Place of the point with this number if it is a single point in the plan; else the whole plan.
fn place_of_point(plan: &SweepPlan, number: usize) -> SourceLocation {
    let grid = match plan.has_grid() {
        true => plan.axes.iter().map(|axis| axis.values.len()).product(),
        false => 0,
    };
    let single = number.checked_sub(grid);
    let point = single.and_then(|single| plan.points.get(single));
    let first = point.and_then(|point| point.values.first());
    first.map_or_else(
        || SourceLocation::Whole {
            file: plan.file.clone(),
        },
        |value| value.place.clone(),
    )
}

/// Error for two equal points, the second at `place`.
fn same(
    plan: &SweepPlan,
    axes: &[Axis],
    one: &PlannedRun,
    other: &PlannedRun,
    place: SourceLocation,
) -> ScenarioError {
    let runs = plan.run_count().unwrap_or(u64::MAX);
    let values = axes.iter().zip(one.place.iter().zip(&other.place));
    let mut different = values.filter(|(_, (one, other))| one != other);
    let Some((axis, (first, second))) = different.next() else {
        return ScenarioError::at(
            &place,
            format!(
                "this point is there already: the plan would run it twice ({} in all)",
                counted(runs, "run")
            ),
            "remove one of the two; `seeds` repeats runs",
        );
    };
    let value = |place: &u32| &axis.values[*place as usize];
    let mut keys = vec![format!("`{}`", axis.key)];
    keys.extend(different.map(|(axis, _)| format!("`{}`", axis.key)));
    ScenarioError::at(
        &axis.places[*second as usize],
        format!(
            "{} has no effect: {} and {} give the same scenario, and the plan would run it twice ({} in all)",
            keys.join(" with "),
            value(first),
            value(second),
            counted(runs, "run")
        ),
        "leave one of the values out, or the axis; `clearway show SCENARIO --resolved --set KEY=VALUE` shows what a value does",
    )
}
