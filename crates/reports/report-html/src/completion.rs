//! Completion times: their distribution, their tail, and slowdown by size.

use super::document::Document;
use super::html::{Column, details, paragraph, table};
use super::plot::{Axis, Join, MOST_POINTS, Plot, Rule, Scale, Series, Shape, Unit};
use super::{format, scatter};
use clearway_report::Distribution;
use clearway_report::by_size::{SizeBin, SizeClass, Tail};
use clearway_report::summary::Summary;
use clearway_report::{FlowTimes, RunRecord};
use clearway_units::Span;
use std::sync::Arc;

/// Minimum number of flows for a tail to mean something.
pub(super) const FEWEST_FOR_TAIL: usize = 100;
/// Ratio of the values from which on the axis is logarithmic.
pub(super) const WIDE: f64 = 50.0;

/// The section on completion times.
pub(super) fn section(document: &mut Document, record: &RunRecord, summary: &Summary) {
    document.open_section("completion", "Completion times");
    let flows = record.flow_times();
    let (mut fcts, mut ideals): (Vec<f64>, Vec<f64>) = flows
        .iter()
        .filter_map(FlowTimes::fct_and_ideal)
        .map(|(fct, ideal)| (fct.as_us(), ideal.as_us()))
        .unzip();
    if fcts.is_empty() {
        document.push(&paragraph(nothing(summary.flows.completed)));
    } else {
        fcts.sort_unstable_by(f64::total_cmp);
        ideals.sort_unstable_by(f64::total_cmp);
        document.plots(distribution(&fcts, &ideals));
        document.push(&percentiles(summary));
        let plots = by_size(&summary.slowdown_by_size);
        let plots = plots.into_iter().chain(scatter::plot(&flows, summary));
        document.plots(plots.collect());
        size_tables(document, summary);
    }
    document.close_section();
}

/// Sentence for a run whose flows have no completion times.
pub(super) const fn nothing(completed: u64) -> &'static str {
    match completed {
        0 => "No flow completed.",
        _ => {
            "All flows that completed are connections of jobs, which have no completion time of their own."
        }
    }
}

/// A point of a distribution: a value, the number of values at most as large, and the number at least as large.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quantile {
    pub(super) value: f64,
    pub(super) at_most: usize,
    pub(super) at_least: usize,
}

/// At most [`MOST_POINTS`] − 1 exact points of the distribution of `sorted`, including the least and the greatest value. They are spread
/// evenly over the ranks, and more densely near the end, which readers look at most.
pub(super) fn reduce(sorted: &[f64]) -> Vec<Quantile> {
    const EVEN: usize = 600;
    let count = sorted.len();
    let mut ranks: Vec<usize> = if count < MOST_POINTS {
        (0..count).collect()
    } else {
        let mut ranks: Vec<usize> = (0..EVEN)
            .map(|place| place * (count - 1) / (EVEN - 1))
            .collect();
        let mut from_end = 1;
        while from_end <= count {
            ranks.push(count - from_end);
            from_end += (from_end * 6 / 100).max(1);
        }
        ranks
    };
    ranks.sort_unstable();
    ranks.dedup_by_key(|rank| sorted[*rank]);
    let quantile = |rank: usize| {
        let value = sorted[rank];
        Quantile {
            value,
            at_most: sorted.partition_point(|&other| other <= value),
            at_least: count - sorted.partition_point(|&other| other < value),
        }
    };
    ranks.into_iter().map(quantile).collect()
}

/// The cumulative distribution of `sorted`: the number of values that are at most x.
pub(crate) fn cumulative(name: &str, sorted: &[f64], colour: usize) -> Series {
    let points = reduce(sorted);
    let first = points.first().map(|point| point.value);
    let part = |point: &Quantile| point.at_most as f64 / sorted.len() as f64;
    Series {
        name: name.into(),
        x: first
            .into_iter()
            .chain(points.iter().map(|point| point.value))
            .collect::<Arc<[f64]>>(),
        y: first
            .map(|_| 0.0)
            .into_iter()
            .chain(points.iter().map(part))
            .collect(),
        shape: Shape::Step,
        join: Join::Never,
        colour,
    }
}

