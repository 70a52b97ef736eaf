//! Curves over time: selection, reduction and assignment to plots.

mod chosen;

use self::chosen::ChosenSubjects;
use super::document::Document;
use super::format;
use super::html::paragraph;
use super::plot::{Axis, Join, MOST_POINTS, Plot, Rule, Series, Shape, Unit};
use super::views::{FLOWS, LINKS, NODES, QUEUE_PEAK, RUN, View};
use clearway_report::comparison::RunCurve;
use clearway_report::observed::{Metric, RunObservations, Subject, SubjectKind};
use clearway_report::{LinkEventRow, RunRecord};
use clearway_results::{MergeRule, MetricUnit};
use clearway_units::{Span, Time};
use std::ops::Range;
use std::sync::Arc;

/// Smallest value that means "unlimited": controllers that set no window, or no rate, report `u64::MAX`.
const UNLIMITED: f64 = (1u64 << 63) as f64;

/// Instants of the plots: runs of equal numbers of samples are joined, so that at most [`MOST_POINTS`] are left.
pub(super) struct Instants {
    /// The original lengths of the intervals, in microseconds.
    lengths: Vec<f64>,
    /// Number of samples joined into one.
    run: usize,
    /// The ends of the joined intervals, in microseconds.
    pub(super) ends: Arc<[f64]>,
}

impl Instants {
    /// Creates the instants up to `end`. Later samples, taken while the last timers expire, are dropped.
    pub(super) fn from_times(times: &[Time], end: Span) -> Self {
        let end = Time::ZERO + end;
        let count = times.partition_point(|time| *time < end) + 1;
        let times = times.iter().take(count);
        let us: Vec<f64> = times.map(|time| time.as_us()).collect();
        let starts = [0.0].into_iter().chain(us.iter().copied());
        let lengths: Vec<f64> = us
            .iter()
            .zip(starts)
            .map(|(end, from)| end - from)
            .collect();
        let run = us.len().div_ceil(MOST_POINTS).max(1);
        Self {
            ends: us
                .chunks(run)
                .filter_map(|chunk| chunk.last().copied())
                .collect(),
            lengths,
            run,
        }
    }

    fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        let count = self.lengths.len();
        (0..count)
            .step_by(self.run)
            .map(move |from| from..(from + self.run).min(count))
    }

    /// One value for each joined interval; for events, the number per microsecond.
    fn join(&self, merge: MergeRule, values: &[f64]) -> Vec<f64> {
        self.runs()
            .map(|run| {
                let lengths = self.lengths[run.clone()].iter().copied();
                let both = values[run].iter().copied().zip(lengths);
                let limited = both.filter(|(value, _)| *value < UNLIMITED);
                match merge {
                    MergeRule::Sum => {
                        let length: f64 = limited.clone().map(|(_, length)| length).sum();
                        merge.fold(limited) / length
                    }
                    MergeRule::Last | MergeRule::Max | MergeRule::Mean => merge.fold(limited),
                }
            })
            .collect()
    }
}

/// Maximum number of link events that are drawn, and of events with a label: more would cover the curves.
const MOST_EVENTS: usize = 64;
const MOST_WORDS: usize = 6;

/// Lines at the link events of the run; events of one instant share a line.
fn event_rules(record: &RunRecord) -> Vec<Rule> {
    let end = Time::ZERO + record.simulated;
    let events = record.link_events.iter().filter(|event| event.at <= end);
    let events: Vec<&LinkEventRow> = events.collect();
    let instants = events.chunk_by(|a, b| a.at == b.at).take(MOST_EVENTS);
    let rules = instants.enumerate().map(|(place, events)| Rule {
        x: events[0].at.as_us(),
        label: match events {
            _ if place >= MOST_WORDS => String::new(),
            [event] => event.words.clone(),
            [first, rest @ ..] => format!("{}, {} more", first.words, rest.len()),
            [] => String::new(),
        },
    });
    rules.collect()
}

