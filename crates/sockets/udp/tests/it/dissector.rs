//! Datagrams of connections, as Wireshark's `tshark` reads them with our dissector; skipped where it is not installed.

use bytes::Bytes;
use clearway_testing::Folder;
use clearway_udp::{Allocate, Connection, DatagramOutcome, Event, Limits, Listener};
use clearway_udp::{PreSharedKey, Security, Settings};
use clearway_units::{Span, Time};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 4794);

/// A pcap file of IPv4 packets, as its format is documented: header, and a record for each.
struct Capture(Vec<u8>);

impl Capture {
    fn new() -> Self {
        const LINKTYPE_IPV4: u32 = 228;
        let mut file = Vec::new();
        file.extend(0xa1b2_c3d4u32.to_le_bytes());
        file.extend([2, 0, 4, 0]);
        file.extend([0; 8]);
        file.extend(65_535u32.to_le_bytes());
        file.extend(LINKTYPE_IPV4.to_le_bytes());
        Self(file)
    }

    fn add(&mut self, from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) {
        let udp = 8 + payload.len() as u16;
        let ip = 20 + udp;
        self.0.extend([0; 8]);
        self.0.extend(u32::from(ip).to_le_bytes());
        self.0.extend(u32::from(ip).to_le_bytes());
        self.0.extend([0x45, 0]);
        self.0.extend(ip.to_be_bytes());
        self.0.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        self.0.extend(from.0);
        self.0.extend(to.0);
        self.0.extend(from.1.to_be_bytes());
        self.0.extend(to.1.to_be_bytes());
        self.0.extend(udp.to_be_bytes());
        self.0.extend([0, 0]);
        self.0.extend(payload);
    }
}

/// A client and a server between which everything arrives at once.
struct Pair {
    now: Time,
    client: Connection,
    listener: Listener,
    server: Option<Box<Connection>>,
    capture: Capture,
}

impl Pair {
    fn new(security: Security) -> Self {
        let settings = Settings {
            paths: 2,
            ..Settings::new(security)
        };
        let now = Time::from_us(1_000);
        let server = SocketAddr::from(SERVER);
        let listener = Listener::new(settings.clone(), Limits::default(), &[7; 32]);
        let client = Connection::connect(settings, &[1; 32], now, server, Box::new(Allocate));
        Self {
            now,
            client,
            listener,
            server: None,
            capture: Capture::new(),
        }
    }

    /// Exchanges datagrams until there is nothing to send for a second.
    fn run(&mut self) {
        for _ in 0..10_000 {
            let mut out = Vec::new();
            if let Some(transmit) = self.client.poll_transmit(self.now, &mut out) {
                let from = ([192, 0, 2, 9], 40_000 + u16::from(transmit.path));
                self.capture.add(from, SERVER, &out);
                self.at_server(from.into(), &mut out);
                continue;
            }
            if let Some(server) = &mut self.server
                && let Some(transmit) = server.poll_transmit(self.now, &mut out)
            {
                let to = ([192, 0, 2, 9], transmit.to.port());
                self.capture.add(SERVER, to, &out);
                self.client.handle(self.now, SERVER.into(), false, &mut out);
                continue;
            }
            self.now += Span::from_us(10);
            self.client.on_deadline(self.now);
            if let Some(server) = &mut self.server {
                server.on_deadline(self.now);
            }
        }
    }

    fn at_server(&mut self, from: SocketAddr, datagram: &mut [u8]) {
        if let Some(server) = &mut self.server
            && clearway_udp::receiver_of(datagram) == Some(server.id())
        {
            return server.handle(self.now, from, false, datagram);
        }
        let mut answer = Vec::new();
        let listener = &mut self.listener;
        let acceptor = || -> Box<dyn clearway_udp::Acceptor> { Box::new(Allocate) };
        if let DatagramOutcome::Connection(connection) =
            listener.handle(self.now, from, datagram, &mut answer, acceptor)
        {
            self.server = Some(connection);
        }
        if !answer.is_empty() {
            let to = ([192, 0, 2, 9], from.port());
            self.capture.add(SERVER, to, &answer);
            let now = self.now;
            self.client.handle(now, SERVER.into(), false, &mut answer);
        }
    }

