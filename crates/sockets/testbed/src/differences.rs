//! Differences between simulation and reality, and their reasons: sentences derived from counters.

use crate::plan::Switches;
use crate::setup::BedSetup;
use clearway_lab::Assembly;
use clearway_report::testbed::{Difference, SideCounts, TestbedRecord};
use clearway_transport::Reliability;
use clearway_units::{Bytes, Span};
use std::thread::available_parallelism;

/// Utilisation of the machine's processors above which hosts wait for them.
const BUSY: f64 = 0.8;

/// The differences for an otherwise complete record.
pub(crate) fn differences(
    setup: &BedSetup,
    assembly: &Assembly,
    record: &TestbedRecord,
) -> Vec<Difference> {
    let mut all = vec![completion(record), round_trip(record)];
    all.extend(store_and_forward(setup, assembly));
    all.push(processors(record));
    all.push(timers(setup, record));
    all.push(marks(setup, record));
    all.push(losses(record));
    all.extend(bit_errors(setup, assembly));
    all.extend(dead_paths(record));
    all.extend(shares(record));
    all.push(starts(record));
    all
}

fn difference(what: &str, facts: String) -> Difference {
    Difference {
        what: what.into(),
        facts,
    }
}

fn completion(record: &TestbedRecord) -> Difference {
    let done = |done: usize| format!("{done} of {}", record.flows.len());
    let simulated = record
        .flows
        .iter()
        .filter(|flow| flow.simulated_us.is_some());
    let measured = record
        .flows
        .iter()
        .filter(|flow| flow.measured_us.is_some());
    let facts = match record.median_ratio() {
        None => format!(
            "no flow is done on both sides: {} simulated, {} measured",
            done(simulated.count()),
            done(measured.count())
        ),
        Some(ratio) => format!(
            "measured over simulated is {ratio:.3} in the median; done are {} simulated, {} measured",
            done(simulated.count()),
            done(measured.count())
        ),
    };
    difference("completion times", facts)
}

fn round_trip(record: &TestbedRecord) -> Difference {
    let trips = &record.round_trip;
    let source = match trips.calibrated {
        true => {
            "the rest of the round trip that the handshakes measured is the delay of simulated links without a delay in the scenario"
        }
        false => "the scenario gives the delays of links, and software adds time",
    };
    difference(
        "base round trip",
        format!(
            "{:.0} us measured (median of connections {:.0} us), {:.0} us simulated: {source}",
            trips.measured_least_us, trips.measured_median_us, trips.simulated_us
        ),
    )
}

/// Packet processing that an idle `tbf` avoids.
fn store_and_forward(setup: &BedSetup, assembly: &Assembly) -> Option<Difference> {
    if setup.switches != Switches::Kernel {
        return None;
    }
    let (from, to) = assembly.routes.paths.longest_pair(assembly.sizes)?;
    let path = assembly.routes.paths.between(from, to);
    let frame = assembly.sizes.payload + assembly.sizes.header;
    let serialisation = path.span_of(frame) - path.propagation;
    Some(difference(
        "store and forward",
        format!(
            "a full packet takes {:.0} us of serialisation over {} simulated links; an idle port of the bed forwards a packet without this \
             time, so packets without load arrive earlier there",
            serialisation.as_us(),
            path.hops
        ),
    ))
}

fn processors(record: &TestbedRecord) -> Difference {
    let cpu: f64 = record.hosts.iter().map(|host| host.cpu_seconds).sum();
    let wall = record
        .hosts
        .iter()
        .map(|host| host.wall_seconds)
        .fold(0.0, f64::max);
    let cores = available_parallelism().map_or(1, usize::from);
    let share = |seconds: f64| match wall > 0.0 {
        true => seconds / wall / cores as f64,
        false => 0.0,
    };
    let verdict = match share(record.machine_cpu_seconds) > BUSY {
        true => "the machine was busy, and late processes look like network delay",
        false => "processors were no limit",
    };
    difference(
        "processors",
        format!(
            "processes of hosts took {cpu:.2} s in {wall:.2} s on {cores} processors, {:.0} % of them; with the forwarding and whatever \
             else ran, \
             {:.0} % were in use: {verdict}",
            share(cpu) * 100.0,
            share(record.machine_cpu_seconds) * 100.0
        ),
    )
}

fn timers(setup: &BedSetup, record: &TestbedRecord) -> Difference {
    let base = Span::from_ps((record.round_trip.measured_least_us * 1e6) as u64);
    let timers = match setup.settings.profile(base).reliability {
        Reliability::SelectiveRepeat(repeat) => {
            let rtt = setup.settings.profile(base).network.propagation_rtt.as_us();
            format!(
                "probes after {:.1} ms and a timeout of {:.0} ms, as timers of a process are good to a millisecond",
                repeat.probe_after * rtt / 1000.0,
                repeat.timeout.as_us() / 1000.0
            )
        }
        Reliability::GoBackN(repeat) => {
            format!("a timeout of {:.0} ms", repeat.timeout.as_us() / 1000.0)
        }
    };
    let given = record
        .software
        .iter()
        .any(|key| key.starts_with("transport.rto"));
    let both = match given {
        true => "the simulation has the same",
        false => "the scenario gives others to the simulation",
    };
    difference("timers", format!("the software has {timers}; {both}"))
}

