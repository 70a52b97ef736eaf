//! Simulated calls of a shape.

use super::limits::{FamilySet, MOST_SAMPLES, RUN, WAITED_FOR};
use super::times::{Measure, Shortest, Times, Transfer, level, times_of, together};

use clearway_statistics::student_t;
use clearway_units::Span;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Transfer times of all messages of a call, by place.
pub(super) type Record = Arc<[Times]>;

/// Where samples are kept: the state of the links, and the shape, or the kind if the links are not as in the beginning.
pub(super) type SampleKey = (u32, u32);

/// A simulated call.
#[derive(Debug, Clone)]
struct Sample {
    record: Record,
    /// [Level](level) of its transfer times in relation to the first sample.
    level: f64,
    /// Time in picoseconds from the first post until all messages are acknowledged.
    span: f64,
    /// See [`together`].
    together: f64,
    /// Calls that were under way beside it.
    beside: FamilySet,
}

/// A call to add to the samples.
pub(super) struct NewSample<'a> {
    pub(super) call: &'a [Option<Transfer>],
    /// Time in picoseconds from the first post until all messages are acknowledged.
    pub(super) span: f64,
    /// Calls that were under way beside it.
    pub(super) beside: FamilySet,
}

/// Confidence in a set of samples.
#[derive(Debug, Clone, Copy, Default)]
struct Confidence {
    /// Half the width of the confidence interval of the mean level, as a part of it; `None` with too few samples.
    width: Option<f64>,
    /// Standard deviation of the levels, as a part of their mean.
    deviation: f64,
    /// True if the width is small enough for any number of calls.
    is_enough: bool,
    /// Mean span in picoseconds.
    span: f64,
    samples: usize,
}

/// Samples beside the same calls.
#[derive(Debug, Clone, Copy, Default)]
struct Beside {
    confidence: Confidence,
    /// Simulated calls.
    simulated: u64,
    /// Remembered calls.
    remembered: u64,
}

/// What samples are of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Number of kinds of the shape.
    pub(super) kinds: u32,
    pub(super) measure: Measure,
    /// The most that the times of calls may be off, as a part of them.
    pub(super) most: f64,
    /// Calls of its own family.
    pub(super) family: FamilySet,
}

/// Samples of a shape.
///
/// All samples count together if they agree, whatever was beside them: then a call may be remembered if there are samples beside the same
/// calls. Else only the samples beside the same calls count.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    of: Shape,
    /// Times of the first sample.
    first: Option<Record>,
    kept: Vec<Sample>,
    all: Confidence,
    beside: BTreeMap<FamilySet, Beside>,
    /// Differences of the last calls that were checked from what is remembered, as parts of it.
    checked: VecDeque<f64>,
}

impl Samples {
    /// No samples of a shape.
    pub(super) fn new(of: Shape) -> Self {
        Self {
            of,
            first: None,
            kept: Vec::new(),
            all: Confidence::default(),
            beside: BTreeMap::new(),
            checked: VecDeque::new(),
        }
    }

    /// Adds a simulated call; returns the bytes that it keeps.
    pub(super) fn add(&mut self, new: &NewSample<'_>, shortest: &Shortest) -> usize {
        if self.are_enough(new.beside) {
            return 0;
        }
        let record: Record = times_of(new.call, shortest).into();
        let bytes = size_of_val(&*record);
        let first = self.first.get_or_insert_with(|| Arc::clone(&record));
        let level = level(first, new.call, self.of.measure);
        self.add_sample(Sample {
            record,
            level,
            span: new.span,
            together: together(new.call),
            beside: new.beside,
        });
        bytes
    }

    fn add_sample(&mut self, sample: Sample) {
        let beside = sample.beside;
        self.kept.push(sample);
        let waited_for = WAITED_FOR.min(self.of.kinds as usize);
        if self.kept.len() < waited_for {
            return;
        }
        self.all = Confidence::new(&self.kept, self.of.most, false);
        let is_alone = self.is_alone(beside);
        let own = self.kept.iter().filter(|own| own.beside == beside);
        let own: Vec<Sample> = own.cloned().collect();
        if own.len() >= waited_for {
            let own = Confidence::new(&own, self.of.most, is_alone);
            self.beside.entry(beside).or_default().confidence = own;
        }
    }

