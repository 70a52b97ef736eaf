use super::*;
use crate::by_size::CLASS_ENDS;
use crate::fast_forward::FastForwardSummary;
use crate::measures::{self, CLASS_MEASURES, PER_CLASS};
use crate::observed::{Fairness, JainCourse, RunObservations};
use crate::record::{FlowRow, JobRow, Status};
use crate::sample::{flow, job, run};
use crate::sample_tables::comparison::{row, scale_up, seed, seeds, variant};
use crate::summary::Summary;
use clearway_units::Span;
use proptest::prelude::*;

/// Median, least, greatest, ratio and mark of the longest completion time of the second variant.
fn second(first: &[u64], second: &[u64]) -> (f64, f64, f64, f64, Option<bool>) {
    let comparison = Comparison::from_variants(&[seeds("a", first), seeds("b", second)]);
    let spread = row(&comparison, "fct_us.max").values[1].clone();
    let some = |value: Option<f64>| value.unwrap();
    (
        some(spread.median),
        some(spread.min),
        some(spread.max),
        some(spread.ratio),
        spread.within_spread,
    )
}

/// A run in which the second half of the flows belongs to another section.
fn mixed(us: u64) -> ComparedRun {
    let mut record = run();
    record.flows = (0..8)
        .map(|number| {
            let section = u32::from(number >= 4);
            let late = u64::from(section) * us + u64::from(number);
            FlowRow {
                section,
                bytes: if number == 7 { 500 } else { 2_000_000 },
                ..flow(number, Some(Span::from_us(100 + late)))
            }
        })
        .collect();
    ComparedRun::from_record(record)
}

#[test]
fn medians_ranges_and_ratios() {
    assert_eq!(
        second(&[100, 120, 110], &[230, 220, 210]),
        (220.0, 210.0, 230.0, 2.0, Some(false))
    );
    assert_eq!(second(&[100], &[150]), (150.0, 150.0, 150.0, 1.5, None));
    // Of an even number, the mean of the two in the middle.
    assert_eq!(
        second(&[100, 100], &[60, 50, 10, 80]),
        (55.0, 10.0, 80.0, 0.55, Some(false))
    );
}

#[test]
fn ranges_that_share_a_point_are_within_the_spread() {
    let mark = |first: &[u64], other: &[u64]| second(first, other).4;
    assert_eq!(mark(&[100, 120], &[121, 130]), Some(false));
    assert_eq!(mark(&[100, 120], &[120, 130]), Some(true));
    assert_eq!(mark(&[100, 120], &[80, 100]), Some(true));
    assert_eq!(mark(&[100, 120], &[80, 99]), Some(false));
    // One within the other.
    assert_eq!(mark(&[100, 120], &[105, 110]), Some(true));
    assert_eq!(mark(&[105, 110], &[100, 120]), Some(true));
    // One seed has no spread, on either side.
    assert_eq!(mark(&[100], &[100, 120]), None);
    assert_eq!(mark(&[100, 120], &[100]), None);
}

#[test]
fn nothing_has_no_ratio_and_zero_to_zero_is_one() {
    let dropping = |number| {
        let mut run = seed(number, &[50]);
        run.summary.packets.dropped = number;
        run
    };
    let lossless = |number| {
        let mut run = seed(number, &[50]);
        run.summary.packets.dropped = 0;
        run
    };
    let none_done = |number| {
        let mut record = run();
        record.scenario.seed = number;
        record.flows.truncate(1);
        record.flows[0].finish = None;
        ComparedRun::from_record(record)
    };
    let comparison = Comparison::from_variants(&[
        variant("a", [1, 2].map(lossless)),
        variant("b", [1, 2].map(lossless)),
        variant("c", [1, 2].map(dropping)),
        variant("d", [1, 2].map(none_done)),
    ]);
    let drops = row(&comparison, "packets.dropped").values;
    assert_eq!(drops[1].ratio, Some(1.0));
    assert_eq!(drops[1].within_spread, Some(true));
    assert_eq!((drops[2].median, drops[2].ratio), (Some(1.5), None));
    assert_eq!(drops[2].within_spread, Some(false));
    let fct = &row(&comparison, "fct_us.p99").values[3];
    assert_eq!(fct.per_seed, [None, None]);
    assert_eq!(
        (fct.median, fct.ratio, fct.within_spread),
        (None, None, None)
    );
    let goodput = &row(&comparison, "goodput_bps").values[3];
    assert_eq!(goodput.median, None);
}

