use super::*;
use crate::sample::{flow, incomplete_run, job, run, with_transports};
use clearway_report::FabricMap;
use clearway_report::observed::{
    Curve, LinkRow, Metric, NodeRow, RunObservations, Subject, SubjectKind,
};
use clearway_units::{Rate, Span, Time};

/// A fabric with different figures for each link, without curves.
pub(super) fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32) -> RunObservations {
    let hosts = leaves * hosts_per_leaf;
    let node = |name: String, tier| NodeRow::new(name, tier);
    let mut nodes: Vec<NodeRow> = (0..hosts).map(|n| node(format!("host{n}"), None)).collect();
    nodes.extend((0..leaves).map(|n| node(format!("leaf{n}"), Some(0))));
    nodes.extend((0..spines).map(|n| node(format!("spine{n}"), Some(1))));
    let host_cables = (0..hosts).map(|host| (host, hosts + host / hosts_per_leaf));
    let fabric = (0..leaves)
        .flat_map(|leaf| (0..spines).map(move |spine| (hosts + leaf, hosts + leaves + spine)));
    let directions = host_cables
        .chain(fabric)
        .flat_map(|(a, b)| [(a, b), (b, a)]);
    let links = directions.enumerate().map(|(place, (from, to))| {
        let place = place as u64;
        LinkRow {
            name: format!("{}-{}", nodes[from as usize].name, nodes[to as usize].name),
            from,
            to,
            rate: Rate::from_gbps(400),
            is_up: true,
            bytes: 10_000 + place,
            packets: 3,
            marks: place % 7,
            drops: u64::from(place % 50 == 3),
            trims: 0,
            pauses: place % 3,
            paused: Span::from_us(place % 5),
            peak_queue: place * 37 % 4001,
        }
    });
    let links: Vec<LinkRow> = links.collect();
    let ends: Vec<(u32, u32)> = links.iter().map(|link| (link.from, link.to)).collect();
    RunObservations {
        map: FabricMap::new(&nodes, &ends),
        links,
        nodes: nodes.clone(),
        ..RunObservations::default()
    }
}

/// Every metric of packets over `samples` intervals; metrics of links and flows have `subjects` subjects each.
fn with_curves(mut observed: RunObservations, samples: u64, subjects: u32) -> RunObservations {
    observed.times = (1..=samples).map(|n| Time::from_ps(n * 100_000)).collect();
    for &metric in Metric::ALL {
        let own: Vec<Subject> = match metric.info().scope {
            SubjectKind::Link => (0..subjects).map(Subject::Link).collect(),
            SubjectKind::Flow => (0..subjects).map(Subject::Flow).collect(),
            // These belong to scale-up runs, which have no flows.
            SubjectKind::Gpu | SubjectKind::Switch => Vec::new(),
            SubjectKind::Run => vec![Subject::Run],
        };
        for (place, subject) in own.into_iter().enumerate() {
            let value = |n: u64| {
                // Every value has different digits, as in measurements.
                let noise = clearway_units::mix64(n * 131 + place as u64) % 1_000_003;
                1e9 + noise as f64 * 123.456 * (place as f64 + 1.0)
            };
            observed.curves.push(Curve {
                metric,
                subject,
                values: (0..samples).map(value).collect(),
            });
        }
    }
    observed
}

fn setting(section: &str, key: &str, value: &str, changed: bool) -> ResolvedSetting {
    ResolvedSetting {
        section: section.into(),
        key: key.into(),
        value: value.into(),
        changed,
        meaning: "What it does.".into(),
        source: "STrack §4.1".into(),
    }
}

fn html(record: &RunRecord) -> String {
    let settings = [
        setting("", "seed", "1", true),
        setting("topology", "hosts", "128", false),
    ];
    render(&Page {
        record,
        scenario_text: "seed = 1\n",
        settings: &settings,
        why: None,
    })
}

/// Data that the page's script reads.
pub(super) fn data(html: &str) -> serde_json::Value {
    let from = "<script type=\"application/json\" id=\"data\">";
    let start = html.find(from).unwrap() + from.len();
    let end = start + html[start..].find("</script>").unwrap();
    serde_json::from_str(&html[start..end]).unwrap()
}

