//! Limits of the size and duration of a scenario. Beyond them numbers overflow, or no machine can run the scenario.
//!
//! | what | limit |
//! |---|---|
//! | hosts | 2 to 1048576 |
//! | switches times switches with hosts (routing tables) | 2^27 |
//! | links times switches with hosts (search for routes) | 2^34 |
//! | rate of a link | 1 Mb/s to 100 Tb/s |
//! | delay of a link | 1 ns to 1 s |
//! | round trips between two control packets of s-PERC | 1 to 10000 |
//! | points of a curve | 16 to 100000 |
//! | pause frame | 1 B to 65535 B |
//! | bytes that a capture keeps of a frame | at least 96 |
//! | frames of a capture | 1 to 100 million |
//! | `stop.at-most`, starts, timers, computations, and the time that a message takes alone on the slowest link | 30 days |

use super::{General, ObserveSettings, Sampling, SwitchSettings, TransportSettings};
use crate::error::ScenarioError;
use clearway_fabric::LinkSchedule;
use clearway_fabric::topology::{PacketSizes, Topology};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::congestion::perc::LEAST_HEADROOM;
use clearway_transport::paths::{DeadPath, SelectorSettings};
use clearway_transport::reliability::go_back_n::MOST_QUEUE_PAIRS;
use clearway_transport::{Reliability, Scope};
use clearway_units::{Bytes, Parameter as _, Rate, RelativeSize, Span, Time, Value};
use clearway_workload::{FlowSpec, JobSpec, PreparedGraph, Start, Task};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

const MOST_HOSTS: u64 = 1 << 20;
const MOST_ROUTES: u64 = 1 << 27;
const MOST_ROUTE_STEPS: u64 = 1 << 34;
pub(crate) const RATES: (Rate, Rate) = (Rate::from_bps(1_000_000), Rate::from_gbps(100_000));
const DELAYS: (Span, Span) = (Span::from_ns(1), Span::from_ms(1000));

/// Sizes of a pause frame. An empty frame would leave a port at the same instant as the previous packet, but packets on a link need
/// different instants.
const FRAMES: (Bytes, Bytes) = (Bytes::new(1), Bytes::new(65_535));

/// Maximum duration. Seven of these fit in the 64 bits of a time, so that sums of a few need no checks.
pub const LONGEST: Span = Span::from_ms(30 * 24 * 3600 * 1000);

/// Checks the top of a scenario.
pub(crate) fn check_general(general: &General) -> Result<(), ScenarioError> {
    if general.name.trim().is_empty() {
        return Err(ScenarioError::about(
            &["name"],
            "`name` is empty",
            "give the scenario a name, such as \"incast-64\"",
        ));
    }
    if general.at_most.is_zero() {
        return Err(ScenarioError::about(
            &["stop.at-most"],
            "`stop.at-most` of no time: the run ends before it begins",
            "give it a time such as \"50ms\", or leave it out",
        ));
    }
    not_too_long("", "stop.at-most", Some(general.at_most))?;
    not_too_long("", "trigger-delay", general.trigger_delay)
}

/// Points of a curve.
const POINTS: std::ops::RangeInclusive<u32> = 16..=100_000;

/// Minimum number of captured bytes of a frame. The longest headers, STrack's, have 82 bytes.
const SHORTEST_SNAP: Bytes = Bytes::new(96);

/// Number of frames in a capture; each takes 72 bytes in memory.
const CAPTURED: std::ops::RangeInclusive<u32> = 1..=100_000_000;

