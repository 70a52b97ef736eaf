//! Measures of a run, by name.

use super::definition::{OverSeeds, RecordSpec};
use super::figure_run_data::{FigureRunData, RunKind};
use super::jobs::{
    communication_us, iteration_mean_us, iteration_us, job_max_us, job_mean_us, job_spread, job_us,
    overlap_us,
};
use super::options::Options;
use super::plans::{
    PlanData, angle_degrees, arc_start_us, arc_us, collision_us, is_compatible, least_collision_us,
    load, perimeter_us, period_us, repeats, score, score_before, shift_us,
};
use super::receivers::{
    last_hop_arrival_gbps, last_hop_peak_us, notifications, received_gbps, slow_receiver_share,
    switch_marks,
};
use super::run_data::{RunData, window_bins};
use super::scaleup::{
    ScaleupData, effective_bandwidth, flit_hops, operation_latency_max, operation_latency_mean,
    operation_latency_of_gpus_mean, reduction_entries_peak, table_waits, unfinished_operations,
};
use super::sharing::{
    active_jain, active_jain_settled_us, finish_spread_us, jain, jain_max, jain_min, rate_jain,
    rate_jain_settled_us, slowdown, start_finish_correlation,
};
use super::tails::{packet_latency_us, weighted_slowdown};
use super::users::user_gbps;
use clearway_lab::record::{AckTrace, delay_us};
use clearway_transport::congestion::fluid;
use clearway_units::{Bytes, Rate, Span, Time, Value, nearest, suggestion};
use std::collections::BTreeMap;

/// Record that a measure needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Queue,
    LongQueues,
    Losses,
    SwitchMarks,
    LinkLoads,
    LastHops,
    PacketLatency,
    Goodput,
    Acks,
    Rates,
}

/// A measure of a run.
#[derive(Debug)]
pub(crate) struct Measure {
    name: &'static str,
    options: &'static [&'static str],
    needs: Needs,
    compute: Compute,
}

/// Function that computes a measure, by the kind of run.
#[derive(Debug)]
enum Compute {
    Simulated(fn(&RunData, &Options) -> Result<f64, String>),
    Planned(fn(&PlanData, &Options) -> Result<f64, String>),
    Scaleup(fn(&ScaleupData, &Options) -> Result<f64, String>),
}

/// Name of the measure that reads only a setting of a run.
pub(crate) const SETTING: &str = "setting";

macro_rules! measures {
    ($($of:ident { $($name:ident ( $($option:literal),* ) needs $needs:ident;)+ })+) => {
        const MEASURES: &[Measure] = &[$($(Measure {
            name: stringify!($name),
            options: &[$($option),*],
            needs: Needs::$needs,
            compute: Compute::$of($name),
        }),+),+];
    };
}

