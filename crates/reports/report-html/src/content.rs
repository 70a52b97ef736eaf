//! Content of a report page.

use clearway_report::RunRecord;
use clearway_report::why::WhyRecord;

/// Content of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// The scenario with every default written out, as TOML; empty if it is not known.
    pub scenario_text: &'a str,
    /// The same, key by key, in the order in which they are to be shown.
    pub settings: &'a [ResolvedSetting],
    /// Reasons why its slowest flows were slow, if somebody asked.
    pub why: Option<&'a WhyRecord>,
}

/// One key of the resolved scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedSetting {
    /// Section of the key as the scenario writes it, `topology` or `workload[1]`; empty at the top.
    pub section: String,
    /// Name of the key within the section.
    pub key: String,
    /// Value of the key as the scenario writes it.
    pub value: String,
    /// True if the user gave it, false if it is a default.
    pub changed: bool,
    /// Meaning of the key.
    pub meaning: String,
    /// Source of the default.
    pub source: String,
}
