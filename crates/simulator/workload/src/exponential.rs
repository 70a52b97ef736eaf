//! Exponential variates without a logarithm.
//!
//! The library's logarithm may differ from machine to machine, and traffic must not. Von Neumann's method ("Various techniques used in
//! connection with random digits", 1951; Devroye, "Non-uniform random variate generation", IV.2) compares uniform numbers and
//! calculates nothing:
//!
//! 1. Draw u₁, then u₂, u₃, … as long as each is below the one before. The run u₁ > u₂ > … > uₙ ends where that fails.
//! 2. If n is odd, the variate is u₁ plus the number of runs thrown away before; else throw the run away and begin again.
//!
//! Given u₁ = x a run has at least n numbers with probability xⁿ⁻¹/(n-1)!, hence an odd number with 1 - x + x²/2! - … = e⁻ˣ: the accepted
//! u₁ has the density of the exponential distribution on [0, 1). A run is thrown away with probability 1/e, so that the whole part is k
//! with probability e⁻ᵏ(1 - 1/e), as it must be. It takes e²/(e - 1) = 4.3 uniform numbers for a variate.

use clearway_units::RandomStream;

/// A number of zero or more whose distribution is exponential with mean 1. Its fraction has 64 random bits, of which a float keeps 53.
pub(crate) fn exponential(random: &mut RandomStream) -> f64 {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    let mut whole = 0u32;
    loop {
        let first = random.next_u64();
        let (mut last, mut is_odd) = (first, true);
        loop {
            let next = random.next_u64();
            if next >= last {
                break;
            }
            (last, is_odd) = (next, !is_odd);
        }
        if is_odd {
            return f64::from(whole) + first as f64 / TWO_TO_64;
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Purpose;

    const DRAWS: usize = 1_000_000;

    fn variates() -> Vec<f64> {
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        (0..DRAWS).map(|_| exponential(&mut random)).collect()
    }

    /// Moments of order n are n!, and the mean of their squares (2n)!.
    #[test]
    fn moments_are_those_of_the_exponential_distribution() {
        let drawn = variates();
        for (order, moment, of_squares) in [(1, 1.0, 2.0), (2, 2.0, 24.0), (3, 6.0, 720.0)] {
            let power = |x: &f64| (0..order).fold(1.0, |product, _| product * x);
            let mean = drawn.iter().map(power).sum::<f64>() / DRAWS as f64;
            let variance: f64 = of_squares - moment * moment;
            let error = (variance / DRAWS as f64).sqrt();
            assert!((mean - moment).abs() < 4.0 * error, "order {order}: {mean}");
        }
    }

    #[test]
    fn shares_are_those_of_the_exponential_distribution() {
        let drawn = variates();
        // 1 - e^-x, from tables.
        for (x, probability) in [
            (0.01, 0.009_950_166),
            (0.1, 0.095_162_582),
            (0.5, 0.393_469_340),
            (1.0, 0.632_120_559),
            (1.5, 0.776_869_840),
            (2.0, 0.864_664_717),
            (3.0, 0.950_212_932),
            (5.0, 0.993_262_053),
            (8.0, 0.999_664_537),
        ] {
            let share = drawn.iter().filter(|&&variate| variate <= x).count() as f64 / DRAWS as f64;
            let variance: f64 = probability * (1.0 - probability);
            let error = (variance / DRAWS as f64).sqrt();
            assert!((share - probability).abs() < 4.0 * error, "{x}: {share}");
        }
    }

    #[test]
    fn variates_are_independent_of_each_other() {
        let drawn = variates();
        let product: f64 = drawn
            .windows(2)
            .map(|pair| (pair[0] - 1.0) * (pair[1] - 1.0))
            .sum();
        let correlation = product / (DRAWS - 1) as f64;
        assert!(
            correlation.abs() < 4.0 / (DRAWS as f64).sqrt(),
            "{correlation}"
        );
    }

    #[test]
    fn variates_are_pinned() {
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        let drawn: Vec<u64> = (0..4).map(|_| exponential(&mut random).to_bits()).collect();
        // A change here changes all Poisson traffic.
        let expected = [
            4_609_317_831_180_450_847,
            4_598_968_017_934_372_997,
            4_599_329_436_625_664_878,
            4_604_829_258_527_445_995,
        ];
        assert_eq!(drawn, expected);
    }
}