measures! { Simulated {
    max_fct("section") needs Nothing;
    min_fct("section") needs Nothing;
    mean_fct("section") needs Nothing;
    ideal() needs Nothing;
    slowdown_max("section") needs Nothing;
    slowdown("percentile", "above", "up_to", "section") needs Nothing;
    weighted_slowdown("percentile", "above", "up_to") needs Nothing;
    user_gbps("src") needs Nothing;
    start_finish_correlation() needs Nothing;
    finish_spread_us() needs Nothing;
    payload_us() needs Nothing;
    base_rtt_us() needs Nothing;
    bdp_bytes() needs Nothing;
    drops() needs Nothing;
    marks() needs Nothing;
    pauses() needs Nothing;
    retransmitted() needs Nothing;
    timeouts() needs Nothing;
    nacks() needs Nothing;
    speculative() needs Nothing;
    agent_drops() needs Nothing;
    notifications("src", "dst") needs Nothing;
    switch_marks("switch") needs SwitchMarks;
    fullest_link_us() needs LinkLoads;
    last_hop_arrival_gbps() needs LastHops;
    last_hop_peak_us() needs LastHops;
    packet_latency_us("percentile", "above", "up_to") needs PacketLatency;
    first_drop_us() needs Losses;
    last_drop_us() needs Losses;
    queue_mean_us("from", "to") needs Queue;
    queue_peak_us("from", "to") needs Queue;
    queue_mean_bytes("from", "to") needs Queue;
    queue_peak_bytes("from", "to") needs Queue;
    queue_settled_us("low", "high", "to") needs Queue;
    queue_above_us("low") needs Queue;
    long_queue_last_us() needs LongQueues;
    long_queue_peak_us() needs LongQueues;
    jain_min("from", "to") needs Goodput;
    jain_max("from", "to") needs Goodput;
    jain("from", "to") needs Goodput;
    active_jain("at") needs Goodput;
    active_jain_settled_us("fair", "to") needs Goodput;
    rate_jain("at") needs Rates;
    rate_jain_settled_us("fair", "to") needs Rates;
    goodput_gbps("from", "to", "flow") needs Goodput;
    received_gbps("from", "to", "src", "dst") needs Goodput;
    slow_receiver_share("from", "to", "rate") needs Goodput;
    first_ack_marked_share("within") needs Acks;
    first_high_rtt_us("factor") needs Acks;
    first_mark_rise_us() needs Acks;
    window_bytes() needs Acks;
    window_after_cut() needs Acks;
    rtt_us() needs Acks;
    job_us("percentile") needs Nothing;
    job_mean_us() needs Nothing;
    job_max_us() needs Nothing;
    job_spread() needs Nothing;
    iteration_us("job", "percentile", "after", "before") needs Nothing;
    iteration_mean_us("job", "after", "before") needs Nothing;
    communication_us("job", "iteration") needs Nothing;
    overlap_us("job", "with", "iteration") needs Nothing;
    setting("key") needs Nothing;
    sampling_advantage("at") needs Nothing;
} Planned {
    perimeter_us("job") needs Nothing;
    period_us("job") needs Nothing;
    repeats("job") needs Nothing;
    arc_start_us("job") needs Nothing;
    arc_us("job") needs Nothing;
    shift_us("job") needs Nothing;
    angle_degrees("job") needs Nothing;
    load("link") needs Nothing;
    collision_us("link") needs Nothing;
    least_collision_us("job") needs Nothing;
    score("link") needs Nothing;
    score_before("link") needs Nothing;
    is_compatible("link") needs Nothing;
} Scaleup {
    effective_bandwidth("section") needs Nothing;
    operation_latency_mean("section", "kind") needs Nothing;
    operation_latency_max("section", "kind") needs Nothing;
    operation_latency_of_gpus_mean("section", "kind") needs Nothing;
    flit_hops() needs Nothing;
    reduction_entries_peak() needs Nothing;
    table_waits() needs Nothing;
    unfinished_operations() needs Nothing;
} }

impl Measure {
    /// The measure called `name`.
    pub(crate) fn named(name: &str) -> Result<&'static Self, String> {
        let found = MEASURES.iter().find(|measure| measure.name == name);
        found.ok_or_else(|| {
            let near = nearest(name, MEASURES.iter().map(|measure| measure.name));
            let instead = near.map_or(String::new(), |near| {
                format!("; {}", suggestion(Some(near), ""))
            });
            format!("there is no measure `{name}`{instead}")
        })
    }

    /// Reads the options of the measure.
    pub(crate) fn read_options(
        &self,
        written: &BTreeMap<String, String>,
    ) -> Result<Options, String> {
        let mut options = Options::default();
        for (key, text) in written {
            if !self.options.contains(&key.as_str()) {
                return Err(format!(
                    "`{}` has no option `{key}`; it has: {}",
                    self.name,
                    self.options.join(", ")
                ));
            }
            options
                .set(key, text)
                .ok_or_else(|| format!("option `{key}` of `{}` cannot be `{text}`", self.name))?;
        }
        Ok(options)
    }

    /// Rejects the measure if the figure lacks the record that it needs.
    pub(crate) fn check_record(&self, record: &RecordSpec) -> Result<(), String> {
        let (there, key) = match self.needs {
            Needs::Nothing => return Ok(()),
            Needs::Queue => (record.queue.is_some(), "queue"),
            Needs::LongQueues => (record.long_queues.is_some(), "long-queues"),
            Needs::Losses => (record.losses.is_some(), "losses"),
            Needs::SwitchMarks => (record.switch_marks, "switch-marks"),
            Needs::LinkLoads => (record.link_loads, "link-loads"),
            Needs::LastHops => (record.last_hops.is_some(), "last-hops"),
            Needs::PacketLatency => (record.packet_latency, "packet-latency"),
            Needs::Goodput => (record.goodput.is_some(), "goodput"),
            Needs::Acks => (record.acks.is_some(), "acks"),
            Needs::Rates => (record.rates.is_some(), "rates"),
        };
        match there {
            true => Ok(()),
            false => Err(format!("`{}` needs `{key}` in [record]", self.name)),
        }
    }

    /// Rejects the measure if it does not apply to this kind of run.
    pub(crate) fn check_run(&self, run: RunKind) -> Result<(), String> {
        let name = self.name;
        match (&self.compute, run) {
            (Compute::Simulated(_), RunKind::Simulated)
            | (Compute::Planned(_), RunKind::Planned)
            | (Compute::Scaleup(_), RunKind::Scaleup) => Ok(()),
            (Compute::Simulated(_), RunKind::Planned) => Err(format!("`{name}` is not of plans")),
            (Compute::Simulated(_), RunKind::Scaleup) => {
                Err(format!("`{name}` is not of scale-up fabrics"))
            }
            (Compute::Planned(_), _) => Err(format!("`{name}` is of plans only")),
            (Compute::Scaleup(_), _) => Err(format!("`{name}` is of scale-up fabrics only")),
        }
    }

    /// Value of the measure for a run.
    pub(crate) fn compute_value(
        &self,
        run: &FigureRunData,
        options: &Options,
    ) -> Result<f64, String> {
        match (&self.compute, run) {
            (Compute::Simulated(compute), FigureRunData::Simulated(run)) => compute(run, options),
            (Compute::Planned(compute), FigureRunData::Planned(plan)) => compute(plan, options),
            (Compute::Scaleup(compute), FigureRunData::Scaleup(run)) => compute(run, options),
            _ => unreachable!("checked when the figure was read"),
        }
    }
}

