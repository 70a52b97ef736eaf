//! Samples of a whole fabric, taken between rounds.

use super::curves::Curves;
use super::fairness::{AllowedRates, Settling};
use super::link_choice::{LinkChoice, Longest};
use crate::assemble::Assembly;
use clearway_fabric::topology::LinkId;
use clearway_fabric::{Flow, FlowEvent, FlowMilestone, Sampler, Snapshot};
use clearway_results::{
    Curve, Fairness, FrameCounts, FrameRecorder, LinkBundles, LinkFrames, Metric, SeriesRow,
    Subject,
};
use clearway_transport::FlowProgress;
use clearway_units::statistics::jain_index;
use clearway_units::{Bytes, FlowId, Span, Time};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Sink for new rows; one call receives all rows of an instant.
pub type Sink<'a> = Box<dyn FnMut(&[SeriesRow]) + 'a>;

/// Sink for counts of bundles of links; called after each sample with all intervals so far.
pub type FrameSink<'a> = Box<dyn FnMut(&LinkFrames) + 'a>;

/// Result of the samples of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampledSeries {
    /// The ends of the intervals.
    pub times: Vec<Time>,
    /// The curves, ordered by metric and subject.
    pub curves: Vec<Curve>,
    /// Fairness of the last set of flows; `None` if two flows were never active at the same time.
    pub fairness: Option<Fairness>,
    /// Counts of bundles of links.
    pub frames: LinkFrames,
}

/// Queue and bytes of a link in an interval.
#[derive(Debug, Clone, Copy)]
struct Interval {
    link: LinkId,
    queue: u64,
    peak: u64,
    /// Bytes that left in the interval.
    bytes: f64,
}

/// Sampled state of a flow that is under way.
#[derive(Debug, Clone, Copy, Default)]
struct FlowMeter {
    /// Size of the flow, without the messages that take no packets.
    bytes: u64,
    /// Bytes acknowledged at the previous sample.
    acknowledged: u64,
    /// Bytes acknowledged at the present sample, summed over the queue pairs so far.
    fresh: u64,
    /// Number of the last sample that found the flow open.
    seen: u32,
    /// Bytes acknowledged when a fairness window began, and the number of that window.
    base: u64,
    window: u32,
}

/// The time over which shares are compared. Within one round trip, some flows receive acknowledgements and others do not.
#[derive(Debug)]
struct FairnessWindow {
    length: Span,
    start: Time,
    /// Number of the window, from 1.
    ordinal: u32,
    /// Jain's index over the last window.
    last: Option<f64>,
}

/// Number of points that a curve keeps if samples cost more than packets.
const LEAST_POINTS: usize = 64;

/// Effort of samples, which visit every open queue pair, compared with the effort of the run. With tens of thousands of queue pairs that
/// wait for each other, a sample costs more than all packets between two samples. Points are then merged and the interval grows,
/// independently of the machine.
#[derive(Debug, Default)]
struct Effort {
    /// Queue pairs visited by samples.
    visits: u64,
    /// Bytes that left links.
    carried: f64,
    /// Visits at which the interval last grew.
    grown_at: u64,
}

impl Effort {
    /// Number of visits below which their effort does not matter.
    const FREE: u64 = 1_000_000;
    /// Bytes on a link that cost as much as a visit: half of a full packet.
    const BYTES: f64 = 2_000.0;

    /// True if the interval must grow, which happens once per doubling of the visits.
    fn is_too_much(&mut self) -> bool {
        let most = Self::FREE.max(self.grown_at * 2);
        let is_too_much = self.visits > most && self.visits as f64 * Self::BYTES > self.carried;
        if is_too_much {
            self.grown_at = self.visits;
        }
        is_too_much
    }
}

