//! The emulated fabric between devices, with commands on standard input.

use super::arguments::SoftswitchArguments;
use super::prepared::Prepared;
use super::report::Report;
use crate::failure::Failure;
use crate::messages::{say, warn};
use crate::output::print;
use clearway_lab::LinkId;
use clearway_runs::Stopwatch;
use clearway_softswitch::ActiveLinks;
use clearway_softswitch::tun::{
    CreatedNamespaces, Forwarder, ForwarderRequest, Outbox, Port, inbox,
};
use clearway_units::{HostId, Time};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};
use std::io;
use std::process::ExitCode;
use std::thread;

/// Names of the links by their numbers.
type Names = Vec<(LinkId, String)>;

pub(super) fn run(
    prepared: Prepared,
    arguments: &SoftswitchArguments,
) -> Result<ExitCode, Failure> {
    let stopwatch = Stopwatch::start();
    // Checked before anything exists that would have to be deleted.
    let (inbox, outbox) = inbox().map_err(|error| unavailable(&error))?;
    end_on_signals(&outbox).map_err(|error| unavailable(&error))?;
    let mut namespaces = CreatedNamespaces::default();
    let ports = open(&prepared, arguments, &mut namespaces)?;
    let topology = &prepared.assembly.topology;
    let named = |(id, _)| (id, topology.link_name(id));
    let names: Names = prepared.switch.links().map(named).collect();
    let mut forwarder =
        Forwarder::new(prepared.switch, ports, inbox).map_err(|error| unavailable(&error))?;
    if !arguments.quiet {
        let hosts = topology.hosts;
        say(&format!(
            "{}; {hosts} hosts, packets up to {} bytes; SIGTERM or Ctrl-C ends it",
            topology.summary, prepared.mtu
        ));
    }
    print("ready\n")?;
    let link_names = prepared.names;
    let end_with_input = arguments.end_with_input;
    // The thread ends with the process.
    thread::spawn(move || {
        obey(&link_names, &outbox);
        if end_with_input {
            outbox.stop();
        }
    });
    let on_counters = &mut |forwarder: &Forwarder, at: Time| {
        let report = report(forwarder, at, &names, &stopwatch);
        if let Err(failure) = print(&format!("{}\n", report.to_json())) {
            warn(failure.first_line());
        }
    };
    let end = forwarder
        .run(on_counters)
        .map_err(|error| unavailable(&error))?;
    let report = report(&forwarder, end, &names, &stopwatch);
    drop(forwarder);
    drop(namespaces);
    if arguments.json {
        print(&format!("{}\n", report.to_json()))?;
    } else if !arguments.quiet {
        print(&report.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The devices of all hosts.
fn open(
    prepared: &Prepared,
    arguments: &SoftswitchArguments,
    namespaces: &mut CreatedNamespaces,
) -> Result<Vec<Port>, Failure> {
    let mut ports = Vec::new();
    for host in 0..prepared.switch.hosts() {
        let name = format!("{}{host}", arguments.hosts);
        if arguments.create {
            namespaces
                .create(&name)
                .map_err(|error| Failure::new(format!("{error}\n  fix: {}", error.fix())))?;
        }
        let port = Port::open(&name, HostId(host), prepared.mtu)
            .map_err(|error| Failure::new(format!("{error}\n  fix: {}", error.fix())))?;
        ports.push(port);
    }
    Ok(ports)
}

fn end_on_signals(outbox: &Outbox) -> io::Result<()> {
    for signal in [SIGTERM, SIGINT] {
        let (stopped, wake) = outbox.for_signals()?;
        flag::register(signal, stopped)?;
        pipe::register(signal, wake)?;
    }
    Ok(())
}

/// Executes commands from standard input, line by line, until the input ends.
fn obey(names: &ActiveLinks, outbox: &Outbox) {
    for line in io::stdin().lines().map_while(Result::ok) {
        if line.trim() == "counters" {
            outbox.put(ForwarderRequest::Counters);
            continue;
        }
        match names.read(&line) {
            Ok(Some(command)) => outbox.put(ForwarderRequest::Change(command)),
            Ok(None) => {}
            Err(error) => say(&format!("error: {error}")),
        }
    }
}

fn report(forwarder: &Forwarder, at: Time, names: &Names, stopwatch: &Stopwatch) -> Report {
    let (switch, statistics) = (forwarder.switch(), forwarder.statistics());
    let late = &statistics.lateness;
    let links = switch.links().zip(names);
    Report {
        time: at.since(Time::ZERO),
        totals: switch.totals(),
        in_flight: switch.in_flight(),
        refused: statistics.refused,
        late: [late.at(500), late.at(990), late.longest()],
        cpu_seconds: stopwatch.cpu_seconds(),
        links: links
            .map(|((id, counters), (_, name))| (id, name.clone(), counters))
            .collect(),
    }
}

fn unavailable(error: &io::Error) -> Failure {
    Failure::new(format!(
        "cannot wait for packets: {error}\n  fix: allow more open files (`ulimit -n`), three and one for each host"
    ))
}
