//! Warnings about a transport and its network: compatible settings that are probably mistakes.

use crate::transport::presets::PresetKey;
use crate::validation::short_timeouts;
use crate::virtual_channels::idle_channels;
use crate::{Scenario, TransportSettings};
use clearway_fabric::topology::Paths;
use clearway_fabric::{AdaptiveRoutingParameters, PathChoice, SwitchParameters};
use clearway_transport::Reliability;
use clearway_transport::congestion::feedback::{FeedbackDefinition, Silent};
use clearway_transport::congestion::telemetry::MOST_HOPS;
use clearway_transport::congestion::{
    CongestionControl, ControllerDefinition, ControllerSettings, Dcqcn, HopCount, NetworkFacts,
};
use clearway_transport::paths::{SelectorDefinition, Single};
use clearway_transport::reliability::selective_repeat::Recovery;
use clearway_units::{Span, Value};

/// All warnings about the transports of a scenario; each transport has separate facts about the network.
pub fn warnings_of(scenario: &Scenario, networks: &[NetworkFacts], paths: &Paths) -> Vec<String> {
    let transports = scenario.transports();
    let mut all = Vec::new();
    for ((place, transport), network) in (0u8..).zip(&transports.settings).zip(networks) {
        let own = warnings_about(scenario, transport, network, paths);
        let Some(section) = transports.first_section(place).filter(|_| place > 0) else {
            all.extend(own);
            continue;
        };
        let own = own
            .into_iter()
            .chain(other_switches(scenario, transport, section));
        all.extend(own.map(|warning| format!("`workload[{section}].transport`: {warning}")));
    }
    all.extend(idle_adaptive_keys(&scenario.switch.ports));
    all.extend(circles_of_pauses(scenario));
    all.extend(idle_channels(&scenario.topology, &scenario.switch));
    all.extend(empty_file(scenario));
    all
}

fn warnings_about(
    scenario: &Scenario,
    transport: &TransportSettings,
    network: &NetworkFacts,
    paths: &Paths,
) -> Vec<String> {
    let warnings = [
        controller_without_feedback(transport),
        idle_sprayer(transport, scenario.switch.ports.routing),
        unrecorded_hops(transport, network, paths),
        unreachable_target(transport, network),
        everything_again(transport, scenario.switch.ports.routing, network),
        losses(scenario, transport),
        lost_control_packets(scenario, transport),
        unseen_losses(scenario, transport),
        narrow_window(transport, network),
        overtaken_on_detours(scenario, transport),
        overtaken_on_planes(scenario, transport),
        other_marks(scenario, transport),
    ];
    let raised = raised_timeouts(transport, network).into_iter();
    raised.chain(warnings.into_iter().flatten()).collect()
}

/// Defaults of timeouts that are shorter than a round trip of this network.
fn raised_timeouts(transport: &TransportSettings, network: &NetworkFacts) -> Vec<String> {
    let raised = |(key, timeout): (&str, Span)| {
        format!(
            "the default of `transport.{key}`, {timeout}, is less than the unloaded round trip of {}: it is {} here, four round trips",
            network.base_rtt,
            network.usable_timeout(timeout)
        )
    };
    let short = short_timeouts(transport, network).into_iter();
    short.map(raised).collect()
}

/// Warning about a section's transport that was designed with other switches. The switches of `[transport]` are the defaults of `[switch]`.
fn other_switches(
    scenario: &Scenario,
    transport: &TransportSettings,
    section: usize,
) -> Option<String> {
    let class = scenario.workloads[section].class();
    let marks = &scenario.switch.ports.class_marks;
    let has_marks = marks.iter().any(|own| own.class == class);
    let mut designed = transport.designed_for();
    designed.retain(|own| !has_marks || !own.key.starts_with("ecn.k") && own.key != "ecn.pmax");
    let missing = not_as_designed(scenario, &designed)?;
    let advice = match missing.contains("`switch.ecn.") {
        true => {
            "set these keys, or give the section a `priority` and its marks in `switch.ecn.classes`"
        }
        false => "set these keys",
    };
    Some(format!(
        "\"{}\" was designed with {missing}, but the switches follow `[transport]`; {advice}",
        transport.kind,
    ))
}

/// Warning about a controller that is not the preset's, with switches that mark for the preset.
fn other_marks(scenario: &Scenario, transport: &TransportSettings) -> Option<String> {
    let controller = transport.controller.name();
    let marks = TransportSettings::marks_for(transport.kind, controller)?;
    let missing = not_as_designed(scenario, &marks)?;
    Some(format!(
        "`transport.controller` = \"{controller}\" was tuned with {missing}, and the switches mark as \"{}\" has it; set these keys, or `transport.kind`",
        transport.kind
    ))
}

