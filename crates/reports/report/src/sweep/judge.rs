//! Judgement of assertions.
//!
//! An assertion passes at a point if it holds in the whole interval of the measure, or of the difference to the other point. It fails if
//! the whole interval is on the other side, and is undecided in between. Two points are compared over the seeds that they share. An
//! assertion on several points passes if it passes at each point. The confidence needs no correction for this, because all points have to
//! pass.

use super::points::Samples;
use super::{
    Assertion, AssertionCase, AssertionOutcome, AssertionVerdict, Bound, Limit, Statistic,
    SweepPoint, SweepRecord,
};
use crate::measures::Unit;
use crate::quantity::factor;
use clearway_statistics::{Estimate, Interval, IntervalVerdict};

use AssertionVerdict::{Fail, Pass, Undecided};

impl SweepRecord {
    /// Sets [`assertions`](Self::assertions) to the outcomes of `assertions`. The list stays empty while runs are missing: an assertion
    /// cannot be judged on a part of the runs.
    pub fn judge(&mut self, assertions: &[Assertion]) {
        if self.missing > 0 {
            return;
        }
        let outcomes = assertions
            .iter()
            .map(|assertion| self.outcome_of(assertion));
        self.assertions = outcomes.collect();
    }

    fn outcome_of(&self, assertion: &Assertion) -> AssertionOutcome {
        let mut outcome = AssertionOutcome {
            text: assertion.text(),
            measure: assertion.measure.clone(),
            statistic: assertion.statistic,
            confidence: assertion.confidence,
            cases: Vec::new(),
            verdict: Undecided,
            reason: String::new(),
        };
        let Some(measure) = self.place_of(&assertion.measure) else {
            outcome.reason = format!("no run has `{}`", assertion.measure);
            return outcome;
        };
        let points = self.points();
        let mut judge = Judge {
            sweep: self,
            points: &points,
            measure,
            assertion,
            samples: Samples::default(),
        };
        let concerned = points
            .iter()
            .filter(|point| self.matches(point, &assertion.of));
        outcome.cases = concerned.map(|point| judge.case(point)).collect();
        (outcome.verdict, outcome.reason) = self.together(&outcome.cases, assertion);
        outcome
    }

    /// True if a point has these values.
    fn matches(&self, point: &SweepPoint, values: &[(String, String)]) -> bool {
        values.iter().all(|(key, value)| {
            let mut own = self.values_of(&point.place);
            own.any(|own| own == (key.as_str(), value.as_str()))
        })
    }

    fn together(
        &self,
        cases: &[AssertionCase],
        assertion: &Assertion,
    ) -> (AssertionVerdict, String) {
        let count = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
        let (failed, open) = (count(Fail), count(Undecided));
        if cases.is_empty() {
            return (Undecided, format!("no run is of {}", words(&assertion.of)));
        }
        let verdict = match (failed, open) {
            (0, 0) => Pass,
            (0, _) => Undecided,
            _ => Fail,
        };
        let reason = match cases {
            [case] => case.reason.clone(),
            cases => {
                let passed = cases.len() - failed - open;
                let mut reason = format!("passes at {passed} of {} points", cases.len());
                if let Some(case) = cases
                    .iter()
                    .find(|case| case.verdict == verdict && verdict != Pass)
                {
                    reason += &format!("; {}: {}", self.name_of(&case.place), case.reason);
                }
                reason
            }
        };
        (verdict, reason)
    }
}

/// Judge of an assertion.
struct Judge<'a> {
    sweep: &'a SweepRecord,
    points: &'a [SweepPoint],
    measure: usize,
    assertion: &'a Assertion,
    samples: Samples,
}

