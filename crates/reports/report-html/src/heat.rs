//! The heat map: bytes, marks, drops and pauses of each link, arranged by the switches that the link joins.
//!
//! A panel shows the links from one tier to the next in one direction. It has a row for each lower switch, with a cell for each of the
//! switch's links, in the order of the upper switches. On a leaf-spine fabric the panel is the matrix of leaves and spines; on a fat tree
//! pairs without a link are left out. Links of hosts are in the row of their switch. If there are thousands of them, they form one cell
//! for each switch.

use super::document::Document;
use super::format;
use super::html::{Column, details, paragraph, table};
use super::json::{push_list, push_number, push_numbers, push_text};
use clearway_report::fabric_map::kind_of;
use clearway_report::observed::{LinkRow, RunObservations};
use clearway_report::why::{CostlyLink, WhyRecord};
use clearway_units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Number of host links from which on they are summed up by switch.
const MANY_HOST_LINKS: usize = 1024;
/// Maximum number of rows and columns of a panel; with more, neighbours share a cell.
const MOST_ROWS: usize = 128;
/// Cells in a line of a panel without columns.
const WRAP: usize = 16;
/// Number of links that the table lists for each criterion.
const LISTED: usize = 5;
/// Share of the costliest link's delay below which the delay of a link is not notable.
const SMALL: f64 = 0.05;

/// One cell: a link, or several.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    name: String,
    links: usize,
    /// The mean over the links.
    pub(super) utilisation: f64,
    /// The greatest utilisation, with its link.
    pub(super) busiest: (f64, String),
    marks: u64,
    drops: u64,
    pauses: u64,
    paused_us: f64,
    peak_queue: u64,
}

impl Cell {
    pub(super) fn from_link(link: &LinkRow, span: Span) -> Self {
        let utilisation = link.utilisation(span);
        Self {
            name: link.name.clone(),
            links: 1,
            utilisation,
            busiest: (utilisation, link.name.clone()),
            marks: link.marks,
            drops: link.drops,
            pauses: link.pauses,
            paused_us: link.paused.as_us(),
            peak_queue: link.peak_queue,
        }
    }

    /// Several cells as one, called `name`.
    pub(super) fn join(name: String, cells: impl IntoIterator<Item = Self>) -> Option<Self> {
        let sum = |mut a: Self, b: Self| {
            let links = a.links + b.links;
            let weighed = a.utilisation * a.links as f64 + b.utilisation * b.links as f64;
            a.utilisation = weighed / links as f64;
            a.links = links;
            if b.busiest.0 > a.busiest.0 {
                a.busiest = b.busiest;
            }
            a.marks += b.marks;
            a.drops += b.drops;
            a.pauses += b.pauses;
            a.paused_us += b.paused_us;
            a.peak_queue = a.peak_queue.max(b.peak_queue);
            a
        };
        cells.into_iter().reduce(sum).map(|whole| {
            let name = if whole.links > 1 { name } else { whole.name };
            Self { name, ..whole }
        })
    }
}

/// A metric of a cell.
type Metric = fn(&Cell) -> f64;

/// What colours show, by the names of the metrics in the scripts.
pub(super) const METRICS: [(&str, Metric); 6] = [
    ("utilisation", |cell| cell.utilisation),
    ("marks", |cell| cell.marks as f64),
    ("drops", |cell| cell.drops as f64),
    ("pauses", |cell| cell.pauses as f64),
    ("paused", |cell| cell.paused_us),
    ("queue", |cell| cell.peak_queue as f64),
];

/// Links of one kind, ready to be drawn.
#[derive(Debug, Clone, PartialEq)]
struct Panel {
    title: String,
    row_names: Vec<String>,
    column_names: Vec<String>,
    /// Row by row; all rows have as many cells as there are columns.
    cells: Vec<Vec<Option<Cell>>>,
}

/// Group of links that are drawn together: lower and upper tier (a host is below all switches), and true if the links lead downwards.
type Group = (Option<u8>, Option<u8>, bool);

/// The section on links.
pub(super) fn section(
    document: &mut Document,
    observed: &RunObservations,
    span: Span,
    why: Option<&WhyRecord>,
) {
    if observed.links.is_empty() {
        return;
    }
    document.open_section("links", "Links over the whole run");
    document.set_heat(json(&panels(observed, span)));
    document.push(
        "<div id=\"heat\" role=\"group\" aria-label=\"Heat map of all links; the table below names the links that stand out\"></div>",
    );
    document.push(&paragraph(
        "Each cell is a link, or several where there are too many: utilisation is then their mean, the peak queue their greatest, \
         everything else their sum.",
    ));
    document.push(&details(
        "Links that stand out",
        &notable(observed, span, why),
    ));
    document.close_section();
}