    fn send(&mut self, tag: u64, data: &'static [u8]) {
        let sent = self.client.send(self.now, tag, Bytes::from_static(data));
        sent.expect("it is taken");
        self.run();
        let events = std::iter::from_fn(|| self.server.as_mut()?.poll_event());
        let came = Event::Received {
            tag,
            data: data.to_vec(),
        };
        assert!(events.collect::<Vec<_>>().contains(&came));
    }
}

/// Lines of `tshark`, each with the fields asked for, tabs between; `None` where there is no such program.
fn tshark(folder: &Path, capture: &[u8], fields: &[&str]) -> Option<Vec<String>> {
    let file = folder.join("datagrams.pcap");
    std::fs::write(&file, capture).expect("a file in a folder of our own");
    if Command::new("tshark").arg("--version").output().is_err() {
        clearway_testing::skip(
            "tshark",
            "tshark is not installed, no datagram was looked at",
        );
        return None;
    }
    let script =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tools/wireshark/clearway.lua");
    let output = Command::new("tshark")
        .env("WIRESHARK_CONFIG_DIR", folder)
        .arg("-X")
        .arg(format!("lua_script:{}", script.display()))
        .arg("-nr")
        .arg(&file)
        .args(["-T", "fields", "-E", "separator=;"])
        .args(fields.iter().flat_map(|name| ["-e", name]))
        .output()
        .expect("it has just been started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !errors.contains("lua"),
        "{errors}"
    );
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(str::to_owned).collect())
}

const FIELDS: [&str; 9] = [
    "_ws.col.Protocol",
    "strack_udp.datagram",
    "strack_udp.content",
    "strack_udp.path",
    "strack.type",
    "strack_udp.message_length",
    "strack_udp.tag",
    "strack_udp.payload",
    "_ws.expert",
];

#[test]
fn what_is_not_encrypted_is_read_to_the_payload() {
    let folder = Folder::new("udp-dissector-plain");
    let mut pair = Pair::new(Security::Insecure);
    pair.run();
    pair.send(77, b"clearway");
    pair.client.close(pair.now, 5);
    pair.run();
    let Some(lines) = tshark(folder.path(), &pair.capture.0, &FIELDS) else {
        return;
    };
    let begin: Vec<_> = lines[..4].iter().map(String::as_str).collect();
    let handshake =
        ["0x81", "0x82", "0x81", "0x84"].map(|kind| format!("STrack/UDP;{kind};;;;;;;"));
    assert_eq!(begin, handshake);
    let data = "STrack;0x40;1;0;1;8;77;636c656172776179;";
    assert_eq!(
        lines.iter().filter(|line| *line == data).count(),
        1,
        "{lines:#?}"
    );
    for content in [1, 3, 4, 9, 10] {
        let begins = format!("0x40;{content};");
        let count = lines.iter().filter(|line| line.contains(&begins));
        assert!(count.count() > 0, "no {content} in {lines:#?}");
    }
    assert!(lines.iter().all(|line| line.ends_with(';')), "{lines:#?}");
}

#[test]
fn of_what_is_encrypted_the_header_shows() {
    let folder = Folder::new("udp-dissector-key");
    let mut pair = Pair::new(Security::Key(PreSharedKey([3; 32])));
    pair.run();
    pair.send(77, b"clearway");
    let id = format!("{:?}", pair.client.id());
    let fields = [
        "strack_udp.number",
        "strack_udp.connection",
        "strack_udp.encrypted",
        "strack.type",
    ];
    let Some(lines) = tshark(folder.path(), &pair.capture.0, &fields) else {
        return;
    };
    let to_client = lines.iter().filter(|line| line.contains(&id));
    for (number, line) in to_client.enumerate() {
        let begins = format!("{number};0x{id};");
        assert!(line.starts_with(&begins) && line.ends_with(';'), "{line}");
    }
    assert!(lines.len() > 8);
    let seen = lines.join("\n").contains("636c656172776179");
    assert!(!seen, "the payload is to be encrypted");
}
