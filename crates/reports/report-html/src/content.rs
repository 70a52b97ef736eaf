//! Content of a report page.

use clearway_report::RunRecord;
use clearway_report::why::WhyRecord;

/// Content of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// The scenario as TOML with every default; empty if unknown.
    pub scenario_text: &'a str,
    /// The keys of the scenario in display order.
    pub settings: &'a [ResolvedSetting],
    /// Reasons why the slowest flows of the run were slow, if requested.
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
    /// True if the user gave the value, false for a default.
    pub changed: bool,
    /// Meaning of the key.
    pub meaning: String,
    /// Source of the default.
    pub source: String,
}
