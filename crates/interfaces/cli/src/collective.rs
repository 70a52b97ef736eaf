//! `clearway collective`.

mod arguments;
mod ranks;
mod report;

pub(crate) use arguments::CollectiveArguments;

use crate::failure::Failure;
use crate::hosts::{no_random, security};
use crate::messages::{say, warn};
use crate::output::print;
use clearway_collective::blocking::{Group, RankListener};
use clearway_collective::measure::{CollectiveMeasurement, Measurement};
use clearway_collective::{GroupError, GroupSettings, Members, Pairs};
use clearway_udp::Security;
use clearway_udp::net::new_key;
use report::Report;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::thread::{self, JoinHandle};

pub(crate) fn collective(arguments: &CollectiveArguments) -> Result<ExitCode, Failure> {
    let steps = arguments.steps()?;
    match (arguments.loopback, &arguments.ranks, arguments.rank) {
        (Some(ranks), ..) => loopback(arguments, &steps, ranks),
        (None, Some(file), Some(rank)) => {
            let addresses = ranks::read(file, rank)?;
            let security = security(&arguments.connection, rank == 0)?;
            let own = addresses.get(rank as usize).copied();
            let peer = addresses.iter().find(|peer| Some(**peer) != own).copied();
            let group = (addresses.len() as u32, peer);
            let joining = joining(arguments, security, &steps, group)?;
            let members = Members { addresses, rank };
            let ranks = members.addresses.len() as u32;
            let own = members.addresses[rank as usize];
            let address = members.listening_at().unwrap_or(own);
            let listener =
                RankListener::bind(address, rank, ranks, joining).map_err(|e| failure(&e))?;
            take_part(arguments, &steps, listener, members)
        }
        // The argument parser excludes this case.
        _ => Err(Failure::new(
            "there are no ranks\n  fix: give `--loopback N`, or `--ranks FILE` with `--rank N`",
        )),
    }
}

pub(super) fn failure(error: &GroupError) -> Failure {
    Failure::new(format!("{error}\n  fix: {}", error.fix()))
}

fn joining(
    arguments: &CollectiveArguments,
    security: Security,
    steps: &[Measurement],
    (ranks, peer): (u32, Option<SocketAddr>),
) -> Result<GroupSettings, Failure> {
    let mut joining = GroupSettings::new(security.clone());
    let (receive, send) = (
        joining.settings.receive_memory,
        joining.settings.send_memory,
    );
    let line_rate = arguments.connection.line_rate(peer);
    joining.settings = arguments.connection.settings(security, &line_rate);
    (
        joining.settings.receive_memory,
        joining.settings.send_memory,
    ) = (receive, send);
    joining.settings.idle = arguments.idle;
    joining.wait = arguments.wait;
    joining.task = arguments.task();
    let mut plans = Vec::new();
    for step in steps {
        let pair = step
            .plans(ranks)
            .map_err(|error| Failure::new(format!("{error}\n  fix: {}", error.fix)))?;
        plans.extend(pair);
    }
    joining.pairs = Pairs::Of(plans);
    Ok(joining)
}

/// Runs all ranks in this process, one thread for each.
fn loopback(
    arguments: &CollectiveArguments,
    steps: &[Measurement],
    ranks: u32,
) -> Result<ExitCode, Failure> {
    let security = match (arguments.connection.insecure, &arguments.connection.key) {
        (false, None) => Security::Key(new_key().map_err(|error| no_random(&error))?),
        _ => security(&arguments.connection, true)?,
    };
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let joining = joining(arguments, security, steps, (ranks, Some(local)))?;
    let bind = |rank| RankListener::bind(local, rank, ranks, joining.clone());
    let listeners: Result<Vec<RankListener>, GroupError> = (0..ranks).map(bind).collect();
    let listeners = listeners.map_err(|error| failure(&error))?;
    let addresses: Vec<SocketAddr> = listeners.iter().map(RankListener::address).collect();
    let mut listeners = (0..).zip(listeners);
    let first = listeners.next();
    let others: Vec<JoinHandle<Result<u64, GroupError>>> = listeners
        .map(|(rank, listener)| {
            let (steps, addresses) = (steps.to_vec(), addresses.clone());
            let members = Members { addresses, rank };
            thread::spawn(move || {
                let mut group = listener.join(members, &mut || true)?;
                let mut wrong = 0;
                for step in &steps {
                    wrong += step.run(&mut group)?.wrong.unwrap_or(0);
                }
                group.leave()?;
                Ok(wrong)
            })
        })
        .collect();
    let Some((rank, listener)) = first else {
        return Err(Failure::new(
            "there are no ranks\n  fix: give `--loopback` 1 or more",
        ));
    };
    let result = take_part(arguments, steps, listener, Members { addresses, rank });
    for other in others {
        // A rank that panics has printed its message, and the other ranks have lost their connections to it.
        if let Ok(Err(error)) = other.join()
            && result.is_ok()
        {
            return Err(failure(&error));
        }
    }
    result
}

/// Runs one rank; rank 0 prints.
fn take_part(
    arguments: &CollectiveArguments,
    steps: &[Measurement],
    listener: RankListener,
    members: Members,
) -> Result<ExitCode, Failure> {
    let rank = members.rank;
    let report = Report {
        arguments,
        algorithm: arguments.algorithm()?,
        addresses: members.addresses.clone(),
    };
    if arguments.connection.insecure && (rank == 0 || arguments.loopback.is_none()) {
        warn("nothing is encrypted: whoever sees packets can read and change them");
    }
    let prints = rank == 0 && !arguments.print.quiet && !arguments.print.json;
    let is_waiting = !arguments.print.quiet && arguments.loopback.is_none();
    if is_waiting {
        let others = members.addresses.len() - 1;
        say(&format!(
            "rank {rank} is up at {}; waiting for {others} others",
            listener.address()
        ));
    }
    let mut group = listener
        .join(members, &mut || true)
        .map_err(|error| failure(&error))?;
    if prints {
        print(&report.head())?;
    }
    let measured = measure(&mut group, steps, |measured| match prints {
        true => print(&report.row(measured)),
        false => Ok(()),
    })?;
    group.leave().map_err(|error| failure(&error))?;
    if prints {
        print(&report.foot(&measured))?;
    }
    if rank == 0 && arguments.print.json {
        print(&format!("{}\n", report.to_json(&measured)))?;
    }
    let wrong: u64 = measured.iter().filter_map(|row| row.wrong).sum();
    Ok(match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

fn measure(
    group: &mut Group,
    steps: &[Measurement],
    mut on_measured: impl FnMut(&CollectiveMeasurement) -> Result<(), Failure>,
) -> Result<Vec<CollectiveMeasurement>, Failure> {
    let mut all = Vec::new();
    for step in steps {
        let measured = step.run(group).map_err(|error| failure(&error))?;
        on_measured(&measured)?;
        all.push(measured);
    }
    Ok(all)
}
