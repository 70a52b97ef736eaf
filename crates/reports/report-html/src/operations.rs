//! Operations of a scale-up run: the distribution of their latency, by section and kind, and their use of the fabric.

use super::completion::{FEWEST_FOR_TAIL, WIDE, cumulative, tail};
use super::document::Document;
use super::format;
use super::html::{Column, paragraph, table};
use super::plot::{Axis, Plot, Scale, Unit};
use clearway_report::operation_summary::{HEADINGS, OperationSummary, note, number};
use clearway_report::quantity::{plain, prefixed};
use clearway_report::summary::Summary;
use clearway_report::{OperationResults, RunRecord};
use clearway_results::{BreakdownFigures, LatencyCycles, OperationClass, OperationFigures};

/// The section on operations; empty for a run of packets.
pub(super) fn section(document: &mut Document, record: &RunRecord, summary: &Summary) {
    let (Some(results), Some(operations)) = (&record.operations, &summary.operations) else {
        return;
    };
    document.open_section("operations", "Operations");
    match operations.figures.latency_cycles {
        None => document.push(&paragraph("No operation completed.")),
        Some(latency) => {
            document.plots(distribution(results));
            document.push(&latencies(operations, latency));
            document.push(&by_section(operations));
            let note = note(operations).replace('\n', " ");
            document.push(&format!("<p class=\"note\">{note}</p>"));
        }
    }
    document.close_section();
    document.open_section("fabric", "Work and fabric");
    document.push(&figures(operations));
    document.close_section();
}

/// The most important figures.
pub(super) fn tiles(
    operations: &OperationSummary,
    simulated_us: f64,
) -> Vec<(&'static str, String, String)> {
    let OperationFigures {
        totals,
        latency_cycles,
        reduction_table,
        fabric,
    } = operations.figures;
    let bandwidth = plain(totals.effective_bandwidth);
    let cycles = |cycles: u64| format!("{} cycles", format::count(cycles));
    let time = |cycles: u64| format::time(operations.cycles_as_us(cycles as f64));
    let mut tiles = vec![(
        "Effective bandwidth",
        bandwidth,
        "flits per GPU and cycle".to_owned(),
    )];
    if let Some(latency) = latency_cycles {
        let mean = latency.mean.round() as u64;
        let under = format!(
            "{}; p99 {}, max {}",
            time(mean),
            cycles(latency.p99),
            cycles(latency.max)
        );
        tiles.push(("Mean latency", cycles(mean), under));
    }
    let of = format!("of {}", format::count(totals.posted));
    tiles.push(("Operations completed", format::count(totals.completed), of));
    let hops = format!("{} flit-hops", prefixed(fabric.flit_hops as f64));
    tiles.push(("Simulated time", format::time(simulated_us), hops));
    let queue = format!("{} flits", format::count(fabric.peak_queue_flits));
    tiles.push(("Longest output queue", queue, String::new()));
    let waits = format!(
        "in use at once; {} requests waited",
        format::count(reduction_table.waits)
    );
    let entries = format::count(reduction_table.peak_entries);
    tiles.push(("Reduction table entries", entries, waits));
    tiles
}

