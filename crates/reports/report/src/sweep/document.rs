//! `sweep.json`.

use super::points::{CONFIDENCE, Ranking, Samples};
use super::{
    AssertionCase, AssertionOutcome, AssertionVerdict, BestPoint, SCHEMA, Statistic, SweepAxis,
    SweepFailure, SweepMeasure, SweepPoint, SweepRecord, SweepStatus, TuningRecord, TuningRung,
};
use clearway_statistics::{Estimate, Interval};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Document<'a> {
    kind: &'static str,
    schema: u32,
    name: &'a str,
    version: &'a str,
    revision: &'a str,
    command: &'a str,
    missing: u64,
    axes: Vec<Axis<'a>>,
    measures: &'a [SweepMeasure],
    points: Vec<Point<'a>>,
    best: BTreeMap<&'a str, Best>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupBest<'a>>,
    failures: Vec<Failure<'a>>,
    assertions: Vec<Outcome<'a>>,
    tuning: Option<Tuned<'a>>,
}

#[derive(Serialize)]
struct Axis<'a> {
    key: &'a str,
    values: &'a [String],
    unit: Option<&'a str>,
    numbers: Option<&'a [f64]>,
    given: bool,
}

#[derive(Serialize)]
struct Point<'a> {
    values: Values<'a>,
    runs: Vec<Run<'a>>,
    measures: BTreeMap<&'a str, Seeds>,
}

#[derive(Serialize)]
struct Run<'a> {
    seed: u64,
    key: &'a str,
    status: SweepStatus,
}

/// A measure at a point.
#[derive(Serialize)]
struct Seeds {
    per_seed: Vec<Option<f64>>,
    mean: Option<f64>,
    mean_interval: Option<[f64; 2]>,
    median: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
}

/// The best point by a measure.
#[derive(Serialize)]
struct Best {
    point: usize,
    share_of_samples: Option<f64>,
    alike: Vec<usize>,
    left_out: usize,
    fewer_seeds: usize,
}

/// The best points of a group.
#[derive(Serialize)]
struct GroupBest<'a> {
    values: GivenValues<'a>,
    points: Vec<usize>,
    best: BTreeMap<&'a str, Best>,
}

#[derive(Serialize)]
struct Failure<'a> {
    key: &'a str,
    seed: u64,
    values: Values<'a>,
    reason: &'a str,
}

#[derive(Serialize)]
struct Outcome<'a> {
    text: &'a str,
    measure: &'a str,
    statistic: Statistic,
    confidence: f64,
    verdict: AssertionVerdict,
    reason: &'a str,
    cases: Vec<Case<'a>>,
}

#[derive(Serialize)]
struct Case<'a> {
    values: Values<'a>,
    other: Option<Values<'a>>,
    seeds: usize,
    estimate: Option<f64>,
    interval: Option<[f64; 2]>,
    ratio: Option<f64>,
    ratio_interval: Option<[f64; 2]>,
    verdict: AssertionVerdict,
    reason: &'a str,
}

/// The choice of a tuning.
#[derive(Serialize)]
struct Tuned<'a> {
    measure: &'a str,
    then: Option<&'a str>,
    within: f64,
    rungs: &'a [TuningRung],
    best: Vec<Values<'a>>,
}

/// Values of a point by axis.
struct Values<'a> {
    sweep: &'a SweepRecord,
    place: &'a [u32],
}

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.sweep.values_of(self.place))
    }
}

/// Values of a point on the given axes.
struct GivenValues<'a> {
    sweep: &'a SweepRecord,
    place: Vec<u32>,
}

impl Serialize for GivenValues<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let axes = self.sweep.axes.iter().filter(|axis| axis.given);
        let values = axes.zip(&self.place);
        serializer
            .collect_map(values.map(|(axis, &value)| (&axis.key, &axis.values[value as usize])))
    }
}

impl SweepRecord {
    /// `sweep.json`: indented, with a final line break.
    pub fn to_json(&self) -> String {
        let mut samples = Samples::default();
        let points = self.points();
        let all: Vec<usize> = (0..points.len()).collect();
        let groups = self.groups();
        let groups = groups.into_iter().filter(|group| !group.place.is_empty());
        let mut ranking = Ranking::from_sweep(self);
        let bests = self.bests(&mut ranking, &all);
        let groups = groups.map(|group| GroupBest {
            best: self.bests(&mut ranking, &group.points),
            points: group.points,
            values: GivenValues {
                sweep: self,
                place: group.place,
            },
        });
        let document = Document {
            kind: "sweep",
            schema: SCHEMA,
            name: &self.name,
            version: &self.version,
            revision: &self.revision,
            command: &self.command,
            missing: self.missing,
            axes: self.axes.iter().map(axis).collect(),
            measures: &self.measures,
            points: points
                .iter()
                .map(|point| self.point(point, &mut samples))
                .collect(),
            best: bests,
            groups: groups.collect(),
            failures: self
                .failures
                .iter()
                .map(|failure| self.failure(failure))
                .collect(),
            assertions: self
                .assertions
                .iter()
                .map(|outcome| self.outcome(outcome))
                .collect(),
            tuning: self.tuning.as_ref().map(|tuning| self.tuned(tuning)),
        };
        let json = serde_json::to_string_pretty(&document);
        json.expect("a sweep is text and numbers") + "\n"
    }

