//! Measures of the traffic that reaches hosts, and of the senders that slow down for it.

use super::options::Options;
use super::run_data::{RunData, bins};
use clearway_units::{HostId, Span, nearest};
use std::collections::BTreeMap;

/// Receive rate of each receiver over the selected recorded flows, in each whole bin of the window, Gb/s.
fn received(run: &RunData, options: &Options) -> Result<BTreeMap<HostId, Vec<f64>>, String> {
    let (from, to) = run.window(options)?;
    let (width, _, rows) = bins(run, from, to)?;
    let gbps = |bytes: f64| bytes * 8e3 / width.as_ps() as f64;
    let mut receivers: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    for (place, id) in run.goodput.keys().enumerate() {
        let (src, dst) = run.ends[id.index()];
        if !options.src.contain(src) || !options.dst.contain(dst) {
            continue;
        }
        let rates = receivers.entry(dst).or_default();
        rates.resize(rows.len(), 0.0);
        for (rate, row) in rates.iter_mut().zip(&rows) {
            *rate += gbps(row[place]);
        }
    }
    match receivers.is_empty() {
        true => Err("no recorded flow is meant".into()),
        false => Ok(receivers),
    }
}

/// Mean receive rate over time of the host that receives least, Gb/s; for flows from hosts `src` to hosts `dst`.
pub(super) fn received_gbps(run: &RunData, options: &Options) -> Result<f64, String> {
    let receivers = received(run, options)?.into_values();
    let means = receivers.map(|rates| rates.iter().sum::<f64>() / rates.len() as f64);
    Ok(means.fold(f64::MAX, f64::min))
}

/// The share of bins, over all receivers, in which a receiver gets less than `rate`.
pub(super) fn slow_receiver_share(run: &RunData, options: &Options) -> Result<f64, String> {
    let limit = options.rate.as_bps() as f64 / 1e9;
    let receivers = received(run, options)?;
    let all: Vec<f64> = receivers.into_values().flatten().collect();
    let slow = all.iter().filter(|&&rate| rate < limit).count();
    Ok(slow as f64 / all.len() as f64)
}

/// Congestion notifications received by senders, over all flows from hosts `src` to hosts `dst`.
pub(super) fn notifications(run: &RunData, options: &Options) -> Result<f64, String> {
    let flows = run.flows.iter().zip(&run.ends);
    let of_flows =
        flows.filter(|(_, (src, dst))| options.src.contain(*src) && options.dst.contain(*dst));
    let counts: Vec<u32> = of_flows
        .map(|(flow, _)| flow.statistics.notifications)
        .collect();
    match counts.is_empty() {
        true => Err("no flow is meant".into()),
        false => Ok(counts.into_iter().map(f64::from).sum()),
    }
}

/// Packets marked by the queues of the switch `switch`, or of all switches with this name and a number.
pub(super) fn switch_marks(run: &RunData, options: &Options) -> Result<f64, String> {
    let marks = run.switch_marks.as_ref().ok_or("no marks were recorded")?;
    let name = options.switch.as_str();
    let kind = |switch: &str| switch.trim_end_matches(|c: char| c.is_ascii_digit()) == name;
    let meant = marks
        .iter()
        .filter(|(switch, _)| *switch == name || kind(switch));
    let counts: Vec<u64> = meant.map(|(_, count)| *count).collect();
    if counts.is_empty() {
        let near = nearest(name, marks.keys().map(String::as_str));
        let near = near.unwrap_or("leaf0");
        return Err(format!(
            "there is no switch `{name}`; switches have names such as `{near}`"
        ));
    }
    Ok(counts.into_iter().sum::<u64>() as f64)
}

/// Largest arrival rate in one bin at a queue in front of a host, Gb/s.
pub(super) fn last_hop_arrival_gbps(run: &RunData, _: &Options) -> Result<f64, String> {
    let hops = run.last_hops.as_ref().ok_or("no last hops were recorded")?;
    let most = hops.hops().values().map(|hop| {
        let bytes = hop.arrivals.buckets().iter().copied().max().unwrap_or(0);
        bytes as f64 * 8e3 / hop.arrivals.width().as_ps() as f64
    });
    Ok(most.fold(0.0, f64::max))
}

/// The longest queue in front of any host, as the delay of a packet behind it, us.
pub(super) fn last_hop_peak_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let hops = run.last_hops.as_ref().ok_or("no last hops were recorded")?;
    let delays = hops.hops().values().map(|hop| hop.longest_delay());
    Ok(delays.max().unwrap_or(Span::ZERO).as_us())
}
