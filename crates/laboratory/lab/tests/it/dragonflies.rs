//! Dragonflies: what minimal routes and detours carry, uniformly and at worst.

use clearway_lab::{Assembly, Finished, Laboratory, Scenario, ScenarioError};
use clearway_units::Span;

fn read(settings: &[String]) -> Result<Scenario, ScenarioError> {
    Laboratory::new().read("test", "", None, settings)
}

/// Runs with no congestion control in the way.
fn run(settings: &[&str]) -> Finished {
    let common = [
        "switch.queue=100MB",
        "switch.ecn.enabled=false",
        "transport.controller=constant",
    ];
    let settings = common.iter().chain(settings);
    let settings: Vec<String> = settings.map(|text| (*text).into()).collect();
    let scenario = read(&settings).unwrap_or_else(|error| panic!("{error}"));
    let finished = Laboratory::new().run(&scenario).unwrap();
    assert_eq!(finished.stopped, None, "{settings:?}");
    finished
}

/// Messages of 4 MB from every host of a group to one of the next: the part of its link's rate that the last of them gets.
fn rate_at_worst(kind: &str, hosts: (u32, u32), routing: &str) -> f64 {
    rate_with_window(kind, hosts, (routing, "1bdp"))
}

/// As [`rate_at_worst`], with this window.
fn rate_with_window(
    kind: &str,
    (hosts, of_group): (u32, u32),
    (routing, window): (&str, &str),
) -> f64 {
    let flow = |host| format!("\"{host}->{} 4MB\"", (host + of_group) % hosts);
    let flows: Vec<String> = (0..hosts).map(flow).collect();
    let flows = format!("workload.flows=[{}]", flows.join(", "));
    let (kind, routing, window) = (
        format!("topology.kind={kind}"),
        format!("topology.routing={routing}"),
        format!("transport.window={window}"),
    );
    let hosts = match kind.ends_with("plus") {
        true => "topology.hosts-per-leaf=2",
        false => "topology.hosts-per-router=2",
    };
    let settings = [
        &kind,
        hosts,
        &routing,
        &window,
        "workload.kind=flows",
        &flows,
    ];
    let finished = run(&settings);
    let last = finished.flows.iter().filter_map(|flow| flow.finished).max();
    // 4 MB at 400 Gb/s are 80 us, with headers 81.3.
    81.3 / last.unwrap().since(clearway_units::Time::ZERO).as_us()
}

/// All 8 hosts of a group share its one link to the next; with Valiant at most h / 2p of the rate is left to each.
#[test]
fn the_worst_pattern_of_a_dragonfly() {
    let minimal = rate_at_worst("dragonfly", (72, 8), "minimal");
    assert!((0.115..=0.125).contains(&minimal), "{minimal}");
    let valiant = rate_at_worst("dragonfly", (72, 8), "valiant");
    assert!((0.35..=0.5).contains(&valiant), "{valiant}");
}

/// UGAL-L sees the queues of one switch, and the link to the next group is at another, but for two hosts of eight. Where windows are open
/// the link to that other switch fills up, and it takes 0.85 of Valiant's rate. With a window of one bandwidth-delay product all of it
/// waits where nobody looks: 0.6 of Valiant's, twice the minimal. (Kim et al., ISCA 2008, §4.2, whose links push back.)
#[test]
fn ugal_sees_what_comes_back_to_the_switch_of_the_sender() {
    let rate = |window, routing| rate_with_window("dragonfly", (72, 8), (routing, window));
    let (minimal, valiant) = (rate("10bdp", "minimal"), rate("10bdp", "valiant"));
    let ugal = rate("10bdp", "ugal");
    assert!(ugal >= 0.8 * valiant, "{ugal} {valiant}");
    let (ugal, valiant) = (rate("1bdp", "ugal"), rate("1bdp", "valiant"));
    assert!(
        ugal >= 1.7 * minimal && ugal < 0.8 * valiant,
        "{ugal} {valiant} {minimal}"
    );
}

#[test]
fn uniform_traffic_goes_best_on_minimal_routes() {
    let time = |routing: &str| {
        let routing = format!("topology.routing={routing}");
        let all_to_all = [
            "workload.kind=all-to-all",
            "workload.size=7200KB",
            "workload.parallelism=auto",
        ];
        let settings = [&["topology.kind=dragonfly", &routing][..], &all_to_all].concat();
        run(&settings).jobs[0].times[0].span().unwrap()
    };
    // 71 blocks of 100 KB at 400 Gb/s.
    let bytes = Span::from_us(142);
    let [minimal, valiant, ugal] = ["minimal", "valiant", "ugal"].map(time);
    let ratio = |time: Span| bytes.as_us() / time.as_us();
    assert!((0.75..1.0).contains(&ratio(minimal)), "{minimal}");
    assert!((0.35..0.6).contains(&ratio(valiant)), "{valiant}");
    assert!(ratio(ugal) >= 0.9 * ratio(minimal), "{ugal} {minimal}");
}

