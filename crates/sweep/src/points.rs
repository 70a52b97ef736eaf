//! From a plan to its runs: every point resolved, every run with its key.

use crate::plan::text_of;
use crate::plan::{PlannedValue, SweepPlan, counted, quantities};
use crate::shard::Shard;
use clearway_lab::{Experiment, Laboratory};
use clearway_report::sweep::{AxisNumbers, SweepAxis};
use clearway_scenario::{FileHashes, Place, ScenarioError};
use clearway_units::{Value, mix64};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Most runs of a plan that nobody has to confirm.
pub const MOST_RUNS: u64 = 10_000;

/// Key of a run: the hash of its resolved scenario, its files, and the program's version and revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey(u64);

impl RunKey {
    /// Key of an experiment that this `program` runs; files that `files` knows are not read again.
    pub fn of(experiment: &Experiment, program: &Program, files: &FileHashes) -> Self {
        let text = format!("{} {}", program.version, program.revision);
        let start = experiment.fingerprint_with(files);
        Self(
            text.bytes()
                .fold(start, |hash, byte| mix64(hash ^ u64::from(byte))),
        )
    }

    /// The key that `text` was printed from.
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

/// The program that carries out runs: results of another one are not mixed with its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Version of the program.
    pub version: String,
    /// Revision that it was built from.
    pub revision: String,
}

/// An axis of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The key, as in `--set`.
    pub key: String,
    /// Distinct values in the order of the plan; at the end, if single points leave it out, the scenario's own.
    pub values: Vec<Value>,
    /// Place of each value in the plan.
    places: Vec<Place>,
}

impl Axis {
    /// The axis as results name it.
    pub fn column(&self) -> SweepAxis {
        let numbers = quantities(self.values.iter());
        SweepAxis {
            key: self.key.clone(),
            values: self.values.iter().map(text_of).collect(),
            numbers: numbers.map(|(kind, values)| AxisNumbers {
                unit: kind.unit().into(),
                values,
            }),
        }
    }
}

/// A run of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// Place of the run's value on each axis.
    pub place: Vec<u32>,
    /// Axes that its point sets; it has the scenario's own value of the others.
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
    /// What it varies.
    pub axes: Vec<Axis>,
    /// All runs in the order of the plan: point by point, and at each point seed by seed.
    pub runs: Vec<PlannedRun>,
    /// The program that the keys of the runs are for.
    program: Program,
    /// Hashes of the files that scenarios of the plan read.
    files: Arc<FileHashes>,
}

/// A point before it is resolved: places of values that it sets.
type RawPoint = Vec<Option<u32>>;

impl Sweep {
    /// Resolves every run of `plan`; more than [`MOST_RUNS`] are refused unless they are `confirmed`.
    ///
    /// # Errors
    /// At the first point that cannot be run, or that is another one over again.
    pub fn resolve(
        plan: SweepPlan,
        laboratory: &Laboratory,
        program: &Program,
        confirmed: bool,
    ) -> Result<Self, ScenarioError> {
        check_count(&plan, confirmed)?;
        let (mut axes, points) = points(&plan);
        let scenario = plan.scenario();
        let base = load(&plan, laboratory, &scenario, &overrides_of_all(&plan))?;
        let seeds = plan.general.seeds.list(base.general().seed);
        let mut sweep = Self {
            runs: Vec::with_capacity(points.len() * seeds.len()),
            axes: Vec::new(),
            plan,
            program: program.clone(),
            files: Arc::default(),
        };
        let mut seen: BTreeMap<RunKey, usize> = BTreeMap::new();
        for (number, point) in points.into_iter().enumerate() {
            let mut overrides = overrides_of_all(&sweep.plan);
            overrides.extend(overrides_of(&axes, &point));
            let mut experiment = load(&sweep.plan, laboratory, &scenario, &overrides)?;
            let place = complete(&mut axes, &point, &experiment);
            for seed in &seeds {
                experiment.general_mut().seed = *seed;
                let key = RunKey::of(&experiment, program, &sweep.files);
                let run = PlannedRun {
                    place: place.clone(),
                    set: point.iter().map(Option::is_some).collect(),
                    seed: *seed,
                    key,
                };
                if let Some(&other) = seen.get(&key) {
                    let other: &PlannedRun = &sweep.runs[other];
                    // What is drawn twice, from a list for instance, is run once.
                    if sweep.plan.sample.is_some() && other.place == place {
                        continue;
                    }
                    let place = place_of_point(&sweep.plan, number);
                    return Err(same(&sweep.plan, &axes, other, &run, place));
                }
                seen.insert(key, sweep.runs.len());
                sweep.runs.push(run);
            }
        }
        sweep.axes = axes;
        Ok(sweep)
    }

