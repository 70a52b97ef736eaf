//! Summary of a simulated run: its data, measures and curves.

use super::outcome::BucketCurve;
use super::run_data::RunData;
use clearway_lab::record::delay_us;
use clearway_lab::{Assembly, Finished, FlowResult, IterationTimes, JobResult};
use clearway_units::{Bytes, FlowId, HostId, Span};
use clearway_workload::FlowSpec;
use std::collections::BTreeMap;

/// Largest number of points of a curve in an outcome.
const CURVE_POINTS: usize = 400;

/// Outcome, size, hosts, base round trip and section of each flow, and the message of a flow that is a piece of an attack.
pub(super) struct FlowTable {
    results: Vec<FlowResult>,
    sizes: Vec<Bytes>,
    ends: Vec<(HostId, HostId)>,
    base_rtts: Vec<Span>,
    attacks: Vec<Option<u64>>,
    sections: Vec<u32>,
}

impl FlowTable {
    pub(super) fn new(count: usize) -> Self {
        Self {
            results: vec![FlowResult::default(); count],
            sizes: vec![Bytes::ZERO; count],
            ends: vec![(HostId(0), HostId(0)); count],
            base_rtts: vec![Span::ZERO; count],
            attacks: vec![None; count],
            sections: vec![0; count],
        }
    }

    pub(super) fn add(
        &mut self,
        assembly: &Assembly,
        id: FlowId,
        flow: &FlowSpec,
        result: &FlowResult,
    ) {
        let (from, to) = assembly.ends(id, flow);
        let paths = &assembly.routes.paths;
        self.results[id.index()] = *result;
        self.sizes[id.index()] = flow.bytes;
        self.ends[id.index()] = (flow.src, flow.dst);
        self.attacks[id.index()] = flow.attack;
        self.sections[id.index()] = flow.section;
        self.base_rtts[id.index()] = paths.round_trip(from, to, assembly.sizes_of(flow));
    }
}

/// Data of every run, without recorders.
pub(super) fn summarise(assembly: &Assembly, flows: FlowTable, finished: &Finished) -> RunData {
    RunData {
        largest_message: flows.sizes.iter().copied().max().unwrap_or_default(),
        flows: flows.results,
        sizes: flows.sizes,
        ends: flows.ends,
        base_rtts: flows.base_rtts,
        attacks: flows.attacks,
        sections: flows.sections,
        network: assembly.network,
        settings: BTreeMap::new(),
        simulated: finished.simulated,
        stopped: finished.stopped,
        links: finished.links,
        endpoints: finished.endpoints,
        digest: finished.digest,
        jobs: mean_iterations(&finished.jobs),
        job_results: finished.jobs.clone(),
        pauses: finished.pauses.iter().map(|link| link.pauses).sum(),
        queue: None,
        long_queues: None,
        losses: None,
        switch_marks: None,
        fullest_link: None,
        last_hops: None,
        packet_latency: None,
        goodput: BTreeMap::new(),
        acks: BTreeMap::new(),
        rates: None,
    }
}

/// The mean iteration of each job in microseconds, ascending; `None` if a job did not finish all of its iterations.
fn mean_iterations(jobs: &[JobResult]) -> Option<Vec<f64>> {
    let mean = |job: &JobResult| {
        let spans: Option<Vec<Span>> = job.times.iter().map(IterationTimes::span).collect();
        let spans = spans.filter(|spans| spans.len() as u32 == job.iterations)?;
        let sum: f64 = spans.iter().map(|span| span.as_us()).sum();
        Some(sum / spans.len() as f64)
    };
    let mut means: Vec<f64> = jobs.iter().map(mean).collect::<Option<_>>()?;
    means.sort_unstable_by(f64::total_cmp);
    Some(means)
}

/// Scalar measures of a run, by name.
pub(super) fn measures(data: &RunData) -> BTreeMap<String, f64> {
    let mut measures = BTreeMap::new();
    let mut add = |name: &str, value: f64| {
        measures.insert(name.to_owned(), value);
    };
    if let Ok(mut completions) = data.completions() {
        completions.sort_unstable();
        let count = completions.len();
        let rank = |percent: usize| {
            let rank = (count * percent).div_ceil(100).clamp(1, count);
            completions[rank - 1].as_us()
        };
        for (name, percent) in [("min", 0), ("p50", 50), ("p99", 99), ("max", 100)] {
            add(&format!("fct-{name}"), rank(percent));
        }
        let sum: f64 = completions.iter().map(|span| span.as_us()).sum();
        add("fct-mean", sum / count as f64);
    }
    if let Some([first, .., last] | [first @ last]) = data.jobs.as_deref() {
        add("job-min", *first);
        add("job-max", *last);
    }
    add("ideal-max", data.longest_ideal().as_us());
    add("simulated", data.simulated.as_us());
    add("data-sent", data.endpoints.data_sent as f64);
    add("retransmitted", data.endpoints.retransmitted as f64);
    add("timeouts", data.endpoints.timeouts as f64);
    add("probes", data.endpoints.probes_sent as f64);
    add("dropped", data.links.dropped as f64);
    add("marked", data.links.marked as f64);
    add("pauses", data.pauses as f64);
    add("packet-hops", data.links.hops as f64);
    measures
}

/// Recorded curves of a run.
pub(super) fn curves(data: &RunData) -> Vec<BucketCurve> {
    let mut curves = Vec::new();
    let curve = |name: String, bucket: Span, values: Vec<f64>| BucketCurve {
        name,
        bucket_us: bucket.as_us(),
        values: values.into_iter().map(rounded).collect(),
    };
    if let Some((rate, queue)) = &data.queue {
        let series = queue.series().clone().with_at_most(CURVE_POINTS);
        let width = series.width();
        let ps = width.as_ps() as f64;
        let means = series.buckets().iter();
        let means = means.map(|bucket| delay_us(bucket.integral as f64 / ps, *rate));
        curves.push(curve("queue mean, us".into(), width, means.collect()));
        let peaks = series.buckets().iter();
        let peaks = peaks.map(|bucket| delay_us(bucket.max as f64, *rate));
        curves.push(curve("queue max, us".into(), width, peaks.collect()));
    }
    if let Some(queues) = &data.long_queues {
        let series = queues.series().clone().with_at_most(CURVE_POINTS);
        let longest = series.buckets().iter().map(|longest| longest.0.as_us());
        curves.push(curve(
            "longest queue, us".into(),
            series.width(),
            longest.collect(),
        ));
    }
    if let Some(losses) = &data.losses {
        for (name, counts) in [("drops", &losses.drops), ("marks", &losses.marks)] {
            let series = counts.series.clone().with_at_most(CURVE_POINTS);
            let values = series.buckets().iter().map(|&count| count as f64);
            curves.push(curve(name.into(), series.width(), values.collect()));
        }
    }
    for (flow, arrivals) in &data.goodput {
        let series = arrivals.series().clone().with_at_most(CURVE_POINTS);
        let seconds = series.width().as_secs();
        let rates = series.buckets().iter();
        let rates = rates.map(|&bytes| bytes as f64 * 8e-9 / seconds);
        let name = format!("goodput of flow {}, Gb/s", flow.0);
        curves.push(curve(name, series.width(), rates.collect()));
    }
    curves
}

/// Value rounded to six significant digits, which is enough for plots.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
