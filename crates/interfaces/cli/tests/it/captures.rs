//! Captures as Wireshark reads them.
//!
//! Tests that need `tshark` are skipped if it is not installed.

use crate::common::Bench;
use clearway_report::Summary;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Four hosts on one switch, three of which send to the first, with every cable captured.
const FOUR: &str = r#"
name = "four"
[topology]
kind = "single-switch"
hosts = 4
[switch]
kind = "lossy"
queue = "100KB"
ecn.kmin = "10KB"
ecn.kmax = "80KB"
ecn.pmax = 1.0
[[workload]]
kind = "incast"
senders = 3
message = "300001B"
[observe]
trace.pcap = ["host:0", "host:1", "host:2", "host:3"]
[transport]
"#;

/// Runs [`FOUR`] with `transport`.
fn capture(bench: &Bench, transport: &str) -> Summary {
    bench.write("s.toml", &format!("{FOUR}kind = \"{transport}\"\n"));
    bench.summary(&["s.toml"])
}

/// Output of `tshark` for the capture; `None` if the program does not exist, or lacks `feature`.
fn tshark(bench: &Bench, feature: &str, arguments: &[&str]) -> Option<String> {
    let version = Command::new("tshark").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !version.as_ref().is_ok_and(|text| text.contains(feature)) {
        let name = std::thread::current()
            .name()
            .unwrap_or_default()
            .to_string();
        let why = format!(
            "{name} did NOT look at the capture: tshark is not installed or lacks \"{feature}\""
        );
        clearway_testing::skip("tshark", &why);
        return None;
    }
    let output = Command::new("tshark")
        // Ignore the settings of the user who runs the test.
        .env("WIRESHARK_CONFIG_DIR", bench.path("wireshark"))
        .arg("-n")
        .args(["-r", "results/trace.pcapng"])
        .args(arguments)
        .current_dir(bench.path(""))
        .output()
        .expect("it has just been started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// Rows of text, with a column for each field.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split('\t').collect())
        .collect()
}

fn fields<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let each = names.iter().flat_map(|name| ["-e", name]);
    ["-T", "fields"].into_iter().chain(each).collect()
}

/// Filter for frames in which a reader finds a fault, or that it cannot decode completely.
const WRONG: [&str; 2] = [
    "-Y",
    "_ws.malformed || _ws.short || _ws.expert.severity >= 0x600000",
];

#[test]
fn rocev2_is_what_wireshark_takes_it_for() {
    let bench = Bench::new("capture-rocev2");
    let summary = capture(&bench, "rocev2");
    let packets = &summary.packets;
    assert!(packets.dropped > 0 && packets.cnps > 0, "{packets:?}");
    let Some(wrong) = tshark(&bench, "TShark", &WRONG) else {
        return;
    };
    assert_eq!(wrong, "");
    let names = fields(&[
        "frame.interface_name",
        "infiniband.bth.opcode",
        "infiniband.bth.destqp",
        "infiniband.bth.psn",
        "infiniband.aeth.syndrome",
        "infiniband.aeth.msn",
        "ip.dsfield.ecn",
        "ip.checksum.status",
        "udp.dstport",
    ]);
    let arguments = [&["-o", "ip.check_checksum:TRUE"], &names[..]].concat();
    let text = tshark(&bench, "TShark", &arguments).expect("it was there a moment ago");
    let rows = rows(&text);
    assert!(rows.iter().all(|row| row[7..] == ["1", "4791"]));

    let of_host = |row: &&Vec<&str>| row[0].starts_with("host");
    let count = |opcodes: &[&str]| {
        let own = rows.iter().filter(of_host);
        own.filter(|row| opcodes.contains(&row[1])).count() as u64
    };
    // First, middle, last.
    assert_eq!(count(&["0", "1", "2"]), packets.data_sent);
    assert_eq!((count(&["0"]) >= 3, count(&["2"]) >= 3), (true, true));
    assert_eq!(count(&["17"]), packets.acks);
    assert_eq!(count(&["129"]), packets.cnps);
    let from_hosts = packets.data_sent + packets.acks + packets.cnps;
    assert_eq!(rows.iter().filter(of_host).count() as u64, from_hosts);
    // Each packet arrives, unless the switch drops it.
    assert_eq!(rows.len() as u64, 2 * from_hosts - packets.dropped);
    let marked = rows.iter().filter(|row| row[6] == "3").count() as u64;
    assert_eq!(marked, packets.marked);

    numbers_count_up(&rows);
}