impl Judge<'_> {
    fn case(&mut self, point: &SweepPoint) -> AssertionCase {
        let mut case = AssertionCase {
            place: point.place.clone(),
            other: None,
            estimate: None,
            ratio: None,
            verdict: Undecided,
            reason: String::new(),
        };
        let judged = match &self.assertion.bound {
            Bound::Below(Limit::Number(limit)) => {
                self.alone(point, &mut case, |interval| below(interval, *limit))
            }
            Bound::Above(Limit::Number(limit)) => self.alone(point, &mut case, |interval| {
                below(interval, *limit).opposite()
            }),
            Bound::Between(low, high) => {
                let limits = Interval {
                    low: *low,
                    high: *high,
                };
                self.alone(point, &mut case, |interval| within(interval, limits))
            }
            Bound::Below(Limit::Points { of, factor }) => {
                self.paired(point, &mut case, (of, *factor), |difference, _| {
                    Some(below(difference?, 0.0))
                })
            }
            Bound::Above(Limit::Points { of, factor }) => {
                self.paired(point, &mut case, (of, *factor), |difference, _| {
                    Some(below(difference?, 0.0).opposite())
                })
            }
            Bound::Near { of, tolerance } => {
                let limits = Interval {
                    low: 1.0 - tolerance,
                    high: 1.0 + tolerance,
                };
                self.paired(point, &mut case, (of, 1.0), |_, ratio| {
                    Some(within(ratio?, limits))
                })
            }
        };
        match judged {
            Ok(verdict) => case.verdict = verdict,
            Err(reason) => case.reason = reason,
        }
        case
    }

    /// Judges a point without another point.
    fn alone(
        &mut self,
        point: &SweepPoint,
        case: &mut AssertionCase,
        verdict: impl Fn(Interval) -> AssertionVerdict,
    ) -> Result<AssertionVerdict, String> {
        self.check(point)?;
        let values = self.sweep.values_by_seed(point, self.measure);
        let values: Vec<f64> = values.into_values().collect();
        let Assertion {
            statistic,
            confidence,
            ..
        } = *self.assertion;
        case.estimate = statistic.estimate(&values, confidence, &mut self.samples);
        let estimate = case.estimate.ok_or("no run has a value")?;
        let interval = estimate.interval.ok_or_else(|| too_few(estimate.seeds))?;
        let unit = self.sweep.measures[self.measure].unit;
        case.reason = format!(
            "{} ({}, {} seeds)",
            unit.print(estimate.value),
            unit.print_range(interval.low, interval.high),
            estimate.seeds
        );
        Ok(verdict(interval))
    }

    /// Judges a point in comparison with the point that has other values on some axes.
    fn paired(
        &mut self,
        point: &SweepPoint,
        case: &mut AssertionCase,
        (of, times): (&[(String, String)], f64),
        verdict: impl Fn(Option<Interval>, Option<Interval>) -> Option<AssertionVerdict>,
    ) -> Result<AssertionVerdict, String> {
        let other = self.other(point, of)?;
        case.other = Some(other.place.clone());
        self.check(point)?;
        self.check(other)?;
        let values = self.sweep.values_by_seed(other, self.measure);
        let own = self.sweep.values_by_seed(point, self.measure);
        let pairs = own
            .iter()
            .filter_map(|(seed, own)| Some((*own, *values.get(seed)?)));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let Assertion {
            statistic,
            confidence,
            ..
        } = *self.assertion;
        case.estimate = statistic.difference(&pairs, times, confidence, &mut self.samples);
        case.ratio = statistic.ratio(&pairs, confidence, &mut self.samples);
        let estimate = case.estimate.ok_or("no two runs of a seed have values")?;
        let difference = estimate.interval.ok_or_else(|| too_few(estimate.seeds))?;
        case.reason = self.against(&pairs, case.ratio);
        let ratio = case.ratio.and_then(|ratio| ratio.interval);
        verdict(Some(difference), ratio)
            .ok_or_else(|| "a ratio to what may be zero is not known".into())
    }

    /// Both numbers and their ratio in words.
    fn against(&self, pairs: &[(f64, f64)], ratio: Option<Estimate>) -> String {
        let unit = self.sweep.measures[self.measure].unit;
        let (own, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let print = |values: &[f64]| {
            let value = self.assertion.statistic.compute(values);
            value.map_or("-".into(), |value| unit.print(value))
        };
        let seeds = pairs.len();
        let mut text = format!("{} against {}", print(&own), print(&other));
        if let Some(ratio) = ratio {
            text += &format!(": {}", factor(ratio.value));
            if let Some(interval) = ratio.interval {
                let range = Unit::Ratio.print_range(interval.low, interval.high);
                text += &format!(" ({range})");
            }
        }
        text + &format!(", {seeds} seeds")
    }

    /// The point that has other values on some axes.
    fn other(&self, point: &SweepPoint, of: &[(String, String)]) -> Result<&SweepPoint, String> {
        let mut place = point.place.clone();
        for (key, value) in of {
            let axes = &self.sweep.axes;
            let axis = axes.iter().position(|axis| axis.key == *key);
            let axis = axis.ok_or_else(|| format!("`{key}` is not an axis"))?;
            let mut values = axes[axis].values.iter();
            let value = values.position(|known| known == value);
            let value = value.ok_or_else(|| format!("no run is of {}", words(of)))?;
            place[axis] = value as u32;
        }
        let mut points = self.points.iter();
        let other = points.find(|point| point.place == place);
        other.ok_or_else(|| format!("no run is of {}", self.sweep.name_of(&place)))
    }

    /// Fails if runs of a point are not complete: completed work alone may look better than all work.
    fn check(&self, point: &SweepPoint) -> Result<(), String> {
        match self.sweep.not_complete(point) {
            0 => Ok(()),
            some => Err(format!(
                "{some} of {} runs of {} failed or are not complete",
                point.runs.len(),
                self.sweep.name_of(&point.place)
            )),
        }
    }
}

