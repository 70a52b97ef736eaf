//! Clients that mean no good: what a listener keeps of them, and whom it lets in.

use clearway_udp::{Allocate, Connection, DatagramOutcome, Limits, Listener};
use clearway_udp::{PreSharedKey, Security, SendError, Settings};
use clearway_units::{Span, Time};
use std::net::SocketAddr;

fn settings() -> Settings {
    Settings::new(Security::Key(PreSharedKey([42; 32])))
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn listener(limits: Limits) -> Listener {
    Listener::new(settings(), limits, &[7; 32])
}

fn hear(
    listener: &mut Listener,
    now: Time,
    from: &str,
    datagram: &[u8],
) -> (Vec<u8>, DatagramOutcome) {
    let mut answer = Vec::new();
    let heard = listener.handle(now, address(from), datagram, &mut answer, || {
        Box::new(Allocate)
    });
    assert!(answer.len() <= datagram.len());
    (answer, heard)
}

/// A client that has got its cookie, and its Init with the handshake message.
fn with_cookie(listener: &mut Listener, now: Time, from: &str, seed: u64) -> (Connection, Vec<u8>) {
    with_cookie_and(settings(), listener, now, from, seed)
}

/// The same with settings of its own.
fn with_cookie_and(
    settings: Settings,
    listener: &mut Listener,
    now: Time,
    from: &str,
    seed: u64,
) -> (Connection, Vec<u8>) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let server = address("192.0.2.1:4794");
    let mut client = Connection::connect(settings, &bytes, now, server, Box::new(Allocate));
    let mut first = Vec::new();
    client.poll_transmit(now, &mut first).expect("an Init");
    let (mut retry, heard) = hear(listener, now, from, &first);
    assert!(matches!(heard, DatagramOutcome::Answer));
    client.handle(now, server, false, &mut retry);
    let mut init = Vec::new();
    client.poll_transmit(now, &mut init).expect("another Init");
    (client, init)
}

fn accepted(heard: DatagramOutcome) -> Option<Box<Connection>> {
    match heard {
        DatagramOutcome::Connection(connection) => Some(connection),
        DatagramOutcome::Nothing | DatagramOutcome::Answer => None,
    }
}

fn later(now: Time, ms: u64) -> Time {
    now + Span::from_ms(ms)
}

#[test]
fn a_recorded_init_is_of_no_use_elsewhere_or_later_or_twice() {
    let mut listener = listener(Limits::default());
    let now = Time::from_us(1_000_000);
    let (_, init) = with_cookie(&mut listener, now, "10.0.0.1:1000", 1);
    // From somewhere else, with the cookie of the client and with one for that address.
    for from in ["10.0.0.2:1000", "10.0.0.1:1001"] {
        let (retry, heard) = hear(&mut listener, now, from, &init);
        assert!(matches!(heard, DatagramOutcome::Answer));
        let mut copy = init.clone();
        let cookie_at = 9 + 1 + 1 + 4 + 1;
        copy[cookie_at..cookie_at + 24].copy_from_slice(&retry[9..33]);
        let (_, heard) = hear(&mut listener, now, from, &copy);
        assert!(accepted(heard).is_none());
    }
    assert_eq!(listener.counters().keyless, 2);
    assert_eq!(listener.connections(), 0);

    let (answer, heard) = hear(&mut listener, now, "10.0.0.1:1000", &init);
    let connection = accepted(heard).expect("a connection");
    // A copy gets a copy of the answer.
    let (again, heard) = hear(&mut listener, now, "10.0.0.1:1000", &init);
    assert!(accepted(heard).is_none());
    assert_eq!(again, answer);
    // Once the connection is over, a copy begins none, and then its cookie is too old.
    listener.on_closed(now, connection.id());
    for ms in [0, 4_999, 5_100, 100_000] {
        let (_, heard) = hear(&mut listener, later(now, ms), "10.0.0.1:1000", &init);
        assert!(accepted(heard).is_none(), "after {ms} ms");
        assert_eq!(listener.connections(), 0);
    }
}