/// The sections on the curves over time.
pub(super) fn sections(document: &mut Document, record: &RunRecord, observed: &RunObservations) {
    let instants = Instants::from_times(&observed.times, record.simulated);
    if instants.ends.is_empty() || observed.curves.is_empty() {
        document.open_section("time", "Over time");
        document.push(&paragraph("No curves were recorded in this run."));
        document.close_section();
        return;
    }
    let chosen = ChosenSubjects::new(observed, &record.flow_times());
    let rules = event_rules(record);
    let groups: [(&str, &str, &[View]); 4] = [
        ("network", "The network over time", &RUN),
        ("queues", "Queues and links over time", &LINKS),
        ("flows", "Flows over time", &FLOWS),
        ("nodes", "GPUs and switches over time", &NODES),
    ];
    let mut hint = Some(
        "<p class=\"note screen\">Drag across a plot to zoom in all plots over time; Escape, or a double click, shows everything again. \
         Point at a curve for its values; with the keyboard: arrows, + and −.</p>",
    );
    for (id, heading, views) in groups {
        let parts: Vec<Part> = views
            .iter()
            .filter_map(|view| part(view, observed, &instants, &chosen))
            .collect();
        if parts.is_empty() {
            continue;
        }
        document.open_section(id, heading);
        document.push(hint.take().unwrap_or_default());
        let mut plots = Vec::new();
        let mut said = Vec::new();
        for part in parts {
            match part {
                Part::Plot(plot) => plots.push(Plot {
                    rules: rules.clone(),
                    ..*plot
                }),
                Part::Sentence(sentence) => said.push(sentence),
            }
        }
        // The peaks include the information of the depths.
        if plots.iter().any(|plot| plot.id == QUEUE_PEAK.id) {
            plots.retain(|plot| plot.id != "queue-depth");
        }
        document.plots(plots);
        if !said.is_empty() {
            document.push(&paragraph(&said.join(" ")));
        }
        document.close_section();
    }
}

/// A metric of several runs in one plot, each run with a name and a colour; a sentence if all values are zero, `None` without
/// values.
pub(super) fn overlay(
    metric: Metric,
    run_curves: &[(&str, usize, RunCurve)],
    note: &str,
) -> Option<Result<Plot, &'static str>> {
    let shows = |view: &&View| view.metrics.contains(&metric);
    let view = RUN.iter().chain(&LINKS).find(shows)?;
    let merge = metric.merge();
    let series: Vec<Series> = run_curves
        .iter()
        .map(|(name, colour, run_curve)| {
            let end = run_curve
                .times
                .last()
                .map_or(Span::ZERO, |&end| end - Time::ZERO);
            let instants = Instants::from_times(&run_curve.times, end);
            Series {
                name: (*name).into(),
                y: instants.join(merge, &run_curve.values),
                x: instants.ends,
                shape: Shape::from_merge(merge),
                join: Join::from_merge(merge),
                colour: *colour,
            }
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    if let Some(sentence) = zero_text(metric, &series) {
        return Some(Err(sentence));
    }
    let info = metric.info();
    let id = if metric == view.metrics[0] {
        view.id
    } else {
        info.name
    };
    let note = match metric {
        Metric::QueuePeak => format!("of those that were watched, {note}"),
        Metric::Fairness => format!("over the last eight base round trips, {note}"),
        Metric::RateFairness => format!("of all active flows, {note}"),
        _ => note.into(),
    };
    Some(Ok(plot_over_time(metric, (id, info.title, note), series)))
}

/// Sentence that replaces the plot of a metric if all values are zero or missing and the metric has one.
fn zero_text(metric: Metric, series: &[Series]) -> Option<&'static str> {
    let sentence = metric.info().when_zero;
    let mut values = series.iter().flat_map(|series| &series.y);
    let are_zero = values.all(|value| !value.is_finite() || *value == 0.0);
    (are_zero && !sentence.is_empty()).then_some(sentence)
}

