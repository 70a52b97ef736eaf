//! Network recorders of a figure.

use super::definition::RecordSpec;
use super::run_data::RunData;
use clearway_fabric::topology::LinkId;
use clearway_lab::record::{
    Both, GoodputRecorder, LastHopRecorder, LongQueueRecorder, LossRecorder, MarkRecorder,
    PacketLatencyRecorder, QueueRecorder,
};
use clearway_lab::{Assembly, ScenarioError};
use clearway_units::{FlowId, HostId, Span, nearest, suggestion};
use std::collections::BTreeMap;

/// Largest number of buckets of a series.
pub(super) const SERIES_LIMIT: usize = 1 << 17;

/// Creates the recorders of a domain.
///
/// # Errors
/// If the figure names a link that does not exist.
pub(super) fn recorders(
    assembly: &Assembly,
    record: &RecordSpec,
) -> Result<impl Fn() -> NetworkRecorders, ScenarioError> {
    let width = |width: Option<Span>| width.unwrap_or(Span::from_us(1));
    let link = recorded_link(assembly, record)?;
    let (flows, bin) = record.goodput.unwrap_or((0, Span::from_us(1)));
    let queue = QueueRecorder::new(link.as_slice(), width(record.queue), SERIES_LIMIT);
    let losses = LossRecorder::new(width(record.losses), SERIES_LIMIT);
    let goodput = GoodputRecorder::new(flows, bin, SERIES_LIMIT);
    // All domains share the link table of this recorder and of the last-hop recorder.
    let long_queues = LongQueueRecorder::new(
        &assembly.topology,
        record.long_queues.unwrap_or(Span::MAX),
        width(record.long_queues),
        SERIES_LIMIT,
    );
    let last_hops = record
        .last_hops
        .map(|width| LastHopRecorder::new(&assembly.topology, width, SERIES_LIMIT));
    let marks = record.switch_marks.then(MarkRecorder::default);
    let latencies = record.packet_latency.then(PacketLatencyRecorder::default);
    Ok(move || Both {
        first: queue.clone(),
        second: Both {
            first: losses.clone(),
            second: Both {
                first: goodput.clone(),
                second: Both {
                    first: long_queues.clone(),
                    second: Both {
                        first: last_hops.clone(),
                        second: Both {
                            first: marks.clone(),
                            second: latencies.clone(),
                        },
                    },
                },
            },
        },
    })
}

/// The link to the host with the most incoming flows; the first link if there are several.
fn busiest_last_hop(assembly: &Assembly) -> Option<LinkId> {
    let mut flows: BTreeMap<HostId, usize> = BTreeMap::new();
    for flow in 0..assembly.workload.flows.len() {
        let (_, receiver) = assembly.nics(FlowId(flow as u32));
        *flows.entry(receiver).or_default() += 1;
    }
    let most = flows.values().copied().max()?;
    let host = flows.into_iter().find(|&(_, count)| count == most)?.0;
    assembly.topology.link_to_host(host)
}

/// Recorders in the network.
pub(super) type NetworkRecorders =
    Both<QueueRecorder, Both<LossRecorder, Both<GoodputRecorder, Both<LongQueueRecorder, ByLink>>>>;

/// Recorders of single links and flows, if a figure requests them.
pub(super) type ByLink =
    Both<Option<LastHopRecorder>, Both<Option<MarkRecorder>, Option<PacketLatencyRecorder>>>;

/// Adds the requested records to the data.
pub(super) fn keep(
    data: &mut RunData,
    assembly: &Assembly,
    record: &RecordSpec,
    mut recorders: NetworkRecorders,
) {
    recorders.first.close(data.simulated);
    let queue = recorders.first.queues().next();
    data.queue = queue.map(|(link, series)| {
        let rate = assembly.topology.cables[link.cable()].rate;
        (rate, series.clone())
    });
    data.losses = record.losses.map(|_| recorders.second.first);
    let rest = recorders.second.second;
    data.goodput = rest.first.flows().clone();
    data.long_queues = record.long_queues.map(|_| rest.second.first);
    data.last_hops = rest.second.second.first;
    let Both {
        first: marks,
        second: latencies,
    } = rest.second.second.second;
    data.packet_latency = latencies;
    data.switch_marks = marks.map(|marks| by_switch(assembly, &marks));
    data.fullest_link = record.link_loads.then(|| fullest_link(assembly));
}

/// Marks set in the queues of each switch, including switches without marks.
fn by_switch(assembly: &Assembly, marks: &MarkRecorder) -> BTreeMap<String, u64> {
    let topology = &assembly.topology;
    let names = topology.switches.iter().map(|switch| switch.name.clone());
    let mut by_switch: BTreeMap<String, u64> = names.map(|name| (name, 0)).collect();
    for (&link, count) in marks.marks() {
        let (switch, _) = topology.link_ends(link);
        *by_switch.entry(topology.node_name(switch)).or_default() += count;
    }
    by_switch
}

/// Time that the fullest link needs for the data of one iteration of all jobs, including headers, over the ECMP paths of their flows. No
/// allocation of rates can beat it.
fn fullest_link(assembly: &Assembly) -> Span {
    let mut loads: BTreeMap<LinkId, f64> = BTreeMap::new();
    for (link, bytes) in assembly.job_loads().into_iter().flatten() {
        *loads.entry(link).or_default() += bytes;
    }
    let cables = &assembly.topology.cables;
    let seconds = loads
        .into_iter()
        .map(|(link, bytes)| bytes * 8.0 / cables[link.cable()].rate.as_bps() as f64);
    Span::from_ps((seconds.fold(0.0, f64::max) * 1e12) as u64)
}

/// The link whose queue is recorded, if any.
fn recorded_link(
    assembly: &Assembly,
    record: &RecordSpec,
) -> Result<Option<LinkId>, ScenarioError> {
    match (record.queue, &record.queue_link) {
        (None, _) => Ok(None),
        (Some(_), None) => Ok(busiest_last_hop(assembly)),
        (Some(_), Some(name)) => named_link(assembly, name).map(Some),
    }
}

/// The link with this name.
fn named_link(assembly: &Assembly, name: &str) -> Result<LinkId, ScenarioError> {
    let topology = &assembly.topology;
    let named = topology
        .links_up()
        .find(|&link| topology.link_name(link) == name);
    named.ok_or_else(|| {
        let known = topology.links_up().map(|link| topology.link_name(link));
        let known: Vec<String> = known.collect();
        let near = nearest(name, known.iter().map(String::as_str));
        ScenarioError::about(
            &[],
            format!("`record.queue-link`: there is no link `{name}` that is up"),
            suggestion(near, "name it by its ends, such as \"leaf0-spine2\""),
        )
    })
}