pub(super) fn plot_ids(html: &str) -> Vec<String> {
    let data = data(html);
    let plots = data["plots"]["plots"].as_array().unwrap();
    plots
        .iter()
        .map(|plot| plot["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn attackers_and_victims_have_a_section() {
    let plain = html(&run());
    assert!(!plain.contains("id=\"attack\""));
    let mut record = run();
    record.flows[0].attack = Some(1);
    let page = html(&record);
    for text in ["id=\"attack\"", "attackers", "victims", "goodput of a user"] {
        assert!(page.contains(text), "no {text}");
    }
}

#[test]
fn several_sections_are_broken_down() {
    let plain = html(&run());
    assert!(!plain.contains("id=\"sections\""));
    let mut record = run();
    record.sections[1] = "<burst>".into();
    record.flows[0].section = 1;
    record.flows[3].bytes = 700;
    let page = html(&record);
    for text in [
        "id=\"sections\"",
        "By section of the workload",
        "&lt;burst&gt;",
        "permutation, up to 1 KB",
    ] {
        assert!(page.contains(text), "no {text}");
    }
    assert!(
        !page.contains("&lt;burst&gt;, up to"),
        "it has one class alone"
    );
    let data = data(&page);
    let mut plots = data["plots"]["plots"].as_array().unwrap().iter();
    let plot = plots.find(|plot| plot["id"] == "section-slowdown").unwrap();
    assert_eq!(plot["series"].as_array().unwrap().len(), 2);
}

#[test]
fn several_transports_are_broken_down() {
    assert!(!html(&run()).contains("id=\"transports\""));
    let mut record = with_transports(run());
    record.transports[1].name = "<strack>".into();
    let page = html(&record);
    for text in [
        "id=\"transports\"",
        "By transport",
        "&lt;strack&gt;</th><td>burst</td>",
        ">1,234</td>",
    ] {
        assert!(page.contains(text), "no {text}");
    }
}

#[test]
fn a_run_that_nobody_watched() {
    let page = html(&run());
    assert!(page.starts_with("<!DOCTYPE html>"));
    for text in [
        "<h1>permutation-4</h1>",
        "<dt>Max FCT</dt><dd><b>97.76 µs</b> <span>2.000× its ideal of 48.88 µs</span>",
        "<dt>Flows completed</dt><dd><b>4</b> <span>of 4</span>",
        "Nothing was watched while this run went on",
        "All 4 flows that completed are of one size.",
        "clearway run quickstart",
        "fedcba9876543210",
        "0123abc",
        "2 settings, 1 of them set by the user",
        "seed = 1\n",
    ] {
        assert!(page.contains(text), "no {text}");
    }
    assert_eq!(plot_ids(&page), ["fct", "start-finish"]);
    assert!(
        page.contains(
            "a dot for each of 4 flows; rank correlation 0.800; finishes within 50.88 µs"
        )
    );
    assert!(data(&page)["heat"].is_null());
    assert!(!page.contains("role=\"status\">Incomplete"));
}

#[test]
fn an_incomplete_run_says_so() {
    let page = html(&incomplete_run());
    for text in [
        "Incomplete: stopped at stop.at-most = 50ms.",
        "of 6; 1 never started",
        "<dt>Pauses</dt><dd><b>5,678</b> <span>on 2 links</span>",
        "<th scope=\"row\">h1-leaf0</th><td class=\"n\">8</td><td class=\"n\">99.00 µs</td>",
    ] {
        assert!(page.contains(text), "no {text}");
    }
}

#[test]
fn a_run_without_flows_has_a_page() {
    let mut record = run();
    record.flows.clear();
    let page = html(&record);
    assert!(page.contains("No flow completed."));
    assert!(plot_ids(&page).is_empty());
}

#[test]
fn a_watched_run_has_all_plots_and_the_heat_map() {
    let mut record = run();
    record.observed = Some(with_curves(leaf_spine(2, 2, 2), 50, 4));
    let page = html(&record);
    assert_eq!(
        plot_ids(&page),
        [
            "fct",
            "start-finish",
            "goodput",
            "fairness",
            "active-flows",
            "marks",
            "drops",
            "paused-links",
            "queue-peak",
            "link-rate",
            "flow-goodput",
            "flow-window",
            "flow-rate",
            "flow-in-flight",
        ]
    );
    let data = data(&page);
    assert_eq!(data["heat"]["panels"].as_array().unwrap().len(), 4);
    let queues = &data["plots"]["plots"][8];
    // The longest queue comes first.
    assert_eq!(queues["series"][0]["name"], "leaf0-host1");
    assert_eq!(queues["series"].as_array().unwrap().len(), 4);
    let times = queues["series"][0]["x"].as_u64().unwrap() as usize;
    assert_eq!(data["plots"]["lists"][times][49], 5);
    // A link has the same colour in all plots.
    let rates = &data["plots"]["plots"][9];
    for place in 0..4 {
        let (a, b) = (&queues["series"][place], &rates["series"][place]);
        assert_eq!((&a["name"], &a["colour"]), (&b["name"], &b["colour"]));
    }
}

#[test]
fn what_never_happened_is_said_in_words() {
    let mut record = run();
    let mut observed = with_curves(leaf_spine(2, 2, 2), 10, 2);
    for curve in &mut observed.curves {
        if matches!(curve.metric, Metric::Drops | Metric::PausedLinks) {
            curve.values.fill(0.0);
        }
    }
    record.observed = Some(observed);
    let page = html(&record);
    assert!(page.contains("<p>No packet was dropped. No link was paused.</p>"));
    assert!(!plot_ids(&page).contains(&"drops".to_owned()));
}

#[test]
fn names_from_files_stay_names() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=\"a\">'";
    let mut record = incomplete_run();
    record.scenario.name = evil.into();
    record.scenario.hash = evil.into();
    record.command = evil.into();
    record.revision = evil.into();
    record.digest = evil.into();
    record.version = evil.into();
    record.jobs = vec![job(evil, 2, &[10, 20]), job(evil, 1, &[30])];
    record.paused_links[0].link = evil.into();
    record.status = Status::Incomplete {
        reason: evil.into(),
    };
    let mut observed = with_curves(leaf_spine(2, 1, 2), 5, 3);
    for link in &mut observed.links {
        link.name = evil.into();
    }
    for node in &mut observed.nodes {
        node.name = evil.into();
    }
    let settings = [ResolvedSetting {
        source: evil.into(),
        meaning: evil.into(),
        ..setting(evil, evil, evil, true)
    }];
    for observed in [None, Some(observed)] {
        record.observed = observed;
        let page = render(&Page {
            record: &record,
            scenario_text: evil,
            settings: &settings,
            why: None,
        });
        assert!(!page.contains("alert(1)</script>"));
        assert!(!page.contains("<img"));
        assert_eq!(page.matches("<script").count(), 2, "the data and the code");
        assert_eq!(page.matches("</script").count(), 2);
        let heat = &data(&page)["heat"];
        if record.observed.is_some() {
            assert_eq!(heat["panels"][0]["names"][0], evil);
        }
    }
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let mut record = run();
    record.observed = Some(with_curves(leaf_spine(3, 2, 2), 40, 6));
    assert_eq!(html(&record), html(&record.clone()));
}

/// 8192 flows of different durations on 128 leaves, with 40 curves of each kind over 2000 intervals.
fn large() -> RunRecord {
    let mut record = run();
    record.flows = (0..8192)
        .map(|number| {
            let extra = clearway_units::mix64(number.into()) % 40_000_000;
            flow(number, Some(Span::from_ps(48_881_300 + extra)))
        })
        .collect();
    record.simulated = Span::from_us(200);
    record.observed = Some(with_curves(leaf_spine(128, 64, 64), 2000, 40));
    record
}

#[test]
fn a_large_run_has_a_small_page() {
    let page = html(&large());
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    let data = data(&page);
    for plot in data["plots"]["plots"].as_array().unwrap() {
        let series = plot["series"].as_array().unwrap();
        assert!((1..=plot::MOST_SERIES).contains(&series.len()));
        for one in series {
            let list = one["x"].as_u64().unwrap() as usize;
            let instants = data["plots"]["lists"][list].as_array().unwrap();
            assert_eq!(one["y"].as_array().unwrap().len(), instants.len());
            let most = match one["shape"].as_str() {
                Some("dots") => scatter::MOST_DOTS,
                _ => plot::MOST_POINTS,
            };
            assert!(instants.len() <= most);
        }
    }
}

#[test]
fn warnings_stand_at_the_top() {
    for mut record in [run(), crate::sample::scale_up_run()] {
        assert!(!html(&record).contains("role=\"status\""));
        record.scenario_warnings = vec!["a window of <2> packets".into()];
        let page = html(&record);
        let warning = "<p class=\"warning\" role=\"status\">a window of &lt;2&gt; packets.</p>";
        assert!(page.find(warning).unwrap() < page.find("<main>").unwrap());
    }
}
