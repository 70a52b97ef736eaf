//! The spread over seeds, which decides whether a few runs show on which side of a bound a quantity is.

use super::definition::OverSeeds;
use super::expression::Relation;
use clearway_statistics::{deviation, student_t};

/// Degrees of freedom from which Student's t is approximated by the normal distribution.
const MANY: usize = 30;

/// Quantile of the normal distribution.
const NORMAL: f64 = 1.96;

/// Standard error of a median as a multiple of the mean's standard error: the square root of half pi.
const OF_MEDIAN: f64 = 1.2533;

/// Half of the 95 % confidence interval of the median of `values`, from their standard deviation; `None` for a single value, because its
/// spread is unknown.
pub(crate) fn margin(values: &[f64]) -> Option<f64> {
    let deviation = deviation(values)?;
    let freedom = values.len() - 1;
    let quantile = match freedom < MANY {
        // Three decimals, as in printed tables, because recorded verdicts depend on them.
        true => (student_t(0.95, freedom as u64) * 1000.0).round() / 1000.0,
        false => NORMAL,
    };
    Some(quantile * OF_MEDIAN * deviation / (values.len() as f64).sqrt())
}

/// Number of seeds from which a claim about the smallest or largest value of all seeds counts as sure.
const ENOUGH: usize = 10;

/// True if the spread suggests the same outcome for other seeds: each bound on which the outcome depends is farther away than the [margin]
/// of the distances to it. One seed does not show a spread, so its outcome counts as sure. A claim about the smallest or largest value of
/// all seeds needs [`ENOUGH`] seeds, unless a seed has broken a rule for all seeds.
pub(crate) fn is_sure(
    relation: Relation,
    over: OverSeeds,
    per_seed: &[f64],
    bounds_per_seed: &[Vec<f64>],
) -> bool {
    let measured = over.combine(per_seed);
    if over != OverSeeds::Median {
        let bounds: Vec<f64> = bounds_per_seed
            .iter()
            .map(|bound| over.combine(bound))
            .collect();
        let about_all = matches!(
            (over, relation),
            (OverSeeds::Min, Relation::AtLeast | Relation::Above)
                | (OverSeeds::Max, Relation::AtMost | Relation::Below)
        );
        // Another seed can break a rule for all seeds, but never repair it.
        let is_final = about_all && !relation.holds(measured, &bounds);
        return is_final || per_seed.len() == 1 || per_seed.len() >= ENOUGH;
    }
    let sides = bounds_per_seed.iter().enumerate().map(|(side, bounds)| {
        let differences: Vec<f64> = per_seed.iter().zip(bounds).map(|(a, b)| a - b).collect();
        let distance = measured - over.combine(bounds);
        let violated = match (relation, side) {
            (Relation::Within, 0) => distance < 0.0,
            (Relation::Within, _) => distance > 0.0,
            _ => false,
        };
        let clear =
            margin(&differences).is_none_or(|margin| margin <= 0.0 || distance.abs() > margin);
        (violated, clear || distance.is_nan())
    });
    let sides: Vec<(bool, bool)> = sides.collect();
    // If a value violates one end of an interval, the outcome does not depend on the other end.
    match sides.iter().find(|(violated, _)| *violated) {
        Some((_, clear)) => *clear,
        None => sides.iter().all(|(_, clear)| *clear),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_follow_student() {
        assert_eq!(margin(&[1.0]), None);
        assert_eq!(margin(&[]), None);
        assert_eq!(margin(&[2.0; 5]), Some(0.0));
        // Deviation 1, three values: 4.303 · 1.2533 / √3.
        let three = margin(&[1.0, 2.0, 3.0]).unwrap();
        assert!((three - 3.1137).abs() < 1e-3, "{three}");
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        let expected = 1.96 * 1.2533 * (1000.0f64 * 1001.0 / 12.0).sqrt() / 1000.0f64.sqrt();
        assert!((margin(&many).unwrap() - expected).abs() < 1e-6);
    }

    #[test]
    fn a_bound_within_the_spread_leaves_it_open() {
        let sure = |relation, values: &[f64], bounds: &[f64]| {
            let each: Vec<Vec<f64>> = bounds
                .iter()
                .map(|bound| vec![*bound; values.len()])
                .collect();
            is_sure(relation, OverSeeds::Median, values, &each)
        };
        let near = [0.906, 0.938, 0.812];
        assert!(!sure(Relation::AtLeast, &near, &[0.85]));
        assert!(!sure(Relation::AtLeast, &near, &[0.95]));
        assert!(sure(Relation::AtLeast, &near, &[0.5]));
        assert!(sure(Relation::AtLeast, &near, &[1.5]));
        // Between two bounds, both count; outside the interval, only the violated bound counts.
        assert!(sure(Relation::Within, &near, &[0.5, 1.5]));
        assert!(!sure(Relation::Within, &near, &[0.5, 1.0]));
        assert!(sure(Relation::Within, &near, &[1.5, 1.51]));
        // Without spread, or with an unknown spread.
        assert!(sure(Relation::AtMost, &[0.0; 3], &[0.0]));
        assert!(sure(Relation::AtMost, &[0.1], &[0.0]));
        // Sure: a smallest value that breaks a rule stays broken with more seeds.
        let bounds = [vec![0.85; 3]];
        assert!(is_sure(Relation::AtLeast, OverSeeds::Min, &near, &bounds));
        // Three seeds that keep a rule for all seeds do not prove that other seeds will.
        let low = [vec![0.8; 3]];
        assert!(!is_sure(Relation::AtLeast, OverSeeds::Min, &near, &low));
        let (ten, low) = ([0.9; 10], [vec![0.8; 10]]);
        assert!(is_sure(Relation::AtLeast, OverSeeds::Min, &ten, &low));
    }

    #[test]
    fn what_varies_together_is_compared_seed_by_seed() {
        let (ours, theirs) = ([10.0, 20.0, 30.0], vec![10.5, 20.6, 30.4]);
        assert!(is_sure(
            Relation::Below,
            OverSeeds::Median,
            &ours,
            &[theirs]
        ));
    }
}
