//! A hostile network between two connections, in virtual time: datagrams are lost, damaged, delayed, repeated at once and long after,
//! and made by others; paths fail and are congested; ends are restarted. Each message arrives once and whole all the same, no memory
//! grows without bound, and nothing stalls.
//!
//! `CLEARWAY_MESSAGES=1000000` makes the long test as long as that, and `CLEARWAY_CASES=1000` has as many kinds of weather.

mod world;

use clearway_testing::{cases, number};
use clearway_udp::{ConnectionError, Event, PreSharedKey, Security, Settings, Transport};
use clearway_units::{Purpose, RandomStream, Rate, Span};
use proptest::prelude::*;
use world::{CLIENT, Post, SERVER, Weather, World, settings};

fn weather() -> impl Strategy<Value = Weather> {
    let hole = prop::option::of((0u8..8, 0u64..20, 20u64..400, 0usize..3));
    (
        (0.0..0.15, 0.0..0.3, 0.0..0.1, 0.0..0.3, 0.0..0.3),
        (1u64..2_000, 0u64..500, hole, prop::option::of(0u8..8)),
    )
        .prop_map(|(chances, (delay_us, jitter_us, hole, marked))| Weather {
            loss: chances.0,
            duplication: chances.1,
            corruption: chances.2,
            replay: chances.3,
            garbage: chances.4,
            delay_us,
            jitter_us,
            hole,
            marked,
        })
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        1 => Just(0usize),
        4 => 1usize..200,
        4 => 200usize..4_000,
        2 => 4_000usize..40_000,
        1 => 40_000usize..1_000_000,
    ]
}

fn small() -> Settings {
    Settings {
        receive_memory: 1_200_000,
        send_memory: 1_500_000,
        key_update_after: 300,
        messages_per_flow: 5,
        ..settings()
    }
}

fn numbered(lengths: &[usize], first: u64) -> Vec<Post> {
    (first..).zip(lengths.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 200,
        ..ProptestConfig::with_cases(number("CLEARWAY_CASES", cases(40, 200).into()) as u32)
    })]
    #[test]
    fn every_message_arrives_once_and_whole(
        weather in weather(),
        up in prop::collection::vec(length(), 0..25),
        down in prop::collection::vec(length(), 0..25),
        paths in 1u8..10,
        rotate in any::<bool>(),
        datagram in prop_oneof![Just(1_452u16), Just(4_000)],
        mtu in prop_oneof![Just(usize::MAX), Just(1_472)],
        seed in any::<u64>(),
    ) {
        let mut settings = if rotate { small() } else { settings() };
        settings.paths = paths;
        settings.datagram = datagram;
        settings.idle = Span::from_ms(30_000);
        let memory = settings.receive_memory + settings.send_memory + 1_000_256;
        let mut weather = weather;
        if paths < 2 {
            // Without another path the connection would be as dead as the path.
            weather.hole = None;
        }
        let mut world = World::new([settings.clone(), settings], weather, seed);
        world.mtu = [mtu; 2];
        world.post(CLIENT, &numbered(&up, 0));
        world.post(SERVER, &numbered(&down, 1_000));
        let done = world.run(Span::from_ms(600_000));
        let missing: Vec<_> = world.sides.iter().map(|side| side.missing.len()).collect();
        prop_assert!(done, "{:?} missing, at {:?}, {:?}", missing, world.now, world.sides.each_ref().map(|side| &side.events));
        for (side, lengths) in world.sides.iter().zip([&up, &down]) {
            prop_assert_eq!(side.acknowledged, lengths.len() as u64);
            prop_assert!(side.most_memory <= memory, "{} bytes", side.most_memory);
        }
    }
}

/// Messages of mixed sizes.
fn mixed(count: u64, first: u64, random: &mut RandomStream) -> Vec<Post> {
    let mut length = || match random.below(200) {
        0 => random.below(1_000_000),
        1..10 => random.below(30_000),
        10..30 => 0,
        30..110 => random.below(200),
        _ => random.below(4_000),
    };
    (first..first + count)
        .map(|tag| (tag, length() as usize))
        .collect()
}

