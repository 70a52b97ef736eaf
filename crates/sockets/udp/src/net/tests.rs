use super::*;
use crate::settings::{Security, Transport};
use bytes::Bytes;
use clearway_units::Span;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

/// Longest time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build();
    let local = LocalSet::new();
    local.block_on(&runtime.expect("a runtime"), test);
}

fn settings() -> Settings {
    Settings::new(Security::Insecure)
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

async fn connected(server: &Server) -> Channel {
    let connecting = connect(server.address(), settings());
    connecting.await.expect("the server is up")
}

#[test]
fn a_server_outlives_its_clock() {
    run(async {
        // The clock has three seconds left: more than it takes to connect, however busy the machine.
        let age = Duration::from_secs(200 * 86_400 - 3);
        let server = Server::bind_at(
            Clock::aged(age),
            loopback(),
            settings(),
            Limits::default(),
            Box::new(|| Box::new(Allocate)),
        );
        let server = server.expect("a port");
        let address = server.address();
        // An application that does not look at what it has does not keep the clock from beginning anew.
        let unread = connected(&server).await;
        for tag in 0..300 {
            unread.send(tag, Bytes::new()).await.expect("it is open");
        }
        let _held = server.accept().await;
        tokio::spawn(async move {
            loop {
                let channel = server.accept().await;
                tokio::spawn(async move { while channel.receive().await.is_ok() {} });
            }
        });
        let first = connect(address, settings()).await.expect("it is up");
        let ended = timeout(PATIENCE, first.receive()).await.expect("it ends");
        assert_eq!(ended, Err(ConnectionError::There(crate::wire::EXPIRED)));
        let second = timeout(PATIENCE, async {
            loop {
                let channel = connect(address, settings()).await.expect("it is up");
                if channel.send(1, Bytes::from_static(b"again")).await.is_ok()
                    && channel.flush().await.is_ok()
                {
                    return channel;
                }
            }
        });
        assert_eq!(second.await.expect("it goes on").arrived(), 1);
    });
}

#[test]
fn connections_that_nobody_accepts_are_few_and_kept_for_a_while() {
    run(async {
        let limits = Limits {
            connections: 4,
            unaccepted: Span::from_ms(3_000),
            ..Limits::default()
        };
        let server = Server::bind(loopback(), settings(), limits).expect("a port");
        for tag in 0..4 {
            let client = connected(&server).await;
            client.send(tag, Bytes::new()).await.expect("it is open");
            assert_eq!(client.shut_down(tag).await, ConnectionError::Here);
        }
        assert_eq!(server.accepting.len(), 4);
        let refused = connect(server.address(), settings()).await;
        assert!(matches!(
            refused,
            Err(ConnectError::Closed(ConnectionError::Busy))
        ));
        // Those that are accepted in time have what they have brought.
        let accepted = server.accept().await;
        assert_eq!(accepted.receive().await.map(|message| message.tag), Ok(0));
        assert_eq!(accepted.receive().await, Err(ConnectionError::There(0)));
        let lapse = async {
            while server.accepting.len() > 0 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, lapse).await.expect("they lapse");
        drop(connected(&server).await);
        assert!(timeout(PATIENCE, server.accept()).await.is_ok());
    });
}

#[test]
fn a_socket_that_cannot_be_written_is_waited_for() {
    for transport in [Transport::Strack, Transport::GoBackN] {
        run(blocked(transport));
    }
}

/// A client whose socket is blocked for a while: how often its driver looks, and that it goes on and ends as it should.
async fn blocked(transport: Transport) {
    let settings = Settings {
        transport,
        ..settings()
    };
    let server = Server::bind(loopback(), settings.clone(), Limits::default()).expect("a port");
    let sockets: Vec<_> = (0..settings.clone().bounded().paths)
        .map(|_| Socket::bind(loopback()).expect("a port"))
        .collect();
    let stuck: Vec<_> = sockets.iter().map(|s| Arc::clone(&s.stuck)).collect();
    let clock = Clock::start();
    let acceptor = Box::new(Allocate);
    let connection =
        Connection::connect(settings, &[1; 32], clock.now(), server.address(), acceptor);
    let shared = Arc::new(Shared::new(server.address()));
    let driver = Driver::client(sockets, clock, connection, Arc::clone(&shared));
    let looks = Rc::new(Cell::new(0));
    let count = Rc::clone(&looks);
    tokio::task::spawn_local(async move {
        let mut running = pin!(driver.run());
        poll_fn(|cx| {
            count.set(count.get() + 1);
            running.as_mut().poll(cx)
        })
        .await;
    });
    let client = Channel::new(Arc::clone(&shared));
    shared.connected().await.expect("the server is up");
    let peer = server.accept().await;
    client
        .send(1, Bytes::from(vec![1; 1000]))
        .await
        .expect("it is open");
    client.flush().await.expect("it is open");

    let set = |to| {
        stuck
            .iter()
            .for_each(|stuck| stuck.store(to, Ordering::Relaxed));
    };
    set(true);
    let data = Bytes::from(vec![2; 2_000_000]);
    client.send(2, data).await.expect("it is open");
    sleep(Duration::from_millis(50)).await;
    looks.set(0);
    sleep(Duration::from_millis(500)).await;
    // A hundred in a second, and what the other end causes.
    assert!(looks.get() < 150, "{transport:?}: {} looks", looks.get());
    set(false);
    timeout(PATIENCE, client.flush())
        .await
        .expect("in time")
        .expect("it is open");

    set(true);
    client.close(7);
    sleep(Duration::from_millis(500)).await;
    set(false);
    let mut tags = Vec::new();
    let end = timeout(PATIENCE, async {
        loop {
            match peer.receive().await {
                Ok(message) => tags.push(message.tag),
                Err(end) => return end,
            }
        }
    });
    assert_eq!(end.await, Ok(ConnectionError::There(7)), "{transport:?}");
    assert_eq!(tags, [1, 2]);
}
