//! Connections over real sockets, on the loopback interface.

use bytes::Bytes;
use clearway_udp::net::perf::{PerfPlan, PerfProgress, Pool, measure, serve};
use clearway_udp::net::{Channel, ConnectError, Server, connect};
use clearway_udp::{
    Allocate, Connection, ConnectionError, Limits, PreSharedKey, Security, ServerName, Settings,
};
use clearway_units::{Span, Time};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;

fn settings() -> Settings {
    Settings::new(Security::Key(PreSharedKey([42; 32])))
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn run<F: Future>(test: F) -> F::Output {
    let runtime = Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, test)
            .await
            .expect("it takes too long")
    })
}

async fn pair(settings: [Settings; 2]) -> (Channel, Channel, Server) {
    let [client, server] = settings;
    let server = Server::bind(loopback(), server, Limits::default()).unwrap();
    let connecting = tokio::spawn(connect(server.address(), client));
    let accepted = server.accept().await;
    (connecting.await.unwrap().unwrap(), accepted, server)
}

fn content(tag: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u64 * 31 + tag) as u8).collect()
}

#[test]
fn a_server_at_all_addresses_takes_both_versions_and_answers_from_where_it_was_asked() {
    run(async {
        let all = "[::]:0".parse().unwrap();
        let server = Server::bind(all, settings(), Limits::default()).unwrap();
        let port = server.address().port();
        for host in ["127.0.0.1", "127.0.0.2", "::1"] {
            let address = SocketAddr::new(host.parse().unwrap(), port);
            let connecting = tokio::spawn(connect(address, settings()));
            let accepted = server.accept().await;
            let client = connecting.await.unwrap().unwrap();
            assert_eq!(accepted.peer().is_ipv4(), address.is_ipv4(), "{host}");
            accepted.send(7, Bytes::from_static(b"back")).await.unwrap();
            assert_eq!(client.receive().await.unwrap().data, b"back", "{host}");
            assert_eq!(client.shut_down(0).await, ConnectionError::Here, "{host}");
        }
    });
}

#[test]
fn datagrams_on_loopback_are_as_long_as_the_ends_allow() {
    run(async {
        for (allowed, used) in [(8_952, 8_952), (1_200, 1_200)] {
            let longest = Settings {
                datagram: allowed,
                ..settings()
            };
            let (client, server, _listening) = pair([longest.clone(), longest]).await;
            for (from, to) in [(&client, &server), (&server, &client)] {
                from.send(1, content(1, 100_000).into()).await.unwrap();
                assert_eq!(to.receive().await.unwrap().data, content(1, 100_000));
            }
            // The last snapshot is that of the end.
            client.shut_down(0).await;
            server.ended().await;
            assert_eq!(client.snapshot().datagram, used);
            assert_eq!(server.snapshot().datagram, used);
        }
    });
}

#[test]
fn messages_of_all_sizes_arrive_in_both_directions() {
    run(async {
        let (client, server, _listener) = pair([settings(), settings()]).await;
        let lengths = [0, 1, 1350, 1351, 100_000, 5_000_000];
        let (client, server) = (Arc::new(client), Arc::new(server));
        let exchange = move |from: Arc<Channel>, to: Arc<Channel>| async move {
            for (tag, &length) in lengths.iter().enumerate() {
                let data = Bytes::from(content(tag as u64, length));
                from.send(tag as u64, data).await.unwrap();
            }
            let mut seen = 0;
            while seen != (1 << lengths.len()) - 1 {
                let message = to.receive().await.unwrap();
                let length = lengths[message.tag as usize];
                assert!(
                    message.data == content(message.tag, length),
                    "{}",
                    message.tag
                );
                assert_eq!(seen >> message.tag & 1, 0, "{} came twice", message.tag);
                seen |= 1 << message.tag;
            }
            from.flush().await.unwrap();
        };
        let up = tokio::spawn(exchange(Arc::clone(&client), Arc::clone(&server)));
        exchange(Arc::clone(&server), Arc::clone(&client)).await;
        up.await.unwrap();
        assert_eq!(client.shut_down(3).await, ConnectionError::Here);
        assert_eq!(server.receive().await, Err(ConnectionError::There(3)));
        let used = client.snapshot().paths;
        assert_eq!(used.len(), 8);
        assert!(used.iter().all(|(_, path)| path.sent > 0), "{used:?}");
    });
}

