//! Further transports of random scenarios.

use super::draw::Draw;
use super::sniffer::Sniffer;
use super::{HEADER, Scenario, buffers};
use clearway_fabric::topology::{PacketSizes, Routes};
use clearway_transport::congestion::{CongestionControl as _, ControllerSettings, NetworkFacts};
use clearway_transport::paths::SelectorSettings;
use clearway_transport::{Profile, Reliability};
use clearway_units::{RelativeSize, Span};
use std::sync::Arc;

/// In some, flows have one of two or three transports. Links that allocate rates know only one.
pub(super) fn choose_transports(draw: &mut Draw, scenario: &mut Scenario) {
    let controller = scenario.profile.controller.build(&scenario.profile.network);
    if controller.allocation().is_some() || !draw.chance(35) {
        return;
    }
    let routes = Routes::compute(&scenario.topology).expect("random fabrics are connected");
    let usual = scenario.profile.network.payload;
    let further = draw.pick(&[1, 1, 2]);
    for _ in 0..further {
        // Queues and buffers have been chosen for packets of the first transport.
        let payload = draw.pick(&[usual, 1000, 256]).min(usual);
        let facts = routes.paths.network_facts(PacketSizes {
            payload,
            header: draw.pick(&[HEADER, HEADER, 40]),
            ack: HEADER,
        });
        let profile = random_profile(draw, facts, scenario);
        let profiles = &mut scenario.further_transports.profiles;
        profiles.push(Arc::new(profile));
    }
    for flow in Arc::make_mut(&mut scenario.flows) {
        flow.transport = draw.below(further + 1) as u8;
    }
}

fn random_profile(draw: &mut Draw, facts: NetworkFacts, scenario: &Scenario) -> Profile {
    let mut profile = Profile {
        strict_priority: scenario.profile.strict_priority,
        ..Profile::strack(facts)
    };
    if !scenario.switch.trimming {
        buffers::random_transport(draw, &mut profile);
    }
    match &mut profile.reliability {
        Reliability::SelectiveRepeat(settings) => {
            settings.timeout = Span::from_us(draw.pick(&[40, 100, 250]));
            settings.control_first = draw.chance(70);
            let selector = draw.pick(&["adaptive", "oblivious", "single"]);
            profile.selector = SelectorSettings::named(selector).expect("built in");
        }
        Reliability::GoBackN(_) => {
            profile.selector = SelectorSettings::named("single").expect("built in");
        }
    }
    let controller = draw.pick(&["", "sniffer", "constant", "dctcp", "hpcc"]);
    profile.controller = match controller {
        "" => profile.controller,
        "sniffer" => ControllerSettings::custom::<Sniffer>(),
        name => ControllerSettings::named(name).expect("built in"),
    };
    if let ControllerSettings::Constant(settings) = &mut profile.controller {
        settings.window = RelativeSize::percent_of_bdp(draw.pick(&[10, 100, 300]));
    }
    profile
}