/// Checks the `[observe]` section.
pub(crate) fn check_observe(observe: &ObserveSettings) -> Result<(), ScenarioError> {
    if !POINTS.contains(&observe.points) {
        return Err(ScenarioError::about(
            &["series.points"],
            format!("`observe.series.points` cannot be {}", observe.points),
            format!("keep {} to {} points", POINTS.start(), POINTS.end()),
        ));
    }
    if let Some(snap) = observe.pcap_snap
        && snap < SHORTEST_SNAP
    {
        return Err(ScenarioError::about(
            &["trace.pcap-snap"],
            format!("`observe.trace.pcap-snap` = {snap} does not even keep the headers"),
            format!("keep at least {SHORTEST_SNAP} of each frame"),
        ));
    }
    if !CAPTURED.contains(&observe.pcap_frames) {
        return Err(ScenarioError::about(
            &["trace.pcap-frames"],
            format!(
                "`observe.trace.pcap-frames` cannot be {}",
                observe.pcap_frames
            ),
            format!("capture {} to {} frames", CAPTURED.start(), CAPTURED.end()),
        ));
    }
    let every = match observe.every {
        Sampling::Every(span) => Some(span),
        Sampling::Off | Sampling::Auto => None,
    };
    not_too_long("observe.", "series.every", every)
}

/// Checks that no window of the controller is zero: flows would send nothing, or only the minimum.
fn check_windows(transport: &TransportSettings) -> Result<(), ScenarioError> {
    const WINDOWS: [&str; 6] = [
        "window",
        "max-cwnd",
        "init-cwnd",
        "min-cwnd",
        "max-window",
        "initial-window",
    ];
    let entries = transport.controller.entries();
    let is_empty = |(key, value): &&(&'static str, Value)| {
        let size = RelativeSize::from_value(value);
        let most = size.map(|size| size.resolve(Rate::from_gbps(1), Bytes::new(1 << 30)));
        WINDOWS.contains(key) && most == Some(Bytes::ZERO)
    };
    match entries.iter().find(is_empty) {
        None => Ok(()),
        Some((key, value)) => Err(ScenarioError::about(
            &[key],
            format!("`transport.{key}` = {value}: a window without bytes sends nothing"),
            "use a packet or more, such as \"4096B\" or \"1bdp\"",
        )),
    }
}

/// Checks the timers of a transport that do not depend on the network.
pub(crate) fn check_transport(transport: &TransportSettings) -> Result<(), ScenarioError> {
    let spans = match &transport.reliability {
        Reliability::SelectiveRepeat(own) => {
            vec![
                ("rto", Some(own.timeout)),
                ("rto-low", own.timeout_low),
                ("linger", own.linger),
            ]
        }
        Reliability::GoBackN(own) => vec![
            ("rto", Some(own.timeout)),
            ("rto-max", Some(own.timeout_max)),
            ("nack-interval", Some(own.nack_interval)),
            ("linger", own.linger),
        ],
    };
    for (key, span) in spans {
        not_too_long("transport.", key, span)?;
    }
    if let Reliability::SelectiveRepeat(own) = &transport.reliability
        && own.timeout_low.is_some()
        && own.timeout_per_packet
    {
        return Err(ScenarioError::about(
            &["rto-low", "rto-per-packet"],
            "`transport.rto-low` is the timeout of a flow with few packets in flight, and with `rto-per-packet` each packet has its own",
            "leave out one of them",
        ));
    }
    check_windows(transport)?;
    check_allocation(transport)?;
    check_dead_path(transport)?;
    if let Reliability::GoBackN(own) = &transport.reliability
        && own.queue_pairs.get() > MOST_QUEUE_PAIRS
    {
        return Err(ScenarioError::about(
            &["qps"],
            format!("`transport.qps` = {} is impossible", own.queue_pairs),
            format!("use 1 to {MOST_QUEUE_PAIRS} queue pairs"),
        ));
    }
    Ok(())
}

