//! `clearway send` and `clearway recv`.

mod arguments;
mod display;
mod report;

pub(crate) use arguments::{RecvArguments, SendArguments};

use crate::failure::Failure;
use crate::hosts::{
    listening_at, no_socket, refused, resolve, runtime, security, warn_if_insecure,
};
use crate::messages::{say, warn};
use crate::output::print;
use crate::progress::{Console, Interrupt};
use clearway_report::quantity;
use clearway_transfer::{
    PARTIAL_FOLDER, ReceiveLimits, ReceiveStore, SourceError, Sources, TransferError, Unfinished,
    receive, shown,
};
use clearway_udp::net::{Channel, ConnectError, Server, connect};
use clearway_udp::{Limits, Security, Settings};
use display::Display;
use report::Report;
use std::fs;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;

/// Exit code of an interrupted command.
const INTERRUPTED: u8 = 130;
/// Interval between checks for Ctrl-C.
const TICK: Duration = Duration::from_millis(100);
/// Maximum number of listed folder entries that are not sent, for each kind.
const MOST_SKIPPED: usize = 5;

pub(crate) fn send(arguments: &SendArguments) -> Result<ExitCode, Failure> {
    let server = resolve(&arguments.host)?;
    let security = security(&arguments.connection, false)?;
    let sources = Sources::find(&arguments.files).map_err(|error| no_source(&error))?;
    say_skipped(&sources, arguments.print.quiet);
    if sources.files().len() == 0 {
        return Err(Failure::new(
            "there is no file in these folders\n  fix: name files, or folders with files in them",
        ));
    }
    let interrupt = Interrupt::install();
    let console = Arc::new(Console::new(arguments.print.quiet || arguments.print.json));
    let runtime = runtime().map_err(|error| no_socket(server, &error))?;
    let line_rate = arguments.connection.line_rate(Some(server));
    let settings = arguments.connection.settings(security, &line_rate);
    runtime.block_on(send_all(
        arguments,
        server,
        settings,
        Arc::new(sources),
        console,
        interrupt,
    ))
}

fn no_source(error: &SourceError) -> Failure {
    Failure::new(format!("{error}\n  fix: {}", error.fix()))
}

