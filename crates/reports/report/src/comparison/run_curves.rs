//! Curves over time that a comparison shows: a few of each run.

use crate::observed::{Metric, RunObservations, Subject};
use crate::parquet_file::ReadTableError;
use crate::series::read_series;
use clearway_units::Time;
use std::path::Path;

/// Metrics that are followed over time. [`Metric::QueuePeak`] belongs to the longest queue among the sampled ones; the others belong to
/// the whole run.
pub const METRICS: [Metric; 8] = [
    Metric::Goodput,
    Metric::QueuePeak,
    Metric::Fairness,
    Metric::RateFairness,
    Metric::CompletedFlows,
    Metric::Marks,
    Metric::Drops,
    Metric::PausedLinks,
];

/// One metric of a run over time.
#[derive(Debug, Clone, PartialEq)]
pub struct RunCurve {
    /// Metric of the curve: an element of [`METRICS`].
    pub metric: Metric,
    /// The ends of the intervals, increasing.
    pub times: Vec<Time>,
    /// Value of each interval; NaN if there is none.
    pub values: Vec<f64>,
}

impl RunCurve {
    fn new(metric: Metric) -> Self {
        Self {
            metric,
            times: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds a value. Several values of one instant come from several subjects: the greatest counts.
    fn add(&mut self, time: Time, value: f64) {
        match (self.times.last(), self.values.last_mut()) {
            (Some(&last), Some(known)) if last == time => *known = known.max(value),
            // Times in a damaged file may decrease, but times of a curve must not.
            (Some(&last), _) if last > time => {}
            _ => {
                self.times.push(time);
                self.values.push(value);
            }
        }
    }

    /// Curve up to an instant in microseconds, including the interval that contains it.
    pub fn until(&self, us: f64) -> Self {
        let before = self.times.partition_point(|time| time.as_us() < us);
        let count = self.times.len().min(before + 1);
        Self {
            metric: self.metric,
            times: self.times[..count].into(),
            values: self.values[..count].into(),
        }
    }

    /// The curves of a sampled run; curves without values are left out.
    pub fn from_observed(observed: &RunObservations) -> Vec<Self> {
        let run_curve = |metric| {
            let mut run_curve = Self::new(metric);
            for (place, &time) in observed.times.iter().enumerate() {
                for curve in observed
                    .curves_of(metric)
                    .filter(|curve| counts(metric, curve.subject == Subject::Run))
                {
                    run_curve.add(time, curve.values[place]);
                }
            }
            run_curve
        };
        with_values(METRICS.map(run_curve))
    }

    /// The curves of the run whose results are in `folder`; none if the run was not sampled.
    ///
    /// # Errors
    /// If there is a `series.parquet` that cannot be read.
    pub fn read(folder: &Path) -> Result<Vec<Self>, ReadTableError> {
        if !folder.join(crate::series::FILE_NAME).exists() {
            return Ok(Vec::new());
        }
        let mut run_curves = METRICS.map(Self::new);
        read_series(folder, |line| {
            let run_curve = run_curves
                .iter_mut()
                .find(|run_curve| run_curve.metric == line.metric);
            if let Some(run_curve) =
                run_curve.filter(|_| counts(line.metric, line.subject == "run"))
            {
                run_curve.add(line.time, line.value);
            }
        })?;
        Ok(with_values(run_curves))
    }
}

/// True if a curve of the metric is followed: for [`Metric::QueuePeak`] a curve of a part of the run, for any other metric the curve of the
/// whole run.
fn counts(metric: Metric, of_run: bool) -> bool {
    of_run != (metric == Metric::QueuePeak)
}

fn with_values(run_curves: [RunCurve; METRICS.len()]) -> Vec<RunCurve> {
    let some = |run_curve: &RunCurve| run_curve.values.iter().any(|value| value.is_finite());
    run_curves.into_iter().filter(some).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::{Curve, SeriesRow};
    use crate::record::ScenarioIdentity;
    use crate::series::{FILE_NAME, SeriesWriter};
    use clearway_testing::Folder;
    use clearway_units::Span;

    /// Two instants: goodput, the peaks of two queues, and metrics that are not followed.
    fn observed() -> RunObservations {
        let curve = |metric, subject, values: [f64; 2]| Curve {
            metric,
            subject,
            values: values.into(),
        };
        RunObservations {
            times: vec![Time::from_us(1), Time::from_us(3)],
            curves: vec![
                curve(Metric::QueuePeak, Subject::Link(0), [5.0, f64::NAN]),
                curve(Metric::QueuePeak, Subject::Link(1), [3.0, 9.0]),
                curve(Metric::FlowGoodput, Subject::Flow(0), [1.0, 1.0]),
                curve(Metric::Goodput, Subject::Run, [1e9, 2e9]),
                curve(Metric::Drops, Subject::Run, [f64::NAN, f64::NAN]),
            ],
            ..RunObservations::default()
        }
    }

    #[test]
    fn the_run_and_its_longest_queue_are_followed() {
        let times = vec![Time::from_us(1), Time::from_us(3)];
        let expected = |metric, values: [f64; 2]| RunCurve {
            metric,
            times: times.clone(),
            values: values.into(),
        };
        assert_eq!(
            RunCurve::from_observed(&observed()),
            [
                expected(Metric::Goodput, [1e9, 2e9]),
                expected(Metric::QueuePeak, [5.0, 9.0]),
            ]
        );
        assert_eq!(RunCurve::from_observed(&RunObservations::default()), []);
    }

    #[test]
    fn a_file_gives_the_same() {
        let observed = observed();
        let scenario = ScenarioIdentity {
            name: "x".into(),
            hash: "0123abcd".into(),
            seed: 1,
        };
        let name = |subject: Subject| {
            let link = |link: u32| ["a-b", "b-a"][link as usize].to_owned();
            subject.name(link, |node| format!("gpu{node}"))
        };
        let mut writer = SeriesWriter::new(Vec::new(), "1.0", "abc", &scenario).unwrap();
        for (place, &time) in observed.times.iter().enumerate() {
            let row = |curve: &Curve| SeriesRow {
                time,
                interval: Span::from_us(1),
                metric: curve.metric,
                subject: curve.subject,
                value: curve.values[place],
            };
            writer.add(observed.curves.iter().map(row), name).unwrap();
        }
        let folder = Folder::new("report-curves");
        assert_eq!(RunCurve::read(folder.path()).unwrap(), []);
        std::fs::write(folder.path().join(FILE_NAME), writer.finish().unwrap()).unwrap();
        assert_eq!(
            RunCurve::read(folder.path()).unwrap(),
            RunCurve::from_observed(&observed)
        );
        std::fs::write(folder.path().join(FILE_NAME), "nonsense").unwrap();
        assert!(RunCurve::read(folder.path()).is_err());
    }
}
