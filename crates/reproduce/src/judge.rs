//! From runs to verdicts.

use super::definition::Scale;
use super::expression::{Call, Comparison, Expression, Leaves};
use super::figure::{Binding, Claim, Figure, Unresolved, over_labels, restore};
use super::measure::Measure;
use super::outcome::{ClaimOutcome, Judgement, Verdict};
use super::plans::Kept;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All runs of a figure: by labels and seed.
pub(crate) type Runs = BTreeMap<(Vec<String>, u64), Arc<Kept>>;

/// Reason why a quantity has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Gap {
    OtherScale,
    Needs(String),
    NotRun,
    Failed(String),
}

impl From<Unresolved> for Gap {
    fn from(unresolved: Unresolved) -> Self {
        match unresolved {
            Unresolved::OtherScale => Self::OtherScale,
            Unresolved::Fault(message) => Self::Failed(message),
        }
    }
}

/// Takes measures from the runs of one seed.
struct Evaluator<'a> {
    figure: &'a Figure,
    scale: Scale,
    runs: &'a Runs,
    seed: u64,
    binding: Binding,
}

impl Leaves for Evaluator<'_> {
    type Error = Gap;

    fn measure(&mut self, call: &Call) -> Result<f64, Gap> {
        let labels = self.figure.choose(self.scale, &call.words, &self.binding)?;
        if let Some(needs) = self.figure.needs_of(self.scale, &labels) {
            return Err(Gap::Needs(needs));
        }
        let run = self.runs.get(&(labels, self.seed)).ok_or(Gap::NotRun)?;
        let measure = Measure::named(&call.measure).map_err(Gap::Failed)?;
        let options = measure.read_options(&call.options).map_err(Gap::Failed)?;
        measure
            .of(run, &options)
            .map_err(|message| Gap::Failed(format!("{}: {message}", call.measure)))
    }

    fn over(&mut self, axis: &str, body: &Expression) -> Result<Vec<f64>, Gap> {
        let figure = self.figure;
        over_labels(figure, self.scale, axis, |label| {
            let former = self.binding.insert(axis.into(), label.into());
            let value = body.evaluate(self);
            restore(&mut self.binding, axis, former);
            value
        })
    }
}

impl Figure {
    /// Feature that a run needs and that does not exist yet.
    fn needs_of(&self, scale: Scale, labels: &[String]) -> Option<String> {
        let mut values = self.values(scale, labels);
        values.find_map(|value| value.needs.clone())
    }

    /// Judges a claim by the runs.
    pub(crate) fn judge(
        &self,
        claim: &Claim,
        scale: Scale,
        seeds: &[u64],
        runs: &Runs,
    ) -> ClaimOutcome {
        let (verdict, judgements) = self.verdict(claim, scale, seeds, runs);
        ClaimOutcome {
            id: claim.id.clone(),
            paper: claim.paper.clone(),
            source: claim.source.clone(),
            expect: claim.expect.clone(),
            note: claim.note.clone(),
            verdict,
            judgements,
        }
    }

    fn verdict(
        &self,
        claim: &Claim,
        scale: Scale,
        seeds: &[u64],
        runs: &Runs,
    ) -> (Verdict, Vec<Judgement>) {
        if let Some(needs) = &claim.needs {
            return (Verdict::NotYet(needs.clone()), Vec::new());
        }
        let bindings = self.bindings(claim, scale);
        if bindings.is_empty() || claim.scale.is_some_and(|only| only != scale) {
            return (Verdict::OtherScale, Vec::new());
        }
        let mut judgements = Vec::new();
        for binding in bindings {
            for comparison in &claim.comparisons {
                let context = (claim, scale, seeds, runs);
                match self.compare(comparison, &binding, context) {
                    Ok(judgement) => judgements.push(judgement),
                    Err(Gap::Needs(what)) => return (Verdict::NotYet(what), Vec::new()),
                    Err(Gap::OtherScale) => return (Verdict::OtherScale, Vec::new()),
                    Err(Gap::NotRun) => return (Verdict::NotRun, Vec::new()),
                    Err(Gap::Failed(_)) => unreachable!("a failed measure is part of a judgement"),
                }
            }
        }
        let verdict = match judgements.iter().all(|judgement| judgement.holds) {
            true => Verdict::Pass,
            false => Verdict::Miss,
        };
        (verdict, judgements)
    }

    fn compare(
        &self,
        comparison: &Comparison,
        binding: &Binding,
        (claim, scale, seeds, runs): (&Claim, Scale, &[u64], &Runs),
    ) -> Result<Judgement, Gap> {
        let mut reason = None;
        let mut values = |expression: &Expression| -> Result<Vec<f64>, Gap> {
            let each = seeds.iter().map(|&seed| {
                let mut evaluator = Evaluator {
                    figure: self,
                    scale,
                    runs,
                    seed,
                    binding: binding.clone(),
                };
                match expression.evaluate(&mut evaluator) {
                    Err(Gap::Failed(message)) => {
                        reason.get_or_insert(message);
                        Ok(f64::NAN)
                    }
                    other => other,
                }
            });
            each.collect()
        };
        let per_seed = values(&comparison.quantity)?;
        let bounds: Result<Vec<Vec<f64>>, Gap> = comparison.bounds.iter().map(values).collect();
        let bounds: Vec<f64> = bounds?.iter().map(|bound| claim.seeds.of(bound)).collect();
        let measured = claim.seeds.of(&per_seed);
        Ok(Judgement {
            at: binding.values().next().cloned(),
            quantity: comparison.quantity_text.clone(),
            rule: comparison.rule_text.clone(),
            per_seed: per_seed.into_iter().map(number).collect(),
            measured: number(measured),
            holds: comparison.relation.holds(measured, &bounds),
            bounds: bounds.into_iter().map(number).collect(),
            reason,
        })
    }
}

fn number(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
