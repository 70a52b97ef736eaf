//! Measures of how flows share the network: slowdown by size, order of starts and finishes, fairness.

use super::options::Options;
use super::run_data::{RunData, bins, window_bins};
use clearway_lab::observe::JainCourse;
use clearway_units::Time;
use clearway_units::statistics::{jain_index, nearest_rank, spearman};

/// Jain's index of the flows' amounts; a single flow, or flows that are all at zero, are fair.
fn jain_of(values: &[f64]) -> f64 {
    jain_index(values.iter().copied()).unwrap_or(1.0)
}

/// Jain's index over the recorded flows in the most unfair bin.
pub(super) fn jain_min(run: &RunData, options: &Options) -> Result<f64, String> {
    let (_, rows) = window_bins(run, options)?;
    Ok(rows.iter().map(|row| jain_of(row)).fold(1.0, f64::min))
}

/// Jain's index over the recorded flows in the fairest bin.
pub(super) fn jain_max(run: &RunData, options: &Options) -> Result<f64, String> {
    let (_, rows) = window_bins(run, options)?;
    Ok(rows.iter().map(|row| jain_of(row)).fold(0.0, f64::max))
}

/// Jain's index over the recorded flows, of their bytes in the whole window.
pub(super) fn jain(run: &RunData, options: &Options) -> Result<f64, String> {
    let (_, rows) = window_bins(run, options)?;
    let total = |flow: usize| rows.iter().map(|row| row[flow]).sum::<f64>();
    let totals: Vec<f64> = (0..rows[0].len()).map(total).collect();
    Ok(jain_of(&totals))
}

/// A percentile of the slowdown of flows with more than `above` and at most `up_to` bytes, nearest rank; by default the median. The p99.9
/// of fewer than 1000 flows is the slowest flow. Flows of an attack are left out.
pub(super) fn slowdown(run: &RunData, options: &Options) -> Result<f64, String> {
    let flows = run.flows.iter().zip(&run.sizes).enumerate();
    let whole = flows.filter(|(place, _)| run.attacks[*place].is_none());
    let of_size = whole
        .filter(|(place, _)| run.is_of_section(*place, options))
        .map(|(_, flow)| flow)
        .filter(|(_, size)| options.above.is_none_or(|above| above < **size))
        .filter(|(_, size)| **size <= options.up_to);
    let slowdowns = of_size.map(|(flow, _)| {
        let completion = flow.completion()?;
        Some(completion.as_ps() as f64 / flow.ideal.as_ps() as f64)
    });
    let slowdowns: Option<Vec<f64>> = slowdowns.collect();
    let mut slowdowns = slowdowns.ok_or_else(|| run.unfinished("flows"))?;
    slowdowns.sort_unstable_by(f64::total_cmp);
    nearest_rank(&slowdowns, options.per_mille).ok_or_else(|| "no flow is of these sizes".into())
}

/// Start and finish of each flow.
fn starts_and_finishes(run: &RunData) -> Result<Vec<(Time, Time)>, String> {
    let both = run
        .flows
        .iter()
        .map(|flow| Some((flow.started?, flow.finished?)));
    let both: Option<Vec<_>> = both.collect();
    both.ok_or_else(|| run.unfinished("flows"))
}

/// Spearman's rank correlation of start and finish: 1 if flows finish in the order of their starts, −1 in the opposite order.
pub(super) fn start_finish_correlation(run: &RunData, _: &Options) -> Result<f64, String> {
    let times = starts_and_finishes(run)?;
    let pairs: Vec<(u64, u64)> = times
        .into_iter()
        .map(|(start, finish)| (start.as_ps(), finish.as_ps()))
        .collect();
    spearman(&pairs).ok_or_else(|| "all flows start, or finish, at once".into())
}

