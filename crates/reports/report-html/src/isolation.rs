//! `isolation.html`: gains of attackers and losses of victims on a network.

use super::document::Document;
use super::format;
use super::html::{Column, Escaped, paragraph, table, tiles_of};
use clearway_report::isolation::{
    EXPLANATION, HEADINGS, Harm, IsolationCell, IsolationRecord, IsolationVerdict,
};

/// The name of the file in the folder of a study.
pub const ISOLATION_FILE_NAME: &str = "isolation.html";

/// The study as HTML. The same study gives the same bytes.
pub fn render_isolation(study: &IsolationRecord) -> String {
    let mut document = Document::new(&format!("{} under attack · Clearway", study.scenario));
    document.push(&format!(
        "<header>\n<div>\n<p class=\"kicker\">Clearway study of isolation</p>\n<h1>{} under attack</h1>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>",
        Escaped(&study.scenario)
    ));
    if !study.complete {
        document.push(
            "<p class=\"warning\" role=\"status\">Interrupted: the study covers the runs that were done.</p>",
        );
    }
    document.push("<main>");
    tiles(&mut document, study);
    document.open_section("attacks", "Attacks");
    document.push(&paragraph(&format!(
        "Attackers: {}. {}",
        study.attackers_text(),
        EXPLANATION.replace('\n', " ").replace("->", "→")
    )));
    if study.cells.len() > study.attacks().len() {
        document.push(&matrix(study));
    }
    document.push(&rows(&study.cells));
    document.close_section();
    document.open_section("provenance", "Provenance");
    document.push(&provenance(study));
    document.close_section();
    document.push("</main>");
    document.finish()
}

/// Tiles with the answers that an operator wants first.
fn tiles(document: &mut Document, study: &IsolationRecord) {
    let vulnerable = |cell: &&IsolationCell| cell.verdict == IsolationVerdict::Vulnerable;
    let vulnerable = study.cells.iter().filter(vulnerable).count();
    let harmful = |cell: &&IsolationCell| cell.harm == Harm::Harmful;
    let harmful = study.cells.iter().filter(harmful).count();
    let gain = |cell: &&IsolationCell| cell.gain.map_or(f64::MIN, |gain| gain.median);
    let worst = study
        .cells
        .iter()
        .max_by(|a, b| gain(a).total_cmp(&gain(b)));
    let loss = |cell: &&IsolationCell| cell.loss.map_or(f64::MAX, |loss| loss.median);
    let hurt = study
        .cells
        .iter()
        .min_by(|a, b| loss(a).total_cmp(&loss(b)));
    let name =
        |cell: &IsolationCell| format!("{}, {}, {}", cell.transport, cell.scope, cell.attack);
    let figures = [
        (
            "Attacks that gain",
            format!("{vulnerable} of {}", study.cells.len()),
            format::counted(study.seeds.len(), "seed", "seeds"),
        ),
        (
            "Attacks that harm",
            format!("{harmful} of {}", study.cells.len()),
            format::counted(study.seeds.len(), "seed", "seeds"),
        ),
        (
            "Greatest gain",
            worst
                .and_then(|cell| cell.gain)
                .map_or("-".into(), |gain| format!("{:.2}×", gain.median)),
            worst.map(name).unwrap_or_default(),
        ),
        (
            "Victims keep at least",
            hurt.and_then(|cell| cell.loss)
                .map_or("-".into(), |loss| format!("{:.0} %", loss.median * 100.0)),
            hurt.map(name).unwrap_or_default(),
        ),
    ];
    document.push(&tiles_of(&figures));
}

/// Gains, harm and verdicts of all transports and scopes at a glance.
fn matrix(study: &IsolationRecord) -> String {
    let (headings, rows) = study.matrix();
    let columns: Vec<_> = headings
        .iter()
        .map(|heading| (*heading, Column::Text))
        .collect();
    table(&columns, &rows)
}

fn rows(cells: &[IsolationCell]) -> String {
    let columns = HEADINGS.map(|heading| (heading, Column::Text));
    let rows = cells.iter().map(|cell| {
        let texts = cell.texts();
        texts.map(|text| text.replace("->", "→")).to_vec()
    });
    table(&columns, &rows.collect::<Vec<_>>())
}

fn provenance(study: &IsolationRecord) -> String {
    let columns = [("", Column::Text), ("", Column::Code)];
    let version = format!("{} (revision {})", study.version, study.revision);
    let seeds: Vec<String> = study.seeds.iter().map(u64::to_string).collect();
    let rows = [
        ("Command", study.command.clone()),
        ("Version", version),
        ("Seeds", seeds.join(", ")),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    table(&columns, &rows)
}
