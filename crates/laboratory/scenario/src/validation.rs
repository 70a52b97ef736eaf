//! Checks that the parts of a scenario are compatible, and the resulting packet sizes.

use crate::error::ScenarioError;
use crate::virtual_channels::check_classes;
use crate::{LONGEST, Scenario, TransportSettings};
use clearway_fabric::Setup;
use clearway_fabric::topology::{Cable, PacketSizes, Topology};
use clearway_transport::congestion::perc::MOST_LINKS;
use clearway_transport::congestion::{CongestionControl, NetworkFacts};
use clearway_transport::{ClassSet, Reliability};
use clearway_units::{Bytes, Rate, RelativeSize, Span};
use std::collections::BTreeSet;

/// Sizes of full packets and acknowledgements.
///
/// # Errors
/// If the sizes give no valid packets.
pub fn packet_sizes(transport: &TransportSettings) -> Result<PacketSizes, ScenarioError> {
    let packets = &transport.packets;
    let (payload, header) = (packets.payload.as_u64(), packets.header.as_u64());
    let ack = packets.ack_bytes();
    let largest = u64::from(u16::MAX);
    if payload == 0 || header == 0 || payload.saturating_add(header) > largest {
        return Err(ScenarioError::about(
            &["payload", "header"],
            format!(
                "`transport.payload` = {} and `transport.header` = {} do not make a valid packet",
                packets.payload, packets.header
            ),
            "both must be above zero and together at most 65535 bytes",
        ));
    }
    if ack == 0 || ack > largest {
        return Err(ScenarioError::about(
            &["ack-size"],
            format!(
                "`transport.ack-size` = {} is not a valid packet size",
                Bytes::new(ack)
            ),
            "give it 1 to 65535 bytes",
        ));
    }
    Ok(PacketSizes {
        payload: payload as u32,
        header: header as u32,
        ack: ack as u32,
    })
}

/// Bytes of telemetry on each packet: none unless the controller uses it.
pub fn telemetry_bytes(
    transport: &TransportSettings,
    network: &NetworkFacts,
    sizes: PacketSizes,
) -> Result<u32, ScenarioError> {
    if !transport.controller.build(network).uses_telemetry() {
        return Ok(0);
    }
    let telemetry = transport.packets.telemetry;
    let longest = Bytes::new((sizes.payload + sizes.header).max(sizes.ack).into());
    let whole = telemetry.as_u64().saturating_add(longest.as_u64());
    if whole > u64::from(u16::MAX) {
        return Err(ScenarioError::about(
            &["telemetry-size"],
            format!(
                "`transport.telemetry-size` = {telemetry} on packets of {longest} makes them too long"
            ),
            "a packet has at most 65535 bytes in all",
        ));
    }
    Ok(telemetry.as_u64() as u32)
}

/// True if links allocate rates.
fn allocates(transport: &TransportSettings, network: &NetworkFacts) -> bool {
    let controller = transport.controller.build(network);
    controller.allocation().is_some()
}

/// Keys of timeouts that are shorter than the network's unloaded round trip, with their values.
pub(crate) fn short_timeouts(
    transport: &TransportSettings,
    network: &NetworkFacts,
) -> Vec<(&'static str, Span)> {
    // The value of the key, and the time that passes: `rto-rtts` is added to `rto`.
    let (high, low) = match &transport.reliability {
        Reliability::SelectiveRepeat(own) => (
            (own.timeout, own.configured_timeout(network)),
            own.timeout_low,
        ),
        Reliability::GoBackN(own) => ((own.timeout, own.timeout), None),
    };
    let low = low.map(|timeout| ("rto-low", timeout, timeout));
    let all = [("rto", high.0, high.1)].into_iter().chain(low);
    let short = all.filter(|(_, _, time)| *time < network.base_rtt);
    short.map(|(key, timeout, _)| (key, timeout)).collect()
}

/// Checks timers against the network's round trip, and the room in control packets against the network's paths.
pub fn check_timers(
    transport: &TransportSettings,
    network: &NetworkFacts,
) -> Result<(), ScenarioError> {
    let multiples = match &transport.reliability {
        Reliability::SelectiveRepeat(own) => vec![
            ("probe-after", own.probe_after),
            ("probe-rtt-limit", own.probe_rtt_limit),
        ],
        Reliability::GoBackN(_) => Vec::new(),
    };
    for (key, timeout) in short_timeouts(transport, network) {
        if transport.is_default(key, &timeout) {
            continue;
        }
        return Err(ScenarioError::about(
            &[key],
            format!(
                "`transport.{key}` = {timeout} is less than the unloaded round trip of {}: every packet would be retransmitted before its acknowledgement arrives",
                network.base_rtt
            ),
            format!("set `transport.{key}` to several round trips"),
        ));
    }
    let switches = network.path.switches as usize;
    if allocates(transport, network) && switches > MOST_LINKS - 2 {
        return Err(ScenarioError::about(
            &["controller", "kind"],
            format!(
                "`transport.controller` = \"{}\" has room for {} switches in a control packet, and the longest path has {switches}",
                transport.controller.name(),
                MOST_LINKS - 2
            ),
            "use a fabric with shorter paths, or another transport",
        ));
    }
    for (key, round_trips) in multiples {
        if round_trips * network.propagation_rtt.as_ps() as f64 > LONGEST.as_ps() as f64 {
            return Err(ScenarioError::about(
                &[key],
                format!(
                    "`transport.{key}` = {round_trips:?} round trips of {} are longer than {LONGEST}",
                    network.propagation_rtt
                ),
                "use a smaller multiple; 1e9 means never for any usual network",
            ));
        }
    }
    Ok(())
}