fn say_skipped(sources: &Sources, quiet: bool) {
    let remarks = [
        ("links, devices and pipes", sources.skipped()),
        ("partial files of transfers", sources.partial_folders()),
    ];
    for (what, paths) in remarks {
        if quiet || paths.is_empty() {
            continue;
        }
        let listed = paths.iter().take(MOST_SKIPPED);
        let listed: Vec<_> = listed.map(|path| shown(path)).collect();
        let more = match paths.len().saturating_sub(MOST_SKIPPED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        warn(&format!("{what} are not sent: {}{more}", listed.join(", ")));
    }
}

/// Attempts to send in sequence, until one succeeds or the retry time is over.
async fn send_all(
    arguments: &SendArguments,
    server: SocketAddr,
    settings: Settings,
    sources: Arc<Sources>,
    console: Arc<Console>,
    interrupt: Interrupt,
) -> Result<ExitCode, Failure> {
    let mut patience = RetryBackoff::with_time_left(arguments.retry);
    loop {
        let (sources, console) = (Arc::clone(&sources), Arc::clone(&console));
        let conditions = (settings.clone(), console, interrupt.clone());
        let broken = match send_once(arguments, server, conditions, sources).await {
            Attempt::Over(ended) => return ended,
            Attempt::Broken(broken) => broken,
        };
        if broken.has_moved {
            patience = RetryBackoff::with_time_left(arguments.retry);
        }
        let Some(wait) = patience.wait() else {
            return Err(broken.failure);
        };
        if !arguments.print.quiet {
            say(&format!(
                "{}; trying again in {} s",
                broken.reason,
                wait.as_secs()
            ));
        }
        let waited = unless_interrupted(&interrupt, tokio::time::sleep(wait)).await;
        if waited.is_none() {
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
}

/// Waits between attempts, within a total retry time.
struct RetryBackoff {
    /// Remaining waiting time.
    left: Duration,
    /// Next wait.
    next: Duration,
}

impl RetryBackoff {
    /// Longest wait between two attempts. The first wait is one second, and each further wait is twice the previous wait.
    const LONGEST: Duration = Duration::from_secs(16);

    fn with_time_left(left: Duration) -> Self {
        let next = Duration::from_secs(1);
        Self { left, next }
    }

    /// Wait before the next attempt; `None` if the retry time is over.
    fn wait(&mut self) -> Option<Duration> {
        let wait = self.next.min(self.left);
        self.left -= wait;
        self.next = (2 * self.next).min(Self::LONGEST);
        (!wait.is_zero()).then_some(wait)
    }
}

/// End of an attempt.
enum Attempt {
    /// The command ends without another attempt.
    Over(Result<ExitCode, Failure>),
    /// The receiver does not answer, or no longer answers.
    Broken(Broken),
}

/// Failed attempt that may succeed later.
struct Broken {
    reason: String,
    failure: Failure,
    /// Some data has arrived.
    has_moved: bool,
}

/// Result of an attempt without a connection.
fn unconnected(error: ConnectError) -> Attempt {
    let may_pass = matches!(&error, ConnectError::Closed(closed) if closed.may_pass());
    let (reason, failure) = (error.to_string(), refused(error));
    match may_pass {
        true => Attempt::Broken(Broken {
            reason,
            failure,
            has_moved: false,
        }),
        false => Attempt::Over(Err(failure)),
    }
}

async fn send_once(
    arguments: &SendArguments,
    server: SocketAddr,
    (settings, console, interrupt): (Settings, Arc<Console>, Interrupt),
    sources: Arc<Sources>,
) -> Attempt {
    let encrypted = settings.security != Security::Insecure;
    let connecting = unless_interrupted(&interrupt, connect(server, settings.clone()));
    let Some(connected) = connecting.await else {
        return Attempt::Over(Ok(ExitCode::from(INTERRUPTED)));
    };
    let channel = match connected {
        Ok(channel) => channel,
        Err(error) => return unconnected(error),
    };
    warn_if_insecure(&settings);
    let mut display = Display::new(&channel, console, interrupt, String::new());
    let ended = clearway_transfer::send(&channel, sources, &mut display).await;
    display.finish();
    let report = Report {
        sends: true,
        peer: server,
        encrypted,
        progress: ended.progress,
        seconds: display.stopwatch.wall_seconds(),
        snapshot: channel.snapshot(),
        failures: &display.failures,
        unfinished: &[],
        error: ended.error.as_ref().map(ToString::to_string),
    };
    if let Err(failure) = show(&report, arguments.print.json, arguments.print.quiet) {
        return Attempt::Over(Err(failure));
    }
    let failed = display.failure();
    match ended.error {
        None => Attempt::Over(failed.map(|()| ExitCode::SUCCESS)),
        Some(TransferError::Interrupted) => {
            say("interrupted: the receiver keeps the received data, and the same command goes on");
            Attempt::Over(Ok(ExitCode::from(INTERRUPTED)))
        }
        Some(error) => {
            let has_moved = ended.progress.moved > 0;
            let kept = match has_moved {
                false => "",
                true => "; the receiver keeps the received data, and the same command goes on",
            };
            let fix = format!("{}{kept}", error.fix());
            let broken = Failure::new(format!("{server}: {error}\n  fix: {fix}"));
            match (failed, error.may_pass()) {
                (Ok(()), true) => Attempt::Broken(Broken {
                    reason: error.to_string(),
                    failure: broken,
                    has_moved,
                }),
                (failed, _) => {
                    let both = Failure::all([failed, Err(broken)]);
                    Attempt::Over(both.map(|()| ExitCode::SUCCESS))
                }
            }
        }
    }
}

/// Prints a report: JSON, tables or nothing.
fn show(report: &Report<'_>, json: bool, quiet: bool) -> Result<(), Failure> {
    if json {
        return print(&format!("{}\n", report.to_json()));
    }
    match quiet || report.error.is_some() {
        true => Ok(()),
        false => print(&report.to_text()),
    }
}

/// Waits for a future, unless the user presses Ctrl-C.
async fn unless_interrupted<F: Future>(interrupt: &Interrupt, waits: F) -> Option<F::Output> {
    let mut waits = pin!(waits);
    let mut ticks = tokio::time::interval(TICK);
    poll_fn(|cx| {
        if let Poll::Ready(output) = waits.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        while ticks.poll_tick(cx).is_ready() {
            if interrupt.is_raised() {
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    })
    .await
}

/// Settings for receiving transfers.
#[derive(Clone)]
struct Receiver {
    console: Arc<Console>,
    interrupt: Interrupt,
    bounds: ReceiveLimits,
    encrypted: bool,
    once: bool,
    json: bool,
    quiet: bool,
    folder: String,
}

pub(crate) fn recv(arguments: &RecvArguments) -> Result<ExitCode, Failure> {
    let address = listening_at(arguments.listen.as_deref())?;
    let line_rate = arguments.connection.line_rate(None);
    let settings = arguments
        .connection
        .settings(security(&arguments.connection, true)?, &line_rate);
    let store = open_store(&arguments.out, arguments.overwrite)?;
    let receiver = Receiver {
        console: Arc::new(Console::new(arguments.print.quiet || arguments.print.json)),
        interrupt: Interrupt::install(),
        bounds: ReceiveLimits {
            files: arguments.files,
            bytes: arguments.limit,
        },
        encrypted: settings.security != Security::Insecure,
        once: arguments.once,
        json: arguments.print.json,
        quiet: arguments.print.quiet,
        folder: arguments.out.display().to_string(),
    };
    let runtime = runtime().map_err(|error| no_socket(address, &error))?;
    runtime.block_on(receive_all(address, settings, store, receiver))
}

fn open_store(folder: &Path, overwrite: bool) -> Result<ReceiveStore, Failure> {
    let opened = fs::create_dir_all(folder).and_then(|()| ReceiveStore::open(folder, overwrite));
    opened.map_err(|error| {
        let folder = folder.display();
        Failure::new(format!("{folder}: cannot use it as a folder: {error}\n  fix: give `--out` a folder in which you may write"))
    })
}

async fn receive_all(
    address: SocketAddr,
    settings: Settings,
    store: ReceiveStore,
    receiver: Receiver,
) -> Result<ExitCode, Failure> {
    warn_if_insecure(&settings);
    let server = Server::bind(address, settings, Limits::default())
        .map_err(|error| no_socket(address, &error))?;
    if !receiver.quiet {
        say(&format!(
            "listening at {}; Ctrl-C ends it",
            server.address()
        ));
    }
    let mut transfers = JoinSet::new();
    while let Some(channel) = unless_interrupted(&receiver.interrupt, server.accept()).await {
        if receiver.once {
            return receive_one(channel, store, receiver).await;
        }
        reap(&mut transfers);
        let (store, receiver) = (store.another(), receiver.clone());
        transfers.spawn(async move {
            if let Err(failure) = receive_one(channel, store, receiver).await {
                failure.report();
            }
        });
    }
    reap(&mut transfers);
    let code = match transfers.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(INTERRUPTED),
    };
    // Each transfer notices the interrupt and reports its partial files.
    transfers.join_all().await;
    Ok(code)
}

/// Removes finished transfers.
fn reap(transfers: &mut JoinSet<()>) {
    while let Some(ended) = transfers.try_join_next() {
        // Transfers are never cancelled, so an error is a panic: a defect of `clearway`.
        ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    }
}

async fn receive_one(
    channel: Channel,
    store: ReceiveStore,
    receiver: Receiver,
) -> Result<ExitCode, Failure> {
    let peer = channel.peer();
    let title = format!("from {peer}: ");
    let mut display = Display::new(
        &channel,
        Arc::clone(&receiver.console),
        receiver.interrupt,
        title.clone(),
    );
    let received = receive(&channel, store, receiver.bounds, &mut display).await;
    display.finish();
    let report = Report {
        sends: false,
        peer,
        encrypted: receiver.encrypted,
        progress: received.progress,
        seconds: display.stopwatch.wall_seconds(),
        snapshot: channel.snapshot(),
        failures: &display.failures,
        unfinished: &received.unfinished,
        error: received.error.as_ref().map(ToString::to_string),
    };
    show(&report, receiver.json, receiver.quiet)?;
    let kept = kept(&received.unfinished, &receiver.folder);
    let failed = display.failure();
    match received.error {
        None => failed.map(|()| ExitCode::SUCCESS),
        Some(TransferError::Interrupted) => {
            say(&format!("{title}interrupted{kept}"));
            Ok(ExitCode::from(INTERRUPTED))
        }
        Some(error) => {
            let broken = Err(Failure::new(format!(
                "{title}{error}{kept}\n  fix: {}",
                error.fix()
            )));
            Failure::all([failed, broken]).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Text about the partial files that are kept, and how to continue.
fn kept(unfinished: &[Unfinished], folder: &str) -> String {
    let Some(first) = unfinished.first() else {
        return String::new();
    };
    let more = match unfinished.len() - 1 {
        0 => String::new(),
        1 => ", and a part of another file".to_owned(),
        more => format!(", and parts of {more} other files"),
    };
    let [bytes, size] = [first.bytes, first.size].map(quantity::bytes);
    let name = &first.name;
    format!(
        "; {bytes} of the {size} of {name} are kept{more} in {folder}/{PARTIAL_FOLDER}: the same command of the sender goes on"
    )
}
