//! Figures as data: runs, records, statements of the paper, and acceptance rules.
//!
//! ```toml
//! title = "Incast: queue, drops"
//! source = "STrack §4.2, Figure 16"
//! setup = "32 hosts send 16 MB each to one"
//!
//! [base]                         # keys of every run
//! workload.kind = "incast"
//!
//! [record]                       # what is kept of each run
//! queue = "1us"                  # the queue in front of the host that most flows go to
//! queue-link = "leaf0-spine2"    # or of this link
//! rates = "1us"                  # Jain's index over the rates at which flows may send
//!
//! [small]                        # the two scales
//! seeds = 3
//! setup = "of 1024 hosts"
//! base.topology.hosts = 1024
//! [full]
//! …
//!
//! [[axes]]                       # runs are all combinations of the values of all axes
//! name = "message"
//! key = "workload.message"
//! small = ["2MB"]
//! full = ["2MB", "100MB"]
//!
//! [[claims]]
//! id = "no-late-drops"
//! paper = "packets are only dropped in the first round trip"
//! source = "STrack §4.2"
//! expect = "last_drop_us(message) < 25"
//! at = ["2MB"]                   # the labels that `message` stands for; all of them if left out
//! ```
//! A value may be a table `{ label = …, set = {…}, small = {…}, needs = … }`; `small` and `full` are settings of one scale. Runs that need
//! a missing feature do not run, and claims on them neither pass nor miss. A value with `plan`, the name or the text of a file of jobs,
//! turns its runs into plans: the planner answers, and nothing is simulated. Runs with `topology.kind = "nvlink"` are of scale-up fabrics;
//! they have separate measures, and do not use `[record]`.

use super::definition::{Axis, AxisValue, OverSeeds, RecordSpec, Scale, ScaleSpec};
use super::expression::{Call, Comparison, Expression, Leaves, parse};
use super::figure_run_data::RunKind;
use super::measure::Measure;
use super::schema::{AtFile, ClaimFile, FigureFile, ScaleFile, ValueFile, settings};
use clearway_lab::scenario::NVLINK;
use std::collections::BTreeMap;

/// Statement of a paper, with our acceptance rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) paper: String,
    pub(crate) source: String,
    pub(crate) expect: String,
    pub(crate) note: Option<String>,
    pub(crate) seeds: OverSeeds,
    pub(crate) comparisons: Vec<Comparison>,
    /// Labels of the axis that the condition names, by scale; `None` selects all labels.
    pub(crate) at: [Option<Vec<String>>; 2],
    /// The only scale at which the claim is judged.
    pub(crate) scale: Option<Scale>,
    /// Feature that the claim needs and that does not exist yet. The measures of the claim may also be unknown.
    pub(crate) needs: Option<String>,
}

/// A figure of a paper, ready to be reproduced.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// `PAPER/FIGURE`.
    pub id: String,
    /// Title of the figure.
    pub title: String,
    /// Place of the figure in the paper.
    pub source: String,
    pub(crate) setup: String,
    pub(crate) record: RecordSpec,
    pub(crate) settings: Vec<String>,
    pub(crate) scales: [ScaleSpec; 2],
    pub(crate) axes: Vec<Axis>,
    pub(crate) without: Vec<Vec<String>>,
    pub(crate) claims: Vec<Claim>,
}

/// A run of a figure: one value of each axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) labels: Vec<String>,
    pub(crate) settings: Vec<String>,
    /// The jobs to plan, if nothing is simulated.
    pub(crate) plan: Option<String>,
    pub(crate) needs: Option<String>,
}

/// Reason why a word does not choose a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// The label exists only at the other scale.
    OtherScale,
    /// The claim is faulty.
    Fault(String),
}

/// Labels of the axis names that stand for a label.
pub(crate) type Binding = BTreeMap<String, String>;

impl Figure {
    /// Reads the figure `id` from `text`.
    ///
    /// # Errors
    /// Message with the faulty file and claim.
    pub fn read(id: &str, text: &str) -> Result<Self, String> {
        let file: FigureFile = toml::from_str(text)
            .map_err(|error| format!("{id}.toml: {}", error.to_string().trim()))?;
        let figure = Self::from_file(id, file).map_err(|error| format!("{id}.toml: {error}"))?;
        figure
            .check()
            .map_err(|error| format!("{id}.toml: {error}"))?;
        Ok(figure)
    }