/// The complementary distribution of `sorted`: the number of values that are at least x.
pub(super) fn tail(name: &str, sorted: &[f64], colour: usize) -> Series {
    let points = reduce(sorted);
    let part = |point: &Quantile| point.at_least as f64 / sorted.len() as f64;
    Series {
        name: name.into(),
        x: points.iter().map(|point| point.value).collect(),
        y: points.iter().map(part).collect(),
        shape: Shape::Interval,
        join: Join::Never,
        colour,
    }
}

/// The distribution of completion times and of ideal times, and the tail. Both lists are sorted.
fn distribution(fcts: &[f64], ideals: &[f64]) -> Vec<Plot> {
    let mut series = vec![cumulative("FCT", fcts, 0)];
    let mut rules = Vec::new();
    let (least, greatest) = (ideals[0], ideals[ideals.len() - 1]);
    let one_ideal = greatest <= least * 1.000_001;
    if one_ideal {
        rules.push(Rule {
            x: greatest,
            label: format!("ideal {}", format::time(greatest)),
        });
    } else {
        series.push(cumulative("ideal", ideals, 1));
    }
    let wide = fcts[fcts.len() - 1] > WIDE * least.min(fcts[0]).max(1e-6);
    let axis = || Axis {
        scale: if wide { Scale::Log } else { Scale::Linear },
        from: None,
        group: Some("fct"),
        ..Axis::from_zero("flow completion time", Unit::Time)
    };
    let count = format::counted(fcts.len(), "flow", "flows");
    let mut plots = vec![Plot {
        id: "fct",
        title: "Flow completion time".into(),
        note: format!("share of {count} that completed within a time"),
        x: axis(),
        y: Axis::from_zero("share of flows", Unit::Fraction).to(1.0),
        series,
        rules: rules.clone(),
    }];
    if fcts.len() >= FEWEST_FOR_TAIL {
        plots.push(Plot {
            id: "fct-tail",
            title: "Tail".into(),
            note: "share of flows that took at least a time".into(),
            x: axis(),
            y: Axis::log("share of flows", Unit::Fraction).to(1.0),
            series: vec![tail("FCT", fcts, 0)],
            rules,
        });
    }
    plots
}

fn percentiles(summary: &Summary) -> String {
    let columns = ["min", "mean", "p50", "p99", "p99.9", "max"].map(|name| (name, Column::Number));
    let columns: Vec<_> = [("", Column::Text)].into_iter().chain(columns).collect();
    let row = |name: &str, distribution: Option<Distribution>, print: fn(f64) -> String| {
        let Distribution {
            min,
            mean,
            p50,
            p99,
            p999,
            max,
        } = distribution?;
        let cells = [min, mean, p50, p99, p999, max].map(print);
        Some([name.to_string()].into_iter().chain(cells).collect())
    };
    let rows: Vec<Vec<String>> = [
        row("FCT", summary.fct_us, format::time),
        row("Ideal FCT", summary.ideal_fct_us, format::time),
        row("Slowdown", summary.slowdown, format::factor),
    ]
    .into_iter()
    .flatten()
    .collect();
    table(&columns, &rows)
        + "<p class=\"note\">FCT: from ready to send to last byte acknowledged. Ideal: the same flow alone on an idle network. \
           Slowdown: FCT / ideal FCT. Percentiles are nearest rank.</p>"
}

