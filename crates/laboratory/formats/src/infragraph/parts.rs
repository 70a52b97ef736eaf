//! Devices and links of a file as trees.

use super::tree::Tree;
use clearway_units::{Rate, Span};

/// A component of a device.
pub(super) fn component(name: &str, count: u32, choice: &str) -> Tree {
    Tree::Map(vec![
        ("name", Tree::text(name)),
        ("count", Tree::number(count)),
        ("choice", Tree::text(choice)),
    ])
}

/// An edge within a device.
pub(super) fn inner_edge(a: &str, b: &str, scheme: &str, link: &str) -> Tree {
    let end = |component: &str| Tree::Map(vec![("component", Tree::text(component))]);
    Tree::Map(vec![
        ("ep1", end(a)),
        ("ep2", end(b)),
        ("scheme", Tree::text(scheme)),
        ("link", Tree::text(link)),
    ])
}

/// A device with one link.
pub(super) fn device(name: &str, components: Vec<Tree>, link: &str, edges: Vec<Tree>) -> Tree {
    let links = match edges.is_empty() {
        true => Vec::new(),
        false => vec![Tree::Map(vec![("name", Tree::text(link))])],
    };
    Tree::Map(vec![
        ("name", Tree::text(name)),
        ("components", Tree::List(components)),
        ("links", Tree::List(links)),
        ("edges", Tree::List(edges)),
    ])
}

/// The device of switches with a number of ports.
pub(super) fn switch(name: &str, ports: u32) -> Tree {
    let components = vec![
        component("asic", 1, "switch"),
        component("port", ports, "port"),
    ];
    device(
        name,
        components,
        "ic",
        vec![inner_edge("asic", "port", "many2many", "ic")],
    )
}

/// A link of the file.
pub(super) fn link(number: usize, rate: Rate, delay: Span) -> Tree {
    let quantity = |unit: &'static str, value: String| {
        Tree::Map(vec![
            ("choice", Tree::text(unit)),
            (unit, Tree::Number(value)),
        ])
    };
    let physical = vec![
        (
            "bandwidth",
            quantity("gigabits_per_second", decimal(rate.as_bps(), 9)),
        ),
        ("latency", quantity("ns", decimal(delay.as_ps(), 3))),
    ];
    Tree::Map(vec![
        ("name", Tree::text(format!("link{number}"))),
        ("physical", Tree::Map(physical)),
    ])
}

/// `value` divided by ten to the power of `digits`, exactly.
fn decimal(value: u64, digits: u32) -> String {
    let unit = 10u64.pow(digits);
    let (whole, rest) = (value / unit, value % unit);
    match rest {
        0 => whole.to_string(),
        _ => {
            let fraction = format!("{rest:0width$}", width = digits as usize);
            format!("{whole}.{}", fraction.trim_end_matches('0'))
        }
    }
}
