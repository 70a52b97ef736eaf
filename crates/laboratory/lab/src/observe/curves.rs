//! Curves of bounded length with common instants.

use clearway_results::{Curve, Metric, SeriesRow, Subject};
use clearway_units::{Span, Time};
use std::collections::BTreeMap;

/// Curves over the same instants, at most `limit` instants.
#[derive(Debug)]
pub(super) struct Curves {
    limit: usize,
    times: Vec<Time>,
    /// Values of each curve, from the first instant to the last instant with a value.
    curves: BTreeMap<(Metric, Subject), Vec<f64>>,
}

impl Curves {
    pub(super) fn new(limit: usize) -> Self {
        assert!(limit >= 2, "two instants become one");
        Self {
            limit,
            times: Vec::new(),
            curves: BTreeMap::new(),
        }
    }

    /// Adds an instant with its rows. True if the curves were then full, so that neighbours were merged.
    pub(super) fn add(&mut self, time: Time, rows: &[SeriesRow]) -> bool {
        let before = self.times.len();
        self.times.push(time);
        for row in rows {
            let values = self.curves.entry((row.metric, row.subject)).or_default();
            values.resize(before, f64::NAN);
            values.push(row.value);
        }
        let full = self.times.len() >= self.limit;
        if full {
            self.coarsen();
        }
        full
    }

    /// Removes all curves of a subject.
    pub(super) fn forget(&mut self, subject: Subject) {
        self.curves.retain(|(_, of), _| *of != subject);
    }

    /// Number of instants.
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// Merges neighbouring instants.
    pub(super) fn coarsen(&mut self) {
        let starts = std::iter::once(Time::ZERO).chain(self.times.iter().copied());
        let spans: Vec<Span> = starts
            .zip(&self.times)
            .map(|(start, &end)| end.since(start))
            .collect();
        for ((metric, _), values) in &mut self.curves {
            values.resize(spans.len(), f64::NAN);
            let pairs = values.chunks(2).zip(spans.chunks(2));
            let merged = pairs.map(|(values, spans)| {
                let lengths = spans.iter().map(|span| span.as_ps() as f64);
                metric.merge().fold(values.iter().copied().zip(lengths))
            });
            *values = merged.collect();
        }
        self.times = self
            .times
            .chunks(2)
            .map(|pair| pair[pair.len() - 1])
            .collect();
    }

    /// The instants, and the curves ordered by metric and subject.
    pub(super) fn into_parts(self) -> (Vec<Time>, Vec<Curve>) {
        let length = self.times.len();
        let curves = self
            .curves
            .into_iter()
            .map(|((metric, subject), mut values)| {
                values.resize(length, f64::NAN);
                Curve {
                    metric,
                    subject,
                    values,
                }
            });
        (self.times, curves.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_merged_by_its_rule() {
        let (times, values) = ([1, 4].map(Time::from_us), [5.0, 2.0]);
        let mut curves = Curves::new(2);
        for (end, value) in times.into_iter().zip(values) {
            let row = |&metric: &Metric| SeriesRow {
                time: end,
                interval: Span::from_us(1),
                metric,
                subject: Subject::Run,
                value,
            };
            let rows: Vec<SeriesRow> = Metric::ALL.iter().map(row).collect();
            curves.add(end, &rows);
        }
        let (merged_times, merged) = curves.into_parts();
        assert_eq!(merged_times, [Time::from_us(4)]);
        assert_eq!(merged.len(), Metric::ALL.len());
        for Curve {
            metric,
            values: merged,
            ..
        } in merged
        {
            let expected = metric.merge().fold(values.into_iter().zip([1.0, 3.0]));
            assert_eq!(merged, [expected], "{metric:?}");
        }
    }
}
