//! Numbers that SciPy 1.17.1 gives, and simulated studies of which the truth is known.

use super::*;
use clearway_units::{Purpose, RandomStream};
use proptest::prelude::*;

const CONFIDENCES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.9999];

/// Degrees of freedom, and `scipy.stats.t.ppf((1 + c) / 2, n)` for each of [`CONFIDENCES`].
const QUANTILES: [(u64, [f64; 5]); 9] = [
    (
        1,
        [
            1.0,
            6.313751514675037,
            12.706204736174694,
            63.656741162871526,
            6366.197671316637,
        ],
    ),
    (
        2,
        [
            0.8164965809277261,
            2.9199855803537242,
            4.302652729749462,
            9.924843200918287,
            99.99249984375004,
        ],
    ),
    (
        3,
        [
            0.7648923284043444,
            2.3533634348018233,
            3.1824463052837078,
            5.840909309733355,
            28.000130010950002,
        ],
    ),
    (
        4,
        [
            0.7406970841126829,
            2.1318467863266495,
            2.7764451051977934,
            4.604094871349992,
            15.544100581546113,
        ],
    ),
    (
        9,
        [
            0.7027221467513264,
            1.833112932656237,
            2.262157162798205,
            3.249835541592126,
            6.593682583944882,
        ],
    ),
    (
        10,
        [
            0.6998120613124317,
            1.8124611228116756,
            2.228138851986274,
            3.16927267261695,
            6.211050891290746,
        ],
    ),
    (
        30,
        [
            0.6827556933212927,
            1.697260886593957,
            2.0422724563012378,
            2.7499956535672254,
            4.482417175409786,
        ],
    ),
    (
        1000,
        [
            0.6747351646070093,
            1.6463788172854643,
            1.9623390808264083,
            2.580754698065951,
            3.9063437367014084,
        ],
    ),
    (
        100_000,
        [
            0.674492203553292,
            1.6448688647849696,
            1.9599877075346095,
            2.575878469908375,
            3.8907488453857835,
        ],
    ),
];

fn is_near(value: f64, expected: f64, tolerance: f64) {
    let off = (value - expected).abs() / expected.abs();
    assert!(off < tolerance, "{value} is not {expected}");
}

#[test]
fn quantiles_of_student() {
    for (degrees, expected) in QUANTILES {
        for (confidence, expected) in CONFIDENCES.into_iter().zip(expected) {
            is_near(student_t(confidence, degrees), expected, 1e-10);
        }
    }
    assert_eq!(student_t(0.95, 100_000), student_t(0.95, u64::MAX));
}

const OURS: [f64; 5] = [1.21, 1.34, 1.18, 1.29, 1.41];
const THEIRS: [f64; 5] = [1.52, 1.61, 1.44, 1.66, 1.71];

/// `scipy.stats.t.interval(c, 4, mean, sem)`.
#[test]
fn means_of_five_seeds() {
    let estimate = mean_estimate(&OURS, 0.95).unwrap();
    let interval = estimate.interval.unwrap();
    is_near(estimate.value, 1.286, 1e-14);
    is_near(interval.low, 1.1693232184727218, 1e-9);
    is_near(interval.high, 1.4026767815272783, 1e-9);
    assert_eq!(estimate.seeds, 5);
    let interval = mean_estimate(&OURS, 0.9).unwrap().interval.unwrap();
    is_near(interval.low, 1.196411691096574, 1e-9);
    let differences: Vec<f64> = OURS.iter().zip(THEIRS).map(|(a, b)| a - b).collect();
    let interval = mean_estimate(&differences, 0.95).unwrap().interval.unwrap();
    is_near(interval.low, -0.3556938929105919, 1e-9);
    is_near(interval.high, -0.2483061070894081, 1e-9);
    // `numpy.std(x, ddof=1)`.
    is_near(deviation(&OURS).unwrap(), 0.09396807968666808, 1e-12);
}

/// Ratios at which `scipy.stats.t` of the paired differences is at its quantile, by `scipy.optimize.brentq`.
#[test]
fn ratios_of_pairs() {
    let pairs: Vec<(f64, f64)> = OURS.into_iter().zip(THEIRS).collect();
    let estimate = ratio_estimate(&pairs, 0.95).unwrap();
    let interval = estimate.interval.unwrap();
    is_near(estimate.value, 0.8098236775818639, 1e-14);
    is_near(interval.low, 0.7807646715548585, 1e-9);
    is_near(interval.high, 0.8390879004250841, 1e-9);
    let pairs = [(2.0, 10.0), (5.0, 11.5), (3.0, 9.0)];
    let interval = ratio_estimate(&pairs, 0.9).unwrap().interval.unwrap();
    is_near(interval.low, 0.08774734088320316, 1e-9);
    is_near(interval.high, 0.5163845116477507, 1e-9);
}

