//! The report in a browser.

use crate::browser::Browser;
use crate::common::Bench;
use clearway_report::{
    Curve, FabricMap, FlowRow, LinkFrames, LinkRow, Metric, NodeRow, RunObservations, RunRecord,
    ScenarioIdentity, Status, Subject, SubjectKind,
};
use clearway_report_html::{self as page, Page};
use clearway_units::{Rate, Span, Time, mix64};
use std::path::Path;

/// Drawing area of a plot: left, top, width and height within the visible part of the page.
fn plane(browser: &Browser, plot: &str) -> (f64, f64, f64, f64) {
    let element = format!("document.querySelector('[data-plot={plot}] .overlay')");
    browser.execute(&format!("{element}.scrollIntoView({{ block: 'center' }});"));
    let side =
        |side: &str| browser.number(&format!("return {element}.getBoundingClientRect().{side};"));
    (side("left"), side("top"), side("width"), side("height"))
}

fn range(browser: &Browser, plot: &str) -> (f64, f64) {
    let end = |place: usize| {
        browser.number(&format!(
            "return Clearway.plots['{plot}'].range()[{place}];"
        ))
    };
    (end(0), end(1))
}

fn assert_silent(browser: &Browser) {
    let log = browser.log();
    assert!(log.is_empty(), "the console says {log:?}");
}

/// Opens a report and checks that all of its plots have lines; returns their names.
fn open(browser: &Browser, file: &Path) -> Vec<String> {
    browser.open(file);
    assert_silent(browser);
    let names = browser.text("return Object.keys(Clearway.plots).join(' ');");
    let names: Vec<String> = names.split_whitespace().map(Into::into).collect();
    for name in &names {
        let lines = browser.number(&format!(
            "return [...document.querySelectorAll('[data-plot={name}] path.line')]\
             .filter((line) => line.getAttribute('d').length > 8).length;"
        ));
        assert!(lines >= 1.0, "{name} has no line");
        let points =
            format!("return Number(document.querySelector('[data-plot={name}]').dataset.points);");
        assert!(browser.number(&points) >= 2.0, "{name} has no points");
    }
    let drawings = browser.number("return document.querySelectorAll('[data-plot]').length;");
    assert_eq!(drawings as usize, names.len(), "every plot is drawn");
    names
}

fn report(bench: &Bench, scenario: &[&str]) -> std::path::PathBuf {
    bench.summary(scenario);
    bench.path("results/report.html")
}

#[test]
fn the_report_of_an_incast() {
    let Some(browser) = Browser::start("incast") else {
        return;
    };
    let bench = Bench::new("report-incast");
    let file = report(&bench, &["incast-32", "--set", "workload.message=1MB"]);
    let names = open(&browser, &file);
    for name in ["fct", "goodput", "queue-peak", "flow-goodput", "marks"] {
        assert!(
            names.iter().any(|known| known == name),
            "{name} in {names:?}"
        );
    }
    zooming(&browser);
    hovering(&browser);
    heat_map(&browser);
    theme(&browser);
    assert_silent(&browser);
}

#[test]
fn slowdown_by_size_and_the_dots_of_flows() {
    let Some(browser) = Browser::start("sizes") else {
        return;
    };
    let bench = Bench::new("report-sizes");
    // Seven hosts send messages of increasing size to the eighth host.
    let flow = |n: u32| format!("\"{}->7 {}KB at {n}us\"", n % 7, 1 + n * n);
    let flows: Vec<String> = (0..30).map(flow).collect();
    let flows = format!("workload.flows=[{}]", flows.join(", "));
    let settings = [
        "quickstart",
        "--set",
        "topology.kind=single-switch",
        "--set",
        "topology.hosts=8",
        "--set",
        "workload.kind=flows",
        "--set",
        &flows,
    ];
    let names = open(&browser, &report(&bench, &settings));
    for name in ["slowdown-size", "start-finish", "fairness"] {
        assert!(
            names.iter().any(|known| known == name),
            "{name} in {names:?}"
        );
    }
    let curves = "return Clearway.plots['slowdown-size'].drawn.spec.series.map((one) => one.name).join(' ');";
    assert_eq!(browser.text(curves), "p50 p95 p99 p99.9");
    // Pointing at a dot shows its flow, even if another dot is as near along x.
    plane(&browser, "start-finish");
    for dot in [3, 17, 29] {
        let at = |axis: &str, side: &str| {
            browser.number(&format!(
                "const plot = Clearway.plots['start-finish'].drawn;\
                 const frame = plot.svg.getBoundingClientRect();\
                 const factor = frame.width / plot.svg.viewBox.baseVal.width;\
                 return frame.{side} + plot.{axis}.at(plot.spec.series[0].{axis}[{dot}]) * factor;"
            ))
        };
        browser.hover((at("x", "left"), at("y", "top")));
        let shown = browser.text(
            "return document.querySelector('[data-plot=start-finish] .tip').innerText.replace(/\\s+/g, ' ');",
        );
        let expected = browser.text(&format!(
            "const [flows] = Clearway.plots['start-finish'].drawn.spec.series;\
             return 'start ' + Clearway.format('us', flows.x[{dot}]) + ' flows ' + Clearway.format('us', flows.y[{dot}]);"
        ));
        assert_eq!(shown.trim(), expected);
    }
    assert_silent(&browser);
}

