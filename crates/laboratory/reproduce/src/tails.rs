//! Measures of tails over flows: latencies of packets, and slowdowns times the weight that 1RC gives a flow (Snyder §5.5.2).

use super::options::Options;
use super::run_data::RunData;
use clearway_units::statistics::nearest_rank;
use clearway_units::{Bytes, FlowId, HostId, Time};
use std::collections::BTreeMap;

/// True for a flow with more than `above` and at most `up_to` bytes.
fn is_meant(size: Bytes, options: &Options) -> bool {
    options.above.is_none_or(|above| above < size) && size <= options.up_to
}

fn rank(mut values: Vec<f64>, options: &Options) -> Result<f64, String> {
    values.sort_unstable_by(f64::total_cmp);
    nearest_rank(&values, options.per_mille).ok_or_else(|| "no flow is of these sizes".into())
}

/// A percentile, over flows of these sizes, of the largest latency of a flow's packets, us. Pieces of attack messages count as flows.
pub(super) fn packet_latency_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let recorder = run.packet_latency.as_ref();
    let recorder = recorder.ok_or("no latencies were recorded")?;
    let sizes = run.sizes.iter().enumerate();
    let meant = sizes.filter(|(_, size)| is_meant(**size, options));
    let largest = meant.map(|(flow, _)| recorder.largest(FlowId(flow as u32)).as_us());
    rank(largest.collect(), options)
}

/// Weight of the flows of a host over time.
struct HostWeight {
    /// Time, integral of the weight until this time in picoseconds, and weight from this time on.
    steps: Vec<(Time, f64, f64)>,
}

impl HostWeight {
    /// Weight of a host whose flows start and end at these times. The weight is 1/k with k flows under way.
    fn new(mut changes: Vec<(Time, i64)>) -> Self {
        changes.sort_unstable();
        let (mut open, mut integral) = (0, 0.0);
        let mut steps: Vec<(Time, f64, f64)> = Vec::with_capacity(changes.len());
        for (time, change) in changes {
            if let Some((last, _, weight)) = steps.last() {
                integral += time.since(*last).as_ps() as f64 * weight;
            }
            open += change;
            let weight = if open > 0 { 1.0 / open as f64 } else { 0.0 };
            steps.push((time, integral, weight));
        }
        Self { steps }
    }

    /// Integral of the weight until one of the times.
    fn until(&self, time: Time) -> f64 {
        let place = self.steps.partition_point(|(step, ..)| *step < time);
        self.steps[place].1
    }

    /// Mean weight between two of the times.
    fn mean(&self, start: Time, end: Time) -> f64 {
        (self.until(end) - self.until(start)) / end.since(start).as_ps() as f64
    }
}

/// A percentile of slowdown times mean weight, over the flows of these sizes outside of attacks. The weight of a flow under way is 1/k with
/// k flows of its host, including pieces of an attack.
pub(super) fn weighted_slowdown(run: &RunData, options: &Options) -> Result<f64, String> {
    let mut changes: BTreeMap<HostId, Vec<(Time, i64)>> = BTreeMap::new();
    let mut spans = Vec::with_capacity(run.flows.len());
    for (flow, (src, _)) in run.flows.iter().zip(&run.ends) {
        let times = flow.started.zip(flow.finished);
        let (start, end) = times.ok_or_else(|| run.unfinished("flows"))?;
        changes
            .entry(*src)
            .or_default()
            .extend([(start, 1), (end, -1)]);
        spans.push((*src, start, end));
    }
    let weights: BTreeMap<HostId, HostWeight> = changes
        .into_iter()
        .map(|(host, changes)| (host, HostWeight::new(changes)))
        .collect();
    let flows = spans.iter().zip(&run.flows).enumerate();
    let victims = flows
        .filter(|(place, _)| run.attacks[*place].is_none() && is_meant(run.sizes[*place], options));
    let weighted = victims.map(|(_, ((src, start, end), flow))| {
        let slowdown = end.since(*start).as_ps() as f64 / flow.ideal.as_ps() as f64;
        slowdown * weights[src].mean(*start, *end)
    });
    rank(weighted.collect(), options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_of_a_flow_is_the_mean_of_one_over_the_flows_under_way() {
        let us = Time::from_us;
        // One flow from 0 to 10 us, a second from 2 to 6 us, a third from 6 to 7 us.
        let changes = [(0, 1), (10, -1), (2, 1), (6, -1), (6, 1), (7, -1)];
        let host = HostWeight::new(changes.map(|(at, change)| (us(at), change)).to_vec());
        assert_eq!(host.mean(us(0), us(10)), 0.75);
        assert_eq!(host.mean(us(2), us(6)), 0.5);
        assert_eq!(host.mean(us(6), us(7)), 0.5);
        // The host is idle for a while, and then has a single flow.
        let changes = [(0, 1), (1, -1), (5, 1), (8, -1)];
        let host = HostWeight::new(changes.map(|(at, change)| (us(at), change)).to_vec());
        assert_eq!(
            (host.mean(us(0), us(1)), host.mean(us(5), us(8))),
            (1.0, 1.0)
        );
    }
}
