//! Judgement of claims from runs.

use super::definition::Scale;
use super::expression::{Call, Comparison, Expression, Leaves};
use super::figure::{Binding, Claim, Figure, Unresolved, over_labels, restore};
use super::figure_run_data::FigureRunData;
use super::measure::{Measure, SETTING};
use super::outcome::{ClaimOutcome, Judgement, Verdict};
use super::spread::is_sure;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All runs of a figure, by labels and seed.
pub(crate) type Runs = BTreeMap<(Vec<String>, u64), Arc<FigureRunData>>;

/// Reason why a quantity has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MissingValue {
    OtherScale,
    Needs(String),
    NotRun,
    Failed(String),
}

impl From<Unresolved> for MissingValue {
    fn from(unresolved: Unresolved) -> Self {
        match unresolved {
            Unresolved::OtherScale => Self::OtherScale,
            Unresolved::Fault(message) => Self::Failed(message),
        }
    }
}

/// Runs from which a claim is judged.
#[derive(Clone, Copy)]
struct Trial<'a> {
    scale: Scale,
    seeds: &'a [u64],
    runs: &'a Runs,
    /// Axis whose effect is removed, if any, and the label whose runs replace all runs along the axis.
    without: Option<(usize, &'a str)>,
}

/// Evaluator of measures from the runs of one seed.
struct Evaluator<'a> {
    figure: &'a Figure,
    trial: Trial<'a>,
    seed: u64,
    binding: Binding,
    /// Labels of the measured runs, by axis.
    used: &'a mut [BTreeSet<String>],
}

impl Leaves for Evaluator<'_> {
    type Error = MissingValue;

    fn measure(&mut self, call: &Call) -> Result<f64, MissingValue> {
        let Trial { scale, runs, .. } = self.trial;
        let mut labels = self.figure.choose(scale, &call.words, &self.binding)?;
        for (used, label) in self.used.iter_mut().zip(&labels) {
            used.insert(label.clone());
        }
        if let Some((axis, label)) = self.trial.without {
            label.clone_into(&mut labels[axis]);
        }
        if let Some(needs) = self.figure.needs_of(scale, &labels) {
            return Err(MissingValue::Needs(needs));
        }
        let run = runs.get(&(labels, self.seed)).ok_or(MissingValue::NotRun)?;
        let measure = Measure::named(&call.measure).map_err(MissingValue::Failed)?;
        let options = measure
            .read_options(&call.options)
            .map_err(MissingValue::Failed)?;
        measure
            .compute_value(run, &options)
            .map_err(|message| MissingValue::Failed(format!("{}: {message}", call.measure)))
    }

    fn over(&mut self, axis: &str, body: &Expression) -> Result<Vec<f64>, MissingValue> {
        let figure = self.figure;
        over_labels(figure, self.trial.scale, axis, |label| {
            let former = self.binding.insert(axis.into(), label.into());
            let value = body.evaluate(self);
            restore(&mut self.binding, axis, former);
            value
        })
    }
}

impl Figure {
    /// Missing feature that a run needs.
    fn needs_of(&self, scale: Scale, labels: &[String]) -> Option<String> {
        let mut values = self.values(scale, labels);
        values.find_map(|value| value.needs.clone())
    }

    /// Judges a claim from the runs.
    pub(crate) fn judge(
        &self,
        claim: &Claim,
        scale: Scale,
        seeds: &[u64],
        runs: &Runs,
    ) -> ClaimOutcome {
        let trial = Trial {
            scale,
            seeds,
            runs,
            without: None,
        };
        let mut used = Vec::new();
        let (verdict, judgements) = match self.judgements(claim, trial, &mut used) {
            Ok(judgements) => (verdict(&judgements), judgements),
            Err(verdict) => (verdict, Vec::new()),
        };
        let passes_without = match verdict {
            Verdict::Pass | Verdict::Unsure => self.passes_without(claim, trial, &used),
            _ => Vec::new(),
        };
        ClaimOutcome {
            id: claim.id.clone(),
            paper: claim.paper.clone(),
            source: claim.source.clone(),
            expect: claim.expect.clone(),
            note: claim.note.clone(),
            verdict,
            judgements,
            passes_without,
        }
    }

