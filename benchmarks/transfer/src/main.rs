//! Throughput and processor time of `clearway-udp` beside iperf3 (TCP) and quinn (QUIC), on this machine, in one sitting.
//!
//! Each transfer has two processes, its ends, each bound to one processor. The transfers take turns, and the whole is repeated, so that
//! what else the machine does meets all of them alike; what is printed are medians.

mod clearway;
mod end;
mod failure;
mod iperf;
mod network;
mod plan;
mod process;
mod quic;
mod report;

use clap::{Parser, Subcommand};
use end::{EndArguments, EndReport, Listening, Protocol};
use failure::Failure;
use plan::PlanArguments;
use std::future::Future;
use std::io::{self, Write};
use std::process::ExitCode;
use tokio::runtime::Builder;

/// Throughput of clearway-udp beside iperf3 and quinn.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    end: Option<End>,
    #[command(flatten)]
    plan: PlanArguments,
}

#[derive(Debug, Subcommand)]
enum End {
    /// Takes one transfer, and prints where it listens and what it has measured.
    Receive(EndArguments),
    /// Sends, and prints what it has measured.
    Send(EndArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.end {
        None => plan::run(&arguments.plan),
        Some(End::Receive(end)) => run_end(end.protocol, receive(end)),
        Some(End::Send(end)) => run_end(end.protocol, send(end)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("transfer: {failure}");
            ExitCode::from(2)
        }
    }
}

fn run_end(
    protocol: Protocol,
    end: impl Future<Output = Result<EndReport, Failure>>,
) -> Result<(), Failure> {
    let mut builder = Builder::new_current_thread();
    if protocol != Protocol::Quinn {
        // As the documentation of `clearway_udp::net` advises.
        builder.event_interval(1);
    }
    let report = builder.enable_all().build()?.block_on(end)?;
    print(&serde_json::to_string(&report)?)
}

async fn receive(arguments: &EndArguments) -> Result<EndReport, Failure> {
    let listening = |place: Listening| {
        // If nobody reads this, nobody sends.
        let _ = serde_json::to_string(&place).map(|place| print(&place));
    };
    match arguments.protocol {
        Protocol::Quinn => quic::receive(arguments, listening).await,
        Protocol::Strack | Protocol::Rocev2 => clearway::receive(arguments, listening).await,
    }
}

async fn send(arguments: &EndArguments) -> Result<EndReport, Failure> {
    match arguments.protocol {
        Protocol::Quinn => quic::send(arguments).await,
        Protocol::Strack | Protocol::Rocev2 => clearway::send(arguments).await,
    }
}

fn print(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}
