//! Running a simulation under watch: series, link totals, and whatever else `[observe]` asks for.

use clearway_lab::observe::{self, LinkMeter, LinkTotals, Metered, Telemetry, Watched};
use clearway_lab::record::{Both, Capture, CaptureRecorder, merge_all};
use clearway_lab::{Assembly, Finished, LinkId, Progress, RunOptions, Verdict};
use clearway_report::{Curve, LinkRow, Metric, NodeRow, Observed, SeriesRow, Subject};
use clearway_units::Span;

/// A run that is over, and what was seen of it.
pub(crate) struct Watch {
    pub(crate) finished: Finished,
    pub(crate) observed: Option<Observed>,
    pub(crate) capture: Option<Capture>,
}

/// What watches a run while it goes on.
pub(crate) struct Watchers<'a> {
    /// Called after each round.
    pub(crate) on_progress: &'a mut dyn FnMut(Progress) -> Verdict,
    /// Called with the rows of each sample.
    pub(crate) on_rows: &'a mut dyn FnMut(&[SeriesRow]),
}

/// Runs what was put together.
pub(crate) fn simulate(assembly: &Assembly, threads: usize, watchers: Watchers<'_>) -> Watch {
    let Watchers {
        on_progress,
        on_rows,
    } = watchers;
    let options = RunOptions {
        threads,
        on_progress,
    };
    let mut rows = Vec::new();
    let sink = |sample: &[observe::SeriesRow]| {
        rows.clear();
        rows.extend(sample.iter().map(series_row));
        on_rows(&rows);
    };
    let telemetry = Telemetry::new(assembly, Some(Box::new(sink)));
    match (telemetry, &assembly.capture) {
        (None, None) => Watch {
            finished: assembly.run(options, || ()),
            observed: None,
            capture: None,
        },
        (None, Some(plan)) => {
            let finished = assembly.run(options, || CaptureRecorder::new(plan));
            let (finished, recorders) = finished.split();
            Watch {
                finished,
                observed: None,
                capture: capture(recorders),
            }
        }
        (Some(telemetry), None) => sampled(assembly, options, telemetry, LinkMeter::default).0,
        (Some(telemetry), Some(plan)) => {
            let observer = || Both {
                first: LinkMeter::default(),
                second: CaptureRecorder::new(plan),
            };
            let (watch, observers) = sampled(assembly, options, telemetry, observer);
            Watch {
                capture: capture(observers.into_iter().map(|both| both.second)),
                ..watch
            }
        }
    }
}

/// Runs with telemetry and whatever observers there are beside its meters.
fn sampled<O: Metered>(
    assembly: &Assembly,
    options: RunOptions<'_>,
    mut telemetry: Telemetry<'_>,
    observer: impl FnMut() -> O,
) -> (Watch, Vec<O>) {
    let finished = assembly.run_sampled(options, observer, Some(&mut telemetry));
    let watched = telemetry.into_watched();
    let (finished, mut observers) = finished.split();
    let observed = observed(assembly, &finished, watched, &mut observers);
    let watch = Watch {
        finished,
        observed: Some(observed),
        capture: None,
    };
    (watch, observers)
}

fn capture(recorders: impl IntoIterator<Item = CaptureRecorder>) -> Option<Capture> {
    merge_all(recorders).map(CaptureRecorder::into_capture)
}

fn observed<O: Metered>(
    assembly: &Assembly,
    finished: &Finished,
    watched: Watched,
    observers: &mut [O],
) -> Observed {
    let topology = &assembly.topology;
    let meters = observers.iter_mut().map(|observer| &*observer.meter());
    let totals = observe::link_totals(topology.cables.len() * 2, meters);
    let curve = |curve: observe::Curve| Curve {
        metric: metric(curve.metric),
        subject: subject(curve.subject),
        values: curve.values,
    };
    Observed {
        times: watched.times,
        curves: watched.curves.into_iter().map(curve).collect(),
        nodes: nodes(assembly),
        links: links(assembly, finished, &totals),
    }
}

fn nodes(assembly: &Assembly) -> Vec<NodeRow> {
    let topology = &assembly.topology;
    let hosts = (0..topology.hosts).map(|host| NodeRow {
        name: format!("host{host}"),
        tier: None,
    });
    let switches = topology.switches.iter().map(|switch| NodeRow {
        name: switch.name.clone(),
        tier: Some(switch.tier),
    });
    hosts.chain(switches).collect()
}

fn links(assembly: &Assembly, finished: &Finished, totals: &[LinkTotals]) -> Vec<LinkRow> {
    let topology = &assembly.topology;
    let mut links: Vec<LinkRow> = totals
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

fn series_row(row: &observe::SeriesRow) -> SeriesRow {
    SeriesRow {
        time: row.time,
        interval: row.interval,
        metric: metric(row.metric),
        subject: subject(row.subject),
        value: row.value,
    }
}

fn subject(subject: observe::Subject) -> Subject {
    match subject {
        observe::Subject::Run => Subject::Run,
        observe::Subject::Link(link) => Subject::Link(link.0),
        observe::Subject::Flow(flow) => Subject::Flow(flow.0),
    }
}

fn metric(metric: observe::Metric) -> Metric {
    macro_rules! same {
        ($($name:ident),+) => {
            match metric {
                $(observe::Metric::$name => Metric::$name),+
            }
        };
    }
    same!(
        QueueDepth,
        QueuePeak,
        LinkRate,
        FlowGoodput,
        Window,
        PacingRate,
        InFlight,
        Goodput,
        ActiveFlows,
        CompletedFlows,
        Fairness,
        Marks,
        Drops,
        PausedLinks
    )
}
