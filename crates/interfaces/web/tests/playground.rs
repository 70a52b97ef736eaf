//! The playground in a browser: the module that `cargo xtask web` builds.
//!
//! `CLEARWAY_WEB` names the folder with the page; without it the tests of the page are skipped. `CLEARWAY_PICTURES=1` redraws the picture
//! in the book.

#[path = "../../cli/tests/it/browser/mod.rs"]
mod browser;

use browser::Browser;
use clearway_lab::scenario::SECTIONS;
use clearway_web::playground::{BrowserLimits, check, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Built-in scenarios of all kinds that take at most seconds.
const SCENARIOS: [&str; 10] = [
    "quickstart",
    "incast-32",
    "mix-64",
    "tenants-mixed",
    "link-flap",
    "rail-64",
    "planes-64",
    "dragonfly-72",
    "checkpoint-64",
    "serving-64",
];

fn page() -> Option<PathBuf> {
    let folder = std::env::var_os("CLEARWAY_WEB").map(PathBuf::from);
    if folder.is_none() {
        let why = "the page of the playground was not opened: CLEARWAY_WEB is not set; see `cargo xtask web`";
        clearway_testing::skip("web", why);
    }
    Some(folder?.join("index.html"))
}

fn answer(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn native(text: &str) -> Value {
    let request = json!({ "text": text }).to_string();
    answer(&run(&request, BrowserLimits::DEFAULT, &mut |_| true))
}

/// Waits until `script` returns something other than null.
fn wait(browser: &Browser, script: &str) -> Value {
    #[expect(
        clippy::disallowed_methods,
        reason = "a limit for a browser that does not answer"
    )]
    let begin = Instant::now();
    loop {
        let value = browser.execute(script);
        if !value.is_null() {
            return value;
        }
        assert!(begin.elapsed() < Duration::from_secs(100), "{script}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ready(browser: &Browser) {
    let run = "const run = document.getElementById('run'); return run && !run.disabled && run.textContent === 'Run' ? 1 : null;";
    wait(browser, run);
}

fn write(browser: &Browser, text: &str) {
    let text = Value::from(text);
    browser.execute(&format!(
        "const box = document.getElementById('text'); box.value = {text}; box.dispatchEvent(new Event('input'));"
    ));
}

fn fault(browser: &Browser) -> String {
    let shown = "const box = document.getElementById('fault'); return box.classList.contains('wrong') ? box.textContent : null;";
    wait(browser, shown).as_str().expect("a text").to_owned()
}

/// Asks the module of the page, past its editor.
fn ask(browser: &Browser, call: &str, request: &Value) -> Value {
    browser.execute(&format!(
        "window.got = null; Playground.ask('{call}', {request}).then((answer) => {{ window.got = JSON.stringify(answer); }});"
    ));
    answer(wait(browser, "return window.got;").as_str().expect("JSON"))
}

fn text_of(scenario: &str) -> String {
    clearway_lab::Laboratory::new()
        .text(scenario)
        .expect(scenario)
}

#[test]
fn digests_are_those_of_the_program() {
    let Some(page) = page() else { return };
    let Some(browser) = Browser::start("playground") else {
        return;
    };
    browser.open(&page);
    ready(&browser);
    for scenario in SCENARIOS {
        let text = text_of(scenario);
        let expected = native(&text);
        let found = ask(&browser, "run", &json!({ "text": text }));
        assert_eq!(found["digest"], expected["digest"], "{scenario}");
        assert_eq!(found["tiles"], expected["tiles"], "{scenario}");
        assert_eq!(found["resolved"], expected["resolved"], "{scenario}");
    }
    let log = browser.log();
    assert!(log.is_empty(), "the console says {log:?}");
}

#[test]
fn memory_does_not_grow_over_fifty_runs() {
    let Some(page) = page() else { return };
    let Some(browser) = Browser::start("playground-memory") else {
        return;
    };
    browser.open(&page);
    ready(&browser);
    let request = json!({ "text": text_of("quickstart"), "set": ["workload.message=100KB"] });
    let memory = || browser.number("return Playground.memory();");
    for _ in 0..5 {
        ask(&browser, "run", &request);
    }
    let first = memory();
    for _ in 0..50 {
        ask(&browser, "run", &request);
    }
    assert_eq!(memory(), first);
}

#[test]
fn a_person_runs_compares_and_shares() {
    let Some(page) = page() else { return };
    let Some(browser) = Browser::start("playground-person") else {
        return;
    };
    for (width, height) in [(1200, 900), (390, 844)] {
        browser.emulate_screen(width, height);
        browser.open(&page);
        ready(&browser);
        browser.execute(
            "document.getElementById('transports').open = true;
             for (const name of ['strack', 'dctcp']) document.querySelector('#choices input[value=' + name + ']').click();
             document.getElementById('run').click();",
        );
        let done =
            "return document.getElementById('progress').textContent.startsWith('Done') ? 1 : null;";
        wait(&browser, done);
        let digests = browser.text(
            "return [...document.querySelectorAll('#table tr')].find((row) => row.cells[0].textContent === 'Digest').innerText;",
        );
        for transport in ["strack", "dctcp"] {
            let request = json!({ "text": text_of("quickstart"), "set": [format!("transport.kind={transport}")] });
            let own = answer(&run(
                &request.to_string(),
                BrowserLimits::DEFAULT,
                &mut |_| true,
            ));
            assert!(
                digests.contains(own["digest"].as_str().unwrap()),
                "{digests}"
            );
        }
        let command = browser.text("return document.getElementById('command').textContent;");
        assert_eq!(
            command,
            "clearway run scenario.toml --set transport.kind=strack"
        );
        let wide = browser.number("return document.documentElement.scrollWidth - innerWidth;");
        assert!(wide <= 0.0, "{wide} pixels too wide at {width}");
    }
    picture(&browser, &page);
    // The report is in its frame, isolated from the page.
    let sandbox = browser.text("return document.getElementById('report').getAttribute('sandbox');");
    assert_eq!(sandbox, "allow-scripts");
    // A link contains the text, and opening it runs nothing.
    write(&browser, "seed = 7 # <script>alert(1)</script>\n");
    browser.execute("document.getElementById('share').click();");
    let link = wait(
        &browser,
        "return location.hash.length > 1 ? location.href : null;",
    );
    browser.navigate("about:blank");
    browser.navigate(link.as_str().unwrap());
    ready(&browser);
    let text = browser.text("return document.getElementById('text').value;");
    assert_eq!(text, "seed = 7 # <script>alert(1)</script>\n");
    assert_eq!(browser.number("return Playground.results().length;"), 0.0);
    let log = browser.log();
    assert!(log.is_empty(), "the console says {log:?}");
}

/// Redraws the picture in the book, if that is wanted: an editor with an offer, and a comparison below it.
fn picture(browser: &Browser, page: &Path) {
    if std::env::var_os("CLEARWAY_PICTURES").is_none() {
        return;
    }
    browser.emulate_screen(1000, 1500);
    browser.open(page);
    ready(browser);
    browser.execute(
        "document.getElementById('transports').open = true;
         for (const name of ['strack', 'dctcp', 'rocev2']) document.querySelector('#choices input[value=' + name + ']').click();
         document.getElementById('run').click();",
    );
    wait(
        browser,
        "return document.getElementById('progress').textContent.startsWith('Done') ? 1 : null;",
    );
    std::thread::sleep(Duration::from_secs(1));
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/src/images/playground.png");
    std::fs::write(file, browser.screenshot()).unwrap();
}

#[test]
fn errors_and_completions_in_the_editor() {
    let Some(page) = page() else { return };
    let Some(browser) = Browser::start("playground-errors") else {
        return;
    };
    browser.open(&page);
    ready(&browser);
    for text in [
        "[topology]\nhosts = 12x\n",
        "[topology]\nkind = \"leaf-spine\"\nhost = 3\n",
        "[workload]\nmessage = \"2 parsec\"\n",
        "[topology]\nkind = \"file\"\nfile = \"/etc/passwd\"\n",
    ] {
        write(&browser, text);
        let request = json!({ "text": text });
        let own = answer(&check(&request.to_string()));
        let expected = own["error"]["text"].as_str().unwrap();
        let shown = fault(&browser);
        // No file exists in a browser, whatever its name.
        if !text.contains("passwd") {
            assert_eq!(shown, expected);
            let line = wait(
                &browser,
                "const line = document.querySelector('#lines b'); return line && line.textContent.trim();",
            );
            assert_eq!(
                line.as_str(),
                Some(own["error"]["line"].to_string().as_str())
            );
        }
        assert!(
            shown.starts_with("error: ") && shown.contains("\n  fix: "),
            "{shown}"
        );
        write(&browser, "");
        let right =
            "return document.getElementById('fault').classList.contains('wrong') ? null : 1;";
        wait(&browser, right);
    }
    browser.execute("document.getElementById('text').focus();");
    write(&browser, "[topology]\n");
    browser.execute("const box = document.getElementById('text'); box.setSelectionRange(11, 11);");
    wait(
        &browser,
        "return document.getElementById('fault').textContent.includes('hosts') ? 1 : null;",
    );
    for key in "host".chars() {
        browser.press(key);
    }
    let offers = browser.text("return document.getElementById('completion').innerText;");
    assert!(offers.starts_with("hosts"), "{offers}");
    // Enter accepts.
    browser.press('\u{e007}');
    let text = browser.text("return document.getElementById('text').value;");
    assert_eq!(text, "[topology]\nhosts = ");
}

#[test]
fn hostile_scenarios_and_links_harm_nothing() {
    let Some(page) = page() else { return };
    let Some(browser) = Browser::start("playground-hostile") else {
        return;
    };
    browser.open(&page);
    ready(&browser);
    // Too many hosts, flows and bytes: an error at once.
    for (text, part) in [
        (
            "[topology]\nhosts = 32768\nspines = 64\nhosts-per-leaf = 512\n".to_owned(),
            "too many for a browser",
        ),
        (
            "[workload]\nmessage = \"1TB\"\n".to_owned(),
            "too many for a browser",
        ),
        (format!("# {}\n", "x".repeat(300_000)), "more than 262144"),
    ] {
        let found = ask(&browser, "run", &json!({ "text": text }));
        let error = found["error"]["text"].as_str().unwrap_or_default();
        assert!(error.contains(part), "{found}");
    }
    // A run can be stopped, and the page goes on.
    write(&browser, "[workload]\nmessage = \"500MB\"\n");
    browser.execute("document.getElementById('run').click();");
    wait(
        &browser,
        "return document.getElementById('progress').textContent.includes('packet-hops') ? 1 : null;",
    );
    browser.execute("document.getElementById('stop').click();");
    wait(
        &browser,
        "return document.getElementById('progress').textContent === 'Stopped.' ? 1 : null;",
    );
    let found = ask(
        &browser,
        "run",
        &json!({ "text": "[workload]\nmessage = \"10KB\"\n" }),
    );
    assert!(found["digest"].is_string(), "{found}");
    // Links with other bytes, and with a text that unpacks to a gigabyte.
    let address = browser.text("return location.href.replace(/#.*/, '');");
    for code in ["<script>", "AAAA", "%00"] {
        browser.navigate("about:blank");
        browser.navigate(&format!("{address}#{code}"));
        ready(&browser);
        let text = browser.text("return document.getElementById('text').value;");
        assert!(text.contains("quickstart"), "{code}: {text}");
        let said = browser.text("return document.getElementById('about').textContent;");
        assert!(
            said.starts_with("The link holds no scenario: "),
            "{code}: {said}"
        );
    }
    browser.execute(
        "window.bomb = null;
         const zeros = new Blob([new Uint8Array(64 << 20)]).stream().pipeThrough(new CompressionStream('deflate-raw'));
         new Response(zeros).arrayBuffer().then((packed) => {
             const letters = Array.from(new Uint8Array(packed), (byte) => String.fromCharCode(byte)).join('');
             window.bomb = btoa(letters).replace(/\\+/g, '-').replace(/\\//g, '_').replace(/=+$/, '');
         });",
    );
    wait(&browser, "return window.bomb && 1;");
    browser.execute("location.hash = window.bomb;");
    let said = wait(
        &browser,
        "const text = document.getElementById('about').textContent; return text.startsWith('The link holds no scenario') ? text : null;",
    );
    assert!(
        said.as_str().unwrap().contains("more than 262144"),
        "{said}"
    );
}

/// True if `docs/try.js` adds a button to a block.
fn has_button(block: &str) -> bool {
    let heads: Vec<&str> = block
        .lines()
        .filter_map(|line| line.strip_prefix('['))
        .map(|line| {
            let line = line.trim_start_matches('[');
            let end = line.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
            &line[..end.unwrap_or(line.len())]
        })
        .collect();
    let wanted = ["topology", "switch", "transport", "workload"];
    let is_whole = wanted.iter().any(|section| heads.contains(section));
    is_whole
        && heads.iter().all(|head| SECTIONS.contains(head))
        && !block.lines().any(|line| line.starts_with("file = "))
}

#[test]
fn scenarios_of_the_book_run_in_the_playground() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/src");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let is_chapter = path.extension().is_some_and(|end| end == "md");
        let Some(text) = is_chapter.then(|| std::fs::read_to_string(&path).unwrap()) else {
            continue;
        };
        for part in text.split("\n```toml\n").skip(1) {
            let block = part.split("\n```").next().unwrap_or_default();
            if has_button(block) {
                let answer = answer(&check(&json!({ "text": block }).to_string()));
                let error = &answer["error"]["text"];
                assert!(error.is_null(), "{}:\n{block}\n{error}", path.display());
                count += 1;
            }
        }
    }
    assert!(count >= 20, "{count} blocks");
    let script = include_str!("../../../../docs/try.js");
    let known = script.split_once("const SECTIONS = [").unwrap().1;
    let known = known.split_once(']').unwrap().0.replace(['"', ','], " ");
    assert_eq!(known.split_whitespace().collect::<Vec<_>>(), SECTIONS);
}
