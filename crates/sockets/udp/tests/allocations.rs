//! Allocations: a packet costs none, in the connection and in its driver.

use allocation_counter::measure;
use bytes::Bytes;
use clearway_udp::{
    Acceptor, Connection, DatagramOutcome, Event, Limits, Listener, PreSharedKey, Security,
    Settings, Transport,
};
use clearway_units::{Span, Time};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

fn settings(transport: Transport) -> Settings {
    Settings {
        transport,
        ..Settings::new(Security::Key(PreSharedKey([7; 32])))
    }
}

/// Buffers that are used again.
#[derive(Clone, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Acceptor for Buffers {
    fn accept(&mut self, _tag: u64, length: usize) -> Option<Vec<u8>> {
        let spare = self.0.lock().unwrap().pop();
        Some(spare.unwrap_or_else(|| Vec::with_capacity(length)))
    }
}

/// A client and a server, 20 us apart in virtual time.
struct Pair {
    now: Time,
    client: Connection,
    server: Connection,
    buffers: Buffers,
    out: Vec<u8>,
    received: u64,
    sent: u64,
}

fn client_address(path: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 1000 + u16::from(path)))
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 2000))
}

impl Pair {
    fn new(transport: Transport) -> Self {
        let now = Time::from_us(1_000);
        let buffers = Buffers::default();
        let settings = settings(transport);
        let acceptor = Box::new(Buffers::default());
        let mut client =
            Connection::connect(settings.clone(), &[1; 32], now, server_address(), acceptor);
        let mut listener = Listener::new(settings, Limits::default(), &[2; 32]);
        let acceptors = || -> Box<dyn Acceptor> { Box::new(buffers.clone()) };
        let (mut out, mut answer) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            out.clear();
            if client.poll_transmit(now, &mut out).is_none() {
                continue;
            }
            answer.clear();
            let heard = listener.handle(now, client_address(0), &out, &mut answer, acceptors);
            if !answer.is_empty() {
                client.handle(now, server_address(), false, &mut answer);
            }
            if let DatagramOutcome::Connection(server) = heard {
                return Self {
                    now,
                    client,
                    server: *server,
                    buffers: buffers.clone(),
                    out,
                    received: 0,
                    sent: 0,
                };
            }
        }
        panic!("no connection after four datagrams");
    }

    /// Passes all datagrams that there are now from one end to the other, and takes the events.
    fn step(&mut self) {
        self.now += Span::from_us(20);
        let now = self.now;
        let (client, server, out) = (&mut self.client, &mut self.server, &mut self.out);
        client.on_deadline(now);
        server.on_deadline(now);
        loop {
            out.clear();
            let Some(transmit) = client.poll_transmit(now, out) else {
                break;
            };
            server.handle(now, client_address(transmit.path), false, out);
        }
        loop {
            out.clear();
            if server.poll_transmit(now, out).is_none() {
                break;
            }
            client.handle(now, server_address(), false, out);
        }
        while let Some(event) = server.poll_event() {
            if let Event::Received { data, .. } = event {
                self.received += data.len() as u64;
                self.buffers.0.lock().unwrap().push(data);
            }
        }
        while let Some(event) = client.poll_event() {
            self.sent += u64::from(matches!(event, Event::Sent { .. }));
        }
    }

    /// Sends messages one after the other.
    fn transfer(&mut self, messages: u64, content: &Bytes) {
        for _ in 0..messages {
            let goal = self.sent + 1;
            self.client.send(self.now, 0, content.clone()).unwrap();
            for _ in 0..100_000 {
                if self.sent == goal {
                    break;
                }
                self.step();
            }
            assert_eq!(self.sent, goal, "a message does not arrive");
        }
    }
}

fn packets_of_a_connection_cost_nothing(transport: Transport) {
    let mut pair = Pair::new(transport);
    let short = Bytes::from(vec![1; 200_000]);
    let long = Bytes::from(vec![1; 2_000_000]);
    for _ in 0..1_000 {
        if pair.client.is_connected() {
            break;
        }
        pair.step();
    }
    pair.transfer(5, &long);
    let before = pair.client.counters().data_sent;
    let short = measure(|| pair.transfer(10, &short)).count_total;
    let between = pair.client.counters().data_sent;
    let long = measure(|| pair.transfer(10, &long)).count_total;
    let packets = (between - before, pair.client.counters().data_sent - between);
    assert!(packets.1 > 9 * packets.0, "{packets:?}");
    // One for each message would be allowed; nothing depends on the number of packets.
    assert!(
        short <= 10 && long <= 10,
        "{short} and {long} of {packets:?} packets"
    );
}

#[test]
fn packets_of_strack_cost_no_allocation() {
    packets_of_a_connection_cost_nothing(Transport::Strack);
}

#[test]
fn packets_of_go_back_n_cost_no_allocation() {
    packets_of_a_connection_cost_nothing(Transport::GoBackN);
}

#[cfg(feature = "net")]
#[test]
fn packets_of_a_driver_cost_no_allocation() {
    use clearway_udp::net::perf::{Pool, serve};
    use clearway_udp::net::{Server, connect};
    use std::time::Duration;
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.event_interval(1).enable_all().build().unwrap();
    let pool = Pool::default();
    let buffers = pool.clone();
    let acceptors = Box::new(move || -> Box<dyn Acceptor> { Box::new(buffers.clone()) });
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let limit = Duration::from_secs(60);
    let channel = runtime.block_on(async {
        let settings = settings(Transport::Strack);
        let server = Server::bind_with(any, settings.clone(), Limits::default(), acceptors);
        let server = server.unwrap();
        let address = server.address();
        tokio::spawn(async move {
            let channel = server.accept().await;
            serve(&channel, &pool).await
        });
        tokio::time::timeout(limit, connect(address, settings))
            .await
            .unwrap()
            .unwrap()
    });
    let transfer = |messages: u64, content: &Bytes| {
        let sends = async {
            for _ in 0..messages {
                channel.send(1, content.clone()).await.unwrap();
            }
            channel.flush().await.unwrap();
        };
        measure(|| runtime.block_on(async { tokio::time::timeout(limit, sends).await.unwrap() }))
            .count_total
    };
    let short = Bytes::from(vec![1; 100_000]);
    let long = Bytes::from(vec![1; 1_000_000]);
    transfer(40, &long);
    transfer(40, &short);
    let sent = || channel.snapshot().counters.data_sent;
    let before = sent();
    let of_short = transfer(40, &short);
    let of_long = transfer(40, &long);
    let packets = sent() - before;
    assert!(packets > 20_000, "{packets}");
    // Buffers for messages that are under way at the same time, and what the runtime does now and then.
    let most = of_short + 200;
    assert!(
        of_long <= most,
        "{of_short} and {of_long} allocations, {packets} packets"
    );
}
