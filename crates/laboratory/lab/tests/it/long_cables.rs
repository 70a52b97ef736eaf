//! Cables so long that more packets are on them than may arrive within a round.

use clearway_lab::{Assembly, Laboratory, RunDecision, RunOptions, Watch};
use clearway_units::{Span, Time};

/// Nine hosts on either side of a cable of 1 ms. Eight of them send 78 000 packets together, which are all on the cable at 150 us, and
/// then nothing: the switch behind it takes them from the cable round by round, and nothing new comes.
const BURST: &str = r#"
[topology]
kind = "dumbbell"
left = 9
right = 9
link-rate = "400Gbps"
bottleneck-rate = "3200Gbps"
bottleneck-delay = "1ms"
[workload]
kind = "flows"
flows = ["0->9 5MB", "1->10 5MB", "2->11 5MB", "3->12 5MB", "4->13 5MB", "5->14 5MB", "6->15 5MB", "7->16 5MB"]
[transport]
rto = "6ms"
payload = "512B"
"#;

fn check(settings: &[&str]) {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let scenario = Laboratory::new().read("test", BURST, None, &settings);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions {
        threads: 1.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    let finished = Assembly::new(&scenario).unwrap().run(options, Watch::Off);
    assert!(finished.endpoints.data_sent > 78_000);
    assert_eq!(finished.links.dropped, 0);
    assert_eq!(finished.endpoints.retransmitted, 0, "{settings:?}");
    assert_eq!(finished.endpoints.duplicates, 0, "{settings:?}");
    let longest = finished.simulated - Time::ZERO;
    // Two ways of 1 ms, and 5 MB with their headers at 400 Gb/s.
    let expected = Span::from_us(2_000 + 100);
    assert!(
        longest > expected && longest < expected + Span::from_us(60),
        "{longest}"
    );
}

#[test]
fn a_shared_buffer_takes_all_packets_from_a_long_cable() {
    check(&["switch.kind=shared-buffer", "switch.buffer=4GB"]);
}

#[test]
fn a_lossy_switch_takes_all_packets_from_a_long_cable() {
    check(&["switch.queue=100MB"]);
}