/// List of the `keys` of switches that the scenario does not set and has other values for; `None` if there are none.
fn not_as_designed(scenario: &Scenario, keys: &[PresetKey]) -> Option<String> {
    let switch = scenario.switch.entries();
    let kind = Value::Text(scenario.switch.kind().name().into());
    let is_other = |own: &&PresetKey| {
        let given = scenario.places().is_given("switch", 0, own.key);
        let actual = match own.key {
            "kind" => Some(&kind),
            key => switch
                .iter()
                .find(|(known, _)| *known == key)
                .map(|(_, value)| value),
        };
        !given && actual.is_some_and(|actual| *actual != own.value)
    };
    let other = keys.iter().filter(is_other);
    let other: Vec<String> = other
        .map(|own| format!("`switch.{}` = {}", own.key, own.value))
        .collect();
    (!other.is_empty()).then(|| other.join(", "))
}

/// Paths on which packets pass more switches than telemetry has room for.
fn unrecorded_hops(
    transport: &TransportSettings,
    network: &NetworkFacts,
    paths: &Paths,
) -> Option<String> {
    let recorded = transport.controller.build(network).uses_telemetry();
    let longest = *paths.histogram().keys().last()?;
    let switches = longest.saturating_sub(1) as usize;
    (recorded && switches > MOST_HOPS).then(|| {
        format!(
            "paths lead over up to {switches} switches, but telemetry holds the first {MOST_HOPS}: congestion behind them goes unseen"
        )
    })
}

/// Warning about a target of Swift below the round trip of any packet.
fn unreachable_target(transport: &TransportSettings, network: &NetworkFacts) -> Option<String> {
    let ControllerSettings::Swift(swift) = &transport.controller else {
        return None;
    };
    let hops = match swift.hops {
        HopCount::Switches => network.path.switches,
        HopCount::Links => network.path.switches + 1,
    };
    let target = swift.base_delay + swift.hop_delay * u64::from(hops);
    let round_trip = network.path.rtt;
    (target <= round_trip).then(|| {
        format!(
            "Swift's target of {target} is not above the unloaded round trip of {round_trip}, so that windows shrink without congestion; raise `transport.base-delay` or `transport.hop-delay`"
        )
    })
}

/// Warning about a spraying transport over switches that ignore its path choice.
fn idle_sprayer(transport: &TransportSettings, routing: PathChoice) -> Option<String> {
    let sprays = transport.selector.name() != Single::NAME;
    (sprays && routing == PathChoice::Destination).then(|| {
        format!(
            "`switch.routing` = \"d-mod-k\" takes one way to each host, so that `transport.spray` = \"{}\" spreads nothing; set it to \"{}\"",
            transport.selector.name(),
            Single::NAME
        )
    })
}

/// Warning about go-back-N, which treats an overtaken packet as lost.
fn everything_again(
    transport: &TransportSettings,
    routing: PathChoice,
    network: &NetworkFacts,
) -> Option<String> {
    let sprays = transport.selector.name() != Single::NAME;
    let is_go_back_n = matches!(transport.reliability, Reliability::GoBackN(_));
    // With a single switch all packets take one path.
    if !is_go_back_n || network.path.switches <= 1 {
        return None;
    }
    let by_packet = [PathChoice::Adaptive, PathChoice::RoundRobin].contains(&routing);
    if by_packet {
        return Some(format!(
            "`transport.reliability` = \"go-back-n\" retransmits every packet after one that arrives out of order, and `switch.routing` = \"{}\" reorders packets; set `switch.routing` to \"flowlet\" or \"ecmp\", or `transport.reliability` to \"selective-repeat\"",
            routing.name()
        ));
    }
    sprays.then(|| {
        format!(
            "`transport.reliability` = \"go-back-n\" retransmits every packet after one that arrives out of order, and `transport.spray` = \"{}\" reorders packets; set `transport.spray` to \"{}\", or `transport.reliability` to \"selective-repeat\"",
            transport.selector.name(),
            Single::NAME
        )
    })
}

/// Settings of adaptive routing that switches do not use.
fn idle_adaptive_keys(switch: &SwitchParameters) -> Option<String> {
    let is_set = *switch.adaptive != AdaptiveRoutingParameters::default();
    (is_set && !switch.routing.is_local()).then(|| {
        format!(
            "the keys `switch.adaptive.*` change nothing while `switch.routing` = \"{}\"; set that to \"adaptive\" or \"flowlet\", or leave them out",
            switch.routing.name()
        )
    })
}

/// Go-back-N over detours, whose packets overtake each other.
fn overtaken_on_detours(scenario: &Scenario, transport: &TransportSettings) -> Option<String> {
    let routing = scenario.topology.detours()?;
    let is_go_back_n = matches!(transport.reliability, Reliability::GoBackN(_));
    is_go_back_n.then(|| {
        format!(
            "`transport.reliability` = \"go-back-n\" retransmits every packet after one that arrives out of order, and `topology.routing` = \"{}\" reorders packets; set `topology.routing` to \"minimal\", or `transport.reliability` to \"selective-repeat\"",
            routing.name()
        )
    })
}

