//! Choice of the links, flows and nodes to draw.

use super::super::plot::MOST_SERIES;
use clearway_report::FlowTimes;
use clearway_report::jobs::evenly;
use clearway_report::observed::{Curve, Metric, RunObservations, Subject, SubjectKind};
use std::collections::{BTreeMap, BTreeSet};

/// Subjects to draw, with their colours: the same in every plot.
pub(super) struct ChosenSubjects(pub(super) BTreeMap<Subject, usize>);

impl ChosenSubjects {
    pub(super) fn new(observed: &RunObservations, flows: &[FlowTimes]) -> Self {
        let links = chosen_links(observed);
        let flows = chosen_flows(observed, flows);
        let [gpus, switches] =
            [SubjectKind::Gpu, SubjectKind::Switch].map(|kind| chosen_nodes(observed, kind));
        let colours = |subjects: Vec<Subject>| {
            let places = subjects.into_iter().enumerate();
            places.map(|(place, subject)| (subject, place % MOST_SERIES))
        };
        let nodes = colours(gpus).chain(colours(switches));
        let mut all: BTreeMap<_, _> = colours(links).chain(colours(flows)).chain(nodes).collect();
        all.insert(Subject::Run, 0);
        Self(all)
    }
}

/// The links with the longest queues, the longest first; then the links that carried most.
fn chosen_links(observed: &RunObservations) -> Vec<Subject> {
    let greatest = |curve: &Curve| {
        let values = curve
            .values
            .iter()
            .copied()
            .filter(|value| value.is_finite());
        values.fold(0.0, f64::max)
    };
    let mut chosen: Vec<Subject> = Vec::new();
    for metric in [Metric::QueuePeak, Metric::QueueDepth, Metric::LinkRate] {
        let mut ranked: Vec<(f64, Subject)> = observed
            .curves_of(metric)
            .map(|curve| (greatest(curve), curve.subject))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let room = MOST_SERIES.saturating_sub(chosen.len());
        let new = ranked.into_iter().map(|(_, subject)| subject);
        let new: Vec<Subject> = new.filter(|subject| !chosen.contains(subject)).collect();
        chosen.extend(new.into_iter().take(room));
    }
    chosen
}

/// Flows evenly from the fastest to the slowest, both included; flows that did not complete are the slowest.
fn chosen_flows(observed: &RunObservations, flows: &[FlowTimes]) -> Vec<Subject> {
    let subjects: BTreeSet<u32> = observed
        .curves
        .iter()
        .filter_map(|curve| match curve.subject {
            Subject::Flow(flow) => Some(flow),
            _ => None,
        })
        .collect();
    let finish: BTreeMap<u32, _> = flows.iter().map(|row| (row.flow, row.fct())).collect();
    let mut ranked: Vec<u32> = subjects.into_iter().collect();
    if ranked.len() > MOST_SERIES {
        let key = |flow: &u32| {
            let fct = finish.get(flow).copied().flatten();
            (fct.is_none(), fct, *flow)
        };
        ranked.sort_by_key(key);
        let last = ranked.len() - 1;
        ranked = (0..MOST_SERIES)
            .map(|place| ranked[place * last / (MOST_SERIES - 1)])
            .collect();
        ranked.sort_unstable();
    }
    ranked.into_iter().map(Subject::Flow).collect()
}

/// Nodes of one kind that have curves, evenly from the first to the last, both included.
fn chosen_nodes(observed: &RunObservations, kind: SubjectKind) -> Vec<Subject> {
    let curves = observed.curves.iter();
    let curves = curves.filter(|curve| curve.metric.info().scope == kind);
    let subjects: BTreeSet<Subject> = curves.map(|curve| curve.subject).collect();
    let subjects: Vec<Subject> = subjects.into_iter().collect();
    let places = evenly(subjects.len(), MOST_SERIES);
    places.map(|place| subjects[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Span;

    #[test]
    fn flows_are_chosen_from_the_fastest_to_the_slowest() {
        let curve = |flow| Curve {
            metric: Metric::FlowGoodput,
            subject: Subject::Flow(flow),
            values: vec![1.0; 4],
        };
        let watched = RunObservations {
            curves: (0..100).map(curve).collect(),
            ..RunObservations::default()
        };
        let rows: Vec<FlowTimes> = (0..100)
            .map(|flow| {
                let fct = Span::from_us(1000 - u64::from(flow));
                FlowTimes::from(&crate::sample::flow(flow, (flow != 50).then_some(fct)))
            })
            .collect();
        let chosen = chosen_flows(&watched, &rows);
        assert_eq!(chosen.len(), MOST_SERIES);
        // Flow 99 is the fastest, flow 0 is the slowest that completed, flow 50 never completed.
        assert!(chosen.contains(&Subject::Flow(99)) && chosen.contains(&Subject::Flow(50)));
        let few = RunObservations {
            curves: (0..5).map(curve).collect(),
            ..RunObservations::default()
        };
        assert_eq!(chosen_flows(&few, &rows).len(), 5);
    }
}