/// Longest completion time, us.
fn max_fct(run: &RunData, options: &Options) -> Result<f64, String> {
    let completed = run.completed(options)?.into_iter();
    Ok(completed.fold(0.0, |longest, (span, _)| longest.max(span.as_us())))
}

/// Shortest completion time, us.
fn min_fct(run: &RunData, options: &Options) -> Result<f64, String> {
    let completed = run.completed(options)?.into_iter();
    Ok(completed.fold(f64::MAX, |shortest, (span, _)| shortest.min(span.as_us())))
}

/// Mean completion time, us.
fn mean_fct(run: &RunData, options: &Options) -> Result<f64, String> {
    let completed = run.completed(options)?;
    let sum: f64 = completed.iter().map(|(span, _)| span.as_us()).sum();
    Ok(sum / completed.len() as f64)
}

/// Completion time of the longest flow on an idle network: wire bytes over line rate plus base round trip, us.
fn ideal(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.longest_ideal().as_us())
}

/// Largest completion time over ideal of any flow.
fn slowdown_max(run: &RunData, options: &Options) -> Result<f64, String> {
    let completed = run.completed(options)?.into_iter();
    let slowdowns = completed.map(|(span, flow)| span.as_us() / flow.ideal.as_us());
    Ok(slowdowns.fold(0.0, f64::max))
}

/// The largest message at line rate, without headers and round trip, us.
fn payload_us(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(delay_us(
        run.largest_message.as_f64(),
        run.network.line_rate,
    ))
}

/// The longest unloaded round trip, including serialisation, us.
fn base_rtt_us(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.network.base_rtt.as_us())
}

/// Line rate times the longest unloaded round trip, bytes.
fn bdp_bytes(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.network.bdp.as_f64())
}

/// Packets dropped by full queues.
fn drops(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.links.dropped as f64)
}

/// Packets marked.
fn marks(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.links.marked as f64)
}

/// Time that the fullest link needs for the data of one iteration of all jobs, us.
fn fullest_link_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let span = run.fullest_link.ok_or("no loads were traced")?;
    Ok(span.as_us())
}

/// Number of pauses by flow control, over all links.
fn pauses(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.pauses as f64)
}

/// Retransmitted packets.
fn retransmitted(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.endpoints.retransmitted as f64)
}

/// Retransmission timeouts.
fn timeouts(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.endpoints.timeouts as f64)
}

/// Negative acknowledgements received by senders.
fn nacks(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.endpoints.nacks_received as f64)
}

/// Speculative packets sent (1RC).
fn speculative(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.endpoints.speculative_sent as f64)
}

/// Speculative packets dropped at links (1RC).
fn agent_drops(run: &RunData, _: &Options) -> Result<f64, String> {
    Ok(run.links.agent_drops as f64)
}