#[test]
fn many_messages_in_bad_weather() {
    let count = number("CLEARWAY_MESSAGES", cases(6_000, 30_000).into());
    let weather = Weather {
        loss: 0.01,
        duplication: 0.01,
        corruption: 0.001,
        replay: 0.01,
        garbage: 0.01,
        delay_us: 30,
        jitter_us: 40,
        hole: Some((3, 3, 1_000_000_000, 2)),
        marked: Some(5),
    };
    let settings = Settings {
        receive_memory: 16 << 20,
        send_memory: 16 << 20,
        key_update_after: 20_000,
        messages_per_flow: 70_000,
        ..settings()
    };
    let mut world = World::new([settings.clone(), settings], weather, 1);
    let mut random = RandomStream::new(1, Purpose::Test, 1);
    world.post(CLIENT, &mixed(count / 2, 0, &mut random));
    world.post(SERVER, &mixed(count - count / 2, 1 << 40, &mut random));
    let began = world.now;
    assert!(
        world.run(Span::from_ms(100_000_000)),
        "stalled at {:?}",
        world.now
    );
    assert_eq!(world.delivered, count);
    for (end, side) in world.sides.iter().enumerate() {
        assert!(
            side.most_memory <= (33 << 20),
            "{} bytes at end {end}",
            side.most_memory
        );
        assert!(
            side.events.contains(&Event::PathDown { path: 3 }),
            "{:?}",
            side.events
        );
        let connection = world.ends[end].as_ref().unwrap();
        let paths: Vec<_> = connection.path_statistics().collect();
        // The dead path is left alone, and the marked one is used less than the others.
        let (_, dead) = paths[3];
        let others: u64 = [0, 1, 2, 4, 6, 7]
            .iter()
            .map(|&path: &usize| paths[path].1.sent)
            .sum();
        // Some acknowledgements of what went before were left out, as a later one said the same.
        assert!(dead.sent - dead.answered < 300, "{dead:?}");
        assert!(dead.sent * 2 < others / 6, "{dead:?}");
        assert!(paths[5].1.sent * 3 < others / 6 * 2, "{paths:?}");
    }
    eprintln!(
        "{count} messages, {} datagrams in {}; {:?}",
        world.datagrams,
        world.now.since(began),
        world
            .ends
            .each_ref()
            .map(|end| end.as_ref().unwrap().counters()),
    );
}

/// Two hundred messages in each direction, all of which arrive.
fn exchanged(settings: Settings, weather: Weather) -> World {
    let mut world = World::new([settings.clone(), settings], weather, 1);
    let mut random = RandomStream::new(1, Purpose::Test, 1);
    world.post(CLIENT, &mixed(200, 0, &mut random));
    world.post(SERVER, &mixed(200, 1 << 40, &mut random));
    assert!(
        world.run(Span::from_ms(1_000_000)),
        "stalled at {:?}",
        world.now
    );
    world
}

#[test]
fn go_back_n_runs_on_one_path() {
    let settings = Settings {
        transport: Transport::GoBackN,
        ..settings()
    };
    let weather = Weather {
        loss: 0.005,
        delay_us: 30,
        ..Weather::default()
    };
    let world = exchanged(settings, weather);
    let client = world.ends[CLIENT].as_ref().unwrap();
    assert_eq!(client.paths(), 1);
}

#[test]
fn without_security_everything_arrives_too() {
    let settings = Settings {
        security: Security::Insecure,
        ..settings()
    };
    let weather = Weather {
        loss: 0.02,
        duplication: 0.1,
        delay_us: 30,
        jitter_us: 100,
        ..Weather::default()
    };
    exchanged(settings, weather);
}

fn still() -> Weather {
    Weather {
        delay_us: 30,
        ..Weather::default()
    }
}

#[test]
fn a_client_that_is_restarted_begins_anew_and_old_packets_have_no_effect() {
    let mut world = World::new([settings(), settings()], still(), 1);
    world.post(CLIENT, &numbered(&[10, 100_000], 0));
    world.post(SERVER, &numbered(&[20, 100_000], 10));
    assert!(world.run(Span::from_ms(1_000)));
    world.connect();
    let new_server = |world: &World| world.ends[SERVER].as_ref().map(|end| end.id());
    let old = new_server(&world);
    assert!(
        world.run_until(Span::from_ms(1_000), |world| new_server(world) != old
            && world.ends.iter().flatten().all(|end| end.is_connected()))
    );
    let delivered = world.delivered;
    for flight in world.tape.clone() {
        world.fly(world.now, flight);
    }
    world.run_until(Span::from_ms(100), |_| false);
    assert_eq!(world.delivered, delivered);
    world.post(CLIENT, &numbered(&[30, 100_000], 20));
    assert!(world.run(Span::from_ms(1_000)));
}

