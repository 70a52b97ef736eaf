//! Axes of a sweep, and its points as places on them.

use crate::plan::{PlannedValue, SweepPlan, quantities, quantity, text_of};
use clearway_lab::Experiment;
use clearway_report::sweep::{AxisNumbers, SweepAxis};
use clearway_scenario::{Setting, SourceLocation};
use clearway_units::{Value, ValueDomain};
use std::collections::BTreeMap;

/// Keys that a builder or operator of a network does not choose: amounts and senders of traffic, times of computations, and failures.
/// `workload` stands for each of its sections.
const GIVEN: [&str; 24] = [
    "seed",
    "topology.links",
    "workload.compute",
    "workload.count",
    "workload.experts",
    "workload.flows",
    "workload.initiators",
    "workload.jitter",
    "workload.jobs",
    "workload.load",
    "workload.message",
    "workload.object",
    "workload.parameters",
    "workload.period",
    "workload.period-jitter",
    "workload.prompts",
    "workload.senders",
    "workload.size",
    "workload.sizes",
    "workload.skew",
    "workload.start-jitter",
    "workload.straggler-factor",
    "workload.stragglers",
    "workload.tokens",
];

/// True if nobody chooses the key.
fn is_given(key: &str) -> bool {
    let (section, rest) = key.split_once('.').unwrap_or(("", key));
    let section = section.split_once('[').map_or(section, |(name, _)| name);
    let path = match section {
        "" => rest.to_owned(),
        _ => format!("{section}.{rest}"),
    };
    section == "event" || GIVEN.contains(&path.as_str())
}

/// An axis of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The key, as in `--set`.
    pub key: String,
    /// Distinct values in the order of the plan. If single points omit the key, the scenario's value comes last.
    pub values: Vec<Value>,
    /// Place of each value in the plan.
    pub(crate) places: Vec<SourceLocation>,
    /// First place of each value, independent of its spelling.
    known: BTreeMap<String, u32>,
    /// True if values are distinct names.
    has_names: bool,
}

impl Axis {
    /// An axis without values; `settings` are the scenario's settings.
    fn new(key: &str, settings: &[Setting]) -> Self {
        let own = settings.iter().find(|setting| setting.path() == key);
        let domain = own.and_then(|own| own.domain.as_ref());
        Self {
            key: key.into(),
            values: Vec::new(),
            places: Vec::new(),
            known: BTreeMap::new(),
            has_names: matches!(domain, Some(ValueDomain::Text | ValueDomain::Words(_))),
        }
    }

    /// The axis as named in results; `each` are the axes that the plan declares as given, if any.
    pub fn column(&self, each: &[String]) -> SweepAxis {
        let numbers = quantities(self.values.iter());
        SweepAxis {
            key: self.key.clone(),
            values: self.values.iter().map(text_of).collect(),
            numbers: numbers.map(|(kind, values)| AxisNumbers {
                unit: kind.unit().into(),
                values,
            }),
            given: match each {
                [] => is_given(&self.key),
                each => each.contains(&self.key),
            },
        }
    }

    /// Place of a value, independent of its spelling: `1MB` and `1000KB` are equal.
    pub(crate) fn find(&self, value: &Value) -> Option<u32> {
        self.known.get(&self.identity(value)).copied()
    }

    /// Text that is equal for equal values.
    fn identity(&self, value: &Value) -> String {
        match quantity(value).filter(|_| !self.has_names) {
            // Adding 0.0 turns -0.0 into 0.0.
            Some((kind, number)) => format!("{} {}", number + 0.0, kind.unit()),
            None => value.to_string(),
        }
    }

    /// Adds a value, which may be another spelling of a known value.
    fn add(&mut self, value: &Value, given: &SourceLocation) -> u32 {
        let place = self.values.len() as u32;
        self.known.entry(self.identity(value)).or_insert(place);
        self.values.push(value.clone());
        self.places.push(given.clone());
        place
    }

    /// Place of a value; a new value is added.
    fn place_of(&mut self, value: &Value, given: &SourceLocation) -> u32 {
        let known = self.find(value);
        known.unwrap_or_else(|| self.add(value, given))
    }
}

