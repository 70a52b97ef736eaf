//! Samples of a whole fabric, taken between rounds.

use super::curves::{Curve, Curves, Metric, SeriesRow, Subject};
use super::meter::{Interval, Metered};
use super::plan::Links;
use crate::assemble::Assembly;
use clearway_fabric::topology::LinkId;
use clearway_fabric::{FlowEvent, Moment, Sampler, Snapshot};
use clearway_transport::FlowProgress;
use clearway_units::{FlowId, Span, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Where rows go as they arise: all rows of one instant at once.
pub type Sink<'a> = Box<dyn FnMut(&[SeriesRow]) + 'a>;

/// Everything that was sampled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Watched {
    /// The ends of the intervals.
    pub times: Vec<Time>,
    /// The curves, ordered by metric and subject.
    pub curves: Vec<Curve>,
}

/// Which links have curves.
#[derive(Debug)]
enum LinkChoice {
    Named(Vec<LinkId>),
    /// So many with the longest queues. Twice as many are followed, each from when it first was among the longest of an interval
    /// on, with the longest queue that it has had: a link that is overtaken for a while keeps its curve.
    Top(usize, BTreeMap<LinkId, u64>),
}

/// A flow as samples see it.
#[derive(Debug, Clone, Copy, Default)]
struct FlowMeter {
    /// Bytes acknowledged when it was last looked at.
    acknowledged: u64,
    /// The number of the last sample that found it open.
    seen: u32,
}

/// Samples a run.
pub struct Telemetry<'a> {
    every: Span,
    /// The end of the last interval.
    last: Time,
    due: Time,
    links: LinkChoice,
    /// Sorted.
    chosen_flows: Vec<FlowId>,
    /// Bytes of each flow.
    flow_bytes: Vec<u64>,
    flows: Vec<FlowMeter>,
    /// Flows that were done since the last sample.
    finished: Vec<FlowId>,
    active: u64,
    completed: u64,
    /// Samples taken, from 1.
    ordinal: u32,
    curves: Curves,
    rows: Vec<SeriesRow>,
    sink: Option<Sink<'a>>,
}

impl<'a> Telemetry<'a> {
    /// What the scenario asks for; `None` if it asks for nothing. `sink` is given each row when it arises.
    pub fn new(assembly: &Assembly, sink: Option<Sink<'a>>) -> Option<Self> {
        let plan = assembly.watch.as_ref()?;
        let flows = &assembly.workload.flows;
        Some(Self {
            every: plan.every,
            last: Time::ZERO,
            due: Time::ZERO + plan.every,
            links: match &plan.links {
                Links::Named(links) => LinkChoice::Named(links.clone()),
                Links::Top(count) => LinkChoice::Top(*count, BTreeMap::new()),
            },
            chosen_flows: plan.flows.clone(),
            flow_bytes: flows.iter().map(|flow| flow.bytes.as_u64()).collect(),
            flows: vec![FlowMeter::default(); flows.len()],
            finished: Vec::new(),
            active: 0,
            completed: 0,
            ordinal: 0,
            curves: Curves::new(plan.points),
            rows: Vec::new(),
            sink,
        })
    }