/// Checks that a queue holds a packet; a smaller queue never passes a packet.
pub fn check_queue(
    scenario: &Scenario,
    topology: &Topology,
    network: &NetworkFacts,
) -> Result<(), ScenarioError> {
    let of_queues = |cable: &&Cable| cable.up && !topology.is_scale_up(cable);
    let rates = topology.cables.iter().filter(of_queues).map(|c| c.rate);
    let slowest = rates.min().unwrap_or(network.line_rate);
    let bdp = network.port_bdp(slowest);
    let (limit, packet) = (
        scenario.switch.ports.queue.resolve(slowest, bdp),
        longest_packet(network),
    );
    if limit < packet {
        return Err(ScenarioError::about(
            &["queue"],
            format!(
                "`switch.queue` = {} is {limit} at a link of {slowest}, too little for a packet of {packet}",
                scenario.switch.ports.queue
            ),
            format!("give a size of at least {packet}, better several packets"),
        ));
    }
    Ok(())
}

/// Checks the queue limits of a topology file against a packet. A shared buffer does not use these limits.
pub fn check_queues_of_file(
    scenario: &Scenario,
    topology: &Topology,
    network: &NetworkFacts,
) -> Result<(), ScenarioError> {
    let packet = longest_packet(network);
    let limits = topology.queues.iter().flat_map(|own| [own.up, own.down]);
    let too_small = limits.flatten().find(|limit| *limit < packet);
    match too_small.filter(|_| scenario.switch.buffer.is_none()) {
        None => Ok(()),
        Some(limit) => Err(ScenarioError::about(
            &["file"],
            format!(
                "`Queue_Up` or `Queue_Down` of {limit} in `topology.file` is too little for a packet of {packet}"
            ),
            format!(
                "give a size of at least {packet} there, or set `topology.port-queues = \"switch\"`"
            ),
        )),
    }
}

fn longest_packet(network: &NetworkFacts) -> Bytes {
    Bytes::new(u64::from(network.payload + network.header))
}

/// Checks the classes of flows against virtual channels, and reserves and headrooms against the buffers.
pub fn check_setup(scenario: &Scenario, setup: &Setup<'_>) -> Result<(), ScenarioError> {
    let places = scenario.places();
    let flows = setup.flows.iter().map(|flow| ClassSet::only(flow.class));
    let classes = flows.fold(setup.further_classes, ClassSet::union);
    check_classes(&scenario.switch, setup.topology, classes).map_err(|error| {
        let sections = 0..scenario.workloads.len();
        let of_key = |key| {
            let mut sections = sections.clone();
            sections.find(|own| places.is_given("workload", *own, key))
        };
        let section = ["priority", "file"].into_iter().find_map(of_key);
        error.or_in(places, "workload", section.unwrap_or(0))
    })?;
    setup.check_buffers().map_err(|error| {
        let error = ScenarioError::about(
            &["buffer", "pfc.headroom", "pfc.reserve"],
            format!(
                "the buffer of {} has {}, but reserves, headrooms and a packet need {}",
                error.switch, error.buffer, error.needed
            ),
            "enlarge `switch.buffer`, or set a smaller `switch.pfc.headroom`",
        );
        error.or_in(places, "switch", 0)
    })
}

/// Checks the marking thresholds. Relative thresholds depend on the rate of the port.
pub fn check_ecn(
    scenario: &Scenario,
    topology: &Topology,
    network: &NetworkFacts,
) -> Result<(), ScenarioError> {
    let switch = &scenario.switch.ports;
    let marking = topology.cables.iter();
    let marking = marking.filter(|cable| !topology.is_scale_up(cable));
    let rates: BTreeSet<Rate> = marking.map(|cable| cable.rate).collect();
    let crossed = |kmin: RelativeSize, kmax: RelativeSize| {
        let cross = |&rate: &Rate| {
            let size = |size: RelativeSize| size.resolve(rate, network.port_bdp(rate));
            size(kmin) > size(kmax)
        };
        switch.ecn && rates.iter().any(cross)
    };
    for (number, marks) in switch.class_marks.iter().enumerate() {
        let before = &switch.class_marks[..number];
        let problem = if crossed(marks.kmin, marks.kmax) {
            "its kmin is above its kmax"
        } else if before.iter().any(|other| other.class == marks.class) {
            "the priority has been named before"
        } else {
            continue;
        };
        return Err(ScenarioError::about(
            &["ecn.classes"],
            format!("`switch.ecn.classes`: \"{marks}\": {problem}"),
            "name each priority once, with a kmin of at most kmax",
        ));
    }
    if crossed(switch.kmin, switch.kmax) {
        return Err(ScenarioError::about(
            &["ecn.kmin", "ecn.kmax"],
            format!(
                "`switch.ecn.kmin` = {} is above `switch.ecn.kmax` = {}",
                switch.kmin, switch.kmax
            ),
            "set kmin to at most kmax",
        ));
    }
    if switch.pmax > 1.0 {
        return Err(ScenarioError::about(
            &["ecn.pmax"],
            format!("`switch.ecn.pmax` = {} is not a probability", switch.pmax),
            "use 0 to 1",
        ));
    }
    Ok(())
}