    fn count(&self, beside: FamilySet) -> usize {
        let own = self.kept.iter().filter(|own| own.beside == beside);
        own.count()
    }

    /// True if no more samples beside these calls are needed.
    pub(super) fn are_enough(&self, beside: FamilySet) -> bool {
        self.are_agreed(beside) || self.count(beside) >= MOST_SAMPLES
    }

    /// True if any number of calls beside these calls may be remembered.
    pub(super) fn are_agreed(&self, beside: FamilySet) -> bool {
        self.confidence(beside).is_enough
    }

    /// Mean time of the simulated calls beside these calls.
    pub(super) fn span(&self, beside: FamilySet) -> Span {
        Span::from_ps(self.confidence(beside).span as u64)
    }

    /// Confidence in what is known of calls beside these calls.
    fn confidence(&self, beside: FamilySet) -> Confidence {
        let own = self.beside.get(&beside).copied().unwrap_or_default();
        let least = self.of.kinds.min(2) as usize;
        let own = own.confidence;
        let is_known = own.width.is_some() && self.is_alone(beside);
        match self.all.is_enough && !own.is_enough && !is_known && self.count(beside) >= least {
            true => self.all,
            false => own,
        }
    }

    /// True if no calls of other families are under way.
    fn is_alone(&self, beside: FamilySet) -> bool {
        beside & !self.of.family == 0
    }

    /// True if the samples disagree beside some calls.
    pub(super) fn disagree(&self) -> bool {
        let besides = self.beside.keys();
        besides
            .into_iter()
            .any(|&beside| self.are_enough(beside) && !self.are_agreed(beside))
    }

    /// Takes note of a simulated call.
    pub(super) fn note_simulated(&mut self, beside: FamilySet) {
        self.beside.entry(beside).or_default().simulated += 1;
    }

    /// Takes note of a remembered call.
    pub(super) fn note_remembered(&mut self, beside: FamilySet) {
        self.beside.entry(beside).or_default().remembered += 1;
    }

    /// Forgets all samples, because they are no longer true; returns the bytes that they kept.
    pub(super) fn forget(&mut self) -> usize {
        let kept = self.kept.iter();
        let bytes = kept.map(|own| size_of_val(&*own.record)).sum();
        let counts = |own: &Beside| Beside {
            simulated: own.simulated,
            remembered: own.remembered,
            ..Beside::default()
        };
        *self = Self {
            beside: self
                .beside
                .iter()
                .map(|(&key, own)| (key, counts(own)))
                .collect(),
            ..Self::new(self.of)
        };
        bytes
    }

    /// The times of a remembered call; `draw` is a random number.
    pub(super) fn draw(&self, beside: FamilySet, draw: u64) -> Option<Record> {
        let own = self.kept.iter().filter(|own| own.beside == beside);
        let own: Vec<&Sample> = own.collect();
        let place = draw.checked_rem(own.len() as u64)?;
        Some(Arc::clone(&own[place as usize].record))
    }

    /// Takes note of a simulated call that was to be remembered. Returns false if nothing is remembered beside the same calls.
    pub(super) fn check(&mut self, call: &[Option<Transfer>], beside: FamilySet) -> bool {
        let own = self.kept.iter().filter(|own| own.beside == beside);
        let levels: Vec<f64> = own.map(|own| own.level).collect();
        let Some(first) = self.first.as_ref().filter(|_| !levels.is_empty()) else {
            return false;
        };
        let mean = levels.iter().sum::<f64>() / levels.len() as f64;
        self.note_checked(level(first, call, self.of.measure) / mean - 1.0);
        true
    }

    fn note_checked(&mut self, difference: f64) {
        self.checked.push_back(difference);
        if self.checked.len() > 2 * WAITED_FOR.min(self.of.kinds as usize) {
            self.checked.pop_front();
        }
    }

    /// Difference of the mean transfer times of the calls that were checked last from the remembered ones, as a part of them.
    pub(super) fn drift(&self) -> f64 {
        let count = self.checked.len().max(1) as f64;
        (self.checked.iter().sum::<f64>() / count).abs()
    }

    /// True if the calls that were checked last are off by more than the error allows, and their number does not explain it.
    pub(super) fn has_changed(&self) -> bool {
        let count = self.checked.len();
        let spread = variance(&self.kept, |sample| sample.level).sqrt();
        let noise = 2.0 * spread / (count.max(1) as f64).sqrt();
        count > 1 && self.drift() > self.of.most + noise
    }

