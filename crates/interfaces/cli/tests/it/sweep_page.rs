//! The report of a sweep in a browser.

use crate::browser::Browser;
use crate::common::Bench;
use clearway_report::sweep::{AxisNumbers, SummarizedRun, SweepAxis, SweepRecord};
use clearway_report_html::render_sweep;

/// Three sprays and four sizes with three seeds each: slowdown grows with the size, and is least with adaptive spraying.
fn sweep(bench: &Bench) -> SweepRecord {
    let one = bench.summary(&[
        "quickstart",
        "--set",
        "topology.hosts=16",
        "--set",
        "topology.hosts-per-leaf=4",
    ]);
    let axis = |key: &str, values: &[&str], numbers| SweepAxis {
        key: key.into(),
        values: values.iter().map(|&value| value.into()).collect(),
        numbers,
        given: false,
    };
    let mut sweep = SweepRecord {
        name: "sprays".into(),
        version: "1".into(),
        revision: "abc".into(),
        command: "clearway sweep sprays".into(),
        axes: vec![
            axis(
                "transport.spray",
                &["single", "oblivious", "adaptive"],
                None,
            ),
            axis(
                "workload.message",
                &["64kB", "256kB", "1MB", "4MB"],
                Some(AxisNumbers {
                    unit: "bytes".into(),
                    values: vec![64e3, 256e3, 1e6, 4e6],
                }),
            ),
        ],
        measures: Vec::new(),
        runs: Vec::new(),
        missing: 0,
        failures: Vec::new(),
        assertions: Vec::new(),
        tuning: None,
    };
    let runs = (0..36u32).map(|number| {
        let (spray, size, seed) = (number / 12, number / 3 % 4, number % 3);
        let mut summary = one.clone();
        let mut slowdown = summary.slowdown.expect("flows completed");
        slowdown.p99 = f64::from(4 - spray) + f64::from(size) + 0.1 * f64::from(seed);
        summary.slowdown = Some(slowdown);
        summary.goodput_bps = Some(1e11 * f64::from(1 + spray) + 1e9 * f64::from(seed));
        SummarizedRun {
            key: format!("{number:016x}"),
            place: vec![spray, size],
            seed: u64::from(seed) + 1,
            summary: Some(summary),
        }
    });
    sweep.measure(&runs.collect::<Vec<_>>());
    sweep
}

#[test]
fn a_sweep_is_explored_with_menus_and_keys() {
    let Some(browser) = Browser::start("sweep-page") else {
        return;
    };
    let bench = Bench::new("sweep-page");
    bench.write("report.html", &render_sweep(&sweep(&bench)));
    browser.open(&bench.path("report.html"));
    let count = |selector: &str| {
        browser.number(&format!(
            "return document.querySelectorAll('{selector}').length;"
        )) as usize
    };
    let choose = |label: &str, text: &str| {
        browser.execute(&format!(
            "const menu = [...document.querySelectorAll('#sweep .menu')].find((menu) => menu.firstChild.textContent === '{label}');\
             const select = menu.lastChild;\
             select.value = [...select.options].find((option) => option.textContent === '{text}').value;\
             select.dispatchEvent(new Event('change'));"
        ));
    };
    // A line and a band for each spray, with all points, one of which is the best; and a cell for each point.
    let drawn = || {
        [
            count("#along path.line"),
            count("#along path.band"),
            count("#along .dot"),
            count("#map rect.chosen"),
        ]
    };
    assert_eq!(drawn(), [3, 3, 12, 1]);
    let first =
        || browser.text("return document.querySelector('#all-points tbody tr').textContent;");
    assert!(first().starts_with("adaptive64kB"), "{}", first());
    let best = || browser.text("return document.getElementById('best').textContent;");
    assert!(
        best().contains("transport.spray=adaptive workload.message=64kB"),
        "{}",
        best()
    );
    // The values along x are words, so no line joins the points.
    choose("Along", "transport.spray");
    assert_eq!(drawn(), [0, 0, 12, 1]);
    choose("Measure", "goodput");
    assert!(
        best().starts_with("Best goodput: transport.spray=adaptive"),
        "{}",
        best()
    );
    choose("Over seeds", "median");
    assert!(
        best().contains("interval of the median over 3 seeds"),
        "{}",
        best()
    );
    // The menu keeps the focus after use.
    assert_eq!(
        browser.text("return document.activeElement.tagName;"),
        "SELECT"
    );
    // The keyboard sorts a column, and a second press reverses the order.
    let heads = "document.querySelectorAll('#all-points button.sort')";
    browser.execute(&format!("{heads}[1].focus();"));
    browser.press('\u{e007}');
    assert!(first().contains("64kB"), "{}", first());
    browser.press('\u{e007}');
    assert!(first().contains("4MB"), "{}", first());
    assert_eq!(
        browser.text(&format!(
            "return {heads}[1].parentElement.getAttribute('aria-sort');"
        )),
        "descending"
    );
    // The page fits the width of a telephone.
    browser.resize(390, 800);
    let wider = browser.number(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth;",
    );
    assert_eq!(wider, 0.0);
    let log = browser.log();
    assert!(log.is_empty(), "the console says {log:?}");
}
