//! The samples that pages can see: a bounded number for any length of run.
//!
//! When there are too many samples, neighbours are merged, and later samples must be longer to count. Samples are numbered within an
//! *epoch*, which ends with a merge: a page that knows an earlier epoch gets all samples again.

use clearway_report::{Metric, SeriesRow, Subject};
use clearway_report_html as page;
use clearway_units::{Span, Time};
use serde::ser::{Serialize, SerializeTuple as _, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of samples.
pub(super) const LIMIT: usize = 1000;

type Key = (Metric, Subject);

/// All values of one interval.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    end: Time,
    length: Span,
    /// Values by curve number.
    values: BTreeMap<u32, f64>,
}

/// Format: `[end in µs, length in µs, [[curve, value], …]]`.
impl Serialize for Sample {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values: Vec<(u32, f64)> = self.values.iter().map(|(&c, &v)| (c, v)).collect();
        let mut tuple = serializer.serialize_tuple(3)?;
        tuple.serialize_element(&self.end.as_us())?;
        tuple.serialize_element(&self.length.as_us())?;
        tuple.serialize_element(&values)?;
        tuple.end()
    }
}

/// The samples so far.
#[derive(Debug, Default)]
pub(super) struct History {
    epoch: u32,
    /// Metric and subject of each curve, in the form that the page reads.
    names: Arc<Vec<(&'static str, String)>>,
    keys: Vec<Key>,
    numbers: BTreeMap<Key, u32>,
    samples: Vec<Arc<Sample>>,
    /// Shortest length of a sample. A shorter one waits for its successors.
    shortest: Span,
    open: Option<Sample>,
}

/// Data that a page lacks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PageUpdate {
    pub(super) epoch: u32,
    pub(super) curves: Arc<Vec<(&'static str, String)>>,
    /// Number of the first sample in `samples`.
    pub(super) from: usize,
    pub(super) samples: Vec<Arc<Sample>>,
}

impl History {
    /// Adds the rows of one instant. `name` gives the name of a subject.
    pub(super) fn add(&mut self, rows: &[SeriesRow], name: &dyn Fn(Subject) -> String) {
        let Some(SeriesRow { time, interval, .. }) = rows.first() else {
            return;
        };
        let mut sample = Sample {
            end: *time,
            length: *interval,
            values: BTreeMap::new(),
        };
        for row in rows.iter().filter(|row| page::is_drawn_live(row.metric)) {
            let number = self.number((row.metric, row.subject), name);
            sample.values.insert(number, row.value);
        }
        let sample = match self.open.take() {
            Some(open) => merged(&open, &sample, &self.keys),
            None => sample,
        };
        if sample.length < self.shortest {
            self.open = Some(sample);
        } else {
            self.push(sample);
        }
    }