#[test]
fn the_worst_pattern_of_a_dragonfly_plus() {
    // Groups of 4 hosts: 2 leaves, 2 spines with 2 links to others each, 5 groups.
    let rate = |routing| rate_at_worst("dragonfly-plus", (20, 4), routing);
    let (minimal, valiant) = (rate("minimal"), rate("valiant"));
    assert!(
        (0.23..=0.25).contains(&minimal),
        "four hosts on one link: {minimal}"
    );
    assert!((0.33..=0.5).contains(&valiant), "{valiant}");
    let ugal = rate("ugal");
    assert!(ugal >= 0.9 * valiant, "{ugal} {valiant}");
}

/// A message alone is never faster than its ideal time, whichever way its packets take.
#[test]
fn detours_do_not_beat_the_ideal() {
    for routing in ["minimal", "valiant", "ugal"] {
        for (to, spray) in [
            (1, "single"),
            (7, "adaptive"),
            (8, "single"),
            (71, "adaptive"),
            (40, "single"),
        ] {
            for size in ["1B", "4000B", "100KB"] {
                let settings = [
                    "topology.kind=dragonfly".into(),
                    format!("topology.routing={routing}"),
                    format!("transport.spray={spray}"),
                    "workload.kind=flows".into(),
                    format!("workload.flows=[\"0->{to} {size}\"]"),
                ];
                let scenario = read(&settings).unwrap();
                let assembly = Assembly::new(&scenario).unwrap();
                let ideal = assembly.ideal_completion(clearway_units::FlowId(0));
                let finished = Laboratory::new().run(&scenario).unwrap();
                let took = finished.flows[0]
                    .finished
                    .unwrap()
                    .since(clearway_units::Time::ZERO);
                assert!(took >= ideal, "{settings:?}: {took} {ideal}");
                assert!(took <= ideal * 3, "{settings:?}: {took} {ideal}");
            }
        }
    }
}

#[test]
fn what_cannot_take_detours_is_refused() {
    let refused = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|text| (*text).into()).collect();
        let result = read(&settings).and_then(|scenario| Assembly::new(&scenario).map(|_| ()));
        result.unwrap_err().to_string()
    };
    let errors = [
        refused(&["topology.kind=fat-tree", "topology.routing=valiant"]),
        refused(&["topology.kind=dragonfly", "topology.routing=par"]),
        refused(&[
            "topology.kind=dragonfly",
            "topology.routing=ugal",
            "transport.kind=s-perc",
        ]),
        refused(&[
            "topology.kind=dragonfly",
            "topology.routing=valiant",
            "transport.kind=s-perc",
        ]),
        refused(&["topology.kind=dragonfly", "topology.groups=10"]),
        refused(&["topology.kind=dragonfly", "topology.groups=1"]),
        refused(&["topology.kind=dragonfly", "topology.hosts-per-router=0"]),
        refused(&[
            "topology.kind=dragonfly",
            "topology.hosts-per-router=12",
            "topology.routing=valiant",
        ]),
        refused(&[
            "topology.kind=dragonfly",
            "topology.hosts-per-router=4000000000",
        ]),
        refused(&["topology.kind=dragonfly-plus", "topology.groups=18"]),
        refused(&[
            "topology.kind=dragonfly-plus",
            "topology.spines-per-group=0",
        ]),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn settings_that_hardly_do_what_was_meant_are_told() {
    let warnings = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|text| (*text).into()).collect();
        Assembly::new(&read(&settings).unwrap())
            .unwrap()
            .warnings
            .join("\n")
    };
    let go_back_n = [
        "topology.kind=dragonfly",
        "topology.routing=valiant",
        "transport.kind=rocev2",
    ];
    assert!(warnings(&go_back_n).contains("reorders packets"));
    let pauses = ["topology.kind=dragonfly", "switch.kind=shared-buffer"];
    assert!(warnings(&pauses).contains("paused links can deadlock"));
    let valiant = ["topology.kind=dragonfly", "topology.routing=valiant"];
    assert!(!warnings(&valiant).contains("reorders packets"));
}