/// Checks that the controllers of all flows support the scope.
pub(crate) fn check_scope(
    scope: Scope,
    controllers: &[ControllerSettings],
) -> Result<(), ScenarioError> {
    if !scope.shares_controller() {
        return Ok(());
    }
    let depends_on_phase = |key: &str, usual: f64| {
        let mut entries = controllers.iter().flat_map(ControllerSettings::entries);
        entries.any(|entry| entry.0 == key && entry.1 != Value::Float(usual))
    };
    for (key, usual) in [("phase-increase", 0.0), ("phase-base", 1.0)] {
        if depends_on_phase(key, usual) {
            return Err(ScenarioError::about(
                &["scope", key],
                format!(
                    "`transport.scope` = \"{scope}\" has one controller for several flows, and `{key}` depends on the phase of one"
                ),
                format!(
                    "set `transport.{key} = {usual:?}`, or the scope to \"queue-pair\" or \"host\""
                ),
            ));
        }
    }
    Ok(())
}

/// Checks that a sender that avoids dead paths gets feedback on each packet's path.
fn check_dead_path(transport: &TransportSettings) -> Result<(), ScenarioError> {
    match &transport.selector {
        SelectorSettings::Adaptive(own) if own.dead_path != DeadPath::Off => {}
        _ => return Ok(()),
    }
    let error = |key: &'static str, why: &str, fix: &str| {
        let message = format!(
            "`transport.dead-path` = \"{}\" {why}",
            DeadPath::Probe.name()
        );
        Err(ScenarioError::about(&["dead-path", key], message, fix))
    };
    let Reliability::SelectiveRepeat(own) = &transport.reliability else {
        return error(
            "reliability",
            "needs probes, and go-back-N sends none",
            "set `transport.reliability = \"selective-repeat\"`, or `transport.dead-path = \"off\"`",
        );
    };
    if !own.probes() {
        return error(
            "recovery",
            &format!(
                "needs probes, and recovery \"{}\" sends none",
                own.recovery.name()
            ),
            "set `transport.recovery` to \"strack\" or \"sleek\", or `transport.dead-path = \"off\"`",
        );
    }
    let payload = transport.packets.payload;
    match own.ack_bytes {
        Some(bytes) if bytes > payload => error(
            "ack-bytes",
            &format!(
                "needs an acknowledgement for each packet of {payload}: with one for {bytes} most paths are silent"
            ),
            "set `transport.ack-bytes = \"auto\"`, or `transport.dead-path = \"off\"`",
        ),
        _ => Ok(()),
    }
}

/// Maximum number of round trips between two control packets of a flow.
const MOST_CONTROL_GAP: u32 = 10_000;

/// Checks the other parts of a transport whose rates links allocate.
fn check_allocation(transport: &TransportSettings) -> Result<(), ScenarioError> {
    let name = transport.controller.name();
    let error = |key: &'static str, message: &str, fix: &str| {
        let message = format!("`transport.controller` = \"{name}\" {message}");
        Err(ScenarioError::about(
            &[key, "controller", "kind"],
            message,
            fix,
        ))
    };
    let (common, speculates) = match &transport.controller {
        ControllerSettings::SPerc(own) => (&own.common, false),
        ControllerSettings::OneRc(own) => (&own.common, true),
        _ => return Ok(()),
    };
    if ![Scope::QueuePair, Scope::Host].contains(&transport.scope.scope) {
        return error(
            "scope",
            &format!(
                "has no scope \"{}\": links allocate a rate to each flow",
                transport.scope.scope
            ),
            "set `transport.scope` to \"queue-pair\", or to \"host\", which is `transport.weights = true`",
        );
    }
    if transport.selector.name() != "single" {
        return error(
            "spray",
            &format!(
                "cannot spray over paths by \"{}\": its control packets take the path of the data",
                transport.selector.name()
            ),
            "set `transport.spray = \"single\"`",
        );
    }
    if speculates && !matches!(transport.reliability, Reliability::GoBackN(_)) {
        return error(
            "reliability",
            &format!(
                "does not work with \"{}\": links drop only the tail of the speculative data, and no loss detection is needed",
                transport.reliability.name()
            ),
            "set `transport.reliability = \"go-back-n\"`",
        );
    }
    if common.control_gap.get() > MOST_CONTROL_GAP {
        return error(
            "control-gap",
            &format!(
                "cannot leave {} round trips between two control packets",
                common.control_gap
            ),
            &format!("use 1 to {MOST_CONTROL_GAP}; links forget a flow after two such gaps"),
        );
    }
    if let Some(headroom) = common.headroom
        && !(LEAST_HEADROOM..=1.0).contains(&headroom)
    {
        return error(
            "headroom",
            &format!("cannot give {headroom:?} of each link to flows"),
            "use a part from 0.001 to 1, or \"auto\", which leaves room for acknowledgements and control packets",
        );
    }
    Ok(())
}

