//! Recorded behaviour: packets, reports and state of every composition of parts over five networks, as digests.
//!
//! A digest says that something has changed, not that it is right: the other tests check that. A change that moves protocols about keeps
//! every digest; one that changes a protocol changes the digests of the compositions that use it, and no others, and records them: the test
//! prints the new lines.

use clearway_transport::congestion::CongestionControl;
use clearway_transport::congestion::{LossCause, NetworkFacts};
use clearway_transport::reliability::go_back_n::{AckClass, Stripe};
use clearway_transport::testing::{Bottleneck, Pair, PipeSettings, network};
use clearway_transport::wire::{self, Format};
use clearway_transport::{
    Class, ClassSet, EndpointCounters, Event, Packet, Profile, Registry, Reliability,
};
use clearway_units::{Bytes, Digest, FlowId, Rate, Span, Time, mix64};
use std::cell::Cell;
use std::fmt::Write as _;
use std::num::NonZero;
use std::rc::Rc;

/// Name, and digest over each of the [`NETWORKS`].
const RECORDED: &str = include_str!("recorded.txt");

fn facts() -> NetworkFacts {
    network(Rate::from_gbps(100), Span::from_us(8))
}

/// A name, and how it differs from an ideal wire.
type Network = (&'static str, fn(&mut PipeSettings));

const NETWORKS: [Network; 5] = [
    ("ideal", |_| {}),
    ("congested", |pipe| {
        pipe.bottleneck = Some(bottleneck(400_000));
    }),
    ("dropping", |pipe| {
        pipe.bottleneck = Some(bottleneck(60_000));
    }),
    ("lossy", |pipe| {
        (pipe.data_loss, pipe.control_loss) = (0.01, 0.02);
        pipe.duplication = 0.01;
        pipe.bottleneck = Some(bottleneck(200_000));
    }),
    ("disordered", |pipe| {
        pipe.jitter = Span::from_us(6);
        (pipe.data_loss, pipe.duplication) = (0.002, 0.02);
        (pipe.replay, pipe.replay_within) = (0.01, Span::from_ms(20));
        pipe.bottleneck = Some(bottleneck(1_000_000));
    }),
];

fn bottleneck(limit: u64) -> Bottleneck {
    Bottleneck {
        rate: Rate::from_gbps(40),
        limit: Bytes::new(limit),
        mark_from: Bytes::new(limit / 10),
        mark_all: Bytes::new(limit / 2),
    }
}

/// Every controller, selector and feedback rule with each reliability scheme that it goes with, and variants of the schemes.
fn compositions() -> Vec<(String, Profile)> {
    let registry = Registry::builtin();
    let base = Profile::strack(facts());
    let go_back_n = Reliability::named("go-back-n").expect("built in");
    let mut all = Vec::new();
    let mut add = |name: String, profile: Profile| all.push((name, profile));
    // Controllers that wait for links to allocate rates do nothing here.
    let controllers = registry.controllers().filter(|(name, _)| {
        let settings = registry.controller(name).expect("built in");
        settings.build(&facts()).allocation().is_none()
    });
    for (name, _) in controllers {
        for reliability in [Reliability::default(), go_back_n.clone()] {
            let mut profile = Profile {
                controller: registry.controller(name).expect("built in"),
                selector: registry.selector("single").expect("built in"),
                reliability,
                ..base.clone()
            };
            if name.starts_with("dcqcn") {
                profile.feedback = registry.feedback_rule("interval").expect("built in");
            }
            add(format!("{name} {}", profile.reliability.name()), profile);
        }
    }
    for (name, _) in registry.selectors() {
        let selector = registry.selector(name).expect("built in");
        let strack = base.clone();
        add(format!("strack {name}"), Profile { selector, ..strack });
    }
    for (name, _) in registry.feedback_rules() {
        let profile = Profile {
            controller: registry.controller("dcqcn").expect("built in"),
            feedback: registry.feedback_rule(name).expect("built in"),
            reliability: go_back_n.clone(),
            ..base.clone()
        };
        add(format!("dcqcn {name}"), profile);
    }
    let mut variant =
        |name: &str, queue_pairs: u8, stripe: Stripe, interval: u32, class: AckClass| {
            let mut profile = Profile {
                reliability: go_back_n.clone(),
                controller: registry.controller("dctcp").expect("built in"),
                ..base.clone()
            };
            if let Reliability::GoBackN(own) = &mut profile.reliability {
                own.queue_pairs = NonZero::new(queue_pairs).expect("not zero");
                own.ack_interval = NonZero::new(interval).expect("not zero");
                (own.stripe, own.ack_class) = (stripe, class);
                own.stripe_chunk = Bytes::new(20_000);
                own.control_first = class == AckClass::Control;
            }
            add(format!("dctcp {name}"), profile);
        };
    variant("split", 4, Stripe::Split, 1, AckClass::Control);
    variant("round-robin", 3, Stripe::RoundRobin, 4, AckClass::Data);
    all
}

/// Digest of a packet and its frame.
fn words(packet: &Packet, format: Format) -> u64 {
    let mut frame = Vec::new();
    let length = wire::encode(packet, format, 3, 128, &mut frame);
    let mut words = vec![
        length as u64,
        u64::from(packet.ecn),
        packet.class.index() as u64,
    ];
    words.extend(frame.iter().map(|&byte| u64::from(byte)));
    words.iter().fold(0, |hash, &word| mix64(hash ^ word))
}

/// Fields of an event as numbers.
fn event_words(event: &Event) -> Vec<u64> {
    match *event {
        Event::Sent {
            flow,
            message,
            bytes,
            statistics,
        } => vec![
            1,
            flow.0.into(),
            message.0.into(),
            bytes.as_u64(),
            statistics.packets,
            statistics.retransmitted,
            statistics.marked.into(),
            statistics.probes.into(),
            statistics.timeouts.into(),
            statistics.nacks.into(),
            statistics.notifications.into(),
            statistics.first_send.as_ps(),
        ],
        Event::Received {
            flow,
            message,
            bytes,
        } => {
            vec![2, flow.0.into(), message.0.into(), bytes.as_u64()]
        }
        Event::Ack {
            flow,
            now,
            rtt,
            ecn,
            window,
            in_flight,
            path,
        } => vec![
            3,
            flow.0.into(),
            now.as_ps(),
            rtt.as_ps(),
            ecn.into(),
            window.as_u64(),
            in_flight.as_u64(),
            path.into(),
        ],
        Event::Loss {
            flow,
            now,
            cause,
            packets,
        } => {
            vec![
                4,
                flow.0.into(),
                now.as_ps(),
                number_of(cause),
                packets.into(),
            ]
        }
    }
}

fn counter_words(counters: &EndpointCounters) -> [u64; 22] {
    [
        counters.data_sent,
        counters.retransmitted,
        counters.data_received,
        counters.duplicates,
        counters.overflow,
        counters.discarded,
        counters.marked,
        counters.sacks_sent,
        counters.sacks_received,
        counters.nacks_sent,
        counters.nacks_received,
        counters.notifications_sent,
        counters.notifications_received,
        counters.stray,
        counters.invalid,
        counters.probes_sent,
        counters.probes_received,
        counters.timeouts,
        counters.lost_out_of_order,
        counters.lost_probe,
        counters.lost_timeout,
        counters.lost_go_back,
    ]
}

fn pause(pair: &mut Pair, classes: ClassSet) {
    pair.ends[0].set_paused(classes);
    pair.on_deadline(0);
}

/// Runs flows over a network: short and long ones, one with several messages and a pause between them, in two classes, one of which
/// is paused for a while; and puts all that is seen into a digest.
fn digest(profile: &Profile, change: fn(&mut PipeSettings)) -> String {
    let format = Format::for_reliability(&profile.reliability);
    let mut pipe = PipeSettings::ideal(&facts());
    change(&mut pipe);
    let mut pair = Pair::new(profile.clone(), pipe, 7);
    let mut digest = Digest::default();
    let sent = [Rc::new(Cell::new(0)), Rc::new(Cell::new(0))];
    for (end, sum) in sent.iter().enumerate() {
        pair.ends[end].set_tracing(true);
        let sum = Rc::clone(sum);
        // Sees every packet before it is lost, and marks none.
        pair.pipes[end].mark_if(move |number, packet| {
            sum.set(mix64(sum.get() ^ mix64(number) ^ words(packet, format)));
            false
        });
    }
    for bytes in [1, 4096, 4097, 300_000, 1_000_000] {
        pair.send(Bytes::new(bytes));
    }
    let class = Class::new(2).expect("a class");
    let flow = FlowId(100);
    pair.open_in(flow, class);
    let mut of_one = ClassSet::EMPTY;
    of_one.insert(class);
    let mut message = 0;
    let mut post = |pair: &mut Pair, bytes: u64| {
        pair.post(flow, message, Bytes::new(bytes));
        message += 1;
    };
    (0..3).for_each(|n| post(&mut pair, 10_000 * n));
    for step in 1..=200 {
        let end = Time::from_ps(step * 20_000_000);
        match step {
            4 => pause(&mut pair, of_one),
            9 => pause(&mut pair, ClassSet::EMPTY),
            100 => post(&mut pair, 500_000),
            120 => pair.close(flow),
            _ => {}
        }
        pair.run_until(end);
        let mut state = vec![end.as_ps()];
        pair.ends[0].for_each_open(|open| {
            let progress = open.progress();
            state.extend([
                open.flow().0.into(),
                open.acknowledged().as_u64(),
                progress.window.as_u64(),
                progress.rate.map_or(0, Rate::as_bps),
                progress.in_flight.as_u64(),
                progress.acknowledged.as_u64(),
                progress.unacknowledged_packets,
                progress.lost_packets.into(),
                progress.recovering.into(),
                progress.statistics.packets,
            ]);
        });
        digest.add(&state);
    }
    pair.run_until(Time::from_ps(1_000_000_000_000));
    for (time, end, event) in pair.events() {
        let mut record = vec![time.as_ps(), *end as u64];
        record.extend(event_words(event));
        digest.add(&record);
    }
    digest.add(&[sent[0].get(), sent[1].get()]);
    for end in &pair.ends {
        digest.add(&counter_words(end.counters()));
    }
    digest.to_string()
}

#[test]
fn every_composition_does_what_it_did() {
    let mut now = String::new();
    for (name, profile) in compositions() {
        for (network, change) in NETWORKS {
            writeln!(now, "{} {name} {network}", digest(&profile, change)).expect("memory");
        }
    }
    let changed: Vec<&str> = now
        .lines()
        .filter(|line| !RECORDED.contains(line))
        .collect();
    assert!(
        changed.is_empty() && now.lines().count() == RECORDED.lines().count(),
        "changed; tests/recorded.txt would be:\n{now}\nof these are new:\n{}",
        changed.join("\n")
    );
}

fn number_of(cause: LossCause) -> u64 {
    match cause {
        LossCause::OutOfOrder => 0,
        LossCause::Probe => 1,
        LossCause::Timeout => 2,
        LossCause::GoBack => 3,
        LossCause::Trimmed { .. } => 4,
    }
}
