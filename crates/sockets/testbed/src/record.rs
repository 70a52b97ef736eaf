//! Measurement and simulation of a run, side by side.

use crate::delays::{LINK_DELAY, simulated_handshake};
use crate::differences::differences;
use crate::plan::Switches;
use crate::setup::{BedSetup, start_of};
use crate::simulate::{Simulated, watched_links};
use crate::softswitch::LinkTotals;
use crate::task::{HostReport, ReceivedFlow, SentFlow};
use clearway_lab::{Assembly, FlowResult, FlowSpec};
use clearway_report::testbed::{
    PathUsed, RoundTrips, SCHEMA, Side, SideCounts, TestbedCurve, TestbedFlow, TestbedHost,
    TestbedLink, TestbedRecord,
};
use clearway_runs::{REVISION, command_line};
use clearway_udp::Transport;
use clearway_units::statistics::nearest_rank;
use clearway_units::{FlowId, Span, Time};
use std::collections::BTreeMap;

/// Most flows whose windows are plotted.
const MOST_WINDOWS: usize = 8;
/// Most samples of links; beyond, every other sample is dropped.
const MOST_SAMPLES: usize = 1000;

/// Record of a bed.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) round_trips_us: Vec<f64>,
    pub(crate) sent: Vec<SentFlow>,
    pub(crate) hosts: Vec<HostReport>,
    /// Bytes that each watched link had carried at an instant.
    pub(crate) links: Vec<(Time, Vec<u64>)>,
    /// Totals of links of switches in user space.
    pub(crate) link_totals: BTreeMap<String, LinkTotals>,
    /// Processor time of the whole machine from the start to the end of all flows.
    pub(crate) machine_cpu_seconds: f64,
    /// Packets that queues of the kernel dropped.
    pub(crate) kernel_drops: BTreeMap<String, u64>,
}

impl Measured {
    /// Least of the round trips of all handshakes.
    pub(crate) fn base_round_trip(&self) -> Span {
        let least = self.round_trips_us.iter().copied().reduce(f64::min);
        Span::from_ps((least.unwrap_or(0.0) * 1e6) as u64)
    }

