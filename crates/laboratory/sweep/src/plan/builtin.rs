//! Built-in plans, and the keys of plans for the catalogue.

use super::asserts::AssertSection;
use super::settings::{SampleSection, SweepGeneral, TuneSection};
use clearway_scenario::{Explanation, first_comment};
use clearway_units::{ParameterInfo, ParameterSet};

/// The built-in plans: name and text.
pub fn builtin_sweeps() -> &'static [(&'static str, &'static str)] {
    &[
        ("spray-study", include_str!("../../plans/spray-study.toml")),
        (
            "nvlink-windows",
            include_str!("../../plans/nvlink-windows.toml"),
        ),
    ]
}

/// Names and summaries of the built-in plans, and the sections of plans with their keys.
pub fn catalogue_sections() -> (Vec<(String, String)>, Vec<Explanation>) {
    let builtin = builtin_sweeps().iter();
    let names = builtin.map(|(name, text)| (name.to_string(), first_comment(text)));
    let section =
        |name: &str, section, role: &str, summary: &str, parameters: Vec<ParameterInfo>| {
            Explanation {
                name: name.into(),
                role: role.into(),
                summary: summary.into(),
                section,
                parameters,
            }
        };
    let sections = vec![
        section(
            "sweep",
            "",
            "the top of a plan for `clearway sweep`",
            "scenario and seeds; `[axes]`, `[[point]]` or `[sample]` set the points",
            SweepGeneral::describe(),
        ),
        section(
            "sample",
            "sample",
            "the section [sample] of a plan for `clearway sweep`",
            "random points; `[sample.ranges]` has a list of values for each key, or `from`, `to` and `scale`",
            SampleSection::describe(),
        ),
        section(
            "tune",
            "tune",
            "the section [tune] of a plan for `clearway tune`",
            "goal of the tuning, and its budget of runs",
            TuneSection::describe(),
        ),
        section(
            "assert",
            "assert",
            "a section [[assert]] of a plan for `clearway sweep`",
            "an expected result; `of`, and below it `below`, `above`, `within` or `near`",
            AssertSection::describe(),
        ),
    ];
    (names.collect(), sections)
}
