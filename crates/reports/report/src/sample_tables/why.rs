//! Explained runs.

use clearway_report::why::{ExplainedVariant, WhyComparison};
use std::collections::BTreeMap;

fn variant(name: &str, times: &[(&'static str, u64)]) -> ExplainedVariant {
    let times: BTreeMap<&'static str, u64> = times
        .iter()
        .map(|&(part, us)| (part, us * 1_000_000))
        .collect();
    ExplainedVariant {
        id: "A".into(),
        label: format!("transport.kind={name}"),
        name: name.into(),
        folder: format!("out/{name}"),
        what: "iteration 1 of ring".into(),
        took_us: 0.0,
        parts: Vec::new(),
        sentence: format!("What {name} did."),
        times,
    }
}

/// Four variants that differ in their kinds of time.
pub(crate) fn explained() -> WhyComparison {
    WhyComparison::new(
        1,
        vec![
            variant(
                "strack",
                &[("propagation", 500), ("queueing", 30), ("computation", 50)],
            ),
            variant(
                "rocev2",
                &[("propagation", 490), ("queueing", 70), ("computation", 50)],
            ),
            variant(
                "same",
                &[("propagation", 500), ("queueing", 30), ("computation", 50)],
            ),
            variant(
                "lossy",
                &[
                    ("propagation", 500),
                    ("queueing", 30),
                    ("computation", 51),
                    ("timeout", 999),
                ],
            ),
        ],
    )
}
