use super::*;
use crate::injection::tests::{completed, facts, sent};

fn aimd(initial: f64) -> Aimd {
    let mut parameters = AimdParameters::default();
    parameters.tokens.initial = Some(initial);
    Aimd::new(&parameters, &facts(8))
}

/// Watermark after a probe of this latency.
fn after(initial: f64, latency: Cycle) -> f64 {
    let mut aimd = aimd(initial);
    let probe = sent(0, 0, OperationKind::Read, None);
    aimd.on_sent(&probe);
    aimd.on_completed(&completed(&probe, latency));
    let watermarks = aimd.gauges(latency).watermarks.expect("watermarks");
    assert_eq!(watermarks[0], watermarks[1]);
    watermarks[0]
}

#[test]
fn watermarks_follow_the_latency_of_probes() {
    for (latency, watermark) in [
        (900, 1050.0),
        (1999, 1050.0),
        (2000, 1000.0),
        (2300, 950.0),
        (3500, 750.0),
        (5000, 500.0),
        (70_000, 500.0),
    ] {
        assert!(
            (after(1000.0, latency) - watermark).abs() < 1e-9,
            "{latency}"
        );
    }
    assert_eq!(after(2450.0, 900), 2468.0);
    assert_eq!(after(120.0, 5000), 100.0);
}

#[test]
fn one_probe_is_under_way() {
    let mut aimd = aimd(1000.0);
    let operations = [0, 1, 2].map(|number| sent(10 * number, number, OperationKind::Write, None));
    aimd.on_sent(&operations[0]);
    aimd.on_sent(&operations[1]);
    let watermark = |aimd: &Aimd| aimd.buckets.watermark(PacketClass::Request);
    aimd.on_completed(&completed(&operations[1], 5000));
    assert_eq!(watermark(&aimd), 1000.0, "not the probe");
    aimd.on_completed(&completed(&operations[0], 5100));
    assert_eq!(watermark(&aimd), 500.0);
    // The next one that is sent is the next probe.
    aimd.on_sent(&operations[2]);
    aimd.on_completed(&completed(&operations[2], 5200));
    assert_eq!(watermark(&aimd), 250.0);
}
