//! `clearway list` and `clearway explain`.

use crate::failure::Failure;
use crate::output::print;
use clearway_lab::scenario::scaleup_groups;
use clearway_lab::{Catalogue, Explanation, Laboratory};
use clearway_report_text::{Align, Table};
use clearway_units::suggestion;
use std::process::ExitCode;

const WIDTH: usize = 80;

/// The names of scenarios and of plans.
pub fn catalogue(laboratory: &Laboratory) -> Catalogue<'_> {
    let catalogue = Catalogue::new(laboratory.registry());
    let groups = scaleup_groups(laboratory.injection());
    let catalogue = groups.into_iter().fold(catalogue, Catalogue::with);
    let (sweeps, sections) = clearway_sweep::catalogue_sections();
    let mut plans = clearway_plan::catalogue_group();
    plans.builtin.extend(sweeps);
    plans.sections.extend(sections);
    catalogue.with(plans)
}

pub(crate) fn list(laboratory: &Laboratory, group: Option<&str>) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(laboratory);
    let groups: Vec<&str> = match group {
        None => catalogue.groups(),
        Some(group) => vec![group],
    };
    let mut text = String::new();
    for name in groups {
        text += &format!("{}\n", names_of(group_of(&catalogue, name)?, name));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The names of a group, each with a summary line.
///
/// # Errors
/// If the group does not exist.
pub fn group(laboratory: &Laboratory, name: &str) -> Result<Vec<(String, String)>, Failure> {
    group_of(&catalogue(laboratory), name)
}

fn group_of(catalogue: &Catalogue<'_>, name: &str) -> Result<Vec<(String, String)>, Failure> {
    catalogue.group(name).ok_or_else(|| {
        Failure::new(format!(
            "there is no group `{name}`\n  fix: use one of: {}",
            catalogue.groups().join(", ")
        ))
    })
}

/// Names of all groups, and all names that can be explained.
pub(crate) fn names(laboratory: &Laboratory) -> (Vec<String>, Vec<String>) {
    let catalogue = catalogue(laboratory);
    let groups = catalogue.groups().into_iter().map(str::to_owned);
    (groups.collect(), catalogue.names())
}

pub(crate) fn explain(laboratory: &Laboratory, name: &str) -> Result<ExitCode, Failure> {
    let (_, text) = explained(laboratory, name)?;
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// All items named `name`, and the text that explains them.
///
/// # Errors
/// If no item has this name.
pub fn explained(
    laboratory: &Laboratory,
    name: &str,
) -> Result<(Vec<Explanation>, String), Failure> {
    let catalogue = catalogue(laboratory);
    let found = catalogue.explain(name);
    if found.is_empty() {
        if let Some(list) = list_of_kinds(name) {
            return Err(Failure::new(format!(
                "`{name}` chooses the kind of a section\n  fix: `clearway list {list}` lists all kinds, and `clearway explain KIND` the keys of one kind"
            )));
        }
        let near = catalogue.nearest(name);
        let known = match near {
            Some(_) => String::new(),
            None => format!("known are: {}", catalogue.names().join(", ")),
        };
        let fix = suggestion(near.as_deref(), &known);
        return Err(Failure::new(format!(
            "nothing is called `{name}`\n  fix: {fix}"
        )));
    }
    let texts: Vec<String> = found.iter().map(explanation).collect();
    let text = contents(&catalogue, name) + &texts.join("\n");
    Ok((found, text))
}

/// Group that lists the possible values of a section's `kind` key, for sections whose keys depend on `kind`.
pub(crate) fn list_of_kinds(name: &str) -> Option<&'static str> {
    match name {
        "topology.kind" => Some("topologies"),
        "workload.kind" => Some("workloads"),
        _ => None,
    }
}

/// List of the kinds of a section, printed before the section's keys; empty if `name` is not such a section.
fn contents(catalogue: &Catalogue<'_>, name: &str) -> String {
    let groups: &[&str] = match name {
        "transport" => &[
            "transports",
            "reliability",
            "controllers",
            "spray",
            "feedback",
        ],
        "topology" => &["topologies"],
        "switch" => &["switches"],
        "workload" => &["workloads"],
        _ => return String::new(),
    };
    let mut text = format!(
        "The section `{name}` is made of these. `clearway explain NAME` has the keys of one of them,\n\
         `clearway explain KEY` one key. All keys of the section follow.\n\n"
    );
    for group in groups {
        text += &names_of(catalogue.group(group).unwrap_or_default(), group);
        text.push('\n');
    }
    text
}

/// Table of names and their meanings.
fn names_of(rows: Vec<(String, String)>, heading: &str) -> String {
    let mut table = Table::new()
        .column(heading, Align::Left)
        .column("", Align::Left);
    rows.into_iter()
        .for_each(|(name, summary)| table.row([name, summary]));
    table.render(WIDTH)
}

fn explanation(item: &Explanation) -> String {
    let mut summary = Table::new().column("", Align::Left);
    summary.row([item.summary.as_str()]);
    let mut text = format!("{} ({})\n{}", item.name, item.role, summary.render(WIDTH));
    if item.parameters.is_empty() {
        return text + "\nIt has no parameters of its own.\n";
    }
    for parameter in &item.parameters {
        let prefix = if item.section.is_empty() {
            String::new()
        } else {
            format!("{}.", item.section)
        };
        text += &format!("\n  {prefix}{} = {}\n", parameter.key, parameter.default);
        let mut table = Table::new().column("", Align::Left).column("", Align::Left);
        table.row(["   ", parameter.meaning.as_str()]);
        table.row(["   ", &format!("Takes {}.", parameter.expected)]);
        table.row(["   ", &format!("Source: {}.", parameter.source)]);
        text += &table.render(WIDTH);
    }
    text
}
