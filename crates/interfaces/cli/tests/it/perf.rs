//! `clearway perf`: both ends in one command, two commands, and errors.

use crate::common::Bench;
use insta::assert_snapshot;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Stdio};
use std::thread;

fn json(bench: &Bench, arguments: &[&str]) -> Value {
    serde_json::from_str(&bench.succeed(arguments)).expect("JSON")
}

#[test]
fn both_ends_in_one_command() {
    let bench = Bench::new("perf-loopback");
    let report = json(&bench, &["perf", "--loopback", "--time", "200ms", "--json"]);
    assert_eq!(report["encrypted"], true);
    assert_eq!(report["transport"], "strack");
    assert!(report["throughput_gbps"].as_f64() > Some(0.0), "{report}");
    assert!(
        report["small_messages_per_s"].as_f64() > Some(0.0),
        "{report}"
    );
    let trips = &report["round_trip"];
    assert!(
        trips["min_us"].as_f64() > Some(0.0)
            && trips["min_us"].as_f64() <= trips["p50_us"].as_f64()
    );
    let paths = report["paths"].as_array().expect("a list");
    assert_eq!(paths.len(), 8);
    assert!(
        paths
            .iter()
            .all(|path| path["sent_packets"].as_u64() > Some(0)),
        "{report}"
    );
}

#[test]
fn other_transports_sizes_and_no_encryption() {
    let bench = Bench::new("perf-others");
    let common = [
        "perf",
        "--loopback",
        "--time",
        "100ms",
        "--json",
        "--paths",
        "3",
    ];
    let with = |more: &[&str]| json(&bench, &[&common[..], more].concat());
    let jumbo = with(&["--insecure", "--datagram", "8952", "--message", "10KB"]);
    assert_eq!(
        (&jumbo["encrypted"], &jumbo["datagram_bytes"]),
        (&false.into(), &8952.into())
    );
    assert_eq!(with(&["--transport", "rocev2"])["transport"], "rocev2");
}

#[test]
fn tables_for_people_and_a_warning_without_encryption() {
    let bench = Bench::new("perf-tables");
    let output = bench.output(&["perf", "--loopback", "--time", "50ms", "--insecure"]);
    assert!(output.status.success());
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        errors.starts_with("warning: nothing is encrypted"),
        "{errors}"
    );
    assert!(
        text.starts_with(
            "strack over UDP, both ends on this host, not encrypted, datagrams of 8952 bytes\n"
        ),
        "{text}"
    );
    for row in [
        "throughput",
        "sent again",
        "round trip of 64 B",
        "messages of 64 B",
        "processor time",
        "path  state",
    ] {
        assert!(text.contains(row), "{row} in {text}");
    }
}