/// Time of the first drop of a packet, us; zero if there was none.
fn first_drop_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let losses = run.losses.as_ref().ok_or("no drops were recorded")?;
    Ok(losses.drops.first.unwrap_or(Time::ZERO).as_us())
}

/// Time of the last drop of a packet, us; zero if there was none.
fn last_drop_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let losses = run.losses.as_ref().ok_or("no drops were recorded")?;
    Ok(losses.drops.last.unwrap_or(Time::ZERO).as_us())
}

/// Mean over time of the recorded queue, as the delay of a packet behind it, us.
fn queue_mean_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let ((rate, queue), (from, to)) = (run.queue()?, run.window(options)?);
    let mean = queue.mean(from, to).ok_or("the window is empty")?;
    Ok(delay_us(mean, *rate))
}

/// Largest depth of the recorded queue, us.
fn queue_peak_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let ((rate, queue), (from, to)) = (run.queue()?, run.window(options)?);
    let peak = queue.peak(from, to).ok_or("the window is empty")?;
    Ok(delay_us(peak as f64, *rate))
}

/// Mean over time of the recorded queue, bytes.
fn queue_mean_bytes(run: &RunData, options: &Options) -> Result<f64, String> {
    let ((_, queue), (from, to)) = (run.queue()?, run.window(options)?);
    queue
        .mean(from, to)
        .ok_or_else(|| "the window is empty".into())
}

/// Largest depth of the recorded queue, bytes.
fn queue_peak_bytes(run: &RunData, options: &Options) -> Result<f64, String> {
    let ((_, queue), (from, to)) = (run.queue()?, run.window(options)?);
    let peak = queue.peak(from, to).ok_or("the window is empty")?;
    Ok(peak as f64)
}

/// Time from which the mean of every bucket of the recorded queue up to `to` is between `low` and `high`, us.
fn queue_settled_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let (rate, queue) = run.queue()?;
    let bytes = |span: Span| span.as_us() * rate.as_bps() as f64 / 8e6;
    let until = run.end(options)?;
    let settled = queue.settled(bytes(options.low), bytes(options.high), until);
    settled
        .map(Time::as_us)
        .ok_or_else(|| "the queue does not settle".into())
}

/// Total time in which the recorded queue was above `low`, by the mean of each bucket, us.
fn queue_above_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let (rate, queue) = run.queue()?;
    let series = queue.series();
    let width = series.width().as_ps() as f64;
    let means = series.buckets().iter();
    let means = means.map(|bucket| delay_us(bucket.integral as f64 / width, *rate));
    let above = means.filter(|&mean| mean > options.low.as_us()).count();
    Ok(above as f64 * series.width().as_us())
}

/// Time at which any queue was last longer than the threshold of the record, us; zero if no queue was.
fn long_queue_last_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let queues = run.long_queues.as_ref().ok_or("no queues were recorded")?;
    Ok(queues.last().unwrap_or(Time::ZERO).as_us())
}

/// The longest of all queues, as the delay of a packet behind it, us; zero if no queue was longer than the threshold.
fn long_queue_peak_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let queues = run.long_queues.as_ref().ok_or("no queues were recorded")?;
    let longest = queues.series().buckets().iter().map(|bucket| bucket.0);
    Ok(longest.max().unwrap_or(Span::ZERO).as_us())
}

/// Mean goodput, Gb/s: of recorded flow number `flow`, counted from zero, or over all recorded flows.
fn goodput_gbps(run: &RunData, options: &Options) -> Result<f64, String> {
    let (width, rows) = window_bins(run, options)?;
    let picoseconds = width.as_ps() as f64 * rows.len() as f64;
    let gbps = |bytes: f64| bytes * 8e3 / picoseconds;
    let Some(flow) = options.flow else {
        let bytes: f64 = rows.iter().flatten().sum();
        return Ok(gbps(bytes) / rows[0].len() as f64);
    };
    let mut recorded = run.goodput.keys();
    let place = recorded.position(|id| id.0 == flow);
    let place = place.ok_or_else(|| format!("nothing of flow {flow} has arrived"))?;
    Ok(gbps(rows.iter().map(|row| row[place]).sum()))
}