/// Plot over simulated time, with the unit and axis of `metric`.
fn plot_over_time(
    metric: Metric,
    (id, title, note): (&'static str, &str, String),
    series: Vec<Series>,
) -> Plot {
    let unit = Unit::from_metric(metric);
    let y = Axis::from_zero(metric.info().axis, unit);
    Plot {
        id,
        title: title.into(),
        note,
        x: Axis {
            group: Some("time"),
            ..Axis::from_zero("time", Unit::Time)
        },
        y: match unit {
            Unit::Fraction => y.to(1.0),
            _ => y,
        },
        series,
        rules: Vec::new(),
    }
}

enum Part {
    Plot(Box<Plot>),
    Sentence(&'static str),
}

/// The plot of a view; `None` if there is nothing to draw.
fn part(
    view: &View,
    observed: &RunObservations,
    instants: &Instants,
    chosen: &ChosenSubjects,
) -> Option<Part> {
    let mut series: Vec<Series> = Vec::new();
    for (place, &metric) in view.metrics.iter().enumerate() {
        let merge = metric.merge();
        for curve in observed.curves_of(metric) {
            let Some(&colour) = chosen.0.get(&curve.subject) else {
                continue;
            };
            let y = instants.join(merge, &curve.values);
            if y.iter().all(|value| !value.is_finite()) {
                continue;
            }
            let of_run = curve.subject == Subject::Run;
            series.push(Series {
                name: if of_run {
                    metric.info().label.into()
                } else {
                    observed.name_of(curve.subject)
                },
                x: instants.ends.clone(),
                y,
                shape: Shape::from_merge(merge),
                join: Join::from_merge(merge),
                colour: if of_run { place } else { colour },
            });
        }
    }
    series.sort_by_key(|series| series.colour);
    if series.is_empty() {
        return None;
    }
    let metric = view.metrics[0];
    if let Some(sentence) = zero_text(metric, &series) {
        return Some(Part::Sentence(sentence));
    }
    let note = note(view, observed, series.len());
    let plot = plot_over_time(metric, (view.id, view.title, note), series);
    Some(Part::Plot(Box::new(plot)))
}

/// Note on a plot: curves that were left out, or the scope of the figures.
fn note(view: &View, observed: &RunObservations, shown: usize) -> String {
    let metric = view.metrics[0];
    let all = observed.curves_of(metric).count();
    if metric == Metric::Fairness {
        return "1 is fair; goodput over eight base round trips, rates at each sample".into();
    }
    if all <= shown {
        return String::new();
    }
    let all = format::count(all as u64);
    match metric.info().scope {
        SubjectKind::Switch => format!("{shown} of {all} switches"),
        SubjectKind::Gpu => format!("{shown} of {all} GPUs"),
        SubjectKind::Link if metric.info().unit == MetricUnit::Bytes => {
            format!("the {shown} longest of {all}")
        }
        SubjectKind::Link => format!("{} of {all}", format::counted(shown, "link", "links")),
        SubjectKind::Flow | SubjectKind::Run => format!(
            "{} of {all}, from the fastest to the slowest",
            format::counted(shown, "flow", "flows")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_report::observed::Curve;
    use std::collections::BTreeMap;

    fn observed(samples: u64) -> RunObservations {
        RunObservations {
            times: (1..=samples).map(Time::from_us).collect(),
            ..RunObservations::default()
        }
    }

    #[test]
    fn few_samples_stay_as_they_are() {
        let instants = Instants::from_times(&observed(1000).times, Span::from_us(5000));
        assert_eq!(instants.ends.len(), 1000);
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(instants.join(MergeRule::Last, &values), values);
    }

    #[test]
    fn samples_after_the_end_are_left_out() {
        let instants = Instants::from_times(&observed(1000).times, Span::from_ps(10_500_000));
        assert_eq!(instants.ends.last(), Some(&11.0));
    }

    #[test]
    fn an_unlimited_window_is_no_value() {
        let instants = Instants::from_times(&observed(3).times, Span::from_us(3));
        let joined = instants.join(MergeRule::Last, &[u64::MAX as f64, 5.0, f64::NAN]);
        assert!(joined[0].is_nan() && joined[1] == 5.0 && joined[2].is_nan());
    }

    #[test]
    fn many_samples_are_joined_by_what_they_mean() {
        let instants = Instants::from_times(&observed(2500).times, Span::from_us(2500));
        // Groups of three, and a remainder of one.
        assert_eq!(instants.ends.len(), 834);
        assert_eq!(instants.ends[..2], [3.0, 6.0]);
        assert_eq!(instants.ends[833], 2500.0);
        let mut values = vec![0.0; 2500];
        values[..6].copy_from_slice(&[6.0, 9.0, 3.0, f64::NAN, 2.0, 4.0]);
        let joined = |merge| instants.join(merge, &values)[..2].to_vec();
        assert_eq!(joined(MergeRule::Last), [3.0, 4.0]);
        assert_eq!(joined(MergeRule::Max), [9.0, 4.0]);
        assert_eq!(joined(MergeRule::Mean), [6.0, 3.0]);
        assert_eq!(joined(MergeRule::Sum), [6.0, 3.0]);
    }

    #[test]
    fn every_metric_is_drawn_by_its_rule() {
        let watched = |metric| RunObservations {
            curves: vec![Curve {
                metric,
                subject: Subject::Run,
                values: (0..2 * MOST_POINTS as u64)
                    .map(|n| (n % 2 * 7) as f64)
                    .collect(),
            }],
            ..observed(2 * MOST_POINTS as u64)
        };
        for view in RUN.iter().chain(&LINKS).chain(&FLOWS).chain(&NODES) {
            for &metric in view.metrics {
                let watched = watched(metric);
                let instants =
                    Instants::from_times(&watched.times, Span::from_us(2 * MOST_POINTS as u64));
                let chosen = ChosenSubjects(BTreeMap::from([(Subject::Run, 0)]));
                let Some(Part::Plot(plot)) = part(view, &watched, &instants, &chosen) else {
                    panic!("{metric:?} is not drawn");
                };
                let merge = metric.merge();
                let length = if merge == MergeRule::Sum { 2.0 } else { 1.0 };
                let expected = merge.fold([(0.0, 1.0), (7.0, 1.0)]) / length;
                let series = &plot.series[0];
                assert!(series.y.iter().all(|&y| y == expected), "{metric:?}");
                assert_eq!(series.shape, Shape::from_merge(merge), "{metric:?}");
                assert_eq!(series.join, Join::from_merge(merge), "{metric:?}");
                assert_eq!(plot.y.unit, Unit::from_metric(metric), "{metric:?}");
            }
        }
    }

    #[test]
    fn means_weigh_intervals_by_their_length() {
        let mut watched = observed(2000);
        // The first interval of the first pair is 0.5 us long, the second one 1.5 us.
        watched.times[0] = Time::from_ps(500_000);
        let instants = Instants::from_times(&watched.times, Span::from_us(2000));
        let mut values = vec![0.0; 2000];
        values[..2].copy_from_slice(&[4.0, 8.0]);
        assert_eq!(instants.join(MergeRule::Mean, &values)[0], 7.0);
        assert_eq!(instants.join(MergeRule::Sum, &values)[0], 6.0);
    }

    #[test]
    fn events_of_links_are_lines_within_the_run() {
        let event = |us, words: &str| LinkEventRow {
            at: Time::from_us(us),
            words: words.into(),
            link: 0,
            comes_up: None,
        };
        let mut record = crate::sample::run();
        record.simulated = Span::from_us(100);
        record.link_events = vec![
            event(20, "a-b down"),
            event(20, "c-d down"),
            event(100, "a-b up"),
        ];
        record.link_events.push(event(101, "c-d up"));
        let rules = event_rules(&record);
        let told: Vec<(f64, &str)> = rules
            .iter()
            .map(|rule| (rule.x, rule.label.as_str()))
            .collect();
        assert_eq!(told, [(20.0, "a-b down, 1 more"), (100.0, "a-b up")]);
        record.link_events = (0..100).map(|us| event(us, "a-b down")).collect();
        let rules = event_rules(&record);
        assert_eq!(rules.len(), MOST_EVENTS);
        let words = rules.iter().filter(|rule| !rule.label.is_empty());
        assert_eq!(words.count(), MOST_WORDS);
    }
}