#[test]
fn a_server_that_is_restarted_is_silent_and_then_answers_anew() {
    let mut world = World::new([settings(), settings()], still(), 1);
    world.post(CLIENT, &numbered(&[10, 100_000], 0));
    assert!(world.run(Span::from_ms(1_000)));
    world.restart_server();
    let closed = |world: &World| {
        world.ends[CLIENT]
            .as_ref()
            .is_some_and(|end| end.is_closed())
    };
    assert!(world.run_until(Span::from_ms(20_000), closed));
    let reason = ConnectionError::Silent(Span::from_ms(10_000));
    assert_eq!(
        world.sides[CLIENT].events.last(),
        Some(&Event::Closed { reason })
    );
    world.connect();
    for flight in world.tape.clone() {
        world.fly(world.now, flight);
    }
    world.post(CLIENT, &numbered(&[30, 100_000], 20));
    assert!(world.run(Span::from_ms(1_000)));
}

#[test]
fn a_wrong_key_insecurity_and_silence_are_told() {
    let other_key = Settings {
        security: Security::Key(PreSharedKey([43; 32])),
        ..settings()
    };
    let insecure = Settings {
        security: Security::Insecure,
        ..settings()
    };
    let closed = |world: &World| {
        world.ends[CLIENT]
            .as_ref()
            .is_some_and(|end| end.is_closed())
    };
    let cases = [
        (other_key, 0.0, ConnectionError::Key),
        (insecure, 0.0, ConnectionError::Security),
        (
            settings(),
            1.0,
            ConnectionError::NoAnswer(world::server_address()),
        ),
    ];
    for (client, loss, reason) in cases {
        let weather = Weather { loss, ..still() };
        let mut world = World::new([client, settings()], weather, 1);
        assert!(world.run_until(Span::from_ms(20_000), closed), "{reason:?}");
        assert_eq!(world.sides[CLIENT].events, [Event::Closed { reason }]);
        assert_eq!(world.listener.connections(), 0);
    }
}

#[test]
fn closing_is_told_to_the_other_end_after_everything_has_arrived() {
    let weather = Weather {
        loss: 0.1,
        ..still()
    };
    let mut world = World::new([settings(), settings()], weather, 3);
    world.post(CLIENT, &numbered(&[10, 500_000], 0));
    let all_sent = |world: &World| world.sides[CLIENT].to_send.is_empty();
    assert!(world.run_until(Span::from_ms(1_000), all_sent));
    let now = world.now;
    world.ends[CLIENT].as_mut().unwrap().shut_down(now, 77);
    let closed = |world: &World| world.ends.iter().flatten().all(|end| end.is_closed());
    assert!(world.run_until(Span::from_ms(5_000), closed));
    assert!(world.sides[CLIENT].missing.is_empty());
    let last = |end: usize| world.sides[end].events.last();
    assert_eq!(
        last(CLIENT),
        Some(&Event::Closed {
            reason: ConnectionError::Here
        })
    );
    let reason = ConnectionError::There(77);
    assert_eq!(last(SERVER), Some(&Event::Closed { reason }));
    assert_eq!(world.listener.connections(), 0);
}

#[test]
fn an_end_that_has_to_wait_for_the_socket_is_told_after_that() {
    let mut world = World::new([settings(), settings()], still(), 3);
    world.post(CLIENT, &numbered(&[10], 0));
    assert!(world.run(Span::from_ms(1_000)));
    let client = world.ends[CLIENT].as_mut().unwrap();
    client.close(world.now, 77);
    for _ in 0..100 {
        world.now += Span::from_ms(20);
        client.on_deadline(world.now);
    }
    let closed = |world: &World| world.ends.iter().flatten().all(|end| end.is_closed());
    assert!(!closed(&world));
    assert!(world.run_until(Span::from_ms(1_000), closed));
    let reason = ConnectionError::There(77);
    assert_eq!(
        world.sides[SERVER].events.last(),
        Some(&Event::Closed { reason })
    );
    // It does not wait for ever.
    let mut world = World::new([settings(), settings()], still(), 3);
    world.post(CLIENT, &numbered(&[10], 0));
    assert!(world.run(Span::from_ms(1_000)));
    let client = world.ends[CLIENT].as_mut().unwrap();
    client.close(world.now, 77);
    for _ in 0..2 {
        client.on_deadline(world.now);
        world.now += Span::from_ms(10_000);
    }
    client.on_deadline(world.now);
    assert!(client.is_closed());
}