/// Checks the settings of switches that a transport needs if agents of links allocate its rates.
pub(crate) fn check_agents(
    transport: &TransportSettings,
    switch: &SwitchSettings,
) -> Result<(), ScenarioError> {
    let speculates = match transport.controller {
        ControllerSettings::OneRc(_) => true,
        ControllerSettings::SPerc(_) => false,
        _ => return Ok(()),
    };
    let routing = switch.ports.routing;
    if routing.is_local() {
        return Err(ScenarioError::about(
            &["routing"],
            format!(
                "`switch.routing` = \"{}\" does not go with `transport.controller` = \"{}\": data takes other links than \
                 the control packets that allocate its rate",
                routing.name(),
                transport.controller.name()
            ),
            "set `switch.routing` to \"ecmp\" or \"d-mod-k\"",
        ));
    }
    match &switch.buffer {
        Some(buffer) if speculates && !buffer.agent_drops => Err(ScenarioError::about(
            &["pfc.agent-drops"],
            "`switch.pfc.agent-drops` = false prevents links from dropping speculative data, and 1RC depends on these drops",
            "set `switch.pfc.agent-drops = true`, or `transport.kind = \"s-perc\"`, which drops nothing",
        )),
        _ => Ok(()),
    }
}

/// Checks the levels of adaptive routing.
fn check_levels(levels: &[f64]) -> Result<(), ScenarioError> {
    let is_share = |level: &f64| *level > 0.0 && *level <= 1.0;
    if levels.iter().all(is_share) && levels.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    Err(ScenarioError::about(
        &["adaptive.levels"],
        format!("`switch.adaptive.levels` = {levels:?} are not increasing shares of a queue"),
        "give shares above 0 and at most 1, the smallest first, such as `[0.05, 0.1, 0.2]`; an empty list compares bytes",
    ))
}

/// Checks the settings of switches that do not depend on the fabric.
pub(crate) fn check_switch(switch: &SwitchSettings) -> Result<(), ScenarioError> {
    check_levels(&switch.ports.adaptive.levels)?;
    match &switch.buffer {
        Some(buffer) if buffer.frame < FRAMES.0 || buffer.frame > FRAMES.1 => {
            Err(ScenarioError::about(
                &["pfc.frame"],
                format!(
                    "`switch.pfc.frame` = {} is not a valid frame size",
                    buffer.frame
                ),
                format!("use {} to {}; on Ethernet it has 64B", FRAMES.0, FRAMES.1),
            ))
        }
        _ => Ok(()),
    }
}

fn not_too_long(section: &str, key: &'static str, span: Option<Span>) -> Result<(), ScenarioError> {
    match span {
        Some(span) if span > LONGEST => Err(ScenarioError::about(
            &[key],
            format!("`{section}{key}` = {span} is too long"),
            format!("use at most {LONGEST} (30 days)"),
        )),
        _ => Ok(()),
    }
}

