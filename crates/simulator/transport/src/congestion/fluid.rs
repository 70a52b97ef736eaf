//! Fluid model behind Sampling Frequency (Snyder §4.1.2): the speed at which two rates approach each other while both only fall.
//!
//! A flow that cuts its rate by `decrease` once per round trip `r` obeys `R' = -decrease × R / r`; one that does so after each `sample`
//! bytes, independent of their time, obeys `S' = -decrease × S² / sample`. Both have closed forms. Here and only here rates are in bytes
//! per nanosecond, as the dissertation plots them.

/// `e^-x` for `x` of zero or more, from the four basic operations alone, with a relative error below 1e-12 up to `x` = 30.
fn exp_of_minus(x: f64) -> f64 {
    // Halved until the series converges at once; then squared as often.
    let (mut small, mut halvings) = (x, 0);
    while small > 0.125 && halvings < 64 {
        small /= 2.0;
        halvings += 1;
    }
    let series = (1..=10)
        .rev()
        .fold(1.0, |rest, n| 1.0 - small / f64::from(n) * rest);
    (0..halvings).fold(series, |power, _| power * power)
}

/// Rate (bytes/ns) after `time` ns if `rate` (bytes/ns) is cut by the share `decrease` in each `round_trip` (ns).
pub fn cut_per_round_trip(rate: f64, decrease: f64, round_trip: f64, time: f64) -> f64 {
    rate * exp_of_minus(decrease * time / round_trip)
}

/// Rate (bytes/ns) after `time` ns if `rate` (bytes/ns) is cut by the share `decrease` after each `sample` bytes:
/// acknowledgements times the bytes of a packet.
pub fn cut_per_sample(rate: f64, decrease: f64, sample: f64, time: f64) -> f64 {
    rate / (1.0 + decrease * rate * time / sample)
}

/// Advantage of sampling in bytes/ns (Snyder Equation 4.1): how much closer the rates of two flows are after `time` ns if they
/// sample than if they cut once per round trip. `rates` are those at the start, the larger one first.
pub fn advantage_of_sampling(
    rates: (f64, f64),
    decrease: f64,
    round_trip: f64,
    sample: f64,
    time: f64,
) -> f64 {
    let gap = |left: &dyn Fn(f64) -> f64| left(rates.0) - left(rates.1);
    gap(&|rate| cut_per_round_trip(rate, decrease, round_trip, time))
        - gap(&|rate| cut_per_sample(rate, decrease, sample, time))
}

/// Round trip (ns) above which two flows that sample approach each other faster from the start (Snyder §4.1.2).
pub fn round_trip_from_which_sampling_helps(rates: (f64, f64), sample: f64) -> f64 {
    sample / (rates.0 + rates.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The setting of Snyder Figure 4.2: 100 and 50 Gb/s, 30 us, samples of 30 packets of 1000 bytes.
    fn figure(time: f64) -> f64 {
        advantage_of_sampling((12.5, 6.25), 0.5, 30_000.0, 30_000.0, time)
    }

    #[test]
    fn the_exponential_is_exact_enough() {
        for (x, value) in [
            (0.0, 1.0),
            (0.1, 0.904_837_418_035_959_6),
            (0.5, 0.606_530_659_712_633_4),
            (1.0, 0.367_879_441_171_442_33),
            (5.0, 6.737_946_999_085_467e-3),
            (20.0, 2.061_153_622_438_558e-9),
        ] {
            let error = (exp_of_minus(x) - value).abs() / value;
            assert!(error < 1e-12, "{x}: {error}");
        }
        assert_eq!(exp_of_minus(1e4), 0.0);
    }

    #[test]
    fn the_closed_forms_obey_their_equations() {
        let (rate, step) = (12.5, 1e-3);
        for time in [0.0, 1000.0, 50_000.0] {
            let slope = |left: &dyn Fn(f64) -> f64| (left(time + step) - left(time)) / step;
            let now = cut_per_round_trip(rate, 0.5, 30_000.0, time);
            let then = slope(&|t| cut_per_round_trip(rate, 0.5, 30_000.0, t));
            assert!((then + 0.5 * now / 30_000.0).abs() < 1e-9, "{time}");
            let now = cut_per_sample(rate, 0.5, 30_000.0, time);
            let then = slope(&|t| cut_per_sample(rate, 0.5, 30_000.0, t));
            assert!((then + 0.5 * now * now / 30_000.0).abs() < 1e-9, "{time}");
        }
    }

    #[test]
    fn figure_4_2() {
        assert_eq!(figure(0.0), 0.0);
        let (at, most) = (0..4000)
            .map(|n| (f64::from(n) * 100.0, figure(f64::from(n) * 100.0)))
            .fold(
                (0.0, 0.0),
                |best, next| if next.1 > best.1 { next } else { best },
            );
        assert!((at - 11_900.0).abs() <= 100.0, "{at}");
        assert!((most - 4.323).abs() < 5e-4, "{most}");
        for (us, value) in [(30.0, 3.58), (100.0, 1.16), (400.0, 0.006)] {
            let f = figure(us * 1000.0);
            assert!((f - value).abs() < 0.006, "{us}: {f}");
        }
        assert!(figure(522_000.0) > 0.0 && figure(525_000.0) < 0.0);
        assert!(figure(700_000.0) > -6e-4);
    }

    #[test]
    fn the_condition_decides_the_first_step() {
        let limit = round_trip_from_which_sampling_helps((12.5, 6.25), 30_000.0);
        assert_eq!(limit, 1600.0);
        let first =
            |round_trip| advantage_of_sampling((12.5, 6.25), 0.5, round_trip, 30_000.0, 0.1);
        assert!(first(1700.0) > 0.0 && first(1500.0) < 0.0);
    }
}