#[test]
fn a_repeated_init_is_answered_until_the_client_has_been_heard() {
    let mut listener = listener(Limits::default());
    let now = Time::from_us(1_000_000);
    let from = "10.0.0.1:1000";
    let (_, init) = with_cookie(&mut listener, now, from, 1);
    let (answer, heard) = hear(&mut listener, now, from, &init);
    let connection = accepted(heard).expect("a connection");
    let (again, heard) = hear(&mut listener, now, from, &init);
    assert!(matches!(heard, DatagramOutcome::Answer));
    assert_eq!(again, answer);
    listener.on_connected(connection.id());
    // Not even by an empty datagram.
    let (nothing, heard) = hear(&mut listener, now, from, &init);
    assert!(matches!(heard, DatagramOutcome::Nothing));
    assert_eq!(nothing, []);
}

#[test]
fn an_answer_to_a_challenge_is_as_long_as_that_and_at_most_the_agreed_datagram() {
    // Without security, so that the challenges can be written here.
    let settings = Settings::new(Security::Insecure);
    let mut listener = Listener::new(settings.clone(), Limits::default(), &[7; 32]);
    let now = Time::from_us(1_000_000);
    let from = "10.0.0.1:1000";
    let (_, init) = with_cookie_and(settings.clone(), &mut listener, now, from, 1);
    let (_, heard) = hear(&mut listener, now, from, &init);
    let mut connection = accepted(heard).expect("a connection");
    let agreed = usize::from(settings.datagram);
    for (number, length) in (0u64..).zip([27, 1000, agreed, agreed + 1, 9000]) {
        let mut challenge = vec![0x40];
        challenge.extend(connection.id().0.to_be_bytes());
        challenge.extend(number.to_be_bytes());
        let (path, path_challenge) = (0, 3);
        challenge.extend([path, path_challenge]);
        challenge.extend([9; 8]);
        challenge.resize(length, 0);
        connection.handle(now, address(from), false, &mut challenge);
        let mut answer = Vec::new();
        connection
            .poll_transmit(now, &mut answer)
            .expect("an answer");
        let path_response = 4;
        assert_eq!(answer[17..27], [0, path_response, 9, 9, 9, 9, 9, 9, 9, 9]);
        assert_eq!(answer.len(), length.min(agreed), "{length} bytes");
    }
}

#[test]
fn frames_before_the_length_of_datagrams_is_known_begin_no_transport() {
    let settings = Settings {
        datagram: 8_952,
        ..Settings::new(Security::Insecure)
    };
    let mut listener = Listener::new(settings.clone(), Limits::default(), &[7; 32]);
    let now = Time::from_us(1_000_000);
    let from = "10.0.0.1:1000";
    let (_, init) = with_cookie_and(settings, &mut listener, now, from, 1);
    let (_, heard) = hear(&mut listener, now, from, &init);
    let mut connection = accepted(heard).expect("a connection");
    let (credit, blocked, transport) = (5, 6, 1);
    for (number, kind) in (0u64..).zip([credit, blocked, transport]) {
        let mut datagram = vec![0x40];
        datagram.extend(connection.id().0.to_be_bytes());
        datagram.extend(number.to_be_bytes());
        datagram.extend([0, kind]);
        datagram.extend([0xff; 100]);
        connection.handle(now, address(from), false, &mut datagram);
        assert!(!connection.has_transport() && !connection.is_connected());
    }
    // No challenge is answered.
    connection.on_deadline(later(now, 100));
    assert!(connection.is_connected());
    assert_eq!(connection.datagram(), 1_452);
}

