//! The perimeter of a unified circle (HotNets'22 §3, Fig 5): a common multiple of iteration times, in sectors of equal length.
//!
//! A period may be lengthened by a small share but never shortened, because a job can wait before its next iteration but cannot compute
//! faster. With a tolerance of 2 %, the perimeter is at most 51 times the longest period.

use clearway_units::Span;
use std::fmt;

/// Smallest number of sectors of an iteration; with fewer sectors, arcs would be meaningless.
const LEAST_SECTORS: u64 = 10;

/// A unified circle without its arcs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    /// The length of a sector.
    pub(super) tick: Span,
    /// Number of sectors (K).
    pub(super) sectors: u32,
    /// Number of times that each job repeats on the circle.
    pub(super) repeats: Vec<u32>,
}

/// Error of jobs that have no unified circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridError {
    /// The steps are too long for a job.
    TooCoarse {
        /// The job's index.
        job: usize,
        /// Iteration time of the job.
        period: Span,
        /// The step.
        grid: Span,
    },
    /// Iteration times are too different for a circle with the allowed number of sectors.
    NoCommonCircle {
        /// The job with the shortest iteration.
        job: usize,
        /// Shortest iteration time.
        shortest: Span,
        /// The longest iteration of the jobs with which it shares links, directly or through other jobs.
        longest: Span,
        /// Allowed number of sectors.
        sectors: u32,
    },
}

impl GridError {
    /// Index of the job that the error is about.
    pub fn job(&self) -> usize {
        match *self {
            Self::TooCoarse { job, .. } | Self::NoCommonCircle { job, .. } => job,
        }
    }
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooCoarse { period, grid, .. } => write!(
                f,
                "an iteration of {period} has fewer than {LEAST_SECTORS} steps of {grid}: set `grid` to {} or less",
                Span::from_ps((period.as_ps() / 100).max(1))
            ),
            Self::NoCommonCircle {
                shortest,
                longest,
                sectors,
                ..
            } => write!(
                f,
                "iterations of {shortest} and of {longest} have no common circle of at most {sectors} sectors: raise `tolerance`, or plan these jobs apart"
            ),
        }
    }
}

impl std::error::Error for GridError {}

/// The smallest circle on which all `periods` repeat a whole number of times, none lengthened by more than `tolerance`. If no circle of at
/// most `limit` sectors exists, the length of sectors is doubled until one does.
///
/// # Errors
/// If a period has fewer than ten sectors.
pub(super) fn common_circle(
    jobs: &[u32],
    periods: &[Span],
    tick: Span,
    tolerance: f64,
    limit: u32,
) -> Result<Grid, GridError> {
    let shortest = (0..periods.len()).min_by_key(|&at| periods[at]);
    let shortest = shortest.expect("a circle is of some jobs");
    let longest = periods.iter().copied().max().expect("as above");
    let steps = |tick: Span| periods[shortest].as_ps() / tick.as_ps();
    let job = jobs[shortest] as usize;
    if steps(tick) < LEAST_SECTORS {
        return Err(GridError::TooCoarse {
            job,
            period: periods[shortest],
            grid: tick,
        });
    }
    let mut different = periods.to_vec();
    different.sort_unstable();
    different.dedup();
    // Millionths are precise enough for a tolerance, and exact.
    let most = 1_000_000 + (tolerance * 1e6) as u64;
    let mut wider = tick;
    loop {
        if let Some(sectors) = smallest(&different, wider, most, limit) {
            let perimeter = u64::from(sectors) * wider.as_ps();
            let repeats = periods.iter().map(|period| perimeter / period.as_ps());
            return Ok(Grid {
                tick: wider,
                sectors,
                repeats: repeats.map(|count| count as u32).collect(),
            });
        }
        wider = wider * 2;
        if steps(wider) < LEAST_SECTORS {
            return Err(GridError::NoCommonCircle {
                job,
                shortest: periods[shortest],
                longest,
                sectors: limit,
            });
        }
    }
}

