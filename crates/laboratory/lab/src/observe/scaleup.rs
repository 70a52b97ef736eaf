//! Samples of a scale-up fabric, taken between rounds.

use super::curves::Curves;
use super::link_choice::{LinkChoice, Longest};
use super::plan::Links;
use super::telemetry::{SampledSeries, Sink};
use crate::ScenarioError;
use crate::scaleup::{FLIT_BYTES, ScaleupAssembly};
use crate::scenario::{SampledSubjects, Sampling};
use clearway_fabric::topology::LinkId;
use clearway_results::{FrameCounts, FrameRecorder, LinkBundles, Metric, SeriesRow, Subject};
use clearway_scaleup::{Cycle, GpuGauges, RoundState as Fabric, cycles_of, time_of};
use clearway_units::{Span, Time, nearest, suggestion};

/// Number of GPUs with separate curves: the first ones.
const MOST_GPUS: u32 = 16;
/// Default number of samples in the round trip of an idle read.
const AUTO_PER_RTT: u64 = 4;

/// Samples a run of a scale-up fabric.
pub struct ScaleupTelemetry<'a> {
    cycle: Span,
    gpus: u32,
    /// Cycles between samples.
    every: Cycle,
    last: Cycle,
    due: Cycle,
    links: LinkChoice,
    /// Flits that each link had carried at the last sample.
    carried: Vec<u64>,
    curves: Curves,
    rows: Vec<SeriesRow>,
    sink: Option<Sink<'a>>,
    frames: Option<FrameRecorder>,
}

/// A link at a sample: waiting flits of both channels, and flits carried so far.
struct Link {
    queue: Option<u64>,
    carried: u64,
}

impl<'a> ScaleupTelemetry<'a> {
    /// Creates the telemetry that the scenario requests; `None` if it requests nothing. `sink` receives the rows of each sample.
    ///
    /// # Errors
    /// If the scenario names a link that does not exist.
    pub fn new(
        assembly: &ScaleupAssembly<'_>,
        sink: Option<Sink<'a>>,
    ) -> Result<Option<Self>, ScenarioError> {
        let scenario = assembly.scenario();
        let (observe, configuration) = (&scenario.observe, &scenario.fabric.configuration);
        let round = Cycle::from(configuration.latency);
        let idle = configuration.idle_latency(clearway_scaleup::OperationKind::Read, true);
        let every = match observe.every {
            Sampling::Off => return Ok(None),
            Sampling::Auto => round.max(idle / AUTO_PER_RTT),
            Sampling::Every(span) => cycles_of(span, assembly.cycle()).max(1),
        };
        let names: Vec<String> = assembly.links().map(|link| link.name).collect();
        let chosen = chosen(&observe.links, &names)
            .map_err(|error| error.or_in(scenario.places(), "observe", 0))?;
        Ok(Some(Self {
            cycle: assembly.cycle(),
            gpus: scenario.fabric.nvlink.gpus,
            every,
            last: 0,
            due: every,
            links: LinkChoice::new(&chosen, names.len()),
            carried: vec![0; names.len()],
            curves: Curves::new(observe.points as usize),
            rows: Vec::new(),
            sink,
            frames: None,
        }))
    }

    /// The same, with counts of bundles of links over time, unless there are too many bundles.
    #[must_use]
    pub fn with_bundles(self, bundles: LinkBundles) -> Self {
        Self {
            frames: FrameRecorder::new(bundles),
            ..self
        }
    }

    /// Called between rounds.
    pub(crate) fn on_round(&mut self, fabric: &Fabric<'_, '_>) {
        let now = fabric.now;
        if now < self.due || now <= self.last {
            return;
        }
        self.due = now;
        let mut links = Vec::with_capacity(self.carried.len());
        fabric.switches(|number, gauges| {
            let subject = Subject::Node(self.gpus + number);
            self.row(Metric::ReductionEntries, subject, gauges.entries.into());
            let queues = gauges
                .queues
                .iter()
                .map(|queues| queues.iter().copied().map(u64::from).sum());
            links.extend(
                queues
                    .zip(&gauges.flits_sent)
                    .map(|(queue, &carried)| Link {
                        queue: Some(queue),
                        carried,
                    }),
            );
        });
        fabric.gpus(|gpu, gauges| {
            links.push(Link {
                queue: None,
                carried: gauges.flits_sent,
            });
            if gpu.0 < MOST_GPUS {
                self.add_gpu(Subject::Node(gpu.0), &gauges);
            }
        });
        self.add_links(&links);
        self.end_sample(now);
    }

