//! Bytes that links of the kernel have carried, over time.
//!
//! A thread enters the namespace of each switch once and opens its `/proc/net/dev`, which stays bound to the namespace. Reading the file
//! then needs no process, so samples can be milliseconds apart on a machine that is busy with the hosts.

use crate::plan::{BedPlan, device};
use crate::simulate::watched_links;
use clearway_fabric::topology::{LinkId, Topology};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::thread;

/// Counters of one link: a file, and the device in it.
struct LinkFile {
    file: usize,
    device: String,
}

/// Counters of the links between switches.
pub(crate) struct LinkCounters {
    files: Vec<File>,
    links: Vec<LinkFile>,
}

impl LinkCounters {
    /// Opens the counters of a bed with kernel switches.
    pub(crate) fn open(plan: &BedPlan, topology: &Topology) -> io::Result<Self> {
        let ports = topology.ports();
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut namespaces = Vec::new();
        let mut links = Vec::new();
        for link in watched_links(topology) {
            let Some(switch) = sender(topology, link) else {
                continue;
            };
            let file = *numbers.entry(switch).or_insert_with(|| {
                namespaces.push(plan.switches[switch].clone());
                namespaces.len() - 1
            });
            links.push(LinkFile {
                file,
                device: device(topology, &ports, link),
            });
        }
        // A separate thread, so that this thread stays in its namespace.
        let opened = thread::spawn(move || namespaces.iter().map(|name| open_in(name)).collect());
        let files: io::Result<Vec<File>> = opened
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread has failed")));
        Ok(Self {
            files: files?,
            links,
        })
    }

    /// Bytes that each link has carried so far.
    pub(crate) fn read(&mut self) -> io::Result<Vec<u64>> {
        let mut texts = Vec::new();
        for file in &mut self.files {
            let mut text = String::new();
            file.rewind()?;
            file.read_to_string(&mut text)?;
            texts.push(text);
        }
        let bytes = |link: &LinkFile| sent_bytes(&texts[link.file], &link.device).unwrap_or(0);
        Ok(self.links.iter().map(bytes).collect())
    }
}

/// The switch at which a link begins.
fn sender(topology: &Topology, link: LinkId) -> Option<usize> {
    topology.switch_index(topology.link_ends(link).0)
}

fn open_in(namespace: &str) -> io::Result<File> {
    let handle = File::open(format!("/run/netns/{namespace}"))?;
    move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))?;
    File::open("/proc/thread-self/net/dev")
}

/// Bytes that a device has sent, by the text of `/proc/net/dev`.
fn sent_bytes(text: &str, device: &str) -> Option<u64> {
    let numbers = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == device).then(|| numbers.split_whitespace().nth(8)?.parse().ok())?
    };
    text.lines().find_map(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_sent_are_found() {
        let text = "Inter-|   Receive |  Transmit\n face |bytes ...\n    lo:  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    p10: 7 0 0 0 0 0 0 0 123456 12 0 0 0 0 0 0\n";
        assert_eq!(sent_bytes(text, "p10"), Some(123_456));
        assert_eq!(sent_bytes(text, "lo"), Some(9));
        assert_eq!(sent_bytes(text, "p1"), None);
    }
}
