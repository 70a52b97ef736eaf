//! The map of the network, in reports and on pages of topologies, in a browser.

use crate::browser::{Browser, CONTRAST};
use crate::common::Bench;
use clearway_report::{Metric, read_series};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Every kind of topology, with the rows of its map.
const KINDS: [(&str, &[&str], &str); 17] = [
    ("leaf-spine", &[], "spine leaf host"),
    ("fat-tree", &[], "core agg leaf host"),
    ("pods", &[], "core agg leaf host"),
    ("rail-optimised", &[], "spine leaf host nvlink"),
    ("multi-plane", &[], "spine leaf nic host"),
    ("dragonfly", &[], "router host"),
    ("dragonfly-plus", &[], "spine leaf host"),
    ("bcube", &[], "level relay host"),
    ("ring", &[], "router host"),
    ("torus", &[], "router host"),
    ("mesh", &[], "router host"),
    ("fully-connected", &[], "router host"),
    ("single-switch", &[], "switch host"),
    ("dumbbell", &[], "switch of tier 0 host"),
    ("nvlink", &[], "spine leaf gpu"),
    ("file", &[], "switch host"),
    (
        "leaf-spine",
        &["topology.hosts=8192", "topology.spines=64"],
        "spine leaf host",
    ),
];

/// A fabric in a file whose switches have names of their own.
const FILE: &str = "# nodes, switches and links, the switches, the links\n6 2 5\n4 5\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n\
    3 5 100Gbps 1us 0\n4 5 400Gbps 1us 0\n";

const SCREENS: [(u32, u32); 2] = [(1200, 900), (390, 844)];

/// Texts of the map that overlap, stick out, or have less contrast than WCAG 2.1 asks for at level AA.
const FAULTS: &str = r#"
    const map = document.getElementById("fabric-map");
    const faults = [];
    const paper = channels(getComputedStyle(document.body).backgroundColor);
    const texts = [...map.querySelectorAll("svg[role=img] text")];
    const boxes = texts.map((text) => text.getBoundingClientRect());
    const drawing = map.querySelector("svg[role=img]").getBoundingClientRect();
    texts.forEach((text, place) => {
        const box = boxes[place];
        const ratio = contrast(channels(getComputedStyle(text).fill), paper);
        if (ratio < 4.5) faults.push("pale " + text.textContent);
        if (box.left < drawing.left - 1 || box.right > drawing.right + 1) faults.push("cut " + text.textContent);
        boxes.slice(place + 1).forEach((other, next) => {
            const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
            const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
            if (across > 1 && down > 3) faults.push(text.textContent + " over " + texts[place + 1 + next].textContent);
        });
    });
    const nodes = [...map.querySelectorAll("rect.node")].map((node) => node.getBoundingClientRect());
    nodes.forEach((box, place) => nodes.slice(place + 1).forEach((other) => {
        const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (across > 0.5 && down > 0.5) faults.push("boxes overlap");
    }));
    if (document.documentElement.scrollWidth > innerWidth) faults.push("wider than the page");
"#;

fn faults(browser: &Browser) -> String {
    browser.text(&format!(
        "{CONTRAST} {FAULTS} return faults.slice(0, 5).join('; ');"
    ))
}