/// Checks that dragging zooms all plots over time, and that escape shows the whole run again.
fn zooming(browser: &Browser) {
    let (whole, others) = (range(browser, "goodput"), range(browser, "fct"));
    let (left, top, width, height) = plane(browser, "goodput");
    let at = |part: f64| (left + width * part, top + height / 2.0);
    browser.drag(at(0.25), at(0.5));
    for plot in ["goodput", "queue-peak"] {
        let zoomed = range(browser, plot);
        let expected = |part: f64| whole.0 + (whole.1 - whole.0) * part;
        let slack = (whole.1 - whole.0) * 0.02;
        assert!(
            (zoomed.0 - expected(0.25)).abs() < slack,
            "{plot}: {zoomed:?} of {whole:?}"
        );
        assert!(
            (zoomed.1 - expected(0.5)).abs() < slack,
            "{plot}: {zoomed:?} of {whole:?}"
        );
    }
    assert_eq!(range(browser, "fct"), others, "it is not over time");
    browser.execute("document.querySelector('[data-plot=goodput] svg').focus();");
    browser.press('\u{e00c}');
    assert_eq!(range(browser, "goodput"), whole);
    browser.press('+');
    let closer = range(browser, "goodput");
    assert!(
        (closer.1 - closer.0) < 0.6 * (whole.1 - whole.0),
        "{closer:?} of {whole:?}"
    );
    browser.execute("document.querySelector('[data-plot=goodput] .reset').click();");
    assert_eq!(range(browser, "goodput"), whole);
}

fn hovering(browser: &Browser) {
    let (left, top, width, height) = plane(browser, "flow-goodput");
    browser.hover((left + width * 0.3, top + height * 0.5));
    let tip =
        browser.text("return document.querySelector('[data-plot=flow-goodput] .tip').innerText;");
    assert!(
        tip.contains("time ") && tip.contains("flow ") && tip.contains("b/s"),
        "{tip}"
    );
}

fn heat_map(browser: &Browser) {
    let panels = browser.number("return document.querySelectorAll('#heat .panel').length;");
    assert!(panels >= 2.0, "{panels} panels");
    let cells = "return [...document.querySelectorAll('#heat svg path[class^=h]')].map((path) => path.getAttribute('d')).join('');";
    let before = browser.text(cells);
    browser.execute("document.querySelector('#heat input[value=queue]').click();");
    let scale = browser.text("return document.querySelector('#heat .scale').textContent;");
    assert!(
        scale.starts_with("Peak queue") && scale.ends_with('B'),
        "{scale}"
    );
    let after = browser.text(cells);
    assert_ne!(before, after, "other levels, other paths");
    assert_eq!(
        before.matches('M').count(),
        after.matches('M').count(),
        "the same cells"
    );
}