/// An unresolved point: places of the values that it sets.
pub(crate) type RawPoint = Vec<Option<u32>>;

/// The axes and all points of a plan: the grid, in which the last axis changes first; then single points; then drawn points. `settings` are
/// the scenario's settings.
pub(crate) fn points(plan: &SweepPlan, settings: &[Setting]) -> (Vec<Axis>, Vec<RawPoint>) {
    let mut axes: Vec<Axis> = Vec::new();
    for planned in &plan.axes {
        let mut axis = Axis::new(&planned.key, settings);
        for value in &planned.values {
            axis.add(value, &planned.place);
        }
        axes.push(axis);
    }
    let mut points = match plan.has_grid() {
        true => grid(&axes),
        false => Vec::new(),
    };
    let mut add = |values: &[PlannedValue]| {
        let mut point: RawPoint = vec![None; axes.len()];
        for given in values {
            let known = axes.iter().position(|axis| axis.key == given.key);
            let axis = known.unwrap_or_else(|| {
                axes.push(Axis::new(&given.key, settings));
                axes.len() - 1
            });
            point.resize(axes.len(), None);
            point[axis] = Some(axes[axis].place_of(&given.value, &given.place));
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

/// All combinations of the values of axes.
fn grid(axes: &[Axis]) -> Vec<RawPoint> {
    let mut points: Vec<RawPoint> = vec![vec![None; axes.len()]];
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
    points
}

/// The place on every axis; values that the point does not set come from the scenario.
pub(crate) fn complete(axes: &mut [Axis], point: &RawPoint, experiment: &Experiment) -> Vec<u32> {
    let mut settings = None;
    let places = axes.iter_mut().zip(point).map(|(axis, place)| {
        place.unwrap_or_else(|| {
            let settings = settings.get_or_insert_with(|| experiment.every_setting());
            let own = settings.iter().find(|setting| setting.path() == axis.key);
            let value = own.map_or_else(
                || Value::Text("as in the scenario".into()),
                |own| own.value.clone(),
            );
            let place = axis.places.first().cloned();
            axis.place_of(&value, &place.expect("an axis has a value"))
        })
    });
    places.collect()
}

/// Axes and values of a point: `transport.spray=single`.
pub(crate) fn name_of_point(axes: &[Axis], place: &[u32]) -> String {
    let values = axes.iter().zip(place);
    let values = values
        .map(|(axis, place)| format!("{}={}", axis.key, text_of(&axis.values[*place as usize])));
    values.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_lab::scenario::scaleup_groups;
    use clearway_lab::{Catalogue, Laboratory};
    use std::collections::BTreeSet;

    #[test]
    fn the_book_lists_the_axes_that_nobody_chooses() {
        let book = include_str!("../../../../docs/src/sweeps.md");
        let (_, after) = book
            .split_once("| axes | keys |")
            .expect("the table of axes");
        let (table, _) = after.split_once("\n\n").expect("the end of the table");
        let listed: BTreeSet<&str> = table.split('`').skip(1).step_by(2).collect();
        let keys = GIVEN.map(|key| key.strip_prefix("workload.").unwrap_or(key));
        assert_eq!(listed, keys.into_iter().chain(["[[event]]"]).collect());
    }

    #[test]
    fn keys_that_nobody_chooses_are_keys() {
        let laboratory = Laboratory::new();
        let catalogue = Catalogue::new(laboratory.registry());
        let groups = scaleup_groups(laboratory.injection());
        let catalogue = groups.into_iter().fold(catalogue, Catalogue::with);
        for key in GIVEN {
            assert!(!catalogue.explain(key).is_empty(), "{key}");
            assert!(is_given(key), "{key}");
        }
    }

    #[test]
    fn sizes_and_failures_are_given_and_settings_are_chosen() {
        for key in ["workload[1].message", "event[0].at", "event.at", "seed"] {
            assert!(is_given(key), "{key}");
        }
        for key in [
            "transport.spray",
            "workload.placement",
            "topology.hosts",
            "name",
        ] {
            assert!(!is_given(key), "{key}");
        }
    }
}