#[test]
fn goodput_is_payload_over_the_time_that_flows_took() {
    // Flow n starts at n us: from 0 to 1 + 79 us, two flows of 2 MB.
    let comparison = Comparison::from_variants(&[variant("a", [seed(1, &[50, 79])])]);
    let goodput = row(&comparison, "goodput_bps").values[0].median.unwrap();
    assert!((goodput - 4e6 * 8.0 / 80e-6).abs() < 1.0, "{goodput}");
}

#[test]
fn measures_are_named_as_in_the_summary() {
    let course = JainCourse {
        min: 0.5,
        last: 1.0,
        settled_us: Some(12.5),
    };
    let fairness = Fairness {
        from_us: 3.0,
        until_us: Some(40.0),
        flows: 4,
        goodput: Some(course),
        allowed_rate: Some(course),
    };
    let run = || {
        let mut record = run();
        record.jobs = vec![job("a", 2, &[90, 110]), job("b", 1, &[50])];
        record.flows[0].attack = Some(1);
        record.fast_forward = Some(FastForwardSummary::default());
        record.observed = Some(RunObservations {
            fairness: Some(fairness),
            ..RunObservations::default()
        });
        record
    };
    let json = serde_json::to_value(Summary::from_record(&run())).unwrap();
    let own = ["iteration_us.max", "busbw_gb_per_s"];
    let of_classes = CLASS_MEASURES.map(|measure| measure.name);
    let compared = ComparedRun::from_record(run());
    let all = measures_of([&compared.summary].into_iter()).into_iter();
    for measure in all.filter(|measure| !of_classes.contains(&measure.name)) {
        let pointer = format!("/{}", measure.name.replace('.', "/"));
        let value = measure.value(&compared.summary);
        match json.pointer(&pointer) {
            Some(found) => assert_eq!(found.as_f64(), value, "{pointer}"),
            None => assert!(
                own.contains(&&*measure.name) && value.is_some(),
                "{pointer}"
            ),
        }
    }
}

#[test]
fn classes_of_sizes_have_a_median_and_a_tail() {
    // One flow of each class; flow n is n + 1 us late.
    let mut record = run();
    let sizes = CLASS_ENDS.into_iter().chain([u64::MAX]);
    record.flows = (0..)
        .zip(sizes)
        .map(|(number, bytes)| FlowRow {
            bytes,
            ..flow(number, Some(Span::from_us(u64::from(number) + 1)))
        })
        .collect();
    let classes = Summary::from_record(&record).slowdown_by_class;
    let comparison = Comparison::from_variants(&[variant("a", [ComparedRun::from_record(record)])]);
    let shown: Vec<&MeasureRow> = comparison.shown().collect();
    assert_eq!(classes.len() * PER_CLASS, CLASS_MEASURES.len());
    for (class, measures) in classes.iter().zip(CLASS_MEASURES.chunks(PER_CLASS)) {
        let name = class.name();
        // `up to 10 KB` as a key is `up_to_10KB`.
        let (words, unit) = name.rsplit_once(' ').unwrap();
        let key = format!("slowdown_{}{unit}", words.replace(' ', "_"));
        let expected = [("p50", class.slowdown.p50), ("p999", class.slowdown.p999)];
        for (measure, (percentile, value)) in measures.iter().zip(expected) {
            assert_eq!(measure.name, format!("{key}.{percentile}"));
            assert!(measure.title.ends_with(&format!(" {name}")), "{name}");
            let row = row(&comparison, &measure.name);
            assert_eq!(row.values[0].median, Some(value));
            assert!(shown.contains(&&row), "{name}");
        }
    }
    // All flows have one size and so belong to one class, which adds nothing.
    let comparison = Comparison::from_variants(&[seeds("a", &[100]), seeds("b", &[200])]);
    assert_eq!(
        row(&comparison, "slowdown_up_to_10MB.p50").values[1].ratio,
        Some(2.0)
    );
    assert!(
        comparison
            .shown()
            .all(|row| !row.name.starts_with("slowdown_"))
    );
    assert!(!comparison.classes_differ());
}

