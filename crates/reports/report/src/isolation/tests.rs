//! Verdicts, tables and their words.

use super::*;
use crate::sample_tables::isolation::{pair, parties, study};

#[test]
fn a_gain_is_the_median_over_seeds() {
    let cell = IsolationCell::from_pairs(
        "dcqcn",
        "queue-pair",
        "parallel",
        &[pair(50, 200), pair(80, 125), pair(100, 100)],
    );
    let gain = cell.gain.unwrap();
    assert!((gain.median - 1.25).abs() < 1e-9);
    assert_eq!((gain.least, gain.greatest), (1.0, 2.0));
    assert_eq!(cell.loss.unwrap().median, 0.8);
    assert_eq!(cell.p99_slowdown.unwrap().greatest, 4.0);
    assert_eq!(cell.user_fairness_before.unwrap().median, 1.0);
    assert_eq!(cell.verdict, IsolationVerdict::Unsure);
    let [sure, safe] =
        [50, 90].map(|us| IsolationCell::from_pairs("dcqcn", "pair", "parallel", &[pair(us, 110)]));
    assert_eq!(sure.verdict, IsolationVerdict::Vulnerable);
    assert_eq!(safe.verdict, IsolationVerdict::Secure);
}

#[test]
fn attackers_have_names_and_cells_have_verdicts() {
    let record = study();
    let attackers = |text: &str| IsolationRecord {
        attackers: text.into(),
        ..record.clone()
    };
    let words = ["tenant:b", "tenant:b:0-3,8"].map(|text| attackers(text).attackers_text());
    assert_eq!(words, ["tenant b", "tenant b on hosts 0-3,8"]);
    let json = record.to_json();
    assert!(json.contains(
        "\"verdict\": \"vulnerable\",\n      \"harm\": \"harmful\",\n      \"harmed_seeds\": 1"
    ));
}

#[test]
fn secure_needs_contention() {
    let verdict = |pairs: &[AttackPair]| {
        IsolationCell::from_pairs("rocev2", "pair", "parallel", pairs).verdict
    };
    let pair = |before: (u64, u64), after: (u64, u64)| AttackPair {
        before: parties(before.0, before.1),
        after: parties(after.0, after.1),
    };
    // The ideal is 50 us: 1.18 times the ideal is not contention, 1.2 times is.
    let idle = pair((59, 100), (59, 100));
    let busy = pair((60, 100), (60, 100));
    assert_eq!(
        verdict(std::slice::from_ref(&idle)),
        IsolationVerdict::NotTested
    );
    assert_eq!(
        verdict(std::slice::from_ref(&busy)),
        IsolationVerdict::Secure
    );
    assert_eq!(verdict(&[idle, busy]), IsolationVerdict::Secure);
    // An attacker that harms a victim has met contention.
    let harm = pair((55, 100), (55, 130));
    assert_eq!(verdict(&[harm]), IsolationVerdict::Secure);
    // A gain counts without contention.
    let gain = pair((59, 100), (40, 100));
    assert_eq!(verdict(&[gain]), IsolationVerdict::Vulnerable);
    // Without slowdowns contention is unknown.
    let mut unknown = pair((59, 100), (59, 100));
    unknown.before.attackers.slowdown = None;
    assert_eq!(verdict(&[unknown]), IsolationVerdict::Secure);
    let json = serde_json::to_string(&IsolationVerdict::NotTested).unwrap();
    assert_eq!(json, "\"not-tested\"");
}

#[test]
fn an_index_that_rises_among_the_poorer_is_left_out() {
    let cell = |before: (u64, u64), after: (u64, u64)| {
        let pair = AttackPair {
            before: parties(before.0, before.1),
            after: parties(after.0, after.1),
        };
        IsolationCell::from_pairs("hpcc", "pair", "staggered", &[pair])
    };
    // 80 and 40 Gb/s become 10 each: perfectly fair, but only a quarter of the slower one.
    let poorer = cell((100, 200), (800, 800));
    assert_eq!(poorer.user_fairness.unwrap().median, 1.0);
    assert_eq!(poorer.fairness_text(), "0.900 -> poorer");
    assert_eq!(poorer.matrix_text(), "0.12 secure, 0.25 HARMFUL");
    // Victims get the attacker's loss.
    let fairer = cell((100, 200), (200, 100));
    assert_eq!(fairer.fairness_text(), "0.900 -> 0.900");
    assert_eq!(
        cell((50, 200), (100, 100)).fairness_text(),
        "0.735 -> poorer"
    );
    assert_eq!(cell((50, 200), (70, 80)).fairness_text(), "0.735 -> 0.996");
    // A falling index cannot be mistaken for an improvement.
    assert_eq!(
        cell((100, 100), (200, 800)).fairness_text(),
        "1.000 -> 0.735"
    );
}

#[test]
fn harm_that_goodput_does_not_show_is_named() {
    let mut cell = IsolationCell::from_pairs("strack", "pair", "parallel", &[pair(100, 130)]);
    assert_eq!(cell.harm_text(), "HARMFUL");
    cell.loss = cell.gain;
    assert_eq!(cell.matrix_text(), "1.00 secure, 1.00 HARMFUL (p99)");
    cell.p99_slowdown_ratio = cell.gain;
    assert_eq!(cell.harm_text(), "HARMFUL (p99.9)");
    cell.harm = Harm::Unharmed;
    assert_eq!(cell.harm_text(), "unharmed");
}
