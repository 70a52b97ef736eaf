//! Real packets between network namespaces. Needs root, `ip` and TUN devices.

#![cfg(target_os = "linux")]

use clearway_fabric::SwitchParameters;
use clearway_fabric::topology::{Routes, leaf_spine};
use clearway_softswitch::tun::{
    CreatedNamespaces, DEVICE, Forwarder, ForwarderRequest, Outbox, Port, PortError, inbox, within,
};
use clearway_softswitch::{
    ActiveLinks, FabricPlan, ForwardedLinkCounters, SoftSwitch, address_of, address_v6_of,
};
use clearway_testing::skip;
use clearway_units::{Bytes, HostId, ParameterSet, Rate, Span, Value};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longer than any packet takes, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Counters of the links by their names.
type Counted = BTreeMap<String, ForwardedLinkCounters>;

/// Four hosts on two leaves with two spines, which runs in a thread of its own.
struct Bed {
    prefix: String,
    names: ActiveLinks,
    outbox: Outbox,
    running: JoinHandle<Counted>,
}

impl Bed {
    /// The bed, or `None` and a skip where namespaces cannot be had.
    fn start(name: &str) -> Option<Self> {
        let prefix = format!("cw-test-{}-{name}-", std::process::id());
        let mut namespaces = CreatedNamespaces::default();
        let wire = (Rate::from_bps(200_000_000), Span::from_us(100));
        let topology = leaf_spine(4, 2, 2, 1, wire, wire).unwrap();
        let mut ports = Vec::new();
        for host in 0..4 {
            let name = format!("{prefix}{host}");
            let port = namespaces
                .create(&name)
                .map_err(|error| error.to_string())
                .and_then(|()| {
                    Port::open(&name, HostId(host), 1500).map_err(|error| error.to_string())
                });
            match port {
                Ok(port) => ports.push(port),
                Err(why) => {
                    skip(
                        "namespaces",
                        &format!("{why}; no packet crossed the fabric"),
                    );
                    return None;
                }
            }
        }
        let mut parameters = SwitchParameters::default();
        let queue = Value::Text("1MB".into());
        parameters.set("queue", &queue).unwrap();
        let plan = FabricPlan {
            topology: &topology,
            routes: Routes::compute(&topology).unwrap(),
            switch: &parameters,
            propagation_rtt: Span::from_us(800),
            host_queue: Bytes::new(1_000_000),
            longest_packet: 1500,
            seed: 1,
        };
        let (inbox, outbox) = inbox().unwrap();
        let mut forwarder = Forwarder::new(SoftSwitch::new(&plan).unwrap(), ports, inbox).unwrap();
        let names = ActiveLinks::from_topology(&topology);
        let running = thread::spawn(move || {
            forwarder.run(&mut |_, _| {}).unwrap();
            // Namespaces stay until the devices are gone.
            let links = forwarder.switch().links();
            let counted = links.map(|(id, counters)| (topology.link_name(id), counters));
            let counted = counted.collect();
            drop(forwarder);
            drop(namespaces);
            counted
        });
        Some(Self {
            prefix,
            names,
            outbox,
            running,
        })
    }

    fn command(&self, line: &str) {
        let command = self.names.read(line).unwrap().unwrap();
        self.outbox.put(ForwarderRequest::Change(command));
    }