/// The share of flows whose first acknowledgement is marked although its packet waited less than `within`.
fn first_ack_marked_share(run: &RunData, options: &Options) -> Result<f64, String> {
    let marked = run.acks.iter().filter(|(id, trace)| {
        let first = trace.first.first();
        first.is_some_and(|ack| ack.ecn && ack.rtt < run.base_rtts[id.index()] + options.within)
    });
    Ok(marked.count() as f64 / run.flows.len() as f64)
}

/// Time of the first acknowledgement with a round trip above `factor` times the network's base round trip, us.
fn first_high_rtt_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let limit = run.network.base_rtt.as_us() * options.factor;
    let all = run.acks.values().flat_map(|trace| &trace.first);
    let high = all
        .filter(|ack| ack.rtt.as_us() > limit)
        .map(|ack| ack.time);
    let first = high.min().ok_or("no acknowledgement in the trace")?;
    Ok(first.as_us())
}

/// Excess of the round trip of a flow's first marked acknowledgement over the unloaded round trip, us; median over flows.
fn first_mark_rise_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let rises = run.acks.iter().filter_map(|(id, trace)| {
        let first = trace.first.iter().find(|ack| ack.ecn)?;
        Some(first.rtt.saturating_sub(run.base_rtts[id.index()]).as_us())
    });
    median(rises.collect())
}

/// Mean window over a flow's acknowledgements, bytes; median over flows.
fn window_bytes(run: &RunData, _: &Options) -> Result<f64, String> {
    median(run.acks.values().map(AckTrace::mean_window).collect())
}

/// Share of a flow's window that remains after its last cut; median over the flows with cuts.
fn window_after_cut(run: &RunData, _: &Options) -> Result<f64, String> {
    median(run.acks.values().filter_map(AckTrace::last_cut).collect())
}

/// Mean round trip over a flow's acknowledgements, us; median over flows.
fn rtt_us(run: &RunData, _: &Options) -> Result<f64, String> {
    median(run.acks.values().map(AckTrace::mean_rtt_us).collect())
}

/// The value of a key of the scenario: rates in Gb/s, times in us, sizes in bytes, 1 and 0 for true and false.
fn setting(run: &RunData, options: &Options) -> Result<f64, String> {
    let key = options.key.as_str();
    let value = run.settings.get(key).ok_or_else(|| {
        let near = nearest(key, run.settings.keys().map(String::as_str));
        let instead = near.map_or(String::new(), |near| {
            format!("; {}", suggestion(Some(near), ""))
        });
        format!("the scenario has no key `{key}`{instead}")
    })?;
    let number = match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Boolean(value) => Some(f64::from(u8::from(*value))),
        Value::Text(text) => quantity(text),
        Value::List(_) => None,
    };
    number.ok_or_else(|| format!("`{key}` = {value} is not a quantity"))
}

/// Advantage of sampling, bytes per nanosecond: the amount by which two flows of 100 and 50 Gb/s are closer at `at` if they slow down by
/// half after each 30 packets of 1000 bytes, instead of in each round trip of 30 us. A fluid model (Snyder §4.1.2), independent of the run.
fn sampling_advantage(run: &RunData, options: &Options) -> Result<f64, String> {
    let nanoseconds = run.instant(options.at)?.as_ps() as f64 / 1000.0;
    let sample = 30.0 * 1000.0;
    Ok(fluid::advantage_of_sampling(
        (12.5, 6.25),
        0.5,
        30_000.0,
        sample,
        nanoseconds,
    ))
}

/// A rate in Gb/s, a time in us or a size in bytes.
fn quantity(text: &str) -> Option<f64> {
    let rate = text
        .parse::<Rate>()
        .ok()
        .map(|rate| rate.as_bps() as f64 / 1e9);
    let span = || text.parse::<Span>().ok().map(Span::as_us);
    let bytes = || text.parse::<Bytes>().ok().map(Bytes::as_f64);
    rate.or_else(span).or_else(bytes)
}

fn median(values: Vec<f64>) -> Result<f64, String> {
    match values.is_empty() {
        true => Err("no flow has any".into()),
        false => Ok(OverSeeds::Median.combine(&values)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measure_is_documented_with_its_options() {
        let book = include_str!("../../../../docs/src/reproduction.md");
        for measure in MEASURES {
            let text = match measure.options {
                [] => format!("`{}`", measure.name),
                options => format!("`{}({})`", measure.name, options.join(", ")),
            };
            assert!(book.contains(&text), "{text}");
        }
    }
}