    /// Error in picoseconds that the remembered calls of a kind together may have, at 95 % confidence, with a [run](RUN) of `more` calls
    /// beside some calls: that of the mean of the samples, the spread of the drawn ones, and the drift. `None` if the samples say nothing
    /// about it.
    pub(super) fn error(&self, more: Option<FamilySet>) -> Option<f64> {
        let mut sum = 0.0;
        if let Some(more) = more.filter(|more| !self.beside.contains_key(more)) {
            sum += self.error_of(RUN as f64, self.confidence(more))?;
        }
        for (&beside, own) in &self.beside {
            let more = u64::from(more == Some(beside)) * RUN * u64::from(self.of.kinds);
            let calls = (own.remembered + more).div_ceil(self.of.kinds.into());
            if calls > 0 {
                sum += self.error_of(calls as f64, self.confidence(beside))?;
            }
        }
        Some(sum)
    }

    /// Difference in picoseconds that another seed may make to the simulated calls beside none of other families, at 95 % confidence: they
    /// have other random numbers after remembered ones. Calls that overlap others wait for one another, and differences do not add up.
    pub(super) fn chance(&self) -> f64 {
        let alone = self.beside.iter();
        let alone = alone.filter(|(beside, _)| self.is_alone(**beside));
        let variances = alone.map(|(&beside, own)| {
            let known = self.confidence(beside);
            let of_call = known.span * known.deviation;
            of_call * of_call * own.simulated as f64 / f64::from(self.of.kinds)
        });
        DEVIATIONS * variances.sum::<f64>().sqrt()
    }

    fn error_of(&self, calls: f64, confidence: Confidence) -> Option<f64> {
        let width = confidence.width?;
        // The width is t s / sqrt(n): the spread of a sum of `calls` draws is sqrt(calls) t s.
        let of_draws = width * (confidence.samples as f64 / calls).sqrt();
        let drift = self.drift();
        let squares = width * width + of_draws * of_draws + drift * drift;
        Some(confidence.span * calls * squares.sqrt())
    }
}

impl Confidence {
    /// Confidence in the level of samples, and in the time of the whole call if nothing else was under way: other calls hide it.
    fn new(samples: &[Sample], most: f64, are_alone: bool) -> Self {
        let of_level = variance(samples, |sample| sample.level);
        let variance = match are_alone {
            true => of_level.max(variance(samples, |sample| sample.together)),
            false => of_level,
        };
        let width = half_width(samples.len(), variance);
        Self {
            width: (samples.len() > 1).then_some(width),
            deviation: variance.sqrt(),
            is_enough: width <= most,
            span: mean_of(samples, |sample| sample.span),
            samples: samples.len(),
        }
    }
}

/// Standard deviations within which 95 % of the sums of many independent errors are.
const DEVIATIONS: f64 = 1.96;

fn mean_of(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(value).sum::<f64>() / samples.len().max(1) as f64
}

/// Half the width of the 95 % confidence interval of a mean, as a part of it, with this variance of so many samples.
fn half_width(samples: usize, variance: f64) -> f64 {
    match samples {
        0 | 1 => f64::INFINITY,
        _ => student_t(0.95, samples as u64 - 1) * (variance / samples as f64).sqrt(),
    }
}

