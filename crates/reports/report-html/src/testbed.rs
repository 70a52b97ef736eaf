//! `report.html` of a test bed: simulation and measurement, side by side.

use super::document::Document;
use super::format;
use super::html::{Column, Escaped, details, paragraph, table, tiles_of};
use super::plot::{Axis, Join, MOST_SERIES, Plot, Series, Shape, Unit};
use clearway_report::testbed::{Side, TestbedCurve, TestbedFlow, TestbedRecord};

/// The page. The same record gives the same bytes.
pub fn render_testbed(record: &TestbedRecord) -> String {
    let mut document = Document::new(&format!("{} · test bed · Clearway", record.scenario));
    document.push(&format!(
        "<header>\n<div>\n<p class=\"kicker\">Clearway test bed</p>\n<h1>{}: simulation and reality</h1>\n<p class=\"note\">{}, {} \
         switches, {}</p>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>\n\
         <noscript><p class=\"warning\">Plots need JavaScript; the tables do not.</p></noscript>",
        Escaped(&record.scenario),
        Escaped(&record.fabric),
        Escaped(record.switches),
        Escaped(record.transport),
    ));
    if !record.is_sound() {
        document.push(&format!(
            "<p class=\"warning\" role=\"status\">{}</p>",
            Escaped(&unsound(record))
        ));
    }
    document.push("<main>");
    document.push(&tiles_of(&tiles(record)));
    completion(&mut document, record);
    course(&mut document, record);
    traffic(&mut document, record);
    differences(&mut document, record);
    provenance(&mut document, record);
    document.push("</main>");
    document.finish()
}

fn unsound(record: &TestbedRecord) -> String {
    let undone = |flow: &&TestbedFlow| flow.measured_us.is_none();
    let undone = record.flows.iter().filter(undone).count();
    let mut faults = Vec::new();
    if undone > 0 {
        let flows = format::counted(undone, "flow", "flows");
        faults.push(format!("{flows} did not finish on the bed"));
    }
    if record.broken() > 0 {
        let flows = format::counted(record.broken(), "message", "messages");
        faults.push(format!("{flows} came twice or with other bytes"));
    }
    faults.join("; ") + "."
}

fn tiles(record: &TestbedRecord) -> Vec<(&'static str, String, String)> {
    let longest = |time: fn(&TestbedFlow) -> Option<f64>| {
        let times = record.flows.iter().filter_map(time);
        times.reduce(f64::max).map_or("–".into(), format::time)
    };
    let done = |time: fn(&TestbedFlow) -> Option<f64>| {
        record.flows.iter().filter_map(time).count().to_string()
    };
    let all = record.flows.len();
    let trips = &record.round_trip;
    vec![
        (
            "Measured / simulated",
            record
                .median_ratio()
                .map_or("–".into(), |ratio| format!("{ratio:.2}×")),
            "median of completion times".into(),
        ),
        (
            "Max FCT, simulated",
            longest(|flow| flow.simulated_us),
            format!("{} of {all} flows done", done(|flow| flow.simulated_us)),
        ),
        (
            "Max FCT, measured",
            longest(|flow| flow.measured_us),
            format!("{} of {all} flows done", done(|flow| flow.measured_us)),
        ),
        (
            "Base round trip, measured",
            format::time(trips.measured_least_us),
            format!("simulated {}", format::time(trips.simulated_us)),
        ),
    ]
}