    /// The curves.
    pub fn into_watched(mut self) -> Watched {
        for link in self.links.surplus() {
            self.curves.forget(Subject::Link(link));
        }
        let (times, curves) = self.curves.into_parts();
        Watched { times, curves }
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

    fn add_links<O: Metered>(&mut self, snapshot: &mut Snapshot<'_, O>) {
        let (mut marks, mut drops) = (0, 0);
        let mut intervals = Vec::new();
        snapshot.for_each_observer(|observer| {
            observer.meter().take(|interval| {
                marks += interval.marks;
                drops += interval.drops;
                if interval.peak > 0 || self.links.follows(interval.link) {
                    intervals.push(interval);
                }
            });
        });
        self.follow(&intervals);
        intervals.retain(|interval| self.links.follows(interval.link));
        intervals.sort_unstable_by_key(|interval| interval.link);
        let seconds = self.seconds();
        for interval in intervals {
            let subject = Subject::Link(interval.link);
            self.row(Metric::QueueDepth, subject, interval.queue as f64);
            self.row(Metric::QueuePeak, subject, interval.peak as f64);
            let bits = interval.bytes as f64 * 8.0;
            self.row(Metric::LinkRate, subject, bits / seconds);
        }
        self.row(Metric::Marks, Subject::Run, marks as f64);
        self.row(Metric::Drops, Subject::Run, drops as f64);
        let mut paused = 0;
        snapshot.for_each_paused_link(|_| paused += 1);
        self.row(Metric::PausedLinks, Subject::Run, f64::from(paused));
    }

    /// Begins to follow the links whose queues were longest, and stops following others for them.
    fn follow(&mut self, intervals: &[Interval]) {
        let LinkChoice::Top(count, followed) = &mut self.links else {
            return;
        };
        for interval in intervals {
            if let Some(peak) = followed.get_mut(&interval.link) {
                *peak = interval.peak.max(*peak);
            }
        }
        let mut longest: Vec<(Reverse<u64>, LinkId)> = intervals
            .iter()
            .map(|interval| (Reverse(interval.peak), interval.link))
            .filter(|(Reverse(peak), _)| *peak > 0)
            .collect();
        if longest.len() > *count {
            if *count == 0 {
                return;
            }
            longest.select_nth_unstable(*count - 1);
            longest.truncate(*count);
        }
        longest.sort_unstable();
        for (Reverse(peak), link) in longest {
            if followed.contains_key(&link) {
                continue;
            }
            if followed.len() >= 2 * *count {
                let shortest = followed.iter().map(|(link, peak)| (*peak, Reverse(*link)));
                let Some((least, Reverse(other))) = shortest.min() else {
                    return;
                };
                if least >= peak {
                    return;
                }
                followed.remove(&other);
                self.curves.forget(Subject::Link(other));
            }
            followed.insert(link, peak);
        }
    }

    fn add_flows<O: Metered>(&mut self, snapshot: &mut Snapshot<'_, O>) {
        let mut open: Vec<(FlowId, FlowProgress)> = Vec::new();
        snapshot.for_each_open_flow(|flow, progress| match open.last_mut() {
            Some((last, sum)) if *last == flow => sum.merge(progress),
            _ => open.push((flow, *progress)),
        });
        // Queue pairs of one flow need not be neighbours.
        open.sort_by_key(|(flow, _)| *flow);
        open.dedup_by(|(flow, progress), (kept, sum)| {
            let same = flow == kept;
            if same {
                sum.merge(progress);
            }
            same
        });
        let mut goodput = 0;
        let mut shares = Shares::default();
        let mut chosen = Vec::new();
        for (flow, progress) in &open {
            let meter = &mut self.flows[flow.index()];
            let acknowledged = progress.acknowledged.as_u64().max(meter.acknowledged);
            let bytes = acknowledged - meter.acknowledged;
            if meter.seen == self.ordinal && self.ordinal > 0 {
                shares.add(bytes);
            }
            *meter = FlowMeter {
                acknowledged,
                seen: self.ordinal + 1,
            };
            goodput += bytes;
            if self.chosen_flows.binary_search(flow).is_ok() {
                chosen.push((*flow, bytes, Some(*progress)));
            }
        }
        for flow in std::mem::take(&mut self.finished) {
            let all = self.flow_bytes[flow.index()];
            let meter = &mut self.flows[flow.index()];
            let bytes = all.saturating_sub(meter.acknowledged);
            meter.acknowledged = all;
            goodput += bytes;
            if self.chosen_flows.binary_search(&flow).is_ok() {
                chosen.push((flow, bytes, None));
            }
        }
        let seconds = self.seconds();
        let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
        for (flow, bytes, progress) in chosen {
            self.add_flow(flow, rate(bytes), progress.as_ref());
        }
        self.row(Metric::Goodput, Subject::Run, rate(goodput));
        self.row(Metric::ActiveFlows, Subject::Run, self.active as f64);
        self.row(Metric::CompletedFlows, Subject::Run, self.completed as f64);
        if let Some(index) = shares.jain() {
            self.row(Metric::Fairness, Subject::Run, index);
        }
    }

    fn add_flow(&mut self, flow: FlowId, goodput: f64, progress: Option<&FlowProgress>) {
        let subject = Subject::Flow(flow);
        self.row(Metric::FlowGoodput, subject, goodput);
        let Some(progress) = progress else { return };
        let bytes = |bytes: clearway_units::Bytes| bytes.as_u64() as f64;
        self.row(Metric::Window, subject, bytes(progress.window));
        if let Some(rate) = progress.rate {
            self.row(Metric::PacingRate, subject, rate.as_bps() as f64);
        }
        self.row(Metric::InFlight, subject, bytes(progress.in_flight));
    }

    /// The length of the interval.
    fn seconds(&self) -> f64 {
        self.due.since(self.last).as_ps() as f64 * 1e-12
    }
}

impl<O: Metered> Sampler<O> for Telemetry<'_> {
    fn due(&self) -> Time {
        self.due
    }

    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_, O>) {
        if now <= self.last {
            return;
        }
        self.due = now;
        self.add_links(snapshot);
        self.add_flows(snapshot);
        self.ordinal += 1;
        self.last = now;
        if let Some(sink) = &mut self.sink {
            sink(&self.rows);
        }
        if self.curves.add(now, &self.rows) {
            self.every = self.every * 2;
        }
        self.rows.clear();
        let every = self.every.as_ps();
        self.due = Time::from_ps((now.as_ps() / every + 1).saturating_mul(every));
    }

    fn on_flow(&mut self, event: FlowEvent) {
        match event.moment {
            Moment::Started => self.active += 1,
            Moment::Received => {}
            Moment::Sent => {
                self.active -= 1;
                self.completed += 1;
                self.finished.push(event.flow);
            }
        }
    }
}

impl LinkChoice {
    fn follows(&self, link: LinkId) -> bool {
        match self {
            Self::Named(links) => links.binary_search(&link).is_ok(),
            Self::Top(_, followed) => followed.contains_key(&link),
        }
    }

    /// The links that are followed beyond the number asked for.
    fn surplus(&self) -> Vec<LinkId> {
        let Self::Top(count, followed) = self else {
            return Vec::new();
        };
        let mut ranked: Vec<_> = followed
            .iter()
            .map(|(link, peak)| (Reverse(*peak), *link))
            .collect();
        ranked.sort_unstable();
        ranked
            .into_iter()
            .skip(*count)
            .map(|(_, link)| link)
            .collect()
    }
}

/// Shares of which fairness is told.
#[derive(Default)]
struct Shares {
    count: u32,
    sum: f64,
    squares: f64,
}

impl Shares {
    fn add(&mut self, bytes: u64) {
        let bytes = bytes as f64;
        self.count += 1;
        self.sum += bytes;
        self.squares += bytes * bytes;
    }

    /// Jain's index; `None` of fewer than two shares, or if there is nothing to share.
    fn jain(&self) -> Option<f64> {
        (self.count > 1 && self.squares > 0.0)
            .then(|| self.sum * self.sum / (f64::from(self.count) * self.squares))
    }
}