    fn from_file(id: &str, file: FigureFile) -> Result<Self, String> {
        let scale = |scale: ScaleFile| {
            Ok::<_, String>(ScaleSpec {
                setup: scale.setup,
                seeds: scale.seeds,
                settings: settings("", &scale.base)?,
            })
        };
        let axes = file.axes.into_iter().map(|axis| {
            let key = axis.key;
            let values = |own: Option<Vec<ValueFile>>, scale| {
                let values = own.or_else(|| axis.values.clone()).unwrap_or_default();
                let values = values
                    .into_iter()
                    .map(|value| value.into_value(key.as_deref(), scale));
                values.collect::<Result<Vec<_>, String>>()
            };
            let values = [
                values(axis.small, Scale::Small)?,
                values(axis.full, Scale::Full)?,
            ];
            Ok(Axis {
                name: axis.name,
                values,
            })
        });
        Ok(Self {
            id: id.into(),
            title: file.title,
            source: file.source,
            setup: file.setup,
            record: file.record.into_spec()?,
            settings: settings("", &file.base)?,
            scales: [scale(file.small)?, scale(file.full)?],
            axes: axes.collect::<Result<_, String>>()?,
            without: file.without,
            claims: file
                .claims
                .into_iter()
                .map(Claim::from_file)
                .collect::<Result<_, _>>()?,
        })
    }

    /// All runs of a scale, in the order of the axes.
    pub(crate) fn runs(&self, scale: Scale) -> Vec<Run> {
        let mut runs = vec![Run {
            labels: Vec::new(),
            settings: Vec::new(),
            plan: None,
            needs: None,
        }];
        for axis in &self.axes {
            let values = &axis.values[scale as usize];
            let extended = runs.iter().flat_map(|run| {
                values.iter().map(|value| Run {
                    labels: [run.labels.as_slice(), std::slice::from_ref(&value.label)].concat(),
                    settings: [run.settings.as_slice(), &value.settings].concat(),
                    plan: run.plan.clone().or_else(|| value.plan.clone()),
                    needs: run.needs.clone().or_else(|| value.needs.clone()),
                })
            });
            runs = extended.collect();
        }
        runs.retain(|run| !self.leaves_out(&run.labels));
        runs
    }

    fn leaves_out(&self, labels: &[String]) -> bool {
        let covers = |part: &Vec<String>| part.iter().all(|label| labels.contains(label));
        self.without.iter().any(covers)
    }

    /// Description of the runs at a scale.
    pub fn setup(&self, scale: Scale) -> String {
        let own = &self.scales[scale as usize].setup;
        match own.is_empty() {
            true => self.setup.clone(),
            false => format!("{}; {own}", self.setup),
        }
    }

