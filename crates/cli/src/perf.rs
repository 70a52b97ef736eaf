//! `clearway perf`.

mod arguments;
mod report;

pub(crate) use arguments::PerfArguments;

use crate::failure::Failure;
use crate::messages::{say, warn};
use crate::output::print;
use clearway_input::InputKind;
use clearway_runs::Stopwatch;
use clearway_udp::net::perf::{DONE, Interval, PerfError, Plan, Pool, measure, serve};
use clearway_udp::net::{Channel, ConnectError, Server, connect, new_key};
use clearway_udp::wire::PORT;
use clearway_udp::{Limits, PreSharedKey, Security, SendError, Settings};
use clearway_units::Span;
use report::Report;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use tokio::runtime::{Builder, Runtime};

/// Messages of 64 bytes that are sent back one after the other.
const ECHOES: usize = 1_000;

pub(crate) fn perf(arguments: &PerfArguments) -> Result<ExitCode, Failure> {
    if let Some(address) = &arguments.listen {
        let address = resolve(address)?;
        return listen(arguments, address);
    }
    if let Some(host) = &arguments.host {
        let server = resolve(host)?;
        let security = security(arguments, false)?;
        return client(arguments, security, server);
    }
    let security = match (arguments.insecure, &arguments.key) {
        (false, None) => Security::Key(new_key().map_err(|error| no_random(&error))?),
        _ => security(arguments, true)?,
    };
    let settings = settings(arguments, security.clone());
    let (tell, told) = mpsc::channel();
    // It ends with the process.
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

fn runtime() -> io::Result<Runtime> {
    // Sockets are read in every turn: what one has while others are read would look like a path that is late.
    Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build()
}

/// Answers measurements until the process is ended.
fn listen(arguments: &PerfArguments, address: SocketAddr) -> Result<ExitCode, Failure> {
    let settings = settings(arguments, security(arguments, true)?);
    let runtime = runtime().map_err(|error| no_socket(address, &error))?;
    let mut failure = None;
    runtime.block_on(serve_all(settings, address, |bound| match bound {
        Ok(address) => say(&format!("listening at {address}; Ctrl-C ends it")),
        Err(error) => failure = Some(error),
    }));
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Listens and serves all that connect, after telling where; returns at once if it cannot listen.
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
    let insecure = security == Security::Insecure;
    let settings = settings(arguments, security);
    let plan = Plan {
        time: arguments.time,
        message: arguments.message,
        small_time: arguments.time / 5,
        echoes: ECHOES,
        interval: Span::from_ms(1_000),
    };
    let shows = !arguments.json && !arguments.quiet;
    let runtime = runtime().map_err(|error| no_socket(server, &error))?;
    let report = runtime.block_on(async {
        let channel = connect(server, settings.clone()).await.map_err(refused)?;
        if insecure {
            warn("nothing is encrypted: whoever sees packets can read and change them");
        }
        let stopwatch = Stopwatch::start();
        let on_interval = |interval: &Interval| {
            if shows {
                say(&report::line(interval));
            }
        };
        let measured = measure(&channel, &plan, on_interval).await;
        let cpu = stopwatch.cpu_seconds();
        let measured = measured.map_err(|error| broken(&channel, &error))?;
        channel.shut_down(DONE).await;
        Ok::<_, Failure>(Report {
            both_ends: arguments.loopback,
            peer: server,
            settings,
            measured,
            cpu_seconds: cpu,
        })
    })?;
    if arguments.json {
        print(&format!("{}\n", report.to_json()))?;
    } else if !arguments.quiet {
        print(&report.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(arguments: &PerfArguments, security: Security) -> Settings {
    Settings {
        transport: arguments.transport.into(),
        paths: arguments.paths,
        line_rate: arguments.line_rate,
        datagram: arguments.datagram,
        ..Settings::new(security)
    }
}

/// Security by the arguments; a listener's key is made if there is none.
fn security(arguments: &PerfArguments, may_create: bool) -> Result<Security, Failure> {
    match &arguments.key {
        Some(path) => read_key(path, may_create).map(Security::Key),
        None if arguments.insecure => Ok(Security::Insecure),
        None => Err(Failure::new(
            "there is no key\n  fix: name a file with `--key FILE`; `clearway perf --listen --key FILE` makes one, to be copied to the other end",
        )),
    }
}

fn read_key(path: &Path, may_create: bool) -> Result<PreSharedKey, Failure> {
    let place = path.display();
    let text = match clearway_input::read_text(path, InputKind::KEY) {
        Err(error) if error.is_missing() && may_create => {
            let key = new_key().map_err(|error| no_random(&error))?;
            write_key(path, &key).map_err(|error| {
                Failure::new(format!("{place}: cannot write the new key: {error}\n  fix: name a file in a folder that you may write"))
            })?;
            say(&format!(
                "made a new key in {place}: copy it to the other end"
            ));
            return Ok(key);
        }
        Err(error) => {
            let fix = match error.is_missing() {
                true => "copy the file from the other end, where `clearway perf --listen --key FILE` makes it".into(),
                false => error.fix(),
            };
            return Err(Failure::new(format!(
                "{place}: cannot read the key: {error}\n  fix: {fix}"
            )));
        }
        Ok(text) => text,
    };
    PreSharedKey::from_hex(&text).ok_or_else(|| {
        Failure::new(format!(
            "{place}: this is no key\n  fix: expected 64 hexadecimal digits, as `clearway perf --listen --key FILE` writes them into a new file"
        ))
    })
}

/// Writes a key into a new file that only its owner can read.
fn write_key(path: &Path, key: &PreSharedKey) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
        .open(path)?
        .write_all(format!("{}\n", key.to_hex()).as_bytes())
}

/// Address of a host, whose port may be left out. Of several the first of version 4 counts, as listeners have it by default.
fn resolve(host: &str) -> Result<SocketAddr, Failure> {
    let found = match host.parse() {
        Ok(ip) => Ok(Some(SocketAddr::new(ip, PORT))),
        Err(_)
            if host
                .rsplit_once(':')
                .is_some_and(|(_, port)| port.parse::<u16>().is_ok()) =>
        {
            host.to_socket_addrs().map(preferred)
        }
        Err(_) => (host, PORT).to_socket_addrs().map(preferred),
    };
    match found {
        Ok(Some(address)) => Ok(address),
        _ => Err(Failure::new(format!(
            "there is no host `{host}`\n  fix: give a name or an address, and a port if it is not {PORT}: `192.0.2.1:{PORT}`"
        ))),
    }
}

fn preferred(found: impl Iterator<Item = SocketAddr>) -> Option<SocketAddr> {
    found.min_by_key(|address| !address.is_ipv4())
}

fn refused(error: ConnectError) -> Failure {
    let fix = match &error {
        ConnectError::Closed(closed) => closed.fix(),
        ConnectError::Socket { .. } => "allow more open files, or give fewer `--paths`",
    };
    Failure::new(format!("{error}\n  fix: {fix}"))
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

fn no_socket(address: SocketAddr, error: &io::Error) -> Failure {
    let fix = match error.kind() {
        ErrorKind::AddrInUse => "end the program that uses this port, or give another one",
        _ => "give an address of this host, and a port that you may use",
    };
    Failure::new(format!("cannot listen at {address}: {error}\n  fix: {fix}"))
}

fn no_random(error: &io::Error) -> Failure {
    Failure::new(format!(
        "cannot make a key: {error}\n  fix: name a file with `--key`"
    ))
}
