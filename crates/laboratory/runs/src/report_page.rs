//! `report.html` of a run.

use clearway_lab::scenario;
use clearway_report::why::WhyRecord;
use clearway_report::{ResultFolder, RunRecord};
use clearway_report_html::{self as page, Page, ResolvedSetting};

/// Writes the report into the result folder. `resolved` is the text of the scenario, `settings` are its keys.
pub(crate) fn write(
    folder: &mut ResultFolder,
    resolved: &str,
    settings: Vec<scenario::Setting>,
    record: &RunRecord,
) {
    let html = html(resolved, settings, record, None);
    folder.add(page::FILE_NAME, |file| file.write_all(html.as_bytes()));
}

/// The report; `why` is the analysis of the slowest flows, if requested.
pub fn html(
    resolved: &str,
    settings: Vec<scenario::Setting>,
    record: &RunRecord,
    why: Option<&WhyRecord>,
) -> String {
    let settings: Vec<ResolvedSetting> = settings
        .into_iter()
        .map(|setting| ResolvedSetting {
            section: setting.section,
            key: setting.key.into(),
            value: setting.value.to_string(),
            changed: setting.given,
            meaning: setting.meaning,
            source: setting.source.into(),
        })
        .collect();
    page::render(&Page {
        record,
        scenario_text: resolved,
        settings: &settings,
        why,
    })
}