    /// The values that the labels of a run stand for.
    pub(crate) fn values<'a>(
        &'a self,
        scale: Scale,
        labels: &'a [String],
    ) -> impl Iterator<Item = &'a AxisValue> {
        let pairs = labels.iter().zip(&self.axes);
        pairs.filter_map(move |(label, axis)| {
            let mut values = axis.values[scale as usize].iter();
            values.find(|value| value.label == *label)
        })
    }

    /// Kind of the run with these labels: planned, or simulated on the fabric of the last `topology.kind`.
    pub(crate) fn run_kind(&self, scale: Scale, labels: &[String]) -> RunKind {
        let values = || self.values(scale, labels);
        if values().any(|value| value.plan.is_some()) {
            return RunKind::Planned;
        }
        let own = &self.scales[scale as usize].settings;
        let settings = self.settings.iter().chain(own);
        let settings = settings.chain(values().flat_map(|value| &value.settings));
        let kinds = settings.filter_map(|setting| setting.strip_prefix("topology.kind="));
        match kinds.last() {
            Some(kind) if kind.trim_matches('"') == NVLINK => RunKind::Scaleup,
            _ => RunKind::Simulated,
        }
    }

    pub(crate) fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// The labels of the run chosen by `words`.
    pub(crate) fn choose(
        &self,
        scale: Scale,
        words: &[String],
        binding: &Binding,
    ) -> Result<Vec<String>, Unresolved> {
        let mut chosen: Vec<Option<String>> = vec![None; self.axes.len()];
        for word in words {
            let label = match (self.axis(word), binding.get(word)) {
                (Some(_), Some(label)) => label,
                (Some(_), None) => {
                    let message = format!("`{word}` stands for no label here");
                    return Err(Unresolved::Fault(message));
                }
                (None, _) => word,
            };
            let axis = self.axis_of(scale, label)?;
            if chosen[axis].replace(label.clone()).is_some() {
                let message = format!("two labels of the axis `{}`", self.axes[axis].name);
                return Err(Unresolved::Fault(message));
            }
        }
        let labels = chosen.into_iter().zip(&self.axes).map(|(label, axis)| {
            let only = match &axis.values[scale as usize][..] {
                [only] => Some(only.label.clone()),
                _ => None,
            };
            label
                .or(only)
                .ok_or_else(|| Unresolved::Fault(format!("no label of the axis `{}`", axis.name)))
        });
        let labels = labels.collect::<Result<Vec<_>, _>>()?;
        if self.leaves_out(&labels) {
            let message = format!("the run {} is left out", labels.join(", "));
            return Err(Unresolved::Fault(message));
        }
        Ok(labels)
    }

    fn axis_of(&self, scale: Scale, label: &str) -> Result<usize, Unresolved> {
        let has =
            |axis: &Axis, scale: usize| axis.values[scale].iter().any(|value| value.label == label);
        let at = |scale: usize| self.axes.iter().position(|axis| has(axis, scale));
        match (at(scale as usize), at(1 - scale as usize)) {
            (Some(axis), _) => Ok(axis),
            (None, Some(_)) => Err(Unresolved::OtherScale),
            (None, None) => Err(Unresolved::Fault(format!("no axis has a label `{label}`"))),
        }
    }

    /// Labels for which the condition of a claim is evaluated, with their axis; one empty binding if the condition names no axis. Empty if
    /// no label exists at this scale.
    pub(crate) fn bindings(&self, claim: &Claim, scale: Scale) -> Vec<Binding> {
        let Some(axis) = claim.named_axis(self) else {
            return vec![Binding::new()];
        };
        let labels = axis.values[scale as usize].iter().map(|value| &value.label);
        let wanted = |label: &&String| {
            let at = claim.at[scale as usize].as_ref();
            at.is_none_or(|at| at.contains(label))
        };
        labels
            .filter(wanted)
            .map(|label| Binding::from([(axis.name.clone(), label.clone())]))
            .collect()
    }

    /// Finds faults that would otherwise appear while claims are judged.
    fn check(&self) -> Result<(), String> {
        self.check_axes()?;
        self.check_record()?;
        let mut ids: Vec<&str> = self.claims.iter().map(|claim| claim.id.as_str()).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two claims are called `{}`", pair[0]));
        }
        for claim in self.claims.iter().filter(|claim| claim.needs.is_none()) {
            let fault = |message: String| format!("claim `{}`: {message}", claim.id);
            let mut checkable = false;
            for scale in Scale::ALL {
                checkable |= self.check_claim(claim, scale).map_err(fault)?;
            }
            if !checkable {
                return Err(fault("it can be checked at no scale".into()));
            }
        }
        Ok(())
    }

    fn check_axes(&self) -> Result<(), String> {
        for scale in Scale::ALL {
            let mut labels: Vec<&str> = Vec::new();
            for axis in &self.axes {
                let values = &axis.values[scale as usize];
                if values.is_empty() {
                    return Err(format!(
                        "axis `{}` has no values at the {} scale",
                        axis.name,
                        scale.name()
                    ));
                }
                labels.extend(values.iter().map(|value| value.label.as_str()));
                labels.push(&axis.name);
            }
            labels.sort_unstable();
            if let Some(pair) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(format!("two labels or axes are called `{}`", pair[0]));
            }
            let plans = |axis: &&Axis| {
                let mut values = axis.values[scale as usize].iter();
                values.any(|value| value.plan.is_some())
            };
            if self.axes.iter().filter(plans).count() > 1 {
                return Err("two axes have plans: a run has one at most".into());
            }
        }
        Ok(())
    }

    /// Rejects records of scale-up fabrics.
    fn check_record(&self) -> Result<(), String> {
        let mut runs = Scale::ALL
            .into_iter()
            .flat_map(|scale| self.runs(scale).into_iter().map(move |run| (scale, run)));
        let is_scaleup =
            |(scale, run): (Scale, Run)| self.run_kind(scale, &run.labels) == RunKind::Scaleup;
        match self.record != RecordSpec::default() && runs.any(is_scaleup) {
            true => Err("`record`: nothing of it is kept of scale-up fabrics".into()),
            false => Ok(()),
        }
    }

    /// True if the claim can be checked at the scale.
    fn check_claim(&self, claim: &Claim, scale: Scale) -> Result<bool, String> {
        for at in claim.at.iter().flatten().flatten() {
            let known = Scale::ALL.into_iter().any(|scale| {
                claim.named_axis(self).is_some_and(|axis| {
                    axis.values[scale as usize]
                        .iter()
                        .any(|value| value.label == *at)
                })
            });
            if !known {
                return Err(format!("`at`: no axis of the condition has a label `{at}`"));
            }
        }
        let mut checkable = false;
        if claim.scale.is_some_and(|only| only != scale) {
            return Ok(false);
        }
        for binding in self.bindings(claim, scale) {
            let mut checker = Checker {
                figure: self,
                scale,
                binding,
            };
            let mut found = true;
            let expressions = claim
                .comparisons
                .iter()
                .flat_map(|comparison| comparison.bounds.iter().chain([&comparison.quantity]));
            for expression in expressions {
                match expression.evaluate(&mut checker) {
                    Ok(_) => {}
                    Err(Unresolved::OtherScale) => found = false,
                    Err(Unresolved::Fault(message)) => return Err(message),
                }
            }
            checkable |= found;
        }
        Ok(checkable)
    }
}