/// The distribution of latency of each kind, and its tail.
fn distribution(results: &OperationResults) -> Vec<Plot> {
    let sorted = OperationClass::ALL.into_iter().enumerate();
    let sorted = sorted.map(|(colour, kind)| {
        let rows = results.rows.iter().filter(|row| row.kind == kind);
        let mut cycles: Vec<f64> = rows.map(|row| row.latency_cycles() as f64).collect();
        cycles.sort_unstable_by(f64::total_cmp);
        (kind.name(), colour, cycles)
    });
    let sorted: Vec<_> = sorted.filter(|(.., cycles)| !cycles.is_empty()).collect();
    let ends = || {
        sorted
            .iter()
            .filter_map(|(.., cycles)| Some((*cycles.first()?, *cycles.last()?)))
    };
    let least = ends().map(|ends| ends.0).fold(f64::INFINITY, f64::min);
    let most = ends().map(|ends| ends.1).fold(0.0, f64::max);
    let axis = || Axis {
        scale: match most > WIDE * least.max(1.0) {
            true => Scale::Log,
            false => Scale::Linear,
        },
        from: None,
        group: Some("latency"),
        ..Axis::from_zero("latency in cycles", Unit::Count)
    };
    let mut plots = vec![Plot {
        id: "latency",
        title: "Latency".into(),
        note: format!(
            "share of {} that completed within a number of cycles",
            format::counted(results.rows.len(), "operation", "operations")
        ),
        x: axis(),
        y: Axis::from_zero("share of operations", Unit::Fraction).to(1.0),
        series: sorted
            .iter()
            .map(|(name, colour, cycles)| cumulative(name, cycles, *colour))
            .collect(),
        rules: Vec::new(),
    }];
    if results.rows.len() >= FEWEST_FOR_TAIL {
        plots.push(Plot {
            id: "latency-tail",
            title: "Tail".into(),
            note: "share of operations that took at least a number of cycles".into(),
            x: axis(),
            y: Axis::log("share of operations", Unit::Fraction).to(1.0),
            series: sorted
                .iter()
                .map(|(name, colour, cycles)| tail(name, cycles, *colour))
                .collect(),
            rules: Vec::new(),
        });
    }
    plots
}

/// Table of the latency of all operations, in cycles and as times.
fn latencies(operations: &OperationSummary, latency: LatencyCycles) -> String {
    let LatencyCycles {
        min,
        mean,
        p50,
        p99,
        p999,
        max,
    } = latency;
    let [min, p50, p99, p999, max] = [min, p50, p99, p999, max].map(|cycles| cycles as f64);
    let all = [min, mean, p50, p99, p999, max];
    let columns = ["min", "mean", "p50", "p99", "p99.9", "max"].map(|name| (name, Column::Number));
    let columns: Vec<_> = [("Latency", Column::Text)]
        .into_iter()
        .chain(columns)
        .collect();
    let row = |name: &str, cells: [String; 6]| [name.to_owned()].into_iter().chain(cells).collect();
    let rows: [Vec<String>; 2] = [
        row("Cycles", all.map(|cycles| number(Some(cycles)))),
        row(
            "Time",
            all.map(|cycles| format::time(operations.cycles_as_us(cycles))),
        ),
    ];
    table(&columns, &rows)
}

fn by_section(operations: &OperationSummary) -> String {
    let names = HEADINGS.map(|heading| (heading, Column::Text));
    let figures = BreakdownFigures::COLUMNS.iter();
    let figures = figures.map(|column| (column.label, Column::Number));
    let columns: Vec<_> = names.into_iter().chain(figures).collect();
    let rows: Vec<Vec<String>> = operations.rows().collect();
    table(&columns, &rows)
}

