//! Names of measures in plans.

use clearway_report::sweep::{is_measure, measure_names};
use clearway_scenario::{ScenarioError, SourceLocation};
use clearway_units::{nearest, suggestion};

/// Kinds of measures, in words.
pub(super) const MEASURES: &str =
    "the measures are those of `compare.json`, such as `fct_us.p99`, `slowdown.p99`, `goodput_bps`";

/// Rejects the name of an unknown measure.
pub(super) fn check_measure(name: &str, place: &SourceLocation) -> Result<(), ScenarioError> {
    if is_measure(name) {
        return Ok(());
    }
    let known = measure_names();
    let near = nearest(name, known.iter().map(String::as_str));
    Err(ScenarioError::at(
        place,
        format!("there is no measure `{name}`"),
        suggestion(near, MEASURES),
    ))
}