    /// The scenario of a run, as it is carried out.
    ///
    /// # Errors
    /// If files have changed since the run was planned: its results would be kept under the key of what they were.
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
        if RunKey::of(&experiment, &self.program, &self.files) != run.key {
            let place = Place::Whole { file: scenario };
            return Err(ScenarioError::at(
                &place,
                "the scenario, or a file that it reads, has changed since the sweep began",
                "call the sweep again: runs of what it was stay, and count for that alone",
            ));
        }
        Ok(experiment)
    }

    /// Axes and values of a run, and its seed: `transport.spray=single seed=1`.
    pub fn name_of(&self, run: &PlannedRun) -> String {
        let values = self.axes.iter().zip(&run.place);
        let values = values.map(|(axis, place)| {
            format!("{}={}", axis.key, text_of(&axis.values[*place as usize]))
        });
        let seed = format!("seed={}", run.seed);
        values.chain([seed]).collect::<Vec<_>>().join(" ")
    }

    /// Places in [`runs`](Self::runs) of a part: every run is in one part, whatever its place in the plan is.
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
    let place = Place::Whole {
        file: plan.file.clone(),
    };
    match plan.run_count() {
        Some(count) if count <= MOST_RUNS || confirmed => Ok(()),
        Some(count) => Err(ScenarioError::at(
            &place,
            format!(
                "the plan has {count} runs ({}), which is more than {MOST_RUNS}",
                plan.shape()
            ),
            "add `--yes` if that is meant; `[sample]` draws a few points of a large space",
        )),
        None => Err(ScenarioError::at(
            &place,
            format!(
                "the plan has more than {} runs ({})",
                u64::MAX,
                plan.shape()
            ),
            "`[sample]` draws a few points of a large space",
        )),
    }
}

/// The axes and all points of a plan: of the grid the last axis changes first; then single points; then what is drawn.
fn points(plan: &SweepPlan) -> (Vec<Axis>, Vec<RawPoint>) {
    let mut axes: Vec<Axis> = Vec::new();
    let mut points: Vec<RawPoint> = Vec::new();
    for axis in &plan.axes {
        axes.push(Axis {
            key: axis.key.clone(),
            values: axis.values.clone(),
            places: vec![axis.place.clone(); axis.values.len()],
        });
    }
    if plan.has_grid() {
        points.push(vec![None; axes.len()]);
        for (number, axis) in axes.iter().enumerate() {
            let values = 0..axis.values.len() as u32;
            let with = |point: &RawPoint, value| {
                let mut point = point.clone();
                point[number] = Some(value);
                point
            };
            let grown = points
                .iter()
                .flat_map(|point| values.clone().map(move |value| with(point, value)));
            points = grown.collect();
        }
    }
    let mut add = |values: &[PlannedValue]| {
        let mut point: RawPoint = vec![None; axes.len()];
        for given in values {
            let (axis, value) = place_of(&mut axes, given);
            point.resize(axes.len(), None);
            point[axis] = Some(value);
        }
        points.push(point);
    };
    plan.points.iter().for_each(|point| add(&point.values));
    if let Some(sample) = &plan.sample {
        let settings = &sample.settings;
        let ranges: Vec<_> = sample
            .ranges
            .iter()
            .map(|range| (range.key.clone(), range.range.clone()))
            .collect();
        let drawn = crate::plan::draw((settings.method, settings.points, settings.seed), &ranges);
        for values in drawn {
            let given = values.into_iter().zip(&sample.ranges);
            let given: Vec<PlannedValue> = given
                .map(|(value, range)| PlannedValue {
                    key: range.key.clone(),
                    value,
                    place: range.place.clone(),
                })
                .collect();
            add(&given);
        }
    }
    for point in &mut points {
        point.resize(axes.len(), None);
    }
    (axes, points)
}