/// Table of all figures except latencies.
fn figures(operations: &OperationSummary) -> String {
    let columns = [
        ("Figure", Column::Text),
        ("Value", Column::Number),
        ("Meaning", Column::Text),
    ];
    let figures = OperationFigures::figures();
    let figures = figures.filter(|figure| !figure.path.contains(".latency_cycles."));
    let rows = figures.map(|figure| {
        let value = number((figure.of)(&operations.figures));
        vec![figure.label.to_owned(), value, figure.meaning.to_owned()]
    });
    table(&columns, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{data, plot_ids};
    use super::super::{Page, render, tiles};
    use crate::sample::{run, scale_up_run};
    use clearway_report::RunRecord;
    use clearway_report::observed::{Curve, Metric, NodeRow, RunObservations, Subject};
    use clearway_units::Time;

    /// Sampled run: tokens of 20 GPUs, some of them below zero, and two reduction tables.
    fn watched() -> RunRecord {
        let mut record = scale_up_run();
        let node = |name: String, tier| NodeRow::new(name, tier);
        let gpus = (0..20).map(|gpu| node(format!("gpu{gpu}"), None));
        let switches = (0..2).map(|leaf| node(format!("leaf{leaf}"), Some(0)));
        let curve = |metric, subject: u32| Curve {
            metric,
            subject: Subject::Node(subject),
            values: (0..100)
                .map(|at| f64::from(at * (subject + 1) % 37) - 9.0)
                .collect(),
        };
        let of_gpus = [
            Metric::RequestTokens,
            Metric::ResponseWatermark,
            Metric::Outstanding,
        ];
        let curves = of_gpus
            .into_iter()
            .flat_map(|metric| (0..20).map(move |gpu| curve(metric, gpu)));
        let tables = (20..22).map(|switch| curve(Metric::ReductionEntries, switch));
        record.observed = Some(RunObservations {
            times: (1..=100).map(|at| Time::from_ps(at * 11_008)).collect(),
            curves: curves.chain(tables).collect(),
            nodes: gpus.chain(switches).collect(),
            ..RunObservations::default()
        });
        record
    }

    #[test]
    fn gpus_and_switches_have_curves() {
        let page = html(&watched());
        let ids = [
            "latency",
            "latency-tail",
            "request-tokens",
            "response-watermark",
            "outstanding",
            "reduction-entries",
        ];
        assert_eq!(plot_ids(&page), ids);
        assert!(page.contains("16 of 20 GPUs") && page.contains("GPUs and switches over time"));
        let data = data(&page);
        let series = |place: usize| data["plots"]["plots"][place]["series"].as_array().unwrap();
        assert_eq!(series(2).len(), 16);
        assert_eq!(
            (&series(2)[0]["name"], &series(2)[15]["name"]),
            (&"gpu0".into(), &"gpu19".into())
        );
        assert_eq!(series(2)[0]["y"][0], -9);
        let tables: Vec<_> = series(5).iter().map(|series| &series["name"]).collect();
        assert_eq!(tables, ["leaf0", "leaf1"]);
    }

    fn html(record: &RunRecord) -> String {
        render(&Page {
            record,
            scenario_text: "",
            settings: &[],
            why: None,
        })
    }

    #[test]
    fn a_run_of_packets_has_no_section() {
        let page = html(&run());
        for text in ["operations", "Operations", "id=\"fabric\""] {
            assert!(!page.contains(text), "{text}");
        }
    }

    #[test]
    fn a_scale_up_run_has_latencies_and_no_flows() {
        let page = html(&scale_up_run());
        for text in [
            "<dt>Effective bandwidth</dt><dd><b>0.812</b> <span>flits per GPU and cycle</span>",
            "<dt>Mean latency</dt><dd><b>864 cycles</b> <span>553.0 ns; p99 1,124 cycles, max 1,148 cycles</span>",
            "<dt>Operations completed</dt><dd><b>512</b> <span>of 512</span>",
            "<th scope=\"row\">Cycles</th><td class=\"n\">609</td><td class=\"n\">864.1</td>",
            "<th scope=\"row\">all-reduce</th><td>multicast write</td><td class=\"n\">128</td><td class=\"n\">795.1</td>",
            "<th scope=\"row\">waits for an entry</th><td class=\"n\">7</td>\
             <td>Requests that waited for an entry of a reduction table.</td>",
            "A cycle is 640 ps",
            "every operation&#39;s",
        ] {
            assert!(page.contains(&text.replace("&#39;", "'")), "no {text}");
        }
        for text in ["flow", "Flow", "Data packets", "FCT", "latency mean"] {
            let body = &page[page.find("<body>").unwrap()..page.find("<script type").unwrap()];
            assert!(!body.contains(text), "{text}");
        }
        assert_eq!(plot_ids(&page), ["latency", "latency-tail"]);
        let plots = &data(&page)["plots"]["plots"];
        let series = plots[0]["series"].as_array().unwrap();
        let names: Vec<_> = series.iter().map(|series| &series["name"]).collect();
        assert_eq!(names, ["multicast write", "reduction", "write", "read"]);
    }

    #[test]
    fn a_scale_up_run_without_a_completed_operation_has_a_page() {
        let mut record = scale_up_run();
        record.operations.as_mut().unwrap().rows.clear();
        let page = html(&record);
        assert!(page.contains("No operation completed.") && plot_ids(&page).is_empty());
        assert!(!page.contains("Mean latency"));
    }

    #[test]
    fn the_live_page_ends_with_the_same_figures() {
        let names: Vec<&str> = tiles(&scale_up_run())
            .iter()
            .map(|tile| tile.name)
            .collect();
        assert_eq!(names[..2], ["Effective bandwidth", "Mean latency"]);
    }
}