#[test]
fn what_few_seeds_do_not_tell() {
    assert_eq!(mean_estimate(&[], 0.95), None);
    let single = mean_estimate(&[3.0], 0.95).unwrap();
    assert_eq!(
        (single.value, single.interval, single.seeds),
        (3.0, None, 1)
    );
    let equal = mean_estimate(&[3.0; 4], 0.95).unwrap();
    assert_eq!(equal.interval, Some(Interval::at(3.0)));
    assert_eq!(ratio_estimate(&[(1.0, 2.0)], 0.95).unwrap().interval, None);
    assert_eq!(ratio_estimate(&[(1.0, 0.0), (2.0, 0.0)], 0.95), None);
    // The same seeds give the same values: the ratio is known.
    let same = ratio_estimate(&[(5.0, 5.0), (7.0, 7.0)], 0.95).unwrap();
    assert_eq!(same.interval, Some(Interval::at(1.0)));
    // The second mean may be zero.
    let wild = ratio_estimate(&[(1.0, -1.0), (1.0, 2.0)], 0.95).unwrap();
    assert_eq!(wild.interval, None);
    let resamples = Resamples::new(1, 100);
    let single = median_estimate(&[3.0], 0.95, &resamples).unwrap();
    assert_eq!(single.interval, None);
    assert_eq!(median(&[4.0, 1.0, 3.0]), Some(3.0));
    assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    assert_eq!(
        (median(&[]), mean(&[]), deviation(&[1.0])),
        (None, None, None)
    );
}

/// `scipy.stats.bootstrap(…, numpy.median, confidence_level=0.9, method="percentile")`.
#[test]
fn the_median_of_nine_seeds() {
    let values = [3.1, 4.7, 2.2, 9.6, 5.0, 4.1, 7.3, 3.9, 6.2];
    let resamples = Resamples::new(9, Resamples::ENOUGH);
    let estimate = median_estimate(&values, 0.9, &resamples).unwrap();
    assert_eq!(estimate.value, 4.7);
    let interval = Interval {
        low: 3.9,
        high: 6.2,
    };
    assert_eq!(estimate.interval, Some(interval));
    assert_eq!(resamples, Resamples::new(9, Resamples::ENOUGH));
    assert_eq!(resamples.iter().count(), Resamples::ENOUGH);
}

#[test]
fn the_best_of_three() {
    let resamples = Resamples::new(4, Resamples::ENOUGH);
    let values = [
        vec![5.0, 6.0, 5.5, 5.2],
        // Better by the same in each seed: of common seeds always.
        vec![4.9, 5.9, 5.4, 5.1],
        vec![3.0, 9.0, 4.0, 9.0],
    ];
    let shares = shares_of_best(&values, &resamples, mean);
    assert_eq!(shares[0], 0.0);
    assert!(shares[1] > 0.5 && shares[2] > 0.05, "{shares:?}");
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let twins = shares_of_best(&[vec![1.0; 4], vec![1.0; 4]], &resamples, mean);
    assert_eq!(twins, [0.5, 0.5]);
}

/// Twelve uniform numbers less six: close to a normal distribution.
fn normal(stream: &mut RandomStream) -> f64 {
    let sum: f64 = (0..12)
        .map(|_| f64::from(stream.next_u32()) / 4_294_967_296.0)
        .sum();
    sum - 6.0
}

/// Share of 4000 simulated studies of `seeds` seeds whose interval holds the truth, which is zero.
fn coverage(seeds: usize, interval: impl Fn(&[f64]) -> Interval) -> f64 {
    let mut stream = RandomStream::new(1, Purpose::Test, seeds as u64);
    let mut held = 0;
    for _ in 0..4000 {
        let values: Vec<f64> = (0..seeds).map(|_| normal(&mut stream)).collect();
        held += u32::from(interval(&values).contains(0.0));
    }
    f64::from(held) / 4000.0
}

#[test]
fn means_are_held_as_often_as_claimed() {
    for seeds in [2, 3, 5, 20] {
        for confidence in [0.8, 0.95] {
            let held = coverage(seeds, |values| {
                mean_estimate(values, confidence).unwrap().interval.unwrap()
            });
            // Three standard errors of 4000 studies are 0.019 and 0.010.
            assert!((held - confidence).abs() < 0.02, "{seeds} seeds: {held}");
        }
    }
}

#[test]
fn medians_of_few_seeds_are_held_less_often_than_claimed() {
    let of = |seeds| {
        let resamples = Resamples::new(seeds, 400);
        coverage(seeds, |values| {
            let estimate = median_estimate(values, 0.95, &resamples).unwrap();
            estimate.interval.unwrap()
        })
    };
    let (three, five, fifteen) = (of(3), of(5), of(15));
    assert!((three - 0.75).abs() < 0.03, "{three}");
    assert!((five - 0.9375).abs() < 0.02, "{five}");
    assert!((fifteen - 0.91).abs() < 0.02, "{fifteen}");
}

proptest! {
    #[test]
    fn ratios_and_the_paired_test_agree(
        pairs in prop::collection::vec((1.0f64..10.0, 5.0f64..10.0), 2..8),
        factor in 0.1f64..2.0,
    ) {
        let ratio = ratio_estimate(&pairs, 0.95).unwrap();
        if let Some(interval) = ratio.interval {
            let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - factor * b).collect();
            let difference = mean_estimate(&differences, 0.95).unwrap().interval.unwrap();
            let near = [interval.low, interval.high].iter().any(|end| (end - factor).abs() < 1e-9);
            prop_assert!(near || interval.contains(factor) == difference.contains(0.0));
            prop_assert!(interval.contains(ratio.value));
        }
    }
}