/// Each queue pair sends 74 packets in order, goes back to the requested packet, and finally gets an acknowledgement of all packets.
fn numbers_count_up(rows: &[Vec<&str>]) {
    let mut next: BTreeMap<&str, u32> = BTreeMap::new();
    let mut missing: BTreeMap<&str, u32> = BTreeMap::new();
    let mut finished = 0;
    for row in rows {
        let (pair, psn): (&str, u32) = (row[2], row[3].parse().expect("a number"));
        let own = row[0].starts_with("host");
        match row[1] {
            "129" => assert_eq!(psn, 0),
            "17" if row[4] == "96" => {
                missing.insert(pair, psn);
            }
            "17" => finished += u32::from(own && row[5] == "1" && psn == 73),
            _ if own => {
                let next = next.entry(pair).or_default();
                assert!(psn <= *next, "{row:?}: a gap");
                *next = (*next).max(psn + 1);
            }
            _ => {}
        }
    }
    assert_eq!(next.values().copied().collect::<Vec<_>>(), [74, 74, 74]);
    assert!(missing.values().all(|&psn| psn < 74) && !missing.is_empty());
    assert!(finished >= 3);
}

#[test]
fn strack_is_dissected_by_our_script() {
    let bench = Bench::new("capture-strack");
    let summary = capture(&bench, "strack");
    let packets = &summary.packets;
    assert!(
        packets.dropped > 0 && packets.retransmitted > 0,
        "{packets:?}"
    );
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tools/wireshark/clearway.lua");
    let script = format!("lua_script:{}", script.display());
    let with_script = |arguments: &[&str]| {
        let all = [&["-X", &script], arguments].concat();
        tshark(&bench, "Lua", &all)
    };
    // Only the payload of data packets is cut off.
    let wrong = "_ws.malformed || strack.unknown || _ws.expert.severity >= 0x600000 || !strack";
    let Some(wrong) = with_script(&["-Y", wrong]) else {
        return;
    };
    assert_eq!(wrong, "");
    let names = fields(&[
        "frame.interface_name",
        "strack.type",
        "strack.flow",
        "strack.psn",
        "strack.flags.retransmission",
        "strack.epsn",
        "strack.size",
        "strack.offset",
        "udp.dstport",
    ]);
    let text = with_script(&names).expect("it was there a moment ago");
    let rows = rows(&text);
    let sent: Vec<_> = rows
        .iter()
        .filter(|row| row[0].starts_with("host"))
        .collect();
    let count = |kind: &str| sent.iter().filter(|row| row[1] == kind).count() as u64;
    assert_eq!(count("1"), packets.data_sent);
    assert_eq!(count("2"), packets.acks);
    assert_eq!(count("3"), packets.probes);
    assert_eq!(rows.len() as u64, 2 * sent.len() as u64 - packets.dropped);
    let again = sent
        .iter()
        .filter(|row| row[1] == "1" && matches!(row[4], "1" | "True"));
    assert_eq!(again.count() as u64, packets.retransmitted);
    for row in sent.iter().filter(|row| row[1] == "1") {
        let number = |column: usize| row[column].parse::<u64>().expect("a number");
        assert_eq!(number(7), number(3) * 4096, "{row:?}");
        assert_eq!(
            number(6),
            if number(3) == 73 { 1057 } else { 4160 },
            "{row:?}"
        );
    }
    for flow in ["0", "1", "2"] {
        let acks = rows.iter().filter(|row| row[1] == "2" && row[2] == flow);
        let last = acks.filter_map(|row| row[5].parse::<u32>().ok()).max();
        assert_eq!(last, Some(74));
    }
}

/// Frame of a file: interface, time, length, and the kept bytes.
struct Frame {
    interface: u32,
    time: u64,
    length: usize,
    bytes: Vec<u8>,
}