fn panels(observed: &RunObservations, span: Span) -> Vec<Panel> {
    let mut groups: BTreeMap<Group, Vec<&LinkRow>> = BTreeMap::new();
    for link in &observed.links {
        let (from, to) = (tier(observed, link.from), tier(observed, link.to));
        let downwards = (from, link.from) > (to, link.to);
        let group = (from.min(to), from.max(to), downwards);
        groups.entry(group).or_default().push(link);
    }
    groups
        .into_iter()
        .map(|(group, links)| panel(observed, group, &links, span))
        .collect()
}

fn tier(observed: &RunObservations, node: u32) -> Option<u8> {
    observed.nodes[node as usize].tier
}

fn panel(
    observed: &RunObservations,
    (low, high, downwards): Group,
    links: &[&LinkRow],
    span: Span,
) -> Panel {
    let of_hosts = low.is_none();
    // The owner of a row, and the sort key within the row.
    let place = |link: &LinkRow| {
        let (lower, upper) = if downwards {
            (link.to, link.from)
        } else {
            (link.from, link.to)
        };
        if of_hosts && high.is_some() {
            (upper, lower)
        } else {
            (lower, upper)
        }
    };
    let mut rows: BTreeMap<u32, Vec<(u32, Cell)>> = BTreeMap::new();
    for link in links {
        let (owner, other) = place(link);
        let row = rows.entry(owner).or_default();
        row.push((other, Cell::from_link(link, span)));
    }
    for row in rows.values_mut() {
        row.sort_by_key(|(other, _)| *other);
    }
    let title = title(observed, (low, high, downwards), links.len());
    if of_hosts && links.len() > MANY_HOST_LINKS {
        return one_cell_each(observed, title, &rows);
    }
    let columns = rows.values().map(Vec::len).max().unwrap_or(0);
    let column_names = (0..columns).map(|column| {
        let others: BTreeSet<u32> = rows
            .values()
            .filter_map(|row| row.get(column).map(|(other, _)| *other))
            .collect();
        match others.first() {
            Some(&only) if others.len() == 1 => observed.nodes[only as usize].name.clone(),
            _ => format!("{}", column + 1),
        }
    });
    let column_names: Vec<String> = column_names.collect();
    let row_names: Vec<String> = rows
        .keys()
        .map(|owner| observed.nodes[*owner as usize].name.clone())
        .collect();
    let cells = rows.into_values().map(|row| {
        let mut cells: Vec<Option<Cell>> = row.into_iter().map(|(_, cell)| Some(cell)).collect();
        cells.resize(columns, None);
        cells
    });
    coarser(Panel {
        title,
        row_names,
        column_names,
        cells: cells.collect(),
    })
}

/// `leaf → spine (8 links)`.
fn title(observed: &RunObservations, (low, high, downwards): Group, links: usize) -> String {
    let [lower, upper] = [low, high].map(|tier| {
        let nodes = observed.nodes.iter();
        kind_of(nodes.filter(|node| node.tier == tier))
    });
    let (from, to) = if downwards {
        (upper, lower)
    } else {
        (lower, upper)
    };
    format!(
        "{from} → {to} ({})",
        format::counted(links, "link", "links")
    )
}

/// One cell for each switch, in lines of equal length.
fn one_cell_each(
    observed: &RunObservations,
    title: String,
    rows: &BTreeMap<u32, Vec<(u32, Cell)>>,
) -> Panel {
    let cells: Vec<Option<Cell>> = rows
        .iter()
        .map(|(owner, row)| {
            let name = format!(
                "{}, {}",
                observed.nodes[*owner as usize].name,
                format::counted(row.len(), "link", "links")
            );
            Cell::join(name, row.iter().map(|(_, cell)| cell.clone()))
        })
        .collect();
    let owners: Vec<&str> = rows
        .keys()
        .map(|owner| observed.nodes[*owner as usize].name.as_str())
        .collect();
    // Sixteen cells in a line, or more if there would be too many lines.
    let width = WRAP * owners.len().div_ceil(WRAP * MOST_ROWS).max(1);
    let width = width.min(owners.len());
    Panel {
        title: format!("{title}, summed up by switch"),
        row_names: owners
            .chunks(width)
            .map(|line| line[0].to_owned())
            .collect(),
        column_names: (0..width).map(|column| format!("+{column}")).collect(),
        cells: cells
            .chunks(width)
            .map(|line| {
                let mut line = line.to_vec();
                line.resize(width, None);
                line
            })
            .collect(),
    }
}