/// Slowdown against size, if there are several sizes.
fn by_size(bins: &[SizeBin]) -> Option<Plot> {
    if bins.len() < 2 {
        return None;
    }
    let x: Arc<[f64]> = bins.iter().map(place_of).collect();
    type Pick = fn(&Tail) -> f64;
    let lines: [(&str, Pick); 4] = [
        ("p50", |tail| tail.p50),
        ("p95", |tail| tail.p95),
        ("p99", |tail| tail.p99),
        ("p99.9", |tail| tail.p999),
    ];
    let series = lines
        .into_iter()
        .enumerate()
        .map(|(colour, (name, pick))| Series {
            name: name.into(),
            x: x.clone(),
            y: bins.iter().map(|bin| pick(&bin.slowdown)).collect(),
            shape: Shape::Points,
            join: Join::Never,
            colour,
        });
    Some(Plot {
        id: "slowdown-size",
        title: "Slowdown by flow size".into(),
        note: bins_note(bins),
        x: Axis::log("flow size", Unit::Bytes),
        y: slowdown_axis(bins),
        series: series.collect(),
        rules: Vec::new(),
    })
}

/// Table of the classes that all runs share, and of all bins of this run.
fn size_tables(document: &mut Document, summary: &Summary) {
    let (bins, classes) = (&summary.slowdown_by_size, &summary.slowdown_by_class);
    if bins.is_empty() {
        return;
    }
    document.push("<h3>Slowdown by flow size</h3>");
    if let [only] = bins.as_slice() {
        document.push(&paragraph(&format!(
            "All {} that completed are of one size.",
            format::counted(only.flows as usize, "flow", "flows")
        )));
        document.push(&size_table(bins));
        return;
    }
    document.push(&class_table(classes));
    document.push(&details("All sizes", &size_table(bins)));
}

/// Position of a bin on the axis of sizes: its median flow.
pub(super) fn place_of(bin: &SizeBin) -> f64 {
    bin.median_bytes.max(1) as f64
}

/// The axis of slowdown: logarithmic if a linear axis would hide smaller values.
pub(super) fn slowdown_axis<'a>(bins: impl IntoIterator<Item = &'a SizeBin>) -> Axis {
    let slowest = bins.into_iter().map(|bin| bin.slowdown.max);
    match slowest.fold(1.0, f64::max) > WIDE {
        true => Axis::log("slowdown", Unit::Factor),
        false => Axis::from_zero("slowdown", Unit::Factor),
    }
}

/// Note on the points of the plot.
fn bins_note(bins: &[SizeBin]) -> String {
    let several = bins
        .iter()
        .any(|bin| bin.smallest_bytes < bin.largest_bytes);
    let points = match several {
        true => format!("{} bins of about equally many flows", bins.len()),
        false => "a point for each size".into(),
    };
    let few = match bins.iter().map(|bin| bin.flows).min() {
        Some(..100) => {
            "; p99 of fewer than 100 flows is the slowest, as is p99.9 of fewer than 1000"
        }
        Some(..1000) => "; p99.9 of fewer than 1000 flows is the slowest",
        _ => "",
    };
    format!("FCT / ideal FCT; {points}{few}")
}

/// Columns of slowdown, after the columns that identify the row.
const TAIL: [&str; 5] = ["p50", "p95", "p99", "p99.9", "max"];

fn tail_table(rows: impl Iterator<Item = (String, u64, Tail)>) -> String {
    let columns: Vec<_> = [("Size", Column::Text), ("Flows", Column::Number)]
        .into_iter()
        .chain(TAIL.map(|name| (name, Column::Number)))
        .collect();
    let rows = rows.map(|(size, flows, tail)| {
        let mut row = vec![size, format::count(flows)];
        row.extend([tail.p50, tail.p95, tail.p99, tail.p999, tail.max].map(format::factor));
        row
    });
    table(&columns, &rows.collect::<Vec<_>>())
}

fn size_table(bins: &[SizeBin]) -> String {
    let size = |bytes: u64| format::bytes(bytes as f64);
    tail_table(bins.iter().map(|bin| {
        let sizes = match bin.smallest_bytes == bin.largest_bytes {
            true => size(bin.smallest_bytes),
            false => format!("{} – {}", size(bin.smallest_bytes), size(bin.largest_bytes)),
        };
        (sizes, bin.flows, bin.slowdown)
    }))
}

