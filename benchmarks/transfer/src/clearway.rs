//! Ends of a transfer by `clearway-udp`.

use crate::end::{CHUNK, EndArguments, EndReport, Listening, Meter, Protocol};
use crate::failure::Failure;
use bytes::Bytes;
use clearway_udp::net::perf::{DONE, Pool, serve};
use clearway_udp::net::{Server, connect};
use clearway_udp::{Acceptor, Limits, PreSharedKey, Security, Settings, Transport};
use clearway_units::Rate;

/// The key of both ends: data of benchmarks is no secret.
const KEY: [u8; 32] = *b"only for benchmarks of transfers";

fn settings(arguments: &EndArguments) -> Settings {
    let security = match arguments.insecure {
        true => Security::Insecure,
        false => Security::Key(PreSharedKey(KEY)),
    };
    let mut settings = Settings::new(security);
    settings.paths = arguments.paths;
    settings.line_rate = Rate::from_gbps(arguments.line_rate);
    if arguments.protocol == Protocol::Rocev2 {
        settings.transport = Transport::GoBackN;
        settings.paths = 1;
    }
    settings
}

/// Takes one transfer. Calls `listening` once it can come.
pub(crate) async fn receive(
    arguments: &EndArguments,
    listening: impl FnOnce(Listening),
) -> Result<EndReport, Failure> {
    let pool = Pool::default();
    let buffers = pool.clone();
    let acceptors = Box::new(move || -> Box<dyn Acceptor> { Box::new(buffers.clone()) });
    let server = Server::bind_with(
        arguments.address,
        settings(arguments),
        Limits::default(),
        acceptors,
    )?;
    listening(Listening {
        address: server.address(),
        certificate: String::new(),
    });
    let channel = server.accept().await;
    let meter = Meter::start();
    serve(&channel, &pool).await;
    Ok(meter.report(0))
}

/// Sends messages for the time of the arguments.
pub(crate) async fn send(arguments: &EndArguments) -> Result<EndReport, Failure> {
    let channel = connect(arguments.address, settings(arguments)).await?;
    let content = Bytes::from(vec![0x5a; CHUNK]);
    let meter = Meter::start();
    let mut sent = 0;
    while meter.elapsed() < arguments.time() {
        channel.send(1, content.clone()).await?;
        sent += CHUNK as u64;
    }
    channel.flush().await?;
    let report = meter.report(sent);
    let counters = channel.snapshot().counters;
    channel.shut_down(DONE).await;
    Ok(EndReport {
        retransmitted: counters.retransmitted,
        data_packets: counters.data_sent,
        acknowledgements: counters.sacks_received,
        ..report
    })
}