impl AssertionVerdict {
    fn opposite(self) -> Self {
        match self {
            Pass => Fail,
            Fail => Pass,
            Undecided => Undecided,
        }
    }
}

/// Passes if the whole interval is below the limit, fails if it is above. A number equal to the limit is not below it.
fn below(interval: Interval, limit: f64) -> AssertionVerdict {
    match interval.against(Interval::at(limit)) {
        IntervalVerdict::Below => Pass,
        IntervalVerdict::Above | IntervalVerdict::Within => Fail,
        IntervalVerdict::Undecided => Undecided,
    }
}

fn within(interval: Interval, limits: Interval) -> AssertionVerdict {
    match interval.against(limits) {
        IntervalVerdict::Within => Pass,
        IntervalVerdict::Below | IntervalVerdict::Above => Fail,
        IntervalVerdict::Undecided => Undecided,
    }
}

fn too_few(seeds: usize) -> String {
    match seeds {
        1 => "1 seed has no interval\n  fix: give the plan at least 2 `seeds`; 5 tell much more"
            .into(),
        seeds => format!("{seeds} seeds in common have no interval"),
    }
}

fn words(values: &[(String, String)]) -> String {
    match values {
        [] => "this sweep".into(),
        values => {
            let words: Vec<String> = values
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            words.join(" ")
        }
    }
}

impl Assertion {
    /// The assertion in words.
    pub fn text(&self) -> String {
        let limit = |limit: &Limit| match limit {
            Limit::Number(number) => number.to_string(),
            Limit::Points { of, factor } if *factor == 1.0 => format!("that of {}", words(of)),
            Limit::Points { of, factor } => format!("{factor} times that of {}", words(of)),
        };
        let bound = match &self.bound {
            Bound::Below(of) => format!("below {}", limit(of)),
            Bound::Above(of) => format!("above {}", limit(of)),
            Bound::Between(low, high) => format!("within {low} and {high}"),
            Bound::Near { of, tolerance } => {
                format!("within {} % of that of {}", tolerance * 100.0, words(of))
            }
        };
        let statistic = match self.statistic {
            Statistic::Mean => "",
            Statistic::Median => "median ",
        };
        let of = match self.of.as_slice() {
            [] => String::new(),
            of => format!(" of {}", words(of)),
        };
        let percent = self.confidence * 100.0;
        format!("{statistic}{}{of} {bound}, {percent} % sure", self.measure)
    }
}
