//! `clearway softswitch`: a measurement through an emulated fabric, and errors.

use crate::common::Bench;
use insta::assert_snapshot;

const SCENARIO: &str = "\
[topology]
kind = \"leaf-spine\"
hosts = 4
hosts-per-leaf = 2
spines = 2
link-rate = \"200Mbps\"
link-delay = \"50us\"

[switch]
queue = \"200KB\"
ecn.kmin = \"20KB\"
ecn.kmax = \"60KB\"
control-priority = false

[transport]
rto = \"50ms\"
";

#[test]
fn wrong_fabrics_files_and_names() {
    let bench = Bench::new("softswitch-wrong");
    bench.write("bed.toml", SCENARIO);
    let events = |line: &str| {
        format!("scenario = \"bed.toml\"\n\n[[event]]\nat = \"1s\"\ndo = \"{line}\"\n")
    };
    bench.write("a.toml", &events("link leaf0-spine9 down"));
    bench.write("b.toml", &events("link leaf0-spine1 los 1%"));
    bench.write("c.toml", &events("# later"));
    bench.write("d.toml", "scenario = \"nowhere.toml\"\nmtu = 1400\n");
    bench.write(
        "e.toml",
        "scenario = \"bed.toml\"\n[[event]]\nat = \"1 d\"\n",
    );
    let with = |what: &str, more: &[&str]| {
        let arguments = [&["softswitch", what, "--hosts", "cw-test-none-"], more].concat();
        bench.refuse(&arguments)
    };
    let buffers = ["--set", "switch.kind=shared-buffer"];
    let bcube = ["--set", "topology.kind=bcube"];
    let strict = ["--set", "switch.strict-priority=true"];
    for (what, more, begin) in [
        (
            "a.toml",
            &[][..],
            "a.toml:5: no link `leaf0-spine9`\n  fix: did you mean `leaf0-spine",
        ),
        (
            "b.toml",
            &[],
            "b.toml:5: there is no change `los`\n  fix: did you mean `loss`?",
        ),
        (
            "c.toml",
            &[],
            "c.toml:5: an event in which nothing happens\n  fix: ",
        ),
        (
            "d.toml",
            &[],
            "nowhere.toml: there is no such file or built-in scenario\n  fix: ",
        ),
        (
            "e.toml",
            &[],
            "e.toml:3: `at`: cannot read \"1 d\"\n  fix: expected a time",
        ),
        (
            "bed.toml",
            &buffers,
            "--set switch.kind=shared-buffer: switches with a shared buffer",
        ),
        (
            "bed.toml",
            &bcube,
            "--set topology.kind=bcube: hosts of this fabric have several NICs",
        ),
        (
            "bed.toml",
            &strict,
            "--set switch.strict-priority=true: strict priority of classes",
        ),
    ] {
        let fault = with(what, more);
        assert!(fault.starts_with(begin), "{fault}");
        assert!(fault.contains("\n  fix: "), "{fault}");
    }
    #[cfg(target_os = "linux")]
    assert_snapshot!(with("bed.toml", &["--quiet"]), @r"
    there is no network namespace `cw-test-none-0`
      fix: make it with `ip netns add cw-test-none-0`, or give `--create`
    ");
}

#[cfg(target_os = "linux")]
mod real {
    use super::{Bench, SCENARIO};
    use clearway_testing::skip;
    use serde_json::Value;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::thread;

    /// The program, with network namespaces for its hosts.
    struct Bed {
        child: Child,
        input: ChildStdin,
        output: BufReader<ChildStdout>,
        prefix: String,
    }

    impl Bed {
        /// Starts the program and waits until it forwards packets; `None` and a skip if that is impossible here.
        fn start(bench: &Bench, what: &str) -> Option<Self> {
            let prefix = format!("cw-test-{}-cli-", std::process::id());
            let arguments = [
                "softswitch",
                what,
                "--hosts",
                &prefix,
                "--create",
                "--json",
                "--quiet",
            ];
            let mut command = bench.command(&arguments);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            if line != "ready\n" {
                let mut errors = String::new();
                let mut stderr = child.stderr.take().unwrap();
                stderr.read_to_string(&mut errors).unwrap();
                assert_eq!(child.wait().unwrap().code(), Some(2), "{errors}");
                let why = errors.lines().next().unwrap_or_default();
                skip("namespaces", &format!("{why}; nothing was measured"));
                return None;
            }
            Some(Self {
                input: child.stdin.take().unwrap(),
                output,
                prefix,
                child,
            })
        }

        /// The program in the namespace of a host, with a time limit that suffices on a busy machine.
        fn within(&self, bench: &Bench, host: u32, arguments: &[&str]) -> Command {
            let mut command = Command::new("timeout");
            command.args(["180", "ip", "netns", "exec"]);
            command.arg(format!("{}{host}", self.prefix));
            command.arg(env!("CARGO_BIN_EXE_clearway")).args(arguments);
            command.current_dir(bench.path("."));
            command
        }

        fn counters(&mut self) -> Value {
            writeln!(self.input, "counters").unwrap();
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            serde_json::from_str(&line).unwrap()
        }

        /// Ends the program as a batch system would, and returns its output.
        fn end(mut self) -> Value {
            let id = self.child.id().to_string();
            let sent = Command::new("kill").args(["-TERM", &id]).status();
            assert!(sent.unwrap().success());
            let mut text = String::new();
            self.output.read_to_string(&mut text).unwrap();
            assert!(self.child.wait().unwrap().success());
            serde_json::from_str(&text).unwrap()
        }
    }

    fn link<'a>(report: &'a Value, name: &str) -> &'a Value {
        let links = report["links"].as_array().unwrap();
        links.iter().find(|link| link["link"] == name).unwrap()
    }

    fn sum(report: &Value, key: &str) -> u64 {
        let links = report["links"].as_array().unwrap();
        links.iter().map(|link| link[key].as_u64().unwrap()).sum()
    }

    #[test]
    fn a_measurement_through_the_fabric() {
        let bench = Bench::new("softswitch-perf");
        bench.write("bed.toml", SCENARIO);
        let events = "scenario = \"bed.toml\"\nset = [\"seed=3\"]\n\n[[event]]\nat = \"1ms\"\ndo = \"link leaf0>spine* mark 1%\"\n";
        bench.write("events.toml", events);
        let Some(mut bed) = Bed::start(&bench, "events.toml") else {
            return;
        };
        let listen = ["perf", "--listen", "0.0.0.0", "--key", "both.key"];
        let mut server = bed.within(&bench, 3, &listen);
        let mut server = server.stderr(Stdio::piped()).spawn().unwrap();
        let messages = BufReader::new(server.stderr.take().unwrap()).lines();
        let mut messages = messages.map_while(Result::ok);
        assert!(messages.any(|line| line.starts_with("listening at")));
        // Read the other messages, so that the pipe does not fill up.
        thread::spawn(move || messages.for_each(drop));
        let measure = [
            "perf",
            "10.77.0.4",
            "--key",
            "both.key",
            "--time",
            "50ms",
            "--line-rate",
            "200Mbps",
            "--json",
        ];
        let output = bed.within(&bench, 0, &measure).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rate = measured["throughput_gbps"].as_f64().unwrap();
        assert!(rate > 0.0 && rate < 0.2, "no faster than the link: {rate}");

        writeln!(bed.input, "link leaf0-spien1 down").unwrap();
        writeln!(bed.input, "link * down").unwrap();
        let before = bed.counters();
        // Each run draws new ports, and all ports may lead over one spine.
        let both = |key: &str| {
            let spines = ["leaf0-spine0", "leaf0-spine1"];
            let counts = spines.map(|name| link(&before, name)[key].as_u64().unwrap());
            counts.iter().sum::<u64>()
        };
        assert!(both("packets") > 50 && both("marked_packets") > 0);
        let ping = bed
            .within(
                &bench,
                1,
                &["perf", "10.77.0.3", "--insecure", "--time", "10ms"],
            )
            .output();
        assert_eq!(
            ping.unwrap().status.code(),
            Some(2),
            "no host can be reached"
        );
        let ended = Command::new("kill").arg(server.id().to_string()).status();
        assert!(ended.unwrap().success());
        server.wait().unwrap();
        let after = bed.end();
        assert!(sum(&after, "down_packets") > 0);
        let lost = sum(&after, "down_packets")
            + sum(&after, "queue_full_packets")
            + sum(&after, "lost_packets");
        let count = |key: &str| after[key].as_u64().unwrap();
        assert_eq!(
            count("received_packets"),
            count("delivered_packets")
                + lost
                + count("in_flight_packets")
                + count("no_route_packets")
        );
    }
}
