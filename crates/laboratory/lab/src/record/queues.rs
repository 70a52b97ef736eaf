//! Queue depths over time.

use super::Merge;
use super::series::{Bucket, Series};
use clearway_fabric::topology::LinkId;
use clearway_fabric::{Interests, Observer};
use clearway_units::{Rate, Span, Time};
use std::collections::BTreeMap;

/// A queue during one bucket of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueBucket {
    /// Longest queue in bytes.
    pub max: u64,
    /// Bytes times picoseconds: the mean over time, if divided by the width of the bucket.
    pub integral: u128,
}

impl Bucket for QueueBucket {
    fn absorb(&mut self, other: &Self) {
        self.max = self.max.max(other.max);
        self.integral += other.integral;
    }
}

/// A queue over time: exact maximum and time-weighted mean of each bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSeries {
    series: Series<QueueBucket>,
    since: Time,
    bytes: u64,
}

impl QueueSeries {
    fn new(width: Span, limit: usize) -> Self {
        Self {
            series: Series::new(width, limit),
            since: Time::ZERO,
            bytes: 0,
        }
    }

    /// Changes the queue from its former number of bytes to `bytes` at `now`.
    fn change(&mut self, now: Time, bytes: u64) {
        let mut from = self.since;
        while from < now {
            let held = self.bytes;
            // Access to the bucket may widen it, so its end is computed afterwards.
            self.series.at(from).max = self.series.at(from).max.max(held);
            let width = self.series.width().as_ps();
            let end = Time::from_ps((from.as_ps() / width + 1) * width).min(now);
            self.series.at(from).integral += u128::from(held) * u128::from((end - from).as_ps());
            from = end;
        }
        self.since = now;
        self.bytes = bytes;
        let bucket = self.series.at(now);
        bucket.max = bucket.max.max(bytes);
    }

    /// The buckets.
    pub fn series(&self) -> &Series<QueueBucket> {
        &self.series
    }

    /// The mean over the whole buckets of `[from, to)`, in bytes; `None` if the interval contains no whole bucket.
    pub fn mean(&self, from: Time, to: Time) -> Option<f64> {
        let (integral, count) = self
            .whole_buckets(from, to)
            .fold((0u128, 0u32), |(sum, count), bucket| {
                (sum + bucket.integral, count + 1)
            });
        let span = f64::from(count) * self.series.width().as_ps() as f64;
        (count > 0).then(|| integral as f64 / span)
    }

    /// Longest queue in the whole buckets of `[from, to)`, in bytes.
    pub fn peak(&self, from: Time, to: Time) -> Option<u64> {
        self.whole_buckets(from, to).map(|bucket| bucket.max).max()
    }

    /// Start of the earliest bucket from which the mean of every bucket up to `until` is within `low..=high` bytes; `None` if the last
    /// bucket is outside.
    pub fn settled(&self, low: f64, high: f64, until: Time) -> Option<Time> {
        let width = self.series.width().as_ps();
        let whole = (until.as_ps() / width).min(self.series.buckets().len() as u64) as usize;
        let buckets = &self.series.buckets()[..whole];
        let unsettled = buckets.iter().rposition(|bucket| {
            let mean = bucket.integral as f64 / width as f64;
            !(low..=high).contains(&mean)
        });
        let first = unsettled.map_or(0, |index| index + 1);
        (first < whole).then(|| self.series.start_of(first))
    }

    fn whole_buckets(&self, from: Time, to: Time) -> impl Iterator<Item = &QueueBucket> {
        let width = self.series.width().as_ps();
        let length = self.series.buckets().len();
        let first = (from.as_ps().div_ceil(width) as usize).min(length);
        let end = ((to.as_ps() / width) as usize).clamp(first, length);
        self.series.buckets()[first..end].iter()
    }
}

/// Records the queues in front of chosen links.
#[derive(Debug, Clone)]
pub struct QueueRecorder {
    /// Queues of the chosen links; there are few, so the search is short.
    queues: BTreeMap<u32, QueueSeries>,
    /// Range of the links in `queues`, which quickly rules out most other links.
    range: (u32, u32),
}

impl QueueRecorder {
    /// Records `links` in buckets of `width`, at most `limit` of them for each.
    pub fn new(links: &[LinkId], width: Span, limit: usize) -> Self {
        let series = |link: &LinkId| (link.0, QueueSeries::new(width, limit));
        let numbers = || links.iter().map(|link| link.0);
        Self {
            queues: links.iter().map(series).collect(),
            range: (
                numbers().min().unwrap_or(u32::MAX),
                numbers().max().unwrap_or(0),
            ),
        }
    }

    /// Ends the record at `end`; the queues keep their last length until then.
    pub fn close(&mut self, end: Time) {
        for queue in self.queues.values_mut() {
            let bytes = queue.bytes;
            queue.change(end.max(queue.since), bytes);
        }
    }

    /// Each link with its queue.
    pub fn queues(&self) -> impl Iterator<Item = (LinkId, &QueueSeries)> {
        self.queues
            .iter()
            .map(|(&link, series)| (LinkId(link), series))
    }
}

impl Observer for QueueRecorder {
    fn interests(&self) -> Interests {
        Interests {
            queues: !self.queues.is_empty(),
            ..Interests::NONE
        }
    }

    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if (self.range.0..=self.range.1).contains(&link.0)
            && let Some(queue) = self.queues.get_mut(&link.0)
        {
            queue.change(now, bytes);
        }
    }
}

impl Merge for QueueRecorder {
    /// Records of another domain. A queue belongs to one domain, so the record with events counts.
    fn merge(&mut self, other: Self) {
        for (link, queue) in other.queues {
            let own = self.queues.entry(link).or_insert_with(|| queue.clone());
            if own.since < queue.since {
                *own = queue;
            }
        }
    }
}

/// Transmission time of these bytes on a link, in microseconds.
pub fn delay_us(bytes: f64, rate: Rate) -> f64 {
    bytes * 8e6 / rate.as_bps() as f64
}
