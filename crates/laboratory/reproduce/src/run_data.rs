//! Data that is kept of a simulated run.

use super::options::{Options, RunInstant};
use clearway_fabric::{LinkCounters, Stopped};
use clearway_lab::record::{
    AckTrace, FlowArrivals, LastHopRecorder, LongQueueRecorder, LossRecorder,
    PacketLatencyRecorder, QueueSeries, Series,
};
use clearway_lab::{FlowResult, JobResult};
use clearway_transport::EndpointCounters;
use clearway_transport::congestion::NetworkFacts;
use clearway_units::{Bytes, Digest, FlowId, HostId, Rate, Span, Time, Value};
use std::collections::BTreeMap;

/// Data that is kept of a simulated run.
#[derive(Debug)]
pub(crate) struct RunData {
    pub(crate) flows: Vec<FlowResult>,
    /// The bytes of each flow.
    pub(crate) sizes: Vec<Bytes>,
    /// The hosts of each flow.
    pub(crate) ends: Vec<(HostId, HostId)>,
    /// The unloaded round trip of each flow.
    pub(crate) base_rtts: Vec<Span>,
    /// Label of the message that each flow is a piece of; `None` for a flow that is not part of an attack.
    pub(crate) attacks: Vec<Option<u64>>,
    /// Workload section of each flow.
    pub(crate) sections: Vec<u32>,
    pub(crate) largest_message: Bytes,
    pub(crate) network: NetworkFacts,
    /// Every key of the scenario with its value.
    pub(crate) settings: BTreeMap<String, Value>,
    pub(crate) simulated: Time,
    pub(crate) stopped: Option<Stopped>,
    pub(crate) links: LinkCounters,
    pub(crate) endpoints: EndpointCounters,
    pub(crate) digest: Digest,
    /// The mean iteration of each job in microseconds, ascending; `None` if a job did not finish all of its iterations.
    pub(crate) jobs: Option<Vec<f64>>,
    /// Result of each job.
    pub(crate) job_results: Vec<JobResult>,
    /// Number of pauses of links.
    pub(crate) pauses: u64,
    pub(crate) queue: Option<(Rate, QueueSeries)>,
    pub(crate) long_queues: Option<LongQueueRecorder>,
    pub(crate) losses: Option<LossRecorder>,
    /// Packets marked by each switch.
    pub(crate) switch_marks: Option<BTreeMap<String, u64>>,
    /// Time that the fullest link needs for the data of one iteration of all jobs.
    pub(crate) fullest_link: Option<Span>,
    pub(crate) last_hops: Option<LastHopRecorder>,
    pub(crate) packet_latency: Option<PacketLatencyRecorder>,
    pub(crate) goodput: BTreeMap<FlowId, FlowArrivals>,
    pub(crate) acks: BTreeMap<FlowId, AckTrace>,
    /// Jain's index over the rates at which flows may send, at each sample.
    pub(crate) rates: Option<Vec<(Time, f64)>>,
}

impl RunData {
    /// Known reason why some flows or jobs are not done.
    pub(super) fn unfinished(&self, what: &str) -> String {
        match self.stopped {
            None => format!("not all {what} are done"),
            Some(stopped) => {
                let after = self.simulated.since(Time::ZERO);
                format!("not all {what} are done after {after}: {stopped}")
            }
        }
    }

    pub(crate) fn completions(&self) -> Result<Vec<Span>, String> {
        let completions: Option<Vec<Span>> =
            self.flows.iter().map(FlowResult::completion).collect();
        completions.ok_or_else(|| self.unfinished("flows"))
    }

    /// True if the flow at `place` is in the requested section, or if no section is requested.
    pub(super) fn is_of_section(&self, place: usize, options: &Options) -> bool {
        let section = options.section;
        section.is_none_or(|section| self.sections[place] as usize == section)
    }

    /// Completion times and flows of the requested section; of all flows if no section is requested.
    pub(super) fn completed(&self, options: &Options) -> Result<Vec<(Span, &FlowResult)>, String> {
        let flows = self.flows.iter().enumerate();
        let own = flows.filter(|(place, _)| self.is_of_section(*place, options));
        let completed = own.map(|(_, flow)| Some((flow.completion()?, flow)));
        let completed: Option<Vec<_>> = completed.collect();
        let completed = completed.ok_or_else(|| self.unfinished("flows"))?;
        match (completed.is_empty(), options.section) {
            (true, Some(section)) => Err(format!("there are no flows of section {section}")),
            (true, None) => Err("no flows".into()),
            (false, _) => Ok(completed),
        }
    }

    pub(super) fn longest(&self) -> Result<Span, String> {
        let completions = self.completions()?;
        completions
            .into_iter()
            .max()
            .ok_or_else(|| "no flows".into())
    }

    pub(super) fn instant(&self, instant: RunInstant) -> Result<Time, String> {
        Ok(match instant {
            RunInstant::At(time) => time,
            RunInstant::Share(share) => {
                let picoseconds = self.longest()?.as_ps() as f64 * share;
                Time::from_ps(picoseconds as u64)
            }
            RunInstant::FirstFinish => {
                let finishes = self.flows.iter().filter_map(|flow| flow.finished);
                finishes.min().ok_or("no flow is done")?
            }
        })
    }

    pub(super) fn window(&self, options: &Options) -> Result<(Time, Time), String> {
        Ok((self.instant(options.from)?, self.end(options)?))
    }

    /// The end of the window.
    pub(super) fn end(&self, options: &Options) -> Result<Time, String> {
        self.instant(options.to.unwrap_or(RunInstant::Share(1.0)))
    }

    pub(super) fn queue(&self) -> Result<&(Rate, QueueSeries), String> {
        self.queue
            .as_ref()
            .ok_or_else(|| "no queue was recorded".into())
    }

    /// The largest of the flows' ideal completion times.
    pub(crate) fn longest_ideal(&self) -> Span {
        let ideals = self.flows.iter().map(|flow| flow.ideal);
        ideals.max().unwrap_or(Span::ZERO)
    }
}

/// Bytes of each recorded flow in each whole bin of the window, with the width of the bins.
pub(super) fn window_bins(
    run: &RunData,
    options: &Options,
) -> Result<(Span, Vec<Vec<f64>>), String> {
    let (from, to) = run.window(options)?;
    let (width, _, rows) = bins(run, from, to)?;
    Ok((width, rows))
}

/// Width of the bins, number of the first whole bin of a window, and bytes of each recorded flow in each whole bin.
pub(super) fn bins(
    run: &RunData,
    from: Time,
    to: Time,
) -> Result<(Span, usize, Vec<Vec<f64>>), String> {
    let widths = run.goodput.values().map(|flow| flow.series().width());
    let width = widths.max().ok_or("no goodput was recorded")?;
    let flows: Vec<_> = run
        .goodput
        .values()
        .map(|flow| {
            let mut series = flow.series().clone();
            while series.width() < width {
                series.coarsen();
            }
            series
        })
        .collect();
    let first = from.as_ps().div_ceil(width.as_ps()) as usize;
    let end = (to.as_ps() / width.as_ps()) as usize;
    if first >= end {
        return Err("the window is empty".into());
    }
    let bytes = |flow: &Series<u64>, bin| flow.buckets().get(bin).map_or(0.0, |&n: &u64| n as f64);
    let rows = (first..end).map(|bin| flows.iter().map(|flow| bytes(flow, bin)).collect());
    Ok((width, first, rows.collect()))
}