fn completion(document: &mut Document, record: &TestbedRecord) {
    document.open_section("completion", "Completion times");
    let sorted = |time: fn(&TestbedFlow) -> Option<f64>| {
        let mut times: Vec<f64> = record.flows.iter().filter_map(time).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let series = |name: &str, times: Vec<f64>, colour| {
        let all = record.flows.len() as f64;
        Series {
            name: name.into(),
            y: (1..=times.len()).map(|rank| rank as f64 / all).collect(),
            x: times.into(),
            shape: Shape::Step,
            join: Join::Never,
            colour,
        }
    };
    document.plots(vec![Plot {
        id: "completion-times",
        title: "Flows that are done".into(),
        note: "by completion time".into(),
        x: Axis::from_zero("completion time", Unit::Time),
        y: Axis::from_zero("part of all flows", Unit::Fraction).to(1.0),
        series: vec![
            series("simulated", sorted(|flow| flow.simulated_us), 0),
            series("measured", sorted(|flow| flow.measured_us), 1),
        ],
        rules: Vec::new(),
    }]);
    let columns = [
        ("Flow", Column::Number),
        ("Hosts", Column::Text),
        ("MB", Column::Number),
        ("Simulated, ms", Column::Number),
        ("Measured, ms", Column::Number),
        ("Ratio", Column::Number),
        ("Sent again", Column::Number),
        ("Marks", Column::Number),
        ("Paths", Column::Number),
    ];
    let rows: Vec<_> = record.flows.iter().map(TestbedFlow::cells).collect();
    let flows = table(&columns, &rows);
    match rows.len() > 32 {
        true => document.push(&details("All flows", &flows)),
        false => document.push(&flows),
    }
    document.push(&paragraph(
        "Where a cell has two numbers, the first is simulated and the second measured.",
    ));
    document.close_section();
}

/// Curves over time.
fn course(document: &mut Document, record: &TestbedRecord) {
    document.open_section("time", "Over time");
    let plot = |id, title: &str, note: &str, label, unit, curves: &[TestbedCurve], side| {
        let own = curves.iter().filter(|curve| curve.side == side);
        let series: Vec<Series> = own.take(MOST_SERIES).map(series).collect();
        (!series.is_empty()).then(|| Plot {
            id,
            title: title.into(),
            note: note.into(),
            x: Axis {
                group: Some("time"),
                ..Axis::from_zero("time", Unit::Time)
            },
            y: Axis::from_zero(label, unit),
            series,
            rules: Vec::new(),
        })
    };
    use Side::{Measured, Simulated};
    let (windows, links) = (&record.windows, &record.link_rates);
    let plots = [
        plot(
            "windows-simulated",
            "Windows, simulated",
            "",
            "window",
            Unit::Bytes,
            windows,
            Simulated,
        ),
        plot(
            "windows-measured",
            "Windows, measured",
            "",
            "window",
            Unit::Bytes,
            windows,
            Measured,
        ),
        plot(
            "links-simulated",
            "Links, simulated",
            "between switches",
            "rate",
            Unit::Rate,
            links,
            Simulated,
        ),
        plot(
            "links-measured",
            "Links, measured",
            "between switches",
            "rate",
            Unit::Rate,
            links,
            Measured,
        ),
        plot(
            "paths-measured",
            "Paths of one flow, measured",
            "by source port",
            "rate",
            Unit::Rate,
            &record.path_rates,
            Measured,
        ),
    ];
    document.plots(plots.into_iter().flatten().collect());
    document.close_section();
}

fn series(curve: &TestbedCurve) -> Series {
    Series {
        name: curve.name.clone(),
        x: curve.at_us.clone().into(),
        y: curve.values.clone(),
        shape: Shape::Line,
        join: Join::Mean,
        colour: curve.index % 16,
    }
}

fn traffic(document: &mut Document, record: &TestbedRecord) {
    document.open_section("links", "Share of links, losses and marks");
    let columns = [
        ("Link", Column::Text),
        ("Simulated, MB", Column::Number),
        ("Share", Column::Number),
        ("Measured, MB", Column::Number),
        ("Share", Column::Number),
        ("Drops", Column::Number),
        ("Marks", Column::Number),
    ];
    document.push(&table(&columns, &record.link_rows()));
    document.push(&paragraph(
        "Shares are of all that leaves the same switch towards others.",
    ));
    document.close_section();
}

fn differences(document: &mut Document, record: &TestbedRecord) {
    document.open_section("differences", "Where they differ, and why");
    let rows = record.differences.iter();
    let rows = rows.map(|difference| vec![difference.what.clone(), difference.facts.clone()]);
    let columns = [("What", Column::Text), ("Facts", Column::Text)];
    document.push(&table(&columns, &rows.collect::<Vec<_>>()));
    document.close_section();
}

fn provenance(document: &mut Document, record: &TestbedRecord) {
    document.open_section("reproduce", "Reproduce this run");
    document.push(&format!(
        "<pre class=\"command\"><code>{}</code></pre>",
        Escaped(&record.command)
    ));
    let rows = [
        (
            "Version",
            format!("{} (revision {})", record.version, record.revision),
        ),
        ("Seed", record.seed.to_string()),
    ];
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, text)| vec![name.into(), text])
        .collect();
    document.push(&table(&[("", Column::Text), ("", Column::Code)], &rows));
    let keys = record.software.iter().map(|key| vec![key.clone()]);
    let keys = table(&[("", Column::Code)], &keys.collect::<Vec<_>>());
    document.push(&details(
        "Keys that the simulation has from the software",
        &keys,
    ));
    document.close_section();
}
