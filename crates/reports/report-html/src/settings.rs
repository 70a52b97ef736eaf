//! The scenario of a run, key by key.

use super::content::{Page, ResolvedSetting};
use super::document::Document;
use super::format;
use super::html::{Escaped, details, paragraph};
use std::fmt::Write as _;

/// The section on the scenario.
pub(super) fn section(document: &mut Document, page: &Page<'_>) {
    if page.settings.is_empty() && page.scenario_text.is_empty() {
        return;
    }
    document.open_section("scenario", "Scenario");
    if !page.settings.is_empty() {
        let changed = page
            .settings
            .iter()
            .filter(|setting| setting.changed)
            .count();
        document.push(&paragraph(&format!(
            "{}, {} of them set by the user (in bold); all others are defaults.",
            format::counted(page.settings.len(), "setting", "settings"),
            format::count(changed as u64)
        )));
        document.push(
            "<p class=\"control\" hidden><label><input type=\"checkbox\" id=\"only-changed\"> only what the user set</label></p>",
        );
        document.push(&settings_table(page.settings));
    }
    if !page.scenario_text.is_empty() {
        let text = format!("<pre><code>{}</code></pre>", Escaped(page.scenario_text));
        document.push(&details("As a scenario file", &text));
    }
    document.close_section();
}

fn settings_table(settings: &[ResolvedSetting]) -> String {
    let mut html = String::from(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"settings\">\n<thead><tr><th scope=\"col\">Key</th><th scope=\"col\">Value</th>\
         <th scope=\"col\">Set by</th><th scope=\"col\">Meaning</th><th scope=\"col\">Source of the default</th></tr></thead>\n",
    );
    for group in settings.chunk_by(|a, b| a.section == b.section) {
        let name = match group[0].section.as_str() {
            "" => "top level",
            name => name,
        };
        let _ = writeln!(
            html,
            "<tbody>\n<tr class=\"group\"><th colspan=\"5\" scope=\"rowgroup\">{}</th></tr>",
            Escaped(name)
        );
        for setting in group {
            let (class, by) = if setting.changed {
                (" class=\"changed\"", "user")
            } else {
                ("", "default")
            };
            let _ = writeln!(
                html,
                "<tr{class}><th scope=\"row\" class=\"code\">{}</th><td class=\"code\">{}</td><td>{by}</td><td>{}</td><td>{}</td></tr>",
                Escaped(&setting.key),
                Escaped(&setting.value),
                Escaped(&setting.meaning),
                Escaped(&setting.source)
            );
        }
        html.push_str("</tbody>\n");
    }
    html + "</table></div>"
}
