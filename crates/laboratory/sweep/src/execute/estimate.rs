//! Estimates of time and memory of runs, from finished runs of the nearest points.
//!
//! The distance of two points is a sum over the axes: for quantities the difference as a share of the axis, for other values 0 or 1. Only
//! the finished runs at the smallest distance count: time is their mean, memory their maximum.

use crate::plan::quantities;
use crate::points::Sweep;
use clearway_lab::Laboratory;
use clearway_report::Summary;
use clearway_units::Value;

/// Safety factor on the memory of similar runs.
const MARGIN: f64 = 1.25;
/// Assumed memory of a run that is not large, without similar runs.
const UNKNOWN: u64 = 512 << 20;
/// Number of hosts from which a scenario is large.
const MANY_HOSTS: i64 = 2048;

/// Time and memory of a finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spent {
    pub(super) wall_seconds: f64,
    pub(super) peak_rss_bytes: u64,
}

impl Spent {
    pub(super) fn from_summary(summary: &Summary) -> Self {
        Self {
            wall_seconds: summary.wall_seconds,
            peak_rss_bytes: summary.peak_rss_bytes,
        }
    }
}

/// Facts about runs similar to a run.
#[derive(Debug, Clone, Copy)]
struct Nearest {
    distance: f64,
    count: u32,
    wall_seconds: f64,
    peak_rss_bytes: u64,
}

/// Estimates of all runs of a sweep.
#[derive(Debug)]
pub(super) struct Estimates {
    /// Place of each run on each axis.
    places: Vec<Vec<u32>>,
    /// Positions of each axis's values between 0 and 1, if all values are quantities.
    axes: Vec<Option<Vec<f64>>>,
    nearest: Vec<Option<Nearest>>,
    knows_any: bool,
}

impl Estimates {
    pub(super) fn new(sweep: &Sweep) -> Self {
        let axes = sweep.axes.iter().map(|axis| scale(&axis.values));
        let places = sweep.runs.iter().map(|run| run.place.clone());
        Self::from_places(places.collect(), axes.collect())
    }

    fn from_places(places: Vec<Vec<u32>>, axes: Vec<Option<Vec<f64>>>) -> Self {
        Self {
            nearest: vec![None; places.len()],
            places,
            axes,
            knows_any: false,
        }
    }

    /// Learns from a finished run.
    pub(super) fn learn(&mut self, at: usize, spent: Spent) {
        self.knows_any = true;
        for other in 0..self.places.len() {
            let distance = self.distance(at, other);
            let own = Nearest {
                distance,
                count: 1,
                wall_seconds: spent.wall_seconds,
                peak_rss_bytes: spent.peak_rss_bytes,
            };
            self.nearest[other] = Some(match self.nearest[other] {
                Some(known) if known.distance < distance => known,
                Some(known) if known.distance == distance => Nearest {
                    distance,
                    count: known.count + 1,
                    wall_seconds: known.wall_seconds + spent.wall_seconds,
                    peak_rss_bytes: known.peak_rss_bytes.max(spent.peak_rss_bytes),
                },
                _ => own,
            });
        }
    }

    fn distance(&self, one: usize, other: usize) -> f64 {
        let places = self.places[one].iter().zip(&self.places[other]);
        let along = self
            .axes
            .iter()
            .zip(places)
            .map(|(axis, (&one, &other))| match axis {
                Some(scale) => (scale[one as usize] - scale[other as usize]).abs(),
                None => f64::from(u8::from(one != other)),
            });
        along.sum()
    }

    pub(super) fn knows_any(&self) -> bool {
        self.knows_any
    }

    /// Expected memory of a run in bytes.
    pub(super) fn memory(&self, at: usize) -> u64 {
        // Zero means that the system does not report memory.
        let known = self.nearest[at].filter(|nearest| nearest.peak_rss_bytes > 0);
        known.map_or(UNKNOWN, |nearest| {
            (nearest.peak_rss_bytes as f64 * MARGIN) as u64
        })
    }