    fn row(&mut self, metric: Metric, subject: Subject, value: f64) {
        self.rows.push(SeriesRow {
            time: time_of(self.due, self.cycle),
            interval: time_of(self.due, self.cycle).since(time_of(self.last, self.cycle)),
            metric,
            subject,
            value,
        });
    }

    fn add_gpu(&mut self, subject: Subject, gauges: &GpuGauges) {
        let injection = &gauges.injection;
        if let Some([request, response]) = injection.tokens {
            self.row(Metric::RequestTokens, subject, request);
            self.row(Metric::ResponseTokens, subject, response);
        }
        if let Some([request, response]) = injection.watermarks {
            self.row(Metric::RequestWatermark, subject, request);
            self.row(Metric::ResponseWatermark, subject, response);
        }
        self.row(Metric::Outstanding, subject, injection.outstanding as f64);
    }

    fn add_links(&mut self, links: &[Link]) {
        let mut longest = Longest::new(self.links.newcomers());
        let numbered = || (0..).map(LinkId).zip(links);
        let mut followed = Vec::new();
        for (id, link) in numbered() {
            let queue = link.queue.unwrap_or(0);
            if self.links.follows(id) || longest.offer(queue, id) {
                followed.push((id, queue));
            }
        }
        for link in self.links.follow(&followed, longest) {
            self.curves.forget(Subject::Link(link.0));
        }
        let seconds = (self.due - self.last) as f64 * self.cycle.as_ps() as f64 * 1e-12;
        for (id, link) in numbered() {
            let before = std::mem::replace(&mut self.carried[id.0 as usize], link.carried);
            if let Some(frames) = &mut self.frames {
                let counts = FrameCounts {
                    bytes: ((link.carried - before) * FLIT_BYTES) as f64,
                    peak_queue: link.queue.unwrap_or(0) * FLIT_BYTES,
                    ..FrameCounts::default()
                };
                frames.add(id.0, &counts);
            }
            if !self.links.follows(id) {
                continue;
            }
            let subject = Subject::Link(id.0);
            if let Some(queue) = link.queue {
                self.row(Metric::QueueDepth, subject, (queue * FLIT_BYTES) as f64);
            }
            let bits = (link.carried - before) * FLIT_BYTES * 8;
            self.row(Metric::LinkRate, subject, bits as f64 / seconds);
        }
    }

    fn end_sample(&mut self, now: Cycle) {
        if let Some(sink) = &mut self.sink {
            sink(&self.rows);
        }
        if self.curves.add(time_of(now, self.cycle), &self.rows) {
            self.every = self.every.saturating_mul(2);
        }
        if let Some(frames) = &mut self.frames {
            frames.end_sample(time_of(now, self.cycle));
        }
        self.rows.clear();
        self.last = now;
        self.due = (now / self.every + 1).saturating_mul(self.every);
    }

    /// The curves.
    pub fn into_watched(mut self) -> SampledSeries {
        for link in self.links.surplus() {
            self.curves.forget(Subject::Link(link.0));
        }
        let (times, curves): (Vec<Time>, _) = self.curves.into_parts();
        SampledSeries {
            times,
            curves,
            fairness: None,
            frames: self
                .frames
                .map(FrameRecorder::into_frames)
                .unwrap_or_default(),
        }
    }
}

fn chosen(chosen: &SampledSubjects, names: &[String]) -> Result<Links, ScenarioError> {
    let wanted = match chosen {
        SampledSubjects::Top(count) => return Ok(Links::Top(*count as usize)),
        SampledSubjects::Named(wanted) => wanted,
    };
    let mut links = Vec::new();
    for name in wanted {
        let before = links.len();
        let numbered = (0..).map(LinkId).zip(names);
        links.extend(
            numbered
                .filter(|(_, known)| *known == name)
                .map(|(link, _)| link),
        );
        if links.len() == before {
            let near = nearest(name, names.iter().map(String::as_str));
            return Err(ScenarioError::about(
                &["series.links"],
                format!("`observe.series.links`: there is no link `{name}`"),
                suggestion(
                    near,
                    "name links by their ends, such as \"leaf0-spine2\" or \"gpu3-leaf0\"",
                ),
            ));
        }
    }
    links.sort_unstable();
    links.dedup();
    Ok(Links::Named(links))
}
