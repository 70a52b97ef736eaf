//! Verdicts, tables and their words.

use super::*;
use crate::record::FlowRow;
use crate::sample::flow;
use clearway_units::{Span, Time};

/// Attacker 0 and victim 1 send 1 MB each, within so many microseconds.
fn parties(attacker: u64, victim: u64) -> Parties {
    let row = |src: u32, us: u64| FlowRow {
        src,
        bytes: 1_000_000,
        start: Some(Time::ZERO),
        finish: Some(Time::ZERO + Span::from_us(us)),
        ideal_fct: Span::from_us(50),
        ..flow(src, None)
    };
    Parties::among(&[row(0, attacker), row(1, victim)], &[], |user| {
        user.host == 0
    })
}

fn pair(attacker: u64, victim: u64) -> AttackPair {
    AttackPair {
        before: parties(100, 100),
        after: parties(attacker, victim),
    }
}

#[test]
fn a_gain_is_the_median_over_seeds() {
    let cell = IsolationCell::of(
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
        [50, 90].map(|us| IsolationCell::of("dcqcn", "pair", "parallel", &[pair(us, 110)]));
    assert_eq!(sure.verdict, IsolationVerdict::Vulnerable);
    assert_eq!(safe.verdict, IsolationVerdict::Secure);
}

#[test]
fn tables_say_who_gains() {
    let record = IsolationRecord {
        schema: 1,
        version: "0.1.0".into(),
        revision: "abc".into(),
        command: "clearway isolate".into(),
        scenario: "incast".into(),
        attackers: "0".into(),
        seeds: vec![1],
        complete: true,
        cells: [("pair", 110), ("queue-pair", 50)]
            .map(|(scope, us)| IsolationCell::of("dcqcn", scope, "parallel", &[pair(us, 200)]))
            .into(),
    };
    insta::assert_snapshot!(record.to_table(), @r#"
    incast attacked by hosts 0, 1 seed

    transport  scope       attack    gain  goodput of an attacker    goodput of a victim     p99 slowdown of victims  p99.9 slowdown    fairness of users  verdict     harm
    ---------  ----------  --------  ----  ------------------------  ----------------------  -----------------------  ----------------  -----------------  ----------  ------------
    dcqcn      pair        parallel  0.91  80 Gbit/s -> 72.7 Gbit/s  80 Gbit/s -> 40 Gbit/s  2.000x -> 4.000x         2.000x -> 4.000x  1.000 -> 0.922     secure      0.50 HARMFUL
    dcqcn      queue-pair  parallel  2.00  80 Gbit/s -> 160 Gbit/s   80 Gbit/s -> 40 Gbit/s  2.000x -> 4.000x         2.000x -> 4.000x  1.000 -> 0.735     VULNERABLE  0.50 HARMFUL

    Without the attack -> with it: medians over seeds. Goodput of a user: bytes of its messages over the sum of their completion times.
    Gain: goodput of an attacker with the attack over that without; vulnerable from 1.2 on with every seed, secure below it with every seed,
    not tested if the mean slowdown of the attackers' messages without the attack is below 1.2 with every seed, so that nothing was contended.
    Harm: goodput of a victim with the attack over that without. A seed is harmed if that is at most 1/1.2, or if the p99 or p99.9 slowdown of the
    victims is at least 1.2 times as great: harmful with every seed, unharmed with none. In brackets: the slowdown that tells where goodput does not.
    Fairness: Jain's index over the goodputs of all users; "poorer" for one that rises while users or victims get less in the mean.
    "#);
    let attackers = |text: &str| IsolationRecord {
        attackers: text.into(),
        ..record.clone()
    };
    let words = ["tenant:b", "tenant:b:0-3,8"].map(|text| attackers(text).attackers_text());
    assert_eq!(words, ["tenant b", "tenant b on hosts 0-3,8"]);
    let matrix = record.to_matrix();
    let rows: Vec<&str> = matrix.lines().skip(2).take(4).collect();
    insta::assert_snapshot!(rows.join("\n"), @"
    transport  scope       parallel
    ---------  ----------  -----------------------------
    dcqcn      pair        0.91 secure, 0.50 HARMFUL
    dcqcn      queue-pair  2.00 VULNERABLE, 0.50 HARMFUL
    ");
    let json = record.to_json();
    assert!(json.contains(
        "\"verdict\": \"vulnerable\",\n      \"harm\": \"harmful\",\n      \"harmed_seeds\": 1"
    ));
}

#[test]
fn secure_needs_contention() {
    let verdict =
        |pairs: &[AttackPair]| IsolationCell::of("rocev2", "pair", "parallel", pairs).verdict;
    let pair = |before: (u64, u64), after: (u64, u64)| AttackPair {
        before: parties(before.0, before.1),
        after: parties(after.0, after.1),
    };
    // The ideal is 50 us: 1.18 times that is no contention, 1.2 times that is some.
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
    // Who did harm met somebody.
    let harm = pair((55, 100), (55, 130));
    assert_eq!(verdict(&[harm]), IsolationVerdict::Secure);
    // A gain is a gain.
    let gain = pair((59, 100), (40, 100));
    assert_eq!(verdict(&[gain]), IsolationVerdict::Vulnerable);
    // Without slowdowns nothing is known of contention.
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
        IsolationCell::of("hpcc", "pair", "staggered", &[pair])
    };
    // 80 and 40 Gb/s become 10 each: perfectly fair, and a quarter of it.
    let poorer = cell((100, 200), (800, 800));
    assert_eq!(poorer.user_fairness.unwrap().median, 1.0);
    assert_eq!(poorer.fairness_text(), "0.900 -> poorer");
    assert_eq!(poorer.matrix_text(), "0.12 secure, 0.25 HARMFUL");
    // Victims get what the attacker loses.
    let fairer = cell((100, 200), (200, 100));
    assert_eq!(fairer.fairness_text(), "0.900 -> 0.900");
    assert_eq!(
        cell((50, 200), (100, 100)).fairness_text(),
        "0.735 -> poorer"
    );
    assert_eq!(cell((50, 200), (70, 80)).fairness_text(), "0.735 -> 0.996");
    // An index that falls cannot be taken for an improvement.
    assert_eq!(
        cell((100, 100), (200, 800)).fairness_text(),
        "1.000 -> 0.735"
    );
}

#[test]
fn harm_that_goodput_does_not_show_is_named() {
    let mut cell = IsolationCell::of("strack", "pair", "parallel", &[pair(100, 130)]);
    assert_eq!(cell.harm_text(), "HARMFUL");
    cell.loss = cell.gain;
    assert_eq!(cell.matrix_text(), "1.00 secure, 1.00 HARMFUL (p99)");
    cell.p99_slowdown_ratio = cell.gain;
    assert_eq!(cell.harm_text(), "HARMFUL (p99.9)");
    cell.harm = Harm::Unharmed;
    assert_eq!(cell.harm_text(), "unharmed");
}