    /// True if a scenario is large, or its size is unknown.
    pub(super) fn is_large(&self, sweep: &Sweep, laboratory: &Laboratory, at: usize) -> bool {
        let Ok(experiment) = sweep.experiment(laboratory, &sweep.runs[at]) else {
            return false;
        };
        let settings = experiment.settings();
        let sizes = ["topology.hosts", "topology.gpus"];
        let size = settings
            .iter()
            .find(|setting| sizes.contains(&setting.path().as_str()));
        match size.map(|setting| &setting.value) {
            Some(Value::Integer(hosts)) => *hosts >= MANY_HOSTS,
            _ => true,
        }
    }

    fn seconds(&self, at: usize) -> Option<f64> {
        let nearest = self.nearest[at]?;
        Some(nearest.wall_seconds / f64::from(nearest.count))
    }

    /// Wall seconds until the `open` and the `running` runs are done, with `at_once` concurrent runs.
    pub(super) fn time_left(
        &self,
        open: impl Iterator<Item = usize>,
        running: &[(usize, f64)],
        at_once: usize,
    ) -> Option<f64> {
        if !self.knows_any {
            return None;
        }
        let open = open.map(|at| self.seconds(at));
        let under_way = running.iter().map(|(at, elapsed)| {
            // A run that takes longer than expected does not end immediately.
            self.seconds(*at)
                .map(|seconds| (seconds - elapsed).max(0.1 * elapsed))
        });
        let all: Vec<f64> = open.chain(under_way).collect::<Option<_>>()?;
        let sum: f64 = all.iter().sum();
        let longest = all.iter().copied().fold(0.0, f64::max);
        Some(longest.max(sum / at_once.max(1) as f64))
    }
}

/// Position of each value between the smallest and the largest, on a logarithmic scale if they span more than one order of magnitude.
fn scale(values: &[Value]) -> Option<Vec<f64>> {
    let (_, numbers) = quantities(values.iter())?;
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log = least > 0.0 && most / least > 10.0;
    let on = |number: f64| if log { number.log2() } else { number };
    let (least, most) = (on(least), on(most));
    let width = if most > least { most - least } else { 1.0 };
    Some(
        numbers
            .iter()
            .map(|&number| (on(number) - least) / width)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(wall_seconds: f64, mb: u64) -> Spent {
        Spent {
            wall_seconds,
            peak_rss_bytes: mb << 20,
        }
    }

    /// Two controllers by four sizes from 1 KB to 1 MB.
    fn estimates() -> Estimates {
        let places = (0..8).map(|at| vec![at / 4, at % 4]);
        let sizes = ["1KB", "10KB", "100KB", "1MB"].map(|size| Value::Text(size.into()));
        Estimates::from_places(places.collect(), vec![None, scale(&sizes)])
    }

    #[test]
    fn the_nearest_points_tell_time_and_memory() {
        let mut estimates = estimates();
        assert_eq!(estimates.memory(0), UNKNOWN);
        assert_eq!(estimates.time_left([0].into_iter(), &[], 2), None);
        estimates.learn(0, spent(1.0, 100));
        estimates.learn(3, spent(9.0, 800));
        assert_eq!(estimates.memory(1), 125 << 20);
        assert_eq!(estimates.memory(2), 1000 << 20);
        assert_eq!(
            estimates.memory(7),
            1000 << 20,
            "of the other controller, too"
        );
        // A run of the same point with another seed.
        estimates.learn(3, spent(11.0, 400));
        assert_eq!(estimates.seconds(3), Some(10.0));
        assert_eq!(estimates.memory(3), 1000 << 20);
    }

    #[test]
    fn the_time_left_counts_what_runs_at_once() {
        let mut estimates = estimates();
        estimates.learn(0, spent(2.0, 1));
        let left = |open: &[usize], running: &[(usize, f64)], at_once| {
            estimates
                .time_left(open.iter().copied(), running, at_once)
                .unwrap()
        };
        assert_eq!(left(&[1, 2, 3, 4], &[], 2), 4.0);
        assert_eq!(left(&[1, 2], &[(3, 0.5), (4, 1.5)], 2), 3.0);
        assert_eq!(left(&[1], &[], 8), 2.0, "one run is not divided");
        let late = left(&[], &[(1, 20.0)], 2);
        assert!((late - 2.0).abs() < 1e-9, "{late}");
    }
}