/// Samples a run.
pub struct RunSampler<'a> {
    every: Span,
    /// The end of the last interval.
    last: Time,
    due: Time,
    links: LinkChoice,
    /// Sorted flows with curves.
    chosen_flows: Vec<FlowId>,
    /// Flows that are under way, or were under way at the last sample.
    flows: FxHashMap<FlowId, FlowMeter>,
    /// Flows that finished since the last sample.
    finished: Vec<FlowId>,
    active: u64,
    completed: u64,
    /// Number of samples taken.
    ordinal: u32,
    fairness: FairnessWindow,
    rates: AllowedRates,
    /// Fairness since the last start of a flow beside other flows.
    settling: Option<Settling>,
    curves: Curves,
    effort: Effort,
    rows: Vec<SeriesRow>,
    sink: Option<Sink<'a>>,
    frames: Option<FrameRecorder>,
    frame_sink: Option<FrameSink<'a>>,
}

impl<'a> RunSampler<'a> {
    /// Creates the telemetry that the scenario requests; `None` if it requests nothing. `sink` receives the rows of each sample.
    pub fn new(assembly: &Assembly, sink: Option<Sink<'a>>) -> Option<Self> {
        let plan = assembly.watch.as_ref()?;
        Some(Self {
            every: plan.every,
            last: Time::ZERO,
            due: Time::ZERO + plan.every,
            links: LinkChoice::new(&plan.links, assembly.topology.cables.len() * 2),
            chosen_flows: plan.flows.clone(),
            flows: FxHashMap::default(),
            finished: Vec::new(),
            active: 0,
            completed: 0,
            ordinal: 0,
            fairness: FairnessWindow {
                length: plan.fairness_window,
                start: Time::ZERO,
                ordinal: 1,
                last: None,
            },
            rates: AllowedRates::new(assembly),
            settling: None,
            curves: Curves::new(plan.points),
            effort: Effort::default(),
            rows: Vec::new(),
            sink,
            frames: None,
            frame_sink: None,
        })
    }

    /// The same, with a sink for the counts of [bundles](Self::with_bundles).
    #[must_use]
    pub fn with_frame_sink(self, sink: FrameSink<'a>) -> Self {
        Self {
            frame_sink: Some(sink),
            ..self
        }
    }

    /// The same, with counts of bundles of links over time, unless there are too many bundles.
    #[must_use]
    pub fn with_bundles(self, bundles: LinkBundles) -> Self {
        Self {
            frames: FrameRecorder::new(bundles),
            ..self
        }
    }

    /// The curves.
    pub fn into_watched(mut self) -> SampledSeries {
        for link in self.links.surplus() {
            self.curves.forget(Subject::Link(link.0));
        }
        let (times, curves) = self.curves.into_parts();
        SampledSeries {
            times,
            curves,
            fairness: self.settling.map(|settling| settling.fairness),
            frames: self
                .frames
                .map(FrameRecorder::into_frames)
                .unwrap_or_default(),
        }
    }

    fn row(&mut self, metric: Metric, subject: Subject, value: f64) {
        self.rows.push(SeriesRow {
            time: self.due,
            interval: self.due.since(self.last),
            metric,
            subject,
            value,
        });
    }

    fn add_links(&mut self, snapshot: &mut Snapshot<'_>) {
        let (mut marks, mut drops) = (0, 0);
        let mut intervals = Vec::new();
        let mut longest = Longest::new(self.links.newcomers());
        let links = &self.links;
        let frames = &mut self.frames;
        let mut carried = 0.0;
        snapshot.for_each_link(|mut view| {
            let (link, queue) = (view.link, view.queue);
            let counts = view.take();
            carried += counts.bytes;
            marks += counts.marks;
            drops += counts.drops;
            // Bytes that wait at the end of the interval count for its peak, even if no packet joined the queue.
            let peak = counts.peak_queue.max(queue);
            // Most links of a large fabric are idle.
            if let Some(frames) = frames
                && (counts.bytes > 0.0 || peak > 0 || counts.drops > 0)
            {
                let counts = FrameCounts {
                    bytes: counts.bytes,
                    peak_queue: peak,
                    marks: counts.marks,
                    drops: counts.drops,
                    paused: Span::ZERO,
                };
                frames.add(link.0, &counts);
            }
            if links.follows(link) || longest.offer(peak, link) {
                let bytes = counts.bytes;
                intervals.push(Interval {
                    link,
                    queue,
                    peak,
                    bytes,
                });
            }
        });
        self.effort.carried += carried;
        self.follow(&intervals, longest);
        intervals.retain(|interval| self.links.follows(interval.link));
        intervals.sort_unstable_by_key(|interval| interval.link);
        let seconds = self.seconds();
        for interval in intervals {
            let subject = Subject::Link(interval.link.0);
            self.row(Metric::QueueDepth, subject, interval.queue as f64);
            self.row(Metric::QueuePeak, subject, interval.peak as f64);
            self.row(Metric::LinkRate, subject, interval.bytes * 8.0 / seconds);
        }
        self.row(Metric::Marks, Subject::Run, marks as f64);
        self.row(Metric::Drops, Subject::Run, drops as f64);
        let mut paused = 0;
        let length = self.due.since(self.last);
        let frames = &mut self.frames;
        snapshot.for_each_paused_link(|link| {
            paused += 1;
            if let Some(frames) = frames {
                let counts = FrameCounts {
                    paused: length,
                    ..FrameCounts::default()
                };
                frames.add(link.0, &counts);
            }
        });
        self.row(Metric::PausedLinks, Subject::Run, f64::from(paused));
    }