    pub(crate) fn add_links(&mut self, at: Time, bytes: Vec<u64>) {
        self.links.push((at, bytes));
        if self.links.len() >= MOST_SAMPLES {
            let mut index = 0;
            self.links.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
    }
}

/// Combines measurement and simulation.
pub(crate) fn build(
    setup: &BedSetup,
    assembly: &Assembly,
    software: Vec<String>,
    measured: &Measured,
    simulated: &Simulated,
) -> TestbedRecord {
    let settings = &setup.settings;
    let mut record = TestbedRecord {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        command: command_line(),
        scenario: setup.scenario.general.name.clone(),
        seed: setup.scenario.general.seed,
        fabric: assembly.topology.summary.clone(),
        switches: setup.switches.name(),
        transport: match settings.transport {
            Transport::Strack => "strack",
            Transport::GoBackN => "rocev2",
        },
        paths: settings.paths,
        line_rate_gbps: settings.line_rate.as_gbps(),
        round_trip: round_trips(assembly, &software, measured),
        software,
        flows: flows(assembly, measured, simulated),
        links: links(setup, assembly, measured, simulated),
        hosts: hosts(measured),
        machine_cpu_seconds: measured.machine_cpu_seconds,
        ..TestbedRecord::default()
    };
    record.windows = windows(measured, simulated);
    record.path_rates = path_rates(setup, measured);
    record.link_rates = link_rates(assembly, measured, simulated);
    record.differences = differences(setup, assembly, &record);
    record
}

fn round_trips(assembly: &Assembly, software: &[String], measured: &Measured) -> RoundTrips {
    let mut sorted = measured.round_trips_us.clone();
    sorted.sort_by(f64::total_cmp);
    RoundTrips {
        measured_least_us: measured.base_round_trip().as_us(),
        measured_median_us: nearest_rank(&sorted, 500).unwrap_or(0.0),
        simulated_us: simulated_handshake(assembly).as_us(),
        calibrated: software.iter().any(|key| key.starts_with(LINK_DELAY)),
    }
}

fn flows(assembly: &Assembly, measured: &Measured, simulated: &Simulated) -> Vec<TestbedFlow> {
    let sent: BTreeMap<u32, &SentFlow> =
        measured.sent.iter().map(|flow| (flow.flow, flow)).collect();
    let mut received: BTreeMap<u32, Vec<&ReceivedFlow>> = BTreeMap::new();
    for row in measured.hosts.iter().flat_map(|host| &host.received) {
        received.entry(row.flow).or_default().push(row);
    }
    let unknown = SentFlow {
        error: Some("its host has not told of it".into()),
        ..SentFlow::default()
    };
    let numbered = assembly.workload.numbered().zip(&simulated.finished.flows);
    let both = |((id, flow), result): ((FlowId, &FlowSpec), &FlowResult)| {
        let sent = sent.get(&id.0).copied().unwrap_or(&unknown);
        let received = received.get(&id.0).map_or(&[][..], Vec::as_slice);
        both_sides(id, flow, result, sent, received)
    };
    numbered.map(both).collect()
}

fn both_sides(
    id: FlowId,
    flow: &FlowSpec,
    result: &FlowResult,
    sent: &SentFlow,
    received: &[&ReceivedFlow],
) -> TestbedFlow {
    let start_us = start_of(flow).map_or(0.0, |start| start.since(Time::ZERO).as_us());
    let statistics = &result.statistics;
    let path = |path: &crate::task::PathCount| PathUsed {
        packets: path.sent,
        marked: path.marked,
        downs: path.downs,
    };
    let whole = |row: &&ReceivedFlow| row.intact && row.bytes == flow.bytes.as_u64();
    TestbedFlow {
        flow: id.0,
        src: flow.src.0,
        dst: flow.dst.0,
        bytes: flow.bytes.as_u64(),
        start_us,
        late_us: (sent.started_us - start_us).max(0.0),
        simulated_us: result.completion().map(Span::as_us),
        measured_us: sent.finished_us.map(|finished| finished - sent.started_us),
        simulated: SideCounts {
            packets: statistics.packets,
            retransmitted: statistics.retransmitted,
            marked: statistics.marked.into(),
            timeouts: statistics.timeouts.into(),
        },
        measured: SideCounts {
            packets: sent.packets,
            retransmitted: sent.retransmitted,
            marked: sent.marked,
            timeouts: sent.timeouts,
        },
        paths: sent.paths.iter().map(path).collect(),
        deliveries: received.len() as u32,
        intact: received.iter().all(whole),
        error: sent.error.clone(),
    }
}

fn hosts(measured: &Measured) -> Vec<TestbedHost> {
    let host = |(host, report): (usize, &HostReport)| TestbedHost {
        host: host as u32,
        cpu_seconds: report.cpu_seconds,
        wall_seconds: report.wall_seconds,
    };
    measured.hosts.iter().enumerate().map(host).collect()
}

fn links(
    setup: &BedSetup,
    assembly: &Assembly,
    measured: &Measured,
    simulated: &Simulated,
) -> Vec<TestbedLink> {
    let topology = &assembly.topology;
    let row = |(index, link): (usize, clearway_lab::LinkId)| {
        let name = topology.link_name(link);
        let meter = simulated.finished.meters.get(link.0 as usize).copied();
        let meter = meter.unwrap_or_default();
        let last = measured
            .links
            .last()
            .and_then(|(_, bytes)| bytes.get(index).copied());
        let soft = measured.link_totals.get(&name).copied();
        let (bytes, drops, marks) = match setup.switches {
            Switches::Kernel => (last, measured.kernel_drops.get(&name).copied(), None),
            Switches::Soft => (
                soft.map(|soft| soft.bytes),
                soft.map(|soft| soft.drops),
                soft.map(|soft| soft.marks),
            ),
        };
        TestbedLink {
            link: name,
            simulated_bytes: meter.bytes,
            measured_bytes: bytes,
            simulated_drops: meter.drops,
            simulated_marks: meter.marks,
            measured_drops: drops,
            measured_marks: marks,
        }
    };
    let watched = watched_links(topology).into_iter();
    watched.enumerate().map(row).collect()
}

fn windows(measured: &Measured, simulated: &Simulated) -> Vec<TestbedCurve> {
    let mut curves = Vec::new();
    let mut sent: Vec<&SentFlow> = measured.sent.iter().collect();
    sent.sort_by_key(|flow| flow.flow);
    for (index, flow) in sent.into_iter().take(MOST_WINDOWS).enumerate() {
        let name = format!("flow {}", flow.flow);
        let instants = simulated.instants.iter();
        let points = instants
            .filter_map(|instant| Some((instant.at_us, *instant.windows.get(&flow.flow)? as f64)));
        curves.push(curve(name.clone(), index, Side::Simulated, points));
        let points = flow.samples.iter();
        let points = points.map(|sample| (sample.at_us, sample.window_bytes as f64));
        curves.push(curve(name, index, Side::Measured, points));
    }
    curves
}

fn curve(
    name: String,
    index: usize,
    side: Side,
    points: impl Iterator<Item = (f64, f64)>,
) -> TestbedCurve {
    let (at_us, values) = points.unzip();
    TestbedCurve {
        name,
        index,
        side,
        at_us,
        values,
    }
}

/// Rates from cumulative byte counts.
fn rates(counted: &[(f64, u64)]) -> impl Iterator<Item = (f64, f64)> + '_ {
    counted.windows(2).filter_map(|pair| {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        let bits = after.saturating_sub(before) as f64 * 8.0;
        (to > from).then(|| (to, bits / (to - from) * 1e6))
    })
}