#[test]
fn the_order_of_starts_and_finishes_is_no_ratio() {
    // Flow n starts at n us; the second variant reverses their order.
    let comparison = Comparison::from_variants(&[
        variant("a", [seed(1, &[10, 12, 14])]),
        variant("b", [seed(1, &[30, 20, 10])]),
    ]);
    let order = row(&comparison, "start_finish.spearman");
    assert_eq!(order.values[0].median, Some(1.0));
    assert_eq!(
        (order.values[1].median, order.values[1].ratio),
        (Some(-1.0), None)
    );
}

#[test]
fn variants_are_lettered() {
    let ids = [0, 1, 25, 26, 27, 51, 52, 701, 702].map(letters);
    assert_eq!(ids, ["A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]);
}

#[test]
fn warnings_name_what_is_not_comparable() {
    let warnings = |other: Variant| {
        let first = variant("a", [seed(1, &[50, 60]), seed(2, &[50, 60])]);
        Comparison::from_variants(&[first, other]).warnings
    };
    assert_eq!(
        warnings(variant("b", [seed(1, &[50, 61]), seed(2, &[50, 60])])),
        [""; 0]
    );
    assert_eq!(
        warnings(variant("b", [seed(1, &[50, 60]), seed(2, &[50, 60])])),
        ["B came to the same as A, packet for packet (equal digests)"]
    );
    assert_eq!(
        warnings(variant("b", [seed(1, &[50, 61]), seed(2, &[70])])),
        [
            "A and B do different work: 2 flows of 4 MB in all against 1 flow of 2 MB in all with seed 2"
        ]
    );
    let mut larger = seed(7, &[50, 61]);
    larger.flows[1].bytes += 1_000_000;
    assert_eq!(
        warnings(variant("b", [larger])),
        [
            "A and B do different work: 2 flows of 4 MB in all against 2 flows of 5 MB in all with seeds 1 and 7"
        ]
    );
    let mut other = seed(1, &[50, 61]);
    other.summary.revision = "4567def".into();
    assert_eq!(
        warnings(variant("b", [other])),
        [
            "A and B come from different programs: 0.1.0 (revision 0123abc) and 0.1.0 (revision 4567def)"
        ]
    );
    let mut stopped = run();
    stopped.status = Status::Interrupted;
    stopped.flows.truncate(2);
    stopped.flows[1].finish = None;
    assert_eq!(
        warnings(variant("b", [ComparedRun::from_record(stopped)])),
        [
            "B is incomplete (seed 1: 1 of 2 flows completed): its completion times leave out the slowest flows"
        ]
    );
    let mut computing = run();
    computing.status = Status::Incomplete {
        reason: "stopped".into(),
    };
    computing.flows.truncate(2);
    computing.jobs = vec![job("done", 1, &[10]), job("training", 3, &[10, 10])];
    assert_eq!(
        warnings(variant("b", [ComparedRun::from_record(computing)])),
        [
            "B is incomplete (seed 1: 2 of 2 flows and 1 of 2 jobs completed): its times of iterations leave out those that were not over"
        ]
    );
}

#[test]
fn warnings_about_runs_name_their_variant() {
    let mut runs = [seed(1, &[50, 61]), seed(2, &[50, 60])];
    for run in &mut runs {
        run.summary.warnings = vec!["windows are small".into()];
    }
    runs[1].summary.warnings.push("timeouts".into());
    let first = variant("a", [seed(1, &[50, 60]), seed(2, &[50, 61])]);
    let comparison = Comparison::from_variants(&[first, variant("b", runs)]);
    assert_eq!(
        comparison.warnings,
        ["B: windows are small", "B with seed 2: timeouts"]
    );
    assert!(comparison.variants[0].runs[0].warnings.is_empty());
    assert_eq!(comparison.variants[1].runs[1].warnings.len(), 2);
}

#[test]
fn the_document() {
    let origin = Origin {
        version: "0.1.0".into(),
        revision: "0123abc".into(),
        command: "clearway compare a b".into(),
        complete: true,
    };
    let comparison = Comparison::from_variants(&[seeds("a", &[100, 120]), seeds("b", &[130, 140])]);
    let json = comparison.to_json(&origin);
    let lines: Vec<&str> = json.lines().collect();
    insta::assert_snapshot!(lines[..34].join("\n"), @r#"
    {
      "kind": "comparison",
      "schema": 1,
      "version": "0.1.0",
      "revision": "0123abc",
      "command": "clearway compare a b",
      "complete": true,
      "answer": "b is 1.23 times as slow as a, by the p99 slowdown of flows.",
      "warnings": [],
      "variants": [
        {
          "id": "A",
          "label": "a",
          "runs": [
            {
              "scenario": {
                "name": "permutation-4",
                "hash": "89abcdef01234567",
                "seed": 1
              },
              "status": "complete",
              "flows": {
                "total": 1,
                "completed": 1,
                "started": 1
              },
              "jobs": {
                "total": 0,
                "completed": 0
              },
              "bytes": 2000000,
              "digest": "1-[100]",
              "version": "0.1.0",
              "revision": "0123abc",
    "#);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut measures = value["measures"].as_array().unwrap().iter();
    let measure = measures
        .find(|measure| measure["name"] == "fct_us.max")
        .unwrap();
    insta::assert_snapshot!(serde_json::to_string(measure).unwrap(), @r#"{"name":"fct_us.max","title":"FCT max","unit":"us","values":[{"common_seeds":2,"max":120.0,"mean":110.0,"mean_interval":[-17.062047361746934,237.06204736174692],"mean_ratio":1.0,"mean_ratio_interval":[1.0,1.0],"median":110.0,"min":100.0,"per_seed":[100.0,120.0],"ratio":1.0,"within_spread":true},{"common_seeds":2,"max":140.0,"mean":135.0,"mean_interval":[71.46897631912654,198.53102368087346],"mean_ratio":1.2272727272727273,"mean_ratio_interval":null,"median":135.0,"min":130.0,"per_seed":[130.0,140.0],"ratio":1.2272727272727273,"within_spread":false}]}"#);
    assert_eq!(
        value["measures"].as_array().unwrap().len(),
        all_measures_of_packets()
    );
}

/// Number of measures that comparisons of packets have.
fn all_measures_of_packets() -> usize {
    measures_of([&Summary::from_record(&run())].into_iter()).len()
}

proptest! {
    /// A variant does not differ from itself.
    #[test]
    fn a_variant_against_itself(
        fcts in prop::collection::vec(prop::collection::vec(1u64..1 << 40, 0..6), 1..6),
    ) {
        let runs = (1..).zip(&fcts).map(|(number, fcts)| seed(number, fcts));
        let one = variant("a", runs);
        let comparison = Comparison::from_variants(&[one.clone(), one]);
        for row in &comparison.measures {
            let known = row.values[0].per_seed.iter().flatten().count();
            for spread in &row.values {
                let ratio = (known > 0 && row.unit != Unit::Index).then_some(1.0);
                prop_assert_eq!(spread.ratio, ratio, "{}", row.name);
                prop_assert_eq!(spread.within_spread, (known >= 2).then_some(true), "{}", row.name);
            }
        }
        prop_assert!(comparison.warnings.len() == 1, "{:?}", comparison.warnings);
    }

    /// The rule: separate ranges mean that every seed of one variant is beyond every seed of the other.
    #[test]
    fn parted_ranges_are_parted_for_every_pair(
        a in prop::collection::vec(1u64..30, 2..6),
        b in prop::collection::vec(1u64..30, 2..6),
    ) {
        let (median, min, max, ratio, within) = second(&a, &b);
        let pairs = || a.iter().flat_map(|a| b.iter().map(move |b| a.cmp(b)));
        let parted = pairs().all(|order| order.is_lt()) || pairs().all(|order| order.is_gt());
        prop_assert_eq!(within, Some(!parted));
        prop_assert!(min <= median && median <= max && ratio > 0.0);
    }
}

#[test]
fn scale_up_runs_are_compared_by_their_operations() {
    let comparison = Comparison::from_variants(&[
        variant("3cpo", [1, 2].map(|seed| scale_up(seed, seed))),
        variant("static window", [1, 2].map(|seed| scale_up(seed, 1000))),
    ]);
    let summary = serde_json::to_value(scale_up(1, 1).summary).unwrap();
    let run = scale_up(1, 1);
    let measures = measures_of([&run.summary].into_iter()).into_iter();
    let measures = measures.filter(measures::Measure::is_of_operations);
    for measure in measures {
        let pointer = format!("/{}", measure.name.replace('.', "/"));
        let found = summary
            .pointer(&pointer)
            .and_then(serde_json::Value::as_f64);
        assert!(found.is_some(), "{pointer}");
        let values = row(&comparison, &measure.name).values;
        assert_eq!(values[0].per_seed[0], found, "{pointer}");
    }
}

#[test]
fn sections_are_compared_by_name() {
    let comparison =
        Comparison::from_variants(&[variant("a", [mixed(0)]), variant("b", [mixed(900)])]);
    let p99 = |section: &str| {
        let row = row(&comparison, &format!("sections.{section}.fct_us.p99"));
        (row.values[0].median, row.values[1].median)
    };
    assert_eq!(p99("permutation"), (Some(103.0), Some(103.0)));
    assert_eq!(p99("burst"), (Some(107.0), Some(1007.0)));
    // A single class adds nothing to its section.
    let names: Vec<&str> = comparison.shown().map(|row| &*row.name).collect();
    assert!(names.contains(&"sections.burst.up_to_1KB.slowdown.p50"));
    assert!(names.contains(&"sections.burst.up_to_10MB.slowdown.p999"));
    assert!(
        !names
            .iter()
            .any(|name| name.starts_with("sections.permutation.up_to"))
    );
    let titles: Vec<&str> = comparison.shown().map(|row| &*row.title).collect();
    assert!(titles.contains(&"burst: FCT p99") && titles.contains(&"burst: p99.9 up to 10 MB"));
    // A variant without the section has no value.
    let comparison = Comparison::from_variants(&[variant("a", [mixed(0)]), seeds("b", &[100])]);
    let row = row(&comparison, "sections.burst.completed");
    assert_eq!(
        (row.values[0].median, row.values[1].median),
        (Some(4.0), None)
    );
    let plain = Comparison::from_variants(&[seeds("a", &[100]), seeds("b", &[100])]);
    assert!(
        plain
            .measures
            .iter()
            .all(|row| !row.name.starts_with("sections."))
    );
}

#[test]
fn units_of_operations_are_words() {
    let comparison = Comparison::from_variants(&[variant("a", [scale_up(1, 0)])]);
    let unit = |name| serde_json::to_value(row(&comparison, name).unit).unwrap();
    assert_eq!(unit("operations.latency_cycles.p99"), "cycles");
    assert_eq!(unit("operations.effective_bandwidth"), "flits_per_cycle");
}

#[test]
fn runs_of_packets_have_no_measures_of_operations() {
    let packets = || variant("packets", [ComparedRun::from_record(run())]);
    let comparison = Comparison::from_variants(&[packets(), packets()]);
    let mut measures = comparison.measures.iter();
    assert!(!measures.any(|row| row.name.starts_with("operations.")));
    let both = Comparison::from_variants(&[packets(), variant("operations", [scale_up(1, 0)])]);
    assert_eq!(both.work_headings(), ["flows", "payload", "operations"]);
    let latency = row(&both, "operations.latency_cycles.mean").values;
    assert!(latency[0].median.is_none() && latency[1].median.is_some());
}

#[test]
fn unfinished_operations_are_warned_of() {
    let mut short = scale_up(1, 0);
    short.summary.status = crate::summary::StatusName::Incomplete;
    let operations = short.summary.operations.as_mut().unwrap();
    operations.figures.totals.completed = 500;
    let mut less = scale_up(1, 5);
    let operations = less.summary.operations.as_mut().unwrap();
    operations.figures.totals.posted = 100;
    let comparison = Comparison::from_variants(&[variant("a", [short]), variant("b", [less])]);
    assert_eq!(
        comparison.warnings,
        [
            "A is incomplete (seed 1: 500 of 512 operations completed): its latencies leave out the slowest operations",
            "A and B do different work: 512 operations in all against 100 operations in all with seed 1",
        ]
    );
}

/// The answer of variants with these labels, and one flow for each seed.
fn answer(variants: &[(&str, &[u64])]) -> String {
    let variants: Vec<Variant> = variants
        .iter()
        .map(|(label, fcts)| seeds(label, fcts))
        .collect();
    Comparison::from_variants(&variants)
        .answer()
        .unwrap_or_default()
}

#[test]
fn the_answer_names_who_is_slower_and_by_how_much() {
    let kinds = |fcts: [&[u64]; 3]| {
        answer(&[
            ("net.toml: transport.kind=strack", fcts[0]),
            ("net.toml: transport.kind=uet", fcts[1]),
            ("net.toml: transport.kind=hpcc", fcts[2]),
        ])
    };
    let all = [
        kinds([&[100, 110, 120], &[201, 220, 239], &[99, 111, 121]]),
        kinds([&[200, 221, 240], &[100, 110, 120], &[200, 221, 240]]),
        // Too few seeds for their differences.
        kinds([&[10, 11, 12], &[13, 20, 300], &[100, 101, 102]]),
        kinds([&[100], &[150], &[50]]),
        // Settings of several keys, and labels that do not tell variants apart.
        answer(&[("a=1, b=2", &[10, 11]), ("a=1, c=3", &[20, 22])]),
        answer(&[("a", &[10, 11]), ("a", &[20, 22])]),
        answer(&[("x", &[10, 11]), ("y", &[10, 11])]),
        // Close to 1, but distinguishable.
        answer(&[("x", &[100_000, 110_000]), ("y", &[100_300, 110_340])]),
        answer(&[("x", &[10, 11])]),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    uet is 2.00 (1.98 to 2.03) times as slow as strack; hpcc cannot be told apart from strack (0.97 to 1.02 times), by the p99 slowdown of flows.
    uet is 2.00 (1.99 to 2.02) times as fast as strack; hpcc is equal to strack, by the p99 slowdown of flows.
    uet cannot be told apart from strack (seeds differ 23.1-fold); hpcc is 9.18 (7.67 to 11.6) times as slow as strack, by the p99 slowdown of flows.
    uet is 1.50 times as slow as strack; hpcc is 2.00 times as fast as strack, by the p99 slowdown of flows (one seed: seeds alone may explain it).
    c=3 is 2.00 times as slow as b=2, by the p99 slowdown of flows.
    B is 2.00 times as slow as A, by the p99 slowdown of flows.
    y is equal to x, by the p99 slowdown of flows.
    y is 1.0030 (1.0016 to 1.0034) times as slow as x, by the p99 slowdown of flows.
    ");
}

/// Iterations of the jobs of each section, which a mean over all jobs would mix.
#[test]
fn iterations_are_compared_by_section() {
    let with = |longest: u64| {
        let ring = job("ring", 3, &[100, 200, longest]);
        let exchange = JobRow {
            section: 1,
            ..job("exchange", 2, &[10, 20])
        };
        let mut record = run();
        record.flows = (0..8)
            .map(|number| FlowRow {
                section: u32::from(number >= 4),
                ..flow(number, Some(Span::from_us(100)))
            })
            .collect();
        record.jobs = vec![ring, exchange];
        ComparedRun::from_record(record)
    };
    let comparison =
        Comparison::from_variants(&[variant("a", [with(300)]), variant("b", [with(600)])]);
    let of = |section: &str, figure: &str| {
        let row = row(
            &comparison,
            &format!("sections.{section}.iteration_us.{figure}"),
        );
        [row.values[0].median, row.values[1].median]
    };
    assert_eq!(of("permutation", "max"), [Some(300.0), Some(600.0)]);
    assert_eq!(of("permutation", "p50"), [Some(200.0); 2]);
    assert_eq!(of("burst", "max"), [Some(20.0); 2]);
    let mut shown = comparison.shown();
    assert!(shown.any(|row| row.title == "permutation: iteration p99"));
}

#[test]
fn iterations_are_compared_by_tenant() {
    // The sections of the first and the third job belong to one tenant, the section of the second job belongs to another.
    let with = |times: [&[u64]; 3]| {
        let mut record = run();
        record.sections = ["a", "b", "c"].map(str::to_owned).to_vec();
        record.tenants = vec![2, 1, 2];
        record.tenant_names = vec!["one".into(), "two".into()];
        let jobs = (0..).zip(times);
        let jobs = jobs.map(|(section, us)| JobRow {
            section,
            ..job("x", 1, us)
        });
        record.jobs = jobs.collect();
        ComparedRun::from_record(record)
    };
    let comparison = Comparison::from_variants(&[
        variant("a", [with([&[100], &[10], &[300]])]),
        variant("b", [with([&[100], &[20], &[100]])]),
    ]);
    let of = |tenant: &str, figure: &str| {
        let row = row(
            &comparison,
            &format!("tenants.{tenant}.iteration_us.{figure}"),
        );
        [row.values[0].median, row.values[1].median]
    };
    assert_eq!(of("two", "max"), [Some(300.0), Some(100.0)]);
    assert_eq!(of("two", "p50"), [Some(100.0); 2]);
    assert_eq!(of("one", "p99"), [Some(10.0), Some(20.0)]);
    let mut shown = comparison.shown();
    assert!(shown.any(|row| row.title == "tenant two: iteration p99"));
}