    /// A socket of a host.
    fn socket(&self, host: u32, address: IpAddr) -> UdpSocket {
        let bound = within(&format!("{}{host}", self.prefix), || {
            UdpSocket::bind(SocketAddr::new(address, 0))
        });
        let socket = bound.unwrap().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    fn v4(&self, host: u32) -> UdpSocket {
        self.socket(host, address_of(HostId(host)).into())
    }

    fn end(self) -> Counted {
        self.outbox.stop();
        self.running.join().unwrap()
    }
}

/// Sends a datagram and has it arrive.
fn pass(from: &UdpSocket, to: &UdpSocket, payload: &[u8]) -> bool {
    let mut buffer = [0; 2000];
    from.send_to(payload, to.local_addr().unwrap()).unwrap();
    match to.recv_from(&mut buffer) {
        Ok((length, source)) => {
            assert_eq!(source, from.local_addr().unwrap());
            assert_eq!(&buffer[..length], payload);
            true
        }
        Err(error) => {
            let late = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
            assert!(late.contains(&error.kind()), "{error}");
            false
        }
    }
}

#[test]
fn packets_cross_the_fabric_and_come_back() {
    let Some(bed) = Bed::start("cross") else {
        return;
    };
    let (near, far) = (bed.v4(0), bed.v4(3));
    for length in [0, 1, 500, 1472] {
        let payload = vec![length as u8; length];
        assert!(pass(&near, &far, &payload) && pass(&far, &near, &payload));
    }
    let v6 = |host| bed.socket(host, address_v6_of(HostId(host)).into());
    let (near, far) = (v6(1), v6(2));
    assert!(pass(&near, &far, b"six") && pass(&far, &near, b"more"));
    let links = bed.end();
    assert_eq!(links["host0-leaf0"].packets, 4);
    assert_eq!(links["leaf1-host3"].bytes, 4 * 28 + 1 + 500 + 1472);
    let up = links["leaf0-spine0"].packets + links["leaf0-spine1"].packets;
    assert!(up >= 5, "{links:?}");
    assert_eq!(
        links
            .values()
            .map(ForwardedLinkCounters::dropped)
            .sum::<u64>(),
        0
    );
}

#[test]
fn paths_are_those_of_ports_and_die_with_their_spine() {
    let Some(bed) = Bed::start("paths") else {
        return;
    };
    let far = bed.v4(2);
    let sockets: Vec<UdpSocket> = (0..16).map(|_| bed.v4(0)).collect();
    assert!(sockets.iter().all(|near| pass(near, &far, b"first")));
    bed.command("link *spine1 down");
    far.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let alive = sockets.iter().filter(|near| pass(near, &far, b"second"));
    let alive = alive.count() as u64;
    bed.command("link *spine1 up");
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(sockets.iter().all(|near| pass(near, &far, b"third")));
    let links = bed.end();
    // Each port has its way, the same in all three rounds.
    let by_spine0 = links["leaf0-spine0"].packets;
    assert_eq!(by_spine0, 3 * alive, "{links:?}");
    assert_eq!(links["leaf0-spine1"].packets, 48 - by_spine0);
    assert_eq!(links["leaf0-spine1"].down, 16 - alive);
    assert!(alive > 0 && alive < 16, "{alive}");
}

#[test]
fn marks_corruption_and_copies_reach_the_host() {
    let Some(bed) = Bed::start("impaired") else {
        return;
    };
    let (near, far) = (bed.v4(0), bed.v4(1));
    bed.command("link leaf0>host1 duplicate 100%");
    assert!(pass(&near, &far, b"twice"));
    let mut buffer = [0; 100];
    let (length, _) = far.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"twice");
    bed.command("link leaf0>host1 reset corrupt 100%");
    far.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    assert!(
        !pass(&near, &far, b"wrong"),
        "the checksum of UDP does not fit"
    );
    let links = bed.end();
    let link = links["leaf0-host1"];
    assert_eq!(
        (link.packets, link.duplicated, link.corrupted),
        (2, 1, 1),
        "{link:?}"
    );
}

#[test]
fn what_is_missing_is_said() {
    let error = Port::open("cw-test-no-such-namespace", HostId(0), 1500).unwrap_err();
    assert!(matches!(error, PortError::NoNamespace(_)), "{error}");
    assert!(
        error
            .fix()
            .contains("ip netns add cw-test-no-such-namespace")
    );
    let Some(bed) = Bed::start("busy") else {
        return;
    };
    let error = Port::open(&format!("{}0", bed.prefix), HostId(0), 1500).unwrap_err();
    assert!(matches!(error, PortError::Busy(_)), "{error}");
    bed.end();
}

#[test]
fn it_ends_when_its_devices_are_gone() {
    let Some(bed) = Bed::start("gone") else {
        return;
    };
    for host in 0..4 {
        let name = format!("{}{host}", bed.prefix);
        let deleted = std::process::Command::new("ip")
            .args(["-n", &name, "link", "delete", DEVICE])
            .status();
        assert!(deleted.unwrap().success());
    }
    // Without a request.
    for _ in 0..PATIENCE.as_millis() / 10 {
        if bed.running.is_finished() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    bed.outbox.stop();
    bed.running.join().unwrap();
    panic!("it has waited for packets that cannot come");
}