/// The frames of a capture, and for each interface the numbers of frames seen and left out.
fn read(bench: &Bench) -> (Vec<Frame>, Vec<[u64; 2]>) {
    let file = std::fs::read(bench.path("results/trace.pcapng")).expect("there is a capture");
    let number = |bytes: &[u8]| {
        let digits = bytes.iter().rev();
        digits.fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let (mut frames, mut counts, mut at) = (Vec::new(), Vec::new(), 0);
    while at < file.len() {
        let word = |index: usize| number(&file[at + 4 * index..][..4]);
        match word(0) {
            6 => frames.push(Frame {
                interface: word(2) as u32,
                time: word(3) << 32 | word(4),
                length: word(6) as usize,
                bytes: file[at + 28..][..word(5) as usize].to_vec(),
            }),
            // A block of statistics has two options of 12 bytes each.
            5 => counts.push([0, 12].map(|from| number(&file[at + 24 + from..][..8]))),
            _ => {}
        }
        at += word(1) as usize;
    }
    (frames, counts)
}

/// Invariant CRC of RoCEv2, computed bit by bit: fields that may change count as ones.
fn invariant_crc(packet: &[u8]) -> u32 {
    let mut masked = packet.to_vec();
    for changeable in [1, 8, 10, 11, 26, 27, 32] {
        masked[changeable] = 0xff;
    }
    let bytes = [0xff; 8].into_iter().chain(masked);
    let bits = bytes.flat_map(|byte| (0..8).map(move |bit| u32::from(byte >> bit & 1)));
    !bits.fold(u32::MAX, |crc, bit| {
        let out = (crc ^ bit) & 1;
        (crc >> 1) ^ (out * 0xedb8_8320)
    })
}

#[test]
fn every_invariant_crc_is_right() {
    let bench = Bench::new("capture-crc");
    let summary = capture(&bench, "rocev2");
    let (frames, counts) = read(&bench);
    let packets = &summary.packets;
    let from_hosts = packets.data_sent + packets.acks + packets.cnps;
    assert_eq!(frames.len() as u64, 2 * from_hosts - packets.dropped);
    let seen: u64 = counts.iter().map(|[seen, _]| seen).sum();
    assert_eq!((counts.len(), seen), (8, frames.len() as u64));
    assert!(frames.is_sorted_by_key(|frame| (frame.time, frame.interface)));
    let mut checked = 0;
    for frame in &frames {
        assert_eq!(frame.bytes.len(), frame.length);
        let packet = &frame.bytes[14..];
        let total = usize::from(packet[2]) << 8 | usize::from(packet[3]);
        let (covered, rest) = packet.split_at(total - 4);
        let stored = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
        assert_eq!(invariant_crc(covered), stored);
        checked += 1;
    }
    assert!(checked > 500);
}

#[test]
fn a_limit_is_said_and_threads_change_nothing() {
    let bench = Bench::new("capture-limit");
    bench.write("s.toml", &format!("{FOUR}kind = \"rocev2\"\n"));
    let file = |threads: &str| {
        bench.summary(&["s.toml", "--threads", threads]);
        std::fs::read(bench.path("results/trace.pcapng")).expect("there is a capture")
    };
    assert!(file("1") == file("2"));
    let all = read(&bench).0.len() as u64;
    let few = [
        "--set",
        "observe.trace.pcap-frames=50",
        "--set",
        "observe.trace.pcap-snap=100B",
    ];
    let output = bench.output(&[&["run", "s.toml", "--out", "results"], &few[..]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = format!(
        "trace.pcapng has the first 50 frames and lacks {} later ones",
        all - 50
    );
    assert!(errors.contains(&said), "{errors}");
    let (frames, counts) = read(&bench);
    assert_eq!(frames.len(), 50);
    assert!(
        frames
            .iter()
            .all(|frame| frame.bytes.len() == frame.length.min(100))
    );
    let left_out: u64 = counts.iter().map(|[_, left_out]| left_out).sum();
    assert_eq!(left_out, all - 50);
    bench.summary(&["s.toml", "--set", "observe.trace.pcap=[]"]);
    assert!(!bench.path("results/trace.pcapng").exists());
}

#[test]
fn places_that_are_none_are_refused() {
    let bench = Bench::new("capture-places");
    for (place, message) in [
        ("host:999", "there is no host 999\n  fix: hosts are 0 to "),
        (
            "link:leaf0-spien0",
            "there is no link `leaf0-spien0`\n  fix: did you mean `leaf0-spine0`?",
        ),
        ("3", "`3` is no place\n  fix: write \"host:3\""),
    ] {
        let key = format!("observe.trace.pcap=[\"{place}\"]");
        let error = bench.refuse(&["run", "quickstart", "--set", &key]);
        assert!(
            error.starts_with(&format!("--set {key}: `observe.trace.pcap`: {message}")),
            "{error}"
        );
    }
}

#[test]
fn compared_runs_have_captures_of_their_own() {
    let bench = Bench::new("capture-compare");
    bench.write("s.toml", &format!("{FOUR}kind = \"rocev2\"\n"));
    bench.succeed(&["compare", "s.toml", "--seeds", "2", "--out", "both"]);
    let mut captures = 0;
    let mut folders = vec![bench.path("both")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() == "trace.pcapng" {
                captures += 1;
            }
        }
    }
    assert_eq!(captures, 2);
}

#[test]
fn a_capture_that_a_later_run_removes_is_named() {
    let bench = Bench::new("removed-capture");
    let with = format!("{FOUR}kind = \"strack\"\n");
    let without = with.replace("trace.pcap = ", "# ");
    bench.write("with.toml", &with);
    bench.write("without.toml", &without);
    let run = |scenario: &str| {
        let output = bench.output(&["run", scenario, "--no-report", "--out", "r"]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let word = "the trace.pcapng of an earlier run is removed with its other files";
    for (scenario, is_said) in [
        ("with.toml", false),
        ("with.toml", false),
        ("without.toml", true),
        ("without.toml", false),
    ] {
        let said = run(scenario);
        assert_eq!(said.contains(word), is_said, "{scenario}: {said}");
        let is_there = bench.path("r/trace.pcapng").exists();
        assert_eq!(is_there, scenario == "with.toml");
    }
}
