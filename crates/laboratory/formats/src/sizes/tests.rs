use super::*;
use clearway_units::{Bytes, Purpose, RandomStream};
use clearway_workload::PublishedSizes;
use insta::assert_snapshot;
use proptest::prelude::*;

fn published(name: &str) -> SizeDistribution {
    PublishedSizes::named(name).unwrap().distribution()
}

#[test]
fn means_of_the_published_distributions() {
    for (name, mean) in [
        ("hadoop", 120_420.75),
        ("websearch", 1_711_250.0),
        ("ali-storage", 40_869.8),
    ] {
        let found = published(name).mean();
        assert!((found - mean).abs() < 1e-6, "{name}: {found}");
    }
    assert_eq!(PublishedSizes::named("Hadoop"), None);
}

#[test]
fn published_distributions_are_sound_files() {
    for sizes in PublishedSizes::ALL {
        let line = |point: &SizePoint| format!("{} {}\n", point.bytes.as_u64(), point.percent);
        let distribution = sizes.distribution();
        let text: String = distribution.points().iter().map(line).collect();
        assert_eq!(parse_sizes("x", &text).unwrap(), distribution);
        assert!(!sizes.summary.is_empty() && !sizes.source.is_empty());
    }
}

#[test]
fn quantiles_lie_on_the_lines_between_the_points() {
    let sizes = published("websearch");
    for (percent, bytes) in [
        (-1.0, 1),
        (0.0, 1),
        (15.0, 10_000),
        (17.5, 15_000),
        (46.5, 65_000),
        (85.0, 3_500_000),
        (98.5, 20_000_000),
        (100.0, 30_000_000),
        (101.0, 30_000_000),
    ] {
        assert_eq!(sizes.quantile(percent), Bytes::new(bytes), "{percent}");
    }
    // 1000.7 bytes, cut.
    assert_eq!(published("hadoop").quantile(60.005), Bytes::new(1_000));
    let above_zero = parse_sizes("x", "500 0\n1000 100\n").unwrap();
    assert_eq!(above_zero.quantile(0.0), Bytes::new(500));
}

/// The Kolmogorov-Smirnov distance of the draws from the distribution; above 1.95 / sqrt(draws) once in a thousand.
#[test]
fn draws_follow_the_distribution() {
    const DRAWS: usize = 100_000;
    for published in PublishedSizes::ALL {
        let sizes = published.distribution();
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        let mut drawn: Vec<Bytes> = (0..DRAWS).map(|_| sizes.sample(&mut random)).collect();
        drawn.sort_unstable();
        for point in sizes.points() {
            let share = drawn.partition_point(|&bytes| bytes <= point.bytes) as f64 / DRAWS as f64;
            let distance = (share - point.percent / 100.0).abs();
            assert!(
                distance < 1.95 / (DRAWS as f64).sqrt(),
                "{point:?}: {share}"
            );
        }
        let mean = drawn.iter().map(|bytes| bytes.as_f64()).sum::<f64>() / DRAWS as f64;
        // Standard errors of the mean are 1.8 %, 0.7 % and 1.5 %.
        assert!(
            (mean / sizes.mean() - 1.0).abs() < 0.06,
            "{} {mean}",
            published.name
        );
    }
}

#[test]
fn draws_are_at_least_a_byte() {
    let sizes = parse_sizes("x", "0 0\n1 100\n").unwrap();
    let mut random = RandomStream::new(1, Purpose::Test, 0);
    assert!((0..1000).all(|_| sizes.sample(&mut random) == Bytes::new(1)));
}

fn error(text: &str) -> String {
    parse_sizes("x.txt", text).unwrap_err().to_string()
}

#[test]
fn faults_have_a_place_and_a_fix() {
    assert_snapshot!(error(""), @"
    x.txt:1: the file is empty
      fix: write a size in bytes and a percent on each line, from `0 0` to 100 percent
    ");
    assert_snapshot!(error("# nothing\n"), @"
    x.txt:1: the file is empty
      fix: write a size in bytes and a percent on each line, from `0 0` to 100 percent
    ");
    assert_snapshot!(error("0 0\n10000\n"), @"
    x.txt:2: a point has 2 words, but this line has 1
      fix: write a size in bytes and the percent of flows up to it, as in `10000 15`
    ");
    assert_snapshot!(error("0 0\n10000 0.5 15\n"), @"
    x.txt:2:11: a point has 2 words, but this line has 3
      fix: write a size in bytes and the percent of flows up to it, as in `10000 15`
    ");
    assert_snapshot!(error("0 0\n10KB 15\n"), @"
    x.txt:2:1: `10KB` is not a size
      fix: write a whole number of bytes from 0 to 1000000000000
    ");
    assert_snapshot!(error("0 0\n-1 15\n"), @"
    x.txt:2:1: `-1` is not a size
      fix: write a whole number of bytes from 0 to 1000000000000
    ");
    assert_snapshot!(error("0 0\n1000000000001 100\n"), @"
    x.txt:2:1: `1000000000001` is not a size
      fix: write a whole number of bytes from 0 to 1000000000000
    ");
    assert_snapshot!(error("0 0\n10000 15%\n"), @"
    x.txt:2:7: `15%` is not a percentage
      fix: write a number from 0 to 100
    ");
    assert_snapshot!(error("0 0\n10000 nan\n"), @"
    x.txt:2:7: `nan` is not a percentage
      fix: write a number from 0 to 100
    ");
    assert_snapshot!(error("0 0\n10000 inf\n"), @"
    x.txt:2:7: `inf` is not a percentage
      fix: write a number from 0 to 100
    ");
    assert_snapshot!(error("0 0\n10000 100.1\n"), @"
    x.txt:2:7: `100.1` is not a percentage
      fix: write a number from 0 to 100
    ");
    assert_snapshot!(error("100 5\n10000 100\n"), @"
    x.txt:1:5: the first percent is 5, not 0
      fix: put the smallest size and 0 on a line above
    ");
    assert_snapshot!(error("0 0\n10000 15\n10000 100\n"), @"
    x.txt:3:1: the size 10000 is not above 10000 of the line before
      fix: let sizes and percents rise from line to line; leave out a point that adds nothing
    ");
    assert_snapshot!(error("0 0\n\n10000 15\n20000 15\n"), @"
    x.txt:4:7: the percent 15 is not above 15 of the line before
      fix: let sizes and percents rise from line to line; leave out a point that adds nothing
    ");
    assert_snapshot!(error("0 0\n10000 15\n20000 14.5\n"), @"
    x.txt:3:7: the percent 14.5 is not above 15 of the line before
      fix: let sizes and percents rise from line to line; leave out a point that adds nothing
    ");
    assert_snapshot!(error("0 0\n10000 99.9\n"), @"
    x.txt:2: the last percent is 99.9, not 100
      fix: end with the largest size and 100
    ");
    assert_snapshot!(error("0 0\n10000 0.5\n30000 1\n"), @"
    x.txt:3: the last percent is 1, not 100
      fix: write percents, not fractions, and end with the largest size and 100
    ");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9. \n#eEnaif+-]{0,60}") {
        if let Err(error) = parse_sizes("x", &text) {
            prop_assert!(error.line >= 1 && !error.message.is_empty() && !error.fix.is_empty());
        }
    }

    #[test]
    fn quantiles_rise_with_the_percent(a in 0.0f64..=100.0, b in 0.0f64..=100.0) {
        for published in PublishedSizes::ALL {
            let sizes = published.distribution();
            prop_assert!(sizes.quantile(a.min(b)) <= sizes.quantile(a.max(b)));
        }
    }
}
