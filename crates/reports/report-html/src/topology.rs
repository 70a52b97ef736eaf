//! The page of a fabric: its map and its properties.

use super::document::Document;
use super::html::{Column, Escaped, details, table};
use super::map;
use clearway_report::RunObservations;

/// What the page of a fabric shows.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologyPage<'a> {
    /// Name of the scenario.
    pub name: &'a str,
    /// Properties and their values, in order.
    pub facts: &'a [(String, String)],
    /// Kinds of cables: the ends, their number, rate and delay.
    pub cables: &'a [[String; 4]],
    /// Nodes, links and their map.
    pub fabric: &'a RunObservations,
}

/// The page. The same fabric gives the same bytes.
pub fn render_topology(page: &TopologyPage<'_>) -> String {
    let mut document = Document::new(&format!("{} · topology · Clearway", page.name));
    document.push(&format!(
        "<header>\n<div>\n<p class=\"kicker\">Clearway topology</p>\n<h1>{}</h1>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>\n\
         <noscript><p class=\"warning\">The map needs JavaScript; the tables do not.</p></noscript>",
        Escaped(page.name),
    ));
    document.push("<main>");
    map::section_of_fabric(&mut document, page.fabric);
    document.open_section("properties", "Properties");
    let facts = page.facts.iter();
    let facts: Vec<Vec<String>> = facts
        .map(|(name, value)| vec![name.clone(), value.clone()])
        .collect();
    document.push(&table(&[("", Column::Text), ("", Column::Text)], &facts));
    let columns = [
        ("Cables", Column::Text),
        ("Number", Column::Number),
        ("Rate", Column::Number),
        ("Delay", Column::Number),
    ];
    let cables: Vec<Vec<String>> = page.cables.iter().map(|row| row.to_vec()).collect();
    if !cables.is_empty() {
        document.push(&details("Kinds of cables", &table(&columns, &cables)));
    }
    document.close_section();
    document.push("</main>");
    document.finish()
}