#[test]
fn a_clock_that_begins_anew_makes_no_old_cookie_good() {
    let mut listener = listener(Limits::default());
    let now = Time::from_us(1_000_000);
    // One client's connection is over, and another has not begun.
    let (_, used) = with_cookie(&mut listener, now, "10.0.0.1:1000", 1);
    let (_, unused) = with_cookie(&mut listener, now, "10.0.0.1:1000", 2);
    let (_, heard) = hear(&mut listener, now, "10.0.0.1:1000", &used);
    let connection = accepted(heard).expect("a connection");
    let long_after = Time::from_us(200 * 86_400 * 1_000_000);
    listener.on_closed(long_after, connection.id());
    listener.on_clock_restart();
    for init in [&used, &unused] {
        let (_, heard) = hear(&mut listener, now, "10.0.0.1:1000", init);
        assert!(accepted(heard).is_none());
    }
    let (_, init) = with_cookie(&mut listener, now, "10.0.0.1:1000", 3);
    let (_, heard) = hear(&mut listener, now, "10.0.0.1:1000", &init);
    let connection = accepted(heard).expect("a connection");
    // Connections that end later are forgotten in time: none of an older clock stands before them.
    listener.on_closed(now, connection.id());
    let (_, heard) = hear(&mut listener, later(now, 4_999), "10.0.0.1:1000", &init);
    assert!(matches!(heard, DatagramOutcome::Nothing));
    let (_, heard) = hear(&mut listener, later(now, 5_100), "10.0.0.1:1000", &init);
    assert!(matches!(heard, DatagramOutcome::Answer));
}

#[test]
fn half_open_connections_are_few_and_make_room_in_time() {
    let limits = Limits {
        half_open: 3,
        ..Limits::default()
    };
    let mut listener = listener(limits);
    let now = Time::from_us(1_000_000);
    let mut open = Vec::new();
    for seed in 0..3 {
        let (_, init) = with_cookie(&mut listener, now, "10.0.0.1:1000", seed);
        let (_, heard) = hear(&mut listener, now, "10.0.0.1:1000", &init);
        open.push(accepted(heard).expect("a connection"));
    }
    let refused = |listener: &mut Listener, now| {
        let (_, init) = with_cookie(listener, now, "10.0.0.9:1000", 9);
        let (_, heard) = hear(listener, now, "10.0.0.9:1000", &init);
        accepted(heard).is_none()
    };
    assert!(refused(&mut listener, now));
    assert_eq!(listener.counters().busy, 1);
    // Those whose clients are not heard end by themselves.
    let now = later(now, 5_000);
    for connection in &mut open {
        assert!(connection.deadline() <= now);
        connection.on_deadline(now);
        assert!(connection.is_closed());
        listener.on_closed(now, connection.id());
    }
    assert!(!refused(&mut listener, now));
}

#[test]
fn one_address_and_one_network_of_version_6_have_their_share() {
    let limits = Limits {
        per_address: 2,
        ..Limits::default()
    };
    let mut listener = listener(limits);
    let now = Time::from_us(1_000_000);
    let mut begin = |from: &str, seed| {
        let (_, init) = with_cookie(&mut listener, now, from, seed);
        let (_, heard) = hear(&mut listener, now, from, &init);
        accepted(heard).is_some()
    };
    assert!(begin("10.0.0.1:1", 1) && begin("10.0.0.1:2", 2) && !begin("10.0.0.1:3", 3));
    assert!(begin("[2001:db8::1]:1", 4) && begin("[2001:db8::2]:1", 5));
    assert!(!begin("[2001:db8::3]:1", 6));
    assert!(begin("[2001:db8:0:1::3]:1", 7));
}

#[test]
fn a_message_before_the_beginning_is_told_from_one_after_the_end() {
    let mut listener = listener(Limits::default());
    let now = Time::from_us(1_000_000);
    let (mut client, _) = with_cookie(&mut listener, now, "10.0.0.1:1000", 1);
    assert_eq!(
        client.send(now, 1, bytes::Bytes::new()),
        Err(SendError::Early)
    );
    client.close(now, 0);
    assert_eq!(
        client.send(now, 1, bytes::Bytes::new()),
        Err(SendError::Closed)
    );
}
