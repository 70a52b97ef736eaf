//! Transfers over real sockets, on the loopback interface, with sides that are sound and sides that are not.

use bytes::Bytes;
use clearway_testing::Folder;
use clearway_transfer::wire::{ControlMessage, VERSION};
use clearway_transfer::{
    ReceiveLimits, ReceiveOutcome, ReceiveStore, SendOutcome, Sources, TransferError,
    TransferEvent, TransferObserver, TransferProgress, receive, send,
};
use clearway_udp::net::{Channel, Server, connect};
use clearway_udp::{ConnectionError, Limits, PreSharedKey, Security, Settings};
use clearway_units::Rate;
use std::fs;
use std::future::Future;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Builder;

/// A user who only watches.
struct User;

impl TransferObserver for User {
    fn on_event(&mut self, _: &TransferEvent) {}

    fn on_tick(&mut self, _: &TransferProgress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn run<F: Future>(test: F) -> F::Output {
    let runtime = Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let limit = Duration::from_secs(100);
        tokio::time::timeout(limit, test)
            .await
            .expect("it takes too long")
    })
}

async fn pair(receive_memory: u64, line_rate: Rate) -> (Channel, Channel, Server) {
    let settings = Settings {
        receive_memory,
        line_rate,
        send_memory: 1 << 20,
        ..Settings::new(Security::Key(PreSharedKey([42; 32])))
    };
    let address = ([127, 0, 0, 1], 0).into();
    let server = Server::bind(address, settings.clone(), Limits::default()).expect("a socket");
    let connecting = tokio::spawn(connect(server.address(), settings));
    let accepted = server.accept().await;
    let connected = connecting
        .await
        .expect("no panic")
        .expect("it is connected");
    (connected, accepted, server)
}

/// A receiver's user who tells the sender's how many bytes have been written.
struct Teller(Arc<AtomicU64>);

impl TransferObserver for Teller {
    fn on_event(&mut self, _: &TransferEvent) {}

    fn on_tick(&mut self, progress: &TransferProgress) -> ControlFlow<()> {
        self.0.store(progress.moved, Ordering::Relaxed);
        ControlFlow::Continue(())
    }
}

/// A sender's user who interrupts once so many bytes have been written at the other end.
struct Listener(Arc<AtomicU64>, u64);

impl TransferObserver for Listener {
    fn on_event(&mut self, _: &TransferEvent) {}

    fn on_tick(&mut self, _: &TransferProgress) -> ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) >= self.1 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Transfers all below `from`, with little memory. The sender is interrupted once so many bytes have been written.
async fn transfer(folder: &Path, interrupted_at: u64) -> (SendOutcome, ReceiveOutcome) {
    // Users are asked ten times a second: slow enough to be asked on the way.
    let (sender, receiver, _server) = pair(2 << 20, Rate::from_bps(200_000_000)).await;
    let sources = Sources::find(&[folder.join("from")]).expect("it is there");
    fs::create_dir_all(folder.join("to")).expect("a folder");
    let store = ReceiveStore::open(&folder.join("to"), false).expect("a folder");
    let written = Arc::new(AtomicU64::new(0));
    let mut user = Teller(Arc::clone(&written));
    let receiving = tokio::spawn(async move {
        receive(&receiver, store, ReceiveLimits::default(), &mut user).await
    });
    let mut user = Listener(written, interrupted_at);
    let sent = send(&sender, Arc::new(sources), &mut user).await;
    (sent, receiving.await.expect("no panic"))
}

fn content() -> Vec<u8> {
    (0..40u32 << 18)
        .flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_be_bytes())
        .collect()
}

#[test]
fn files_larger_than_all_memory_arrive_and_interrupted_ones_go_on() {
    let folder = Folder::new("transfer-net");
    fs::create_dir_all(folder.join("from")).expect("a folder");
    fs::write(folder.join("from/large"), content()).expect("room");
    fs::write(folder.join("from/small"), "small").expect("room");
    run(async {
        let (sent, received) = transfer(&folder, 4 << 20).await;
        assert!(
            matches!(sent.error, Some(TransferError::Interrupted)),
            "{sent:?}"
        );
        assert!(
            matches!(received.error, Some(TransferError::InterruptedThere)),
            "{received:?}"
        );
        let there: u64 = received.unfinished.iter().map(|file| file.bytes).sum();
        assert!(there > 0, "{received:?}");
        let (sent, received) = transfer(&folder, u64::MAX).await;
        assert!(
            sent.error.is_none() && received.error.is_none(),
            "{sent:?} {received:?}"
        );
        assert_eq!((sent.progress.done, received.progress.done), (2, 2));
        assert!(sent.progress.kept > 0 && sent.progress.kept == received.progress.kept);
    });
    assert!(fs::read(folder.join("to/from/large")).expect("it is there") == content());
    assert!(!folder.join("to/.clearway-partial").exists());
}

/// The reason why a receiver ends, and what the sender of these messages sees.
fn ends(messages: Vec<(u64, Bytes)>) -> (String, ConnectionError) {
    let folder = Folder::new("transfer-net-ends");
    run(async {
        let (sender, receiver, _server) = pair(64 << 20, Rate::from_gbps(10)).await;
        let store = ReceiveStore::open(&folder, false).expect("a folder");
        let receiving = tokio::spawn(async move {
            receive(&receiver, store, ReceiveLimits::default(), &mut User).await
        });
        for (tag, content) in messages {
            sender.send(tag, content).await.expect("it is taken");
        }
        let closed = loop {
            if let Err(closed) = sender.receive().await {
                break closed;
            }
        };
        let received = receiving.await.expect("no panic");
        let error = received.error.expect("it is no sound transfer");
        (error.to_string(), closed)
    })
}

#[test]
fn a_sender_that_breaks_the_protocol_is_cut_off() {
    let violation = |what: &str| {
        (
            format!("the other end broke the protocol of transfers: {what}"),
            ConnectionError::There(clearway_transfer::VIOLATION),
        )
    };
    // What a measurement sends first.
    let measures = vec![(1, Bytes::from(vec![0x5a; 1000]))];
    assert_eq!(ends(measures), violation("a message is malformed"));
    let done = ControlMessage::Done { file: 0 }.encode();
    assert_eq!(ends(vec![done]), violation("it does not greet"));
}

#[test]
fn a_receiver_that_breaks_the_protocol_or_says_nothing_is_given_up() {
    let folder = Folder::new("transfer-net-receiver");
    fs::write(folder.join("from"), "content").expect("room");
    let cases = [
        (
            Some(VERSION + 1),
            "the other end broke the protocol of transfers: it speaks another version of transfers",
        ),
        (None, "the other end is connected, but transfers no files"),
    ];
    for (version, told) in cases {
        run(async {
            let (sender, receiver, _server) = pair(64 << 20, Rate::from_gbps(10)).await;
            if let Some(version) = version {
                let greeting = ControlMessage::Greeting {
                    version,
                    files: 0,
                    bytes: 0,
                };
                let (tag, content) = greeting.encode();
                receiver.send(tag, content).await.expect("it is taken");
            }
            let sources = Sources::find(&[folder.join("from")]).expect("it is there");
            let sent = send(&sender, Arc::new(sources), &mut User).await;
            assert_eq!(sent.error.expect("no sound transfer").to_string(), told);
        });
    }
}
