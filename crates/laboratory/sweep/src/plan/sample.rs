//! Drawn points: at random, or as a Latin hypercube.
//!
//! All arithmetic is `+ - * /` and `sqrt`, so that a plan has the same points on every machine.

use super::quantity::QuantityKind;
use super::settings::SampleMethod;
use clearway_units::{Purpose, RandomStream, Value, mix64};

/// Range of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Range {
    /// Equally likely values.
    Choices(Vec<Value>),
    /// A quantity between two ends, both included.
    Between {
        /// Kind of the quantity.
        kind: QuantityKind,
        /// The lower end in base units.
        from: f64,
        /// The upper end in base units.
        to: f64,
        /// True if equal ratios are equally likely, instead of equal differences.
        log: bool,
    },
}

impl Range {
    /// The value at `part` of the range, from 0 to below 1.
    pub(crate) fn at(&self, part: f64) -> Value {
        match self {
            Self::Choices(values) => {
                let place = (part * values.len() as f64) as usize;
                values[place.min(values.len() - 1)].clone()
            }
            Self::Between {
                kind,
                from,
                to,
                log,
            } => {
                // Whole values are equally likely, including the last one.
                let end = match kind {
                    QuantityKind::Number => *to,
                    _ => to + 1.0,
                };
                let number = match log {
                    true => from * power(end / from, part),
                    false => from + (end - from) * part,
                };
                kind.value(number.clamp(*from, *to))
            }
        }
    }
}

/// `base` to the power of `part`, with `part` from 0 to below 1.
fn power(base: f64, mut part: f64) -> f64 {
    let (mut root, mut product) = (base, 1.0);
    // `part` has 53 bits; its highest bit stands for the square root.
    for _ in 0..53 {
        root = root.sqrt();
        part *= 2.0;
        if part >= 1.0 {
            product *= root;
            part -= 1.0;
        }
    }
    product
}

/// Draws `points` points; each has a value of each of `ranges`. The values of a key do not depend on the other keys.
pub(crate) fn draw(
    (method, points, seed): (SampleMethod, u32, u64),
    ranges: &[(String, Range)],
) -> Vec<Vec<Value>> {
    let mut drawn = vec![Vec::with_capacity(ranges.len()); points as usize];
    for (key, range) in ranges {
        let entity = key
            .bytes()
            .fold(0, |hash, byte| mix64(hash ^ u64::from(byte)));
        let mut random = RandomStream::new(seed, Purpose::Sampling, entity);
        let mut strata: Vec<u32> = (0..points).collect();
        random.shuffle(&mut strata);
        for (values, stratum) in drawn.iter_mut().zip(strata) {
            let within = random.unit();
            let part = match method {
                SampleMethod::Random => within,
                SampleMethod::LatinHypercube => (f64::from(stratum) + within) / f64::from(points),
            };
            // Rounding may raise the last part of the last stratum to 1.
            values.push(range.at(part.min(1.0 - f64::EPSILON)));
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::super::quantity::quantity;
    use super::*;

    fn delays(log: bool) -> Range {
        Range::Between {
            kind: QuantityKind::Span,
            from: 5e6,
            to: 50e6,
            log,
        }
    }

    fn numbers(points: &[Vec<Value>], place: usize) -> Vec<f64> {
        let numbers = points
            .iter()
            .map(|point| quantity(&point[place]).unwrap().1);
        numbers.collect()
    }

    /// Number of values in each of `count` strata of a range.
    fn strata(values: &[f64], count: u32, part_of: impl Fn(f64) -> f64) -> Vec<u32> {
        let mut filled = vec![0; count as usize];
        for value in values {
            filled[(part_of(*value) * f64::from(count)) as usize] += 1;
        }
        filled
    }

    #[test]
    fn a_latin_hypercube_has_one_point_in_each_stratum_of_each_range() {
        let ranges = [
            ("linear".to_owned(), delays(false)),
            ("log".to_owned(), delays(true)),
            (
                "choice".to_owned(),
                Range::Choices((0..4).map(Value::Integer).collect()),
            ),
        ];
        for seed in 1..20 {
            let points = draw((SampleMethod::LatinHypercube, 40, seed), &ranges);
            let linear = strata(&numbers(&points, 0), 40, |ps| (ps - 5e6) / (45e6 + 1.0));
            assert_eq!(linear, [1; 40], "seed {seed}");
            let log = strata(&numbers(&points, 1), 40, |ps| (ps / 5e6).log(10.0));
            assert_eq!(log, [1; 40], "seed {seed}");
            let choices = strata(&numbers(&points, 2), 4, |choice| choice / 4.0);
            assert_eq!(choices, [10; 4], "seed {seed}");
        }
    }

    #[test]
    fn ranges_do_not_depend_on_each_other() {
        let both = [
            ("a".to_owned(), delays(false)),
            ("b".to_owned(), delays(false)),
        ];
        let method = (SampleMethod::LatinHypercube, 16, 3);
        let (two, one) = (draw(method, &both), draw(method, &both[1..]));
        assert_eq!(numbers(&two, 1), numbers(&one, 0));
        assert_ne!(numbers(&two, 0), numbers(&two, 1));
    }

    #[test]
    fn random_points_stay_within_their_range_and_differ_by_seed() {
        let ranges = [("x".to_owned(), delays(true))];
        let one = draw((SampleMethod::Random, 500, 1), &ranges);
        assert!(numbers(&one, 0).iter().all(|ps| (5e6..=50e6).contains(ps)));
        assert_ne!(one, draw((SampleMethod::Random, 500, 2), &ranges));
        // Half of the points lie below the geometric mean; 5 sigma are 56.
        let below = numbers(&one, 0).iter().filter(|ps| **ps < 15.81e6).count();
        assert!(below.abs_diff(250) < 56, "{below}");
    }

    #[test]
    fn whole_numbers_reach_both_ends() {
        let range = Range::Between {
            kind: QuantityKind::Whole,
            from: 1.0,
            to: 4.0,
            log: false,
        };
        let mut drawn = draw((SampleMethod::Random, 200, 1), &[("n".to_owned(), range)]);
        drawn.sort_by_key(|point| point[0].to_string());
        drawn.dedup();
        let values: Vec<i64> = (1..=4).collect();
        let expected: Vec<Vec<Value>> = values.iter().map(|&n| vec![Value::Integer(n)]).collect();
        assert_eq!(drawn, expected);
    }
}