#[test]
fn a_reader_that_is_slow_holds_the_sender_back() {
    run(async {
        let small = Settings {
            receive_memory: 1 << 20,
            send_memory: 1 << 20,
            ..settings()
        };
        let (client, server, _listener) = pair([small.clone(), small]).await;
        let sending = tokio::spawn(async move {
            for tag in 0..600 {
                let data = Bytes::from(content(tag, 50_000));
                client.send(tag, data).await.unwrap();
            }
            client.flush().await.unwrap();
            client
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!sending.is_finished());
        for _ in 0..600 {
            server.receive().await.unwrap();
        }
        drop(sending.await.unwrap());
        assert_eq!(server.receive().await, Err(ConnectionError::There(0)));
    });
}

#[test]
fn a_connection_that_nobody_reads_ends_all_the_same() {
    run(async {
        let (client, server, _listener) = pair([settings(), settings()]).await;
        // More than the queue of the server's application holds.
        for tag in 0..600 {
            client.send(tag, Bytes::new()).await.unwrap();
        }
        // What has arrived is known to the sender although nobody takes it.
        client.flush().await.unwrap();
        drop(server);
        // Nothing hangs, and what comes after the end is the end.
        assert_eq!(client.receive().await, Err(ConnectionError::There(0)));
    });
}

#[test]
fn all_messages_come_before_the_end() {
    run(async {
        let (client, server, _listener) = pair([settings(), settings()]).await;
        for tag in 0..600 {
            client.send(tag, Bytes::new()).await.unwrap();
        }
        assert_eq!(client.shut_down(7).await, ConnectionError::Here);
        let mut seen = 0;
        let end = loop {
            match server.receive().await {
                Ok(_) => seen += 1,
                Err(end) => break end,
            }
        };
        assert_eq!((seen, end), (600, ConnectionError::There(7)));
    });
}

#[test]
fn measurements_count_what_was_sent() {
    run(async {
        let (client, server, _listener) = pair([settings(), settings()]).await;
        let serving = tokio::spawn(async move { serve(&server, &Pool::default()).await });
        let ms = |name, usual| std::env::var(name).map_or(usual, |ms| ms.parse().unwrap());
        let plan = PerfPlan {
            time: Span::from_ms(ms("CLEARWAY_PERF_MS", 300)),
            message: 1 << 20,
            small_time: Span::from_ms(100),
            echoes: 100,
            interval: Span::from_ms(100),
        };
        let (mut bytes, mut all) = (0, false);
        let on_progress = |progress: PerfProgress<'_>| match progress {
            PerfProgress::Interval(interval) => bytes += interval.bytes,
            PerfProgress::Arrived => all = true,
        };
        let measured = measure(&client, &plan, on_progress).await.unwrap();
        assert!(all && bytes <= measured.bytes);
        assert!(measured.bytes > 0 && measured.small > 0);
        assert_eq!(measured.round_trips.len(), 100);
        eprintln!(
            "{:.2} Gb/s, {} again of {}, {} small in {}, echo {:?}, {:?}",
            measured.bytes as f64 * 8e3 / measured.time.as_ps() as f64,
            measured.snapshot.counters.retransmitted,
            measured.snapshot.counters.data_sent,
            measured.small,
            measured.small_time,
            measured.round_trips[50],
            measured.snapshot.counters,
        );
        client.shut_down(0).await;
        assert_eq!(serving.await.unwrap(), ConnectionError::There(0));
    });
}

#[test]
fn wrong_keys_and_silence_are_told() {
    run(async {
        let server = Server::bind(loopback(), settings(), Limits::default()).unwrap();
        let other = Settings::new(Security::Key(PreSharedKey([1; 32])));
        let refused = connect(server.address(), other).await;
        assert!(matches!(
            refused,
            Err(ConnectError::Closed(ConnectionError::Key))
        ));
        let short = Settings {
            idle: Span::from_ms(300),
            ..settings()
        };
        let nobody = std::net::UdpSocket::bind(loopback()).unwrap();
        let silent = connect(nobody.local_addr().unwrap(), short).await;
        assert!(matches!(
            silent,
            Err(ConnectError::Closed(ConnectionError::NoAnswer(_)))
        ));
    });
}

#[test]
fn a_server_name_counts_at_both_ends_or_at_none() {
    let named = |name: Option<&str>| Settings {
        server_name: name.map(|name| ServerName::new(name).expect("a name")),
        ..settings()
    };
    run(async {
        for own in [None, Some("node 1")] {
            let server = Server::bind(loopback(), named(own), Limits::default()).unwrap();
            for wanted in [None, Some("node 1"), Some("node 2"), Some("node 11")] {
                let connected = connect(server.address(), named(wanted)).await;
                if wanted == own {
                    let accepted = server.accept().await;
                    let client = connected.unwrap();
                    accepted.send(7, Bytes::from_static(b"back")).await.unwrap();
                    assert_eq!(client.receive().await.unwrap().data, b"back");
                    continue;
                }
                let Err(ConnectError::Closed(closed)) = connected else {
                    panic!("{wanted:?} at {own:?}");
                };
                assert_eq!(closed, ConnectionError::Key);
                assert!(closed.to_string().contains("server name"), "{closed}");
            }
        }
    });
}

#[test]
fn a_server_answers_from_the_address_that_was_asked() {
    run(async {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let server = Server::bind(any, settings(), Limits::default()).unwrap();
        // All of 127.0.0.0/8 is this host on Linux.
        let asked = SocketAddr::from(([127, 0, 0, 2], server.address().port()));
        let mut client =
            Connection::connect(settings(), &[1; 32], Time::ZERO, asked, Box::new(Allocate));
        let mut init = Vec::new();
        client.poll_transmit(Time::ZERO, &mut init).unwrap();
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        if socket.send_to(&init, asked).await.is_err() {
            return eprintln!("this host is not 127.0.0.2, nothing was looked at");
        }
        let mut answer = [0; 1500];
        let (_, from) = socket.recv_from(&mut answer).await.unwrap();
        assert_eq!(from, asked);
    });
}