/// Checker that walks an expression without values.
struct Checker<'a> {
    figure: &'a Figure,
    scale: Scale,
    binding: Binding,
}

impl Leaves for Checker<'_> {
    type Error = Unresolved;

    fn measure(&mut self, call: &Call) -> Result<f64, Unresolved> {
        let measure = Measure::named(&call.measure).map_err(Unresolved::Fault)?;
        measure
            .read_options(&call.options)
            .map_err(Unresolved::Fault)?;
        measure
            .check_record(&self.figure.record)
            .map_err(Unresolved::Fault)?;
        let labels = self.figure.choose(self.scale, &call.words, &self.binding)?;
        let run = self.figure.run_kind(self.scale, &labels);
        measure.check_run(run).map_err(Unresolved::Fault)?;
        Ok(1.0)
    }

    fn over(&mut self, axis: &str, body: &Expression) -> Result<Vec<f64>, Unresolved> {
        over_labels(self.figure, self.scale, axis, |label| {
            let former = self.binding.insert(axis.into(), label.into());
            let value = body.evaluate(self);
            restore(&mut self.binding, axis, former);
            value
        })
    }
}

/// Evaluates `value` for every label of an axis.
pub(crate) fn over_labels<E: From<Unresolved>>(
    figure: &Figure,
    scale: Scale,
    axis: &str,
    mut value: impl FnMut(&str) -> Result<f64, E>,
) -> Result<Vec<f64>, E> {
    let found = figure
        .axis(axis)
        .ok_or_else(|| E::from(Unresolved::Fault(format!("there is no axis `{axis}`"))))?;
    let labels = found.values[scale as usize].iter();
    labels.map(|item| value(&item.label)).collect()
}

pub(crate) fn restore(binding: &mut Binding, axis: &str, former: Option<String>) {
    match former {
        Some(label) => binding.insert(axis.into(), label),
        None => binding.remove(axis),
    };
}

impl Claim {
    fn from_file(file: ClaimFile) -> Result<Self, String> {
        let comparisons =
            parse(&file.expect).map_err(|error| format!("claim `{}`: {error}", file.id))?;
        let at = match file.at {
            None => [None, None],
            Some(AtFile::Both(labels)) => [Some(labels.clone()), Some(labels)],
            Some(AtFile::ByScale { small, full }) => [Some(small), Some(full)],
        };
        Ok(Self {
            id: file.id,
            paper: file.paper,
            source: file.source,
            expect: file.expect,
            note: file.note,
            seeds: file.seeds,
            comparisons,
            at,
            scale: file.scale,
            needs: file.needs,
        })
    }

    /// The axis whose name stands for a label in the condition, outside of `largest` and `smallest`.
    fn named_axis<'a>(&self, figure: &'a Figure) -> Option<&'a Axis> {
        let expressions = self
            .comparisons
            .iter()
            .flat_map(|comparison| comparison.bounds.iter().chain([&comparison.quantity]));
        let mut names = Vec::new();
        expressions.for_each(|expression| free_words(expression, &mut Vec::new(), &mut names));
        names.iter().find_map(|name| figure.axis(name))
    }
}

/// The words of measures that are not bound by an enclosing `largest` or `smallest`.
fn free_words(expression: &Expression, bound: &mut Vec<String>, found: &mut Vec<String>) {
    match expression {
        Expression::Number(_) => {}
        Expression::Negative(inner) => free_words(inner, bound, found),
        Expression::Binary(_, left, right) => {
            free_words(left, bound, found);
            free_words(right, bound, found);
        }
        Expression::Function(_, items) => {
            items.iter().for_each(|item| free_words(item, bound, found));
        }
        Expression::Over(_, axis, body) => {
            bound.push(axis.clone());
            free_words(body, bound, found);
            bound.pop();
        }
        Expression::Measure(call) => {
            let free = call.words.iter().filter(|word| !bound.contains(word));
            found.extend(free.cloned());
        }
    }
}
