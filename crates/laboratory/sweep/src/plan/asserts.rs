//! `[[assert]]`: assertions on results.

use super::measure::{MEASURES, check_measure};
use super::reader::Reader;
use super::{PlannedAssertion, PlannedValue};
use clearway_report::sweep::{Assertion, Bound, Limit, Statistic};
use clearway_scenario::ScenarioError;
use clearway_scenario::source::Entry;
use clearway_units::{Parameter, Value, ValueDomain};

clearway_units::parameters! {
    /// Assertion. Its further keys are `of`, and one of `below`, `above`, `within` and `near`.
    pub struct AssertSection {
        /// Measure of the runs, named as in `compare.json`.
        pub measure: String = String::new(), "measure", "the user";
        /// Statistic of the measure over the seeds: "mean" or "median".
        pub statistic: StatisticKey = StatisticKey(Statistic::Mean), "statistic", "decision";
        /// Confidence level at which the assertion must hold.
        pub confidence: f64 = 0.95, "confidence", "decision";
        /// Factor on the other points' measure in `below` and `above`.
        pub factor: f64 = 1.0, "factor", "decision";
    }
}

/// A statistic as a key of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatisticKey(pub Statistic);

impl Parameter for StatisticKey {
    fn expected() -> String {
        let names = Statistic::ALL.map(|statistic| format!("\"{}\"", statistic.name()));
        format!("one of {}", names.join(", "))
    }
    fn domain() -> ValueDomain {
        ValueDomain::Words(Statistic::ALL.map(Statistic::name).to_vec())
    }
    fn from_value(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else {
            return None;
        };
        let mut all = Statistic::ALL.into_iter();
        all.find(|statistic| statistic.name() == text).map(Self)
    }
    fn to_value(&self) -> Value {
        Value::Text(self.0.name().into())
    }
}

/// Keys of an assertion that are tables, numbers or either.
const OPERANDS: [&str; 5] = ["of", "below", "above", "within", "near"];

/// Text of a value, as spelled in the plan.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn assertions(reader: &Reader) -> Result<Vec<PlannedAssertion>, ScenarioError> {
    (0..reader.count("assert"))
        .map(|index| assertion(reader, index))
        .collect()
}

fn assertion(reader: &Reader, index: usize) -> Result<PlannedAssertion, ScenarioError> {
    let is_operand = |key: &str| {
        let first = key.split('.').next().unwrap_or_default();
        OPERANDS.contains(&first)
    };
    let settings: AssertSection = reader.fill("an assertion", "assert", index, is_operand)?;
    let fault = |keys: &[&str], message: String, fix: String| {
        ScenarioError::at(&reader.place("assert", index, keys), message, fix)
    };
    let measure_place = reader.place("assert", index, &["measure"]);
    if settings.measure.is_empty() {
        let message = "an assertion without a measure".into();
        return Err(fault(&["measure"], message, MEASURES.into()));
    }
    check_measure(&settings.measure, &measure_place)?;
    if settings.confidence <= 0.0 || settings.confidence >= 1.0 {
        let message = format!("a confidence of {}", settings.confidence);
        let fix = "give a number between 0 and 1, such as 0.95".into();
        return Err(fault(&["confidence"], message, fix));
    }
    if settings.factor <= 0.0 {
        let message = format!("a factor of {}", settings.factor);
        return Err(fault(&["factor"], message, "give a number above 0".into()));
    }
    let operands = Operands { reader, index };
    let of = operands.points("of")?;
    let bound = operands.bound(settings.factor)?;
    operands.check_factor(&bound)?;
    // At most one of these has points.
    let other = ["below", "above", "near"].map(|name| operands.table(name));
    let other = other.concat();
    let assertion = Assertion {
        measure: settings.measure,
        statistic: settings.statistic.0,
        of: texts(&of),
        bound,
        confidence: settings.confidence,
    };
    Ok(PlannedAssertion {
        assertion,
        of,
        other,
        place: reader.place("assert", index, &[]),
        measure_place,
    })
}

/// Keys of axes and their values, as spelled in the plan.
fn texts(values: &[PlannedValue]) -> Vec<(String, String)> {
    let texts = values
        .iter()
        .map(|given| (given.key.clone(), text_of(&given.value)));
    texts.collect()
}

/// Tables and numbers of an assertion.
struct Operands<'a> {
    reader: &'a Reader,
    index: usize,
}

