//! `clearway send` and `clearway recv`: complete files, interruptions and refusals, with real processes on the loopback interface.
#![cfg(unix)]

use crate::common::Bench;
use insta::assert_snapshot;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::os::unix::fs::{FileExt as _, symlink};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Time limit of every wait, in milliseconds.
const PATIENCE: u32 = 120_000;

/// A receiving program, which ends when this value is dropped.
struct Receiving {
    child: Child,
    address: String,
    errors: BufReader<ChildStderr>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a receiver after a shell command such as a limit.
fn receive_below(bench: &Bench, shell: &str, more: &[&str]) -> Receiving {
    receive_at(bench, shell, "127.0.0.1:0", more)
}

fn receive_at(bench: &Bench, shell: &str, listen: &str, more: &[&str]) -> Receiving {
    let program = bench.command(&[]);
    let mut command = Command::new("bash");
    let line = format!("{shell} exec \"$0\" \"$@\"");
    command.args(["-c", &line]).arg(program.get_program());
    command.args([
        "recv", "--listen", listen, "--key", "both.key", "--out", "to",
    ]);
    command.args(more).current_dir(bench.path("."));
    let mut child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
    let address = loop {
        let mut line = String::new();
        assert!(
            errors.read_line(&mut line).expect("text") > 0,
            "it ended before it listened"
        );
        if let Some(rest) = line.strip_prefix("listening at ") {
            break rest.split(';').next().expect("an address").to_owned();
        }
    };
    Receiving {
        child,
        address,
        errors,
    }
}

fn receive(bench: &Bench, more: &[&str]) -> Receiving {
    receive_below(bench, "", more)
}

impl Receiving {
    /// Waits for the end of the program. Returns exit code, standard output and errors.
    fn end(mut self) -> (Option<i32>, String, String) {
        let code = wait(&mut self.child);
        let (mut text, mut errors) = (String::new(), String::new());
        self.errors.read_to_string(&mut errors).expect("text");
        let output = self.child.stdout.as_mut().expect("it is piped");
        output.read_to_string(&mut text).expect("text");
        (code, text, errors)
    }
}

fn wait(child: &mut Child) -> Option<i32> {
    for _ in 0..PATIENCE / 10 {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the program does not end");
}

fn send_command(bench: &Bench, receiving: &Receiving, more: &[&str]) -> Command {
    let mut command = bench.command(&["send", &receiving.address, "--key", "both.key"]);
    command
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn send(bench: &Bench, receiving: &Receiving, more: &[&str]) -> (Option<i32>, String, String) {
    let output: Output = send_command(bench, receiving, more)
        .output()
        .expect("the program can be started");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let said = text(output.stderr);
    // A transfer that takes some seconds prints progress lines.
    let errors = said
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("after "))
        .collect();
    (output.status.code(), text(output.stdout), errors)
}

fn send_json(bench: &Bench, receiving: &Receiving, more: &[&str]) -> Value {
    let (code, text, errors) = send(bench, receiving, &[&["--json"], more].concat());
    assert_eq!(code, Some(0), "{errors}");
    serde_json::from_str(&text).expect("JSON")
}

/// Writes a file of `blocks` different blocks of 1 MiB.
fn write_blocks(bench: &Bench, name: &str, blocks: u64) {
    let file = File::create(bench.path(name)).expect("the test's folder can be written");
    file.set_len(blocks << 20).expect("room");
    for block in 0..blocks {
        file.write_at(&(block + 1).to_be_bytes(), (block << 20) + 1000)
            .expect("room");
    }
}

fn is_same(bench: &Bench, name: &str) -> bool {
    let status = Command::new("cmp")
        .arg("-s")
        .arg(bench.path(name))
        .arg(bench.path("to").join(name))
        .status();
    status.expect("cmp").success()
}

/// Blocks of incomplete files that the receiver has written.
fn written(bench: &Bench) -> u64 {
    let entries = fs::read_dir(bench.path("to/.clearway-partial"))
        .into_iter()
        .flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let records = paths.filter(|path| path.extension().is_some_and(|kind| kind == "record"));
    records
        .map(|path| fs::metadata(path).map_or(0, |found| found.len() / 4))
        .sum()
}

/// Waits until some blocks are written; false if the sender ends before.
fn wait_for_blocks(bench: &Bench, sender: &mut Child) -> bool {
    for _ in 0..PATIENCE / 2 {
        if written(bench) > 60 {
            return true;
        }
        if sender.try_wait().expect("a child").is_some() {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    panic!("no block was written");
}

/// Sends a file and calls `interrupt` after some blocks have arrived, with increasing file sizes until the interrupt comes early enough.
/// Returns the number of blocks. The line is slow: even on the fastest machine, the rest takes longer than the interval between two checks
/// for Ctrl-C.
fn interrupt(
    bench: &Bench,
    receiving: &Receiving,
    interrupt: impl FnOnce(&mut Child),
) -> (Child, u64) {
    interrupt_with(bench, receiving, &[], interrupt)
}

/// As [`interrupt`], with additional arguments of the sender.
fn interrupt_with(
    bench: &Bench,
    receiving: &Receiving,
    more: &[&str],
    interrupt: impl FnOnce(&mut Child),
) -> (Child, u64) {
    for blocks in [200, 800, 3200] {
        write_blocks(bench, "file", blocks);
        let slow = ["--line-rate", "200Mbps", "file"];
        let mut sender = send_command(bench, receiving, &[&slow, more].concat())
            .spawn()
            .expect("the program can be started");
        if wait_for_blocks(bench, &mut sender) {
            interrupt(&mut sender);
            return (sender, blocks);
        }
        fs::remove_file(bench.path("to/file")).expect("it was complete");
    }
    panic!("3.2 GB were sent before anybody could interrupt that");
}

/// Checks that only the rest of a file is transferred.
fn goes_on(bench: &Bench, receiving: &Receiving, blocks: u64) {
    let report = send_json(bench, receiving, &["file"]);
    let [moved, kept] =
        ["moved_bytes", "kept_bytes"].map(|key| report[key].as_u64().expect("a number"));
    assert_eq!(moved + kept, blocks << 20);
    assert!(kept > 10 << 20, "{report}");
    assert!(is_same(bench, "file"));
    assert!(!bench.path("to/.clearway-partial").exists() || written(bench) == 0);
}

#[test]
fn files_and_folders_arrive_and_both_ends_tell() {
    let bench = Bench::new("transfer-whole");
    write_blocks(&bench, "file", 3);
    bench.write("folder/a", "a");
    bench.write("folder/below/empty", "");
    symlink("a", bench.path("folder/link")).expect("a link");
    let receiving = receive(&bench, &["--once", "--json"]);
    let (code, text, errors) = send(&bench, &receiving, &["file", "folder"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(
        errors,
        "warning: links, devices and pipes are not sent: folder/link\n"
    );
    for row in [
        "files in place      3 of 3",
        "sent                3.15 MB in ",
        "there before        0 B",
        "path  state",
    ] {
        assert!(text.contains(row), "{row} in {text}");
    }
    let (code, text, errors) = receiving.end();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["complete"], true, "{report}");
    assert_eq!(
        (&report["role"], &report["encrypted"]),
        (&"receiver".into(), &true.into())
    );
    assert_eq!(report["moved_bytes"], (3 << 20) + 1);
    assert!(report["throughput_gbps"].as_f64() > Some(0.0));
    for name in ["file", "folder/a", "folder/below/empty"] {
        assert!(is_same(&bench, name), "{name}");
    }
    assert_eq!(fs::read_dir(bench.path("to")).expect("a folder").count(), 2);
}

#[test]
fn all_addresses_are_those_of_both_versions_and_partial_files_are_not_sent() {
    let bench = Bench::new("transfer-everywhere");
    let receiving = receive_at(&bench, "", "[::]:0", &[]);
    let port = receiving.address.strip_prefix("[::]:").expect("a port");
    for (folder, host) in [("four", "127.0.0.1"), ("six", "[::1]")] {
        bench.write(&format!("{folder}/{folder}"), host);
        bench.write(&format!("{folder}/.clearway-partial/key.data"), "a part");
        let server = format!("{host}:{port}");
        let mut command = bench.command(&["send", &server, "--key", "../both.key", "."]);
        let output = command.current_dir(bench.path(folder)).output();
        let output = output.expect("the program can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        assert_eq!(
            errors,
            "warning: partial files of transfers are not sent: ./.clearway-partial\n"
        );
        assert_eq!(bench.read(&format!("to/{folder}")), host);
    }
    let id = receiving.child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill").success());
    let (_, text, errors) = receiving.end();
    for host in ["127.0.0.1", "[::1]"] {
        assert!(
            text.contains(&format!("files from {host}:")),
            "{text} {errors}"
        );
    }
}

#[test]
fn without_encryption_and_quietly() {
    let bench = Bench::new("transfer-insecure");
    bench.write("x", "content");
    let child = bench.command(&[
        "recv",
        "--insecure",
        "--once",
        "--listen",
        "127.0.0.1:0",
        "--out",
        "to",
    ]);
    let mut child = { child }
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped"))
        .lines()
        .map(|line| line.expect("text"));
    assert_eq!(
        lines.next().as_deref(),
        Some("warning: nothing is encrypted: whoever sees packets can read and change them")
    );
    let line = lines.next().expect("it listens");
    let address = line
        .strip_prefix("listening at ")
        .and_then(|rest| rest.split(';').next())
        .expect("an address");
    let output = bench.output(&["send", address, "--insecure", "--quiet", "x"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(wait(&mut child), Some(0));
    assert_eq!(bench.read("to/x"), "content");
}

#[test]
fn a_sender_that_was_killed_goes_on() {
    let bench = Bench::new("transfer-kill-sender");
    let receiving = receive(&bench, &[]);
    let (mut sender, blocks) =
        interrupt(&bench, &receiving, |sender| sender.kill().expect("it runs"));
    assert_eq!(wait(&mut sender), None);
    goes_on(&bench, &receiving, blocks);
    // Ctrl-C ends an idle receiver, and that does not count as an interruption.
    let id = receiving.child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill").success());
    let (code, _, errors) = receiving.end();
    assert_eq!(code, Some(0), "{errors}");
    let kept = "the other end has been silent for 10s; ";
    assert!(
        errors.contains(kept)
            && errors.contains(" of file are kept in to/.clearway-partial: the same command"),
        "{errors}"
    );
}

#[test]
fn a_receiver_that_was_killed_goes_on_and_what_was_damaged_is_repaired() {
    let bench = Bench::new("transfer-kill-receiver");
    let mut receiving = receive(&bench, &[]);
    let id = receiving.child.id().to_string();
    let (sender, blocks) = interrupt(&bench, &receiving, |_| {
        let killed = Command::new("kill").args(["-KILL", &id]).status();
        assert!(killed.expect("kill").success());
    });
    let address = receiving.address.clone();
    assert_eq!(wait(&mut receiving.child), None);
    let output = sender.wait_with_output().expect("a child");
    let errors = String::from_utf8_lossy(&output.stderr).replace(&address, "ADDRESS");
    assert_eq!(output.status.code(), Some(2));
    let told: Vec<_> = errors
        .lines()
        .filter(|line| !line.starts_with("after "))
        .collect();
    assert_snapshot!(told.join("\n"), @r"
    error: ADDRESS: the other end has been silent for 10s
      fix: see that the other end runs, and that UDP passes in both directions; the receiver keeps the received data, and the same command goes on
    ");
    let data = fs::read_dir(bench.path("to/.clearway-partial"))
        .expect("it is kept")
        .flatten();
    let data = data
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|kind| kind == "data"));
    let data = File::options()
        .write(true)
        .open(data.expect("a partial file"))
        .expect("a file");
    // The file already has some of the first blocks, so this damages received data.
    for block in 0..8 {
        data.write_at(b"damage", (block << 20) + 5).expect("room");
    }
    drop(data);
    let receiving = receive(&bench, &[]);
    goes_on(&bench, &receiving, blocks);
}

#[test]
fn a_sender_waits_for_a_receiver_that_comes_back() {
    let bench = Bench::new("transfer-retry");
    let mut receiving = receive(&bench, &[]);
    let id = receiving.child.id().to_string();
    let (sender, _) = interrupt_with(&bench, &receiving, &["--retry", "60s"], |_| {
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.expect("kill").success());
    });
    let address = receiving.address.clone();
    wait(&mut receiving.child);
    let _again = receive_at(&bench, "", &address, &[]);
    let output = sender.wait_with_output().expect("a child");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("; trying again in 1 s"), "{errors}");
    assert!(is_same(&bench, "file"));
}

#[test]
fn an_interrupted_sender_and_its_receiver_say_what_is_kept() {
    let bench = Bench::new("transfer-interrupt");
    let receiving = receive(&bench, &["--once"]);
    let (sender, _) = interrupt(&bench, &receiving, |sender| {
        let sent = Command::new("kill")
            .args(["-INT", &sender.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    });
    let output = sender.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), Some(130));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        errors.lines().last(),
        Some("interrupted: the receiver keeps the received data, and the same command goes on")
    );
    let (code, _, errors) = receiving.end();
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("the other end was interrupted; ")
            && errors.contains(" of file are kept in to/.clearway-partial: the same command of the sender goes on\n  fix: "),
        "{errors}"
    );
}

#[test]
fn a_source_that_has_changed_since_is_told() {
    let bench = Bench::new("transfer-changed");
    let receiving = receive(&bench, &[]);
    let (mut sender, blocks) = interrupt(&bench, &receiving, |sender| {
        let sent = Command::new("kill")
            .args(["-INT", &sender.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    });
    assert_eq!(wait(&mut sender), Some(130));
    let file = File::options()
        .write(true)
        .open(bench.path("file"))
        .expect("a file");
    file.write_at(b"changed", (blocks << 20) - 7).expect("room");
    let (code, _, errors) = send(&bench, &receiving, &["file"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        errors.starts_with("file: it has changed since the interruption; blocks of the "),
        "{errors}"
    );
    assert!(is_same(&bench, "file"));
}

#[test]
fn refusals_of_the_receiver_come_with_a_fix() {
    let bench = Bench::new("transfer-refused");
    for name in ["same", "other", "folder", "link", "new", "below/x"] {
        bench.write(&format!("from/{name}"), "content");
    }
    bench.write("to/from/same", "content");
    bench.write("to/from/other", "CONTENT");
    bench.write("to/from/folder/x", "");
    bench.write("outside/x", "outside");
    symlink("../../outside/x", bench.path("to/from/link")).expect("a link");
    symlink("../../outside", bench.path("to/from/below")).expect("a link");
    let receiving = receive(&bench, &["--once"]);
    let (code, _, errors) = send(&bench, &receiving, &["from"]);
    assert_eq!(code, Some(2));
    // The answers for the first two files come in any order.
    let mut lines: Vec<&str> = errors.lines().collect();
    lines[..2].sort_unstable();
    assert_snapshot!(lines.join("\n"), @r"
    from/other: 7 B are there from before and will be compared
    from/same: 7 B are there from before and will be compared
    error: from/below/x: something is in the way at the receiver: `below` is a link
      fix: move it away at the receiver, or give it another `--out`
    error: from/folder: something is in the way at the receiver: `folder` is a folder
      fix: move it away at the receiver, or give it another `--out`
    error: from/link: something is in the way at the receiver: `link` is a link
      fix: move it away at the receiver, or give it another `--out`
    error: from/other: the receiver has a file of this name: its content is another
      fix: move it away at the receiver, give it another `--out`, or give it `--overwrite`
    ");
    let (code, _, errors) = receiving.end();
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("from/other: the receiver has a file of this name"),
        "{errors}"
    );
    assert_eq!(bench.read("outside/x"), "outside");
    assert_eq!(bench.read("to/from/other"), "CONTENT");
    assert_eq!(bench.read("to/from/new"), "content");
    let receiving = receive(&bench, &["--once", "--overwrite"]);
    let (code, _, errors) = send(&bench, &receiving, &["from/other", "from/new"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(bench.read("to/other"), "content");
}

#[test]
fn a_disk_that_takes_no_more_is_told_and_what_came_is_kept() {
    let bench = Bench::new("transfer-full");
    write_blocks(&bench, "file", 40);
    // Files of at most 20 MiB, in blocks of 1 KiB.
    let receiving = receive_below(&bench, "ulimit -f 20480;", &["--once"]);
    let (code, _, errors) = send(&bench, &receiving, &["file"]);
    assert_eq!(code, Some(2));
    assert_snapshot!(errors, @r"
    error: file: the receiver cannot write it: File too large (os error 27)
      fix: make room there and check that the folder is writable; received data is kept, and the same command continues
    ");
    let (code, _, _) = receiving.end();
    assert_eq!(code, Some(2));
    let receiving = receive(&bench, &["--once"]);
    goes_on(&bench, &receiving, 40);
}

#[test]
fn bounds_of_a_sender_are_told() {
    let bench = Bench::new("transfer-limit");
    write_blocks(&bench, "file", 2);
    let receiving = receive(&bench, &["--once", "--limit", "1MB"]);
    let (code, _, errors) = send(&bench, &receiving, &["file"]);
    assert_eq!(code, Some(2));
    assert_snapshot!(errors, @r"
    error: file: the receiver does not take so much: 1000000 bytes are allowed
      fix: give the receiver a larger `--limit`, or send less
    ");
}

#[test]
fn what_cannot_be_is_told_with_a_fix() {
    let bench = Bench::new("transfer-wrong");
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    bench.write_key("a.key", &"5".repeat(64));
    bench.write_key("zero.key", &"0".repeat(64));
    bench.write("x", "1");
    bench.write("below/x", "2");
    fs::create_dir_all(bench.path("nothing")).expect("a folder");
    let cases: [&[&str]; 13] = [
        &["send", "no host", "x", "--key", "a.key"],
        &["send", "127.0.0.1", "x"],
        &["send", "127.0.0.1", "x", "--key", "none.key"],
        &["send", "127.0.0.1", "none", "--key", "a.key"],
        &["send", "127.0.0.1", "/dev/null", "--key", "a.key"],
        &["send", "127.0.0.1", "x", "below/x", "--key", "a.key"],
        &["send", "127.0.0.1", "nothing", "--key", "a.key"],
        &["recv"],
        &["recv", "--listen", &taken, "--key", "a.key"],
        &["recv", "--key", "a.key", "--out", "x"],
        &["recv", "--key", "x"],
        &["recv", "--key", "zero.key"],
        &["recv", "--key", "no-folder/a.key"],
    ];
    let errors: Vec<_> = cases
        .iter()
        .map(|case| bench.refuse(case).replace(&taken, "ADDRESS"))
        .collect();
    assert_snapshot!(errors.join("\n"), @r"
    there is no host `no host`
      fix: give a name or an address, and a port if it is not 4794: `192.0.2.1:4794`
    no key is given
      fix: name a file with `--key FILE`; the listening end creates it with `clearway recv --key FILE` or `clearway perf --listen --key FILE`; copy it to the other end
    none.key: cannot read the key: No such file or directory (os error 2)
      fix: copy the file from the other end, where `clearway recv --key FILE` or `clearway perf --listen --key FILE` makes it
    none: cannot read it: No such file or directory (os error 2)
      fix: name files and folders that are there and that you may read
    /dev/null: this is a device, a pipe or a socket, and only files and folders are sent
      fix: name a file or a folder; write the data of a pipe into a file first
    x and below/x would both be `x` at the receiver
      fix: rename one of them, or send them by two commands to receivers with different `--out`
    there is no file in these folders
      fix: name files, or folders with files in them
    no key is given
      fix: name a file with `--key FILE`; the listening end creates it with `clearway recv --key FILE` or `clearway perf --listen --key FILE`; copy it to the other end
    cannot listen at ADDRESS: Address already in use (os error 98)
      fix: end the program that uses this port, or give another one
    x: cannot use it as a folder: File exists (os error 17)
      fix: give `--out` a folder in which you may write
    x: this is not a key
      fix: expected 64 hexadecimal digits, as in the file that the listening end creates
    zero.key: a key of zeros protects nothing
      fix: remove the file and let the end that listens make one
    no-folder/a.key: cannot write the new key: No such file or directory (os error 2)
      fix: name a file in a folder that you may write
    ");
    let perf = [bench.command(&["perf", "--listen", "127.0.0.1:0", "--key", "a.key"])];
    let [mut perf] = perf;
    let mut perf = perf
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut line = String::new();
    BufReader::new(perf.stderr.take().expect("it is piped"))
        .read_line(&mut line)
        .expect("text");
    let address = line
        .trim_start_matches("listening at ")
        .split(';')
        .next()
        .expect("an address")
        .to_owned();
    let error = bench
        .refuse(&["send", &address, "x", "--key", "a.key", "--quiet"])
        .replace(&address, "ADDRESS");
    let _ = perf.kill();
    let _ = perf.wait();
    assert_snapshot!(error, @r"
    ADDRESS: the other end is connected, but transfers no files
      fix: see that `clearway recv` runs at one end and `clearway send` at the other
    ");
}

#[test]
#[cfg(unix)]
fn a_key_that_others_can_read_is_warned_of() {
    let bench = Bench::new("transfer-key");
    bench.write("x", "1");
    bench.write("a.key", &"5".repeat(64));
    let mut command = bench.command(&["send", "127.0.0.1:1", "x", "--key", "a.key", "--quiet"]);
    let output = command.output().expect("the program can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    let warning =
        "warning: a.key: others on this host can read or change the key: `chmod 600 a.key`";
    assert!(errors.contains(warning), "{errors}");
}
