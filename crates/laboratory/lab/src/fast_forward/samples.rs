//! Simulated calls of a kind beside the same families of calls.

use super::times::{Shortest, Times, Transfers, level, times_of};
use super::{MOST_SAMPLES, SHARE_OF_ERROR, WAITED_FOR};
use clearway_statistics::student_t;
use std::sync::Arc;

/// Transfer times of all messages of a call, by task.
pub(super) type Record = Arc<[Times]>;

/// A simulated call.
#[derive(Debug, Clone)]
struct Sample {
    record: Record,
    /// [Level](level) of its transfer times in relation to the first sample.
    level: f64,
    /// Time in picoseconds from the first post until all messages are acknowledged.
    span: f64,
    /// True if it was the first call of its kind, which may find connections that are new.
    is_first: bool,
}

/// Samples of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    /// Times of the first sample.
    first: Option<Record>,
    kept: Vec<Sample>,
    /// Half the width of the confidence interval of the mean level, as a part of it; `None` with less than two samples.
    width: Option<f64>,
    /// True if the width is small enough for any number of calls.
    pub(super) are_agreed: bool,
    /// Remembered calls.
    pub(super) remembered: u64,
}

impl Samples {
    /// Adds a simulated call that took `span` picoseconds, and was the first of its kind or not; returns the bytes that it keeps. The
    /// samples are of so many `kinds`.
    pub(super) fn add(
        &mut self,
        (call, shortest): (&Transfers, &Shortest),
        (span, is_first): (f64, bool),
        (error, kinds): (f64, u32),
    ) -> usize {
        if self.are_enough() {
            return 0;
        }
        let record: Record = times_of(call, shortest).into();
        let bytes = size_of_val(&*record);
        let first = self.first.get_or_insert_with(|| Arc::clone(&record));
        let level = level(first, call);
        self.add_sample(
            Sample {
                record,
                level,
                span,
                is_first,
            },
            (error, kinds),
        );
        bytes
    }

    /// True if no more samples are needed.
    pub(super) fn are_enough(&self) -> bool {
        self.are_agreed || self.kept.len() >= MOST_SAMPLES
    }

    fn add_sample(&mut self, sample: Sample, (error, kinds): (f64, u32)) {
        self.kept.push(sample);
        if self.kept.len() < WAITED_FOR.min(kinds as usize) {
            return;
        }
        let most = error * SHARE_OF_ERROR;
        // The first calls of kinds are left out if that helps.
        let later: Vec<Sample> = self
            .kept
            .iter()
            .filter(|own| !own.is_first)
            .cloned()
            .collect();
        if half_width(&self.kept) > most && half_width(&later) <= most {
            self.kept = later;
        }
        let width = half_width(&self.kept);
        self.are_agreed = width <= most;
        self.width = (self.kept.len() > 1).then_some(width);
    }

    /// True if one more call may be remembered: the samples agree, or the remembered calls of each of the `kinds` together may be wrong by
    /// this many picoseconds.
    pub(super) fn allow(&self, budget: f64, kinds: u32) -> bool {
        let calls = self.remembered / u64::from(kinds.max(1)) + 1;
        self.are_agreed || self.error_of(calls).is_some_and(|error| error <= budget)
    }

    /// Forgets all samples, because they are no longer true.
    pub(super) fn forget(&mut self) {
        self.first = None;
        self.kept.clear();
        self.width = None;
        self.are_agreed = false;
    }

    /// The times of a remembered call; `draw` is a random number.
    pub(super) fn draw(&self, draw: u64) -> Record {
        let place = (draw % self.kept.len() as u64) as usize;
        Arc::clone(&self.kept[place].record)
    }

    /// Difference of the transfer times of a simulated call from the remembered ones, as a part of them.
    pub(super) fn difference(&self, call: &Transfers) -> f64 {
        let mean = mean_of(&self.kept, |sample| sample.level);
        let first = self.first.as_ref();
        first.map_or(0.0, |first| (level(first, call) / mean - 1.0).abs())
    }

