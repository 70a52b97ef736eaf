//! The live view of a run: the answers of its server, and the control of the run.

use crate::browser::Browser;
use crate::common::Bench;
use clearway_report::{StatusName, Summary};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(20);
/// A run that takes hours unless it is stopped.
const LONG: [&str; 3] = ["incast-32", "--set", "workload.message=1TB"];

/// A run with a live view, which ends when this value is dropped.
struct Run {
    child: Child,
    errors: BufReader<ChildStderr>,
    port: u16,
}

impl Run {
    /// Starts a run and reads the address of its page.
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        Self::spawn(bench.command(&[]), arguments)
    }

    /// As [`start`](Self::start), with a limited number of descriptors.
    #[cfg(unix)]
    fn start_limited(bench: &Bench, descriptors: u32, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -n {descriptors} && exec \"$0\" \"$@\""))
            .arg(env!("CARGO_BIN_EXE_clearway"))
            .current_dir(bench.path(""));
        Self::spawn(command, arguments)
    }

    fn spawn(mut command: Command, arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["run"]
            .into_iter()
            .chain(arguments.iter().copied())
            .chain(["--live", "--quiet", "--out", "results"])
            .collect();
        let mut child = command
            .args(&all)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line
            .trim_end()
            .strip_prefix("live: http://127.0.0.1:")
            .unwrap_or_else(|| panic!("{arguments:?}: {line}"));
        let port = address.trim_end_matches('/').parse().unwrap();
        Self {
            child,
            errors,
            port,
        }
    }

    /// Sends a request; returns the status, the headers and the body. `{port}` in `headers` is replaced by the server's port.
    fn request(&self, first: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers = headers.replace("{port}", &self.port.to_string());
        let length = body.len();
        let request = format!(
            "{first} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        // One write: a server that rejects the headers may close the connection before the body arrives.
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("headers");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), body.to_owned())
    }

    fn state(&self, since: &str) -> Value {
        let first = format!("GET /api/state?since={since}");
        let (status, _, body) = self.request(&first, OWN_HOST, "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Gives an order; returns the status and the body of the answer.
    fn order(&self, order: &Value) -> (u16, String) {
        let headers = format!("{OWN_HOST}Content-Type: application/json\r\n");
        let (status, _, body) = self.request("POST /api/control", &headers, &order.to_string());
        (status, body)
    }

    fn obey(&self, order: &Value) {
        assert_eq!(self.order(order), (200, "{}".into()), "{order}");
    }

    /// Requests the state until `is_so` holds; returns that state.
    fn wait_until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut state = Value::Null;
        for _ in 0..looks() {
            state = self.state("");
            if is_so(&state) {
                return state;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("not {what}: {state}");
    }

    /// Exit code, and the messages after the address.
    fn end(mut self) -> (i32, String) {
        let mut said = String::new();
        self.errors.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code().unwrap(), said)
    }

    fn assert_stopped(self, bench: &Bench) {
        let kept = "interrupted: partial results are kept in results\n";
        assert_eq!(self.end(), (130, kept.into()));
        let summary = Summary::read(bench.path("results")).unwrap();
        assert_eq!(summary.status, StatusName::Interrupted);
        assert!(summary.packets.data_sent > 0);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Number of requests until the time limit.
fn looks() -> u128 {
    PATIENCE.as_millis() / PAUSE.as_millis()
}

const OWN_HOST: &str = "Host: 127.0.0.1:{port}\r\n";

fn now(state: &Value) -> f64 {
    state["now"].as_f64().unwrap()
}

fn has_status(wanted: &str) -> impl Fn(&Value) -> bool {
    move |state| state["status"] == wanted
}

fn sample_count(state: &Value) -> usize {
    state["samples"].as_array().unwrap().len()
}

#[test]
fn a_run_is_watched_and_controlled() {
    let bench = Bench::new("live-control");
    let run = Run::start(&bench, &LONG);
    let (status, head, page) = run.request("GET /", OWN_HOST, "");
    assert_eq!(status, 200);
    assert!(
        head.contains("content-security-policy: default-src 'none'; "),
        "{head}"
    );
    assert!(head.contains("frame-ancestors 'none'"), "{head}");
    assert!(page.contains("<h1>incast-32</h1>"));
    grows(&run);
    pauses(&run);
    steps(&run);
    wrong_orders(&run);
    run.obey(&json!({ "action": "resume" }));
    run.wait_until("running", has_status("running"));
    run.obey(&json!({ "action": "pause" }));
    run.wait_until("paused", has_status("paused"));
    run.obey(&json!({ "action": "stop" }));
    let ended = run.wait_until("interrupted", has_status("interrupted"));
    let folder = ended["ending"]["folder"].as_str();
    assert_eq!(folder, Some("results"));
    assert_eq!(run.order(&json!({ "action": "pause" })).0, 409);
    run.assert_stopped(&bench);
}

/// Samples are added, and a page does not get the same samples again.
fn grows(run: &Run) {
    let early = run.wait_until("sampled", |state| sample_count(state) > 3);
    let (epoch, count) = (&early["epoch"], sample_count(&early));
    let curves = early["curves"].to_string();
    for curve in [
        r#"["goodput_bps","run"]"#,
        r#"["flow_goodput_bps","flow 0"]"#,
    ] {
        assert!(curves.contains(curve), "{curve} in {curves}");
    }
    run.wait_until("sampled more", |state| {
        let more = sample_count(state) > count || state["epoch"] != *epoch;
        more && now(state) > now(&early) && state["hops"].as_u64() > early["hops"].as_u64()
    });
    let news = run.state(&format!("{epoch}.{count}"));
    if news["epoch"] == *epoch {
        assert_eq!(news["from"], count);
        let known = early["samples"][count - 1][0].as_f64();
        assert!(news["samples"][0][0].as_f64() > known);
    }
}

fn pauses(run: &Run) {
    run.obey(&json!({ "action": "pause" }));
    let before = run.wait_until("paused", has_status("paused"));
    std::thread::sleep(Duration::from_millis(400));
    let after = run.state("");
    assert_eq!(
        (&after["now"], &after["hops"]),
        (&before["now"], &before["hops"])
    );
    run.obey(&json!({ "action": "resume" }));
    run.wait_until("going on", |state| now(state) > now(&before));
}

/// A step ends at its time, within a round of 1 µs, the delay of a link.
fn steps(run: &Run) {
    run.obey(&json!({ "action": "pause" }));
    let before = run.wait_until("paused", has_status("paused"));
    let aim = now(&before).ceil() + 25.0;
    run.obey(&json!({ "action": "step", "until": format!("{aim}us") }));
    let after = run.wait_until("there", |state| {
        state["status"] == "paused" && now(state) > now(&before)
    });
    assert!(
        (aim..aim + 2.0).contains(&now(&after)),
        "{aim}: {}",
        after["now"]
    );
    assert_eq!(after["until"], Value::Null);
}

fn wrong_orders(run: &Run) {
    let (status, answer) = run.order(&json!({ "action": "step", "until": "1ns" }));
    assert_eq!(status, 422);
    assert!(answer.contains("the run is at"), "{answer}");
    let (status, answer) = run.order(&json!({ "action": "step", "until": "soon" }));
    assert_eq!(status, 422);
    assert!(answer.contains("cannot step to `soon`"), "{answer}");
    assert_eq!(run.order(&json!({ "action": "explode" })).0, 422);
    for action in ["stop", "resume", "pause"] {
        let order = json!({ "action": action, "until": "1ms" });
        assert_eq!(run.order(&order).0, 422, "{order}");
    }
    assert_eq!(run.state("")["status"], "paused");
}

#[test]
fn strangers_are_refused() {
    let bench = Bench::new("live-strangers");
    let run = Run::start(&bench, &[&LONG[..], &["--live-paused"]].concat());
    run.wait_until("paused", has_status("paused"));
    let stop = r#"{"action":"stop"}"#;
    let json = "Content-Type: application/json\r\n";
    let post = |headers: &str, body: &str| run.request("POST /api/control", headers, body).0;
    for host in ["Host: evil.example:{port}\r\n", "Host: 127.0.0.1\r\n"] {
        assert_eq!(post(&format!("{host}{json}"), stop), 403, "{host}");
        for path in ["GET /", "GET /api/state"] {
            assert_eq!(run.request(path, host, "").0, 403, "{host}");
        }
    }
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://127.0.0.1:{port}",
    ] {
        let headers = format!("{OWN_HOST}Origin: {origin}\r\n{json}");
        assert_eq!(post(&headers, stop), 403, "{origin}");
    }
    // Without a preflight request, a page of another origin can send only the content types of forms, or none.
    for kind in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
    ] {
        assert_eq!(post(&format!("{OWN_HOST}{kind}"), stop), 415, "{kind}");
    }
    // An absolute address takes precedence over the header.
    for address in [
        "http://evil.example",
        "http://127.0.0.1:1",
        "https://127.0.0.1:{port}",
    ] {
        let first = format!("POST {address}/api/control").replace("{port}", &run.port.to_string());
        let headers = format!("{OWN_HOST}{json}");
        assert_eq!(run.request(&first, &headers, stop).0, 403, "{first}");
    }
    let own = format!("GET http://127.0.0.1:{}/api/state", run.port);
    assert_eq!(run.request(&own, OWN_HOST, "").0, 200);
    assert_eq!(run.request("GET /api/control", OWN_HOST, "").0, 405);
    assert_eq!(run.request("GET /secret", OWN_HOST, "").0, 404);
    assert_eq!(
        run.state("")["status"],
        "paused",
        "none of them had an effect"
    );
    let own = "Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n";
    assert_eq!(post(&format!("{own}{json}"), stop), 200);
    run.assert_stopped(&bench);
}

#[test]
fn clients_that_vanish_do_not_matter() {
    let bench = Bench::new("live-vanishing");
    let run = Run::start(&bench, &LONG);
    let address = ("127.0.0.1", run.port);
    for said in [
        "",
        "GET /",
        "GET /api/state?since= HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        "\0\u{1}rubbish\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
    }
    // Some clients stay silent, and one sends requests but does not read the answers.
    let silent: Vec<TcpStream> = (0..8)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let mut deaf = TcpStream::connect(address).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", run.port);
    for _ in 0..50 {
        // The server may have closed the connection already.
        if deaf.write_all(request.as_bytes()).is_err() {
            break;
        }
    }
    let before = run.state("");
    run.wait_until("going on", |state| now(state) > now(&before));
    run.obey(&json!({ "action": "stop" }));
    run.assert_stopped(&bench);
    drop((silent, deaf));
}

/// More idle connections than the process has descriptors.
#[test]
#[cfg(unix)]
fn idle_connections_leave_room_for_pages_and_results() {
    let bench = Bench::new("live-idle");
    let run = Run::start_limited(&bench, 128, &LONG);
    let address = ("127.0.0.1", run.port);
    let idle: Vec<TcpStream> = (0..249)
        .map_while(|_| TcpStream::connect(address).ok())
        .collect();
    assert!(idle.len() > 128);
    let before = run.state("");
    run.wait_until("going on", |state| now(state) > now(&before));
    run.obey(&json!({ "action": "stop" }));
    run.assert_stopped(&bench);
    for name in ["report.html", "flows.parquet", "series.parquet"] {
        assert!(bench.path("results").join(name).exists(), "{name}");
    }
    drop(idle);
}

#[test]
fn a_request_that_does_not_come_is_not_waited_for() {
    let bench = Bench::new("live-slow");
    let run = Run::start(&bench, &[&LONG[..], &["--live-paused"]].concat());
    let mut slow = TcpStream::connect(("127.0.0.1", run.port)).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let mut answer = Vec::new();
    // The stream ends, or fails with an error other than a read timeout.
    if let Err(error) = slow.read_to_end(&mut answer) {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
    run.obey(&json!({ "action": "stop" }));
    run.assert_stopped(&bench);
}

#[test]
fn a_watched_run_has_the_results_of_one_that_is_not() {
    let bench = Bench::new("live-same");
    let scenario = ["quickstart", "--set", "workload.message=100KB"];
    let run = Run::start(
        &bench,
        &[
            &scenario[..],
            &["--live-paused", "--threads", "2", "--live-stay", "5s"],
        ]
        .concat(),
    );
    run.wait_until("paused", has_status("paused"));
    run.obey(&json!({ "action": "step", "until": "9us" }));
    let half = run.wait_until("there", |state| {
        state["status"] == "paused" && now(state) > 8.0
    });
    assert!(half["flows"]["sent"].as_u64() < Some(128), "{half}");
    run.obey(&json!({ "action": "resume" }));
    let end = run.wait_until("complete", has_status("complete"));
    assert_eq!(end["flows"]["sent"], 128);
    let figures = end["ending"]["figures"].to_string();
    assert!(figures.contains(r#""name":"Max FCT""#), "{figures}");
    let (code, said) = run.end();
    assert_eq!(code, 0);
    assert!(
        said.ends_with(" stays for 5 s, or until Ctrl-C\n"),
        "{said}"
    );
    let watched = Summary::read(bench.path("results")).unwrap();
    assert_eq!(watched.digest, bench.summary(&scenario).digest);
}

/// Sends SIGINT, the signal of Ctrl-C, to a run.
#[cfg(unix)]
fn interrupt(run: &Run) {
    let id = run.child.id().to_string();
    let kill = Command::new("kill").args(["-INT", &id]).status();
    assert!(kill.unwrap().success());
}

const SHORT: [&str; 3] = ["quickstart", "--set", "workload.message=10KB"];

#[test]
#[cfg(unix)]
fn a_run_that_is_over_stays_until_ctrl_c() {
    let bench = Bench::new("live-stay");
    for (stay, exit, more) in [
        ("forever", 0, &[][..]),
        ("3000s", 1, &["--set", "stop.at-most=8us"]),
    ] {
        let mut run = Run::start(&bench, &[&SHORT[..], &["--live-stay", stay], more].concat());
        let mut said = String::new();
        while !said.contains("live: ") {
            said.clear();
            assert!(run.errors.read_line(&mut said).unwrap() > 0);
        }
        let stays = match stay {
            "forever" => "stays until Ctrl-C".to_owned(),
            _ => "stays for 3000 s, or until Ctrl-C".to_owned(),
        };
        let port = run.port;
        let expected = format!("live: the run is over; http://127.0.0.1:{port}/ {stays}\n");
        assert_eq!(said, expected);
        // This is the first request for the page, and it still shows the whole run.
        let page = run.request("GET /", OWN_HOST, "");
        assert_eq!(page.0, 200);
        std::thread::sleep(Duration::from_millis(300));
        let state = run.state("");
        assert_eq!(state["ending"]["folder"], "results");
        assert!(sample_count(&state) > 0);
        let before = Summary::read(bench.path("results")).unwrap();
        interrupt(&run);
        assert_eq!(run.end(), (exit, String::new()), "{stay}");
        let after = Summary::read(bench.path("results")).unwrap();
        assert_eq!(after.digest, before.digest, "the results are kept");
    }
}

#[test]
fn a_run_that_is_over_stays_for_a_time() {
    let bench = Bench::new("live-stay-time");
    let run = Run::start(&bench, &[&SHORT[..], &["--live-stay", "10ms"]].concat());
    let port = run.port;
    let said = format!(
        "live: the run is over; http://127.0.0.1:{port}/ stays for 0.01 s, or until Ctrl-C\n"
    );
    assert_eq!(run.end(), (0, said));
    let error = bench.refuse(&["run", "quickstart", "--live", "--live-stay", "soon"]);
    assert!(
        error.contains("expected a time such as `300s`, or `forever`"),
        "{error}"
    );
}

/// Standard error is not a terminal here, so no user can press Ctrl-C.
#[test]
fn a_run_that_nobody_watches_ends_by_itself() {
    let bench = Bench::new("live-unattended");
    let run = Run::start(&bench, &SHORT);
    assert_eq!(run.end(), (0, String::new()));
}

#[test]
fn without_samples_there_is_only_progress() {
    let bench = Bench::new("live-unsampled");
    let off = ["--set", "observe.series.every=off"];
    let run = Run::start(&bench, &[&LONG[..], &off].concat());
    let page = run.request("GET /", OWN_HOST, "").2;
    assert!(page.contains("Nothing is sampled in this run"));
    let state = run.wait_until("going on", |state| now(state) > 5.0);
    assert_eq!((sample_count(&state), &state["curves"]), (0, &json!([])));
    run.obey(&json!({ "action": "stop" }));
    run.assert_stopped(&bench);
}

#[test]
#[cfg(unix)]
fn a_paused_run_hears_ctrl_c() {
    let bench = Bench::new("live-interrupt");
    let run = Run::start(&bench, &[&LONG[..], &["--live-paused"]].concat());
    run.wait_until("paused", has_status("paused"));
    interrupt(&run);
    run.assert_stopped(&bench);
}

#[test]
fn a_port_that_is_taken_is_the_users_to_mend() {
    let bench = Bench::new("live-port");
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = bench.refuse(&["run", "quickstart", "--live", "--live-port", &port]);
    let start = format!("--live: cannot listen on port {port} of 127.0.0.1: ");
    assert!(error.starts_with(&start), "{error}");
    assert!(error.ends_with("fix: name another port with `--live-port`, or none"));
}

#[test]
fn the_page_in_a_browser() {
    let Some(browser) = Browser::start("live") else {
        return;
    };
    let bench = Bench::new("live-browser");
    let run = Run::start(&bench, &LONG);
    browser.navigate(&format!("http://127.0.0.1:{}/", run.port));
    let text = |id: &str| {
        browser.text(&format!(
            "return document.getElementById('{id}').textContent;"
        ))
    };
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        for _ in 0..looks() {
            if is_so() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("not {what}: {}, {:?}", text("status"), browser.log());
    };
    let click = |id: &str| {
        browser.execute(&format!("document.getElementById('{id}').click();"));
    };
    let points = || {
        browser.number(
            "const drawn = [...document.querySelectorAll('[data-plot]')];\
             return Math.min(...drawn.map((plot) => Number(plot.dataset.points || 0)));",
        )
    };
    wait("running", &|| text("status") == "running");
    wait("drawn", &|| points() >= 2.0);
    let lines =
        "return document.querySelectorAll('[data-plot=flow-goodput] .area path.line').length;";
    assert_eq!(browser.number(lines), 8.0);
    // Compare exact times: rounded times do not change over a step of some microseconds.
    let before = text("exact");
    wait("going on", &|| text("exact") != before);

    click("hold");
    wait("paused", &|| text("status") == "paused");
    let before = text("exact");
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(text("exact"), before);
    assert_eq!(text("hold"), "Resume");
    map_of_the_last_interval(&run, &browser);
    picture(&browser);

    let aim = now(&run.state("")).ceil() + 40.0;
    browser.execute(&format!(
        "document.getElementById('until').value = '{aim}us';"
    ));
    click("go");
    // Check the time first: until the time changes, the page shows the status before the step.
    wait("there", &|| {
        text("exact") != before && text("status") == "paused"
    });
    assert!((aim..aim + 2.0).contains(&now(&run.state(""))));

    click("hold");
    wait("running", &|| text("status") == "running");
    click("stop");
    wait("over", &|| text("status") == "interrupted");
    let ended = "return !document.getElementById('ending').hidden && document.getElementById('stop').disabled;";
    assert_eq!(browser.execute(ended), true);
    assert_eq!(text("folder"), "results");
    run.assert_stopped(&bench);
    let log = browser.log();
    assert!(log.is_empty(), "the console says {log:?}");
}

/// Redraws the picture in the book, if that is wanted.
fn picture(browser: &Browser) {
    if std::env::var_os("CLEARWAY_PICTURES").is_none() {
        return;
    }
    browser.resize(1000, 1500);
    std::thread::sleep(Duration::from_secs(1));
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/src/images/gallery-live.png");
    std::fs::write(file, browser.screenshot()).unwrap();
}

/// Checks that the map of a paused run shows the interval that the server says, link by link.
fn map_of_the_last_interval(run: &Run, browser: &Browser) {
    let map = &run.state("")["map"];
    let utilisation = map["values"]["utilisation"].as_array().unwrap();
    let busiest = utilisation
        .iter()
        .filter_map(Value::as_f64)
        .fold(0.0, f64::max);
    assert!(busiest > 0.2 && busiest < 1.1, "{busiest}");
    assert!(map["to"].as_f64() > map["from"].as_f64(), "{map}");
    let bundles = browser.number("return Clearway.network.bundles.length;");
    assert_eq!(utilisation.len() as f64, bundles);
    let shown = browser
        .text("return JSON.stringify(Clearway.network.values(Clearway.network.metrics[0]));");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(&shown, &map["values"]["utilisation"]);
    let hot = browser.number("return document.querySelectorAll('#fabric-map svg .s8, #fabric-map svg .s9, #fabric-map svg .s10').length;");
    assert!(hot > 0.0, "no hot link of {busiest}");
    let note = browser.text("return document.querySelector('#fabric-map .note').textContent;");
    assert!(
        note.starts_with("From ") && note.ends_with(" of simulated time."),
        "{note}"
    );
}

/// A page that is opened after the end shows the whole run, and can be reloaded.
#[test]
#[cfg(unix)]
fn the_page_of_a_run_that_is_over_in_a_browser() {
    let Some(browser) = Browser::start("live-over") else {
        return;
    };
    let bench = Bench::new("live-over-browser");
    let run = Run::start(&bench, &[&SHORT[..], &["--live-stay", "forever"]].concat());
    run.wait_until("complete", has_status("complete"));
    for _ in 0..2 {
        browser.navigate(&format!("http://127.0.0.1:{}/", run.port));
        let shown = "const plot = document.querySelector('[data-plot=goodput]');\
             return document.getElementById('status').textContent === 'complete'\
             && !document.getElementById('ending').hidden && Number(plot.dataset.points || 0) > 1;";
        let is_shown = (0..looks()).any(|_| {
            std::thread::sleep(PAUSE);
            browser.execute(shown) == true
        });
        assert!(is_shown, "the page: {:?}", browser.log());
    }
    let link = "return document.getElementById('report').offsetHeight > 0;";
    assert_eq!(browser.execute(link), true, "the link to the report");
    browser.execute("document.getElementById('report').click();");
    let opened = "return location.pathname === '/report.html' && Boolean(document.querySelector('[data-plot=fct] path.line'));";
    let is_opened = (0..looks()).any(|_| {
        std::thread::sleep(PAUSE);
        browser.execute(opened) == true
    });
    assert!(is_opened, "the report: {:?}", browser.log());
    interrupt(&run);
    let (code, said) = run.end();
    assert_eq!(code, 0);
    assert!(said.ends_with(" stays until Ctrl-C\n"), "{said}");
    let log = browser.log();
    assert!(log.is_empty(), "the console says {log:?}");
}

#[test]
#[cfg(unix)]
fn a_run_serves_the_report_that_it_leaves() {
    let bench = Bench::new("live-report");
    let get = |run: &Run| run.request("GET /report.html", OWN_HOST, "");
    let paused = [&SHORT[..], &["--live-paused", "--live-stay", "forever"]].concat();
    let run = Run::start(&bench, &paused);
    assert_eq!(get(&run).0, 404, "it goes on");
    run.obey(&json!({ "action": "resume" }));
    let state = run.wait_until("complete", has_status("complete"));
    assert_eq!(state["ending"]["report"], "report.html");
    let (status, headers, body) = get(&run);
    assert_eq!(status, 200);
    assert!(headers.contains("text/html"), "{headers}");
    assert_eq!(body, bench.read("results/report.html"));
    interrupt(&run);
    run.end();

    let without = [&SHORT[..], &["--no-report", "--live-stay", "forever"]].concat();
    let run = Run::start(&bench, &without);
    let state = run.wait_until("complete", has_status("complete"));
    assert_eq!(state["ending"]["report"], Value::Null);
    assert_eq!(get(&run).0, 404);
    interrupt(&run);
    run.end();
}
