//! Common parts of commands that connect hosts.

mod arguments;
mod line_rate;

pub(crate) use arguments::ConnectionArguments;
pub(crate) use line_rate::LineRate;

use crate::failure::Failure;
use crate::messages::{say, warn};
use clearway_input::InputKind;
use clearway_report_text::{Align, Table};
use clearway_udp::net::{ConnectError, ConnectionSnapshot, new_key};
use clearway_udp::wire::PORT;
use clearway_udp::{PreSharedKey, Security, Settings};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use tokio::runtime::{Builder, Runtime};

pub(crate) fn runtime() -> io::Result<Runtime> {
    // Poll sockets in every turn: packets that wait in one socket while others are read would make a path look late.
    Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build()
}

/// Security settings from the arguments; a listener creates a missing key.
pub(crate) fn security(
    arguments: &ConnectionArguments,
    may_create: bool,
) -> Result<Security, Failure> {
    match &arguments.key {
        Some(path) => read_key(path, may_create).map(Security::Key),
        None if arguments.insecure => Ok(Security::Insecure),
        None => Err(Failure::new(
            "no key is given\n  fix: name a file with `--key FILE`; the listening end creates it with `clearway recv --key FILE` or `clearway perf --listen --key FILE`; copy it to the other end",
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
                true => "copy the file from the other end, where `clearway recv --key FILE` or `clearway perf --listen --key FILE` makes it".into(),
                false => error.fix(),
            };
            return Err(Failure::new(format!(
                "{place}: cannot read the key: {error}\n  fix: {fix}"
            )));
        }
        Ok(text) => text,
    };
    if text.trim().bytes().all(|digit| digit == b'0') && !text.trim().is_empty() {
        return Err(Failure::new(format!(
            "{place}: a key of zeros protects nothing\n  fix: remove the file and let the end that listens make one"
        )));
    }
    let key = PreSharedKey::from_hex(&text).ok_or_else(|| {
        Failure::new(format!(
            "{place}: this is not a key\n  fix: expected 64 hexadecimal digits, as in the file that the listening end creates"
        ))
    })?;
    warn_if_readable(path);
    Ok(key)
}

/// Warns of a key that others on this host can read.
#[cfg(unix)]
fn warn_if_readable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).map_or(0, |facts| facts.permissions().mode());
    if mode & 0o077 != 0 {
        let place = path.display();
        warn(&format!(
            "{place}: others on this host can read or change the key: `chmod 600 {place}`"
        ));
    }
}

#[cfg(not(unix))]
fn warn_if_readable(_path: &Path) {}

/// Warns of a connection that is not encrypted.
pub(crate) fn warn_if_insecure(settings: &Settings) {
    if settings.security == Security::Insecure {
        warn("nothing is encrypted: whoever sees packets can read and change them");
    }
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

/// Address of a host, with an optional port. If a name has several addresses, the first IPv4 address wins.
///
/// # Errors
/// If there is no such host.
pub fn resolve(host: &str) -> Result<SocketAddr, Failure> {
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

/// Address of a listener: the user's address, or all addresses of this host.
pub(crate) fn listening_at(listen: Option<&str>) -> Result<SocketAddr, Failure> {
    let Some(host) = listen else {
        return Ok(SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)));
    };
    let address = resolve(host)?;
    if is_local_name(host, address) {
        warn(&format!(
            "{host} is {} on this host, which no other host can reach: give `--listen` an address, or leave it out",
            address.ip()
        ));
    }
    Ok(address)
}

/// True for a name that is a loopback address only on its own host, like the entry for `127.0.1.1` in Debian's `/etc/hosts`.
fn is_local_name(host: &str, address: SocketAddr) -> bool {
    let is_name = host.parse::<IpAddr>().is_err() && host.parse::<SocketAddr>().is_err();
    is_name && address.ip().is_loopback() && !host.starts_with("localhost")
}

fn preferred(found: impl Iterator<Item = SocketAddr>) -> Option<SocketAddr> {
    found.min_by_key(|address| !address.is_ipv4())
}

pub(crate) fn refused(error: ConnectError) -> Failure {
    let fix = match &error {
        ConnectError::Closed(closed) => closed.fix(),
        ConnectError::Socket { .. } => "allow more open files, or give fewer `--paths`",
    };
    Failure::new(format!("{error}\n  fix: {fix}"))
}

pub(crate) fn no_socket(address: SocketAddr, error: &io::Error) -> Failure {
    let fix = match error.kind() {
        ErrorKind::AddrInUse => "end the program that uses this port, or give another one",
        _ => "give an address of this host, and a port that you may use",
    };
    Failure::new(format!("cannot listen at {address}: {error}\n  fix: {fix}"))
}

pub(crate) fn no_random(error: &io::Error) -> Failure {
    Failure::new(format!(
        "cannot make a key: {error}\n  fix: name a file with `--key`"
    ))
}

/// Number of usable paths and of all paths: `8 paths up`, `7 of 8 paths up`.
pub(crate) fn paths_up(snapshot: &ConnectionSnapshot) -> String {
    let up = snapshot.paths.iter().filter(|(up, _)| *up).count();
    match snapshot.paths.len() {
        1 if up == 1 => "1 path up".to_owned(),
        all if all == up => format!("{all} paths up"),
        all => format!("{up} of {all} paths up"),
    }
}

/// Table of a connection's paths, and the reason why some are avoided.
pub(crate) fn paths_text(snapshot: &ConnectionSnapshot) -> String {
    let mut paths = Table::new()
        .column("path", Align::Right)
        .column("state", Align::Left)
        .column("packets", Align::Right)
        .column("acknowledged", Align::Right)
        .column("marked", Align::Right)
        .column("silent", Align::Right);
    for (number, (up, path)) in snapshot.paths.iter().enumerate() {
        let state = match (up, path.sent) {
            (true, _) => "up",
            (false, 0) => "not answered yet",
            (false, _) => "avoided",
        };
        paths.row([
            number.to_string(),
            state.to_owned(),
            path.sent.to_string(),
            path.answered.to_string(),
            path.marked.to_string(),
            path.downs.to_string(),
        ]);
    }
    let mut text = paths.render(usize::MAX);
    let downs: u64 = snapshot.paths.iter().map(|(_, path)| path.downs).sum();
    if downs > 0 {
        text += "silent: times that packets of the path were not acknowledged while later ones of others were. It is avoided\n\
                 until it answers a challenge; where the network is well, a busy processor at the other end may be the cause.\n";
    }
    text
}

/// Paths of a connection as JSON.
pub(crate) fn paths_json(snapshot: &ConnectionSnapshot) -> Vec<Value> {
    let paths = snapshot.paths.iter().map(|(up, path)| {
        json!({
            "up": up,
            "sent_packets": path.sent,
            "acknowledged_packets": path.answered,
            "marked_packets": path.marked,
            "times_silent": path.downs,
        })
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_loopback_addresses_are_found_out() {
        let is_local = |host, address: &str| is_local_name(host, address.parse().unwrap());
        assert!(is_local("node1", "127.0.1.1:4794"));
        assert!(is_local("node1:5000", "[::1]:5000"));
        assert!(!is_local("node1", "192.0.2.1:4794"));
        // Users who write these names mean loopback.
        for host in ["localhost", "localhost:5000", "127.0.0.1", "127.0.0.1:5000"] {
            assert!(!is_local(host, "127.0.0.1:5000"), "{host}");
        }
    }
}