/// A listening program, which ends when this value is dropped.
struct Listening {
    child: Child,
    address: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(bench: &Bench, options: &[&str]) -> Listening {
    let mut command = bench.command(&[&["perf", "--listen", "127.0.0.1:0"], options].concat());
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let said = lines.map(|line| line.expect("text"));
    let address = said
        .filter_map(|line| {
            Some(
                line.strip_prefix("listening at ")?
                    .split(';')
                    .next()?
                    .to_owned(),
            )
        })
        .next();
    let address = address.expect("it says where it listens");
    Listening { child, address }
}

#[test]
fn two_programs_with_a_key_that_the_listener_makes() {
    let bench = Bench::new("perf-two");
    let listening = listen(&bench, &["--key", "both.key"]);
    assert_eq!(bench.read("both.key").trim().len(), 64);
    let host = listening.address.as_str();
    let report = json(
        &bench,
        &[
            "perf", host, "--key", "both.key", "--time", "100ms", "--json",
        ],
    );
    assert_eq!(report["both_ends"], false);
    assert!(report["throughput_gbps"].as_f64() > Some(0.0), "{report}");
    bench.write_key("other.key", &"5".repeat(64));
    let wrong = [
        bench.refuse(&["perf", host, "--key", "other.key"]),
        bench.refuse(&["perf", host, "--insecure"]),
    ];
    assert_snapshot!(wrong.join("\n"), @r"
    the other end has another key or server name
      fix: give both ends the same key, and the same `--server-name` or none
    one end encrypts and the other does not
      fix: give both ends a key, or neither
    ");
}

#[test]
fn a_server_name_is_that_of_both_ends() {
    let bench = Bench::new("perf-name");
    let key = ["--key", "both.key"];
    let name = |name| ["--server-name", name];
    let listening = listen(&bench, &[key, name("node 1")].concat());
    let measure = ["perf", &listening.address, "--time", "50ms", "--json"];
    let report = json(&bench, &[&measure, &key[..], &name("node 1")].concat());
    assert_eq!(report["encrypted"], true);
    let other = bench.refuse(&[&measure, &key[..], &name("node 2")].concat());
    assert_snapshot!(other, @r"
    the other end has another key or server name
      fix: give both ends the same key, and the same `--server-name` or none
    ");
    let none = bench.refuse(&[&measure[..], &key].concat());
    assert_eq!(none, other);
    let long = "x".repeat(256);
    for wrong in ["", "two\nlines", &long] {
        let error = bench.refuse(&[&measure, &key[..], &name(wrong)].concat());
        let expected = "for '--server-name <NAME>': expected 1 to 255 bytes of text without control characters";
        assert!(error.contains(expected), "{error}");
    }
    let error = bench.refuse(&[&measure, &["--insecure"][..], &name("node 1")].concat());
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn a_listener_of_another_version_is_told() {
    let bench = Bench::new("perf-version");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let host = socket.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        let mut datagram = [0; 2000];
        while let Ok((_, from)) = socket.recv_from(&mut datagram) {
            // Refuse every client because of its version: this end supports versions 2 and 3.
            let mut refusal = vec![0x83];
            refusal.extend(&datagram[1..9]);
            refusal.extend([1, 2, 0, 0, 0, 2, 0, 0, 0, 3]);
            let _ = socket.send_to(&refusal, from);
        }
    });
    bench.write_key("a.key", &"5".repeat(64));
    assert_snapshot!(bench.refuse(&["perf", &host, "--key", "a.key"]), @r"
    the other end speaks versions 2, 3 of STrack over UDP, and this one version 1
      fix: use the same release at both ends
    ");
}

#[test]
fn what_cannot_be_is_told_with_a_fix() {
    let bench = Bench::new("perf-wrong");
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    bench.write_key("short.key", "123\n");
    bench.write_key("a.key", &"5".repeat(64));
    let cases: [&[&str]; 7] = [
        &["perf", "no-such-host.invalid", "--key", "a.key"],
        &["perf", "--listen", &taken, "--key", "a.key"],
        &["perf", "127.0.0.1"],
        &["perf", "127.0.0.1", "--key", "none.key"],
        &["perf", "127.0.0.1", "--key", "short.key"],
        &["perf", "127.0.0.1", "--key", "."],
        &["perf", "127.0.0.1", "--key", "/dev/zero"],
    ];
    let errors: Vec<_> = cases
        .iter()
        .map(|case| bench.refuse(case).replace(&taken, "ADDRESS"))
        .collect();
    assert_snapshot!(errors.join("\n"), @r"
    there is no host `no-such-host.invalid`
      fix: give a name or an address, and a port if it is not 4794: `192.0.2.1:4794`
    cannot listen at ADDRESS: Address already in use (os error 98)
      fix: end the program that uses this port, or give another one
    no key is given
      fix: name a file with `--key FILE`; the listening end creates it with `clearway recv --key FILE` or `clearway perf --listen --key FILE`; copy it to the other end
    none.key: cannot read the key: No such file or directory (os error 2)
      fix: copy the file from the other end, where `clearway recv --key FILE` or `clearway perf --listen --key FILE` makes it
    short.key: this is not a key
      fix: expected 64 hexadecimal digits, as in the file that the listening end creates
    .: cannot read the key: this is a folder, and only regular files are read
      fix: name a file in it
    /dev/zero: cannot read the key: this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    ");
}