    /// Begins to follow the links whose queues were longest, and stops following other links for them.
    fn follow(&mut self, intervals: &[Interval], longest: Longest) {
        let peaks: Vec<(LinkId, u64)> = intervals
            .iter()
            .map(|interval| (interval.link, interval.peak))
            .collect();
        for link in self.links.follow(&peaks, longest) {
            self.curves.forget(Subject::Link(link.0));
        }
    }

    fn add_flows(&mut self, snapshot: &mut Snapshot<'_>) {
        let mut open = Vec::new();
        let mut chosen: BTreeMap<FlowId, FlowProgress> = BTreeMap::new();
        let (flows, ordinal) = (&mut self.flows, self.ordinal + 1);
        let rates_now = &mut self.rates;
        let mut visits = 0;
        snapshot.for_each_open_flow(|queue_pair| {
            visits += 1;
            rates_now.add(queue_pair);
            let flow = queue_pair.flow();
            let Some(meter) = flows.get_mut(&flow) else {
                return;
            };
            if meter.seen != ordinal {
                (meter.seen, meter.fresh) = (ordinal, 0);
                open.push(flow);
            }
            meter.fresh += queue_pair.acknowledged().as_u64();
            if self.chosen_flows.binary_search(&flow).is_ok() {
                let progress = queue_pair.progress();
                let sum = chosen.entry(flow);
                sum.and_modify(|sum| sum.merge(&progress))
                    .or_insert(progress);
            }
        });
        self.effort.visits += visits;
        let mut goodput = 0;
        let mut rates = BTreeMap::new();
        let finished = std::mem::take(&mut self.finished);
        let done = finished.iter().map(|flow| (*flow, flows[flow].bytes));
        let open = open.iter().map(|flow| (*flow, flows[flow].fresh));
        let now: Vec<(FlowId, u64)> = done.chain(open).collect();
        for &(flow, acknowledged) in &now {
            let Some(meter) = self.flows.get_mut(&flow) else {
                continue;
            };
            let bytes = acknowledged.saturating_sub(meter.acknowledged);
            meter.acknowledged += bytes;
            goodput += bytes;
            if self.chosen_flows.binary_search(&flow).is_ok() {
                rates.insert(flow, bytes);
            }
        }
        self.ordinal = ordinal;
        self.judge_fairness(&now[finished.len()..]);
        for flow in finished {
            self.flows.remove(&flow);
        }
        let seconds = self.seconds();
        let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
        for (flow, bytes) in rates {
            self.add_flow(flow, rate(bytes), chosen.get(&flow));
        }
        self.row(Metric::Goodput, Subject::Run, rate(goodput));
        self.row(Metric::ActiveFlows, Subject::Run, self.active as f64);
        self.row(Metric::CompletedFlows, Subject::Run, self.completed as f64);
        if let Some(index) = self.fairness.last {
            self.row(Metric::Fairness, Subject::Run, index);
        }
        if let Some(index) = self.rates.take_jain() {
            self.row(Metric::RateFairness, Subject::Run, index);
            if let Some(settling) = &mut self.settling {
                settling.on_rates(self.due, index);
            }
        }
    }

