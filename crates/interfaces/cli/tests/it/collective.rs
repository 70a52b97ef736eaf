//! `clearway collective`: ranks in one process and in several, dead and missing ranks, and invalid input.
#![cfg(unix)]

use crate::common::Bench;
use insta::assert_snapshot;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time limit of every wait in these tests.
const LIMIT: Duration = Duration::from_secs(120);
const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn all_operations_on_this_host() {
    let bench = Bench::new("collective-loopback");
    let common = [
        "collective",
        "--json",
        "-n",
        "2",
        "-w",
        "1",
        "-b",
        "1K",
        "-e",
        "64K",
        "-f",
        "8",
        "--paths",
        "2",
    ];
    for (operation, algorithm) in [
        ("all-reduce", "ring"),
        ("all-reduce", "tree"),
        ("all-gather", "ring"),
        ("reduce-scatter", "ring"),
        ("all-to-all", "direct"),
    ] {
        let own = [
            "--loopback",
            "3",
            "--op",
            operation,
            "--algorithm",
            algorithm,
        ];
        let report = json(&bench.succeed(&[&common[..], &own].concat()));
        assert_eq!(report["operation"], operation);
        assert_eq!(report["encrypted"], true);
        assert_eq!(report["wrong_elements"], 0, "{report}");
        let rows = report["results"].as_array().expect("a list");
        // If ranks have blocks, sizes are rounded down to whole elements for each of three ranks.
        let sizes: Vec<_> = rows.iter().map(|row| row["size_bytes"].as_u64()).collect();
        let wanted = match operation {
            "all-reduce" => [1024, 8192, 65536],
            _ => [1020, 8184, 65532],
        };
        assert_eq!(sizes, wanted.map(Some), "{report}");
        for row in rows {
            let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
            let factor = if operation == "all-reduce" {
                4.0 / 3.0
            } else {
                2.0 / 3.0
            };
            let algorithm = number("size_bytes") / number("time_us") / 1000.0;
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-3 * b;
            assert!(near(number("algbw_gbytes_per_s"), algorithm), "{row}");
            assert!(
                near(number("busbw_gbytes_per_s"), algorithm * factor),
                "{row}"
            );
            assert_eq!(row["wrong_elements"], 0);
        }
    }
}

