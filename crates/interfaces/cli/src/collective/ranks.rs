//! The file of ranks, with one host per line.

use crate::failure::Failure;
use crate::hosts::resolve;
use clearway_collective::measure::MOST_RANKS;
use clearway_input::InputKind;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

/// Reads the addresses of all ranks; `rank` is the number of this rank.
pub(super) fn read(path: &Path, rank: u32) -> Result<Vec<SocketAddr>, Failure> {
    let place = path.display();
    let text = clearway_input::read_text(path, InputKind::RANKS).map_err(|error| {
        let fix = error.fix();
        Failure::new(format!(
            "{place}: cannot read the list of ranks: {error}\n  fix: {fix}"
        ))
    })?;
    let hosts = hosts(&text);
    let mut known: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    let mut addresses = Vec::new();
    for (line, host) in hosts {
        let at = |fault: String| Failure::new(format!("{place}:{line}: {fault}"));
        if host.contains(char::is_whitespace) {
            return Err(at(format!(
                "`{host}` is more than a host\n  fix: write one host on each line, and # before comments"
            )));
        }
        let address = resolve(host).map_err(|failure| at(failure.to_string()))?;
        if let Some(first) = known.insert(address, line) {
            return Err(at(format!(
                "{address} is the address of the rank in line {first}\n  fix: give each rank on the same host its own port, as in `{}:{}`",
                address.ip(),
                address.port().wrapping_add(1)
            )));
        }
        addresses.push(address);
    }
    if addresses.is_empty() {
        return Err(Failure::new(format!(
            "{place}: there are no ranks\n  fix: write the host of each rank on a separate line, with a port if it is not the usual one"
        )));
    }
    if addresses.len() > MOST_RANKS as usize {
        let ranks = addresses.len();
        return Err(Failure::new(format!(
            "{place}: there are {ranks} ranks, more than {MOST_RANKS}\n  fix: take fewer"
        )));
    }
    if rank as usize >= addresses.len() {
        let last = addresses.len() - 1;
        return Err(Failure::new(format!(
            "{place}: there is no rank {rank}: its ranks are 0 to {last}\n  fix: give one of these with `--rank`, or add the host"
        )));
    }
    Ok(addresses)
}

/// Lines with hosts, counted from 1.
fn hosts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    let hosts = lines.map(|(line, text)| (line, text.split('#').next().unwrap_or_default().trim()));
    hosts.filter(|(_, host)| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_are_no_ranks() {
        let text = "# both racks\n\n 192.0.2.1:4795  # the first\n\t[::1]:1\r\nhost\n";
        let found: Vec<_> = hosts(text).collect();
        assert_eq!(found, [(3, "192.0.2.1:4795"), (4, "[::1]:1"), (5, "host")]);
    }
}