#[test]
fn a_message_that_is_refused_is_not_carried_and_the_others_are() {
    let mut world = World::new([settings(), settings()], still(), 1);
    world.post(CLIENT, &numbered(&[10], 0));
    world.post(CLIENT, &[(world::REFUSED, 50_000_000)]);
    world.post(CLIENT, &numbered(&[100_000], 20));
    // It will not come.
    world.sides[CLIENT].missing.remove(&world::REFUSED);
    assert!(
        world.run(Span::from_ms(1_000)),
        "stalled at {:?}",
        world.now
    );
    let refused = |event: &Event| matches!(event, Event::Refused { .. });
    assert!(world.sides[CLIENT].events.iter().any(refused));
    assert_eq!(world.sides[CLIENT].acknowledged, 2);
    // Headers alone are a fifteenth of it.
    assert!(world.bytes < 20_000_000, "{} bytes", world.bytes);
    let memory: u64 = world.ends.iter().flatten().map(|end| end.memory()).sum();
    assert_eq!(memory, 0);
}

#[test]
fn a_message_that_is_refused_is_never_told_as_sent() {
    for transport in [Transport::Strack, Transport::GoBackN] {
        let settings = Settings {
            transport,
            ..settings()
        };
        let weather = Weather {
            loss: 0.2,
            jitter_us: 100,
            ..still()
        };
        let mut world = World::new([settings.clone(), settings], weather, 1);
        // Empty ones, of one packet, of several.
        for round in 0..100 {
            world.post(CLIENT, &[(world::REFUSED, [0, 10, 5_000][round % 3])]);
            world.post(CLIENT, &numbered(&[10], round as u64));
        }
        world.sides[CLIENT].missing.remove(&world::REFUSED);
        assert!(
            world.run(Span::from_ms(100_000)),
            "stalled at {:?}",
            world.now
        );
        let refused = |event: &&Event| matches!(event, Event::Refused { .. });
        let side = &world.sides[CLIENT];
        assert_eq!(side.events.iter().filter(refused).count(), 100);
        assert_eq!(side.acknowledged, 100);
        let memory: u64 = world.ends.iter().flatten().map(|end| end.memory()).sum();
        assert_eq!(memory, 0);
    }
}

#[test]
fn a_flood_of_handshakes_leaves_little_and_established_connections_alone() {
    let mut world = World::new([settings(), settings()], still(), 1);
    world.post(CLIENT, &numbered(&[10], 0));
    assert!(world.run(Span::from_ms(1_000)));
    let inits: Vec<_> = world
        .tape
        .iter()
        .filter(|flight| flight.to == SERVER)
        .cloned()
        .collect();
    for round in 0..20_000u32 {
        let mut flight = inits.first().cloned().unwrap_or_else(|| world::Flight {
            to: SERVER,
            path: 0,
            marked: false,
            bytes: vec![0x81; 1200],
        });
        flight.bytes.resize(1200, 0);
        flight.bytes[0] = 0x81;
        flight.bytes[1..5].copy_from_slice(&round.to_be_bytes());
        flight.bytes[9..16].copy_from_slice(&[1, 1, 0, 0, 0, 1, 0]);
        flight.path = (round % 60) as u8;
        world.fly(world.now, flight);
    }
    world.run_until(Span::from_ms(1_000), |_| false);
    assert_eq!(world.listener.connections(), 1);
    assert!(world.listener.counters().cookies >= 20_000);
    world.post(CLIENT, &numbered(&[100_000], 20));
    assert!(world.run(Span::from_ms(1_000)));
}