#[test]
fn a_table_for_people() {
    let bench = Bench::new("collective-table");
    let output = bench.output(&[
        "collective",
        "--loopback",
        "2",
        "-b",
        "0",
        "-e",
        "8",
        "-n",
        "1",
        "-w",
        "0",
        "--insecure",
        "--no-check",
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(
        errors.matches("warning: nothing is encrypted").count(),
        1,
        "{errors}"
    );
    assert!(text.starts_with("# all-reduce by ring, 2 ranks, all on this host, not encrypted, 0 warm-ups, 1 iterations\n"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let cells = |row: &str| {
        row.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(rows.len(), 2, "{text}");
    assert_eq!(cells(rows[0])[..4], ["0", "0", "float", "sum"]);
    assert_eq!(cells(rows[1])[7], "N/A");
    assert!(text.contains("# wrong elements: not checked\n"), "{text}");
    for heading in ["size", "redop", "algbw", "busbw", "#wrong", "(GB/s)"] {
        assert!(text.contains(heading), "{heading} in {text}");
    }
}

/// Ranks in separate processes, which end when this value is dropped.
struct Ranks(Vec<Child>);

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sockets at free ports of this host, one for each rank. No other process gets a port while its socket exists, nor by chance after that:
/// ports that the system chooses, also for the sockets of other tests, are above these ports.
fn reserve(ranks: usize) -> Vec<UdpSocket> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Other processes begin at other ports.
    let first = (std::process::id() % 12_000) as u16;
    let ports = (0..12_000).map(|_| {
        let number = first + NEXT.fetch_add(1, Ordering::Relaxed) % 12_000;
        20_000 + number % 12_000
    });
    let sockets = ports.filter_map(|port| UdpSocket::bind(("127.0.0.1", port)).ok());
    let sockets: Vec<UdpSocket> = sockets.take(ranks).collect();
    assert_eq!(sockets.len(), ranks, "free ports");
    sockets
}

fn address(socket: &UdpSocket) -> String {
    socket.local_addr().expect("it is bound").to_string()
}

/// A list of ranks.
fn hosts(sockets: &[UdpSocket]) -> String {
    let line = |(rank, socket)| format!("{}  # rank {rank}\n", address(socket));
    (0..).zip(sockets).map(line).collect()
}

impl Ranks {
    fn start(bench: &Bench, ranks: &[u8], more: &[&str]) -> Self {
        let start = |rank: &u8| {
            let rank = rank.to_string();
            let own = [
                "collective",
                "--ranks",
                "hosts.txt",
                "--rank",
                &rank,
                "--key",
                "all.key",
                "--paths",
                "2",
            ];
            let mut command = bench.command(&[&own[..], more].concat());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("the program can be started")
        };
        Self(ranks.iter().map(start).collect())
    }

    /// Exit code, output and errors of a rank that ends within the time limit.
    fn end(&mut self, index: usize) -> (Option<i32>, String, String) {
        let child = &mut self.0[index];
        let (mut out, mut errors) = (child.stdout.take(), child.stderr.take());
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut texts = [String::new(), String::new()];
            let read = out.as_mut().map(|out| out.read_to_string(&mut texts[0]));
            let _ = (
                read,
                errors.as_mut().map(|e| e.read_to_string(&mut texts[1])),
            );
            let _ = tell.send(texts);
        });
        let [out, errors] = told.recv_timeout(LIMIT).expect("the rank ends in time");
        let status = child.wait().expect("it has ended");
        (status.code(), out, errors)
    }
}

#[test]
fn processes_reduce_together() {
    let bench = Bench::new("collective-processes");
    bench.write("hosts.txt", &hosts(&reserve(4)));
    bench.write_key("all.key", KEY);
    let mut ranks = Ranks::start(
        &bench,
        &[0, 1, 2, 3],
        &[
            "--algorithm",
            "tree",
            "-b",
            "4K",
            "-e",
            "256K",
            "-f",
            "64",
            "-n",
            "2",
            "--json",
        ],
    );
    for rank in (0..4).rev() {
        let (code, out, errors) = ranks.end(rank);
        assert_eq!(code, Some(0), "rank {rank}: {errors}");
        if rank == 0 {
            let report = json(&out);
            assert_eq!(report["wrong_elements"], 0, "{report}");
            assert_eq!(report["ranks"].as_array().map(Vec::len), Some(4));
            assert_eq!(report["loopback"], false);
        } else {
            assert_eq!(out, "");
        }
    }
}

#[test]
fn a_rank_that_is_killed_ends_the_others_and_is_named() {
    let bench = Bench::new("collective-killed");
    bench.write("hosts.txt", &hosts(&reserve(3)));
    bench.write_key("all.key", KEY);
    let more = ["-b", "1M", "-e", "1M", "-n", "1000000", "--idle", "3s"];
    let mut ranks = Ranks::start(&bench, &[0, 1, 2], &more);
    // Rank 0 prints this line when all ranks are connected.
    let mut head = String::new();
    let out = ranks.0[0].stdout.take().expect("it is piped");
    BufReader::new(out).read_line(&mut head).expect("text");
    assert!(head.starts_with("# all-reduce by ring, 3 ranks"), "{head}");
    thread::sleep(Duration::from_millis(300));
    ranks.0[1].kill().expect("it can be killed");
    for rank in [0, 2] {
        let (code, _, errors) = ranks.end(rank);
        assert_eq!(code, Some(2), "rank {rank}: {errors}");
        assert!(errors.contains("error: "), "{errors}");
        assert!(errors.contains("rank 1"), "rank {rank}: {errors}");
        let is_direct = errors.contains("is lost: the other end has been silent for 3s");
        let is_told = errors.contains("it has lost rank 1");
        assert!(is_direct || is_told, "rank {rank}: {errors}");
        assert!(errors.contains("\n  fix: "), "{errors}");
    }
}

#[test]
fn a_rank_that_is_missing_is_named_with_its_address() {
    let bench = Bench::new("collective-missing");
    let mut sockets = reserve(2);
    bench.write("hosts.txt", &hosts(&sockets));
    let [missing, own] = [&sockets[0], &sockets[1]].map(address);
    sockets.truncate(1);
    bench.write_key("all.key", KEY);
    let mut ranks = Ranks::start(&bench, &[1], &["--wait", "700ms"]);
    let (code, _, errors) = ranks.end(0);
    assert_eq!(code, Some(2), "{errors}");
    let errors = errors.replace(&missing, "MISSING").replace(&own, "OWN");
    assert_snapshot!(errors.trim_end(), @r"
    rank 1 is up at OWN; waiting for 1 others
    error: rank 0 at MISSING has not come up within 700ms
      fix: see that it runs there, with the same list of ranks and the same key, and that UDP passes in both directions
    ");
}

#[test]
fn another_key_and_other_arguments_are_told() {
    let bench = Bench::new("collective-others");
    let sockets = reserve(2);
    bench.write("hosts.txt", &hosts(&sockets));
    let first_address = address(&sockets[0]);
    drop(sockets);
    bench.write_key("all.key", KEY);
    let mut first = Ranks::start(&bench, &[0], &["--wait", "20s"]);
    let mut other = Ranks::start(&bench, &[1], &["-n", "3"]);
    let (code, _, errors) = other.end(0);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("error: the ranks do not agree: rank 0 has `--op all-reduce --algorithm auto -b 4096 -e 16777216 \
             -f 8 -n 20 -w 5 --chunk auto`, and rank 1 has `"), "{errors}");
    assert_eq!(first.end(0).0, Some(2));
    let mut first = Ranks::start(&bench, &[0], &["--wait", "20s"]);
    // The first rank has read its key when it reports that it is ready.
    let mut said = String::new();
    let errors = first.0[0].stderr.as_mut().expect("it is piped");
    BufReader::new(errors).read_line(&mut said).expect("text");
    bench.write_key("all.key", &KEY.replace('0', "1"));
    let mut other = Ranks::start(&bench, &[1], &[]);
    let (code, _, errors) = other.end(0);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains(&format!(
            "error: rank 0 at {first_address} cannot be reached: the other end has another key or server name\n  \
             fix: give both ends the same key, and the same `--server-name` or none"
        )),
        "{errors}"
    );
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let bench = Bench::new("collective-wrong");
    bench.write_key("all.key", KEY);
    bench.write("two.txt", "127.0.0.1:5001\n127.0.0.1:5002\n");
    bench.write("none.txt", "# nobody\n\n");
    bench.write("twice.txt", "127.0.0.1\n# again\n127.0.0.1:4794\n");
    bench.write("words.txt", "127.0.0.1 slots=2\n");
    bench.write("name.txt", "127.0.0.1\nno-such-host.invalid:77\n");
    bench.write("foreign.txt", "192.0.2.1\n127.0.0.1\n");
    let with = |file: &str, rank: &str| {
        bench.refuse(&[
            "collective",
            "--ranks",
            file,
            "--rank",
            rank,
            "--key",
            "all.key",
        ])
    };
    let cases = [
        ("two.txt", "2"),
        ("none.txt", "0"),
        ("twice.txt", "0"),
        ("words.txt", "0"),
        ("name.txt", "0"),
        ("none", "0"),
        ("/dev/zero", "0"),
    ];
    let mut text = String::new();
    for (file, rank) in cases {
        text += &format!("{}\n", with(file, rank));
    }
    for more in [
        &["--op", "all-gather", "--algorithm", "tree"][..],
        &["-b", "2M", "-e", "1M"],
    ] {
        text += &format!(
            "{}\n",
            bench.refuse(&[&["collective", "--loopback", "2"], more].concat())
        );
    }
    text += &format!(
        "{}\n",
        bench.refuse(&["collective", "--ranks", "two.txt", "--rank", "1"])
    );
    assert_snapshot!(text, @r"
    two.txt: there is no rank 2: its ranks are 0 to 1
      fix: give one of these with `--rank`, or add the host
    none.txt: there are no ranks
      fix: write the host of each rank on a separate line, with a port if it is not the usual one
    twice.txt:3: 127.0.0.1:4794 is the address of the rank in line 1
      fix: give each rank on the same host its own port, as in `127.0.0.1:4795`
    words.txt:1: `127.0.0.1 slots=2` is more than a host
      fix: write one host on each line, and # before comments
    name.txt:2: there is no host `no-such-host.invalid:77`
      fix: give a name or an address, and a port if it is not 4794: `192.0.2.1:4794`
    none: cannot read the list of ranks: No such file or directory (os error 2)
      fix: name a file that exists and that you may read
    /dev/zero: cannot read the list of ranks: this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    all-gather has no algorithm `tree`: it has ring, direct
      fix: give one of these with `--algorithm`
    the first size, 2097152 bytes, is larger than the last, 1048576 bytes
      fix: give `--min-bytes` up to `--max-bytes`
    no key is given
      fix: name a file with `--key FILE`; the listening end creates it with `clearway recv --key FILE` or `clearway perf --listen --key FILE`; copy it to the other end
    ");
    let foreign = with("foreign.txt", "0");
    assert!(
        foreign.starts_with("rank 0 cannot listen at 192.0.2.1:4794"),
        "{foreign}"
    );
}