/// Rates on the paths of one flow: the flow with the most dead paths, or the first.
fn path_rates(setup: &BedSetup, measured: &Measured) -> Vec<TestbedCurve> {
    let downs = |flow: &SentFlow| flow.paths.iter().map(|path| path.downs).sum::<u64>();
    let chosen = measured
        .sent
        .iter()
        .max_by_key(|flow| (downs(flow), std::cmp::Reverse(flow.flow)));
    let Some(flow) = chosen else {
        return Vec::new();
    };
    let datagram = u64::from(setup.settings.datagram);
    let path = |path: usize| {
        let counted: Vec<(f64, u64)> = flow
            .samples
            .iter()
            .map(|sample| {
                let packets = sample.path_packets.get(path).copied().unwrap_or(0);
                (sample.at_us, packets * datagram)
            })
            .collect();
        let name = format!("flow {}, path {path}", flow.flow);
        curve(name, path, Side::Measured, rates(&counted))
    };
    (0..flow.paths.len()).map(path).collect()
}

fn link_rates(
    assembly: &Assembly,
    measured: &Measured,
    simulated: &Simulated,
) -> Vec<TestbedCurve> {
    let topology = &assembly.topology;
    let upwards = |link: clearway_lab::LinkId| {
        let (from, to) = topology.link_ends(link);
        let tier = |node| {
            topology
                .switch_index(node)
                .map(|index| topology.switches[index].tier)
        };
        tier(from) < tier(to)
    };
    let mut curves = Vec::new();
    let watched = watched_links(topology).into_iter().enumerate();
    for (colour, (index, link)) in watched.filter(|(_, link)| upwards(*link)).enumerate() {
        let name = topology.link_name(link);
        let instants = simulated.instants.iter();
        let counted: Vec<_> = instants
            .map(|instant| (instant.at_us, instant.links[index]))
            .collect();
        curves.push(curve(
            name.clone(),
            colour,
            Side::Simulated,
            rates(&counted),
        ));
        let instants = measured.links.iter();
        let counted: Vec<_> = instants
            .map(|(at, bytes)| (at.since(Time::ZERO).as_us(), bytes[index]))
            .collect();
        curves.push(curve(name, colour, Side::Measured, rates(&counted)));
    }
    curves.retain(|curve| !curve.at_us.is_empty());
    curves
}