/// Two messages between ends that allow these datagrams, over a network with these limits in each direction: the datagrams of each end, and
/// the time until both ends were connected.
fn discovered(datagrams: [u16; 2], mtu: [usize; 2], weather: Weather) -> ([u16; 2], Span) {
    let with = |datagram| Settings {
        datagram,
        ..settings()
    };
    let mut world = World::new(datagrams.map(with), weather, 1);
    let began = world.now;
    world.mtu = mtu;
    world.post(CLIENT, &numbered(&[10, 100_000], 0));
    world.post(SERVER, &numbered(&[10, 100_000], 10));
    let connected = |world: &World| {
        world.ends.iter().flatten().count() == 2
            && world.ends.iter().flatten().all(|end| end.is_connected())
    };
    assert!(world.run_until(Span::from_ms(10_000), connected));
    let took = world.now.since(began);
    assert!(world.run(Span::from_ms(10_000)), "at {:?}", world.now);
    let sent = [CLIENT, SERVER].map(|end| world.ends[end].as_ref().unwrap().datagram());
    (sent, took)
}

#[test]
fn datagrams_are_as_long_as_the_paths_carry() {
    const ANY: usize = usize::MAX;
    // A proof costs a round trip, of 60 us, after the handshake.
    let (sent, took) = discovered([8_000; 2], [ANY; 2], still());
    assert_eq!(sent, [8_000; 2]);
    assert!(took < Span::from_us(500), "{took:?}");
    assert_eq!(discovered([8_000, 3_000], [ANY; 2], still()).0, [3_000; 2]);
    assert_eq!(
        discovered([1_452, 8_000], [1_452; 2], still()).0,
        [1_452; 2]
    );
    for mtu in [[1_472, 1_472], [ANY, 1_472], [1_472, ANY], [7_999, ANY]] {
        let (sent, took) = discovered([8_000; 2], mtu, still());
        assert_eq!(sent, [1_452; 2], "{mtu:?}");
        assert!(took < Span::from_ms(150), "{took:?}");
    }
    // Round trips of 400 ms are no reason to give up.
    let far = Weather {
        delay_us: 200_000,
        ..still()
    };
    assert_eq!(discovered([8_000; 2], [ANY; 2], far).0, [8_000; 2]);
}

/// Two ends that allow long datagrams, over a network that carries shorter ones.
fn narrow(mtu: usize) -> World {
    narrow_with(mtu, Transport::Strack, still())
}

fn narrow_with(mtu: usize, transport: Transport, weather: Weather) -> World {
    let settings = Settings {
        datagram: 8_000,
        idle: Span::from_ms(10_000),
        transport,
        ..settings()
    };
    let mut world = World::new([settings.clone(), settings], weather, 1);
    world.mtu = [mtu; 2];
    world
}

#[test]
fn a_close_before_the_length_of_datagrams_is_known_is_told() {
    let mut world = narrow(1_472);
    let is_there = |world: &World| world.ends.iter().flatten().count() == 2;
    assert!(world.run_until(Span::from_ms(1_000), is_there));
    world.run_until(Span::from_ms(1), |_| false);
    assert!(world.ends.iter().flatten().all(|end| !end.is_connected()));
    let now = world.now;
    world.ends[CLIENT].as_mut().unwrap().close(now, 5);
    let closed = |world: &World| world.ends.iter().flatten().all(|end| end.is_closed());
    assert!(world.run_until(Span::from_ms(5_000), closed));
    let reason = ConnectionError::There(5);
    let told = [Event::Connected, Event::Closed { reason }];
    assert_eq!(world.sides[SERVER].events, told);
}

#[test]
fn datagrams_that_do_not_pass_are_told() {
    let mut world = narrow(1_200);
    world.post(CLIENT, &numbered(&[10, 100_000], 0));
    let closed = |world: &World| world.ends.iter().flatten().all(|end| end.is_closed());
    assert!(world.run_until(Span::from_ms(20_000), closed));
    let reason = ConnectionError::Datagram { bytes: 1_452 };
    assert!(reason.fix().contains("--datagram"));
    assert_eq!(
        world.sides[CLIENT].events.last(),
        Some(&Event::Closed { reason })
    );
    let reason = ConnectionError::There(u64::MAX);
    assert_eq!(
        world.sides[SERVER].events.last(),
        Some(&Event::Closed { reason })
    );
}

