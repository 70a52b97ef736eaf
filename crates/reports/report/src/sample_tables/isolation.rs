//! Attacks.

use crate::sample::flow;
use clearway_report::isolation::{AttackPair, IsolationCell, IsolationRecord};
use clearway_report::{AttackSides, FlowRow};
use clearway_units::{Span, Time};

/// Attacker 0 and victim 1 send 1 MB each, within the given times in microseconds.
pub(crate) fn parties(attacker: u64, victim: u64) -> AttackSides {
    let row = |src: u32, us: u64| FlowRow {
        src,
        bytes: 1_000_000,
        start: Some(Time::ZERO),
        finish: Some(Time::ZERO + Span::from_us(us)),
        ideal_fct: Span::from_us(50),
        ..flow(src, None)
    };
    AttackSides::among(&[row(0, attacker), row(1, victim)], &[], |user| {
        user.host == 0
    })
}

/// The same without the attack, where each takes 100 us, and with the attack.
pub(crate) fn pair(attacker: u64, victim: u64) -> AttackPair {
    AttackPair {
        before: parties(100, 100),
        after: parties(attacker, victim),
    }
}

/// A study of two attacks: one on queue pairs that gains, and one on pairs of hosts that does not.
pub(crate) fn study() -> IsolationRecord {
    IsolationRecord {
        schema: 1,
        version: "0.1.0".into(),
        revision: "abc".into(),
        command: "clearway isolate".into(),
        scenario: "incast".into(),
        attackers: "0".into(),
        seeds: vec![1],
        complete: true,
        cells: [("pair", 110), ("queue-pair", 50)]
            .map(|(scope, us)| {
                IsolationCell::from_pairs("dcqcn", scope, "parallel", &[pair(us, 200)])
            })
            .into(),
    }
}