/// The fewest sectors, up to `limit`, that every period divides when lengthened to at most `most` millionths.
fn smallest(periods: &[Span], tick: Span, most: u64, limit: u32) -> Option<u32> {
    let longest = periods.last()?.as_ps();
    let fits = |perimeter: u64, period: u64| {
        let repeats = perimeter / period;
        u128::from(perimeter) * 1_000_000
            <= u128::from(repeats) * u128::from(period) * u128::from(most)
    };
    let first = u32::try_from(longest.div_ceil(tick.as_ps())).ok()?;
    (first..=limit).find(|&sectors| {
        // Checked, because a grid of hours and a limit of a hundred thousand are allowed.
        let perimeter = tick.as_ps().checked_mul(u64::from(sectors));
        perimeter.is_some_and(|all| periods.iter().all(|period| fits(all, period.as_ps())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_ms(1);

    fn circle(periods: &[u64], tolerance: f64) -> Result<Grid, GridError> {
        let periods: Vec<Span> = periods.iter().map(|&ms| Span::from_ms(ms)).collect();
        let jobs: Vec<u32> = (0..periods.len() as u32).collect();
        common_circle(&jobs, &periods, MS, tolerance, 100_000)
    }

    #[test]
    fn without_tolerance_it_is_the_least_common_multiple() {
        for (periods, lcm) in [
            (vec![40, 60], 120),
            (vec![255], 255),
            (vec![329, 329, 165], 329 * 165),
            (vec![12, 18, 20], 180),
        ] {
            let grid = circle(&periods, 0.0).expect("a circle");
            assert_eq!((grid.sectors, grid.tick), (lcm, MS), "{periods:?}");
            for (repeats, period) in grid.repeats.iter().zip(&periods) {
                assert_eq!(u64::from(*repeats) * period, u64::from(lcm));
            }
        }
    }

    #[test]
    fn a_tolerance_lengthens_and_keeps_the_circle_small() {
        // Table 1, group 5: ResNet50 repeats twice while the others repeat once.
        let grid = circle(&[329, 329, 165], 0.02).expect("a circle");
        assert_eq!((grid.sectors, grid.repeats), (330, vec![1, 1, 2]));
        // Group 2, whose two jobs differ by 1.8 %.
        let grid = circle(&[1001, 1019], 0.02).expect("a circle");
        assert_eq!((grid.sectors, grid.repeats), (1019, vec![1, 1]));
        // 1 % is not enough for these two, and they meet only after 37 turns of one.
        let grid = circle(&[1001, 1019], 0.01).expect("a circle");
        assert_eq!((grid.sectors, grid.repeats), (37_037, vec![37, 36]));
    }

    #[test]
    fn periods_off_the_grid_are_only_lengthened() {
        let periods = [Span::from_us(100_400), Span::from_us(33_500)];
        let grid = common_circle(&[0, 1], &periods, MS, 0.02, 100_000).expect("a circle");
        for (repeats, period) in grid.repeats.iter().zip(periods) {
            let lengthened = grid.tick * u64::from(grid.sectors) / u64::from(*repeats);
            assert!(lengthened >= period && lengthened.as_ps() * 50 <= period.as_ps() * 51);
        }
    }

    #[test]
    fn the_grid_widens_where_the_circle_would_have_too_many_sectors() {
        let grid = circle(&[9_973, 9_967], 0.0);
        assert!(matches!(grid, Err(GridError::NoCommonCircle { .. })));
        let grid = circle(&[60_000, 70_000], 0.0).expect("a circle");
        assert_eq!((grid.sectors, grid.tick), (52_500, MS * 8));
    }

    #[test]
    fn short_iterations_need_a_finer_grid() {
        let error = circle(&[100, 9], 0.02).expect_err("nine steps are too few");
        assert_eq!(
            error.to_string(),
            "an iteration of 9ms has fewer than 10 steps of 1ms: set `grid` to 90us or less"
        );
    }
}