    /// Judges all comparisons of a claim, or gives the reason why that is impossible. `used` receives the labels of the runs that each
    /// comparison measures, by axis.
    fn judgements(
        &self,
        claim: &Claim,
        trial: Trial<'_>,
        used: &mut Vec<Vec<BTreeSet<String>>>,
    ) -> Result<Vec<Judgement>, Verdict> {
        if let Some(needs) = &claim.needs {
            return Err(Verdict::NotYet(needs.clone()));
        }
        let bindings = self.bindings(claim, trial.scale);
        if bindings.is_empty() || claim.scale.is_some_and(|only| only != trial.scale) {
            return Err(Verdict::OtherScale);
        }
        let mut judgements = Vec::new();
        for binding in bindings {
            for comparison in &claim.comparisons {
                let mut asked = vec![BTreeSet::new(); self.axes.len()];
                match self.compare(claim, comparison, &binding, trial, &mut asked) {
                    Ok(judgement) => judgements.push(judgement),
                    Err(MissingValue::Needs(what)) => return Err(Verdict::NotYet(what)),
                    Err(MissingValue::OtherScale) => return Err(Verdict::OtherScale),
                    Err(MissingValue::NotRun) => return Err(Verdict::NotRun),
                    Err(MissingValue::Failed(_)) => {
                        unreachable!("a failed measure is part of a judgement")
                    }
                }
                used.push(asked);
            }
        }
        Ok(judgements)
    }

    /// Axes along which the claim compares runs, but without whose effect it would also hold; `settings` if the claim measures no run.
    /// `used` are the labels of the runs that its comparisons measure, by axis.
    fn passes_without(
        &self,
        claim: &Claim,
        trial: Trial<'_>,
        used: &[Vec<BTreeSet<String>>],
    ) -> Vec<String> {
        let expressions = claim
            .comparisons
            .iter()
            .flat_map(|comparison| comparison.bounds.iter().chain([&comparison.quantity]));
        if expressions
            .flat_map(Expression::calls)
            .all(|call| call.measure == SETTING)
        {
            return vec!["settings".into()];
        }
        let mut found = Vec::new();
        for (number, axis) in self.axes.iter().enumerate() {
            let compared = used.iter().map(|asked| &asked[number]);
            let labels: BTreeSet<&str> = compared
                .filter(|labels| labels.len() > 1)
                .flatten()
                .map(String::as_str)
                .collect();
            let holds = |label: &str| {
                let trial = Trial {
                    without: Some((number, label)),
                    ..trial
                };
                let judged = self.judgements(claim, trial, &mut Vec::new());
                judged.is_ok_and(|judged| judged.iter().all(|judgement| judgement.holds))
            };
            if labels.into_iter().any(holds) {
                found.push(axis.name.clone());
            }
        }
        found
    }

    fn compare(
        &self,
        claim: &Claim,
        comparison: &Comparison,
        binding: &Binding,
        trial: Trial<'_>,
        used: &mut [BTreeSet<String>],
    ) -> Result<Judgement, MissingValue> {
        let mut reason = None;
        let mut values = |expression: &Expression| -> Result<Vec<f64>, MissingValue> {
            let each = trial.seeds.iter().map(|&seed| {
                let mut evaluator = Evaluator {
                    figure: self,
                    trial,
                    seed,
                    binding: binding.clone(),
                    used: &mut *used,
                };
                match expression.evaluate(&mut evaluator) {
                    Err(MissingValue::Failed(message)) => {
                        reason.get_or_insert(message);
                        Ok(f64::NAN)
                    }
                    other => other,
                }
            });
            each.collect()
        };
        let per_seed = values(&comparison.quantity)?;
        let bounds: Result<Vec<Vec<f64>>, MissingValue> =
            comparison.bounds.iter().map(values).collect();
        let bounds_per_seed = bounds?;
        let bounds: Vec<f64> = bounds_per_seed
            .iter()
            .map(|bound| claim.seeds.combine(bound))
            .collect();
        let measured = claim.seeds.combine(&per_seed);
        Ok(Judgement {
            at: binding.values().next().cloned(),
            quantity: comparison.quantity_text.clone(),
            rule: comparison.rule_text.clone(),
            holds: comparison.relation.holds(measured, &bounds),
            sure: is_sure(
                comparison.relation,
                claim.seeds,
                &per_seed,
                &bounds_per_seed,
            ),
            per_seed: per_seed.into_iter().map(number).collect(),
            measured: number(measured),
            bounds: bounds.into_iter().map(number).collect(),
            reason,
        })
    }
}

/// The verdict from judgements: a sure miss decides first, then an unsure judgement.
fn verdict(judgements: &[Judgement]) -> Verdict {
    let any = |of: fn(&Judgement) -> bool| judgements.iter().any(of);
    if any(|judgement| !judgement.holds && judgement.sure) {
        Verdict::Miss
    } else if any(|judgement| !judgement.sure) {
        Verdict::Unsure
    } else {
        Verdict::Pass
    }
}

fn number(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