    /// Error in picoseconds that all remembered calls of one of the `kinds` together may have, at 95 % confidence: that of the mean of the samples, and the
    /// spread of the drawn ones.
    pub(super) fn error_of_remembered(&self, kinds: u32) -> f64 {
        match self.remembered.div_ceil(kinds.max(1).into()) {
            0 => 0.0,
            calls => self.error_of(calls).unwrap_or(0.0),
        }
    }

    /// The same for a number of remembered calls; `None` if the samples say nothing about it.
    fn error_of(&self, calls: u64) -> Option<f64> {
        let width = self.width?;
        let span = mean_of(&self.kept, |sample| sample.span);
        let calls = calls as f64;
        // The width is t s / sqrt(n): the spread of a sum of `calls` draws is sqrt(calls) t s.
        let of_draws = width * (self.kept.len() as f64 / calls).sqrt();
        Some(span * calls * (width * width + of_draws * of_draws).sqrt())
    }
}

fn mean_of(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(value).sum::<f64>() / samples.len().max(1) as f64
}

/// Half the width of the 95 % confidence interval of the mean level, as a part of it.
fn half_width(samples: &[Sample]) -> f64 {
    if samples.len() < 2 {
        return f64::INFINITY;
    }
    let count = samples.len() as f64;
    let mean = mean_of(samples, |sample| sample.level);
    let squares = mean_of(samples, |sample| {
        (sample.level - mean) * (sample.level - mean)
    });
    let variance = squares * count / (count - 1.0);
    student_t(0.95, samples.len() as u64 - 1) * (variance / count).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(levels: &[f64]) -> Samples {
        let mut samples = Samples::default();
        for (number, &level) in levels.iter().enumerate() {
            if !samples.are_enough() {
                let sample = Sample {
                    record: vec![Times::default(); 4].into(),
                    level,
                    span: 1000.0 * level,
                    is_first: number == 0,
                };
                samples.add_sample(sample, (0.01, 1));
            }
        }
        samples
    }

    #[test]
    fn samples_agree_within_half_of_the_error() {
        assert!(!samples(&[1.0]).are_agreed);
        assert!(samples(&[1.0, 1.0]).are_agreed);
        // 12.7 * 0.00071 / sqrt(2) = 0.00635.
        assert!(!samples(&[1.0, 1.001]).are_agreed);
        // 4.30 * 0.00058 / sqrt(3) = 0.00143.
        assert!(samples(&[1.0, 1.001, 1.0]).are_agreed);
    }

    #[test]
    fn a_first_call_that_differs_is_left_out() {
        let cold = samples(&[1.2, 1.0, 1.0]);
        assert!(cold.are_agreed);
        assert_eq!(cold.kept.len(), 2);
        assert!(!samples(&[1.0, 1.2, 1.0]).are_agreed);
    }

    #[test]
    fn calls_are_remembered_within_a_budget() {
        let levels = (0..MOST_SAMPLES).map(|n| 1.0 + 0.2 * (n % 3) as f64);
        let levels: Vec<f64> = levels.collect();
        let mut all = samples(&levels);
        assert!(all.are_enough() && !all.are_agreed);
        assert!(!samples(&levels[1..]).are_enough());
        // The error of one call is that of a draw, nearly: 2.04 times the spread.
        let one = all.error_of(1).unwrap();
        assert!((one / 350.0 - 1.0).abs() < 0.03, "{one}");
        assert!(!all.allow(one - 1.0, 1) && all.allow(one + 1.0, 1));
        all.remembered = 1;
        assert!(!all.allow(one + 1.0, 1) && all.allow(one + 1.0, 2));
        assert!(!samples(&levels[..1]).allow(1e12, 1));
    }

    #[test]
    fn the_error_grows_with_the_remembered_calls() {
        let mut known = samples(&[1.0, 1.001, 1.0]);
        assert_eq!(known.error_of_remembered(1), 0.0);
        known.remembered = 3;
        // sqrt(2) * 0.00143 of three spans of 1000.
        assert!((known.error_of_remembered(1) - 6.08).abs() < 0.05);
        known.remembered = 300;
        assert!((known.error_of_remembered(1) - 432.0).abs() < 3.0);
        assert!((known.error_of_remembered(100) - 6.08).abs() < 0.05);
    }
}