    fn tuned<'a>(&'a self, tuning: &'a TuningRecord) -> Tuned<'a> {
        let best = tuning.best.iter();
        Tuned {
            measure: &tuning.measure,
            then: tuning.then.as_deref(),
            within: tuning.within,
            rungs: &tuning.rungs,
            best: best.map(|place| self.values(place)).collect(),
        }
    }

    fn values<'a>(&'a self, place: &'a [u32]) -> Values<'a> {
        Values { sweep: self, place }
    }

    fn point(&self, point: &SweepPoint, samples: &mut Samples) -> Point<'_> {
        let runs = || point.runs.iter().map(|&run| &self.runs[run]);
        let place = &self.runs[point.runs[0]].place;
        let measures = self.measures.iter().enumerate();
        let measures = measures.map(|(number, measure)| {
            let per_seed: Vec<Option<f64>> = runs().map(|run| run.values[number]).collect();
            (measure.name.as_str(), Seeds::from_seeds(per_seed, samples))
        });
        Point {
            values: self.values(place),
            measures: measures.collect(),
            runs: runs()
                .map(|run| Run {
                    seed: run.seed,
                    key: &run.key,
                    status: run.status,
                })
                .collect(),
        }
    }

    /// The best of these points by each measure.
    fn bests(&self, ranking: &mut Ranking<'_>, among: &[usize]) -> BTreeMap<&str, Best> {
        let measures = self.measures.iter().enumerate();
        let bests = measures.filter_map(|(place, measure)| {
            let best = ranking.best(among, place, Statistic::Mean)?;
            Some((measure.name.as_str(), Best::from_best(best)))
        });
        bests.collect()
    }

    fn failure<'a>(&'a self, failure: &'a SweepFailure) -> Failure<'a> {
        Failure {
            key: &failure.key,
            seed: failure.seed,
            values: self.values(&failure.place),
            reason: &failure.reason,
        }
    }

    fn outcome<'a>(&'a self, outcome: &'a AssertionOutcome) -> Outcome<'a> {
        Outcome {
            text: &outcome.text,
            measure: &outcome.measure,
            statistic: outcome.statistic,
            confidence: outcome.confidence,
            verdict: outcome.verdict,
            reason: &outcome.reason,
            cases: outcome.cases.iter().map(|case| self.case(case)).collect(),
        }
    }

    fn case<'a>(&'a self, case: &'a AssertionCase) -> Case<'a> {
        let interval = |estimate: Option<Estimate>| estimate?.interval.map(Interval::ends);
        Case {
            values: self.values(&case.place),
            other: case.other.as_ref().map(|place| self.values(place)),
            seeds: case.estimate.map_or(0, |estimate| estimate.seeds),
            estimate: case.estimate.map(|estimate| estimate.value),
            interval: interval(case.estimate),
            ratio: case.ratio.map(|ratio| ratio.value),
            ratio_interval: interval(case.ratio),
            verdict: case.verdict,
            reason: &case.reason,
        }
    }
}

impl Best {
    fn from_best(best: BestPoint) -> Self {
        Self {
            share_of_samples: best.shares.map(|shares| shares[&best.point]),
            point: best.point,
            alike: best.alike,
            left_out: best.left_out,
            fewer_seeds: best.fewer_seeds,
        }
    }
}

impl Seeds {
    fn from_seeds(per_seed: Vec<Option<f64>>, samples: &mut Samples) -> Self {
        let values: Vec<f64> = per_seed.iter().flatten().copied().collect();
        let mean = Statistic::Mean.estimate(&values, CONFIDENCE, samples);
        let value = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.value);
        let interval = |estimate: Option<Estimate>| estimate?.interval.map(Interval::ends);
        Self {
            mean: value(mean),
            mean_interval: interval(mean),
            median: Statistic::Median.compute(&values),
            min: values.iter().copied().reduce(f64::min),
            max: values.iter().copied().reduce(f64::max),
            per_seed,
        }
    }
}

fn axis(axis: &SweepAxis) -> Axis<'_> {
    Axis {
        key: &axis.key,
        values: &axis.values,
        unit: axis.numbers.as_ref().map(|numbers| numbers.unit.as_str()),
        numbers: axis
            .numbers
            .as_ref()
            .map(|numbers| numbers.values.as_slice()),
        given: axis.given,
    }
}