/// The same panel with rows and columns joined until few enough are left.
fn coarser(panel: Panel) -> Panel {
    let high = panel.row_names.len().div_ceil(MOST_ROWS).max(1);
    let wide = panel.column_names.len().div_ceil(MOST_ROWS).max(1);
    if high == 1 && wide == 1 {
        return panel;
    }
    let range = |names: &[String]| match names {
        [first, .., last] => format!("{first} – {last}"),
        names => names.concat(),
    };
    let row_names: Vec<String> = panel.row_names.chunks(high).map(range).collect();
    let column_names: Vec<String> = panel.column_names.chunks(wide).map(range).collect();
    let cells = panel
        .cells
        .chunks(high)
        .zip(&row_names)
        .map(|(rows, row_name)| {
            (0..column_names.len())
                .map(|column| {
                    let within = column * wide..((column + 1) * wide).min(panel.column_names.len());
                    let own = rows
                        .iter()
                        .flat_map(|row| row[within.clone()].iter().flatten().cloned());
                    let own: Vec<Cell> = own.collect();
                    let count = format::counted(own.len(), "link", "links");
                    Cell::join(
                        format!("{row_name}, {}: {count}", column_names[column]),
                        own,
                    )
                })
                .collect()
        });
    Panel {
        cells: cells.collect(),
        title: format!("{}, neighbours joined", panel.title),
        row_names,
        column_names,
    }
}

fn json(panels: &[Panel]) -> String {
    let mut text = String::from("{\"panels\":");
    push_list(&mut text, panels, push_panel);
    text.push('}');
    text
}

fn push_panel(text: &mut String, panel: &Panel) {
    let cells: Vec<Option<&Cell>> = panel.cells.iter().flatten().map(Option::as_ref).collect();
    text.push_str("{\"title\":");
    push_text(text, &panel.title);
    for (name, names) in [("rows", &panel.row_names), ("columns", &panel.column_names)] {
        text.push_str(&format!(",\"{name}\":"));
        push_list(text, names, |text, name| push_text(text, name));
    }
    text.push_str(",\"names\":");
    push_list(text, &cells, |text, cell| match cell {
        Some(cell) => push_text(text, &cell.name),
        None => text.push_str("null"),
    });
    let links: (&str, Metric) = ("links", |cell| cell.links as f64);
    for (name, pick) in METRICS.into_iter().chain([links]) {
        let values: Vec<f64> = cells
            .iter()
            .map(|cell| cell.map_or(f64::NAN, pick))
            .collect();
        push_column(text, name, &values);
    }
    if cells.iter().flatten().any(|cell| cell.links > 1) {
        let values: Vec<f64> = cells
            .iter()
            .map(|cell| cell.map_or(f64::NAN, |cell| cell.busiest.0))
            .collect();
        push_column(text, "busiest", &values);
        text.push_str(",\"busiestName\":");
        push_list(text, &cells, |text, cell| match cell {
            Some(cell) => push_text(text, &cell.busiest.1),
            None => text.push_str("null"),
        });
    }
    text.push('}');
}

/// A list, or a single value if all values are equal.
pub(super) fn push_column(text: &mut String, name: &str, values: &[f64]) {
    text.push_str(&format!(",\"{name}\":"));
    let mut known = values.iter().copied().filter(|value| value.is_finite());
    let first = known.next().unwrap_or(0.0);
    if known.all(|value| value == first) {
        push_number(text, first, 4);
    } else {
        push_numbers(text, values, 4);
    }
}