/// The route changes to one that carries less, in one direction. Short messages and acknowledgements go on.
#[test]
fn datagrams_that_pass_no_longer_are_told() {
    let both = [CLIENT, SERVER].into_iter();
    let all = both.flat_map(|end| [(end, Transport::Strack), (end, Transport::GoBackN)]);
    for (narrow_end, transport) in all {
        let mut world = narrow_with(9_000, transport, still());
        world.post(CLIENT, &numbered(&[100_000], 0));
        world.post(SERVER, &numbered(&[100_000], 100));
        assert!(world.run(Span::from_ms(5_000)));
        world.mtu[narrow_end] = 1_472;
        let began = world.now;
        for message in 1..1_000 {
            world.post(CLIENT, &numbered(&[10, 20_000], 2 * message));
            world.post(SERVER, &numbered(&[10, 20_000], 10_000 + 2 * message));
            world.run_until(Span::from_ms(100), |_| false);
            if world.ends.iter().flatten().all(|end| end.is_closed()) {
                break;
            }
        }
        let took = world.now.since(began);
        assert!(took < Span::from_ms(30_000), "{took}");
        let reason = ConnectionError::Datagram { bytes: 8_000 };
        assert_eq!(
            world.sides[narrow_end].events.last(),
            Some(&Event::Closed { reason })
        );
        let reason = ConnectionError::There(u64::MAX);
        assert_eq!(
            world.sides[1 - narrow_end].events.last(),
            Some(&Event::Closed { reason })
        );
    }
}

/// Full packets do not pass for a while. On a long path a packet is sent again so seldom that it waits for longer than that.
#[test]
fn a_route_that_carries_less_for_a_while_ends_nothing() {
    let far = Weather {
        delay_us: 499_000,
        ..still()
    };
    for transport in [Transport::Strack, Transport::GoBackN] {
        let mut world = narrow_with(9_000, transport, far);
        world.post(CLIENT, &numbered(&[10], 0));
        assert!(world.run(Span::from_ms(30_000)));
        for round in 1..8 {
            world.mtu[CLIENT] = 1_472;
            world.post(CLIENT, &numbered(&[10, 7_000], 10 * round));
            world.run_until(Span::from_ms(11_000), |_| false);
            world.mtu[CLIENT] = 9_000;
            assert!(world.run(Span::from_ms(60_000)), "{transport:?}, {round}");
            world.run_until(Span::from_ms(300 * round), |_| false);
        }
    }
}

#[test]
fn addresses_of_the_client_may_change_in_mid_transfer() {
    let mut world = World::new([settings(), settings()], still(), 1);
    world.post(CLIENT, &numbered(&[3_000_000; 5], 0));
    world.post(SERVER, &numbered(&[3_000_000; 5], 10));
    assert!(!world.run(Span::from_ms(8)), "it is to be in mid-transfer");
    world.rebinding = 100;
    assert!(
        world.run(Span::from_ms(5_000)),
        "stalled at {:?}",
        world.now
    );
    let server = world.ends[SERVER].as_ref().unwrap();
    assert!(server.path_statistics().all(|(up, _)| up));
}

#[test]
fn after_an_overloaded_handshake_no_more_is_in_flight_than_sockets_hold() {
    for transport in [Transport::Strack, Transport::GoBackN] {
        let settings = Settings {
            transport,
            socket_datagrams: Some(184),
            ..settings()
        };
        let slow = Weather {
            delay_us: 20_000,
            ..Weather::default()
        };
        let mut world = World::new([settings.clone(), settings.clone()], slow, 1);
        let is_ready = |world: &World| world.ends.iter().flatten().count() == 2;
        assert!(world.run_until(Span::from_ms(1_000), is_ready));
        world.run_until(Span::from_ms(100), |_| false);
        let most_in_flight = |world: &mut World| {
            let mut most = 0;
            let done = world.run_until(Span::from_ms(2_000), |world| {
                let progress = world.ends[CLIENT].as_ref().unwrap().progress();
                most = most.max(progress.map_or(0, |progress| progress.in_flight.as_u64()));
                world.is_done()
            });
            assert!(done, "stalled at {:?}", world.now);
            most / 1350
        };
        // On a long way the window opens.
        let mut long = World::new([settings.clone(), settings], slow, 1);
        assert!(long.run_until(Span::from_ms(1_000), is_ready));
        long.run_until(Span::from_ms(100), |_| false);
        for world in [&mut long, &mut world] {
            world.post(CLIENT, &numbered(&[5_000_000; 8], 0));
        }
        let open = most_in_flight(&mut long);
        assert!(open > 2_000, "{transport:?}: {open} packets");
        world.weather = still();
        let bound = most_in_flight(&mut world);
        assert!(
            (150..=185).contains(&bound),
            "{transport:?}: {bound} packets"
        );
    }
}

