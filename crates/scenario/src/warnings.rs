//! Warnings about a transport and its network: settings that fit together but will hardly do what was meant.

use crate::{Scenario, TransportSettings};
use clearway_fabric::PathChoice;
use clearway_fabric::topology::Paths;
use clearway_transport::cc::{
    CongestionControl, ControllerDefinition, ControllerSettings, Dcqcn, HopCount, NetworkFacts,
};
use clearway_transport::feedback::{FeedbackDefinition, Silent};
use clearway_transport::spray::{SelectorDefinition, Single};
use clearway_transport::telemetry::MOST_HOPS;

/// All warnings about a transport on a network.
pub fn warnings_of(
    scenario: &Scenario,
    network: &NetworkFacts,
    paths: &Paths,
) -> impl Iterator<Item = String> {
    let transport = &scenario.transport;
    let warnings = [
        controller_without_feedback(transport),
        idle_sprayer(transport, scenario.switch.ports.routing),
        unrecorded_hops(transport, network, paths),
        unreachable_target(transport, network),
    ];
    warnings.into_iter().flatten()
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

/// Swift aims at a round trip that no packet can have.
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

/// A transport that sprays, over switches that do not look at what it sprays with.
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