/// Variance of a value of at least two samples, in relation to its mean.
fn variance(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    let count = samples.len() as f64;
    let mean = mean_of(samples, &value);
    let squares = mean_of(samples, |sample| {
        let difference = value(sample) - mean;
        difference * difference
    });
    match mean > 0.0 {
        true => squares * count / (count - 1.0).max(1.0) / (mean * mean),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kinds(kinds: u32) -> Shape {
        Shape {
            kinds,
            measure: Measure::Messages,
            most: 0.005,
            family: 0,
        }
    }

    fn add(samples: &mut Samples, level: f64, beside: FamilySet) {
        if !samples.are_enough(beside) {
            let sample = Sample {
                record: vec![Times::default(); 4].into(),
                level,
                span: 1000.0 * level,
                together: 1000.0 * level,
                beside,
            };
            samples.add_sample(sample);
        }
    }

    /// Calls whose messages take as long in the mean, and that take other times as a whole.
    fn uneven(beside: FamilySet) -> Samples {
        let mut samples = Samples::new(of_kinds(1));
        for together in [1000.0, 1100.0, 900.0, 1000.0] {
            samples.add_sample(Sample {
                record: vec![Times::default(); 4].into(),
                level: 1.0,
                span: 1000.0,
                together,
                beside,
            });
            samples.note_simulated(beside);
        }
        samples
    }

    #[test]
    fn calls_alone_must_agree_as_a_whole() {
        assert!(!uneven(0).are_agreed(0));
        assert!(uneven(1).are_agreed(1));
    }

    #[test]
    fn another_seed_may_change_simulated_calls_that_are_alone() {
        // Four calls with a deviation of 8.16 %: 1.96 * 81.6 * sqrt(4).
        assert!(
            (uneven(0).chance() - 320.1).abs() < 0.5,
            "{}",
            uneven(0).chance()
        );
        assert_eq!(uneven(1).chance(), 0.0);
    }

    fn samples(levels: &[f64]) -> Samples {
        let mut samples = Samples::new(of_kinds(1));
        for &level in levels {
            add(&mut samples, level, 0);
        }
        samples
    }

    #[test]
    fn samples_agree_within_half_of_the_error() {
        assert!(!samples(&[1.0]).are_agreed(0));
        assert!(samples(&[1.0, 1.0]).are_agreed(0));
        // 12.7 * 0.00071 / sqrt(2) = 0.00635.
        assert!(!samples(&[1.0, 1.001]).are_agreed(0));
        // 4.30 * 0.00058 / sqrt(3) = 0.00143.
        assert!(samples(&[1.0, 1.001, 1.0]).are_agreed(0));
    }

    #[test]
    fn calls_are_remembered_beside_what_was_beside_samples() {
        let mut own = samples(&[1.0, 1.0]);
        assert!(!own.are_agreed(1));
        assert!(own.draw(1, 0).is_none());
        // One sample tells that it makes no difference.
        add(&mut own, 1.0001, 1);
        assert!(own.are_agreed(1) && own.are_agreed(0));
        // Or that it does: then there must be as many as without.
        add(&mut own, 1.3, 2);
        assert!(own.are_agreed(0) && !own.are_agreed(2));
        add(&mut own, 1.3, 2);
        assert!(own.are_agreed(2) && !own.disagree());
    }

    #[test]
    fn samples_of_several_kinds_are_waited_for() {
        let mut own = Samples::new(of_kinds(4));
        for _ in 0..3 {
            add(&mut own, 1.0, 0);
            assert!(!own.are_agreed(0));
        }
        add(&mut own, 1.0, 0);
        assert!(own.are_agreed(0));
    }

    #[test]
    fn the_error_grows_with_the_remembered_calls() {
        let mut known = samples(&[1.0, 1.001, 1.0]);
        assert_eq!(known.error(None), Some(0.0));
        let error = |known: &Samples| known.error(None).unwrap();
        for _ in 0..3 {
            known.note_remembered(0);
        }
        // sqrt(2) * 0.00143 of three spans of 1000.
        assert!((error(&known) - 6.08).abs() < 0.05);
        for _ in 0..297 {
            known.note_remembered(0);
        }
        assert!((error(&known) - 432.0).abs() < 3.0);
        assert!(known.error(Some(0)).unwrap() > error(&known));
        // Of a hundred kinds, each has had three.
        known.of.kinds = 100;
        assert!((error(&known) - 6.08).abs() < 0.05);
        assert_eq!(samples(&[1.0]).error(Some(0)), None);
    }

    #[test]
    fn samples_that_never_agree_say_what_an_error_may_be() {
        let levels = (0..MOST_SAMPLES).map(|n| 1.0 + 0.2 * (n % 3) as f64);
        let own = samples(&levels.collect::<Vec<_>>());
        assert!(own.are_enough(0) && !own.are_agreed(0) && own.disagree());
        // The error of a run is that of its draws, nearly: 2.04 times the spread of each, and they add up as independent errors do.
        let run = own.error(Some(0)).unwrap();
        let of_draws = 340.0 * (RUN as f64).sqrt();
        assert!((run / of_draws - 1.0).abs() < 0.15, "{run}");
    }
}
