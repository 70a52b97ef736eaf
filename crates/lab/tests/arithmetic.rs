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