fn total(record: &TestbedRecord, number: fn(&SideCounts) -> u64) -> (u64, u64) {
    let sides = record.flows.iter();
    sides.fold((0, 0), |(simulated, measured), flow| {
        (
            simulated + number(&flow.simulated),
            measured + number(&flow.measured),
        )
    })
}

fn marks(setup: &BedSetup, record: &TestbedRecord) -> Difference {
    let (simulated, measured) = total(record, |side| side.marked);
    let why = match setup.settings.ecn {
        true => "both sides mark by the same rule",
        false => {
            "switches of the bed mark nothing, so that the software takes a delay above target for a mark; simulated switches mark by the \
             scenario"
        }
    };
    difference(
        "marks",
        format!("senders heard of {simulated} marks simulated, {measured} measured: {why}"),
    )
}

fn losses(record: &TestbedRecord) -> Difference {
    let again = total(record, |side| side.retransmitted);
    let packets = total(record, |side| side.packets);
    let timeouts = total(record, |side| side.timeouts);
    let drops: u64 = record.links.iter().map(|link| link.simulated_drops).sum();
    let lost = record.links.iter().filter_map(|link| link.measured_drops);
    difference(
        "losses",
        format!(
            "simulated: {} of {} packets sent again after {drops} losses between switches, {} timeouts; measured: {} of {} after {} \
             losses, {} timeouts",
            again.0,
            packets.0,
            timeouts.0,
            again.1,
            packets.1,
            lost.sum::<u64>(),
            timeouts.1
        ),
    )
}

/// Bit errors by `netem`, which only knows packets.
fn bit_errors(setup: &BedSetup, assembly: &Assembly) -> Option<Difference> {
    let mut cables = assembly.topology.cables.iter();
    let has_errors = cables.any(|cable| cable.bit_error_rate > 0.0);
    (has_errors && setup.switches == Switches::Kernel).then(|| {
        difference(
            "bit errors",
            "a port of the bed loses packets of any length as often as full frames; simulated, short ones are lost less often".into(),
        )
    })
}

/// Handling of dead paths by the software, which the simulated selector does not.
fn dead_paths(record: &TestbedRecord) -> Option<Difference> {
    let paths = record.flows.iter().flat_map(|flow| &flow.paths);
    let downs: u64 = paths.map(|path| path.downs).sum();
    (downs > 0).then(|| {
        difference(
            "dead paths",
            format!(
                "the software took a path for dead {downs} times and left it to challenges alone; the simulated selector takes every path \
                 again when \
                 its turn comes"
            ),
        )
    })
}

/// Greatest share of a link among the links that leave the same switch, on both sides.
fn shares(record: &TestbedRecord) -> Option<Difference> {
    let from = |link: &str| link.split('-').next().unwrap_or("").to_owned();
    let greatest = |bytes: fn(&clearway_report::testbed::TestbedLink) -> u64| {
        let share = |link: &clearway_report::testbed::TestbedLink| {
            let beside = record
                .links
                .iter()
                .filter(|other| from(&other.link) == from(&link.link));
            let all: u64 = beside.clone().map(bytes).sum();
            let count = beside.count();
            (all > 0 && count > 1).then(|| bytes(link) as f64 / all as f64)
        };
        record.links.iter().filter_map(share).reduce(f64::max)
    };
    let simulated = greatest(|link| link.simulated_bytes)?;
    let measured = greatest(|link| link.measured_bytes.unwrap_or(0))?;
    Some(difference(
        "share of paths",
        format!(
            "the busiest link carries {:.0} % of its switch's traffic simulated, {:.0} % measured: each connection has {}; the bed spreads \
             their source ports by another hash, and the ports are new in each run",
            simulated * 100.0,
            measured * 100.0,
            match record.paths {
                1 => "1 path".to_owned(),
                paths => format!("{paths} paths"),
            }
        ),
    ))
}

fn starts(record: &TestbedRecord) -> Difference {
    let latest = record
        .flows
        .iter()
        .map(|flow| flow.late_us)
        .fold(0.0, f64::max);
    let bytes = Bytes::new(record.flows.iter().map(|flow| flow.bytes).sum());
    difference(
        "starts",
        format!(
            "flows began at most {latest:.0} us late on the bed, and count from then on; {bytes} in all"
        ),
    )
}
