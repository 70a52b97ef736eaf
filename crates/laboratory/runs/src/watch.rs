//! Observed runs of a simulation: series, link totals, and the other observations of `[observe]`.

use crate::event_log::{self, event_log};
use clearway_lab::observe::{RunSampler, SampledSeries};
use clearway_lab::record::{Both, Capture, CaptureRecorder, merge_all};
use clearway_lab::why::{FollowPlan, FollowRecorder};
use clearway_lab::{
    Assembly, Finished, FlowResult, FlowSpec, LinkId, NodeId, RunDecision, RunOptions, RunProgress,
    SwitchRole, Threads, Watch,
};
use clearway_report::{
    EventLog, FabricMap, LinkFrames, LinkRow, NodeRole, NodeRow, RunObservations, SeriesRow,
};
use clearway_units::FlowId;
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
    /// Called after each sample with the counts of bundles of links, if the run has them.
    pub on_frames: &'a mut dyn FnMut(&LinkFrames),
    /// True if single events are also recorded.
    pub events: bool,
}

/// Runs an assembled scenario.
pub fn simulate(assembly: &Assembly, threads: Threads, watchers: Watchers<'_>) -> ObservedRun {
    let Watchers {
        on_progress,
        on_flow,
        on_rows,
        on_frames,
        events,
    } = watchers;
    let options = RunOptions {
        threads,
        on_progress,
        on_flow,
    };
    let telemetry = RunSampler::new(assembly, Some(Box::new(on_rows)));
    let telemetry = telemetry.map(|telemetry| telemetry.with_frame_sink(Box::new(on_frames)));
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
    let capture = merge_all(captures.into_iter().flatten()).map(CaptureRecorder::into_capture);
    let mut observed = watch.observed.filter(|_| is_observed);
    if let (Some(observed), Some(capture), Some(plan)) = (&mut observed, &capture, plan) {
        observed.sequences = capture.sequences(plan, &assembly.topology);
    }
    ObservedRun {
        events: eventful.then(|| event_log(assembly, &watch.finished, events)),
        capture,
        observed,
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
    // The rows of links, hundreds of megabytes in the largest fabrics, are made after the run.
    let map = map(assembly);
    let (finished, watched) = match telemetry {
        None => (assembly.run(options, watch), SampledSeries::default()),
        Some(telemetry) => {
            let mut telemetry = telemetry.with_bundles(map.link_bundles());
            let finished = assembly.run_sampled(options, watch, Some(&mut telemetry));
            (finished, telemetry.into_watched())
        }
    };
    let observed = RunObservations {
        times: watched.times,
        curves: watched.curves,
        frames: watched.frames,
        fairness: watched.fairness,
        sequences: Vec::new(),
        nodes: nodes(assembly),
        links: with_totals(links(assembly), &finished),
        map,
    };
    ObservedRun {
        observed: Some(observed),
        ..unseen(finished)
    }
}

/// Nodes and links of a fabric, and its map, without counts.
pub fn fabric(assembly: &Assembly) -> RunObservations {
    RunObservations {
        map: map(assembly),
        nodes: nodes(assembly),
        links: links(assembly),
        ..RunObservations::default()
    }
}

fn map(assembly: &Assembly) -> FabricMap {
    let topology = &assembly.topology;
    let links = (0..topology.cables.len() * 2).map(|link| {
        let (from, to) = topology.link_ends(LinkId(link as u32));
        (from.0, to.0)
    });
    let ends: Vec<(u32, u32)> = links.collect();
    FabricMap::new(&nodes(assembly), &ends)
}

fn nodes(assembly: &Assembly) -> Vec<NodeRow> {
    let topology = &assembly.topology;
    let first_further = topology.hosts as usize - topology.further_nics.len();
    let hosts = (0..topology.hosts).map(|host| NodeRow {
        host: (host as usize)
            .checked_sub(first_further)
            .map(|place| topology.further_nics[place].0),
        ..NodeRow::new(topology.node_name(NodeId(host)), None)
    });
    let groups = topology.groups.as_ref();
    let switches = topology.switches.iter().enumerate();
    let switches = switches.map(|(place, switch)| NodeRow {
        group: groups.map(|groups| groups.of_switch[place]),
        role: match switch.role {
            SwitchRole::Network => NodeRole::Network,
            SwitchRole::ScaleUp => NodeRole::ScaleUp,
            SwitchRole::Nic(_) => NodeRole::Nic,
        },
        ..NodeRow::new(switch.name.clone(), Some(switch.tier))
    });
    hosts.chain(switches).collect()
}

fn links(assembly: &Assembly) -> Vec<LinkRow> {
    let topology = &assembly.topology;
    let links = (0..topology.cables.len() * 2).map(|number| {
        let link = LinkId(number as u32);
        let (from, to) = topology.link_ends(link);
        let cable = &topology.cables[link.cable()];
        LinkRow {
            is_up: cable.up,
            ..LinkRow::new(topology.link_name(link), (from.0, to.0), cable.rate)
        }
    });
    links.collect()
}

fn with_totals(mut links: Vec<LinkRow>, finished: &Finished) -> Vec<LinkRow> {
    for (link, totals) in links.iter_mut().zip(&finished.meters) {
        link.bytes = totals.bytes;
        link.packets = totals.packets;
        link.marks = totals.marks;
        link.drops = totals.drops;
        link.trims = totals.trims;
        link.peak_queue = totals.peak_queue;
    }
    for pauses in &finished.pauses {
        let link = &mut links[pauses.link.0 as usize];
        (link.pauses, link.paused) = (pauses.pauses, pauses.time);
    }
    links
}