/// Time from the first finish to the last, us.
pub(super) fn finish_spread_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let times = starts_and_finishes(run)?;
    let finishes = || times.iter().map(|(_, finish)| *finish);
    let (first, last) = finishes().min().zip(finishes().max()).ok_or("no flows")?;
    Ok(last.since(first).as_us())
}

/// Bytes of each recorded flow that was active during the whole bin.
fn active(run: &RunData, start: Time, end: Time, row: &[f64]) -> Vec<f64> {
    let active = run.goodput.keys().zip(row).filter(|(id, _)| {
        let flow = &run.flows[id.index()];
        flow.started.is_some_and(|time| time <= start)
            && flow.received.is_none_or(|time| time >= end)
    });
    active.map(|(_, bytes)| *bytes).collect()
}

/// Jain's index over the bytes of the recorded flows that are active during the whole bin of `at`.
pub(super) fn active_jain(run: &RunData, options: &Options) -> Result<f64, String> {
    let at = run.instant(options.at)?;
    let (width, _, rows) = bins(run, Time::ZERO, run.simulated)?;
    let place = (at.as_ps() / width.as_ps()) as usize;
    let row = rows.get(place).ok_or("the run ends before that bin does")?;
    let start = Time::ZERO + width * place as u64;
    jain_index(active(run, start, start + width, row))
        .ok_or_else(|| "fewer than two flows are active".into())
}

/// Interval from the last start to the first finish after it, or to `to` if that is earlier. The same flows are active in the whole
/// interval.
fn together(run: &RunData, options: &Options) -> Result<(Time, Time), String> {
    let starts = run.flows.iter().filter_map(|flow| flow.started);
    let from = starts.max().ok_or("no flow has started")?;
    let finishes = run.flows.iter().filter_map(|flow| flow.finished);
    let until = finishes.filter(|finish| *finish > from).min();
    let until = until.unwrap_or(run.simulated);
    match options.to {
        Some(to) => Ok((from, until.min(run.instant(to)?))),
        None => Ok((from, until)),
    }
}

/// Time from `from` until all later values are `fair` or more, us.
fn settled(
    from: Time,
    fair: f64,
    values: impl IntoIterator<Item = (Time, f64)>,
) -> Result<f64, String> {
    let course = values.into_iter().fold(None, |course, (time, index)| {
        Some(JainCourse::and(course, time.since(from), index, fair))
    });
    let course = course.ok_or("there are no two flows to compare")?;
    course.settled_us.ok_or("they do not get fair".into())
}

/// Time from the last start until Jain's index over the recorded flows, of their bytes in each bin, is `fair` or more and stays so until
/// the first flow is done, us. The end of the first such bin counts.
pub(super) fn active_jain_settled_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let (from, until) = together(run, options)?;
    let (width, first, rows) = bins(run, from, until)?;
    let values = rows.iter().enumerate().filter_map(|(place, row)| {
        let start = Time::ZERO + width * (first + place) as u64;
        let index = jain_index(active(run, start, start + width, row))?;
        Some((start + width, index))
    });
    settled(from, options.fair, values)
}

fn rates(run: &RunData) -> Result<&[(Time, f64)], String> {
    run.rates
        .as_deref()
        .ok_or_else(|| "no rates were recorded".into())
}

/// Jain's index over the rates at which all active flows may send, at the last sample not after `at`.
pub(super) fn rate_jain(run: &RunData, options: &Options) -> Result<f64, String> {
    let (at, samples) = (run.instant(options.at)?, rates(run)?);
    let after = samples.partition_point(|(time, _)| *time <= at);
    let place = after.checked_sub(1).ok_or("no sample is so early")?;
    Ok(samples[place].1)
}

/// Time from the last start until Jain's index over the rates at which flows may send is `fair` or more and stays so until the first flow
/// is done, us.
pub(super) fn rate_jain_settled_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let (from, until) = together(run, options)?;
    let samples = rates(run)?.iter().copied();
    let within = samples.filter(|(time, _)| from <= *time && *time <= until);
    settled(from, options.fair, within)
}
