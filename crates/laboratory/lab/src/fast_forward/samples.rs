//! Simulated calls of a kind beside the same sorts of calls.

use super::times::{Times, Transfer, level, times_of};
use super::{MOST_SAMPLES, SHARE_OF_ERROR};
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
}

/// What the samples say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// There are too few.
    Open,
    /// They agree: calls may be remembered.
    Reached,
    /// They do not agree, and there will be no more.
    Missed,
}

/// Samples of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    /// Times of the first sample.
    first: Option<Record>,
    kept: Vec<Sample>,
    /// Number of void samples since the last one that was not.
    pub(super) void: u32,
    /// Half the width of the confidence interval of the mean level, as a part of it; `None` until the samples agree.
    agreed: Option<f64>,
    is_missed: bool,
    /// Remembered calls.
    pub(super) remembered: u64,
}

impl Samples {
    /// Adds a simulated call that took `span` picoseconds; returns the bytes that it keeps.
    pub(super) fn add(&mut self, call: &[Option<Transfer>], span: f64, error: f64) -> usize {
        if self.agreement() != Agreement::Open {
            return 0;
        }
        let record: Record = times_of(call).into();
        let bytes = size_of_val(&*record);
        let first = self.first.get_or_insert_with(|| Arc::clone(&record));
        let level = level(first, call);
        self.add_sample(
            Sample {
                record,
                level,
                span,
            },
            error,
        );
        bytes
    }

    fn add_sample(&mut self, sample: Sample, error: f64) {
        self.void = 0;
        self.kept.push(sample);
        let most = error * SHARE_OF_ERROR;
        // The first calls may find connections that are new. They are left out if that helps.
        for skipped in 0..=self.kept.len().saturating_sub(2).min(2) {
            let width = half_width(&self.kept[skipped..]);
            if width <= most {
                self.kept.drain(..skipped);
                self.agreed = Some(width);
                return;
            }
        }
        self.is_missed = self.kept.len() >= MOST_SAMPLES;
    }

    pub(super) fn agreement(&self) -> Agreement {
        match (self.agreed, self.is_missed) {
            (Some(_), _) => Agreement::Reached,
            (None, true) => Agreement::Missed,
            (None, false) => Agreement::Open,
        }
    }

    /// Forgets all samples, because they are no longer true.
    pub(super) fn forget(&mut self) {
        self.first = None;
        self.kept.clear();
        self.agreed = None;
    }

    /// The times of a remembered call; `draw` is a random number.
    pub(super) fn draw(&self, draw: u64) -> Record {
        let place = (draw % self.kept.len() as u64) as usize;
        Arc::clone(&self.kept[place].record)
    }

    /// Difference of the transfer times of a simulated call from the remembered ones, as a part of them.
    pub(super) fn difference(&self, call: &[Option<Transfer>]) -> f64 {
        let mean = mean_of(&self.kept, |sample| sample.level);
        let first = self.first.as_ref();
        first.map_or(0.0, |first| (level(first, call) / mean - 1.0).abs())
    }

    /// Error in picoseconds that all remembered calls together may have, at 95 % confidence: that of the mean of the samples, and the
    /// spread of the drawn ones.
    pub(super) fn error_of_remembered(&self) -> f64 {
        let Some(width) = self.agreed.filter(|_| self.remembered > 0) else {
            return 0.0;
        };
        let span = mean_of(&self.kept, |sample| sample.span);
        let calls = self.remembered as f64;
        // The width is t s / sqrt(n): the spread of a sum of `calls` draws is sqrt(calls) t s.
        let of_draws = width * (self.kept.len() as f64 / calls).sqrt();
        span * calls * (width * width + of_draws * of_draws).sqrt()
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
        for &level in levels {
            if samples.agreement() == Agreement::Open {
                let sample = Sample {
                    record: vec![Times::default(); 4].into(),
                    level,
                    span: 1000.0 * level,
                };
                samples.add_sample(sample, 0.01);
            }
        }
        samples
    }

    #[test]
    fn samples_agree_within_half_of_the_error() {
        assert_eq!(samples(&[1.0]).agreement(), Agreement::Open);
        assert_eq!(samples(&[1.0, 1.0]).agreement(), Agreement::Reached);
        // 12.7 * 0.00071 / sqrt(2) = 0.00635.
        assert_eq!(samples(&[1.0, 1.001]).agreement(), Agreement::Open);
        // 4.30 * 0.00058 / sqrt(3) = 0.00143.
        let three = samples(&[1.0, 1.001, 1.0]);
        assert_eq!(three.agreement(), Agreement::Reached);
    }

    #[test]
    fn a_first_call_that_differs_is_left_out() {
        let cold = samples(&[1.2, 1.0, 1.0]);
        assert_eq!(cold.agreement(), Agreement::Reached);
        assert_eq!(cold.kept.len(), 2);
        assert_eq!(samples(&[1.0, 1.2, 1.0]).agreement(), Agreement::Open);
    }

    #[test]
    fn samples_that_never_agree_are_declined() {
        let levels = (0..MOST_SAMPLES).map(|n| 1.0 + 0.2 * (n % 3) as f64);
        let levels: Vec<f64> = levels.collect();
        assert_eq!(samples(&levels).agreement(), Agreement::Missed);
        assert_eq!(samples(&levels[1..]).agreement(), Agreement::Open);
    }

    #[test]
    fn the_error_grows_with_the_remembered_calls() {
        let mut known = samples(&[1.0, 1.001, 1.0]);
        assert_eq!(known.error_of_remembered(), 0.0);
        known.remembered = 3;
        // sqrt(2) * 0.00143 of three spans of 1000.
        assert!((known.error_of_remembered() - 6.08).abs() < 0.05);
        known.remembered = 300;
        assert!((known.error_of_remembered() - 432.0).abs() < 3.0);
    }
}
