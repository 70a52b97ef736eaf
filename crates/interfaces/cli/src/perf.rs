//! `clearway perf`.

mod arguments;
mod report;

pub(crate) use arguments::PerfArguments;

use crate::failure::Failure;
use crate::hosts::{
    listening_at, no_random, no_socket, refused, resolve, runtime, security, warn_if_insecure,
};
use crate::messages::say;
use crate::output::print;
use clearway_runs::Stopwatch;
use clearway_udp::net::perf::{DONE, PerfError, PerfPlan, PerfProgress, Pool, measure, serve};
use clearway_udp::net::{Channel, Server, connect, new_key};
use clearway_udp::{Limits, Security, SendError, Settings};
use clearway_units::Span;
use report::Report;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

/// Messages of 64 bytes that the server returns, one after the other.
const ECHOES: usize = 1_000;

pub(crate) fn perf(arguments: &PerfArguments) -> Result<ExitCode, Failure> {
    if let Some(address) = &arguments.listen {
        let address = listening_at(address.as_deref())?;
        return listen(arguments, address);
    }
    if let Some(host) = &arguments.host {
        let server = resolve(host)?;
        let security = security(&arguments.connection, false)?;
        return client(arguments, security, server);
    }
    let security = match (arguments.connection.insecure, &arguments.connection.key) {
        (false, None) => Security::Key(new_key().map_err(|error| no_random(&error))?),
        _ => security(&arguments.connection, true)?,
    };
    let line_rate = arguments.connection.line_rate(Some(loopback()));
    let settings = arguments.connection.settings(security.clone(), &line_rate);
    let (tell, told) = mpsc::channel();
    // The thread ends with the process.
    thread::spawn(move || {
        let started = runtime().map_err(|error| no_socket(loopback(), &error));
        match started {
            Ok(runtime) => runtime.block_on(serve_all(settings, loopback(), |address| {
                let _ = tell.send(address);
            })),
            Err(failure) => {
                let _ = tell.send(Err(failure));
            }
        }
    });
    let ended = |_| Failure::new("the receiving end has not begun\n  fix: see the message above");
    let server = told.recv().map_err(ended)??;
    client(arguments, security, server)
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Answers measurements until the process ends.
fn listen(arguments: &PerfArguments, address: SocketAddr) -> Result<ExitCode, Failure> {
    let line_rate = arguments.connection.line_rate(None);
    let settings = arguments
        .connection
        .settings(security(&arguments.connection, true)?, &line_rate);
    let runtime = runtime().map_err(|error| no_socket(address, &error))?;
    let mut failure = None;
    runtime.block_on(serve_all(settings, address, |bound| match bound {
        Ok(address) => say(&format!("listening at {address}; Ctrl-C ends it")),
        Err(error) => failure = Some(error),
    }));
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Listens and serves all clients, after reporting the address to `tell`; returns immediately if it cannot listen.
async fn serve_all(
    settings: Settings,
    address: SocketAddr,
    tell: impl FnOnce(Result<SocketAddr, Failure>),
) {
    let pool = Pool::default();
    let buffers = pool.clone();
    let acceptors =
        Box::new(move || -> Box<dyn clearway_udp::Acceptor> { Box::new(buffers.clone()) });
    let server = match Server::bind_with(address, settings, Limits::default(), acceptors) {
        Ok(server) => server,
        Err(error) => return tell(Err(no_socket(address, &error))),
    };
    tell(Ok(server.address()));
    loop {
        let channel = server.accept().await;
        let pool = pool.clone();
        tokio::spawn(async move { serve(&channel, &pool).await });
    }
}

fn client(
    arguments: &PerfArguments,
    security: Security,
    server: SocketAddr,
) -> Result<ExitCode, Failure> {
    let line_rate = arguments.connection.line_rate(Some(server));
    let settings = arguments.connection.settings(security, &line_rate);
    let plan = PerfPlan {
        time: arguments.time,
        message: arguments.message,
        small_time: arguments.time / 5,
        echoes: ECHOES,
        interval: Span::from_ms(1_000),
    };
    let shows = !arguments.print.json && !arguments.print.quiet;
    let runtime = runtime().map_err(|error| no_socket(server, &error))?;
    let report = runtime.block_on(async {
        let channel = connect(server, settings.clone()).await.map_err(refused)?;
        warn_if_insecure(&settings);
        let stopwatch = Stopwatch::start();
        let mut cpu = 0.0;
        let on_progress = |progress: PerfProgress<'_>| match progress {
            PerfProgress::Interval(interval) if shows => {
                say(&report::line(interval, &channel.snapshot()));
            }
            PerfProgress::Interval(_) => {}
            PerfProgress::Arrived => cpu = stopwatch.cpu_seconds(),
        };
        let measured = measure(&channel, &plan, on_progress).await;
        let measured = measured.map_err(|error| broken(&channel, &error))?;
        channel.shut_down(DONE).await;
        Ok::<_, Failure>(Report {
            both_ends: arguments.loopback,
            peer: server,
            settings,
            line_rate,
            measured,
            cpu_seconds: cpu,
        })
    })?;
    if arguments.print.json {
        print(&format!("{}\n", report.to_json()))?;
    } else if !arguments.print.quiet {
        print(&report.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn broken(channel: &Channel, error: &PerfError) -> Failure {
    let fix = match &error {
        PerfError::Closed(closed) => closed.fix(),
        PerfError::Send(SendError::TooLong { .. }) => "give a shorter `--message`",
        PerfError::Send(_) => "see what the other end says",
        PerfError::Miscounted { .. } => "use the same release at both ends",
    };
    Failure::new(format!("{}: {error}\n  fix: {fix}", channel.peer()))
}
