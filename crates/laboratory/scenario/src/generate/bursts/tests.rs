use super::*;
use crate::WorkloadSettings;
use crate::generate::sample::{context, settings, text};
use clearway_units::Value;
use clearway_workload::{FlowSpec, Start};
use insta::assert_snapshot;
use std::collections::BTreeSet;

/// Flows of the bursts, burst by burst.
fn bursts(settings: &WorkloadSettings, size: usize, hosts: u32) -> Vec<Vec<FlowSpec>> {
    let flows = settings.load(&context(hosts)).unwrap().workload.flows;
    let labels = flows.iter().map(|flow| flow.label);
    assert!(labels.eq(1..=flows.len() as u64), "labels are unique");
    flows.chunks(size).map(<[FlowSpec]>::to_vec).collect()
}

fn incast(values: &[(&str, Value)]) -> WorkloadSettings {
    let own = [("senders", number(4)), ("message", text("1MB"))];
    settings("incast", &[&own[..], values].concat())
}

fn permutation(values: &[(&str, Value)]) -> WorkloadSettings {
    settings("permutation", values)
}

fn number(number: i64) -> Value {
    Value::Integer(number)
}

fn every_ms(count: i64) -> [(&'static str, Value); 2] {
    [("period", text("1ms")), ("count", number(count))]
}

fn with(
    values: &[(&'static str, Value)],
    more: &[(&'static str, Value)],
) -> Vec<(&'static str, Value)> {
    [values, more].concat()
}

fn start(flow: &FlowSpec) -> Time {
    match flow.start {
        Start::At(time) => time,
        Start::On(_) | Start::Posted(_) => unreachable!("a burst waits for nothing"),
    }
}

fn ends(flows: &[FlowSpec]) -> Vec<(u32, u32)> {
    flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect()
}

#[test]
fn bursts_follow_each_other_by_the_period() {
    let values = with(&every_ms(20), &[("start", text("5us"))]);
    for (settings, size) in [(incast(&values), 4), (permutation(&values), 64)] {
        let bursts = bursts(&settings, size, 64);
        assert_eq!(bursts.len(), 20);
        for (number, burst) in (0..).zip(&bursts) {
            let at = Time::from_us(5 + 1000 * number);
            assert!(burst.iter().all(|flow| start(flow) == at));
            assert_eq!(ends(burst), ends(&bursts[0]), "the same hosts");
        }
    }
}

#[test]
fn a_single_burst_is_the_first_of_many() {
    let redraw = [("redraw", Value::Boolean(true))];
    for (kind, size) in [("incast", 4), ("permutation", 64)] {
        let make = |values: &[(&'static str, Value)]| match kind {
            "incast" => incast(&with(values, &[("spread", text("9us"))])),
            _ => permutation(values),
        };
        let alone = bursts(&make(&[]), size, 64);
        assert_eq!(alone.len(), 1);
        for values in [every_ms(3).to_vec(), with(&every_ms(5), &redraw)] {
            assert_eq!(bursts(&make(&values), size, 64)[0], alone[0]);
        }
        let (few, many) = (with(&every_ms(3), &redraw), with(&every_ms(30), &redraw));
        let many = bursts(&make(&many), size, 64);
        assert_eq!(bursts(&make(&few), size, 64), many[..3]);
        let distinct: BTreeSet<_> = many.iter().map(|burst| ends(burst)).collect();
        assert_eq!(distinct.len(), 30, "each burst is drawn anew");
    }
}

#[test]
fn senders_of_later_bursts_are_uniform_and_distinct() {
    let values = with(&every_ms(6000), &[("redraw", Value::Boolean(true))]);
    let mut counts = [0u32; 16];
    for burst in bursts(&incast(&values), 4, 16) {
        let senders: BTreeSet<u32> = burst.iter().map(|flow| flow.src.0).collect();
        assert_eq!(senders.len(), 4);
        senders
            .iter()
            .for_each(|&sender| counts[sender as usize] += 1);
    }
    assert_eq!(counts[0], 0, "the receiver");
    // The mean of a binomial (6000, 4/15) is 1600; five standard deviations are 171.
    assert!(
        counts[1..].iter().all(|count| count.abs_diff(1600) < 171),
        "{counts:?}"
    );
}

#[test]
fn receivers_are_drawn_if_asked_for() {
    let random = ("receiver", text("random"));
    let receivers = |values: &[(&'static str, Value)]| -> BTreeSet<u32> {
        let bursts = bursts(&incast(values), 4, 16);
        for burst in &bursts {
            assert!(
                burst
                    .iter()
                    .all(|flow| flow.dst == burst[0].dst && flow.src != flow.dst)
            );
        }
        bursts.iter().map(|burst| burst[0].dst.0).collect()
    };
    let redraw = ("redraw", Value::Boolean(true));
    let all = receivers(&with(&every_ms(200), &[random.clone(), redraw]));
    assert_eq!(all.len(), 16);
    let one = receivers(&with(&every_ms(200), &[random]));
    assert_eq!(one.len(), 1);
    // All other hosts send equally often.
    let first = [
        ("placement", text("first")),
        ("receiver", number(2)),
        ("redraw", Value::Boolean(true)),
    ];
    let bursts = bursts(&incast(&with(&every_ms(2), &first)), 4, 16);
    assert_eq!(ends(&bursts[1]), [(0, 2), (1, 2), (3, 2), (4, 2)]);
}

#[test]
fn bursts_are_late_by_their_own_jitter() {
    let values = with(&every_ms(400), &[("period-jitter", text("300us"))]);
    let bursts = bursts(&permutation(&values), 8, 8);
    let mut sum = 0.0;
    for (number, burst) in (0..).zip(&bursts) {
        let late = start(&burst[0]).since(Time::from_us(1000 * number));
        assert!(late <= Span::from_us(300));
        assert!(burst.iter().all(|flow| start(flow) == start(&burst[0])));
        sum += late.as_us();
    }
    // The standard error of the mean is 300 / sqrt(12 * 400) = 4.3 us.
    assert!((sum / 400.0 - 150.0).abs() < 22.0, "{}", sum / 400.0);
    // The jitter changes neither the hosts nor the order of the draws.
    let on_time = super::tests::bursts(&permutation(&every_ms(400)), 8, 8);
    assert_eq!(ends(&bursts[7]), ends(&on_time[7]));
}

#[test]
fn faults_of_bursts() {
    let error = |values: &[(&'static str, Value)]| {
        let error = incast(values).load(&context(8)).unwrap_err();
        error.to_string()
    };
    assert_snapshot!(error(&[("count", number(20))]), @r#"
    `period` of the incast workload: 20 bursts at the same time
      fix: write the time from one to the next, as in `period = "1ms"`
    "#);
    assert_snapshot!(error(&every_ms(4_000_000_000)), @"
    `count` of the incast workload: 4000000000 bursts of 4 flows each
      fix: write a number up to 2500000: 10000000 flows are the most
    ");
    assert_snapshot!(error(&[("count", number(3)), ("period", text("1500000s"))]), @"
    `period` of the incast workload: 3 bursts, each 1500000s after the one before, go on for more than 2592000s (30 days)
      fix: choose a shorter period, or fewer bursts
    ");
    assert_snapshot!(error(&[("count", number(3)), ("period", text("18000000s"))]), @"
    `period` of the incast workload: 3 bursts, each 18000000s after the one before, go on for more than 2592000s (30 days)
      fix: choose a shorter period, or fewer bursts
    ");
    assert_snapshot!(error(&with(&every_ms(2), &[("period-jitter", text("2592001s"))])), @"
    `period-jitter` of the incast workload: bursts up to 2592001s late
      fix: use at most 2592000s (30 days)
    ");
    assert_snapshot!(error(&[("count", number(2)), ("period", text("1000s")), ("start", text("18446744s"))]), @"
    `start` of the incast workload: bursts up to 1000s after 18446744s are beyond the longest run
      fix: choose an earlier start
    ");
    let error = permutation(&every_ms(4_000_000_000));
    assert_snapshot!(error.load(&context(8)).unwrap_err().to_string(), @"
    `count` of the permutation workload: 4000000000 bursts of 8 flows each
      fix: write a number up to 1250000: 10000000 flows are the most
    ");
    let endless = settings("incast", &[]).set("count", &number(0));
    assert!(endless.is_err());
}

#[test]
fn keys_without_effect_are_warned_about() {
    let warnings = |settings: WorkloadSettings| {
        let loaded = settings.load(&context(64)).unwrap();
        loaded.setting_warnings.join("\n")
    };
    assert_snapshot!(warnings(permutation(&[("period", text("1ms"))])), @"`period` = 1ms of the permutation has no effect on a single burst; give the number of bursts, as in `count = 20`");
    let first = [
        ("placement", text("first")),
        ("redraw", Value::Boolean(true)),
    ];
    assert_snapshot!(warnings(incast(&with(&every_ms(2), &first))), @r#"`redraw` of the incast has no effect: neither senders nor receiver are drawn at random; set `placement = "random"`, or `receiver = "random"`"#);
    let random = with(&first, &[("receiver", text("random"))]);
    assert_eq!(warnings(incast(&with(&every_ms(2), &random))), "");
}