/// The first links by any criterion. The first criterion is the delay of the slowest flows.
fn notable(observed: &RunObservations, span: Span, why: Option<&WhyRecord>) -> String {
    type Pick = fn(&LinkRow) -> u128;
    let criteria: [Pick; 4] = [
        |link| link.marks.into(),
        |link| link.drops.into(),
        |link| link.paused.as_ps().into(),
        |link| link.peak_queue.into(),
    ];
    let links = &observed.links;
    let mut by_utilisation: Vec<usize> = (0..links.len()).collect();
    by_utilisation.sort_by(|&a, &b| {
        let of = |place: usize| links[place].utilisation(span);
        of(b).total_cmp(&of(a)).then(a.cmp(&b))
    });
    let costly = why.map_or(&[][..], |why| &why.links);
    let cost = |link: &CostlyLink| link.queueing_us + link.paused_us;
    let least = costly.first().map_or(0.0, |most| cost(most) * SMALL);
    let costly = costly.iter().filter(|link| cost(link) >= least);
    let costly = costly.take(LISTED);
    let place = |name: &str| links.iter().position(|link| link.name == name);
    let mut chosen: Vec<usize> = costly.filter_map(|link| place(&link.link)).collect();
    chosen.extend(by_utilisation.into_iter().take(LISTED));
    for pick in criteria {
        let mut ranked: Vec<usize> = (0..links.len())
            .filter(|&place| pick(&links[place]) > 0)
            .collect();
        ranked.sort_by_key(|&place| (u128::MAX - pick(&links[place]), place));
        ranked.truncate(LISTED);
        chosen.extend(ranked);
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|place| seen.insert(*place));
    let rows: Vec<Vec<String>> = chosen
        .into_iter()
        .map(|place| {
            let link = &links[place];
            vec![
                link.name.clone(),
                format::rate(link.rate.as_bps() as f64),
                format::share(link.utilisation(span)),
                format::count(link.marks),
                format::count(link.drops),
                format::count(link.pauses),
                format::time(link.paused.as_us()),
                format::bytes(link.peak_queue as f64),
            ]
        })
        .collect();
    let columns = [
        ("Link", Column::Text),
        ("Rate", Column::Number),
        ("Utilisation", Column::Number),
        ("Marks", Column::Number),
        ("Drops", Column::Number),
        ("Pauses", Column::Number),
        ("Paused", Column::Number),
        ("Peak queue", Column::Number),
    ];
    table(&columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::super::tests::leaf_spine;
    use super::*;

    fn shape(panel: &Panel) -> (usize, usize) {
        (panel.row_names.len(), panel.column_names.len())
    }

    #[test]
    fn a_small_fabric_has_a_cell_for_each_link() {
        let watched = leaf_spine(4, 2, 3);
        let panels = panels(&watched, Span::from_us(100));
        let titles: Vec<&str> = panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "host → leaf (12 links)",
                "leaf → host (12 links)",
                "leaf → spine (8 links)",
                "spine → leaf (8 links)",
            ]
        );
        assert_eq!(shape(&panels[0]), (4, 3));
        assert_eq!(shape(&panels[2]), (4, 2));
        assert_eq!(panels[2].row_names, ["leaf0", "leaf1", "leaf2", "leaf3"]);
        assert_eq!(panels[2].column_names, ["spine0", "spine1"]);
        let cell = panels[2].cells[2][1].as_ref().unwrap();
        assert_eq!((cell.name.as_str(), cell.links), ("leaf2-spine1", 1));
        let all: usize = panels
            .iter()
            .flat_map(|panel| panel.cells.iter().flatten().flatten())
            .map(|cell| cell.links)
            .sum();
        assert_eq!(all, watched.links.len());
    }

    #[test]
    fn thousands_of_host_links_are_summed_up_by_switch() {
        let watched = leaf_spine(40, 4, 32);
        let panels = panels(&watched, Span::from_us(100));
        let hosts = &panels[0];
        assert_eq!(
            hosts.title,
            "host → leaf (1,280 links), summed up by switch"
        );
        assert_eq!(shape(hosts), (3, 16));
        let cells: Vec<&Cell> = hosts.cells.iter().flatten().flatten().collect();
        assert_eq!(cells.len(), 40);
        let marks: u64 = watched
            .links
            .iter()
            .filter(|link| link.name.starts_with("host"))
            .map(|link| link.marks)
            .sum();
        assert_eq!(cells.iter().map(|cell| cell.marks).sum::<u64>(), marks);
        assert_eq!(cells[7].name, "leaf7, 32 links");
    }

    #[test]
    fn many_switches_share_rows() {
        let watched = leaf_spine(300, 2, 1);
        let panels = panels(&watched, Span::from_us(100));
        let up = &panels[2];
        assert_eq!(shape(up), (100, 2));
        assert_eq!(up.row_names[1], "leaf3 – leaf5");
        let cell = up.cells[1][0].as_ref().unwrap();
        assert_eq!(
            (cell.links, cell.name.as_str()),
            (3, "leaf3 – leaf5, spine0: 3 links")
        );
        let mean = [3usize, 4, 5].map(|leaf| {
            let name = format!("leaf{leaf}-spine0");
            let link = watched.links.iter().find(|link| link.name == name).unwrap();
            link.utilisation(Span::from_us(100))
        });
        assert!((cell.utilisation - mean.iter().sum::<f64>() / 3.0).abs() < 1e-12);
        assert_eq!(cell.busiest.0, mean[2]);
    }

    #[test]
    fn equal_values_are_written_once() {
        let mut text = String::new();
        push_column(&mut text, "drops", &[0.0, f64::NAN, 0.0]);
        push_column(&mut text, "marks", &[0.0, f64::NAN, 2.0]);
        assert_eq!(text, ",\"drops\":0,\"marks\":[0,null,2]");
    }
}