fn page_of(bench: &Bench, place: usize) -> PathBuf {
    let (kind, keys, _) = KINDS[place];
    let name = format!("{place}.html");
    let mut arguments = vec!["topology".to_owned()];
    match kind {
        "nvlink" => arguments.push("nvlink-64".into()),
        kind => arguments.extend(["--set".into(), format!("topology.kind={kind}")]),
    }
    if kind == "file" {
        bench.write("fabric.txt", FILE);
        let keys = ["topology.file=fabric.txt", "topology.format=hpcc"];
        arguments.extend(
            keys.iter()
                .flat_map(|key| ["--set".into(), (*key).to_owned()]),
        );
    }
    arguments.extend(
        keys.iter()
            .flat_map(|key| ["--set".into(), (*key).to_owned()]),
    );
    arguments.extend(["--html".into(), name.clone()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    bench.succeed(&arguments);
    bench.path(&name)
}

#[test]
fn every_kind_of_topology_has_a_map_on_every_screen_in_both_colour_schemes() {
    let Some(browser) = Browser::start("maps") else {
        return;
    };
    let bench = Bench::new("fabric-maps");
    for (place, (kind, keys, rows)) in KINDS.into_iter().enumerate() {
        let page = page_of(&bench, place);
        for (width, height) in SCREENS {
            browser.emulate_screen(width, height);
            for scheme in ["light", "dark"] {
                browser.prefer_colours(scheme);
                browser.open(&page);
                let at = format!("{kind} {keys:?} at {width} pixels, {scheme}");
                let own = browser
                    .text("return Clearway.network.spec.rows.map((row) => row.kind).join(' ');");
                assert_eq!(own, rows, "{at}");
                assert_eq!(faults(&browser), "", "{at}");
                // All links are drawn: as a line, an arc or half a cell.
                let drawn = browser.number(
                    "const map = Clearway.network;
                     return map.bundles.length - new Set(map.elements.filter((one) => one.bundle).map((one) => one.bundle)).size;",
                );
                assert_eq!(drawn, 0.0, "{at}");
                let log = browser.log();
                assert!(log.is_empty(), "{at}: the console says {log:?}");
            }
        }
    }
}

/// Values of links in `series.parquet`, by metric, link and end of the interval in picoseconds.
type Series = BTreeMap<(Metric, String), Vec<(u64, f64)>>;

fn series(bench: &Bench) -> Series {
    let mut series = Series::new();
    read_series(bench.path("results"), |line| {
        let values = series.entry((line.metric, line.subject.to_owned()));
        values.or_default().push((line.time.as_ps(), line.value));
    })
    .expect("a file of samples");
    series
}

#[test]
fn the_map_over_time_agrees_with_the_samples() {
    let Some(browser) = Browser::start("map-time") else {
        return;
    };
    let bench = Bench::new("fabric-map-time");
    let links = "observe.series.links=[\"leaf0-spine3\", \"leaf1-host5\"]";
    bench.summary(&["link-flap", "--set", links, "--why"]);
    let series = series(&bench);
    browser.open(&bench.path("results/report.html"));
    let frames = browser.number("return Clearway.network.frames;") as usize;
    assert!(frames >= 32, "{frames} intervals");
    for link in ["leaf0-spine3", "leaf1-host5"] {
        let rate = &series[&(Metric::LinkRate, link.to_owned())];
        let peaks = &series[&(Metric::QueuePeak, link.to_owned())];
        let mut from = 0;
        for frame in 0..frames {
            browser.execute(&format!("Clearway.network.show({frame});"));
            let shown = |metric: &str| {
                browser.number(&format!(
                    "const map = Clearway.network;
                     const bundle = map.bundles.find((one) => map.nameOf(one) === '{link}');
                     const value = map.values(map.metrics.find((metric) => metric.key === '{metric}'));
                     return Array.isArray(value) ? value[bundle.place] : value;"
                ))
            };
            let end = browser.number(&format!("return Clearway.network.interval({frame})[1];"));
            let end = (end * 1e6).round() as u64;
            let own = |values: &[(u64, f64)]| -> Vec<(u64, f64)> {
                let own = values
                    .iter()
                    .filter(|(time, _)| *time > from && *time <= end);
                own.copied().collect()
            };
            let (own_rates, own_peaks) = (own(rate), own(peaks));
            let mut bits = 0.0;
            let mut before = from;
            for (time, value) in own_rates {
                bits += value * (time - before) as f64;
                before = time;
            }
            let expected = bits / (end - from) as f64 / 100e9;
            let utilisation = shown("utilisation");
            assert!(
                (utilisation - expected).abs() <= 0.002 * expected.max(0.05),
                "{link} until {end} ps: {utilisation} of {expected}"
            );
            let longest = own_peaks
                .iter()
                .map(|(_, value)| *value)
                .fold(0.0, f64::max);
            let queue = shown("queue");
            assert!(
                (queue - longest).abs() <= 0.001 * longest.max(1.0),
                "{link} until {end} ps: {queue} of {longest}"
            );
            from = end;
        }
    }
    down_while_it_is_down(&browser);
    the_slider_moves_the_curves(&browser);
    a_click_shows_the_course(&browser);
    paths_of_slow_flows(&browser);
    keys_move_about(&browser);
    let log = browser.log();
    assert!(log.is_empty(), "the console says {log:?}");
}

/// Checks that a link is drawn as failed while it is down, and not otherwise.
fn down_while_it_is_down(browser: &Browser) {
    let failed = |frame: i32| {
        browser.number(&format!(
            "Clearway.network.show({frame}); return document.querySelectorAll('#fabric-map .failed').length;"
        ))
    };
    let frame_at = |us: f64| {
        let frame = browser.number(&format!(
            "return Clearway.network.spec.frames.ends.findIndex((end) => end > {us});"
        ));
        frame as i32
    };
    let events = "return Clearway.network.spec.events.length;";
    assert_eq!(browser.number(events), 6.0);
    let at =
        |event: usize| browser.number(&format!("return Clearway.network.spec.events[{event}].at;"));
    let middle = |a: usize| (at(a) + at(a + 1)) / 2.0;
    for (event, count) in [(0, 1.0), (1, 0.0), (2, 1.0), (3, 0.0)] {
        assert_eq!(
            failed(frame_at(middle(event))),
            count,
            "after event {event}"
        );
    }
    assert_eq!(failed(-1), 1.0, "over the whole run");
}

fn the_slider_moves_the_curves(browser: &Browser) {
    browser.execute(
        "const slider = document.querySelector('#fabric-map input[type=range]');
         slider.value = 20;
         slider.dispatchEvent(new Event('input'));",
    );
    let middle =
        browser.number("const [from, to] = Clearway.network.interval(19); return (from + to) / 2;");
    for plot in ["goodput", "queue-peak", "flow-goodput"] {
        let cursor = browser.number(&format!("return Clearway.plots['{plot}'].drawn.cursor;"));
        assert_eq!(cursor, middle, "{plot}");
    }
    let text = browser.text("return document.querySelector('#fabric-map output').textContent;");
    assert!(text.contains(" – "), "{text}");
    browser.execute("Clearway.network.toggle();");
    let playing =
        browser.text("return document.querySelector('#fabric-map .time-bar button').textContent;");
    assert_eq!(playing, "Pause");
    browser.execute("Clearway.network.toggle(); Clearway.network.show(-1);");
    let none = browser.execute("return Clearway.plots['goodput'].drawn.cursor;");
    assert!(none.is_null(), "{none}");
}

/// The middle of a link on the screen.
fn middle_of(browser: &Browser, link: &str) -> (f64, f64) {
    browser.execute(
        "document.querySelector('#fabric-map svg[role=img]').scrollIntoView({ block: 'center' });",
    );
    let place = |axis: usize, side: &str| {
        browser.number(&format!(
            "const map = Clearway.network;
             const [x1, y1, x2, y2] = map.elements.find((one) => one.bundle && map.nameOf(one.bundle) === '{link}').line;
             const frame = map.root.getBoundingClientRect();
             return frame.{side} + [x1 * 0.7 + x2 * 0.3, y1 * 0.7 + y2 * 0.3][{axis}] * frame.width / map.root.viewBox.baseVal.width;"
        ))
    };
    (place(0, "left"), place(1, "top"))
}

fn a_click_shows_the_course(browser: &Browser) {
    let at = middle_of(browser, "leaf1-host5");
    browser.hover(at);
    let tip = browser.text("return document.querySelector('#fabric-map .tip').innerText;");
    assert!(
        tip.starts_with("leaf1-host5") && tip.contains("Utilisation"),
        "{tip}"
    );
    browser.drag(at, at);
    let title = browser.text("return document.querySelector('.map-detail h3').textContent;");
    assert_eq!(title, "leaf1-host5");
    let curves = browser.text(
        "return [...document.querySelectorAll('.map-detail figcaption')].map((one) => one.textContent).join(' ');",
    );
    assert!(curves.starts_with("Utilisation"), "{curves}");
    let flows = browser.text("return document.querySelector('.map-flows').innerText;");
    assert!(
        flows.starts_with("Slow flows that crossed it: flow 1"),
        "{flows}"
    );
}

fn paths_of_slow_flows(browser: &Browser) {
    let buttons =
        browser.number("return document.querySelectorAll('#why button[data-path]').length;");
    assert_eq!(buttons, 4.0);
    browser.execute("document.querySelectorAll('#why button[data-path]')[1].click();");
    let drawn =
        browser.text("return document.querySelector('#fabric-map .route').getAttribute('d');");
    // To the leaf, to four spines and down from them, and to the host.
    assert_eq!(drawn.matches('M').count(), 10, "{drawn}");
    let chosen = browser.text(
        "const menu = document.querySelector('#fabric-map select'); return menu.options[menu.selectedIndex].textContent;",
    );
    assert!(chosen.starts_with("flow 2: host 2 → host 6"), "{chosen}");
}

fn keys_move_about(browser: &Browser) {
    browser.execute("document.querySelector('#fabric-map svg[role=img]').focus();");
    let pointed = || {
        browser.text("return document.querySelector('#fabric-map .tip').innerText.split('\\n')[0];")
    };
    browser.press('\u{e014}');
    let first = pointed();
    browser.press('\u{e014}');
    assert_ne!(pointed(), first);
    browser.press('\u{e012}');
    assert_eq!(pointed(), first);
    browser.press('\u{e007}');
    let title = browser.text("return document.querySelector('.map-detail h3').textContent;");
    assert_eq!(title, first);
}