/// Go-back-N over NICs of several ports, whose packets overtake each other.
fn overtaken_on_planes(scenario: &Scenario, transport: &TransportSettings) -> Option<String> {
    let is_go_back_n = matches!(transport.reliability, Reliability::GoBackN(_));
    (is_go_back_n && scenario.topology.has_least_queue_nics()).then(|| {
        let (key, value) = scenario.topology.overtaking_nics();
        format!("`transport.reliability` = \"go-back-n\" retransmits every packet after one that arrives out of order, and `topology.{key}` = \"{value}\" reorders packets; set `topology.{key}` to \"hash\", or `transport.reliability` to \"selective-repeat\"")
    })
}

/// Pauses on a dragonfly or among hosts that forward, whose links can wait for each other in a cycle.
fn circles_of_pauses(scenario: &Scenario) -> Option<String> {
    scenario.switch.buffer.as_ref()?;
    if scenario.topology.has_cycles_of_hosts() {
        let kind = scenario.topology.kind.name();
        let fix = match kind {
            "ring" => "set `topology.virtual-channels` to 2",
            "torus" => {
                "set `topology.virtual-channels` to 2 and `topology.routing` to \"dimension-order\""
            }
            _ => "set `topology.routing` to \"dimension-order\"",
        };
        return Some(format!(
            "on a {kind}, paused links can deadlock; {fix}, or `switch.kind` to \"lossy\""
        ));
    }
    scenario.topology.has_groups().then(|| {
        "on a dragonfly, paused links can deadlock: real dragonflies prevent this with a virtual channel for each link between groups on a path, and `switch.kind` = \"shared-buffer\" has no virtual channels; set it to \"lossy\"".into()
    })
}

/// Controllers that rely on pause frames, over switches that send none.
fn losses(scenario: &Scenario, transport: &TransportSettings) -> Option<String> {
    (transport.expects_no_loss() && scenario.switch.buffer.is_none()).then(|| {
        format!(
            "`transport.controller` = \"{}\" with go-back-N is made for lossless networks, and `switch.kind` = \"lossy\" drops packets when a queue is full: every packet after a loss is retransmitted; set `switch.kind` to \"shared-buffer\"",
            transport.controller.name()
        )
    })
}

/// Rates allocated by links, over switches that drop the control packets.
fn lost_control_packets(scenario: &Scenario, transport: &TransportSettings) -> Option<String> {
    let by_links = matches!(
        transport.controller,
        ControllerSettings::SPerc(_) | ControllerSettings::OneRc(_)
    );
    (by_links && scenario.switch.buffer.is_none()).then(|| {
        format!(
            "`transport.controller` = \"{}\" is made for lossless networks, and `switch.kind` = \"lossy\" drops packets when a queue is full: after a lost control packet, links allocate wrong rates until they forget the flow, and go-back-N retransmits every packet after a loss; set `switch.kind` to \"shared-buffer\"",
            transport.controller.name()
        )
    })
}

/// Transports that leave losses to trimming, over switches that do not trim.
fn unseen_losses(scenario: &Scenario, transport: &TransportSettings) -> Option<String> {
    let Reliability::SelectiveRepeat(settings) = &transport.reliability else {
        return None;
    };
    let drops = scenario.switch.buffer.is_none() && !scenario.switch.ports.trimming;
    (settings.recovery == Recovery::None && drops).then(|| {
        "`transport.recovery` = \"none\" relies on negative acknowledgements, and with `switch.trimming` = false no receiver sends them: each loss waits for a timeout; set `transport.kind` to \"uet-no-trim\", or `switch.trimming` to true".into()
    })
}

/// A maximum window below the bytes that a path holds.
fn narrow_window(transport: &TransportSettings, network: &NetworkFacts) -> Option<String> {
    let (key, window) = match &transport.controller {
        ControllerSettings::Strack(own) => ("max-cwnd", Some(own.max_window)),
        ControllerSettings::Reno(own) => ("max-window", Some(own.max_window)),
        ControllerSettings::Dctcp(own) => ("max-window", Some(own.max_window)),
        ControllerSettings::Swift(own) => ("max-window", own.max_window),
        ControllerSettings::Smartt(own) => ("max-window", Some(own.max_window)),
        ControllerSettings::Constant(own) => ("window", Some(own.window)),
        _ => return None,
    };
    let window = window?;
    let bytes = network.size(window);
    (bytes < network.bdp).then(|| {
        format!(
            "`transport.{key}` = {window} is {bytes}, less than the bandwidth-delay product of {}: a flow alone cannot fill its path",
            network.bdp
        )
    })
}

/// An empty scenario file.
fn empty_file(scenario: &Scenario) -> Option<String> {
    let file = scenario.places().empty_file()?;
    Some(format!(
        "{file} is empty: this is the default scenario; `clearway explain scenario` lists all keys"
    ))
}

/// A controller that hears only notifications, and receivers that send none.
fn controller_without_feedback(transport: &TransportSettings) -> Option<String> {
    let deaf =
        transport.controller.name() == Dcqcn::NAME && transport.feedback.name() == Silent::NAME;
    deaf.then(|| {
        format!(
            "`transport.controller` = \"{}\" reacts to notifications alone, and `transport.feedback` = \"{}\" sends none; set it to \"interval\"",
            Dcqcn::NAME, Silent::NAME
        )
    })
}