    /// Adds the last sample, however short it is.
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.push(open);
        }
    }

    /// Data that a page with `count` samples of `epoch` lacks.
    pub(super) fn since(&self, epoch: u32, count: usize) -> PageUpdate {
        let known = epoch == self.epoch && count <= self.samples.len();
        let from = if known { count } else { 0 };
        PageUpdate {
            epoch: self.epoch,
            curves: Arc::clone(&self.names),
            from,
            samples: self.samples[from..].to_vec(),
        }
    }

    fn number(&mut self, key: Key, name: &dyn Fn(Subject) -> String) -> u32 {
        let (keys, names) = (&mut self.keys, &mut self.names);
        *self.numbers.entry(key).or_insert_with(|| {
            keys.push(key);
            Arc::make_mut(names).push((key.0.name(), name(key.1)));
            keys.len() as u32 - 1
        })
    }

    fn push(&mut self, sample: Sample) {
        self.samples.push(Arc::new(sample));
        if self.samples.len() >= LIMIT {
            self.halve();
        }
    }

    /// Merges neighbours, and drops links that are missing in the latest sample.
    fn halve(&mut self) {
        let keys = &self.keys;
        let latest = self.samples.last().map(Arc::clone);
        let mut halved: Vec<Sample> = self
            .samples
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => merged(a, b, keys),
                _ => Sample::clone(&pair[0]),
            })
            .collect();
        if let Some(latest) = latest {
            let lasting = |curve: u32| {
                !matches!(keys[curve as usize].1, Subject::Link(_))
                    || latest.values.contains_key(&curve)
            };
            halved
                .iter_mut()
                .for_each(|sample| sample.values.retain(|&curve, _| lasting(curve)));
            // The mean length of the remaining samples.
            self.shortest = Span::from_ps(latest.end.as_ps() / halved.len() as u64);
        }
        self.samples = halved.into_iter().map(Arc::new).collect();
        self.renumber();
        self.epoch += 1;
    }

    /// Renumbers the remaining curves.
    fn renumber(&mut self) {
        let mut used = vec![false; self.keys.len()];
        for curve in self.samples.iter().flat_map(|sample| sample.values.keys()) {
            used[*curve as usize] = true;
        }
        let mut number = 0;
        let numbers: Vec<u32> = used
            .iter()
            .map(|used| {
                number += u32::from(*used);
                number.saturating_sub(1)
            })
            .collect();
        for sample in &mut self.samples {
            let sample = Arc::make_mut(sample);
            let values = std::mem::take(&mut sample.values).into_iter();
            sample.values = values
                .map(|(curve, value)| (numbers[curve as usize], value))
                .collect();
        }
        let mut kept = used.iter();
        self.keys.retain(|_| *kept.next().unwrap_or(&false));
        let mut kept = used.iter();
        Arc::make_mut(&mut self.names).retain(|_| *kept.next().unwrap_or(&false));
        self.numbers = self.keys.iter().copied().zip(0..).collect();
    }
}

