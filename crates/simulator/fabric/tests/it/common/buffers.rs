//! Random shared buffers with priority flow control, and scenarios in which they overflow, pause and lock up.

use super::Scenario;
use super::draw::Draw;
use clearway_fabric::topology::{Cable, NodeId, SwitchSpec, Topology};
use clearway_fabric::{Flow, LosslessClasses, SharedBufferParameters};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::reliability::go_back_n::{AckClass, Stripe};
use clearway_transport::{Class, Profile, Reliability};
use clearway_units::{Bytes, HostId, Parameter, Rate, RelativeSize, Span, Time, Value};
use std::num::NonZero;
use std::sync::Arc;

/// Five switches in a circle with a host or two each. Each host that sends to the switch after the next one takes part in a circle of links
/// that wait for each other.
pub(super) fn circle(draw: &mut Draw) -> Topology {
    let per_switch = draw.between(1, 2) as u32;
    let hosts = 5 * per_switch;
    let rate = Rate::from_gbps(100);
    let delay = draw.pick(&[Span::from_ns(100), Span::from_ns(500)]);
    let cable = |a: u32, b: u32| Cable::new([NodeId(a), NodeId(b)], (rate, delay));
    let switch = |i: u32| hosts + i % 5;
    let mut cables: Vec<Cable> = (0..hosts)
        .map(|host| cable(host, switch(host / per_switch)))
        .collect();
    cables.extend((0..5).map(|i| cable(switch(i), switch(i + 1))));
    let spec = |i| SwitchSpec::new(format!("s{i}"), 0);
    Topology {
        summary: "circle".into(),
        hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: (0..5).map(spec).collect(),
        cables,
    }
}

/// Each host sends to the switch after the next one.
pub(super) fn flows_around_the_circle(draw: &mut Draw, hosts: u32) -> Arc<[Flow]> {
    let bytes = Bytes::new(draw.between(20_000, 200_000));
    let flow = |host| {
        Flow::timed(
            HostId(host),
            HostId((host + 2 * hosts / 5) % hosts),
            bytes,
            Time::ZERO,
        )
    };
    (0..hosts).map(flow).collect()
}

/// Go-back-N in a few of the cases: it has control packets in the class of the data and several queue pairs.
pub(super) fn random_transport(draw: &mut Draw, profile: &mut Profile) {
    if !draw.chance(30) {
        return;
    }
    let mut reliability = Reliability::named("go-back-n").expect("built in");
    if let Reliability::GoBackN(settings) = &mut reliability {
        settings.timeout = Span::from_us(draw.pick(&[40, 100, 250]));
        settings.timeout_max = settings.timeout * 4;
        settings.nack_interval = Span::from_us(draw.pick(&[1, 20]));
        settings.queue_pairs = NonZero::new(draw.pick(&[1, 1, 2, 4])).unwrap();
        settings.ack_interval = NonZero::new(draw.pick(&[1, 4])).unwrap();
        settings.ack_class = draw.pick(&[AckClass::Control, AckClass::Data]);
        settings.stripe = draw.pick(&[Stripe::Split, Stripe::RoundRobin, Stripe::Message]);
    }
    profile.reliability = reliability;
    let mut controller = ControllerSettings::named("constant").expect("built in");
    if let ControllerSettings::Constant(settings) = &mut controller {
        settings.window = RelativeSize::percent_of_bdp(draw.pick(&[50, 100, 300]));
    }
    profile.controller = controller;
}

/// Flows of several classes.
pub(super) fn random_classes(draw: &mut Draw, flows: &mut [Flow]) {
    if draw.chance(50) {
        return;
    }
    let classes = [1, 1, 2, 3, 7].map(|number| Class::new(number).expect("below 8"));
    for flow in flows {
        flow.class = draw.pick(&classes);
    }
}

/// Changes the classes of flows that are second virtual channels of others.
pub(super) fn leave_out_second_channels(flows: &mut [Flow]) {
    for flow in flows {
        flow.class = Class::new(flow.class.index() as u8 % 4).expect("below 8");
    }
}

/// Random shared buffer, all but its size.
pub(super) fn random_buffer(draw: &mut Draw, packet: u64) -> SharedBufferParameters {
    let list = |numbers: &[i64]| {
        let list = Value::List(numbers.iter().map(|n| Value::Integer(*n)).collect());
        LosslessClasses::from_value(&list).expect("classes from 1 to 7")
    };
    let lossless = match draw.below(10) {
        0..5 => LosslessClasses::ALL,
        5 => list(&[]),
        6 | 7 => list(&[1]),
        8 => list(&[1, 3]),
        _ => list(&[2, 7]),
    };
    let headroom = match draw.below(20) {
        0..9 => None,
        9 | 10 => Some(0),
        11..16 => Some(draw.between(1, 8) * packet),
        _ => Some(draw.between(1, 60) * packet),
    };
    SharedBufferParameters {
        agent_drops: true,
        buffer: None,
        alpha: draw.pick(&[1.0 / 128.0, 0.125, 0.3, 1.0, 4.0]),
        alpha_scales: draw.chance(50),
        lossless,
        reserve: Bytes::new(draw.pick(&[0, 500, packet, 4096])),
        headroom: headroom.map(Bytes::new),
        resume_offset: Bytes::new(draw.pick(&[0, 3072, 3072, 50_000])),
        reaction: match draw.below(4) {
            0 | 1 => Span::ZERO,
            2 => Span::from_ns(draw.pick(&[1, 100, 500])),
            _ => Span::from_ps(draw.between(1, 3_000_000)),
        },
        frame: Bytes::new(draw.pick(&[64, 64, 43, 1500])),
    }
}

/// A buffer that has a pool of one packet at the switch that needs most, of some packets, or that is very large.
pub(super) fn choose_size(draw: &mut Draw, packet: u64, scenario: &mut Scenario) {
    let more = match draw.below(8) {
        0 => None,
        1 | 2 => Some(0),
        3 | 4 => Some(draw.between(0, 6) * packet),
        5 | 6 => Some(draw.between(6, 40) * packet),
        _ => Some(draw.between(40, 400) * packet),
    };
    let mut size = more.map(|_| Bytes::ZERO);
    loop {
        if let Some(buffer) = &mut scenario.buffer {
            buffer.buffer = size;
        }
        match scenario.setup().check_buffers() {
            Ok(()) => break,
            Err(too_small) => size = Some(too_small.needed),
        }
    }
    if let (Some(buffer), Some(size)) = (&mut scenario.buffer, size) {
        buffer.buffer = Some(Bytes::new(size.as_u64() + more.unwrap_or(0)));
    }
}
