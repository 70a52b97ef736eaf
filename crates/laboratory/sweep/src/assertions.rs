//! Assertions of a plan, checked against its points, so that undecidable assertions are found before any run.

use crate::axes::{Axis, name_of_point};
use crate::plan::{PlannedAssertion, PlannedValue, SweepPlan, text_of};
use clearway_report::sweep::{Assertion, section_measures, tenant_measures};
use clearway_scenario::{ScenarioError, SourceLocation};
use clearway_units::{nearest, suggestion};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of values that an error lists.
const MOST_NAMED: usize = 12;

/// The assertions of `plan` with the axes' spelling of values; `places` are the places of the plan's points.
pub(crate) fn resolved(
    plan: &SweepPlan,
    axes: &[Axis],
    places: &BTreeSet<&[u32]>,
) -> Result<Vec<Assertion>, ScenarioError> {
    let planned = plan.assertions.iter();
    planned
        .map(|planned| Resolver { axes, planned }.resolve(places))
        .collect()
}

/// Values on axes, by the number of the axis.
type AxisValues = BTreeMap<usize, u32>;

struct Resolver<'a> {
    axes: &'a [Axis],
    planned: &'a PlannedAssertion,
}

impl Resolver<'_> {
    fn resolve(&self, places: &BTreeSet<&[u32]>) -> Result<Assertion, ScenarioError> {
        let (of, other) = (
            self.chosen(&self.planned.of)?,
            self.chosen(&self.planned.other)?,
        );
        let mut concerned = places
            .iter()
            .filter(|place| of.iter().all(|(&axis, &value)| place[axis] == value))
            .peekable();
        if concerned.peek().is_none() {
            return Err(ScenarioError::at(
                self.place(&self.planned.of),
                format!("no point of the plan has {}", words(&self.planned.of)),
                "leave one of them out, or add the point as a `[[point]]`",
            ));
        }
        if !other.is_empty() {
            for place in concerned {
                self.check_pair(place, &other, places)?;
            }
        }
        Ok(self
            .planned
            .assertion
            .with_values(self.texts(&of), &self.texts(&other)))
    }

    /// Rejects a comparison of a point with itself, or with no point.
    fn check_pair(
        &self,
        point: &[u32],
        other: &AxisValues,
        places: &BTreeSet<&[u32]>,
    ) -> Result<(), ScenarioError> {
        let mut partner = point.to_vec();
        for (&axis, &value) in other {
            partner[axis] = value;
        }
        let name = |place: &[u32]| name_of_point(self.axes, place);
        let fault = |message: String, fix: String| {
            Err(ScenarioError::at(
                self.place(&self.planned.other),
                message,
                fix,
            ))
        };
        if partner == point {
            let axes = other.iter().map(|(&axis, &value)| {
                let axis = &self.axes[axis];
                let another = axis.values.iter().zip(0..).find(|(_, at)| *at != value);
                another.map(|(another, _)| format!("\"{}\" = {another}", axis.key))
            });
            let example = axes.flatten().next();
            return fault(
                format!("{} is compared with itself", name(point)),
                match example {
                    Some(example) => {
                        format!("say which points are compared, as in `of = {{ {example} }}`")
                    }
                    None => "compare it with a number, or vary the key".into(),
                },
            );
        }
        if !places.contains(partner.as_slice()) {
            return fault(
                format!(
                    "the plan has no point {} to compare {} with",
                    name(&partner),
                    name(point)
                ),
                "add it as a `[[point]]`, name the points that are compared in `of`, or compare with a number"
                    .into(),
            );
        }
        Ok(())
    }

    /// Places of values on their axes.
    fn chosen(&self, values: &[PlannedValue]) -> Result<AxisValues, ScenarioError> {
        let axes = self.axes;
        let find = |given: &PlannedValue| {
            let number = axes.iter().position(|axis| axis.key == given.key);
            let Some(number) = number else {
                return Err(ScenarioError::at(
                    &given.place,
                    format!("`{}` is not an axis of the plan", given.key),
                    "name a key of `[axes]`, `[[point]]` or `[sample.ranges]`",
                ));
            };
            let axis = &axes[number];
            let value = axis.find(&given.value).ok_or_else(|| {
                let known = axis.values.iter().take(MOST_NAMED);
                let known: Vec<String> = known.map(ToString::to_string).collect();
                let more = match axis.values.len().saturating_sub(MOST_NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                ScenarioError::at(
                    &given.place,
                    format!("no point of the plan has `{}` = {}", given.key, given.value),
                    format!("the values are: {}{more}", known.join(", ")),
                )
            })?;
            Ok((number, value))
        };
        values.iter().map(find).collect()
    }

    /// Keys and values, as spelled in results.
    fn texts(&self, chosen: &AxisValues) -> Vec<(String, String)> {
        let texts = chosen.iter().map(|(&axis, &value)| {
            let axis = &self.axes[axis];
            (axis.key.clone(), text_of(&axis.values[value as usize]))
        });
        texts.collect()
    }

    /// Place of the first of these values, or of the assertion.
    fn place<'a>(&'a self, values: &'a [PlannedValue]) -> &'a SourceLocation {
        values
            .first()
            .map_or(&self.planned.place, |value| &value.place)
    }
}

fn words(values: &[PlannedValue]) -> String {
    let words: Vec<String> = values
        .iter()
        .map(|value| format!("`{}` = {}", value.key, value.value))
        .collect();
    words.join(" and ")
}

/// Rejects measures of sections and tenants that no run has; `sections` and `tenants` are from all scenarios of the plan.
pub(crate) fn check_measures(
    plan: &SweepPlan,
    sections: &BTreeSet<String>,
    tenants: &BTreeSet<String>,
) -> Result<(), ScenarioError> {
    let mut known = section_measures(sections.iter().map(String::as_str));
    known.extend(tenant_measures(tenants.iter().map(String::as_str)));
    for (name, place) in plan.measures_of_parts() {
        if known.iter().any(|known| known == name) {
            continue;
        }
        let names: Vec<String> = sections.iter().map(|name| format!("`{name}`")).collect();
        let instead = match names.is_empty() {
            true => "only a workload with several sections has measures of sections; `slowdown.p99` covers all flows".into(),
            false => format!("the sections of the workload are: {}", names.join(", ")),
        };
        let near = nearest(name, known.iter().map(String::as_str));
        return Err(ScenarioError::at(
            place,
            format!("no run of the plan has the measure `{name}`"),
            suggestion(near, &instead),
        ));
    }
    Ok(())
}