/// Merges two neighbours.
fn merged(a: &Sample, b: &Sample, keys: &[Key]) -> Sample {
    let lengths = [a.length, b.length].map(|span| span.as_ps() as f64);
    let mut values = a.values.clone();
    for (&curve, &later) in &b.values {
        let value = values.entry(curve).or_insert(f64::NAN);
        let both = [*value, later].into_iter().zip(lengths);
        *value = keys[curve as usize].0.merge().fold(both);
    }
    Sample {
        end: b.end,
        length: a.length + b.length,
        values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(us: u64, metric: Metric, subject: Subject, value: f64) -> SeriesRow {
        SeriesRow {
            time: Time::from_us(us),
            interval: Span::from_us(1),
            metric,
            subject,
            value,
        }
    }

    fn name(subject: Subject) -> String {
        format!("{subject:?}")
    }

    /// Samples of 1 µs up to `end`, in which link 0 is followed up to 10 µs and link 1 from then on.
    fn history(end: u64) -> History {
        let mut history = History::default();
        for us in 1..=end {
            let link = Subject::Link(u32::from(us > 10));
            let rows = [
                row(us, Metric::QueuePeak, link, us as f64),
                row(us, Metric::Goodput, Subject::Run, us as f64),
                row(us, Metric::Marks, Subject::Run, 1.0),
                row(us, Metric::CompletedFlows, Subject::Run, us as f64),
                row(us, Metric::Window, Subject::Flow(0), 1.0),
            ];
            history.add(&rows, &name);
        }
        history
    }

    fn curve(news: &PageUpdate, metric: Metric, subject: Subject) -> Vec<f64> {
        let name = (metric.name(), name(subject));
        let number = news.curves.iter().position(|curve| *curve == name);
        let Some(number) = number else {
            return Vec::new();
        };
        let number = number as u32;
        let samples = news.samples.iter();
        samples
            .filter_map(|sample| sample.values.get(&number).copied())
            .collect()
    }

    #[test]
    fn a_page_gets_what_it_does_not_have() {
        let mut history = history(12);
        let all = history.since(9, 5);
        assert_eq!((all.epoch, all.from, all.samples.len()), (0, 0, 12));
        assert_eq!(curve(&all, Metric::QueuePeak, Subject::Link(0)).len(), 10);
        assert_eq!(
            curve(&all, Metric::QueuePeak, Subject::Link(1)),
            [11.0, 12.0]
        );
        let window = ("window_bytes", name(Subject::Flow(0)));
        assert!(!all.curves.contains(&window), "not drawn, not kept");
        let rest = history.since(0, 10);
        assert_eq!((rest.from, rest.samples.len()), (10, 2));
        assert_eq!(rest.samples, all.samples[10..]);
        assert!(history.since(0, 12).samples.is_empty());
        assert_eq!(history.since(0, 13).from, 0, "a count that cannot be");
        history.add(&[], &name);
        history.close();
        assert_eq!(history.samples.len(), 12);
    }

    #[test]
    fn a_long_run_is_coarsened_and_loses_nothing_but_detail() {
        let end = 100_000;
        let mut history = history(end);
        history.close();
        let news = history.since(0, 0);
        assert!((LIMIT / 2 - 1..LIMIT).contains(&news.samples.len()));
        assert!(news.epoch > 3);
        let whole: Span = news
            .samples
            .iter()
            .fold(Span::ZERO, |sum, one| sum + one.length);
        assert_eq!(whole, Span::from_us(end), "intervals follow each other");
        let longest = news.samples.iter().map(|sample| sample.length).max();
        assert!(
            longest < Some(Span::from_us(5 * end / LIMIT as u64)),
            "{longest:?}"
        );
        let marks = curve(&news, Metric::Marks, Subject::Run);
        assert_eq!(marks.iter().sum::<f64>(), end as f64);
        let completed = curve(&news, Metric::CompletedFlows, Subject::Run);
        assert_eq!(completed.last(), Some(&(end as f64)));
        let goodput = curve(&news, Metric::Goodput, Subject::Run);
        let lengths = news.samples.iter().map(|sample| sample.length.as_us());
        let sum: f64 = goodput
            .iter()
            .zip(lengths)
            .map(|(rate, length)| rate * length)
            .sum();
        let exact = (end * (end + 1) / 2) as f64;
        assert!((sum / exact - 1.0).abs() < 1e-9, "{sum} of {exact}");
        let peaks = curve(&news, Metric::QueuePeak, Subject::Link(1));
        assert_eq!(peaks.last(), Some(&(end as f64)));
        let gone = curve(&news, Metric::QueuePeak, Subject::Link(0));
        assert!(gone.is_empty(), "nobody has followed it for long");
        assert_eq!(news.curves.len(), 4);
    }

    #[test]
    fn every_metric_is_merged_by_its_rule() {
        let mut history = History::default();
        let values = [5.0, 2.0];
        for (us, value) in (1..).zip(values) {
            let rows = Metric::ALL.iter();
            let rows: Vec<SeriesRow> = rows
                .map(|&metric| row(us, metric, Subject::Run, value))
                .collect();
            history.add(&rows, &name);
        }
        history.halve();
        let news = history.since(9, 0);
        for &metric in Metric::ALL {
            let merged = curve(&news, metric, Subject::Run);
            let expected = metric.merge().fold(values.into_iter().zip([1.0, 1.0]));
            let drawn = page::is_drawn_live(metric);
            assert_eq!(
                merged,
                Vec::from_iter(drawn.then_some(expected)),
                "{metric:?}"
            );
        }
    }

    #[test]
    fn samples_are_told_as_lists_of_numbers() {
        let news = history(1).since(0, 0);
        let json = serde_json::to_string(&*news.samples[0]).unwrap();
        assert_eq!(json, "[1.0,1.0,[[0,1.0],[1,1.0],[2,1.0],[3,1.0]]]");
    }
}