/// Checks the number of hosts before anything is built.
pub(super) fn check_hosts(keys: &[&'static str], hosts: u64) -> Result<(), ScenarioError> {
    if hosts == 0 {
        return Err(ScenarioError::about(
            keys,
            "impossible topology: no hosts",
            "use at least two hosts",
        ));
    }
    if hosts > MOST_HOSTS {
        return Err(ScenarioError::about(
            keys,
            format!("impossible topology: {hosts} hosts"),
            format!("use at most {MOST_HOSTS}"),
        ));
    }
    Ok(())
}

/// Checks that a fabric is small enough to compute its routes.
pub(super) fn check_size(topology: &Topology) -> Result<(), ScenarioError> {
    if topology.machines() < 2 {
        return Err(ScenarioError::about(
            &["hosts", "hosts-per-leaf", "radix", "file"],
            "impossible topology: fewer than two hosts",
            "use at least two hosts",
        ));
    }
    let switches = topology.switches.len() as u64;
    let leaves = topology.switches.iter().filter(|s| s.tier == 0).count() as u64;
    let links = 2 * topology.cables.len() as u64;
    if switches * leaves > MOST_ROUTES || links * leaves > MOST_ROUTE_STEPS {
        return Err(ScenarioError::about(
            &["hosts-per-leaf", "hosts", "radix", "file"],
            format!(
                "impossible topology: {switches} switches, {leaves} of them with hosts, and {links} links need too large routing tables"
            ),
            "put more hosts on each switch, or use fewer hosts",
        ));
    }
    Ok(())
}

/// Checks that the routes of all states of the fabric, one after each event of a link, fit into memory.
pub(crate) fn check_reroutes(
    topology: &Topology,
    schedule: &LinkSchedule,
) -> Result<(), ScenarioError> {
    let known = schedule.known_failures();
    let states: BTreeSet<_> = known.into_iter().map(|(_, down)| down).collect();
    let states = states.len() as u64;
    let switches = topology.switches.len() as u64;
    let leaves = topology.switches.iter().filter(|s| s.tier == 0).count() as u64;
    let links = 2 * topology.cables.len() as u64;
    let all = states.saturating_mul(leaves);
    if all.saturating_mul(switches) > MOST_ROUTES || all.saturating_mul(links) > MOST_ROUTE_STEPS {
        return Err(ScenarioError::about(
            &["link", "state"],
            format!("routes for {states} states of a fabric of {switches} switches are too many"),
            "let fewer links go down, or several of them at once",
        ));
    }
    Ok(())
}

/// Checks rates and delays of links. `entries` are the keys of the section with their values.
pub(super) fn check_links(
    topology: &Topology,
    entries: &[(&'static str, Value)],
) -> Result<(), ScenarioError> {
    let keys_of = |text: &str| -> Vec<&'static str> {
        let same = |(_, value): &&(&'static str, Value)| *value == Value::Text(text.into());
        let given = entries.iter().filter(same).map(|(key, _)| *key);
        given.chain(["links", "file"]).collect()
    };
    for cable in &topology.cables {
        let name = || {
            let [a, b] = cable.ends;
            format!("{}-{}", topology.node_name(a), topology.node_name(b))
        };
        if cable.rate < RATES.0 || cable.rate > RATES.1 {
            return Err(ScenarioError::about(
                &keys_of(&cable.rate.to_string()),
                format!(
                    "impossible topology: link `{}` has a rate of {}",
                    name(),
                    cable.rate
                ),
                format!("use {} to {}", RATES.0, RATES.1),
            ));
        }
        if cable.delay < DELAYS.0 || cable.delay > DELAYS.1 {
            return Err(ScenarioError::about(
                &keys_of(&cable.delay.to_string()),
                format!(
                    "impossible topology: link `{}` has a delay of {}",
                    name(),
                    cable.delay
                ),
                format!("use {} to {}", DELAYS.0, DELAYS.1),
            ));
        }
    }
    Ok(())
}

/// Checks that jobs start, and that all their computations end, within the maximum duration.
pub fn check_jobs(jobs: &[JobSpec]) -> Result<(), ScenarioError> {
    // Jobs of a section share their plan.
    let mut former: Option<(&Arc<PreparedGraph>, Span)> = None;
    for job in jobs {
        if job.start > Time::ZERO + LONGEST {
            return Err(ScenarioError::about(
                &["start", "stagger"],
                format!("the job {} starts too late", job.label),
                format!("start jobs within {LONGEST} (30 days)"),
            ));
        }
        let longest = match former {
            Some((plan, longest)) if Arc::ptr_eq(plan, &job.plan) => longest,
            _ => longest_computation(&job.plan),
        };
        former = Some((&job.plan, longest));
        // The longest computation at the slowest rank, with maximum jitter.
        let slowest = job.stragglers.values().fold(1.0, |a: f64, b| a.max(*b));
        let longest = longest.as_ps() as f64 * slowest * (1.0 + job.jitter);
        if longest > LONGEST.as_ps() as f64 {
            let span = Span::from_ps(longest as u64);
            return Err(ScenarioError::about(
                &[
                    "compute",
                    "expert-compute",
                    "interval",
                    "start-jitter",
                    "straggler-factor",
                    "reduction-rate",
                    "file",
                ],
                format!("a computation of the job {} can take {span}", job.label),
                format!("use at most {LONGEST} (30 days)"),
            ));
        }
    }
    Ok(())
}

/// Duration of the longest computation at a rank that is not a straggler, without jitter.
fn longest_computation(plan: &PreparedGraph) -> Span {
    let spans = plan.graph().numbered().map(|(_, task)| match task {
        Task::Compute { span, .. } => span,
        Task::Message { .. } => Span::ZERO,
    });
    spans.max().unwrap_or(Span::ZERO)
}

/// The rate of the slowest link of a fabric, including links that are down.
pub fn slowest_link(topology: &Topology) -> Rate {
    let rates = topology.cables.iter().map(|cable| cable.rate);
    rates.min().unwrap_or(RATES.0)
}

/// Checks that flows start, and can end, within the maximum duration.
pub fn check_flows(
    flows: impl IntoIterator<Item: Borrow<FlowSpec>>,
    slowest: Rate,
    sizes: PacketSizes,
) -> Result<(), ScenarioError> {
    let name = |flow: &FlowSpec| format!("flow {} ({}->{})", flow.label, flow.src, flow.dst);
    for flow in flows {
        let flow: &FlowSpec = flow.borrow();
        if matches!(flow.start, Start::At(time) if time > Time::ZERO + LONGEST) {
            return Err(ScenarioError::about(
                &["start", "file", "flows"],
                format!("{} starts too late", name(flow)),
                format!("start flows within {LONGEST} (30 days)"),
            ));
        }
        let bytes = flow.bytes.as_u64();
        let packets = u128::from(bytes.div_ceil(sizes.payload.into()));
        let bits = 8 * (u128::from(bytes) + packets * u128::from(sizes.header));
        let seconds = bits / u128::from(slowest.as_bps());
        if seconds >= u128::from(LONGEST.as_ps() / Span::from_ms(1000).as_ps()) {
            return Err(ScenarioError::about(
                &["message", "size", "file", "flows"],
                format!(
                    "{} carries {}, which takes longer than 30 days at the {slowest} of the slowest link",
                    name(flow),
                    flow.bytes
                ),
                "send a smaller message, or use faster links",
            ));
        }
    }
    Ok(())
}

/// Number of hosts on each leaf: the multiple of `multiple` nearest to `near` with which `hosts` fill all leaves.
pub(crate) fn leaf_size(hosts: u32, multiple: u32, near: u32) -> Option<u32> {
    let multiple = usize::try_from(multiple).ok().filter(|&n| n > 0)?;
    let sizes = (0..=hosts).step_by(multiple).skip(1);
    let whole = sizes.filter(|&size| hosts.is_multiple_of(size));
    whole.min_by_key(|size| size.abs_diff(near))
}