/// Longest wait at a link of a tenth of the line rate after the first windows, and the time that a transfer takes.
fn through_a_bottleneck(ecn: bool) -> (Span, Span) {
    let settings = Settings { ecn, ..settings() };
    let mut world = World::new([settings.clone(), settings], still(), 1);
    world.rate = Rate::from_gbps(1);
    world.post(CLIENT, &numbered(&[10_000_000; 10], 0));
    let began = world.now;
    assert!(!world.run(Span::from_ms(50)), "it is to be in mid-transfer");
    world.most_wait = Span::ZERO;
    assert!(
        world.run(Span::from_ms(10_000)),
        "stalled at {:?}",
        world.now
    );
    (world.most_wait, world.now.since(began))
}

#[test]
fn where_nothing_is_marked_a_delay_counts_as_a_mark() {
    let (blind, fast) = through_a_bottleneck(true);
    let (careful, time) = through_a_bottleneck(false);
    assert!(careful * 3 < blind, "{careful} and {blind}");
    assert!(time < fast * 11 / 10, "{time} and {fast}");
}

#[test]
fn a_handshake_goes_around_a_path_that_is_dead() {
    for direction in 0..3 {
        let weather = Weather {
            hole: Some((0, 0, 1_000_000_000, direction)),
            ..still()
        };
        let mut world = World::new([settings(), settings()], weather, 1);
        world.post(CLIENT, &numbered(&[10, 100_000], 0));
        world.post(SERVER, &numbered(&[20, 100_000], 10));
        assert!(
            world.run(Span::from_ms(5_000)),
            "direction {direction}, stalled at {:?}",
            world.now
        );
        let client = world.ends[CLIENT].as_ref().unwrap();
        let up: Vec<_> = client.path_statistics().map(|(up, _)| up).collect();
        assert!(!up[0] && up[1..].iter().all(|&up| up), "{up:?}");
    }
}

/// The network repeats a cookie that the server gave long ago. The client does not hold on to it until its patience ends.
#[test]
fn a_client_gives_a_cookie_up_that_the_server_does_not_answer() {
    let weather = Weather {
        loss: 0.147_873_486_610_200_5,
        duplication: 0.285_552_931_975_433_1,
        corruption: 0.004_673_549_912_308_196,
        replay: 0.189_218_895_064_402_84,
        garbage: 0.227_289_302_303_150_3,
        delay_us: 32,
        ..still()
    };
    let settings = Settings {
        paths: 2,
        idle: Span::from_ms(30_000),
        ..settings()
    };
    let mut world = World::new(
        [settings.clone(), settings],
        weather,
        6_861_893_111_640_020_947,
    );
    assert!(
        world.run(Span::from_ms(60_000)),
        "{:?}",
        world.sides.each_ref().map(|side| &side.events)
    );
}

#[test]
fn a_long_round_trip_is_no_dead_path() {
    let settings = Settings {
        idle: Span::from_ms(30_000),
        ..settings()
    };
    let weather = Weather {
        delay_us: 400_000,
        ..Weather::default()
    };
    let mut world = World::new([settings.clone(), settings], weather, 1);
    world.post(CLIENT, &numbered(&[10, 100_000], 0));
    assert!(
        world.run(Span::from_ms(30_000)),
        "stalled at {:?}",
        world.now
    );
    let flows = world.now;
    assert!(
        flows < clearway_units::Time::from_us(10_000_000),
        "{flows:?}"
    );
}

#[test]
fn flows_that_follow_each_other_fast_leave_room_for_more() {
    let settings = Settings {
        messages_per_flow: 1,
        ..settings()
    };
    let mut world = World::new([settings.clone(), settings], still(), 1);
    world.post(CLIENT, &numbered(&[100; 500], 0));
    assert!(
        world.run(Span::from_ms(20_000)),
        "stalled at {:?}",
        world.now
    );
}