    /// Ends a fairness window if it is long enough. `open` are the flows that are open now, with their bytes.
    fn judge_fairness(&mut self, open: &[(FlowId, u64)]) {
        let (now, window) = (self.due, &mut self.fairness);
        if now.since(window.start) < window.length {
            return;
        }
        let mut shares = Vec::new();
        for &(flow, acknowledged) in open {
            let Some(meter) = self.flows.get_mut(&flow) else {
                continue;
            };
            if meter.window == window.ordinal {
                shares.push(acknowledged.saturating_sub(meter.base) as f64);
            }
            (meter.base, meter.window) = (acknowledged, window.ordinal + 1);
        }
        window.last = jain_index(shares);
        if let (Some(index), Some(settling)) = (window.last, &mut self.settling) {
            settling.on_goodput(window.start, now, index);
        }
        (window.start, window.ordinal) = (now, window.ordinal + 1);
    }

    fn add_flow(&mut self, flow: FlowId, goodput: f64, progress: Option<&FlowProgress>) {
        let subject = Subject::Flow(flow.0);
        self.row(Metric::FlowGoodput, subject, goodput);
        let Some(progress) = progress else { return };
        let bytes = |bytes: Bytes| bytes.as_u64() as f64;
        self.row(Metric::Window, subject, bytes(progress.window));
        if let Some(rate) = progress.rate {
            self.row(Metric::PacingRate, subject, rate.as_bps() as f64);
        }
        self.row(Metric::InFlight, subject, bytes(progress.in_flight));
    }

    /// The length of the interval, in seconds.
    fn seconds(&self) -> f64 {
        self.due.since(self.last).as_ps() as f64 * 1e-12
    }
}

impl Sampler for RunSampler<'_> {
    fn due(&self) -> Time {
        self.due
    }

    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>) {
        if now <= self.last {
            return;
        }
        self.due = now;
        self.add_links(snapshot);
        if let Some(frames) = &mut self.frames {
            frames.end_sample(now);
            if let Some(sink) = &mut self.frame_sink {
                sink(frames.frames());
            }
        }
        self.add_flows(snapshot);
        self.last = now;
        if let Some(sink) = &mut self.sink {
            sink(&self.rows);
        }
        if self.curves.add(now, &self.rows) {
            self.every = self.every * 2;
        } else if self.curves.len() >= LEAST_POINTS && self.effort.is_too_much() {
            self.curves.coarsen();
            self.every = self.every * 2;
        }
        self.rows.clear();
        let every = self.every.as_ps();
        self.due = Time::from_ps((now.as_ps() / every + 1).saturating_mul(every));
    }

    fn on_flow(&mut self, event: FlowEvent, flow: &Flow) {
        self.rates.on_flow(event, flow);
        match event.milestone {
            FlowMilestone::Started => {
                let meter = FlowMeter {
                    bytes: flow.bytes.as_u64(),
                    ..FlowMeter::default()
                };
                self.flows.insert(event.flow, meter);
                self.active += 1;
                // A flow that is alone is always fair, and says nothing about earlier flows.
                if self.active > 1 {
                    self.settling = Some(Settling::of_start(event.time, self.active));
                }
            }
            FlowMilestone::Received
            | FlowMilestone::CreditRequested
            | FlowMilestone::CreditReturned => {}
            FlowMilestone::Sent => {
                self.active -= 1;
                self.completed += 1;
                self.finished.push(event.flow);
                if let Some(settling) = &mut self.settling {
                    settling.on_finish(event.time);
                }
            }
        }
    }

    fn on_known_transfer(&mut self, flow: FlowId, bytes: Bytes) {
        if let Some(meter) = self.flows.get_mut(&flow) {
            meter.bytes = meter.bytes.saturating_sub(bytes.as_u64());
        }
    }
}
