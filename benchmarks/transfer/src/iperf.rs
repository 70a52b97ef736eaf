//! Transfers by iperf3 over one TCP connection.

use crate::end::EndReport;
use crate::failure::Failure;
use crate::network::Network;
use crate::process::{Place, Running, output};
use serde::Deserialize;
use std::net::TcpListener;
use std::time::Duration;

/// The part of iperf3's report that is needed.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    end: Option<End>,
}

#[derive(Debug, Deserialize)]
struct End {
    sum_received: Sum,
    sum_sent: Sum,
    cpu_utilization_percent: Utilization,
}

#[derive(Debug, Deserialize)]
struct Sum {
    bytes: u64,
    seconds: f64,
}

#[derive(Debug, Deserialize)]
struct Utilization {
    host_total: f64,
    remote_total: f64,
}

/// The first line of iperf3's description of itself, or the reason why there is none.
pub(crate) fn version() -> Result<String, Failure> {
    let text = output("iperf3", &["--version"])?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// One transfer. Returns the reports of sender and receiver.
pub(crate) fn transfer(
    network: &Network,
    places: &[Place; 2],
    seconds: f64,
) -> Result<[EndReport; 2], Failure> {
    // Namespaces have no other listeners, and on the loopback interface the system gives a free port.
    let port = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let time = Duration::from_secs_f64(seconds);
    let port = port.to_string();
    let address = network.receiver().to_string();
    let mut server = places[1].command("iperf3");
    server.args([
        "--server",
        "--one-off",
        "--forceflush",
        "--bind",
        &address,
        "--port",
        &port,
    ]);
    let mut server = Running::start(server, time)?;
    while !server.line()?.contains("listening") {}
    let mut client = places[0].command("iperf3");
    let seconds = seconds.ceil().to_string();
    client.args([
        "--client", &address, "--port", &port, "--time", &seconds, "--json",
    ]);
    let report = Running::start(client, time)?.rest();
    server.rest();
    let report: Report = serde_json::from_str(&report)?;
    let Some(end) = report.end else {
        let error = report.error.unwrap_or_else(|| "no result".into());
        return Err(Failure::new(format!("iperf3: {error}")));
    };
    let side = |sum: &Sum, percent: f64| EndReport {
        bytes: end.sum_received.bytes,
        seconds: end.sum_received.seconds,
        cpu_seconds: percent / 100.0 * sum.seconds,
        retransmitted: 0,
        data_packets: 0,
        acknowledgements: 0,
    };
    let used = &end.cpu_utilization_percent;
    Ok([
        side(&end.sum_sent, used.host_total),
        side(&end.sum_received, used.remote_total),
    ])
}