fn class_table(classes: &[SizeClass]) -> String {
    tail_table(
        classes
            .iter()
            .map(|class| (class.name(), class.flows, class.slowdown)),
    )
}

/// The slowest flow that has an ideal: its completion time and its ideal time.
pub(super) fn slowest(flows: &[FlowTimes]) -> Option<(Span, Span)> {
    let completed = flows.iter().filter_map(FlowTimes::fct_and_ideal);
    completed.max_by_key(|(fct, _)| *fct)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::flow;
    use clearway_report::by_size::FlowsBySize;
    use proptest::prelude::*;

    #[test]
    fn few_values_are_all_kept() {
        let points = reduce(&[1.0, 2.0, 2.0, 5.0]);
        let figures: Vec<(f64, usize, usize)> = points
            .iter()
            .map(|point| (point.value, point.at_most, point.at_least))
            .collect();
        assert_eq!(figures, [(1.0, 1, 4), (2.0, 3, 3), (5.0, 4, 1)]);
        assert!(reduce(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn a_reduced_distribution_is_exact_where_it_is_given(
            mut values in prop::collection::vec(0u32..100_000, 1..6000),
        ) {
            values.sort_unstable();
            let sorted: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            let points = reduce(&sorted);
            prop_assert!(points.len() < MOST_POINTS);
            prop_assert_eq!(points[0].value, sorted[0]);
            prop_assert_eq!(points[points.len() - 1].value, sorted[sorted.len() - 1]);
            for point in &points {
                let at_most = sorted.partition_point(|value| *value <= point.value);
                let at_least = sorted.len() - sorted.partition_point(|value| *value < point.value);
                prop_assert_eq!((point.at_most, point.at_least), (at_most, at_least));
            }
            let equal = |value: f64| {
                sorted.partition_point(|v| *v <= value) - sorted.partition_point(|v| *v < value)
            };
            // Between two points the error of the curve is less than half a percent.
            for pair in points.windows(2) {
                let skipped = pair[1].at_most - pair[0].at_most - equal(pair[1].value);
                prop_assert!(skipped as f64 <= 0.005 * sorted.len() as f64);
            }
        }
    }

    #[test]
    fn the_plot_by_size_says_what_its_percentiles_are_of() {
        let note = |sizes: u64, flows: u64| {
            let rows = (0..sizes * flows).map(|number| {
                let mut row = FlowTimes::from(&flow(number as u32, Some(Span::from_us(100))));
                row.bytes = 1000 + number % sizes;
                row
            });
            let bins = FlowsBySize::from_flows(&rows.collect::<Vec<_>>()).bins();
            by_size(&bins).map(|plot| plot.note)
        };
        let slowest = "p99 of fewer than 100 flows is the slowest, as is p99.9 of fewer than 1000";
        let expected = format!("FCT / ideal FCT; 20 bins of about equally many flows; {slowest}");
        assert_eq!(note(40, 10), Some(expected));
        let expected =
            "FCT / ideal FCT; a point for each size; p99.9 of fewer than 1000 flows is the slowest";
        assert_eq!(note(2, 100).as_deref(), Some(expected));
        let expected = "FCT / ideal FCT; a point for each size";
        assert_eq!(note(2, 1000).as_deref(), Some(expected));
        assert_eq!(note(1, 1000), None, "nothing to compare");
    }

    #[test]
    fn a_wide_distribution_has_a_logarithmic_axis() {
        let narrow = distribution(&[50.0, 60.0], &[48.0, 48.0]);
        assert_eq!(narrow[0].x.scale, Scale::Linear);
        assert_eq!(narrow[0].rules[0].label, "ideal 48.00 µs");
        assert_eq!(narrow.len(), 1, "two flows have no tail");
        let wide = distribution(&[5.0, 6000.0], &[4.0, 3000.0]);
        assert_eq!(wide[0].x.scale, Scale::Log);
        assert_eq!(wide[0].series[1].name, "ideal");
    }
}
