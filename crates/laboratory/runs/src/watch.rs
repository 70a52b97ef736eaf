//! Observed runs of a simulation: series, link totals, and the other observations of `[observe]`.

use crate::event_log::{self, event_log};
use clearway_lab::observe::{RunSampler, SampledSeries};
use clearway_lab::record::{Both, Capture, CaptureRecorder, merge_all};
use clearway_lab::why::{FollowPlan, FollowRecorder};
use clearway_lab::{
    Assembly, Finished, FlowResult, FlowSpec, LinkId, NodeId, RunDecision, RunOptions, RunProgress,
    Threads, Watch,
};
use clearway_report::{EventLog, LinkRow, NodeRow, RunObservations, SeriesRow};
use clearway_units::{FlowId, Span};
use std::sync::Arc;

/// A finished run and its observations.
pub struct ObservedRun {
    /// Outcome of the fabric.
    pub finished: Finished,
    /// Samples and totals of links, if observations were requested.
    pub observed: Option<RunObservations>,
    /// Frames, if they were captured.
    pub capture: Option<Capture>,
    /// Single events, if they were recorded.
    pub events: Option<EventLog>,
}

/// Callbacks and options for watching a run.
pub struct Watchers<'a> {
    /// Called after each round.
    pub on_progress: &'a mut dyn FnMut(RunProgress) -> RunDecision,
    /// Called for each flow; see [`RunOptions::on_flow`].
    pub on_flow: &'a mut dyn FnMut(FlowId, &FlowSpec, &FlowResult),
    /// Called with the rows of each sample.
    pub on_rows: &'a mut dyn FnMut(&[SeriesRow]),
    /// True if single events are also recorded.
    pub events: bool,
}

/// Runs an assembled scenario.
pub fn simulate(assembly: &Assembly, threads: Threads, watchers: Watchers<'_>) -> ObservedRun {
    let Watchers {
        on_progress,
        on_flow,
        on_rows,
        events,
    } = watchers;
    let options = RunOptions {
        threads,
        on_progress,
        on_flow,
    };
    let telemetry = RunSampler::new(assembly, Some(Box::new(on_rows)));
    with_observers(assembly, options, telemetry, events)
}

/// Runs with the needed observers. Observers cost time at each packet, so a run has none unless the user requests frames or single events.
fn with_observers(
    assembly: &Assembly,
    options: RunOptions<'_>,
    telemetry: Option<RunSampler<'_>>,
    eventful: bool,
) -> ObservedRun {
    let plan = assembly.capture.as_ref();
    if plan.is_some() || eventful {
        return recorded(assembly, options, telemetry, eventful);
    }
    match telemetry {
        None => unseen(assembly.run(options, Watch::Off)),
        telemetry => metered(assembly, options, telemetry, Watch::Links),
    }
}

/// Runs an assembled scenario and follows flows; samples are taken as the scenario specifies.
pub fn follow(
    assembly: &Assembly,
    threads: Threads,
    plan: &Arc<FollowPlan>,
    on_progress: &mut dyn FnMut(RunProgress) -> RunDecision,
) -> (ObservedRun, FollowRecorder) {
    let options = RunOptions {
        threads,
        on_progress,
        on_flow: &mut |_, _, _| (),
    };
    let telemetry = RunSampler::new(assembly, None);
    let is_observed = telemetry.is_some();
    let mut recorders = assembly.per_domain(|| FollowRecorder::new(plan));
    let watch = Watch::by(&mut recorders);
    let watch = metered(assembly, options, telemetry, watch);
    let recorder = merge_all(recorders).unwrap_or_else(|| FollowRecorder::new(plan));
    let watch = ObservedRun {
        observed: watch.observed.filter(|_| is_observed),
        ..watch
    };
    (watch, recorder)
}

/// Runs with a recorder of single events, of frames or of both.
fn recorded(
    assembly: &Assembly,
    options: RunOptions<'_>,
    telemetry: Option<RunSampler<'_>>,
    eventful: bool,
) -> ObservedRun {
    let is_observed = telemetry.is_some() || eventful;
    let plan = assembly.capture.as_ref();
    let mut recorders = assembly.per_domain(|| Both {
        first: eventful.then(event_log::recorder),
        second: plan.map(CaptureRecorder::new),
    });
    let watch = Watch::by(&mut recorders);
    let watch = metered(assembly, options, telemetry, watch);
    let (events, captures): (Vec<_>, Vec<_>) = recorders
        .into_iter()
        .map(|recorders| (recorders.first, recorders.second))
        .unzip();
    let events = events.into_iter().flatten();
    ObservedRun {
        events: eventful.then(|| event_log(assembly, &watch.finished, events)),
        capture: merge_all(captures.into_iter().flatten()).map(CaptureRecorder::into_capture),
        observed: watch.observed.filter(|_| is_observed),
        finished: watch.finished,
    }
}

/// A run without observations.
fn unseen(finished: Finished) -> ObservedRun {
    ObservedRun {
        finished,
        observed: None,
        capture: None,
        events: None,
    }
}

/// Runs with meters and the given observers. Without telemetry, the result has nodes and links but no curves.
fn metered(
    assembly: &Assembly,
    options: RunOptions<'_>,
    telemetry: Option<RunSampler<'_>>,
    watch: Watch<'_>,
) -> ObservedRun {
    let (finished, watched) = match telemetry {
        None => (assembly.run(options, watch), SampledSeries::default()),
        Some(mut telemetry) => {
            let finished = assembly.run_sampled(options, watch, Some(&mut telemetry));
            (finished, telemetry.into_watched())
        }
    };
    let observed = observed(assembly, &finished, watched);
    ObservedRun {
        observed: Some(observed),
        ..unseen(finished)
    }
}

fn observed(assembly: &Assembly, finished: &Finished, watched: SampledSeries) -> RunObservations {
    RunObservations {
        times: watched.times,
        curves: watched.curves,
        nodes: nodes(assembly),
        links: links(assembly, finished),
        fairness: watched.fairness,
    }
}

fn nodes(assembly: &Assembly) -> Vec<NodeRow> {
    let topology = &assembly.topology;
    let hosts = (0..topology.hosts).map(|host| NodeRow {
        name: topology.node_name(NodeId(host)),
        tier: None,
    });
    let switches = topology.switches.iter().map(|switch| NodeRow {
        name: switch.name.clone(),
        tier: Some(switch.tier),
    });
    hosts.chain(switches).collect()
}

fn links(assembly: &Assembly, finished: &Finished) -> Vec<LinkRow> {
    let topology = &assembly.topology;
    let mut links: Vec<LinkRow> = finished
        .meters
        .iter()
        .zip(0..)
        .map(|(totals, number)| {
            let link = LinkId(number);
            let (from, to) = topology.link_ends(link);
            LinkRow {
                name: topology.link_name(link),
                from: from.0,
                to: to.0,
                rate: topology.cables[link.cable()].rate,
                bytes: totals.bytes,
                packets: totals.packets,
                marks: totals.marks,
                drops: totals.drops,
                trims: totals.trims,
                pauses: 0,
                paused: Span::ZERO,
                peak_queue: totals.peak_queue,
            }
        })
        .collect();
    for pauses in &finished.pauses {
        let link = &mut links[pauses.link.0 as usize];
        (link.pauses, link.paused) = (pauses.pauses, pauses.time);
    }
    links
}
