//! A completion time that can be worked out by hand, from a scenario.

use clearway_lab::Laboratory;
use clearway_units::Span;

const LONE_ROCE_FLOW: &str = r#"
[topology]
kind = "single-switch"
hosts = 2
link-rate = "100Gbps"
link-delay = "1us"

[switch]
kind = "shared-buffer"

[transport]
kind = "rocev2"
payload = "1000B"
header = "48B"
ack-size = "60B"

[workload]
kind = "one-to-one"
from = 0
to = 1
message = "100MB"
"#;

/// 100,000 packets of 83.84 ns, 83.84 ns on the second link, 4 us in flight, and the last acknowledgement 2 x 4.8 ns on the
/// wires.
#[test]
fn a_lone_roce_flow_takes_what_the_wires_take() {
    let laboratory = Laboratory::new();
    let scenario = laboratory
        .read("lone.toml", LONE_ROCE_FLOW, None, &[])
        .unwrap();
    let finished = laboratory.run(&scenario).unwrap();
    let expected = Span::from_ps(8_388_093_440);
    assert_eq!(finished.flows[0].completion(), Some(expected));
    assert_eq!(finished.flows[0].ideal, expected);
    assert_eq!((finished.links.marked, finished.links.dropped), (0, 0));
    assert!(finished.pauses.is_empty());
}

/// Completion times and ideal ones of the default scenario with other settings.
fn times(overrides: &[&str]) -> Vec<(Span, Span)> {
    let laboratory = Laboratory::new();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = laboratory.read("s.toml", "", None, &overrides).unwrap();
    let finished = laboratory.run(&scenario).unwrap();
    let flows = finished.flows.iter();
    flows
        .map(|flow| (flow.completion().unwrap(), flow.ideal))
        .collect()
}

/// The smallest and the mean slowdown.
fn slowdowns(overrides: &[&str]) -> (f64, f64) {
    let ratio = |(fct, ideal): (Span, Span)| fct.as_ps() as f64 / ideal.as_ps() as f64;
    let ratios: Vec<f64> = times(overrides).into_iter().map(ratio).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    (ratios.into_iter().fold(f64::INFINITY, f64::min), mean)
}

/// One cable of a leaf is thin, and flows are sprayed around it or hashed onto others.
#[test]
fn a_thin_cable_beside_others_makes_no_flow_faster_than_alone() {
    let thin = "topology.links=[\"leaf0-spine0 rate=100Gbps\"]";
    let hashed = ["transport.kind=dctcp", "workload.message=200KB"];
    for overrides in [&[thin][..], &[&[thin][..], &hashed].concat()] {
        let (least, mean) = slowdowns(overrides);
        assert!(least >= 1.0 && mean > 1.0, "{least} {mean}");
    }
    assert!(slowdowns(&[thin]).1 < 1.2);
}

/// Sixteen paths of 100 Gb/s carry more than a NIC of 400 Gb/s, one carries a quarter of it.
#[test]
fn spraying_adds_up_thin_links() {
    let lone = [
        "topology.fabric-link-rate=100Gbps",
        "workload.kind=one-to-one",
        "workload.from=0",
        "workload.to=16",
    ];
    let (sprayed, _) = slowdowns(&lone);
    assert!((1.0..1.02).contains(&sprayed), "{sprayed}");
    let (single, _) = slowdowns(&[&lone[..], &["transport.spray=single"]].concat());
    assert!((1.0..1.1).contains(&single), "{single}");
}

/// Four queue pairs with a packet of 1024 B and 64 B each: 4 x 87.04 ns on the first link of 100 Gb/s, 4 x 21.76 ns on four of
/// 400 Gb/s, 87.04 ns on the last, 12 us in flight, and 64 B back.
#[test]
fn queue_pairs_share_the_links_of_their_hosts() {
    let striped = [
        "topology.kind=pods",
        "transport.kind=rocev2",
        "transport.qps=4",
        "workload.kind=one-to-one",
        "workload.message=4096B",
    ];
    let expected = Span::from_ps(5 * 87_040 + 4 * 21_760 + 12_000_000 + 64 * (2 * 80 + 4 * 20));
    assert_eq!(times(&striped), [(expected, expected)]);
}