fn theme(browser: &Browser) {
    let paper = "return getComputedStyle(document.body).backgroundColor;";
    let press = "document.getElementById('theme').click();";
    let mut seen = Vec::new();
    for name in ["light", "dark", "system"] {
        browser.execute(press);
        let label = browser.text("return document.getElementById('theme').textContent;");
        assert_eq!(label, format!("Theme: {name}"));
        seen.push(browser.text(paper));
    }
    assert_eq!(seen[0], "rgb(255, 255, 255)");
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn the_report_of_a_permutation_on_a_phone() {
    let Some(browser) = Browser::start("permutation") else {
        return;
    };
    let bench = Bench::new("report-permutation");
    let file = report(&bench, &["quickstart", "--set", "workload.message=500KB"]);
    browser.resize(500, 800);
    let names = open(&browser, &file);
    assert!(names.iter().any(|name| name == "fct-tail"), "{names:?}");
    let wide = browser.number("return document.documentElement.scrollWidth - innerWidth;");
    assert!(wide <= 0.0, "{wide} pixels too wide");
    // The table has every key of the scenario and highlights the keys that the user gave.
    let rows = "table.settings tr:not(.group)";
    let all = browser.number(&format!(
        "return document.querySelectorAll('{rows}').length;"
    ));
    let given =
        browser.number("return document.querySelectorAll('table.settings tr.changed').length;");
    assert!(
        all > 30.0 && given >= 4.0 && given < all / 2.0,
        "{given} of {all}"
    );
    browser.execute("document.getElementById('only-changed').click();");
    let shown = browser.number(&format!(
        "return [...document.querySelectorAll('{rows}')].filter((row) => row.offsetHeight > 0).length;"
    ));
    assert!(shown < all / 2.0, "{shown} of {all}");
    assert_silent(&browser);
}

#[test]
fn a_run_may_leave_its_report_out() {
    let bench = Bench::new("no-report");
    bench.summary(&[
        "quickstart",
        "--set",
        "workload.message=10KB",
        "--no-report",
    ]);
    assert!(!bench.path("results/report.html").exists());
}

/// 8192 flows on 128 leaves and 64 spines; 40 curves over 2000 intervals for links and as many for flows.
fn large() -> RunRecord {
    let flow = |number: u32| FlowRow {
        flow: number,
        label: number.into(),
        src: number,
        dst: (number + 64) % 8192,
        bytes: 2_000_000,
        start: Some(Time::ZERO),
        finish: Some(Time::from_ps(
            50_000_000 + mix64(number.into()) % 20_000_000,
        )),
        ideal_fct: Span::from_ps(48_881_300),
        packets: 489,
        retransmits: 0,
        marks: 0,
        probes: 0,
        timeouts: 0,
        attack: None,
        section: 0,
    };
    RunRecord {
        link_events: Vec::new(),
        version: "0.1.0".into(),
        revision: "0123abc".into(),
        scenario: ScenarioIdentity {
            name: "large".into(),
            hash: "01234567".into(),
            seed: 1,
        },
        status: Status::Complete,
        given: Vec::new(),
        scenario_warnings: Vec::new(),
        simulated: Span::from_us(70),
        flows: (0..8192).map(flow).collect(),
        written: None,
        sections: vec!["permutation".into()],
        tenants: Vec::new(),
        tenant_names: Vec::new(),
        packets: Default::default(),
        transports: Vec::new(),
        paused_links: Vec::new(),
        data_packet_hops: 1,
        packet_hops: 2,
        digest: "0123456789abcdef".into(),
        threads: 1,
        cpu_seconds: 1.0,
        wall_seconds: 1.0,
        peak_rss_bytes: 1,
        command: "clearway run permutation-8k".into(),
        observed: Some(observed()),
        events: None,
        jobs: Vec::new(),
        operations: None,
        fast_forward: None,
    }
}

fn observed() -> RunObservations {
    const INTERVALS: u64 = 2000;
    let noise = |seed: u64| (mix64(seed) % 1_000_003) as f64 * 123.456;
    let mut nodes = Vec::new();
    for (stem, count, tier) in [
        ("host", 8192, None),
        ("leaf", 128, Some(0)),
        ("spine", 64, Some(1)),
    ] {
        nodes.extend((0..count).map(|number| NodeRow::new(format!("{stem}{number}"), tier)));
    }
    let hosts = (0..8192u32).map(|host| (host, 8192 + host / 64));
    let fabric =
        (0..128u32).flat_map(|leaf| (0..64u32).map(move |spine| (8192 + leaf, 8320 + spine)));
    let ends = hosts.chain(fabric).flat_map(|(a, b)| [(a, b), (b, a)]);
    let links = ends.map(|(from, to)| LinkRow {
        name: format!("{}-{}", nodes[from as usize].name, nodes[to as usize].name),
        from,
        to,
        rate: Rate::from_gbps(400),
        is_up: true,
        bytes: mix64(u64::from(from) << 32 | u64::from(to)) % 3_500_000,
        packets: 600,
        marks: mix64(from.into()) % 1000,
        drops: mix64(to.into()) % 10,
        trims: 0,
        pauses: mix64(u64::from(from) + 77) % 100,
        paused: Span::from_ps(mix64(to.into()) % 50_000_000),
        peak_queue: mix64(u64::from(to) + 99) % 200_000,
    });
    let links: Vec<LinkRow> = links.collect();
    let ends: Vec<(u32, u32)> = links.iter().map(|link| (link.from, link.to)).collect();
    let mut curves = Vec::new();
    for &metric in Metric::ALL {
        let subjects: Vec<Subject> = match metric.info().scope {
            SubjectKind::Link => (0..40).map(Subject::Link).collect(),
            SubjectKind::Flow => (0..40).map(Subject::Flow).collect(),
            // Metrics of GPUs and switches belong to scale-up runs, which have no flows.
            SubjectKind::Gpu | SubjectKind::Switch => Vec::new(),
            SubjectKind::Run => vec![Subject::Run],
        };
        for (number, subject) in subjects.into_iter().enumerate() {
            let values =
                (0..INTERVALS).map(|time| noise(time * 64 + number as u64) * (number + 1) as f64);
            curves.push(Curve {
                metric,
                subject,
                values: values.collect(),
            });
        }
    }
    RunObservations {
        times: (1..=INTERVALS)
            .map(|number| Time::from_ps(number * 35_000))
            .collect(),
        curves,
        map: FabricMap::new(&nodes, &ends),
        nodes,
        links,
        fairness: None,
        sequences: Vec::new(),
        frames: LinkFrames::default(),
    }
}

#[test]
fn a_large_report_is_small_and_opens_at_once() {
    let html = page::render(&Page {
        record: &large(),
        scenario_text: "",
        settings: &[],
        why: None,
    });
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    let Some(browser) = Browser::start("large") else {
        return;
    };
    let bench = Bench::new("report-large");
    bench.write("large.html", &html);
    // Repeat, because the machine may be busy during one attempt.
    let times: Vec<f64> = (0..3)
        .map(|_| {
            browser.open(&bench.path("large.html"));
            browser.number("return performance.getEntriesByType('navigation')[0].loadEventEnd;")
        })
        .collect();
    assert_silent(&browser);
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(best < 2000.0, "opened in {times:?} ms");
}