impl Operands<'_> {
    fn fault(&self, keys: &[&str], message: &str, fix: &str) -> ScenarioError {
        ScenarioError::at(&self.reader.place("assert", self.index, keys), message, fix)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let mut entries = self.reader.section("assert", self.index);
        entries.find(|entry| entry.key == name)
    }

    /// The keys of axes and their values in the table `name`.
    fn points(&self, name: &str) -> Result<Vec<PlannedValue>, ScenarioError> {
        if let Some(entry) = self.entry(name) {
            return Err(ScenarioError::at(
                &entry.place,
                format!("`{name}` cannot be {}", entry.value),
                format!("name points, as in `{name} = {{ \"transport.spray\" = \"adaptive\" }}`"),
            ));
        }
        Ok(self.table(name))
    }

    /// Keys and values below `name`; empty if `name` is not a table.
    fn table(&self, name: &str) -> Vec<PlannedValue> {
        let entries = self.reader.section("assert", self.index);
        let below = entries.filter_map(|entry| {
            let key = entry.key.strip_prefix(name)?.strip_prefix('.')?;
            Some(PlannedValue {
                key: key.into(),
                value: entry.value.clone(),
                place: entry.place.clone(),
            })
        });
        below.collect()
    }

    /// Rejects a factor without a measure to multiply.
    fn check_factor(&self, bound: &Bound) -> Result<(), ScenarioError> {
        let is_used = matches!(
            bound,
            Bound::Below(Limit::Points { .. }) | Bound::Above(Limit::Points { .. })
        );
        match self.entry("factor") {
            Some(entry) if !is_used => Err(ScenarioError::at(
                &entry.place,
                "`factor` multiplies the measure of other points, but neither `below` nor `above` names points",
                "leave it out, or name points, as in `below = { \"transport.spray\" = \"single\" }`",
            )),
            _ => Ok(()),
        }
    }

    /// The asserted bound, of which there must be exactly one.
    fn bound(&self, factor: f64) -> Result<Bound, ScenarioError> {
        let limit = |name: &str| -> Result<Option<Limit>, ScenarioError> {
            if let Some(entry) = self.entry(name)
                && let Some(number) = number(&entry.value)
            {
                return Ok(Some(Limit::Number(number)));
            }
            let of = texts(&self.points(name)?);
            Ok((!of.is_empty()).then_some(Limit::Points { of, factor }))
        };
        let near = texts(&self.points("near")?);
        let within = self.entry("within");
        let mut bounds: Vec<Bound> = Vec::new();
        bounds.extend(limit("below")?.map(Bound::Below));
        bounds.extend(limit("above")?.map(Bound::Above));
        let refuse = |entry: &Entry, fix: &str| {
            Err(ScenarioError::at(
                &entry.place,
                format!("`within` cannot be {}", entry.value),
                fix,
            ))
        };
        match (near.is_empty(), within) {
            (true, None) => {}
            (true, Some(entry)) => match two(&entry.value) {
                Some((low, high)) => bounds.push(Bound::Between(low, high)),
                None => {
                    return refuse(
                        entry,
                        "give both ends, as in `within = [1.0, 1.5]`, or points that it is to be near: `near = { … }`",
                    );
                }
            },
            (false, Some(entry)) => match number(&entry.value).filter(|share| *share > 0.0) {
                Some(tolerance) => bounds.push(Bound::Near {
                    of: near,
                    tolerance,
                }),
                None => {
                    return refuse(entry, "give a share above 0, as in `within = 0.05` for 5 %");
                }
            },
            (false, None) => {
                return Err(self.fault(
                    &["near"],
                    "`near` does not say how near",
                    "give a share, as in `within = 0.05` for 5 %",
                ));
            }
        }
        let mut bounds = bounds.into_iter();
        match (bounds.next(), bounds.next()) {
            (Some(bound), None) => Ok(bound),
            (None, _) => Err(self.fault(
                &[],
                "an assertion that asserts nothing",
                "give one of `below`, `above` (a number, or points), `within = [low, high]`, or `near` with `within`",
            )),
            _ => Err(self.fault(
                &["above"],
                "an assertion that asserts two things",
                "write an `[[assert]]` for each",
            )),
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) if number.is_finite() => Some(*number),
        _ => None,
    }
}

/// Two numbers, the smaller first.
fn two(value: &Value) -> Option<(f64, f64)> {
    let Value::List(items) = value else {
        return None;
    };
    let [low, high] = items.as_slice() else {
        return None;
    };
    let (low, high) = (number(low)?, number(high)?);
    (low <= high).then_some((low, high))
}