/// Axis and place of a value, which are added if they are new.
fn place_of(axes: &mut Vec<Axis>, given: &PlannedValue) -> (usize, u32) {
    let known = axes.iter().position(|axis| axis.key == given.key);
    let axis = known.unwrap_or_else(|| {
        axes.push(Axis {
            key: given.key.clone(),
            values: Vec::new(),
            places: Vec::new(),
        });
        axes.len() - 1
    });
    (axis, place_on(&mut axes[axis], &given.value, &given.place))
}

fn place_on(axis: &mut Axis, value: &Value, given: &Place) -> u32 {
    let known = axis.values.iter().position(|known| known == value);
    let place = known.unwrap_or_else(|| {
        axis.values.push(value.clone());
        axis.places.push(given.clone());
        axis.values.len() - 1
    });
    place as u32
}

/// The place on every axis: values that the point does not set are those of its scenario.
fn complete(axes: &mut [Axis], point: &RawPoint, experiment: &Experiment) -> Vec<u32> {
    let mut settings = None;
    let places = axes.iter_mut().zip(point).map(|(axis, place)| {
        place.unwrap_or_else(|| {
            let settings = settings.get_or_insert_with(|| experiment.every_setting());
            let key = crate::plan::normal(&axis.key);
            let own = settings.iter().find(|setting| setting.path() == key);
            let value = own.map_or_else(
                || Value::Text("as in the scenario".into()),
                |own| own.value.clone(),
            );
            let place = axis.places.first().cloned();
            place_on(axis, &value, &place.expect("an axis has a value"))
        })
    });
    places.collect()
}

/// An override and the place where the plan gives it.
type Override = (String, Place);

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

/// The scenario with overrides; errors in them are at their lines of the plan.
fn load(
    plan: &SweepPlan,
    laboratory: &Laboratory,
    scenario: &str,
    overrides: &[Override],
) -> Result<Experiment, ScenarioError> {
    let texts: Vec<String> = overrides.iter().map(|(text, _)| text.clone()).collect();
    laboratory.load_any(scenario, &texts).map_err(|mut error| {
        match &error.place {
            Some(Place::Override(text)) => {
                let given = overrides.iter().find(|(known, _)| known == text);
                if let Some((text, place)) = given {
                    error.message = format!("{text}: {}", error.message);
                    error.place = Some(place.clone());
                }
            }
            // The scenario itself is not there.
            Some(Place::Whole { file }) if file == scenario => {
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

/// Place of the point of this number if it stands in the plan as one; else the whole plan.
fn place_of_point(plan: &SweepPlan, number: usize) -> Place {
    let grid = match plan.has_grid() {
        true => plan.axes.iter().map(|axis| axis.values.len()).product(),
        false => 0,
    };
    let single = number.checked_sub(grid);
    let point = single.and_then(|single| plan.points.get(single));
    let first = point.and_then(|point| point.values.first());
    first.map_or_else(
        || Place::Whole {
            file: plan.file.clone(),
        },
        |value| value.place.clone(),
    )
}

/// Two points that are one, the second of which stands at `place`.
fn same(
    plan: &SweepPlan,
    axes: &[Axis],
    one: &PlannedRun,
    other: &PlannedRun,
    place: Place,
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
